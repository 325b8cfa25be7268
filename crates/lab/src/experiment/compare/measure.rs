//! Measurement of one cell.

use super::figures::{LoadFigures, OperationCost, Row, ValueRange};
use super::{Cell, CellFault, CompareError, CompareOptions, ROUNDS};
use crate::experiment::parameters::QueriedNames;
use crate::experiment::run::Step;
use crate::load::{self, LoadOptions, LoadReport};
use crate::machine::CpuPlacement;
use crate::measure::Choice;
use crate::measure::examine::write_file;
use crate::measure::server::Server;
use crate::process;
use nonesuch_crypto::PrivateKey;
use nonesuch_dnssec::keys::{SEP, ZONE_KEY};
use nonesuch_dnssec::verify::Anchor;
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, Signed, VerifyOptions, sign, verify};
use nonesuch_zone::Contents;
use nonesuch_zone::write::text_octets;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Signatures are valid from this many seconds before the start of the comparison, because clocks
/// differ.
const BACKDATED_SECONDS: u32 = 3600;
/// Signatures are valid until this many seconds after the start of the comparison.
const VALID_SECONDS: u32 = 30 * 86_400;
/// Total time after which an operation on the zone is not repeated.
const REPEAT_LIMIT: Duration = Duration::from_millis(700);
/// Maximum number of runs of an operation on the zone.
const MAX_REPEATS: u32 = 5;
/// Time limit for the server to read and verify its zone.
const READY_LIMIT: Duration = Duration::from_secs(1800);
/// Duration of the load with each kind of query before the measurement, in seconds.
const WARM_UP_SECONDS: f64 = 0.15;
/// Share of queries above which a deviation is significant. Above this share, lost queries,
/// truncated responses and an unexpected NOERROR or NXDOMAIN become notes, and other response codes
/// fail the comparison. Up to this share, other response codes become notes, and the remaining
/// deviations are ignored.
const DEVIATION_SHARE: f64 = 0.01;
/// Share of lost queries from which the comparison fails.
const MAX_LOST_SHARE: f64 = 0.5;
/// Share of its CPU time that a fully loaded server uses at least.
const BUSY_SHARE: f64 = 0.85;

/// The measurement of a cell.
pub(super) struct CellMeasurement<'a> {
    pub(super) options: &'a CompareOptions<'a>,
    pub(super) index: usize,
    pub(super) cell: Cell,
    pub(super) cpus: Option<CpuPlacement>,
}

