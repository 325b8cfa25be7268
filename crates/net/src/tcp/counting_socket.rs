//! A socket that counts the octets read from it, which gives the size of the input buffers of TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A socket with the number of octets read since [`forget_read`](Self::forget_read).
pub(super) struct CountingSocket {
    socket: TcpStream,
    unread: usize,
}

impl CountingSocket {
    pub(super) const fn new(socket: TcpStream) -> Self {
        Self { socket, unread: 0 }
    }

    pub(super) const fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Octets that were read and not passed on.
    pub(super) const fn unread(&self) -> usize {
        self.unread
    }

    /// Records that all octets read so far were passed on.
    pub(super) const fn forget_read(&mut self) {
        self.unread = 0;
    }
}

impl AsyncRead for CountingSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = room.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(cx, room);
        self.unread += room.filled().len() - before;
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
