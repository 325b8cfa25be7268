//! Values of configurations: text, numbers, durations, sizes, addresses, names. Each reader says what is allowed.

use super::reader::shown;
use nonesuch_authoritative::limits::Prefix;
use nonesuch_proto::Name;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::de::DeValue;

/// Units of durations, and their seconds.
const UNITS: [(&str, u64); 5] = [("s", 1), ("m", 60), ("h", 3600), ("d", 86_400), ("w", 604_800)];
/// Units of sizes, and their octets.
const SIZES: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)];

pub(super) fn text(value: &DeValue<'_>) -> Result<String, String> {
    value
        .as_str()
        .map(str::to_owned)
        .ok_or_else(|| format!("{} is no text: write it in quotes", shown(value)))
}

pub(super) fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("{} is neither true nor false", shown(value)))
}

/// A whole number within `range`.
pub(super) fn number<T>(range: RangeInclusive<T>) -> impl Fn(&DeValue<'_>) -> Result<T, String>
where
    T: TryFrom<u64> + PartialOrd + Copy + std::fmt::Display,
{
    move |value| {
        let found =
            value.as_integer().and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        let fits = found.and_then(|number| T::try_from(number).ok()).filter(|number| range.contains(number));
        let (least, most) = (range.start(), range.end());
        fits.ok_or_else(|| format!("{} is not allowed: write a number from {least} to {most}", shown(value)))
    }
}

/// A duration within `range`, in seconds.
pub(super) fn seconds(range: RangeInclusive<u64>) -> impl Fn(&DeValue<'_>) -> Result<u64, String> {
    move |value| {
        let found = value.as_str().and_then(|text| with_unit(text, &UNITS));
        found.filter(|seconds| range.contains(seconds)).ok_or_else(|| {
            let (least, most) = (duration_text(*range.start()), duration_text(*range.end()));
            format!(
                "{} is not allowed: write a duration from \"{least}\" to \"{most}\": a number with s, m, h, d or w behind it",
                shown(value)
            )
        })
    }
}

/// A duration as it is written in configurations.
pub(crate) fn duration_text(seconds: u64) -> String {
    let unit = UNITS.iter().rev().find(|(_, unit)| seconds > 0 && seconds.is_multiple_of(*unit));
    let (name, unit) = unit.copied().unwrap_or(("s", 1));
    format!("{}{name}", seconds / unit)
}

/// A number of octets within `range`.
pub(super) fn octets(range: RangeInclusive<u64>) -> impl Fn(&DeValue<'_>) -> Result<u64, String> {
    move |value| {
        let found = value.as_str().and_then(|text| with_unit(text, &SIZES));
        found.filter(|octets| range.contains(octets)).ok_or_else(|| {
            let (least, most) = (size_text(*range.start()), size_text(*range.end()));
            format!(
                "{} is not allowed: write a size from \"{least}\" to \"{most}\": a number with B, KiB, MiB or GiB behind it",
                shown(value)
            )
        })
    }
}

/// A size as it is written in configurations.
fn size_text(octets: u64) -> String {
    let unit = SIZES[..3].iter().rev().find(|(_, unit)| octets > 0 && octets.is_multiple_of(*unit));
    let (name, unit) = unit.copied().unwrap_or(("B", 1));
    format!("{}{name}", octets / unit)
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.bytes().position(|octet| !octet.is_ascii_digit())?;
    let (_, unit) = units.iter().find(|(name, _)| *name == text[end..].trim_start())?;
    text[..end].parse::<u64>().ok()?.checked_mul(*unit)
}

/// One of `choices`, by name.
pub(super) fn choice<T: Copy>(choices: &[(&'static str, T)]) -> impl Fn(&DeValue<'_>) -> Result<T, String> {
    move |value| {
        let found = value.as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        found.map(|(_, choice)| *choice).ok_or_else(|| {
            let names: Vec<String> = choices.iter().map(|(name, _)| format!("{name:?}")).collect();
            format!("{} is not allowed: write {}", shown(value), names.join(" or "))
        })
    }
}

/// Address and port; `port` where none is written.
pub(super) fn socket_address(port: u16) -> impl Fn(&DeValue<'_>) -> Result<SocketAddr, String> {
    move |value| {
        let found = value.as_str().and_then(|text| parse_address(text, port));
        found.ok_or_else(|| {
            format!(
                "{} is no address: write \"192.0.2.1\", \"192.0.2.1:{port}\" or \"[2001:db8::1]:{port}\"",
                shown(value)
            )
        })
    }
}

pub(super) fn parse_address(text: &str, port: u16) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let of_ip = |ip: IpAddr| SocketAddr::new(ip, port);
    text.parse().ok().or_else(|| bare.parse().ok().map(of_ip))
}

/// An address prefix.
pub(super) fn prefix(value: &DeValue<'_>) -> Result<Prefix, String> {
    parsed(value)
}

/// What its own reader of text takes.
pub(super) fn parsed<T: FromStr<Err: std::fmt::Display>>(value: &DeValue<'_>) -> Result<T, String> {
    text(value)?.parse::<T>().map_err(|error| error.to_string())
}

/// A domain name, in lower case.
pub(super) fn name(value: &DeValue<'_>) -> Result<Name, String> {
    let text = text(value)?;
    parse_name(&text)
}

pub(super) fn parse_name(text: &str) -> Result<Name, String> {
    if text.is_empty() {
        return Err("\"\" is no domain name: write \".\" for the root".to_owned());
    }
    let name = text.parse::<Name>().map_err(|error| format!("{text:?} is no domain name: {error}"))?;
    Ok(name.view().to_canonical())
}

/// A path; relative ones are taken from `folder`, which the configuration stands in.
pub(super) fn path(folder: &Path) -> impl Fn(&DeValue<'_>) -> Result<PathBuf, String> {
    move |value| {
        let text = text(value)?;
        if text.is_empty() { Err("\"\" is no path".to_owned()) } else { Ok(folder.join(text)) }
    }
}

/// Octets for NSID (RFC 5001): text, or `0x` and digits.
pub(super) fn identifier(value: &DeValue<'_>) -> Result<Vec<u8>, String> {
    let text = text(value)?;
    let octets = match text.strip_prefix("0x") {
        Some(digits) => data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok(),
        None => Some(text.into_bytes()),
    };
    octets.filter(|octets| (1..=128).contains(&octets.len())).ok_or_else(|| {
        format!(
            "{} is not allowed: write text of 1 to 128 octets, or \"0x\" and pairs of hexadecimal digits",
            shown(value)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_and_sizes_have_units() {
        for (text, seconds) in
            [("0s", 0), ("10s", 10), ("5m", 300), ("2 h", 7200), ("1d", 86_400), ("2w", 1_209_600)]
        {
            assert_eq!(with_unit(text, &UNITS), Some(seconds), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1.5h", "10 sec", "99999999999999999999s", "18446744073709551615w"]
        {
            assert_eq!(with_unit(text, &UNITS), None, "{text}");
        }
        assert_eq!(with_unit("64MiB", &SIZES), Some(64 << 20));
        assert_eq!(with_unit("64MB", &SIZES), None);
    }

    #[test]
    fn addresses_may_leave_the_port_out() {
        for (text, expected) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("192.0.2.1:5300", "192.0.2.1:5300"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]", "[2001:db8::1]:53"),
            ("[2001:db8::1]:853", "[2001:db8::1]:853"),
        ] {
            assert_eq!(parse_address(text, 53), expected.parse().ok(), "{text}");
        }
        assert_eq!(parse_address("ns.example", 53), None);
    }

    proptest! {
        #[test]
        fn durations_come_back(seconds in 0u64..1 << 40) {
            prop_assert_eq!(with_unit(&duration_text(seconds), &UNITS), Some(seconds));
        }

        #[test]
        fn sizes_come_back(octets in 0u64..1 << 60) {
            prop_assert_eq!(with_unit(&size_text(octets), &SIZES), Some(octets));
        }
    }
}
