//! Tests of clients over TLS.

use super::*;
use crate::bind::bind_tcp;
use crate::tcp::ExemptClients;
use crate::testing::{Certificates, TlsClient, ask, connect, connect_tls, framed, is_closed, receive};
use std::io::{Read as _, Write as _};

/// A server with a TLS listener, and what its clients need.
struct TlsServer {
    server: EventLoopServer,
    /// The address for UDP and TCP.
    plain: SocketAddr,
    address: SocketAddr,
    identity: IdentitySlot,
    certificates: Certificates,
}

impl TlsServer {
    fn start(upstream: SocketAddr, workers: usize, options: &EventLoopOptions) -> Self {
        let certificates = Certificates::new();
        let identity = IdentitySlot::new(certificates.identity());
        let any = "127.0.0.1:0".parse().expect("an address");
        let (listeners, listener) = (bind(any, workers).expect("bound"), bind_tcp(any).expect("bound"));
        let (plain, address) = (listeners.local_addr, listener.local_addr().expect("bound"));
        let tls = Some((vec![listener], identity.clone()));
        let sockets = EventLoopSockets { plain: vec![listeners], tls, workers };
        let server = serve(sockets, options, move |worker| Commander::new(worker, upstream));
        Self { server: server.expect("started"), plain, address, identity, certificates }
    }

    fn connect(&self) -> TlsClient {
        connect_tls(self.address, &self.certificates.client())
    }

    fn counters(&self) -> EventLoopCounters {
        self.server.statistics().total()
    }

    /// Waits until the counters satisfy a condition.
    #[track_caller]
    fn wait_until(&self, what: &str, holds: impl Fn(EventLoopCounters) -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !holds(self.counters()) {
            assert!(Instant::now() < deadline, "{what}: {:?}", self.counters());
            thread::yield_now();
        }
    }

    fn stop(self) -> EventLoopCounters {
        let statistics = self.server.statistics();
        self.server.stop().expect("stopped");
        statistics.total()
    }
}

fn with_tcp(tcp: TcpOptions) -> EventLoopOptions {
    EventLoopOptions { tcp, ..EventLoopOptions::default() }
}

#[test]
fn messages_go_both_ways_and_sessions_are_resumed() {
    let tcp = TcpOptions { message_max: 65_535, ..TcpOptions::default() };
    let server = TlsServer::start(nowhere(), 2, &with_tcp(tcp));
    let tls = server.certificates.client();
    for _ in 0..2 {
        let mut client = connect_tls(server.address, &tls);
        assert_eq!(ask(&mut client, &message(0, b'n', b"")).expect("a reply"), b"tls");
        // Pipelined messages, one of which is longer than a TLS record.
        let queries = [60_000, 20_000, 0].map(|octets| message(1, b'e', &vec![7; octets]));
        let octets: Vec<u8> = queries.iter().flat_map(|query| framed(query)).collect();
        client.write_all(&octets).expect("sent");
        for query in &queries {
            assert_eq!(receive(&mut client).expect("a reply"), *query);
        }
        client.conn.send_close_notify();
        client.flush().expect("sent");
        assert!(is_closed(&mut client));
    }
    let total = server.stop();
    assert_eq!((total.tls.accepted, total.tls.handshakes, total.tls.resumed), (2, 2, 1));
    assert_eq!((total.tls.messages_in, total.tls.messages_out, total.tls.open), (8, 8, 0));
    assert_eq!((total.tls.broken, total.tls.handshakes_failed, total.tls.refused), (0, 0, 0));
    assert_eq!((total.tcp, total.discarded_replies), (Default::default(), 0));
}

#[test]
fn a_server_may_have_only_tls() {
    let certificates = Certificates::new();
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let tls = Some((vec![listener], IdentitySlot::new(certificates.identity())));
    let sockets = EventLoopSockets { plain: Vec::new(), tls, workers: 2 };
    let server = serve(sockets, &EventLoopOptions::default(), |worker| Commander::new(worker, nowhere()));
    let server = server.expect("started");
    // The workers get the connections in turn.
    let mut workers = [(); 4].map(|()| {
        ask(&mut connect_tls(address, &certificates.client()), &message(1, b'i', b"")).expect("a reply")[0]
    });
    workers.sort_unstable();
    assert_eq!(workers, [0, 0, 1, 1]);
    server.stop().expect("stopped");
}

