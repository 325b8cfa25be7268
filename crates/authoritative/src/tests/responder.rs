//! Messages in one thread of the server: several zones, messages that are not queries, access
//! control and limits.

use super::zones::serving;
use super::*;
use crate::AnswerSettings;
use crate::responder::{Responder, ServerContext};
use crate::zones::{ZonePolicy, ZoneState, Zones};
use nonesuch_net::Transport;
use nonesuch_net::{Answer, Handler};
use nonesuch_proto::message::Header;
use nonesuch_server::limits::{LimitSettings, Limits, RateSettings};
use nonesuch_server::reply_options::ReplySettings;
use nonesuch_server::{acl, cookies, tsig};
use std::net::SocketAddr;

const CLIENT: &str = "192.0.2.77:4000";
const LOCAL: &str = "127.0.0.1:53";

pub(super) fn context(zones: &[(&str, ZoneState)]) -> ServerContext {
    let all = Zones::new();
    all.set_all(zones.iter().map(|(apex, state)| (name(apex), state.clone())).collect());
    ServerContext::new(Arc::new(all))
}

pub(super) fn responder(context: &ServerContext, transport: Transport) -> Responder {
    Responder::new(context, transport, LOCAL.parse().unwrap(), OnlineSigner::new(1 << 20, Arc::default()), 0)
}

fn client() -> SocketAddr {
    CLIENT.parse().unwrap()
}

/// Returns the response to one message in a separate batch.
pub(super) fn send_message(responder: &mut Responder, message: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    responder.begin_batch();
    let is_answered = match responder.answer(message, client(), &mut out) {
        Answer::Ready => true,
        Answer::Nothing => false,
        Answer::Deferred => {
            responder.generate_deferred();
            out.clear();
            responder.answer_again(message, client(), &mut out)
        }
        Answer::Stream => panic!("a stream"),
    };
    responder.end_batch();
    is_answered.then_some(out)
}

pub(super) fn send_query(responder: &mut Responder, qname: &str, qtype: Rtype) -> Message {
    Message::parse(&send_message(responder, &query(&name(qname), qtype, Some((1232, true)))).unwrap())
        .unwrap()
}

/// Returns the code of the extended error in a response.
pub(super) fn extended_error(message: &Message) -> Option<u16> {
    let opt = message.records.iter().find(|record| record.rtype == Rtype::OPT)?;
    let mut options = edns::Options::new(&opt.rdata);
    let (_, data) = options.find(|(code, _)| *code == edns::EXTENDED_ERROR)?;
    edns::read_extended_error(data).map(|(code, _)| code)
}

#[test]
fn each_zone_answers_for_its_own_names() {
    let nobody = ZonePolicy::default;
    let context = context(&[
        ("example.", serving("example.", 1, nobody())),
        ("sub.example.", serving("sub.example.", 2, nobody())),
        ("late.example.", ZoneState::NotReady(Arc::default())),
        ("old.example.", ZoneState::Expired(Arc::default())),
        ("bad.example.", ZoneState::Failed(Arc::default())),
    ]);
    let mut responder = responder(&context, Transport::Udp);
    for (qname, qtype, rcode, error) in [
        ("www.example.", Rtype::A, Rcode::NOERROR, None),
        ("WWW.sub.example.", Rtype::A, Rcode::NOERROR, None),
        ("none.example.", Rtype::A, Rcode::NXDOMAIN, None),
        ("www.late.example.", Rtype::A, Rcode::SERVFAIL, Some(14)),
        ("www.old.example.", Rtype::A, Rcode::SERVFAIL, Some(24)),
        // Invalid Data (RFC 8914 §4.25).
        ("www.bad.example.", Rtype::A, Rcode::SERVFAIL, Some(24)),
        ("www.test.", Rtype::A, Rcode::REFUSED, Some(20)),
        (".", Rtype::NS, Rcode::REFUSED, Some(20)),
    ] {
        let message = send_query(&mut responder, qname, qtype);
        assert_eq!((message.rcode(), extended_error(&message)), (rcode, error), "{qname}");
    }
    let serial = |message: &Message| message.section(Section::Answer).next().map(|soa| soa.rdata.clone());
    let soa = send_query(&mut responder, "sub.example.", Rtype::SOA);
    assert!(
        serial(&soa).is_some_and(
            |rdata| rdata.ends_with(&[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1])
        )
    );
    // RFC 4035 §3.1.4.1: DS belongs to the parent zone. Here the parent has no cut, so it denies
    // the name.
    let ds = send_query(&mut responder, "sub.example.", Rtype::DS);
    assert_eq!(ds.rcode(), Rcode::NXDOMAIN);
    assert_eq!(ds.section(Section::Authority).next().map(|soa| soa.owner.clone()), Some(name("example.")));
}

