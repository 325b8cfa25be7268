//! Faults of the step from one version to the next (RFC 6781 §4.1), detected between two zones and
//! by the signer.

use super::*;
use crate::keys::{CdsSchedule, KeyRecord, REVOKE, SEP, ZONE_KEY};
use crate::online::{KeySetOptions, sign_key_set};
use crate::sign::{PreviousZone, SerialPolicy, SignError, SignWarning, resign, resign_stored};
use crate::transition::{
    DataSigners, KeyState, SignedVersion, TransitionFault, transition, transition_between,
};
use nonesuch_crypto::key_tag;
use nonesuch_zone::change::ChangeSet;
use nonesuch_zone::{Image, StoredZone, Verification, compiled};

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
        TransitionFault::DnskeySigners { .. } => "keys",
        TransitionFault::NewDataSigners { .. } => "data",
        TransitionFault::OldDataSigners { .. } => "removed",
        TransitionFault::DenialKind { .. } => "denial",
    };
    faults.iter().map(kind).collect()
}

/// Keys that sign a version, and keys that are only published.
type VersionKeys = (Vec<KeyPair>, Vec<KeyPair>);

/// Steps of rollovers with their faults.
fn steps() -> Vec<(&'static str, VersionKeys, VersionKeys, &'static [&'static str])> {
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
        ("the old ZSK goes", (vec![ksk(1), zsk(3)], vec![zsk(2)]), of(vec![ksk(1), zsk(3)]), &[]),
        // The new ZSK was published, and the old one is removed when the new one begins to sign.
        (
            "the signing ZSK goes",
            (vec![ksk(1), zsk(2)], vec![zsk(3)]),
            of(vec![ksk(1), zsk(3)]),
            &["removed"],
        ),
        ("one of two signing ZSKs goes", of(vec![ksk(1), zsk(2), zsk(3)]), of(vec![ksk(1), zsk(3)]), &[]),
        ("a new ZSK signs", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), zsk(3)]), &["data", "removed"]),
        ("a second ZSK signs too", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), zsk(2), zsk(3)]), &[]),
        ("a second KSK signs too", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), ksk(4), zsk(2)]), &[]),
        // The successor already signed.
        ("the old KSK goes", of(vec![ksk(1), ksk(4), zsk(2)]), of(vec![ksk(4), zsk(2)]), &[]),
        ("Double-DS", of(vec![ksk(1), zsk(2)]), of(vec![ksk(4), zsk(2)]), &["keys"]),
        ("the KSK goes", of(vec![ksk(1), zsk(2)]), of(vec![zsk(2)]), &["keys"]),
        (
            "all keys are others",
            of(vec![ksk(1), zsk(2)]),
            of(vec![ksk(4), zsk(3)]),
            &["keys", "data", "removed"],
        ),
        ("a CSK is split", of(vec![ksk(1)]), of(vec![ksk(1), zsk(2)]), &["data"]),
        ("a CSK is replaced", of(vec![ksk(1)]), of(vec![ksk(4)]), &["keys", "data", "removed"]),
        ("a second CSK signs too", of(vec![ksk(1)]), of(vec![ksk(1), ksk(4)]), &[]),
        ("the old CSK goes", of(vec![ksk(1), ksk(4)]), of(vec![ksk(4)]), &[]),
        ("an algorithm is added", of(vec![ksk(1), zsk(2)]), of(vec![ksk(1), zsk(2), csk(P256, 5)]), &[]),
        ("an algorithm goes", of(vec![ksk(1), zsk(2), csk(P256, 5)]), of(vec![csk(P256, 5)]), &[]),
        (
            "an algorithm is replaced",
            of(vec![ksk(1), zsk(2)]),
            of(vec![csk(P256, 5)]),
            &["keys", "data", "removed"],
        ),
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
fn unsafe_transitions_are_detected_between_two_zones() {
    for (what, (keys, others), (next_keys, next_others), expected) in steps() {
        for mechanism in [Mechanism::Nsec, Mechanism::Nsec3] {
            let before = signed_by(copies(&keys), &others, mechanism);
            let after = signed_by(copies(&next_keys), &next_others, mechanism);
            assert_eq!(kinds(&transition_between(&before, &after)), expected, "{what}, {mechanism}");
        }
    }
}

