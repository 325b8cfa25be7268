//! Signing if the private key of a key-signing key is elsewhere.

use super::transition::{copies, ksk, with_keys, zsk};
use super::*;
use crate::keys::{CdsSchedule, KeyRecord, KeyTimes, REVOKE, SEP, ZONE_KEY};
use crate::online::{KeySetOptions, sign_key_set};
use crate::sign::{AbsentSignature, PreviousZone, SignError, SignWarning, resign, resign_changes};
use crate::verify::Anchor;
use nonesuch_zone::ChangeSet;

fn set(keys: Vec<KeyPair>) -> KeySet {
    KeySet::new(&name("example."), keys).unwrap()
}

/// The zone with a key set of `keys` and `published`, signed by the key-signing keys of `keys`.
fn key_set(keys: &[KeyPair], published: &[KeyPair], publish_cds: bool) -> Contents {
    let options = KeySetOptions {
        records: Vec::new(),
        pairs: copies(keys),
        inception: INCEPTION,
        expiration: EXPIRATION,
        ttl: None,
        publish_cds,
        drop_other_dnskeys: false,
        withdrawn: Vec::new(),
        sync: CdsSchedule::default(),
    };
    let all: Vec<KeyPair> = copies(keys).into_iter().chain(copies(published)).collect();
    sign_key_set(&with_keys(&all), &options).unwrap()
}

/// Tags of the signatures over an RRset of the apex.
fn signers(zone: &Contents, rtype: Rtype) -> Vec<u16> {
    let signatures = node(zone, "example.").signatures(rtype).unwrap();
    signatures.rdatas().filter_map(Rrsig::parse).map(|fields| fields.tag).collect()
}

