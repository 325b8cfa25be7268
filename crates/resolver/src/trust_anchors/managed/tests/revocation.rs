//! Revoked keys (RFC 5011 §2.1, §5).

use super::super::testing::*;
use super::super::*;

/// F-194.
#[test]
fn a_self_signed_key_with_revoke_is_revoked_at_once() {
    let (first, second) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[first.dnskey(), second.dnskey()]);
    assert_eq!(nonesuch_crypto::key_tag(&first.revoked()), first.tag().wrapping_add(128));
    let changes = show(&mut anchor, &[first.revoked(), second.rdata()], &[&first, &second], START);
    assert_eq!(changes, [first.change(KeyEvent::Revoked)]);
    assert_eq!(anchor.anchors(), [second.dnskey()]);
}

/// F-196.
#[test]
fn a_revoked_key_is_not_used_as_trust_anchor() {
    let (first, second, new) = (ksk(1), ksk(2), ksk(3));
    let mut anchor = anchor(&[first.ds(), second.ds()]);
    // In the same RRset, the revoked key verifies nothing but its revocation.
    let outcome = sign(&[first.revoked(), new.rdata()], &[&first], START).observe(&mut anchor, START);
    assert_eq!(outcome.changes, [first.change(KeyEvent::Revoked)]);
    assert_eq!(outcome.fault, Some(ObservationFault::NoAnchor));
    assert_eq!(anchor.anchors(), [second.ds()]);
    // Later neither, with and without the REVOKE flag.
    for rrset in [[first.revoked(), new.rdata()], [first.rdata(), new.rdata()]] {
        let outcome = sign(&rrset, &[&first], START + DAY).observe(&mut anchor, START + DAY);
        assert_eq!((outcome.fault, outcome.changes), (Some(ObservationFault::NoAnchor), vec![]));
    }
    // The key does not return by another key's signature.
    for day in 0..70 {
        let now = START + day * DAY;
        let changes = show(&mut anchor, &[first.rdata(), second.rdata()], &[&second], now);
        assert!(!changes.iter().any(|change| *change == first.change(KeyEvent::Trusted)), "{changes:?}");
    }
    assert_eq!(anchor.anchors(), [second.dnskey()]);
}

#[test]
fn a_key_that_is_published_with_and_without_revoke_is_revoked_by_its_signature_with_revoke() {
    let (key, new) = (ksk(1), ksk(2));
    let dnskeys = vec![key.rdata(), key.revoked(), new.rdata()];
    let by = |form: &[u8]| sign_as(&dnskeys, &key, form, START, TTL);
    let mut state = anchor(&[key.dnskey()]);
    let signed = Signed { dnskeys: dnskeys.clone(), signatures: vec![by(&key.rdata())] };
    assert_eq!(signed.observe(&mut state, START).fault, None, "the signature is not by the revoked form");
    let mut state = anchor(&[key.dnskey()]);
    let signatures = vec![by(&key.rdata()), by(&key.revoked())];
    let outcome = Signed { dnskeys: dnskeys.clone(), signatures }.observe(&mut state, START);
    assert_eq!(outcome.fault, Some(ObservationFault::NoAnchor));
    assert_eq!(outcome.changes, [key.change(KeyEvent::Revoked), Change::AllRevoked]);
}

#[test]
fn the_revoke_flag_without_a_signature_by_the_key_revokes_nothing() {
    let (first, second) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[first.dnskey(), second.dnskey()]);
    let changes = show(&mut anchor, &[first.revoked(), second.rdata()], &[&second], START);
    assert_eq!(changes, [first.change(KeyEvent::Missing)], "the revoked form is another record");
    assert_eq!(anchor.anchors(), [first.dnskey(), second.dnskey()]);
}

#[test]
fn a_key_is_revoked_in_its_hold_down_time() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.dnskey()]);
    show(&mut anchor, &[old.rdata(), new.rdata()], &[&old], START);
    let changes = show(&mut anchor, &[old.rdata(), new.revoked()], &[&old, &new], START + DAY);
    assert_eq!(changes, [new.change(KeyEvent::Revoked)]);
    for day in 2..100 {
        show(&mut anchor, &[old.rdata(), new.rdata()], &[&old], START + day * DAY);
        assert_eq!(anchor.anchors(), [old.dnskey()]);
    }
}

