use super::*;
use crate::servers::{Purpose, QueryKind, ServerTable, ServerTableOptions};
use crate::testing::{name, now, response};
use nonesuch_proto::message::Question;
use nonesuch_proto::{Class, MAX_NAME};
use rand::SeedableRng;
use rand_chacha::ChaCha12Rng;

const QUESTION: (&str, Rtype) = ("www.example.", Rtype::A);

/// Returns an exchange over this transport with a new server.
fn exchange_over(transport: Transport) -> Exchange {
    let table = ServerTable::new(ServerTableOptions::default(), &[7; 32], now());
    let zone = table.zone_key(name("example.").view());
    let purpose = Purpose { zone, kind: QueryKind::Common, transport };
    let server = "192.0.2.1:53".parse().expect("an address");
    let attempt = table.begin(server, purpose, None, now()).expect("a free server");
    let (name, rtype) = (name(QUESTION.0), QUESTION.1);
    Exchange { attempt, id: 1, name, rtype, has_random_case: false, wrong_responses: 0 }
}

fn exchange() -> Exchange {
    exchange_over(Transport::Udp)
}

/// Returns the client cookie of the query.
fn client_cookie(exchange: &Exchange) -> Vec<u8> {
    exchange.attempt.cookie.expect("a cookie").option_data().to_vec()
}

/// Returns a response with an OPT record that has this cookie option.
fn with_cookie(cookie: &[u8]) -> Vec<u8> {
    let mut octets = response(QUESTION, Rcode::NOERROR, &["www.example. 60 A 192.0.2.1"]).to_octets();
    octets[11] = 1;
    let start = octets.len();
    edns::push_opt(1232, 0, 0, &mut octets);
    edns::push_option(edns::COOKIE, &[cookie], &mut octets);
    edns::set_options_length(start, &mut octets);
    octets
}

#[test]
fn the_query_has_the_question_and_edns() {
    let query = Message::parse(&exchange().query(0)).expect("a query");
    assert_eq!((query.header.id, query.header.flags), (1, 0));
    let question = Question { name: name(QUESTION.0), rtype: QUESTION.1, class: Class::IN };
    assert_eq!(query.questions, [question]);
    let opt = query.opt().expect("an OPT record");
    assert_eq!((opt.class.0, opt.ttl), (1232, u32::from(edns::DO)));
    let mut plain = exchange();
    plain.attempt.payload = None;
    let query = Message::parse(&plain.query(flags::RD)).expect("a query");
    assert_eq!((query.header.flags, query.opt()), (flags::RD, None));
}

#[test]
fn only_a_message_with_id_and_question_is_the_response() {
    let right = response(QUESTION, Rcode::NOERROR, &[]);
    let Received::Response(read) = exchange().receive(&right.to_octets()) else { panic!("not read") };
    assert_eq!((read.questions, read.records), (right.questions.clone(), vec![]));
    let mut other_id = right.clone();
    other_id.header.id = 2;
    let mut query = right.clone();
    query.header.flags = 0;
    let other_name = response(("other.example.", Rtype::A), Rcode::NOERROR, &[]);
    let other_type = response(("www.example.", Rtype::AAAA), Rcode::NOERROR, &[]);
    let mut no_question = right;
    no_question.questions.clear();
    for wrong in [other_id, query, other_name, other_type, no_question.clone()] {
        assert_eq!(exchange().receive(&wrong.to_octets()), Received::NotTheResponse, "{wrong:?}");
    }
    assert_eq!(exchange().receive(&[0; 11]), Received::NotTheResponse);
    // A server that cannot read the query responds with the header alone.
    no_question.header.flags |= Rcode::FORMERR.0;
    assert!(matches!(exchange().receive(&no_question.to_octets()), Received::Response(_)));
}

#[test]
fn cookies_of_others_are_forged() {
    let exchange = exchange();
    let ours = [&client_cookie(&exchange)[..], b"serverpt"].concat();
    assert!(matches!(exchange.receive(&with_cookie(&ours)), Received::Response(_)));
    assert_eq!(exchange.receive(&with_cookie(b"theirown12345678")), Received::NotTheResponse);
}

#[test]
fn a_truncated_message_may_end_inside_a_record() {
    let mut truncated = response(QUESTION, Rcode::NOERROR, &["www.example. 60 A 192.0.2.1"]);
    truncated.header.flags |= flags::TC;
    let octets = truncated.to_octets();
    assert!(matches!(exchange().receive(&octets), Received::Response(_)));
    let part = &octets[..octets.len() - 3];
    assert_eq!(exchange().receive(part), Received::Truncated(Rcode::NOERROR));
    assert_eq!(exchange_over(Transport::Tcp).receive(part), Received::Malformed);
}

#[test]
fn the_case_of_the_name_is_checked_if_it_was_chosen() {
    let mut random = ChaCha12Rng::from_seed([1; 32]);
    let chosen = random_case(name("www.example.").view(), &mut random);
    assert_eq!(chosen, name("www.example."));
    assert_ne!(chosen.wire(), name("www.example.").wire());
    let checking = Exchange { name: chosen.clone(), has_random_case: true, ..exchange() };
    let mut right = response(QUESTION, Rcode::NOERROR, &[]);
    assert_eq!(checking.receive(&right.to_octets()), Received::OtherCase);
    right.questions[0].name = chosen;
    assert!(matches!(checking.receive(&right.to_octets()), Received::Response(_)));
}

#[test]
fn the_longest_name_has_a_random_case() {
    let long = name(&format!("{0}.{0}.{0}.{1}.", "x".repeat(63), "y".repeat(61)));
    assert_eq!(long.wire().len(), MAX_NAME);
    assert_eq!(random_case(long.view(), &mut ChaCha12Rng::from_seed([2; 32])), long);
}
