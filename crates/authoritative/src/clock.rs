//! The one place where the time of day is read in seconds. What is pure is given it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970; 0 before. Signatures of such a clock are taken by nobody.
#[must_use]
pub fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}
