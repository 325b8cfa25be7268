use super::*;
use crate::capture::{
    CaptureFormat, CaptureOptions, CaptureReader, CaptureWriter, CapturedMessage, MessageKind, Transport,
};
use crate::load::QueryList;
use nonesuch_net::udp::{self, UdpOptions, UdpServer};
use nonesuch_net::{Listeners, bind};
use std::collections::BTreeSet;
use std::io::Cursor;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A query whose name is its number.
fn query(number: u32, client: &str, time_ns: u64) -> CapturedMessage {
    let name = format!("{number:08}");
    let octets = [&b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x08"[..], name.as_bytes(), b"\0\0\x01\0\x01"].concat();
    CapturedMessage {
        time_ns,
        client: SocketAddr::new(client.parse().expect("an address"), 4711),
        server: "198.51.100.1:53".parse().expect("an address"),
        transport: if number.is_multiple_of(5) { Transport::Tcp } else { Transport::Udp },
        is_response: false,
        kind: MessageKind::Auth,
        octets,
    }
}

fn capture(messages: &[CapturedMessage]) -> Result<ReplayQueries, ReplayError> {
    let mut writer = CaptureWriter::new(Vec::new(), CaptureFormat::Dnstap).expect("written");
    for message in messages {
        assert!(writer.write(message).expect("written"));
    }
    let octets = Cursor::new(writer.finish().expect("written"));
    let path = Path::new("capture");
    let reader = CaptureReader::new(path, Box::new(octets), &CaptureOptions::default()).expect("a capture");
    ReplayQueries::read(path, reader)
}

/// Starts a server that returns queries and reports their senders and octets.
fn reflector() -> (UdpServer, SocketAddr, Receiver<(SocketAddr, Vec<u8>)>) {
    let (sender, seen) = channel();
    let Listeners { udp, local_addr, .. } =
        bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let make = move |_| {
        let sender = sender.clone();
        move |query: &[u8], peer: SocketAddr, response: &mut Vec<u8>| {
            response.extend_from_slice(query);
            response[2] |= 0x80;
            sender.send((peer, query.to_vec())).is_ok()
        }
    };
    (udp::serve(udp, &UdpOptions::default(), make).expect("started"), local_addr, seen)
}

fn options(server: SocketAddr) -> LoadOptions {
    LoadOptions {
        sockets: REPLAY_SOCKETS_DEFAULT,
        timeout: Duration::from_secs(20),
        ..LoadOptions::new(server, Arc::new(QueryList::default()))
    }
}

const CLIENTS: [&str; 4] = ["192.0.2.1", "192.0.2.2", "203.0.113.9", "2001:db8::1"];
const SOURCES: [&str; 4] = ["127.1.0.1", "127.1.0.2", "127.1.1.9", "127.1.2.1"];

fn messages(count: u32, gap_ns: u64) -> Vec<CapturedMessage> {
    let client = |number: u32| CLIENTS[(number / 3) as usize % 4];
    (0..count)
        .map(|number| query(number, client(number), 1_000_000_000 + u64::from(number) * gap_ns))
        .collect()
}

#[test]
fn order_count_octets_and_sources_are_kept() {
    let messages = messages(600, 10_000);
    // Responses are not replayed.
    let response = CapturedMessage { is_response: true, ..messages[0].clone() };
    let captured = capture(&[&messages[..], &[response]].concat()).expect("queries");
    assert_eq!((captured.len(), captured.clients().len()), (600, 4));
    for speed in [ReplaySpeed::Scaled(2.0), ReplaySpeed::Max] {
        let (server, address, seen) = reflector();
        let report = replay(&options(address), &captured, speed).expect("replayed");
        server.stop().expect("stopped");
        assert_eq!((report.sent, report.received, report.lost, report.unexpected), (600, 600, 0, 0));
        assert_eq!(report.lateness_us.is_some(), speed != ReplaySpeed::Max);
        let seen: Vec<(SocketAddr, Vec<u8>)> = seen.iter().collect();
        assert_eq!(seen.len(), 600);
        // One server thread receives from one socket, in the order of arrival.
        for ((sender, octets), message) in seen.iter().zip(&messages) {
            let client = message.client.ip().to_string();
            let place = CLIENTS.iter().position(|known| *known == client).expect("known");
            assert_eq!(sender.ip().to_string(), SOURCES[place]);
            assert_eq!(octets[2..], message.octets[2..]);
        }
    }
}

#[test]
fn recorded_times_are_kept_and_scaled() {
    // 50 queries, out of order in the file, within 98 ms.
    let mut messages = messages(50, 2_000_000);
    messages.reverse();
    let captured = capture(&messages).expect("queries");
    for (factor, least) in [(1.0, 0.098), (4.0, 0.0245)] {
        let (server, address, seen) = reflector();
        let report = replay(&options(address), &captured, ReplaySpeed::Scaled(factor)).expect("replayed");
        server.stop().expect("stopped");
        // A slow machine needs longer; the replay is never ahead of its times.
        assert!(report.seconds >= least, "{factor}: {}", report.seconds);
        let names: Vec<Vec<u8>> = seen.iter().map(|(_, octets)| octets[13..21].to_vec()).collect();
        assert!(names.is_sorted() && names.len() == 50);
    }
}

#[test]
fn clients_above_the_number_of_sockets_share_sockets() {
    let captured = capture(&messages(60, 1000)).expect("queries");
    let (server, address, seen) = reflector();
    let options = LoadOptions { sockets: 3, limit: Some(48), ..options(address) };
    let report = replay(&options, &captured, ReplaySpeed::Max).expect("replayed");
    server.stop().expect("stopped");
    assert_eq!(report.received, 48);
    let senders: BTreeSet<String> = seen.iter().map(|(sender, _)| sender.ip().to_string()).collect();
    assert_eq!(Vec::from_iter(senders), ["127.1.0.1", "127.1.0.2", "127.1.1.9"]);
}

#[test]
fn other_sources_are_taken_from_the_prefix() {
    let captured = capture(&messages(12, 1000)).expect("queries");
    let (server, address, seen) = reflector();
    let options = LoadOptions { sources: "127.9.0.0/24".parse().ok(), ..options(address) };
    replay(&options, &captured, ReplaySpeed::Max).expect("replayed");
    server.stop().expect("stopped");
    let senders: BTreeSet<String> = seen.iter().map(|(sender, _)| sender.ip().to_string()).collect();
    assert_eq!(Vec::from_iter(senders), ["127.9.0.160", "127.9.0.224", "127.9.0.32", "127.9.0.96"]);
}

#[test]
fn queries_without_a_response_are_lost() {
    let captured = capture(&messages(10, 1000)).expect("queries");
    let Listeners { udp, local_addr, .. } =
        bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let make = |_| |_: &[u8], _: SocketAddr, _: &mut Vec<u8>| false;
    let server = udp::serve(udp, &UdpOptions::default(), make).expect("started");
    let options = LoadOptions { timeout: Duration::from_millis(50), ..options(local_addr) };
    let report = replay(&options, &captured, ReplaySpeed::Scaled(1.0)).expect("replayed");
    server.stop().expect("stopped");
    assert_eq!((report.sent, report.received, report.lost), (10, 0, 10));
}

#[test]
fn a_capture_without_queries_and_senseless_options_are_errors() {
    let response = CapturedMessage { is_response: true, ..query(1, "192.0.2.1", 1) };
    for messages in [&[][..], &[response]] {
        let error = capture(messages).expect_err("no query");
        assert!(matches!(error, ReplayError::Empty { .. }), "{error}");
    }
    let captured = capture(&messages(1, 1)).expect("a query");
    let good = options("127.0.0.1:53".parse().expect("an address"));
    let bad = [
        (LoadOptions { sockets: 0, ..good.clone() }, "--clients"),
        (LoadOptions { outstanding: 0, ..good.clone() }, "--outstanding"),
        (LoadOptions { sources: "2001:db8::/64".parse().ok(), ..good.clone() }, "--source"),
        (LoadOptions { timeout: Duration::ZERO, ..good.clone() }, "--timeout"),
        (LoadOptions { limit: Some(0), ..good.clone() }, "--limit"),
    ];
    for (options, expected) in bad {
        let error = replay(&options, &captured, ReplaySpeed::Max).expect_err("refused");
        assert!(matches!(error, LoadError::Misconfigured { option, .. } if option == expected), "{error}");
    }
    let error = replay(&good, &captured, ReplaySpeed::Scaled(0.0)).expect_err("refused");
    assert!(matches!(error, LoadError::Misconfigured { option: "--speed", .. }), "{error}");
}

#[test]
fn nobody_listening_is_an_error() {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let address = listeners.local_addr;
    drop(listeners);
    let captured = capture(&messages(3, 1)).expect("queries");
    let error = replay(&options(address), &captured, ReplaySpeed::Max).expect_err("nobody listens");
    assert!(matches!(error, LoadError::NotListening { server, .. } if server == address), "{error}");
}

#[test]
fn speeds_are_read_back() {
    for speed in [ReplaySpeed::Scaled(1.0), ReplaySpeed::Scaled(0.25), ReplaySpeed::Max] {
        assert_eq!(speed.to_string().parse(), Ok(speed));
    }
    for wrong in ["", "0", "-1", "NaN", "inf", "fast", "1e7"] {
        assert_eq!(wrong.parse::<ReplaySpeed>(), Err(ReplaySpeedError), "{wrong}");
    }
}
