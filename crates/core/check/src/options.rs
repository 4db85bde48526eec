//! What to check against.

use margay_isa::{Target, Version};

/// Whose verdict decides, where ptxas and the manual's text differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Verdict {
    /// Errors exactly where ptxas has errors; what only the text forbids is a warning.
    #[default]
    Ptxas,
    /// Errors where either refuses.
    Strict,
    /// The text alone decides; where it is silent, ptxas does.
    Text,
}

/// Options of a check.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whose verdict.
    pub verdict: Verdict,
    /// Relocatable compilation (`-c`): undefined externals are fine, every function is kept.
    pub relocatable: bool,
    /// The architecture that the module is meant for; an error if its `.target` cannot run there.
    pub arch: Option<Target>,
    /// Check as if `.target` said this.
    pub target: Option<Target>,
    /// Check as if `.version` said this.
    pub version: Option<Version>,
    /// Size in bits of the addresses of a module that does not say it. The manual has 32 (section 11.1.3); a driver takes the size of the
    /// process's, as for modules older than `.address_size`.
    pub address_size: Option<u32>,
}
