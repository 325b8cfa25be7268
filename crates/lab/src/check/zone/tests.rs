//! Each item passes on a sound local tree, and fails on one with the fault.

mod addresses;
mod server;

use super::*;
use crate::check::{Outcome, Selection, run_rows};
use crate::report::PartStatus;
use crate::tree::{Fault, PlantedFault, Tree, ZoneDescription};
use nonesuch_crypto::DigestType;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_proto::message::{Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Rtype};
use server::{CHILD, Change, NOW, PARENT, ROOT, Reply, Servers, Sockets};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

const ZONE: &str = "zone.example.";

type Results = BTreeMap<&'static str, Outcome>;

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn options(servers: &Servers, tree: &Tree) -> ZoneCheckOptions {
    let [a, b, c] = servers.prefix;
    let anchor = |rdata| TrustAnchor { zone: Name::root(), rtype: Rtype::DS, rdata };
    ZoneCheckOptions {
        zone: name(ZONE),
        source: Source::Root(vec![(name("a.root-server."), [a, b, c, ROOT].into())]),
        undelegated: None,
        anchors: tree.anchor_ds().into_iter().map(anchor).collect(),
        port: servers.port,
        timeout: Duration::from_millis(300),
        attempts: 1,
        rate: 1000.0,
        now: NOW,
    }
}

/// Runs all items.
fn run(options: ZoneCheckOptions) -> Results {
    let mut context = ZoneContext::new(options);
    let rows = Selection::default().select(items()).expect("all items");
    let results = run_rows(&rows, &mut context, &mut |_, _| {});
    results.into_iter().map(|result| (result.item.id, result.outcome)).collect()
}

/// Runs all items on the tree of the tests, with changes of the description and of responses.
fn check(describe: impl Fn(&mut ZoneDescription), change: Change) -> Results {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|description| description.zones.iter_mut().for_each(&describe)));
    let servers = sockets.serve(|_| Arc::clone(&tree), change);
    run(options(&servers, &tree))
}

/// The items that failed.
fn failed(results: &Results) -> Vec<&'static str> {
    let failed = results.iter().filter(|(_, outcome)| matches!(outcome, Outcome::Fail(_)));
    failed.map(|(id, _)| *id).collect()
}

/// Panics unless these items fail, and no others.
fn assert_failed(results: &Results, expected: &[&str], case: &str) {
    assert_eq!(failed(results), expected, "{case}: {results:#?}");
}

fn in_child(change: impl Fn(&mut ZoneDescription)) -> impl Fn(&mut ZoneDescription) {
    move |zone| {
        if zone.origin == ZONE {
            change(zone);
        }
    }
}

fn with_fault(fault: Fault) -> impl Fn(&mut ZoneDescription) {
    in_child(move |zone| zone.faults.push(PlantedFault::new(fault)))
}

fn unchanged(_: &mut Reply) {}

#[test]
fn a_sound_zone_passes_every_item() {
    let results = check(|_| {}, unchanged);
    assert_failed(&results, &[], "NSEC");
    let not_testable: Vec<&str> = results
        .iter()
        .filter(|(_, outcome)| matches!(outcome, Outcome::NotTestable(_)))
        .map(|(id, _)| *id)
        .collect();
    // Neither CDS records nor NSEC3.
    assert_eq!(not_testable, ["Z-044", "Z-045", "Z-062"], "{results:#?}");
    let nsec3 = check(in_child(|zone| zone.denial = Mechanism::Nsec3), unchanged);
    assert_failed(&nsec3, &[], "NSEC3");
    assert!(matches!(nsec3["Z-062"], Outcome::Pass(_)));
    let opt_out = check(in_child(|zone| zone.denial = Mechanism::Nsec3OptOut), unchanged);
    assert_failed(&opt_out, &[], "opt-out");
    let nsec5 = check(in_child(|zone| zone.denial = Mechanism::Nsec5), unchanged);
    // The alias numbers for NSEC5 are not assigned.
    assert_failed(&nsec5, &["Z-050"], "NSEC5");
}

