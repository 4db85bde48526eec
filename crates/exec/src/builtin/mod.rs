//! Functions of the device library that engines provide: what does not depend on how an engine runs.

mod printf;

pub use printf::format;
