//! Determines when the signatures of a zone expire and when to warn. A zone with expired signatures
//! is bogus, so the operator must be warned early enough to sign it again.

use nonesuch_proto::serial;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_zone::image::ValidityPeriod;
use std::fmt;

const DAY: u32 = 86_400;
/// Maximum time in seconds from the first warning to the expiration. Three days span a weekend: a
/// warning is due on Friday if the signatures expire on Monday.
const MAX_WARNING_TIME: u32 = 3 * DAY;
/// The first warning is due when at most a quarter of the validity period remains, and at most
/// [`MAX_WARNING_TIME`].
const WARNING_DIVISOR: u32 = 4;

/// The time until the signatures of a zone expire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// No signature expires soon.
    Far {
        /// Seconds until a warning is due.
        seconds: u32,
    },
    /// Signatures expire soon: at most three days and at most a quarter of the validity period are
    /// left.
    Near {
        /// The earliest expiration, in seconds since 1970 modulo 2^32.
        expiration: u32,
        /// Seconds until the earliest expiration.
        seconds: u32,
    },
    /// At least one signature has expired.
    Expired {
        /// The earliest expiration, in seconds since 1970 modulo 2^32.
        expiration: u32,
        /// Seconds since the earliest expiration.
        seconds: u32,
    },
}

impl Expiry {
    /// The state of the signatures at `now`. `period` is the time during which all signatures of
    /// the zone are valid ([`Image::period`](nonesuch_zone::Image::period)). Times are in seconds
    /// since 1970 modulo 2^32.
    #[must_use]
    pub const fn of(period: ValidityPeriod, now: u32) -> Self {
        let ValidityPeriod { inception, expiration } = period;
        if serial::is_before(expiration, now) {
            return Self::Expired { expiration, seconds: now.wrapping_sub(expiration) };
        }
        let remaining = expiration.wrapping_sub(now);
        // The period is empty if the first signature expires before the inception of the last one.
        // The warning then begins three days before the expiration.
        let validity = if serial::is_before(inception, expiration) {
            expiration.wrapping_sub(inception)
        } else {
            u32::MAX
        };
        let quarter = validity / WARNING_DIVISOR;
        let warning_time = if quarter < MAX_WARNING_TIME { quarter } else { MAX_WARNING_TIME };
        if remaining > warning_time {
            Self::Far { seconds: remaining - warning_time }
        } else {
            Self::Near { expiration, seconds: remaining }
        }
    }

    /// Whether no warning is due.
    #[must_use]
    pub const fn is_far(self) -> bool {
        matches!(self, Self::Far { .. })
    }

    /// Seconds after which the caller must compute the state again: until the state changes, but at
    /// most one day, because warnings are repeated each day. At least 1.
    #[must_use]
    pub fn seconds_to_next_check(self) -> u32 {
        match self {
            Self::Far { seconds } => seconds.clamp(1, DAY),
            Self::Near { seconds, .. } => seconds.saturating_add(1).min(DAY),
            Self::Expired { .. } => DAY,
        }
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Far { .. } => f.write_str("no signature expires soon"),
            Self::Near { expiration, seconds } => write!(
                f,
                "signatures expire at {}, in {}; sign the zone again",
                Rfc3339(expiration.into()),
                Span(seconds)
            ),
            Self::Expired { expiration, seconds } => write!(
                f,
                "signatures have expired at {}, {} ago: the zone is bogus for validators; sign the zone again",
                Rfc3339(expiration.into()),
                Span(seconds)
            ),
        }
    }
}

/// A time span in seconds, formatted in the largest unit (s, min, h, days) of which it has at least
/// two, and rounded down.
struct Span(u32);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            seconds if seconds < 120 => write!(f, "{seconds} s"),
            seconds if seconds < 7200 => write!(f, "{} min", seconds / 60),
            seconds if seconds < 2 * DAY => write!(f, "{} h", seconds / 3600),
            seconds => write!(f, "{} days", seconds / DAY),
        }
    }
}

/// Decides when a warning about one zone is due: when its signatures expire soon, when they have
/// expired, and again each day.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExpiryWatch {
    /// The last warning, and the time at which it was returned.
    last_warning: Option<(Expiry, u32)>,
}

