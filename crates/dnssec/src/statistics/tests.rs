//! Tests of the counts of names, which are compared with counts according to the definitions.

use super::*;
use nonesuch_zone::read;
use std::path::Path;

fn zone(text: &str) -> Contents {
    let text = format!("$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\n{text}");
    read::read_text(text.as_bytes(), Path::new("zone"), Some(&"x.".parse().unwrap())).unwrap().contents
}

fn empty_non_terminals(text: &str) -> u64 {
    Statistics::count(&zone(text), 0).names.empty_non_terminals
}

#[test]
fn names_between_owners_and_the_apex_are_empty_non_terminals() {
    let cases = [
        ("", 0),
        ("a TXT x\n", 0),
        ("a.b TXT x\n", 1),
        ("a.b.c TXT x\nd.b.c TXT x\n", 2),
        ("a.b.c TXT x\nc TXT x\n", 1),
        ("a.B.c TXT x\nd.b.C TXT x\n", 2),
        ("a.b.c TXT x\na.d.c TXT x\na.b TXT x\n", 4),
        // Names below a zone cut belong to another zone.
        ("cut NS ns.a.cut\nns.a.cut A 192.0.2.1\n", 0),
        ("c.cut NS ns\n", 1),
    ];
    for (text, expected) in cases {
        assert_eq!(empty_non_terminals(text), expected, "{text}");
    }
}

#[test]
fn common_labels_are_counted_from_the_right() {
    let cases = [
        ("a.b.", "a.b.", 2),
        ("a.b.", "c.b.", 1),
        ("b.", "a.b.", 1),
        ("a.", "b.", 0),
        (".", "a.", 0),
        ("A.b.", "x.a.B.", 2),
    ];
    for (a, b, expected) in cases {
        let (a, b): (Name, Name) = (a.parse().unwrap(), b.parse().unwrap());
        assert_eq!(common_label_count(a.view(), b.view()), expected, "{a} {b}");
        assert_eq!(common_label_count(b.view(), a.view()), expected, "{b} {a}");
    }
}

#[test]
fn keys_with_the_same_tag_and_algorithm_have_the_same_number_of_signatures() {
    // The keys differ in the order of two 16-bit words, so they have the same tag.
    let keys = "@ DNSKEY 256 3 13 AQACAA==\n@ DNSKEY 256 3 13 AgABAA==\n";
    let signed =
        "a TXT x\na RRSIG TXT 13 2 60 4000 1 1805 x. AAAA\nb TXT x\nb RRSIG TXT 13 2 60 4000 1 7 x. AAAA\n";
    let statistics = Statistics::count(&zone(&format!("{keys}{signed}")), 2);
    let counts: Vec<(u16, u64)> = statistics.keys.iter().map(|(key, count)| (key.tag, *count)).collect();
    assert_eq!(counts, [(1805, 1), (1805, 1)]);
    assert_eq!(statistics.foreign_signatures, [((7, Algorithm(13)), 1)].into());
}

#[test]
fn times_are_counted_across_the_end_of_32_bits() {
    let text = "a TXT x\na RRSIG TXT 13 2 60 4294967000 4294960000 1 x. AAAA\nb TXT x\nb RRSIG TXT 13 2 60 4000 4294960000 1 x. AAAA\n";
    let validity = Statistics::count(&zone(text), u32::MAX).validity.unwrap();
    assert_eq!(validity.expiration, [4_294_967_000, 4000]);
    assert_eq!((validity.expired, validity.not_yet_valid), (1, 0));
    assert_eq!(validity.days_left, [(-1, 1), (0, 1)].into());
}