#[test]
fn an_unsigned_zone_passes_and_its_dnssec_items_are_not_testable() {
    let unsigned = in_child(|zone| (zone.signed, zone.ds) = (false, false));
    let results = check(unsigned, unchanged);
    assert_failed(&results, &[], "unsigned");
    for id in ["Z-040", "Z-050", "Z-053", "Z-060"] {
        assert!(matches!(results[id], Outcome::NotTestable(_)), "{id} {results:#?}");
    }
    let Outcome::Pass(note) = &results["Z-056"] else { panic!("{results:#?}") };
    assert!(note.starts_with("insecure: "), "{note}");
    let island = check(in_child(|zone| zone.ds = false), unchanged);
    assert_failed(&island, &[], "island");
    assert!(matches!(&island["Z-040"], Outcome::NotTestable(reason) if reason.contains("island")));
}

/// Faults of responses, with the items that fail.
const RESPONSE_FAULTS: &[(&str, &[&str], Change)] = &[
    ("a parent server without the delegation", &["Z-001", "Z-002"], |reply| {
        if reply.server == PARENT[1] && reply.name == name(ZONE) && reply.rtype == Rtype::NS {
            reply.set_rcode(Rcode::NXDOMAIN);
        }
    }),
    ("a parent server that refuses", &["Z-001"], |reply| {
        if reply.server == PARENT[1] && reply.name == name(ZONE) && reply.rtype == Rtype::NS {
            reply.set_rcode(Rcode::REFUSED);
        }
    }),
    ("a parent server with fewer NS records", &["Z-002"], |reply| {
        if reply.server == PARENT[1] {
            retain(reply, |record| {
                record.rtype != Rtype::NS || record.rdata != name("ns2.zone.example.").wire()
            });
        }
    }),
    ("a parent server with another DS RRset", &["Z-002"], |reply| {
        if reply.server == PARENT[1] && reply.rtype == Rtype::DS {
            reply.edit(|record| {
                if record.rtype == Rtype::DS {
                    record.rdata[5] ^= 1;
                }
            });
        }
    }),
    ("the zone names one nameserver more", &["Z-003", "Z-011"], |reply| {
        let is_apex_ns = |record: &Record| record.rtype == Rtype::NS && record.section == Section::Answer;
        let extra =
            reply.message.iter().flat_map(|message| &message.records).find(|record| is_apex_ns(record));
        let extra = extra.filter(|record| record.owner == name(ZONE)).cloned();
        if let (Some(mut extra), Some(message)) = (extra, &mut reply.message) {
            extra.rdata = name("ns9.zone.example.").wire().to_vec();
            message.records.push(extra);
        }
    }),
    ("no glue", &["Z-004"], |reply| {
        if PARENT.contains(&reply.server) {
            retain(reply, |record| record.owner != name("ns2.zone.example."));
        }
    }),
    ("outdated glue", &["Z-005"], |reply| {
        if PARENT.contains(&reply.server) {
            reply.edit(|record| {
                if record.owner == name("ns2.zone.example.") && record.rtype == Rtype::A {
                    record.rdata[3] = CHILD[0];
                }
            });
        }
    }),
    ("a referral of more than 512 octets without EDNS", &["Z-006"], |reply| {
        if PARENT.contains(&reply.server) && reply.version.is_none() {
            reply.limit = usize::MAX;
            let message = reply.message.as_mut();
            let copies = message.iter().flat_map(|message| message.records.clone());
            let copies: Vec<Record> = copies.filter(|record| record.rtype == Rtype::A).collect();
            message.into_iter().for_each(|message| {
                message.records.extend(std::iter::repeat_n(copies.clone(), 20).flatten())
            });
        }
    }),
    ("one server does not answer over UDP", &["Z-020"], |reply| {
        if reply.server == CHILD[1] && !reply.is_tcp {
            reply.message = None;
        }
    }),
    ("one server does not answer over TCP", &["Z-021"], |reply| {
        if reply.server == CHILD[1] && reply.is_tcp {
            reply.message = None;
        }
    }),
    ("one server refuses the zone", &["Z-022"], |reply| {
        if reply.server == CHILD[1] {
            reply.set_rcode(Rcode::REFUSED);
        }
    }),
    ("one server is not authoritative", &["Z-022"], |reply| {
        if reply.server == CHILD[1]
            && let Some(message) = &mut reply.message
        {
            message.header.flags &= !flags::AA;
        }
    }),
    ("no OPT record in responses", &["Z-023", "Z-024"], |reply| {
        if CHILD.contains(&reply.server) {
            retain(reply, |record| record.rtype != Rtype::OPT);
        }
    }),
    ("queries with EDNS are dropped", &["Z-020", "Z-023"], |reply| {
        if reply.server == CHILD[1] && reply.version.is_some() && !reply.is_tcp {
            reply.message = None;
        }
    }),
    ("unknown EDNS versions are answered", &["Z-024"], |reply| {
        if CHILD.contains(&reply.server) && reply.version == Some(1) {
            reply.edit(|record| record.ttl &= 0xffff);
        }
    }),
    ("queries with EDNS version 1 are dropped", &["Z-024"], |reply| {
        if CHILD.contains(&reply.server) && reply.version == Some(1) {
            reply.message = None;
        }
    }),
    ("recursion for everyone", &["Z-025"], |reply| {
        if reply.server == CHILD[0]
            && reply.name == name("nonesuch-check.invalid.")
            && let Some(message) = &mut reply.message
        {
            message.header.flags = flags::QR | flags::RA | Rcode::NXDOMAIN.0;
        }
    }),
    ("an older serial", &["Z-030"], |reply| {
        if reply.server == CHILD[1] {
            edit_soa(reply, 0, 0);
        }
    }),
    ("another refresh", &["Z-031"], |reply| {
        if reply.server == CHILD[1] {
            edit_soa(reply, 1, 7201);
        }
    }),
    ("fewer NS records on one server", &["Z-003", "Z-032"], |reply| {
        if reply.server == CHILD[1] && reply.rtype == Rtype::NS {
            retain(reply, |record| {
                record.rtype != Rtype::NS || record.rdata != name("ns2.zone.example.").wire()
            });
        }
    }),
    ("expire below refresh", &["Z-035"], |reply| edit_soa(reply, 3, 7000)),
    ("expire below retry", &["Z-035"], |reply| edit_soa(reply, 2, u32::MAX)),
    ("no DNSKEY RRset over TCP", &["Z-033", "Z-034", "Z-040", "Z-055"], |reply| {
        if reply.server == CHILD[1] && reply.rtype == Rtype::DNSKEY {
            reply.limit = 100;
            if reply.is_tcp {
                reply.message = None;
            }
        }
    }),
    ("a DNSKEY response above the payload size", &["Z-055"], |reply| {
        if CHILD.contains(&reply.server) && reply.rtype == Rtype::DNSKEY {
            reply.limit = usize::MAX;
            let added = record(Section::Additional, Rtype(65_280), vec![0; 1300]);
            reply.message.iter_mut().for_each(|message| message.records.push(added.clone()));
        }
    }),
    ("a denial without SOA record", &["Z-063"], |reply| {
        if CHILD.contains(&reply.server) && reply.name == name("nonesuch-zone-check.zone.example.") {
            retain(reply, |record| record.rtype != Rtype::SOA);
        }
    }),
    ("another TTL of denial records", &["Z-063"], |reply| {
        reply.edit(|record| {
            if record.rtype == Rtype::NSEC {
                record.ttl = 300;
            }
        });
    }),
    ("no denial records", &["Z-034", "Z-060", "Z-061"], |reply| {
        if reply.server == CHILD[1] {
            retain(reply, |record| record.rtype != Rtype::NSEC);
        }
    }),
    ("an alias as nameserver", &["Z-005", "Z-011"], |reply| {
        if CHILD.contains(&reply.server) && reply.name == name("ns2.zone.example.") {
            reply.edit(|record| {
                if record.rtype == Rtype::A {
                    (record.rtype, record.rdata) = (Rtype::CNAME, name("ns1.zone.example.").wire().to_vec());
                }
            });
        }
    }),
];

