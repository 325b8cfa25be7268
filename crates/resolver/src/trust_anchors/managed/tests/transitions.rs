//! New, missing and configured keys.

use super::super::testing::*;
use super::super::*;
use crate::trust_anchors::signal_query_name;

/// Returns the states of the keys by name, in the order of the keys.
fn states(anchor: &ManagedAnchor) -> Vec<&'static str> {
    let name = |key: &ManagedKey| match key.state() {
        KeyState::AddPend { .. } => "addpend",
        KeyState::Valid => "valid",
        KeyState::Missing => "missing",
        KeyState::Revoked { .. } => "revoked",
        KeyState::Removed => "removed",
    };
    anchor.keys().iter().map(name).collect()
}

#[test]
fn a_key_of_a_configured_ds_record_is_valid_at_the_first_observation() {
    let key = ksk(1);
    let mut anchor = anchor(&[key.ds()]);
    assert_eq!(anchor.anchors(), [key.ds()]);
    assert_eq!(anchor.next_query(START), Some(START), "the first query is due");
    assert_eq!(show(&mut anchor, &[key.rdata()], &[&key], START), [key.change(KeyEvent::Trusted)]);
    assert_eq!(anchor.anchors(), [key.dnskey()]);
    assert_eq!(show(&mut anchor, &[key.rdata()], &[&key], START + DAY), []);
}

#[test]
fn a_configured_key_that_is_not_published_stays_an_anchor_and_is_valid_when_it_appears() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.ds(), new.ds()]);
    show(&mut anchor, &[old.rdata()], &[&old], START);
    assert_eq!(anchor.anchors(), [old.dnskey(), new.ds()]);
    // The new key does not sign.
    let changes = show(&mut anchor, &[old.rdata(), new.rdata()], &[&old], START + DAY);
    assert_eq!(changes, [new.change(KeyEvent::Trusted)]);
    // Only the new key signs.
    assert_eq!(show(&mut anchor, &[old.rdata(), new.rdata()], &[&new], START + 2 * DAY), []);
}

/// F-202, F-201.
#[test]
fn a_new_key_is_not_added_before_the_hold_down_and_is_added_after_it() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.dnskey()]);
    let both = [old.rdata(), new.rdata()];
    let until = START + 30 * DAY;
    assert_eq!(show(&mut anchor, &both, &[&old], START), [new.change(KeyEvent::Pending { until })]);
    for now in (1..30).map(|day| START + day * DAY).chain([until - 1]) {
        assert_eq!(show(&mut anchor, &both, &[&old], now), []);
        assert_eq!(anchor.anchors(), [old.dnskey()]);
        // A signature by the new key alone is not accepted.
        let outcome = sign(&both, &[&new], now).observe(&mut anchor, now);
        assert_eq!((outcome.fault, outcome.changes), (Some(ObservationFault::NoSignature), vec![]));
    }
    assert_eq!(show(&mut anchor, &both, &[&old], until), [new.change(KeyEvent::Trusted)]);
    assert_eq!(anchor.anchors(), [old.dnskey(), new.dnskey()]);
    assert_eq!(show(&mut anchor, &both, &[&new], until + 1), []);
}

/// RFC 5011 §2.2: the RRset must be seen after the hold-down time.
#[test]
fn the_end_of_the_hold_down_without_an_observation_does_not_add_a_key() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.dnskey()]);
    show(&mut anchor, &[old.rdata(), new.rdata()], &[&old], START);
    anchor.record_failure(START + 100 * DAY);
    assert_eq!(anchor.anchors(), [old.dnskey()]);
    let changes = show(&mut anchor, &[old.rdata(), new.rdata()], &[&old], START + 100 * DAY);
    assert_eq!(changes, [new.change(KeyEvent::Trusted)]);
}

/// RFC 5011 §2.4.1.
#[test]
fn the_hold_down_is_the_original_ttl_if_this_is_more_than_30_days() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.dnskey()]);
    let signed = sign_with_ttl(&[old.rdata(), new.rdata()], &[&old], START, 40 * DAY as u32);
    let until = START + 40 * DAY;
    assert_eq!(signed.observe(&mut anchor, START).changes, [new.change(KeyEvent::Pending { until })]);
}

/// XF-071.
#[test]
fn the_hold_down_restarts_when_the_key_is_gone() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.dnskey()]);
    let both = [old.rdata(), new.rdata()];
    show(&mut anchor, &both, &[&old], START);
    let gone = show(&mut anchor, &[old.rdata()], &[&old], START + 29 * DAY);
    assert_eq!(gone, [new.change(KeyEvent::Disappeared)]);
    assert_eq!(states(&anchor), ["valid"]);
    let back = START + 29 * DAY + 1;
    let until = back + 30 * DAY;
    assert_eq!(show(&mut anchor, &both, &[&old], back), [new.change(KeyEvent::Pending { until })]);
    assert_eq!(show(&mut anchor, &both, &[&old], until - 1), []);
    assert_eq!(show(&mut anchor, &both, &[&old], until), [new.change(KeyEvent::Trusted)]);
}

