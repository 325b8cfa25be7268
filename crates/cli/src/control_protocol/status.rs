//! The status of a server and of its zones.

pub(crate) use nonesuch_authoritative::service::ActivityStatus as Activity;

use nonesuch_authoritative::service::{ServiceStatus, ZoneStatus};
use nonesuch_secondary::notify::{LastNotify, LastQuery, LastTransfer, SecondaryStatus};
use nonesuch_secondary::{FailingPrimary, RefreshState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The response to `status` of a resolver.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ResolverStatus {
    /// [`super::VERSION`].
    pub(crate) protocol: u32,
    /// Version of the program.
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) up_seconds: u64,
    pub(crate) configuration: Option<PathBuf>,
    pub(crate) control_socket: Option<PathBuf>,
    pub(crate) listen: Vec<SocketAddr>,
    /// Absent in the response of earlier releases.
    #[serde(default)]
    pub(crate) listen_tls: Vec<SocketAddr>,
    pub(crate) datagrams_in: u64,
    pub(crate) datagrams_out: u64,
    /// Settings that take effect at the next start.
    pub(crate) needs_restart: Vec<String>,
    pub(crate) refused_configuration: Option<RefusedConfiguration>,
    pub(crate) cache: CacheStatus,
    pub(crate) upstream: UpstreamStatus,
    pub(crate) validation: ValidationStatus,
    pub(crate) cost_model: CostModelStatus,
}

/// The cache of a resolver.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CacheStatus {
    pub(crate) entries: u64,
    pub(crate) octets: u64,
    /// Maximum of `octets`.
    pub(crate) octets_max: u64,
    /// Lookups with and without data; a query needs several.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// The queries of a resolver to servers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UpstreamStatus {
    pub(crate) queries: u64,
    pub(crate) responses: u64,
    /// Open sockets and connections.
    pub(crate) open: u64,
}

/// The validation of a resolver.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ValidationStatus {
    /// Apexes of the zones with trust anchors; empty if the resolver does not validate.
    pub(crate) anchors: Vec<String>,
    /// Keys of the zones whose trust anchors are updated automatically.
    pub(crate) keys: Vec<ManagedKeyStatus>,
    /// Absent in the response of earlier releases.
    #[serde(default)]
    pub(crate) negative_anchors: Vec<NegativeAnchorStatus>,
    /// Zones whose place in the chain of trust is known, and the memory of their keys.
    pub(crate) zones: u64,
    pub(crate) octets: u64,
    /// Denial records that answer queries for other names, and the answers that they gave.
    pub(crate) denials: u64,
    pub(crate) denial_answers: u64,
}

/// A key of a zone whose trust anchors are updated automatically.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ManagedKeyStatus {
    pub(crate) zone: String,
    pub(crate) tag: u16,
    /// The number of the algorithm.
    pub(crate) algorithm: u8,
    pub(crate) state: String,
    /// The time when it entered the state, in seconds since 1970.
    pub(crate) since: u64,
}

/// A negative trust anchor (RFC 7646).
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NegativeAnchorStatus {
    pub(crate) zone: String,
    /// Its end, in seconds since 1970.
    pub(crate) until: Option<u64>,
    /// Whether it ends earlier if the zone validates again.
    pub(crate) recheck: bool,
    /// Whether it is in the configuration.
    pub(crate) configured: bool,
}

/// The counters of the resolver cost model.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CostModelStatus {
    /// Since the start.
    pub(crate) total: CostModelSecond,
    /// In each of the last seconds, the earliest first.
    pub(crate) seconds: Vec<CostModelSecond>,
}

/// The work in a second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CostModelSecond {
    /// The end of the second, in seconds since 1970.
    pub(crate) unix: u64,
    /// Queries to servers, and those over TCP.
    pub(crate) queries: u64,
    pub(crate) tcp_queries: u64,
    /// Responses, those that are truncated, and those with a signature.
    pub(crate) responses: u64,
    pub(crate) truncated: u64,
    pub(crate) signed_responses: u64,
    /// Octets of all responses. Absent in the response of earlier releases.
    #[serde(default)]
    pub(crate) response_octets: Option<u64>,
    /// Signatures in responses, by algorithm number.
    pub(crate) signatures: BTreeMap<u8, u64>,
    /// Verified signatures, by algorithm number.
    pub(crate) verified: BTreeMap<u8, u64>,
}

