//! Large RRsets: a truncated response costs as much as a small response. The test measures the
//! capacity of the response buffer.

use super::*;

/// Size of a response buffer in `net`, in octets.
const BUFFER: usize = 4096;

/// Returns a zone with RRsets of nearly 64 KiB, which queries reach in all possible ways.
fn text() -> String {
    let mut text = String::from(
        "$ORIGIN example.\n$TTL 60\n@ SOA ns hostmaster 1 1 1 1 30\n@ NS ns\nns A 192.0.2.1\nalias CNAME t\n\
         wild CNAME x.w\nd DNAME e\nt.e CNAME t\nto CNAME x.cut\n",
    );
    for number in 0..240 {
        for owner in ["t", "*.w"] {
            text.push_str(&format!("{owner} TXT \"{number:05}{}\"\n", "x".repeat(239)));
        }
    }
    for number in 0..150 {
        text.push_str(&format!("cut NS a-server-with-a-long-name-{number:05}.cut\n"));
        text.push_str(&format!("a-server-with-a-long-name-{number:05}.cut A 192.0.2.1\n"));
    }
    for number in 0..400 {
        text.push_str(&format!("few A 192.{}.{}.1\n", number / 256, number % 256));
        for host in 0..4 {
            text.push_str(&format!("n{host}.glue A 192.{host}.{}.{}\n", number / 256, number % 256));
        }
    }
    (0..4).for_each(|host| text.push_str(&format!("glue NS n{host}.glue\n")));
    text
}

/// Returns the UDP response, and the capacity of its buffer in octets.
fn respond(zone: &Zone, qname: &str, qtype: Rtype, opt: Option<(u16, bool)>) -> (Vec<u8>, usize) {
    let message = query(&name(qname), qtype, opt);
    let mut response = (Vec::new(), 0);
    let take = |_: usize, out: &Vec<u8>| response = (out.clone(), out.capacity());
    zone.server.send_batch(&[&message], Transport::Udp, NOW, take);
    assert!(!response.0.is_empty());
    response
}

#[test]
fn a_truncated_response_uses_no_memory_for_omitted_records() {
    // One variant of each mechanism.
    for setup in
        SIGNINGS.map(SigningSetup::new).into_iter().chain(SigningSetup::all_online().into_iter().step_by(5))
    {
        let zone = Zone::read(&text(), "example.", &setup);
        for (qname, qtype) in [
            ("t.example.", Rtype::TXT),
            ("t.example.", Rtype::ANY),
            ("alias.example.", Rtype::TXT),
            ("x.w.example.", Rtype::TXT),
            ("*.w.example.", Rtype::TXT),
            ("wild.example.", Rtype::TXT),
            ("t.d.example.", Rtype::TXT),
            ("few.example.", Rtype::A),
            ("x.cut.example.", Rtype::A),
            ("to.example.", Rtype::A),
            ("x.glue.example.", Rtype::A),
        ] {
            for opt in [None, Some((1232, false)), Some((1232, true))] {
                let (octets, capacity) = respond(&zone, qname, qtype, opt);
                let message = Message::parse(&octets).unwrap();
                let what = format!("{qname} {qtype} {:?} {opt:?}", zone.signing);
                assert_eq!(capacity, BUFFER, "{what}");
                assert_ne!(message.header.flags & flags::TC, 0, "{what}");
                assert_eq!(message.header.counts, [1, 0, 0, u16::from(opt.is_some())], "{what}");
            }
        }
    }
}

/// If the records alone do not fit, the server generates no signatures or proofs for the response.
#[test]
fn a_truncated_response_generates_no_records() {
    for mechanism in [Mechanism::MinimalNsec, Mechanism::Compact, Mechanism::WhiteLies] {
        let zone = Zone::new(&text(), "example.", Some(mechanism));
        let operation_count = || zone.counters().operations.values().sum::<u64>();
        let before = operation_count();
        for (qname, qtype) in
            [("t.example.", Rtype::TXT), ("x.w.example.", Rtype::TXT), ("few.example.", Rtype::A)]
        {
            respond(&zone, qname, qtype, Some((1232, true)));
        }
        assert_eq!(operation_count(), before, "{mechanism}");
    }
}

#[test]
fn large_rrsets_are_complete_over_tcp() {
    let zone = Zone::new(&text(), "example.", Some(Mechanism::Nsec));
    for (qname, qtype, count) in
        [("t.example.", Rtype::TXT, 240), ("x.w.example.", Rtype::TXT, 240), ("few.example.", Rtype::A, 400)]
    {
        let message = zone.checked_response(qname, qtype, true);
        assert_eq!(message.section(Section::Answer).filter(|record| record.rtype == qtype).count(), count);
    }
}