#[test]
fn a_zone_that_is_replaced_answers_from_the_next_batch_on() {
    let context = context(&[("example.", serving("example.", 1, ZonePolicy::default()))]);
    let mut responder = responder(&context, Transport::Udp);
    assert_eq!(send_query(&mut responder, "example.", Rtype::SOA).rcode(), Rcode::NOERROR);
    context.zones.set(&name("example."), ZoneState::NotReady(Arc::default()));
    assert_eq!(send_query(&mut responder, "example.", Rtype::SOA).rcode(), Rcode::SERVFAIL);
    context.zones.remove_all(&[name("example.")]);
    assert_eq!(send_query(&mut responder, "example.", Rtype::SOA).rcode(), Rcode::REFUSED);
    context.zones.set(&name("example."), serving("example.", 2, ZonePolicy::default()));
    assert_eq!(send_query(&mut responder, "example.", Rtype::SOA).rcode(), Rcode::NOERROR);
}

/// Returns the value of the EXPIRE option in a response (RFC 7314).
fn expire_option(responder: &mut Responder, qname: &str, qtype: Rtype, data: &[u8]) -> Option<u32> {
    let mut message = query(&name(qname), qtype, Some((1232, true)));
    let start = message.len() - edns::OPT_OCTETS;
    edns::push_option(edns::EXPIRE, &[data], &mut message);
    edns::set_options_length(start, &mut message);
    let answer = Message::parse(&send_message(responder, &message).unwrap()).unwrap();
    let opt = answer.opt().expect("an OPT record");
    let option = edns::Options::new(&opt.rdata).find(|(code, _)| *code == edns::EXPIRE);
    option.map(|(_, data)| edns::read_expire(data).flatten().expect("a time"))
}

#[test]
fn the_expire_option_is_in_responses_to_soa_queries() {
    let secondary = ZonePolicy { is_secondary: true, ..ZonePolicy::default() };
    let context = context(&[
        ("example.", serving("example.", 1, ZonePolicy::default())),
        ("copy.", serving("copy.", 1, secondary)),
        ("old.", ZoneState::Expired(Arc::default())),
    ]);
    let mut responder = responder(&context, Transport::Udp);
    // A primary returns the expire field of the SOA record. The server ignores the option in other
    // queries, and an option with data.
    assert_eq!(expire_option(&mut responder, "Example.", Rtype::SOA, &[]), Some(1));
    for (qname, qtype, data) in [
        ("example.", Rtype::NS, &[][..]),
        ("none.example.", Rtype::SOA, &[]),
        ("example.", Rtype::SOA, &[0; 4]),
        ("old.", Rtype::SOA, &[]),
        ("elsewhere.", Rtype::SOA, &[]),
    ] {
        assert_eq!(expire_option(&mut responder, qname, qtype, data), None, "{qname} {qtype}");
    }
    // A secondary returns the remaining time, once it is known.
    assert_eq!(expire_option(&mut responder, "copy.", Rtype::SOA, &[]), None);
    let now = Instant::now();
    let later = now + std::time::Duration::from_secs(1_000_000);
    context.zones.set_expiry(&name("Copy."), Some(later));
    let seconds = expire_option(&mut responder, "copy.", Rtype::SOA, &[]).expect("a time");
    assert!((999_000..=1_000_000).contains(&seconds), "{seconds}");
    context.zones.set_expiry(&name("copy."), Some(now));
    assert_eq!(expire_option(&mut responder, "copy.", Rtype::SOA, &[]), Some(0));
}

