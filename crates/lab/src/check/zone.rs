//! Checks the delegation of a zone: the servers of its parent, its own servers, the chain of trust.
//!
//! The check finds the servers of the parent zone and of the zone from the root servers or through resolvers.
//! It queries every server without recursion. Before a delegation exists, the caller gives the nameservers and
//! the DS records instead.

mod client;
mod context;
mod discover;
mod findings;
mod items;
mod lookup;
mod registry;
mod trust;

pub use client::NoAnswer;
pub use context::{DiscoveryFault, ZoneContext};
pub use items::items;
pub use trust::TrustAnchor;

use nonesuch_proto::Name;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What to check, and how.
#[derive(Clone, Debug)]
pub struct ZoneCheckOptions {
    /// The zone.
    pub zone: Name,
    /// Where names and zones are looked up.
    pub source: Source,
    /// The delegation, if the zone is checked before its parent has one.
    pub undelegated: Option<Undelegated>,
    /// Trust anchors; none: the chain of trust begins at the keys of the topmost zone, without validation.
    pub anchors: Vec<TrustAnchor>,
    /// Port of all servers.
    pub port: u16,
    /// Time limit for each response.
    pub timeout: Duration,
    /// Number of attempts of a query over UDP, at least 1.
    pub attempts: u32,
    /// Maximum number of queries per second to a server, above 0. Loopback addresses have no limit.
    pub rate: f64,
    /// The time of the check, in seconds since 1970 modulo 2^32.
    pub now: u32,
}

/// Where the check looks up the parent zone and the addresses of nameservers.
#[derive(Clone, Debug)]
pub enum Source {
    /// The servers of the root zone: names and addresses.
    Root(Vec<(Name, IpAddr)>),
    /// Recursive resolvers.
    Resolvers(Vec<SocketAddr>),
}

/// A planned delegation.
#[derive(Clone, Debug, Default)]
pub struct Undelegated {
    /// The nameservers. A nameserver without addresses is looked up.
    pub nameservers: Vec<(Name, Vec<IpAddr>)>,
    /// RDATA of the DS records.
    pub ds: Vec<Vec<u8>>,
}

#[cfg(test)]
mod tests;
