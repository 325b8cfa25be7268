//! Trees are resolved from the trust anchor; the results must be the expected ones.

mod resolve;

use super::*;
use nonesuch_crypto::{ALGORITHMS, Algorithm, PublicKey, key_tag};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::MECHANISMS;
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_proto::Rtype;
use resolve::resolve;

const NOW: u32 = 1_750_000_000;

/// The root, `example.` and the zone, with the algorithm of the zone.
fn tree_of(zone: ZoneDescription) -> Result<Tree, TreeError> {
    let above = |origin| ZoneDescription { algorithm: Algorithm::ED25519, ..ZoneDescription::new(origin) };
    let mut parent = above("example.");
    if zone.faults.iter().any(|planted| planted.fault.scope() == FaultScope::Delegation) {
        parent.denial = zone.denial;
    }
    let zones = vec![above("."), parent, zone];
    Tree::build(&Description { zones, ..Description::default() }, 1, NOW)
}

fn zone_with(fault: Fault) -> ZoneDescription {
    let mut zone = ZoneDescription::new("zone.example.");
    zone.algorithm = Algorithm::ED25519;
    zone.faults = vec![PlantedFault::new(fault)];
    zone.signed = fault != Fault::DsForUnsignedZone;
    zone
}

/// Asserts that each question has the expected result; returns the expectations.
#[track_caller]
fn judge(tree: &Tree, what: &str) -> Vec<Expectation> {
    let expectations = tree.expectations_with(3);
    for expected in &expectations {
        let found = resolve(tree, &expected.name, expected.rtype);
        let wanted = (expected.outcome, expected.extended_error);
        assert_eq!(found, wanted, "{what}: {} {}", expected.name, expected.rtype);
        if matches!(expected.outcome, Outcome::Secure | Outcome::Insecure) {
            let zone = tree.zone_of(expected.name.view()).unwrap();
            let rcode = zone.respond(expected.name.view(), expected.rtype).rcode();
            assert_eq!(rcode, expected.rcode, "{what}: {} {}", expected.name, expected.rtype);
        }
    }
    expectations
}

/// The offline mechanisms; a server has the answers of the others.
fn offline() -> impl Iterator<Item = Mechanism> {
    let rows = MECHANISMS.iter().filter(|row| row.generation == DenialGeneration::Offline);
    rows.map(|row| row.mechanism)
}

fn judge_sound(algorithm: Algorithm, mechanism: Mechanism) {
    let mut zone = ZoneDescription::new("zone.example.");
    (zone.algorithm, zone.denial, zone.names) = (algorithm, mechanism, 3);
    zone.bits = algorithm.entry().and_then(|entry| entry.scheme.key_lengths.as_ref()).map(|_| 1024);
    zone.records = "sub NS ns.elsewhere.test.\n".to_owned();
    let tree = tree_of(zone).unwrap();
    let what = format!("{algorithm} {mechanism}");
    let expectations = judge(&tree, &what);
    let here: Name = "zone.example.".parse().unwrap();
    let secure = expectations.iter().filter(|question| {
        question.name.view().is_at_or_below(here.view()) && question.outcome == Outcome::Secure
    });
    // With opt-out, the six denials are Insecure.
    assert_eq!(secure.count(), 19 - 6 * usize::from(mechanism.is_opt_out()), "{what}");
    assert!(expectations.iter().all(|question| question.fault.is_none()));
}

#[test]
fn sound_trees_of_every_algorithm_and_mechanism_are_secure() {
    for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
        let count = if entry.scheme.signs_slowly { 1 } else { usize::MAX };
        offline().take(count).for_each(|mechanism| judge_sound(entry.algorithm, mechanism));
    }
}

