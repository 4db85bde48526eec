//! The one file of this crate that may use `unsafe`: reads, writes and atomics on host addresses inside known allocations.
