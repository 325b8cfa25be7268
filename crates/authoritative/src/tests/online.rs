//! Answers that are generated online: the cases of all zones with all variants, queries for NSEC
//! and RRSIG, the CO flag, and the counters of the online signer.

use super::*;
use proptest::prelude::*;

const ZONE: &str = "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 7 3600 300 3600000 900\n@ NS ns\nns A 192.0.2.1\n\
    host A 192.0.2.2\nhost TXT \"text\"\nalias CNAME host\n*.w A 192.0.2.3\nx.ent A 192.0.2.4\ncut NS ns\n\
    signed NS ns\nsigned DS 1 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF\n";

fn zone_of(setup: &SigningSetup) -> Zone {
    Zone::read(ZONE, "example.", setup)
}

/// The zones of the other tests, with all variants that generate records online.
#[test]
fn apexes_of_all_kinds() {
    let root = "$TTL 3600\n. SOA a.root. hostmaster.root. 7 3600 300 3600000 900\n. NS a.root.\na.root. A 192.0.2.1\n\
        test. NS ns.test.\nns.test. A 192.0.2.2\norg. NS ns.test.\n\
        org. DS 1 13 2 00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF\nalias. CNAME a.root.\n";
    let dname =
        "$TTL 3600\n@ SOA ns.test. hostmaster 7 3600 300 3600000 900\n@ NS ns.test.\n@ DNAME other.test.\n";
    let types = [Rtype::A, Rtype::NS, Rtype::SOA, Rtype::DS, Rtype::MX, Rtype::ANY];
    for setup in SigningSetup::all_online() {
        let zone = Zone::read(root, ".", &setup);
        let names =
            [".", "test.", "www.test.", "org.", "a.org.", "root.", "a.root.", "alias.", "none.", "a.none."];
        for (qname, qtype) in names.iter().flat_map(|qname| types.map(|qtype| (qname, qtype))) {
            zone.checked_response(qname, qtype, true);
            zone.checked_response(qname, qtype, false);
        }
        let zone = Zone::read(dname, "example.", &setup);
        for qname in ["example.", "a.example.", "a.b.example."] {
            types.iter().for_each(|qtype| drop(zone.checked_response(qname, *qtype, true)));
        }
    }
}

/// RFC 4470 §3, RFC 9824 §3: the answer to a query for NSEC is the record that is generated for the
/// name. With NSEC3 white lies and NSEC5, no such record exists.
#[test]
fn queries_for_nsec() {
    for setup in SigningSetup::all_online() {
        let zone = zone_of(&setup);
        let answer = |qname: &str| -> Vec<String> {
            let message = zone.query_over_tcp(&name(qname), Rtype::NSEC, true);
            zone.verify(&message).unwrap();
            let records = message.section(Section::Answer);
            records.map(|record| line(record).split(' ').take(5).collect::<Vec<_>>().join(" ")).collect()
        };
        let has_nsec = matches!(setup.signing, Some(Mechanism::MinimalNsec | Mechanism::Compact));
        let expected = |lines: &[&str]| -> Vec<String> {
            lines.iter().filter(|_| has_nsec).map(|line| (*line).to_owned()).collect()
        };
        assert_eq!(
            answer("host.example."),
            expected(&["host.example. 900 nsec \\000.host.example. a", "host.example. 900 rrsig nsec 2"])
        );
        assert_eq!(
            answer("ent.example."),
            expected(&["ent.example. 900 nsec \\000.ent.example. rrsig", "ent.example. 900 rrsig nsec 2"])
        );
        let wild = answer("a.w.example.");
        assert_eq!(wild.len(), if has_nsec { 2 } else { 0 }, "{setup:?}: {wild:?}");
        // With compact denial, every name has an NSEC record (§3.1).
        let absent = answer("none.example.");
        assert_eq!(absent.len(), if zone.is_compact() { 2 } else { 0 }, "{setup:?}: {absent:?}");
    }
}

/// RFC 8482 §4.1: the signatures of one RRset answer for all, if they are generated online.
#[test]
fn queries_for_signatures() {
    for setup in SigningSetup::all_online() {
        let zone = zone_of(&setup);
        let message = zone.query_over_tcp(&name("host.example."), Rtype::RRSIG, true);
        let types: Vec<Rtype> =
            message.section(Section::Answer).map(|record| signed_type_and_labels(record).0).collect();
        let is_presigned = setup.presigned_with.is_some()
            || setup.signing.is_some_and(|m| m.generation() == DenialGeneration::Offline);
        let expected: &[Rtype] = if is_presigned { &[Rtype::A, Rtype::TXT] } else { &[Rtype::A] };
        assert_eq!(types, expected, "{setup:?}");
    }
}

