//! Items about the nameservers as names and addresses.

use super::{item, list};
use crate::check::zone::context::{Nameserver, ZoneContext};
use crate::check::zone::findings::Findings;
use crate::check::{Evidence, Outcome, Query, Row};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Section;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const ITEMS: &[Row<ZoneContext>] = &[
    Row {
        item: item(
            "Z-010",
            "the zone has at least two nameservers with different addresses",
            &["RFC 1034 §4.1", "RFC 2182 §5"],
            "Counts the nameservers and their addresses.",
        ),
        run: at_least_two,
    },
    Row {
        item: item(
            "Z-011",
            "the name of each nameserver has an address and is no alias",
            &["RFC 2181 §10.3"],
            "Queries A, AAAA and CNAME of the name of each nameserver.",
        ),
        run: names_have_addresses,
    },
    Row {
        item: item(
            "Z-012",
            "the nameservers are in different networks",
            &["RFC 2182 §3.1"],
            "Compares the networks (/24 for IPv4, /48 for IPv6) of all addresses. One network for all global addresses \
             fails, because it has one route. One network for the addresses of one family is noted.",
        ),
        run: different_networks,
    },
    Row {
        item: item(
            "Z-013",
            "the addresses of the nameservers are global",
            &["RFC 1918 §3", "RFC 1918 §5", "RFC 6890 §2.2.1", "RFC 8190 §2.1", "RFC 10001 §4.1"],
            "Looks for addresses that are not globally reachable. Those that no host has, such as unspecified and \
             IPv4-mapped addresses, fail. Those of hosts in a limited network, such as addresses for private use, fail if \
             the zone or its parent is on the Internet: it has another nameserver with a global address. Otherwise they \
             are noted: the zone may be for such a network.",
        ),
        run: global_addresses,
    },
    Row {
        item: item(
            "Z-014",
            "the zone is served over IPv4, and over IPv6",
            &["RFC 10001 §4.1"],
            "Counts the nameservers with an address of each family. A zone on the Internet must have two with IPv4 and two \
             with IPv6. A zone without global addresses must have one with IPv4, and none with IPv6 is noted.",
        ),
        run: address_families,
    },
];

/// Whether an address is of a family.
type IsOfFamily = fn(&IpAddr) -> bool;
/// The families of addresses.
const FAMILIES: [(&str, IsOfFamily); 2] = [("IPv4", IpAddr::is_ipv4), ("IPv6", IpAddr::is_ipv6)];
/// Nameservers with an address of each family (RFC 10001 §4.1).
const OF_FAMILY: usize = 2;

/// The addresses of a nameserver: those of its zone, or else the glue.
fn addresses(nameserver: &Nameserver) -> &[IpAddr] {
    if nameserver.addresses.is_empty() { &nameserver.glue } else { &nameserver.addresses }
}

fn all_addresses(context: &ZoneContext) -> BTreeSet<IpAddr> {
    context.discovery.nameservers.iter().flat_map(addresses).copied().collect()
}

/// Why there are no nameservers.
fn no_nameserver(context: &ZoneContext) -> Option<Outcome> {
    let fault = context.fault().filter(|_| context.discovery.nameservers.is_empty());
    fault.map(|fault| Outcome::NotTestable(fault.to_string()))
}

/// Why there are no addresses.
fn no_address(context: &ZoneContext) -> Option<Outcome> {
    let without = || Outcome::NotTestable("no nameserver has an address".to_owned());
    no_nameserver(context).or_else(|| all_addresses(context).is_empty().then(without))
}

fn at_least_two(context: &mut ZoneContext, _: &mut Evidence) -> Outcome {
    if let Some(outcome) = no_nameserver(context) {
        return outcome;
    }
    let count = context.discovery.nameservers.len();
    let distinct = all_addresses(context);
    if count < 2 {
        return Outcome::Fail(format!("the zone has {count} nameserver, the minimum is 2"));
    }
    if distinct.len() < 2 {
        return Outcome::Fail(format!("{count} nameservers share the address {}", list(distinct)));
    }
    let mut findings = Findings::default();
    findings.good();
    let mut by_address: BTreeMap<IpAddr, Vec<String>> = BTreeMap::new();
    for nameserver in &context.discovery.nameservers {
        for address in addresses(nameserver) {
            by_address.entry(*address).or_default().push(nameserver.name.to_string());
        }
    }
    for (address, names) in by_address.into_iter().filter(|(_, names)| names.len() > 1) {
        findings.note(format!("{} share the address {address}", list(names)));
    }
    findings.outcome()
}

