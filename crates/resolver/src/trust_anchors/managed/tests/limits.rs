//! RRsets that are not accepted, and bounds of memory and work.

use super::super::rrset::{KeyRrset, Work};
use super::super::testing::*;
use super::super::*;
use crate::trust_anchors::TrustAnchors;
use nonesuch_crypto::Algorithm;

fn fault(signed: &Signed, now: u64) -> Option<ObservationFault> {
    let mut anchor = anchor(&[ksk(1).dnskey()]);
    let outcome = signed.observe(&mut anchor, now);
    assert_eq!(outcome.changes, []);
    outcome.fault
}

#[test]
fn the_signature_must_be_valid_at_the_time_and_cover_the_whole_rrset() {
    let (key, other) = (ksk(1), ksk(2));
    let signed = sign(&[key.rdata(), other.rdata()], &[&key], START);
    let no_signature = Some(ObservationFault::NoSignature);
    assert_eq!(fault(&signed, START - 3601), no_signature, "not yet valid");
    assert_eq!(fault(&signed, START + u64::from(VALIDITY) + 1), no_signature, "expired");
    let mut fewer = signed.clone();
    fewer.dnskeys.pop();
    assert_eq!(fault(&fewer, START), no_signature, "a key is missing");
    // Covered type, algorithm, labels, tag, signer, signature.
    for at in [1, 2, 3, 17, 19, 40] {
        let mut changed = signed.clone();
        changed.signatures[0][at] ^= 1;
        assert_eq!(fault(&changed, START), no_signature, "octet {at}");
    }
    for length in 0..signed.signatures[0].len() {
        let mut truncated = signed.clone();
        truncated.signatures[0].truncate(length);
        assert_eq!(fault(&truncated, START), no_signature, "{length}");
    }
    assert_eq!(fault(&sign(&[other.rdata()], &[&other], START), START), Some(ObservationFault::NoAnchor));
    assert_eq!(fault(&sign(&[], &[], START), START), Some(ObservationFault::NoAnchor));
}

#[test]
fn the_order_of_records_does_not_matter() {
    let (key, other) = (ksk(1), ksk(2));
    let mut signed = sign(&[key.rdata(), other.rdata()], &[&key], START);
    signed.dnskeys.reverse();
    signed.dnskeys.push(key.rdata());
    let mut anchor = anchor(&[key.dnskey()]);
    assert_eq!(signed.observe(&mut anchor, START).fault, None);
}

#[test]
fn an_rrset_with_more_than_32_keys_is_not_accepted() {
    let key = ksk(1);
    let other = |number: u8| vec![1, 1, 3, 200, number];
    let rrset = |count: u8| [vec![key.rdata()], (1..count).map(other).collect()].concat();
    let mut state = anchor(&[key.dnskey()]);
    assert_eq!(show(&mut state, &rrset(32), &[&key], START), [], "keys of unknown algorithms are ignored");
    let outcome = sign(&rrset(33), &[&key], START).observe(&mut state, START);
    assert_eq!(outcome.fault, Some(ObservationFault::TooManyKeys));
}

