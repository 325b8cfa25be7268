//! Tests of change sets: between two zones, as text, and applied to a zone.

use super::{ChangeError, ChangeFault, ChangeReadError, ChangeSet, SerialRule, is_data};
use crate::read::{ReadFault, read_text};
use crate::write::write_zone;
use crate::{Contents, ZoneFault};
use nonesuch_proto::rdata::RdataFault;
use nonesuch_proto::{Class, Name, NameError, Rtype};
use proptest::prelude::*;
use std::path::Path;

const HEAD: &str = "$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n";

fn apex() -> Name {
    "example.".parse().unwrap()
}

pub(crate) fn zone(rest: &str) -> Contents {
    read_zone(&format!("{HEAD}{rest}"))
}

fn read_zone(text: &str) -> Contents {
    read_text(text.as_bytes(), Path::new("zone"), Some(&apex())).unwrap().contents
}

pub(crate) fn written(contents: &Contents) -> String {
    let mut out = Vec::new();
    write_zone(contents, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn text(set: &ChangeSet) -> String {
    let mut out = Vec::new();
    set.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn parse(text: &str) -> ChangeSet {
    ChangeSet::parse(text.as_bytes(), &apex()).unwrap()
}

fn apply(old: &str, changes: &str) -> Result<String, ChangeError> {
    parse(changes).apply(&zone(old), SerialRule::Exact).map(|new| written(&new))
}

#[test]
fn the_text_has_one_record_per_line_in_canonical_order() {
    let old = zone("a A 192.0.2.7\na A 192.0.2.8\nb 30 TXT x\nb 30 TXT y\nC TXT z\n");
    let new = read_zone(
        "$TTL 60\n@ SOA ns h 2 2 3 4 5\n@ NS ns\n@ NS ns2\nns A 192.0.2.1\na A 192.0.2.8\na A 192.0.2.9\n\
         b 40 TXT x\nb 40 TXT y\nc TXT z\n",
    );
    let set = ChangeSet::between(&old, &new, |_| true);
    assert_eq!(
        text(&set),
        "- example.\t60\tIN\tSOA\tns.example. h.example. 1 2 3 4 5\n\
         + example.\t60\tIN\tSOA\tns.example. h.example. 2 2 3 4 5\n\
         + example.\t60\tIN\tNS\tns2.example.\n\
         - a.example.\t60\tIN\tA\t192.0.2.7\n\
         + a.example.\t60\tIN\tA\t192.0.2.9\n\
         - b.example.\t30\tIN\tTXT\t\"x\"\n\
         - b.example.\t30\tIN\tTXT\t\"y\"\n\
         + b.example.\t40\tIN\tTXT\t\"x\"\n\
         + b.example.\t40\tIN\tTXT\t\"y\"\n\
         - C.example.\t60\tIN\tTXT\t\"z\"\n\
         + c.example.\t60\tIN\tTXT\t\"z\"\n"
    );
    assert_eq!(set.touched().count(), 4);
    assert!(ChangeSet::between(&old, &old, |_| true).is_empty());
    assert_eq!(written(&set.apply(&old, SerialRule::Exact).unwrap()), written(&new));
}

#[test]
fn is_data_excludes_signatures_and_chains() {
    let new = zone(
        "a A 192.0.2.7\na RRSIG A 13 2 60 2 1 7 example. AAAA\na NSEC example. A\n@ NSEC3PARAM 1 0 0 -\n",
    );
    let data = ChangeSet::between(&zone(""), &new, is_data);
    assert_eq!(text(&data), "+ a.example.\t60\tIN\tA\t192.0.2.7\n");
    assert_eq!(text(&ChangeSet::between(&zone(""), &new, |_| true)).lines().count(), 4);
}

#[test]
fn changes_may_have_comments_relative_names_and_any_order() {
    let changes =
        "; a comment\n\n+ b 60 IN TXT \"; no comment\" ; one\n- a 1m A 192.0.2.7\n+ @ IN 60 NS ns.b\n";
    let new = apply("a A 192.0.2.7\n", changes).unwrap();
    let expected = zone("@ NS ns.b\nb TXT \"; no comment\"\n");
    assert_eq!(new, written(&expected));
}

#[test]
fn changes_that_cannot_be_applied_are_reported_with_their_line() {
    let old = "a A 192.0.2.7\na A 192.0.2.8\nc CNAME a\n";
    let name = |text: &str| -> Name { text.parse().unwrap() };
    let missing = |record: &str| ChangeFault::Missing(record.to_owned());
    let other_ttl = ChangeFault::OtherTtl { record: "a.example. 30 IN A 192.0.2.7".to_owned(), found: 60 };
    let existing = ChangeFault::AlreadyExists("a.example. 60 IN A 192.0.2.7".to_owned());
    let mixed_ttl = ChangeFault::MixedTtl { record: "a.example. 30 IN A 192.0.2.9".to_owned(), found: 60 };
    let outside = ZoneFault::OutOfZone { owner: name("a.other."), apex: name("example.") };
    let alias = ZoneFault::CnameAndOther { owner: name("c.example."), other: Rtype::A };
    let several = ZoneFault::NotSingleton { owner: name("c.example."), rtype: Rtype::CNAME };
    let second_soa = |owner: &str| ChangeFault::Zone(ZoneFault::SecondSoa(name(owner)));
    let cases = [
        ("+ z 60 A 192.0.2.1\n- a 60 A 192.0.2.9\n", 2, missing("a.example. 60 IN A 192.0.2.9")),
        ("\n- b 60 A 192.0.2.7\n", 2, missing("b.example. 60 IN A 192.0.2.7")),
        ("- a 30 A 192.0.2.7\n", 1, other_ttl),
        ("+ a 60 A 192.0.2.7\n", 1, existing),
        ("- a 60 A 192.0.2.7\n+ a 30 A 192.0.2.9\n", 2, mixed_ttl),
        ("+ a.other. 60 A 192.0.2.7\n", 1, ChangeFault::Zone(outside)),
        ("; \n+ c 60 A 192.0.2.7\n", 2, ChangeFault::Zone(alias)),
        ("+ c 60 CNAME b\n", 1, ChangeFault::Zone(several)),
        ("- @ 60 SOA ns h 1 2 3 4 5\n", 1, ChangeFault::Zone(ZoneFault::NoSoa(name("example.")))),
        ("- @ 60 SOA ns h 9 2 3 4 5\n", 1, missing("example. 60 IN SOA ns.example. h.example. 9 2 3 4 5")),
        ("+ @ 60 SOA ns h 2 2 3 4 5\n", 1, second_soa("example.")),
        ("+ a 60 SOA ns h 2 2 3 4 5\n", 1, second_soa("a.example.")),
    ];
    for (changes, line, fault) in cases {
        assert_eq!(apply(old, changes).expect_err(changes), ChangeError { line, fault }, "{changes:?}");
    }
    let set = ChangeSet::between(&zone("b TXT x\n"), &zone(""), |_| true);
    assert_eq!(set.apply(&zone(""), SerialRule::Exact).unwrap_err().line, 0);
}

#[test]
fn malformed_text_is_reported_with_its_position() {
    let at = |column, fault| ChangeReadError::Malformed { line: 1, column, fault };
    let of_a = |fault| ReadFault::Rdata { rtype: Rtype::A, fault };
    let cases = [
        ("a 60 A 192.0.2.1\n", ChangeReadError::NoSign { line: 1 }),
        ("\n + a 60 A 192.0.2.1\n", ChangeReadError::NoSign { line: 2 }),
        ("+a 60 A 192.0.2.1\n", ChangeReadError::NoSign { line: 1 }),
        ("+ a A 192.0.2.1\n", at(3, ReadFault::NoTtl)),
        ("+ a 60 A 192.0.2\n", at(10, of_a(RdataFault::Address("IPv4")))),
        ("+ a 60 A\n", at(8, of_a(RdataFault::Missing))),
        ("+\n", at(1, ReadFault::NoOwner)),
        ("+ a\n", at(3, ReadFault::NoType)),
        ("+ a..b 60 A 192.0.2.1\n", at(3, ReadFault::Owner(NameError::EmptyLabel))),
        ("+ a 60 ANY x\n", at(8, ReadFault::MetaType("ANY".parse().unwrap()))),
        ("+ a 60 CH TXT x\n", at(8, ReadFault::Class(Class::CH))),
        ("+ a 60 TXT \"x\n", at(12, ReadFault::UnclosedQuote)),
        ("+ a 60 TXT x\n; \n+ A 60 TXT \"x\"\n", ChangeReadError::Duplicate { line: 3, first: 1 }),
        ("+ a 30 TXT y\n+ a 60 TXT x\n", ChangeReadError::MixedTtl { line: 2, first: 1 }),
    ];
    for (changes, expected) in cases {
        let error = ChangeSet::parse(changes.as_bytes(), &apex()).expect_err(changes);
        assert_eq!(format!("{error:?}"), format!("{expected:?}"), "{changes:?}");
        // The text begins with the location.
        let position = match expected {
            ChangeReadError::Malformed { line, column, .. } => format!("{line}:{column}: "),
            ChangeReadError::NoSign { line }
            | ChangeReadError::Duplicate { line, .. }
            | ChangeReadError::MixedTtl { line, .. } => format!("{line}: "),
        };
        assert!(error.to_string().starts_with(&position), "{changes:?}: {error}");
    }
}

#[test]
fn the_serial_may_differ_with_the_rule_any() {
    let changes = parse("- @ 60 SOA NS h 1 2 3 4 5\n+ @ 60 SOA ns h 2 2 3 4 5\n");
    let signed = read_zone("$TTL 60\n@ SOA ns h 77 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n");
    assert!(changes.apply(&signed, SerialRule::Exact).is_err());
    assert_eq!(changes.apply(&signed, SerialRule::Any).unwrap().soa().unwrap().serial, 2);
    let other = read_zone("$TTL 60\n@ SOA ns h 77 2 3 4 6\n@ NS ns\nns A 192.0.2.1\n");
    assert!(changes.apply(&other, SerialRule::Any).is_err());
}

#[test]
fn a_name_keeps_its_letter_case_if_a_record_remains() {
    let new = apply("WWW A 192.0.2.7\n", "+ www 60 TXT x\n").unwrap();
    assert!(new.contains("WWW.example.\t60\tIN\tTXT"), "{new}");
    let new = apply("WWW A 192.0.2.7\n", "- www 60 A 192.0.2.7\n+ wWw 60 TXT x\n").unwrap();
    assert!(new.contains("wWw.example.\t60\tIN\tTXT"), "{new}");
}

/// Generates zones with few names and records, so that two zones have much in common.
pub(crate) fn zones() -> impl Strategy<Value = Contents> {
    let owners = ["@", "a", "A", "b.a", "B.a", "*.a", "c", "d\\.e", "\\000", "x.y.z", "\\255"];
    let rdatas = [
        "60 A 192.0.2.7",
        "60 A 192.0.2.8",
        "30 A 192.0.2.9",
        "60 TXT x",
        "60 TXT \"x y\" z",
        "60 MX 1 m",
        "60 MX 1 M",
        "60 MX 2 m",
        "60 NS ns.a",
        "60 DS 1 13 2 00",
        "60 NSEC a A NS",
        "60 RRSIG A 13 2 60 2 1 7 @ AAAA",
        "30 RRSIG A 13 2 60 2 1 8 @ BBBB",
        "60 RRSIG TXT 13 2 60 2 1 7 @ AAAA",
        "60 TYPE65280 \\# 1 ff",
    ];
    let records = proptest::collection::vec((0..owners.len(), 0..rdatas.len()), 0..40);
    (records, 1..4u32).prop_map(move |(records, serial)| {
        let lines: String =
            records.iter().map(|(owner, rdata)| format!("{} {}\n", owners[*owner], rdatas[*rdata])).collect();
        read_zone(&format!("@ 60 SOA ns h {serial} 2 3 4 5\n{lines}"))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn the_changes_between_two_zones_lead_from_one_to_the_other(old in zones(), new in zones()) {
        let set = ChangeSet::between(&old, &new, |_| true);
        prop_assert_eq!(set.is_empty(), written(&old) == written(&new));
        prop_assert_eq!(written(&set.apply(&old, SerialRule::Exact).unwrap()), written(&new));
        let read = parse(&text(&set));
        prop_assert_eq!(text(&read), text(&set));
        prop_assert_eq!(written(&read.apply(&old, SerialRule::Exact).unwrap()), written(&new));
        // No record is on both sides, so the change set cannot be applied twice.
        prop_assert!(set.is_empty() || set.apply(&new, SerialRule::Exact).is_err());
    }

    #[test]
    fn arbitrary_change_sets_never_panic(octets in proptest::collection::vec(prop_oneof![Just(b'+'), Just(b'-'), Just(b' '), Just(b'\n'), Just(b'a'), Just(b'6'), Just(b'A'), any::<u8>()], 0..64)) {
        let _ = ChangeSet::parse(&octets, &apex());
    }

    #[test]
    fn push_nodes_copies_ranges(zone in zones(), split in 0..12usize) {
        let split = split.min(zone.node_count());
        let mut builders = [crate::NodesBuilder::default(), crate::NodesBuilder::default()];
        builders[0].push_nodes(&zone, 0..split);
        builders[1].push_nodes(&zone, split..zone.node_count());
        let copy = Contents::from_parts(zone.apex(), builders.into());
        prop_assert_eq!(written(&copy), written(&zone));
    }
}