/// The client has ended its side of the session, but still expects its replies.
#[test]
fn replies_follow_the_end_of_the_queries_in_any_order() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let server = TlsServer::start(upstream_address, 1, &EventLoopOptions::default());
    let mut client = server.connect();
    let queries: Vec<Vec<u8>> = (0..40).map(|id| message(id, b'u', &[id as u8; 300])).collect();
    let octets: Vec<u8> = queries.iter().flat_map(|query| framed(query)).collect();
    client.write_all(&octets).expect("sent");
    client.conn.send_close_notify();
    client.flush().expect("sent");
    let mut received: Vec<_> = queries.iter().map(|_| upstream.receive()).collect();
    received.sort();
    for (query, sender) in received.iter().rev() {
        upstream.0.send_to(query, sender).expect("sent");
        assert_eq!(receive(&mut client).expect("a reply"), *query);
    }
    assert!(is_closed(&mut client));
    assert_eq!(server.stop().tls.broken, 0);
}

#[test]
fn messages_may_come_in_pieces() {
    let server = TlsServer::start(nowhere(), 1, &EventLoopOptions::default());
    let mut client = server.connect();
    let query = message(1, b'e', b"pieces");
    for piece in framed(&query).chunks(1) {
        client.write_all(piece).expect("sent");
    }
    assert_eq!(receive(&mut client).expect("a reply"), query);
    // A record that arrives in two parts of the TCP stream.
    client.conn.writer().write_all(&framed(&query)).expect("encrypted");
    let mut record = Vec::new();
    client.conn.write_tls(&mut record).expect("a record");
    let (first, second) = record.split_at(9);
    client.sock.write_all(first).expect("sent");
    assert_eq!(ask(&mut connect(server.plain), &query).expect("a reply"), query);
    client.sock.write_all(second).expect("sent");
    assert_eq!(receive(&mut client).expect("a reply"), query);
}

/// The last messages of a handshake and the first query may arrive together.
#[test]
fn a_query_with_the_end_of_the_handshake_is_answered() {
    let server = TlsServer::start(nowhere(), 1, &EventLoopOptions::default());
    let mut session = server.certificates.client().client(server.address.ip()).expect("a client");
    let mut socket = connect(server.address);
    let query = message(1, b'e', b"at once");
    session.write_tls(&mut socket).expect("sent");
    while session.is_handshaking() {
        session.read_tls(&mut socket).expect("received");
        session.process_new_packets().expect("valid");
    }
    session.writer().write_all(&framed(&query)).expect("encrypted");
    let mut octets = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut octets).expect("records");
    }
    socket.write_all(&octets).expect("sent");
    assert_eq!(receive(&mut TlsClient::new(session, socket)).expect("a reply"), query);
}

#[test]
fn a_handshake_has_a_time_limit_and_delays_no_client() {
    let tcp = TcpOptions { handshake_timeout: Duration::from_millis(50), ..TcpOptions::default() };
    let server = TlsServer::start(nowhere(), 1, &with_tcp(tcp));
    let mut silent = connect(server.address);
    let mut plain = connect(server.address);
    plain.write_all(&framed(&message(1, b'e', b""))).expect("sent");
    let query = message(1, b'e', b"");
    assert_eq!(ask(&mut server.connect(), &query).expect("a reply"), query);
    // The alert may arrive before the end of the connection.
    while !is_closed(&mut plain) {}
    assert!(is_closed(&mut silent));
    let total = server.stop().tls;
    assert_eq!((total.handshakes, total.handshakes_failed, total.timed_out), (1, 1, 1));
    assert_eq!((total.accepted, total.open), (3, 0));
}

#[test]
fn the_number_of_handshakes_is_bounded() {
    let options = EventLoopOptions { handshakes_max: 4, ..EventLoopOptions::default() };
    let server = TlsServer::start(nowhere(), 1, &options);
    let mut silent: Vec<_> = (0..10).map(|_| connect(server.address)).collect();
    server.wait_until("six are closed", |total| total.tls.evicted >= 6);
    assert!(silent.iter_mut().take(6).all(is_closed));
    let query = message(1, b'e', b"");
    assert_eq!(ask(&mut server.connect(), &query).expect("a reply"), query);
    let total = server.stop().tls;
    assert_eq!((total.accepted, total.evicted, total.handshakes), (11, 7, 1));
}

