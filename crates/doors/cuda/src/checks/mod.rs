//! Checks of programs (`MARGAY_CHECK`) beyond those of engines in one launch: [`watch`] selects launches and collects findings,
//! [`order`] compares work in different streams, and the other files collect the information for it.

pub mod faults;
pub mod order;
pub mod stacks;
pub mod usage;
pub mod watch;
