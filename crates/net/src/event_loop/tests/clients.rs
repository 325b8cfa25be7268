//! Tests of the clients' side.

use super::*;
use crate::tcp::{ExemptClients, TcpOptions};
use crate::testing::{ask, connect, framed, is_closed, receive};
use std::io::Write as _;
use std::net::{Shutdown, TcpStream};

fn with_tcp(tcp: TcpOptions) -> EventLoopOptions {
    EventLoopOptions { tcp, ..EventLoopOptions::default() }
}

/// Sends a message over UDP and waits for the reply. All that happened before is then processed.
fn pass_turn(address: SocketAddr) {
    let echo = message(0, b'e', b"turn");
    assert_eq!(ask_datagram(&udp_client(address), &echo), echo);
}

#[test]
fn replies_over_both_transports_and_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (server, address) = start_at(address, nowhere(), 2, &EventLoopOptions::default());
        for number in 0..16u16 {
            let query = message(number, b'e', &[7; 1000]);
            assert_eq!(ask_datagram(&udp_client(address), &query), query);
            assert_eq!(ask(&mut connect(address), &query).expect("a reply"), query);
        }
        let statistics = server.statistics();
        server.stop().expect("stopped");
        let total = statistics.total();
        assert_eq!((total.udp.datagrams_in, total.udp.datagrams_out), (16, 16));
        assert_eq!((total.tcp.messages_in, total.tcp.messages_out, total.tcp.accepted), (16, 16, 16));
        assert_eq!((total.udp.send_errors, total.udp.receive_errors, total.tcp.broken), (0, 0, 0));
        assert_eq!((total.tcp.open, total.discarded_replies, total.wait_errors), (0, 0, 0));
    }
}

#[test]
fn a_wildcard_server_replies_from_the_address_asked() {
    // The client's socket is connected, so the kernel drops a reply from any other address.
    for (address, asked) in [("0.0.0.0:0", "127.0.0.77"), ("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "::1")] {
        let (upstream, upstream_address) = UdpUpstream::new();
        let (_server, address) = start_at(address, upstream_address, 1, &EventLoopOptions::default());
        let asked = SocketAddr::new(asked.parse().expect("an address"), address.port());
        let client = udp_client(asked);
        let (now, later) = (message(1, b'e', b""), message(2, b'u', b""));
        assert_eq!(ask_datagram(&client, &now), now);
        // The address is also known for a reply in a later turn.
        client.send(&later).expect("sent");
        let (query, sender) = upstream.receive();
        upstream.0.send_to(&query, sender).expect("sent");
        assert_eq!(receive_datagram(&client), later);
    }
}

/// Both servers of a list of listeners are served by the same workers.
#[test]
fn several_addresses_are_served() {
    let addresses = ["127.0.0.1:0", "[::1]:0"].map(|text| text.parse().expect("an address"));
    let listeners = addresses.map(|address| bind(address, 2).expect("bound"));
    let addresses = listeners.each_ref().map(|listeners| listeners.local_addr);
    let options = EventLoopOptions::default();
    let server = serve(EventLoopSockets::without_tls(listeners.into()), &options, |worker| {
        Commander::new(worker, nowhere())
    });
    for address in addresses {
        pass_turn(address);
        let query = message(1, b'e', b"");
        assert_eq!(ask(&mut connect(address), &query).expect("a reply"), query);
    }
    server.expect("started").stop().expect("stopped");
}

/// RFC 7766 section 6.2.1.1: replies follow in the order in which they are ready.
#[test]
fn pipelined_queries_are_answered_out_of_order() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let (server, address) = start(upstream_address, &EventLoopOptions::default());
    let mut client = connect(address);
    let queries: Vec<Vec<u8>> = (0..40).map(|id| message(id, b'u', &[id as u8; 300])).collect();
    let octets: Vec<u8> = queries.iter().flat_map(|query| framed(query)).collect();
    client.write_all(&octets).expect("sent");
    // The client has closed its sending side, but still expects its replies.
    client.shutdown(Shutdown::Write).expect("shut down");
    let mut received: Vec<_> = queries.iter().map(|_| upstream.receive()).collect();
    received.sort();
    for (query, sender) in received.iter().rev() {
        upstream.0.send_to(query, sender).expect("sent");
        assert_eq!(receive(&mut client).expect("a reply"), *query);
    }
    assert!(is_closed(&mut client));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total();
    assert_eq!((total.tcp.messages_in, total.tcp.messages_out, total.tcp.broken), (40, 40, 0));
}

#[test]
fn messages_may_come_in_pieces_and_many_at_once() {
    let (_server, address) = start(nowhere(), &EventLoopOptions::default());
    let mut client = connect(address);
    client.set_nodelay(true).expect("set");
    let queries: Vec<Vec<u8>> = (0..1000).map(|id| message(id, b'e', &[3; 50])).collect();
    for piece in framed(&queries[0]).chunks(1) {
        client.write_all(piece).expect("sent");
    }
    let rest: Vec<u8> = queries[1..].iter().flat_map(|query| framed(query)).collect();
    client.write_all(&rest).expect("sent");
    for query in &queries {
        assert_eq!(receive(&mut client).expect("a reply"), *query);
    }
}

