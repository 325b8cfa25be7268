//! Sizes: 512 octets without EDNS, the sender's payload up to 1232, TCP whole; truncation (RFC 2181 §9, RFC 9471).

use super::*;

const HEAD: &str =
    "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 7 3600 300 3600000 900\n@ NS ns\nns A 192.0.2.1\n";

/// A zone with one TXT record of `length` octets of text at `t.example.`.
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

/// A truncated response is header, question and OPT.
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
            // As many records as are needed, the last of them with what is left.
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

#[test]
fn tcp_has_room_for_64_kib() {
    for signing in [None, Some(Mechanism::Nsec)] {
        // Beyond 16 KiB no pointer leads to what stands there.
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

/// Behind more than 16 KiB of records, names are written out.
#[test]
fn beyond_the_reach_of_pointers() {
    let mut text = HEAD.to_owned();
    for index in 0..1200 {
        text.push_str(&format!("*.w MX {index} mail{index:04}.some.where.example.\n"));
    }
    text.push_str("alias CNAME a.b.w\n");
    for signing in SIGNINGS {
        let zone = Zone::new(&text, "example.", signing);
        for qname in ["x.w.example.", "a.longer.name.w.example.", "alias.example.", "*.w.example."] {
            for dnssec_ok in [false, true] {
                let message = zone.judged(qname, Rtype::MX, dnssec_ok);
                assert!(message.header.counts[1] >= 1200);
            }
        }
    }
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

/// `count` servers in the domain and `sibling` beside it, with two addresses each.
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

/// RFC 9471 §3.1 and §3.2.
#[test]
fn glue_that_does_not_fit() {
    let ask = |zone: &Zone, opt| send(zone, "www.cut.example.", Rtype::A, opt, Transport::Udp);
    // All fits.
    let (_, message) = ask(&referral(3, 3), None);
    assert_eq!((message.header.counts, is_truncated(&message)), ([1, 0, 6, 12], false));
    // In-domain glue does not fit: the response is truncated.
    let zone = referral(13, 0);
    let (length, message) = ask(&zone, None);
    assert!(length <= 512);
    assert_truncated(&message, false);
    let (_, message) = ask(&zone, Some((1232, false)));
    assert_eq!((message.header.counts, is_truncated(&message)), ([1, 0, 13, 27], false));
    // Sibling glue does not fit: it is left out, and what is there is whole.
    let (length, message) = ask(&referral(2, 8), None);
    assert!(length <= 512 && !is_truncated(&message));
    assert_eq!(message.header.counts[2], 10);
    let owners: Vec<&Name> = message.section(Section::Additional).map(|record| &record.owner).collect();
    for index in 0..2 {
        let server = name(&format!("ns{index}.cut.example."));
        assert_eq!(owners.iter().filter(|owner| ***owner == server).count(), 2, "in-domain glue comes first");
    }
    assert!(owners.len() > 4 && owners.len() < 20);
}

/// A negative response too large for 512 octets is truncated; its rcode stays.
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