#[test]
fn at_most_16_keys_are_learned_and_removed_keys_make_room() {
    let key = ksk(1);
    let keys: Vec<TestKey> = (2..=19).map(ksk).collect();
    let mut anchor = anchor(&[key.dnskey()]);
    let rrset: Vec<Vec<u8>> = std::iter::once(&key).chain(&keys).map(TestKey::rdata).collect();
    let changes = show(&mut anchor, &rrset, &[&key], START);
    let count = |changes: &[Change], ignored: bool| {
        let is_ignored = |change: &&Change| matches!(change, Change::Key { event: KeyEvent::Ignored, .. });
        changes.iter().filter(|change| is_ignored(change) == ignored).count()
    };
    assert_eq!((count(&changes, false), count(&changes, true)), (16, 2));
    assert_eq!(anchor.keys().len(), 17);
    // One of the stored keys is revoked and removed.
    let stored = keys.iter().find(|key| anchor.position(&key.rdata()).is_some()).unwrap();
    let mut revoked = rrset.clone();
    revoked.iter_mut().filter(|rdata| **rdata == stored.rdata()).for_each(|rdata| *rdata = stored.revoked());
    let changes = show(&mut anchor, &revoked, &[&key, stored], START + DAY);
    assert_eq!(changes[0], stored.change(KeyEvent::Revoked));
    assert_eq!(count(&changes, true), 2);
    let gone: Vec<Vec<u8>> = rrset.iter().filter(|rdata| **rdata != stored.rdata()).cloned().collect();
    let changes = show(&mut anchor, &gone, &[&key], START + 31 * DAY);
    assert!(changes.contains(&stored.change(KeyEvent::Removed)), "{changes:?}");
    assert_eq!((anchor.position(&stored.rdata()), anchor.keys().len()), (None, 17));
}

#[test]
fn the_number_of_verifications_is_bounded() {
    let key = ksk(1);
    let others: Vec<TestKey> = (2..=30).map(ksk).collect();
    let rrset: Vec<Vec<u8>> =
        std::iter::once(key.rdata()).chain(others.iter().map(TestKey::revoked)).collect();
    let dnskeys: Vec<&[u8]> = rrset.iter().map(Vec::as_slice).collect();
    let mut signed = sign(&rrset, &others.iter().collect::<Vec<_>>(), START);
    for signature in &mut signed.signatures {
        *signature.last_mut().unwrap() ^= 1;
    }
    let doubled = [signed.signatures.clone(), signed.signatures].concat();
    let signatures: Vec<&[u8]> = doubled.iter().map(Vec::as_slice).collect();
    let apex = apex();
    let observation = Observation { dnskeys: &dnskeys, signatures: &signatures };
    let rrset = KeyRrset::new(apex.view(), observation, START).unwrap();
    let mut work = Work::default();
    for dnskey in &dnskeys {
        assert_eq!(rrset.verify(dnskey, &mut work), None);
    }
    assert!((1..=MAX_VERIFICATIONS).contains(&work.verifications), "{work:?}");
}

#[test]
fn configured_records_are_limited_and_checked() {
    let ds = |tag: u8| AnchorRecord::Ds(vec![0, tag, 13, 200, 1]);
    let new = |records: &[AnchorRecord]| ManagedAnchor::new(&configured(records), START);
    assert!(new(&(0..16).map(ds).collect::<Vec<_>>()).is_ok());
    let error = new(&(0..17).map(ds).collect::<Vec<_>>()).unwrap_err();
    assert!(matches!(error, ManagedAnchorError::TooManyRecords { .. }));
    let error = new(&[AnchorRecord::Dnskey(ksk(1).revoked())]).unwrap_err();
    let ManagedAnchorError::Record { fault: RecordFault::Revoked { .. }, .. } = error else {
        panic!("{error}")
    };
    assert!(new(&[AnchorRecord::Ds(vec![])]).is_err());
}

#[test]
fn anchors_of_unsupported_algorithms_stay_and_validate_nothing() {
    let record = AnchorRecord::Dnskey(vec![1, 1, 3, 200, 1, 2, 3]);
    let mut anchor = anchor(std::slice::from_ref(&record));
    let AnchorRecord::Dnskey(rdata) = &record else { unreachable!() };
    let outcome = sign(std::slice::from_ref(rdata), &[], START).observe(&mut anchor, START);
    assert_eq!(outcome.fault, Some(ObservationFault::NoSignature));
    assert_eq!(anchor.anchors(), [record]);
    assert_eq!(anchor.keys()[0].algorithm(), Algorithm(200));
}

#[test]
fn the_built_in_anchors_can_be_managed() {
    let anchors = TrustAnchors::iana();
    let anchor = ManagedAnchor::new(anchors.iter().next().unwrap(), START).unwrap();
    assert_eq!(anchor.tags(), [20326, 38696]);
}
