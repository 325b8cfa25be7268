//! Captures that this crate writes are read back by this crate, by tcpdump and by dnstap-ldns.

use super::*;
use nonesuch_testing::require_peer;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::Command;

/// Maximum UDP payload over IPv4, in octets.
const MAX_UDP_PAYLOAD: usize = 65_507;

fn any_addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<[u32; 2]>().prop_map(|ends| {
            let [client, server] = ends.map(|bits| Ipv4Addr::from_bits(bits).into());
            (client, server)
        }),
        any::<[u128; 2]>().prop_map(|ends| {
            let [client, server] = ends.map(|bits| Ipv6Addr::from_bits(bits).into());
            (client, server)
        }),
    ]
}

fn any_message() -> impl Strategy<Value = CapturedMessage> {
    let octets = prop_oneof![
        9 => proptest::collection::vec(any::<u8>(), 12..600),
        1 => (12usize..=65_535, any::<u8>()).prop_map(|(length, octet)| vec![octet; length]),
    ];
    (any_addresses(), any::<u16>(), any::<u32>(), 0u32..1_000_000_000, any::<bool>(), any::<bool>(), octets)
        .prop_map(|((client, server), port, seconds, nanoseconds, udp, is_response, mut octets)| {
            let transport =
                if udp && octets.len() <= MAX_UDP_PAYLOAD { Transport::Udp } else { Transport::Tcp };
            octets[2] = octets[2] & 0x7f | u8::from(is_response) << 7;
            CapturedMessage {
                time_ns: u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds),
                client: SocketAddr::new(client, port),
                server: SocketAddr::new(server, 53),
                transport,
                is_response,
                kind: MessageKind::Auth,
                octets,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn messages_survive_pcap(messages in proptest::collection::vec(any_message(), 0..20)) {
        let (found, skipped) = read(&write(&messages, CaptureFormat::Pcap));
        prop_assert_eq!((found, skipped.total()), (messages, 0));
    }

    #[test]
    fn messages_survive_dnstap(
        messages in proptest::collection::vec((any_message(), 0usize..5, 0usize..7), 0..20),
    ) {
        use Transport::{Https, Quic, Tcp, Tls, Udp};
        let messages: Vec<CapturedMessage> = messages.into_iter().map(|(message, transport, kind)| {
            // Odd numbers are queries in dnstap.
            let (kind, _) = MessageKind::from_number(2 * kind as u32 + 1).expect("a kind");
            CapturedMessage { transport: [Udp, Tcp, Tls, Https, Quic][transport], kind, ..message }
        }).collect();
        let (found, skipped) = read(&write(&messages, CaptureFormat::Dnstap));
        prop_assert_eq!((found, skipped.total()), (messages, 0));
    }

    #[test]
    fn damaged_captures_never_panic(
        messages in proptest::collection::vec(any_message(), 1..4),
        dnstap in any::<bool>(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
        end in any::<prop::sample::Index>(),
    ) {
        let format = if dnstap { CaptureFormat::Dnstap } else { CaptureFormat::Pcap };
        let mut octets = write(&messages, format);
        for (place, octet) in damage {
            let place = place.index(octets.len());
            octets[place] = octet;
        }
        octets.truncate(end.index(octets.len()) + 1);
        if let Ok(reader) = open(&octets) {
            // Each message takes at least the 12 octets of a DNS header. The reader also counts an
            // error at the end.
            prop_assert!(reader.count() <= octets.len() / 12 + 1);
        }
    }
}

#[test]
fn what_a_format_cannot_represent_is_reported() {
    let mut late = query();
    late.time_ns = u64::from(u32::MAX) * 1_000_000_000 + 1_000_000_000;
    let mut long = query();
    long.octets.resize(MAX_UDP_PAYLOAD + 1, 0);
    let mut too_long = query();
    too_long.octets.resize(65_536, 0);
    for (message, format, is_written) in [
        (&late, CaptureFormat::Pcap, false),
        (&late, CaptureFormat::Dnstap, true),
        (&long, CaptureFormat::Pcap, false),
        (&long, CaptureFormat::Dnstap, true),
        (&too_long, CaptureFormat::Dnstap, false),
    ] {
        let mut writer = CaptureWriter::new(Vec::new(), format).expect("written");
        let empty = CaptureWriter::new(Vec::new(), format).expect("written").finish().expect("written");
        assert_eq!(writer.write(message).expect("written"), is_written);
        assert_eq!(writer.finish().expect("written") != empty, is_written);
    }
}

#[test]
fn tcpdump_reads_written_packets() {
    require_peer!("tcpdump");
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("x.pcap");
    let over_tcp = CapturedMessage { transport: Transport::Tcp, ..query() };
    let messages = [query(), response_to(&query()), over_tcp.clone(), response_to(&over_tcp)];
    std::fs::write(&path, write(&messages, CaptureFormat::Pcap)).expect("written");
    let output = Command::new("tcpdump").args(["-n", "-vvv", "-r"]).arg(&path).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // UDP and TCP; the checksums are verified with -vvv.
    assert_eq!(text.matches("A? www.example.").count(), 4, "{text}");
    assert!(!text.contains("bad"), "{text}");
}

#[test]
fn dnstap_ldns_reads_written_frames() {
    require_peer!("dnstap-ldns");
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("x.dnstap");
    let over_tls = CapturedMessage {
        transport: Transport::Tls,
        client: socket_addr("[2001:db8::7]:4712"),
        kind: MessageKind::Client,
        ..query()
    };
    let messages = [query(), response_to(&over_tls)];
    std::fs::write(&path, write(&messages, CaptureFormat::Dnstap)).expect("written");
    let output = Command::new("dnstap-ldns").args(["-q", "-r"]).arg(&path).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains(" AQ ") && lines[0].contains("192.0.2.1"), "{text}");
    assert!(lines[1].contains(" CR ") && lines[1].contains("2001:db8::7"), "{text}");
    assert!(lines.iter().all(|line| line.contains("\"www.example.\" IN A")), "{text}");
}
