//! A panic in a helper ends the launch as a bug of margay, and nothing else.

use crate::SimdEngine;
use margay_exec::{Effort, Reference, Stop};
use margay_runtime::{Device, DeviceOptions, Engine, Error, LaunchConfig, LoadOptions, SourceText};
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

/// Helpers that are called before the one that panics; 0 for none.
static LEFT: AtomicU32 = AtomicU32::new(0);

/// Panics if it is time.
pub fn inject() {
    if LEFT.fetch_update(Relaxed, Relaxed, |n| n.checked_sub(1)) == Ok(1) {
        panic!("as the test wants");
    }
}

const KERNELS: &str = "
.version 7.0
.target sm_70
.address_size 64
.visible .entry plain(.param .u64 d)
{
    .reg .b32 %t; .reg .b64 %d, %o; .reg .f64 %x;
    ld.param.u64 %d, [d];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 8;
    add.u64 %d, %d, %o;
    ld.global.f64 %x, [%d];
    rcp.approx.ftz.f64 %x, %x;
    st.global.f64 [%d], %x;
    ret;
}
.visible .entry waiting(.param .u64 d)
{
    .reg .b32 %t, %x; .reg .b64 %d, %o; .reg .pred %p;
    ld.param.u64 %d, [d];
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 8;
    add.u64 %d, %d, %o;
    setp.lt.u32 %p, %t, 16;
    @%p bra ONE;
    bar.sync 1, 64;
    bra ALL;
ONE:
    bar.sync 1, 64;
ALL:
    ld.global.u32 %x, [%d];
    vote.sync.ballot.b32 %x, %p, 0xffffffff;
    st.global.u32 [%d], %x;
    ret;
}
";

#[test]
fn a_panic_in_a_helper_is_a_stop() {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let engines = vec![Engine::compiled("simd", Arc::new(SimdEngine), Effort::Light, Some(Arc::new(Reference)))];
    let options = DeviceOptions { threads: Some(2), engines, ..DeviceOptions::default() };
    let device = Device::with(options).unwrap();
    let context = device.context();
    let module = context.load(&[SourceText { name: "k", text: KERNELS }], &LoadOptions::default()).unwrap();
    for name in ["plain", "waiting"] {
        let kernel = module.kernel(name).unwrap();
        let mut stopped = 0;
        for helper in 1..30 {
            let buffer = context.buffer(8 * 64).unwrap();
            let params = buffer.address().to_le_bytes();
            LEFT.store(helper, Relaxed);
            let result = kernel.launch(&LaunchConfig::new([2, 1, 1], [64, 1, 1]), &params);
            if LEFT.swap(0, Relaxed) > 0 {
                assert!(result.is_ok(), "{name}: no helper panicked, and {result:?}");
                break;
            }
            stopped += 1;
            match result {
                Err(Error::Stopped(report)) => match &report.stop {
                    Stop::Bug(bug) => assert!(bug.0.contains("as the test wants"), "{}", bug.0),
                    other => panic!("{name}, helper {helper}: {other:?}"),
                },
                other => panic!("{name}, helper {helper}: {other:?}"),
            }
        }
        assert!(stopped > 2, "{name} calls {stopped} helpers");
        assert!(kernel.fallback().is_none());
    }
}
