//! The serial number of the signed zone (RFC 1982).

use super::{SerialPolicy, SignOptions, SignWarning};
use nonesuch_proto::serial::is_before;

/// Number of serials for one day in the form `YYYYMMDDnn`.
const SERIALS_PER_DAY: u32 = 100;

/// The serial of the signed zone, and a warning if it is not the serial according to the policy.
/// `unsigned` is the serial of the unsigned zone.
pub(super) fn choose_serial(options: &SignOptions<'_>, unsigned: u32) -> (u32, Option<SignWarning>) {
    let previous = options.previous.and_then(|previous| previous.contents.soa());
    match previous {
        Some(previous) => serial_after(options.serial, unsigned, previous.serial, options.now),
        None => next_serial(options.serial, unsigned, options.now),
    }
}

/// The serial according to `policy`, after the serial `previous` of the previous signed zone. It
/// must follow that serial, because secondaries have it and ignore serials that do not follow.
fn serial_after(policy: SerialPolicy, unsigned: u32, previous: u32, now: u32) -> (u32, Option<SignWarning>) {
    let is_later = is_before(previous, unsigned);
    if policy != SerialPolicy::Keep {
        return next_serial(policy, if is_later { unsigned } else { previous }, now);
    }
    if is_later {
        return (unsigned, None);
    }
    let used = increment(previous);
    (used, Some(SignWarning::SerialNotIncreased { policy, old: previous, wanted: unsigned, used }))
}

/// The serial after `old` according to `policy` at `now`, and a warning if the policy gives a
/// serial that does not follow `old`.
fn next_serial(policy: SerialPolicy, old: u32, now: u32) -> (u32, Option<SignWarning>) {
    let wanted = match policy {
        SerialPolicy::Keep => return (old, None),
        SerialPolicy::Increment => return (increment(old), None),
        SerialPolicy::Unixtime => now,
        SerialPolicy::Date => date(now),
    };
    if is_before(old, wanted) {
        return (wanted, None);
    }
    let used = increment(old);
    // The last two digits are for several versions on the same day, so no warning is due.
    let same_day = policy == SerialPolicy::Date && used.wrapping_sub(wanted) < SERIALS_PER_DAY;
    let warning = SignWarning::SerialNotIncreased { policy, old, wanted, used };
    (used, (!same_day).then_some(warning))
}

/// The next serial. It is never 0, because some old secondaries treat a serial of 0 as missing.
const fn increment(old: u32) -> u32 {
    match old.wrapping_add(1) {
        0 => 1,
        next => next,
    }
}

/// The serial `YYYYMMDD00` of the date at `now`.
fn date(now: u32) -> u32 {
    let mut text = Vec::with_capacity(14);
    nonesuch_proto::timestamp::push(now, &mut text);
    let day = text.iter().take(8).fold(0, |day: u32, digit| day * 10 + u32::from(digit - b'0'));
    day * SERIALS_PER_DAY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2024-02-29 23:59:59.
    const NOW: u32 = 1_709_251_199;

    #[test]
    fn keep_and_increment() {
        assert_eq!(next_serial(SerialPolicy::Keep, 7, NOW), (7, None));
        assert_eq!(next_serial(SerialPolicy::Increment, 7, NOW), (8, None));
        assert_eq!(next_serial(SerialPolicy::Increment, u32::MAX, NOW), (1, None));
    }

    #[test]
    fn unixtime_increases_or_warns() {
        assert_eq!(next_serial(SerialPolicy::Unixtime, 7, NOW), (NOW, None));
        let (used, warning) = next_serial(SerialPolicy::Unixtime, 2_017_082_100, NOW);
        assert_eq!(used, 2_017_082_101);
        let policy = SerialPolicy::Unixtime;
        let expected = SignWarning::SerialNotIncreased { policy, old: 2_017_082_100, wanted: NOW, used };
        assert_eq!(warning, Some(expected));
        // An equal serial does not follow either.
        assert_eq!(next_serial(SerialPolicy::Unixtime, NOW, NOW).0, NOW + 1);
    }

    #[test]
    fn date_counts_within_a_day_and_warns_beyond_it() {
        assert_eq!(next_serial(SerialPolicy::Date, 2_024_022_803, NOW), (2_024_022_900, None));
        assert_eq!(next_serial(SerialPolicy::Date, 2_024_022_900, NOW), (2_024_022_901, None));
        assert_eq!(next_serial(SerialPolicy::Date, 2_024_022_998, NOW), (2_024_022_999, None));
        let (used, warning) = next_serial(SerialPolicy::Date, 2_024_022_999, NOW);
        assert_eq!(used, 2_024_023_000);
        assert!(warning.is_some());
        assert!(next_serial(SerialPolicy::Date, 2_024_030_100, NOW).1.is_some());
    }

    #[test]
    fn the_serial_always_follows_that_of_a_previous_zone() {
        let with_keep = |unsigned, previous| serial_after(SerialPolicy::Keep, unsigned, previous, NOW);
        assert_eq!(with_keep(8, 7), (8, None));
        for unsigned in [7, 6] {
            let (used, warning) = with_keep(unsigned, 7);
            assert_eq!(used, 8);
            let policy = SerialPolicy::Keep;
            assert_eq!(
                warning,
                Some(SignWarning::SerialNotIncreased { policy, old: 7, wanted: unsigned, used })
            );
        }
        assert_eq!(with_keep(5, u32::MAX).0, 5);
        assert_eq!(with_keep(u32::MAX, u32::MAX).0, 1);
        // Counts from the later of the two serials.
        assert_eq!(serial_after(SerialPolicy::Increment, 3, 7, NOW), (8, None));
        assert_eq!(serial_after(SerialPolicy::Increment, 9, 7, NOW), (10, None));
        assert_eq!(serial_after(SerialPolicy::Unixtime, 3, NOW, NOW).0, NOW + 1);
        assert_eq!(serial_after(SerialPolicy::Date, 3, 2_024_022_900, NOW), (2_024_022_901, None));
    }

    #[test]
    fn serials_are_compared_in_serial_number_arithmetic() {
        // 4_000_000_000 is more than 2^31 ahead of the time, so the time follows it.
        assert_eq!(next_serial(SerialPolicy::Unixtime, 4_000_000_000, NOW), (NOW, None));
    }
}
