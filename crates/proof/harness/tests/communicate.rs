//! Random kernels whose CTAs communicate compute the correct result on every engine, on several host threads.
//!
//! `MARGAY_COMMUNICATE=1000` runs more kernels, starting at seed `MARGAY_COMMUNICATE_FROM`.

use margay::{Error, LaunchConfig, LoadOptions, SourceText};
use margay_harness::{
    communicate::{Module, REGION},
    number,
};
use margay_runtime::{Context, Device, DeviceOptions};
use std::sync::Arc;

/// Launches per kernel: later ones run code compiled with more effort, with other timing.
const LAUNCHES: usize = 3;

/// The failure on an engine, if any.
fn wrong(context: &Arc<Context>, m: &Module, engine: &str) -> Option<String> {
    let text = m.text();
    let options = LoadOptions { engine: Some(engine.into()), ..LoadOptions::default() };
    let run = || -> Result<Option<String>, Error> {
        let kernel = context.load(&[SourceText { name: "kernel", text: &text }], &options)?.kernel("k")?;
        let size = m.phases.len() * REGION * 4;
        let memory = context.buffer(size as u64)?;
        for n in 0..LAUNCHES {
            memory.write(0, &vec![0; size])?;
            let mut block = kernel.arguments();
            block.push_address(memory.address()).expect("an address fits");
            let block = block.finish().expect("all arguments are there");
            kernel.launch(&LaunchConfig::new([m.ctas, 1, 1], [m.threads, 1, 1]), &block)?;
            let bytes = memory.to_vec()?;
            let words: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            if let Some(why) = m.wrong(&words) {
                return Ok(Some(format!("launch {n}: {why}")));
            }
        }
        Ok(None)
    };
    run().unwrap_or_else(|e| Some(e.to_string()))
}

#[test]
fn random_kernels_communicate() {
    let from = number("MARGAY_COMMUNICATE_FROM").unwrap_or(0);
    let engines = margay::engines().into_iter().chain(margay::alternating()).collect();
    let device = Device::with(DeviceOptions { engines, ..margay::device_options(Some(3)) }).expect("a device");
    let context = device.context();
    for seed in from..from + number("MARGAY_COMMUNICATE").unwrap_or(16) {
        let m = Module::new(seed);
        for engine in device.engine_names() {
            let Some(mut why) = wrong(&context, &m, engine) else { continue };
            let mut m = m.clone();
            while let Some((w, s)) = m.smaller().into_iter().find_map(|s| Some((wrong(&context, &s, engine)?, s))) {
                (why, m) = (w, s);
            }
            panic!("seed {seed}, engine {engine}, {} CTAs of {} threads: {why}\n{}", m.ctas, m.threads, m.text());
        }
    }
}
