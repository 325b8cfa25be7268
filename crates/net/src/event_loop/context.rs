//! What all parts of a worker use.

use super::counters::EventLoopCounters;
use crate::machine::{ExchangeId, SendFailure};
use crate::sys::Epoll;
use std::collections::VecDeque;
use std::io;

/// Maximum octets of a message: of a datagram, and of a message on a connection.
const MESSAGE_MAX: usize = 65_535;

/// What all parts of a worker use.
pub(super) struct Context {
    pub(super) epoll: Epoll,
    pub(super) counters: EventLoopCounters,
    /// The receive buffer, of the size of the longest message.
    pub(super) buffer: Box<[u8]>,
    /// Failed exchanges that the machine was not told yet.
    pub(super) failures: VecDeque<(ExchangeId, SendFailure)>,
}

impl Context {
    pub(super) fn new(epoll: Epoll) -> Self {
        Self {
            epoll,
            counters: EventLoopCounters::default(),
            buffer: vec![0; MESSAGE_MAX].into(),
            failures: VecDeque::new(),
        }
    }

    /// Tells the machine in this turn, or at the start of the next one, that an exchange failed.
    pub(super) fn fail(&mut self, exchange: ExchangeId, failure: SendFailure) {
        let upstream = &mut self.counters.upstream;
        match failure {
            SendFailure::Refused => upstream.refused += 1,
            SendFailure::Unreachable => upstream.unreachable += 1,
            SendFailure::Local => upstream.local_failures += 1,
        }
        self.failures.push_back((exchange, failure));
    }
}

/// Returns what an error of a socket that is connected to a server says about the server.
pub(super) fn classify(error: &io::Error) -> SendFailure {
    match error.raw_os_error() {
        // ICMP messages: no port, no protocol.
        Some(libc::ECONNREFUSED | libc::ENOPROTOOPT) => SendFailure::Refused,
        Some(libc::ECONNRESET | libc::ECONNABORTED | libc::EPIPE | libc::ENOTCONN) => SendFailure::Refused,
        Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN | libc::ENONET) => {
            SendFailure::Unreachable
        }
        // The TCP of the system has given up.
        Some(libc::ETIMEDOUT) => SendFailure::Unreachable,
        // The machine has no address or no support for this address family.
        Some(libc::EADDRNOTAVAIL | libc::EAFNOSUPPORT) => SendFailure::Unreachable,
        // The address is no unicast address, or a firewall of this machine blocks it.
        Some(libc::EINVAL | libc::EACCES | libc::EPERM) => SendFailure::Unreachable,
        Some(_) => SendFailure::Local,
        // Errors of this crate: the stream ended.
        None => SendFailure::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_tell_the_server_from_the_route_and_the_machine() {
        for (number, expected) in [
            (libc::ECONNREFUSED, SendFailure::Refused),
            (libc::ECONNRESET, SendFailure::Refused),
            (libc::ENETUNREACH, SendFailure::Unreachable),
            (libc::EAFNOSUPPORT, SendFailure::Unreachable),
            (libc::ETIMEDOUT, SendFailure::Unreachable),
            (libc::EMFILE, SendFailure::Local),
            (libc::ENOBUFS, SendFailure::Local),
        ] {
            assert_eq!(classify(&io::Error::from_raw_os_error(number)), expected, "{number}");
        }
    }
}
