//! What was measured: the form of `compare.json`.

use super::subject::ZoneFacts;
use super::{Cell, CompareError};
use crate::machine::Machine;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the form; another one is refused when read.
pub const FORMAT: u32 = 1;

/// A whole comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Version of this form: [`FORMAT`].
    pub format: u32,
    /// When it was made, RFC 3339.
    pub date: String,
    /// The command that made it.
    pub command: String,
    /// Seconds of load for each kind of query and round.
    pub seconds_per_load: f64,
    /// Rounds of load.
    pub rounds: u32,
    /// The machine.
    pub machine: Machine,
    /// The zone.
    pub zone: ZoneFacts,
    /// One for each cell, in their order.
    pub rows: Vec<Row>,
    /// What a reader must know before believing the figures.
    pub notes: Vec<String>,
}

impl Comparison {
    /// The form of `compare.json`, with a final line break.
    ///
    /// # Errors
    /// [`CompareError::Json`]; no comparison that was measured is known to give it.
    pub fn to_json(&self) -> Result<String, CompareError> {
        let mut text = serde_json::to_string_pretty(self).map_err(CompareError::Json)?;
        text.push('\n');
        Ok(text)
    }

    /// Reads what [`Comparison::to_json`] wrote.
    ///
    /// # Errors
    /// Where the text is no comparison, or one of another version of the form.
    pub fn from_json(text: &str) -> Result<Self, CompareError> {
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let version: Version = serde_json::from_str(text).map_err(CompareError::Json)?;
        if version.format != FORMAT {
            return Err(CompareError::Format { found: version.format });
        }
        serde_json::from_str(text).map_err(CompareError::Json)
    }
}

/// What one way to publish the zone costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Mnemonic of the algorithm; nothing for the unsigned zone.
    pub algorithm: Option<String>,
    /// Its number.
    pub algorithm_number: Option<u8>,
    /// Length of the keys, where the algorithm has several.
    pub bits: Option<u16>,
    /// How the zone denies existence, by its name on the command line; nothing for the unsigned zone.
    pub denial: Option<String>,
    /// Signing the zone.
    pub signing: Option<Work>,
    /// Verifying the whole zone.
    pub verification: Option<Work>,
    /// Octets of the zone file.
    pub zone_octets: u64,
    /// Records of the zone.
    pub records: u64,
    /// Resident memory of the server after the load, KiB.
    pub server_resident_kib: Option<u64>,
    /// From the server's start until it listened, with reading the zone and whatever else it does before, seconds.
    pub ready_s: f64,
    /// Asking for names that exist.
    pub existing: LoadFigures,
    /// Asking for names that do not exist.
    pub denied: LoadFigures,
    /// What was odd.
    pub notes: Vec<String>,
}

impl Row {
    /// Whether this is the row of `cell`.
    #[must_use]
    pub fn is_of(&self, cell: &Cell) -> bool {
        match cell {
            Cell::Unsigned => self.algorithm.is_none(),
            Cell::Signed { algorithm, bits, mechanism } => {
                self.algorithm_number == Some(algorithm.0)
                    && self.bits == *bits
                    && self.denial.as_deref() == Some(mechanism.entry().name)
            }
        }
    }
}

/// A figure that was measured several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The figure to go by.
    pub value: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

impl Measured {
    /// The median, with the ends; nothing of nothing.
    #[must_use]
    pub fn median(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let (least, most, above) = (*sorted.first()?, *sorted.last()?, *sorted.get(middle)?);
        let value = match sorted.get(middle.wrapping_sub(1)) {
            Some(below) if sorted.len().is_multiple_of(2) => below.midpoint(above),
            _ => above,
        };
        Some(Self { value, least, most })
    }
}

/// Work on the whole zone by all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Time by the clock on the wall, seconds; the median of the runs.
    pub wall_s: Measured,
    /// CPU time of all threads, seconds; the mean of the runs.
    pub cpu_s: f64,
    /// How often it was done.
    pub runs: u32,
    /// Signatures made or verified.
    pub signatures: u64,
}

/// What load of one kind came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Queries sent in all rounds.
    pub queries: u64,
    /// Mean size of a response, octets of DNS message.
    pub response_octets_mean: f64,
    /// Size of the largest response, octets.
    pub response_octets_max: u64,
    /// Answers a second; the median of the rounds.
    pub qps: Measured,
    /// CPU time of the server for each answer, µs; the mean over all rounds, with the least and most of a round.
    pub server_cpu_us_per_query: Option<Measured>,
    /// CPU time of the server by time on the wall: near the number of its CPUs, it gave all it had.
    pub server_cpus_busy: Option<f64>,
    /// Responses with TC set.
    pub truncated: u64,
    /// Queries without a response in time.
    pub lost: u64,
    /// Responses by response code.
    pub rcodes: BTreeMap<String, u64>,
}

impl LoadFigures {
    /// Share of the responses with TC set, 0 to 1.
    #[must_use]
    pub fn truncated_share(&self) -> f64 {
        match self.queries.saturating_sub(self.lost) {
            0 => 0.0,
            responses => self.truncated as f64 / responses as f64,
        }
    }

