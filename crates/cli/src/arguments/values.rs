//! Value types of arguments that several commands use.

use crate::config::duration_text;
use crate::zones::time_or_now;
use nonesuch_proto::text::parse_ttl;
use nonesuch_proto::timestamp;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Why a value on the command line is rejected; clap puts the option and the value in front.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ArgumentError {
    #[error("expected {0}")]
    Expected(&'static str),
    #[error("expected one of {}", .0.join(", "))]
    ExpectedOneOf(Vec<&'static str>),
    #[error("expected a duration from {} to {}", duration_text((*.0.start()).into()), duration_text((*.0.end()).into()))]
    DurationOutOfRange(RangeInclusive<u32>),
    #[error("SHA-1 digests are read but not generated (RFC 8624 section 3.3): use sha256 or sha384")]
    Sha1,
    #[error("a cookie has 8, or 16 to 40 octets, not {0}")]
    CookieLength(usize),
    #[error("{0:?} is not a key of a zone table: expected {ZONE_SETTING}")]
    NotAZoneKey(String),
}

/// The format of a key of a zone table with its value, for messages.
pub(super) const ZONE_SETTING: &str = "KEY=VALUE, for example file=/srv/example.zone";

/// Reads an address with a port.
pub(super) fn parse_socket_address(text: &str) -> Result<SocketAddr, ArgumentError> {
    let form = "an address and a port, for example 127.0.0.1:5300 or [::1]:5300";
    text.parse().map_err(|_| ArgumentError::Expected(form))
}

/// A time on the command line: absolute, or relative to another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeArgument {
    /// Seconds since 1970 modulo 2^32 (RFC 4034 §3.1.5).
    At(u32),
    /// Seconds after the present; negative: before it. `now+30d`.
    FromNow(i64),
    /// Seconds after the base time of the option. `30d`, `+3600`.
    Offset(i64),
}

impl TimeArgument {
    /// Returns the time in seconds since 1970 modulo 2^32. `now` is the present, and `base` the
    /// time from which an offset counts.
    pub(crate) const fn resolve(self, now: u32, base: u32) -> u32 {
        let (from, seconds) = match self {
            Self::At(seconds) => return seconds,
            Self::FromNow(seconds) => (now, seconds),
            Self::Offset(seconds) => (base, seconds),
        };
        (from as i64 + seconds) as u32
    }
}

/// The formats of a time on the command line.
const TIME_FORMS: &str = "RFC 3339, YYYYMMDDHHmmSS, seconds since 1970, or a relative time such as 30d, +3600, now+30d, \
        now-1h";

impl FromStr for TimeArgument {
    type Err = ArgumentError;

    fn from_str(text: &str) -> Result<Self, ArgumentError> {
        let malformed = || ArgumentError::Expected(TIME_FORMS);
        if let Some(rest) = text.strip_prefix("now") {
            let seconds = if rest.is_empty() { Some(0) } else { parse_signed(rest) };
            return seconds.map(Self::FromNow).ok_or_else(malformed);
        }
        if text.starts_with(['+', '-']) {
            return parse_signed(text).map(Self::Offset).ok_or_else(malformed);
        }
        if let Some(seconds) = timestamp::parse(text.as_bytes()) {
            return Ok(Self::At(seconds));
        }
        if let Some(seconds) = parse_ttl(text.as_bytes()) {
            return Ok(Self::Offset(seconds.into()));
        }
        let time: jiff::Timestamp = text.parse().map_err(|_| malformed())?;
        // RFC 4034 §3.1.5: times in DNSSEC are modulo 2^32.
        Ok(Self::At(time.as_second() as u32))
    }
}

/// Reads a duration with a sign in front of it.
fn parse_signed(text: &str) -> Option<i64> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    parse_ttl(rest.as_bytes()).map(|seconds| sign * i64::from(seconds))
}

/// Reads a time; a relative one counts from the present.
pub(super) fn parse_time(text: &str) -> Result<u32, ArgumentError> {
    let now = time_or_now(None);
    text.parse().map(|time: TimeArgument| time.resolve(now, now))
}

/// Reads a duration: seconds, or numbers with units, as in a TTL. Returns it in seconds; the
/// maximum is 2^31 - 1.
pub(super) fn parse_duration(text: &str) -> Result<u32, ArgumentError> {
    let form = "a duration: seconds, or numbers with s, m, h, d or w, such as 3d or 1h30m";
    parse_ttl(text.as_bytes()).ok_or(ArgumentError::Expected(form))
}

/// Reads a duration within `range`, as [`parse_duration`].
pub(super) fn parse_duration_in(text: &str, range: RangeInclusive<u32>) -> Result<u32, ArgumentError> {
    let seconds = parse_duration(text)?;
    if range.contains(&seconds) { Ok(seconds) } else { Err(ArgumentError::DurationOutOfRange(range)) }
}

/// Reads the length of a window, in seconds.
pub(super) fn parse_window(text: &str) -> Result<u32, ArgumentError> {
    parse_duration_in(text, 1..=3600)
}

/// Reads a duration as [`parse_duration`], or as a number of seconds with a fraction.
pub(super) fn parse_seconds(text: &str) -> Result<f64, ArgumentError> {
    match text.parse() {
        Ok(seconds) if f64::is_finite(seconds) && seconds >= 0.0 => Ok(seconds),
        _ => parse_duration(text).map(f64::from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_all_forms() {
        for text in ["2017-08-22T00:00:00Z", "20170822000000", "1503360000", "2017-08-22T02:00:00+02:00"] {
            assert_eq!(parse_time(text), Ok(1_503_360_000), "{text}");
        }
        for text in
            ["yesterday", "", "now30d", "now+", "+", "-", "+1x", "30d ago", "nowhere", "20171301000000"]
        {
            assert_eq!(text.parse::<TimeArgument>(), Err(ArgumentError::Expected(TIME_FORMS)), "{text}");
        }
    }

    #[test]
    fn relative_times_count_from_the_present_or_from_the_base_of_the_option() {
        let (now, base) = (1_000_000, 996_400);
        for (text, expected) in [
            ("30d", base + 30 * 86_400),
            ("+30d", base + 30 * 86_400),
            ("+3600", base + 3600),
            ("-1h", base - 3600),
            ("now", now),
            ("now+30d", now + 30 * 86_400),
            ("now+60", now + 60),
            ("now-1h30m", now - 5400),
            ("1500", 1500),
        ] {
            let time: TimeArgument = text.parse().unwrap();
            assert_eq!(time.resolve(now, base), expected, "{text}");
        }
    }

    #[test]
    fn durations_have_units_or_are_seconds() {
        for (text, seconds) in [("0", 0), ("3600", 3600), ("3d", 259_200), ("1h30m", 5400), ("2w", 1_209_600)]
        {
            assert_eq!(parse_duration(text), Ok(seconds), "{text}");
        }
        for text in ["", "d", "-1", "3 d", "1.5h", "4294967296"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert_eq!(parse_duration_in("2m", 60..=600), Ok(120));
        assert_eq!(parse_duration_in("1s", 60..=600), Err(ArgumentError::DurationOutOfRange(60..=600)));
        assert_eq!(
            ArgumentError::DurationOutOfRange(60..=600).to_string(),
            "expected a duration from 1m to 10m"
        );
        assert_eq!((parse_seconds("0.5"), parse_seconds("2m")), (Ok(0.5), Ok(120.0)));
        for text in ["nan", "inf", "-1", "x"] {
            assert!(parse_seconds(text).is_err(), "{text}");
        }
    }
}
