use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::*;
use crate::bind::bind;
use crate::handler::Answer;
use crate::heartbeat::Heartbeats;
use crate::testing::{ask, assert_overdue, assert_reports, connect, echo, framed, is_closed, receive};

fn start(address: &str, options: &TcpOptions) -> (TcpServer, SocketAddr) {
    let listeners = bind(address.parse().expect("an address"), 1).expect("bound");
    let server = serve(listeners.tcp, options, || echo).expect("started");
    (server, listeners.local_addr)
}

#[test]
fn answers_over_both_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (server, address) = start(address, &TcpOptions { message_max: 65_535, ..TcpOptions::default() });
        let mut stream = connect(address);
        for message in [&b"first"[..], b"2", &[7; 65_535]] {
            stream.write_all(&framed(message)).expect("sent");
            assert_eq!(receive(&mut stream).expect("answered"), message);
        }
        server.stop().expect("stopped");
        assert!(is_closed(&mut stream));
    }
}

#[test]
fn pipelined_messages_are_all_answered_in_order() {
    let (server, address) = start("127.0.0.1:0", &TcpOptions::default());
    let mut stream = connect(address);
    let messages: Vec<Vec<u8>> = (0..1000u16).map(|number| number.to_be_bytes().repeat(20)).collect();
    let octets: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
    stream.write_all(&octets).expect("sent");
    // The client has closed its sending side, but still expects its answers.
    stream.shutdown(Shutdown::Write).expect("shut down");
    for message in &messages {
        assert_eq!(&receive(&mut stream).expect("answered"), message);
    }
    assert!(is_closed(&mut stream));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total();
    assert_eq!((total.messages_in, total.messages_out, total.broken), (1000, 1000, 0));
}

/// The loop reports without any connection. It does not report while a handler hangs.
#[test]
fn a_server_that_hangs_is_silent_and_one_that_waits_is_not() {
    let heartbeats = Heartbeats::new(Duration::from_millis(100));
    let (go_on, hanging) = std::sync::mpsc::channel::<()>();
    let options = TcpOptions { heartbeats: heartbeats.clone(), ..TcpOptions::default() };
    let listener = crate::bind::bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("an address");
    let handler = move |message: &[u8], peer: SocketAddr, response: &mut Vec<u8>| {
        let _ = hanging.recv();
        echo(message, peer, response)
    };
    let server = serve(listener, &options, move || handler).expect("started");
    assert_reports(&heartbeats);
    let mut stream = connect(address);
    stream.write_all(&framed(b"q")).expect("sent");
    assert_overdue(&heartbeats, "tcp");
    drop(go_on);
    assert_eq!(receive(&mut stream).expect("answered"), b"q");
    assert_reports(&heartbeats);
    server.stop().expect("stopped");
}

#[test]
fn a_message_may_come_in_pieces() {
    let (_server, address) = start("127.0.0.1:0", &TcpOptions::default());
    let mut stream = connect(address);
    stream.set_nodelay(true).expect("set");
    let octets = [framed(b"one"), framed(b"two"), framed(b"three")].concat();
    for piece in octets.chunks(1) {
        stream.write_all(piece).expect("sent");
    }
    for expected in [&b"one"[..], b"two", b"three"] {
        assert_eq!(receive(&mut stream).expect("answered"), expected);
    }
}

#[test]
fn a_length_of_zero_closes_after_earlier_answers() {
    let (server, address) = start("127.0.0.1:0", &TcpOptions::default());
    let mut stream = connect(address);
    stream.write_all(&[&framed(b"one")[..], &[0, 0]].concat()).expect("sent");
    assert_eq!(receive(&mut stream).expect("answered"), b"one");
    assert!(is_closed(&mut stream));
    assert_eq!(server.statistics().total().messages_in, 1);
}

#[test]
fn half_a_message_is_not_answered() {
    let (server, address) = start("127.0.0.1:0", &TcpOptions::default());
    for half in [&[0][..], &[0, 9], &[0, 9, 1, 2]] {
        let mut stream = connect(address);
        stream.write_all(half).expect("sent");
        stream.shutdown(Shutdown::Write).expect("shut down");
        assert!(is_closed(&mut stream));
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().broken, statistics.total().messages_in), (3, 0));
}

#[test]
fn an_idle_connection_is_closed() {
    let options = TcpOptions { idle_timeout: Duration::from_millis(20), ..TcpOptions::default() };
    let (server, address) = start("127.0.0.1:0", &options);
    let mut stream = connect(address);
    assert_eq!(ask(&mut stream, b"x").expect("answered"), b"x");
    assert!(is_closed(&mut stream));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().timed_out, statistics.total().open), (1, 0));
}

#[test]
fn a_first_message_must_come_soon() {
    let options = TcpOptions { first_message_timeout: Duration::from_millis(20), ..TcpOptions::default() };
    let (server, address) = start("127.0.0.1:0", &options);
    let mut silent = connect(address);
    let mut slow = connect(address);
    slow.write_all(&[0]).expect("sent");
    assert!(is_closed(&mut silent) && is_closed(&mut slow));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().timed_out, 2);
}

