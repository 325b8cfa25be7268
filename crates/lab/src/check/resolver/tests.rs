//! Tests of the table of items, and of the items with resolvers that answer nothing useful.

use super::{Place, ResolverCheck, ResolverOptions, Target, items};
use crate::check::{Evidence, Outcome};
use nonesuch_proto::message::HEADER;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn each_item_has_a_number_of_its_own_a_rule_and_a_method() {
    let items: Vec<_> = items().map(|row| row.item).collect();
    let ids: BTreeSet<&str> = items.iter().map(|item| item.id).collect();
    assert_eq!(ids.len(), items.len());
    for item in items {
        assert!(!item.rules.is_empty() && !item.method.is_empty(), "{}", item.id);
        assert!(item.rules.iter().all(|rule| rule.contains('§')), "{:?}", item.rules);
        assert!(!item.subject.ends_with('.'), "{}", item.id);
    }
}

#[test]
fn the_document_lists_every_item() {
    let document = include_str!("../../../../../docs/check-resolver.md");
    for item in items().map(|row| row.item).chain(crate::check::proxy::items().map(|row| row.item)) {
        let row = format!("| {} | {} | {} |", item.id, item.subject, item.rules.join(", "));
        assert!(document.contains(&row), "docs/check-resolver.md: {row}");
    }
}

/// A server that answers each datagram with what `reply` makes of it. Its TCP port is closed.
struct FakeResolver {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl FakeResolver {
    fn start(reply: fn(&[u8]) -> Option<Vec<u8>>) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("set");
        let (address, stop) = (socket.local_addr().expect("an address"), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let body = move || {
            let mut buffer = [0; 4096];
            while !stopped.load(Relaxed) {
                let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
                if let Some(octets) = reply(&buffer[..length]) {
                    // The client may no longer wait.
                    let _ = socket.send_to(&octets, client);
                }
            }
        };
        Self { address, stop, thread: Some(thread::spawn(body)) }
    }
}

impl Drop for FakeResolver {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic was already reported on standard error.
            let _ = thread.join();
        }
    }
}

/// The query as its own response, with the flag QR.
fn echo(query: &[u8]) -> Option<Vec<u8>> {
    let mut reply = query.to_vec();
    *reply.get_mut(2)? |= 0x80;
    Some(reply)
}

/// A response that ends in the question.
fn cut(query: &[u8]) -> Option<Vec<u8>> {
    let mut reply = echo(query)?;
    reply.truncate(HEADER + 3);
    Some(reply)
}

/// A truncated response: TCP is closed.
fn truncated(query: &[u8]) -> Option<Vec<u8>> {
    let mut reply = echo(query)?;
    reply[2] |= 2;
    Some(reply)
}

/// What a resolver answers to a query; `None`: nothing.
type Reply = fn(&[u8]) -> Option<Vec<u8>>;

/// Silent, useless and malformed resolvers.
const REPLIES: [Reply; 5] = [|_| None, echo, cut, truncated, |_| Some(vec![0xff; 700])];

#[test]
fn every_item_ends_in_bounded_time_with_words_whatever_the_resolver_answers() {
    let mut check = ResolverCheck::prepare(&ResolverOptions {
        target: Target::Running(SocketAddr::from((Ipv4Addr::LOCALHOST, 9))),
        timeout: Duration::from_millis(3),
        place: Place::Local { root: Ipv4Addr::new(127, 64, 0, 1), port: 0 },
        seed: 1,
        now: 1_767_225_600,
    })
    .expect("the check is prepared");
    for reply in REPLIES {
        let resolver = FakeResolver::start(reply);
        check.set_server(resolver.address);
        let mut failed = 0;
        for row in items() {
            let started_at = Instant::now();
            let outcome = (row.run)(&mut check, &mut Evidence::default());
            assert!(started_at.elapsed() < Duration::from_secs(10), "{}", row.item.id);
            assert!(matches!(outcome, Outcome::Pass(_)) || !outcome.text().is_empty(), "{}", row.item.id);
            failed += usize::from(matches!(outcome, Outcome::Fail(_)));
        }
        assert!(failed > 40, "{failed}");
    }
}
