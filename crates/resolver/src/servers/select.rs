//! Selection of the server for a query.
//!
//! Resolvers differ. Unbound selects at random within 400 ms of the fastest server
//! (`iterator/iter_utils.c`). BIND had such a band and removed it, because it made resolution slower,
//! and protects little compared with random ports (ISC, "RTT Banding Removal From BIND 9", 2011). BIND
//! and Knot Resolver (`lib/selection.c`) query unknown servers first, then the fastest server, and
//! Knot Resolver a random one in 5 % of the queries.
//!
//! Here, each server draws a time from the range in which its response is expected, and the shortest
//! time wins. Servers that are about equally fast share the queries, and a much slower one gets none.
//! A server that never answered draws from 0 to 376 ms. So the slower the known servers are, the more
//! probable is a query to an unknown one: it is likely if it may gain much. In 5 % of the queries, a
//! random server wins, whatever its time is, so that a server that has become faster is noticed.
//! Servers over IPv4 and IPv6 compete in the same way.
//!
//! A server whose last queries timed out draws a longer time, then comes after all others, and is at
//! last queried only now and then. Nobody outside can shorten the time of another server, as in
//! "Subverting BIND's SRTT Algorithm" (Hay et al., WOOT 2013): times change only with responses.

use super::address::mix;
use super::attempt::count_silent;
use super::rtt::Rtt;
use super::{Purpose, ServerTable};
use nonesuch_net::machine::Now;
use nonesuch_server::extended_errors::ExtendedError;
use std::net::SocketAddr;

/// A random server is selected in one of this number of queries.
const EXPLORE_ONE_IN: u64 = 20;
/// Maximum number of queries to one server for one question (RFC 9520 §3.1).
const ATTEMPTS_MAX: u8 = 3;
/// Number of timeouts in succession after which a server comes after all others.
const UNRELIABLE_AFTER: u8 = 2;

/// Why there is no server for a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NoServer {
    /// All servers were queried as often as permitted.
    #[error("all servers were queried")]
    Tried,
    /// The remaining servers do not serve the zone.
    #[error("no server serves the zone")]
    Lame,
    /// The remaining servers do not answer, and the time of the next probe has not come.
    #[error("no server answers")]
    Silent,
    /// The remaining servers have too many queries in flight.
    #[error("too many queries to the servers are in progress")]
    Busy,
}

impl NoServer {
    /// Returns the extended error for the client (RFC 8914 §4).
    #[must_use]
    pub const fn extended_error(self) -> ExtendedError {
        match self {
            // RFC 8914 §4.23, No Reachable Authority. It includes servers that refuse to answer.
            Self::Tried | Self::Lame | Self::Silent => ExtendedError { code: 22, text: "" },
            Self::Busy => ExtendedError { code: 0, text: "too many upstream queries in progress" },
        }
    }
}

/// Whether a server is expected to answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reliability {
    Reliable,
    /// The server timed out repeatedly.
    Silent,
    /// IPv4 or IPv6 seems to be unreachable.
    Suspected,
}

/// The rank of a candidate; the lowest is selected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    reliability: Reliability,
    /// Queries of this question to the server.
    attempts: u8,
    /// The drawn time in microseconds.
    time_us: u64,
}

/// What is known of a candidate.
enum Standing {
    Usable(Rank),
    Lame(Rank),
    Silent,
    Busy,
}

/// The result of looking at the candidates.
#[derive(Default)]
struct Choice {
    best: Option<(Rank, SocketAddr)>,
    best_lame: Option<(Rank, SocketAddr)>,
    /// Number of candidates for a random choice, and the one that was chosen so far.
    explorable: u64,
    explored: Option<SocketAddr>,
    has_tried_lame: bool,
    has_silent: bool,
    has_busy: bool,
}