/// RFC 9824 §5.1: with CO, the response code is NXDOMAIN and the flag is set. Other mechanisms do
/// not have this flag.
#[test]
fn compact_answers_ok() {
    for setup in SigningSetup::all_online() {
        let zone = zone_of(&setup);
        let respond = |qname: &str, opt_flags: u16| {
            let mut octets = query(&name(qname), Rtype::A, None);
            edns::push_opt(1232, 0, opt_flags, &mut octets);
            octets[HEADER - 1] = 1;
            let message = Message::parse(&zone.send(&octets, Transport::Udp).unwrap()).unwrap();
            (message.rcode(), message.opt().unwrap().ttl as u16)
        };
        let (both, plain) = (edns::DO | edns::CO, edns::DO);
        let hidden = if zone.is_compact() { Rcode::NOERROR } else { Rcode::NXDOMAIN };
        let shown = if zone.is_compact() { edns::CO } else { 0 };
        assert_eq!(respond("none.example.", plain), (hidden, plain));
        assert_eq!(respond("none.example.", both), (Rcode::NXDOMAIN, plain | shown));
        assert_eq!(respond("none.example.", edns::CO), (Rcode::NXDOMAIN, shown));
        assert_eq!(respond("none.example.", 0), (Rcode::NXDOMAIN, 0));
        assert_eq!(respond("ent.example.", both), (Rcode::NOERROR, plain | shown));
        assert_eq!(respond("host.example.", both), (Rcode::NOERROR, plain | shown));
    }
}

/// RFC 9824 §3.3: an answer from a wildcard is signed with the query name as owner and needs no
/// proof. In a presigned zone, the signature of the wildcard is used, and closer names are denied.
#[test]
fn compact_wildcards() {
    for (presigned_with, labels, denials) in [(None, 3, 0), (Some(Mechanism::Nsec), 2, 1)] {
        let zone = zone_of(&SigningSetup { presigned_with, ..SigningSetup::new(Some(Mechanism::Compact)) });
        let message = zone.checked_response("a.w.example.", Rtype::A, true);
        let signature = message.section(Section::Answer).find(|record| record.rtype == Rtype::RRSIG).unwrap();
        assert_eq!(signed_type_and_labels(signature), (Rtype::A, labels));
        let records = message.section(Section::Authority).filter(|record| record.rtype == Rtype::NSEC);
        assert_eq!(records.count(), denials);
    }
}

/// The owner of an NSEC5 record is not a name of the zone (RFC 5155 §7.2.8).
#[test]
fn owners_of_nsec5_records_do_not_exist() {
    for signing in [Mechanism::Nsec5, Mechanism::Nsec5OptOut] {
        let zone = zone_of(&SigningSetup::new(Some(signing)));
        let denial = zone.checked_response("host.example.", Rtype::MX, true);
        let record = denial.section(Section::Authority).find(|record| record.rtype == Rtype::NSEC5).unwrap();
        let owner = record.owner.to_string();
        for qtype in [Rtype::NSEC5, Rtype::A, Rtype::RRSIG, Rtype::ANY] {
            assert_eq!(zone.checked_response(&owner, qtype, true).rcode(), Rcode::NXDOMAIN);
            assert_eq!(
                zone.checked_response(&format!("below.{owner}"), qtype, true).rcode(),
                Rcode::NXDOMAIN
            );
        }
    }
}

/// With stored proofs, the denial of a name needs one generated proof, and other denials need none
/// ("Precomputation").
#[test]
fn nsec5_proves_next_closer_names_alone() {
    let zone = zone_of(&SigningSetup::new(Some(Mechanism::Nsec5)));
    let mut expected_operations = 0;
    for (qname, qtype, proofs) in [
        ("host.example.", Rtype::MX, 0),
        ("cut.example.", Rtype::A, 0),
        ("x.ent.example.", Rtype::MX, 0),
        ("none.example.", Rtype::A, 1),
        ("a.b.none.example.", Rtype::A, 0), // the same next closer name
        ("a.w.example.", Rtype::A, 1),
        ("a.w.example.", Rtype::MX, 0),
        ("host.example.", Rtype::A, 0),
    ] {
        zone.checked_response(qname, qtype, true);
        expected_operations += proofs;
        assert_eq!(zone.counters().operations.values().sum::<u64>(), expected_operations, "{qname} {qtype}");
    }
    assert_eq!(zone.counters().proof_misses, 2);
}

