//! Loads over TCP and TLS.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpListener;

use nonesuch_net::tcp::{self, TcpOptions, TcpServer};
use nonesuch_net::tls::{ClientTls, IdentitySlot, ServerIdentity};
use nonesuch_net::udp::{self, UdpOptions, UdpServer};
use nonesuch_net::{Listeners, bind, bind_tcp};
use nonesuch_proto::edns::{COOKIE, push_option, set_options_length};

use super::tests::{options, queries};
use super::*;

/// Starts a server. `edit` turns the query with QR set into the response, if it returns `true`.
fn start<E>(mut edit: E) -> (TcpServer, SocketAddr)
where
    E: FnMut(&mut Vec<u8>, SocketAddr) -> bool + Send + 'static,
{
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let make = move || {
        move |query: &[u8], peer: SocketAddr, response: &mut Vec<u8>| {
            response.extend_from_slice(query);
            response[2] |= 0x80;
            edit(response, peer)
        }
    };
    (tcp::serve(listener, &TcpOptions::default(), make).expect("started"), address)
}

fn over_tcp(server: SocketAddr, limit: u64) -> LoadOptions {
    LoadOptions { transport: Transport::Tcp, ..options(server, "a.example A\nb.example AAAA\n", limit) }
}

#[test]
fn counts_agree_with_the_server() {
    for rate in [None, Some(100_000.0)] {
        let (server, address) = start(|_, _| true);
        let options = LoadOptions { threads: 2, connections: 3, rate, ..over_tcp(address, 5001) };
        let report = run(&options).expect("ran");
        let statistics = server.statistics();
        server.stop().expect("stopped");
        assert_eq!((report.sent, report.received, report.lost), (5001, 5001, 0));
        assert_eq!((report.transport, report.connections, report.connections_failed), ("tcp", 6, 0));
        assert_eq!((report.unexpected, report.refused, report.truncated), (0, 0, 0));
        assert_eq!(statistics.total().messages_in, 5001);
        assert_eq!(report.rcodes, BTreeMap::from([("NOERROR".to_owned(), 5001)]));
        // Header, question and OPT record, without the length prefix.
        assert_eq!(report.response_octets_max, 12 + 11 + 4 + 11);
        assert!(report.latency_us.expect("answers").min > 0.0);
        assert!(report.client_cpu_us_per_query.is_some());
    }
}

#[test]
fn a_connection_ends_after_its_queries() {
    for (queries_per_connection, expected) in [(1, 200), (7, 29), (0, 1)] {
        let (sender, seen) = channel();
        let (server, address) = start(move |_, peer| sender.send(peer).is_ok());
        let options = LoadOptions { queries_per_connection, ..over_tcp(address, 200) };
        let report = run(&options).expect("ran");
        server.stop().expect("stopped");
        assert_eq!((report.received, report.connections), (200, expected));
        assert_eq!(report.connections_failed, 0);
        let mut counts: BTreeMap<SocketAddr, u64> = BTreeMap::new();
        seen.iter().for_each(|peer| *counts.entry(peer).or_default() += 1);
        assert_eq!(counts.values().sum::<u64>(), 200);
        let maximum = counts.values().max().copied();
        assert!(queries_per_connection == 0 || maximum <= Some(queries_per_connection), "{counts:?}");
    }
}

#[test]
fn unanswered_queries_are_lost() {
    let mut number = 0u32;
    let (server, address) = start(move |_, _| {
        number += 1;
        !number.is_multiple_of(10)
    });
    let options = LoadOptions { timeout: Duration::from_millis(500), ..over_tcp(address, 1000) };
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    assert_eq!((report.sent, report.received, report.lost, report.unexpected), (1000, 900, 100, 0));
}

#[test]
fn queries_on_a_connection_that_the_server_closes_are_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    // Two connections are closed after the first octet. The third one is kept, unanswered.
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.read_exact(&mut [0; 1]).expect("an octet");
        }
        listener.accept().expect("a connection").0
    });
    let options =
        LoadOptions { outstanding: 4, timeout: Duration::from_millis(100), ..over_tcp(address, 12) };
    let report = run(&options).expect("ran");
    drop(server.join().expect("ended"));
    assert_eq!((report.sent, report.received, report.lost), (12, 0, 12));
    assert_eq!((report.connections, report.connections_failed), (3, 2));
}

#[test]
fn a_response_that_is_split_is_counted_whole() {
    // Each response is longer than one receive call takes.
    let (server, address) = start(|response, _| {
        response.resize(65_000, 0);
        true
    });
    let report = run(&over_tcp(address, 300)).expect("ran");
    server.stop().expect("stopped");
    assert_eq!((report.received, report.unexpected), (300, 0));
    assert_eq!((report.response_octets_mean, report.response_octets_max), (65_000.0, 65_000));
}

#[test]
fn nobody_listening_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let error = run(&over_tcp(address, 10)).expect_err("nobody listens");
    let LoadError::NotListening { server, transport: Transport::Tcp } = error else { panic!("{error}") };
    assert_eq!(server, address);
}

