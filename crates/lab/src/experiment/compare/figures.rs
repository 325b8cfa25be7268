//! The results of a comparison: the format of `compare.json`, and the report. The fields of the
//! structures are the fields of the JSON file. Octets are those of text in zone files, and of the
//! wire format in messages.

use super::decision::{Alternative, Decision};
use super::summary::{summarise_exclusions, summarise_notes};
use super::{Combination, CompareError, ComparedZone, JSON_FILE};
use crate::conditions::Limit;
use crate::experiment::parameters::QueriedNames;
use crate::load::ValidationCounts;
use crate::measure::ZoneCounts;
use crate::measure::zone_preparation::OperationCost;
use crate::presentation::{Presentation, Scope};
use crate::record::RunRecord;
use crate::report::Attachment;
use crate::statistics::ValueRange;
use minijinja::value::{Serde, Value};
use nonesuch_zone::write::text_octets;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Version of the format of `compare.json`. In version 1, notes of rows are sentences.
pub(super) const FORMAT: u32 = 2;

const TEXT: &str = include_str!("../../../../../experiments/compare.toml");

/// The presentation. It is empty if the built-in text is invalid; a test excludes this case.
static PRESENTATION: LazyLock<Presentation> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// The results of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Version of the format: [`FORMAT`].
    pub(super) format: u32,
    #[serde(flatten)]
    pub(super) run: RunRecord,
    /// Duration of the load for each kind of query and round, in seconds.
    pub(super) seconds_per_load: f64,
    /// Number of loads for each kind of query.
    pub(super) rounds: u32,
    pub(super) zone: ZoneInfo,
    /// Decision for the needs of the zone owner.
    pub(super) decision: Decision,
    /// Decisions for one more need.
    pub(super) alternatives: Vec<Alternative>,
    /// One row for each combination, in their order.
    pub(super) rows: Vec<Row>,
    /// Conditions that affect how far the figures can be trusted.
    pub(super) notes: Vec<String>,
}

impl Comparison {
    /// Returns the content of `compare.json`, with a final line break.
    ///
    /// # Errors
    /// Fails with [`CompareError::Json`]; no comparison is known to cause this error.
    pub fn to_json(&self) -> Result<String, CompareError> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns the table for a terminal of 120 columns, with its legend and all notes.
    ///
    /// # Errors
    /// Fails with [`CompareError::Report`]; no comparison is known to cause this error.
    pub fn table(&self) -> Result<String, CompareError> {
        Ok(PRESENTATION.report(self.scope()?)?.text)
    }

    /// Returns the HTML page.
    ///
    /// # Errors
    /// Fails as [`Comparison::table`] does.
    pub fn page(&self) -> Result<String, CompareError> {
        let octets = self.to_json()?.into_bytes();
        let data = Attachment { name: JSON_FILE.to_owned(), media_type: "application/json", octets };
        Ok(PRESENTATION.page(&self.scope()?, data)?)
    }

    /// Returns the variables of the presentation: each field by its name, and the whole comparison
    /// as `record`. `causes` are the notes of the rows by cause, `exclusions` those of the decision.
    fn scope(&self) -> Result<Scope, CompareError> {
        let record = serde_json::to_value(self)?;
        let fields = record.as_object().into_iter().flatten();
        let mut scope: Scope =
            fields.map(|(name, value)| (name.clone(), Value::from(Serde(value)))).collect();
        scope.insert("record".to_owned(), Value::from(Serde(record)));
        scope.insert("causes".to_owned(), Value::from(Serde(summarise_notes(&self.rows))));
        let exclusions = summarise_exclusions(&self.decision.excluded, &self.rows);
        scope.insert("exclusions".to_owned(), Value::from(Serde(exclusions)));
        Ok(scope)
    }
}

/// Description of the unsigned zone.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ZoneInfo {
    #[serde(flatten)]
    pub(super) counts: ZoneCounts,
    /// Zone file, or the properties of a generated zone.
    pub(super) source: String,
    /// Size as text.
    pub(super) octets: u64,
}

