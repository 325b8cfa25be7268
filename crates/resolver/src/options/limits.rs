//! Limits of queries, timeouts and TTLs.

use super::OptionsError;
use super::error::{check, check_duration, check_order};
use crate::budget::UpstreamLimits;
use nonesuch_server::acl::Prefix;
use nonesuch_server::limits::ClientPrefixes;
use std::net::IpAddr;
use std::time::Duration;

/// Maximum of [`TtlBounds::max`], in seconds: a week (RFC 8767 §4).
pub const MAX_TTL: u32 = 604_800;

/// Limits of the queries of clients that are not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientLimits {
    /// Maximum number of concurrent client queries of one worker.
    pub queries: u32,
    /// Maximum number of them from one client network that is not exempt.
    pub queries_each: u32,
    /// Prefix length in bits that makes IPv4 addresses one client network.
    pub ipv4_prefix: u8,
    /// Prefix length in bits that makes IPv6 addresses one client network, at most 64.
    pub ipv6_prefix: u8,
    /// Networks to which `queries_each` does not apply. The default is loopback, because a forwarder
    /// on this host sends the queries of many clients.
    pub exempt: Vec<Prefix>,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            queries: 10_000,
            queries_each: 1_000,
            ipv4_prefix: 32,
            ipv6_prefix: 56,
            exempt: Prefix::loopback(),
        }
    }
}

impl ClientLimits {
    pub(super) fn check(&self) -> Result<(), OptionsError> {
        check("client-queries", self.queries, 1..=1_000_000, "queries")?;
        check("client-queries-each", self.queries_each, 1..=1_000_000, "queries")?;
        check("client-ipv4-prefix", self.ipv4_prefix, 1..=32, "bits")?;
        check("client-ipv6-prefix", self.ipv6_prefix, 1..=64, "bits")?;
        let (each, all) = (self.queries_each.into(), self.queries.into());
        check_order(("client-queries-each", each), ("client-queries", all), "queries")
    }

    /// Returns the client networks.
    #[must_use]
    pub fn networks(&self) -> ClientPrefixes {
        ClientPrefixes::new(self.ipv4_prefix, self.ipv6_prefix)
    }

    /// Whether `queries_each` does not apply to this client.
    #[must_use]
    pub fn is_exempt(&self, client: IpAddr) -> bool {
        self.exempt.iter().any(|prefix| prefix.contains(client))
    }
}

/// Checks the limits of the work for one client query.
pub(super) fn check_upstream(limits: &UpstreamLimits) -> Result<(), OptionsError> {
    check("upstream-queries", limits.queries, 8..=1_000, "queries")?;
    check("alias-steps", limits.aliases, 1..=100, "steps")?;
    check("upstream-depth", limits.depth, 2..=100, "resolutions")?;
    // A response over TCP has up to 65,535 octets.
    check("upstream-octets", limits.octets, 65_536..=1 << 30, "octets")?;
    check("addresses-per-delegation", limits.address_fetches_per_delegation, 1..=64, "resolutions")?;
    check("addresses-per-query", limits.address_fetches, 1..=1_000, "resolutions")?;
    check_duration("query-time", limits.time, Duration::from_secs(1)..=Duration::from_secs(60))?;
    let (each, all) = (limits.address_fetches_per_delegation.into(), limits.address_fetches.into());
    check_order(("addresses-per-delegation", each), ("addresses-per-query", all), "resolutions")
}

/// Bounds of the TTLs of cached data, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlBounds {
    /// Minimum of all TTLs. Above 0, the resolver keeps data longer than their zone permits.
    pub min: u32,
    /// Maximum of TTLs of RRsets.
    pub max: u32,
    /// Maximum of TTLs of negative answers (RFC 2308 §5).
    pub negative_max: u32,
}

impl Default for TtlBounds {
    fn default() -> Self {
        Self { min: 0, max: 86_400, negative_max: 3600 }
    }
}

impl TtlBounds {
    /// Returns the TTL with which an RRset is cached. A TTL with the highest bit set counts as 0
    /// (RFC 2181 §8).
    #[must_use]
    pub fn clamp(&self, ttl: u32) -> u32 {
        bound(ttl, self.min, self.max)
    }

    /// Returns the TTL with which a negative answer is cached.
    #[must_use]
    pub fn clamp_negative(&self, ttl: u32) -> u32 {
        bound(ttl, self.min, self.negative_max)
    }

    pub(super) fn check(&self) -> Result<(), OptionsError> {
        check("ttl-max", self.max, 0..=MAX_TTL, "s")?;
        check("ttl-min", self.min, 0..=3600, "s")?;
        check("negative-ttl-max", self.negative_max, 0..=86_400, "s")?;
        let min = ("ttl-min", u64::from(self.min));
        check_order(min, ("ttl-max", self.max.into()), "s")?;
        check_order(min, ("negative-ttl-max", self.negative_max.into()), "s")
    }
}

fn bound(ttl: u32, min: u32, max: u32) -> u32 {
    let ttl = if ttl > i32::MAX as u32 { 0 } else { ttl };
    // Not `clamp`, which panics if the bounds contradict each other.
    ttl.max(min).min(max)
}
