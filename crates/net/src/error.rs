//! Errors of sockets. Each message contains the address and advice.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_rustls::rustls::{self, pki_types::pem};

use crate::tls::{certificate_names, describe};

/// The transport of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// Datagrams. The client's payload size limits the response.
    Udp,
    /// Connections (RFC 7766).
    Tcp,
    /// TLS connections (RFC 7858).
    Tls,
}

impl Transport {
    /// All transports, in the order of the variants.
    pub const ALL: [Self; 3] = [Self::Udp, Self::Tcp, Self::Tls];

    /// The name in metrics and reports: `udp`, `tcp` or `tls`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
        })
    }
}

/// Why sockets could not be opened, or why a server could not start or ended with an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket uses the address.
    #[error(
        "{transport} address {address} is in use by another process: stop that process or choose another port"
    )]
    AddressInUse {
        /// The requested address.
        address: SocketAddr,
        /// The transport of the socket.
        transport: Transport,
    },
    /// The port is privileged, or a policy forbids it.
    #[error(
        "no permission to open {transport} address {address}: ports below 1024 need root or CAP_NET_BIND_SERVICE; \
         grant it or choose a port from 1024 up"
    )]
    PermissionDenied {
        /// The requested address.
        address: SocketAddr,
        /// The transport of the socket.
        transport: Transport,
    },
    /// No interface of this machine has the address.
    #[error(
        "cannot open {transport} address {address}: no interface of this machine has it; choose another address"
    )]
    AddressNotAvailable {
        /// The requested address.
        address: SocketAddr,
        /// The transport of the socket.
        transport: Transport,
    },
    /// A socket could not be opened or bound for another reason.
    #[error("cannot open {transport} address {address}: {source}")]
    Open {
        /// The requested address.
        address: SocketAddr,
        /// The transport of the socket.
        transport: Transport,
        /// The error of the system.
        source: io::Error,
    },
    /// Port 0 was requested, and every port that the system offered was in use for the other
    /// transport.
    #[error("found no port on {address} that is free for both UDP and TCP: specify a port")]
    NoFreePort {
        /// The requested address.
        address: SocketAddr,
    },
    /// The caller requested no worker.
    #[error("a server needs at least one worker: specify 1 or more")]
    NoWorkers,
    /// A client socket could not be connected.
    #[error("cannot reach {address}: {source}")]
    Connect {
        /// The address of the server.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// A thread or its runtime could not be started.
    #[error("cannot start the thread {name}: {source}; raise the limits on threads and open files")]
    Start {
        /// The name of the thread.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A thread cannot run on the requested CPU.
    #[error("cannot pin a thread to CPU {cpu}: {source}; choose a CPU that this process may use")]
    Pin {
        /// The number of the CPU, from 0.
        cpu: usize,
        /// The error of the system.
        source: io::Error,
    },
    /// A worker ended by a panic, which is a fault in its handler.
    #[error("the thread {name} panicked: this is a bug in the program; please report it")]
    Panicked {
        /// The name of the thread.
        name: String,
    },
}

impl NetError {
    /// Returns the error for a socket of `transport` on `address` that could not be opened.
    pub(crate) fn open(address: SocketAddr, transport: Transport, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::AddressInUse { address, transport },
            io::ErrorKind::PermissionDenied => Self::PermissionDenied { address, transport },
            io::ErrorKind::AddrNotAvailable => Self::AddressNotAvailable { address, transport },
            _ => Self::Open { address, transport, source },
        }
    }
}

