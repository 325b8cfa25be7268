//! Access lists for queries: by address, key and transport, for every state of a zone.

use super::responder::{ask, asked, extended_error, responder, shared};
use super::zones::serving;
use super::*;
use crate::AnswerSettings;
use crate::zones::{ServedZone, ZonePolicy, ZoneState};
use nonesuch_server::acl::AccessList;
use nonesuch_server::statistics::TransportKind;
use nonesuch_server::tsig;

/// Returns a policy that permits these clients. The client in the tests has the address 192.0.2.77.
fn policy(entries: &[&str]) -> ZonePolicy {
    let list = AccessList::new(entries.iter().map(|entry| entry.parse().unwrap()).collect());
    ZonePolicy { query: Some(list), ..ZonePolicy::default() }
}

#[test]
fn those_who_may_not_ask_are_refused_with_the_reason_and_counted() {
    let closed = policy(&["!192.0.2.77", "192.0.2.0/24"]);
    let shared = shared(&[
        ("open.", serving("open.", 1, ZonePolicy::default())),
        ("here.", serving("here.", 1, policy(&["192.0.2.77"]))),
        ("closed.", serving("closed.", 1, closed.clone())),
        ("nobody.", serving("nobody.", 1, policy(&[]))),
        ("late.", ZoneState::NotReady(Arc::new(closed.clone()))),
        ("expired.", ZoneState::Expired(Arc::new(closed))),
        ("tls.", serving("tls.", 1, policy(&["192.0.2.0/24 tls"]))),
        ("www.open.", serving("www.open.", 1, policy(&[]))),
    ]);
    for (transport, over_tls) in [(Transport::Udp, false), (Transport::Tcp, false), (Transport::Tls, true)] {
        let mut responder = responder(&shared, transport);
        let mut check = |qname: &str, qtype, is_allowed: bool| {
            let message = asked(&mut responder, qname, qtype);
            let expected = if is_allowed { (Rcode::NOERROR, None) } else { (Rcode::REFUSED, Some(18)) };
            assert_eq!((message.rcode(), extended_error(&message)), expected, "{transport:?} {qname}");
        };
        check("open.", Rtype::SOA, true);
        check("www.here.", Rtype::A, true);
        check("www.tls.", Rtype::A, over_tls);
        for zone in ["closed.", "nobody.", "late.", "expired.", "www.open."] {
            check(zone, Rtype::SOA, false);
        }
        // RFC 4035 section 3.1.4.1: DS records are above the cut.
        check("www.open.", Rtype::DS, true);
    }
    let sum = shared.statistics.sum();
    let prohibited = TransportKind::ALL.map(|carrier| sum.of(carrier).prohibited);
    assert_eq!(prohibited, [6, 6, 5]);
    assert_eq!(sum.of(TransportKind::Udp).rcodes.get(&Rcode::REFUSED), Some(&6));
}

#[test]
fn a_key_may_be_asked_for() {
    let key = || tsig::TsigKey::new(&name("key."), tsig::TsigAlgorithm::HmacSha256, &[7; 32]).unwrap();
    let shared = shared(&[("example.", serving("example.", 1, policy(&["key:key."])))]);
    let keys = tsig::TsigKeys::new([key()]).unwrap();
    shared.settings.store(Arc::new(AnswerSettings { keys, ..AnswerSettings::default() }));
    let mut responder = responder(&shared, Transport::Udp);
    let rcode = |answer: &[u8]| Message::parse(answer).unwrap().rcode();
    assert_eq!(asked(&mut responder, "www.example.", Rtype::A).rcode(), Rcode::REFUSED);
    let mut message = query(&name("www.example."), Rtype::A, None);
    let verifier = tsig::sign_request(&Arc::new(key()), &mut message, nonesuch_server::clock::seconds_now());
    assert_eq!(rcode(&ask(&mut responder, &message).unwrap()), Rcode::NOERROR);
    drop(verifier);
}

#[test]
fn a_zone_is_plain_where_everybody_may_ask() {
    let ZoneState::Serving(open) = serving("example.", 1, ZonePolicy::default()) else { panic!("served") };
    assert!(open.is_plain());
    let closed: ServedZone = open.with_policy(Arc::new(policy(&["127.0.0.1"])));
    assert!(!closed.is_plain());
    assert!(closed.with_policy(Arc::default()).is_plain());
    assert!(policy(&["any", "!192.0.2.1"]).query.unwrap().is_anybody());
    assert!(!policy(&["!192.0.2.1", "any"]).query.unwrap().is_anybody());
    assert!(!policy(&["any tls"]).query.unwrap().is_anybody());
}