#[test]
fn a_client_has_its_share_of_handshakes_and_connections() {
    let exempt = ExemptClients::new(|_| false);
    let tcp = TcpOptions { connections_per_client: 2, exempt, ..TcpOptions::default() };
    let server = TlsServer::start(nowhere(), 1, &with_tcp(tcp));
    let query = message(1, b'e', b"");
    let mut clients = [server.connect(), server.connect()];
    assert!(clients.iter_mut().all(|client| ask(client, &query).is_ok()));
    // Connections over TCP and TLS count together.
    assert!(is_closed(&mut connect(server.plain)));
    let mut third = server.connect();
    assert!(ask(&mut third, &query).is_err());
    assert!(clients.iter_mut().all(|client| ask(client, &query).is_ok()));
    drop((clients, third));
    server.wait_until("all are closed", |total| total.tls.open == 0);
    let begun = [connect(server.address), connect(server.address)];
    server.wait_until("two handshakes", |total| total.tls.open == 2);
    assert!(is_closed(&mut connect(server.address)));
    drop(begun);
    let total = server.stop();
    assert_eq!((total.tls.refused_client, total.tcp.refused_client), (2, 1));
}

/// A session takes memory even if no message is in progress.
#[test]
fn sessions_count_as_memory() {
    let tcp = TcpOptions { memory_max: 100 << 10, ..TcpOptions::default() };
    let server = TlsServer::start(nowhere(), 1, &with_tcp(tcp));
    let query = message(1, b'e', b"");
    let clients: Vec<_> = (0..30)
        .map(|_| {
            let mut client = server.connect();
            assert_eq!(ask(&mut client, &query).expect("a reply"), query);
            client
        })
        .collect();
    server.wait_until("sessions hold more than all connections may", |total| total.tls.evicted >= 19);
    assert!(server.counters().tls.open <= 11);
    drop(clients);
}

/// A client that does not read is given up, and delays no other client meanwhile.
#[test]
fn a_slow_client_delays_no_other() {
    let tcp =
        TcpOptions { write_timeout: Duration::from_millis(50), message_max: 65_535, ..TcpOptions::default() };
    let server = TlsServer::start(nowhere(), 1, &with_tcp(tcp));
    let mut slow = server.connect();
    slow.sock.set_write_timeout(Some(Duration::from_millis(10))).expect("set");
    let query = framed(&message(1, b'e', &[1; 60_000]));
    let (mut other, echo) = (server.connect(), message(2, b'e', b""));
    let deadline = Instant::now() + TIMEOUT;
    while server.counters().tls.timed_out == 0 {
        assert!(Instant::now() < deadline, "the server still reads queries whose replies nobody reads");
        let _ = slow.write(&query);
        assert!(ask(&mut other, &echo).is_ok_and(|reply| reply == echo));
    }
    assert_eq!(server.stop().tls.timed_out, 1);
}

#[test]
fn a_false_record_closes_its_connection() {
    let server = TlsServer::start(nowhere(), 1, &EventLoopOptions::default());
    let (mut false_client, mut client) = (server.connect(), server.connect());
    let query = message(1, b'e', b"");
    assert_eq!(ask(&mut false_client, &query).expect("a reply"), query);
    // A record of the right form, which the key of the session has not encrypted.
    false_client.sock.write_all(&[&[23, 3, 3, 0, 32][..], &[7; 32]].concat()).expect("sent");
    let error = false_client.read(&mut [0; 1]).expect_err("an alert");
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    assert_eq!(ask(&mut client, &query).expect("a reply"), query);
    assert_eq!(server.stop().tls.broken, 1);
}

#[test]
fn new_connections_have_the_new_identity() {
    let server = TlsServer::start(nowhere(), 1, &EventLoopOptions::default());
    let mut before = server.connect();
    let other = Certificates::new();
    server.identity.replace(other.identity());
    let query = message(1, b'e', b"");
    assert_eq!(ask(&mut connect_tls(server.address, &other.client()), &query).expect("a reply"), query);
    assert_eq!(ask(&mut before, &query).expect("a reply"), query);
}

#[test]
fn a_stop_ends_sessions_after_their_replies() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let server = TlsServer::start(upstream_address, 1, &EventLoopOptions::default());
    let (mut idle, mut waiting, begun) = (server.connect(), server.connect(), connect(server.address));
    let query = message(1, b'u', b"tls");
    waiting.write_all(&framed(&query)).expect("sent");
    let (received, sender) = upstream.receive();
    server.wait_until("the handshake has begun", |total| total.tls.open == 3);
    server.server.begin_stop();
    // The end is announced: a read returns no error.
    assert_eq!(idle.read(&mut [0; 1]).expect("an end"), 0);
    upstream.0.send_to(&received, sender).expect("sent");
    assert_eq!(receive(&mut waiting).expect("a reply"), query);
    assert_eq!(waiting.read(&mut [0; 1]).expect("an end"), 0);
    drop(begun);
    assert_eq!(server.stop().tls.open, 0);
}
