//! Sizes of responses: 512 octets without EDNS, the payload size of the client up to 1232,
//! unlimited over TCP; truncation (RFC 2181 §9, RFC 9471).

use super::responder::{context, responder, send_message};
use super::zones::serving_text;
use super::*;
use crate::AnswerSettings;
use crate::zones::ZonePolicy;
use nonesuch_server::reply_options::{ReplySettings, ReplySettingsError};

const HEAD: &str =
    "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 7 3600 300 3600000 900\n@ NS ns\nns A 192.0.2.1\n";

/// Returns a zone with `count` TXT records of `length` octets of text at `t.example.`.
fn texts(count: usize, length: usize) -> String {
    let mut text = HEAD.to_owned();
    for index in 0..count {
        text.push_str(&format!("t TXT \"{index:05}{}\"\n", "x".repeat(length - 5)));
    }
    text
}

#[track_caller]
fn send(
    zone: &Zone,
    qname: &str,
    qtype: Rtype,
    opt: Option<(u16, bool)>,
    transport: Transport,
) -> (usize, Message) {
    let octets = zone.send(&query(&name(qname), qtype, opt), transport).unwrap();
    (octets.len(), Message::parse(&octets).unwrap())
}

fn is_truncated(message: &Message) -> bool {
    message.header.flags & flags::TC != 0
}

/// Checks that a truncated response consists of header, question and OPT.
#[track_caller]
fn assert_truncated(message: &Message, has_opt: bool) {
    assert!(is_truncated(message));
    assert_eq!(message.header.counts, [1, 0, 0, u16::from(has_opt)]);
    assert_eq!(message.rcode(), Rcode::NOERROR);
}

#[test]
fn the_limit_is_exact() {
    // Question 15 + 4, header 12, record 12 + 1 + text; OPT 11.
    let without_text = HEADER + 11 + 4 + 13;
    for (opt, limit) in [
        (None, 512),
        (Some(0), 512),
        (Some(511), 512),
        (Some(600), 600),
        (Some(1232), 1232),
        (Some(1233), 1232),
        (Some(4096), 1232),
        (Some(65_535), 1232),
    ] {
        let room = limit - if opt.is_some() { 11 } else { 0 };
        for beyond in [0, 1] {
            // As many records as necessary; the last one has the remaining length.
            let total = room + beyond - HEADER - 15;
            let (full, rest) = ((total - 14) / 200, (total - 14) % 200);
            let mut text = HEAD.to_owned();
            for index in 0..full {
                text.push_str(&format!("t TXT \"{index:05}{}\"\n", "x".repeat(200 - 13 - 5)));
            }
            text.push_str(&format!("t TXT \"{}\"\n", "y".repeat(rest + 1)));
            assert!(without_text < room);
            let zone = Zone::new(&text, "example.", None);
            let (length, message) =
                send(&zone, "t.example.", Rtype::TXT, opt.map(|payload| (payload, false)), Transport::Udp);
            if beyond == 0 {
                assert_eq!((length, is_truncated(&message)), (limit, false), "{opt:?}");
                assert_eq!(usize::from(message.header.counts[1]), full + 1);
            } else {
                assert_truncated(&message, opt.is_some());
            }
        }
    }
}

