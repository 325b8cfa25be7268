//! Deckard's configuration: a list of options, as `parse_config` of `pydnstest/scenario.py` reads it.

use super::Dialect;
use super::config::{is_end, name, trust_anchor, truth, unix_time, unquote};
use super::error::RplFault;
use super::lines::{Lines, address, number};
use super::settings::{OtherOption, ScenarioSettings, ZoneServers};
use nonesuch_proto::Name;
use std::net::SocketAddr;

/// All options.
pub(super) const KEYS: [&str; 15] = [
    "do-not-query-localhost",
    "domain-insecure",
    "harden-glue",
    "query-minimization",
    "trust-anchor",
    "val-override-timestamp",
    "val-override-date",
    "stub-addr",
    "stub-name",
    "features",
    "feature-list",
    "force-ipv6",
    "forward-addr",
    "do-ip4",
    "do-ip6",
];

/// The name of the root server, unless `stub-name` gives another one.
const DEFAULT_ROOT_SERVER: &str = "k.root-servers.net.";

/// Reads the options and the line after them.
pub(super) fn read<'t>(lines: &mut Lines<'t>) -> Result<(ScenarioSettings, Option<&'t str>), RplFault> {
    let mut settings = ScenarioSettings::new(Dialect::Deckard);
    let mut root = RootServer { name: name(DEFAULT_ROOT_SERVER)?, address: None };
    loop {
        let line = lines.next_line().ok_or(RplFault::Missing("CONFIG_END"))?;
        if is_end(line) {
            settings.root_servers.extend(root.address.map(|address| (root.name, address)));
            return Ok((settings, Some(line).filter(|line| line.starts_with("SCENARIO_BEGIN"))));
        }
        let line_without_comment = line.split('#').next().unwrap_or(line);
        if let Some((key, value)) = line_without_comment.split_once(':') {
            read_option(key.trim(), value.trim(), lines.number, &mut settings, &mut root)?;
        }
    }
}

/// The root server. Of several addresses, Deckard uses the last one.
struct RootServer {
    name: Name,
    address: Option<SocketAddr>,
}

fn read_option(
    key: &str,
    value: &str,
    line: u32,
    settings: &mut ScenarioSettings,
    root: &mut RootServer,
) -> Result<(), RplFault> {
    // Semicolons separate features; in other values, they begin a comment.
    let text = unquote(if key == "trust-anchor" { value } else { value.split(';').next().unwrap_or(value) });
    match key {
        "do-not-query-localhost" => settings.queries_loopback = !truth(text)?,
        "domain-insecure" => settings.insecure_domains.push(name(text)?),
        "harden-glue" => settings.hardens_glue = truth(text)?,
        "query-minimization" => settings.qname_minimisation = Some(truth(text)?),
        "trust-anchor" => settings.trust_anchors.push(trust_anchor(text)?),
        "val-override-timestamp" | "val-override-date" => settings.unix_time = Some(unix_time(text)?),
        "stub-addr" => root.address = Some(address(text.split_whitespace().next())?),
        "stub-name" => root.name = name(text)?,
        "features" => read_features(value, line, settings)?,
        "feature-list" => match read_forward_policy(value)? {
            Some(zone) => settings.forward_zones.push(zone),
            None => settings.other_options.push(option(key, value, line)),
        },
        // Only the choice of Deckard's own address depends on this option.
        "force-ipv6" => {}
        "forward-addr" => settings.forward_zones.push(forward(Name::root(), address(Some(text))?)),
        "do-ip4" => settings.uses_ipv4 = truth(text)?,
        "do-ip6" => settings.uses_ipv6 = truth(text)?,
        _ => return Err(RplFault::UnknownOption(key.to_owned())),
    }
    Ok(())
}

/// Reads features, separated by semicolons: `KEY = VALUE` or `KEY`.
fn read_features(value: &str, line: u32, settings: &mut ScenarioSettings) -> Result<(), RplFault> {
    for feature in value.split(';') {
        let (key, value) = feature.split_once('=').unwrap_or((feature, ""));
        match key.trim() {
            "" => {}
            "min_ttl" => settings.minimum_ttl = Some(number(Some(value.trim()))?),
            "max_ttl" => settings.maximum_ttl = Some(number(Some(value.trim()))?),
            _ => settings.other_options.push(option("features", feature, line)),
        }
    }
    Ok(())
}

fn option(key: &str, value: &str, line: u32) -> OtherOption {
    OtherOption { clause: String::new(), key: key.to_owned(), value: value.trim().to_owned(), line }
}

/// Reads a policy of Knot Resolver that forwards queries below one name:
/// `policy.suffix(policy.FORWARD('ADDRESS'), {todname('ZONE')})`. Returns `None` for other policies.
fn read_forward_policy(value: &str) -> Result<Option<ZoneServers>, RplFault> {
    let argument = |function: &str| {
        let (_, after) = value.split_once(function)?;
        after.split_once("')").map(|(argument, _)| argument)
    };
    match (argument("policy.suffix(policy.FORWARD('"), argument("{todname('")) {
        (Some(server), Some(zone)) => Ok(Some(forward(name(zone)?, address(Some(server))?))),
        _ => Ok(None),
    }
}

fn forward(zone: Name, server: SocketAddr) -> ZoneServers {
    ZoneServers { zone, addresses: vec![server], hosts: Vec::new(), is_primed: false, has_fallback: false }
}
