//! Compiled code takes over CTAs of the reference engine in the middle of a loop: results are those of the reference engine, whatever the
//! registers hold there.
//!
//! `MARGAY_TAKE_OVER=1000` runs more random loops, starting at seed `MARGAY_TAKE_OVER_FROM`.

#[path = "take_over/loops.rs"]
mod loops;

use margay::{Error, LaunchConfig, LoadOptions, SourceText, Stop};
use margay_harness::{number, random::Random};
use margay_runtime::{Device, DeviceOptions, Tier};
use std::fmt::Write;

const WORDS: u64 = 1 << 12;

/// A kernel with the address of its output in `%out`, its global thread number in `%t`, and a parameter in `%n`.
fn kernel(body: &str) -> String {
    format!(
        r#".version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 to, .param .u32 count)
{{
    .reg .pred %p<8>;
    .reg .b16 %h<8>;
    .reg .b32 %r<16>;
    .reg .f32 %f<4>;
    .reg .b64 %d<16>;
    .reg .f64 %w<4>;
    .reg .b32 %t, %n, %i, %tx, %ty, %z;
    .reg .b64 %out, %own;
    .shared .align 16 .b8 tile[4096];
    ld.param.u64 %out, [to];
    ld.param.u32 %n, [count];
    mov.u32 %tx, %tid.x;
    mov.u32 %ty, %tid.y;
    mov.u32 %z, %ntid.x;
    mad.lo.u32 %t, %ty, %z, %tx;
    mov.u32 %r15, %ctaid.x;
    mov.u32 %r14, %ntid.y;
    mul.lo.u32 %r14, %r14, %z;
    mad.lo.u32 %t, %r15, %r14, %t;
    mad.wide.u32 %own, %t, 4, %out;
{body}
}}
"#
    )
}

/// What a launch of `n` leaves in memory on an engine, and the best code that ran a part of it.
fn run(engine: &str, text: &str, grid: u32, block: [u32; 3], n: u32) -> Result<(Vec<u8>, Tier), Error> {
    let engines = margay::engines().into_iter().chain(margay::taking_over()).collect();
    let device = Device::with(DeviceOptions { engines, ..margay::device_options(Some(2)) })?;
    let context = device.context();
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let kernel = context.load(&[SourceText { name: "kernel", text }], &options)?.kernel("k")?;
    let memory = context.buffer(4 * WORDS)?;
    memory.write(0, &vec![0; 4 * WORDS as usize])?;
    let mut arguments = kernel.arguments();
    arguments.push_address(memory.address()).expect("an address fits");
    arguments.push(&n.to_le_bytes()).expect("a word fits");
    kernel.launch(&LaunchConfig::new([grid, 1, 1], block), &arguments.finish().expect("all arguments are there"))?;
    let best = kernel.tiers().iter().map(|t| t.tier).max().unwrap_or(Tier::Reference);
    Ok((memory.to_vec()?, best))
}

fn agrees(body: &str, grid: u32, block: [u32; 3], n: u32) {
    agrees_as(&kernel(body), grid, block, n);
}

fn agrees_as(text: &str, grid: u32, block: [u32; 3], n: u32) {
    assert_ne!(compare(text, grid, block, n), Some(Tier::Reference), "nothing was taken over: {text}");
}

/// The same of a kernel whose threads pause in light code, so that full code runs the end.
fn pauses(body: &str, grid: u32, block: [u32; 3], n: u32) {
    let best = compare(&kernel(body), grid, block, n);
    assert!(best.is_none_or(|tier| tier == Tier::Full), "ran on {best:?}: {body}");
}

/// Compares results; returns the best code that ran a part, or `None` if nothing can be compiled.
fn compare(text: &str, grid: u32, block: [u32; 3], n: u32) -> Option<Tier> {
    margay::taking_over()?;
    let (want, _) = run("reference", text, grid, block, n).expect("the reference engine runs it");
    let (got, best) = run("taking-over", text, grid, block, n).expect("both engines run it");
    let word = |v: &[u8], i: usize| u32::from_le_bytes([v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]]);
    for i in 0..WORDS as usize {
        assert_eq!(word(&want, i), word(&got, i), "word {i}, grid {grid}, block {block:?}, n {n}: {text}");
    }
    Some(best)
}

