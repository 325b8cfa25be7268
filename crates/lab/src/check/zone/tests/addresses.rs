//! Items about the addresses of nameservers, with addresses of the Internet. No query is sent.

use super::{NOW, ZONE, name};
use crate::check::zone::context::Nameserver;
use crate::check::zone::discover::Discovery;
use crate::check::zone::lookup::{PathZone, Server};
use crate::check::zone::{Source, Undelegated, ZoneCheckOptions, ZoneContext, items};
use crate::check::{Evidence, Outcome};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// A context without servers.
fn context() -> ZoneContext {
    ZoneContext::new(ZoneCheckOptions {
        zone: name(ZONE),
        source: Source::Resolvers(Vec::new()),
        undelegated: Some(Undelegated::default()),
        anchors: Vec::new(),
        port: 53,
        timeout: Duration::from_millis(300),
        attempts: 1,
        rate: 1000.0,
        now: NOW,
    })
}

/// The outcome of an item for a zone with these addresses of the parent's servers and of each nameserver.
fn outcome(id: &str, parent: &[&str], nameservers: &[&[&str]]) -> Outcome {
    let server = |text: &&str| Server { name: name("ns.example."), address: SocketAddr::new(ip(text), 53) };
    let servers = parent.iter().map(server).collect();
    let nameserver = |(number, addresses): (usize, &&[&str])| Nameserver {
        name: name(&format!("ns{number}.zone.example.")),
        is_in_parent: true,
        is_in_child: true,
        glue: Vec::new(),
        addresses: addresses.iter().map(|text| ip(text)).collect(),
    };
    let mut context = context();
    context.discovery = Discovery {
        path: vec![PathZone { zone: name("example."), servers, flags: 0 }],
        nameservers: nameservers.iter().enumerate().map(nameserver).collect(),
        ..Discovery::default()
    };
    let row = items().find(|row| row.item.id == id).expect("an item");
    (row.run)(&mut context, &mut Evidence::default())
}

/// The text of a failure.
fn fault(outcome: Outcome) -> String {
    match outcome {
        Outcome::Fail(text) => text,
        other => panic!("{other:?}"),
    }
}

/// The notes of a pass.
fn notes(outcome: Outcome) -> String {
    match outcome {
        Outcome::Pass(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_network_for_all_nameservers_on_the_internet_is_a_fault() {
    let check = |nameservers: &[&[&str]]| outcome("Z-012", &[], nameservers);
    let text = fault(check(&[&["198.41.0.4"], &["198.41.0.5"]]));
    assert_eq!(text, "all 2 IPv4 addresses are in 198.41.0.0/24");
    let text = fault(check(&[&["2001:503:ba3e::1"], &["2001:503:ba3e::2"]]));
    assert_eq!(text, "all 2 IPv6 addresses are in 2001:503:ba3e::/48");
    // A second route.
    let text = notes(check(&[&["198.41.0.4", "2001:503:ba3e::1"], &["198.41.0.5", "2001:503:ba3e::2"]]));
    assert!(text.contains("2 IPv4 addresses") && text.contains("2 IPv6 addresses"), "{text}");
    assert_eq!(notes(check(&[&["198.41.0.4"], &["192.33.4.12"]])), "");
    let text = notes(check(&[&["10.0.0.1"], &["10.0.0.2"]]));
    assert!(text.contains("10.0.0.0/24"), "{text}");
}

#[test]
fn addresses_of_limited_networks_are_a_fault_on_the_internet() {
    let check = |parent: &[&str], nameservers: &[&[&str]]| outcome("Z-013", parent, nameservers);
    assert_eq!(notes(check(&["198.41.0.4"], &[&["192.33.4.12"]])), "");
    let text = notes(check(&["10.0.0.1"], &[&["10.0.0.2"], &["fd00::2"]]));
    assert!(text.contains("RFC 1918") && text.contains("RFC 4193"), "{text}");
    let text = fault(check(&["198.41.0.4"], &[&["10.0.0.2"]]));
    assert!(text.contains("10.0.0.2 is not globally reachable"), "{text}");
    let text = fault(check(&["10.0.0.1"], &[&["10.0.0.2"], &["192.33.4.12"]]));
    assert!(text.contains("10.0.0.2 is not globally reachable"), "{text}");
    for address in ["0.0.0.0", "192.0.2.1", "224.0.0.1", "::ffff:198.41.0.4", "2001:db8::1"] {
        let text = fault(check(&["10.0.0.1"], &[&[address]]));
        assert!(text.contains(&format!("no host has the address {address}")), "{text}");
    }
}

#[test]
fn a_zone_on_the_internet_needs_two_nameservers_of_each_family() {
    let check = |nameservers: &[&[&str]]| outcome("Z-014", &[], nameservers);
    let (first, second) = (["198.41.0.4", "2001:503:ba3e::1"], ["192.33.4.12", "2001:500:2::c"]);
    assert_eq!(notes(check(&[&first, &second])), "");
    let text = fault(check(&[&first, &second[..1]]));
    assert_eq!(text, "1 nameserver has an IPv6 address, the minimum is 2");
    assert_eq!(fault(check(&[&first[..1], &second[..1]])), "no nameserver has an IPv6 address");
    assert_eq!(notes(check(&[&["10.0.0.1"]])), "no nameserver has an IPv6 address");
    assert_eq!(fault(check(&[&["fd00::1"]])), "no nameserver has an IPv4 address");
}