/// A record at the apex of the zone.
fn record(section: Section, rtype: Rtype, rdata: Vec<u8>) -> Record {
    Record { section, owner: name(ZONE), rtype, class: Class::IN, ttl: 1, rdata }
}

fn retain(reply: &mut Reply, keep: impl Fn(&Record) -> bool) {
    if let Some(message) = &mut reply.message {
        message.records.retain(keep);
    }
}

/// Sets a number of the SOA record, without its signature becoming part of the test.
fn edit_soa(reply: &mut Reply, field: usize, value: u32) {
    reply.edit(|record| {
        if record.rtype == Rtype::SOA && record.owner == name(ZONE) {
            let at = record.rdata.len() - 20 + 4 * field;
            record.rdata[at..at + 4].copy_from_slice(&value.to_be_bytes());
        }
    });
}

#[test]
fn faults_of_responses_are_found() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|_| {}));
    drop(sockets);
    for (case, expected, change) in RESPONSE_FAULTS {
        let servers = Sockets::bind().serve(|_| Arc::clone(&tree), *change);
        let results = run(options(&servers, &tree));
        // A change of the data of a signed RRset also breaks its signature, and with it the chain of trust.
        let broken = ["Z-053", "Z-056", "Z-060", "Z-061"];
        let edits_data = ["Z-030", "Z-031", "Z-032", "Z-035", "Z-003", "Z-005", "Z-011"];
        let is_edit = expected.iter().any(|id| edits_data.contains(id));
        let found: Vec<&str> = failed(&results)
            .into_iter()
            .filter(|id| expected.contains(id) || !(is_edit && broken.contains(id)))
            .collect();
        assert_eq!(found, *expected, "{case}: {results:#?}");
    }
}

