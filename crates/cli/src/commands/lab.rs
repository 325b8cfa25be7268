//! `nonesuch lab`.

mod capture;
mod error;
mod list;
mod tree;

pub(crate) use error::Failure;

use crate::arguments::{
    LabCommand, LabEchoArguments, LabMeasureArguments, LabMergeArguments, LabReportArguments,
    LabRunArguments, LabZoneArguments,
};
use crate::files::{FileError, print_line, print_summary, print_to_stderr};
use crate::outcome::{COMMIT, CommandOutcome, command_line};
use crate::{progress, zones};
use nonesuch_lab::experiment::overview::{self, Failure as RunFailure};
use nonesuch_lab::experiment::{
    Definition, ParameterOverrides, Report, Results, RunOptions, Runs, built_in, merge,
    run as run_definition, store,
};
use nonesuch_lab::measure::{EchoOptions, EchoServer};
use nonesuch_lab::measure::{ExamineOptions, examine};
use nonesuch_lab::measure::{MeasureOptions, follow, measure};
use std::path::{Path, PathBuf};

pub(crate) fn run(command: &LabCommand) -> Result<CommandOutcome, Failure> {
    match command {
        LabCommand::List(arguments) => list::list(arguments),
        LabCommand::Run(arguments) => run_experiments(arguments),
        LabCommand::Report(arguments) => report(arguments),
        LabCommand::Merge(arguments) => merge_runs(arguments),
        LabCommand::Tree(arguments) => tree::run(arguments),
        LabCommand::Capture(arguments) => capture::run(arguments),
        LabCommand::Measure(arguments) => measure_raw(arguments),
        LabCommand::Zone(arguments) => examine_zone(arguments),
        LabCommand::Echo(arguments) => echo(arguments),
    }
}

/// Name of `lab run` for all built-in experiments.
const ALL: &str = "all";
/// Default directory of the results.
const RESULTS: &str = "nonesuch-lab";

fn run_experiments(arguments: &LabRunArguments) -> Result<CommandOutcome, Failure> {
    if arguments.name.as_deref() != Some(ALL) {
        let definition = read_definition(arguments)?;
        let default = || Path::new(RESULTS).join(&definition.name);
        return run_experiment(arguments, &definition, &arguments.out.clone().unwrap_or_else(default));
    }
    run_all(arguments, &arguments.out.clone().unwrap_or_else(|| RESULTS.into()))
}

/// Runs all built-in experiments, each with a directory in `parent`, and writes their overview. A
/// failed experiment does not end the run.
fn run_all(arguments: &LabRunArguments, parent: &Path) -> Result<CommandOutcome, Failure> {
    let mut failures = Vec::new();
    let overrides = ParameterOverrides { full: arguments.full, set: &settings(arguments) };
    let experiments = built_in(overrides)?;
    for definition in &experiments {
        print_summary(&format!("{}: {}", definition.name, definition.question))?;
        let out = parent.join(&definition.name);
        if let Err(error) = run_experiment(arguments, definition, &out) {
            print_to_stderr(&format!("nonesuch: error: {}: {error}", definition.name));
            let now = zones::time_or_now(arguments.now);
            failures.push(RunFailure::new(&definition.name, now, &error));
        }
    }
    overview::store_failures(parent, &failures)?;
    let overview = overview::write(parent, &experiments)?;
    if !arguments.json {
        print_summary(&overview.text())?;
        print_summary(&format!("{} written", overview::page_path(parent).display()))?;
    }
    let failed: Vec<String> = failures.into_iter().map(|failure| failure.experiment).collect();
    if failed.is_empty() { Ok(CommandOutcome::Done) } else { Err(Failure::Experiments(failed.join(", "))) }
}

/// Runs an experiment, and writes its results to the directory `out`.
fn run_experiment(
    arguments: &LabRunArguments,
    definition: &Definition,
    out: &Path,
) -> Result<CommandOutcome, Failure> {
    store::check_free(out, &definition.name, arguments.overwrite)?;
    // A directory that cannot be created is reported before the measurement starts.
    std::fs::create_dir_all(out).map_err(|source| FileError::Write { path: out.to_owned(), source })?;
    let program =
        std::env::current_exe().map_err(|source| FileError::Read { path: "nonesuch".into(), source })?;
    let bar = progress::bar(1, "");
    let results = run_definition(
        definition,
        &RunOptions {
            seed: arguments.seed,
            now: zones::time_or_now(arguments.now),
            command: command_line(),
            commit: COMMIT,
            levels_chosen: arguments.set.iter().any(|(key, _)| key == "levels"),
            program: &program,
            progress: &|step| progress::show_step(&bar, step),
        },
    )?;
    bar.finish_and_clear();
    store::save(out, &results)?;
    let Report { text, summary, .. } = results.report()?;
    let json = || serde_json::json!({ "record": results.record, "summary": summary });
    show(&text, arguments.json.then(json), &written_to(out))
}

/// Reads the experiment and applies the options that change its parameters.
fn read_definition(arguments: &LabRunArguments) -> Result<Definition, Failure> {
    let settings = settings(arguments);
    let overrides = ParameterOverrides { full: arguments.full, set: &settings };
    Ok(match (&arguments.experiment, &arguments.name) {
        (Some(path), _) => Definition::read(path, overrides)?,
        (None, name) => Definition::find(name.as_deref().unwrap_or_default(), overrides)?,
    })
}