fn with_opcode(qname: &str, opcode: u16) -> Vec<u8> {
    let mut octets = query(&name(qname), Rtype::SOA, None);
    octets[2..4].copy_from_slice(&(opcode << 11).to_be_bytes());
    octets
}

#[test]
fn other_opcodes_are_answered_with_an_error() {
    let context = context(&[("example.", serving("example.", 1, ZonePolicy::default()))]);
    let mut responder = responder(&context, Transport::Udp);
    for (qname, opcode, rcode) in [
        ("example.", 5, Rcode::REFUSED),
        ("a.example.", 5, Rcode::REFUSED),
        ("test.", 5, Rcode::NOTAUTH),
        ("example.", 4, Rcode::NOTAUTH),
        ("test.", 4, Rcode::NOTAUTH),
        ("example.", 1, Rcode::NOTIMP),
        ("example.", 2, Rcode::NOTIMP),
        ("example.", 15, Rcode::NOTIMP),
    ] {
        let answer = send_message(&mut responder, &with_opcode(qname, opcode)).unwrap();
        let header = Header::read(&answer).unwrap();
        assert_eq!((header.id, header.rcode()), (ID, rcode), "{qname} {opcode}");
        assert_eq!(u16::from(header.opcode()), opcode);
        assert!(Message::parse(&answer).is_ok());
    }
    let mut response = query(&name("example."), Rtype::SOA, None);
    response[2] |= 0x80;
    assert_eq!(send_message(&mut responder, &response), None);
    assert_eq!(send_message(&mut responder, &[1, 2, 3]), None);
}

/// RFC 6891 §6.1.3: the server answers an unknown version with BADVERS, independent of the content
/// of the OPT record.
#[test]
fn another_version_of_edns_gets_badvers_with_any_options() {
    let settings = AnswerSettings { cookies: cookies::Cookies::new(&[[7; 16]]), ..AnswerSettings::default() };
    let context = context(&[("example.", serving("example.", 1, ZonePolicy::default()))]);
    context.settings.store(settings.into());
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut responder = responder(&context, transport);
        for options in
            [&[][..], &[0, 10, 0, 9, 1], &[0], &[0, 10, 0, 1, 7], &[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]]
        {
            for (opcode, qtype) in [
                (0u16, Rtype::A),
                (0, Rtype::AXFR),
                (0, Rtype::IXFR),
                (0, Rtype::ANY),
                (0, Rtype::TSIG),
                (4, Rtype::SOA),
                (5, Rtype::SOA),
                (2, Rtype::SOA),
            ] {
                let mut octets = query(&name("example."), qtype, Some((1232, true)));
                octets[2..4].copy_from_slice(&(opcode << 11).to_be_bytes());
                let start = octets.len() - edns::OPT_OCTETS;
                octets[start + 6] = 1;
                octets.extend_from_slice(options);
                edns::set_options_length(start, &mut octets);
                let answer = Message::parse(&send_message(&mut responder, &octets).unwrap()).unwrap();
                let opt = answer.opt().expect("an OPT record");
                // The response has the version of this server and no options.
                assert_eq!(
                    (answer.rcode(), opt.ttl >> 16 & 0xff),
                    (Rcode::BADVERS, 0),
                    "{opcode} {qtype} {options:?}"
                );
                assert_eq!(
                    (u16::from(answer.header.opcode()), opt.rdata.len()),
                    (opcode, 0),
                    "{opcode} {qtype}"
                );
            }
            // The same without a question (RFC 7873 §5.4 applies to version 0).
            let mut octets = vec![1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
            edns::push_opt(1232, 0, 0, &mut octets);
            octets[12 + 6] = 1;
            octets.extend_from_slice(options);
            edns::set_options_length(12, &mut octets);
            let answer = Message::parse(&send_message(&mut responder, &octets).unwrap()).unwrap();
            assert_eq!(answer.rcode(), Rcode::BADVERS, "{options:?}");
        }
        // With version 0, malformed options cause FORMERR.
        let mut octets = query(&name("example."), Rtype::A, Some((1232, true)));
        let start = octets.len() - edns::OPT_OCTETS;
        octets.extend_from_slice(&[0, 10, 0, 9, 1]);
        edns::set_options_length(start, &mut octets);
        assert_eq!(
            Header::read(&send_message(&mut responder, &octets).unwrap()).unwrap().rcode(),
            Rcode::FORMERR
        );
    }
}