#[test]
fn counters_and_sums() {
    let body = "
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
    mov.f32 %f0, 0f3F800000;
    mov.f64 %w0, 0d3FF0000000000000;
    mov.b16 %h0, 7;
    setp.eq.u32 %p1, %t, 5;
    mov.u64 %d0, %own;
loop:
    mad.lo.u32 %r0, %r0, 1664525, 1013904223;
    fma.rn.f32 %f0, %f0, 0f3F7FF000, 0f3DCCCCCD;
    fma.rn.f64 %w0, %w0, 0d3FEFFFFF00000000, 0d3FB999999999999A;
    add.u16 %h0, %h0, 3;
    setp.lt.u32 %p2, %r0, 0x40000000;
    xor.pred %p1, %p1, %p2;
    add.u64 %d0, %d0, 12;
    add.u32 %i, %i, 1;
    setp.ne.u32 %p0, %i, %n;
    @%p0 bra loop;
    cvt.u32.u16 %r1, %h0;
    mov.b32 %r2, %f0;
    cvt.rn.f32.f64 %f1, %w0;
    mov.b32 %r3, %f1;
    selp.u32 %r4, 1, 0, %p1;
    xor.b32 %r0, %r0, %r1;
    xor.b32 %r0, %r0, %r2;
    xor.b32 %r0, %r0, %r3;
    xor.b32 %r0, %r0, %r4;
    sub.u64 %d0, %d0, %own;
    cvt.u32.u64 %r5, %d0;
    add.u32 %r0, %r0, %r5;
    st.global.u32 [%own], %r0;
    ret;";
    pauses(body, 1, [64, 1, 1], 5000);
    pauses(body, 3, [16, 8, 1], 3000);
    pauses(body, 2, [33, 1, 1], 3000);
    pauses(body, 1, [1, 1, 1], 20000);
    pauses(body, 1, [7, 3, 5], 3000);
}

#[test]
fn predicates_and_floats_that_keep_their_values() {
    // Of the CTA (%p1, %f1), of a warp (%p2, %f2), of a thread (%p3, %f3).
    let body = "
    setp.gt.u32 %p1, %n, 3;
    setp.lt.u32 %p2, %t, 64;
    and.b32 %r1, %t, 3;
    setp.eq.u32 %p3, %r1, 1;
    cvt.rn.f32.u32 %f1, %n;
    shr.u32 %r2, %t, 5;
    cvt.rn.f32.u32 %f2, %r2;
    cvt.rn.f32.u32 %f3, %t;
    mov.u32 %i, 0;
    mov.f32 %f0, 0f3F800000;
loop:
    @!%p1 bra skipped;
    add.f32 %f0, %f0, %f1;
    bar.sync 0;
skipped:
    @!%p2 bra other;
    sub.f32 %f0, %f0, %f2;
other:
    @%p3 mul.f32 %f0, %f0, 0f3F000000;
    @!%p3 fma.rn.f32 %f0, %f0, 0f3E800000, %f3;
    add.u32 %i, %i, 1;
    setp.ne.u32 %p0, %i, %n;
    @%p0 bra loop;
    mov.b32 %r0, %f0;
    st.global.u32 [%own], %r0;
    ret;";
    pauses(body, 1, [128, 1, 1], 4000);
    pauses(body, 2, [128, 1, 1], 3000);
}

