//! A simulated network path between a client and a server on one machine.
//!
//! Client and server are in network namespaces of their own, so both may use port 53. Each
//! namespace has a TUN device, and a thread forwards the packets between the devices: it delays,
//! drops, duplicates, reorders and fragments them as the [`PathOptions`] of each direction specify.
//! [`Path`] is the model that decides about each packet. Random decisions depend only on the seed
//! and on the number of the packet. This works on kernels without netem, and without the program
//! `ip`.
//!
//! A link requires the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN, or a user namespace
//! ([`nonesuch_net::namespace`]), and access to `/dev/net/tun`. The namespaces of the machine,
//! their interfaces and routes do not change. The link disappears with its process.

mod error;
mod forward;
mod options;
mod packet;
mod path;

use std::fmt;
use std::io::{self, PipeWriter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command};
use std::thread::{self, JoinHandle};

use nonesuch_net::namespace::{Interface, NamespaceError, NetworkNamespace, Tun};

pub use error::LinkError;
use forward::{Forwarder, SharedCounters};
pub use options::{OptionsError, PathOptions};
pub use path::{Path, PathCounters};

/// MTU of the interfaces in octets, if neither direction has a larger path MTU: that of Ethernet.
const INTERFACE_MTU: u16 = 1500;
/// Addresses of the client, from the networks for documentation (RFC 5737, RFC 3849).
const CLIENT_ADDRESSES: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(192, 0, 2, 1), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
/// Addresses of the server, in the same networks.
const SERVER_ADDRESSES: (Ipv4Addr, Ipv6Addr) =
    (Ipv4Addr::new(192, 0, 2, 2), Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2));

/// Properties of a link.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LinkOptions {
    /// The direction from the client to the server.
    pub forward: PathOptions,
    /// The direction from the server to the client.
    pub backward: PathOptions,
    /// Seed of all random decisions.
    pub seed: u64,
}

/// An end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end with the client.
    Client,
    /// The end with the server.
    Server,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "the client",
            Self::Server => "the server",
        })
    }
}

/// Numbers of packets of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct LinkCounters {
    /// The direction from the client to the server.
    pub forward: PathCounters,
    /// The direction from the server to the client.
    pub backward: PathCounters,
    /// Delivered packets and ICMP errors that an interface rejected, because it is down or the
    /// packet is malformed.
    pub rejected: u64,
}

/// A simulated link: a client side, a server side, and the path between them. Dropping it ends the
/// path. Programs at its sides continue to run.
#[derive(Debug)]
pub struct Link {
    client: Side,
    server: Side,
    counters: SharedCounters,
    forwarding: Option<ForwardingThread>,
}

/// The thread that forwards packets. It ends when `stop` is dropped.
#[derive(Debug)]
struct ForwardingThread {
    stop: PipeWriter,
    thread: JoinHandle<io::Result<()>>,
}

impl ForwardingThread {
    fn end(self) -> Result<(), LinkError> {
        drop(self.stop);
        let result = self.thread.join().map_err(|_| LinkError::Panicked)?;
        result.map_err(|source| LinkError::Forward { source })
    }
}

impl Link {
    /// Creates both namespaces and starts to forward packets between them.
    ///
    /// # Errors
    /// [`LinkError::Options`] if an option is out of range, [`LinkError::Namespace`] if this user
    /// or this system has no network namespaces or TUN devices, and [`LinkError::Start`] if there
    /// is no thread.
    pub fn new(options: LinkOptions) -> Result<Self, LinkError> {
        let LinkOptions { forward, backward, seed } = options;
        let paths = [
            Path::new(forward, seed, 0).map_err(|source| LinkError::Options { from: End::Client, source })?,
            Path::new(backward, seed, 1)
                .map_err(|source| LinkError::Options { from: End::Server, source })?,
        ];
        let mtu = INTERFACE_MTU.max(forward.mtu).max(backward.mtu);
        let (client, client_tun) = Side::new(CLIENT_ADDRESSES, mtu)?;
        let (server, server_tun) = Side::new(SERVER_ADDRESSES, mtu)?;
        let counters = SharedCounters::default();
        let start = |source| LinkError::Start { source };
        let (stopped, stop) = io::pipe().map_err(start)?;
        let ends = [client_tun, server_tun];
        let forwarder = Forwarder { ends, paths, stop: stopped, counters: counters.clone() };
        let thread = thread::Builder::new().name("link".to_owned());
        let thread = thread.spawn(move || forwarder.run()).map_err(start)?;
        Ok(Self { client, server, counters, forwarding: Some(ForwardingThread { stop, thread }) })
    }