/// RFC 6891 §6.1.1: a response to a message with an OPT record has an OPT record.
#[test]
fn responses_to_other_opcodes_have_opt_if_the_message_has_it() {
    let context = context(&[("example.", serving("example.", 1, ZonePolicy::default()))]);
    let mut responder = responder(&context, Transport::Udp);
    for (opcode, error) in [(5u16, Some(21)), (4, None), (2, None), (15, None)] {
        let mut octets = query(&name("example."), Rtype::SOA, Some((1232, false)));
        octets[2..4].copy_from_slice(&(opcode << 11).to_be_bytes());
        let message = Message::parse(&send_message(&mut responder, &octets).unwrap()).unwrap();
        assert_eq!(message.header.counts[3], 1, "{opcode}");
        assert_eq!(extended_error(&message), error, "{opcode}");
    }
    // A malformed query with two questions.
    let mut octets = query(&name("example."), Rtype::SOA, None);
    let question = octets[12..].to_vec();
    octets.extend_from_slice(&question);
    edns::push_opt(1232, 0, 0, &mut octets);
    (octets[5], octets[11]) = (2, 1);
    let message = Message::parse(&send_message(&mut responder, &octets).unwrap()).unwrap();
    assert_eq!((message.rcode(), message.header.counts), (Rcode::FORMERR, [0, 0, 0, 1]));
}

/// Response codes above 15 use the OPT record (RFC 6891 §6.1.3) and are counted as such, also for
/// transfers.
#[test]
fn unknown_versions_of_edns_are_refused_and_counted() {
    let context = context(&[("example.", serving("example.", 1, ZonePolicy::default()))]);
    let mut responder = responder(&context, Transport::Tcp);
    for qtype in [Rtype::A, Rtype::AXFR] {
        let mut octets = query(&name("example."), qtype, Some((1232, false)));
        let version = octets.len() - 5;
        octets[version] = 1;
        let message = Message::parse(&send_message(&mut responder, &octets).unwrap()).unwrap();
        let opt = message.records.iter().find(|record| record.rtype == Rtype::OPT).unwrap();
        assert_eq!((message.header.rcode(), opt.ttl >> 24), (Rcode::NOERROR, 1), "BADVERS");
    }
    assert_eq!(context.statistics.sum().of(Transport::Tcp).rcodes, [(Rcode::BADVERS, 2)].into());
}

/// The source address of a UDP message can be forged: rate limiting for errors also applies to
/// refused transfers.
#[test]
fn transfer_requests_over_udp_are_rate_limited() {
    let rates = RateSettings { error: 5, slip: 0, ..RateSettings::default() };
    let context = limited(rates);
    for (transport, expected) in [(Transport::Udp, 5..20), (Transport::Tcp, 200..201)] {
        let mut responder = responder(&context, transport);
        let answered = [Rtype::AXFR, Rtype::IXFR]
            .iter()
            .cycle()
            .take(200)
            .filter(|qtype| send_message(&mut responder, &query(&name("example."), **qtype, None)).is_some())
            .count();
        assert!(expected.contains(&answered), "{transport:?}: {answered}");
    }
}

/// A name of more than 255 octets is not copied into any response.
#[test]
fn overlong_names_are_not_repeated() {
    let key = tsig::TsigKey::new(&name("key."), tsig::TsigAlgorithm::HmacSha256, &[7; 32]).unwrap();
    let context = settings(AnswerSettings {
        tsig_keys: tsig::TsigKeys::new([key]).unwrap(),
        ..AnswerSettings::default()
    });
    let mut responder = responder(&context, Transport::Udp);
    for opcode in [0, 4, 5] {
        for tsig in [&[][..], &[0, 0, 250, 0, 255, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4]] {
            let counts = [1, 0, 0, u16::from(!tsig.is_empty())];
            let mut octets = Header { id: ID, flags: opcode << 11, counts }.to_octets().to_vec();
            (0..130).for_each(|_| octets.extend_from_slice(b"\x01a"));
            octets.extend_from_slice(&[0, 0, 6, 0, 1]);
            octets.extend_from_slice(tsig);
            let answer = send_message(&mut responder, &octets).unwrap();
            let message = Message::parse(&answer).unwrap();
            assert_eq!((message.rcode(), message.header.counts[0]), (Rcode::FORMERR, 0), "{opcode}");
        }
    }
}

