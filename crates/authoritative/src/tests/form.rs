//! Unusual and malformed queries (RFC 8906, RFC 6891, RFC 9619).

use super::*;
use nonesuch_proto::message::{Header, Question, opcode};

const TEXT: &str =
    "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 7 3600 300 3600000 900\n@ NS ns\nns A 192.0.2.1\n";

fn zone() -> Zone {
    Zone::new(TEXT, "example.", Some(Mechanism::Nsec))
}

/// Sends a message over UDP and TCP, and checks that the responses are equal.
#[track_caller]
fn send(octets: &[u8]) -> Option<Message> {
    let zone = zone();
    let udp = zone.send(octets, Transport::Udp);
    assert_eq!(udp, zone.send(octets, Transport::Tcp));
    let message = Message::parse(&udp?).unwrap();
    assert_eq!(message.header.id, ID);
    assert_eq!(message.header.flags & (flags::RA | flags::AD | flags::TC | 0x40), 0);
    assert_ne!(message.header.flags & flags::QR, 0);
    Some(message)
}

fn plain(qname: &str, qtype: Rtype) -> Vec<u8> {
    query(&name(qname), qtype, None)
}

fn with_flags(word: u16) -> Vec<u8> {
    let mut octets = plain("ns.example.", Rtype::A);
    octets[2..4].copy_from_slice(&word.to_be_bytes());
    octets
}

/// Checks that the response is a header with this response code, and at most OPT: only identifier,
/// opcode and RD of the query are copied.
#[track_caller]
fn assert_bare(octets: &[u8], rcode: Rcode) {
    let message = send(octets).unwrap();
    assert_eq!(message.rcode(), rcode);
    assert_eq!(message.header.counts[..3], [0; 3]);
    assert!(message.records.iter().all(|record| record.rtype == Rtype::OPT));
    let sent = Header::read(octets).unwrap();
    assert_eq!(message.header.opcode(), sent.opcode());
    assert_eq!(message.header.flags & flags::RD, sent.flags & flags::RD);
}

#[test]
fn unknown_types_are_no_data() {
    for qtype in [Rtype(0), Rtype(1000), Rtype(65_280), Rtype(65_535)] {
        let message = send(&plain("ns.example.", qtype)).unwrap();
        assert_eq!((message.rcode(), message.header.counts[1]), (Rcode::NOERROR, 0));
        assert_eq!(message.section(Section::Authority).count(), 1);
        assert_eq!(send(&plain("x.example.", qtype)).unwrap().rcode(), Rcode::NXDOMAIN);
    }
}

#[test]
fn query_types_that_no_zone_answers() {
    for (qtype, rcode) in [
        (Rtype::IXFR, Rcode::REFUSED),
        (Rtype::MAILA, Rcode::NOTIMP),
        (Rtype::MAILB, Rcode::NOTIMP),
        (Rtype::OPT, Rcode::FORMERR),
        (Rtype::TSIG, Rcode::FORMERR),
        (Rtype::NXNAME, Rcode::FORMERR),
    ] {
        let message = send(&plain("example.", qtype)).unwrap();
        assert_eq!((message.rcode(), message.records.len()), (rcode, 0), "{qtype}");
        let question = Question { name: name("example."), rtype: qtype, class: nonesuch_proto::Class::IN };
        assert_eq!(message.questions, [question]);
    }
    // RFC 5936 §4.2: AXFR is not defined over UDP.
    for (transport, rcode) in [(Transport::Udp, Rcode::FORMERR), (Transport::Tcp, Rcode::REFUSED)] {
        let octets = zone().send(&plain("example.", Rtype::AXFR), transport).unwrap();
        let message = Message::parse(&octets).unwrap();
        assert_eq!((message.rcode(), message.records.len()), (rcode, 0));
    }
    let message = send(&query(&name("example."), Rtype::NXNAME, Some((1232, false)))).unwrap();
    assert_eq!(message.opt().unwrap().rdata, [0, 15, 0, 2, 0, 30], "RFC 9824 §3.5: invalid query type");
}

#[test]
fn other_classes_and_other_zones_are_refused() {
    for class in [0u16, 3, 254, 255, 1000] {
        let mut octets = plain("ns.example.", Rtype::A);
        let at = octets.len() - 2;
        octets[at..].copy_from_slice(&class.to_be_bytes());
        let message = send(&octets).unwrap();
        assert_eq!((message.rcode(), message.records.len()), (Rcode::REFUSED, 0));
        assert_eq!(message.header.flags & flags::AA, 0);
        assert_eq!(message.questions[0].class.0, class);
    }
    for qname in [".", "test.", "xexample.", "example.test.", "7example."] {
        let message = send(&plain(qname, Rtype::A)).unwrap();
        assert_eq!((message.rcode(), message.records.len()), (Rcode::REFUSED, 0), "{qname}");
    }
}

#[test]
fn other_opcodes_are_not_implemented() {
    for opcode in (1..16u16).filter(|number| ![opcode::NOTIFY, opcode::UPDATE].contains(&(*number as u8))) {
        assert_bare(&with_flags(opcode << 11), Rcode::NOTIMP);
        assert_bare(&with_flags(opcode << 11 | flags::RD), Rcode::NOTIMP);
    }
    // RFC 8906 §8.1.4: only a header, with an unknown opcode.
    assert_bare(&Header { id: ID, flags: 15 << 11, counts: [0; 4] }.to_octets(), Rcode::NOTIMP);
}

