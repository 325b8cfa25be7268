//! Tests of answers with many messages.

use std::io::{Read as _, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::time::Instant;

use socket2::{Domain, Socket, Type};

use super::*;
use crate::bind::bind;
use crate::handler::{Answer, ResponseStream, StreamError};
use crate::testing::{TIMEOUT, connect, framed, is_closed, receive};

/// Counters of the streams of a server.
#[derive(Default)]
struct Watched {
    live: AtomicUsize,
    most: AtomicUsize,
    octets: AtomicUsize,
}

/// A stream of messages of `size` octets. Each contains its number, from 1.
struct Numbers {
    next: u32,
    last: u32,
    size: usize,
    watched: Arc<Watched>,
}

impl ResponseStream for Numbers {
    fn next(&mut self, message: &mut Vec<u8>) -> Result<bool, StreamError> {
        assert!(message.is_empty());
        if self.last == u32::MAX && self.next == 3 {
            return Err(StreamError);
        }
        if self.next == self.last {
            return Ok(false);
        }
        self.next += 1;
        message.extend_from_slice(&self.next.to_be_bytes());
        message.resize(self.size, 0);
        self.watched.octets.fetch_add(self.size, Relaxed);
        Ok(true)
    }
}

impl Drop for Numbers {
    fn drop(&mut self) {
        self.watched.live.fetch_sub(1, Relaxed);
    }
}

/// Answers a message of 8 octets with a stream (number of messages, size of each), and echoes other
/// messages.
struct Streamer {
    asked: Option<(u32, usize)>,
    watched: Arc<Watched>,
}

impl Handler for Streamer {
    fn answer(&mut self, message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> Answer {
        if let Ok(&[a, b, c, d, e, f, g, h]) = <&[u8; 8]>::try_from(message) {
            let size = u32::from_be_bytes([e, f, g, h]) as usize;
            self.asked = Some((u32::from_be_bytes([a, b, c, d]), size));
            return Answer::Stream;
        }
        response.extend_from_slice(message);
        Answer::Ready
    }

    fn stream(&mut self) -> Option<Box<dyn ResponseStream>> {
        let (last, size) = self.asked.take()?;
        let live = self.watched.live.fetch_add(1, Relaxed) + 1;
        self.watched.most.fetch_max(live, Relaxed);
        Some(Box::new(Numbers { next: 0, last, size, watched: Arc::clone(&self.watched) }))
    }
}

fn start(options: &TcpOptions) -> (TcpServer, SocketAddr, Arc<Watched>) {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let watched: Arc<Watched> = Arc::default();
    let for_handler = Arc::clone(&watched);
    let server = serve(listeners.tcp, options, || Streamer { asked: None, watched: for_handler });
    (server.expect("started"), listeners.local_addr, watched)
}

fn request(messages: u32, size: u32) -> Vec<u8> {
    framed(&[messages.to_be_bytes(), size.to_be_bytes()].concat())
}

/// Polls until `holds` returns `true`.
#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        thread::yield_now();
    }
}

#[test]
fn a_stream_comes_whole_and_queries_are_answered_meanwhile() {
    let (server, address, watched) = start(&TcpOptions::default());
    let mut stream = connect(address);
    stream.write_all(&request(2000, 16_000)).expect("sent");
    assert_eq!(receive(&mut stream).expect("a message")[..4], 1u32.to_be_bytes());
    stream.write_all(&framed(b"a question")).expect("sent");
    let (mut next, mut answered_at) = (2u32, None);
    while next <= 2000 || answered_at.is_none() {
        let message = receive(&mut stream).expect("a message");
        if message == b"a question" {
            answered_at = Some(next);
        } else {
            assert_eq!((&message[..4], message.len()), (&next.to_be_bytes()[..], 16_000));
            next += 1;
        }
    }
    // Only the messages that were already waiting when the query arrived precede the answer.
    assert!(answered_at.is_some_and(|at| at < 1500), "{answered_at:?}");
    stream.write_all(&framed(b"more")).expect("sent");
    assert_eq!(receive(&mut stream).expect("answered"), b"more");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total();
    assert_eq!((total.streams, total.messages_in, total.messages_out), (1, 3, 2002));
    assert_eq!((watched.live.load(Relaxed), total.broken), (0, 0));
}

