//! A client's UDP socket with sending and receiving in batches, for load generation.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::NetError;
use crate::sys::{self, ReceiveBatch, SendBatch, Wait};

/// Room for datagrams waiting in the kernel, octets; the system lowers it to its own limit.
const BUFFER: usize = 4 << 20;

/// A UDP socket connected to one server: the kernel drops datagrams from anyone else.
#[derive(Debug)]
pub struct UdpClientSocket {
    socket: UdpSocket,
}

impl UdpClientSocket {
    /// Connects to `server` from a port that the system chooses. [`receive`](Self::receive) waits at most
    /// `receive_timeout`, which must not be zero.
    ///
    /// # Errors
    /// [`NetError::Connect`], also when there is no route to the server.
    pub fn connect(server: SocketAddr, receive_timeout: Duration) -> Result<Self, NetError> {
        open(server, receive_timeout)
            .map(|socket| Self { socket })
            .map_err(|source| NetError::Connect { address: server, source })
    }

    /// The address that answers come to.
    ///
    /// # Errors
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Sends waiting messages of `batch` from the front in one call; returns how many were sent. Those that
    /// were not stay in the batch.
    ///
    /// # Errors
    /// What the system says of the first waiting message, or of an earlier one: `ConnectionRefused` when nobody
    /// listened on the server's port.
    pub fn send(&self, batch: &mut SendBatch) -> io::Result<usize> {
        batch.send(self.socket.as_fd())
    }

    /// Waits for a datagram and receives with it all others that are there, at most a batch, in one call;
    /// returns how many.
    ///
    /// # Errors
    /// `WouldBlock` after the receive timeout; `ConnectionRefused` as for [`send`](Self::send).
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.receive(self.socket.as_fd(), Wait::ForOne)
    }

    /// As [`receive`](Self::receive), without waiting.
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; `ConnectionRefused` as for [`send`](Self::send).
    pub fn receive_now(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.receive(self.socket.as_fd(), Wait::No)
    }

    /// Waits until there is something to receive, at most `limit`; returns whether there is.
    ///
    /// # Errors
    /// What the system says.
    pub fn wait_readable(&self, limit: Duration) -> io::Result<bool> {
        sys::wait_readable(self.socket.as_fd(), limit)
    }
}

fn open(server: SocketAddr, receive_timeout: Duration) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(BUFFER)?;
    socket.set_send_buffer_size(BUFFER)?;
    socket.set_read_timeout(Some(receive_timeout))?;
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    socket.bind(&any.into())?;
    socket.connect(&server.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn pair() -> (UdpSocket, UdpClientSocket) {
        let server = UdpSocket::bind("127.0.0.1:0").expect("bound");
        server.set_read_timeout(Some(PATIENCE)).expect("set");
        let client =
            UdpClientSocket::connect(server.local_addr().expect("bound"), PATIENCE).expect("connected");
        (server, client)
    }

    #[test]
    fn a_batch_goes_out_and_comes_back() {
        let (server, client) = pair();
        let mut out = SendBatch::new(4, 8);
        for octet in 1..=4u8 {
            assert!(out.push_with(|slot| {
                slot[..octet as usize].fill(octet);
                octet as usize
            }));
        }
        assert!(out.is_full());
        assert!(!out.push_with(|_| panic!("no slot is left")));
        while out.pending() > 0 {
            client.send(&mut out).expect("sent");
        }
        assert!(!out.is_full());
        for octet in 1..=4u8 {
            let mut buffer = [0; 16];
            let (length, peer) = server.recv_from(&mut buffer).expect("received");
            assert_eq!(&buffer[..length], vec![octet; octet as usize]);
            server.send_to(&buffer[..length], peer).expect("sent");
        }
        let mut back = ReceiveBatch::new(8, 3);
        assert!(client.wait_readable(PATIENCE).expect("polled"));
        assert_eq!(client.receive(&mut back).expect("received"), 4);
        let messages: Vec<&[u8]> = back.messages().collect();
        // The last is cut to the room that there is.
        assert_eq!(messages, [&[1][..], &[2, 2], &[3, 3, 3], &[4, 4, 4]]);
        let nothing = client.receive_now(&mut back).expect_err("nothing is left");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(back.messages().count(), 0);
    }

    #[test]
    fn skipping_gives_up_one_message() {
        let (server, client) = pair();
        let mut out = SendBatch::new(2, 1);
        for octet in [1, 2] {
            out.push_with(|slot| {
                slot[0] = octet;
                1
            });
        }
        out.skip_first();
        assert_eq!(client.send(&mut out).expect("sent"), 1);
        out.skip_first();
        assert_eq!(out.pending(), 0);
        let mut buffer = [0; 2];
        assert_eq!(server.recv(&mut buffer).expect("received"), 1);
        assert_eq!(buffer[0], 2);
    }

    #[test]
    fn nobody_listening_is_told() {
        let (server, client) = pair();
        drop(server);
        let mut out = SendBatch::new(1, 1);
        out.push_with(|_| 1);
        client.send(&mut out).expect("sent");
        let error = client.receive(&mut ReceiveBatch::new(1, 1)).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
