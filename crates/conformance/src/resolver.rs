//! The resolver for a scenario.

use crate::rpl::{Dialect, ScenarioSettings, ZoneServers};
use crate::runner::Unsupported;
use nonesuch_net::machine::{Machine, Now};
use nonesuch_proto::Rtype;
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::local_names::known_zones;
use nonesuch_resolver::options::{
    AddressFamilies, EDNS_PAYLOAD_RANGE, NegativeAnchor, ResolverOptions, ValidationOptions,
};
use nonesuch_resolver::trust_anchors::AnchorRecord;
use nonesuch_resolver::zones::{ZoneRule, ZoneRules};
use nonesuch_resolver::{Resolver, Shared};
use nonesuch_server::acl::AccessList;
use std::sync::Arc;
use std::time::Instant;

/// Octets of memory, half of them for the cache.
const MEMORY: u64 = 8 << 20;
/// Seed of the resolver: a scenario has the same course in each run.
const SEED: u8 = 7;

/// Returns the resolver with the configuration that a scenario expects.
///
/// # Errors
/// The resolver cannot have this configuration.
pub fn make(settings: &ScenarioSettings) -> Result<Box<dyn Machine>, Unsupported> {
    if let Some(option) = settings.special_options().next() {
        return Err(Unsupported(format!("option {}: {}", option.key, option.value)));
    }
    let options = options(settings)?;
    let now = Now { instant: Instant::now(), unix: settings.unix_time.unwrap_or(0) };
    let shared = Shared::new(options, [SEED; 16], &[SEED; 32], now);
    let shared = shared.map_err(|error| Unsupported(error.to_string()))?;
    Ok(Box::new(Resolver::new(Arc::new(shared), 0, [SEED; 32])))
}

fn options(settings: &ScenarioSettings) -> Result<ResolverOptions, Unsupported> {
    let mut options = ResolverOptions {
        access: AccessList::allow_all(),
        memory: MEMORY,
        edns_payload: *EDNS_PAYLOAD_RANGE.end(),
        qname_minimisation: settings.qname_minimisation.unwrap_or(true),
        families: match (settings.uses_ipv4, settings.uses_ipv6) {
            (true, true) => AddressFamilies::Both,
            (true, false) => AddressFamilies::OnlyIpv4,
            (false, true) => AddressFamilies::OnlyIpv6,
            (false, false) => return Err(Unsupported("neither IPv4 nor IPv6".to_owned())),
        },
        // Scenarios use names such as `test.` on the simulated network.
        disabled_local_zones: known_zones().into_iter().map(|zone| zone.apex).collect(),
        ..ResolverOptions::default()
    };
    if !settings.root_servers.is_empty() {
        let servers = settings.root_servers.iter().map(|(name, address)| (name.clone(), address.ip()));
        options.hints = Hints::new(servers).map_err(|error| Unsupported(error.to_string()))?;
    }
    let stubs = settings.stub_zones.iter().map(|zone| rule(zone, ZoneRule::stub));
    let forwards = settings.forward_zones.iter().map(|zone| rule(zone, ZoneRule::forward));
    let rules: Vec<ZoneRule> = stubs.chain(forwards).collect::<Result<_, _>>()?;
    // Unbound's scenarios have the root as a stub zone.
    if settings.dialect == Dialect::Unbound
        && let Some(root) = settings.stub_zones.iter().find(|zone| zone.zone.view().is_root())
    {
        let name = || "ns.root.".parse().expect("a name");
        let servers = root.addresses.iter().map(|address| (name(), address.ip()));
        options.hints = Hints::new(servers).map_err(|error| Unsupported(error.to_string()))?;
    }
    let rules =
        rules.into_iter().filter(|rule| !rule.apex.view().is_root() || settings.dialect == Dialect::Deckard);
    options.zones = ZoneRules::new(rules).map_err(|error| Unsupported(error.to_string()))?;
    options.ttl.min = settings.minimum_ttl.unwrap_or(options.ttl.min);
    options.ttl.max = settings.maximum_ttl.unwrap_or(options.ttl.max);
    options.validation = validation(settings);
    Ok(options)
}

/// Scenarios of older suites are signed with SHA-1.
fn validation(settings: &ScenarioSettings) -> ValidationOptions {
    let mut validation = ValidationOptions::default();
    validation.policy.sha1 = true;
    for anchor in &settings.trust_anchors {
        let record = if anchor.rtype == Rtype::DS { AnchorRecord::Ds } else { AnchorRecord::Dnskey };
        validation.anchors.insert(anchor.owner.view(), record(anchor.rdata.clone()));
    }
    let negative = |name: &nonesuch_proto::Name| NegativeAnchor {
        name: name.clone(),
        expires: None,
        is_rechecked: false,
    };
    validation.negative_anchors = settings.insecure_domains.iter().map(negative).collect();
    validation
}

fn rule(
    zone: &ZoneServers,
    make: fn(nonesuch_proto::Name, Vec<std::net::SocketAddr>) -> ZoneRule,
) -> Result<ZoneRule, Unsupported> {
    if !zone.hosts.is_empty() {
        return Err(Unsupported(format!("servers of {} given by name", zone.zone)));
    }
    Ok(make(zone.zone.clone(), zone.addresses.clone()))
}
