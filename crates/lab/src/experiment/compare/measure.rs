//! Measurement of one combination: a server, and its responses to queries.

mod warm_up;

use super::figures::{LoadFigures, Note, NoteCause, Row};
use super::prepare::prepare;
use super::{Combination, CombinationFault, CompareError, CompareOptions};
use crate::conditions::BUSY_SHARE;
use crate::experiment::parameters::QueriedNames;
use crate::load::{self, LoadOptions, LoadReport, QueryList};
use crate::machine::CpuPlacement;
use crate::measure::server::{READY_LIMIT, Server};
use crate::process;
use crate::statistics::ValueRange;
use nonesuch_dnssec::Mechanism;
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;

/// Share of queries above which a deviation is significant. Above this share, lost queries,
/// truncated responses and an unexpected NOERROR or NXDOMAIN become notes, and other response codes
/// fail the comparison. Up to this share, other response codes become notes, and the remaining
/// deviations are ignored.
const DEVIATION_SHARE: f64 = 0.01;
/// Share of lost queries from which the comparison fails.
const MAX_LOST_SHARE: f64 = 0.5;

/// The server of a combination, and the results so far.
pub(super) struct Measurement<'a> {
    options: &'a CompareOptions<'a>,
    combination: Combination,
    server: Server,
    /// The files of the server; dropped after the server.
    _folder: TempDir,
    cpus: Option<CpuPlacement>,
    row: Row,
    existing: Vec<LoadReport>,
    denied: Vec<LoadReport>,
}

impl<'a> Measurement<'a> {
    /// Prepares the combination, starts its server, sends the queries of the warm-up, and validates
    /// a sample of the responses.
    pub(super) fn start(
        options: &'a CompareOptions<'a>,
        combination: Combination,
        cpus: Option<CpuPlacement>,
        progress: &dyn Fn(&str),
    ) -> Result<Self, CompareError> {
        let mut row = Row::of(combination);
        let folder = tempfile::tempdir_in(options.work_dir)
            .map_err(|source| CompareError::Write { path: options.work_dir.to_path_buf(), source })?;
        let (served, anchors) = prepare(options, combination, folder.path(), progress, &mut row)?;
        progress("starting the server");
        let (command, log) = ((options.server)(&served), folder.path().join("log"));
        let server = Server::start(command, cpus.map(|cpus| cpus.server), &log, READY_LIMIT)
            .map_err(|source| CompareError::Combination(combination, source.into()))?;
        row.ready_s = server.ready_after.as_secs_f64();
        let (existing, denied) = (Vec::new(), Vec::new());
        let mut measurement =
            Self { options, combination, server, _folder: folder, cpus, row, existing, denied };
        measurement.warm_up(anchors)?;
        Ok(measurement)
    }

    /// Sends the queries of a round: for existing names, then for denied names, so that a
    /// disturbance of the machine affects both.
    pub(super) fn run_round(&mut self, round: u32) -> Result<(), CompareError> {
        let load = |names| {
            let queries = self.options.zone.queries(names, round);
            self.load(&self.load_options(queries, self.options.seconds_per_load))
        };
        let (existing, denied) = (load(QueriedNames::Existing)?, load(QueriedNames::Denied)?);
        self.existing.push(existing);
        self.denied.push(denied);
        Ok(())
    }

    fn load_options(&self, queries: Arc<QueryList>, seconds: f64) -> LoadOptions {
        LoadOptions {
            seconds,
            server_pid: Some(self.server.pid()),
            cpus: self.cpus.map(|cpus| vec![cpus.load]),
            follow_truncated: true,
            ..LoadOptions::new(self.server.address, queries)
        }
    }

    fn load(&self, options: &LoadOptions) -> Result<LoadReport, CompareError> {
        load::run(options)
            .map_err(|source| CompareError::Combination(self.combination, CombinationFault::Load(source)))
    }

    /// Returns the resident memory of the server, or `None` if the system does not provide it.
    pub(super) fn resident_kib(&self) -> Option<u64> {
        process::memory(self.server.pid()).map(|memory| memory.resident_kib)
    }