/// The response to `status` of an authoritative server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ServerStatus {
    /// [`super::VERSION`]; servers of earlier releases omit it.
    #[serde(default)]
    pub(crate) protocol: u32,
    /// Version of the program.
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) up_seconds: u64,
    pub(crate) configuration: Option<PathBuf>,
    pub(crate) control_socket: Option<PathBuf>,
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) listen_tls: Vec<SocketAddr>,
    pub(crate) datagrams_in: u64,
    pub(crate) datagrams_out: u64,
    /// Settings that take effect at the next start.
    pub(crate) needs_restart: Vec<String>,
    pub(crate) refused_configuration: Option<RefusedConfiguration>,
    pub(crate) refresh_failures: RefreshFailures,
    pub(crate) transfers_in: Vec<TransferIn>,
    pub(crate) transfers_out: Vec<TransferOut>,
    #[serde(flatten)]
    pub(crate) service: ServiceStatus,
}

/// Listen addresses with their transports: those for UDP and TCP, and those for TLS.
pub(crate) fn addresses_text(plain: &[SocketAddr], tls: &[SocketAddr]) -> String {
    let list = |addresses: &[SocketAddr], over: &str| {
        let list: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        (!list.is_empty()).then(|| format!("{} ({over})", list.join(", ")))
    };
    let lists = [list(plain, "udp, tcp"), list(tls, "tls")];
    lists.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The configuration that was read last, if it was rejected.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RefusedConfiguration {
    /// Time of the read, in seconds since 1970.
    pub(crate) at: u64,
    /// Why it was rejected, one line for each reason.
    pub(crate) problems: String,
}

/// The zones with failing refreshes.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RefreshFailures {
    /// Number of zones.
    pub(crate) count: usize,
    /// The first of them in the order of expiry.
    pub(crate) zones: Vec<RefreshFailure>,
}

/// A zone with failing refreshes. Times are in seconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RefreshFailure {
    pub(crate) zone: String,
    pub(crate) state: RefreshState,
    /// The primary that has failed for the longest time.
    pub(crate) primary: Option<SocketAddr>,
    pub(crate) since: Option<u64>,
    pub(crate) error: Option<String>,
    pub(crate) next_refresh: Option<u64>,
    pub(crate) expires: Option<u64>,
}

/// An incoming transfer in progress.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TransferIn {
    pub(crate) zone: String,
    pub(crate) primary: String,
    pub(crate) octets: u64,
    pub(crate) records: u64,
    /// Start time, in seconds since 1970.
    pub(crate) since: u64,
}

/// An outgoing transfer in progress.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TransferOut {
    pub(crate) zone: String,
    pub(crate) client: String,
    pub(crate) octets: u64,
    pub(crate) messages: u64,
    pub(crate) records: u64,
}

/// A line of the response to `zone-status`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneReport {
    #[serde(flatten)]
    pub(crate) status: ZoneStatus,
    /// The secondaries that the server notifies.
    pub(crate) secondaries: Vec<Secondary>,
    /// Only for a zone with primaries.
    #[serde(flatten)]
    pub(crate) refresh: Option<Refresh>,
}

/// The state of the refreshes of a zone. Times are in seconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refresh {
    pub(crate) primary: String,
    pub(crate) refresh_state: RefreshState,
    pub(crate) failing_primaries: Vec<FailingPrimary>,
    pub(crate) refreshed: Option<u64>,
    pub(crate) next_refresh: Option<u64>,
    pub(crate) expires: Option<u64>,
    pub(crate) transfer_error: Option<String>,
    pub(crate) rejected_serial: Option<u32>,
    pub(crate) behind: Vec<String>,
}

impl From<&nonesuch_secondary::ZoneStatus> for Refresh {
    fn from(zone: &nonesuch_secondary::ZoneStatus) -> Self {
        Self {
            primary: zone.primary.clone(),
            refresh_state: zone.state,
            failing_primaries: zone.failing.clone(),
            refreshed: zone.refreshed,
            next_refresh: zone.next,
            expires: zone.expires,
            transfer_error: zone.last_error.clone(),
            rejected_serial: zone.rejected,
            behind: zone.outdated_primaries.clone(),
        }
    }
}

/// A secondary that is notified of a zone.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Secondary {
    pub(crate) address: SocketAddr,
    pub(crate) notify: SecondaryNotify,
    pub(crate) query: Option<LastQuery>,
    pub(crate) transfer: Option<LastTransfer>,
}

/// The last NOTIFY to a secondary.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SecondaryNotify {
    pub(crate) result: String,
    pub(crate) serial: Option<u32>,
    /// In seconds since 1970.
    pub(crate) at: u64,
}

impl From<SecondaryStatus> for Secondary {
    fn from(status: SecondaryStatus) -> Self {
        let SecondaryStatus { address, notify: LastNotify { result, serial, at }, query, transfer } = status;
        Self { address, notify: SecondaryNotify { result: result.to_string(), serial, at }, query, transfer }
    }
}
