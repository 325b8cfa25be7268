//! Which records are inserted, and for how long.

use super::*;
use crate::record::{RecordData, Security};
use nonesuch_proto::{Class, Name};
use proptest::prelude::*;

const NX: Option<NegativeKind> = Some(NegativeKind::NxDomain);

#[test]
fn each_ttl_limits_the_use_of_a_record() {
    for (soa_ttl, minimum, nsec_ttl, ttl_max, expected) in [
        (9, 20, 20, 100, 9),
        (20, 9, 20, 100, 9),
        (20, 20, 9, 100, 9),
        (20, 20, 20, 9, 9),
        (20, 20, 20, 100, 20),
    ] {
        let options = DenialCacheOptions { ttl_max, ..DenialCacheOptions::new(1 << 20, [0; 16]) };
        let cache = DenialCache::new(options, at(0));
        let nsec = rrset(&[&format!("example. {nsec_ttl} NSEC example. SOA NS RRSIG NSEC")]);
        assert_eq!(
            cache.insert(
                &keys("example."),
                &[nsec, soa("example.", soa_ttl, minimum)],
                &mut Budget::default(),
                at(3)
            ),
            1
        );
        assert_eq!(denied(&cache, "a.example.", Rtype::A, 3 + expected - 1), NX);
        assert_eq!(denied(&cache, "a.example.", Rtype::A, 3 + expected), None);
    }
}

#[test]
fn an_authority_section_has_the_remaining_ttls() {
    let cache = cache();
    insert(&cache, "example.", &["example. 600 NSEC example. SOA NS RRSIG NSEC"], 0);
    assert_eq!(
        authority(&cache, "a.example.", Rtype::A, 10),
        [("example.".to_owned(), Rtype::SOA, 890), ("example.".into(), Rtype::NSEC, 590)]
    );
}

#[test]
fn records_without_a_known_soa_record_are_not_inserted() {
    let cache = cache();
    let records = [rrset(&["example. 600 NSEC b.example. SOA NS RRSIG NSEC"])];
    assert_eq!(cache.insert(&keys("example."), &records, &mut Budget::default(), at(0)), 0);
    // The SOA record alone makes no zone.
    assert_eq!(
        cache.insert(&keys("example."), &[soa("example.", 900, 900)], &mut Budget::default(), at(0)),
        0
    );
    assert_eq!(cache.statistics().zones, 0);
    insert(&cache, "example.", &["b.example. 600 NSEC example. A RRSIG NSEC"], 0);
    // Now its TTL limits that of the records.
    let long = [rrset(&["example. 9000 NSEC b.example. SOA NS RRSIG NSEC"])];
    assert_eq!(cache.insert(&keys("example."), &long, &mut Budget::default(), at(1)), 1);
    assert_eq!(denied(&cache, "a.example.", Rtype::A, 899), NX);
    assert_eq!(denied(&cache, "a.example.", Rtype::A, 900), None);
    // A new SOA record.
    assert_eq!(
        cache.insert(&keys("example."), &[soa("example.", 900, 900)], &mut Budget::default(), at(900)),
        0
    );
    assert_eq!(denied(&cache, "a.example.", Rtype::A, 900), NX);
    assert_eq!(denied(&cache, "a.example.", Rtype::A, 901), None);
}

#[test]
fn unsuitable_rrsets_are_ignored() {
    let cache = cache();
    let several = rrset(&["a.example. 9 NSEC b.example. A", "a.example. 9 NSEC c.example. A"]);
    let mut chaos = rrset(&["a.example. 9 NSEC b.example. A"]);
    chaos.class = Class::CH;
    let mut malformed = rrset(&["a.example. 9 NSEC b.example. A"]);
    malformed.records = [&[9, 1][..]].into_iter().collect();
    let others = [
        rrset(&["a.other. 9 NSEC b.other. A"]),
        rrset(&["a.example. 9 NSEC b.other. A"]),
        rrset(&["b.example. 9 NSEC a.example. A"]),
        rrset(&["a.example. 0 NSEC b.example. A"]),
        rrset(&["a.example. 9 A 192.0.2.1"]),
        rrset(&["a.b.example. 9 NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A"]),
        soa("example.", 900, 900),
    ];
    let rrsets: Vec<Rrset> = [several, chaos, malformed].into_iter().chain(others).collect();
    assert_eq!(cache.insert(&keys("example."), &rrsets, &mut Budget::default(), at(0)), 0);
    assert_eq!(cache.statistics().entries, 0);
}