impl ZoneInfo {
    pub(super) fn of(zone: &ComparedZone) -> Self {
        let ComparedZone { contents, source, .. } = zone;
        let (counts, octets) = (ZoneCounts::of(contents), text_octets(contents));
        Self { counts, source: source.clone(), octets }
    }
}

/// Figures of one combination. For the unsigned zone, the fields about DNSSEC are `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Row {
    /// Mnemonic of the algorithm.
    pub(super) algorithm: Option<String>,
    /// DNSSEC algorithm number.
    pub(super) algorithm_number: Option<u8>,
    /// Key length in bits; `None` if the algorithm has only one.
    pub(super) bits: Option<u16>,
    /// Denial mechanism, with its name on the command line.
    pub(super) denial: Option<String>,
    /// Names that a client can learn from denials: `zone-walk`, `dictionary` or `impossible`.
    pub(super) enumeration: Option<&'static str>,
    /// Whether an attacker with all data of a server can forge data of the zone.
    pub(super) stolen_server_can_forge: Option<bool>,
    pub(super) signing: Option<OperationCost>,
    pub(super) verification: Option<OperationCost>,
    /// Size of the served zone as text.
    pub(super) zone_octets: u64,
    /// Number of records of the served zone.
    pub(super) records: u64,
    /// Resident memory of the server after the load; `None` if the system does not provide it.
    pub(super) server_resident_kib: Option<u64>,
    /// Time from the start of the server until it listens, which includes reading the zone.
    pub(super) ready_s: f64,
    /// The response with the keys of the zone.
    pub(super) dnskey: Option<DnskeyResponse>,
    /// Results of the validation of sampled responses.
    pub(super) validation: Option<ValidationCounts>,
    /// Results with queries for existing names.
    pub(super) existing: LoadFigures,
    /// Results with queries for names that do not exist.
    pub(super) denied: LoadFigures,
    /// Conditions that affect how far the figures of this row can be trusted.
    pub(super) notes: Vec<Note>,
}

/// The response to a query for the DNSKEY RRset, with DO and a payload size of 1232 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct DnskeyResponse {
    /// Size of the complete DNS message in octets: over UDP, or over TCP after a truncated response.
    pub(super) octets: u64,
    /// Whether the response over UDP was truncated.
    pub(super) truncated: bool,
}

/// A condition that affects how far figures can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Note {
    #[serde(flatten)]
    pub(super) cause: NoteCause,
    /// The queries that are affected; `None`: all.
    pub(super) names: Option<QueriedNames>,
    /// Share of the queries, responses or time.
    pub(super) percent: Option<f64>,
}

/// Causes of notes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "cause", content = "rcode")]
pub(super) enum NoteCause {
    /// Queries were lost. The percentage is that of the queries.
    Lost,
    /// Responses were truncated. The percentage is that of the responses.
    Truncated,
    /// Queries were answered with this response code, which is not the expected one.
    Rcode(String),
    /// The CPU of the server was busy for this percentage of the time, so the server was not fully
    /// loaded.
    Idle,
    /// The server could not be bound to a separate CPU.
    NotPinned,
}

impl Note {
    pub(super) const fn new(cause: NoteCause, names: Option<QueriedNames>, percent: Option<f64>) -> Self {
        Self { cause, names, percent }
    }
}

impl Row {
    /// Returns the results with queries for `names`.
    pub(super) fn load(&self, names: QueriedNames) -> &LoadFigures {
        if names == QueriedNames::Existing { &self.existing } else { &self.denied }
    }

    /// Creates the row of a combination, without figures.
    pub(super) fn of(combination: Combination) -> Self {
        let Combination::Signed(choice, mechanism) = combination else { return Self::default() };
        Self {
            algorithm: Some(choice.algorithm.to_string()),
            algorithm_number: Some(choice.algorithm.0),
            bits: choice.bits,
            denial: Some(mechanism.to_string()),
            enumeration: Some(mechanism.entry().enumeration().name()),
            stolen_server_can_forge: Some(mechanism.entry().stolen_server_can_forge()),
            ..Self::default()
        }
    }
}

