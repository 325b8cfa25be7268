//! RRSIG times in presentation form (RFC 4034 §3.2): `YYYYMMDDHHmmSS` in UTC, or seconds since
//! 1970. Also times in RFC 3339 format ([`Rfc3339`]).

use std::fmt;
use std::str::FromStr;

/// Reads `YYYYMMDDHHmmSS` (reduced modulo 2^32), or an unsigned number of seconds below 2^32.
/// Returns `None` for other text.
#[must_use]
pub fn parse(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // 14 digits are always a date (RFC 4034 §3.2).
    if text.len() != 14 {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
    // RFC 4034 §3.1.5: times are modulo 2^32.
    parse_digits(text).map(|seconds| seconds as u32)
}

/// Reads `YYYYMMDDHHmmSS` and returns seconds since 1970. Returns `None` for a time that does not
/// fit into 32 bits, that is, before 1970 or after 2106-02-07T06:28:15Z.
#[must_use]
pub fn parse_absolute(text: &[u8]) -> Option<u32> {
    let has_14_digits = text.len() == 14 && text.iter().all(u8::is_ascii_digit);
    if has_14_digits { parse_digits(text)?.try_into().ok() } else { None }
}

/// Returns the seconds since 1970 for 14 digits, or `None` if they are not a valid time.
fn parse_digits(text: &[u8]) -> Option<i64> {
    let field =
        |from: usize, to: usize| text[from..to].iter().fold(0i64, |n, d| n * 10 + i64::from(d - b'0'));
    let (year, month, day) = (field(0, 4), field(4, 6), field(6, 8));
    let (hour, minute, second) = (field(8, 10), field(10, 12), field(12, 14));
    let valid = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    let seconds = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    valid.then_some(seconds)
}

/// Appends `YYYYMMDDHHmmSS` in UTC. `seconds` is an unsigned number of seconds since 1970, so the
/// time is between 1970 and 2106.
pub fn push(seconds: u32, out: &mut Vec<u8>) {
    let days = i64::from(seconds / 86_400);
    let (year, month, day) = civil_from_days(days);
    let second_of_day = seconds % 86_400;
    let digit_pairs = [
        year as u32 / 100,
        year as u32 % 100,
        month as u32,
        day as u32,
        second_of_day / 3600,
        second_of_day / 60 % 60,
        second_of_day % 60,
    ];
    out.extend(digit_pairs.iter().flat_map(|pair| [b'0' + (pair / 10) as u8, b'0' + (pair % 10) as u8]));
}

/// A time in seconds since 1970, displayed in UTC in RFC 3339 format: `2026-11-22T19:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc3339(pub u64);

impl Rfc3339 {
    /// The last second of the year 9999, the last time with a form in RFC 3339.
    pub const MAX: Self = Self(253_402_300_799);

    /// Reads a time in RFC 3339 format, with `Z` or a numeric offset: `2026-11-22T19:00:00+00:00`. A
    /// fraction of a second is discarded. Returns `None` for other text, for leap seconds, and for
    /// times before 1970 or after [`Rfc3339::MAX`].
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        const TEMPLATE: &[u8; 19] = b"0000-00-00T00:00:00";
        let (local, mut zone) = text.split_first_chunk::<{ TEMPLATE.len() }>()?;
        if let Some(fraction) = zone.strip_prefix(b".") {
            let digits = fraction.iter().take_while(|octet| octet.is_ascii_digit()).count();
            zone = fraction.get(digits..).filter(|_| digits > 0)?;
        }
        let seconds = parse_digits(&digits_of(local, TEMPLATE)?)?;
        let offset = match *zone {
            [b'Z' | b'z'] => 0,
            [sign @ (b'+' | b'-'), ref offset @ ..] => {
                let digits = digits_of(offset, b"00:00")?;
                let part = |at: usize| i64::from(digits[at] - b'0') * 10 + i64::from(digits[at + 1] - b'0');
                let (hours, minutes) = (part(0), part(2));
                let offset = hours * 3600 + minutes * 60;
                if hours > 23 || minutes > 59 {
                    return None;
                }
                if sign == b'+' { offset } else { -offset }
            }
            _ => return None,
        };
        u64::try_from(seconds - offset).ok().filter(|seconds| *seconds <= Self::MAX.0).map(Self)
    }
}