#[test]
fn an_unknown_key_that_revokes_itself_is_stored_only_if_an_anchor_signs_the_rrset() {
    let (old, other) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.dnskey()]);
    let rrset = [old.rdata(), other.revoked()];
    let outcome = sign(&rrset, &[&other], START).observe(&mut anchor, START);
    assert_eq!((outcome.fault, outcome.changes), (Some(ObservationFault::NoSignature), vec![]));
    assert_eq!(anchor.keys().len(), 1);
    assert_eq!(show(&mut anchor, &rrset, &[&old, &other], START), [other.change(KeyEvent::Revoked)]);
    let changes = show(&mut anchor, &[old.rdata(), other.rdata()], &[&old], START + DAY);
    assert_eq!(changes, [], "a revoked key does not become pending");
}

/// RFC 5011 §2.2: a compromised key cannot leave a successor behind.
#[test]
fn the_acceptance_of_a_key_ends_when_all_keys_that_introduced_it_are_revoked() {
    let (bad, good, new) = (ksk(1), ksk(2), ksk(3));
    let mut anchor = anchor(&[bad.dnskey(), good.dnskey()]);
    show(&mut anchor, &[bad.rdata(), good.rdata(), new.rdata()], &[&bad], START);
    let now = START + 29 * DAY;
    let changes = show(&mut anchor, &[bad.revoked(), good.rdata(), new.rdata()], &[&bad, &good], now);
    let until = now + 30 * DAY;
    assert_eq!(
        changes,
        [
            bad.change(KeyEvent::Revoked),
            new.change(KeyEvent::SignersRevoked),
            new.change(KeyEvent::Pending { until })
        ],
        "the other anchor signs the RRset too, so the hold-down begins again"
    );
    assert_eq!(show(&mut anchor, &[good.rdata(), new.rdata()], &[&good], START + 31 * DAY), []);
}

#[test]
fn the_acceptance_of_a_key_continues_if_one_of_the_keys_that_introduced_it_is_not_revoked() {
    let (first, second, new) = (ksk(1), ksk(2), ksk(3));
    let mut anchor = anchor(&[first.dnskey(), second.dnskey()]);
    show(&mut anchor, &[first.rdata(), second.rdata(), new.rdata()], &[&first, &second], START);
    let rrset = [first.revoked(), second.rdata(), new.rdata()];
    let changes = show(&mut anchor, &rrset, &[&first, &second], START + DAY);
    assert_eq!(changes, [first.change(KeyEvent::Revoked)]);
    let changes = show(&mut anchor, &[second.rdata(), new.rdata()], &[&second], START + 30 * DAY);
    assert_eq!(changes, [new.change(KeyEvent::Trusted)]);
}

/// XF-073 (RFC 5011 §2.4.2).
#[test]
fn a_revoked_key_is_removed_30_days_after_it_was_seen_last() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.dnskey(), new.dnskey()]);
    let with_old = [old.revoked(), new.rdata()];
    show(&mut anchor, &with_old, &[&old, &new], START);
    assert_eq!(show(&mut anchor, &with_old, &[&new], START + 20 * DAY), [], "seen again");
    assert_eq!(show(&mut anchor, &[new.rdata()], &[&new], START + 50 * DAY - 1), []);
    let changes = show(&mut anchor, &[new.rdata()], &[&new], START + 50 * DAY);
    assert_eq!(changes, [old.change(KeyEvent::Removed)]);
    assert_eq!(show(&mut anchor, &[old.rdata(), new.rdata()], &[&new], START + 51 * DAY), []);
    assert_eq!(anchor.anchors(), [new.dnskey()]);
}

/// RFC 5011 §5.
#[test]
fn a_zone_of_which_all_keys_are_revoked_has_no_anchor_also_after_a_restart() {
    let key = ksk(1);
    for record in [key.ds(), key.dnskey()] {
        let mut anchor = anchor(std::slice::from_ref(&record));
        show(&mut anchor, &[key.rdata()], &[&key], START);
        let outcome = sign(&[key.revoked()], &[&key], START + DAY).observe(&mut anchor, START + DAY);
        assert_eq!(outcome.changes, [key.change(KeyEvent::Revoked), Change::AllRevoked]);
        assert_eq!((anchor.anchors(), anchor.next_query(START + DAY)), (vec![], None));
        let text = anchor.to_text();
        let again = ManagedAnchor::parse(&text, &configured(&[record]), START + 2 * DAY).unwrap();
        assert_eq!(again, anchor);
        // Another key in the configuration makes the zone secure again.
        let new = ksk(2);
        let again = ManagedAnchor::parse(&text, &configured(&[new.ds()]), START + 2 * DAY).unwrap();
        assert_eq!(again.anchors(), [new.ds()]);
    }
}