/// RFC 6891 §6.2.5: the sizes of client and server limit a response, and the OPT record of every
/// response contains the size of the server.
#[test]
fn max_udp_size_bounds_responses_and_is_advertised() {
    let zone = serving_text("example.", &texts(9, 150), ZonePolicy::default());
    let context = context(&[("example.", zone)]);
    let whole = send_message(
        &mut responder(&context, Transport::Tcp),
        &query(&name("t.example."), Rtype::TXT, Some((4096, false))),
    )
    .unwrap()
    .len() as u16;
    assert!((1233..1600).contains(&whole), "{whole}");
    for max_udp_size in [512, 1232, whole - 1, whole, 4096] {
        let reply = ReplySettings { max_udp_size, ..ReplySettings::default() };
        reply.check().unwrap();
        context.settings.store(Arc::new(AnswerSettings { reply, ..AnswerSettings::default() }));
        let mut over_udp = responder(&context, Transport::Udp);
        let mut advertised = |message: &[u8]| {
            let octets = send_message(&mut over_udp, message).unwrap();
            let answer = Message::parse(&octets).unwrap();
            assert_eq!(answer.opt().map(|opt| opt.class.0), Some(max_udp_size), "{message:?}");
            (octets.len(), answer)
        };
        for of_client in [512, 1232, whole - 1, whole, 4096, u16::MAX] {
            let message = query(&name("t.example."), Rtype::TXT, Some((of_client, false)));
            let (octets, answer) = advertised(&message);
            assert_eq!(
                is_truncated(&answer),
                of_client.min(max_udp_size) < whole,
                "{of_client} {max_udp_size}"
            );
            assert!(octets <= usize::from(of_client.min(max_udp_size)), "{of_client} {max_udp_size}");
        }
        // Refused queries, transfers, other versions of EDNS, messages without a question, other
        // opcodes.
        for (qname, qtype) in [("test.", Rtype::A), ("example.", Rtype::IXFR), ("example.", Rtype::AXFR)] {
            advertised(&query(&name(qname), qtype, Some((1232, false))));
        }
        let mut other_version = query(&name("example."), Rtype::A, Some((1232, false)));
        let version = other_version.len() - 5;
        other_version[version] = 1;
        advertised(&other_version);
        for opcode in [2u8, 4, 5] {
            let mut message = query(&name("example."), Rtype::SOA, Some((1232, false)));
            message[2] = opcode << 3;
            advertised(&message);
        }
        let mut bare = vec![1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        edns::push_opt(1232, 0, 0, &mut bare);
        advertised(&bare);
    }
    for found in [0, 511, 4097] {
        let reply = ReplySettings { max_udp_size: found, ..ReplySettings::default() };
        assert_eq!(reply.check(), Err(ReplySettingsError::UdpSize { found }));
    }
}

#[test]
fn tcp_has_room_for_64_kib() {
    for signing in [None, Some(Mechanism::Nsec)] {
        // No pointer can refer to names beyond 16 KiB.
        for count in [5, 100, 260, 307] {
            let zone = Zone::new(&texts(count, 200), "example.", signing);
            for dnssec_ok in [false, true] {
                let opt = Some((1232, dnssec_ok));
                let (length, message) = send(&zone, "t.example.", Rtype::TXT, opt, Transport::Tcp);
                assert!(length > count * 200);
                let signatures = usize::from(signing.is_some() && dnssec_ok);
                assert_eq!(message.section(Section::Answer).count(), count + signatures);
                assert!(message.section(Section::Answer).all(|record| record.owner == name("t.example.")));
            }
        }
    }
}

/// After more than 16 KiB of records, names are written in full.
#[test]
fn names_beyond_the_range_of_pointers() {
    let mut text = HEAD.to_owned();
    for index in 0..1200 {
        text.push_str(&format!("*.w MX {index} mail{index:04}.some.where.example.\n"));
    }
    text.push_str("alias CNAME a.b.w\n");
    for signing in SIGNINGS {
        let zone = Zone::new(&text, "example.", signing);
        for qname in ["x.w.example.", "a.longer.name.w.example.", "alias.example.", "*.w.example."] {
            for dnssec_ok in [false, true] {
                let message = zone.checked_response(qname, Rtype::MX, dnssec_ok);
                assert!(message.header.counts[1] >= 1200);
            }
        }
    }
}

/// A message has room for 2,500 records of an RRset, because their names are compressed everywhere,
/// also beyond 32 KiB.
#[test]
fn names_are_compressed_up_to_the_last_octet_of_a_message() {
    let mut text = HEAD.to_owned();
    for index in 0..2500 {
        let target = format!("n{index:04}.a-suffix-that-all-of-these-names-have.some.where");
        text.push_str(&format!("t MX 1 {target}\n*.w MX 1 {target}\ncut NS {target}.test.\n"));
    }
    for signing in [None, Some(Mechanism::Nsec)] {
        let zone = Zone::new(&text, "example.", signing);
        for qname in ["t.example.", "x.w.example.", "a.longer.name.w.example."] {
            let message = zone.checked_response(qname, Rtype::MX, true);
            let answers = message.section(Section::Answer).filter(|record| record.rtype == Rtype::MX);
            assert_eq!((is_truncated(&message), answers.count()), (false, 2500), "{qname}");
        }
        let (_, message) = send(&zone, "www.cut.example.", Rtype::A, Some((1232, true)), Transport::Tcp);
        let servers: BTreeSet<String> = message
            .section(Section::Authority)
            .filter(|record| record.rtype == Rtype::NS)
            .map(|record| {
                let mut text = Vec::new();
                rdata::push_text(Rtype::NS, &record.rdata, &mut text);
                String::from_utf8(text).unwrap()
            })
            .collect();
        assert!(!is_truncated(&message) && servers.len() == 2500);
        assert!(servers.contains("n2499.a-suffix-that-all-of-these-names-have.some.where.test."));
    }
}

/// The owner of each address of a server is a pointer, independent of the number of addresses.
#[test]
fn thousands_of_addresses_of_one_server() {
    let mut text = HEAD.to_owned();
    // More names than the number of suffixes that a template remembers.
    (0..70).for_each(|index| text.push_str(&format!("cut NS ns{index}.cut\n")));
    for index in 0..3500 {
        text.push_str(&format!("ns69.cut A 10.0.{}.{}\n", index / 256, index % 256));
    }
    let zone = Zone::new(&text, "example.", None);
    let (_, message) = send(&zone, "www.cut.example.", Rtype::A, None, Transport::Tcp);
    assert!(!is_truncated(&message));
    let owner = name("ns69.cut.example.");
    assert_eq!(message.section(Section::Additional).filter(|record| record.owner == owner).count(), 3500);
}

#[test]
fn dnskeys_over_1232_octets() {
    let mut text = HEAD.to_owned();
    for index in 0..4 {
        let key = data_encoding::BASE64.encode(&[index; 400]);
        text.push_str(&format!("@ DNSKEY 256 3 13 {key}\n"));
    }
    let zone = Zone::new(&text, "example.", None);
    let (_, message) = send(&zone, "example.", Rtype::DNSKEY, Some((4096, true)), Transport::Udp);
    assert_truncated(&message, true);
    let (_, message) = send(&zone, "example.", Rtype::DNSKEY, Some((4096, true)), Transport::Tcp);
    assert_eq!(message.header.counts, [1, 4, 0, 1]);
}

/// Returns a referral with `count` in-domain servers and `sibling` servers below another
/// delegation, with two addresses each.
fn referral(count: usize, sibling: usize) -> Zone {
    let mut text = HEAD.to_owned();
    text.push_str("beside NS ns.test.\n");
    for index in 0..count {
        text.push_str(&format!("cut NS ns{index}.cut\nns{index}.cut A 192.0.2.{index}\n"));
        text.push_str(&format!("ns{index}.cut AAAA 2001:db8::{index}\n"));
    }
    for index in 0..sibling {
        text.push_str(&format!("cut NS ns{index}.beside\nns{index}.beside A 192.0.2.{index}\n"));
        text.push_str(&format!("ns{index}.beside AAAA 2001:db8::{index}\n"));
    }
    Zone::new(&text, "example.", None)
}

/// RFC 9471 §3.1 (in-domain glue) and §3.2 (sibling glue).
#[test]
fn glue_that_does_not_fit() {
    let query_cut = |zone: &Zone, opt| send(zone, "www.cut.example.", Rtype::A, opt, Transport::Udp);
    // Everything fits.
    let (_, message) = query_cut(&referral(3, 3), None);
    assert_eq!((message.header.counts, is_truncated(&message)), ([1, 0, 6, 12], false));
    // In-domain glue does not fit: the response is truncated.
    let zone = referral(13, 0);
    let (length, message) = query_cut(&zone, None);
    assert!(length <= 512);
    assert_truncated(&message, false);
    let (_, message) = query_cut(&zone, Some((1232, false)));
    assert_eq!((message.header.counts, is_truncated(&message)), ([1, 0, 13, 27], false));
    // Sibling glue does not fit: it is omitted, and the RRsets that remain are complete.
    let (length, message) = query_cut(&referral(2, 8), None);
    assert!(length <= 512 && !is_truncated(&message));
    assert_eq!(message.header.counts[2], 10);
    let owners: Vec<&Name> = message.section(Section::Additional).map(|record| &record.owner).collect();
    for index in 0..2 {
        let server = name(&format!("ns{index}.cut.example."));
        assert_eq!(owners.iter().filter(|owner| ***owner == server).count(), 2, "in-domain glue comes first");
    }
    assert!(owners.len() > 4 && owners.len() < 20);
}

/// A negative response that exceeds 512 octets is truncated; its response code remains.
#[test]
fn large_denials() {
    let text = format!("{HEAD}a.{0}.{0} A 192.0.2.1\nz.{0}.{0} A 192.0.2.1\n", "x".repeat(60));
    let zone = Zone::new(&text, "example.", Some(Mechanism::Nsec));
    let qname = format!("m.{0}.{0}.example.", "x".repeat(60));
    let (length, message) = send(&zone, &qname, Rtype::A, Some((512, true)), Transport::Udp);
    assert!(length <= 512 && is_truncated(&message));
    assert_eq!((message.rcode(), message.header.counts), (Rcode::NXDOMAIN, [1, 0, 0, 1]));
    let (_, message) = send(&zone, &qname, Rtype::A, Some((1232, true)), Transport::Udp);
    assert!(!is_truncated(&message));
}
