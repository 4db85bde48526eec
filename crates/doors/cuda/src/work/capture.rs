//! Capturing of launches (`MARGAY_CAPTURE`), for `margay replay`.

use crate::{api, context::Context, device, module::function::Function};
use margay::{
    capture::Capture,
    findings::{Settings, launches},
};
use margay_runtime::{Kernel, LaunchConfig};
use parking_lot::Mutex;
use std::{env, path::PathBuf, sync::OnceLock};

/// The selection of launches to capture, and the progress so far.
struct Capturing {
    folder: PathBuf,
    /// Which launches.
    filter: Settings,
    passed: u64,
    /// The number of the next folder.
    number: u32,
    failed: bool,
}

fn capturing() -> Option<&'static Mutex<Capturing>> {
    static CAPTURING: OnceLock<Option<Mutex<Capturing>>> = OnceLock::new();
    let make = || {
        let folder = env::var_os("MARGAY_CAPTURE").filter(|f| !f.is_empty())?;
        let mut filter = Settings::default();
        let kernels = env::var("MARGAY_CAPTURE_KERNELS").unwrap_or_default();
        filter.kernels = kernels.split(',').map(|k| k.trim().to_owned()).filter(|k| !k.is_empty()).collect();
        match launches(&env::var("MARGAY_CAPTURE_LAUNCHES").unwrap_or_default()) {
            Ok((skip, count)) => (filter.skip, filter.count) = (skip, count),
            Err(e) => api::report_error(&format!("margay: MARGAY_CAPTURE_LAUNCHES: {e}")),
        }
        Some(Mutex::new(Capturing { folder: folder.into(), filter, passed: 0, number: 1, failed: false }))
    };
    CAPTURING.get_or_init(make).as_ref()
}

/// Captures a launch that is about to begin, if that was asked for.
pub fn launch(function: &Function, kernel: &Kernel, context: &Context, config: &LaunchConfig<'_>, params: &[u8]) {
    let Some(capturing) = capturing() else { return };
    let mut capturing = capturing.lock();
    if capturing.failed || !capturing.filter.watches(kernel.name()) {
        return;
    }
    let passed = capturing.passed;
    capturing.passed += 1;
    let Settings { skip, count, .. } = capturing.filter;
    if passed < skip || passed - skip >= count {
        return;
    }
    let capture = Capture::new(&function.module.loaded, kernel, &context.runtime, config, params, device::described());
    let (folder, mut number) = (capturing.folder.clone(), capturing.number);
    let written = capture.write(&folder, &mut number);
    capturing.number = number;
    if let Err(e) = written {
        capturing.failed = true;
        api::report_error(&format!("margay: cannot write launches to {}: {e}", folder.display()));
    }
}
