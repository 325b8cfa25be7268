use super::*;
use crate::bind::{Listeners, bind};
use crate::client::UdpClientSocket;
use crate::handler::RESPONSE_BUFFER_MAX;
use crate::sys::SendBatch;
use crate::testing::{assert_overdue, assert_reports};

const TIMEOUT: Duration = Duration::from_secs(10);

fn echo(datagram: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> bool {
    response.extend_from_slice(datagram);
    true
}

fn listeners(address: &str, workers: usize) -> Listeners {
    bind(address.parse().expect("an address"), workers).expect("bound")
}

fn client(server: SocketAddr) -> UdpSocket {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).expect("bound");
    socket.set_read_timeout(Some(TIMEOUT)).expect("set");
    socket.connect(server).expect("connected");
    socket
}

fn ask(socket: &UdpSocket, query: &[u8]) -> Vec<u8> {
    socket.send(query).expect("sent");
    let mut buffer = [0; 8192];
    let length = socket.recv(&mut buffer).expect("answered");
    buffer[..length].to_vec()
}

#[test]
fn answers_over_both_families() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listeners = listeners(address, 2);
        let server = serve(listeners.udp, &UdpOptions::default(), |_| echo).expect("started");
        // Several clients, so that both workers are likely to receive queries.
        for number in 0..16u8 {
            let socket = client(listeners.local_addr);
            assert_eq!(ask(&socket, &[number; 40]), [number; 40]);
            assert!(ask(&socket, &[]).is_empty());
            assert_eq!(ask(&socket, &[number; QUERY_MAX]), [number; QUERY_MAX]);
        }
        let statistics = server.statistics();
        server.stop().expect("stopped");
        let total = statistics.total();
        assert_eq!((total.datagrams_in, total.datagrams_out), (48, 48));
        assert_eq!((total.oversized, total.receive_errors, total.send_errors), (0, 0, 0));
    }
}

/// The loops of all workers report without any query. A worker whose handler hangs does not report.
#[test]
fn a_worker_that_hangs_is_silent_and_one_that_waits_is_not() {
    let listeners = listeners("127.0.0.1:0", 1);
    let heartbeats = Heartbeats::new(Duration::from_millis(100));
    let (go_on, hanging) = std::sync::mpsc::channel::<()>();
    let hanging = std::sync::Mutex::new(Some(hanging));
    let make = move |_| {
        let hanging = hanging.lock().expect("one worker").take().expect("one worker");
        move |datagram: &[u8], peer: SocketAddr, response: &mut Vec<u8>| {
            let _ = hanging.recv();
            echo(datagram, peer, response)
        }
    };
    let options = UdpOptions { heartbeats: heartbeats.clone(), ..UdpOptions::default() };
    let server = serve(listeners.udp, &options, make).expect("started");
    assert_reports(&heartbeats);
    let socket = client(listeners.local_addr);
    socket.send(b"q").expect("sent");
    assert_overdue(&heartbeats, "udp-0");
    drop(go_on);
    assert_reports(&heartbeats);
    server.stop().expect("stopped");
}

