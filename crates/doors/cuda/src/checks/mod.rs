//! Checks of programs (`MARGAY_CHECK`) beyond those of engines in one launch: [`watch`] selects launches and collects findings,
//! [`order`] compares work in different streams, and the other files give it what it needs to know.

pub mod faults;
pub mod order;
pub mod stacks;
pub mod usage;
pub mod watch;
