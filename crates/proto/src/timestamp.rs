//! RRSIG times in presentation form (RFC 4034 §3.2): `YYYYMMDDHHmmSS` in UTC, or seconds since 1970.

/// Reads `YYYYMMDDHHmmSS` or an unsigned number of seconds, modulo 2^32.
#[must_use]
pub fn parse(text: &[u8]) -> Option<u32> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    if text.len() != 14 {
        return std::str::from_utf8(text).ok()?.parse().ok();
    }
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
    // RFC 4034 §3.1.5: times are modulo 2^32.
    valid.then_some(seconds as u32)
}

/// Appends `YYYYMMDDHHmmSS` of a time within 2^31 seconds of 1970-2106's middle, read as unsigned.
pub fn push(seconds: u32, out: &mut Vec<u8>) {
    let days = i64::from(seconds / 86_400);
    let (year, month, day) = civil_from_days(days);
    let of_day = seconds % 86_400;
    let pairs = [
        year as u32 / 100,
        year as u32 % 100,
        month as u32,
        day as u32,
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
    ];
    out.extend(pairs.iter().flat_map(|pair| [b'0' + (pair / 10) as u8, b'0' + (pair % 10) as u8]));
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days - era * 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
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

    proptest! {
        #[test]
        fn round_trip(seconds: u32) {
            let mut text = Vec::new();
            push(seconds, &mut text);
            prop_assert_eq!(parse(&text), Some(seconds));
        }
    }
}
