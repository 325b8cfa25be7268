//! A client connection: length-prefixed messages (RFC 1035 section 4.2.2) over TCP or TLS.
//!
//! The client may send messages before earlier ones are answered (RFC 7766 section 6.2.1.1), and
//! may receive many messages for one, as in transfers. Every wait is bounded. The buffer holds at
//! most one message and the data of one read.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::HandshakeKind;

use crate::error::{ClientError, ClientPhase, Transport};
use crate::tls::ClientTls;

/// Octets of the length prefix of a message.
const PREFIX_OCTETS: usize = 2;
/// Maximum octets of one read.
const READ_SIZE: usize = 1 << 14;

/// Options of a connection, including its timeouts.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// The local address; port 0 selects a free port. Default: the system chooses.
    pub local: Option<SocketAddr>,
    /// Timeout for opening the connection, and separately for the TLS handshake. Default 5 s.
    pub connect_timeout: Duration,
    /// Timeout for sending a message. Default 5 s.
    pub send_timeout: Duration,
    /// Timeout for receiving a message. Default 5 s.
    pub receive_timeout: Duration,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        let seconds = Duration::from_secs(5);
        Self { local: None, connect_timeout: seconds, send_timeout: seconds, receive_timeout: seconds }
    }
}

/// The negotiated parameters of a TLS connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsParameters {
    /// The version, for example `TLSv1_3`.
    pub version: String,
    /// The name of the cipher suite in the IANA registry.
    pub cipher_suite: String,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// Whether the client verified the certificate of the server.
    pub authenticated: bool,
}

#[derive(Debug)]
enum ClientIo {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl ClientIo {
    async fn write_all(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(octets).await,
            Self::Tls(stream) => {
                stream.write_all(octets).await?;
                stream.flush().await
            }
        }
    }

    /// Appends received octets to `input`. Returns their number; zero at the end of the stream.
    async fn read_buf(&mut self, input: &mut Vec<u8>) -> io::Result<usize> {
        input.reserve(READ_SIZE);
        match self {
            Self::Plain(stream) => stream.read_buf(input).await,
            Self::Tls(stream) => stream.read_buf(input).await,
        }
    }
}

/// A connection to a server.
#[derive(Debug)]
pub struct Connection {
    io: ClientIo,
    server: SocketAddr,
    options: ConnectOptions,
    tls: Option<TlsParameters>,
    /// Received octets.
    input: Vec<u8>,
    /// Offset in `input` of the first octet that is not returned yet.
    start: usize,
}

impl Connection {
    /// Opens a TCP connection to `server`.
    ///
    /// # Errors
    /// - [`ClientError::Local`] if `options.local` cannot be used.
    /// - [`ClientError::TimedOut`] after `options.connect_timeout`.
    /// - [`ClientError::Failed`] for other errors of the system.
    pub async fn open(server: SocketAddr, options: &ConnectOptions) -> Result<Self, ClientError> {
        let stream = connect(server, options, Transport::Tcp).await?;
        Ok(Self::new(ClientIo::Plain(stream), server, options, None))
    }

