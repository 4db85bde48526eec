//! The process as a whole: its account, its logs, and its end.

pub mod account;
pub mod interrupted;
pub mod logs;
pub mod reports;
pub mod threads;
