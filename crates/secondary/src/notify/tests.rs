//! Tests of received messages, and of the order and rate of sent messages.

use super::*;
use nonesuch_server::acl::Remote;
use proptest::prelude::*;
use std::net::SocketAddr;

fn apex() -> Name {
    "example.".parse().unwrap()
}

fn soa(serial: u32) -> SoaRecord {
    let mut rdata = b"\x02ns\0\0".to_vec();
    rdata.extend_from_slice(&serial.to_be_bytes());
    rdata.extend_from_slice(&[0; 16]);
    SoaRecord { ttl: 60, rdata }
}

fn remote(port: u16) -> Remote {
    Remote::plain(SocketAddr::from(([192, 0, 2, 1], port)))
}

fn sender() -> IpAddr {
    IpAddr::from([192, 0, 2, 7])
}

fn composed(serial: u32) -> Vec<u8> {
    let mut outbox = NotifyQueue::new(10);
    outbox.push(&apex(), &soa(serial), &[remote(53)], NotifyReason::Change, 0);
    let mut message = outbox.poll(0, true).unwrap().message;
    message[..2].copy_from_slice(&[1, 2]);
    message
}

fn answer(message: &[u8], standing: NotifyRole) -> (Option<ReceivedNotify>, Vec<u8>) {
    let mut out = Vec::new();
    let notified = handle(message, sender(), |_| standing, &mut out);
    (notified, out)
}

#[test]
fn what_is_sent_is_understood() {
    let message = composed(7);
    let (notified, out) = answer(&message, NotifyRole::Secondary { is_sender_permitted: true });
    assert_eq!(notified, Some(ReceivedNotify { apex: apex(), serial: Some(7), sender: sender() }));
    let header = Header::read(&out).unwrap();
    assert_eq!((header.id, header.opcode(), header.rcode()), (0x0102, opcode::NOTIFY, Rcode::NOERROR));
    assert_eq!(header.flags & (flags::QR | flags::AA), flags::QR | flags::AA);
    // The response repeats the question of the request and contains nothing else.
    assert_eq!(header.counts, [1, 0, 0, 0]);
    assert_eq!(out[HEADER..], message[HEADER..HEADER + 13]);
}

#[test]
fn senders_and_zones_are_told_apart() {
    let message = composed(7);
    let cases = [
        (NotifyRole::NotServed, 9),
        (NotifyRole::Primary, 9),
        (NotifyRole::Secondary { is_sender_permitted: false }, 5),
    ];
    for (standing, rcode) in cases {
        let (notified, out) = answer(&message, standing);
        assert_eq!(notified, None);
        assert_eq!(Header::read(&out).unwrap().rcode(), Rcode(rcode), "{standing:?}");
    }
}

#[test]
fn the_serial_is_a_hint_that_may_be_missing() {
    let mut message = composed(7);
    message.truncate(HEADER + 13);
    message[7] = 0;
    let (notified, _) = answer(&message, NotifyRole::Secondary { is_sender_permitted: true });
    assert_eq!(notified.unwrap().serial, None);
}

#[test]
fn malformed_messages_get_formerr_and_responses_nothing() {
    let whole = composed(7);
    let allowed = NotifyRole::Secondary { is_sender_permitted: true };
    for end in HEADER..whole.len() {
        let (notified, out) = answer(&whole[..end], allowed);
        assert_eq!(notified, None, "{end}");
        assert_eq!(Header::read(&out).unwrap().rcode(), Rcode::FORMERR, "{end}");
    }
    for end in 0..HEADER {
        assert_eq!(answer(&whole[..end], allowed), (None, Vec::new()), "{end}");
    }
    let mut response = whole.clone();
    response[2] |= 0x80;
    assert_eq!(answer(&response, allowed), (None, Vec::new()));
    let mut two = whole.clone();
    two[5] = 2;
    assert_eq!(Header::read(&answer(&two, allowed).1).unwrap().rcode(), Rcode::FORMERR);
    let mut of_other_type = whole;
    of_other_type[HEADER + 10] = 1;
    assert_eq!(Header::read(&answer(&of_other_type, allowed).1).unwrap().rcode(), Rcode::FORMERR);
}

/// Returns the response of a secondary to a message.
fn acknowledge(message: &[u8], rcode: u8) -> Vec<u8> {
    let mut out = Vec::new();
    handle(message, sender(), |_| NotifyRole::Secondary { is_sender_permitted: true }, &mut out);
    out[3] = rcode;
    out
}

#[test]
fn silence_is_met_with_patience_and_then_given_up() {
    let mut outbox = NotifyQueue::new(10);
    outbox.push(&apex(), &soa(1), &[remote(53)], NotifyReason::Change, 1000);
    let mut now = 1000;
    let mut waits = Vec::new();
    loop {
        let sent = outbox.poll(now, true).unwrap();
        assert!(outbox.poll(now, true).is_none());
        waits.push(sent.timeout_ms);
        // The error that nothing listens there arrives immediately, but does not shorten the wait.
        let outcome = outbox.handle_response(sent.ticket, None, now).unwrap();
        if outcome == NotifyAttemptResult::Unanswered {
            break;
        }
        assert_eq!(outcome, NotifyAttemptResult::WillRepeat);
        assert_eq!(outbox.poll_timeout(true), Some(now + sent.timeout_ms));
        assert!(outbox.poll(now + sent.timeout_ms - 1, true).is_none());
        now += sent.timeout_ms;
    }
    assert_eq!(waits, [2_000, 4_000, 8_000, 16_000, 32_000]);
    assert!(outbox.poll_timeout(true).is_none());
}

