use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use super::*;
use crate::bind::bind;
use crate::handler::Answer;

const PATIENCE: Duration = Duration::from_secs(10);

fn echo(message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> bool {
    response.extend_from_slice(message);
    true
}

fn start(address: &str, options: &TcpOptions) -> (TcpServer, SocketAddr) {
    let listeners = bind(address.parse().expect("an address"), 1).expect("bound");
    let server = serve(listeners.tcp, options, || echo).expect("started");
    (server, listeners.local_addr)
}

fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    stream.set_write_timeout(Some(PATIENCE)).expect("set");
    stream
}

fn framed(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).expect("short enough").to_be_bytes();
    [&length, message].concat()
}

fn receive(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(prefix))];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// Whether the server has closed the connection: the end of the stream or a reset, not a timeout.
fn is_closed(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(octets) => octets == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn answers_over_both_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (server, address) = start(address, &TcpOptions::new());
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
    let (server, address) = start("127.0.0.1:0", &TcpOptions::new());
    let mut stream = connect(address);
    let messages: Vec<Vec<u8>> = (0..1000u16).map(|number| number.to_be_bytes().repeat(20)).collect();
    let octets: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
    stream.write_all(&octets).expect("sent");
    // The peer has nothing more to say and still wants its answers.
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

#[test]
fn a_message_may_come_in_pieces() {
    let (_server, address) = start("127.0.0.1:0", &TcpOptions::new());
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
    let (server, address) = start("127.0.0.1:0", &TcpOptions::new());
    let mut stream = connect(address);
    stream.write_all(&[&framed(b"one")[..], &[0, 0]].concat()).expect("sent");
    assert_eq!(receive(&mut stream).expect("answered"), b"one");
    assert!(is_closed(&mut stream));
    assert_eq!(server.statistics().total().messages_in, 1);
}

#[test]
fn half_a_message_is_not_answered() {
    let (server, address) = start("127.0.0.1:0", &TcpOptions::new());
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
    let options = TcpOptions::new().idle_timeout(Duration::from_millis(20));
    let (server, address) = start("127.0.0.1:0", &options);
    let mut silent = connect(address);
    let mut slow = connect(address);
    slow.write_all(&[0]).expect("sent");
    assert!(is_closed(&mut silent));
    assert!(is_closed(&mut slow));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().timed_out, 2);
}

#[test]
fn a_peer_that_does_not_read_is_given_up() {
    let options = TcpOptions::new().write_timeout(Duration::from_millis(20));
    let (server, address) = start("127.0.0.1:0", &options);
    let mut stream = connect(address);
    let message = framed(&[1; 65_535]);
    // More than the buffers of both sides hold, so that the server must wait for us, and gives up.
    let gone = (0..4096).any(|_| stream.write_all(&message).is_err());
    assert!(gone, "the server still takes messages whose answers nobody reads");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().timed_out, 1);
}

#[test]
fn the_longest_waiting_connection_makes_room() {
    let (server, address) = start("127.0.0.1:0", &TcpOptions::new().connections_max(2));
    let ask = |stream: &mut TcpStream| {
        stream.write_all(&framed(b"x")).expect("sent");
        receive(stream).is_ok_and(|answer| answer == b"x")
    };
    let (mut first, mut second) = (connect(address), connect(address));
    assert!(ask(&mut first) && ask(&mut second) && ask(&mut first));
    // The second has now waited longer than the first.
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
    let server = serve(listeners.tcp, &TcpOptions::new(), move || swell).expect("started");
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
    let _server = serve(listeners.tcp, &TcpOptions::new(), move || odd).expect("started");
    let mut stream = connect(listeners.local_addr);
    stream.write_all(&[framed(&[2]), framed(&[3])].concat()).expect("sent");
    assert_eq!(receive(&mut stream).expect("answered"), [3]);
}

/// Puts every message off once that is not `now`; answers with how many had been put off when they were made.
#[derive(Default)]
struct PutsOff {
    wanted: usize,
    together: usize,
}

impl Handler for PutsOff {
    fn answer(&mut self, message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> Answer {
        if message == b"now" {
            response.extend_from_slice(message);
            return Answer::Ready;
        }
        self.wanted += 1;
        Answer::Later
    }

    fn make(&mut self) {
        self.together = std::mem::take(&mut self.wanted);
    }

    fn answer_again(&mut self, message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> bool {
        assert!(self.together > 0 && self.wanted == 0);
        response.extend_from_slice(message);
        true
    }
}

/// RFC 7766 section 6.2.1.1: answers that are put off come behind the others of their batch; none is lost.
#[test]
fn answers_that_are_put_off_come_later() {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let _server = serve(listeners.tcp, &TcpOptions::new(), PutsOff::default).expect("started");
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
