//! `nonesuch check`: functional checks of servers and zones. One file for each kind of check.

mod authoritative;
mod proxy;
mod resolver;
mod zone;

use crate::arguments::{CheckCommand, CheckOptions};
use crate::commands::query::QueryError;
use crate::files::{
    FileError, check_distinct_outputs, check_writable, print_line, write_failure, write_output,
};
use crate::outcome::CommandOutcome;
use crate::progress;
use crate::zones::AnchorError;
use nonesuch_lab::check::{CheckReport, Picture, Row, Selection, UnknownItem, list_text, run_rows};
use nonesuch_lab::report::PageError;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Why `nonesuch check` fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    Anchor(#[from] AnchorError),
    Authoritative(#[from] authoritative::Failure),
    File(#[from] FileError),
    Item(#[from] UnknownItem),
    Page(#[from] PageError),
    Proxy(#[from] proxy::Failure),
    Resolver(#[from] resolver::Failure),
    Server(#[from] QueryError),
    Zone(#[from] zone::Failure),
}

pub(crate) fn run(command: &CheckCommand) -> Result<CommandOutcome, Failure> {
    match command {
        CheckCommand::Authoritative(arguments) => authoritative::run(arguments),
        CheckCommand::Proxy(arguments) => proxy::run(arguments),
        CheckCommand::Resolver(arguments) => resolver::run(arguments),
        CheckCommand::Zone(arguments) => zone::run(arguments),
    }
}

impl CheckOptions {
    /// The time limit for a response.
    fn timeout(&self) -> Duration {
        // The argument is at most 60 seconds.
        Duration::try_from_secs_f64(self.timeout).unwrap_or(Duration::MAX)
    }

    /// The selected rows of a table. Checks that the outputs can be written.
    fn select<C>(
        &self,
        rows: impl IntoIterator<Item = &'static Row<C>>,
    ) -> Result<Vec<&'static Row<C>>, Failure> {
        let items = self.item.iter().chain(&self.explain).cloned().collect();
        let rows = Selection { profile: self.profile, items }.select(rows)?;
        for output in [&self.junit, &self.html].into_iter().flatten() {
            check_writable(output)?;
        }
        if let (Some(junit), Some(html)) = (&self.junit, &self.html) {
            check_distinct_outputs(junit, html)?;
        }
        Ok(rows)
    }
}

/// The kind of the check, and its object.
struct Subject {
    /// The kind of the check, as in [`CheckReport::kind`].
    kind: &'static str,
    /// The server or zone.
    name: String,
}

/// Prints all items of a table.
fn list<C: 'static>(rows: impl IntoIterator<Item = &'static Row<C>>) -> Result<CommandOutcome, Failure> {
    let text = list_text(rows.into_iter().map(|row| &row.item));
    print_line(text.trim_end_matches('\n'))?;
    Ok(CommandOutcome::Done)
}

/// Runs the rows with `context`, shows the progress on a terminal, and writes the results. `facts` gets the
/// context after the last item.
fn run_and_report<C>(
    options: &CheckOptions,
    subject: Subject,
    rows: &[&'static Row<C>],
    context: &mut C,
    facts: impl FnOnce(&C) -> Vec<(String, String)>,
) -> Result<CommandOutcome, Failure> {
    let report = run_with_progress(options, subject, rows, context, facts);
    write_report(options, &report, None)?;
    Ok(outcome(&report))
}

/// Negative if an item failed.
fn outcome(report: &CheckReport) -> CommandOutcome {
    if report.summary().failed == 0 { CommandOutcome::Done } else { CommandOutcome::Negative }
}

/// Runs the rows with `context`, and shows the progress on a terminal.
fn run_with_progress<C>(
    options: &CheckOptions,
    subject: Subject,
    rows: &[&'static Row<C>],
    context: &mut C,
    facts: impl FnOnce(&C) -> Vec<(String, String)>,
) -> CheckReport {
    let started_at = SystemTime::now();
    let bar = progress::bar(rows.len() as u64, "checking");
    let results = run_rows(rows, context, &mut |index, item| {
        bar.set_position(index as u64);
        bar.set_message(item.id);
    });
    bar.finish_and_clear();
    let (kind, profile) = (subject.kind, options.profile);
    CheckReport { kind, subject: subject.name, profile, started_at, facts: facts(context), results }
}

/// Prints the results, and writes the files. The page gets the picture.
fn write_report(
    options: &CheckOptions,
    report: &CheckReport,
    picture: Option<Picture>,
) -> Result<(), Failure> {
    if let Some(path) = &options.junit {
        write_text(path, &report.to_junit())?;
    }
    if let Some(path) = &options.html {
        let page = picture.map_or_else(|| report.to_html(), |picture| report.to_html_with(picture))?;
        write_text(path, &page)?;
    }
    if options.json {
        print_line(&report.to_json().to_string())?;
    } else {
        let explained: Vec<String> = options.explain.iter().filter_map(|id| report.explain(id)).collect();
        let text = [&[report.to_text()][..], &explained].concat().join("\n");
        print_line(text.trim_end_matches('\n'))?;
    }
    Ok(())
}

fn write_text(path: &Path, text: &str) -> Result<(), FileError> {
    write_output(path, 0o644, |out| out.write_all(text.as_bytes()).map_err(write_failure(path)))
}