impl CellMeasurement<'_> {
    pub(super) fn measure(&self) -> Result<Row, CompareError> {
        let mut row = Row::of(self.cell);
        let work_dir = self.options.work_dir;
        let folder = tempfile::tempdir_in(work_dir)
            .map_err(|source| CompareError::Write { path: work_dir.to_path_buf(), source })?;
        let (file, log) = (folder.path().join("zone"), folder.path().join("log"));
        match self.cell {
            Cell::Unsigned => self.write(&self.options.subject.contents, &file, &mut row)?,
            Cell::Signed(choice, mechanism) => {
                let signed =
                    self.sign(choice, mechanism, &mut row).map_err(|fault| self.cell_error(fault))?;
                self.write(signed.contents(), &file, &mut row)?;
            }
        }
        self.report_progress("starting the server");
        let command = (self.options.server)(&file, self.options.subject.contents.apex());
        let server = Server::start(command, self.cpus.map(|cpus| cpus.server), &log, READY_LIMIT)
            .map_err(|source| self.cell_error(source))?;
        row.ready_s = server.ready_after.as_secs_f64();
        self.report_progress("sending queries");
        self.load(&server, &mut row)?;
        Ok(row)
    }

    fn report_progress(&self, stage: &str) {
        let (index, steps) = (self.index as u64, self.options.cells.len() as u64);
        (self.options.progress)(Step { index, steps, what: &format!("{}: {stage}", self.cell) });
    }

    /// Returns the error of the comparison for a fault of this cell.
    fn cell_error(&self, fault: impl Into<CellFault>) -> CompareError {
        CompareError::Cell(self.cell, fault.into())
    }

    /// Generates keys, and signs and verifies the zone.
    fn sign(&self, choice: Choice, mechanism: Mechanism, row: &mut Row) -> Result<Signed, CellFault> {
        let (unsigned, now) = (&self.options.subject.contents, self.options.now);
        self.report_progress("generating keys");
        let keys = make_keys(unsigned, choice)?;
        self.report_progress("signing");
        let (inception, expiration) = (now.wrapping_sub(BACKDATED_SECONDS), now.wrapping_add(VALID_SECONDS));
        let wanted = SignOptions { now, ..SignOptions::new(mechanism, inception, expiration) };
        let (signed, work) = repeat(|| sign(unsigned, &keys, &wanted))?;
        row.signing = Some(OperationCost { signatures: signed.statistics().signatures, ..work });
        self.report_progress("verifying");
        let anchors = keys.secure_entry_points().map(|key| Anchor::Dnskey(key.dnskey_rdata())).collect();
        let wanted = VerifyOptions { now: Some(now), anchors, ..VerifyOptions::default() };
        let (report, work) = repeat(|| {
            let report = verify(signed.contents(), &wanted);
            match report.faults.first() {
                None => Ok(report),
                Some(first) => Err(CellFault::Unsound(report.faults.len(), Box::new(first.clone()))),
            }
        })?;
        row.verification = Some(OperationCost { signatures: report.signatures_verified, ..work });
        Ok(signed)
    }

    /// Writes the zone to `file`, and its size to the row.
    fn write(&self, contents: &Contents, file: &Path, row: &mut Row) -> Result<(), CompareError> {
        self.report_progress("writing the zone file");
        (row.records, row.zone_octets) = (contents.record_count(), text_octets(contents));
        write_file(contents, file).map_err(|source| CompareError::Write { path: file.to_path_buf(), source })
    }

    /// Sends the queries, and writes the results to the row.
    fn load(&self, server: &Server, row: &mut Row) -> Result<(), CompareError> {
        let run = |asked: QueriedNames, seconds: f64| {
            let subject = self.options.subject;
            let queries = if asked == QueriedNames::Existing { &subject.existing } else { &subject.denied };
            let wanted = LoadOptions {
                seconds,
                server_pid: Some(server.pid()),
                cpus: self.cpus.map(|cpus| vec![cpus.load]),
                ..LoadOptions::new(server.address, Arc::clone(queries))
            };
            load::run(&wanted).map_err(|source| self.cell_error(source))
        };
        for asked in [QueriedNames::Existing, QueriedNames::Denied] {
            run(asked, WARM_UP_SECONDS)?;
        }
        let (mut existing, mut denied) = (Vec::new(), Vec::new());
        // The kinds alternate, so that a disturbance of the machine affects both.
        for _ in 0..ROUNDS {
            existing.push(run(QueriedNames::Existing, self.options.seconds_per_load)?);
            denied.push(run(QueriedNames::Denied, self.options.seconds_per_load)?);
        }
        row.server_resident_kib = process::memory(server.pid()).map(|memory| memory.resident_kib);
        row.existing = combine_rounds(&existing);
        row.denied = combine_rounds(&denied);
        check_load(self.cell, QueriedNames::Existing, &row.existing, &mut row.notes)?;
        check_load(self.cell, QueriedNames::Denied, &row.denied, &mut row.notes)?;
        if server.pinned {
            note_idle(row);
        } else if self.cpus.is_some() {
            row.notes.push("the server could not be bound to a separate CPU".to_owned());
        }
        Ok(())
    }
}

/// Generates a KSK and a ZSK of the same strength, including weak keys, because their cost is part
/// of the comparison.
fn make_keys(zone: &Contents, choice: Choice) -> Result<KeySet, CellFault> {
    let apex = zone.apex();
    let make = |flags| {
        let key = PrivateKey::generate_forced(choice.algorithm, choice.bits)?;
        Ok::<_, CellFault>(KeyPair::new(apex.clone(), flags, key))
    };
    let ksk = make(ZONE_KEY | SEP)?;
    let mut zsk = make(ZONE_KEY)?;
    // Two keys have the same tag with a probability of 1 in 65,536. Such keys would make the
    // verification slower, because the tag would not select the key.
    while zsk.tag() == ksk.tag() {
        zsk = make(ZONE_KEY)?;
    }
    Ok(KeySet::new(apex, vec![ksk, zsk])?)
}

