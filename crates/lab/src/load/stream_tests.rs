//! Loads over TCP.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::net::TcpListener;
use std::sync::mpsc::channel;
use std::thread;

use nonesuch_net::bind_tcp;
use nonesuch_net::tcp::{self, TcpOptions, TcpServer};

use super::tests::options;
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