#[test]
fn a_wildcard_server_answers_from_the_address_asked() {
    // The client's socket is connected, so the kernel drops a response from any other address.
    for (address, asked) in [("0.0.0.0:0", "127.0.0.77"), ("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "::1")] {
        let listeners = listeners(address, 1);
        let server = serve(listeners.udp, &UdpOptions::default(), |_| echo).expect("started");
        let asked = SocketAddr::new(asked.parse().expect("an address"), listeners.local_addr.port());
        let socket = client(asked);
        assert_eq!(ask(&socket, b"first"), b"first");
        assert_eq!(ask(&socket, b"second"), b"second");
        server.stop().expect("stopped");
    }
}

#[test]
fn a_burst_is_answered_in_batches() {
    const QUERIES: usize = 2 * BATCH;
    let listeners = listeners("127.0.0.1:0", 1);
    let socket = UdpClientSocket::connect(listeners.local_addr, TIMEOUT).expect("connected");
    let mut out = SendBatch::new(QUERIES, 2);
    for number in 0..QUERIES as u16 {
        out.push_with(|slot| {
            slot.copy_from_slice(&number.to_be_bytes());
            2
        });
    }
    while out.pending() > 0 {
        socket.send(&mut out).expect("sent");
    }
    // All queries wait in the socket before the worker starts.
    let server = serve(listeners.udp, &UdpOptions::default(), |_| echo).expect("started");
    let mut back = ReceiveBatch::new(QUERIES, 16);
    let mut seen = Vec::new();
    while seen.len() < QUERIES {
        socket.receive(&mut back).expect("answered");
        seen.extend(back.messages().map(|message| u16::from_be_bytes([message[0], message[1]])));
    }
    assert!(seen.iter().copied().eq(0..QUERIES as u16));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total();
    assert_eq!(total.datagrams_out, QUERIES as u64);
    // Two receive calls and two send calls, and possibly receive calls that timed out meanwhile.
    assert!((4..=6).contains(&total.system_calls), "{total:?}");
}

#[test]
fn oversized_datagrams_are_dropped_and_counted() {
    let listeners = listeners("127.0.0.1:0", 1);
    let server = serve(listeners.udp, &UdpOptions::default(), |_| echo).expect("started");
    let socket = client(listeners.local_addr);
    socket.send(&[1; QUERY_MAX + 1]).expect("sent");
    assert_eq!(ask(&socket, &[2]), [2], "the long one has no answer");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!(statistics.total().oversized, 1);
    assert_eq!(statistics.total().datagrams_in, 2);
}

#[test]
fn an_answer_that_cannot_be_sent_does_not_hold_up_the_others() {
    let listeners = listeners("127.0.0.1:0", 1);
    let socket = client(listeners.local_addr);
    for octet in [1, 2, 3] {
        socket.send(&[octet]).expect("sent");
    }
    let swell = |_| {
        |datagram: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
            // No UDP datagram can hold 65,536 octets.
            response.resize(if datagram == [2] { 1 << 16 } else { 1 }, datagram[0]);
            true
        }
    };
    let server = serve(listeners.udp, &UdpOptions::default(), swell).expect("started");
    let mut buffer = [0; 16];
    for expected in [1, 3] {
        assert_eq!(socket.recv(&mut buffer).expect("answered"), 1);
        assert_eq!(buffer[0], expected);
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((statistics.total().send_errors, statistics.total().datagrams_out), (1, 2));
}

#[test]
fn a_handler_may_stay_silent() {
    let listeners = listeners("127.0.0.1:0", 1);
    let odd = |_| {
        |datagram: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
            response.extend_from_slice(datagram);
            datagram[0] % 2 == 1
        }
    };
    let server = serve(listeners.udp, &UdpOptions::default(), odd).expect("started");
    let socket = client(listeners.local_addr);
    socket.send(&[2]).expect("sent");
    assert_eq!(ask(&socket, &[3]), [3]);
    drop(server);
}

#[test]
fn handlers_see_the_sender_and_their_worker() {
    let listeners = listeners("[::1]:0", 1);
    let make = |worker: usize| {
        move |_: &[u8], peer: SocketAddr, response: &mut Vec<u8>| {
            response.extend_from_slice(format!("{worker} {peer}").as_bytes());
            true
        }
    };
    let server =
        serve(listeners.udp, &UdpOptions { cpus: vec![0], ..UdpOptions::default() }, make).expect("started");
    let socket = client(listeners.local_addr);
    let expected = format!("0 {}", socket.local_addr().expect("bound"));
    assert_eq!(ask(&socket, &[1]), expected.as_bytes());
    server.stop().expect("stopped");
}

#[test]
fn stopping_frees_the_address() {
    let first = listeners("127.0.0.1:0", 3);
    let server = serve(first.udp, &UdpOptions::default(), |_| echo).expect("started");
    server.stop().expect("stopped");
    drop(first.tcp);
    bind(first.local_addr, 1).expect("the address is free again");
}