fn names_have_addresses(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    if let Some(outcome) = no_nameserver(context) {
        return outcome;
    }
    let mut findings = Findings::default();
    let (zone, live) = (context.zone().clone(), context.live_servers(evidence));
    for Nameserver { name, glue, .. } in context.discovery.nameservers.clone() {
        let is_in_zone = name.view().is_at_or_below(zone.view());
        let aliases = if is_in_zone {
            let query = Query::new(name.clone(), Rtype::A);
            let responses = live
                .iter()
                .filter_map(|server| context.network.client.ask(evidence, server.address, &query).ok());
            responses.last()
        } else {
            context.network.resolve(evidence, &name, Rtype::A)
        };
        let is_alias = aliases.is_some_and(|response| {
            let mut answers = response.message.section(Section::Answer);
            answers.any(|record| record.rtype == Rtype::CNAME && record.owner == name)
        });
        if is_alias {
            findings.fault(format!("{name} is an alias (CNAME)"));
            continue;
        }
        let known = if is_in_zone {
            context.own_addresses(evidence, &name)
        } else {
            context.network.addresses(evidence, &name)
        };
        if known.is_empty() && live.is_empty() && is_in_zone {
            findings.skip(format!("no server of the zone answers, so the addresses of {name} are unknown"));
        } else if known.is_empty() && context.options.undelegated.is_some() && !glue.is_empty() {
            findings.skip(format!("{name} cannot be looked up"));
        } else {
            findings.check(known.is_empty().then(|| format!("{name} has no address")));
        }
    }
    findings.outcome()
}

fn different_networks(context: &mut ZoneContext, _: &mut Evidence) -> Outcome {
    if let Some(outcome) = no_address(context) {
        return outcome;
    }
    let mut findings = Findings::default();
    findings.good();
    let all = all_addresses(context);
    let has_one_network = all.iter().map(network).collect::<BTreeSet<String>>().len() == 1;
    // RFC 2182 §3.1 is about servers for all parts of the Internet.
    let is_fault = has_one_network && all.iter().all(is_global);
    for (family, is_of_family) in FAMILIES {
        let of_family: Vec<&IpAddr> = all.iter().filter(|address| is_of_family(address)).collect();
        let networks: BTreeSet<String> = of_family.iter().map(|address| network(address)).collect();
        if of_family.len() > 1 && networks.len() == 1 {
            let text = format!("all {} {family} addresses are in {}", of_family.len(), list(networks));
            if is_fault { findings.fault(text) } else { findings.note(text) }
        }
    }
    findings.outcome()
}

/// The network of an address: /24 for IPv4, /48 for IPv6.
fn network(address: &IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{}/24", Ipv4Addr::from_bits(address.to_bits() & 0xffff_ff00)),
        IpAddr::V6(address) => format!("{}/48", Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 80))),
    }
}

fn global_addresses(context: &mut ZoneContext, _: &mut Evidence) -> Outcome {
    if let Some(outcome) = no_address(context) {
        return outcome;
    }
    let all = all_addresses(context);
    let parent = context.parent().map(|parent| parent.servers.as_slice()).unwrap_or_default();
    let is_public = all.iter().any(is_global) || parent.iter().any(|server| is_global(&server.address.ip()));
    let mut findings = Findings::default();
    for address in all {
        match special_use(address) {
            None => findings.good(),
            Some(SpecialUse::Local(name)) if !is_public => {
                findings.good();
                findings.note(format!("{address} is not globally reachable: {name}"));
            }
            Some(SpecialUse::Local(name)) => {
                findings.fault(format!(
                    "{address} is not globally reachable: {name}, and the zone is on the Internet"
                ));
            }
            Some(SpecialUse::NoHost(name)) => {
                findings.fault(format!("no host has the address {address}: {name}"))
            }
        }
    }
    findings.outcome()
}

