//! Metrics for Prometheus: `GET /metrics` over HTTP, on an address in the configuration. The format
//! is OpenMetrics, or the older Prometheus text format if the client does not request OpenMetrics.
//!
//! A separate thread responds. The number of connections and their duration are limited, and each
//! connection serves one request, so that a client that can reach the address can use only these
//! resources of the server.

mod http;
pub(crate) mod manual;
mod process;
mod table;
mod text;

pub(crate) use http::{MetricsError, MetricsServer, bind};

use crate::logging::LogCounters;
use nonesuch_dnssec::online::OnlineCounters;
use nonesuch_net::event_loop::UpstreamCounters;
use nonesuch_net::tcp::TcpCounters;
use nonesuch_net::udp::UdpCounters;
use nonesuch_resolver::cache::CacheStatistics;
use nonesuch_resolver::{DenialStatistics, ModelTotals, ServerTableStatistics};
use nonesuch_server::dnstap::DnstapCounters;
use nonesuch_server::statistics;
use std::net::TcpListener;

/// Default of the maximum number of zones with per-zone gauges.
pub(crate) const DEFAULT_MAX_ZONES: usize = 1000;

/// The values of a server at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// Counters of queries and responses.
    pub(crate) statistics: statistics::StatisticsTotals,
    /// Counters of online work.
    pub(crate) online: OnlineCounters,
    /// Counters of datagrams.
    pub(crate) udp: UdpCounters,
    /// Counters of connections over TCP.
    pub(crate) tcp: TcpCounters,
    /// Counters of connections over TLS, if the server listens for them.
    pub(crate) tls: Option<TcpCounters>,
    /// Counters of dnstap, if it is in use.
    pub(crate) dnstap: Option<DnstapCounters>,
    /// The zones.
    pub(crate) zones: Vec<ZoneRow>,
    /// Maximum number of zones with per-zone gauges. With more zones, no zone has gauges, because a
    /// monitoring system could not store them all.
    pub(crate) max_zones_with_gauges: usize,
    /// Reloads of the configuration.
    pub(crate) reloads: Reloads,
    /// Counters of a resolver; `None` for an authoritative server.
    pub(crate) resolver: Option<ResolverCounters>,
    /// Log lines that were not written.
    pub(crate) log: LogCounters,
    /// The current time, in seconds since 1970.
    pub(crate) now: u64,
}

/// The counters and gauges of a resolver.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResolverCounters {
    pub(crate) cache: CacheStatistics,
    pub(crate) servers: ServerTableStatistics,
    /// Queries to servers.
    pub(crate) upstream: UpstreamCounters,
    /// The counters of the cost model.
    pub(crate) model: ModelTotals,
    /// Denial records for aggressive use.
    pub(crate) denials: DenialStatistics,
    /// Negative trust anchors.
    pub(crate) negative_anchors: u64,
    /// Zones whose place in the chain of trust is known.
    pub(crate) secure_zones: u64,
    /// Datagrams of clients that were discarded because too many queries were in progress.
    pub(crate) discarded_queries: u64,
}

/// The results of reloads of the configuration. Times are in seconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reloads {
    /// Number of successful reloads.
    pub(crate) succeeded: u64,
    /// Number of reloads with a rejected configuration.
    pub(crate) rejected: u64,
    /// Whether the last reload was rejected.
    pub(crate) is_last_rejected: bool,
    /// Time when a configuration was read last.
    pub(crate) last_read_at: u64,
    /// Time when the configuration in use was read.
    pub(crate) in_use_since: u64,
}

/// One zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZoneRow {
    /// The apex in presentation format.
    pub(crate) zone: String,
    /// The state: `serving`, `not-ready`, `expired`, `failed`.
    pub(crate) state: &'static str,
    /// The served serial.
    pub(crate) serial: Option<u32>,
    /// Time when the zone was loaded or transferred, in seconds since 1970.
    pub(crate) loaded_at: Option<u64>,
    /// Time when the first signature of the zone expires, in seconds since 1970.
    pub(crate) nearest_expiration: Option<u64>,
    /// Number of records.
    pub(crate) records: Option<u64>,
    /// Whether the newest version of the zone was rejected, or the zone is a broken catalog.
    pub(crate) is_rejected: bool,
    /// Queries for names in the zone, if they are counted.
    pub(crate) queries: Option<u64>,
    /// Times of refreshes, for a secondary zone.
    pub(crate) refresh: Option<RefreshTimes>,
}

/// Times of a secondary zone, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RefreshTimes {
    /// The last successful refresh.
    pub(crate) refreshed: Option<u64>,
    /// The next refresh.
    pub(crate) next: Option<u64>,
    /// Time when the zone expires or expired.
    pub(crate) expires: Option<u64>,
}

/// Serves metrics at a bound address. `source` is called for each request.
pub(crate) fn start(
    listener: TcpListener,
    source: impl Fn() -> Snapshot + Send + Sync + 'static,
) -> Result<MetricsServer, MetricsError> {
    process::record_start();
    MetricsServer::start(listener, source)
}

#[cfg(test)]
mod tests;
