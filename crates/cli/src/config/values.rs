//! Kinds of values: each reads a value of TOML, and its error says what is allowed.
//!
//! A kind is a function `Fn(Item) -> Result<T, ValueError>`. Kinds of lists report what is wrong with an item by themselves.

use super::problem::ConfigLocation;
use super::section::{Findings, Item};
use super::sources::Role;
use super::value_error::ValueError;
use nonesuch_proto::Name;
use nonesuch_server::acl::{AccessEntry, AccessList, Remote};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;

/// The name of a unit, and how many seconds or bytes it has.
struct Unit(&'static str, u64);

/// Units of durations, and their seconds.
const UNITS: [Unit; 5] =
    [Unit("s", 1), Unit("m", 60), Unit("h", 3600), Unit("d", 86_400), Unit("w", 604_800)];
/// Units of sizes, and their bytes.
const SIZES: [Unit; 4] = [Unit("B", 1), Unit("KiB", 1 << 10), Unit("MiB", 1 << 20), Unit("GiB", 1 << 30)];
/// Entries of an access list that are compared with each other; longer lists are made by programs.
const MAX_COMPARED: usize = 1000;

impl ValueError {
    pub(super) fn not_allowed(item: Item<'_, '_>, allowed: impl Into<String>) -> Self {
        Self::NotAllowed { found: item.shown(), allowed: allowed.into() }
    }
}

fn str_of<'t>(item: Item<'_, 't>) -> Result<&'t str, ValueError> {
    item.value().as_str().ok_or_else(|| ValueError::NoText { found: item.shown() })
}

pub(super) fn text(item: Item<'_, '_>) -> Result<String, ValueError> {
    str_of(item).map(str::to_owned)
}

pub(super) fn boolean(item: Item<'_, '_>) -> Result<bool, ValueError> {
    item.value().as_bool().ok_or_else(|| ValueError::NoBoolean { found: item.shown() })
}

/// A whole number within `range`.
pub(super) fn number<T>(range: RangeInclusive<T>) -> impl Fn(Item<'_, '_>) -> Result<T, ValueError>
where
    T: TryFrom<u64> + PartialOrd + Copy + Display,
{
    move |item| {
        let integer = item.value().as_integer();
        let found = integer.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        let fits = found.and_then(|number| T::try_from(number).ok()).filter(|number| range.contains(number));
        let allowed = || format!("a number from {} to {}", range.start(), range.end());
        fits.ok_or_else(|| ValueError::not_allowed(item, allowed()))
    }
}

/// A duration within `range`, in seconds.
pub(super) fn seconds<T>(range: RangeInclusive<T>) -> impl Fn(Item<'_, '_>) -> Result<T, ValueError>
where
    T: TryFrom<u64> + PartialOrd + Copy + Into<u64>,
{
    move |item| {
        let found = item.value().as_str().and_then(|text| with_unit(text, &UNITS));
        let fits = found.and_then(|found| T::try_from(found).ok()).filter(|found| range.contains(found));
        let [min, max] = [*range.start(), *range.end()].map(|bound| duration_text(bound.into()));
        let allowed =
            || format!("a duration from \"{min}\" to \"{max}\": a number with s, m, h, d or w behind it");
        fits.ok_or_else(|| ValueError::not_allowed(item, allowed()))
    }
}

/// A number of bytes within `range`.
pub(super) fn bytes(range: RangeInclusive<u64>) -> impl Fn(Item<'_, '_>) -> Result<u64, ValueError> {
    move |item| {
        let found = item.value().as_str().and_then(|text| with_unit(text, &SIZES));
        let (min, max) = (size_text(*range.start()), size_text(*range.end()));
        let allowed =
            || format!("a size from \"{min}\" to \"{max}\": a number with B, KiB, MiB or GiB behind it");
        found.filter(|found| range.contains(found)).ok_or_else(|| ValueError::not_allowed(item, allowed()))
    }
}

/// A duration as it is written in configurations.
pub(crate) fn duration_text(seconds: u64) -> String {
    in_units(seconds, &UNITS)
}

/// A size as it is written in configurations.
pub(super) fn size_text(bytes: u64) -> String {
    in_units(bytes, &SIZES)
}

fn in_units(value: u64, units: &[Unit]) -> String {
    let unit = units.iter().rev().find(|Unit(_, unit)| value > 0 && value.is_multiple_of(*unit));
    let Unit(name, unit) = unit.unwrap_or(&units[0]);
    format!("{}{name}", value / unit)
}

fn with_unit(text: &str, units: &[Unit]) -> Option<u64> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit())?;
    let Unit(_, unit) = units.iter().find(|Unit(name, _)| *name == text[end..].trim_start())?;
    text[..end].parse::<u64>().ok()?.checked_mul(*unit)
}

