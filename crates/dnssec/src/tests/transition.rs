//! What the step from one version to the next breaks (RFC 6781 §4.1), told of two zones and by the signer.

use super::*;
use crate::keys::{REVOKE, SEP, ZONE_KEY};
use crate::sign::{Previous, SignError, SignWarning, resign};
use crate::transition::{DataSigners, KeyState, TransitionFault, transition, transition_between};
use nonesuch_crypto::key_tag;

const RECORDS: &str = "a A 192.0.2.1\nd NS ns.d\nns.d A 192.0.2.9\n*.w TXT \"x\"\n";
const ED25519: Algorithm = Algorithm::ED25519;
const P256: Algorithm = Algorithm::ECDSAP256SHA256;

pub(super) fn ksk(seed: u8) -> KeyPair {
    key("example.", ZONE_KEY | SEP, ED25519, seed)
}

pub(super) fn zsk(seed: u8) -> KeyPair {
    key("example.", ZONE_KEY, ED25519, seed)
}

/// The zone signed by `keys`, with the DNSKEY records of `others` published.
fn signed_by(keys: Vec<KeyPair>, others: &[KeyPair], mechanism: Mechanism) -> Contents {
    let keys = KeySet::new(&name("example."), keys).unwrap();
    sign(&with_keys(others), &keys, &options(mechanism)).unwrap().into_contents()
}

pub(super) fn with_keys(others: &[KeyPair]) -> Contents {
    let lines = others.iter().map(|key| {
        let mut text = Vec::new();
        rdata::push_text(Rtype::DNSKEY, &key.dnskey_rdata(), &mut text);
        format!("@ DNSKEY {}\n", String::from_utf8(text).unwrap())
    });
    zone(&lines.fold(RECORDS.to_owned(), |zone, line| zone + &line))
}

/// The kinds of the faults of a step, in order.
fn kinds(faults: &[TransitionFault]) -> Vec<&'static str> {
    let kind = |fault: &TransitionFault| match fault {
        TransitionFault::KeySigners { .. } => "keys",
        TransitionFault::DataSigners { .. } => "data",
        TransitionFault::DenialKind { .. } => "denial",
    };
    faults.iter().map(kind).collect()
}

/// A version: keys that sign, and keys that are published alone.
type Version = (Vec<KeyPair>, Vec<KeyPair>);

/// Steps of roll-overs, with what they break.
fn steps() -> Vec<(&'static str, Version, Version, &'static [&'static str])> {
    let of = |keys: Vec<KeyPair>| (keys, Vec::new());
    let csk = |algorithm, seed| key("example.", ZONE_KEY | SEP, algorithm, seed);
    vec![
        ("nothing", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), zsk(2)]), &[]),
        ("a ZSK is published", of(vec![ksk(1), zsk(2)]), (vec![ksk(1), zsk(2)], vec![zsk(3)]), &[]),
        (
            "a published ZSK signs",
            (vec![ksk(1), zsk(2)], vec![zsk(3)]),
            (vec![ksk(1), zsk(3)], vec![zsk(2)]),
            &[],
        ),
        ("a new ZSK signs", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), zsk(3)]), &["data"]),
        ("a second ZSK signs too", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), zsk(2), zsk(3)]), &[]),
        ("a second KSK signs too", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), ksk(4), zsk(2)]), &[]),
        // The successor signed already.
        ("the old KSK goes", of(vec![ksk(1), ksk(4), zsk(2)]), of(vec![ksk(4), zsk(2)]), &[]),
        ("Double-DS", of(vec![ksk(1), zsk(2)]), of(vec![ksk(4), zsk(2)]), &["keys"]),
        ("the KSK goes", of(vec![ksk(1), zsk(2)]), of(vec![zsk(2)]), &["keys"]),
        ("all keys are others", of(vec![ksk(1), zsk(2)]), of(vec![ksk(4), zsk(3)]), &["keys", "data"]),
        ("a CSK is split", of(vec![ksk(1)]), of(vec![ksk(1), zsk(2)]), &["data"]),
        ("a CSK is replaced", of(vec![ksk(1)]), of(vec![ksk(4)]), &["keys", "data"]),
        ("an algorithm is added", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), zsk(2), csk(P256, 5)]), &[]),
        ("an algorithm goes", of(vec![ksk(1), zsk(2), csk(P256, 5)]), of(vec![csk(P256, 5)]), &[]),
        ("an algorithm is replaced", of(vec![ksk(1), zsk(2)]), of(vec![csk(P256, 5)]), &["keys", "data"]),
        (
            "the KSK is revoked alone",
            of(vec![ksk(1), zsk(2)]),
            of(vec![key("example.", ZONE_KEY | SEP | REVOKE, ED25519, 1), ksk(4), zsk(2)]),
            &["keys"],
        ),
    ]
}

