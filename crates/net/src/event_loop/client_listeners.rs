//! The TCP listeners of a worker. All workers share each listener.

use super::source::Source;
use crate::sys::Epoll;
use crate::tcp::accept::{ACCEPT_PAUSE, is_only_connection_error, is_out_of_descriptors};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

/// Maximum number of connections that a listener accepts in a turn.
pub(super) const ACCEPTS_PER_TURN: usize = 16;

/// The TCP listeners of a worker.
pub(super) struct ClientListeners {
    listeners: Vec<TcpListener>,
    /// End of a pause in which no connection is accepted, because the system lacks a resource.
    paused_until: Option<Instant>,
}

/// The result of accepting connections.
#[derive(Debug, Default)]
pub(super) struct Accepted {
    pub(super) connections: Vec<(TcpStream, SocketAddr)>,
    /// Whether the process or the system has no free file descriptor.
    pub(super) is_out_of_descriptors: bool,
}

impl ClientListeners {
    /// Takes over non-blocking listeners.
    pub(super) const fn new(listeners: Vec<TcpListener>) -> Self {
        Self { listeners, paused_until: None }
    }

    /// Watches the listeners.
    pub(super) fn watch(listeners: &[TcpListener], epoll: &Epoll) -> io::Result<()> {
        for (index, listener) in listeners.iter().enumerate() {
            epoll.add_shared_listener(listener, Source::Listener(index).to_bits())?;
        }
        Ok(())
    }

    fn unwatch(&self, epoll: &Epoll) {
        for listener in &self.listeners {
            // If this fails, the listener was not watched. It must be removed explicitly, because
            // other workers have duplicates of it.
            let _ = epoll.remove(listener);
        }
    }

    /// Accepts connections, up to the limit for a turn. After an error of the system, accepts no
    /// connection for a while: the error may last, and use a whole CPU.
    pub(super) fn accept(&mut self, index: usize, epoll: &Epoll, now: Instant) -> Accepted {
        let mut accepted = Accepted::default();
        let Some(listener) = self.listeners.get(index) else { return accepted };
        for _ in 0..ACCEPTS_PER_TURN {
            let result = listener.accept().and_then(|(stream, peer)| {
                stream.set_nonblocking(true)?;
                Ok((stream, peer))
            });
            match result {
                Ok(connection) => accepted.connections.push(connection),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if is_only_connection_error(&error) => {}
                Err(error) => {
                    accepted.is_out_of_descriptors = is_out_of_descriptors(&error);
                    self.unwatch(epoll);
                    self.paused_until = Some(now + ACCEPT_PAUSE);
                    break;
                }
            }
        }
        accepted
    }

    /// End of the current pause.
    pub(super) const fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    /// Ends a pause that is over.
    pub(super) fn resume(&mut self, epoll: &Epoll, now: Instant) {
        if self.paused_until.is_some_and(|at| at <= now) {
            // After a failure, the pause begins again.
            let watched = Self::watch(&self.listeners, epoll);
            self.paused_until = watched.err().map(|_| now + ACCEPT_PAUSE);
            if self.paused_until.is_some() {
                self.unwatch(epoll);
            }
        }
    }

    /// Accepts no further connection.
    pub(super) fn close(&mut self, epoll: &Epoll) {
        self.unwatch(epoll);
        self.listeners.clear();
        self.paused_until = None;
    }
}
