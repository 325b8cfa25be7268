//! Answers about the server: content, permitted clients, and refusals.

use super::Chaos;
use crate::zones::Zones;
use crate::{AnswerSettings, Responder, ServerContext};
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_net::Transport;
use nonesuch_net::{Answer, Handler as _};
use nonesuch_proto::message::{HEADER, Message, Rcode, Section, push_query};
use nonesuch_proto::{Class, Rtype, edns};
use nonesuch_server::limits::{LimitSettings, Limits, RateSettings};
use std::sync::Arc;

fn responder(settings: AnswerSettings, transport: Transport) -> Responder {
    let context = ServerContext::new(Arc::new(Zones::new()));
    context.settings.store(Arc::new(settings));
    let local = "127.0.0.1:53".parse().unwrap();
    Responder::new(&context, transport, local, OnlineSigner::new(1 << 20, Arc::default()), 0)
}

fn query(name: &str, rtype: Rtype, class: Class) -> Vec<u8> {
    let mut message = Vec::new();
    push_query(&name.parse().unwrap(), rtype, 7, 0, &mut message);
    let end = message.len();
    message[end - 2..].copy_from_slice(&class.0.to_be_bytes());
    edns::push_opt(1232, 0, 0, &mut message);
    message[HEADER - 1] = 1;
    message
}

fn ask(responder: &mut Responder, message: &[u8]) -> Option<Message> {
    let mut out = Vec::new();
    responder.begin_batch();
    let answer = responder.answer(message, "192.0.2.77:4000".parse().unwrap(), &mut out);
    responder.end_batch();
    (answer == Answer::Ready).then(|| Message::parse(&out).unwrap())
}

#[test]
fn what_is_configured_is_said_and_all_else_refused() {
    let chaos = Chaos { identity: Some(b"ns1".to_vec()), version: None };
    let mut responder = responder(AnswerSettings { chaos, ..AnswerSettings::default() }, Transport::Udp);
    let (refused, found) = (None, Some(&b"\x03ns1"[..]));
    for (name, rtype, class, expected) in [
        ("id.server.", Rtype::TXT, Class::CH, found),
        ("ID.Server.", Rtype::TXT, Class::CH, found),
        ("hostname.bind.", Rtype::ANY, Class::CH, found),
        ("id.server.", Rtype::A, Class::CH, refused),
        ("version.server.", Rtype::TXT, Class::CH, refused),
        ("version.bind.", Rtype::TXT, Class::CH, refused),
        ("authors.bind.", Rtype::TXT, Class::CH, refused),
        ("x.id.server.", Rtype::TXT, Class::CH, refused),
        (".", Rtype::SOA, Class::CH, refused),
        ("id.server.", Rtype::TXT, Class::IN, refused),
        ("id.server.", Rtype::TXT, Class(4), refused),
    ] {
        let message = ask(&mut responder, &query(name, rtype, class)).unwrap();
        let rcode = if expected.is_some() { Rcode::NOERROR } else { Rcode::REFUSED };
        assert_eq!(message.rcode(), rcode, "{name} {rtype} {class:?}");
        let record = message.section(Section::Answer).next();
        assert_eq!(record.map(|record| &record.rdata[..]), expected, "{name} {rtype} {class:?}");
        if let Some(record) = record {
            assert_eq!((record.rtype, record.class, record.ttl), (Rtype::TXT, Class::CH, 0));
            assert_eq!(record.owner, name.parse().unwrap());
        }
        assert!(message.opt().is_some());
    }
}

#[test]
fn versions_are_said_where_one_is_configured() {
    let chaos = Chaos { identity: None, version: Some(vec![b'v'; 255]) };
    let mut responder = responder(AnswerSettings { chaos, ..AnswerSettings::default() }, Transport::Tcp);
    for name in ["version.server.", "version.bind."] {
        let message = ask(&mut responder, &query(name, Rtype::TXT, Class::CH)).unwrap();
        let record = message.section(Section::Answer).next().unwrap();
        assert_eq!((record.rdata.len(), record.rdata[0]), (256, 255));
    }
    let message = ask(&mut responder, &query("id.server.", Rtype::TXT, Class::CH)).unwrap();
    assert_eq!(message.rcode(), Rcode::REFUSED);
}

/// Rate limiting applies to these answers too, because an attacker can forge the source address of
/// a query.
#[test]
fn answers_are_limited_as_others_are() {
    let limits = LimitSettings {
        exempt: Vec::new(),
        responses: Some(RateSettings { positive: 5, ..RateSettings::default() }),
        ..LimitSettings::default()
    };
    let chaos = Chaos { identity: Some(b"ns1".to_vec()), version: None };
    let limits = Some(Arc::new(Limits::new(&limits).unwrap()));
    let mut responder =
        responder(AnswerSettings { chaos, limits, ..AnswerSettings::default() }, Transport::Udp);
    let query = query("id.server.", Rtype::TXT, Class::CH);
    let answers = (0..100).filter_map(|_| ask(&mut responder, &query));
    let whole = answers.filter(|message| message.section(Section::Answer).count() == 1).count();
    assert!((5..50).contains(&whole), "{whole}");
}
