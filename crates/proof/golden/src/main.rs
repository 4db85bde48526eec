//! `golden [CASE...]`: runs the cases of `tests/run` (or those with these prefixes) on the first GPU, and records the
//! results in `tests/golden` with device and driver. Cases that need more than kernels and buffers are skipped;
//! expectations that do not hold on the GPU are printed, and make it exit with 1.
//!
//! `MARGAY_LIBCUDA` names another driver library, `MARGAY_GOLDEN` another folder. Without a driver or a GPU, it says so
//! and exits with 2.

mod driver;

use driver::Gpu;
use margay_harness::{
    case::Launch,
    files,
    golden::{Left, Machine, record},
    root,
};
use std::{path::PathBuf, process::ExitCode};

impl Machine for Gpu {
    fn load(&mut self, text: &str) -> Result<(), String> {
        Gpu::load(self, text)
    }
    fn place(&mut self, bytes: &[u8]) -> Result<u64, String> {
        Gpu::place(self, bytes)
    }
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), String> {
        Gpu::read(self, address, bytes)
    }
    fn launch(&mut self, launch: &Launch, arguments: &[Vec<u8>]) -> Result<(), String> {
        let shape = launch.shape;
        Gpu::launch(self, &launch.kernel, (shape.grid, shape.block, shape.shared), arguments)
    }
}

fn main() -> ExitCode {
    let library = std::env::var("MARGAY_LIBCUDA").unwrap_or_else(|_| "libcuda.so.1".into());
    let folder = std::env::var_os("MARGAY_GOLDEN").map_or_else(|| root().join("tests/golden"), PathBuf::from);
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut gpu = match Gpu::open(&library) {
        Ok(gpu) => gpu,
        Err(why) => {
            eprintln!("golden: {why}. Nothing was recorded.");
            return ExitCode::from(2);
        }
    };
    let (major, minor) = gpu.capability;
    let head = format!(
        "# {} (compute capability {major}.{minor}), driver for CUDA {}.{}\n",
        gpu.name,
        gpu.driver / 1000,
        gpu.driver % 1000 / 10
    );
    print!("{head}");
    let (mut recorded, mut left, mut unmet) = (0, 0, 0);
    for (name, path) in files("tests/run") {
        if !wanted.is_empty() && !wanted.iter().any(|w| name.starts_with(w.as_str())) {
            continue;
        }
        let recording = match record(&path, &mut gpu) {
            Ok(recording) => recording,
            Err(Left::Skipped(why) | Left::Failed(why)) => {
                println!("{name}: left out: {}", why.lines().next().unwrap_or_default());
                left += 1;
                continue;
            }
        };
        for what in &recording.unmet {
            println!("{name}: {what}");
        }
        unmet += recording.unmet.len();
        let file = folder.join(format!("{name}.txt"));
        let written = file.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(why) = written.and_then(|()| std::fs::write(&file, format!("{head}{}", recording.text))) {
            eprintln!("golden: {}: {why}", file.display());
            return ExitCode::from(2);
        }
        recorded += 1;
    }
    println!("{recorded} cases recorded, {left} left out, {unmet} expectations do not hold");
    if unmet == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
