//! Clients: single queries over UDP; messages over TCP and TLS. For load generation: a UDP socket
//! that sends and receives in batches, and non-blocking TCP and TLS connections.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::NetError;
use crate::sys::{self, ReceiveBatch, SendBatch, Wait};

mod connection;
mod datagram;
mod stream;

pub use connection::{ConnectOptions, Connection, TlsParameters};
pub use datagram::{Datagram, DatagramOptions, exchange_udp};
pub use stream::StreamClientSocket;

/// Size of the receive buffer and of the send buffer in the kernel, in octets. The system reduces
/// it to its own limit.
const SOCKET_BUFFER_SIZE: usize = 4 << 20;

/// A UDP socket that is connected to one server. The kernel drops datagrams from other senders.
#[derive(Debug)]
pub struct UdpClientSocket {
    socket: UdpSocket,
    /// Whether the kernel has UDP segmentation offload (`UDP_SEGMENT`).
    has_gso: bool,
}

impl UdpClientSocket {
    /// Connects to `server` from a port that the system chooses. [`receive`](Self::receive) waits
    /// at most `receive_timeout`, which must not be zero.
    ///
    /// # Errors
    /// [`NetError::Connect`], for example if there is no route to the server.
    pub fn connect(server: SocketAddr, receive_timeout: Duration) -> Result<Self, NetError> {
        let any = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self::connect_from(any, server, receive_timeout)
    }

    /// As [`connect`](Self::connect), from the local address `source`.
    ///
    /// # Errors
    /// [`NetError::Connect`], for example if the machine does not have this address.
    pub fn connect_from(
        source: IpAddr,
        server: SocketAddr,
        receive_timeout: Duration,
    ) -> Result<Self, NetError> {
        open(source, server, receive_timeout)
            .map(|socket| Self { has_gso: sys::has_gso(&socket), socket })
            .map_err(|source| NetError::Connect { address: server, source })
    }

    /// Sends waiting messages from the front of `batch` in one call. Returns the number of messages
    /// sent; the other messages stay in the batch. If the kernel supports UDP segmentation offload,
    /// adjacent messages of the same length pass the network stack together, which costs less. The
    /// server still receives separate datagrams.
    ///
    /// # Errors
    /// The error of the system. It may concern a message that was sent earlier:
    /// `ConnectionRefused` if no process listened on the server's port.
    pub fn send(&self, batch: &mut SendBatch) -> io::Result<usize> {
        batch.send(self.socket.as_fd(), self.has_gso)
    }

    /// Waits for a datagram, and receives it together with all other waiting datagrams, up to the
    /// size of the batch, in one call. Returns their number.
    ///
    /// # Errors
    /// `WouldBlock` after the receive timeout; `ConnectionRefused` as for [`send`](Self::send).
    pub fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.receive(self.socket.as_fd(), Wait::ForOne)
    }

    /// As [`receive`](Self::receive), without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if no datagram is waiting; `ConnectionRefused` as for [`send`](Self::send).
    pub fn receive_now(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.receive(self.socket.as_fd(), Wait::No)
    }
}

/// A stream for which [`Poller::wait`] waits.
#[derive(Clone, Copy, Debug)]
pub struct PolledStream<'a> {
    /// The stream.
    pub stream: &'a StreamClientSocket,
    /// Whether the stream is also ready if it can send.
    pub has_output: bool,
}

/// Waits for several sockets and streams, and determines which are ready. Its memory is allocated
/// once.
#[derive(Debug, Default)]
pub struct Poller {
    poll: sys::Poll,
}

impl Poller {
    /// Waits until a socket or a stream is ready, at most `limit`; zero does not wait. Ready means:
    /// data, an error, or the end of a stream. A stream with `has_output` is also ready if it can
    /// send. Returns `Ok(())` also after the limit and after a signal; [`indexes`](Self::indexes)
    /// then returns nothing.
    ///
    /// # Errors
    /// The error of the system.
    pub fn wait<'a>(
        &mut self,
        sockets: impl IntoIterator<Item = &'a UdpClientSocket>,
        streams: impl IntoIterator<Item = PolledStream<'a>>,
        limit: Duration,
    ) -> io::Result<()> {
        let sockets = sockets.into_iter().map(|socket| (socket.socket.as_fd(), false));
        let streams = streams.into_iter().map(|polled| (polled.stream.as_fd(), polled.has_output));
        self.poll.wait(sockets.chain(streams), limit)
    }

    /// The indexes of the ready sockets, in the order in which they were given: the sockets, then
    /// the streams.
    pub fn indexes(&self) -> impl Iterator<Item = usize> {
        self.poll.ready()
    }
}

