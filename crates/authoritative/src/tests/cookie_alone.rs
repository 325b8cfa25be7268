//! Messages with only a cookie (RFC 7873 §5.4).

use super::responder::{limited, option_of, responder, send_message};
use super::*;
use nonesuch_proto::message::Header;
use nonesuch_server::limits::RateSettings;

/// Returns a message without a question and with this option in its OPT record.
fn message_without_question(code: u16, data: &[u8]) -> Vec<u8> {
    let mut octets = Header { id: 7, flags: 0, counts: [0, 0, 0, 1] }.to_octets().to_vec();
    let start = octets.len();
    edns::push_opt(1232, 0, 0, &mut octets);
    edns::push_option(code, &[data], &mut octets);
    edns::set_options_length(start, &mut octets);
    octets
}

#[test]
fn a_message_with_only_a_cookie_is_answered_with_a_server_cookie() {
    let context = limited(RateSettings::default());
    let mut responder = responder(&context, Transport::Udp);
    let mut send = |message: &[u8]| {
        let answer = send_message(&mut responder, message).unwrap();
        let parsed = Message::parse(&answer).unwrap();
        assert_eq!((parsed.header.id, parsed.header.counts[0]), (7, 0));
        (parsed.rcode(), option_of(&answer, edns::COOKIE))
    };
    let (rcode, cookie) = send(&message_without_question(edns::COOKIE, b"12345678"));
    let cookie = cookie.unwrap();
    assert_eq!((rcode, cookie.len(), &cookie[..8]), (Rcode::NOERROR, 24, &b"12345678"[..]));
    assert_eq!(send(&message_without_question(edns::COOKIE, &cookie)).0, Rcode::NOERROR);
    let mut wrong = cookie;
    wrong[23] ^= 1;
    let (rcode, fresh) = send(&message_without_question(edns::COOKIE, &wrong));
    assert_eq!((rcode, fresh.map(|fresh| fresh.len())), (Rcode::BADCOOKIE, Some(24)));
    // A message without a cookie, with a malformed cookie or with additional data is no such
    // request.
    let mut two = message_without_question(edns::COOKIE, b"12345678");
    two[7] = 1;
    let mut more = message_without_question(edns::COOKIE, b"12345678");
    more.push(0);
    for message in [
        message_without_question(edns::NSID, &[]),
        message_without_question(edns::COOKIE, b"1234567"),
        two,
        more,
    ] {
        assert_eq!(send(&message), (Rcode::FORMERR, None));
    }
}

/// An attacker with a forged source address affects only clients at that address without a cookie.
#[test]
fn a_client_with_a_valid_cookie_is_not_limited() {
    let context = limited(RateSettings { error: 2, slip: 0, ..RateSettings::default() });
    let mut responder = responder(&context, Transport::Udp);
    let mut send = |message: &[u8]| send_message(&mut responder, message);
    let cookie =
        option_of(&send(&message_without_question(edns::COOKIE, b"12345678")).unwrap(), edns::COOKIE)
            .unwrap();
    for others in
        [message_without_question(edns::NSID, &[]), message_without_question(edns::COOKIE, b"12345678")]
    {
        let answered = (0..100).filter(|_| send(&others).is_some()).count();
        assert!(answered < 50, "{answered}");
    }
    assert!((0..100).all(|_| send(&message_without_question(edns::COOKIE, &cookie)).is_some()));
}
