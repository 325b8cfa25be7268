//! A row of the data.

use super::attack::Attack;
use super::measure::Measurement;
use super::probe::{Responses, Series};
use crate::conditions::Conditions;
use crate::load::LoadReport;
use crate::testbed::Resolver;
use nonesuch_proto::message::Header;
use serde::Serialize;

/// The result of a series of single queries or of a load.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    /// Number of the round, starting at 0.
    pub(super) round: u32,
    pub(super) attack: String,
    pub(super) resolver: String,
    pub(super) measurement: &'static str,
    /// 1: the queries of a series are outstanding at the same time.
    pub(super) at_once: u8,
    /// Hostile queries. In a series of cache hits, these are the hits.
    pub(super) queries: u64,
    #[serde(flatten)]
    pub(super) responses: Responses,
    /// CPU time of a query of a series, in µs.
    pub(super) cpu_us: Option<f64>,
    pub(super) cpu_max_us: Option<f64>,
    /// Duration of the hostile load, in seconds.
    pub(super) hostile_seconds: Option<f64>,
    /// Queries of the other clients.
    pub(super) others_sent: Option<u64>,
    /// Queries of the other clients without a response in time.
    pub(super) others_unanswered: Option<u64>,
    pub(super) others_p50_us: Option<f64>,
    pub(super) others_p99_us: Option<f64>,
    pub(super) others_max_us: Option<f64>,
    /// Sampled responses to the other clients without the flag AD.
    pub(super) others_insecure: Option<u64>,
    #[serde(flatten)]
    pub(super) conditions: Conditions,
}

impl Row {
    pub(super) fn new(attack: &Attack, resolver: Resolver, measurement: Measurement) -> Self {
        Self {
            attack: attack.to_string(),
            resolver: resolver.to_string(),
            measurement: measurement.name(),
            ..Self::default()
        }
    }

    pub(super) fn with_series(self, series: &Series, at_once: bool) -> Self {
        let Series { queries, cpu_us, cpu_max_us, responses } = *series;
        Self { at_once: at_once.into(), queries, cpu_us, cpu_max_us, responses, ..self }
    }

    pub(super) fn with_hostile(self, report: &LoadReport) -> Self {
        let code = |rcode: &str| report.rcodes.get(rcode).copied().unwrap_or(0);
        let [noerror, nxdomain, servfail] = ["NOERROR", "NXDOMAIN", "SERVFAIL"].map(code);
        let mut responses = Responses {
            noerror,
            nxdomain,
            servfail,
            other: report.rcodes.values().sum::<u64>().saturating_sub(noerror + nxdomain + servfail),
            unanswered: report.lost + report.late,
            ..Responses::default()
        };
        headers(report).for_each(|header| responses.count_flags(header));
        Self { queries: report.sent, responses, hostile_seconds: Some(report.seconds), ..self }
    }

    pub(super) fn with_others(self, report: &LoadReport) -> Self {
        let latency = report.latency_us;
        let mut flags = Responses::default();
        headers(report).for_each(|header| flags.count_flags(header));
        Self {
            others_sent: Some(report.sent + report.unsent),
            others_unanswered: Some(report.lost + report.late + report.unsent),
            others_p50_us: latency.map(|latency| latency.p50),
            others_p99_us: latency.map(|latency| latency.p99),
            others_max_us: latency.map(|latency| latency.max),
            others_insecure: Some(flags.sampled - flags.authenticated),
            conditions: Conditions { others_cpu: report.others_cpu, limited_by: report.limited_by },
            ..self
        }
    }
}

fn headers(report: &LoadReport) -> impl Iterator<Item = Header> {
    report.samples.iter().filter_map(|sample| Header::read(sample))
}