/// RFC 4034 §2.1.1: the SEP flag is a hint. A key without it that signs everything is either
/// replaced step by step by a key with it, or remains as a zone-signing key.
#[test]
fn a_single_key_without_the_sep_flag_can_be_replaced_by_one_with_it() {
    let signed_again = |before: &Contents, keys: Vec<KeyPair>, others: &[KeyPair]| {
        let previous = Some(PreviousZone::new(before, 14 * 86_400));
        let options = SignOptions {
            previous,
            serial: SerialPolicy::Increment,
            now: NOW + 3600,
            ..options(Mechanism::Nsec)
        };
        let keys = KeySet::new(&name("example."), keys).unwrap();
        let after = sign(&with_keys(others), &keys, &options).unwrap().into_contents();
        assert_eq!(report(&after).faults, []);
        assert_eq!(transition_between(before, &after), []);
        after
    };
    let signers = |zone: &Contents, rtype| {
        let rdatas = zone.node(0).signatures(rtype).into_iter().flat_map(|rrset| rrset.rdatas());
        let mut tags: Vec<u16> = rdatas.map(|rdata| Rrsig::parse(rdata).unwrap().tag).collect();
        tags.sort_unstable();
        tags
    };
    let (old, new) = (zsk(2).tag(), ksk(1).tag());
    let mut both = [old, new];
    both.sort_unstable();
    let sole = signed_by(vec![zsk(2)], &[], Mechanism::Nsec);
    assert_eq!(signers(&sole, Rtype::DNSKEY), [old]);
    // The new key is published first, or signs at once.
    let published = signed_again(&sole, vec![zsk(2)], &[ksk(1)]);
    assert_eq!(signers(&published, Rtype::DNSKEY), [old]);
    let mut double = signed_again(&sole, vec![zsk(2), ksk(1)], &[]);
    // Signing again changes nothing: the signer does not know when the parent has the DS record of
    // the new key.
    for _ in 0..2 {
        assert_eq!(
            (signers(&double, Rtype::DNSKEY), signers(&double, Rtype::SOA)),
            (both.to_vec(), vec![old])
        );
        double = signed_again(&double, vec![zsk(2), ksk(1)], &[]);
    }
    // When the parent has it, the old key is only published, and is later removed.
    let alone = signed_again(&double, vec![ksk(1)], &[zsk(2)]);
    assert_eq!((signers(&alone, Rtype::DNSKEY), signers(&alone, Rtype::SOA)), (vec![new], vec![new]));
    let last = signed_again(&alone, vec![ksk(1)], &[]);
    assert_eq!(last.apex_rrset(Rtype::DNSKEY).unwrap().count(), 1);
}

/// The zone, compiled in short chunks.
fn compile(contents: &Contents) -> StoredZone {
    let mut octets = Vec::new();
    compiled::write_in_chunks(contents, Verification::Nothing, 300, &mut octets).unwrap();
    StoredZone::of_octets(octets).unwrap()
}

/// The faults of a step for both versions as contents, as compiled zones and as images.
fn faults_of_each_form(before: &Contents, after: &Contents, now: Option<u32>) -> [Vec<TransitionFault>; 3] {
    let (keys, next_keys) = (KeyState::of(before).unwrap(), KeyState::of(after).unwrap());
    let faults = |data, next_data| {
        let next = SignedVersion { keys: &next_keys, data: next_data };
        transition(SignedVersion { keys: &keys, data }, next, now)
    };
    let (stored, next_stored) = (compile(before), compile(after));
    let (image, next_image) = (Image::compile(before).unwrap(), Image::compile(after).unwrap());
    [
        faults(DataSigners::Zone(before.into()), DataSigners::Zone(after.into())),
        faults(DataSigners::Zone((&stored).into()), DataSigners::Zone((&next_stored).into())),
        faults(
            DataSigners::Image { image: &image, online: &[] },
            DataSigners::Image { image: &next_image, online: &[] },
        ),
    ]
}

#[test]
fn contents_compiled_zones_and_images_have_the_same_faults() {
    for (what, (keys, others), (next_keys, next_others), expected) in steps() {
        let before = signed_by(keys, &others, Mechanism::Nsec);
        let after = signed_by(next_keys, &next_others, Mechanism::Nsec);
        let forms = faults_of_each_form(&before, &after, None);
        assert_eq!(forms[0], transition_between(&before, &after), "{what}");
        for faults in forms {
            assert_eq!(kinds(&faults), expected, "{what}");
        }
    }
}

/// Signing software may replace signatures gradually: the old key must stay until no RRset is
/// signed only by it.
#[test]
fn one_rrset_that_only_a_removed_key_signs_is_found() {
    let both = signed_by(vec![ksk(1), zsk(2), zsk(3)], &[], Mechanism::Nsec);
    let after = signed_by(vec![ksk(1), zsk(3)], &[], Mechanism::Nsec);
    let mut run = NodesBuilder::default();
    for node in both.nodes() {
        run.begin_node(node.name());
        for rrset in node.rrsets() {
            run.begin_rrset(rrset.rtype(), rrset.covered(), rrset.ttl());
            let is_old = rrset.covered() == Rtype::TXT && rrset.rtype() == Rtype::RRSIG;
            let by_old = |rdata: &&[u8]| !is_old || Rrsig::parse(rdata).unwrap().tag == zsk(2).tag();
            rrset
                .rdatas()
                .filter(by_old)
                .for_each(|rdata| run.push_record(|out| out.extend_from_slice(rdata)));
        }
    }
    let before = Contents::from_parts(both.apex(), vec![run]);
    let (owner, tags) = (name("*.w.example."), vec![zsk(2).tag()]);
    let fault = TransitionFault::OldDataSigners { owner, rtype: Rtype::TXT, tags };
    for faults in faults_of_each_form(&before, &after, Some(NOW)) {
        assert_eq!(faults, std::slice::from_ref(&fault));
    }
    // No validator caches data with expired signatures.
    for faults in faults_of_each_form(&before, &after, Some(EXPIRATION + 1)) {
        assert_eq!(faults, []);
    }
}