#[test]
fn each_fault_has_the_expected_result_with_each_mechanism() {
    for row in FAULTS {
        let mut planted = 0;
        for mechanism in offline() {
            let zone = ZoneDescription { denial: mechanism, ..zone_with(row.fault) };
            let tree = match tree_of(zone) {
                Err(TreeError::Fault { .. }) => continue,
                other => other.unwrap(),
            };
            let what = format!("{} {mechanism}", row.name);
            let expectations = judge(&tree, &what);
            let of_fault = expectations.iter().filter(|question| question.fault == Some(row.fault));
            assert!(of_fault.count() > 0, "{what}");
            planted += 1;
        }
        assert!(planted > 0, "{}", row.name);
    }
}

#[test]
fn a_fault_of_one_rrset_affects_no_other() {
    for row in FAULTS.iter().filter(|row| row.scope == FaultScope::Signatures) {
        let mut zone = zone_with(row.fault);
        (zone.faults[0].at, zone.faults[0].rtype) = (Some("www".to_owned()), Some(Rtype::A));
        let expectations = judge(&tree_of(zone).unwrap(), row.name);
        let affected: Vec<_> = expectations.iter().filter(|question| question.fault.is_some()).collect();
        if row.outcome == Outcome::Secure {
            assert!(!affected.is_empty(), "{}", row.name);
            continue;
        }
        assert_eq!(affected.len(), 1, "{}", row.name);
        assert_eq!(
            (affected[0].name.to_string().as_str(), affected[0].rtype),
            ("www.zone.example.", Rtype::A)
        );
    }
}

#[test]
fn unsigned_zones_and_islands_are_insecure() {
    for (signed, ds) in [(false, true), (false, false), (true, false)] {
        for mechanism in offline() {
            let zone = ZoneDescription { signed, ds, ..ZoneDescription::new("zone.example.") };
            let mut above = ZoneDescription::new("example.");
            above.denial = mechanism;
            let zones = vec![ZoneDescription::new("."), above, zone, ZoneDescription::new("a.zone.example.")];
            let tree = Tree::build(&Description { zones, ..Description::default() }, 1, NOW).unwrap();
            let expectations = judge(&tree, &format!("{signed} {ds} {mechanism}"));
            let insecure = expectations.iter().filter(|question| question.outcome == Outcome::Insecure);
            assert!(insecure.count() > 10);
        }
    }
}

/// The first octets of DNSKEY or DS RDATA of the apex, and the octets of RRSIG RDATA with the algorithm.
fn algorithms(zone: &TreeZone) -> Vec<u8> {
    let signatures = zone.contents.nodes().flat_map(|node| node.rrsets().collect::<Vec<_>>());
    let signatures = signatures.filter(|rrset| rrset.rtype() == Rtype::RRSIG);
    let signatures = signatures.flat_map(|rrset| rrset.rdatas().map(|rdata| rdata[2]).collect::<Vec<_>>());
    let apex = zone.contents.find(zone.origin.view()).unwrap();
    let keys = apex.rrset(Rtype::DNSKEY).unwrap().rdatas().map(|rdata| rdata[3]).collect::<Vec<_>>();
    let ds = zone.ds.iter().map(|ds| ds[2]);
    signatures.chain(keys).chain(ds).collect()
}

#[test]
fn zones_with_unsupported_algorithms_are_insecure() {
    for number in [1, 3, 5, 6, 7, 12, 200] {
        for (denial, csk) in [(Mechanism::Nsec, true), (Mechanism::Nsec3, false)] {
            let zone = ZoneDescription { algorithm: Algorithm(number), csk, denial, ..zone_without_faults() };
            let is_rsa = matches!(number, 1 | 5 | 7);
            let zone = ZoneDescription { bits: is_rsa.then_some(1024), ..zone };
            let zones = vec![
                ZoneDescription::new("."),
                ZoneDescription::new("example."),
                zone,
                ZoneDescription::new("below.zone.example."),
            ];
            let tree = Tree::build(&Description { zones, ..Description::default() }, 1, NOW).unwrap();
            let expectations = judge(&tree, &format!("algorithm {number}, {denial}"));
            let found = expectations.iter().filter(|expected| {
                (expected.outcome, expected.extended_error) == (Outcome::Insecure, Some(1))
            });
            assert!(found.count() > 20, "{number}");
            let numbers = algorithms(&tree.zones[2]);
            assert!(numbers.len() > 10 && numbers.iter().all(|found| *found == number), "{numbers:?}");
        }
    }
}

