//! The authoritative servers of a check: the zones of a tree, served inside this process.
//!
//! The check sees every query of the resolver, and decides how a server behaves: it truncates, drops,
//! delays, rejects EDNS, or changes records. A server without such a [`Behaviour`] sends what the zone
//! contains, faults included.

mod behaviour;
mod encode;
mod observation;
mod online;
mod respond;

pub(super) use behaviour::Behaviour;
pub(super) use encode::{push_message, txt_rdata};
pub(super) use observation::{Log, Observation};

use super::Transport;
use crate::tree::{Tree, TreeZone};
use nonesuch_net::tcp::{self, TcpOptions, TcpServer};
use nonesuch_net::udp::{self, UdpOptions, UdpServer};
use nonesuch_net::{NetError, bind};
use nonesuch_proto::message::Record;
use nonesuch_proto::{Name, Rtype};
use online::OnlineZone;
use std::collections::{BTreeSet, HashMap};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// What the servers answer.
#[derive(Debug)]
pub(super) struct Content {
    /// The zones.
    pub(super) tree: Tree,
    /// The servers with an address of which the zones do not tell the behaviour by default.
    pub(super) behaviours: HashMap<Name, Behaviour>,
    /// Answers that replace those of the zone, by name in lower case and type.
    pub(super) answers: HashMap<(Name, Rtype), Vec<Record>>,
    /// Addresses on which no server listens.
    pub(super) silent: Vec<Ipv4Addr>,
}

/// The state that all servers share.
#[derive(Debug)]
struct Shared {
    content: Content,
    online: HashMap<Name, OnlineZone>,
    log: Mutex<Log>,
    /// Whether zones with [`Behaviour::bogus_on_demand`] send wrong signatures.
    is_bogus: AtomicBool,
}

/// The running servers. Dropping them stops them.
#[derive(Debug)]
pub(super) struct Authority {
    shared: Arc<Shared>,
    _servers: Vec<RunningServer>,
}

/// A server of one address. Dropping it stops it.
#[derive(Debug)]
pub(super) struct RunningServer {
    /// Its address.
    pub(super) address: SocketAddr,
    _udp: UdpServer,
    /// `None`: the system refuses connections.
    pub(super) tcp: Option<TcpServer>,
}

/// Why the servers do not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorityError {
    /// An address cannot be used.
    #[error(
        "{address}: {source}: resolvers query servers on port 53; run as root, in a network namespace, or name other addresses"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The fault.
        source: NetError,
    },
    /// A zone with online signing cannot be prepared.
    #[error("zone {0}: cannot be compiled for online signing")]
    Online(Name),
}

impl Authority {
    /// Starts a server on each address of the tree.
    pub(super) fn start(content: Content) -> Result<Self, AuthorityError> {
        let port = content.tree.port;
        let addresses: BTreeSet<Ipv4Addr> =
            content.tree.servers().into_keys().filter(|address| !content.silent.contains(address)).collect();
        let shared = Arc::new(Shared::new(content)?);
        let start = |address: Ipv4Addr| {
            let address = SocketAddr::from((address, port));
            let shared = Arc::clone(&shared);
            let answer = move |server, client, transport, query: &[u8], out: &mut Vec<u8>| {
                shared.answer(server, client, transport, query, out)
            };
            serve(address, answer).map_err(|source| AuthorityError::Listen { address, source })
        };
        let servers = addresses.into_iter().map(start).collect::<Result<_, _>>()?;
        Ok(Self { shared, _servers: servers })
    }

    /// The zones.
    pub(super) fn tree(&self) -> &Tree {
        &self.shared.content.tree
    }

    /// The number of queries so far, and those from this number on.
    pub(super) fn observations_from(&self, number: usize) -> (usize, Vec<Observation>) {
        self.shared.log().from(number)
    }

    /// Whether zones with [`Behaviour::bogus_on_demand`] send wrong signatures from now on.
    pub(super) fn set_bogus(&self, is_bogus: bool) {
        self.shared.is_bogus.store(is_bogus, Relaxed);
    }
}

impl Shared {
    fn new(content: Content) -> Result<Self, AuthorityError> {
        let online_zones = content.tree.zones.iter().filter(|zone| zone.is_online());
        let online = online_zones.map(|zone| {
            let compiled =
                OnlineZone::new(zone).ok_or_else(|| AuthorityError::Online(zone.origin.clone()))?;
            Ok((zone.origin.clone(), compiled))
        });
        let online = online.collect::<Result<HashMap<_, _>, AuthorityError>>()?;
        Ok(Self { content, online, log: Mutex::default(), is_bogus: AtomicBool::new(false) })
    }

    fn log(&self) -> std::sync::MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The zone that answers for a name at a server: the closest enclosing one, for DS the one above
    /// (RFC 4035 §3.1.4.1).
    fn zone_at(&self, server: Ipv4Addr, name: &Name, rtype: Rtype) -> Option<&TreeZone> {
        let zones = self.content.tree.zones.iter().filter(|zone| zone.server == server && zone.is_served());
        let enclosing = zones.filter(|zone| name.view().is_at_or_below(zone.origin.view()));
        let has_priority = |zone: &TreeZone| rtype != Rtype::DS || zone.origin.view() != name.view();
        enclosing.max_by_key(|zone| (has_priority(zone), zone.origin.view().label_count()))
    }
}

/// Starts a server on one address, over UDP and TCP. Port 0 selects a free port. `answer` gets the address of the
/// server, that of the client, the transport and the query, writes the response, and returns whether there is one.
pub(super) fn serve<A>(listen: SocketAddr, answer: A) -> Result<RunningServer, NetError>
where
    A: Fn(SocketAddr, SocketAddr, Transport, &[u8], &mut Vec<u8>) -> bool + Clone + Send + Sync + 'static,
{
    let listeners = bind(listen, 1)?;
    let address = listeners.local_addr;
    let of_udp = handler(address, Transport::Udp, answer.clone());
    let udp = udp::serve(listeners.udp, &UdpOptions::default(), move |_| of_udp.clone())?;
    let tcp = serve_tcp(listeners.tcp, address, answer)?;
    Ok(RunningServer { address, _udp: udp, tcp: Some(tcp) })
}

/// Serves only TCP connections, as [`serve`] does.
pub(super) fn serve_tcp<A>(
    listener: TcpListener,
    address: SocketAddr,
    answer: A,
) -> Result<TcpServer, NetError>
where
    A: Fn(SocketAddr, SocketAddr, Transport, &[u8], &mut Vec<u8>) -> bool + Clone + Send + Sync + 'static,
{
    let of_tcp = handler(address, Transport::Tcp, answer);
    tcp::serve(listener, &TcpOptions::default(), move || of_tcp)
}

/// The function that answers the messages of a transport.
fn handler<A>(
    address: SocketAddr,
    transport: Transport,
    answer: A,
) -> impl Fn(&[u8], SocketAddr, &mut Vec<u8>) -> bool + Clone
where
    A: Fn(SocketAddr, SocketAddr, Transport, &[u8], &mut Vec<u8>) -> bool + Clone,
{
    move |query, client, out| answer(address, client, transport, query, out)
}

#[cfg(test)]
mod tests;
