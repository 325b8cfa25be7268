use super::*;
use crate::tree::{Description, Tree, TreeZone, ZoneDescription};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::validate::{
    AlgorithmPolicy, Budget, Question, SecurityStatus, TrustedKeys, ValidationLimits, validate,
};
use nonesuch_proto::message::{Message, Section, push_query};

const NOW: u32 = 1_750_000_000;

/// Names and types: existing, missing type, missing names, wildcard, wildcard with a missing type,
/// empty non-terminal, apex.
const QUESTIONS: [(&str, Rtype); 8] = [
    ("host1.zone.example.", Rtype::A),
    ("host1.zone.example.", Rtype::MX),
    ("none.zone.example.", Rtype::A),
    ("a.host1.zone.example.", Rtype::A),
    ("a.wild.zone.example.", Rtype::A),
    ("a.wild.zone.example.", Rtype::MX),
    ("ent.zone.example.", Rtype::A),
    ("zone.example.", Rtype::DNSKEY),
];

/// A tree with the zone `zone.example.` in a conservative transition.
fn tree() -> Tree {
    let zone = ZoneDescription {
        denial: Mechanism::Nsec3,
        also_nsec5: true,
        names: 5,
        ..ZoneDescription::new("zone.example.")
    };
    let zones = vec![ZoneDescription::new("."), ZoneDescription::new("example."), zone];
    Tree::build(&Description { zones, ..Description::default() }, 1, NOW).expect("a tree")
}

/// The responses of both versions of the zone, and the joined response.
fn responses(tree: &Tree, name: &str, rtype: Rtype) -> (Vec<u8>, Vec<u8>, Result<Vec<u8>, JoinError>) {
    let zone = &tree.zones[2];
    let successor = zone.successor.as_deref().expect("a version with NSEC5");
    let name: Name = name.parse().expect("a name");
    let of = |zone: &TreeZone| zone.respond(name.view(), rtype).to_octets();
    let (old, new) = (of(zone), of(successor));
    let joined = join(&old, &new);
    (old, new, joined)
}

fn parsed(octets: &[u8]) -> Message {
    Message::parse(octets).expect("a message")
}

/// The result of a validator with the algorithms of `policy`, which trusts the keys of the zone.
fn status(
    tree: &Tree,
    response: &[u8],
    (name, rtype): (&str, Rtype),
    policy: AlgorithmPolicy,
) -> SecurityStatus {
    let zone = &tree.zones[2];
    let limits = ValidationLimits::default();
    let dnskeys = zone.contents.apex_rrset(Rtype::DNSKEY).expect("keys");
    let mut keys = TrustedKeys::with_policy(&zone.origin, dnskeys.rdatas(), policy, &limits);
    let budget = || Budget::new(ValidationLimits::default());
    if policy.experimental {
        let response = responses(tree, "zone.example.", Rtype::NSEC5KEY).2.expect("joined");
        let learnt = keys.learn_nsec5_keys(&parsed(&response), tree.now, &mut budget());
        assert!(matches!(learnt.status, SecurityStatus::Secure));
    }
    let name: Name = name.parse().expect("a name");
    let question = Question { name: name.view(), rtype };
    validate(question, &parsed(response), &keys, tree.now, &mut budget()).status
}

#[test]
fn joined_responses_are_secure_for_old_and_new_resolvers() {
    let tree = tree();
    for question in QUESTIONS {
        let (old, new, joined) = responses(&tree, question.0, question.1);
        let joined = joined.expect("joined");
        let cases = [
            (&old, AlgorithmPolicy::ALL),
            (&old, AlgorithmPolicy::ASSIGNED),
            (&joined, AlgorithmPolicy::ALL),
            (&joined, AlgorithmPolicy::ASSIGNED),
            (&new, AlgorithmPolicy::ALL),
        ];
        for (case, (response, policy)) in cases.into_iter().enumerate() {
            let found = status(&tree, response, question, policy);
            assert!(matches!(found, SecurityStatus::Secure), "{question:?} {case}: {found:?}");
        }
    }
}

#[test]
fn a_denial_without_the_nsec3_records_is_bogus_for_an_old_resolver() {
    let tree = tree();
    for question in [QUESTIONS[1], QUESTIONS[2]] {
        let (_, new, _) = responses(&tree, question.0, question.1);
        let found = status(&tree, &new, question, AlgorithmPolicy::ASSIGNED);
        assert!(matches!(found, SecurityStatus::Bogus(_)), "{question:?}: {found:?}");
    }
}