#[test]
fn an_rrset_without_the_key_restarts_the_hold_down_only_if_an_anchor_signs_it() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.dnskey()]);
    let both = [old.rdata(), new.rdata()];
    show(&mut anchor, &both, &[&old], START);
    let outcome = sign(&[old.rdata()], &[], START).observe(&mut anchor, START + DAY);
    assert_eq!(outcome.fault, Some(ObservationFault::NoSignature));
    assert_eq!(show(&mut anchor, &both, &[&old], START + 30 * DAY), [new.change(KeyEvent::Trusted)]);
}

#[test]
fn a_missing_key_is_still_an_anchor_and_can_return() {
    let (first, second) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[first.dnskey(), second.dnskey()]);
    let changes = show(&mut anchor, &[first.rdata()], &[&first], START);
    assert_eq!(changes, [second.change(KeyEvent::Missing)]);
    assert_eq!(anchor.anchors(), [first.dnskey(), second.dnskey()]);
    assert_eq!(show(&mut anchor, &[first.rdata()], &[&first], START + 400 * DAY), []);
    let now = START + 401 * DAY;
    let changes = show(&mut anchor, &[second.rdata()], &[&second], now);
    assert_eq!(changes, [first.change(KeyEvent::Missing), second.change(KeyEvent::Returned)]);
}

#[test]
fn only_keys_with_the_sep_flag_are_learned() {
    let (old, zsk) = (ksk(1), ksk(2).with_flags(256));
    let not_a_zone_key = ksk(3).with_flags(1);
    let mut anchor = anchor(&[old.dnskey()]);
    let rrset = [old.rdata(), zsk.rdata(), not_a_zone_key.rdata()];
    assert_eq!(show(&mut anchor, &rrset, &[&old], START), []);
    assert_eq!(states(&anchor), ["valid"]);
}

#[test]
fn a_configured_key_needs_no_sep_flag() {
    let key = ksk(1).with_flags(256);
    let mut anchor = anchor(&[key.ds()]);
    assert_eq!(show(&mut anchor, &[key.rdata()], &[&key], START), [key.change(KeyEvent::Trusted)]);
}

/// XF-072 (RFC 5011 §2.3).
#[test]
fn the_next_query_follows_half_the_ttl_after_success_and_a_tenth_after_failure() {
    let key = ksk(1);
    let mut anchor = anchor(&[key.dnskey()]);
    show(&mut anchor, &[key.rdata()], &[&key], START);
    assert_eq!(anchor.next_query(START), Some(START + u64::from(TTL) / 2));
    let failed = START + 1000;
    anchor.record_failure(failed);
    assert_eq!(anchor.next_query(failed), Some(failed + u64::from(TTL) / 10));
    sign(&[key.rdata()], &[], failed).observe(&mut anchor, failed + 1);
    assert_eq!(anchor.next_query(failed), Some(failed + 1 + u64::from(TTL) / 10));
    // The signature expires in ten hours.
    let now = START + u64::from(VALIDITY) - 36_000;
    sign(&[key.rdata()], &[&key], START).observe(&mut anchor, now);
    assert_eq!(anchor.next_query(now), Some(now + 18_000));
}

/// XF-070: a roll of the key as of the root zone in 2017 to 2019.
#[test]
fn a_key_roll_passes_through_all_states() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.ds()]);
    show(&mut anchor, &[old.rdata()], &[&old], START);
    let both = [old.rdata(), new.rdata()];
    show(&mut anchor, &both, &[&old], START + DAY);
    assert_eq!(states(&anchor), ["valid", "addpend"]);
    assert_eq!(anchor.tags(), [old.tag()]);
    show(&mut anchor, &both, &[&old], START + 31 * DAY);
    assert_eq!(states(&anchor), ["valid", "valid"]);
    let signal = signal_query_name(anchor.apex(), &anchor.tags()).unwrap().to_string();
    let mut tags = [old.tag(), new.tag()];
    tags.sort_unstable();
    assert_eq!(signal, format!("_ta-{:04x}-{:04x}.example.", tags[0], tags[1]));
    show(&mut anchor, &both, &[&new], START + 40 * DAY);
    let revoked = [old.revoked(), new.rdata()];
    let changes = show(&mut anchor, &revoked, &[&old, &new], START + 50 * DAY);
    assert_eq!(changes, [old.change(KeyEvent::Revoked)]);
    assert_eq!(states(&anchor), ["revoked", "valid"]);
    assert_eq!(anchor.anchors(), [new.dnskey()]);
    show(&mut anchor, &[new.rdata()], &[&new], START + 60 * DAY);
    assert_eq!(states(&anchor), ["revoked", "valid"]);
    let changes = show(&mut anchor, &[new.rdata()], &[&new], START + 80 * DAY);
    assert_eq!(changes, [old.change(KeyEvent::Removed)]);
    assert_eq!(states(&anchor), ["removed", "valid"]);
    assert_eq!(anchor.tags(), [new.tag()]);
}