impl ServerTable {
    /// Selects a server for a query. `candidates`: the addresses of the servers of the zone. `tried`:
    /// the servers that got the same question over the same transport before, with the number of
    /// queries; a server gets at most three. `random`: 64 unpredictable bits.
    ///
    /// A server that is lame is selected only if no other server is left, and no lame server was
    /// tried: a server may also refuse a query because of its type.
    ///
    /// # Errors
    /// If no server is left, the most temporary reason.
    pub fn select(
        &self,
        candidates: &[SocketAddr],
        tried: &[(SocketAddr, u8)],
        purpose: Purpose,
        now: Now,
        random: u64,
    ) -> Result<SocketAddr, NoServer> {
        let now = self.milliseconds(now.instant);
        let mut choice = Choice::default();
        for (index, &server) in candidates.iter().enumerate() {
            let attempts =
                tried.iter().find(|(address, _)| *address == server).map_or(0, |(_, count)| *count);
            let draw = mix(random.wrapping_add(mix(index as u64)));
            let standing = self.standing(server, attempts, purpose, now, draw);
            choice.include(server, &standing, attempts, draw);
        }
        choice.result(mix(random).is_multiple_of(EXPLORE_ONE_IN))
    }

    fn standing(&self, server: SocketAddr, attempts: u8, purpose: Purpose, now: u64, draw: u64) -> Standing {
        let place = self.place(server);
        let is_suspected = self.family(&place).is_suspected(now);
        let shard = self.lock(&place);
        let entry = shard.server(&place, now);
        if self.in_flight.count(place.hash) >= self.in_flight_limit(entry, now) {
            return Standing::Busy;
        }
        let purpose = purpose.adapt(entry.is_some_and(|entry| entry.prefers_tcp(now)));
        let has_paths = entry.is_some_and(|entry| entry.has_paths);
        let path = if has_paths { shard.path(&place, purpose.zone, now) } else { None };
        if path.is_some_and(|path| path.silence(purpose.kind, purpose.transport).is_barred(now)) {
            return Standing::Silent;
        }
        let silent = count_silent(entry, path, purpose, now);
        let reliability = match silent {
            _ if is_suspected => Reliability::Suspected,
            UNRELIABLE_AFTER.. => Reliability::Silent,
            _ => Reliability::Reliable,
        };
        let rtt = entry.map(|entry| entry.rtt).unwrap_or_default();
        let rank = Rank { reliability, attempts, time_us: draw_time(&rtt, silent, now, draw) };
        if path.is_some_and(|path| path.is_lame(now)) { Standing::Lame(rank) } else { Standing::Usable(rank) }
    }
}

/// Draws the time in which a server is expected to answer, in microseconds. After timeouts, it is up
/// to the next timeout.
fn draw_time(rtt: &Rtt, silent: u8, now: u64, draw: u64) -> u64 {
    let (low, high) = match silent {
        0 => rtt.expected_us(now),
        _ => {
            let timeout = u32::try_from(rtt.timeout(silent, now).as_micros()).unwrap_or(u32::MAX);
            (timeout / 2, timeout)
        }
    };
    // The upper 32 bits are a fraction of the width.
    let offset = ((draw >> 32) * u64::from(high.saturating_sub(low))) >> 32;
    u64::from(low) + offset
}

impl Choice {
    fn include(&mut self, server: SocketAddr, standing: &Standing, attempts: u8, draw: u64) {
        match standing {
            Standing::Lame(_) if attempts > 0 => self.has_tried_lame = true,
            _ if attempts >= ATTEMPTS_MAX => {}
            Standing::Lame(rank) => keep_lower(&mut self.best_lame, *rank, server),
            Standing::Silent => self.has_silent = true,
            Standing::Busy => self.has_busy = true,
            Standing::Usable(rank) => {
                keep_lower(&mut self.best, *rank, server);
                if attempts == 0 && rank.reliability != Reliability::Suspected {
                    // Each of n servers is chosen with the probability 1/n.
                    self.explorable += 1;
                    if mix(draw).is_multiple_of(self.explorable) {
                        self.explored = Some(server);
                    }
                }
            }
        }
    }

    fn result(self, explores: bool) -> Result<SocketAddr, NoServer> {
        if let Some(server) = self.explored.filter(|_| explores) {
            return Ok(server);
        }
        if let Some((_, server)) = self.best {
            return Ok(server);
        }
        match self.best_lame {
            _ if self.has_busy => Err(NoServer::Busy),
            _ if self.has_silent => Err(NoServer::Silent),
            _ if self.has_tried_lame => Err(NoServer::Lame),
            Some((_, server)) => Ok(server),
            None => Err(NoServer::Tried),
        }
    }
}

fn keep_lower(best: &mut Option<(Rank, SocketAddr)>, rank: Rank, server: SocketAddr) {
    if best.is_none_or(|(lowest, _)| rank < lowest) {
        *best = Some((rank, server));
    }
}
