//! The transports of a connection: a socket, or TLS over a socket.

use std::pin::Pin;
use std::task::Context;

use socket2::SockRef;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_rustls::rustls::ProtocolVersion;
use tokio_rustls::server::TlsStream;

use super::connection::ConnectionIo;
use super::counting_socket::CountingSocket;
use crate::handler::TlsSession;
use crate::sys;

/// Maximum octets that wait unsent in the system for the peer of a stream. The limit for other
/// peers is [`UNSENT_OCTETS_MAX`](super::UNSENT_OCTETS_MAX).
const STREAM_UNSENT_OCTETS_MAX: u32 = 1 << 18;

impl ConnectionIo for TcpStream {
    fn permit_more_unsent(&self) {
        // If the system rejects the option, the stream is only slower.
        let _ = SockRef::from(self).set_tcp_notsent_lowat(STREAM_UNSENT_OCTETS_MAX);
    }

    fn acknowledged_octets(&self) -> Option<u64> {
        sys::acknowledged_octets(self)
    }

    fn signal_end(&mut self, _: &mut Context<'_>) {}
}

/// Boxed, because a connection in its handshake must not reserve memory for the later state.
impl ConnectionIo for Box<TlsStream<CountingSocket>> {
    fn permit_more_unsent(&self) {
        self.get_ref().0.socket().permit_more_unsent();
    }

    fn acknowledged_octets(&self) -> Option<u64> {
        self.get_ref().0.socket().acknowledged_octets()
    }

    /// The incomplete record of the client, and the records that wait to be sent. The state of the
    /// session is not included, because the number of connections limits it.
    fn buffered(&mut self) -> usize {
        let (socket, session) = self.as_mut().get_mut();
        // There are no new packets; the call only returns the state.
        let unsent = session.process_new_packets().map_or(0, |state| state.tls_bytes_to_write());
        unsent + socket.undelivered()
    }

    fn mark_delivered(&mut self) {
        self.as_mut().get_mut().0.mark_delivered();
    }

    fn session(&self) -> Option<TlsSession> {
        let session = self.get_ref().1;
        Some(TlsSession {
            is_tls13: session.protocol_version() == Some(ProtocolVersion::TLSv1_3),
            // The server negotiates no other protocol.
            is_dot: session.alpn_protocol().is_some(),
        })
    }

    fn signal_end(&mut self, cx: &mut Context<'_>) {
        // The alert may be lost; the server does not wait for it.
        let _ = Pin::new(self).poll_shutdown(cx);
    }
}