#[test]
fn a_reply_to_a_connection_that_has_ended_is_discarded() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let (server, address) = start(upstream_address, &EventLoopOptions::default());
    let mut client = connect(address);
    client.write_all(&framed(&message(1, b'u', b""))).expect("sent");
    let (query, sender) = upstream.receive();
    // The client resets its connection.
    socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("set");
    drop(client);
    pass_turn(address);
    // The next connection has the memory of the first one, but not its replies.
    let mut other = connect(address);
    let held = message(2, b'e', b"other");
    assert_eq!(ask(&mut other, &held).expect("a reply"), held);
    upstream.0.send_to(&query, sender).expect("sent");
    pass_turn(address);
    assert_eq!(ask(&mut other, &held).expect("a reply"), held);
    drop(other);
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total();
    assert_eq!((total.discarded_replies, total.tcp.broken, total.tcp.open), (1, 1, 0));
}

#[test]
fn a_query_may_have_no_reply() {
    let (server, address) = start(nowhere(), &EventLoopOptions::default());
    let (dropped, echo) = (message(1, b'd', b""), message(2, b'e', b""));
    let client = udp_client(address);
    client.send(&dropped).expect("sent");
    assert_eq!(ask_datagram(&client, &echo), echo);
    let mut client = connect(address);
    client.write_all(&[framed(&dropped), framed(&echo), framed(&dropped)].concat()).expect("sent");
    assert_eq!(receive(&mut client).expect("a reply"), echo);
    client.shutdown(Shutdown::Write).expect("shut down");
    assert!(is_closed(&mut client));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().discarded_replies, statistics.total().tcp.broken), (0, 0));
}

/// Above the limit of queries without a reply, datagrams are discarded and connections wait.
#[test]
fn the_number_of_queries_is_bounded() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let options = EventLoopOptions { queries_max: 2, ..EventLoopOptions::default() };
    let (server, address) = start(upstream_address, &options);
    let client = udp_client(address);
    client.send(&message(1, b'u', b"")).expect("sent");
    let first = upstream.receive();
    client.send(&message(2, b'u', b"")).expect("sent");
    let second = upstream.receive();
    let mut connection = connect(address);
    connection.write_all(&framed(&message(4, b'e', b""))).expect("sent");
    client.send(&message(3, b'e', b"")).expect("sent");
    // Discarded datagrams have no reply, so the counter is what the test can wait for.
    let deadline = Instant::now() + TIMEOUT;
    while server.statistics().total().discarded_queries == 0 {
        assert!(Instant::now() < deadline, "the datagram is discarded");
        thread::yield_now();
    }
    for (query, sender) in [first, second] {
        upstream.0.send_to(&query, sender).expect("sent");
        assert_eq!(receive_datagram(&client), query);
    }
    assert_eq!(receive(&mut connection).expect("a reply"), message(4, b'e', b""));
    assert_eq!(ask_datagram(&client, &message(5, b'e', b"")), message(5, b'e', b""));
}

#[test]
fn the_number_of_queries_of_a_connection_is_bounded() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let tcp = TcpOptions { in_flight_max: 2, ..TcpOptions::default() };
    let (_server, address) = start(upstream_address, &with_tcp(tcp));
    let mut client = connect(address);
    let queries: Vec<Vec<u8>> = (0..6).map(|id| message(id, b'u', b"")).collect();
    let octets: Vec<u8> = queries.iter().flat_map(|query| framed(query)).collect();
    client.write_all(&octets).expect("sent");
    for _ in 0..3 {
        let received = [upstream.receive(), upstream.receive()];
        pass_turn(address);
        upstream.0.set_nonblocking(true).expect("set");
        assert!(upstream.0.recv(&mut [0; 64]).is_err(), "only two queries are in flight");
        upstream.0.set_nonblocking(false).expect("set");
        for (query, sender) in &received {
            upstream.0.send_to(query, sender).expect("sent");
        }
        let mut replies = [(); 2].map(|()| receive(&mut client).expect("a reply"));
        replies.sort();
        let mut expected = received.map(|(query, _)| query);
        expected.sort();
        assert_eq!(replies, expected);
    }
}

#[test]
fn wrong_framing_closes_a_connection_after_its_replies() {
    let tcp = TcpOptions { message_max: 100, ..TcpOptions::default() };
    let (server, address) = start(nowhere(), &with_tcp(tcp));
    let query = message(1, b'e', &[7; 97]);
    for octets in [vec![0, 0], vec![0, 101], framed(&[1; 101]), framed(&[1; 5000])] {
        let mut client = connect(address);
        client.write_all(&[framed(&query), octets].concat()).expect("sent");
        assert_eq!(receive(&mut client).expect("a reply"), query);
        assert!(is_closed(&mut client));
    }
    // An incomplete message, and a reply that is too long.
    for octets in [vec![0, 9, 1], framed(&message(1, b'x', b""))] {
        let mut client = connect(address);
        client.write_all(&octets).expect("sent");
        client.shutdown(Shutdown::Write).expect("shut down");
        assert!(is_closed(&mut client));
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().tcp.broken, statistics.total().tcp.messages_in), (6, 5));
}