#[test]
fn local_memory_moves_along() {
    // An array in the thread's frame, indexed by what changes, by name, by its local and by its generic address.
    let body = "
    .local .align 8 .b8 frame[72];
    mov.u64 %d1, frame;
    cvta.local.u64 %d2, %d1;
    mov.u32 %i, 0;
fill:
    mul.wide.u32 %d3, %i, 4;
    add.u64 %d4, %d1, %d3;
    mad.lo.u32 %r1, %i, 40503, %t;
    st.local.u32 [%d4], %r1;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, 18;
    @%p0 bra fill;
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
loop:
    mad.lo.u32 %r0, %r0, 1664525, 1013904223;
    shr.u32 %r2, %r0, 28;
    mul.wide.u32 %d3, %r2, 4;
    add.u64 %d4, %d2, %d3;
    ld.u32 %r3, [%d4];
    xor.b32 %r3, %r3, %r0;
    st.u32 [%d4], %r3;
    ld.local.u32 %r4, [frame+64];
    add.u32 %r4, %r4, %r3;
    st.local.u32 [frame+64], %r4;
    add.u32 %i, %i, 1;
    setp.ne.u32 %p0, %i, %n;
    @%p0 bra loop;
    ld.local.u32 %r5, [%d1+64];
    ld.local.u32 %r6, [%d1+12];
    xor.b32 %r5, %r5, %r6;
    st.global.u32 [%own], %r5;
    ret;";
    agrees(body, 1, [64, 1, 1], 5000);
    agrees(body, 3, [37, 2, 1], 3000);
    agrees(body, 1, [1, 1, 1], 20000);
}

#[test]
fn calls_in_the_loop() {
    let functions = "
.func (.param .b32 r) mix(.param .b32 a, .param .align 4 .b8 b[8])
{
    .reg .b32 %r<4>;
    .reg .pred %p;
    .local .align 4 .b8 own[8];
    ld.param.u32 %r0, [a];
    ld.param.u32 %r1, [b+4];
    st.local.u32 [own+4], %r1;
    mov.u32 %r2, 0;
again:
    mad.lo.u32 %r0, %r0, 22695477, 1;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, 3;
    @%p bra again;
    ld.local.u32 %r1, [own+4];
    xor.b32 %r0, %r0, %r1;
    st.param.b32 [r], %r0;
    ret;
}
";
    let body = "
    .local .align 4 .b8 kept[4];
    st.local.u32 [kept], %t;
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
loop:
    {
    .param .b32 a;
    .param .align 4 .b8 b[8];
    .param .b32 r;
    ld.local.u32 %r1, [kept];
    add.u32 %r1, %r1, %r0;
    st.local.u32 [kept], %r1;
    st.param.b32 [a], %r0;
    st.param.b32 [b], %i;
    st.param.b32 [b+4], %r1;
    call (r), mix, (a, b);
    ld.param.b32 %r0, [r];
    }
    add.u32 %i, %i, 1;
    setp.ne.u32 %p0, %i, %n;
    @%p0 bra loop;
    st.global.u32 [%own], %r0;
    ret;";
    let text = kernel(body).replace(".visible .entry", &format!("{functions}.visible .entry"));
    agrees_as(&text, 1, [64, 1, 1], 3000);
    agrees_as(&text, 2, [20, 1, 1], 3000);
}

#[test]
fn threads_that_leave_early() {
    // Thread t repeats the loop n + 16 t times; some return before it.
    let body = "
    and.b32 %r1, %t, 7;
    setp.eq.u32 %p1, %r1, 3;
    @%p1 bra end;
    mad.lo.u32 %r2, %t, 16, %n;
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
loop:
    mad.lo.u32 %r0, %r0, 1664525, 1013904223;
    shr.u32 %r3, %r0, 31;
    setp.eq.u32 %p2, %r3, 0;
    @%p2 bra next;
    xor.b32 %r0, %r0, %i;
next:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %r2;
    @%p0 bra loop;
    st.global.u32 [%own], %r0;
end:
    ret;";
    pauses(body, 1, [96, 1, 1], 3000);
    pauses(body, 2, [50, 1, 1], 3000);
}