#[test]
fn answers_end_it_and_a_newer_version_takes_the_place() {
    let mut outbox = NotifyQueue::new(10);
    let remotes = [remote(1), remote(2)];
    outbox.push(&apex(), &soa(1), &remotes, NotifyReason::Change, 0);
    let (first, second) = (outbox.poll(0, true).unwrap(), outbox.poll(0, true).unwrap());
    assert_eq!((&first.remote, &second.remote), (&remotes[0], &remotes[1]));
    let outcome = outbox.handle_response(first.ticket, Some(&acknowledge(&first.message, 0)), 5);
    assert_eq!(outcome, Some(NotifyAttemptResult::Acknowledged));
    outbox.push(&apex(), &soa(2), &remotes[1..], NotifyReason::Change, 6);
    // The response to the old version has no effect.
    assert_eq!(outbox.handle_response(second.ticket, Some(&acknowledge(&second.message, 0)), 7), None);
    let newer = outbox.poll(7, true).unwrap();
    assert_ne!(newer.message, second.message);
    let outcome = outbox.handle_response(newer.ticket, Some(&acknowledge(&newer.message, 5)), 8);
    assert_eq!(outcome, Some(NotifyAttemptResult::Rejected(Rcode::REFUSED)));
    outbox.push(&apex(), &soa(3), &remotes, NotifyReason::Change, 9);
    outbox.forget_zone(&apex());
    assert!(outbox.poll(9, true).is_none());
}

#[test]
fn the_answer_for_another_zone_is_none() {
    let mut outbox = NotifyQueue::new(10);
    outbox.push(&apex(), &soa(1), &[remote(1)], NotifyReason::Change, 0);
    let sent = outbox.poll(0, true).unwrap();
    let mut other = acknowledge(&sent.message, 0);
    other[HEADER + 1] = b'f';
    assert_eq!(outbox.handle_response(sent.ticket, Some(&other), 1), Some(NotifyAttemptResult::WillRepeat));
}

#[test]
fn those_that_do_not_answer_come_behind_the_others() {
    let mut outbox = NotifyQueue::new(10);
    outbox.push(&apex(), &soa(7), &[remote(1)], NotifyReason::Change, 0);
    let sent = outbox.poll(0, true).unwrap();
    assert!(!sent.is_repeated);
    assert_eq!(outbox.handle_response(sent.ticket, None, 1), Some(NotifyAttemptResult::WillRepeat));
    let later = sent.timeout_ms + 10;
    assert!(outbox.poll(later, false).is_none() && outbox.poll_timeout(false).is_none());
    outbox.push(&apex(), &soa(7), &[remote(2)], NotifyReason::Change, later);
    let sent = outbox.poll(later, true).unwrap();
    assert_eq!((sent.remote, sent.is_repeated), (remote(2), false));
    let sent = outbox.poll(later, true).unwrap();
    assert_eq!((sent.remote, sent.is_repeated), (remote(1), true));
    outbox.forget_zone(&apex());
    assert!(outbox.poll_timeout(true).is_none());
}

#[test]
fn changes_are_told_before_what_was_there_at_the_start() {
    let mut outbox = NotifyQueue::new(10);
    let zone = |number: usize| -> Name { format!("z{number}.").parse().unwrap() };
    for number in 0..100 {
        outbox.push(&zone(number), &soa(1), &[remote(53)], NotifyReason::Start, 0);
    }
    assert_eq!(outbox.poll(0, true).unwrap().apex, zone(0));
    outbox.push(&zone(100), &soa(2), &[remote(53)], NotifyReason::Change, 5);
    // A waiting message is replaced by one for the new version.
    outbox.push(&zone(7), &soa(2), &[remote(53)], NotifyReason::Change, 6);
    // The message stays a change, even if the zone is loaded again meanwhile.
    outbox.push(&zone(7), &soa(2), &[remote(53)], NotifyReason::Start, 6);
    let next = |outbox: &mut NotifyQueue| outbox.poll(6, true).unwrap();
    assert_eq!([next(&mut outbox).apex, next(&mut outbox).apex], [zone(100), zone(7)]);
    let others: Vec<Name> = (0..7).map(|_| next(&mut outbox).apex).collect();
    assert_eq!(others, [1, 2, 3, 4, 5, 6, 8].map(zone));
    assert!(outbox.poll(6, true).is_none(), "ten at once");
    assert_eq!(outbox.poll_timeout(true), Some(100));
    outbox.forget_zone(&zone(9));
    assert_eq!(outbox.poll(100, true).unwrap().apex, zone(10));
}

#[test]
fn the_rate_holds() {
    let mut outbox = NotifyQueue::new(10);
    for number in 0..100 {
        let zone = format!("z{number}.").parse().unwrap();
        outbox.push(&zone, &soa(1), &[remote(53)], NotifyReason::Change, 0);
    }
    let mut sent_at = Vec::new();
    let mut now = 0;
    while sent_at.len() < 100 {
        while outbox.poll(now, true).is_some() {
            sent_at.push(now);
        }
        now = outbox.poll_timeout(true).unwrap_or(now).max(now + 1);
    }
    // Ten messages immediately, then one every 100 ms.
    assert_eq!(sent_at[..11], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100]);
    assert_eq!(sent_at[99], 9_000);
}

proptest! {
    #[test]
    fn arbitrary_octets_never_panic(octets in proptest::collection::vec(any::<u8>(), 0..120)) {
        let mut message = octets;
        if message.len() > 2 {
            message[2] = 4 << 3;
        }
        let (_, out) = answer(&message, NotifyRole::Secondary { is_sender_permitted: true });
        prop_assert!(out.len() <= message.len().max(HEADER));
    }
}
