//! Launches observed by a checker, as selected by `MARGAY_CHECK`.

use crate::api;
use margay_checker::{Checker, What};
use margay_runtime::Kernel;
use std::sync::OnceLock;

/// The selected checks: the words of `MARGAY_CHECK` except `bounds`, which concerns allocations.
pub fn wanted() -> Option<What> {
    static WANTED: OnceLock<Option<What>> = OnceLock::new();
    *WANTED.get_or_init(|| {
        let words = std::env::var("MARGAY_CHECK").ok()?;
        let words: Vec<&str> = words.split(',').filter(|word| !word.is_empty() && *word != "bounds").collect();
        if words.is_empty() {
            return None;
        }
        match What::parse(&words.join(",")) {
            Ok(what) => Some(what),
            Err(why) => {
                api::tell(&format!("MARGAY_CHECK: {why}"));
                None
            }
        }
    })
}

/// Reports the findings of a launch.
pub fn tell(kernel: &Kernel, checker: &Checker) {
    let mut files = margay::render::Files::default();
    for finding in checker.findings() {
        api::tell_as("finding", margay::render::finding(kernel.image(), &finding, &mut files).trim_end());
    }
}