#[test]
fn a_panic_of_a_handler_is_told_when_stopping() {
    let listeners = listeners("127.0.0.1:0", 1);
    let (reached, wait_reached) = std::sync::mpsc::channel();
    let make = move |_| {
        let reached = reached.clone();
        move |_: &[u8], _: SocketAddr, _: &mut Vec<u8>| -> bool {
            reached.send(()).expect("the test waits");
            panic!("a handler's error, wanted by this test")
        }
    };
    let server = serve(listeners.udp, &UdpOptions::default(), make).expect("started");
    client(listeners.local_addr).send(&[1]).expect("sent");
    wait_reached.recv_timeout(TIMEOUT).expect("the handler is called");
    assert!(matches!(server.stop(), Err(NetError::Panicked { name }) if name == "udp-0"));
}

#[test]
fn pinning_to_a_cpu_that_is_not_there_fails() {
    let listeners = listeners("127.0.0.1:0", 1);
    let error = serve(listeners.udp, &UdpOptions { cpus: vec![1023], ..UdpOptions::default() }, |_| echo)
        .expect_err("no such CPU");
    assert!(matches!(error, NetError::Pin { cpu: 1023, .. }), "{error}");
}

/// Defers every message except `now`. Answers with the number of calls of `generate_deferred`.
#[derive(Default)]
struct DeferringHandler {
    wanted: Vec<Vec<u8>>,
    made: u8,
}

impl Handler for DeferringHandler {
    fn answer(&mut self, message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> Answer {
        if message == b"now" {
            response.extend_from_slice(message);
            return Answer::Ready;
        }
        self.wanted.push(message.to_vec());
        Answer::Deferred
    }

    fn generate_deferred(&mut self) {
        self.made += 1;
    }

    fn answer_again(&mut self, message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> bool {
        assert!(self.wanted.iter().any(|wanted| wanted == message));
        response.extend_from_slice(message);
        response.push(self.made);
        message != b"never"
    }
}

/// The deferred answers of one batch are generated together, after the other answers.
#[test]
fn answers_that_are_put_off_are_made_together() {
    let listeners = listeners("127.0.0.1:0", 1);
    let socket = client(listeners.local_addr);
    // All messages are in the socket's queue before the worker starts, so they form one batch.
    for message in [&b"a"[..], b"now", b"never", b"b"] {
        socket.send(message).expect("sent");
    }
    let server =
        serve(listeners.udp, &UdpOptions::default(), |_| DeferringHandler::default()).expect("started");
    let mut buffer = [0; 16];
    let answers: Vec<Vec<u8>> = (0..3)
        .map(|_| {
            let length = socket.recv(&mut buffer).expect("answered");
            buffer[..length].to_vec()
        })
        .collect();
    assert_eq!(answers, [b"now".to_vec(), b"a\x01".to_vec(), b"b\x01".to_vec()]);
    assert_eq!(ask(&socket, b"c"), b"c\x02");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total();
    assert_eq!((total.datagrams_in, total.datagrams_out), (5, 4));
}

/// A handler may write more than the size of any message. The extra memory is freed at the end of
/// the batch.
#[test]
fn large_responses_leave_no_large_buffers() {
    let listeners = listeners("127.0.0.1:0", 1);
    let counters = WorkerCounters::default();
    let mut worker = Worker::new(&listeners.udp[0], &counters, false);
    let client = client(listeners.local_addr);
    let mut write = |_: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
        response.resize(1 << 20, 7);
        response.truncate(12);
        true
    };
    for number in 0..4u8 {
        client.send(&[number; 12]).expect("sent");
        let datagrams = worker.received.receive(worker.socket.as_fd(), Wait::ForOne).expect("received");
        worker.answer(datagrams, &mut write);
        assert!(worker.responses.iter().all(|response| response.capacity() <= RESPONSE_BUFFER_MAX));
    }
    let mut buffer = [0; 64];
    assert_eq!(client.recv(&mut buffer).expect("answered"), 12);
}
