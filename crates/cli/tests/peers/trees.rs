//! `nonesuch lab tree`: a written tree is served as its configurations state, and Unbound finds the
//! expected result of each question.

use crate::common;
use common::configured::Configured;
use common::{ask, done, folder, peers, text};
use nonesuch_lab::peers::{Peer, PeerServer, ResolverSetup, Setup, StubZone, Upstream};
use nonesuch_lab::tree::{FAULTS, Fault, FaultScope};
use nonesuch_proto::Rtype;
use nonesuch_testing::require_peer;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(20);
const SERVFAIL: u8 = 2;
/// Questions to ask of each zone and fault.
const QUESTIONS: usize = 3;

/// The results of Unbound 1.17 that differ from those of a validator with the limits of
/// `docs/validation.md`.
const DIFFERENT: [(Fault, &str); 5] = [
    // Unbound ignores the REVOKE flag of keys that are not trust anchors. RFC 5011 §2.1 forbids
    // any use of a revoked key.
    (Fault::RevokedKey, "secure"),
    // Unbound computes the hashes of this zone in several steps.
    (Fault::DeepNsec3, "secure"),
    // The limit of Unbound is 150 iterations.
    (Fault::Nsec3Iterations51, "secure"),
    // The other classes of these faults are in `validators/classes.rs`.
    (Fault::WrongSha256Ds, "secure"),
    (Fault::DelegationBitAboveName, "insecure"),
];

/// A zone for each fault of data and each of these mechanisms, and one for each mechanism with
/// online signing. Delegations on other ports than 53 cannot be followed, so there are no faults of
/// servers.
fn description() -> String {
    let mut text = String::from(
        "port = 0\n[[zone]]\norigin = \".\"\n[[zone]]\norigin = \"example.\"\ndenial = \"nsec3\"\n",
    );
    for denial in ["minimal-nsec", "compact", "white-lies"] {
        let _ = write!(
            text,
            "[[zone]]\norigin = \"{denial}.example.\"\ndenial = \"{denial}\"\nserver = \"127.53.1.1\"\n"
        );
    }
    for row in FAULTS.iter().filter(|row| row.scope != FaultScope::Servers) {
        for denial in ["nsec", "nsec3"] {
            let only = match row.fault {
                Fault::NextNameOutsideZone => "nsec",
                Fault::MissingClosestEncloser | Fault::MixedDenial => "nsec3",
                _ if row.name.contains("nsec3") => "nsec3",
                _ => denial,
            };
            let signed = row.fault != Fault::DsForUnsignedZone;
            if denial == only {
                let _ = write!(
                    text,
                    "[[zone]]\norigin = \"{}-{denial}.example.\"\ndenial = \"{denial}\"\nsigned = {signed}\n\
                     server = \"127.53.1.1\"\nfaults = [{{ fault = \"{}\" }}]\n",
                    row.name, row.name
                );
            }
        }
    }
    text
}

/// Starts Unbound, which asks the server of each zone directly.
fn start_unbound(
    folder: &Path,
    anchor: &Path,
    zones: impl Iterator<Item = (String, SocketAddr)>,
) -> PeerServer {
    let stubs = zones.map(|(zone, server)| StubZone { zone, server }).collect();
    let anchors = fs::read_to_string(anchor).expect("a trust anchor");
    let resolver = ResolverSetup {
        upstream: Upstream::Stubs(stubs),
        anchors: anchors.lines().map(peers::anchor).collect(),
        ..ResolverSetup::default()
    };
    peers::start(
        Peer::Unbound,
        &Setup { resolver, lines: "  qname-minimisation: no\n".to_owned(), ..Setup::new(folder) },
    )
}

/// Unbound's result in the words of `expected.csv`; `failure` is a form of `bogus`. A query is sent
/// up to three times: Unbound may drop one while it computes hashes on a busy machine.
fn result_of(unbound: &PeerServer, name: &str, rtype: Rtype) -> &'static str {
    let header = (0..3)
        .find_map(|_| ask(unbound.address, name, rtype.0, WAIT))
        .unwrap_or_else(|| panic!("{name} {rtype}: no response"));
    match (header.rcode, header.authenticated) {
        (SERVFAIL, _) => "bogus",
        (_, true) => "secure",
        (_, false) => "insecure",
    }
}

#[test]
fn unbound_finds_the_expected_results_of_a_tree() {
    require_peer!("unbound");
    let folder = folder();
    let (file, out) = (folder.path().join("tree.toml"), folder.path().join("tree"));
    fs::write(&file, description()).expect("written");
    let shown = done(["lab", "tree", text(&file), "--out", text(&out), "--json"]).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    // All files are found before the servers write their logs to the same directory.
    let configurations: Vec<_> = fs::read_dir(out.join("servers")).expect("a directory").flatten().collect();
    let servers: Vec<Configured> =
        configurations.iter().map(|entry| Configured::start(&entry.path())).collect();
    let server_of = |address: &str| {
        let found = servers.iter().find(|server| server.address.ip().to_string() == address);
        found.expect("a server for each address").address
    };
    let zones = shown["zones"].as_array().expect("zones").iter().map(|zone| {
        let text = |key: &str| zone[key].as_str().expect("text").to_owned();
        (text("origin"), server_of(&text("server")))
    });
    let unbound = start_unbound(folder.path(), &out.join("anchor.ds"), zones);
    let expected = fs::read_to_string(out.join("expected.csv")).expect("expected results");
    let (mut asked, mut differ): (BTreeMap<String, usize>, Vec<String>) = Default::default();
    for line in expected.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [name, rtype, outcome, _, fault] = fields[..] else { panic!("{line}") };
        let name = name.trim_matches('"');
        let zone = name.rsplit('.').nth(2).unwrap_or_default();
        let count = asked.entry(format!("{zone} {fault} {rtype}")).or_default();
        *count += 1;
        if *count > QUESTIONS {
            continue;
        }
        let other = DIFFERENT.iter().find(|(known, _)| known.to_string() == fault);
        let wanted = other.map_or(outcome, |(_, result)| result).replace("failure", "bogus");
        let found = result_of(&unbound, name, rtype.parse().expect("a type"));
        if found != wanted {
            differ.push(format!("{line}: {found}"));
        }
    }
    assert!(asked.len() > 100 && differ.is_empty(), "{} questions:\n{}", asked.len(), differ.join("\n"));
}