impl ExpiryWatch {
    /// The warning that is due at `now`, in seconds since 1970 modulo 2^32; `None` if no warning is
    /// due. The watch treats the returned warning as logged, so the caller must log it.
    pub fn due_warning(&mut self, period: ValidityPeriod, now: u32) -> Option<Expiry> {
        let expiry = Expiry::of(period, now);
        if expiry.is_far() {
            self.last_warning = None;
            return None;
        }
        let is_same_state = |last: Expiry| std::mem::discriminant(&last) == std::mem::discriminant(&expiry);
        if self.last_warning.is_some_and(|(last, at)| is_same_state(last) && now.wrapping_sub(at) < DAY) {
            return None;
        }
        self.last_warning = Some((expiry, now));
        Some(expiry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u32 = 1_750_000_000;

    fn period(days: u32) -> ValidityPeriod {
        ValidityPeriod { inception: NOON, expiration: NOON.wrapping_add(days * DAY) }
    }

    #[test]
    fn the_end_is_near_in_the_last_quarter_and_the_last_three_days() {
        for (days, near) in [(1, DAY / 4), (8, 2 * DAY), (12, 3 * DAY), (14, 3 * DAY), (365, 3 * DAY)] {
            let (period, end) = (period(days), NOON + days * DAY);
            assert_eq!(Expiry::of(period, end - near - 1), Expiry::Far { seconds: 1 }, "{days}");
            let expected = Expiry::Near { expiration: end, seconds: near };
            assert_eq!(Expiry::of(period, end - near), expected, "{days}");
            assert_eq!(Expiry::of(period, end), Expiry::Near { expiration: end, seconds: 0 });
            assert_eq!(Expiry::of(period, end + 1), Expiry::Expired { expiration: end, seconds: 1 });
        }
        // Times wrap around. If the signatures have no common time, the warning begins three days
        // before the expiration.
        let wrapped = ValidityPeriod { inception: u32::MAX - DAY, expiration: 13 * DAY };
        assert_eq!(Expiry::of(wrapped, u32::MAX), Expiry::Far { seconds: 10 * DAY + 1 });
        let apart = ValidityPeriod { inception: NOON, expiration: NOON - 1 };
        assert_eq!(Expiry::of(apart, NOON - 3 * DAY - 2), Expiry::Far { seconds: 1 });
        assert!(!Expiry::of(apart, NOON - 3 * DAY - 1).is_far());
    }

    #[test]
    fn a_warning_is_repeated_each_day() {
        let (mut watch, period) = (ExpiryWatch::default(), period(14));
        let end = NOON + 14 * DAY;
        let mut warnings = Vec::new();
        let mut now = NOON;
        while now < end + 2 * DAY {
            let expiry = Expiry::of(period, now);
            warnings.extend(watch.due_warning(period, now).map(|expiry| (now, expiry.to_string())));
            assert!(watch.due_warning(period, now).is_none());
            now += expiry.seconds_to_next_check();
        }
        let (times, texts): (Vec<u32>, Vec<String>) = warnings.into_iter().unzip();
        let day = |days: u32| end - 3 * DAY + days * DAY;
        assert_eq!(times, [day(0), day(1), day(2), end, end + 1, end + 1 + DAY]);
        assert_eq!(texts[0], "signatures expire at 2025-06-29T15:06:40Z, in 3 days; sign the zone again");
        assert_eq!(texts[2], "signatures expire at 2025-06-29T15:06:40Z, in 24 h; sign the zone again");
        let expired = "signatures have expired at 2025-06-29T15:06:40Z, 1 s ago: the zone is bogus for validators; sign the zone again";
        assert_eq!(texts[4], expired);
    }

    #[test]
    fn after_a_zone_was_signed_again_its_next_warning_is_due_at_once() {
        let mut watch = ExpiryWatch::default();
        assert!(watch.due_warning(period(14), NOON + 12 * DAY).is_some());
        assert!(watch.due_warning(period(30), NOON + 12 * DAY).is_none());
        assert!(watch.due_warning(period(14), NOON + 12 * DAY).is_some());
    }
}