/// A peer cannot hold a connection by sending octet by octet.
#[test]
fn a_message_must_be_whole_soon() {
    let options = TcpOptions { message_timeout: Duration::from_millis(40), ..TcpOptions::default() };
    let (server, address) = start("127.0.0.1:0", &options);
    let mut stream = connect(address);
    assert_eq!(ask(&mut stream, b"x").expect("answered"), b"x");
    stream.write_all(&[0x20, 0]).expect("sent");
    stream.set_read_timeout(Some(Duration::from_millis(5))).expect("set");
    // The timeout of `is_closed` sets the pace of the octets.
    let closed = (0..4000).any(|_| is_closed(&mut stream) || stream.write_all(&[1]).is_err());
    assert!(closed, "the server still waits for the rest of a message");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().timed_out, 1);
}

#[test]
fn a_peer_that_does_not_read_is_given_up() {
    let options =
        TcpOptions { write_timeout: Duration::from_millis(20), message_max: 65_535, ..TcpOptions::default() };
    let (server, address) = start("127.0.0.1:0", &options);
    let mut stream = connect(address);
    let message = framed(&[1; 65_535]);
    // More octets than the buffers of both sides hold, so the server must wait for the client, and
    // closes the connection.
    let gone = (0..4096).any(|_| stream.write_all(&message).is_err());
    assert!(gone, "the server still takes messages whose answers nobody reads");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().timed_out, 1);
}

#[test]
fn a_peer_that_does_not_read_holds_no_stop_up() {
    let hour = Duration::from_secs(3600);
    let options = TcpOptions {
        write_timeout: hour,
        finish_timeout: Duration::from_millis(20),
        message_max: 65_535,
        ..TcpOptions::default()
    };
    let (server, address) = start("127.0.0.1:0", &options);
    let mut stream = connect(address);
    stream.set_write_timeout(Some(Duration::from_millis(100))).expect("set");
    let message = framed(&[1; 65_535]);
    let waits = (0..4096).any(|_| stream.write_all(&message).is_err());
    assert!(waits, "the server still takes messages whose answers nobody reads");
    // Without the stop, the connection would wait for an hour.
    server.stop().expect("stopped");
}

#[test]
fn the_longest_waiting_connection_makes_room() {
    let (server, address) = start("127.0.0.1:0", &TcpOptions { connections_max: 2, ..TcpOptions::default() });
    let ask = |stream: &mut TcpStream| ask(stream, b"x").is_ok_and(|answer| answer == b"x");
    let (mut first, mut second) = (connect(address), connect(address));
    assert!(ask(&mut first) && ask(&mut second) && ask(&mut first));
    // The second connection has now waited longer than the first.
    let mut third = connect(address);
    assert!(ask(&mut third));
    assert!(is_closed(&mut second));
    assert!(ask(&mut first));
    let total = server.statistics().total();
    assert_eq!((total.accepted, total.evicted, total.refused), (3, 1, 0));
}

#[test]
fn an_answer_too_long_closes_the_connection() {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let swell = |_: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
        response.resize(1 << 16, 0);
        true
    };
    let server = serve(listeners.tcp, &TcpOptions::default(), move || swell).expect("started");
    let mut stream = connect(listeners.local_addr);
    stream.write_all(&framed(b"x")).expect("sent");
    assert!(is_closed(&mut stream));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().broken, 1);
}

#[test]
fn a_handler_may_stay_silent() {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let odd = |message: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
        response.extend_from_slice(message);
        message[0] % 2 == 1
    };
    let _server = serve(listeners.tcp, &TcpOptions::default(), move || odd).expect("started");
    let mut stream = connect(listeners.local_addr);
    stream.write_all(&[framed(&[2]), framed(&[3])].concat()).expect("sent");
    assert_eq!(receive(&mut stream).expect("answered"), [3]);
}

/// Defers every message except `now`. Answers with the number of messages that were deferred
/// together.
#[derive(Default)]
struct DeferringHandler {
    wanted: usize,
    together: usize,
}