fn zone_without_faults() -> ZoneDescription {
    ZoneDescription::new("zone.example.")
}

#[test]
fn signatures_of_rsa_with_sha1_are_valid() {
    for number in [5, 7] {
        let zone =
            ZoneDescription { algorithm: Algorithm(number), bits: Some(1024), ..zone_without_faults() };
        let tree = tree_of(zone).unwrap();
        let zone = &tree.zones[2];
        let apex = zone.contents.find(zone.origin.view()).unwrap();
        let keys: Vec<&[u8]> = apex.rrset(Rtype::DNSKEY).unwrap().rdatas().collect();
        let mut verified = 0;
        for node in zone.contents.nodes() {
            for signatures in node.rrsets().filter(|rrset| rrset.rtype() == Rtype::RRSIG) {
                let rrset = node.rrset(signatures.covered()).unwrap();
                for fields in signatures.rdatas().filter_map(Rrsig::parse) {
                    let key = keys.iter().find(|key| key_tag(key) == fields.tag).unwrap();
                    let mut signed = Vec::new();
                    push_signed_data(&fields, node.name(), rrset.rdatas(), &mut signed);
                    let key = PublicKey::parse_sha1(fields.algorithm, &key[4..]).unwrap();
                    key.verify(&signed, fields.signature).unwrap();
                    verified += 1;
                }
            }
        }
        assert!(verified > 15, "{verified}");
    }
}

#[test]
fn equal_seeds_give_equal_trees_and_other_seeds_other_keys() {
    let text = |seed| {
        let mut zones = vec![];
        for (origin, algorithm) in [(".", 8), ("example.", 15), ("a.example.", 16), ("b.example.", 18)] {
            let mut zone = ZoneDescription::new(origin);
            (zone.algorithm, zone.denial) = (Algorithm(algorithm), Mechanism::Nsec3);
            zone.bits = (algorithm == 8).then_some(1024);
            zones.push(zone);
        }
        zones[3].denial = Mechanism::Nsec5;
        let tree = Tree::build(&Description { zones, ..Description::default() }, seed, NOW).unwrap();
        tree.zones.iter().map(TreeZone::text).collect::<String>() + &tree.anchors(AnchorForm::Dnskey)
    };
    assert_eq!(text(1), text(1));
    assert_ne!(text(1), text(2));
}

#[test]
fn unsuitable_descriptions_are_errors() {
    let build = |zones| Tree::build(&Description { zones, ..Description::default() }, 1, NOW).map(drop);
    let root = || ZoneDescription::new(".");
    assert!(matches!(build(vec![]), Err(TreeError::NoRoot)));
    assert!(matches!(build(vec![root(), root()]), Err(TreeError::DuplicateZone { .. })));
    let with = |change: fn(&mut ZoneDescription)| {
        let mut zone = zone_with(Fault::LyingBitmap);
        change(&mut zone);
        build(vec![root(), zone])
    };
    assert!(matches!(with(|zone| zone.salt = "xyz".into()), Err(TreeError::Salt { .. })));
    assert!(matches!(with(|zone| zone.records = "a A 1.2.3\n".into()), Err(TreeError::Records { .. })));
    assert!(matches!(
        with(|zone| zone.server = Some(Ipv4Addr::new(192, 0, 2, 1))),
        Err(TreeError::Address { .. })
    ));
    assert!(matches!(with(|zone| zone.signed = false), Err(TreeError::Fault { .. })));
    assert!(matches!(with(|zone| zone.denial = Mechanism::Compact), Err(TreeError::Fault { .. })));
    assert!(matches!(with(|zone| zone.faults[0].at = Some("none".into())), Err(TreeError::Fault { .. })));
    assert!(matches!(with(|zone| zone.faults[0].at = Some("a..b".into())), Err(TreeError::Fault { .. })));
    assert!(matches!(with(|zone| zone.faults[0].rtype = Some(Rtype::SOA)), Err(TreeError::Fault { .. })));
    assert!(matches!(with(|zone| zone.bits = Some(99)), Err(TreeError::Key { .. })));
    assert!(matches!(with(|zone| zone.algorithm = Algorithm(253)), Err(TreeError::Algorithm { .. })));
    assert!(matches!(with(|zone| zone.algorithm = Algorithm(5)), Err(TreeError::Unsupported { .. })));
    let without_faults = |denial| {
        build(vec![
            root(),
            ZoneDescription { algorithm: Algorithm(5), denial, ..ZoneDescription::new("example.") },
        ])
    };
    for denial in [Mechanism::Compact, Mechanism::Nsec5] {
        assert!(matches!(without_faults(denial), Err(TreeError::Unsupported { .. })), "{denial}");
    }
}