#[test]
fn streams_alternate_and_are_bounded() {
    let (_server, address, watched) = start(&TcpOptions::default());
    let mut stream = connect(address);
    // The last request is for a stream without messages.
    let requests: Vec<u8> =
        (0..20).flat_map(|number| request(if number == 19 { 0 } else { 50 }, 5000)).collect();
    stream.write_all(&requests).expect("sent");
    stream.shutdown(Shutdown::Write).expect("shut down");
    let mut numbers = Vec::new();
    while let Ok(message) = receive(&mut stream) {
        numbers.push(u32::from_be_bytes(message[..4].try_into().expect("four octets")));
    }
    assert_eq!(numbers.len(), 19 * 50);
    assert_eq!(watched.most.load(Relaxed), 8);
    // The first messages of the first eight streams precede any second message.
    assert_eq!(numbers[..9], [1, 1, 1, 1, 1, 1, 1, 1, 2]);
}

#[test]
fn a_peer_that_stops_reading_does_not_grow_memory() {
    let options = TcpOptions { stream_idle_timeout: Duration::from_millis(200), ..TcpOptions::default() };
    let (server, address, watched) = start(&options);
    let mut stream = connect(address);
    SockRef::from(&stream).set_recv_buffer_size(1 << 16).expect("set");
    // 100 MB, of which the client reads nothing.
    stream.write_all(&request(10_000, 10_000)).expect("sent");
    let statistics = server.statistics();
    wait_until("the server waits for ever", || statistics.total().timed_out == 1);
    wait_until("the stream is kept", || watched.live.load(Relaxed) == 0);
    let made = watched.octets.load(Relaxed);
    assert!(made < 4 << 20, "{made} octets were made for a peer that does not read");
    drop(stream);
}

/// A slow reader is served as long as it acknowledges 16 KiB in time. The whole stream takes longer
/// than this time limit.
#[test]
fn a_slow_reader_is_served() {
    let limit = Duration::from_secs(1);
    let (server, address, _) = start(&TcpOptions { write_timeout: limit, ..TcpOptions::default() });
    let mut stream = connect(address);
    SockRef::from(&stream).set_recv_buffer_size(1 << 15).expect("set");
    // No data arrives at this socket. Its receive timeout sets the reader's pace.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
    silent.set_read_timeout(Some(Duration::from_millis(12))).expect("set");
    stream.write_all(&request(100, 60_000)).expect("sent");
    let begun = Instant::now();
    for number in 1..=100u32 {
        assert_eq!(receive(&mut stream).expect("a message")[..4], number.to_be_bytes());
        assert!(silent.recv(&mut [0; 1]).is_err());
    }
    assert!(begun.elapsed() > limit);
    assert_eq!(server.statistics().total().timed_out, 0);
}

/// Opens a connection with a receive buffer of 8 KiB from the beginning. So the system accepts
/// little on behalf of the reader.
fn connect_small(server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(1 << 13).expect("set");
    socket.connect(&server.into()).expect("connected");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).expect("set");
    stream
}

/// Reads `octets` of a stream in small pieces, one every 10 ms.
fn read_slowly(stream: &mut TcpStream, octets: usize) -> io::Result<()> {
    read_in_pieces::<1024>(stream, octets)
}

/// Reads `octets` of a stream in pieces of `SIZE` octets, one every 10 ms.
fn read_in_pieces<const SIZE: usize>(stream: &mut TcpStream, octets: usize) -> io::Result<()> {
    // No data arrives at this socket. Its receive timeout sets the reader's pace.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
    silent.set_read_timeout(Some(Duration::from_millis(10))).expect("set");
    let mut left = octets;
    while left > 0 {
        let mut piece = [0; SIZE];
        let length = left.min(piece.len());
        stream.read_exact(&mut piece[..length])?;
        left -= length;
        assert!(silent.recv(&mut [0; 1]).is_err());
    }
    Ok(())
}