#[test]
fn connections_have_time_limits() {
    let short = Duration::from_millis(20);
    let message_limit = TcpOptions { message_timeout: short, ..TcpOptions::default() };
    let idle_limit = TcpOptions { idle_timeout: short, ..TcpOptions::default() };
    let first_limit = TcpOptions { first_message_timeout: short, ..TcpOptions::default() };
    let echo = framed(&message(1, b'e', b""));
    let part = [echo.clone(), vec![0, 9, 1]].concat();
    for (tcp, octets, replies) in [
        (message_limit, part, 1),
        (idle_limit, echo, 1),
        (first_limit.clone(), vec![0], 0),
        (first_limit, vec![], 0),
    ] {
        let (server, address) = start(nowhere(), &with_tcp(tcp));
        let mut client = connect(address);
        client.write_all(&octets).expect("sent");
        for _ in 0..replies {
            receive(&mut client).expect("a reply");
        }
        assert!(is_closed(&mut client));
        let statistics = server.statistics();
        server.stop().expect("stopped");
        assert_eq!((statistics.total().tcp.timed_out, statistics.total().tcp.open), (1, 0));
    }
}

/// The machine limits the time of a reply, not the idle timeout.
#[test]
fn a_connection_that_waits_for_a_reply_is_not_idle() {
    let tcp = TcpOptions { idle_timeout: Duration::from_millis(2), ..TcpOptions::default() };
    let (server, address) = start(nowhere(), &with_tcp(tcp));
    let query = message(1, b'l', &[60]);
    assert_eq!(ask(&mut connect(address), &query).expect("a reply"), query);
    server.stop().expect("stopped");
}

/// A client that does not read is given up, and delays no other client meanwhile.
#[test]
fn a_slow_client_delays_no_other() {
    let tcp =
        TcpOptions { write_timeout: Duration::from_millis(50), message_max: 65_535, ..TcpOptions::default() };
    let (server, address) = start(nowhere(), &with_tcp(tcp));
    let mut slow = connect(address);
    slow.set_nonblocking(true).expect("set");
    let query = framed(&message(1, b'e', &[1; 60_000]));
    let mut other = connect(address);
    let echo = message(2, b'e', b"");
    let (mut start, deadline) = (0, Instant::now() + TIMEOUT);
    let gone = loop {
        pass_turn(address);
        assert!(ask(&mut other, &echo).is_ok_and(|reply| reply == echo));
        match slow.write(&query[start..]) {
            Ok(octets) => start = (start + octets) % query.len(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => break true,
        }
        if Instant::now() > deadline {
            break false;
        }
    };
    assert!(gone, "the server still reads queries whose replies nobody reads");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().tcp.timed_out, 1);
}

#[test]
fn a_connection_that_waits_makes_room_for_another() {
    let tcp = TcpOptions { connections_max: 2, ..TcpOptions::default() };
    let (server, address) = start(nowhere(), &with_tcp(tcp));
    let echo = message(1, b'e', b"");
    let works = |client: &mut TcpStream| ask(client, &echo).is_ok_and(|reply| reply == echo);
    let (mut first, mut second) = (connect(address), connect(address));
    assert!(works(&mut first) && works(&mut second) && works(&mut first));
    let mut third = connect(address);
    assert!(works(&mut third));
    assert!(is_closed(&mut second));
    assert!(works(&mut first));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total().tcp;
    assert_eq!((total.accepted, total.evicted, total.refused), (3, 1, 0));
}

#[test]
fn a_client_has_its_share_of_connections() {
    let exempt = ExemptClients::new(|_| false);
    let tcp = TcpOptions { connections_per_client: 1, exempt, ..TcpOptions::default() };
    let (server, address) = start(nowhere(), &with_tcp(tcp));
    let echo = message(1, b'e', b"");
    let mut first = connect(address);
    assert!(ask(&mut first, &echo).is_ok());
    assert!(is_closed(&mut connect(address)));
    assert!(ask(&mut first, &echo).is_ok());
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().tcp.refused_client, 1);
}

#[test]
fn datagrams_that_are_too_long_are_dropped_and_counted() {
    let (server, address) = start(nowhere(), &EventLoopOptions::default());
    let client = udp_client(address);
    client.send(&[b'e'; crate::udp::QUERY_MAX + 1]).expect("sent");
    let echo = message(1, b'e', b"");
    assert_eq!(ask_datagram(&client, &echo), echo);
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().udp.oversized, statistics.total().udp.datagrams_in), (1, 2));
}

#[test]
fn a_reply_that_cannot_be_sent_delays_no_other() {
    let (server, address) = start(nowhere(), &EventLoopOptions::default());
    let client = udp_client(address);
    // No UDP datagram can hold 65,536 octets.
    client.send(&message(1, b'x', b"")).expect("sent");
    let echo = message(2, b'e', b"");
    assert_eq!(ask_datagram(&client, &echo), echo);
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().udp.send_errors, statistics.total().udp.datagrams_out), (1, 1));
}
