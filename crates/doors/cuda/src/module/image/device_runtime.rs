//! Our replacement of the CUDA device runtime (`libcudadevrt.a`), whose functions call into a GPU's driver.

use std::{fmt::Write, sync::OnceLock};

const BASE: &str = include_str!("devrt.ptx");
const ATTRIBUTES: &str = include_str!("devrt_attributes.ptx");
const NODES: &str = include_str!("devrt_nodes.ptx");
const ROWS: &str = include_str!("devrt_rows.ptx");
const LAUNCH: &str = include_str!("devrt_launch.ptx");
/// A function that only the device runtime defines.
const DEFINITION: &str = ".func (.param .b64 func_retval0) cudaCGGetIntrinsicHandle(";
/// Beginnings of the names of the device runtime's functions; NVIDIA's assembler knows `cudaGraphSetConditional` without it.
const CALLS: [&str; 6] = [
    "cudaGraphSetConditional",
    "cudaGraphKernelNode",
    "cudaGraphLaunch",
    "cudaCG",
    "__cudaCDP2",
    "cudaGetParameterBuffer",
];
/// `margay_errors`: the errors that our device runtime knows (CUDA Runtime API, `cudaError_t`).
const ERRORS: [(u32, &str, &str); 10] = [
    (0, "cudaSuccess", "no error"),
    (1, "cudaErrorInvalidValue", "invalid argument"),
    (2, "cudaErrorMemoryAllocation", "out of memory"),
    (9, "cudaErrorInvalidConfiguration", "invalid configuration argument"),
    (12, "cudaErrorInvalidPitchValue", "invalid pitch value"),
    (98, "cudaErrorInvalidDeviceFunction", "invalid device function"),
    (101, "cudaErrorInvalidDevice", "invalid device ordinal"),
    (215, "cudaErrorUnsupportedLimit", "limit is not supported on this architecture"),
    (801, "cudaErrorNotSupported", "operation not supported"),
    (999, "cudaErrorUnknown", "unknown error"),
];

/// The module, with its table of errors.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = BASE.to_owned();
        let mut bytes = Vec::new();
        for (code, name, words) in ERRORS {
            let mut record = [0; 112];
            record[..4].copy_from_slice(&code.to_le_bytes());
            record[4..4 + name.len()].copy_from_slice(name.as_bytes());
            record[48..48 + words.len()].copy_from_slice(words.as_bytes());
            bytes.extend(record.map(|b: u8| b.to_string()));
        }
        text += ".global .u64 margay_streams;\n";
        let _ = writeln!(text, ".global .align 4 .b8 margay_errors[{}] = {{{}}};\n", bytes.len(), bytes.join(", "));
        text + ATTRIBUTES + NODES + ROWS + LAUNCH + &LAUNCH.replace(") cuda", ") __cudaCDP2")
    })
}

/// Replaces NVIDIA's device runtime by ours.
pub fn with_own_runtime(module: String) -> String {
    if module.contains(DEFINITION) { text().into() } else { module }
}

/// The device runtime, for modules that call it without being linked with it.
pub fn own_runtime(texts: &[String]) -> Option<&'static str> {
    let is_there = texts.iter().any(|module| module == text());
    (!is_there && texts.iter().any(|module| calls(module))).then(text)
}

/// Whether a module declares a function of the device runtime.
fn calls(module: &str) -> bool {
    let declared = |at: usize| {
        let before = &module[..at];
        let start = before.rfind([';', '}']).map_or(0, |i| i + 1);
        before[start..].contains(".extern") && before[start..].contains(".func")
    };
    CALLS.iter().any(|name| module.match_indices(name).take(8).any(|(at, _)| declared(at)))
}
