//! Anonymisation of whole messages, and query lists.

use super::*;
use crate::load::QueryList;
use nonesuch_proto::message::{HEADER, Message, Section};
use nonesuch_proto::{Class, Name, Rtype};
use proptest::prelude::*;

fn anonymizer(names: bool, zone: Option<&str>) -> Anonymizer {
    let zone = zone.map(|zone| zone.parse().expect("a name"));
    Anonymizer::new(&AnonymisationKey::from_octets(&[7; 32]), AnonymizeOptions { names, zone })
        .expect("a key")
}

fn parsed(message: &CapturedMessage) -> Message {
    Message::parse(&message.octets).expect("a message")
}

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// Returns the anonymised name of a query.
fn masked(anonymizer: &Anonymizer, text: &str) -> Name {
    let mut octets = vec![0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    octets.extend_from_slice(name(text).view().wire());
    octets.extend_from_slice(&[0, 1, 0, 1]);
    let mut message = CapturedMessage { octets, ..query() };
    assert!(anonymizer.apply(&mut message).expect("anonymised"));
    parsed(&message).questions[0].name.clone()
}

/// A response of www.Example.com with compressed names: CNAME, MX, A, TXT, RRSIG and OPT.
fn response() -> CapturedMessage {
    let mut octets = b"\x12\x34\x81\0\0\x01\0\x05\0\0\0\x01\x03www\x07Example\x03com\0\0\x01\0\x01".to_vec();
    let mut record = |owner: &[u8], rtype: u16, rdata: &[u8]| {
        octets.extend_from_slice(owner);
        octets.extend_from_slice(&rtype.to_be_bytes());
        octets.extend_from_slice(&[0, 1, 0, 0, 0, 60]);
        octets.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
        octets.extend_from_slice(rdata);
    };
    record(b"\xc0\x0c", 5, b"\x04mail\xc0\x10");
    record(b"\x04mail\xc0\x10", 15, b"\0\x0a\xc0\x0c");
    record(b"\xc0\x0c", 1, &[192, 0, 2, 9]);
    record(b"\xc0\x0c", 16, b"\x06secret");
    let rrsig = [&b"\0\x01\x0d\x02\0\0\0\x3c\0\0\0\x01\0\0\0\0\0\x07"[..], b"\x03com\0", b"signature"];
    record(b"\xc0\x0c", 46, &rrsig.concat());
    octets.extend_from_slice(b"\0\0\x29\x04\xd0\0\0\0\0\0\x0b\0\x08\0\x07\0\x01\x18\0\xc0\0\x02");
    CapturedMessage { octets, is_response: true, ..query() }
}

#[test]
fn addresses_alone_leave_names_and_change_the_client_subnet() {
    let mut message = response();
    assert!(anonymizer(false, None).apply(&mut message).expect("anonymised"));
    let original = response();
    assert_ne!(message.client.ip(), original.client.ip());
    assert_eq!((message.client.port(), message.server.port()), (4711, 53));
    let subnet = original.octets.len() - 3;
    assert_eq!(message.octets[..subnet], original.octets[..subnet]);
    let expected = CryptoPan::new(&AnonymisationKey::from_octets(&[7; 32]))
        .map(|pan| pan.replace_address([192, 0, 2, 0].into()).expect("replaced"))
        .expect("a key");
    let [.., a, b, c] = message.octets[..] else { panic!("three octets") };
    assert_eq!(
        expected.to_string().split('.').take(3).collect::<Vec<_>>(),
        [a, b, c].map(|octet| octet.to_string())
    );
}

#[test]
fn names_addresses_and_texts_are_replaced_and_lengths_stay() {
    let (mut message, anonymizer) = (response(), anonymizer(true, None));
    assert!(anonymizer.apply(&mut message).expect("anonymised"));
    assert_eq!(message.octets.len(), response().octets.len());
    let (before, after) = (parsed(&response()), parsed(&message));
    let (www, mail) = (masked(&anonymizer, "www.example.com"), masked(&anonymizer, "mail.example.com"));
    let records: Vec<_> = after.section(Section::Answer).collect();
    assert_eq!(after.questions[0].name, www);
    assert_eq!((&records[0].owner, &records[0].rdata[..]), (&www, mail.view().wire()));
    assert_eq!((&records[1].owner, &records[1].rdata[2..]), (&mail, www.view().wire()));
    assert_eq!(records[1].rdata[..2], [0, 10]);
    assert_ne!(records[2].rdata, before.records[2].rdata);
    assert_eq!(records[3].rdata, b"\x06\0\0\0\0\0\0");
    // The numbers and the signer of RRSIG stay, the signature does not.
    let length = records[4].rdata.len();
    assert_eq!(records[4].rdata[..length - 9], before.records[4].rdata[..length - 9]);
    assert_eq!(records[4].rdata[length - 9..], [0; 9]);
    for secret in [&b"www"[..], b"xample", b"mail", b"secret", b"signature"] {
        assert!(!message.octets.windows(secret.len()).any(|part| part == secret), "{secret:?}");
    }
}

#[test]
fn a_name_has_one_replacement_which_depends_on_its_ancestors() {
    let all = anonymizer(true, None);
    let www = masked(&all, "www.example.com");
    assert_eq!(masked(&all, "WWW.eXample.com"), www);
    assert!(www.view().is_below(masked(&all, "example.com").view()));
    assert!(www.view().is_below(name("com").view()));
    assert_eq!(masked(&all, "com"), name("com"));
    assert_eq!(masked(&all, "."), name("."));
    let other = masked(&all, "www.example.net");
    assert_ne!(other.view().labels().next(), www.view().labels().next());
    assert_eq!(masked(&all, "*.example.com").view().labels().next(), Some(&b"*"[..]));
    let zone = anonymizer(true, Some("example.com"));
    let masked_in_zone = masked(&zone, "a.www.Example.com");
    assert!(masked_in_zone.view().is_below(name("example.com").view()));
    assert_ne!(masked_in_zone, name("a.www.example.com"));
    assert!(!masked(&zone, "www.example.net").view().is_below(name("example.net").view()));
    let other_key = Anonymizer::new(
        &AnonymisationKey::from_octets(&[8; 32]),
        AnonymizeOptions { names: true, zone: None },
    );
    assert_ne!(masked(&other_key.expect("a key"), "www.example.com"), www);
}

#[test]
fn messages_that_cannot_be_parsed_are_refused() {
    for octets in [&response().octets[..60], b"\0\0\0\0\0\x01\0\0\0\0\0\0\xc0\x0c\0\x01\0\x01"] {
        let mut message = CapturedMessage { octets: octets.to_vec(), ..query() };
        assert!(!anonymizer(false, None).apply(&mut message).expect("no fault of the cipher"));
    }
}

#[test]
fn malformed_rdata_unknown_types_and_trailing_octets_become_zeros() {
    let mut octets = vec![0, 1, 0x80, 0, 0, 0, 0, 3, 0, 0, 0, 0];
    for (rtype, rdata) in [(15u16, &b"\0\x0a\x05secret"[..]), (2, b"\xc0\xff"), (64_000, b"secret")] {
        octets.extend_from_slice(&[0]);
        octets.extend_from_slice(&rtype.to_be_bytes());
        octets.extend_from_slice(&[0, 1, 0, 0, 0, 60, 0, rdata.len() as u8]);
        octets.extend_from_slice(rdata);
    }
    octets.extend_from_slice(b"secret");
    let mut message = CapturedMessage { octets, ..query() };
    assert!(anonymizer(true, None).apply(&mut message).expect("anonymised"));
    assert!(!message.octets.windows(6).any(|part| part == b"secret"), "{:?}", message.octets);
}

proptest! {
    #[test]
    fn anonymised_messages_keep_their_length_and_questions_their_shape(
        octets in proptest::collection::vec(any::<u8>(), 12..300),
        names in any::<bool>(),
    ) {
        let mut octets = octets;
        // Small counts, so that many messages can be parsed.
        for at in [4, 6, 8, 10] {
            octets[at] = 0;
            octets[at + 1] &= 1;
        }
        let mut message = CapturedMessage { octets: octets.clone(), ..query() };
        let parsed = anonymizer(names, None).apply(&mut message).expect("anonymised");
        prop_assert_eq!(message.octets.len(), octets.len());
        if !parsed {
            prop_assert_eq!(message.octets, octets);
        }
    }

    #[test]
    fn lines_are_read_as_the_same_questions(
        labels in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..20), 0..5),
        rtype in any::<u16>(),
    ) {
        let mut octets = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in &labels {
            octets.push(label.len() as u8);
            octets.extend_from_slice(label);
        }
        octets.push(0);
        octets.extend_from_slice(&rtype.to_be_bytes());
        octets.extend_from_slice(&Class::IN.0.to_be_bytes());
        let line = question_line(&octets).expect("a query");
        let list = QueryList::parse(Path::new("list"), line.as_bytes()).expect("a query list");
        prop_assert_eq!(list.question(0), Some(&octets[HEADER..]));
        prop_assert_eq!(list.len(), 1);
    }
}

#[test]
fn other_messages_have_no_line() {
    assert_eq!(question_line(QUERY).as_deref(), Some("www.example. A\n"));
    let changed = |at: usize, octet: u8| {
        let mut octets = QUERY.to_vec();
        octets[at] = octet;
        octets
    };
    let (qr, update, none, chaos) = (changed(2, 0x80), changed(2, 0x28), changed(5, 0), changed(28, 3));
    for octets in [&qr[..], &update, &none, &chaos, &QUERY[..20], b""] {
        assert_eq!(question_line(octets), None, "{octets:?}");
    }
    assert_eq!(Rtype::A.to_string(), "A");
}
