//! The version of a zone that is transferred is released when its transfer ends.

use super::*;
use nonesuch_net::tcp::{self, TcpOptions};
use nonesuch_net::{Answer, Handler, ResponseStream, bind_tcp};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Weak;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Maximum time to wait for the end of a transfer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Answers the first message with a transfer.
struct Once(Option<Box<TransferStream>>);

impl Handler for Once {
    fn answer(&mut self, _: &[u8], _: SocketAddr, _: &mut Vec<u8>) -> Answer {
        Answer::Stream
    }

    fn stream(&mut self) -> Option<Box<dyn ResponseStream>> {
        self.0.take().map(|sending| -> Box<dyn ResponseStream> { sending })
    }
}

/// Returns a zone that is larger than the socket buffers for a client that does not read.
fn large() -> Arc<Contents> {
    let text = "x".repeat(250);
    zone(1, &(0..30_000).map(|number| format!("n{number} TXT \"{text}\"\n")).collect::<String>())
}

/// Transfers a zone over a socket; `read` reads as much as it needs. Returns the result of the
/// transfer, and checks that the version is released.
fn transfer(
    contents: &Arc<Contents>,
    options: &TcpOptions,
    read: impl FnOnce(&mut TcpStream, &Weak<Contents>),
) -> TransferOutcome {
    // The zone database already has another version, so that only the transfer refers to this one.
    let version = Arc::new(Contents::clone(contents));
    let weak = Arc::downgrade(&version);
    let (ended, outcome) = mpsc::channel();
    let mut server = Server::new(&version);
    let observer = move |status: &TransferStatus| {
        let _ = ended.send(status.outcome);
    };
    server.outgoing = Arc::new(OutgoingTransfers::new(1, || NOON).with_observer(observer));
    let answer = server.begin(&request(None), None, false, &mut Vec::new());
    let TransferAnswer::Stream(sending) = answer else { panic!("{answer:?}") };
    drop((server, version));
    let listener = bind_tcp("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let _server = tcp::serve(listener, options, move || Once(Some(sending))).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.write_all(&[0, 1, 0]).unwrap();
    read(&mut stream, &weak);
    let outcome = outcome.recv_timeout(TIMEOUT).unwrap();
    let ended_at = Instant::now();
    while weak.upgrade().is_some() {
        assert!(ended_at.elapsed() < TIMEOUT, "the version is held after {outcome:?}");
        std::thread::yield_now();
    }
    outcome
}

#[test]
fn a_version_is_released_when_its_transfer_ends() {
    let contents = large();
    let limit = Duration::from_millis(300);
    let long = TcpOptions::default();
    let stall = |stream: &mut TcpStream, version: &Weak<Contents>| {
        stream.read_exact(&mut [0; 1000]).unwrap();
        assert!(version.upgrade().is_some(), "the version is there while it is transferred");
    };
    // The client reads everything.
    let all = |stream: &mut TcpStream, _: &Weak<Contents>| {
        let mut octets = 0;
        while octets < contents.octets() / 2 {
            octets += stream.read(&mut [0; 1 << 16]).unwrap() as u64;
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        while stream.read(&mut [0; 1 << 16]).unwrap() > 0 {}
    };
    assert_eq!(transfer(&contents, &long, all), TransferOutcome::Sent);
    // The client stops reading.
    let idle = TcpOptions { stream_idle_timeout: limit, ..long.clone() };
    assert_eq!(transfer(&contents, &idle, stall), TransferOutcome::Aborted);
    // The client does not finish in time.
    let short = TcpOptions { stream_time_max: limit, ..long.clone() };
    assert_eq!(transfer(&contents, &short, stall), TransferOutcome::Aborted);
    // The client closes the connection.
    let leave = |stream: &mut TcpStream, version: &Weak<Contents>| {
        stall(stream, version);
        stream.shutdown(std::net::Shutdown::Both).unwrap();
    };
    assert_eq!(transfer(&contents, &long, leave), TransferOutcome::Aborted);
}
