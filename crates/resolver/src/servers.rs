//! What the resolver knows of each server address: round-trip time, silence, EDNS support, cookies;
//! and the selection of the server for a query.
//!
//! All workers share one [`ServerTable`]. Its memory is fixed: a new server replaces one that was not
//! used for long. A query is an [`Attempt`]: [`ServerTable::select`] selects a server,
//! [`ServerTable::begin`] returns the attempt with its timeout, EDNS and cookie, and the attempt ends
//! in [`answered`](ServerTable::answered), [`timed_out`](ServerTable::timed_out) or
//! [`failed`](ServerTable::failed). An attempt that is dropped leaves no trace.
//!
//! The table counts queries in flight to each server. A server that does not answer gets few of them,
//! so it cannot occupy the whole resolver.
//!
//! Everything in the table can be influenced from outside: anyone can delegate a zone to any
//! address, and ask for any name and type. So no entry excludes a server for a zone completely
//! because of events of another zone or because of one response. `entry` and `family` say how.

mod address;
mod attempt;
mod bounded;
mod cookie;
mod entry;
mod family;
mod in_flight;
mod outcome;
mod rtt;
mod select;

pub use address::ZoneKey;
pub use attempt::{Attempt, Purpose, QueryKind};
pub use cookie::Cookie;
pub use outcome::{Next, Repeat, ResponseFacts};
pub use select::NoServer;

use address::{AddressKey, KeyedHash, mix};
use bounded::Bounded;
use cookie::ClientCookies;
use entry::{Path, PathKey, Server};
use family::Family;
use in_flight::InFlight;
use nonesuch_net::machine::Now;
use nonesuch_proto::NameRef;
use nonesuch_server::cookies::Secret;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Number of parts of the table with separate locks.
const SHARDS: usize = 64;
/// Maximum number of queries in flight to a server that has not answered. After a restart under load,
/// the queries of all clients need the same few servers before the first of them can answer.
const IN_FLIGHT_UNKNOWN: u32 = 1024;
/// Maximum number of queries in flight to a server that does not answer any more.
const IN_FLIGHT_MIN: u32 = 16;

/// Options of a [`ServerTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTableOptions {
    /// Maximum number of servers, rounded down to a power of two; at least 512. Each takes about 150
    /// bytes. Default 16,384.
    pub servers: usize,
    /// Maximum number of pairs of a server and a zone for which the server is lame or silent, rounded
    /// down to a power of two; at least 512. Each takes about 110 bytes. Default 16,384.
    pub faults: usize,
    /// Maximum number of queries in flight to one server that answers. A server that has not answered
    /// yet gets at most 64, and fewer after timeouts. Default 4096.
    pub in_flight: u32,
    /// UDP payload size in queries with EDNS, in octets. Default 1232 (DNS flag day 2020).
    pub payload: u16,
}

impl Default for ServerTableOptions {
    fn default() -> Self {
        Self { servers: 1 << 14, faults: 1 << 14, in_flight: 4096, payload: 1232 }
    }
}

/// Counts of a [`ServerTable`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerTableStatistics {
    /// Number of servers in the table.
    pub servers: usize,
    /// Number of pairs of a server and a zone in the table.
    pub faults: usize,
    /// Number of servers that were replaced although something was known of them.
    pub evicted: u64,
}

/// What is known of the servers of all zones.
pub struct ServerTable {
    options: ServerTableOptions,
    start: Instant,
    hash: KeyedHash,
    cookies: ClientCookies,
    shards: Box<[Mutex<Shard>]>,
    in_flight: InFlight,
    ipv4: Family,
    ipv6: Family,
}

/// A part of the table: some servers, and all pairs with them.
struct Shard {
    servers: Bounded<AddressKey, Server>,
    paths: Bounded<PathKey, Path>,
}

impl fmt::Debug for ServerTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTable").field("options", &self.options).finish_non_exhaustive()
    }
}

/// A server with its place in the table.
#[derive(Clone, Copy)]
struct Place {
    key: AddressKey,
    hash: u64,
}

impl ServerTable {
    /// Returns an empty table. `seed` is unpredictable and has no other use: the key of the hash and
    /// the secret of the client cookies come from it. `now` is before all other times.
    #[must_use]
    pub fn new(options: ServerTableOptions, seed: &[u8; 32], now: Now) -> Self {
        let (key, secret) = seed.split_at(16);
        let part = |octets: &[u8]| std::array::from_fn(|index| octets[index]);
        Self {
            options,
            start: now.instant,
            hash: KeyedHash::new(&part(key)),
            cookies: ClientCookies::new(Secret::new(part(secret))),
            shards: (0..SHARDS).map(|_| Mutex::new(Shard::new(&options))).collect(),
            in_flight: InFlight::new(),
            ipv4: Family::default(),
            ipv6: Family::default(),
        }
    }