/// The hash of the apex is the only one: once for all NSEC3 records of the zone.
#[test]
fn the_hashes_of_an_insertion_are_deducted_from_the_budget() {
    let cache = cache();
    let record = |first: char| {
        let hash = first.to_string().repeat(32);
        rrset(&[&format!("{hash}.example. 900 NSEC3 1 0 50 {} {} A", "00".repeat(255), "v".repeat(32))])
    };
    let records: Vec<Rrset> =
        ['0', '1', '2'].map(record).into_iter().chain([soa("example.", 900, 900)]).collect();
    let with = |hash_blocks: u32| {
        let mut limits = ValidationLimits::default();
        limits.hash_blocks = hash_blocks;
        let mut budget = Budget::new(limits);
        (cache.insert(&keys("example."), &records, &mut budget, at(0)), budget.spent().hash_blocks)
    };
    let blocks = 5 * 51;
    assert_eq!(with(blocks - 1), (0, 0));
    assert_eq!(with(600), (3, blocks));
    assert_eq!(with(0), (3, 0));
}

#[test]
fn records_that_deny_one_name_are_counted_and_not_inserted() {
    let long = "x".repeat(63);
    let minimal = [
        // Compact denial.
        "a.example. 9 NSEC \\000.a.example. RRSIG NSEC NXNAME".to_owned(),
        "a.example. 9 NSEC \\000.a.example. A RRSIG NSEC".to_owned(),
        "a.example. 9 NSEC a\\000.example. NS RRSIG NSEC".to_owned(),
        "a.example. 9 NSEC z.example. RRSIG NSEC NXNAME".to_owned(),
        // RFC 4470.
        format!("a.example. 9 NSEC {}y.example. A RRSIG NSEC", &long[1..]).replace('y', "\\000"),
        format!("{long}.example. 9 NSEC {}y.example. A RRSIG NSEC", &long[1..]),
        format!("{long}.example. 9 NSEC {}z.example. A RRSIG NSEC", &long[1..]),
        // White lies.
        "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 9 NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3ton A".into(),
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv.example. 9 NSEC3 1 0 0 - 00000000000000000000000000000001 A".into(),
    ];
    for record in &minimal {
        let cache = cache();
        assert_eq!(insert(&cache, "example.", &[record], 0), 0, "{record}");
        assert_eq!((cache.statistics().minimal, cache.statistics().zones), (1, 0), "{record}");
    }
    for record in [
        "example. 9 NSEC example. SOA NS RRSIG NSEC",
        "a.example. 9 NSEC b.example. A RRSIG NSEC",
        "a.example. 9 NSEC x.a.example. A RRSIG NSEC",
        "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 9 NSEC3 1 0 0 - 0p9mhaveqvm6t7vbl5lop2u3t2rp3tom A",
        "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 9 NSEC3 1 0 0 - 0p9mhaveqvm7t7vbl5lop2u3t2rp3tom A",
    ] {
        assert_eq!(insert(&cache(), "example.", &[record], 0), 1, "{record}");
    }
}

#[test]
fn newer_records_replace_those_with_overlapping_spans() {
    let cache = cache();
    let apex = "example. 9 NSEC b.example. SOA NS RRSIG NSEC";
    insert(&cache, "example.", &[apex, "b.example. 9 NSEC f.example. A RRSIG NSEC"], 0);
    assert_eq!(denied(&cache, "d.example.", Rtype::A, 0), NX);
    // The name d.example. is new.
    insert(&cache, "example.", &["d.example. 9 NSEC f.example. A RRSIG NSEC"], 0);
    assert_eq!(denied(&cache, "c.example.", Rtype::A, 0), None);
    assert_eq!(denied(&cache, "e.example.", Rtype::A, 0), NX);
    // All names but one are removed.
    insert(&cache, "example.", &["c.example. 9 NSEC example. A RRSIG NSEC"], 0);
    assert_eq!(cache.statistics().entries, 2);
    assert_eq!(denied(&cache, "f.example.", Rtype::A, 0), NX);
    insert(&cache, "example.", &["example. 9 NSEC example. SOA NS RRSIG NSEC"], 0);
    assert_eq!(cache.statistics().entries, 1);
    assert_eq!(denied(&cache, "c.example.", Rtype::A, 0), NX);
}

