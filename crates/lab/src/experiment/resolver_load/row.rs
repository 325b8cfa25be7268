//! A row of the data.

use super::measure::Reading;
use super::parameters::{LoadCase, ResolverCase, Surroundings};
use crate::conditions::Conditions;
use crate::load::LoadReport;
use crate::process::CpuTime;
use crate::testbed::{UpstreamCounts, ZoneServer};
use serde::Serialize;

/// The result of one load.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    /// Number of the round, starting at 0.
    pub(super) round: u32,
    /// Number of the load of the same resolver, starting at 0.
    pub(super) interval: u32,
    /// What happens to the resolver in one of its loads.
    pub(super) event: String,
    pub(super) resolver: String,
    /// `None` for an unsigned zone.
    pub(super) scheme: Option<String>,
    pub(super) denial: String,
    pub(super) signers: String,
    /// Server of the zones below the top-level domain.
    pub(super) zone_server: Option<ZoneServer>,
    pub(super) validation: u8,
    pub(super) dnssec_ok: u8,
    pub(super) aggressive: u8,
    pub(super) experimental: u8,
    pub(super) traffic: String,
    pub(super) outstanding: u32,
    /// Offered rate in queries per second; `None` for a closed loop.
    pub(super) rate: Option<f64>,
    pub(super) transport: String,
    pub(super) udp_octets: u16,
    pub(super) path: String,
    /// Round-trip time of the path in ms, lost packets in each direction in percent, path MTU.
    pub(super) path_rtt_ms: Option<f64>,
    pub(super) path_loss: Option<f64>,
    pub(super) path_mtu: Option<u16>,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) late: u64,
    pub(super) lost: u64,
    pub(super) unsent: u64,
    pub(super) noerror: u64,
    pub(super) nxdomain: u64,
    pub(super) servfail: u64,
    /// Share of the sampled responses with the flag AD.
    pub(super) authenticated: Option<f64>,
    /// Share of the sampled responses with NSEC3 records.
    pub(super) with_nsec3: Option<f64>,
    /// Responses over UDP to clients with the flag TC.
    pub(super) truncated: u64,
    pub(super) seconds: f64,
    pub(super) response_octets: Option<f64>,
    /// CPU time of the resolver for each response, in µs.
    pub(super) user_us: Option<f64>,
    pub(super) system_us: Option<f64>,
    /// CPU time of the authoritative servers for each response to a client, in µs.
    pub(super) servers_us: Option<f64>,
    pub(super) latency_mean_us: Option<f64>,
    pub(super) latency_p50_us: Option<f64>,
    pub(super) latency_p90_us: Option<f64>,
    pub(super) latency_p99_us: Option<f64>,
    pub(super) latency_max_us: Option<f64>,
    /// Share of the responses that arrived before a server could answer.
    pub(super) from_cache: Option<f64>,
    /// Memory of the resolver before and after the load, in KiB.
    pub(super) memory_before_kib: u64,
    pub(super) memory_kib: u64,
    /// Open sockets of the resolver after the load.
    pub(super) sockets: u64,
    #[serde(flatten)]
    pub(super) upstream: UpstreamCounts,
    #[serde(flatten)]
    pub(super) conditions: Conditions,
}

impl Row {
    /// Share of the queries without a response in time.
    pub(super) fn unanswered_share(&self) -> f64 {
        (self.late + self.lost + self.unsent) as f64 / (self.sent + self.unsent).max(1) as f64
    }

    /// The row without what the report of the load does not contain.
    pub(super) fn new(
        surroundings: &Surroundings,
        case: &ResolverCase,
        load: &LoadCase,
        report: &LoadReport,
        used: &Reading,
    ) -> Self {
        let path = surroundings.path.properties();
        let code = |rcode: &str| report.rcodes.get(rcode).copied().unwrap_or(0);
        let per_response = |us: u64| (report.received > 0).then(|| us as f64 / report.received as f64);
        let total = |time: CpuTime| time.user_us + time.system_us;
        let latency = report.latency_us;
        Self {
            event: load.event.to_string(),
            resolver: case.resolver.to_string(),
            scheme: surroundings.tree.scheme(),
            denial: surroundings.tree.publication.denial(),
            signers: surroundings.tree.signers.to_string(),
            zone_server: Some(surroundings.zone_server),
            validation: case.validates().into(),
            dnssec_ok: case.dnssec_ok().into(),
            aggressive: case.aggressive.into(),
            experimental: case.experimental.into(),
            traffic: load.traffic.to_string(),
            outstanding: load.outstanding,
            rate: load.rate,
            transport: load.transport.to_string(),
            udp_octets: case.udp_octets,
            path: surroundings.path.to_string(),
            path_rtt_ms: path.map(|(rtt, _)| rtt),
            path_loss: path.map(|(_, options)| 100.0 * options.loss),
            path_mtu: path.map(|(_, options)| options.mtu),
            sent: report.sent,
            received: report.received,
            late: report.late,
            lost: report.lost,
            unsent: report.unsent,
            noerror: code("NOERROR"),
            nxdomain: code("NXDOMAIN"),
            servfail: code("SERVFAIL"),
            truncated: report.truncated,
            seconds: report.seconds,
            response_octets: (report.received > 0).then_some(report.response_octets_mean),
            user_us: per_response(used.cpu.user_us),
            system_us: per_response(used.cpu.system_us),
            servers_us: per_response(total(used.servers_cpu)),
            latency_mean_us: latency.map(|latency| latency.mean),
            latency_p50_us: latency.map(|latency| latency.p50),
            latency_p90_us: latency.map(|latency| latency.p90),
            latency_p99_us: latency.map(|latency| latency.p99),
            latency_max_us: latency.map(|latency| latency.max),
            upstream: used.upstream,
            ..Self::default()
        }
    }
}