#[test]
fn a_written_tree_has_all_files_and_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("tree");
    let mut zone = ZoneDescription::new("zone.example.");
    zone.denial = Mechanism::Nsec5;
    let tree = tree_of(zone).unwrap();
    tree.write(&out).unwrap();
    let read = |file: &str| std::fs::read_to_string(out.join(file)).unwrap();
    assert_eq!(read("zones/zone.example"), tree.zones[2].text());
    assert_eq!(
        read("root.hints"),
        ". 3600000 IN NS a.root-server.\na.root-server. 3600000 IN A 127.53.0.1\n"
    );
    assert!(read("servers/127.53.0.3.toml").contains("nsec5-keys = \"../nsec5/zone.example\""));
    assert_eq!(std::fs::read_dir(out.join("keys/@")).unwrap().count(), 4);
    assert_eq!(std::fs::read_dir(out.join("nsec5/zone.example")).unwrap().count(), 2);
    assert_eq!(read("expected.csv").lines().count(), 1 + tree.expectations().len());
    assert!(matches!(tree.write(&out), Err(TreeError::Exists { .. })));
}

#[test]
fn a_zone_in_transition_has_two_versions_with_the_same_data() {
    let change = |change: fn(&mut ZoneDescription)| {
        let mut zone = ZoneDescription::new("zone.example.");
        (zone.denial, zone.also_nsec5) = (Mechanism::Nsec3, true);
        change(&mut zone);
        tree_of(zone)
    };
    let tree = change(|_| {}).unwrap();
    judge(&tree, "the version with NSEC3");
    let successor = tree.zones[2].successor.as_deref().unwrap();
    let data = |zone: &TreeZone| -> Vec<String> {
        let chain = ["NSEC3", "TYPE65280", "NSEC3PARAM"];
        let text = zone.text();
        let is_data = |line: &&str| !chain.iter().any(|chain| line.contains(chain));
        let lines = text.lines().filter(is_data).map(str::to_owned).collect::<Vec<_>>();
        assert!(lines.len() > 20);
        lines
    };
    assert_eq!(data(&tree.zones[2]), data(successor));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("tree");
    tree.write(&out).unwrap();
    let read = |file: &str| std::fs::read_to_string(out.join(file)).unwrap();
    assert_eq!(read("zones/zone.example.nsec5"), successor.text());
    assert!(read("servers/127.53.0.3.nsec5.toml").contains("nsec5-keys = \"../nsec5/zone.example.nsec5\""));
    assert!(!read("servers/127.53.0.3.toml").contains("nsec5"));
    for wrong in [
        (|zone| zone.denial = Mechanism::Nsec) as fn(&mut ZoneDescription),
        |zone| zone.signed = false,
        |zone| zone.faults = vec![PlantedFault::new(Fault::ExpiredSignature)],
    ] {
        assert!(matches!(change(wrong), Err(TreeError::Transition { .. })));
    }
}
