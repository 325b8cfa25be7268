//! `nonesuch compare`.

mod error;

pub(crate) use error::Failure;

use crate::arguments::CompareArguments;
use crate::files::{FileError, print_line, print_summary, write_failure, write_output};
use crate::outcome::{COMMIT, CommandOutcome, command_line};
use crate::{progress, zones};
use nonesuch_lab::experiment::compare::{
    CompareOptions, ComparedZone, Comparison, DEFAULT_ALGORITHMS, DEFAULT_MECHANISMS, JSON_FILE, PAGE_FILE,
    combinations, compare,
};
use nonesuch_lab::generate::GenerateOptions;
use nonesuch_lab::measure::{AlgorithmChoice, serve_command};
use std::process::Command;

pub(crate) fn run(arguments: &CompareArguments) -> Result<CommandOutcome, Failure> {
    let failed = |source| FileError::Write { path: arguments.out.clone(), source };
    std::fs::create_dir_all(&arguments.out).map_err(failed)?;
    let work_dir = tempfile::tempdir_in(&arguments.out).map_err(failed)?;
    let program =
        std::env::current_exe().map_err(|source| FileError::Read { path: "nonesuch".into(), source })?;
    let zone = compared_zone(arguments)?;
    let choices = match arguments.algorithms.as_slice() {
        _ if arguments.all => {
            AlgorithmChoice::all().into_iter().filter(|choice| !choice.signs_slowly()).collect()
        }
        [] => DEFAULT_ALGORITHMS.to_vec(),
        chosen => chosen.to_vec(),
    };
    let mechanisms = match arguments.denial.as_slice() {
        [] if !arguments.all => DEFAULT_MECHANISMS.to_vec(),
        chosen => chosen.to_vec(),
    };
    let combinations = combinations(&choices, &mechanisms);
    let bar = progress::bar(combinations.len() as u64, "");
    let comparison = compare(&CompareOptions {
        zone: &zone,
        combinations: &combinations,
        required_properties: &arguments.needs,
        server: &|zone| serve_command(Command::new(&program), zone, 1),
        seconds_per_load: arguments.seconds,
        work_dir: work_dir.path(),
        now: zones::time_or_now(arguments.now),
        command: command_line(),
        seed: arguments.seed,
        commit: COMMIT,
        progress: &|step| progress::show_step(&bar, step),
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

fn compared_zone(arguments: &CompareArguments) -> Result<ComparedZone, Failure> {
    let Some(file) = &arguments.file else {
        let origin = arguments.origin.as_ref().map_or_else(|| "example.".to_owned(), ToString::to_string);
        let options = GenerateOptions {
            like: arguments.like,
            names: arguments.names,
            seed: arguments.seed,
            origin: &origin,
        };
        return Ok(ComparedZone::generate(&options)?);
    };
    let contents = zones::read_zone(file, arguments.origin.as_ref())?;
    Ok(ComparedZone::of_contents(&contents, file.display().to_string(), arguments.seed)?)
}
