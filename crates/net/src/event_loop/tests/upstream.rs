//! Tests of exchanges with servers.

use super::*;
use crate::testing::{connect, framed, is_closed, receive};
use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// A server over TCP, which the test plays.
struct TcpUpstream(TcpListener);

impl TcpUpstream {
    fn new() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        (Self(listener), address)
    }

    fn accept(&self) -> TcpStream {
        let (stream, _) = self.0.accept().expect("a connection");
        stream.set_read_timeout(Some(TIMEOUT)).expect("set");
        stream
    }

    /// Whether no connection waits to be accepted.
    fn is_silent(&self) -> bool {
        self.0.set_nonblocking(true).expect("set");
        let is_silent = self.0.accept().is_err();
        self.0.set_nonblocking(false).expect("set");
        is_silent
    }
}

fn with_upstream(upstream: UpstreamOptions) -> EventLoopOptions {
    EventLoopOptions { upstream, ..EventLoopOptions::default() }
}

fn respond(connection: &mut TcpStream, message: &[u8]) {
    connection.write_all(&framed(message)).expect("sent");
}

#[test]
fn many_exchanges_are_in_flight_and_each_has_its_port() {
    const COUNT: u16 = 200;
    let (upstream, upstream_address) = UdpUpstream::new();
    let (server, address) = start(upstream_address, &EventLoopOptions::default());
    let clients: Vec<UdpSocket> = (0..COUNT).map(|_| udp_client(address)).collect();
    let mut received = Vec::new();
    for (id, client) in (0..COUNT).zip(&clients) {
        client.send(&message(id, b'u', b"")).expect("sent");
        received.push(upstream.receive());
    }
    assert_eq!(received.iter().map(|(_, sender)| sender).collect::<HashSet<_>>().len(), usize::from(COUNT));
    let is_ascending = received.is_sorted_by_key(|(_, sender)| sender.port());
    assert!(!is_ascending, "the ports are not random");
    for ((query, sender), client) in received.iter().zip(&clients).rev() {
        upstream.0.send_to(query, sender).expect("sent");
        assert_eq!(receive_datagram(client), *query);
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total().upstream;
    assert_eq!((total.datagrams_out, total.datagrams_in), (COUNT.into(), COUNT.into()));
    assert_eq!(total.foreign_datagrams, 0);
    assert!(total.open_sockets < COUNT.into(), "{} sockets are open", total.open_sockets);
}

#[test]
fn only_datagrams_of_the_server_are_responses() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let (_server, address) = start(upstream_address, &EventLoopOptions::default());
    let client = udp_client(address);
    let query = message(1, b'u', b"");
    client.send(&query).expect("sent");
    let (_, sender) = upstream.receive();
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("bound");
    stranger.send_to(&message(1, b'u', b"forged"), sender).expect("sent");
    upstream.0.send_to(&query, sender).expect("sent");
    assert_eq!(receive_datagram(&client), query);
}

#[test]
fn responses_have_up_to_65535_octets() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let (_server, address) = start(upstream_address, &EventLoopOptions::default());
    let mut client = connect(address);
    client.write_all(&framed(&message(1, b'u', b""))).expect("sent");
    let (_, sender) = upstream.receive();
    // The longest datagram over IPv4.
    let response = vec![5; 65_507];
    upstream.0.send_to(&response, sender).expect("sent");
    assert_eq!(receive(&mut client).expect("a reply"), response);

    let (upstream, upstream_address) = TcpUpstream::new();
    let (_server, address) = start(upstream_address, &EventLoopOptions::default());
    let mut client = connect(address);
    client.write_all(&framed(&message(1, b't', b""))).expect("sent");
    let mut connection = upstream.accept();
    let mut response = receive(&mut connection).expect("a query");
    response.resize(65_535, 5);
    respond(&mut connection, &response);
    assert_eq!(receive(&mut client).expect("a reply"), response);
}

#[test]
fn a_server_that_does_not_serve_is_reported() {
    // No process listens on the ports of these addresses while the sockets are bound elsewhere.
    let free = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("bound");
    let (server, address) = start(free, &EventLoopOptions::default());
    let client = udp_client(address);
    for (id, command) in [(1, b'u'), (2, b't')] {
        let reply = ask_datagram(&client, &message(id, command, b""));
        assert_eq!(reply, failed(id, SendFailure::Refused), "{command}");
    }
    // Only unicast addresses can be asked, and IPv4 hosts only by their IPv4 addresses.
    for server in ["255.255.255.255:53".to_owned(), format!("[::ffff:127.0.0.1]:{}", address.port())] {
        let reply = ask_datagram(&client, &message(3, b'U', server.as_bytes()));
        assert_eq!(reply, failed(3, SendFailure::Unreachable), "{server}");
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total().upstream;
    assert_eq!((total.refused, total.unreachable, total.local_failures), (2, 2, 0));
    assert_eq!((total.open_sockets, total.open_connections), (0, 0));
}

#[test]
fn the_number_of_sockets_is_bounded() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let options = with_upstream(UpstreamOptions { sockets_max: 2, ..UpstreamOptions::default() });
    let (_server, address) = start(upstream_address, &options);
    let client = udp_client(address);
    let received = [1, 2].map(|id| {
        client.send(&message(id, b'u', b"")).expect("sent");
        upstream.receive()
    });
    assert_eq!(ask_datagram(&client, &message(3, b'u', b"")), failed(3, SendFailure::Local));
    for (query, sender) in received {
        upstream.0.send_to(&query, sender).expect("sent");
        assert_eq!(receive_datagram(&client), query);
    }
    client.send(&message(4, b'u', b"")).expect("sent");
    assert_eq!(upstream.receive().0, message(4, b'u', b""));
}