/// Runs `work` until it has taken [`REPEAT_LIMIT`] in total or has run [`MAX_REPEATS`] times.
/// Returns the last result, and the cost without the number of signatures. The time in which
/// results are dropped is not measured.
fn repeat<T, E>(mut work: impl FnMut() -> Result<T, E>) -> Result<(T, OperationCost), E> {
    let pid = std::process::id();
    let (mut walls, mut cpu_us, mut together) = (Vec::new(), 0, Duration::ZERO);
    loop {
        let before = process::cpu_time(pid);
        let start = Instant::now();
        let outcome = work()?;
        let wall = start.elapsed();
        if let Some(spent) = before.zip(process::cpu_time(pid)).map(|(before, after)| after.since(before)) {
            cpu_us += spent.user_us + spent.system_us;
        }
        walls.push(wall.as_secs_f64());
        together += wall;
        let runs = walls.len() as u32;
        if together >= REPEAT_LIMIT || runs >= MAX_REPEATS {
            let wall_s = ValueRange::median(&walls).unwrap_or_default();
            let cpu_s = cpu_us as f64 / 1e6 / f64::from(runs);
            return Ok((outcome, OperationCost { wall_s, cpu_s, runs, signatures: 0 }));
        }
    }
}

/// Combines all rounds with one kind of query.
fn combine_rounds(rounds: &[LoadReport]) -> LoadFigures {
    let count = |part: fn(&LoadReport) -> u64| rounds.iter().map(part).sum::<u64>();
    let received = |round: &LoadReport| round.received;
    // The server works for late responses too.
    let answers = |round: &LoadReport| round.received + round.late;
    let mean = |part: fn(&LoadReport) -> Option<f64>, weight: fn(&LoadReport) -> u64| -> Option<f64> {
        let total: Option<f64> =
            rounds.iter().map(|round| part(round).map(|value| value * weight(round) as f64)).sum();
        let weights = count(weight) as f64;
        total.filter(|_| weights > 0.0).map(|total| total / weights)
    };
    let of_rounds: Vec<f64> = rounds.iter().filter_map(|round| round.server_cpu_us_per_query).collect();
    let cpu = mean(|round| round.server_cpu_us_per_query, answers)
        .and_then(|value| ValueRange::median(&of_rounds).map(|ends| ValueRange { value, ..ends }));
    let seconds: f64 = rounds.iter().map(|round| round.seconds).sum();
    let mut rcodes = BTreeMap::new();
    for (rcode, count) in rounds.iter().flat_map(|round| &round.rcodes) {
        *rcodes.entry(rcode.clone()).or_insert(0) += count;
    }
    let qps: Vec<f64> = rounds.iter().map(|round| round.qps).collect();
    LoadFigures {
        queries: count(|round| round.sent),
        response_octets_mean: mean(|round| Some(round.response_octets_mean), received).unwrap_or(0.0),
        response_octets_max: rounds.iter().map(|round| round.response_octets_max).max().unwrap_or(0),
        qps: ValueRange::median(&qps).unwrap_or_default(),
        server_cpu_us_per_query: cpu,
        server_cpus_busy: cpu
            .filter(|_| seconds > 0.0)
            .map(|cpu| cpu.value * count(answers) as f64 / 1e6 / seconds),
        truncated: count(|round| round.truncated),
        lost: count(|round| round.lost + round.late),
        rcodes,
    }
}

