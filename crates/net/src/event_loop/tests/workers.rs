//! Tests of the workers: start, stop, timers, wakes.

use super::*;
use crate::heartbeat::Heartbeats;
use crate::tcp::TcpOptions;
use crate::testing::{assert_reports, connect, framed, is_closed, receive};
use std::io::Write as _;

#[test]
fn a_timeout_of_the_machine_is_called() {
    let (server, address) = start(nowhere(), &EventLoopOptions::default());
    let client = udp_client(address);
    let began = Instant::now();
    for delay in [30, 0, 10] {
        client.send(&message(u16::from(delay), b'l', &[delay])).expect("sent");
    }
    for delay in [0, 10, 30] {
        assert_eq!(receive_datagram(&client), message(u16::from(delay), b'l', &[delay]));
        assert!(began.elapsed() >= Duration::from_millis(delay.into()));
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    // The loop waits for the timeouts, instead of asking for them again and again.
    assert!(statistics.total().turns < 20, "{:?}", statistics.total());
}

/// Returns clients of the two workers.
fn clients_of_both(address: SocketAddr) -> [UdpSocket; 2] {
    let mut clients = [None, None];
    for _ in 0..1000 {
        let client = udp_client(address);
        let worker = usize::from(ask_datagram(&client, &message(0, b'i', b""))[0]);
        clients[worker].get_or_insert(client);
        if clients.iter().all(Option::is_some) {
            break;
        }
    }
    clients.map(|client| client.expect("the kernel divides clients among the workers"))
}

#[test]
fn a_worker_wakes_another() {
    let (server, address) = start_at("127.0.0.1:0", nowhere(), 2, &EventLoopOptions::default());
    let [first, second] = clients_of_both(address);
    for _ in 0..100 {
        let held = message(1, b'h', b"held");
        first.send(&held).expect("sent");
        // The worker has the message that it holds before this one.
        let echo = message(2, b'e', b"");
        assert_eq!(ask_datagram(&first, &echo), echo);
        let wake = message(3, b'w', &[0]);
        assert_eq!(ask_datagram(&second, &wake), wake);
        assert_eq!(receive_datagram(&first), held);
    }
    // A worker may also wake itself.
    second.send(&message(4, b'h', b"")).expect("sent");
    second.send(&message(5, b'w', &[1])).expect("sent");
    assert_eq!(receive_datagram(&second), message(5, b'w', &[1]));
    assert_eq!(receive_datagram(&second), message(4, b'h', b""));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().wakes, 101);
}

#[test]
fn both_workers_accept_connections() {
    let (server, address) = start_at("127.0.0.1:0", nowhere(), 2, &EventLoopOptions::default());
    // The kernel decides which worker gets a connection; each connection is served.
    for id in 0..50 {
        let mut client = connect(address);
        client.write_all(&framed(&message(id, b'i', b""))).expect("sent");
        assert!(receive(&mut client).expect("a reply")[0] < 2);
    }
    server.stop().expect("stopped");
}

/// Queries that a machine has got are answered, over both transports; others are not read.
#[test]
fn a_stop_loses_no_query() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let (server, address) = start_at("127.0.0.1:0", upstream_address, 2, &EventLoopOptions::default());
    let mut idle = connect(address);
    let datagrams = udp_client(address);
    let mut connection = connect(address);
    let queries = [message(1, b'u', b"udp"), message(2, b'u', b"tcp")];
    datagrams.send(&queries[0]).expect("sent");
    connection.write_all(&framed(&queries[1])).expect("sent");
    let received = [upstream.receive(), upstream.receive()];
    server.begin_stop();
    assert!(is_closed(&mut idle));
    connection.write_all(&framed(&message(3, b'e', b""))).expect("sent");
    for (query, sender) in received {
        upstream.0.send_to(&query, sender).expect("sent");
    }
    assert_eq!(receive_datagram(&datagrams), queries[0]);
    assert_eq!(receive(&mut connection).expect("a reply"), queries[1]);
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert!(is_closed(&mut connection));
    let total = statistics.total();
    assert_eq!((total.udp.datagrams_out, total.tcp.messages_out, total.tcp.messages_in), (1, 1, 1));
    bind(address, 1).expect("the address is free again");
}

#[test]
fn a_query_without_a_reply_delays_a_stop_only_for_a_time() {
    let tcp = TcpOptions { finish_timeout: Duration::from_millis(20), ..TcpOptions::default() };
    let options = EventLoopOptions { tcp, ..EventLoopOptions::default() };
    let (server, address) = start(nowhere(), &options);
    let client = udp_client(address);
    client.send(&message(1, b'h', b"")).expect("sent");
    let echo = message(2, b'e', b"");
    assert_eq!(ask_datagram(&client, &echo), echo);
    // Nothing wakes the machine.
    server.stop().expect("stopped");
}

#[test]
fn a_worker_that_waits_reports() {
    let heartbeats = Heartbeats::new(Duration::from_millis(100));
    let options = EventLoopOptions { heartbeats: heartbeats.clone(), ..EventLoopOptions::default() };
    let (server, _) = start_at("127.0.0.1:0", nowhere(), 2, &options);
    assert_reports(&heartbeats);
    server.stop().expect("stopped");
}

#[test]
fn a_panic_of_a_machine_is_reported_when_stopping() {
    let (server, address) = start(nowhere(), &EventLoopOptions::default());
    let mut client = connect(address);
    client.write_all(&framed(&message(1, b'p', b""))).expect("sent");
    assert!(is_closed(&mut client));
    assert!(matches!(server.stop(), Err(NetError::Panicked { name }) if name == "loop-0"));
}

#[test]
fn a_server_needs_workers_and_existing_cpus() {
    let none = serve(EventLoopSockets::without_tls(Vec::new()), &EventLoopOptions::default(), |worker| {
        Commander::new(worker, nowhere())
    });
    assert!(matches!(none, Err(NetError::NoWorkers)));
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 2).expect("bound");
    let options = EventLoopOptions { cpus: vec![1023], ..EventLoopOptions::default() };
    let error = serve(EventLoopSockets::without_tls(vec![listeners]), &options, |worker| {
        Commander::new(worker, nowhere())
    });
    assert!(matches!(error.expect_err("no such CPU"), NetError::Pin { cpu: 1023, .. }));
}
