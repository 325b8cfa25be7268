//! The configuration that a scenario expects of the resolver.

use super::Dialect;
use nonesuch_proto::{Name, Rtype};
use std::net::SocketAddr;

/// The configuration that a scenario expects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioSettings {
    /// The dialect. Defaults below are those of its program.
    pub dialect: Dialect,
    /// The root servers; empty: the built-in ones. From Deckard's `stub-addr` and `stub-name`.
    pub root_servers: Vec<(Name, SocketAddr)>,
    /// Trust anchors. Without one, the resolver does not validate.
    pub trust_anchors: Vec<TrustAnchor>,
    /// Names below which nothing is validated (`domain-insecure`).
    pub insecure_domains: Vec<Name>,
    /// UNIX time at the start in seconds (`val-override-date`, `val-override-timestamp`).
    pub unix_time: Option<u64>,
    /// QNAME minimisation. `None`: the scenario has to pass with and without it.
    pub qname_minimisation: Option<bool>,
    /// Whether to query servers over IPv4.
    pub uses_ipv4: bool,
    /// Whether to query servers over IPv6.
    pub uses_ipv6: bool,
    /// Whether to query loopback addresses (`do-not-query-localhost: no`).
    pub queries_loopback: bool,
    /// Whether to check glue strictly (`harden-glue`).
    pub hardens_glue: bool,
    /// Whether replies have only the necessary records (`minimal-responses`); `None`: not stated.
    pub minimal_responses: Option<bool>,
    /// Minimum TTL in the cache in seconds.
    pub minimum_ttl: Option<u32>,
    /// Maximum TTL in the cache in seconds.
    pub maximum_ttl: Option<u32>,
    /// Stub zones: the servers are authoritative for the zone.
    pub stub_zones: Vec<ZoneServers>,
    /// Forward zones: the servers are resolvers.
    pub forward_zones: Vec<ZoneServers>,
    /// All other options, in the order of the file: features of Deckard (key `features` and
    /// `feature-list`) and options of Unbound.
    pub other_options: Vec<OtherOption>,
}

impl ScenarioSettings {
    /// Returns the defaults of a dialect.
    pub(super) const fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            root_servers: Vec::new(),
            trust_anchors: Vec::new(),
            insecure_domains: Vec::new(),
            unix_time: None,
            qname_minimisation: match dialect {
                Dialect::Deckard => None,
                Dialect::Unbound => Some(true),
            },
            uses_ipv4: true,
            uses_ipv6: true,
            queries_loopback: false,
            hardens_glue: true,
            minimal_responses: None,
            minimum_ttl: None,
            maximum_ttl: None,
            stub_zones: Vec::new(),
            forward_zones: Vec::new(),
            other_options: Vec::new(),
        }
    }
}

/// Options of Unbound that do not change replies, or that concern only Unbound's tests.
const WITHOUT_EFFECT: [&str; 10] = [
    "fake-sha1",
    "iter-scrub-promiscuous",
    "log-servfail",
    "log-time-ascii",
    "num-threads",
    "outbound-msg-retry",
    "rrset-roundrobin",
    "target-fetch-policy",
    "trust-anchor-signaling",
    "verbosity",
];

impl ScenarioSettings {
    /// Returns the other options that may change replies. A resolver that has none of them cannot run
    /// the scenario.
    pub fn special_options(&self) -> impl Iterator<Item = &OtherOption> {
        self.other_options.iter().filter(|option| !WITHOUT_EFFECT.contains(&option.key.as_str()))
    }
}

/// A trust anchor: a DS or DNSKEY record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAnchor {
    /// The apex of the zone.
    pub owner: Name,
    /// DS or DNSKEY.
    pub rtype: Rtype,
    /// RDATA.
    pub rdata: Vec<u8>,
}

/// The servers of a stub zone or forward zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneServers {
    /// The apex of the zone.
    pub zone: Name,
    /// Addresses of the servers.
    pub addresses: Vec<SocketAddr>,
    /// Names of the servers.
    pub hosts: Vec<Name>,
    /// Whether the resolver asks the servers for the NS records of the zone first (`stub-prime`).
    pub is_primed: bool,
    /// Whether the resolver resolves without these servers if they fail (`stub-first`,
    /// `forward-first`).
    pub has_fallback: bool,
}

/// An option that has no field in [`ScenarioSettings`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherOption {
    /// The clause of Unbound's configuration, such as `server`; empty in Deckard's dialect.
    pub clause: String,
    /// The option.
    pub key: String,
    /// The value without quotation marks.
    pub value: String,
    /// The line of the file.
    pub line: u32,
}