/// Results of all loads with one kind of query.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct LoadFigures {
    /// Number of queries sent.
    pub(super) queries: u64,
    /// Mean size of the DNS messages in the complete responses, in octets: over UDP, or over TCP
    /// after a truncated response.
    pub(super) response_octets_mean: f64,
    /// Size of the longest response, in octets.
    pub(super) response_octets_max: u64,
    /// Responses per second: the median of the rounds.
    pub(super) qps: ValueRange,
    /// CPU time of the server for each query, over UDP and TCP together, in µs. `value` is the mean over the responses of
    /// all rounds, `least` and `most` are the lowest and highest mean of a round. `None` if the
    /// system does not provide the CPU time.
    pub(super) server_cpu_us_per_query: Option<ValueRange>,
    /// CPU time of the server divided by wall time. If it is near the number of the server's CPUs,
    /// the server was fully loaded. `None` if the system does not provide the CPU time.
    pub(super) server_cpus_busy: Option<f64>,
    /// Number of responses with TC set.
    pub(super) truncated: u64,
    /// Number of queries without a response before the timeout.
    pub(super) lost: u64,
    /// Number of responses by response code.
    pub(super) rcodes: BTreeMap<String, u64>,
    /// Mean size of the truncated responses, in octets; `None` if there are none.
    pub(super) truncated_octets_mean: Option<f64>,
    /// Share of the CPU time of all CPUs that others used, from 0 to 1: median of the rounds.
    pub(super) others_cpu: Option<ValueRange>,
    /// What limited each round.
    pub(super) limited_by: Vec<Option<Limit>>,
}

impl LoadFigures {
    /// Returns the share of truncated responses.
    fn truncated_share(&self) -> f64 {
        self.truncated as f64 / (self.queries - self.lost).max(1) as f64
    }

