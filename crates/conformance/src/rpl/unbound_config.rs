//! Unbound's configuration: clauses of `unbound.conf`, and the files that `testbound` writes.

use super::Dialect;
use super::config::{is_end, name, trust_anchor, truth, unix_time, unquote};
use super::error::RplFault;
use super::lines::{Lines, address, number};
use super::settings::{OtherOption, ScenarioSettings, ZoneServers};
use nonesuch_proto::Name;

/// The clauses of `unbound.conf`.
const CLAUSES: [&str; 13] = [
    "server",
    "stub-zone",
    "forward-zone",
    "auth-zone",
    "view",
    "remote-control",
    "python",
    "dynlib",
    "dnscrypt",
    "cachedb",
    "ipset",
    "rpz",
    "dnstap",
];

/// Reads the clauses and the line after them.
pub(super) fn read<'t>(lines: &mut Lines<'t>) -> Result<(ScenarioSettings, Option<&'t str>), RplFault> {
    let mut settings = ScenarioSettings::new(Dialect::Unbound);
    let mut clause = String::new();
    loop {
        let line = lines.next_line().ok_or(RplFault::Missing("CONFIG_END"))?;
        if is_end(line) {
            return Ok((settings, Some(line).filter(|line| line.starts_with("SCENARIO_BEGIN"))));
        }
        read_line(line, lines, &mut clause, &mut settings)?;
    }
}

fn read_line(
    line: &str,
    lines: &mut Lines<'_>,
    clause: &mut String,
    settings: &mut ScenarioSettings,
) -> Result<(), RplFault> {
    let number = lines.number;
    let first = line.split_whitespace().next().unwrap_or_default();
    let end = match first {
        "TEMPFILE_CONTENTS" => Some("TEMPFILE_END"),
        "AUTOTRUST_FILE" => Some("AUTOTRUST_END"),
        "COMMANDLINE" | "TEMPFILE_NAME" => None,
        _ => return read_options(line, number, clause, settings),
    };
    settings.other_options.push(other(clause, first, line[first.len()..].trim(), number));
    end.map_or(Ok(()), |end| lines.skip_until(end))
}

/// Reads a line with options. A clause and its first option may be on the same line.
fn read_options(
    line: &str,
    number: u32,
    clause: &mut String,
    settings: &mut ScenarioSettings,
) -> Result<(), RplFault> {
    let Some((key, value)) = line.split_once(':') else {
        return Err(RplFault::Unexpected { found: line.to_owned(), expected: "an option, or CONFIG_END" });
    };
    let (key, value) = (key.trim(), strip_comment(value));
    if !CLAUSES.contains(&key) {
        if clause.is_empty() {
            let expected = "a clause, such as server:";
            return Err(RplFault::Unexpected { found: key.to_owned(), expected });
        }
        return read_option(clause, key, value, number, settings);
    }
    key.clone_into(clause);
    let zones = match key {
        "stub-zone" => Some(&mut settings.stub_zones),
        "forward-zone" => Some(&mut settings.forward_zones),
        _ => None,
    };
    if let Some(zones) = zones {
        let (addresses, hosts) = (Vec::new(), Vec::new());
        let zone = Name::root();
        zones.push(ZoneServers { zone, addresses, hosts, is_primed: false, has_fallback: false });
    }
    if value.is_empty() { Ok(()) } else { read_options(value, number, clause, settings) }
}

/// Removes a comment at the end of a value, which begins with `#` outside of quotation marks.
fn strip_comment(value: &str) -> &str {
    let mut quote = None;
    for (at, character) in value.char_indices() {
        match (quote, character) {
            (None, '#') => return value[..at].trim(),
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            _ => {}
        }
    }
    value.trim()
}

fn read_option(
    clause: &str,
    key: &str,
    value: &str,
    line: u32,
    settings: &mut ScenarioSettings,
) -> Result<(), RplFault> {
    let text = unquote(value);
    let is_known = match clause {
        "server" => read_server_option(key, text, settings)?,
        "stub-zone" => read_zone_option("stub", key, text, settings.stub_zones.last_mut())?,
        "forward-zone" => read_zone_option("forward", key, text, settings.forward_zones.last_mut())?,
        _ => false,
    };
    if !is_known {
        settings.other_options.push(other(clause, key, text, line));
    }
    Ok(())
}

/// Reads an option of the clause `server`. Returns whether it has a field in `settings`.
fn read_server_option(key: &str, text: &str, settings: &mut ScenarioSettings) -> Result<bool, RplFault> {
    match key {
        "do-not-query-localhost" => settings.queries_loopback = !truth(text)?,
        "domain-insecure" => settings.insecure_domains.push(name(text)?),
        "harden-glue" => settings.hardens_glue = truth(text)?,
        "qname-minimisation" => settings.qname_minimisation = Some(truth(text)?),
        "minimal-responses" => settings.minimal_responses = Some(truth(text)?),
        "trust-anchor" => settings.trust_anchors.push(trust_anchor(text)?),
        // The value -1 ignores the dates of signatures.
        "val-override-date" if text != "-1" => settings.unix_time = override_date(text)?,
        "cache-min-ttl" => settings.minimum_ttl = Some(number(Some(text))?),
        "cache-max-ttl" => settings.maximum_ttl = Some(number(Some(text))?),
        "do-ip4" => settings.uses_ipv4 = truth(text)?,
        "do-ip6" => settings.uses_ipv6 = truth(text)?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads `val-override-date`. 0 and no text turn it off.
fn override_date(text: &str) -> Result<Option<u64>, RplFault> {
    if matches!(text, "" | "0") { Ok(None) } else { unix_time(text).map(Some) }
}

/// Reads an option of a stub zone or forward zone. Returns whether it has a field in `settings`.
fn read_zone_option(
    prefix: &str,
    key: &str,
    text: &str,
    zone: Option<&mut ZoneServers>,
) -> Result<bool, RplFault> {
    let Some(zone) = zone else { return Ok(false) };
    match key.strip_prefix(prefix).unwrap_or(key) {
        "name" => zone.zone = name(text)?,
        "-addr" => zone.addresses.push(address(Some(text))?),
        "-host" => zone.hosts.push(name(text)?),
        "-prime" => zone.is_primed = truth(text)?,
        "-first" => zone.has_fallback = truth(text)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn other(clause: &str, key: &str, value: &str, line: u32) -> OtherOption {
    OtherOption { clause: clause.to_owned(), key: key.to_owned(), value: value.to_owned(), line }
}