/// One of `choices`, by name.
pub(super) fn choice<T: Copy, const N: usize>(
    choices: [(&'static str, T); N],
) -> impl Fn(Item<'_, '_>) -> Result<T, ValueError> {
    move |item| {
        let found = item.value().as_str().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        found
            .map(|(_, choice)| *choice)
            .ok_or_else(|| ValueError::not_allowed(item, alternatives(choices.iter().map(|(name, _)| *name))))
    }
}

/// Texts of which one is allowed.
pub(super) fn alternatives(names: impl Iterator<Item = impl std::fmt::Debug>) -> String {
    names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(" or ")
}

/// Address and port; `port` where none is written.
pub(super) fn socket_address(port: u16) -> impl Fn(Item<'_, '_>) -> Result<SocketAddr, ValueError> {
    move |item| {
        let found = item.value().as_str().and_then(|text| parse_address(text, port));
        let address = found.ok_or_else(|| ValueError::NoAddress { found: item.shown(), port })?;
        warn_of_port(item);
        Ok(address)
    }
}

fn parse_address(text: &str, port: u16) -> Option<SocketAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let of_ip = |ip: IpAddr| SocketAddr::new(ip, port);
    text.parse().ok().or_else(|| bare.parse().ok().map(of_ip))
}

/// Warns of an IPv6 address whose last group was meant as a port: without brackets it is a group of the address.
fn warn_of_port(item: Item<'_, '_>) {
    item.warn(|| {
        let word = item.value().as_str()?.split_ascii_whitespace().next()?;
        let (address, port) = split_port(word)?;
        Some(format!(
            "{word} is an address, whose port is not said; did you mean [{address}]:{port}? Else write [{word}]"
        ))
    });
}

/// The address and the port that `text` would be with brackets, where it is an address without.
fn split_port(text: &str) -> Option<(Ipv6Addr, u16)> {
    text.parse::<Ipv6Addr>().ok()?;
    let (address, port) = text.rsplit_once(':')?;
    let is_decimal =
        port.len() >= 2 && !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|_| is_decimal)?;
    Some((address.parse().ok()?, port))
}

/// A value that another crate reads from text.
pub(super) fn parsed<T>(item: Item<'_, '_>) -> Result<T, ValueError>
where
    T: FromStr<Err: std::error::Error + 'static>,
{
    str_of(item)?.parse::<T>().map_err(|error| ValueError::Other(error.into()))
}

/// A list of values of one kind: those that are right.
pub(super) fn list<T>(
    of: &'static str,
    kind: impl Fn(Item<'_, '_>) -> Result<T, ValueError>,
) -> impl Fn(Item<'_, '_>) -> Result<Vec<T>, ValueError> {
    move |item| {
        let read = |item: Item<'_, '_>| kind(item).map_err(|error| item.fault(&error)).ok();
        let items = item.items().ok_or_else(|| ValueError::NoList { found: item.shown(), of })?;
        Ok(items.filter_map(read).collect())
    }
}

/// A list of other servers.
pub(super) fn servers(item: Item<'_, '_>) -> Result<Vec<Remote>, ValueError> {
    list("servers", |item| {
        let server: Remote = parsed(item)?;
        warn_of_port(item);
        item.note_keys(server.key.iter());
        Ok(server)
    })(item)
}

/// An entry of an access list, and where it is.
struct Placed {
    entry: AccessEntry,
    place: ConfigLocation,
}