/// Checks the results of a load. Fails if the server lost at least [`MAX_LOST_SHARE`] of the
/// queries, or answered more than [`DEVIATION_SHARE`] of them with an error code. Other conditions
/// that make the figures doubtful or too favourable become notes.
fn check_load(
    cell: Cell,
    asked: QueriedNames,
    figures: &LoadFigures,
    notes: &mut Vec<String>,
) -> Result<(), CompareError> {
    let LoadFigures { queries: all, lost, truncated, .. } = *figures;
    let share = |count: u64, all: u64| if all == 0 { 0.0 } else { count as f64 / all as f64 };
    let refused = |wrong, rcode| Err(CompareError::Refused { cell, asked, wrong, all, rcode });
    let lost_share = share(lost, all);
    if all == 0 || lost_share >= MAX_LOST_SHARE {
        return refused(lost, None);
    }
    if lost_share > DEVIATION_SHARE {
        notes.push(format!("{asked}: {:.1} % of the queries were lost", lost_share * 100.0));
    }
    let truncated_share = share(truncated, all.saturating_sub(lost));
    if truncated_share > DEVIATION_SHARE {
        let effect = "resolvers repeat these queries over TCP, which is not measured";
        notes.push(format!(
            "{asked}: {:.1} % of the responses are truncated: {effect}",
            truncated_share * 100.0
        ));
    }
    let expected = if asked == QueriedNames::Existing { "NOERROR" } else { "NXDOMAIN" };
    for (rcode, &count) in figures.rcodes.iter().filter(|(rcode, _)| *rcode != expected) {
        // Both response codes are answers. An unexpected one is possible, because the queries may
        // not fit the zone exactly.
        let is_answer = matches!(rcode.as_str(), "NOERROR" | "NXDOMAIN");
        let is_frequent = share(count, all) > DEVIATION_SHARE;
        if !is_answer && is_frequent {
            return refused(count, Some(rcode.clone()));
        }
        if !is_answer || is_frequent {
            notes.push(format!(
                "{asked}: {count} of {all} queries were answered with {rcode}, not {expected}"
            ));
        }
    }
    Ok(())
}

