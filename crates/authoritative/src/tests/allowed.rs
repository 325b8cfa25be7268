//! Access lists for queries: by address, key and transport, for every state of a zone.

use super::responder::{context, extended_error, responder, send_message, send_query};
use super::zones::serving;
use super::*;
use crate::AnswerSettings;
use crate::zones::{ServedZone, ZonePolicy, ZoneState};
use nonesuch_net::Transport;
use nonesuch_server::acl::AccessList;
use nonesuch_server::tsig;

/// Returns a policy that permits these clients. The client in the tests has the address 192.0.2.77.
fn policy(entries: &[&str]) -> ZonePolicy {
    let list = AccessList::new(entries.iter().map(|entry| entry.parse().unwrap()).collect());
    ZonePolicy { query_access: Some(list), ..ZonePolicy::default() }
}

#[test]
fn denied_clients_get_refused_with_an_extended_error_and_are_counted() {
    let closed = policy(&["!192.0.2.77", "192.0.2.0/24"]);
    let context = context(&[
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
        let mut responder = responder(&context, transport);
        let mut check = |qname: &str, qtype, is_allowed: bool| {
            let message = send_query(&mut responder, qname, qtype);
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
    let sum = context.statistics.sum();
    let prohibited = Transport::ALL.map(|carrier| sum.of(carrier).prohibited);
    assert_eq!(prohibited, [6, 6, 5]);
    assert_eq!(sum.of(Transport::Udp).rcodes.get(&Rcode::REFUSED), Some(&6));
}

#[test]
fn an_access_list_may_require_a_key() {
    let key = || tsig::TsigKey::new(&name("key."), tsig::TsigAlgorithm::HmacSha256, &[7; 32]).unwrap();
    let context = context(&[("example.", serving("example.", 1, policy(&["key:key."])))]);
    let keys = tsig::TsigKeys::new([key()]).unwrap();
    context.settings.store(Arc::new(AnswerSettings { tsig_keys: keys, ..AnswerSettings::default() }));
    let mut responder = responder(&context, Transport::Udp);
    let rcode = |answer: &[u8]| Message::parse(answer).unwrap().rcode();
    assert_eq!(send_query(&mut responder, "www.example.", Rtype::A).rcode(), Rcode::REFUSED);
    let mut message = query(&name("www.example."), Rtype::A, None);
    let verifier = tsig::sign_request(&Arc::new(key()), &mut message, nonesuch_server::clock::seconds_now());
    assert_eq!(rcode(&send_message(&mut responder, &message).unwrap()), Rcode::NOERROR);
    drop(verifier);
}

#[test]
fn a_zone_that_all_clients_may_query_has_the_fast_path() {
    let ZoneState::Serving(open) = serving("example.", 1, ZonePolicy::default()) else { panic!("served") };
    assert!(open.has_fast_path());
    let closed: ServedZone = open.with_policy(Arc::new(policy(&["127.0.0.1"])));
    assert!(!closed.has_fast_path());
    assert!(closed.with_policy(Arc::default()).has_fast_path());
    assert!(policy(&["any", "!192.0.2.1"]).query_access.unwrap().allows_all());
    assert!(!policy(&["!192.0.2.1", "any"]).query_access.unwrap().allows_all());
    assert!(!policy(&["any tls"]).query_access.unwrap().allows_all());
}