    /// Stops the server and returns the row of the combination.
    pub(super) fn finish(mut self) -> Result<Row, CompareError> {
        self.row.server_resident_kib = self.resident_kib();
        let row = &mut self.row;
        row.existing = combine_rounds(&self.existing);
        row.denied = combine_rounds(&self.denied);
        for names in [QueriedNames::Existing, QueriedNames::Denied] {
            let notes = check_load(self.combination, names, row.load(names))?;
            row.notes.extend(notes);
        }
        if self.server.pinned {
            let notes = idle_notes(row);
            row.notes.extend(notes);
        } else if self.cpus.is_some() {
            row.notes.push(Note::new(NoteCause::NotPinned, None, None));
        }
        Ok(self.row)
    }
}

/// Combines all rounds with one kind of query.
fn combine_rounds(rounds: &[LoadReport]) -> LoadFigures {
    let count = |part: fn(&LoadReport) -> u64| rounds.iter().map(part).sum::<u64>();
    let received = |round: &LoadReport| round.received;
    let truncated = |round: &LoadReport| round.truncated;
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
    let others: Vec<f64> = rounds.iter().filter_map(|round| round.others_cpu).collect();
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
        truncated_octets_mean: mean(|round| Some(round.truncated_octets_mean.unwrap_or(0.0)), truncated)
            .filter(|octets| *octets > 0.0),
        others_cpu: ValueRange::median(&others),
        limited_by: rounds.iter().map(|round| round.limited_by).collect(),
    }
}

/// Returns the response code of the responses that a load is meant to get. With compact denial, a
/// response to a query without the CO flag has NOERROR for a name that does not exist (RFC 9824
/// §5).
fn expected_rcode(combination: Combination, names: QueriedNames) -> &'static str {
    match (combination, names) {
        (Combination::Signed(_, Mechanism::Compact), _) | (_, QueriedNames::Existing) => "NOERROR",
        (_, QueriedNames::Denied) => "NXDOMAIN",
    }
}

/// Checks the results of a load. Fails if the server lost at least [`MAX_LOST_SHARE`] of the
/// queries, or answered more than [`DEVIATION_SHARE`] of them with an error code. Other conditions
/// that make the figures doubtful or too favourable become notes.
fn check_load(
    combination: Combination,
    names: QueriedNames,
    figures: &LoadFigures,
) -> Result<Vec<Note>, CompareError> {
    let LoadFigures { queries: all, lost, truncated, .. } = *figures;
    let share = |count: u64, all: u64| if all == 0 { 0.0 } else { count as f64 / all as f64 };
    let unanswered = |wrong, rcode| Err(CompareError::NotAnswered { combination, names, wrong, all, rcode });
    let mut notes = Vec::new();
    let mut note = |cause, share: f64| notes.push(Note::new(cause, Some(names), Some(share * 100.0)));
    let lost_share = share(lost, all);
    if all == 0 || lost_share >= MAX_LOST_SHARE {
        return unanswered(lost, None);
    }
    if lost_share > DEVIATION_SHARE {
        note(NoteCause::Lost, lost_share);
    }
    let truncated_share = share(truncated, all.saturating_sub(lost));
    if truncated_share > DEVIATION_SHARE {
        note(NoteCause::Truncated, truncated_share);
    }
    let expected = expected_rcode(combination, names);
    for (rcode, &count) in figures.rcodes.iter().filter(|(rcode, _)| *rcode != expected) {
        // Both response codes are answers. An unexpected one is possible, because the queries may
        // not fit the zone exactly.
        let is_answer = matches!(rcode.as_str(), "NOERROR" | "NXDOMAIN");
        let is_frequent = share(count, all) > DEVIATION_SHARE;
        if !is_answer && is_frequent {
            return unanswered(count, Some(rcode.clone()));
        }
        if !is_answer || is_frequent {
            note(NoteCause::Rcode(rcode.clone()), share(count, all));
        }
    }
    Ok(notes)
}

