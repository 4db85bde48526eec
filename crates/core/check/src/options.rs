//! The options of the check.

use margay_isa::{Target, Version};

/// Which verdict counts if ptxas and the manual differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verdict {
    /// Errors exactly where ptxas has errors; what only the manual forbids is a warning.
    #[default]
    Ptxas,
    /// Errors where either rejects the module.
    Strict,
    /// The manual decides; where it is silent, ptxas does.
    Text,
}

/// Options of a check.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which verdict counts.
    pub verdict: Verdict,
    /// Relocatable compilation (`-c`): undefined externals are allowed, every function is kept.
    pub relocatable: bool,
    /// The intended architecture; an error if the module's `.target` cannot run there.
    pub arch: Option<Target>,
    /// Overrides `.target`.
    pub target: Option<Target>,
    /// Overrides `.version`.
    pub version: Option<Version>,
    /// The address size in bits of a module without `.address_size`. The default of the manual is 32 (section 11.1.3); a driver
    /// uses the size of the process, as for modules older than `.address_size`.
    pub address_size: Option<u32>,
}
