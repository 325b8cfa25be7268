//! `nonesuch adoption generate`: snapshots of a model with known counts, for tests of reports.
//!
//! The same arguments result in the same files on every machine and with every number of threads.

mod domain;
mod model;
mod truth;

use crate::arguments::GenerateArguments;
use crate::error::AdoptionError;
use crate::output::{create_directory, write_file};
use crate::parallel;
use crate::progress;
use crate::snapshot::{Day, Nsec3, Row, SnapshotWriter, date_text, day_of};
use domain::{Domain, State};
use model::{OPERATORS, Operator, SOURCES};
use std::path::Path;
use truth::{SnapshotTruth, Truth};

/// Name of the file with the counts.
pub(crate) const TRUTH_FILE: &str = "truth.json";

/// The days of a month; each month is a file.
struct Month {
    name: String,
    days: Vec<Day>,
}

pub(crate) fn run(arguments: &GenerateArguments) -> Result<(), AdoptionError> {
    let (from, to) = (day_of(arguments.from), day_of(arguments.to));
    if to < from {
        return Err(AdoptionError::Period { from: arguments.from, to: arguments.to });
    }
    create_directory(&arguments.out)?;
    let months = months(from, to, arguments.every);
    if !arguments.force {
        refuse_existing(&arguments.out, &months)?;
    }
    let population = Population { domains: domain::population(arguments.domains, arguments.seed), from, to };
    let progress = progress::bar(months.len(), "months");
    let results = parallel::map(&months, arguments.threads.count(), |month| {
        let result = population.write_month(&arguments.out, month);
        progress.inc(1);
        result
    });
    progress.finish_and_clear();
    let snapshots = results.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
    let rows: u64 = snapshots.iter().map(|snapshot| snapshot.domains).sum();
    write_truth(arguments, &snapshots)?;
    let days: usize = months.iter().map(|month| month.days.len()).sum();
    eprintln!("{}: {rows} rows, {days} days, {} files", arguments.out.display(), months.len());
    Ok(())
}

fn months(from: Day, to: Day, every: u16) -> Vec<Month> {
    let mut months: Vec<Month> = Vec::new();
    for day in (from..=to).step_by(every.into()) {
        let name = date_text(day)[..7].to_owned();
        match months.last_mut() {
            Some(month) if month.name == name => month.days.push(day),
            _ => months.push(Month { name, days: vec![day] }),
        }
    }
    months
}

fn refuse_existing(out: &Path, months: &[Month]) -> Result<(), AdoptionError> {
    let names = months.iter().map(|month| file_name(&month.name)).chain([TRUTH_FILE.to_owned()]);
    match names.map(|name| out.join(name)).find(|path| path.exists()) {
        Some(path) => Err(AdoptionError::Exists(path)),
        None => Ok(()),
    }
}

fn file_name(month: &str) -> String {
    format!("snapshots-{month}.parquet")
}

/// Writes the counts of the first snapshot of each month and of the last day; those of all days would be as
/// large as the data.
fn write_truth(arguments: &GenerateArguments, snapshots: &[SnapshotTruth]) -> Result<(), AdoptionError> {
    let truth = Truth {
        seed: arguments.seed,
        domains: arguments.domains,
        from: arguments.from.to_string(),
        to: arguments.to.to_string(),
        every_days: arguments.every,
        rows: snapshots.iter().map(|snapshot| snapshot.domains).sum(),
        operators: OPERATORS.to_vec(),
        snapshots: truth::selected(snapshots),
    };
    let json = serde_json::to_vec_pretty(&truth).unwrap_or_default();
    write_file(&arguments.out.join(TRUTH_FILE), &json)
}

struct Population {
    /// In the order of their sources and names.
    domains: Vec<Domain>,
    from: Day,
    to: Day,
}

impl Population {
    /// Writes the file of a month, and returns the counts of its snapshots.
    fn write_month(&self, out: &Path, month: &Month) -> Result<Vec<SnapshotTruth>, AdoptionError> {
        let mut writer = SnapshotWriter::create(&out.join(file_name(&month.name)))?;
        let mut truths = Vec::new();
        for day in &month.days {
            self.write_day(*day, &mut writer, &mut truths)?;
        }
        writer.finish()?;
        Ok(truths)
    }

    fn write_day(
        &self,
        day: Day,
        writer: &mut SnapshotWriter,
        truths: &mut Vec<SnapshotTruth>,
    ) -> Result<(), AdoptionError> {
        let progress = f64::from(day - self.from) / f64::from((self.to - self.from).max(1));
        for of_source in self.domains.chunk_by(|a, b| a.source == b.source) {
            let mut truth = SnapshotTruth::new(SOURCES[of_source[0].source].name, day);
            for domain in of_source.iter().filter(|domain| domain.born <= progress) {
                let state = domain.state(progress, day);
                truth.count(domain, state);
                writer.push(&row(domain, day, state))?;
            }
            if truth.domains > 0 {
                truths.push(truth);
            }
        }
        Ok(())
    }
}

/// Returns the row of a domain in this state.
fn row(domain: &Domain, day: Day, state: State) -> Row<'_> {
    let operator: &Operator = &OPERATORS[domain.operator];
    let base = Row {
        source: SOURCES[domain.source].name,
        day,
        domain: &domain.name,
        operator: Some(operator.name),
        rank: domain.rank,
        ..Row::default()
    };
    match state {
        State::Unknown => base,
        State::Unsigned => {
            Row { dnskey_algorithms: Some(""), ds_algorithms: Some(""), ds_digests: Some(""), ..base }
        }
        State::Keys { rollover, has_ds, zero_iterations } => Row {
            dnskey_algorithms: Some(operator.keys(rollover)),
            ds_algorithms: Some(if has_ds { operator.ds(rollover) } else { "" }),
            ds_digests: Some(if has_ds { operator.digests(rollover) } else { "" }),
            denial: Some(operator.denial),
            nsec3: nsec3(operator, zero_iterations),
            ..base
        },
    }
}

fn nsec3(operator: &Operator, zero_iterations: bool) -> Nsec3<'static> {
    let Some(parameters) = &operator.nsec3 else { return Nsec3::default() };
    Nsec3 {
        iterations: Some(if zero_iterations { 0 } else { parameters.iterations.into() }),
        salt: Some(if zero_iterations { "" } else { parameters.salt }),
        opt_out: Some(parameters.opt_out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_month_has_its_days() {
        let day = |text: &str| day_of(text.parse().expect("a date"));
        let months = months(day("2016-02-27"), day("2016-04-01"), 2);
        let shape: Vec<(&str, usize)> =
            months.iter().map(|month| (month.name.as_str(), month.days.len())).collect();
        assert_eq!(shape, [("2016-02", 2), ("2016-03", 15), ("2016-04", 1)]);
    }
}