    /// The side of the client.
    #[must_use]
    pub fn client_side(&self) -> &Side {
        &self.client
    }

    /// The side of the server.
    #[must_use]
    pub fn server_side(&self) -> &Side {
        &self.server
    }

    /// Gives one end a further address, for example that of a root server. The other end reaches it
    /// over the path.
    ///
    /// # Errors
    /// [`LinkError::Namespace`] if the system rejects the address, for example because an end of
    /// the link has it already.
    pub fn add_address(&self, end: End, address: IpAddr) -> Result<(), LinkError> {
        let (own, other) = match end {
            End::Client => (&self.client, &self.server),
            End::Server => (&self.server, &self.client),
        };
        let prefix = if address.is_ipv4() { 32 } else { 128 };
        own.namespace.add_address(own.interface, address, prefix)?;
        Ok(other.namespace.add_route(other.interface, address, prefix)?)
    }

    /// The numbers of packets so far. They include every packet that a program has received.
    #[must_use]
    pub fn counters(&self) -> LinkCounters {
        self.counters.get()
    }

    /// Returns the number of packets of both directions that the kernel has dropped because the
    /// link was too slow for the load. They are in no other number. If it is not 0, the path did
    /// not have the properties of its options.
    ///
    /// # Errors
    /// [`LinkError::Namespace`] if the system does not provide the number.
    pub fn overruns(&self) -> Result<u64, LinkError> {
        Ok(self.client.namespace.dropped_packets()? + self.server.namespace.dropped_packets()?)
    }

    /// Ends the path and returns the numbers of packets. Packets on the way are lost.
    ///
    /// # Errors
    /// [`LinkError::Forward`] if a device could not be read, so that packets were not forwarded up
    /// to this call.
    pub fn close(mut self) -> Result<LinkCounters, LinkError> {
        self.forwarding.take().map_or(Ok(()), ForwardingThread::end)?;
        Ok(self.counters())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The caller has not asked for the result.
        let _ = self.forwarding.take().map(ForwardingThread::end);
    }
}

/// One side of a link: a network namespace whose only connection is the path to the other side.
#[derive(Debug)]
pub struct Side {
    namespace: NetworkNamespace,
    interface: Interface,
    addresses: (Ipv4Addr, Ipv6Addr),
}

impl Side {
    fn new(addresses: (Ipv4Addr, Ipv6Addr), mtu: u16) -> Result<(Self, Tun), NamespaceError> {
        let namespace = NetworkNamespace::new()?;
        let tun = namespace.open_tun(mtu)?;
        let interface = tun.interface();
        // These networks contain the other side and the router that sends ICMP errors.
        namespace.add_address(interface, addresses.0.into(), 24)?;
        namespace.add_address(interface, addresses.1.into(), 64)?;
        Ok((Self { namespace, interface, addresses }, tun))
    }

    /// The IPv4 address of this side.
    #[must_use]
    pub fn ipv4(&self) -> Ipv4Addr {
        self.addresses.0
    }

    /// The IPv6 address of this side.
    #[must_use]
    pub fn ipv6(&self) -> Ipv6Addr {
        self.addresses.1
    }

    /// Runs `action` on a new thread at this side and waits for its end. Sockets that `action`
    /// opens stay at this side and can be returned. Threads that it starts run at this side, too.
    ///
    /// # Errors
    /// [`LinkError::Namespace`] if there is no thread, or if the system does not permit it to enter
    /// the namespace.
    pub fn run<T: Send>(&self, action: impl FnOnce() -> T + Send) -> Result<T, LinkError> {
        Ok(self.namespace.run(action)?)
    }

    /// Starts a program at this side. The caller ends it.
    ///
    /// # Errors
    /// [`LinkError::Spawn`] if the program cannot be started, and the errors of [`run`](Self::run).
    pub fn spawn(&self, command: &mut Command) -> Result<Child, LinkError> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.run(|| command.spawn())?.map_err(|source| LinkError::Spawn { program, source })
    }
}

#[cfg(test)]
mod tests;
