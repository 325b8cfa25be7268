//! Which zone and which records answer.

use super::*;

const NX: Option<NegativeKind> = Some(NegativeKind::NxDomain);

const fn no_data(rtype: Rtype) -> Option<NegativeKind> {
    Some(NegativeKind::NoData(rtype))
}

/// The chain of RFC 4035, appendix A, in part.
const RECORDS: [&str; 6] = [
    "example. 600 NSEC a.example. NS SOA MX RRSIG NSEC DNSKEY",
    "a.example. 600 NSEC ai.example. NS DS RRSIG NSEC",
    "ai.example. 600 NSEC b.example. A HINFO AAAA RRSIG NSEC",
    "b.example. 600 NSEC ns1.example. NS RRSIG NSEC",
    "ns1.example. 600 NSEC *.w.example. A RRSIG NSEC",
    "*.w.example. 600 NSEC example. MX RRSIG NSEC",
];

#[test]
fn an_nsec_zone_denies_names_types_and_wildcards() {
    let cache = cache();
    assert_eq!(insert(&cache, "example.", &RECORDS, 0), 6);
    for (owner, rtype, expected) in [
        ("ml.example.", Rtype::A, NX),
        ("x.y.ML.example.", Rtype::DS, NX),
        ("ns1.example.", Rtype::MX, no_data(Rtype::MX)),
        ("NS1.example.", Rtype::A, None),
        ("w.example.", Rtype::A, no_data(Rtype::A)),
        ("example.", Rtype::A, no_data(Rtype::A)),
        ("a.z.w.example.", Rtype::AAAA, no_data(Rtype::AAAA)),
        ("b.example.", Rtype::A, None),
        ("x.b.example.", Rtype::A, None),
        ("b.example.", Rtype::DS, no_data(Rtype::DS)),
        ("x.b.example.", Rtype::DS, None),
        ("a.example.", Rtype::DS, None),
        ("example.", Rtype::DS, None),
        ("example.", Rtype::SOA, None),
        ("test.", Rtype::A, None),
        (".", Rtype::A, None),
        ("ml.example.", Rtype::ANY, NX),
        ("ml.example.", Rtype::OPT, None),
        ("ml.example.", Rtype::NXNAME, None),
    ] {
        assert_eq!(denied(&cache, owner, rtype, 0), expected, "{owner} {rtype}");
    }
    let owners = |owner, rtype| -> Vec<String> {
        authority(&cache, owner, rtype, 0).into_iter().map(|(owner, ..)| owner).collect()
    };
    // RFC 4035, appendix B.2, B.3 and B.7.
    assert_eq!(owners("ml.example.", Rtype::A), ["example.", "b.example.", "example."]);
    assert_eq!(owners("ns1.example.", Rtype::MX), ["example.", "ns1.example."]);
    assert_eq!(owners("a.z.w.example.", Rtype::AAAA), ["example.", "*.w.example."]);
}

#[test]
fn a_wildcard_answer_is_left_to_the_caller() {
    let cache = cache();
    insert(&cache, "example.", &RECORDS, 0);
    let found = prove(&cache, "a.z.w.example.", Rtype::MX, 0).found;
    let Some(Found::Wildcard(wildcard)) = found else { panic!("{found:?}") };
    assert_eq!((wildcard.source, wildcard.zone), (name("*.w.example."), name("example.")));
    assert_eq!(wildcard.authority.len(), 1);
    assert_eq!(wildcard.authority[0].rtype, Rtype::NSEC);
}

#[test]
fn the_zone_above_a_zone_cut_answers_for_ds() {
    let cache = cache();
    insert(&cache, "example.", &["b.example. 9 NSEC d.example. NS RRSIG NSEC"], 0);
    insert(&cache, "b.example.", &["b.example. 9 NSEC b.example. SOA NS RRSIG NSEC"], 0);
    assert_eq!(denied(&cache, "b.example.", Rtype::DS, 0), no_data(Rtype::DS));
    assert_eq!(authority(&cache, "b.example.", Rtype::DS, 0)[0].0, "example.");
    assert_eq!(denied(&cache, "b.example.", Rtype::A, 0), no_data(Rtype::A));
    assert_eq!(authority(&cache, "b.example.", Rtype::A, 0)[0].0, "b.example.");
    assert_eq!(denied(&cache, "x.b.example.", Rtype::DS, 0), NX);
    assert_eq!(denied(&cache, "x.b.example.", Rtype::A, 0), NX);
    insert(&cache, ".", &[". 9 NSEC . SOA NS RRSIG NSEC"], 0);
    assert_eq!(denied(&cache, ".", Rtype::DS, 0), no_data(Rtype::DS));
}