/// Faults of the zone or its delegation, with the items that fail.
const ZONE_FAULTS: [(Fault, &[&str]); 18] = [
    (Fault::WrongDsDigest, &["Z-040", "Z-041", "Z-056"]),
    (Fault::WrongDsTag, &["Z-040", "Z-041", "Z-056"]),
    (Fault::DsAlgorithmMismatch, &["Z-040", "Z-041", "Z-042", "Z-056"]),
    (Fault::DsForZsk, &["Z-041", "Z-056"]),
    (Fault::StandbyDs, &[]),
    (Fault::KnownAndUnknownDsAlgorithm, &["Z-042"]),
    (Fault::Sha1Ds, &["Z-043"]),
    (Fault::KnownAndUnknownDsDigest, &["Z-043"]),
    (Fault::RevokedKey, &["Z-040", "Z-041", "Z-056"]),
    (Fault::NoZoneKeyFlag, &["Z-040", "Z-041", "Z-056", "Z-060", "Z-061"]),
    (Fault::WrongProtocol, &["Z-040", "Z-041", "Z-051", "Z-056", "Z-060", "Z-061"]),
    (Fault::MissingDnskey, &["Z-040", "Z-056"]),
    (Fault::UnsignedDnskey, &["Z-041", "Z-042", "Z-052", "Z-053", "Z-056"]),
    (Fault::UnknownAlgorithmKey, &["Z-050", "Z-052"]),
    (Fault::ExpiredSignature, &["Z-041", "Z-042", "Z-053", "Z-056", "Z-060", "Z-061"]),
    (Fault::SignatureNotYetValid, &["Z-041", "Z-042", "Z-053", "Z-056", "Z-060", "Z-061"]),
    (Fault::MissingDenial, &["Z-060", "Z-061"]),
    (Fault::ExpiredDenial, &["Z-060", "Z-061"]),
];

