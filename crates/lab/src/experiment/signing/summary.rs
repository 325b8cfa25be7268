//! From the data to a line for each job of each zone, algorithm, mechanism and level.

use super::plan::BASE;
use super::rows::{Job, Row, rows};
use super::{About, AlgorithmFacts, ZoneFacts};
use crate::experiment::data::DataTable;
use crate::experiment::results::UnreadableColumn;
use crate::experiment::statistics::Statistics;
use nonesuch_dnssec::Mechanism;
use serde::Serialize;

/// What the runs of one job come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Line {
    pub(super) job: Job,
    pub(super) zone: String,
    pub(super) level: String,
    pub(super) algorithm: String,
    pub(super) denial: String,
    /// Signatures that were made or verified.
    pub(super) signatures: Option<u64>,
    pub(super) records: Option<u64>,
    pub(super) octets: Option<u64>,
    pub(super) messages: Option<u64>,
    /// CPU time over the runs, s.
    pub(super) cpu: Option<Statistics>,
    /// Time on the wall over the runs, s.
    pub(super) wall: Option<Statistics>,
    /// Memory over the runs, KiB.
    pub(super) memory_kib: Option<Statistics>,
    /// Median of CPU time, in times of the median of ECDSA P-256 with the same zone, mechanism and level.
    pub(super) cpu_times: Option<f64>,
    /// The same of time on the wall.
    pub(super) wall_times: Option<f64>,
}

impl Line {
    /// Signatures made or verified for each second of CPU time.
    pub(super) fn per_cpu_second(&self) -> Option<f64> {
        let cpu = self.cpu?.median;
        (cpu > 0.0).then(|| self.signatures.map(|signatures| signatures as f64 / cpu)).flatten()
    }
}

/// What a report is made of.
pub(super) struct View<'r> {
    pub(super) about: &'r About,
    pub(super) lines: Vec<Line>,
    /// What all are measured against, as the data have it.
    pub(super) base: String,
}

impl<'r> View<'r> {
    pub(super) fn new(about: &'r About, data: &DataTable) -> Result<Self, UnreadableColumn> {
        let base = BASE.to_string();
        let mut lines = lines(rows(data)?);
        let bases: Vec<Line> = lines.iter().filter(|line| line.algorithm == base).cloned().collect();
        for line in &mut lines {
            let held = |base: &&Line| {
                let of = |line: &Line| (line.job, line.zone.clone(), line.denial.clone(), line.level.clone());
                of(base) == of(line)
            };
            let Some(base) = bases.iter().find(held).filter(|_| !line.algorithm.is_empty()) else { continue };
            line.cpu_times = times(line.cpu, base.cpu);
            line.wall_times = times(line.wall, base.wall);
        }
        Ok(Self { about, lines, base })
    }

    /// The line of one job.
    pub(super) fn find(
        &self,
        job: Job,
        zone: &str,
        level: &str,
        algorithm: &str,
        denial: &str,
    ) -> Option<&Line> {
        let is_it = |line: &&Line| {
            line.job == job
                && line.zone == zone
                && line.level == level
                && line.algorithm == algorithm
                && line.denial == denial
        };
        self.lines.iter().find(is_it)
    }

    /// The line of one job at whichever level it was done first.
    pub(super) fn find_any(&self, job: Job, zone: &str, algorithm: &str, denial: &str) -> Option<&Line> {
        self.lines.iter().find(|line| {
            line.job == job && line.zone == zone && line.algorithm == algorithm && line.denial == denial
        })
    }

    /// The levels, the lower ones first, as the study has them.
    pub(super) fn levels(&self) -> Vec<&'r str> {
        let mut levels: Vec<&str> = self.about.levels.iter().map(|facts| facts.level.as_str()).collect();
        levels.sort_by_key(|level| {
            ["x86-64-v2", "x86-64-v3"].iter().position(|known| known == level).unwrap_or(9)
        });
        levels
    }

    /// The mechanisms that were measured: name in the data and title.
    pub(super) fn denials(&self) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        for line in &self.lines {
            if !line.denial.is_empty() && found.iter().all(|(denial, _)| *denial != line.denial) {
                let title =
                    line.denial.parse::<Mechanism>().map(|mechanism| mechanism.entry().title.to_owned());
                found.push((line.denial.clone(), title.unwrap_or_else(|_| line.denial.clone())));
            }
        }
        // In the order of the table of mechanisms, whatever was measured first.
        found.sort_by_key(|(denial, _)| denial.parse::<Mechanism>().ok());
        found
    }

    /// The zones of which anything was measured, the largest first.
    pub(super) fn zones(&self) -> Vec<&'r ZoneFacts> {
        let is_there =
            |zone: &&ZoneFacts| self.lines.iter().any(|line| line.job == Job::Sign && line.zone == zone.zone);
        let mut zones: Vec<&ZoneFacts> = self.about.zones.iter().filter(is_there).collect();
        zones.sort_by_key(|zone| std::cmp::Reverse(zone.names));
        zones
    }

    /// The algorithms, those of today first, then those of which post-quantum security is expected.
    pub(super) fn algorithms(&self) -> Vec<&'r AlgorithmFacts> {
        let mut algorithms: Vec<&AlgorithmFacts> = self.about.algorithms.iter().collect();
        algorithms.sort_by_key(|facts| (facts.post_quantum, facts.addition));
        algorithms
    }
}

fn times(own: Option<Statistics>, base: Option<Statistics>) -> Option<f64> {
    let (own, base) = (own?.median, base?.median);
    (base > 0.0).then_some(own / base)
}

/// The lines, in the order of first occurrence.
fn lines(rows: Vec<Row>) -> Vec<Line> {
    let mut groups: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        let is_of = |group: &&mut Vec<Row>| {
            group.first().is_some_and(|first| {
                first.job == row.job
                    && first.zone == row.zone
                    && first.level == row.level
                    && first.algorithm == row.algorithm
                    && first.denial == row.denial
            })
        };
        match groups.iter_mut().find(is_of) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups.iter().filter_map(|group| line(group)).collect()
}

fn line(group: &[Row]) -> Option<Line> {
    let first = group.first()?;
    let statistics = |figure: fn(&Row) -> Option<f64>| {
        Statistics::of(&group.iter().filter_map(figure).collect::<Vec<_>>())
    };
    Some(Line {
        job: first.job,
        zone: first.zone.clone(),
        level: first.level.clone(),
        algorithm: first.algorithm.clone(),
        denial: first.denial.clone(),
        signatures: first.signatures,
        records: first.records,
        octets: first.octets,
        messages: first.messages,
        cpu: statistics(Row::cpu_seconds),
        wall: statistics(|row| row.wall_seconds),
        memory_kib: statistics(|row| row.memory_kib.map(|kib| kib as f64)),
        cpu_times: None,
        wall_times: None,
    })
}