#[test]
fn barriers_and_shared_memory() {
    // Each iteration passes a value on to the neighbor through shared memory.
    let body = "
    mov.u32 %r6, tile;
    mad.lo.u32 %r7, %ty, %z, %tx;
    shl.b32 %r8, %r7, 2;
    add.u32 %r9, %r6, %r8;
    add.u32 %r10, %r7, 1;
    setp.eq.u32 %p3, %r10, %r14;
    selp.u32 %r10, 0, %r10, %p3;
    shl.b32 %r10, %r10, 2;
    add.u32 %r10, %r10, %r6;
    cvta.shared.u64 %d1, tile;
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
loop:
    st.shared.u32 [%r9], %r0;
    bar.sync 0;
    ld.shared.u32 %r1, [%r10];
    ld.u32 %r2, [%d1+4];
    bar.sync 0;
    mad.lo.u32 %r0, %r1, 5, %r2;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %n;
    @%p0 bra loop;
    st.global.u32 [%own], %r0;
    ret;";
    pauses(body, 1, [128, 1, 1], 1500);
    pauses(body, 2, [16, 10, 1], 1000);
}

#[test]
fn nested_loops() {
    let body = "
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
    mov.u64 %d0, %own;
outer:
    and.b32 %r1, %i, 7;
    add.u32 %r1, %r1, %tx;
    mov.u32 %r2, 0;
inner:
    mad.lo.u32 %r0, %r0, 1664525, %r2;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %r1;
    @%p1 bra inner;
    st.global.u32 [%d0], %r0;
    xor.b64 %d0, %d0, 0;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %n;
    @%p0 bra outer;
    ret;";
    pauses(body, 1, [40, 1, 1], 400);
    pauses(body, 1, [8, 8, 1], 400);
}

/// Unrolled by four, as compilers do it: the counter meets its bound because both begin at multiples of four, which what precedes the loop
/// shows, and the values in the middle do not.
#[test]
fn unrolled_loops() {
    let body = "
    mad.lo.u32 %r8, %t, 37, %n;
    and.b32 %r1, %r8, 3;
    sub.u32 %r2, %r8, %r1;
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
unrolled:
    mad.lo.u32 %r0, %r0, 1664525, %i;
    shr.u32 %r3, %r0, 7;
    xor.b32 %r0, %r0, %r3;
    add.u32 %i, %i, 4;
    setp.ne.u32 %p0, %i, %r2;
    @%p0 bra unrolled;
    st.global.u32 [%own], %r0;
    ret;";
    pauses(body, 1, [1, 1, 1], 40000);
    pauses(body, 1, [40, 1, 1], 40000);
}

/// An update that another thread's has overtaken is tried again, by what `atom.cas` has found or what a load finds, which waits for nobody.
#[test]
fn updates_that_are_tried_again() {
    for look in ["", "ld.global.u32 %r1, [%out+8000];"] {
        let body = format!(
            "
    mov.u32 %i, 0;
loop:
    ld.global.u32 %r1, [%out+8000];
again:
    {look}
    add.u32 %r2, %r1, 3;
    atom.global.cas.b32 %r3, [%out+8000], %r1, %r2;
    setp.ne.s32 %p1, %r1, %r3;
    mov.u32 %r1, %r3;
    @%p1 bra again;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %n;
    @%p0 bra loop;
    st.global.u32 [%own], %i;
    ret;"
        );
        agrees(&body, 1, [64, 1, 1], 1000);
        agrees(&body, 3, [33, 1, 1], 1000);
    }
}

