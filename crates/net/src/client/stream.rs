//! A connection that never waits, over TCP or TLS, for load generation. Opening, sending and
//! receiving return immediately; [`Poller`](super::Poller) waits.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, Socket, Type};
use tokio_rustls::rustls::ClientConnection;

use crate::tls::ClientTls;

/// A connection to a server. Octets are sent and received without length prefixes or other
/// structure.
#[derive(Debug)]
pub struct StreamClientSocket {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl StreamClientSocket {
    /// Begins to open a connection, from the local address `source` if there is one. With `tls`,
    /// the connection uses TLS (RFC 7858), and the handshake continues in [`send`](Self::send) and
    /// [`receive`](Self::receive). These calls report a failure to connect.
    ///
    /// # Errors
    /// The error of the system, for example if there is no route to the server, or if the machine
    /// does not have the local address.
    pub fn connect(source: Option<IpAddr>, server: SocketAddr, tls: Option<&ClientTls>) -> io::Result<Self> {
        let tls = tls.map(|tls| tls.client(server.ip())).transpose().map_err(tls_error)?.map(Box::new);
        let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        socket.set_tcp_nodelay(true)?;
        if let Some(source) = source {
            socket.bind(&SocketAddr::new(source, 0).into())?;
        }
        match socket.connect(&server.into()) {
            Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => return Err(error),
            _ => {}
        }
        Ok(Self { socket: socket.into(), tls })
    }

    /// Sends octets from the front of `octets`, and returns their number. Over TLS, they may wait
    /// in memory, up to 64 KiB, for the handshake or for the system; see [`flush`](Self::flush).
    ///
    /// # Errors
    /// `WouldBlock` if nothing can be sent yet; otherwise the error of the connection.
    pub fn send(&mut self, octets: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write(octets) };
        let accepted = tls.writer().write(octets)?;
        self.flush()?;
        if accepted == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(accepted) }
    }

    /// Sends the TLS records that wait in memory, as far as the system accepts them. Does nothing
    /// without TLS.
    ///
    /// # Errors
    /// The error of the connection.
    pub fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether [`flush`](Self::flush) has records to send.
    #[must_use]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Receives the available octets into `buffer`, and returns their number; zero at the end of
    /// the stream. If the buffer is not full, no more octets are available, or the next call
    /// returns an error or the end.
    ///
    /// # Errors
    /// `WouldBlock` if no octet is available; otherwise the error of the connection. An error of
    /// TLS contains a `rustls::Error`.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
        let mut filled = 0;
        loop {
            match tls.reader().read(&mut buffer[filled..]) {
                // The end: the server has sent close_notify.
                Ok(0) => return Ok(filled),
                Ok(octets) => filled += octets,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if filled == buffer.len() {
                return Ok(filled);
            }
            match tls.read_tls(&mut self.socket) {
                Ok(0) => return Ok(filled),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && filled > 0 => return Ok(filled),
                Err(error) => return Err(error),
            }
            if let Err(error) = tls.process_new_packets() {
                // Sends the alert, which explains the end to the server.
                let _ = tls.write_tls(&mut self.socket);
                return Err(tls_error(error));
            }
            while tls.wants_write() && tls.write_tls(&mut self.socket).is_ok() {}
        }
    }
}

impl AsFd for StreamClientSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn tls_error(error: tokio_rustls::rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::super::{PolledStream, Poller};
    use super::*;
    use crate::bind::bind_tcp;
    use crate::tcp::{TcpOptions, TcpServer, serve, serve_tls};
    use crate::testing::{Certificates, TIMEOUT, echo, framed};
    use crate::tls::IdentitySlot;
    use std::time::Instant;

    fn start(identity: Option<IdentitySlot>) -> (TcpServer, SocketAddr) {
        let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
        let address = listener.local_addr().expect("bound");
        let options = TcpOptions::default();
        let server = match identity {
            None => serve(listener, &options, || echo),
            Some(identity) => serve_tls(listener, &identity, &options, || echo),
        };
        (server.expect("started"), address)
    }

    /// Sends `octets` and receives as many; returns the received octets, or the first error.
    fn exchange(socket: &mut StreamClientSocket, octets: &[u8]) -> io::Result<Vec<u8>> {
        let end = Instant::now() + TIMEOUT;
        let (mut sent, mut received, mut buffer) = (0, Vec::new(), vec![0; 1 << 16]);
        let mut ready = Poller::default();
        let would_block = |result: io::Result<usize>| match result {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            result => result.map(Some),
        };
        while received.len() < octets.len() {
            assert!(Instant::now() < end, "the echo arrives in time");
            let has_unsent = sent < octets.len() || socket.has_unsent();
            ready
                .wait([], [PolledStream { stream: socket, has_output: has_unsent }], TIMEOUT)
                .expect("polled");
            if sent < octets.len() {
                sent += would_block(socket.send(&octets[sent..]))?.unwrap_or(0);
            }
            socket.flush()?;
            match would_block(socket.receive(&mut buffer))? {
                Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(count) => received.extend_from_slice(&buffer[..count]),
                None => {}
            }
        }
        Ok(received)
    }

    #[test]
    fn octets_go_out_and_come_back_over_tcp_and_tls() {
        let certificates = Certificates::new();
        let trust = ClientTls::authenticated(&certificates.path("authority.pem"), None).expect("read");
        for tls in [None, Some(trust)] {
            let identity = tls.as_ref().map(|_| IdentitySlot::new(certificates.identity()));
            let (server, address) = start(identity);
            let mut socket = StreamClientSocket::connect(None, address, tls.as_ref()).expect("begun");
            for (size, count) in [(1, 1), (100, 1), (400, 100)] {
                let messages = framed(&vec![size as u8; size]).repeat(count);
                assert_eq!(exchange(&mut socket, &messages).expect("an echo"), messages);
            }
            server.stop().expect("stopped");
            let error = exchange(&mut socket, &framed(b"late")).expect_err("the server has ended");
            assert!(error.kind() != io::ErrorKind::WouldBlock, "{error}");
        }
    }

    #[test]
    fn a_certificate_that_is_not_trusted_is_an_error() {
        let (certificates, others) = (Certificates::new(), Certificates::new());
        let (server, address) = start(Some(IdentitySlot::new(certificates.identity())));
        let trust = ClientTls::authenticated(&others.path("authority.pem"), None).expect("read");
        let mut socket = StreamClientSocket::connect(None, address, Some(&trust)).expect("begun");
        let error = exchange(&mut socket, &framed(b"query")).expect_err("not trusted");
        server.stop().expect("stopped");
        assert!(error.get_ref().is_some_and(|inner| inner.is::<tokio_rustls::rustls::Error>()), "{error}");
    }

    #[test]
    fn nobody_listening_is_told() {
        let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let source = Some("127.0.0.2".parse().expect("an address"));
        let error = StreamClientSocket::connect(source, address, None)
            .and_then(|mut socket| exchange(&mut socket, b"query"))
            .expect_err("nobody listens");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