/// The system accepts octets of a stream in pieces of 128 KiB (half of its limit for unsent
/// octets). The peer needs longer for one piece than its idle timeout, but acknowledges octets all
/// the time.
#[test]
fn a_reader_slower_than_the_pieces_that_the_system_takes_is_served() {
    let limit = Duration::from_millis(700);
    let options = TcpOptions { write_timeout: limit, stream_idle_timeout: limit, ..TcpOptions::default() };
    let (server, address, watched) = start(&options);
    let mut stream = connect_small(address);
    stream.write_all(&request(100, 16_000)).expect("sent");
    let begun = Instant::now();
    read_slowly(&mut stream, 160 << 10).expect("the stream goes on");
    assert!(begun.elapsed() > 2 * limit);
    assert_eq!(watched.live.load(Relaxed), 1, "the stream is still under way");
    let mut left = 100 * 16_002 - (160 << 10);
    while left > 0 {
        let octets = stream.read(&mut [0; 1 << 14]).expect("the rest");
        assert!(octets > 0, "the stream ended {left} octets too soon");
        left -= octets;
    }
    assert_eq!(server.statistics().total().timed_out, 0);
}

/// A peer that acknowledges only a few octets at a time is closed: it must acknowledge 16 KiB in
/// each idle timeout.
#[test]
fn a_reader_that_trickles_is_closed() {
    let limit = Duration::from_millis(200);
    let (server, address, watched) =
        start(&TcpOptions { stream_idle_timeout: limit, ..TcpOptions::default() });
    let mut stream = connect_small(address);
    stream.write_all(&request(10_000, 10_000)).expect("sent");
    // At 25 KiB per second, the peer reads 5 KiB in the idle timeout.
    let mut read = 0;
    while server.statistics().total().timed_out == 0 {
        assert!(read < 64 << 10, "the stream goes on");
        let _ = read_in_pieces::<256>(&mut stream, 1 << 10);
        read += 1 << 10;
    }
    wait_until("the stream is kept", || watched.live.load(Relaxed) == 0);
}

#[test]
fn a_stream_ends_when_its_time_is_over() {
    let limit = Duration::from_millis(500);
    let (server, address, watched) = start(&TcpOptions { stream_time_max: limit, ..TcpOptions::default() });
    let mut stream = connect_small(address);
    // A short stream ends in time. The next one has a new time limit.
    stream.write_all(&request(1, 100)).expect("sent");
    receive(&mut stream).expect("a message");
    stream.write_all(&request(10_000, 10_000)).expect("sent");
    let begun = Instant::now();
    while watched.live.load(Relaxed) > 0 || begun.elapsed() < limit / 2 {
        assert!(begun.elapsed() < TIMEOUT, "the stream is kept");
        let _ = read_slowly(&mut stream, 1 << 10);
    }
    assert!(begun.elapsed() >= limit);
    wait_until("the connection is kept", || server.statistics().total().timed_out == 1);
}

#[test]
fn a_stream_that_fails_closes_the_connection() {
    let (server, address, watched) = start(&TcpOptions::default());
    let mut stream = connect(address);
    stream.write_all(&request(u32::MAX, 100)).expect("sent");
    while receive(&mut stream).is_ok() {}
    let mut wrong = connect(address);
    // An empty message is invalid.
    wrong.write_all(&request(u32::MAX - 1, 0)).expect("sent");
    wait_until("a connection is kept", || server.statistics().total().broken == 2);
    wait_until("a stream is kept", || watched.live.load(Relaxed) == 0);
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().streams, statistics.total().open), (2, 0));
}

#[test]
fn a_stream_ends_with_its_connection_and_with_the_server() {
    let (server, address, watched) = start(&TcpOptions::default());
    let mut gone = connect(address);
    gone.write_all(&request(u32::MAX - 1, 1000)).expect("sent");
    receive(&mut gone).expect("a message");
    drop(gone);
    wait_until("the stream is kept", || watched.live.load(Relaxed) == 0);
    let mut stopped = connect(address);
    stopped.write_all(&request(u32::MAX - 1, 1000)).expect("sent");
    receive(&mut stopped).expect("a message");
    let stopping = thread::spawn(move || server.stop());
    while receive(&mut stopped).is_ok() {}
    assert!(is_closed(&mut stopped));
    stopping.join().expect("ended").expect("stopped");
    assert_eq!(watched.live.load(Relaxed), 0);
}