/// Generated signatures are used again and counted. The server generates none for clients that do
/// not request DNSSEC records.
#[test]
fn signatures_are_generated_once() {
    let setup = SigningSetup::new(Some(Mechanism::WhiteLies));
    let zone = zone_of(&setup);
    zone.checked_response("none.example.", Rtype::A, false);
    assert_eq!(zone.counters(), OnlineCounters::default());
    zone.checked_response("none.example.", Rtype::A, true);
    let first = zone.counters();
    // SOA, closest encloser, next closer name, wildcard.
    assert_eq!(
        (first.operations.values().sum::<u64>(), first.signature_hits, first.signature_misses),
        (4, 0, 4)
    );
    zone.checked_response("nothing.example.", Rtype::A, true);
    let second = zone.counters();
    assert_eq!(
        (second.operations.values().sum::<u64>(), second.signature_hits, second.signature_misses),
        (5, 3, 5)
    );
    zone.checked_response("nothing.example.", Rtype::A, true);
    let third = zone.counters();
    assert_eq!((third.operations.values().sum::<u64>(), third.signature_hits, third.batches), (5, 7, 2));
    assert!(third.cache_octets > 0);
}

/// The signatures for all queries of a batch are generated together, each only once.
#[test]
fn one_batch_generates_all_signatures() {
    let zone = zone_of(&SigningSetup::new(Some(Mechanism::MinimalNsec)));
    let queries: Vec<Vec<u8>> = (0..40)
        .map(|number| query(&name(&format!("n{}.example.", number % 20)), Rtype::A, Some((1232, true))))
        .collect();
    let queries: Vec<&[u8]> = queries.iter().map(Vec::as_slice).collect();
    let mut responses = 0;
    assert_eq!(zone.server.send_batch(&queries, Transport::Udp, NOW, |_, _| responses += 1), 40);
    assert_eq!(responses, 40);
    let counters = zone.counters();
    // The SOA record, the wildcard, twenty names.
    assert_eq!((counters.batches, counters.operations.values().sum::<u64>()), (1, 22));
}

/// Signatures are generated again before they expire, and if the clock is set back before their
/// inception.
#[test]
fn signatures_are_generated_again_in_time() {
    let zone = zone_of(&SigningSetup::new(Some(Mechanism::Compact)));
    let octets = query(&name("host.example."), Rtype::A, Some((1232, true)));
    let respond_at = |now: u32| {
        let out = zone.server.send(&octets, Transport::Udp, now).unwrap();
        let message = Message::parse(&out).unwrap();
        let signature = message.section(Section::Answer).find(|record| record.rtype == Rtype::RRSIG).unwrap();
        let fields = Rrsig::parse(&signature.rdata).unwrap();
        assert!(fields.inception < now && now + signature.ttl < fields.expiration);
        zone.counters().operations.values().sum::<u64>()
    };
    let quarter = DEFAULT_VALIDITY / 4;
    assert_eq!(
        [
            respond_at(NOW),
            respond_at(NOW + 3 * quarter - 3600),
            respond_at(NOW + 3 * quarter),
            respond_at(NOW - 7200)
        ],
        [1, 1, 2, 3]
    );
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 250,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(9824),
        ..ProptestConfig::default()
    })]

    #[test]
    fn responses_are_as_the_oracle_says(
        records in random::records(),
        queries in proptest::collection::vec((random::labels(0, 5), 0..random::TYPES.len(), any::<bool>()), 12),
        names in 0..random::NAMES.len(),
        setup in 0..SigningSetup::all_online().len(),
        payload: u16,
    ) {
        let names = &random::NAMES[names];
        let text = random::zone_text(names, &records);
        let plain = read::read_text(text.as_bytes(), Path::new("test"), Some(&name(names.apex)));
        let plain = plain.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?.contents;
        let setup = &SigningSetup::all_online()[setup];
        let zone = Zone::from_contents(plain, setup);
        for (labels, qtype, upper) in queries {
            let qname = names.text_of(&labels);
            let qname = name(&if upper { qname.to_uppercase() } else { qname });
            if let Err(what) = zone.check_response(&qname, random::TYPES[qtype], true) {
                return Err(TestCaseError::fail(format!("{setup:?}\n{what}\n{text}")));
            }
            for qtype in [random::TYPES[qtype], Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3] {
                random::keep_limits(&zone, &qname, qtype, Some((payload, true)))?;
            }
        }
    }
}