#[test]
fn faults_of_the_zone_are_found() {
    for (fault, expected) in ZONE_FAULTS {
        assert_failed(&check(with_fault(fault), unchanged), expected, &fault.to_string());
    }
    let parameters = in_child(|zone| {
        (zone.denial, zone.iterations, zone.salt) = (Mechanism::Nsec3, 10, "aabb".to_owned());
    });
    assert_failed(&check(parameters, unchanged), &["Z-062"], "NSEC3 parameters");
}

#[test]
fn different_keys_of_the_servers_are_found() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|_| {}));
    let other = Arc::new(sockets.tree(|description| {
        description.zones[2].csk = true;
    }));
    let served = Arc::clone(&tree);
    let servers =
        sockets.serve(move |last| Arc::clone(if last == CHILD[1] { &other } else { &served }), unchanged);
    let results = run(options(&servers, &tree));
    assert_failed(&results, &["Z-033", "Z-034", "Z-040", "Z-041"], "keys");
}

#[test]
fn requests_for_new_ds_records_are_checked() {
    let sockets = Sockets::bind();
    let tree = sockets.tree(|_| {});
    drop(sockets);
    let key = tree.zones[2].entry_points[0].clone();
    let ds = ds_rdata(name(ZONE).view(), &key, DigestType::SHA256).expect("a digest");
    let hex = |octets: &[u8]| data_encoding::HEXLOWER.encode(octets);
    let cds = |rdata: &[u8]| format!("@ CDS \\# {} {}\n", rdata.len(), hex(rdata));
    let cdnskey = |rdata: &[u8]| format!("@ CDNSKEY \\# {} {}\n", rdata.len(), hex(rdata));
    let with = |records: String| check(in_child(move |zone| zone.records.push_str(&records)), unchanged);
    let sound = with(cds(&ds) + &cdnskey(&key));
    assert_failed(&sound, &[], "CDS");
    assert!(matches!(sound["Z-045"], Outcome::Pass(_)), "{sound:#?}");
    let mut other = ds.clone();
    other[10] ^= 1;
    assert_failed(&with(cds(&other) + &cdnskey(&key)), &["Z-044", "Z-045"], "another digest");
    let deletion = with("@ CDS 0 0 0 00\n@ CDNSKEY 0 3 0 AA==\n".to_owned());
    assert_failed(&deletion, &[], "deletion");
    assert!(matches!(&deletion["Z-045"], Outcome::Pass(note) if note.contains("deletion")), "{deletion:#?}");
    let mixed = with(cds(&ds) + "@ CDS 0 0 0 00\n");
    assert!(failed(&mixed).contains(&"Z-044"), "{mixed:#?}");
    assert_failed(&with(cds(&[0, 1, 0, 0, 0])), &["Z-044"], "deletion with other fields");
}

#[test]
fn one_nameserver_or_one_address_is_found() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|description| {
        description.zones[1].records = String::new();
        description.zones[2].records = String::new();
    }));
    let servers = sockets.serve(|_| Arc::clone(&tree), unchanged);
    let results = run(options(&servers, &tree));
    // The second server of the parent is missing in the parent zone, but not in the root zone.
    assert_failed(&results, &["Z-010"], "one nameserver");
}

#[test]
fn advice_is_noted() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|_| {}));
    let servers = sockets.serve(|_| Arc::clone(&tree), unchanged);
    let mut late = options(&servers, &tree);
    late.now = NOW + 20 * 86_400;
    let results = run(late);
    assert_failed(&results, &[], "ten days before the expiration");
    let note = |id: &str| results[id].text().to_owned();
    assert!(note("Z-054").contains("SOA expire 14 days"), "{}", note("Z-054"));
    assert!(note("Z-012").contains("127.77.1.0/24"), "{}", note("Z-012"));
    assert!(note("Z-013").contains("loopback"), "{}", note("Z-013"));
    assert!(note("Z-014").contains("no nameserver has an IPv6 address"), "{}", note("Z-014"));
    assert!(note("Z-050").contains("RECOMMENDED"), "{}", note("Z-050"));
    assert!(note("Z-055").contains("octets with 2 keys"), "{}", note("Z-055"));
}