/// RFC 8906 §8.1.3: flags do not change the answer; RD and CD are copied (RFC 1035 §4.1.1, RFC 4035
/// §3.1.6).
#[test]
fn flags_do_not_change_the_answer() {
    for word in [flags::AD, flags::CD, 0x40, flags::RA, flags::AA, flags::TC, flags::RD, 0x07f0, 3] {
        let message = send(&with_flags(word)).unwrap();
        assert_eq!((message.rcode(), message.header.counts), (Rcode::NOERROR, [1, 1, 0, 0]), "{word:04x}");
        let copied = word & (flags::RD | flags::CD);
        assert_eq!(message.header.flags, flags::QR | flags::AA | copied);
    }
}

#[test]
fn responses_and_short_messages_are_ignored() {
    assert!(send(&with_flags(flags::QR)).is_none());
    assert!(send(&with_flags(flags::QR | 5 << 11)).is_none());
    let octets = plain("ns.example.", Rtype::A);
    for end in 0..HEADER {
        assert!(send(&octets[..end]).is_none());
    }
    for end in HEADER..octets.len() {
        assert_bare(&octets[..end], Rcode::FORMERR);
    }
}

#[test]
fn malformed_queries() {
    let good = query(&name("ns.example."), Rtype::A, Some((1232, true)));
    assert_eq!(send(&good).unwrap().rcode(), Rcode::NOERROR);
    for end in HEADER..good.len() {
        assert_bare(&good[..end], Rcode::FORMERR);
    }
    // Counts of questions, answers and authority records other than 1, 0, 0; an additional count
    // that exceeds the message.
    for (at, count) in [(5, 0), (5, 2), (4, 1), (7, 1), (9, 1), (11, 0), (11, 2), (10, 255)] {
        let mut octets = good.clone();
        octets[at] = count;
        assert_bare(&octets, Rcode::FORMERR);
    }
    for trailing in 1..30 {
        assert_bare(&[good.as_slice(), &vec![0; trailing]].concat(), Rcode::FORMERR);
    }
    // A pointer, and undefined label types, in the question.
    for (at, octet) in [(HEADER, 0xc0), (HEADER + 3, 0xc0), (HEADER, 0x40), (HEADER, 0x80)] {
        let mut octets = good.clone();
        octets[at] = octet;
        assert_bare(&octets, Rcode::FORMERR);
    }
    // A name of 256 octets.
    let mut octets = good[..HEADER].to_vec();
    octets[11] = 0;
    for length in [63, 63, 63, 62] {
        octets.push(length);
        octets.extend(vec![b'a'; usize::from(length)]);
    }
    assert_eq!(octets.len() - HEADER, 255);
    octets.extend_from_slice(&[0, 0, 1, 0, 1]);
    assert_bare(&octets, Rcode::FORMERR);
}

/// Returns the query with these OPT records.
fn with_opts(opts: &[&[u8]]) -> Vec<u8> {
    let mut octets = plain("ns.example.", Rtype::A);
    octets[11] = opts.len() as u8;
    opts.iter().for_each(|opt| octets.extend_from_slice(opt));
    octets
}

#[test]
fn edns() {
    const OPT: &[u8] = &[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0];
    let answer = |octets: &[u8]| {
        let message = send(octets).unwrap();
        let opt = message.opt().unwrap().clone();
        assert_eq!((opt.owner, opt.class.0, opt.rdata), (Name::root(), 1232, Vec::new()));
        assert_eq!(opt.ttl & 0x00ff_7fff, 0, "version 0, no flags but DO");
        assert_eq!(message.records.iter().filter(|record| record.rtype == Rtype::OPT).count(), 1);
        (message.rcode(), message.header.counts, opt.ttl & 0x8000 != 0)
    };
    assert_eq!(answer(&with_opts(&[OPT])), (Rcode::NOERROR, [1, 1, 0, 1], false));
    assert!(send(&with_opts(&[])).unwrap().opt().is_none());
    // RFC 6891 §6.1.3: other versions, independent of the remaining content.
    for version in [1, 2, 255] {
        let opt = [0, 0, 41, 4, 208, 0, version, 0, 0, 0, 0];
        assert_eq!(answer(&with_opts(&[&opt])), (Rcode::BADVERS, [1, 0, 0, 1], false));
    }
    // RFC 6891 §6.1.2, §6.1.4: unknown options and flags are ignored; DO is copied.
    let unknown: &[u8] = &[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 7, 0xfd, 0xe9, 0, 3, 1, 2, 3];
    assert_eq!(answer(&with_opts(&[unknown])), (Rcode::NOERROR, [1, 1, 0, 1], false));
    let flags = [0, 0, 41, 4, 208, 0, 0, 0x7f, 0xff, 0, 0];
    assert_eq!(answer(&with_opts(&[&flags])), (Rcode::NOERROR, [1, 1, 0, 1], false));
    let all_flags = [0, 0, 41, 4, 208, 0, 0, 0xff, 0xff, 0, 0];
    assert_eq!(answer(&with_opts(&[&all_flags])), (Rcode::NOERROR, [1, 2, 0, 1], true));
    // RFC 6891 §6.1.1: at most one OPT record, with the root as owner and complete options.
    assert_bare(&with_opts(&[OPT, OPT]), Rcode::FORMERR);
    assert_bare(&with_opts(&[&[1, b'a', 0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]]), Rcode::FORMERR);
    assert_bare(&with_opts(&[&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 3, 0, 10, 0]]), Rcode::FORMERR);
    assert_bare(&with_opts(&[&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 4, 0, 10, 0, 1]]), Rcode::FORMERR);
    // Another additional record changes nothing, at any position.
    let other: &[u8] = &[0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, 2, 1, b'x'];
    assert_eq!(answer(&with_opts(&[other, OPT])), (Rcode::NOERROR, [1, 1, 0, 1], false));
    assert_eq!(answer(&with_opts(&[OPT, other])), (Rcode::NOERROR, [1, 1, 0, 1], false));
}