    /// Returns the mean number of octets that the server sends for a query: the truncated response,
    /// if there is one, and the complete response.
    pub(super) fn sent_octets_mean(&self) -> f64 {
        self.response_octets_mean + self.truncated_share() * self.truncated_octets_mean.unwrap_or_default()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::decision::{alternatives, decide};
    use super::*;
    use crate::machine::Machine;
    use crate::record::tests::sample as sample_run;

    use crate::measure::AlgorithmChoice;
    use nonesuch_crypto::Algorithm;
    use nonesuch_dnssec::Mechanism;

    /// Returns a row with fixed figures. The costs of serving and signing grow with `scale`.
    pub(crate) fn sample_row(combination: Combination, scale: f64) -> Row {
        let load = |scale: f64, rcode: &str| LoadFigures {
            queries: 300_000,
            response_octets_mean: 120.5 * scale,
            response_octets_max: (240.0 * scale) as u64,
            qps: ValueRange { value: 250_000.0 / scale, least: 240_000.0 / scale, most: 255_000.0 / scale },
            server_cpu_us_per_query: Some(ValueRange {
                value: 3.9 * scale,
                least: 3.8 * scale,
                most: 4.0 * scale,
            }),
            server_cpus_busy: Some(0.98),
            truncated: 0,
            lost: 0,
            rcodes: BTreeMap::from([(rcode.to_owned(), 300_000)]),
            truncated_octets_mean: None,
            others_cpu: Some(ValueRange { value: 0.01, least: 0.0, most: 0.02 }),
            limited_by: vec![Some(Limit::Server); 3],
        };
        let work = |seconds: f64| OperationCost {
            wall_s: ValueRange { value: seconds, least: seconds * 0.95, most: seconds * 1.1 },
            cpu_s: seconds * 1.9,
            runs: 3,
            signatures: 26_011,
            others_cpu: Some(0.01),
        };
        let is_signed = matches!(combination, Combination::Signed(..));
        Row {
            signing: is_signed.then(|| work(0.4 * scale * scale)),
            verification: is_signed.then(|| work(1.1 / scale)),
            zone_octets: (3_400_000.0 * scale) as u64,
            records: (75_000.0 * scale) as u64,
            server_resident_kib: Some((20_480.0 * scale) as u64),
            ready_s: 0.3 * scale,
            dnskey: is_signed.then_some(DnskeyResponse { octets: (150.0 * scale) as u64, truncated: false }),
            validation: is_signed.then(|| ValidationCounts {
                secure: 100,
                insecure: 29,
                ..ValidationCounts::default()
            }),
            existing: load(scale, "NOERROR"),
            denied: load(scale * 1.5, "NXDOMAIN"),
            ..Row::of(combination)
        }
    }

    /// A comparison with fixed figures.
    pub(crate) fn sample() -> Comparison {
        let rsa = AlgorithmChoice { algorithm: Algorithm::RSASHA256, bits: Some(2048) };
        let p256 = AlgorithmChoice { algorithm: Algorithm::ECDSAP256SHA256, bits: None };
        let measured = [
            (Combination::Unsigned, 1.0),
            (Combination::Signed(rsa, Mechanism::Nsec), 5.2),
            (Combination::Signed(rsa, Mechanism::Nsec3), 6.0),
            (Combination::Signed(rsa, Mechanism::Nsec3OptOut), 3.0),
            (Combination::Signed(p256, Mechanism::Nsec), 2.0),
            (Combination::Signed(p256, Mechanism::Nsec3), 2.5),
            (Combination::Signed(p256, Mechanism::Nsec3OptOut), 1.4),
            (Combination::Signed(p256, Mechanism::Nsec5), 2.7),
            (Combination::Signed(p256, Mechanism::Compact), 3.1),
        ];
        let mut rows: Vec<Row> =
            measured.iter().map(|(combination, scale)| sample_row(*combination, *scale)).collect();
        rows[2].denied.truncated = rows[2].denied.queries;
        let note = |cause, percent| Note::new(cause, Some(QueriedNames::Existing), Some(percent));
        rows[2].notes.push(note(NoteCause::Lost, 2.1));
        rows[4].notes.push(note(NoteCause::Lost, 3.4));
        let combinations: Vec<Combination> = measured.iter().map(|(combination, _)| *combination).collect();
        let decision = decide(&[], &combinations, &rows);
        Comparison {
            format: FORMAT,
            run: RunRecord {
                command: "nonesuch compare".to_owned(),
                machine: Machine {
                    cpu: "A CPU @ 2.50GHz".to_owned(),
                    memory_kib: 24_000_000,
                    system: "Debian GNU/Linux 12 (bookworm), Linux 6.1".to_owned(),
                    nonesuch: "0.1.0".to_owned(),
                    rustc: "rustc 1.95.0".to_owned(),
                    server_cpu: Some(1),
                    load_cpu: Some(0),
                    ..sample_run("a-run", "a-machine").machine
                },
                ..sample_run("a-run", "a-machine")
            },
            seconds_per_load: 0.5,
            rounds: 3,
            zone: ZoneInfo {
                counts: ZoneCounts {
                    origin: "test.".to_owned(),
                    records: 75_000,
                    names: 28_000,
                    delegations: 20_000,
                    signed_delegations: 6_000,
                },
                source: "generated like a tld, 20000 names, seed 1".to_owned(),
                octets: 3_400_000,
            },
            decision,
            alternatives: alternatives(&[], &combinations, &rows),
            rows,
            notes: Vec::new(),
        }
    }

    #[test]
    fn json_begins_with_its_version() {
        let text = sample().to_json().expect("written");
        assert!(text.starts_with("{\n  \"format\": 2,\n") && text.ends_with("}\n"));
    }

    #[test]
    fn medians() {
        assert_eq!(ValueRange::median(&[]), None);
        let median = |values: &[f64]| ValueRange::median(values).map(|measured| measured.value);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(
            ValueRange::median(&[9.0, 1.0, 2.0]),
            Some(ValueRange { value: 2.0, least: 1.0, most: 9.0 })
        );
    }
}
