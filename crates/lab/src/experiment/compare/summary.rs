//! Summaries for the report: notes by cause, and sets of rows in words.

use super::decision::{Exclusion, Reason};
use super::figures::{Note, NoteCause, Row};
use crate::experiment::parameters::QueriedNames;
use crate::statistics::ValueRange;
use nonesuch_dnssec::Mechanism;
use serde::Serialize;

/// A cause of notes, and the rows that have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct NoteSummary {
    #[serde(flatten)]
    cause: NoteCause,
    /// Percentages in the notes, by kind of query.
    percentages: Vec<Percentages>,
    rows: String,
}

/// The percentages of one cause with one kind of query.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Percentages {
    names: QueriedNames,
    range: ValueRange,
}

/// An exclusion, with its rows in words.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ExclusionSummary {
    reason: Reason,
    rows: String,
}

/// Returns one summary for each cause, in the order of first occurrence.
pub(super) fn summarise_notes(rows: &[Row]) -> Vec<NoteSummary> {
    let mut causes: Vec<&NoteCause> = Vec::new();
    for note in rows.iter().flat_map(|row| &row.notes) {
        if !causes.contains(&&note.cause) {
            causes.push(&note.cause);
        }
    }
    causes.into_iter().map(|cause| summarise_cause(cause, rows)).collect()
}

fn summarise_cause(cause: &NoteCause, rows: &[Row]) -> NoteSummary {
    let of_cause =
        |row: &Row| -> Vec<Note> { row.notes.iter().filter(|note| note.cause == *cause).cloned().collect() };
    let notes: Vec<Note> = rows.iter().flat_map(of_cause).collect();
    let percentages = |names| {
        let notes = notes.iter().filter(|note| note.names == Some(names));
        let values: Vec<f64> = notes.filter_map(|note| note.percent).collect();
        ValueRange::median(&values).map(|range| Percentages { names, range })
    };
    let affected: Vec<usize> = (0..rows.len()).filter(|index| !of_cause(&rows[*index]).is_empty()).collect();
    NoteSummary {
        cause: cause.clone(),
        percentages: [QueriedNames::Existing, QueriedNames::Denied]
            .into_iter()
            .filter_map(percentages)
            .collect(),
        rows: describe_rows(rows, &affected),
    }
}

/// Returns the exclusions with their rows in words.
pub(super) fn summarise_exclusions(excluded: &[Exclusion], rows: &[Row]) -> Vec<ExclusionSummary> {
    let summary = |exclusion: &Exclusion| ExclusionSummary {
        reason: exclusion.reason,
        rows: describe_rows(rows, &exclusion.rows),
    };
    excluded.iter().map(summary).collect()
}

/// Returns the algorithm of a row with its key length: `RSASHA256/2048`.
fn label(row: &Row) -> String {
    let algorithm = row.algorithm.as_deref().unwrap_or("unsigned");
    row.bits.map_or_else(|| algorithm.to_owned(), |bits| format!("{algorithm}/{bits}"))
}

fn title(row: &Row) -> &str {
    let mechanism = row.denial.as_deref().and_then(|name| name.parse::<Mechanism>().ok());
    mechanism.map_or("", |mechanism| mechanism.entry().title)
}

/// Names the selected rows: `MLDSA44 with all mechanisms; NSEC5 with all algorithms; ED25519 with
/// NSEC, NSEC3`. `selected` contains indices in ascending order.
fn describe_rows(rows: &[Row], selected: &[usize]) -> String {
    let is_signed = |index: &usize| rows[*index].algorithm.is_some();
    if selected.iter().filter(|index| is_signed(index)).count() == (0..rows.len()).filter(is_signed).count() {
        return if selected.len() == rows.len() { "all" } else { "all signed zones" }.to_owned();
    }
    // Whether all measured rows with the same key are selected, and there are several.
    let is_complete = |key: &dyn Fn(&Row) -> String, row: &Row| {
        let same = (0..rows.len()).filter(|index| key(&rows[*index]) == key(row)).collect::<Vec<_>>();
        same.len() > 1 && same.iter().all(|index| selected.contains(index))
    };
    let by_title = |row: &Row| title(row).to_owned();
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for row in selected.iter().map(|index| &rows[*index]) {
        let (group, member) = if is_complete(&label, row) {
            (label(row), "all mechanisms".to_owned())
        } else if is_complete(&by_title, row) {
            (by_title(row), "all algorithms".to_owned())
        } else {
            (label(row), by_title(row))
        };
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, members)) if members.contains(&member) => {}
            Some((_, members)) => members.push(member),
            None => groups.push((group, vec![member])),
        }
    }
    let describe = |(group, members): &(String, Vec<String>)| match members.join(", ") {
        members if members.is_empty() => group.clone(),
        members => format!("{group} with {members}"),
    };
    groups.iter().map(describe).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::sample;
    use super::*;

    #[test]
    fn notes_are_joined_by_cause() {
        let mut rows = sample().rows;
        let note = |names, percent| Note::new(NoteCause::Truncated, Some(names), Some(percent));
        rows[1].notes = vec![note(QueriedNames::Existing, 5.0), note(QueriedNames::Denied, 100.0)];
        rows[3].notes = vec![note(QueriedNames::Denied, 50.0)];
        let summaries = summarise_notes(&rows);
        assert_eq!(summaries.len(), 2);
        let NoteSummary { cause, percentages, rows } = &summaries[0];
        assert_eq!(
            (cause, rows.as_str()),
            (&NoteCause::Truncated, "RSASHA256/2048 with NSEC, NSEC3 opt-out")
        );
        let denied = ValueRange { value: 75.0, least: 50.0, most: 100.0 };
        assert_eq!(
            percentages,
            &[
                Percentages { names: QueriedNames::Existing, range: ValueRange::exact(5.0) },
                Percentages { names: QueriedNames::Denied, range: denied }
            ]
        );
    }

    #[test]
    fn rows_are_named_by_algorithm() {
        let rows = sample().rows;
        assert_eq!(describe_rows(&rows, &[0]), "unsigned");
        assert_eq!(describe_rows(&rows, &[4]), "ECDSAP256SHA256 with NSEC");
        assert_eq!(
            describe_rows(&rows, &[1, 2, 3, 4]),
            "RSASHA256/2048 with all mechanisms; NSEC with all algorithms"
        );
        assert_eq!(
            describe_rows(&rows, &[1, 2, 5, 6]),
            "RSASHA256/2048 with NSEC; NSEC3 with all algorithms; ECDSAP256SHA256 with NSEC3 opt-out"
        );
        let all: Vec<usize> = (0..rows.len()).collect();
        assert_eq!(
            (describe_rows(&rows, &all).as_str(), describe_rows(&rows, &all[1..]).as_str()),
            ("all", "all signed zones")
        );
    }
}
