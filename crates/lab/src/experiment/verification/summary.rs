//! From the data to a line for each program, subject and operation.

use super::About;
use super::foreign;
use super::subject::{Operation, Subject};
use crate::experiment::data::{DataColumn, DataTable, Kind, Value};
use crate::experiment::results::UnreadableColumn;
use crate::experiment::statistics::Statistics;
use serde::Serialize;

/// Above this share of time without the processor, a reader is warned.
const DISTURBED: f64 = 0.02;

/// The columns of the data: those of times, and those of counted instructions.
pub(super) fn columns() -> Vec<DataColumn> {
    [time_columns(), foreign::columns()].concat()
}

/// The columns that every table of data has.
fn time_columns() -> Vec<DataColumn> {
    let column = DataColumn::new;
    vec![
        column(
            "iteration",
            Kind::Integer,
            "Number of the iteration, from 0; missing where instructions were counted",
        ),
        column("backend", Kind::Text, "Program that measured: nonesuch or openssl"),
        column(
            "level",
            Kind::Text,
            "Instruction level: native, x86-64-v3 or x86-64-v2; the processor where instructions were counted",
        ),
        column(
            "subject",
            Kind::Text,
            "What was measured: the algorithm's mnemonic, for RSA with the length of the key, the VRF's name, \
            for batches with their size; for openssl speed its own name",
        ),
        column("scheme", Kind::Text, "The signature scheme or VRF in words; both hashes of RSA share one"),
        column("library", Kind::Text, "What implements it"),
        column("operation", Kind::Text, "verify, sign or prove"),
        column(
            "operations",
            Kind::Integer,
            "Operations that were done; in a batch, each signature or proof counts",
        ),
        column(
            "seconds",
            Kind::Number,
            "Time on the wall that they took, s; missing where instructions were counted",
        ),
        column(
            "cpu_seconds",
            Kind::Number,
            "Time that the processor spent on them, up to the last tick of the system's \
            clock, s; missing where the system or the program does not tell",
        ),
    ]
}

/// What one program's measurements of one operation come to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Line {
    /// Place among [`About::backends`].
    #[serde(skip)]
    pub(super) place: usize,
    pub(super) backend: String,
    pub(super) level: String,
    pub(super) subject: String,
    pub(super) scheme: String,
    pub(super) library: String,
    pub(super) operation: Operation,
    /// Operations a second, over the iterations.
    pub(super) per_second: Statistics,
}

impl Line {
    /// Whether it is of a VRF.
    pub(super) fn is_vrf(&self) -> bool {
        self.subject.parse().is_ok_and(|subject: Subject| subject.is_vrf())
    }
}

/// The cells of one row, by their columns.
struct Reader<'d> {
    data: &'d DataTable,
    places: Vec<usize>,
}

impl<'d> Reader<'d> {
    fn new(data: &'d DataTable) -> Result<Self, UnreadableColumn> {
        let place = |wanted: &DataColumn| {
            let place = data.place(&wanted.name).filter(|place| data.columns()[*place].kind == wanted.kind);
            place.ok_or_else(|| UnreadableColumn(wanted.name.clone()))
        };
        let places = time_columns().iter().map(place).collect::<Result<_, _>>()?;
        Ok(Self { data, places })
    }

    /// The cells of every row, in the order of [`time_columns`].
    fn rows(&self) -> impl Iterator<Item = Vec<&'d Value>> {
        let rows = self.data.rows().iter();
        rows.map(|row| self.places.iter().filter_map(|place| row.get(*place)).collect())
    }
}

/// The lines, in the order of the programs, then of first occurrence. Rows without a positive time say nothing.
pub(super) fn lines(about: &About, data: &DataTable) -> Result<Vec<Line>, UnreadableColumn> {
    let mut groups: Vec<(Line, Vec<f64>)> = Vec::new();
    for row in Reader::new(data)?.rows() {
        let [_, backend, level, subject, scheme, library, operation, operations, seconds, _] = row[..] else {
            continue;
        };
        let text = |cell: &Value| cell.as_text().unwrap_or_default().to_owned();
        let Ok(operation) = text(operation).parse() else { continue };
        let (Some(operations), Some(seconds)) = (operations.as_integer(), seconds.as_number()) else {
            continue;
        };
        let is_of = |known: &super::Backend| {
            Some(&*known.name) == backend.as_text() && Some(&*known.level) == level.as_text()
        };
        let Some(place) = about.backends.iter().position(is_of) else { continue };
        if !(seconds > 0.0 && operations >= 0) {
            continue;
        }
        let per_second = operations as f64 / seconds;
        let known = groups.iter_mut().find(|(line, _)| {
            line.place == place && line.operation == operation && Some(&*line.subject) == subject.as_text()
        });
        match known {
            Some((_, values)) => values.push(per_second),
            None => {
                let line = Line {
                    place,
                    backend: text(backend),
                    level: text(level),
                    subject: text(subject),
                    scheme: text(scheme),
                    library: text(library),
                    operation,
                    per_second: Statistics::default(),
                };
                groups.push((line, vec![per_second]));
            }
        }
    }
    groups.sort_by_key(|(line, _)| line.place);
    let finish = |(line, values): (Line, Vec<f64>)| {
        Statistics::of(&values).map(|per_second| Line { per_second, ..line })
    };
    Ok(groups.into_iter().filter_map(finish).collect())
}

/// The rate to go by: the median, which a short disturbance does not move. Where a scheme has several subjects, as RSA
/// has for its hashes, the first counts.
pub(super) fn rate(lines: &[Line], place: usize, scheme: &str, operation: Operation) -> Option<f64> {
    let line =
        lines.iter().find(|line| line.place == place && line.scheme == scheme && line.operation == operation);
    line.map(|line| line.per_second.median).filter(|rate| *rate > 0.0)
}

/// The signature schemes, or the VRFs, in the order of first occurrence.
pub(super) fn schemes(lines: &[Line], vrf: bool) -> Vec<String> {
    let mut schemes: Vec<String> = Vec::new();
    for line in lines.iter().filter(|line| line.is_vrf() == vrf) {
        if !schemes.contains(&line.scheme) {
            schemes.push(line.scheme.clone());
        }
    }
    schemes
}

/// A warning where the processor did other things while it was measured.
pub(super) fn disturbance(data: &DataTable) -> Option<String> {
    let (mut wall, mut cpu) = (0.0, 0.0);
    for row in Reader::new(data).ok()?.rows() {
        if let [.., seconds, cpu_seconds] = row[..]
            && let (Some(seconds), Some(cpu_seconds)) = (seconds.as_number(), cpu_seconds.as_number())
        {
            wall += seconds;
            cpu += cpu_seconds;
        }
    }
    let lost = 1.0 - cpu / wall;
    (wall > 0.0 && lost > DISTURBED).then(|| {
        format!(
            "Other programs had the processor for {:.0} % of the time: rates are too low by that much in the mean, and \
             spread more than on an idle machine.",
            100.0 * lost
        )
    })
}