/// Returns notes about loads in which the server was not fully loaded: queries per second then do
/// not describe the server.
fn idle_notes(row: &Row) -> Vec<Note> {
    let loads = [QueriedNames::Existing, QueriedNames::Denied].into_iter();
    let busy = loads.filter_map(|names| Some((names, row.load(names).server_cpus_busy?)));
    let idle = busy.filter(|(_, busy)| *busy < BUSY_SHARE);
    idle.map(|(names, busy)| Note::new(NoteCause::Idle, Some(names), Some(busy * 100.0))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::AlgorithmChoice;
    use nonesuch_crypto::Algorithm;

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

    fn check(names: QueriedNames, rounds: &[LoadReport]) -> Result<Vec<Note>, CompareError> {
        check_load(Combination::Unsigned, names, &combine_rounds(rounds))
    }

    fn note(cause: NoteCause, names: QueriedNames, percent: f64) -> Note {
        Note::new(cause, Some(names), Some(percent))
    }

    #[test]
    fn a_load_without_deviation_has_no_notes() {
        assert_eq!(check(QueriedNames::Existing, &[round(1000, 5, "NOERROR", 1.0)]).expect("answered"), []);
        assert_eq!(check(QueriedNames::Denied, &[round(1000, 0, "NXDOMAIN", 1.0)]).expect("answered"), []);
    }

    #[test]
    fn loss_and_unexpected_response_codes_are_noted() {
        let notes = check(QueriedNames::Existing, &[round(960, 40, "NOERROR", 1.0)]).expect("answered");
        assert_eq!(notes, [note(NoteCause::Lost, QueriedNames::Existing, 4.0)]);
        let rcode =
            |code: &str, percent| note(NoteCause::Rcode(code.to_owned()), QueriedNames::Denied, percent);
        let rounds = [round(900, 0, "NXDOMAIN", 1.0), round(100, 0, "NOERROR", 1.0)];
        assert_eq!(check(QueriedNames::Denied, &rounds).expect("answered"), [rcode("NOERROR", 10.0)]);
        let rounds = [round(999, 0, "NXDOMAIN", 1.0), round(1, 0, "SERVFAIL", 1.0)];
        assert_eq!(check(QueriedNames::Denied, &rounds).expect("answered"), [rcode("SERVFAIL", 0.1)]);
    }

    #[test]
    fn compact_denial_answers_with_noerror() {
        let choice = AlgorithmChoice { algorithm: Algorithm::ED25519, bits: None };
        let compact = Combination::Signed(choice, Mechanism::Compact);
        let figures = combine_rounds(&[round(1000, 0, "NOERROR", 1.0)]);
        assert_eq!(check_load(compact, QueriedNames::Denied, &figures).expect("answered"), []);
        assert_eq!(
            check_load(Combination::Unsigned, QueriedNames::Denied, &figures).expect("answered").len(),
            1
        );
    }

    #[test]
    fn truncation_is_noted() {
        let cut = LoadReport { truncated: 250, ..round(1000, 0, "NXDOMAIN", 1.0) };
        let notes = check(QueriedNames::Denied, &[cut]).expect("answered");
        assert_eq!(notes, [note(NoteCause::Truncated, QueriedNames::Denied, 25.0)]);
        let notes_of = |truncated| {
            let round = LoadReport { truncated, ..round(1000, 100, "NXDOMAIN", 1.0) };
            check(QueriedNames::Denied, &[round]).expect("answered").len()
        };
        assert_eq!((notes_of(10), notes_of(11)), (1, 2), "in addition to the lost ones");
    }

    #[test]
    fn a_server_that_does_not_serve_is_an_error() {
        let error = check(QueriedNames::Existing, &[round(100, 0, "REFUSED", 1.0)]).expect_err("refused");
        let CompareError::NotAnswered { wrong, all, rcode, .. } = &error else { panic!("{error}") };
        assert_eq!((*wrong, *all, rcode.as_deref()), (100, 100, Some("REFUSED")));
        assert_eq!(
            error.to_string(),
            "unsigned, existing names: 100 of 100 queries were answered with REFUSED; measurements of such a server are meaningless"
        );
        let outcome = check(QueriedNames::Existing, &[round(40, 60, "NOERROR", 1.0)]);
        assert!(matches!(outcome, Err(CompareError::NotAnswered { rcode: None, wrong: 60, .. })));
        assert!(check(QueriedNames::Existing, &[]).is_err());
    }

    #[test]
    fn an_idle_server_is_noted() {
        let mut row = Row::of(Combination::Unsigned);
        row.existing.server_cpus_busy = Some(0.5);
        row.denied.server_cpus_busy = Some(0.97);
        assert_eq!(idle_notes(&row), [note(NoteCause::Idle, QueriedNames::Existing, 50.0)]);
    }
}