fn absent(result: Result<crate::Signed, SignError>) -> (Rtype, Vec<u16>, AbsentSignature) {
    match result {
        Err(SignError::AbsentKey { rtype, tags, reason }) => (rtype, tags, reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_signature_over_the_key_set_is_copied() {
    let contents = key_set(&[ksk(1), zsk(2)], &[], true);
    let keys = set(vec![zsk(2)]);
    for mechanism in NSEC_AND_NSEC3 {
        let signed = sign(&contents, &keys, &options(mechanism)).unwrap();
        assert_eq!(signed.warnings(), []);
        assert_sound(signed.contents());
        let anchors = vec![Anchor::Dnskey(ksk(1).dnskey_rdata())];
        let options = VerifyOptions { now: Some(NOW), anchors, ..VerifyOptions::default() };
        assert!(verify(signed.contents(), &options).has_no_faults());
        for rtype in [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY] {
            assert_eq!(signers(signed.contents(), rtype), [ksk(1).tag()]);
        }
        assert_eq!(signers(signed.contents(), Rtype::SOA), [zsk(2).tag()]);
        assert_eq!(signed.statistics().signatures_kept, 3);
    }
}

#[test]
fn signatures_that_cannot_be_copied_are_errors_with_the_tag() {
    let keys = set(vec![zsk(2)]);
    let (tag, options) = (ksk(1).tag(), options(Mechanism::Nsec));
    let refused = |contents: &Contents, options: &SignOptions<'_>| absent(sign(contents, &keys, options));
    let plain = with_keys(&[ksk(1), zsk(2)]);
    assert_eq!(refused(&plain, &options), (Rtype::DNSKEY, vec![tag], AbsentSignature::Missing));
    let contents = key_set(&[ksk(1), zsk(2)], &[], false);
    let late = SignOptions { now: EXPIRATION + 1, expiration: EXPIRATION + 86_400, ..options.clone() };
    assert_eq!(refused(&contents, &late), (Rtype::DNSKEY, vec![tag], AbsentSignature::NotValid));
    let other_ttl = SignOptions { dnskey_ttl: Some(77), ..options.clone() };
    assert_eq!(refused(&contents, &other_ttl), (Rtype::DNSKEY, vec![tag], AbsentSignature::DoesNotVerify));
    let more = SignOptions { publish_cds: true, ..options.clone() };
    assert_eq!(refused(&contents, &more), (Rtype::CDS, vec![tag], AbsentSignature::Missing));
    let damaged = rewrite(&contents, |_, rtype, covered, rdata| {
        if (rtype, covered) == (Rtype::RRSIG, Rtype::DNSKEY) {
            *rdata.last_mut().unwrap() ^= 1;
        }
    });
    assert_eq!(refused(&damaged, &options), (Rtype::DNSKEY, vec![tag], AbsentSignature::DoesNotVerify));
    let added = set(vec![zsk(2), zsk(3)]);
    assert_eq!(absent(sign(&contents, &added, &options)).2, AbsentSignature::DoesNotVerify);
    // Without the DNSKEY record of the other key, the available key signs everything.
    let dropped = SignOptions { drop_foreign_dnskeys: true, ..options };
    assert_sound(sign(&contents, &keys, &dropped).unwrap().contents());
}

#[test]
fn a_key_without_a_private_file_counts_as_published() {
    let record = |key: &KeyPair| KeyRecord::parse(&key.key_file_text(&KeyTimes::default())).unwrap();
    let options = SignOptions { drop_foreign_dnskeys: true, ..options(Mechanism::Nsec) };
    let keys = |pairs| set(pairs).with_offline(vec![record(&ksk(1))]).unwrap();
    let contents = key_set(&[ksk(1), zsk(2)], &[], false);
    let signed = sign(&contents, &keys(vec![zsk(2)]), &options).unwrap();
    assert_eq!(signers(signed.contents(), Rtype::DNSKEY), [ksk(1).tag()]);
    // A lost private key file is an error even if another key signs.
    let other = keys(vec![ksk(4), zsk(2)]);
    assert_eq!(absent(sign(&zone(""), &other, &options)).1, [ksk(1).tag()]);
    let elsewhere =
        KeyRecord::parse(&key("other.", 257, Algorithm::ED25519, 1).key_file_text(&KeyTimes::default()))
            .unwrap();
    assert!(set(vec![zsk(2)]).with_offline(vec![elsewhere]).is_err());
}

#[test]
fn given_keys_keep_their_roles_if_another_key_is_absent() {
    // If another key-signing key is given, both sign.
    let contents = key_set(&[ksk(1), ksk(4), zsk(2)], &[], false);
    let signed = sign(&contents, &set(vec![ksk(4), zsk(2)]), &options(Mechanism::Nsec)).unwrap();
    let mut expected = [ksk(1).tag(), ksk(4).tag()];
    expected.sort_unstable();
    let mut found = signers(signed.contents(), Rtype::DNSKEY);
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_sound(signed.contents());
    // If the key set changes, a given key that also signed before is sufficient, and the other
    // signature is dropped. A new key is not sufficient.
    let three = set(vec![ksk(4), zsk(2), zsk(3)]);
    let signed = sign(&contents, &three, &options(Mechanism::Nsec)).unwrap();
    let (rtype, reason) = (Rtype::DNSKEY, AbsentSignature::DoesNotVerify);
    assert_eq!(signed.warnings(), [SignWarning::SignatureDropped { rtype, tag: ksk(1).tag(), reason }]);
    let anew = set(vec![ksk(5), zsk(2)]);
    let single = key_set(&[ksk(1), zsk(2)], &[], false);
    assert_eq!(absent(sign(&single, &anew, &options(Mechanism::Nsec))).1, [ksk(1).tag()]);
    // A key that is published for later use signs nothing and does not change the roles of the
    // other keys.
    let signed =
        sign(&with_keys(&[ksk(5), zsk(3)]), &ksk_and_zsk_of("example."), &options(Mechanism::Nsec)).unwrap();
    assert_sound(signed.contents());
    assert_eq!(signers(signed.contents(), Rtype::DNSKEY), [ksk(1).tag()]);
    assert_eq!(signers(signed.contents(), Rtype::SOA), [zsk(2).tag()]);
    let signed = sign(&with_keys(&[zsk(3)]), &csk_of("example."), &options(Mechanism::Nsec)).unwrap();
    assert_sound(signed.contents());
    assert_eq!(signers(signed.contents(), Rtype::SOA), [ksk(1).tag()]);
    // A revoked key is not an entry point for validators.
    let revoked = key("example.", ZONE_KEY | SEP | REVOKE, Algorithm::ED25519, 6);
    let refused = sign(&with_keys(&[ksk(1)]), &set(vec![revoked, zsk(2)]), &options(Mechanism::Nsec));
    assert_eq!(absent(refused).1, [ksk(1).tag()]);
}

#[test]
fn signing_again_keeps_the_copied_signature_or_copies_a_newer_one() {
    let contents = key_set(&[ksk(1), zsk(2)], &[], false);
    let keys = set(vec![zsk(2)]);
    for mechanism in NSEC_AND_NSEC3 {
        let old = sign(&contents, &keys, &options(mechanism)).unwrap().into_contents();
        let previous = Some(PreviousZone::new(&old, 14 * 86_400));
        let later = SignOptions { now: NOW + 3600, previous, ..options(mechanism) };
        assert!(resign(&contents, &keys, &later).unwrap().is_none());
        // The input may have only the DNSKEY record: the previous zone has the signature.
        let plain = with_keys(&[ksk(1), zsk(2)]);
        assert!(resign(&plain, &keys, &later).unwrap().is_none());
        let changes = ChangeSet::parse(b"+ new.example. 60 IN A 192.0.2.9\n", &name("example.")).unwrap();
        let resigned = resign_changes(&changes, &keys, &later).unwrap().unwrap();
        assert!(resigned.names_planned().is_some());
        let signed = resigned.into_signed().unwrap();
        assert_sound(signed.contents());
        assert_eq!(signers(signed.contents(), Rtype::DNSKEY), [ksk(1).tag()]);
        // A key set that was signed again replaces the key set of the previous zone.
        let newer = rewritten(&contents, EXPIRATION + 86_400);
        let signed = resign(&newer, &keys, &later).unwrap().unwrap();
        let signatures = node(signed.contents(), "example.").signatures(Rtype::DNSKEY).unwrap();
        let expirations: Vec<u32> =
            signatures.rdatas().filter_map(Rrsig::parse).map(|fields| fields.expiration).collect();
        assert_eq!(expirations, [EXPIRATION + 86_400]);
    }
}

/// The zone with a new signature over its DNSKEY RRset.
fn rewritten(zone: &Contents, expiration: u32) -> Contents {
    let fresh = signature(zone, "example.", Rtype::DNSKEY, &ksk(1), |fields| fields.expiration = expiration);
    rewrite(zone, |_, rtype, covered, rdata| {
        if (rtype, covered) == (Rtype::RRSIG, Rtype::DNSKEY) {
            rdata.clone_from(&fresh);
        }
    })
}

#[test]
fn verification_warns_if_no_key_with_the_sep_flag_signs_the_key_set() {
    let signed = signed(&zone("a A 192.0.2.1\n"), Mechanism::Nsec);
    let fresh = signature(&signed, "example.", Rtype::DNSKEY, &zsk(2), |_| {});
    let broken = rewrite(&signed, |_, rtype, covered, rdata| {
        if (rtype, covered) == (Rtype::RRSIG, Rtype::DNSKEY) {
            rdata.clone_from(&fresh);
        }
    });
    let report = report(&broken);
    assert!(report.has_no_faults());
    assert_eq!(report.warnings, [VerifyWarning::SepKeysNotSigning { tags: vec![ksk(1).tag()] }]);
}

#[test]
fn an_expiration_in_the_past_is_an_error() {
    let past = SignOptions { now: EXPIRATION + 1, ..options(Mechanism::Nsec) };
    assert_eq!(sign(&zone(""), &csk_of("example."), &past).unwrap_err(), SignError::Expired);
    let last = SignOptions { now: EXPIRATION, ..options(Mechanism::Nsec) };
    assert!(sign(&zone(""), &csk_of("example."), &last).is_ok());
}
