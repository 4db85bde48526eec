//! `%globaltimer` counts nanoseconds (manual, section 10.28), on GPUs since 1970; clocks on compiled code and where it may follow are the host's.

use margay::{LaunchConfig, LoadOptions, SourceText};
use margay_runtime::{Device, DeviceOptions};
use std::time::{SystemTime, UNIX_EPOCH};

/// Reads the timer, and again when two milliseconds have passed.
const TEXT: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry wait(.param .u64 to)
{
    .reg .pred %p;
    .reg .b32 %low, %high;
    .reg .b64 %to, %first, %now, %passed;
    ld.param.u64 %to, [to];
    mov.u32 %low, %globaltimer_lo;
    mov.u64 %first, %globaltimer;
again:
    mov.u64 %now, %globaltimer;
    sub.u64 %passed, %now, %first;
    setp.lt.u64 %p, %passed, 2000000;
    @%p bra again;
    mov.u32 %high, %globaltimer_hi;
    st.global.u64 [%to], %first;
    st.global.u64 [%to+8], %now;
    st.global.v2.u32 [%to+16], {%low, %high};
    ret;
}";

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// What a launch leaves, with the host's time before and after it.
fn run(engine: &str, seed: u64) -> ([u64; 3], [u64; 2]) {
    let engines = margay::engines().into_iter().collect();
    let device = Device::with(DeviceOptions { engines, ..margay::device_options(Some(1)) }).unwrap();
    let context = device.context();
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let kernel = context.load(&[SourceText { name: "clocks", text: TEXT }], &options).unwrap().kernel("wait").unwrap();
    let memory = context.buffer(24).unwrap();
    let mut arguments = kernel.arguments();
    arguments.push_address(memory.address()).unwrap();
    let arguments = arguments.finish().unwrap();
    let before = now();
    kernel.launch(&LaunchConfig { seed, ..LaunchConfig::new([1; 3], [1; 3]) }, &arguments).unwrap();
    let after = now();
    let mut bytes = [0; 24];
    memory.read(0, &mut bytes).unwrap();
    let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap());
    ([word(0), word(1), word(2)], [before, after])
}

#[test]
fn the_global_timer_is_the_hosts_clock_in_nanoseconds() {
    for engine in margay::engines().iter().map(|e| e.name()).filter(|name| *name != "reference") {
        let ([first, last, halves], [before, after]) = run(engine, 0);
        assert!(before <= first && last <= after, "{engine}: {before} {first} {last} {after}");
        assert!(last - first >= 2_000_000, "{engine}: {first} {last}");
        assert_eq!(halves >> 32, last >> 32, "{engine}");
    }
}

#[test]
fn clocks_are_reproducible_with_a_seed_and_on_the_reference_engine() {
    let (first, _) = run("reference", 0);
    assert_eq!(run("reference", 0).0, first);
    let (seeded, _) = run(margay::engines()[0].name(), 7);
    assert_eq!(run(margay::engines()[0].name(), 7).0, seeded);
}