#[test]
fn signatures_that_expire_in_caches_are_found() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|_| {}));
    let servers = sockets.serve(|_| Arc::clone(&tree), unchanged);
    let mut late = options(&servers, &tree);
    late.now = NOW + 30 * 86_400 - 600;
    let results = run(late);
    assert_failed(&results, &["Z-054"], "ten minutes before the expiration");
    assert!(results["Z-054"].text().contains("before the TTL of 3600 s"), "{results:#?}");
}

/// The signatures of a new algorithm are published before its keys (RFC 6781 §4.1.4).
#[test]
fn a_signature_of_a_key_that_is_not_published_is_noted() {
    let results = check(
        |_| {},
        |reply| {
            if CHILD.contains(&reply.server)
                && reply.rtype == Rtype::SOA
                && let Some(message) = &mut reply.message
            {
                let signature = message.records.iter().find(|record| record.rtype == Rtype::RRSIG).cloned();
                message.records.extend(signature.map(|mut signature| {
                    // Ed25519.
                    signature.rdata[2] = 15;
                    signature
                }));
            }
        },
    );
    assert_failed(&results, &[], "a signature without a key");
    let note = results["Z-053"].text();
    assert!(note.contains("names a key that the DNSKEY RRset does not have"), "{note}");
}

#[test]
fn transfers_for_everyone_are_noted() {
    let results = check(
        |_| {},
        |reply| {
            if reply.server == CHILD[0]
                && reply.rtype == Rtype::AXFR
                && let Some(message) = &mut reply.message
            {
                message.header.flags = flags::QR | flags::AA;
                message.records.push(record(Section::Answer, Rtype::TXT, vec![0]));
            }
        },
    );
    assert_failed(&results, &[], "transfer");
    assert!(results["Z-026"].text().contains("sends a transfer"), "{results:#?}");
}

#[test]
fn a_zone_is_checked_before_its_delegation() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|_| {}));
    let servers = sockets.serve(|_| Arc::clone(&tree), unchanged);
    let [a, b, c] = servers.prefix;
    let address = |last| vec![[a, b, c, last].into()];
    let planned = |ds| {
        let nameservers = vec![
            (name("ns1.zone.example."), address(CHILD[0])),
            (name("ns2.zone.example."), address(CHILD[1])),
        ];
        let undelegated = Some(Undelegated { nameservers, ds });
        let source = Source::Resolvers(Vec::new());
        ZoneCheckOptions { undelegated, source, anchors: Vec::new(), ..options(&servers, &tree) }
    };
    let results = run(planned(tree.zones[2].ds.clone()));
    assert_failed(&results, &[], "planned");
    for id in ["Z-003", "Z-005", "Z-040", "Z-056"] {
        assert!(matches!(results[id], Outcome::Pass(_)), "{id} {results:#?}");
    }
    assert!(matches!(results["Z-001"], Outcome::NotTestable(_)));
    let mut wrong = tree.zones[2].ds[0].clone();
    wrong[5] ^= 1;
    assert_failed(&run(planned(vec![wrong])), &["Z-040", "Z-041", "Z-056"], "wrong DS");
    let mut only_ipv6 = planned(Vec::new());
    only_ipv6.undelegated = Some(Undelegated {
        nameservers: vec![(name("ns.other."), vec!["::1".parse().expect("an address")])],
        ds: Vec::new(),
    });
    assert!(failed(&run(only_ipv6)).contains(&"Z-014"));
}

#[test]
fn servers_that_do_not_answer_end_the_check_in_bounded_time() {
    let silent: Change = |reply| reply.message = None;
    let started_at = Instant::now();
    let results = check(|_| {}, silent);
    assert_failed(&results, &["Z-001"], "all silent");
    let only_child: Change = |reply| {
        if CHILD.contains(&reply.server) {
            reply.message = None;
        }
    };
    let results = check(|_| {}, only_child);
    assert_eq!(failed(&results), ["Z-020", "Z-021"], "{results:#?}");
    assert!(started_at.elapsed() < Duration::from_secs(20));
}

