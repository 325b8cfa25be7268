//! Validity periods of signatures generated online, and the time of their replacement.

/// Signatures over the same data within the same hour have the same period.
const HOUR: u32 = 3600;

/// Default validity in seconds: 7 days.
pub const DEFAULT_VALIDITY: u32 = 7 * 86_400;
/// Minimum validity in seconds: 2 hours. Shorter signatures would be replaced constantly.
pub const MIN_VALIDITY: u32 = 2 * HOUR;

/// Maximum validity in seconds: 366 days. An attacker with a copy of a signature can replay it
/// during its validity.
pub const MAX_VALIDITY: u32 = 366 * 86_400;

/// The validity of one signature, in seconds since 1970 modulo 2^32 (RFC 4034 §3.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignaturePeriod {
    /// First second.
    pub inception: u32,
    /// Last second.
    pub expiration: u32,
    /// The signature is replaced from this second on. A quarter of the validity is left, or the TTL
    /// of the RRset if it is longer, but at most half of the validity.
    pub stale_from: u32,
}

impl SignaturePeriod {
    /// The period of a signature generated at `now` for an RRset with the TTL `ttl`, with the
    /// validity `validity`. All are in seconds.
    ///
    /// The period begins one to two hours before `now`, for validators with slow clocks. It ends
    /// `validity` after the last full hour. A `validity` below [`MIN_VALIDITY`] or twice the TTL is
    /// increased to the greater of these, but to at most twice [`MAX_VALIDITY`]. So the signature
    /// remains valid for the TTL of every response that contains it, unless the TTL exceeds
    /// [`MAX_VALIDITY`].
    #[must_use]
    pub fn at(now: u32, ttl: u32, validity: u32) -> Self {
        let validity = validity.max(MIN_VALIDITY).max(ttl.saturating_mul(2)).min(2 * MAX_VALIDITY);
        let inception = (now - now % HOUR).wrapping_sub(HOUR);
        let expiration = inception.wrapping_add(HOUR).wrapping_add(validity);
        let remaining_at_replacement = (validity / 4).max(ttl.min(validity / 2));
        Self { inception, expiration, stale_from: expiration.wrapping_sub(remaining_at_replacement) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::serial::is_before;

    #[test]
    fn signatures_of_one_hour_have_the_same_period_and_outlive_every_response() {
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
    fn every_time_and_ttl_has_a_valid_period() {
        for now in [0, 1, 3599, 1 << 31, u32::MAX] {
            for ttl in [0, i32::MAX as u32, u32::MAX] {
                let period = SignaturePeriod::at(now, ttl, u32::MAX);
                assert!(is_before(period.inception, period.expiration), "{now} {ttl}");
                assert!(is_before(now, period.stale_from), "{now} {ttl}");
            }
        }
    }
}
