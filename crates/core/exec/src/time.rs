//! The host's clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// `%globaltimer`: nanoseconds since 1970, as on GPUs, where `cuda::std::chrono::system_clock` reads it (manual, section 10, "Special
/// Registers: %globaltimer").
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