#[test]
fn servers_that_send_garbage_end_the_check_in_bounded_time() {
    let started_at = Instant::now();
    // No response to any query; a response that cannot be parsed; a message of one octet.
    let other: Change = |reply| reply.raw = Some(vec![0xff; 100]);
    let malformed: Change =
        |reply| reply.raw = Some([&[0, 0, 0x84, 3, 0, 0, 0, 9, 0, 0, 0, 0][..], &[7; 30]].concat());
    let short: Change = |reply| reply.raw = Some(vec![0]);
    for change in [other, malformed, short] {
        assert_failed(&check(|_| {}, change), &["Z-001"], "all servers");
    }
    let only_child: Change = |reply| {
        if CHILD.contains(&reply.server) {
            reply.raw = Some([&[0, 0, 0x84, 3, 0, 0, 0, 9, 0, 0, 0, 0][..], &[7; 30]].concat());
        }
    };
    let results = check(|_| {}, only_child);
    assert_failed(&results, &["Z-020", "Z-021"], "the zone's servers");
    assert!(results["Z-020"].text().contains("malformed"), "{results:#?}");
    assert!(started_at.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_zone_without_delegation_is_reported() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|_| {}));
    let servers = sockets.serve(|_| Arc::clone(&tree), unchanged);
    for zone in ["missing.example.", "a.b.c.missing.example.", "missing."] {
        let results = run(ZoneCheckOptions { zone: name(zone), ..options(&servers, &tree) });
        assert_failed(&results, &["Z-001"], zone);
    }
    let root = run(ZoneCheckOptions { zone: Name::root(), ..options(&servers, &tree) });
    // One server.
    assert_failed(&root, &["Z-010"], "the root zone");
}

#[test]
fn nameservers_that_depend_on_each_other_end_the_check() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|description| {
        description.zones[1].records.push_str("loop NS ns.pool\npool NS ns.loop\n");
    }));
    let servers = sockets.serve(|_| Arc::clone(&tree), unchanged);
    let results = run(ZoneCheckOptions { zone: name("loop.example."), ..options(&servers, &tree) });
    assert_failed(&results, &["Z-010", "Z-011"], "loop");
    assert!(matches!(results["Z-020"], Outcome::NotTestable(_)), "{results:#?}");
}

#[test]
fn the_picture_shows_where_the_chain_breaks() {
    let sockets = Sockets::bind();
    let tree = Arc::new(sockets.tree(|description| {
        description.zones[2].faults.push(PlantedFault::new(Fault::WrongDsDigest));
    }));
    let servers = sockets.serve(|_| Arc::clone(&tree), unchanged);
    let picture = ZoneContext::new(options(&servers, &tree)).picture();
    let zones: Vec<(&str, PartStatus)> =
        picture.zones.iter().map(|zone| (zone.name.as_str(), zone.status)).collect();
    let expected =
        [(".", PartStatus::Secure), ("example.", PartStatus::Secure), ("zone.example.", PartStatus::Bogus)];
    assert_eq!(zones, expected);
    assert!(
        picture
            .arrows
            .iter()
            .any(|arrow| arrow.status == PartStatus::Bogus && arrow.tooltip.contains("digest"))
    );
    assert!(picture.notes.iter().any(|note| note.contains("RFC 4035 §5.2")), "{:?}", picture.notes);
    assert!(picture.to_svg().expect("a picture").contains("✕"));
}

#[test]
fn numbers_are_stable_and_the_document_lists_every_item() {
    let document = include_str!("../../../../../docs/check-zone.md");
    let mut previous = "";
    for row in items() {
        let item = row.item;
        assert!(previous < item.id, "{}", item.id);
        previous = item.id;
        let line = format!("| {} | {} | {} |", item.id, item.subject, item.rules.join(", "));
        assert!(document.contains(&line), "docs/check-zone.md: {line}");
    }
}