/// Starts a server over UDP and TCP on one port. Every other response over UDP is truncated to the
/// query with TC set. Responses over TCP have 3000 octets.
fn start_truncating() -> (UdpServer, TcpServer, SocketAddr) {
    let Listeners { udp, tcp, local_addr, .. } =
        bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let over_udp = |_| {
        let mut number = 0u32;
        move |query: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
            number += 1;
            response.extend_from_slice(query);
            response[2] |= if number.is_multiple_of(2) { 0x82 } else { 0x80 };
            true
        }
    };
    let over_tcp = || {
        |query: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
            response.extend_from_slice(query);
            response[2] |= 0x80;
            response[3] = 3;
            response.resize(3000, 0);
            true
        }
    };
    let udp = udp::serve(udp, &UdpOptions::default(), over_udp).expect("started");
    let tcp = tcp::serve(tcp, &TcpOptions::default(), over_tcp).expect("started");
    (udp, tcp, local_addr)
}

#[test]
fn truncated_responses_are_followed_over_tcp() {
    for (rate, sockets) in [(None, 1), (None, 3), (Some(100_000.0), 2)] {
        let (udp, tcp, address) = start_truncating();
        let options = LoadOptions {
            follow_truncated: true,
            connections: 2,
            sockets,
            rate,
            ..options(address, "a.example A\nb.example AAAA\n", 1000)
        };
        let report = run(&options).expect("ran");
        let asked = tcp.statistics().total().messages_in;
        udp.stop().expect("stopped");
        tcp.stop().expect("stopped");
        assert_eq!((report.sent, report.received, report.lost), (1000, 1000, 0));
        assert_eq!((report.truncated, report.followed, asked), (500, Some(500), 500));
        let expected = [("NOERROR", 500), ("NXDOMAIN", 500)];
        assert_eq!(report.rcodes, expected.map(|(rcode, count)| (rcode.to_owned(), count)).into());
        assert_eq!((report.followed_octets_mean, report.response_octets_max), (Some(3000.0), 3000));
        assert_eq!((report.transport, report.connections), ("udp", 2));
        assert!(report.truncated_octets_mean.is_some_and(|mean| mean < 50.0));
    }
}

#[test]
fn queries_that_cannot_be_followed_are_lost() {
    let (udp, tcp, address) = start_truncating();
    tcp.stop().expect("stopped");
    let options = LoadOptions {
        follow_truncated: true,
        timeout: Duration::from_millis(200),
        ..options(address, "a.example A\n", 100)
    };
    let report = run(&options).expect("ran");
    udp.stop().expect("stopped");
    assert_eq!((report.sent, report.received, report.lost), (100, 50, 50));
    assert_eq!((report.truncated, report.followed), (50, Some(0)));
    assert!(report.connections_failed > 0);
}

#[test]
fn queries_are_sent_over_tls() {
    let key = rcgen::generate_simple_self_signed(vec!["ns.example".to_owned()]).expect("a certificate");
    let directory = tempfile::tempdir().expect("a directory");
    let (certificate, private) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    std::fs::write(&certificate, key.cert.pem()).expect("written");
    std::fs::write(&private, key.signing_key.serialize_pem()).expect("written");
    let identity = ServerIdentity::load(&certificate, &private).expect("an identity");
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let make = || {
        |query: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
            response.extend_from_slice(query);
            response[2] |= 0x80;
            true
        }
    };
    let slot = IdentitySlot::new(identity);
    let server = tcp::serve_tls(listener, &slot, &TcpOptions::default(), make).expect("started");
    let over_tls = |tls| LoadOptions { transport: Transport::Tls, tls, ..over_tcp(address, 500) };
    for (connections, queries_per_connection, opened) in [(3, 0, 3), (2, 50, 10)] {
        let tls = ClientTls::authenticated(&certificate, Some("ns.example")).expect("read");
        let options = LoadOptions { connections, queries_per_connection, ..over_tls(Some(tls)) };
        let report = run(&options).expect("ran");
        assert_eq!((report.received, report.lost, report.connections), (500, 0, opened));
        assert_eq!((report.transport, report.connections_failed), ("tls", 0));
    }
    let other = ClientTls::authenticated(&certificate, Some("other.example")).expect("read");
    let error = run(&over_tls(Some(other))).expect_err("another name");
    assert!(matches!(error, LoadError::Client(ClientError::Tls { .. })), "{error}");
    let error = run(&over_tls(None)).expect_err("no settings");
    assert!(matches!(error, LoadError::Misconfigured { option: "--tls", .. }), "{error}");
    server.stop().expect("stopped");
}

#[test]
fn each_connection_has_its_cookie() {
    // The server cookie of a client is its port.
    let (server, address) = start(|response, peer| {
        let cookie = response.split_off(12 + 11 + 4 + 11);
        let client: [u8; 8] = cookie[4..12].try_into().expect("a client cookie");
        let own = [peer.port().to_be_bytes(); 4].concat();
        // A later query has the server cookie.
        response[3] = if cookie[12..] == own { 0 } else { 5 };
        push_option(COOKIE, &[&client, &own], response);
        set_options_length(12 + 11 + 4, response);
        true
    });
    let options = LoadOptions { cookies: true, connections: 2, outstanding: 2, ..over_tcp(address, 100) };
    let mut options = LoadOptions { queries: queries("a.example A"), ..options };
    let closed = run(&options).expect("ran");
    options.rate = Some(10_000.0);
    let open = run(&options).expect("ran");
    server.stop().expect("stopped");
    for report in [closed, open] {
        // The first query of each connection has no server cookie.
        let expected = [("NOERROR", 98), ("REFUSED", 2)];
        assert_eq!(report.rcodes, expected.map(|(rcode, count)| (rcode.to_owned(), count)).into());
        assert_eq!((report.server_cookies, report.bad_cookies), (100, 0));
    }
}
