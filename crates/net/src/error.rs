//! Errors of sockets, by blame: each names the address and what to do about it.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// The transport that a socket speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
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
