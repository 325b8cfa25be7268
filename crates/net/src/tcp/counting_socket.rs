//! A socket that counts the octets that the TLS library reads from it. Octets that the library has
//! not delivered as messages yet are in its input buffers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Maximum octets that the TLS library stores before it decrypts them: four records. It frees records
/// without plaintext, which a client can send without end.
pub(crate) const UNDELIVERED_MAX: usize = 1 << 16;

/// A socket with the number of octets read since the last [`mark_delivered`](Self::mark_delivered).
pub(super) struct CountingSocket {
    socket: TcpStream,
    undelivered: usize,
}

impl CountingSocket {
    pub(super) const fn new(socket: TcpStream) -> Self {
        Self { socket, undelivered: 0 }
    }

    pub(super) const fn socket(&self) -> &TcpStream {
        &self.socket
    }

    pub(super) fn into_socket(self) -> TcpStream {
        self.socket
    }

    /// Octets that were read from the socket and not delivered to the connection, at most 64 KiB.
    pub(super) const fn undelivered(&self) -> usize {
        self.undelivered
    }

    /// Records that all octets read so far were delivered to the connection.
    pub(super) const fn mark_delivered(&mut self) {
        self.undelivered = 0;
    }
}

impl AsyncRead for CountingSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        read_buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = read_buf.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(cx, read_buf);
        self.undelivered = (self.undelivered + read_buf.filled().len() - before).min(UNDELIVERED_MAX);
        outcome
    }
}

impl AsyncWrite for CountingSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(cx, octets)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
