//! Counters of queries: for each zone, and for transfers by type. Notes about secondaries.

use super::responder::{context, responder, send_message, send_query};
use super::zones::serving;
use super::*;
use crate::AnswerSettings;
use crate::zones::ZonePolicy;
use nonesuch_net::Transport;
use nonesuch_net::{Answer, Handler};
use nonesuch_server::acl::{AccessList, Remote};
use std::net::SocketAddr;

const CLIENT: &str = "192.0.2.77:4000";

#[test]
fn queries_for_each_zone_are_counted_if_configured() {
    for is_counted in [false, true] {
        let context = context(&[
            ("example.", serving("example.", 1, ZonePolicy::default())),
            ("sub.example.", serving("sub.example.", 1, ZonePolicy::default())),
        ]);
        context
            .settings
            .store(Arc::new(AnswerSettings { counts_zone_queries: is_counted, ..AnswerSettings::default() }));
        let mut responder = responder(&context, Transport::Udp);
        for qname in ["www.example.", "none.example.", "www.sub.example.", "other.", "example."] {
            send_query(&mut responder, qname, Rtype::A);
        }
        // The server refuses the transfer, and still counts a query for the zone.
        send_message(&mut responder, &query(&name("sub.example."), Rtype::AXFR, None));
        let queries = |apex: &str| {
            context.zones.database().find_exact(name(apex).view()).map(|entry| entry.query_count()).unwrap()
        };
        let expected = if is_counted { (3, 2) } else { (0, 0) };
        assert_eq!((queries("example."), queries("sub.example.")), expected);
    }
}

#[test]
fn a_transfer_that_is_streamed_is_counted_under_its_type() {
    let policy = ZonePolicy { transfer_access: AccessList::allow_all(), ..ZonePolicy::default() };
    let context = context(&[("example.", serving("example.", 1, policy))]);
    let mut responder = responder(&context, Transport::Tcp);
    let client: SocketAddr = CLIENT.parse().unwrap();
    responder.begin_batch();
    let message = query(&name("example."), Rtype::AXFR, None);
    let answer = responder.answer(&message, client, &mut Vec::new());
    assert!(matches!(answer, Answer::Stream));
    responder.end_batch();
    let sum = context.statistics.sum();
    let tcp = sum.of(Transport::Tcp);
    assert_eq!(tcp.types.get(&Some(Rtype::AXFR)), Some(&1));
    assert_eq!(tcp.rcodes.get(&Rcode::NOERROR), Some(&1));
}

#[test]
fn queries_of_notified_secondaries_are_noted_and_those_of_others_are_not() {
    let secondary: SocketAddr = "192.0.2.77:53".parse().unwrap();
    let policy = ZonePolicy {
        transfer_access: AccessList::allow_all(),
        also_notify: vec![Remote::plain(secondary)],
        ..ZonePolicy::default()
    };
    let context = context(&[("example.", serving("example.", 1, policy))]);
    context.secondary_statuses.record_notify(&name("example."), &[secondary], Some(1), 7);
    let mut responder = responder(&context, Transport::Tcp);
    let noted = || context.secondary_statuses.of_zone(&name("example."))[0].query;
    send_query(&mut responder, "www.example.", Rtype::SOA);
    send_query(&mut responder, "example.", Rtype::NS);
    assert_eq!(noted(), None);
    responder.begin_batch();
    let mut out = Vec::new();
    let soa = query(&name("example."), Rtype::SOA, None);
    let _ = responder.answer(&soa, "192.0.2.78:4000".parse().unwrap(), &mut out);
    assert_eq!(noted(), None);
    responder.end_batch();
    send_query(&mut responder, "EXAMPLE.", Rtype::SOA);
    assert!(noted().is_some_and(|query| query.at > 1_700_000_000 && query.serial.is_none()));
}