/// Adds a note if the server was not fully loaded, because queries per second then do not describe
/// the server.
fn note_idle(row: &mut Row) {
    for (kind, figures) in [(QueriedNames::Existing, &row.existing), (QueriedNames::Denied, &row.denied)] {
        if let Some(busy) = figures.server_cpus_busy.filter(|busy| *busy < BUSY_SHARE) {
            let meaning = "queries/s are limited by the load generator or by other programs on this machine";
            row.notes.push(format!(
                "{kind}: the CPU of the server was busy for only {:.0} % of the time: {meaning}",
                busy * 100.0
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(received: u64, lost: u64, rcode: &str, cpu: f64) -> LoadReport {
        LoadReport {
            sent: received + lost,
            received,
            lost,
            seconds: 1.0,
            qps: received as f64,
            rcodes: BTreeMap::from([(rcode.to_owned(), received)]),
            truncated: 1,
            response_octets_mean: cpu * 100.0,
            response_octets_max: received,
            server_cpu_us_per_query: Some(cpu),
            ..LoadReport::default()
        }
    }

    #[test]
    fn rounds_are_weighed_by_their_answers() {
        let figures = combine_rounds(&[round(100, 0, "NOERROR", 1.0), round(300, 4, "NOERROR", 2.0)]);
        assert_eq!((figures.queries, figures.lost, figures.truncated), (404, 4, 2));
        assert!((figures.response_octets_mean - 175.0).abs() < 1e-9);
        assert_eq!(figures.response_octets_max, 300);
        assert_eq!(figures.qps, ValueRange { value: 200.0, least: 100.0, most: 300.0 });
        assert_eq!(figures.server_cpu_us_per_query, Some(ValueRange { value: 1.75, least: 1.0, most: 2.0 }));
        assert!((figures.server_cpus_busy.expect("known") - 1.75 * 400.0 / 1e6 / 2.0).abs() < 1e-12);
        assert_eq!(figures.rcodes, BTreeMap::from([("NOERROR".to_owned(), 400)]));
        assert_eq!(combine_rounds(&[]).queries, 0);
    }

    fn check(kind: QueriedNames, rounds: &[LoadReport]) -> (Result<(), CompareError>, Vec<String>) {
        let mut notes = Vec::new();
        let outcome = check_load(Cell::Unsigned, kind, &combine_rounds(rounds), &mut notes);
        (outcome, notes)
    }

    #[test]
    fn sound_load_is_passed_in_silence() {
        let (outcome, notes) = check(QueriedNames::Existing, &[round(1000, 5, "NOERROR", 1.0)]);
        assert!(outcome.is_ok() && notes.is_empty(), "{notes:?}");
        let (outcome, notes) = check(QueriedNames::Denied, &[round(1000, 0, "NXDOMAIN", 1.0)]);
        assert!(outcome.is_ok() && notes.is_empty(), "{notes:?}");
    }

    #[test]
    fn loss_and_unmeant_answers_are_noted() {
        let (outcome, notes) = check(QueriedNames::Existing, &[round(960, 40, "NOERROR", 1.0)]);
        assert!(outcome.is_ok());
        assert_eq!(notes, ["existing: 4.0 % of the queries were lost"]);
        let rounds = [round(900, 0, "NXDOMAIN", 1.0), round(100, 0, "NOERROR", 1.0)];
        let (outcome, notes) = check(QueriedNames::Denied, &rounds);
        assert!(outcome.is_ok());
        assert_eq!(notes, ["denied: 100 of 1000 queries were answered with NOERROR, not NXDOMAIN"]);
        let rounds = [round(999, 0, "NXDOMAIN", 1.0), round(1, 0, "SERVFAIL", 1.0)];
        let (outcome, notes) = check(QueriedNames::Denied, &rounds);
        assert!(outcome.is_ok());
        assert_eq!(notes, ["denied: 1 of 1000 queries were answered with SERVFAIL, not NXDOMAIN"]);
    }

    #[test]
    fn truncation_is_noted() {
        let cut = LoadReport { truncated: 250, ..round(1000, 0, "NXDOMAIN", 1.0) };
        let (outcome, notes) = check(QueriedNames::Denied, &[cut]);
        assert!(outcome.is_ok());
        assert_eq!(
            notes,
            [
                "denied: 25.0 % of the responses are truncated: resolvers repeat these queries over TCP, which is not measured"
            ]
        );
        let notes_of = |truncated| {
            let round = LoadReport { truncated, ..round(1000, 100, "NXDOMAIN", 1.0) };
            check(QueriedNames::Denied, &[round]).1.len()
        };
        assert_eq!((notes_of(10), notes_of(11)), (1, 2), "in addition to the lost ones");
    }

    #[test]
    fn a_server_that_does_not_serve_is_an_error() {
        let (outcome, _) = check(QueriedNames::Existing, &[round(100, 0, "REFUSED", 1.0)]);
        let error = outcome.expect_err("refused");
        let CompareError::Refused { wrong, all, rcode, .. } = &error else { panic!("{error}") };
        assert_eq!((*wrong, *all, rcode.as_deref()), (100, 100, Some("REFUSED")));
        assert_eq!(
            error.to_string(),
            "unsigned, existing names: 100 of 100 queries were answered with REFUSED; measurements of such a server are meaningless"
        );
        let (outcome, _) = check(QueriedNames::Existing, &[round(40, 60, "NOERROR", 1.0)]);
        assert!(matches!(outcome, Err(CompareError::Refused { rcode: None, wrong: 60, .. })));
        assert!(check(QueriedNames::Existing, &[]).0.is_err());
    }

    #[test]
    fn an_idle_server_is_noted() {
        let mut row = Row::of(Cell::Unsigned);
        row.existing.server_cpus_busy = Some(0.5);
        row.denied.server_cpus_busy = Some(0.97);
        note_idle(&mut row);
        assert_eq!(row.notes.len(), 1);
        assert!(
            row.notes[0].starts_with("existing: ") && row.notes[0].contains(" 50 % "),
            "{}",
            row.notes[0]
        );
    }

    #[test]
    fn work_is_repeated_until_it_fails_or_is_enough() {
        let mut runs = 0;
        let (last, work) = repeat(|| {
            runs += 1;
            Ok::<_, ()>(runs)
        })
        .expect("no failure");
        assert_eq!((last, work.runs), (MAX_REPEATS, MAX_REPEATS));
        assert_eq!(repeat(|| Err::<(), _>("no")).err(), Some("no"));
    }
}
