//! Tests of the order in which a worker passes events to its machine.

use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Responses that wait when the query arrives: those of three turns, and a part of another.
const RESPONSES: u16 = 100;

/// What a machine received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Received {
    Query,
    Response,
}

/// A [`Commander`] that records its events. The response to the query with this ID stops the worker until the
/// test continues.
struct Recorder {
    commander: Commander,
    stops_at: u16,
    received: Arc<Mutex<Vec<Received>>>,
    has_stopped: Sender<()>,
    continues: Arc<Mutex<Receiver<()>>>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Machine for Recorder {
    fn handle_event(&mut self, event: Event<'_>, now: Now) {
        match &event {
            Event::Query(_) => lock(&self.received).push(Received::Query),
            Event::Response(_, response) if response[..2] == self.stops_at.to_be_bytes() => {
                self.has_stopped.send(()).expect("the test runs");
                lock(&self.continues).recv_timeout(TIMEOUT).expect("the test continues");
            }
            Event::Response(..) => lock(&self.received).push(Received::Response),
            _ => {}
        }
        self.commander.handle_event(event, now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.commander.handle_timeout(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.commander.poll_output()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.commander.poll_timeout()
    }
}

/// The kernel reports the sockets of the responses before that of the clients, because they became ready
/// earlier, and more of them than a turn handles.
#[test]
fn a_turn_receives_queries_of_clients_before_responses() {
    let (upstream, upstream_address) = UdpUpstream::new();
    let (has_stopped, stopped) = channel();
    let (release, continues) = channel();
    let (received, continues) = (Arc::<Mutex<Vec<Received>>>::default(), Arc::new(Mutex::new(continues)));
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let address = listeners.local_addr;
    let shared = Arc::clone(&received);
    let server =
        serve(EventLoopSockets::without_tls(vec![listeners]), &EventLoopOptions::default(), move |worker| {
            Recorder {
                commander: Commander::new(worker, upstream_address),
                stops_at: RESPONSES,
                received: Arc::clone(&shared),
                has_stopped: has_stopped.clone(),
                continues: Arc::clone(&continues),
            }
        });
    let server = server.expect("started");

    let (waiting, client) = (udp_client(address), udp_client(address));
    let mut queries: Vec<_> = (0..=RESPONSES)
        .map(|id| {
            waiting.send(&message(id, b'u', b"")).expect("sent");
            upstream.receive()
        })
        .collect();
    let (last, sender) = queries.pop().expect("a query");
    upstream.0.send_to(&last, sender).expect("sent");
    stopped.recv_timeout(TIMEOUT).expect("the worker stops");
    lock(&received).clear();
    for (query, sender) in &queries {
        upstream.0.send_to(query, sender).expect("sent");
    }
    let echo = message(0, b'e', b"");
    client.send(&echo).expect("sent");
    release.send(()).expect("the worker waits");
    assert_eq!(receive_datagram(&client), echo);
    for _ in 0..=RESPONSES {
        receive_datagram(&waiting);
    }
    server.stop().expect("stopped");

    let received = lock(&received);
    assert_eq!(received.len(), usize::from(RESPONSES) + 1);
    let before = received.iter().position(|event| *event == Received::Query).expect("the query");
    assert_eq!(before, 0, "responses before the query");
}