/// The zone with the DNSKEY records of these keys. `pairs` sign the key set.
fn signed_key_set(zone: &Contents, keys: &[KeyPair], pairs: Vec<KeyPair>) -> Contents {
    let records = keys.iter().map(KeyRecord::of).collect();
    let options = KeySetOptions {
        records,
        pairs,
        inception: INCEPTION,
        expiration: EXPIRATION,
        ttl: None,
        publish_cds: false,
        drop_other_dnskeys: false,
        withdrawn: Vec::new(),
        sync: CdsSchedule::default(),
    };
    sign_key_set(zone, &options).unwrap()
}

#[test]
fn a_previous_single_key_without_the_sep_flag_still_signs_the_key_set() {
    let before = signed_key_set(&zone(RECORDS), &[zsk(2)], vec![zsk(2)]);
    let after = signed_key_set(&before, &[zsk(2), ksk(1)], vec![zsk(2), ksk(1)]);
    assert_eq!(after.node(0).signatures(Rtype::DNSKEY).unwrap().count(), 2);
    assert_eq!(transition_between(&before, &after), []);
}

/// A zone that is signed online does not contain its signatures: the signers are the keys of the
/// DNSKEY RRset for data.
#[test]
fn a_key_set_without_the_keys_that_signed_online_is_found() {
    let key_set = |keys: &[KeyPair]| signed_key_set(&zone(RECORDS), keys, vec![ksk(1)]);
    let before = key_set(&[ksk(1), zsk(2)]);
    assert_eq!(kinds(&transition_between(&before, &key_set(&[ksk(1), zsk(3)]))), ["removed"]);
    assert_eq!(transition_between(&before, &key_set(&[ksk(1), zsk(2), zsk(3)])), []);
    assert_eq!(transition_between(&key_set(&[ksk(1), zsk(2), zsk(3)]), &key_set(&[ksk(1), zsk(3)])), []);
}

#[test]
fn a_compiled_zone_is_not_updated_if_the_transition_is_unsafe() {
    let before = signed_by(vec![ksk(1), zsk(2)], &[zsk(3)], Mechanism::Nsec);
    let keys = KeySet::new(&name("example."), vec![ksk(1), zsk(3)]).unwrap();
    let previous = Some(PreviousZone::new(&before, 14 * 86_400));
    let options =
        SignOptions { previous, now: NOW + 3600, drop_foreign_dnskeys: true, ..options(Mechanism::Nsec) };
    let (stored, none) = (compile(&before), ChangeSet::between(&before, &before, |_| true));
    match resign_stored(&stored, &none, &keys, &options) {
        Err(SignError::UnsafeTransition(faults)) => assert_eq!(kinds(&faults), ["removed"]),
        other => panic!("{other:?}"),
    }
    let allowed = SignOptions { allow_unsafe_transition: true, ..options };
    assert!(resign_stored(&stored, &none, &keys, &allowed).is_ok());
}

#[test]
fn unsafe_transitions_are_signed_only_if_they_are_allowed() {
    for (what, (keys, others), (next_keys, next_others), expected) in steps() {
        let before = signed_by(copies(&keys), &others, Mechanism::Nsec);
        let previous = Some(PreviousZone::new(&before, 14 * 86_400));
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
    let versions = [(&before, &nsec), (&later, &nsec3)]
        .map(|(keys, zone)| SignedVersion { keys, data: DataSigners::Zone(zone.into()) });
    assert_eq!(transition(versions[0], versions[1], None), []);
}

/// Tag and algorithm identify the key of a signature. A key of the new version with the tag and
/// algorithm of an old key is still another key.
#[test]
fn keys_with_the_same_tag_are_distinguished() {
    let before = signed_by(vec![ksk(1), zsk(2)], &[], Mechanism::Nsec);
    let tag = zsk(2).tag();
    // Two octets at even positions are swapped: the tag is the same (RFC 4034, appendix B).
    let after = rewrite(&before, |_, rtype, _, rdata| {
        if rtype == Rtype::DNSKEY && key_tag(rdata) == tag {
            rdata.swap(4, 6);
        }
    });
    let faults = transition_between(&before, &after);
    let (owner, rtype, tags) = (name("example."), Rtype::NS, vec![tag]);
    let removed = TransitionFault::OldDataSigners { owner: owner.clone(), rtype, tags: tags.clone() };
    assert_eq!(faults, [TransitionFault::NewDataSigners { owner, rtype, tags }, removed]);
}

#[test]
fn transitions_from_and_to_unsigned_versions_have_no_faults() {
    let before = signed_by(vec![ksk(1)], &[], Mechanism::Nsec);
    for (old, new) in [(&before, &zone("")), (&zone(""), &before), (&before, &before)] {
        assert_eq!(transition_between(old, new), []);
    }
}
