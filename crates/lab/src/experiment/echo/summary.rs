//! From the data to a line for each server, mechanism, kind of queries and number of workers.

use super::rows::{Row, SERVER, Subject, rows};
use crate::experiment::data::DataTable;
use crate::experiment::results::UnreadableColumn;
use crate::experiment::statistics::Statistics;
use serde::Serialize;

/// What the rounds of one subject come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Line {
    #[serde(skip)]
    pub(super) subject: Subject,
    pub(super) server: String,
    pub(super) denial: String,
    pub(super) queries: String,
    pub(super) workers: u16,
    pub(super) query_octets: f64,
    pub(super) response_octets: f64,
    /// CPU time of the server for each answer, µs.
    pub(super) cpu_us: Option<Statistics>,
    /// The part of it in the program.
    pub(super) user_us: Option<Statistics>,
    /// The part of it in the kernel.
    pub(super) system_us: Option<Statistics>,
    /// Answers a second.
    pub(super) per_second: Option<Statistics>,
    /// Share of the time that its workers had something to do.
    pub(super) busy: Option<Statistics>,
    /// CPU time in times of the floor's in the same round.
    pub(super) times_floor: Option<Statistics>,
    /// CPU time in times of that with one worker in the same round.
    pub(super) times_one_worker: Option<Statistics>,
}

/// The lines, in the order of first occurrence.
pub(super) fn lines(data: &DataTable) -> Result<Vec<Line>, UnreadableColumn> {
    let rows = rows(data)?;
    let mut subjects: Vec<&Subject> = Vec::new();
    // Echo servers of another size are told apart by it alone.
    let mut sizes: Vec<f64> = Vec::new();
    let mut lines = Vec::new();
    for row in &rows {
        let is_known = subjects.iter().zip(&sizes).any(|(subject, size)| is_of(row, subject, *size));
        if !is_known {
            subjects.push(&row.subject);
            sizes.push(row.response_octets);
            lines.push(line(&rows, row));
        }
    }
    Ok(lines)
}

fn is_of(row: &Row, subject: &Subject, size: f64) -> bool {
    // The sizes of answers to the same queries differ a little from round to round.
    row.subject == *subject && (!subject.denial.is_empty() || row.response_octets == size)
}

fn line(all: &[Row], first: &Row) -> Line {
    let subject = &first.subject;
    let own: Vec<&Row> = all.iter().filter(|row| is_of(row, subject, first.response_octets)).collect();
    let of = |part: &dyn Fn(&Row) -> Option<f64>| {
        Statistics::of(&own.iter().filter_map(|row| part(row)).collect::<Vec<_>>())
    };
    let mean = |part: fn(&Row) -> f64| own.iter().map(|row| part(row)).sum::<f64>() / own.len() as f64;
    let per_second = |row: &Row| (row.seconds > 0.0).then(|| row.received as f64 / row.seconds);
    // Round by round, so that a change of the machine's speed meets both.
    let times = |other: &dyn Fn(&Row) -> bool| {
        of(&|row| {
            let other = all.iter().find(|base| base.round == row.round && other(base))?;
            Some(row.cpu_us()? / other.cpu_us().filter(|cpu| *cpu > 0.0)?)
        })
    };
    let one_worker = |base: &Row| {
        let one = Subject { workers: 1, ..subject.clone() };
        is_of(base, &one, first.response_octets)
    };
    Line {
        server: subject.server.clone(),
        denial: subject.denial.clone(),
        queries: subject.queries.clone(),
        workers: subject.workers,
        query_octets: mean(|row| row.query_octets),
        response_octets: mean(|row| row.response_octets),
        cpu_us: of(&Row::cpu_us),
        user_us: of(&|row| row.user_us),
        system_us: of(&|row| row.system_us),
        per_second: of(&per_second),
        busy: of(&|row| Some(row.cpu_us()? * per_second(row)? / 1e6 / f64::from(subject.workers))),
        times_floor: (subject.server == SERVER)
            .then(|| times(&|base| base.subject.is_floor_of(subject)))
            .flatten(),
        times_one_worker: (subject.workers > 1).then(|| times(&one_worker)).flatten(),
        subject: subject.clone(),
    }
}
