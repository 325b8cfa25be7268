//! The network of a testbed: one namespace, or two with a simulated path between them.

use super::TestbedError;
use crate::link::{End, Link, LinkCounters, LinkOptions};
use nonesuch_net::namespace::{Interface, NetworkNamespace};
use nonesuch_net::pin_current_thread;
use std::net::Ipv4Addr;
use std::thread;

/// Prefix length of the network of all authoritative servers: 198.18.0.0/15 (RFC 2544).
const SERVERS_PREFIX: u8 = 15;

/// Where the simulated path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkPlace {
    /// Between the clients and the resolver.
    Clients,
    /// Between the resolver and the authoritative servers.
    Servers,
}

/// A simulated path and its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlacedLink {
    pub(crate) place: LinkPlace,
    pub(crate) options: LinkOptions,
}

/// A part of the testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Site {
    Clients,
    Resolver,
    Servers,
}

/// The network of a testbed.
#[derive(Debug)]
pub(crate) enum Network {
    /// All parts are in one namespace.
    Direct(NetworkNamespace),
    /// The clients are at the client side of the link, the authoritative servers at its server
    /// side.
    Linked(Link, LinkPlace),
}

impl Network {
    /// Creates the network. The authoritative servers have the addresses `servers`, in
    /// 198.18.0.0/15. The path runs on `cpu`.
    pub(crate) fn new(
        link: Option<&PlacedLink>,
        servers: &[Ipv4Addr],
        cpu: Option<usize>,
    ) -> Result<Self, TestbedError> {
        let Some(PlacedLink { place, options }) = link else {
            let namespace = NetworkNamespace::new()?;
            if let Some(first) = servers.first() {
                namespace.add_address(Interface::LOOPBACK, (*first).into(), SERVERS_PREFIX)?;
            }
            return Ok(Self::Direct(namespace));
        };
        // The thread of the link inherits the CPUs of the thread that creates it.
        let created = thread::scope(|scope| {
            let creator = scope.spawn(|| {
                // Unpinned, the path would still work.
                let _ = cpu.map(pin_current_thread);
                Link::new(*options)
            });
            creator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        let link = created?;
        for address in servers {
            link.add_address(End::Server, (*address).into())?;
        }
        Ok(Self::Linked(link, *place))
    }

    /// Runs `action` at a part of the testbed and waits for its end. Its sockets, threads and
    /// processes stay there.
    pub(crate) fn run<T: Send>(
        &self,
        site: Site,
        action: impl FnOnce() -> T + Send,
    ) -> Result<T, TestbedError> {
        match self {
            Self::Direct(namespace) => Ok(namespace.run(action)?),
            Self::Linked(link, place) => {
                let is_at_clients = match site {
                    Site::Clients => true,
                    Site::Resolver => *place == LinkPlace::Servers,
                    Site::Servers => false,
                };
                let side = if is_at_clients { link.client_side() } else { link.server_side() };
                Ok(side.run(action)?)
            }
        }
    }

    /// Address on which the resolver listens.
    pub(crate) fn resolver_address(&self) -> Ipv4Addr {
        match self {
            Self::Linked(link, LinkPlace::Clients) => link.server_side().ipv4(),
            Self::Linked(_, LinkPlace::Servers) | Self::Direct(_) => Ipv4Addr::LOCALHOST,
        }
    }

    /// Source address of the queries of the resolver.
    pub(crate) fn resolver_source(&self) -> Ipv4Addr {
        match self {
            Self::Linked(link, LinkPlace::Servers) => link.client_side().ipv4(),
            Self::Linked(link, LinkPlace::Clients) => link.server_side().ipv4(),
            Self::Direct(_) => Ipv4Addr::LOCALHOST,
        }
    }

    /// The numbers of packets of the path; 0 without a path.
    pub(crate) fn counters(&self) -> LinkCounters {
        match self {
            Self::Direct(_) => LinkCounters::default(),
            Self::Linked(link, _) => link.counters(),
        }
    }

    /// Number of packets that the path dropped because it was too slow for the load; 0 without a
    /// path, or if the system does not state it.
    pub(crate) fn overruns(&self) -> u64 {
        match self {
            Self::Direct(_) => 0,
            Self::Linked(link, _) => link.overruns().unwrap_or(0),
        }
    }
}