impl Handler for DeferringHandler {
    fn answer(&mut self, message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> Answer {
        if message == b"now" {
            response.extend_from_slice(message);
            return Answer::Ready;
        }
        self.wanted += 1;
        Answer::Deferred
    }

    fn generate_deferred(&mut self) {
        self.together = std::mem::take(&mut self.wanted);
    }

    fn answer_again(&mut self, message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> bool {
        assert!(self.together > 0 && self.wanted == 0);
        response.extend_from_slice(message);
        true
    }
}

/// RFC 7766 section 6.2.1.1: deferred answers follow the other answers of their batch, and none is
/// lost.
#[test]
fn answers_that_are_put_off_come_later() {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let _server = serve(listeners.tcp, &TcpOptions::default(), DeferringHandler::default).expect("started");
    let mut stream = connect(listeners.local_addr);
    let mut sent = Vec::new();
    let mut expected: Vec<Vec<u8>> = Vec::new();
    for number in 0..200u8 {
        let message = if number % 3 == 0 { b"now".to_vec() } else { vec![number; 900] };
        sent.extend_from_slice(&framed(&message));
        expected.push(message);
    }
    stream.write_all(&sent).expect("sent");
    let mut answers: Vec<Vec<u8>> = (0..200).map(|_| receive(&mut stream).expect("answered")).collect();
    answers.sort();
    expected.sort();
    assert_eq!(answers, expected);
}

#[test]
fn a_message_too_long_closes_after_earlier_answers() {
    let (server, address) = start("127.0.0.1:0", &TcpOptions { message_max: 100, ..TcpOptions::default() });
    // Two cases: the length prefix shows that a message is too long, or the complete message does.
    for octets in [vec![0, 101], framed(&[1; 101]), framed(&[1; 5000])] {
        let mut stream = connect(address);
        stream.write_all(&[framed(&[7; 100]), octets].concat()).expect("sent");
        assert_eq!(receive(&mut stream).expect("answered"), [7; 100]);
        assert!(is_closed(&mut stream));
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().broken, statistics.total().messages_in), (3, 3));
}

#[test]
fn a_client_has_its_share_of_connections() {
    let options = TcpOptions {
        connections_per_client: 2,
        exempt: ExemptClients::new(|_| false),
        ..TcpOptions::default()
    };
    let (server, address) = start("127.0.0.1:0", &options);
    let (mut first, mut second) = (connect(address), connect(address));
    assert!(ask(&mut first, b"1").is_ok() && ask(&mut second, b"2").is_ok());
    let mut third = connect(address);
    assert!(is_closed(&mut third));
    assert!(ask(&mut first, b"1").is_ok());
    drop(second);
    // The slot is free as soon as the server has noticed the end of the connection, which may take
    // a moment.
    let again = (0..1000).any(|_| ask(&mut connect(address), b"4").is_ok());
    assert!(again, "the place is not given back");
    assert!(server.statistics().total().refused_client >= 1);
}

/// Returns the maximum number of open files of this process.
fn open_files_max() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn thousands_of_connections_are_served() {
    const CONNECTIONS: usize = 2000;
    if open_files_max() < 2 * CONNECTIONS {
        nonesuch_testing::record_skip("the limit of open files is too low (ulimit -n)");
        return;
    }
    let options = TcpOptions { connections_max: CONNECTIONS / 2, ..TcpOptions::default() };
    let (server, address) = start("127.0.0.1:0", &options);
    let mut streams: Vec<TcpStream> = Vec::new();
    for number in 0..CONNECTIONS {
        let mut stream = connect(address);
        // One in four clients sends a query, one in four begins a message, and the others send
        // nothing.
        match number % 4 {
            0 => assert_eq!(ask(&mut stream, b"x").expect("answered"), b"x"),
            1 => stream.write_all(&[0, 9, 1]).expect("sent"),
            _ => {}
        }
        streams.push(stream);
    }
    let mut last = connect(address);
    assert_eq!(ask(&mut last, b"x").expect("answered"), b"x");
    let total = server.statistics().total();
    assert_eq!(total.accepted, CONNECTIONS as u64 + 1);
    assert_eq!((total.evicted, total.refused), (CONNECTIONS as u64 / 2 + 1, 0));
    // The connections with a query stay open, because there were enough others to close.
    for stream in streams.iter_mut().step_by(4) {
        assert_eq!(ask(stream, b"y").expect("answered"), b"y");
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().open, 0);
}

/// Answers every message with the idle timeout.
#[derive(Default)]
struct TellsIdle(Duration);

impl Handler for TellsIdle {
    fn answer(&mut self, _: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> Answer {
        response.extend_from_slice(&(self.0.as_millis() as u64).to_be_bytes());
        Answer::Ready
    }

    fn set_idle_timeout(&mut self, timeout: Duration) {
        self.0 = timeout;
    }
}

#[test]
fn the_idle_time_that_is_told_falls_as_connections_become_many() {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    // The shortest time limit determines the interval of the sweeps.
    let options = TcpOptions {
        connections_max: 10,
        handshake_timeout: Duration::from_millis(8),
        ..TcpOptions::default()
    };
    let _server = serve(listeners.tcp, &options, TellsIdle::default).expect("started");
    let mut streams = vec![connect(listeners.local_addr)];
    assert_eq!(ask(&mut streams[0], b"x").expect("answered"), 10_000u64.to_be_bytes());
    streams.extend((0..9).map(|_| connect(listeners.local_addr)));
    let told = (0..100_000).any(|_| {
        let told = ask(&mut streams[0], b"x").expect("answered");
        told == 1000u64.to_be_bytes()
    });
    assert!(told, "the idle time does not fall");
}
