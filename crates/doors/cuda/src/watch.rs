//! Launches that a checker watches: `MARGAY_CHECK` says for what.

use crate::api;
use margay_checker::{Checker, What};
use margay_runtime::Kernel;
use std::sync::OnceLock;

/// What is looked for, if anything: the words of `MARGAY_CHECK` but `bounds`, which is about allocations.
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

/// Tells of what a launch did wrong.
pub fn tell(kernel: &Kernel, checker: &Checker) {
    let mut files = margay::render::Files::default();
    for finding in checker.findings() {
        api::tell_as("finding", margay::render::finding(kernel.image(), &finding, &mut files).trim_end());
    }
}