#[test]
fn notify_from_permitted_servers_reaches_the_sink() {
    let notified_zones = Arc::new(Mutex::new(Vec::new()));
    let policy = |from: &str| ZonePolicy {
        is_secondary: true,
        notify_from: acl::AccessList::new(vec![from.parse().unwrap()]),
        ..ZonePolicy::default()
    };
    let zones = [
        ("example.", serving("example.", 1, policy("192.0.2.0/24"))),
        ("late.example.", ZoneState::NotReady(Arc::new(policy("192.0.2.77")))),
        ("closed.example.", serving("closed.example.", 1, policy("198.51.100.1"))),
    ];
    let listener = Arc::clone(&notified_zones);
    let context = ServerContext {
        notify_sink: Some(Arc::new(move |notified| {
            listener.lock().unwrap().push(notified.apex.to_string());
            true
        })),
        ..context(&zones)
    };
    let mut responder = responder(&context, Transport::Udp);
    for (qname, rcode) in [
        ("example.", Rcode::NOERROR),
        ("late.example.", Rcode::NOERROR),
        ("closed.example.", Rcode::REFUSED),
        ("www.example.", Rcode::NOTAUTH),
    ] {
        let answer = send_message(&mut responder, &with_opcode(qname, 4)).unwrap();
        assert_eq!(Header::read(&answer).unwrap().rcode(), rcode, "{qname}");
    }
    assert_eq!(*notified_zones.lock().unwrap(), ["example.", "late.example."]);
    // If the sink does not accept the NOTIFY, the primary must repeat it.
    let context = ServerContext { notify_sink: Some(Arc::new(|_| false)), ..context };
    assert_eq!(
        send_message(&mut self::responder(&context, Transport::Udp), &with_opcode("example.", 4)),
        None
    );
}

fn settings(settings: AnswerSettings) -> ServerContext {
    let context = context(&[("example.", serving("example.", 1, ZonePolicy::default()))]);
    context.settings.store(Arc::new(settings));
    context
}

#[test]
fn signed_queries_get_signed_answers() {
    let key = tsig::TsigKey::new(&name("key."), tsig::TsigAlgorithm::HmacSha256, &[7; 32]).unwrap();
    let keys = tsig::TsigKeys::new([key]).unwrap();
    let key = Arc::clone(keys.find(&name("key.")).unwrap());
    let context = settings(AnswerSettings { tsig_keys: keys, ..AnswerSettings::default() });
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut responder = responder(&context, transport);
        for (qname, qtype, rcode) in [
            ("www.example.", Rtype::A, Rcode::NOERROR),
            ("none.example.", Rtype::A, Rcode::NXDOMAIN),
            ("www.test.", Rtype::A, Rcode::REFUSED),
            ("test.", Rtype::IXFR, Rcode::NOTAUTH),
        ] {
            let mut message = query(&name(qname), qtype, Some((1232, true)));
            let mut verifier = tsig::sign_request(&key, &mut message, now);
            let answer = send_message(&mut responder, &message).unwrap();
            assert_eq!(Header::read(&answer).unwrap().rcode(), rcode, "{qname}");
            assert!(verifier.verify(&answer, now).unwrap().is_signed, "{qname}");
        }
        let mut message = query(&name("www.example."), Rtype::A, None);
        let other =
            Arc::new(tsig::TsigKey::new(&name("other."), tsig::TsigAlgorithm::HmacSha256, &[7; 32]).unwrap());
        let _ = tsig::sign_request(&other, &mut message, now);
        let answer = send_message(&mut responder, &message).unwrap();
        assert_eq!(Header::read(&answer).unwrap().rcode(), Rcode::NOTAUTH);
    }
}