/// Lanes leave the loop at different times, and then exchange values with those of the warp, and of the CTA.
#[test]
fn threads_that_meet_after_the_loop() {
    let body = "
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
    and.b32 %r1, %t, 7;
    mul.lo.u32 %r1, %r1, 3;
    add.u32 %r1, %r1, %n;
loop:
    mad.lo.u32 %r0, %r0, 1664525, 1013904223;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %r1;
    @%p0 bra loop;
    shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;
    add.u32 %r0, %r0, %r2;
    mul.wide.u32 %d0, %tx, 4;
    mov.u64 %d1, tile;
    add.u64 %d1, %d1, %d0;
    st.shared.u32 [%d1], %r0;
    bar.sync 0;
    xor.b32 %r3, %tx, 33;
    mul.wide.u32 %d0, %r3, 4;
    mov.u64 %d1, tile;
    add.u64 %d1, %d1, %d0;
    ld.shared.u32 %r3, [%d1];
    add.u32 %r0, %r0, %r3;
    st.global.u32 [%own], %r0;
    ret;";
    agrees(body, 1, [64, 1, 1], 3000);
    agrees(body, 2, [128, 1, 1], 2000);
}

/// All threads leave the loop together, and need the others in it.
#[test]
fn threads_that_meet_in_the_loop() {
    let body = "
    mov.u32 %i, 0;
    mov.u32 %r0, %t;
    setp.eq.u32 %p1, %t, 3;
loop:
    mad.lo.u32 %r0, %r0, 1664525, 1013904223;
    shfl.sync.idx.b32 %r2, %r0, %i, 31, -1;
    xor.b32 %r0, %r0, %r2;
    vote.sync.ballot.b32 %r3, %p1, -1;
    and.b32 %r4, %r0, 1;
    setp.eq.u32 %p1, %r4, 1;
    add.u32 %r0, %r0, %r3;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %n;
    @%p0 bra loop;
    shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1;
    add.u32 %r0, %r0, %r2;
    st.global.u32 [%own], %r0;
    ret;";
    pauses(body, 1, [32, 1, 1], 3000);
    pauses(body, 2, [96, 1, 1], 1000);
}

/// Nothing shows that the lanes of a warp leave the loop together, or that all warps repeat a barrier equally often, so each warp has a
/// fiber of its own.
#[test]
fn warps_on_fibers() {
    let shuffles = "
    mov.u32 %i, %tx;
    mov.u32 %r0, %t;
lanes:
    mad.lo.u32 %r0, %r0, 1664525, %i;
    shfl.sync.bfly.b32 %r1|%p1, %r0, 1, 31, -1;
    xor.b32 %r0, %r0, %r1;
    add.u32 %i, %i, 32;
    setp.lt.u32 %p0, %i, %n;
    @%p0 bra lanes;
    st.global.u32 [%own], %r0;
    ret;";
    agrees(shuffles, 1, [32, 1, 1], 16000);
    let barriers = "
    mad.lo.u32 %r7, %ty, %z, %tx;
    mov.u32 %r6, tile;
    mad.lo.u32 %r6, %r7, 4, %r6;
    st.shared.u32 [%r6], %r7;
    shr.u32 %i, %r7, 10;
    mov.u32 %r0, %t;
warps:
    bar.sync 0;
    xor.b32 %r3, %r6, 128;
    ld.shared.u32 %r1, [%r3];
    mad.lo.u32 %r0, %r0, 1664525, %r1;
    bar.sync 0;
    st.shared.u32 [%r6], %r0;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %n;
    @%p0 bra warps;
    st.global.u32 [%own], %r0;
    ret;";
    agrees(barriers, 1, [64, 1, 1], 3000);
    agrees(barriers, 1, [16, 8, 1], 3000);
}

#[test]
fn faults_name_the_thread() {
    // Thread 9 stores to address 8 in iteration 2000.
    let body = "
    mov.u32 %i, 0;
    mov.u64 %d0, %own;
loop:
    setp.eq.u32 %p1, %i, 2000;
    setp.eq.and.u32 %p1, %t, 9, %p1;
    selp.b64 %d2, 8, %d0, %p1;
    st.global.u32 [%d2], %i;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p0, %i, %n;
    @%p0 bra loop;
    ret;";
    if margay::taking_over().is_none() {
        return;
    }
    let [a, b] = ["reference", "taking-over"].map(|engine| match run(engine, &kernel(body), 1, [32, 1, 1], 5000) {
        Err(Error::Stopped(report)) => match report.stop {
            Stop::Fault(fault) => fault,
            other => panic!("{engine}: {other:?}"),
        },
        other => panic!("{engine}: no fault, {:?}", other.map(|_| ())),
    });
    assert_eq!((&a.kind, a.thread, a.cta, a.at), (&b.kind, b.thread, b.cta, b.at));
    assert_eq!(a.thread, [9, 0, 0]);
}