    /// Opens a TLS connection to `server` (RFC 7858).
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`ClientError::Tls`] if the handshake fails or the certificate
    /// of the server is not accepted.
    pub async fn open_tls(
        server: SocketAddr,
        options: &ConnectOptions,
        tls: &ClientTls,
    ) -> Result<Self, ClientError> {
        let stream = connect(server, options, Transport::Tls).await?;
        let handshake = tls.connector().connect(tls.server_name(server.ip()), stream);
        let handshake = timeout(options.connect_timeout, handshake).await;
        let phase = ClientPhase::Handshake;
        let handshake = handshake.map_err(|_| ClientError::TimedOut {
            server,
            transport: Transport::Tls,
            phase,
            after: options.connect_timeout,
        })?;
        let stream = handshake.map_err(|error| ClientError::from_io(server, Transport::Tls, phase, error))?;
        let (_, session) = stream.get_ref();
        let parameters = TlsParameters {
            version: session.protocol_version().map_or_else(String::new, |version| format!("{version:?}")),
            cipher_suite: session
                .negotiated_cipher_suite()
                .map_or_else(String::new, |suite| format!("{:?}", suite.suite())),
            resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
            authenticated: tls.is_authenticated(),
        };
        Ok(Self::new(ClientIo::Tls(Box::new(stream)), server, options, Some(parameters)))
    }

    fn new(io: ClientIo, server: SocketAddr, options: &ConnectOptions, tls: Option<TlsParameters>) -> Self {
        Self { io, server, options: options.clone(), tls, input: Vec::new(), start: 0 }
    }

    /// The server's address.
    #[must_use]
    pub const fn peer_addr(&self) -> SocketAddr {
        self.server
    }

    /// The negotiated parameters; `None` without TLS.
    #[must_use]
    pub const fn tls(&self) -> Option<&TlsParameters> {
        self.tls.as_ref()
    }

    const fn transport(&self) -> Transport {
        if self.tls.is_some() { Transport::Tls } else { Transport::Tcp }
    }

    /// Sends a message with its length prefix in the same segment (RFC 7766 section 8).
    ///
    /// # Errors
    /// - [`ClientError::TooLong`] if `message` has more than 65,535 octets; nothing is sent.
    /// - [`ClientError::TimedOut`], [`ClientError::Failed`] or [`ClientError::Tls`]; the connection
    ///   is then unusable.
    pub async fn send(&mut self, message: &[u8]) -> Result<(), ClientError> {
        let length =
            u16::try_from(message.len()).map_err(|_| ClientError::TooLong { octets: message.len() })?;
        let prefixed = [&length.to_be_bytes(), message].concat();
        let (server, transport, after) = (self.server, self.transport(), self.options.send_timeout);
        match timeout(after, self.io.write_all(&prefixed)).await {
            Err(_) => Err(ClientError::TimedOut { server, transport, phase: ClientPhase::Send, after }),
            Ok(sent) => {
                sent.map_err(|error| ClientError::from_io(server, transport, ClientPhase::Send, error))
            }
        }
    }

    /// Waits for the next message, and writes it to `message` without its length prefix. The future
    /// may be dropped and the call repeated without loss of data.
    ///
    /// # Errors
    /// [`ClientError::TimedOut`] if no complete message arrives in time, [`ClientError::Closed`] at
    /// the end of the stream, [`ClientError::Failed`] or [`ClientError::Tls`] for other errors.
    pub async fn receive(&mut self, message: &mut Vec<u8>) -> Result<(), ClientError> {
        let (server, transport, after) = (self.server, self.transport(), self.options.receive_timeout);
        match timeout(after, self.receive_unbounded(message)).await {
            Err(_) => Err(ClientError::TimedOut { server, transport, phase: ClientPhase::Receive, after }),
            Ok(received) => received,
        }
    }

    async fn receive_unbounded(&mut self, message: &mut Vec<u8>) -> Result<(), ClientError> {
        let (server, transport) = (self.server, self.transport());
        loop {
            if let Some((prefix, rest)) = self.input[self.start..].split_first_chunk::<PREFIX_OCTETS>() {
                let length = usize::from(u16::from_be_bytes(*prefix));
                if let Some(body) = rest.get(..length) {
                    message.clear();
                    message.extend_from_slice(body);
                    self.start += PREFIX_OCTETS + length;
                    return Ok(());
                }
            }
            self.input.drain(..std::mem::take(&mut self.start));
            match self.io.read_buf(&mut self.input).await {
                Ok(0) => return Err(ClientError::Closed { server, transport }),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Err(ClientError::Closed { server, transport });
                }
                Err(error) => {
                    return Err(ClientError::from_io(server, transport, ClientPhase::Receive, error));
                }
            }
        }
    }
}

async fn connect(
    server: SocketAddr,
    options: &ConnectOptions,
    transport: Transport,
) -> Result<TcpStream, ClientError> {
    let phase = ClientPhase::Connect;
    let socket = if server.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() };
    let socket = socket.map_err(|error| ClientError::from_io(server, transport, phase, error))?;
    if let Some(local) = options.local {
        socket.bind(local).map_err(|source| ClientError::Local { local, source })?;
    }
    let after = options.connect_timeout;
    let stream = timeout(after, socket.connect(server)).await;
    let stream = stream.map_err(|_| ClientError::TimedOut { server, transport, phase, after })?;
    let stream = stream.map_err(|error| ClientError::from_io(server, transport, phase, error))?;
    // Without this option, the connection is only slower.
    let _ = stream.set_nodelay(true);
    Ok(stream)
}

#[cfg(test)]
mod tests;