#[test]
fn names_below_a_dname_record_are_not_denied() {
    let cache = cache();
    let records =
        ["example. 9 NSEC d.example. SOA NS RRSIG NSEC", "d.example. 9 NSEC x.example. DNAME RRSIG NSEC"];
    insert(&cache, "example.", &records, 0);
    assert_eq!(denied(&cache, "x.d.example.", Rtype::A, 0), None);
    assert_eq!(denied(&cache, "d.example.", Rtype::A, 0), no_data(Rtype::A));
    assert_eq!(denied(&cache, "e.example.", Rtype::A, 0), NX);
}

#[test]
fn a_wildcard_at_a_zone_cut_denies_nothing() {
    let cache = cache();
    let records =
        ["example. 9 NSEC *.example. SOA NS RRSIG NSEC", "*.example. 9 NSEC example. NS RRSIG NSEC"];
    insert(&cache, "example.", &records, 0);
    for rtype in [Rtype::A, Rtype::DS] {
        assert_eq!(prove(&cache, "a.example.", rtype, 0).found, None);
    }
}

/// The chain of RFC 5155, appendix A, without opt-out, in part: the records for example.,
/// x.w.example. and the ones over c.x.w.example. and *.x.w.example.
const NSEC3: [&str; 4] = [
    "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example. 9 NSEC3 1 0 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr MX DNSKEY NS SOA NSEC3PARAM RRSIG",
    "b4um86eghhds6nea196smvmlo4ors995.example. 9 NSEC3 1 0 12 aabbccdd gjeqe526plbf1g8mklp59enfd789njgi MX RRSIG",
    "35mthgpgcu1qg68fab165klnsnk3dpvl.example. 9 NSEC3 1 0 12 aabbccdd b4um86eghhds6nea196smvmlo4ors995 NS DS RRSIG",
    "k8udemvp1j2f7eg6jebps17vp3n8i58h.example. 9 NSEC3 1 0 12 aabbccdd kohar7mbb8dc2ce8a9qvl8hon4k53uhi",
];

#[test]
fn hashes_are_limited_and_counted() {
    let cache = cache();
    assert_eq!(insert(&cache, "example.", &NSEC3, 0), 4);
    let search = |owner: &str, limit| cache.prove(name(owner).view(), Rtype::A, limit, at(0));
    // RFC 5155, appendix B.1. The hashes of the name, of the ancestors w.example. and x.w.example.,
    // of c.x.w.example., which is the name, and of the wildcard, with 13 blocks each.
    let complete = search("c.x.w.example.", 52);
    assert!(
        matches!(&complete.found, Some(Found::Denied(denied)) if denied.kind == NegativeKind::NxDomain),
        "{complete:?}"
    );
    assert_eq!(complete.hash_blocks, 52);
    assert_eq!(search("c.x.w.example.", 51), Search { found: None, hash_blocks: 39 });
    assert_eq!(search("c.x.w.example.", 12), Search::default());
    // The apex needs no hash.
    assert!(matches!(search("example.", 0).found, Some(Found::Denied(_))));
    assert_eq!(cache.statistics().hash_blocks, 52 + 39);
    assert_eq!((cache.statistics().hits, cache.statistics().misses), (2, 2));
}

#[test]
fn opt_out_records_deny_types_and_no_names() {
    let cache = cache();
    let records = NSEC3.map(|record| record.replace("NSEC3 1 0", "NSEC3 1 1"));
    insert(&cache, "example.", &records.each_ref().map(String::as_str), 0);
    assert_eq!(denied(&cache, "c.x.w.example.", Rtype::A, 0), None);
    assert_eq!(denied(&cache, "x.w.example.", Rtype::A, 0), no_data(Rtype::A));
    // One hash shows that no record matches.
    assert_eq!(prove(&cache, "c.x.w.example.", Rtype::A, 0).hash_blocks, 13);
}