    /// Returns the key of a zone in this table.
    #[must_use]
    pub fn zone_key(&self, apex: NameRef<'_>) -> ZoneKey {
        self.hash.zone(apex)
    }

    /// Returns the number of queries in flight to a server, over all workers. With a low probability,
    /// other servers are included.
    #[must_use]
    pub fn in_flight(&self, server: SocketAddr) -> u32 {
        self.in_flight.count(self.place(server).hash)
    }

    /// Returns counts of the whole table. Takes each lock once.
    #[must_use]
    pub fn statistics(&self) -> ServerTableStatistics {
        let mut statistics = ServerTableStatistics::default();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            statistics.servers += shard.servers.len();
            statistics.faults += shard.paths.len();
            statistics.evicted += shard.servers.evicted();
        }
        statistics
    }

    /// Returns the milliseconds since the start of the table.
    fn milliseconds(&self, instant: Instant) -> u64 {
        let elapsed = instant.saturating_duration_since(self.start);
        u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
    }

    fn place(&self, server: SocketAddr) -> Place {
        let key = AddressKey::new(server);
        Place { key, hash: self.hash.address(&key) }
    }

    fn lock(&self, place: &Place) -> MutexGuard<'_, Shard> {
        // The maps select a set by the middle bits, the counters of queries in flight by the lower
        // ones.
        let index = (place.hash >> 56) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    const fn family(&self, place: &Place) -> &Family {
        if place.key.is_ipv4() { &self.ipv4 } else { &self.ipv6 }
    }

    /// Returns the maximum number of queries in flight to a server.
    ///
    /// The limit is high for a server that answers, because it may be the only forwarder, or serve a
    /// large zone. It halves with each round of timeouts, and a response restores it. BIND adapts
    /// `fetches-per-server` to the rate of timeouts, too.
    fn in_flight_limit(&self, server: Option<&Server>, now: u64) -> u32 {
        let max = match server {
            Some(server) if server.rtt.is_known(now) => self.options.in_flight,
            _ => self.options.in_flight.min(IN_FLIGHT_UNKNOWN),
        };
        let silent = server.map_or(0, |server| server.silent);
        (max >> silent.min(31)).max(IN_FLIGHT_MIN.min(max))
    }
}

impl Shard {
    fn new(options: &ServerTableOptions) -> Self {
        Self { servers: Bounded::new(options.servers / SHARDS), paths: Bounded::new(options.faults / SHARDS) }
    }

    /// Returns a server, if something is known of it.
    fn server(&self, place: &Place, now: u64) -> Option<&Server> {
        self.servers.peek(place.hash, &place.key).filter(|server| !server.is_expired(now))
    }

    /// Returns a server for a change. Nothing may be known of it.
    fn server_mut(&mut self, place: &Place, now: u64) -> &mut Server {
        let is_expired = |server: &Server| server.is_expired(now);
        let server = self.servers.get_or_insert(place.hash, place.key, is_expired, || Server::new(now));
        if server.is_expired(now) {
            *server = Server::new(now);
        }
        server.touched_at = now;
        server
    }

    /// Returns the faults of a server as a server of a zone, if there are any.
    fn path(&self, place: &Place, zone: ZoneKey, now: u64) -> Option<&Path> {
        let (hash, key) = place.path(zone);
        self.paths.peek(hash, &key).filter(|path| !path.is_expired(now))
    }

    /// Returns the faults of a server as a server of a zone for a change.
    fn path_mut(&mut self, place: &Place, zone: ZoneKey, now: u64) -> &mut Path {
        self.server_mut(place, now).has_paths = true;
        let (hash, key) = place.path(zone);
        let is_expired = |path: &Path| path.is_expired(now);
        let path = self.paths.get_or_insert(hash, key, is_expired, Path::default);
        if path.is_expired(now) {
            *path = Path::default();
        }
        path
    }
}

impl Place {
    fn path(&self, zone: ZoneKey) -> (u64, PathKey) {
        (mix(self.hash ^ zone.0), PathKey { server: self.key, zone })
    }
}

#[cfg(test)]
mod tests;