#[test]
fn a_joined_response_has_each_record_of_both_once() {
    let tree = tree();
    for (name, rtype) in QUESTIONS {
        let (old, new, joined) = responses(&tree, name, rtype);
        let joined = parsed(&joined.expect("joined")).records;
        let (old, new) = (parsed(&old).records, parsed(&new).records);
        let added = new.into_iter().filter(|record| !old.contains(record)).collect::<Vec<_>>();
        assert!(added.iter().all(|record| record.section == Section::Authority));
        let in_section = |section| old.iter().chain(&added).filter(move |record| record.section == section);
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        let wanted: Vec<_> = sections.into_iter().flat_map(in_section).cloned().collect();
        assert_eq!(joined, wanted, "{name} {rtype}");
    }
}

#[test]
fn every_rrset_has_a_signature_of_each_algorithm() {
    let tree = tree();
    let zone = &tree.zones[2];
    let successor = zone.successor.as_deref().expect("a version with NSEC5");
    let alias = Algorithm::ECDSAP256SHA256.nsec5_alias().expect("an alias");
    for contents in [&zone.contents, &successor.contents] {
        let rrsets = contents.nodes().flat_map(|node| node.rrsets());
        for rrset in rrsets.filter(|rrset| rrset.rtype() == Rtype::RRSIG) {
            let mut algorithms: Vec<u8> = rrset.rdatas().map(|rdata| rdata[2]).collect();
            algorithms.sort_unstable();
            assert_eq!(algorithms, [Algorithm::ECDSAP256SHA256.0, alias.0], "{}", rrset.covered());
        }
    }
    assert_eq!(zone.ds.len(), 2);
}

#[test]
fn names_of_added_records_are_compressed() {
    let (old, new, joined) = responses(&tree(), "none.zone.example.", Rtype::A);
    let joined = joined.expect("joined");
    let added = parsed(&joined).records.len() - parsed(&old).records.len();
    // A pointer of 2 octets replaces `zone.example.` of 14.
    assert!(added >= 6, "{added}");
    assert!(joined.len() + 12 * added <= old.len() + new.len(), "{} octets", joined.len());
}

#[test]
fn a_type_of_one_version_is_answered_by_that_version() {
    let (old, _, joined) = responses(&tree(), "zone.example.", Rtype::NSEC3PARAM);
    assert_eq!(joined, Ok(old));
}

#[test]
fn different_and_malformed_responses_are_errors() {
    let tree = tree();
    let (old, new, _) = responses(&tree, "host1.zone.example.", Rtype::A);
    let (denied, other, _) = responses(&tree, "none.zone.example.", Rtype::A);
    let (different, ..) = responses(&tree, "host2.zone.example.", Rtype::A);
    assert_eq!(join(&old, &other), Err(JoinError::Different));
    assert_eq!(join(&denied, &new), Err(JoinError::Different));
    assert_eq!(join(&old, &different), Err(JoinError::Different));
    for end in [0, 11, 20, old.len() - 1] {
        assert!(matches!(join(&old[..end], &new), Err(JoinError::Malformed(_))), "{end}");
    }
}

/// A query; with a payload size, it has an OPT record.
fn query(payload: Option<u16>) -> Vec<u8> {
    let mut query = Vec::new();
    push_query(&"none.zone.example.".parse().expect("a name"), Rtype::A, 7, 0, &mut query);
    if let Some(payload) = payload {
        query[11] = 1;
        query.extend_from_slice(&opt(payload));
    }
    query
}

fn opt(payload: u16) -> Vec<u8> {
    [&[0, 0, 41][..], &payload.to_be_bytes(), &[0, 0, 0x80, 0, 0, 0]].concat()
}

#[test]
fn the_payload_size_of_the_client_and_of_the_server_limits_a_response() {
    assert_eq!(udp_limit(&query(None)), 512);
    for (payload, limit) in [(0, 512), (512, 512), (1000, 1000), (1232, 1232), (4096, 1232)] {
        assert_eq!(udp_limit(&query(Some(payload))), limit, "{payload}");
    }
}

#[test]
fn a_truncated_response_keeps_question_and_opt() {
    let mut joined = responses(&tree(), "none.zone.example.", Rtype::A).2.expect("joined");
    joined[11] += 1;
    joined.extend_from_slice(&opt(1232));
    let short = parsed(&truncated(&joined).expect("truncated"));
    assert!(short.header.flags & flags::TC != 0);
    assert_eq!((short.questions.len(), short.records.len()), (1, 1));
    assert_eq!(short.rcode(), Rcode::NXDOMAIN);
}

#[test]
fn a_failure_has_the_question_and_id_of_the_query() {
    let failure = parsed(&server_failure(&query(Some(1232))).expect("a response"));
    assert_eq!((failure.header.id, failure.rcode(), failure.questions.len()), (7, Rcode::SERVFAIL, 1));
    assert_eq!(server_failure(&[0; 5]), None);
}