/// A list of those who may do something. `nobody` says what nobody may do where all entries deny.
pub(super) fn access(
    nobody: Option<&'static str>,
) -> impl Fn(Item<'_, '_>) -> Result<AccessList, ValueError> {
    move |item| {
        let with_place = |item: Item<'_, '_>| parsed(item).map(|entry| Placed { entry, place: item.place() });
        let entries = list("prefixes and keys", with_place)(item)?;
        if !item.section.is_silent {
            warn_of_unreached(item.section.findings, &entries);
        }
        let list = AccessList::new(entries.into_iter().map(|placed| placed.entry).collect());
        item.note_keys(list.keys());
        item.warn(|| warn_of_nobody(&list, nobody?));
        Ok(list)
    }
}

/// Warns of entries that no request comes to: an entry before them covers all that they mean.
fn warn_of_unreached(findings: &Findings, entries: &[Placed]) {
    for (index, Placed { entry, place }) in entries.iter().enumerate().take(MAX_COMPARED) {
        if let Some(Placed { entry: first, .. }) =
            entries[..index].iter().find(|first| first.entry.covers(entry))
        {
            let message = format!(
                "\"{entry}\" has no effect: \"{first}\" stands before it, and the first entry that fits decides; put it in front, or \
                 leave it out"
            );
            findings.warn(place, message);
        }
    }
}

/// Warns of a list that denies some, where the others were meant to be allowed: the end of a list denies all others.
fn warn_of_nobody(list: &AccessList, nobody: &str) -> Option<String> {
    let everybody = AccessEntry { is_denied: true, ..AccessEntry::default() };
    let entries = list.entries();
    let denies =
        !entries.is_empty() && entries.iter().all(|entry| entry.is_denied) && !entries.contains(&everybody);
    denies.then(|| {
        format!(
            "{nobody}: each entry refuses, and so does the end of the list; put \"any\" behind them for all others, or write [] where \
             nobody is meant"
        )
    })
}

/// A table of texts, whose keys the user chooses.
pub(super) fn texts_by_name(item: Item<'_, '_>) -> Result<BTreeMap<String, String>, ValueError> {
    let table = item.table()?;
    let texts = table.table.keys().filter_map(|key| {
        let item = table.item(key.get_ref())?;
        let found = item.value().as_str();
        if found.is_none() {
            item.fault(&ValueError::NoTextInTable { found: item.shown() });
        }
        Some((key.get_ref().clone().into_owned(), found?.to_owned()))
    });
    Ok(texts.collect())
}

/// A domain name, in lower case.
pub(super) fn name(item: Item<'_, '_>) -> Result<Name, ValueError> {
    parse_name(str_of(item)?)
}

pub(super) fn parse_name(text: &str) -> Result<Name, ValueError> {
    if text.is_empty() {
        return Err(ValueError::EmptyName);
    }
    let name = text.parse::<Name>().map_err(|source| ValueError::NoName { text: text.to_owned(), source })?;
    Ok(name.view().to_canonical())
}

/// A path; a relative one is taken from the directory of the file that it stands in.
pub(super) fn path(item: Item<'_, '_>) -> Result<PathBuf, ValueError> {
    match str_of(item)? {
        "" => Err(ValueError::EmptyPath),
        text => Ok(item.section.document.folder().join(text)),
    }
}

/// A path of a file with this role.
pub(super) fn file(role: Role) -> impl Fn(Item<'_, '_>) -> Result<PathBuf, ValueError> {
    move |item| path(item).inspect(|path| item.note_file(path, role.clone()))
}

/// Octets for NSID (RFC 5001): text, or `0x` and digits.
pub(super) fn identifier(item: Item<'_, '_>) -> Result<Vec<u8>, ValueError> {
    let text = text(item)?;
    let octets = match text.strip_prefix("0x") {
        Some(digits) => data_encoding::HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok(),
        None => Some(text.into_bytes()),
    };
    let allowed = "text of 1 to 128 octets, or \"0x\" and pairs of hexadecimal digits";
    octets
        .filter(|octets| (1..=128).contains(&octets.len()))
        .ok_or_else(|| ValueError::not_allowed(item, allowed))
}

#[cfg(test)]
mod tests;