/// RFC 7766 section 6.2.1: queries to one server share a connection.
#[test]
fn a_connection_is_used_again() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let (server, address) = start(upstream_address, &EventLoopOptions::default());
    let client = udp_client(address);
    client.send(&message(0, b't', b"")).expect("sent");
    let mut connection = upstream.accept();
    for id in 0..20 {
        let query = receive(&mut connection).expect("a query");
        respond(&mut connection, &query);
        assert_eq!(receive_datagram(&client), message(id, b't', b""));
        client.send(&message(id + 1, b't', b"")).expect("sent");
    }
    assert!(upstream.is_silent());
    let last = receive(&mut connection).expect("a query");
    respond(&mut connection, &last);
    assert_eq!(receive_datagram(&client), last);
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total().upstream;
    assert_eq!((total.connections_opened, total.connections_reused), (1, 20));
    assert_eq!((total.messages_out, total.messages_in, total.refused), (21, 21, 0));
    assert!(is_closed(&mut connection));
}

#[test]
fn queries_are_pipelined_and_an_id_in_use_needs_another_connection() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let (_server, address) = start(upstream_address, &EventLoopOptions::default());
    let client = udp_client(address);
    client.send(&message(1, b't', b"a")).expect("sent");
    let mut first = upstream.accept();
    client.send(&message(2, b't', b"b")).expect("sent");
    client.send(&message(1, b't', b"c")).expect("sent");
    let mut second = upstream.accept();
    assert_eq!(receive(&mut first).expect("a query"), message(1, b't', b"a"));
    assert_eq!(receive(&mut first).expect("a query"), message(2, b't', b"b"));
    assert_eq!(receive(&mut second).expect("a query"), message(1, b't', b"c"));
    // The responses arrive in another order.
    for (is_first, response) in
        [(false, message(1, b't', b"c")), (true, message(2, b't', b"b")), (true, message(1, b't', b"a"))]
    {
        respond(if is_first { &mut first } else { &mut second }, &response);
        assert_eq!(receive_datagram(&client), response);
    }
}

#[test]
fn the_number_of_connections_to_a_server_is_bounded() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let upstream_options = UpstreamOptions { connections_per_server: 1, ..UpstreamOptions::default() };
    let (_server, address) = start(upstream_address, &with_upstream(upstream_options));
    let client = udp_client(address);
    client.send(&message(1, b't', b"a")).expect("sent");
    let mut connection = upstream.accept();
    assert_eq!(ask_datagram(&client, &message(1, b't', b"b")), failed(1, SendFailure::Local));
    let query = receive(&mut connection).expect("a query");
    respond(&mut connection, &query);
    assert_eq!(receive_datagram(&client), query);
}

#[test]
fn the_number_of_queries_of_a_connection_is_bounded() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let upstream_options = UpstreamOptions { pipeline_max: 2, ..UpstreamOptions::default() };
    let (_server, address) = start(upstream_address, &with_upstream(upstream_options));
    let client = udp_client(address);
    let mut connections = Vec::new();
    for id in 0..5 {
        client.send(&message(id, b't', b"")).expect("sent");
        if id % 2 == 0 {
            connections.push(upstream.accept());
        }
        let connection = connections.last_mut().expect("a connection");
        assert_eq!(receive(connection).expect("a query"), message(id, b't', b""));
    }
}

/// An unused connection is closed for a connection to another server.
#[test]
fn the_number_of_connections_is_bounded() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let upstream_options =
        UpstreamOptions { connections_max: 1, pipeline_max: 1, ..UpstreamOptions::default() };
    let (_server, address) = start(upstream_address, &with_upstream(upstream_options));
    let client = udp_client(address);
    client.send(&message(1, b't', b"")).expect("sent");
    let mut connection = upstream.accept();
    let query = receive(&mut connection).expect("a query");
    assert_eq!(ask_datagram(&client, &message(2, b't', b"")), failed(2, SendFailure::Local));
    respond(&mut connection, &query);
    assert_eq!(receive_datagram(&client), query);
    let (other, other_address) = TcpUpstream::new();
    client.send(&message(3, b'T', other_address.to_string().as_bytes())).expect("sent");
    let mut second = other.accept();
    assert!(is_closed(&mut connection));
    let query = receive(&mut second).expect("a query");
    respond(&mut second, &query);
    assert_eq!(receive_datagram(&client), query);
}

