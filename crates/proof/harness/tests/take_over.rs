//! Compiled code takes over CTAs of the reference engine in the middle of a loop: results are those of the reference engine, whatever the
//! registers hold there.

use margay::{Error, LaunchConfig, LoadOptions, SourceText, Stop};
use margay_runtime::{Device, DeviceOptions, Tier};

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

/// What a launch of `n` leaves in memory on an engine, and whether compiled code ran a part of it.
fn run(engine: &str, body: &str, grid: u32, block: [u32; 3], n: u32) -> Result<(Vec<u8>, bool), Error> {
    let engines = margay::engines().into_iter().chain(margay::taking_over()).collect();
    let device = Device::with(DeviceOptions { engines, ..margay::device_options(Some(2)) })?;
    let context = device.context();
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let kernel = context.load(&[SourceText { name: "kernel", text: &kernel(body) }], &options)?.kernel("k")?;
    let memory = context.buffer(4 * WORDS)?;
    memory.write(0, &vec![0; 4 * WORDS as usize])?;
    let mut arguments = kernel.arguments();
    arguments.push_address(memory.address()).expect("an address fits");
    arguments.push(&n.to_le_bytes()).expect("a word fits");
    kernel.launch(&LaunchConfig::new([grid, 1, 1], block), &arguments.finish().expect("all arguments are there"))?;
    let compiled = kernel.tiers().iter().any(|t| t.tier != Tier::Reference);
    Ok((memory.to_vec()?, compiled))
}

fn agrees(body: &str, grid: u32, block: [u32; 3], n: u32) {
    if margay::taking_over().is_none() {
        return;
    }
    let (want, _) = run("reference", body, grid, block, n).expect("the reference engine runs it");
    let (got, moved) = run("taking-over", body, grid, block, n).expect("both engines run it");
    let word = |v: &[u8], i: usize| u32::from_le_bytes([v[4 * i], v[4 * i + 1], v[4 * i + 2], v[4 * i + 3]]);
    for i in 0..WORDS as usize {
        assert_eq!(word(&want, i), word(&got, i), "word {i}, {body}");
    }
    assert!(moved, "nothing was taken over: {body}");
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
    agrees(body, 1, [64, 1, 1], 5000);
    agrees(body, 3, [16, 8, 1], 3000);
    agrees(body, 2, [33, 1, 1], 3000);
    agrees(body, 1, [1, 1, 1], 20000);
    agrees(body, 1, [7, 3, 5], 3000);
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
    agrees(body, 1, [96, 1, 1], 3000);
    agrees(body, 2, [50, 1, 1], 3000);
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
    agrees(body, 1, [128, 1, 1], 1500);
    agrees(body, 2, [16, 10, 1], 1000);
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
    agrees(body, 1, [40, 1, 1], 400);
    agrees(body, 1, [8, 8, 1], 400);
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
    let [a, b] = ["reference", "taking-over"].map(|engine| match run(engine, body, 1, [32, 1, 1], 5000) {
        Err(Error::Stopped(report)) => match report.stop {
            Stop::Fault(fault) => fault,
            other => panic!("{engine}: {other:?}"),
        },
        other => panic!("{engine}: no fault, {:?}", other.map(|_| ())),
    });
    assert_eq!((&a.kind, a.thread, a.cta, a.at), (&b.kind, b.thread, b.cta, b.at));
    assert_eq!(a.thread, [9, 0, 0]);
}
