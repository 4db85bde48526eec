//! Sets of architecture- and family-specific targets that more than one section uses.
//!
//! A family covers its architecture-specific members too (`sm_100f` and `sm_103a` have what the family of `sm_100` has);
//! `sm_101` is the old name of `sm_110`.

use crate::Target;

/// The families of `sm_100` and `sm_110`.
pub static F100: &[Target] = &[Target::family(100), Target::family(110)];
/// The families of `sm_100`, `sm_110` and `sm_120`.
pub static F100_F120: &[Target] = &[Target::family(100), Target::family(110), Target::family(120)];
/// The family of `sm_120`.
pub static F120: &[Target] = &[Target::family(120)];
/// `sm_90a`
pub static A90: &[Target] = &[Target::arch(90)];
/// The family of `sm_107`.
pub static F107: &[Target] = &[Target::family(107)];