/// Why certificates or keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path does not name a regular file.
    #[error("{}: not a regular file: use a PEM file, not a pipe, device or directory", path.display())]
    NoRegularFile {
        /// The path.
        path: PathBuf,
    },
    /// A file is too long.
    #[error("{}: longer than {octets} octets, the maximum for certificates and keys: use a PEM file", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit in octets.
        octets: usize,
    },
    /// A file contains no certificate.
    #[error("{}: contains no certificate: use a PEM file with the lines BEGIN CERTIFICATE and END CERTIFICATE", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate is not valid PEM.
    #[error("{}: a certificate cannot be used: {source}; obtain a new certificate", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: pem::Error,
    },
    /// A certificate is invalid.
    #[error("{}: a certificate cannot be used: {source}; obtain a new certificate", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: rustls::Error,
    },
    /// A file contains no readable private key.
    #[error(
        "{}: contains no readable private key: use a PEM file with a line BEGIN PRIVATE KEY (decrypt an encrypted key \
         first: openssl pkey -in FILE -out NEW)",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// The private key is invalid or of an unsupported kind.
    #[error("{}: the private key cannot be used: {source}; use ECDSA (P-256, P-384), Ed25519 or RSA with at least 2048 bits", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: rustls::Error,
    },
    /// The private key belongs to a different certificate.
    #[error(
        "{}: the private key does not belong to the first certificate in {}: use files that belong together, with the certificate \
         of the server first",
        key.display(), certificates.display()
    )]
    KeyMismatch {
        /// The file with the certificates.
        certificates: PathBuf,
        /// The file with the key.
        key: PathBuf,
    },
    /// The text is not a host name.
    #[error(
        "'{text}' is not a host name that certificates can contain: use letters, digits, hyphens and dots"
    )]
    Hostname {
        /// The text as given.
        text: String,
    },
    /// The TLS library cannot be configured.
    #[error("cannot configure TLS: {0}")]
    Library(#[from] rustls::Error),
}

/// The phase of an exchange of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientPhase {
    /// Opening the connection.
    Connect,
    /// The TLS handshake.
    Handshake,
    /// Sending a message.
    Send,
    /// Waiting for a response.
    Receive,
}

impl fmt::Display for ClientPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "opening the connection",
            Self::Handshake => "TLS handshake",
            Self::Send => "sending",
            Self::Receive => "waiting for a response",
        })
    }
}

/// Why a client got no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The local address cannot be used.
    #[error("cannot send from {local}: {source}; choose an address of this machine")]
    Local {
        /// The requested address.
        local: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The system or the peer reported an error.
    #[error("{server} over {transport}: {phase} failed: {source}{}", advice(source))]
    Failed {
        /// The server.
        server: SocketAddr,
        /// The transport.
        transport: Transport,
        /// The phase that failed.
        phase: ClientPhase,
        /// The error of the system.
        source: io::Error,
    },
    /// A phase took too long.
    #[error("{server} over {transport}: {phase} took longer than {} s: check the address, and whether a firewall blocks the traffic", after.as_secs_f64())]
    TimedOut {
        /// The server.
        server: SocketAddr,
        /// The transport.
        transport: Transport,
        /// The phase that took too long.
        phase: ClientPhase,
        /// The timeout.
        after: Duration,
    },
    /// The server closed the connection.
    #[error("{server} over {transport}: the server closed the connection before it responded")]
    Closed {
        /// The server.
        server: SocketAddr,
        /// The transport.
        transport: Transport,
    },
    /// The certificate of the server is not accepted, or the handshake failed.
    #[error("{server}: TLS connection failed: {}", describe(source))]
    Tls {
        /// The server.
        server: SocketAddr,
        /// The error of the TLS library.
        source: rustls::Error,
    },
    /// A message is too long for its length prefix.
    #[error("a message of {octets} octets is too long to send: the maximum is 65535")]
    TooLong {
        /// The length of the message.
        octets: usize,
    },
}

impl ClientError {
    /// Converts an error of the system. An error of the TLS library inside it becomes
    /// [`Tls`](Self::Tls).
    #[must_use]
    pub fn from_io(server: SocketAddr, transport: Transport, phase: ClientPhase, source: io::Error) -> Self {
        let inner = source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match inner {
            Some(error) => Self::Tls { server, source: error.clone() },
            None => Self::Failed { server, transport, phase, source },
        }
    }

    /// The first host name in the certificate of the server, if the certificate is not valid for
    /// the requested name. `None` for other errors, and if the name is a wildcard or unknown.
    #[must_use]
    pub fn certificate_name(&self) -> Option<&str> {
        let Self::Tls { source: rustls::Error::InvalidCertificate(fault), .. } = self else { return None };
        certificate_names(fault).find(|name| !name.starts_with('*'))
    }
}

/// Returns advice for an error of the system.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "; no server listens there: check address and port",
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "; there is no route to the address: check the address and the network"
        }
        _ => "",
    }
}
