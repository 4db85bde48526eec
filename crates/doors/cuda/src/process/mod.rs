//! What concerns the process as a whole: its account, its logs, and how it ends.

pub mod account;
pub mod interrupted;
pub mod logs;
pub mod reports;
pub mod threads;
