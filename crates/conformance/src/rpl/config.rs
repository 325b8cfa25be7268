//! The configuration part of a scenario: which dialect it has, and values that both dialects share.

use super::Dialect;
use super::deckard_config;
use super::error::RplFault;
use super::lines::Lines;
use super::record::{Defaults, read_record};
use super::settings::{ScenarioSettings, TrustAnchor};
use super::unbound_config;
use nonesuch_proto::Name;
use nonesuch_proto::message::Section;
use nonesuch_proto::timestamp;

/// Reads the configuration, and the line after it: CONFIG_END, or SCENARIO_BEGIN, which is returned.
/// `dialect`: `None` to detect it.
pub(super) fn read<'t>(
    lines: &mut Lines<'t>,
    dialect: Option<Dialect>,
) -> Result<(ScenarioSettings, Option<&'t str>), RplFault> {
    let dialect = dialect.unwrap_or_else(|| detect(lines.clone()));
    match dialect {
        Dialect::Deckard => deckard_config::read(lines),
        Dialect::Unbound => unbound_config::read(lines),
    }
}

/// Detects the dialect: the first option of an Unbound configuration is inside a clause, such as
/// `server:`. An empty configuration is one of Unbound, because Deckard needs the address of a root
/// server.
fn detect(mut lines: Lines<'_>) -> Dialect {
    let first = lines.next_line().unwrap_or_default();
    let key = first.split(':').next().unwrap_or_default().trim();
    if deckard_config::KEYS.contains(&key) { Dialect::Deckard } else { Dialect::Unbound }
}

/// Returns whether `line` ends the configuration: with CONFIG_END, or without it.
pub(super) fn is_end(line: &str) -> bool {
    line.starts_with("CONFIG_END") || line.starts_with("SCENARIO_BEGIN")
}

/// Removes the quotation marks around a value.
pub(super) fn unquote(value: &str) -> &str {
    value.trim().trim_matches(['"', '\'']).trim()
}

/// Reads a truth value in any of the forms of both programs.
pub(super) fn truth(value: &str) -> Result<bool, RplFault> {
    match value.to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" | "1" => Ok(true),
        "no" | "off" | "false" | "0" => Ok(false),
        _ => Err(RplFault::Value { expected: "yes or no", found: value.to_owned() }),
    }
}

/// Reads a name, which is absolute even without a dot at its end.
pub(super) fn name(value: &str) -> Result<Name, RplFault> {
    Ok(Name::from_text(value.as_bytes(), Some(Name::root().view()))?)
}

/// Reads a time: 14 digits `YYYYMMDDHHmmSS`, or seconds since 1970.
pub(super) fn unix_time(value: &str) -> Result<u64, RplFault> {
    let time = timestamp::parse_absolute(value.as_bytes()).map(u64::from);
    let time = time.or_else(|| value.parse().ok().filter(|_| value.len() < 14));
    time.ok_or_else(|| RplFault::Value {
        expected: "a time (YYYYMMDDHHmmSS or seconds)",
        found: value.to_owned(),
    })
}

/// Reads a DS or DNSKEY record.
pub(super) fn trust_anchor(value: &str) -> Result<TrustAnchor, RplFault> {
    let record = read_record(value, Section::Answer, &Defaults::default())?;
    Ok(TrustAnchor { owner: record.owner, rtype: record.rtype, rdata: record.rdata })
}