pub(super) fn copies(keys: &[KeyPair]) -> Vec<KeyPair> {
    let copy = |key: &KeyPair| {
        let private = PrivateKey::from_bind(&key.private().to_bind()).unwrap();
        KeyPair::new(key.owner.clone(), key.flags, private)
    };
    keys.iter().map(copy).collect()
}

#[test]
fn steps_that_break_validators_are_told_of_two_zones() {
    for (what, (keys, others), (next_keys, next_others), expected) in steps() {
        for mechanism in [Mechanism::Nsec, Mechanism::Nsec3] {
            let before = signed_by(copies(&keys), &others, mechanism);
            let after = signed_by(copies(&next_keys), &next_others, mechanism);
            assert_eq!(kinds(&transition_between(&before, &after)), expected, "{what}, {mechanism}");
        }
    }
}

#[test]
fn steps_that_break_validators_are_not_signed_unless_they_are_allowed() {
    for (what, (keys, others), (next_keys, next_others), expected) in steps() {
        let before = signed_by(copies(&keys), &others, Mechanism::Nsec);
        let previous = Some(Previous::new(&before, 14 * 86_400));
        let mut options = SignOptions { previous, ..options(Mechanism::Nsec) };
        options.now += 3600;
        let keys = KeySet::new(&name("example."), next_keys).unwrap();
        let contents = with_keys(&next_others);
        match resign(&contents, &keys, &options) {
            Err(SignError::UnsafeTransition(faults)) => assert_eq!(kinds(&faults), expected, "{what}"),
            Err(error) => panic!("{what}: {error}"),
            Ok(_) => assert!(expected.is_empty(), "{what}"),
        }
        let allowed = SignOptions { allow_unsafe_transition: true, ..options };
        let signed = resign(&contents, &keys, &allowed).unwrap();
        let warnings = signed.iter().flat_map(|signed| signed.warnings());
        let warned = warnings.filter_map(|warning| match warning {
            SignWarning::UnsafeTransition(fault) => Some(fault.clone()),
            _ => None,
        });
        assert_eq!(kinds(&warned.collect::<Vec<_>>()), expected, "{what}");
    }
}

#[test]
fn another_kind_of_chain_needs_another_serial() {
    let of = |mechanism| signed_by(vec![ksk(1), zsk(2)], &[], mechanism);
    let (nsec, nsec3, opt_out) = (of(Mechanism::Nsec), of(Mechanism::Nsec3), of(Mechanism::Nsec3OptOut));
    assert_eq!(kinds(&transition_between(&nsec, &nsec3)), ["denial"]);
    assert_eq!(kinds(&transition_between(&nsec3, &nsec)), ["denial"]);
    assert_eq!(kinds(&transition_between(&nsec3, &opt_out)), [""; 0]);
    let states = [&nsec, &nsec3].map(|zone| KeyState::of(zone).unwrap());
    let [before, after] = states;
    let later = KeyState { serial: after.serial + 1, ..after };
    assert_eq!(transition(&before, &later, DataSigners::Zone(&nsec3)), []);
}

/// A signature is told by tag and algorithm; a key of the new version that has those of an old key is another one.
#[test]
fn keys_of_one_tag_are_told_apart() {
    let before = signed_by(vec![ksk(1), zsk(2)], &[], Mechanism::Nsec);
    let tag = zsk(2).tag();
    // Two octets at even places are swapped: the tag is the same (RFC 4034, appendix B).
    let after = rewrite(&before, |_, rtype, _, rdata| {
        if rtype == Rtype::DNSKEY && key_tag(rdata) == tag {
            rdata.swap(4, 6);
        }
    });
    let faults = transition_between(&before, &after);
    assert_eq!(kinds(&faults), ["data"]);
    let expected =
        TransitionFault::DataSigners { owner: name("example."), rtype: Rtype::NS, tags: vec![tag] };
    assert_eq!(faults, [expected]);
}

#[test]
fn unsigned_versions_break_nothing() {
    let before = signed_by(vec![ksk(1)], &[], Mechanism::Nsec);
    for (old, new) in [(&before, &zone("")), (&zone(""), &before), (&before, &before)] {
        assert_eq!(transition_between(old, new), []);
    }
}