fn open(source: IpAddr, server: SocketAddr, receive_timeout: Duration) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(server), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(SOCKET_BUFFER_SIZE)?;
    socket.set_send_buffer_size(SOCKET_BUFFER_SIZE)?;
    socket.set_read_timeout(Some(receive_timeout))?;
    socket.bind(&SocketAddr::new(source, 0).into())?;
    socket.connect(&server.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(10);

    fn pair() -> (UdpSocket, UdpClientSocket) {
        let server = UdpSocket::bind("127.0.0.1:0").expect("bound");
        server.set_read_timeout(Some(TIMEOUT)).expect("set");
        let client =
            UdpClientSocket::connect(server.local_addr().expect("bound"), TIMEOUT).expect("connected");
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
        assert!(!out.push_with(|_| panic!("no slot is left")));
        while out.pending() > 0 {
            client.send(&mut out).expect("sent");
        }
        for octet in 1..=4u8 {
            let mut buffer = [0; 16];
            let (length, peer) = server.recv_from(&mut buffer).expect("received");
            assert_eq!(&buffer[..length], vec![octet; octet as usize]);
            server.send_to(&buffer[..length], peer).expect("sent");
        }
        let mut back = ReceiveBatch::new(8, 3);
        assert_eq!(client.receive(&mut back).expect("received"), 4);
        let messages: Vec<&[u8]> = back.messages().collect();
        // The last message is truncated to three octets.
        assert_eq!(messages, [&[1][..], &[2, 2], &[3, 3, 3], &[4, 4, 4]]);
        let nothing = client.receive_now(&mut back).expect_err("nothing is left");
        assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(back.messages().count(), 0);
    }

    #[test]
    fn neighbours_of_one_length_arrive_one_by_one() {
        let (server, client) = pair();
        // Runs of 3, 1, 2 and 1 messages. An empty message counts as a message.
        let lengths = [5, 5, 5, 7, 2, 2, 0];
        let mut out = SendBatch::new(lengths.len(), 8);
        for round in 0..3u8 {
            for (place, length) in lengths.into_iter().enumerate() {
                assert!(out.push_with(|slot| {
                    slot.fill(round * 16 + place as u8);
                    length
                }));
            }
            assert_eq!(client.send(&mut out).expect("sent"), lengths.len());
            assert_eq!(out.pending(), 0);
            for (place, length) in lengths.into_iter().enumerate() {
                let mut buffer = [0; 64];
                let found = server.recv(&mut buffer).expect("received");
                assert_eq!(buffer[..found], vec![round * 16 + place as u8; length]);
            }
        }
    }

    #[test]
    fn runs_outgrow_neither_a_datagram_nor_what_the_kernel_cuts() {
        for (messages, size) in [(64, 4000), (130, 3)] {
            let (server, client) = pair();
            server.set_nonblocking(true).expect("set");
            let mut out = SendBatch::new(messages, size);
            while out.push_with(|slot| slot.len()) {}
            let mut sent = 0;
            while out.pending() > 0 {
                sent += client.send(&mut out).expect("sent");
                let mut buffer = [0; 8000];
                while let Ok(length) = server.recv(&mut buffer) {
                    assert_eq!(length, size);
                }
            }
            assert_eq!(sent, messages);
        }
    }

    #[test]
    fn of_several_sockets_those_with_answers_are_told() {
        let pairs = [pair(), pair(), pair()];
        let mut ready = Poller::default();
        ready.wait(pairs.iter().map(|(_, client)| client), [], Duration::ZERO).expect("polled");
        assert_eq!(ready.indexes().count(), 0);
        for (server, client) in [&pairs[0], &pairs[2]] {
            server.send_to(b"answer", client.socket.local_addr().expect("bound")).expect("sent");
        }
        // On the loopback interface, a datagram has arrived when the send call returns.
        ready.wait(pairs.iter().map(|(_, client)| client), [], TIMEOUT).expect("polled");
        assert_eq!(ready.indexes().collect::<Vec<_>>(), [0, 2]);
        ready.wait([&pairs[1].1], [], Duration::ZERO).expect("polled");
        assert_eq!(ready.indexes().count(), 0);
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