#[test]
fn random_loops() {
    let from = number("MARGAY_TAKE_OVER_FROM").unwrap_or(0);
    let count = number("MARGAY_TAKE_OVER").unwrap_or(8);
    let mut moved = 0;
    for seed in from..from + count {
        let body = loops::body(seed);
        let mut random = Random::new(!seed);
        let block = random.pick(&[[64, 1, 1], [16, 8, 1], [33, 1, 1], [7, 3, 2], [1, 1, 1], [96, 1, 1]]);
        let (grid, n) = (1 + random.below(3) as u32, 300 + random.below(700) as u32);
        moved += u64::from(compare(&kernel(&body), grid, block, n) != Some(Tier::Reference));
    }
    assert!(moved > count / 2, "{moved} of {count} loops were taken over");
}

#[test]
fn shared_memory_from_before_the_loop() {
    // What the threads stored before the loop, one of them reads behind it.
    let body = "
    .shared .align 16 .b8 words[4096];
    mov.u32 %r6, words;
    mad.lo.u32 %r7, %ty, %z, %tx;
    mad.lo.u32 %r8, %r7, 16, %r6;
    st.shared.v4.u32 [%r8], {%r7, 1, 2, 3};
    bar.sync 0;
    mov.u32 %i, 0;
loop:
    setp.lt.u32 %p0, %i, %n;
    @!%p0 bra behind;
    add.u32 %i, %i, 1;
    bra loop;
behind:
    ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%r8];
    mad.lo.u32 %r0, %r2, 31, %r0;
    st.global.u32 [%own], %r0;
    bar.sync 0;
    setp.ne.u32 %p0, %r7, 0;
    @%p0 bra end;
    mov.u32 %r9, 0;
sum:
    mov.u64 %d0, words;
    mad.wide.u32 %d0, %r9, 4, %d0;
    ld.shared.u32 %r1, [%d0];
    mad.lo.u32 %r2, %r2, 31, %r1;
    add.u32 %r9, %r9, 1;
    setp.lt.u32 %p0, %r9, 100;
    @%p0 bra sum;
    st.global.u32 [%own], %r2;
end:
    ret;";
    agrees(body, 1, [32, 1, 1], 3000);
    agrees(body, 1, [8, 4, 1], 300);
    agrees(body, 2, [64, 1, 1], 3000);
}

#[test]
fn loops_one_after_another() {
    // Each is over before code for the rest of a CTA that is in it could be made, so CTAs wait at the header of a later one. Only odd CTAs
    // come to the last loops.
    let mut body = String::from("mov.u32 %r0, %t;\nand.b32 %r5, %r15, 1;\nsetp.eq.u32 %p1, %r5, 1;\n");
    for number in 0..12 {
        if number == 8 {
            body += "@!%p1 bra end;\n";
        }
        let _ = writeln!(
            body,
            "mov.u32 %i, {number};\nloop{number}:\nmad.lo.u32 %r0, %r0, 1664525, {number};\nadd.u32 %i, %i, 1;\n\
             setp.lt.u32 %p0, %i, %n;\n@%p0 bra loop{number};\nbar.sync 0;"
        );
    }
    body += "end:\nst.global.u32 [%own], %r0;\nret;\n";
    let text = kernel(&body);
    agrees_as(&text, 2, [64, 1, 1], 1000);
    let (want, _) = run("reference", &text, 6, [64, 1, 1], 20000).expect("the reference engine runs it");
    let (got, _) = run("tiered", &text, 6, [64, 1, 1], 20000).expect("all engines run it");
    assert!(want == got, "{text}");
}