/// Returns the octets of `text` where `template` has `0`, which must be digits. All other octets must
/// be equal, without regard to case.
fn digits_of(text: &[u8], template: &[u8]) -> Option<Vec<u8>> {
    let fits = |(octet, expected): (&u8, &u8)| match expected {
        b'0' => octet.is_ascii_digit(),
        _ => octet.eq_ignore_ascii_case(expected),
    };
    let is_match = text.len() == template.len() && text.iter().zip(template).all(fits);
    is_match.then(|| text.iter().copied().filter(u8::is_ascii_digit).collect())
}

/// The text is not a time from 1970 to 9999 in RFC 3339 format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a time: write it as 2026-12-31T00:00:00Z")]
pub struct NotATime;

impl FromStr for Rfc3339 {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        Self::parse(text.as_bytes()).ok_or(NotATime)
    }
}

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days((self.0 / 86_400) as i64);
        let (hour, minute, second) = (self.0 / 3600 % 24, self.0 / 60 % 60, self.0 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Number of days from 0000-03-01 to 1970-01-01. The calendar functions count years from March, so
/// that a leap day is the last day of a year.
const DAYS_TO_1970: i64 = 719_468;

/// Returns the number of days since 1970-01-01 in the proleptic Gregorian calendar.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - DAYS_TO_1970
}

/// Returns year, month and day of a number of days since 1970-01-01.
const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let era = days.div_euclid(146_097);
    let day_of_era = days - era * 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times() {
        assert_eq!(parse(b"19700101000000"), Some(0));
        assert_eq!(parse(b"20170903050000"), Some(1_504_414_800));
        assert_eq!(parse(b"20240229235959"), Some(1_709_251_199));
        assert_eq!(parse(b"1504414800"), Some(1_504_414_800));
        for bad in ["20230229000000", "20171301000000", "20170903240000", "2017090305000x", ""] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn absolute_times_are_14_digits_between_1970_and_2106() {
        for (text, seconds) in [
            ("19700101000000", Some(0)),
            ("20271231000000", Some(1_830_211_200)),
            ("21060207062815", Some(u32::MAX)),
            ("21060207062816", None),
            ("19691231235959", None),
            ("00000101000000", None),
            ("20271231", None),
            ("1830211200", None),
            ("2027123100000x", None),
            ("20271331000000", None),
            ("", None),
        ] {
            assert_eq!(parse_absolute(text.as_bytes()), seconds, "{text}");
        }
        assert_eq!(parse(b"21060207062816"), Some(0), "modulo 2^32");
    }

    #[test]
    fn times_for_people_are_rfc_3339_in_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (u64::from(u32::MAX), "2106-02-07T06:28:15Z"),
        ] {
            assert_eq!(Rfc3339(seconds).to_string(), text);
        }
    }

    #[test]
    fn times_in_rfc_3339_are_read_with_their_offset() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2010-07-15T00:00:00+00:00", Some(1_279_152_000)),
            ("2010-07-15t02:30:00.25+02:30", Some(1_279_152_000)),
            ("2010-07-14T23:00:00-01:00", Some(1_279_152_000)),
            ("9999-12-31T23:59:59Z", Some(Rfc3339::MAX.0)),
            ("9999-12-31T23:59:59-00:01", None),
            ("1970-01-01T00:00:00+00:01", None),
            ("2010-07-15T00:00:00", None),
            ("2010-07-15T00:00:00.Z", None),
            ("2010-07-15T00:00:00+24:00", None),
            ("2010-07-15T00:00:00+0000", None),
            ("2010-07-15 00:00:00Z", None),
            ("2010-02-29T00:00:00Z", None),
            ("2016-12-31T23:59:60Z", None),
            ("", None),
        ] {
            assert_eq!(Rfc3339::parse(text.as_bytes()), seconds.map(Rfc3339), "{text}");
        }
    }

    proptest! {
        #[test]
        fn round_trip(seconds: u32) {
            let mut text = Vec::new();
            push(seconds, &mut text);
            prop_assert_eq!(parse(&text), Some(seconds));
        }

        #[test]
        fn round_trip_in_rfc_3339(seconds in 0..=Rfc3339::MAX.0) {
            let time = Rfc3339(seconds);
            prop_assert_eq!(Rfc3339::parse(time.to_string().as_bytes()), Some(time));
        }

        #[test]
        fn any_text_is_read_or_rejected(text: Vec<u8>) {
            let _ = Rfc3339::parse(&text);
        }
    }
}