/// A special use of addresses that are not globally reachable (RFC 8190 §2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpecialUse {
    /// Hosts of a limited network have such addresses.
    Local(&'static str),
    /// No host that others can query has such an address.
    NoHost(&'static str),
}

fn is_global(address: &IpAddr) -> bool {
    special_use(*address).is_none()
}

/// The special use of an address that is not globally reachable (IANA special-purpose address registries,
/// RFC 6890 §2.2.2 and §2.2.3); `None` for other addresses.
fn special_use(address: IpAddr) -> Option<SpecialUse> {
    match address {
        IpAddr::V4(address) => special_use_ipv4(address),
        IpAddr::V6(address) => special_use_ipv6(address),
    }
}

fn special_use_ipv4(address: Ipv4Addr) -> Option<SpecialUse> {
    Some(match address.octets() {
        [0, ..] => SpecialUse::NoHost("this network (RFC 791)"),
        [127, ..] => SpecialUse::Local("loopback (RFC 1122)"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => SpecialUse::Local("private use (RFC 1918)"),
        [100, 64..=127, ..] => SpecialUse::Local("shared address space (RFC 6598)"),
        [169, 254, ..] => SpecialUse::Local("link-local (RFC 3927)"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            SpecialUse::NoHost("documentation (RFC 5737)")
        }
        [198, 18 | 19, ..] => SpecialUse::Local("benchmarking (RFC 2544)"),
        [224..=239, ..] => SpecialUse::NoHost("multicast (RFC 5771)"),
        [240..=255, ..] => SpecialUse::NoHost("reserved (RFC 1112)"),
        _ => return None,
    })
}

fn special_use_ipv6(address: Ipv6Addr) -> Option<SpecialUse> {
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => SpecialUse::Local("loopback (RFC 4291)"),
        [0, 0, 0, 0, 0, 0, ..] => SpecialUse::NoHost("unspecified or IPv4-compatible (RFC 4291)"),
        [0, 0, 0, 0, 0, 0xffff, ..] => SpecialUse::NoHost("IPv4-mapped (RFC 4291)"),
        [0x2001, 0x0db8, ..] => SpecialUse::NoHost("documentation (RFC 3849)"),
        [first, ..] if first & 0xfe00 == 0xfc00 => SpecialUse::Local("private use (RFC 4193)"),
        [first, ..] if first & 0xffc0 == 0xfe80 => SpecialUse::Local("link-local (RFC 4291)"),
        [first, ..] if first >= 0xff00 => SpecialUse::NoHost("multicast (RFC 4291)"),
        _ => return None,
    })
}

fn address_families(context: &mut ZoneContext, _: &mut Evidence) -> Outcome {
    if let Some(outcome) = no_address(context) {
        return outcome;
    }
    let is_public = all_addresses(context).iter().any(is_global);
    let mut findings = Findings::default();
    for (family, is_of_family) in FAMILIES {
        let has_one = |nameserver: &&Nameserver| addresses(nameserver).iter().any(is_of_family);
        let count = context.discovery.nameservers.iter().filter(has_one).count();
        match count {
            0 if is_public || family == "IPv4" => {
                findings.fault(format!("no nameserver has an {family} address"))
            }
            0 => findings.note(format!("no nameserver has an {family} address")),
            1..OF_FAMILY if is_public => {
                findings
                    .fault(format!("{count} nameserver has an {family} address, the minimum is {OF_FAMILY}"));
            }
            _ => findings.good(),
        }
    }
    let without_route = &context.discovery.unreachable;
    if !without_route.is_empty() {
        let text = list(without_route.iter().map(|server| server.address.ip()));
        findings.skip(format!("this machine has no route to {text}"));
    }
    findings.outcome()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_global_are_known() {
        let use_of = |text: &str| special_use(text.parse().expect("an address"));
        for address in ["127.53.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1"] {
            assert!(matches!(use_of(address), Some(SpecialUse::Local(_))), "{address}");
        }
        for address in ["198.18.0.1", "::1", "fd00::1", "fe80::1"] {
            assert!(matches!(use_of(address), Some(SpecialUse::Local(_))), "{address}");
        }
        for address in ["192.0.2.1", "224.0.0.1", "255.255.255.255", "0.0.0.0"] {
            assert!(matches!(use_of(address), Some(SpecialUse::NoHost(_))), "{address}");
        }
        for address in ["::", "::1.2.3.4", "::ffff:1.2.3.4", "2001:db8::1", "ff02::1"] {
            assert!(matches!(use_of(address), Some(SpecialUse::NoHost(_))), "{address}");
        }
        for address in ["198.41.0.4", "172.32.0.1", "100.128.0.1", "2001:503:ba3e::2:30", "2620::1"] {
            assert_eq!(use_of(address), None, "{address}");
        }
    }

    #[test]
    fn networks_have_the_usual_lengths() {
        let of = |text: &str| network(&text.parse().expect("an address"));
        assert_eq!(of("192.0.2.77"), "192.0.2.0/24");
        assert_eq!(of("2001:db8:1:2::3"), "2001:db8:1::/48");
    }
}
