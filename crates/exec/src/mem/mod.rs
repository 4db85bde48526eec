//! Device memory: allocations whose addresses are host addresses.

mod raw;

/// The device's memory: what is allocated, and checked access to it. Shared between threads.
#[derive(Debug, Default)]
pub struct Memory {
    _private: (),
}