#[test]
fn a_signed_answer_keeps_to_the_size_of_a_datagram() {
    let key = tsig::TsigKey::new(&name("key."), tsig::TsigAlgorithm::HmacSha512, &[7; 64]).unwrap();
    let keys = tsig::TsigKeys::new([key]).unwrap();
    let key = Arc::clone(keys.find(&name("key.")).unwrap());
    let mut text = String::from("@ 60 SOA ns.test. h.test. 1 1 1 1 1\n@ 60 NS ns.test.\n");
    (0..27).for_each(|last| text.push_str(&format!("many 60 A 192.0.2.{last}\n")));
    let contents =
        read::read_text(text.as_bytes(), Path::new("zone"), Some(&name("example."))).unwrap().contents;
    let published = Published::from_parts(Image::compile(&contents).unwrap(), Denial::Image);
    let zone = ServedZone::new(published, Arc::default());
    let context = context(&[("example.", ZoneState::Serving(Arc::new(zone)))]);
    context.settings.store(Arc::new(AnswerSettings { tsig_keys: keys, ..AnswerSettings::default() }));
    let mut responder = responder(&context, Transport::Udp);
    let message = query(&name("many.example."), Rtype::A, None);
    let answer = send_message(&mut responder, &message).unwrap();
    assert!(answer.len() > 400 && answer[2] & 2 == 0, "27 addresses fit into 512 octets");
    let mut signed = message.clone();
    let _ = tsig::sign_request(&key, &mut signed, 0);
    // The clock of the message is wrong: BADTIME. With the correct time, the addresses do not fit
    // together with the TSIG record.
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let mut signed = message;
    let mut verifier = tsig::sign_request(&key, &mut signed, now);
    let answer = send_message(&mut responder, &signed).unwrap();
    assert!(answer.len() <= 512 && answer[2] & 2 != 0, "{} octets", answer.len());
    assert!(verifier.verify(&answer, now).unwrap().is_signed);
}

pub(super) fn limited(rates: RateSettings) -> ServerContext {
    let limits = LimitSettings { responses: Some(rates), ..LimitSettings::default() };
    settings(AnswerSettings {
        limits: Some(Arc::new(Limits::new(&limits).unwrap())),
        cookies: cookies::Cookies::new(&[[3; 16]]),
        reply: ReplySettings { nsid: b"ns1".to_vec(), ..ReplySettings::default() },
        ..AnswerSettings::default()
    })
}

#[test]
fn a_flood_is_rate_limited_with_slips() {
    let rates = RateSettings { positive: 5, slip: 2, ..RateSettings::default() };
    let mut over_udp = responder(&limited(rates.clone()), Transport::Udp);
    let message = query(&name("www.example."), Rtype::A, Some((1232, true)));
    let answers: Vec<Option<Vec<u8>>> = (0..100).map(|_| send_message(&mut over_udp, &message)).collect();
    let whole = answers.iter().flatten().filter(|answer| answer[2] & 2 == 0).count();
    let truncated = answers.iter().flatten().filter(|answer| answer[2] & 2 != 0).count();
    let dropped = answers.iter().filter(|answer| answer.is_none()).count();
    assert!((5..20).contains(&whole), "{whole}");
    assert!(dropped > 30 && truncated > 30, "{dropped} {truncated}");
    let slipped = answers.iter().flatten().find(|answer| answer[2] & 2 != 0).unwrap();
    assert_eq!(Message::parse(slipped).unwrap().header.counts, [1, 0, 0, 1]);
    // A TCP connection proves the address.
    let mut over_tcp = responder(&limited(rates), Transport::Tcp);
    assert!((0..100).all(|_| send_message(&mut over_tcp, &message).is_some_and(|answer| answer[2] & 2 == 0)));
}

/// Returns a query with this option.
fn with_option(code: u16, data: &[u8]) -> Vec<u8> {
    let mut octets = query(&name("www.example."), Rtype::A, None);
    octets[11] = 1;
    let start = octets.len();
    edns::push_opt(1232, 0, 0, &mut octets);
    edns::push_option(code, &[data], &mut octets);
    edns::set_options_length(start, &mut octets);
    octets
}

pub(super) fn option_of(answer: &[u8], wanted: u16) -> Option<Vec<u8>> {
    let message = Message::parse(answer).unwrap();
    let opt = message.records.iter().find(|record| record.rtype == Rtype::OPT)?;
    let mut options = edns::Options::new(&opt.rdata);
    options.find(|(code, _)| *code == wanted).map(|(_, data)| data.to_vec())
}

