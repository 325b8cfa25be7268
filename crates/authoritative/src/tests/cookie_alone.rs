//! Messages with only a cookie (RFC 7873 §5.4).

use super::responder::{ask, limited, option_of, responder};
use super::*;
use nonesuch_proto::message::Header;
use nonesuch_server::limits::RateSettings;

/// Returns a message without a question and with this option in its OPT record.
fn alone(code: u16, data: &[u8]) -> Vec<u8> {
    let mut octets = Header { id: 7, flags: 0, counts: [0, 0, 0, 1] }.to_octets().to_vec();
    let start = octets.len();
    edns::push_opt(1232, 0, 0, &mut octets);
    edns::push_option(code, &[data], &mut octets);
    edns::set_options_length(start, &mut octets);
    octets
}

#[test]
fn a_cookie_alone_is_answered_with_ours() {
    let shared = limited(RateSettings::default());
    let mut responder = responder(&shared, Transport::Udp);
    let mut told = |message: &[u8]| {
        let answer = ask(&mut responder, message).unwrap();
        let parsed = Message::parse(&answer).unwrap();
        assert_eq!((parsed.header.id, parsed.header.counts[0]), (7, 0));
        (parsed.rcode(), option_of(&answer, edns::COOKIE))
    };
    let (rcode, cookie) = told(&alone(edns::COOKIE, b"12345678"));
    let cookie = cookie.unwrap();
    assert_eq!((rcode, cookie.len(), &cookie[..8]), (Rcode::NOERROR, 24, &b"12345678"[..]));
    assert_eq!(told(&alone(edns::COOKIE, &cookie)).0, Rcode::NOERROR);
    let mut wrong = cookie;
    wrong[23] ^= 1;
    let (rcode, fresh) = told(&alone(edns::COOKIE, &wrong));
    assert_eq!((rcode, fresh.map(|fresh| fresh.len())), (Rcode::BADCOOKIE, Some(24)));
    // A message without a cookie, with a malformed cookie or with additional data is no such
    // request.
    let mut two = alone(edns::COOKIE, b"12345678");
    two[7] = 1;
    let mut more = alone(edns::COOKIE, b"12345678");
    more.push(0);
    for message in [alone(edns::NSID, &[]), alone(edns::COOKIE, b"1234567"), two, more] {
        assert_eq!(told(&message), (Rcode::FORMERR, None));
    }
}

/// An attacker with a forged source address affects only clients at that address without a cookie.
#[test]
fn a_client_with_a_valid_cookie_is_not_limited() {
    let shared = limited(RateSettings { error: 2, slip: 0, ..RateSettings::default() });
    let mut responder = responder(&shared, Transport::Udp);
    let mut told = |message: &[u8]| ask(&mut responder, message);
    let cookie = option_of(&told(&alone(edns::COOKIE, b"12345678")).unwrap(), edns::COOKIE).unwrap();
    for others in [alone(edns::NSID, &[]), alone(edns::COOKIE, b"12345678")] {
        let answered = (0..100).filter(|_| told(&others).is_some()).count();
        assert!(answered < 50, "{answered}");
    }
    assert!((0..100).all(|_| told(&alone(edns::COOKIE, &cookie)).is_some()));
}