#[test]
fn a_connection_that_ends_fails_its_exchanges() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let (server, address) = start(upstream_address, &EventLoopOptions::default());
    let client = udp_client(address);
    let send = |id| client.send(&message(id, b't', b"")).expect("sent");
    send(1);
    let mut connection = upstream.accept();
    send(2);
    for _ in 0..2 {
        receive(&mut connection).expect("a query");
    }
    // A response arrives together with the end, and counts.
    respond(&mut connection, &message(2, b't', b"response"));
    drop(connection);
    assert_eq!(receive_datagram(&client), message(2, b't', b"response"));
    assert_eq!(receive_datagram(&client), failed(1, SendFailure::Refused));
    // The server sends what nobody asked for, or wrong framing.
    for octets in [framed(&message(9, b't', b"")), vec![0, 0], vec![0, 1, 7]] {
        send(3);
        let mut connection = upstream.accept();
        receive(&mut connection).expect("a query");
        connection.write_all(&octets).expect("sent");
        assert_eq!(receive_datagram(&client), failed(3, SendFailure::Refused));
        assert!(is_closed(&mut connection));
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total().upstream;
    assert_eq!((total.refused, total.broken_connections, total.open_connections), (4, 3, 0));
}

/// The same ID twice on one connection is no response to a later query.
#[test]
fn a_second_response_closes_the_connection() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let (server, address) = start(upstream_address, &EventLoopOptions::default());
    let client = udp_client(address);
    client.send(&message(1, b't', b"")).expect("sent");
    let mut connection = upstream.accept();
    let query = receive(&mut connection).expect("a query");
    connection.write_all(&[framed(&query), framed(&query)].concat()).expect("sent");
    assert_eq!(receive_datagram(&client), query);
    assert!(is_closed(&mut connection));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().upstream.broken_connections, 1);
}

#[test]
fn an_idle_connection_is_closed() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let upstream_options =
        UpstreamOptions { idle_timeout: Duration::from_millis(20), ..UpstreamOptions::default() };
    let (server, address) = start(upstream_address, &with_upstream(upstream_options));
    let client = udp_client(address);
    for id in 0..2 {
        client.send(&message(id, b't', b"")).expect("sent");
        let mut connection = upstream.accept();
        let query = receive(&mut connection).expect("a query");
        respond(&mut connection, &query);
        assert_eq!(receive_datagram(&client), query);
        assert!(is_closed(&mut connection));
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().upstream.connections_opened, 2);
}

/// An exchange that ended before its connection sent anything may mean that the connection is dead.
/// So it is not used again. Its other exchanges go on.
#[test]
fn a_connection_that_may_be_dead_is_not_used_again() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let (_server, address) = start(upstream_address, &EventLoopOptions::default());
    let client = udp_client(address);
    client.send(&message(1, b't', b"")).expect("sent");
    let mut first = upstream.accept();
    let query = receive(&mut first).expect("a query");
    client.send(&message(2, b'c', b"")).expect("sent");
    assert_eq!(receive(&mut first).expect("a query"), message(2, b'c', b""));
    client.send(&message(3, b't', b"")).expect("sent");
    let mut second = upstream.accept();
    // A late response to the ended exchange is discarded.
    respond(&mut first, &message(2, b'c', b""));
    respond(&mut first, &query);
    assert_eq!(receive_datagram(&client), query);
    assert!(is_closed(&mut first));
    let query = receive(&mut second).expect("a query");
    respond(&mut second, &query);
    assert_eq!(receive_datagram(&client), query);
}

/// A response may come in pieces; other exchanges do not wait for it.
#[test]
fn a_slow_server_delays_no_other_exchange() {
    let (upstream, upstream_address) = TcpUpstream::new();
    let (_server, address) = start(upstream_address, &EventLoopOptions::default());
    let client = udp_client(address);
    let query = message(1, b't', &[8; 100]);
    client.send(&query).expect("sent");
    let mut connection = upstream.accept();
    connection.set_nodelay(true).expect("set");
    let mut received = vec![0; query.len() + 2];
    connection.read_exact(&mut received).expect("a query");
    assert_eq!(received, framed(&query));
    for octet in received {
        let echo = message(2, b'e', b"");
        assert_eq!(ask_datagram(&client, &echo), echo);
        connection.write_all(&[octet]).expect("sent");
    }
    assert_eq!(receive_datagram(&client), query);
}
