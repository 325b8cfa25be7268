//! Errors of sockets, by blame: each names the address and what to do about it.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_rustls::rustls::{self, pki_types::pem};

use crate::tls::describe;

/// The transport that a socket speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
    /// Connections that are encrypted.
    Tls,
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

/// Why sockets could not be opened, or a server could not be started or did not end well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// Another socket holds the address.
    #[error(
        "{transport} address {address} is in use by another process: stop that process or choose another port"
    )]
    AddressInUse {
        /// The address asked for.
        address: SocketAddr,
        /// The transport of the socket that was refused.
        transport: Transport,
    },
    /// The port is privileged, or a policy forbids it.
    #[error(
        "no permission to open {transport} address {address}: ports below 1024 need root or CAP_NET_BIND_SERVICE; \
         grant it or choose a port from 1024 up"
    )]
    PermissionDenied {
        /// The address asked for.
        address: SocketAddr,
        /// The transport of the socket that was refused.
        transport: Transport,
    },
    /// No interface of this machine has the address.
    #[error("{transport} address {address} belongs to no interface of this machine: choose one that does")]
    AddressNotAvailable {
        /// The address asked for.
        address: SocketAddr,
        /// The transport of the socket that was refused.
        transport: Transport,
    },
    /// A socket could not be opened or bound for another reason.
    #[error("cannot open {transport} address {address}: {source}")]
    Open {
        /// The address asked for.
        address: SocketAddr,
        /// The transport of the socket.
        transport: Transport,
        /// What the system said.
        source: io::Error,
    },
    /// Port 0 was asked for, and every port that the system offered was taken for the other transport.
    #[error("found no port on {address} that is free for both UDP and TCP: name a port")]
    NoFreePort {
        /// The address asked for.
        address: SocketAddr,
    },
    /// A server needs at least one worker.
    #[error("a server needs at least one worker: ask for 1 or more")]
    NoWorkers,
    /// A client's socket could not be connected.
    #[error("cannot reach {address}: {source}")]
    Connect {
        /// The server's address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// A thread, or the runtime that it was to run, could not be started.
    #[error("cannot start the thread {name}: {source}; raise the limits on threads and open files")]
    Start {
        /// The thread's name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A thread cannot run on the CPU asked for.
    #[error("cannot pin a thread to CPU {cpu}: {source}; choose a CPU that this process may use")]
    Pin {
        /// The CPU's number, from 0.
        cpu: usize,
        /// What the system said.
        source: io::Error,
    },
    /// A worker ended by a panic: an error in its handler.
    #[error("the thread {name} ended by a panic: this is an error of the program, please report it")]
    Panicked {
        /// The thread's name.
        name: String,
    },
}

impl NetError {
    /// Tells why the socket of `transport` on `address` was refused.
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
    #[error("{}: cannot read the file: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The path is not one of a regular file.
    #[error("{}: is no regular file: give a file in PEM form, no pipe, device or directory", path.display())]
    NoRegularFile {
        /// Its path.
        path: PathBuf,
    },
    /// A file is too long.
    #[error("{}: is longer than {octets} octets, which no certificates and no key are: give a file in PEM form", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The limit.
        octets: usize,
    },
    /// A file holds no certificate.
    #[error("{}: holds no certificate: give a file in PEM form, with lines BEGIN CERTIFICATE and END CERTIFICATE", path.display())]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate cannot be read.
    #[error("{}: a certificate cannot be used: {source}; have it made again", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// A certificate cannot be used.
    #[error("{}: a certificate cannot be used: {source}; have it made again", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// A file holds no private key.
    #[error(
        "{}: holds no private key that can be read: give a file in PEM form with a line BEGIN PRIVATE KEY (an encrypted key is to \
         be decrypted first: openssl pkey -in FILE -out NEW)",
        path.display()
    )]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// A private key is of a kind that is not supported, or broken.
    #[error("{}: the private key cannot be used: {source}; take ECDSA (P-256, P-384), Ed25519 or RSA of 2048 bits and more", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// The key is that of another certificate.
    #[error(
        "{}: the private key is not that of the first certificate in {}: give the files that belong together, the server's own \
         certificate first",
        key.display(), certificates.display()
    )]
    OtherKey {
        /// The file of certificates.
        certificates: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// A text is no host name.
    #[error("'{text}' is no host name as certificates have it: write letters, digits, hyphens and dots")]
    Hostname {
        /// The text.
        text: String,
    },
    /// The TLS library cannot work.
    #[error("TLS cannot be set up: {0}")]
    Library(#[from] rustls::Error),
}

/// What a client was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientPhase {
    /// Opening the connection.
    Connect,
    /// Agreeing on keys.
    Handshake,
    /// Sending.
    Send,
    /// Waiting for an answer.
    Receive,
}

impl fmt::Display for ClientPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "opening the connection",
            Self::Handshake => "the TLS handshake",
            Self::Send => "sending",
            Self::Receive => "waiting for an answer",
        })
    }
}

/// Why a client has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The own address cannot be used.
    #[error("cannot send from {local}: {source}; choose an address of this machine")]
    Local {
        /// The address asked for.
        local: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The system or the peer refused.
    #[error("{server} over {transport}: {phase} failed: {source}{}", remedy(source))]
    Failed {
        /// The server.
        server: SocketAddr,
        /// The transport.
        transport: Transport,
        /// What was being done.
        phase: ClientPhase,
        /// What the system said.
        source: io::Error,
    },
    /// It took too long.
    #[error("{server} over {transport}: {phase} took longer than {} s: is it the right address, and does a firewall let it through?", after.as_secs_f64())]
    TimedOut {
        /// The server.
        server: SocketAddr,
        /// The transport.
        transport: Transport,
        /// What was being done.
        phase: ClientPhase,
        /// How long it was waited.
        after: Duration,
    },
    /// The server closed the connection.
    #[error("{server} over {transport}: the server closed the connection before it had answered")]
    Closed {
        /// The server.
        server: SocketAddr,
        /// The transport.
        transport: Transport,
    },
    /// The server's certificate is not believed, or no keys were agreed on.
    #[error("{server}: no TLS connection: {}", describe(source))]
    Tls {
        /// The server.
        server: SocketAddr,
        /// What the TLS library says.
        source: rustls::Error,
    },
    /// A message does not fit into its length.
    #[error("a message of {octets} octets is too long to send: 65535 are the most")]
    TooLong {
        /// Its length.
        octets: usize,
    },
}

/// What to do about a failure.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "; nothing listens there: check address and port",
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "; there is no way to the address: check it, and the network"
        }
        _ => "",
    }
}