#[test]
fn records_of_another_chain_replace_all_records() {
    let cache = cache();
    let hashed =
        |hash: &str, next: &str, params: &str| format!("{hash}.example. 9 NSEC3 1 0 {params} {next} A RRSIG");
    let (first, last) = ("00000000000000000000000000000000", "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv");
    insert(&cache, "example.", &["example. 9 NSEC example. SOA NS RRSIG NSEC"], 0);
    assert_eq!(insert(&cache, "example.", &[&hashed(first, last, "0 -"), &hashed(last, first, "0 -")], 0), 1);
    assert_eq!(cache.statistics().entries, 1);
    assert_eq!(denied(&cache, "a.example.", Rtype::A, 0), None);
    for (params, inserted) in [("0 AB", 1), ("50 AB", 1), ("51 AB", 0)] {
        assert_eq!(insert(&cache, "example.", &[&hashed(first, last, params)], 0), inserted);
        assert_eq!(cache.statistics().entries, 1);
    }
    // Only the records with the parameters of the first one count.
    assert_eq!(insert(&cache, "example.", &[&hashed(first, last, "1 -"), &hashed(first, last, "2 -")], 0), 1);
    insert(&cache, "example.", &["example. 9 NSEC example. SOA NS RRSIG NSEC"], 0);
    assert_eq!((cache.statistics().entries, denied(&cache, "a.example.", Rtype::A, 0)), (1, NX));
}

#[test]
fn records_that_deny_a_flushed_name_are_removed() {
    let cache = cache();
    let fill = || {
        insert(
            &cache,
            ".",
            &[". 9 NSEC example. SOA NS RRSIG NSEC", "example. 9 NSEC test. NS DS RRSIG NSEC"],
            0,
        );
        let example =
            ["example. 9 NSEC b.example. SOA NS RRSIG NSEC", "b.example. 9 NSEC d.example. A RRSIG NSEC"];
        insert(&cache, "example.", &example, 0);
        insert(&cache, "example.", &["d.example. 9 NSEC x.d.example. A RRSIG NSEC"], 0);
        insert(&cache, "b.example.", &["b.example. 9 NSEC b.example. SOA NS RRSIG NSEC"], 0);
        let hashed =
            "00000000000000000000000000000000.test. 9 NSEC3 1 0 0 - vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv A";
        insert(&cache, "test.", &[hashed], 0);
        assert_eq!(cache.statistics().entries, 7);
    };
    // In the root, the span of the record of example. has names below example.
    for (flushed, removed) in [
        (".", 7),
        ("Example.", 5),
        ("c.example.", 2),
        ("d.example.", 2),
        ("b.example.", 3),
        ("a.test.", 1),
        ("zz.", 0),
    ] {
        fill();
        assert_eq!(cache.flush_below(name(flushed).view()), removed, "{flushed}");
        assert_eq!(cache.statistics().entries, 7 - removed);
    }
    fill();
    cache.flush_below(name(".").view());
    assert_eq!((cache.statistics().zones, cache.statistics().octets), (0, 0));
}

proptest! {
    #[test]
    fn any_octets_are_inserted_or_ignored(
        rdata in proptest::collection::vec(any::<u8>(), 0..80),
        rtype in proptest::sample::select(vec![
            Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC5, Rtype::NSEC5PROOF, Rtype::SOA,
        ]),
        label in proptest::collection::vec(any::<u8>(), 1..60),
        has_name: bool,
    ) {
        let cache = cache();
        let owner = Name::prepend(&label, name("example.").view()).unwrap();
        let prefix: &[u8] = if has_name { b"\x02zz\x07example\0" } else { &[] };
        let records: RecordData = [[prefix, &rdata].concat().as_slice()].into_iter().collect();
        let rrset = Rrset {
            owner: owner.clone(), rtype, class: Class::IN, ttl: 9, records, signatures: RecordData::default(), security: Security::Secure, insecure: None,
        };
        cache.insert(&keys("example."), &[rrset, soa("example.", 900, 900)], &mut Budget::default(), at(0));
        let _ = cache.prove(owner.view(), Rtype::A, ENOUGH_HASHES, at(0));
        let _ = prove(&cache, "y.zz.example.", Rtype::A, 0);
    }
}
