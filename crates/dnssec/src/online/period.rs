//! When signatures made online are valid, and when they are made anew.

/// Signatures made within the same hour are alike.
const HOUR: u32 = 3600;

/// Default validity: 7 days.
pub const DEFAULT_VALIDITY: u32 = 7 * 86_400;
/// Least validity: shorter ones would be made anew all the time.
pub const MIN_VALIDITY: u32 = 2 * HOUR;

/// Greatest validity: a year. Whoever gets hold of a signature can show it for as long.
pub const MAX_VALIDITY: u32 = 366 * 86_400;

/// The validity of one signature, in seconds since 1970 modulo 2^32 (RFC 4034 §3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignaturePeriod {
    /// First second.
    pub inception: u32,
    /// Last second.
    pub expiration: u32,
    /// From here on it is to be made anew: less than a quarter of the validity is left, or less than the TTL.
    pub stale_from: u32,
}

impl SignaturePeriod {
    /// The period of a signature made at `now` over an RRset of `ttl`, in seconds, that is to be valid for `validity`.
    ///
    /// It begins an hour or two before, for validators whose clocks are late. It outlives the TTL of every answer that it
    /// is put into: with a TTL of more than half of `validity` it lasts twice as long as that TTL, but no longer
    /// than two years.
    #[must_use]
    pub fn at(now: u32, ttl: u32, validity: u32) -> Self {
        let validity = validity.max(MIN_VALIDITY).max(ttl.saturating_mul(2)).min(2 * MAX_VALIDITY);
        let inception = (now - now % HOUR).wrapping_sub(HOUR);
        let expiration = inception.wrapping_add(HOUR).wrapping_add(validity);
        let reserve = (validity / 4).max(ttl.min(validity / 2));
        Self { inception, expiration, stale_from: expiration.wrapping_sub(reserve) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::serial::is_before;

    #[test]
    fn signatures_of_one_hour_are_alike_and_outlive_every_answer() {
        for ttl in [0, 60, 3600, 86_400, 604_800, 31_536_000] {
            let first = SignaturePeriod::at(1_800_000_000, ttl, DEFAULT_VALIDITY);
            assert_eq!(first, SignaturePeriod::at(1_800_003_599, ttl, DEFAULT_VALIDITY));
            assert!(is_before(first.inception, 1_800_000_000 - 3599));
            assert!(is_before(1_800_000_000, first.stale_from));
            assert!(first.expiration - first.stale_from >= ttl);
            assert!(first.expiration - first.stale_from >= (first.expiration - first.inception - 3600) / 4);
        }
    }

    #[test]
    fn any_time_and_ttl_make_a_period() {
        for now in [0, 1, 3599, 1 << 31, u32::MAX] {
            for ttl in [0, i32::MAX as u32, u32::MAX] {
                let period = SignaturePeriod::at(now, ttl, u32::MAX);
                assert!(is_before(period.inception, period.expiration), "{now} {ttl}");
                assert!(is_before(now, period.stale_from), "{now} {ttl}");
            }
        }
    }
}