#[test]
fn options_of_a_query_are_answered() {
    let context = limited(RateSettings { positive: 5, slip: 0, ..RateSettings::default() });
    let mut responder = responder(&context, Transport::Udp);
    let answer = send_message(&mut responder, &with_option(edns::NSID, &[])).unwrap();
    assert_eq!(option_of(&answer, edns::NSID).as_deref(), Some(&b"ns1"[..]));
    let answer = send_message(&mut responder, &with_option(edns::COOKIE, b"12345678")).unwrap();
    let cookie = option_of(&answer, edns::COOKIE).unwrap();
    assert_eq!((cookie.len(), &cookie[..8]), (24, &b"12345678"[..]));
    // A valid cookie proves the address of the client; no limit applies.
    let message = with_option(edns::COOKIE, &cookie);
    assert!(
        (0..100).all(|_| send_message(&mut responder, &message).is_some_and(|answer| answer[2] & 2 == 0))
    );
    // RFC 7873 §5.2.2: a message with a malformed cookie is malformed.
    let answer = send_message(&mut responder, &with_option(edns::COOKIE, b"1234567")).unwrap();
    assert_eq!(Header::read(&answer).unwrap().rcode(), Rcode::FORMERR);
}

/// Returns a zone whose change from serial 1 to 2 has a megabyte, with its journal in `folder`.
fn zone_with_large_change(directory: &Path) -> ZoneState {
    let version = |serial: u32| {
        let mut text =
            format!("@ 60 SOA ns.test. h.test. {serial} 1 1 1 1\n@ 60 NS ns.test.\nwww 60 A 192.0.2.1\n");
        for name in 0..5000 {
            let octets = if name % 3 == 0 { serial } else { 0 };
            text.push_str(&format!("n{name} 60 TXT {octets}{}\n", "x".repeat(200)));
        }
        read::read_text(text.as_bytes(), Path::new("zone"), Some(&name("example."))).unwrap().contents
    };
    let (old, new) = (version(1), version(2));
    let (journal, _) =
        nonesuch_zone::Journal::open(&directory.join("journal"), new.apex(), 16 << 20).unwrap();
    journal.append(&nonesuch_zone::ChangeSet::between(&old, &new, |_| true)).unwrap();
    let published = Published::from_parts(Image::compile(&new).unwrap(), Denial::Image);
    let policy = ZonePolicy { transfer_access: acl::AccessList::allow_all(), ..ZonePolicy::default() };
    let zone = ServedZone::new(published, Arc::new(policy)).with_contents(Arc::new(new));
    ZoneState::Serving(Arc::new(zone.with_journal(Arc::new(journal))))
}

/// The test advances the stream of changes step by step: between two messages, the same thread
/// answers other queries, and no step generates more than one message.
#[test]
fn queries_are_answered_between_the_messages_of_an_ixfr_response() {
    let directory = tempfile::TempDir::new().unwrap();
    let context = context(&[("example.", zone_with_large_change(directory.path()))]);
    let mut responder = responder(&context, Transport::Tcp);
    let mut request = query(&name("example."), Rtype::IXFR, None);
    request[9] = 1;
    request.extend_from_slice(&[0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0, 0, 0, 0, 1]);
    request.extend_from_slice(&[0; 16]);
    responder.begin_batch();
    assert_eq!(responder.answer(&request, client(), &mut Vec::new()), Answer::Stream);
    let mut stream = responder.stream().unwrap();
    responder.end_batch();
    let (mut message, mut messages) = (Vec::new(), 0);
    while stream.next(&mut message).unwrap() {
        messages += 1;
        assert!(message.len() <= 16_384);
        assert_eq!(send_query(&mut responder, "www.example.", Rtype::A).rcode(), Rcode::NOERROR);
        assert_eq!(context.outgoing_transfers.status().len(), 1);
    }
    assert!(messages > 20, "{messages}");
    drop(stream);
    assert!(context.outgoing_transfers.status().is_empty());
    // The query for the changes is counted too.
    assert_eq!(context.statistics.sum().transports[1].types.values().sum::<u64>(), messages + 1);
}
