//! The mailbox of a worker: other threads wake it, pass connections to it, or request it to stop.

use crate::sys::EventDescriptor;
use crate::tcp::handshake::EstablishedTls;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::sync::{Mutex, PoisonError, TryLockError};

/// Maximum number of connections that wait in a mailbox: what arrives in a few turns of the worker.
pub(super) const CONNECTIONS_MAX: usize = 64;

/// The mailbox of a worker. A [wake](crate::machine::Event::Wake) has no content, so several of them
/// that wait in the mailbox are one.
#[derive(Debug)]
pub(super) struct Mailbox {
    event: EventDescriptor,
    has_wake: AtomicBool,
    has_stop: AtomicBool,
    connections: Mutex<VecDeque<EstablishedTls>>,
}

impl Mailbox {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            event: EventDescriptor::new()?,
            has_wake: AtomicBool::new(false),
            has_stop: AtomicBool::new(false),
            connections: Mutex::default(),
        })
    }

    /// Wakes the worker.
    pub(super) fn wake(&self) {
        // If a wake is already there, its sender signals.
        if !self.has_wake.swap(true, AcqRel) {
            self.event.signal();
        }
    }

    /// Requests the worker to stop.
    pub(super) fn stop(&self) {
        self.has_stop.store(true, Release);
        self.event.signal();
    }

    /// Passes a connection to the worker. Returns the connection if there is no room for it.
    pub(super) fn deliver(&self, connection: EstablishedTls) -> Option<EstablishedTls> {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rejected = Some(connection);
        if connections.len() < CONNECTIONS_MAX {
            connections.extend(rejected.take());
        }
        drop(connections);
        // Not earlier: the worker must not wake up to a locked list. Also without room, because the
        // worker may have found the list locked.
        self.event.signal();
        rejected
    }

    /// Returns at most `limit` connections. If more wait, the descriptor remains readable. Does not
    /// wait for a thread that is passing a connection, which may have a lower priority than the worker:
    /// that thread signals after it.
    pub(super) fn take_connections(&self, limit: usize) -> Vec<EstablishedTls> {
        let mut connections = match self.connections.try_lock() {
            Ok(connections) => connections,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Vec::new(),
        };
        let count = connections.len().min(limit);
        let taken = connections.drain(..count).collect();
        if !connections.is_empty() {
            self.event.signal();
        }
        taken
    }

    /// Empties the mailbox, except for its connections. Returns whether there was a wake. The worker calls it when the
    /// descriptor is readable.
    pub(super) fn take_wake(&self) -> bool {
        // In this order, a wake that arrives after the second step makes the descriptor readable
        // again.
        self.event.clear();
        self.has_wake.swap(false, AcqRel)
    }

    /// Whether the worker must stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.has_stop.load(Acquire)
    }
}

impl AsFd for Mailbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::{Epoll, Interest};
    use crate::testing::{Certificates, connect};
    use crate::tls::IdentitySlot;
    use std::net::TcpListener;
    use std::sync::Arc;
    use std::time::Duration;
    use tokio_rustls::rustls::ServerConnection;

    #[test]
    fn wakes_are_one_until_they_are_taken() {
        let mailbox = Mailbox::new().expect("opened");
        let mut epoll = Epoll::new(1).expect("opened");
        epoll.add(&mailbox, 0, Interest::READS).expect("added");
        let mut is_readable = || epoll.wait(Duration::ZERO).expect("waited") == 1;
        assert!(!is_readable());
        mailbox.wake();
        mailbox.wake();
        assert!(is_readable());
        assert!(mailbox.take_wake() && !mailbox.take_wake());
        assert!(!is_readable());
        mailbox.wake();
        assert!(is_readable());
        mailbox.stop();
        assert!(mailbox.take_wake() && mailbox.is_stopped());
    }

    #[test]
    fn connections_are_bounded_and_announced_until_they_are_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("bound");
        let acceptor = IdentitySlot::new(Certificates::new().identity()).acceptor();
        let connection = || EstablishedTls {
            socket: connect(address),
            session: ServerConnection::new(Arc::clone(acceptor.config())).expect("a session"),
            peer: address,
        };
        let mailbox = Mailbox::new().expect("opened");
        let mut epoll = Epoll::new(1).expect("opened");
        epoll.add(&mailbox, 0, Interest::READS).expect("added");
        assert!((0..CONNECTIONS_MAX).all(|_| mailbox.deliver(connection()).is_none()));
        assert!(mailbox.deliver(connection()).is_some());
        let mut taken = Vec::new();
        while epoll.wait(Duration::ZERO).expect("waited") == 1 {
            assert!(!mailbox.take_wake());
            taken.push(mailbox.take_connections(30).len());
        }
        assert_eq!(taken, [30, 30, 4]);
        assert!(mailbox.deliver(connection()).is_none());
    }
}
