//! Options of the cache.

use std::ops::RangeInclusive;

/// Range of the first duration of a failure, in seconds (RFC 9520 §3.2).
pub const FAILURE_TTL_RANGE: RangeInclusive<u32> = 1..=300;

/// Options of a [`Cache`](super::Cache).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheOptions {
    /// Maximum octets of memory, without the claims. Values below 512 KiB count as 512 KiB.
    pub octets: usize,
    /// Number of shards, each with its own lock. A shard has at least 512 KiB, so a small cache has
    /// fewer.
    pub shards: usize,
    /// Secret random octets: the key of the hash of names.
    pub seed: [u8; 16],
    /// Minimum TTL in seconds. Data with a lower TTL are cached for this time. 0: as published; data
    /// with a TTL of 0 are not cached (RFC 1035 §3.2.1).
    pub ttl_min: u32,
    /// Maximum TTL in seconds (RFC 8767 §4). At most 604,800 is recommended.
    pub ttl_max: u32,
    /// Maximum TTL in seconds of negative answers (RFC 2308 §5). At most 10,800 is recommended.
    pub negative_ttl_max: u32,
    /// Seconds for which the first of consecutive failures is cached. Each further failure doubles
    /// the time, up to 300 seconds. Values outside of [`FAILURE_TTL_RANGE`] count as its nearer end.
    pub failure_ttl_first: u32,
    /// Whether the answer that a name does not exist also answers queries for all names below it
    /// (RFC 8020).
    pub uses_nxdomain_cut: bool,
    /// Whether the resolver validates. Then data that were not validated answer only questions with
    /// the CD bit.
    pub validates: bool,
    /// Maximum number of questions that are claimed at the same time. A claim takes at most about
    /// 500 octets, and 8 for each worker that waits.
    pub claims_max: usize,
}

impl CacheOptions {
    /// Returns the default options of a cache with at most `octets` of memory. `seed`: secret random
    /// octets.
    #[must_use]
    pub const fn new(octets: usize, seed: [u8; 16]) -> Self {
        Self {
            octets,
            shards: 64,
            seed,
            ttl_min: 0,
            ttl_max: 86_400,
            negative_ttl_max: 3600,
            failure_ttl_first: 5,
            uses_nxdomain_cut: true,
            validates: false,
            claims_max: 16_384,
        }
    }

    /// Returns the seconds for which to cache an RRset. TTLs from 2^31 on are high values (RFC 8767
    /// §4).
    pub(super) const fn bound_ttl(&self, ttl: u32) -> u32 {
        bound(ttl, self.ttl_min, self.ttl_max)
    }

    /// Returns the seconds for which to cache a negative answer.
    pub(super) const fn bound_negative_ttl(&self, ttl: u32) -> u32 {
        bound(ttl, self.ttl_min, self.negative_ttl_max)
    }

    /// Returns the seconds for which to cache a failure that is the last of `failures` consecutive
    /// ones.
    pub(super) fn failure_ttl(&self, failures: u8) -> u32 {
        let first = self.failure_ttl_first.clamp(*FAILURE_TTL_RANGE.start(), *FAILURE_TTL_RANGE.end());
        let doublings = u32::from(failures.saturating_sub(1)).min(16);
        (first << doublings).min(*FAILURE_TTL_RANGE.end())
    }
}

/// Raises `ttl` to `min`, then lowers it to `max`, which prevails.
const fn bound(ttl: u32, min: u32, max: u32) -> u32 {
    let ttl = if ttl < min { min } else { ttl };
    if ttl > max { max } else { ttl }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttls_stay_within_bounds_and_the_maximum_prevails() {
        let mut options = CacheOptions::new(0, [0; 16]);
        assert_eq!([0, 60, 1 << 31].map(|ttl| options.bound_ttl(ttl)), [0, 60, 86_400]);
        options.ttl_min = 7200;
        assert_eq!([0, 60, 8000].map(|ttl| options.bound_ttl(ttl)), [7200, 7200, 8000]);
        assert_eq!([0, 8000].map(|ttl| options.bound_negative_ttl(ttl)), [3600, 3600]);
    }

    #[test]
    fn the_time_of_failures_doubles_up_to_five_minutes() {
        let mut options = CacheOptions::new(0, [0; 16]);
        let ttls = [1, 2, 3, 6, 7, 8, 255].map(|failures| options.failure_ttl(failures));
        assert_eq!(ttls, [5, 10, 20, 160, 300, 300, 300]);
        options.failure_ttl_first = 0;
        assert_eq!(options.failure_ttl(1), 1);
        options.failure_ttl_first = u32::MAX;
        assert_eq!(options.failure_ttl(200), 300);
    }
}
