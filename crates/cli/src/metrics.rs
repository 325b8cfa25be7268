//! Metrics for Prometheus: `GET /metrics` over HTTP, on an address that the configuration names, in the form of OpenMetrics,
//! or in Prometheus' older text form where the client does not ask for it.
//!
//! A thread of its own answers. Connections are bounded in number and in time, and hold one request each, so that nobody
//! who reaches the address takes more than that from the server.

mod http;
pub(crate) mod manual;
mod process;
mod table;
mod text;

pub(crate) use http::{MetricsError, MetricsServer, bind};

use crate::logging::LogCounters;
use nonesuch_dnssec::online::OnlineCounters;
use nonesuch_net::tcp::TcpCounters;
use nonesuch_net::udp::UdpCounters;
use nonesuch_server::dnstap::DnstapCounters;
use nonesuch_server::statistics;
use std::net::TcpListener;

/// Zones up to which each has gauges of its own, by default.
pub(crate) const MOST_ZONES: usize = 1000;

/// The numbers of a server at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    /// What was asked and answered.
    pub(crate) statistics: statistics::StatisticsTotals,
    /// What was made when asked.
    pub(crate) online: OnlineCounters,
    /// Datagrams.
    pub(crate) udp: UdpCounters,
    /// Connections over TCP.
    pub(crate) tcp: TcpCounters,
    /// Connections over TLS, where it is listened for.
    pub(crate) tls: Option<TcpCounters>,
    /// dnstap, where it is written.
    pub(crate) tap: Option<DnstapCounters>,
    /// The zones.
    pub(crate) zones: Vec<ZoneRow>,
    /// Zones up to which each has gauges of its own: those of many zones would be more than a monitor can keep.
    pub(crate) most_zones: usize,
    /// Reloads of the configuration.
    pub(crate) reloads: Reloads,
    /// Lines of the log that were not written.
    pub(crate) log: LogCounters,
    /// The time, in seconds since 1970.
    pub(crate) now: u64,
}

/// What became of reloads. Times are in seconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reloads {
    /// Those that were done.
    pub(crate) done: u64,
    /// Those whose configuration was refused.
    pub(crate) refused: u64,
    /// Whether the last one is one of these.
    pub(crate) is_refused: bool,
    /// When the configuration was read last.
    pub(crate) last: u64,
    /// When the one that is in force was read.
    pub(crate) in_force_since: u64,
}

/// One zone.
#[derive(Clone, Debug, Default)]
pub(crate) struct ZoneRow {
    /// The apex in presentation form.
    pub(crate) zone: String,
    /// What becomes of queries for it: `serving`, `not-ready`, `expired`, `failed`.
    pub(crate) state: &'static str,
    /// The serial that is served.
    pub(crate) serial: Option<u32>,
    /// When it was loaded or transferred, in seconds since 1970.
    pub(crate) loaded_at: Option<u64>,
    /// When the first of its signatures expires, in seconds since 1970.
    pub(crate) nearest_expiration: Option<u64>,
    /// Records.
    pub(crate) records: Option<u64>,
    /// Whether its newest version was refused, or it is a catalog that is broken.
    pub(crate) is_refused: bool,
    /// Queries for names in it, where they are counted.
    pub(crate) queries: Option<u64>,
    /// Of a secondary zone: when its primaries were and are asked.
    pub(crate) refresh: Option<RefreshTimes>,
}

/// Times of a secondary zone, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RefreshTimes {
    /// The last successful refresh.
    pub(crate) refreshed: Option<u64>,
    /// The next refresh.
    pub(crate) next: Option<u64>,
    /// When the zone expires or expired.
    pub(crate) expires: Option<u64>,
}

/// Serves what `source` gives at the time of each request, on an address that was bound.
pub(crate) fn start(
    listener: TcpListener,
    source: impl Fn() -> Snapshot + Send + Sync + 'static,
) -> Result<MetricsServer, MetricsError> {
    process::note_start();
    MetricsServer::start(listener, source)
}

#[cfg(test)]
mod tests;
