//! `nonesuch compare`.

mod error;

pub(crate) use error::Failure;

use crate::arguments::CompareArguments;
use crate::files::{FileError, print_line, print_summary, write_failure, write_output};
use crate::outcome::CommandOutcome;
use crate::{progress, zones};
use nonesuch_lab::experiment::compare::{
    CompareOptions, Comparison, JSON_FILE, PAGE_FILE, Subject, USUAL, cells, compare,
};
use nonesuch_lab::generate::GenerateOptions;
use nonesuch_lab::measure::{Choice, serving};
use std::process::Command;

pub(crate) fn run(arguments: &CompareArguments) -> Result<CommandOutcome, Failure> {
    if let Some(mechanism) =
        arguments.denial.iter().find(|mechanism| !mechanism.entry().is_served_without_keys())
    {
        return Err(Failure::NotCompared { mechanism: mechanism.entry().title });
    }
    let failed = |source| FileError::Write { path: arguments.out.clone(), source };
    std::fs::create_dir_all(&arguments.out).map_err(failed)?;
    let work_dir = tempfile::tempdir_in(&arguments.out).map_err(failed)?;
    let program =
        std::env::current_exe().map_err(|source| FileError::Read { path: "nonesuch".into(), source })?;
    let subject = subject(arguments)?;
    let choices = match arguments.algorithms.as_slice() {
        _ if arguments.all => Choice::all(),
        [] => USUAL.to_vec(),
        chosen => chosen.to_vec(),
    };
    let cells = cells(&choices, &arguments.denial);
    let bar = progress::bar(cells.len() as u64, "");
    let comparison = compare(&CompareOptions {
        subject: &subject,
        cells: &cells,
        server: &|file, origin| serving(Command::new(&program), &origin.to_string(), file, 1),
        seconds_per_load: arguments.seconds,
        work_dir: work_dir.path(),
        now: zones::now_or(arguments.now),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        progress: &|step| progress::show(&bar, step),
    })?;
    bar.finish_and_clear();
    write_reports(arguments, &comparison)?;
    Ok(CommandOutcome::Done)
}

fn write_reports(arguments: &CompareArguments, comparison: &Comparison) -> Result<(), Failure> {
    let (json, page) = (arguments.out.join(JSON_FILE), arguments.out.join(PAGE_FILE));
    for (path, text) in [(&json, comparison.to_json()?), (&page, comparison.page()?)] {
        write_output(path, 0o644, |out| out.write_all(text.as_bytes()).map_err(write_failure(path)))?;
    }
    if arguments.json {
        return Ok(print_line(&serde_json::json!(comparison).to_string())?);
    }
    print_line(&comparison.table()?)?;
    Ok(print_summary(&format!("{} and {} written", json.display(), page.display()))?)
}

fn subject(arguments: &CompareArguments) -> Result<Subject, Failure> {
    let Some(file) = &arguments.file else {
        let origin = arguments.origin.as_ref().map_or_else(|| "example.".to_owned(), ToString::to_string);
        let options = GenerateOptions {
            like: arguments.like,
            names: arguments.names,
            seed: arguments.seed,
            origin: &origin,
        };
        return Ok(Subject::generated(&options)?);
    };
    let contents = zones::read_zone(file, arguments.origin.as_ref())?;
    Ok(Subject::of_zone(&contents, file.display().to_string(), arguments.seed)?)
}