    /// Whether so many responses are truncated (more than one in a hundred) that their sizes and what they cost are
    /// not those of whole responses.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.truncated_share() > 0.01
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A comparison with fixed figures.
    pub(crate) fn sample() -> Comparison {
        let load = |scale: f64, rcode: &str| LoadFigures {
            queries: 300_000,
            response_octets_mean: 120.5 * scale,
            response_octets_max: (240.0 * scale) as u64,
            qps: Measured { value: 250_000.0 / scale, least: 240_000.0 / scale, most: 255_000.0 / scale },
            server_cpu_us_per_query: Some(Measured {
                value: 3.9 * scale,
                least: 3.8 * scale,
                most: 4.0 * scale,
            }),
            server_cpus_busy: Some(0.98),
            truncated: 0,
            lost: 0,
            rcodes: BTreeMap::from([(rcode.to_owned(), 300_000)]),
        };
        let work = |seconds: f64| Work {
            wall_s: Measured { value: seconds, least: seconds * 0.95, most: seconds * 1.1 },
            cpu_s: seconds * 1.9,
            runs: 3,
            signatures: 26_011,
        };
        let row = |algorithm: Option<(&str, u8, Option<u16>)>, denial: Option<&str>, scale: f64| Row {
            algorithm: algorithm.map(|(name, ..)| name.to_owned()),
            algorithm_number: algorithm.map(|(_, number, _)| number),
            bits: algorithm.and_then(|(.., bits)| bits),
            denial: denial.map(str::to_owned),
            signing: denial.map(|_| work(0.4 * scale * scale)),
            verification: denial.map(|_| work(1.1 / scale)),
            zone_octets: (3_400_000.0 * scale) as u64,
            records: (75_000.0 * scale) as u64,
            server_resident_kib: Some((20_480.0 * scale) as u64),
            ready_s: 0.3 * scale,
            existing: load(scale, "NOERROR"),
            denied: load(scale * 1.5, "NXDOMAIN"),
            notes: Vec::new(),
        };
        let rsa = Some(("RSASHA256", 8, Some(2048)));
        let p256 = Some(("ECDSAP256SHA256", 13, None));
        let mut rows = vec![
            row(None, None, 1.0),
            row(rsa, Some("nsec"), 5.2),
            row(rsa, Some("nsec3"), 6.0),
            row(rsa, Some("nsec3-opt-out"), 3.0),
            row(p256, Some("nsec"), 2.0),
            row(p256, Some("nsec3"), 2.5),
            row(p256, Some("nsec3-opt-out"), 1.4),
        ];
        rows[2].denied.truncated = rows[2].denied.queries;
        rows[2].notes.push("existing: 2.1 % of the queries were lost".to_owned());
        Comparison {
            format: FORMAT,
            date: "2026-03-01T12:00:00Z".to_owned(),
            command: "nonesuch compare".to_owned(),
            seconds_per_load: 0.5,
            rounds: 3,
            machine: Machine {
                cpu: "A CPU @ 2.50GHz".to_owned(),
                cpus: 2,
                memory_kib: 24_000_000,
                system: "Debian GNU/Linux 12 (bookworm), Linux 6.1".to_owned(),
                nonesuch: "0.1.0".to_owned(),
                rustc: "rustc 1.95.0".to_owned(),
                optimised: true,
                server_cpu: Some(1),
                load_cpu: Some(0),
            },
            zone: ZoneFacts {
                origin: "test.".to_owned(),
                source: "generated like a tld, 20000 names, seed 1".to_owned(),
                records: 75_000,
                names: 28_000,
                delegations: 20_000,
                signed_delegations: 6_000,
                octets: 3_400_000,
            },
            rows,
            notes: Vec::new(),
        }
    }

    #[test]
    fn json_is_read_back() {
        let sample = sample();
        let text = sample.to_json().expect("written");
        assert!(text.starts_with("{\n  \"format\": 1,\n"));
        assert_eq!(Comparison::from_json(&text).expect("read"), sample);
    }

    #[test]
    fn another_format_is_refused() {
        let text = sample().to_json().expect("written").replace("\"format\": 1", "\"format\": 2");
        assert!(matches!(Comparison::from_json(&text), Err(CompareError::Format { found: 2 })));
        assert!(matches!(Comparison::from_json("{}"), Err(CompareError::Json(_))));
    }

    #[test]
    fn truncation_counts_from_one_in_a_hundred() {
        let figures =
            |truncated| LoadFigures { queries: 1100, lost: 100, truncated, ..LoadFigures::default() };
        assert!(!figures(10).is_truncated() && figures(11).is_truncated());
        assert!(!LoadFigures::default().is_truncated());
    }

    #[test]
    fn medians() {
        assert_eq!(Measured::median(&[]), None);
        let median = |values: &[f64]| Measured::median(values).map(|measured| measured.value);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[3.0, 1.0]), Some(2.0));
        assert_eq!(Measured::median(&[9.0, 1.0, 2.0]), Some(Measured { value: 2.0, least: 1.0, most: 9.0 }));
    }

    #[test]
    fn rows_know_their_cells() {
        let rows = sample().rows;
        for cell in super::super::cells(&super::super::Selection::Usual, &[]) {
            let found = rows.iter().filter(|row| row.is_of(&cell)).count();
            let is_ed25519 = cell.to_string().starts_with("ED25519");
            assert_eq!(found, usize::from(!is_ed25519), "{cell}");
        }
    }
}
