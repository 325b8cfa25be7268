//! The transport of a connection of a client: a socket, or TLS over a socket.

use super::buffer::Input;
use crate::error::Transport;
use crate::sys;
use crate::tcp::counting_socket::UNDELIVERED_MAX;
use crate::tcp::handshake::EstablishedTls;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use tokio_rustls::rustls::ServerConnection;

/// Octets of memory that are charged for a TLS session: its state and its keys.
const SESSION_OCTETS: usize = 9 << 10;
/// Maximum octets of the plaintext of a TLS record (RFC 8446 section 5.1).
const RECORD_OCTETS: usize = 1 << 14;
/// Maximum octets of a TLS record without its plaintext (RFC 5246 section 6.2.3, with its header).
const RECORD_OVERHEAD_OCTETS: usize = 2048 + 5;

/// Maximum octets that are read from the socket of a TLS session at a time. A record can be short and
/// expensive (RFC 8446 §4.6.3, key update).
const TLS_READ_OCTETS: u64 = 4096;
/// Octets of TLS that cost as much as a query, at most.
const TLS_OCTETS_PER_QUERY: usize = 256;

/// The transport of a connection of a client.
pub(super) enum ClientStream {
    /// A socket that does not block.
    Plain(TcpStream),
    /// Boxed, because most connections have no TLS.
    Tls(Box<TlsStream>),
}

impl ClientStream {
    pub(super) fn tls(established: EstablishedTls) -> Self {
        let EstablishedTls { socket, session, .. } = established;
        Self::Tls(Box::new(TlsStream { socket, session, undelivered: 0, received: 0 }))
    }

    pub(super) const fn transport(&self) -> Transport {
        match self {
            Self::Plain(_) => Transport::Tcp,
            Self::Tls(_) => Transport::Tls,
        }
    }

    const fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Tls(stream) => &stream.socket,
        }
    }

    /// Reads once with `buffer`, and appends the octets to `input`. Returns whether the peer has
    /// closed its sending side.
    pub(super) fn read(&mut self, buffer: &mut [u8], input: &mut Input) -> io::Result<bool> {
        let read = match self {
            Self::Plain(socket) => socket.read(buffer).map(|octets| {
                input.push(buffer.get(..octets).unwrap_or_default());
                octets == 0
            }),
            Self::Tls(stream) => stream.read(buffer, input),
        };
        match read {
            Err(error) if is_temporary(&error) => Ok(false),
            read => read,
        }
    }

    /// Returns the cost of the last read, in queries, and forgets it.
    pub(super) fn take_read_cost(&mut self) -> usize {
        match self {
            Self::Plain(_) => 1,
            Self::Tls(stream) => tls_read_cost(std::mem::take(&mut stream.received)),
        }
    }

    /// Writes as many octets as the transport accepts. Returns their number.
    pub(super) fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(octets),
            Self::Tls(stream) => stream.write(octets),
        }
    }

    /// Writes the octets that the transport has accepted and the system has not.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tls(stream) => stream.send().or_else(ignore_temporary),
            Self::Plain(_) => Ok(()),
        }
    }

    /// Whether the transport has accepted octets that the system has not.
    pub(super) fn has_unsent(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.session.wants_write(),
        }
    }

    /// Octets that are charged for the transport.
    pub(super) fn buffered(&self) -> usize {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(stream) => {
                let unsent = if self.has_unsent() { RECORD_OCTETS + RECORD_OVERHEAD_OCTETS } else { 0 };
                SESSION_OCTETS + stream.undelivered + unsent
            }
        }
    }

    /// Octets that the peer has acknowledged; `None` if the system does not count them.
    pub(super) fn acknowledged_octets(&self) -> Option<u64> {
        sys::acknowledged_octets(self.socket())
    }

    /// Announces to the peer that the end of the connection is intended, if the transport can. Does not
    /// wait.
    pub(super) fn signal_end(&mut self) {
        if let Self::Tls(stream) = self {
            stream.session.send_close_notify();
            // The alert may be lost.
            let _ = stream.send();
        }
    }
}

impl AsFd for ClientStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket().as_fd()
    }
}

/// TLS over a socket that does not block.
pub(super) struct TlsStream {
    socket: TcpStream,
    session: ServerConnection,
    /// Octets that were read from the socket since the session last returned plaintext: those of an
    /// incomplete record.
    undelivered: usize,
    /// Octets of the last read.
    received: usize,
}

impl TlsStream {
    /// Reads from the socket once, and returns the plaintext of all complete records, also of those
    /// that the session had before.
    fn read(&mut self, buffer: &mut [u8], input: &mut Input) -> io::Result<bool> {
        let received = self.session.read_tls(&mut (&self.socket).take(TLS_READ_OCTETS));
        self.received = received.as_ref().map_or(0, |octets| *octets);
        self.undelivered = (self.undelivered + self.received).min(UNDELIVERED_MAX);
        if let Err(error) = self.session.process_new_packets() {
            // Sends the alert that names the fault.
            let _ = self.send();
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        if self.deliver(buffer, input)? {
            return Ok(true);
        }
        received.map(|octets| octets == 0)
    }

    /// Appends the plaintext that the session has. Returns whether the peer has ended its side.
    fn deliver(&mut self, buffer: &mut [u8], input: &mut Input) -> io::Result<bool> {
        loop {
            match self.session.reader().read(buffer) {
                Ok(0) => return Ok(true),
                Ok(octets) => {
                    input.push(buffer.get(..octets).unwrap_or_default());
                    self.undelivered = 0;
                }
                Err(error) if is_temporary(&error) => return Ok(false),
                // Many peers close TLS without a close_notify alert. Between messages, no data is
                // lost.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    /// Encrypts octets only after the system has accepted the previous record, so that at most one
    /// record waits in the session.
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.send()?;
        let octets = octets.get(..octets.len().min(RECORD_OCTETS)).unwrap_or_default();
        let accepted = self.session.writer().write(octets)?;
        self.send().or_else(ignore_temporary)?;
        Ok(accepted)
    }

    /// Writes the records of the session.
    fn send(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            if self.session.write_tls(&mut self.socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// Returns the cost of received octets of TLS, in queries: at least one.
fn tls_read_cost(received: usize) -> usize {
    received.div_ceil(TLS_OCTETS_PER_QUERY).max(1)
}

fn is_temporary(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

fn ignore_temporary(error: io::Error) -> io::Result<()> {
    if is_temporary(&error) { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_tls_costs_by_its_octets() {
        let costs = [0, 1, 256, 257, TLS_READ_OCTETS as usize].map(tls_read_cost);
        assert_eq!(costs, [1, 1, 1, 2, 16]);
    }
}