/// Returns the parameters that the options set, and their values.
fn settings(arguments: &LabRunArguments) -> Vec<(String, String)> {
    let mut settings = arguments.set.clone();
    if let Some(path) = &arguments.zone {
        let path = path.display();
        let zone =
            arguments.origin.as_ref().map_or_else(|| path.to_string(), |origin| format!("{origin}={path}"));
        // A list in TOML, because a path may contain commas, which separate the items of a plain
        // list.
        settings.push(("zones".to_owned(), serde_json::json!([zone]).to_string()));
    }
    settings.extend(arguments.cpu.iter().map(|cpu| ("cpu".to_owned(), cpu.clone())));
    settings
}

fn report(arguments: &LabReportArguments) -> Result<CommandOutcome, Failure> {
    let experiments = built_in(ParameterOverrides::default())?;
    if overview::is_collection(&arguments.dir, &experiments) {
        return report_all(arguments, &experiments);
    }
    let runs = store::load(&arguments.dir)?;
    store::write_page(&arguments.dir, &runs)?;
    let page: PathBuf = arguments.dir.join(store::PAGE_FILE);
    if arguments.markdown {
        let sections: Result<Vec<String>, _> = runs.results().map(Results::markdown).collect();
        print_line(sections?.join("\n").trim_end())?;
        return Ok(CommandOutcome::Done);
    }
    show_runs(&runs, arguments.json, &format!("{} written", page.display()))
}

/// Writes the overview of the results of several experiments again.
fn report_all(arguments: &LabReportArguments, experiments: &[Definition]) -> Result<CommandOutcome, Failure> {
    let overview = overview::write(&arguments.dir, experiments)?;
    if arguments.markdown {
        print_line(overview.markdown().trim_end())?;
        return Ok(CommandOutcome::Done);
    }
    let written = format!("{} written", overview::page_path(&arguments.dir).display());
    show(&overview.text(), arguments.json.then(|| overview.json()), &written)
}

fn merge_runs(arguments: &LabMergeArguments) -> Result<CommandOutcome, Failure> {
    let runs = merge(&arguments.dirs, &arguments.out)?;
    store::check_free_for_runs(&arguments.out, &runs, arguments.overwrite)?;
    store::save_runs(&arguments.out, &runs)?;
    show_runs(&runs, arguments.json, &written_to(&arguments.out))
}

fn written_to(out: &Path) -> String {
    format!("{} written to {}", store::FILES.join(", "), out.display())
}

/// Prints the report of one run as `lab run` does, or that of several runs with all records.
fn show_runs(runs: &Runs, json: bool, written: &str) -> Result<CommandOutcome, Failure> {
    let Report { text, summary, .. } = runs.report()?;
    let records: Vec<_> = runs.results().map(|results| &results.record).collect();
    let json = json.then(|| match records.as_slice() {
        [record] => serde_json::json!({ "record": record, "summary": summary }),
        records => {
            serde_json::json!({ "records": records, "notes": runs.notes(), "summary": summary })
        }
    });
    show(&text, json, written)
}

fn show(text: &str, json: Option<serde_json::Value>, written: &str) -> Result<CommandOutcome, Failure> {
    match json {
        Some(json) => print_line(&json.to_string())?,
        None => {
            print_line(text)?;
            print_summary(written)?;
        }
    }
    Ok(CommandOutcome::Done)
}

fn measure_raw(arguments: &LabMeasureArguments) -> Result<CommandOutcome, Failure> {
    if arguments.follow {
        follow(COMMIT, std::io::stdin().lock(), std::io::stdout().lock())?;
        return Ok(CommandOutcome::Done);
    }
    let report = measure(&MeasureOptions {
        subjects: arguments.subjects.clone(),
        operations: arguments.operations.clone(),
        iterations: arguments.iterations,
        seconds: arguments.seconds,
        seed: arguments.seed,
        commit: COMMIT,
    });
    print_line(&serde_json::json!(report?).to_string())?;
    Ok(CommandOutcome::Done)
}

fn examine_zone(arguments: &LabZoneArguments) -> Result<CommandOutcome, Failure> {
    let examined = examine(&ExamineOptions {
        file: arguments.file.clone(),
        origin: arguments.origin.clone(),
        unsigned: arguments.unsigned.clone(),
        changed: arguments.changed.clone(),
        share: arguments.share,
        seed: arguments.seed,
        transfer: arguments.transfer,
    })?;
    print_line(&serde_json::json!(examined).to_string())?;
    Ok(CommandOutcome::Done)
}

fn echo(arguments: &LabEchoArguments) -> Result<CommandOutcome, Failure> {
    let server = EchoServer::start(&EchoOptions {
        listen: arguments.listen,
        octets: arguments.octets,
        workers: arguments.workers,
        cpus: arguments.cpus.clone(),
    })?;
    print_line(&format!("ready: returning queries sent to {} (udp)", server.address))?;
    loop {
        std::thread::park();
    }
}
