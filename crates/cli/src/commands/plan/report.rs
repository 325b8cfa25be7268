//! Recordings as input, and reports as output, of `plan fit` and `plan predict`.

use super::Failure;
use crate::arguments::{PlanOutputArguments, RecordingArgument};
use crate::files::{FileError, print_line, print_summary, write_failure, write_output};
use crate::outcome::{COMMIT, CommandOutcome, command_line};
use crate::zones;
use nonesuch_lab::cost_model::{LabelledRecording, Recording};
use nonesuch_lab::record::{Invocation, RunRecord};
use nonesuch_lab::report::PageError;
use serde_json::Value;

/// Name of the page in the output directory.
const PAGE_FILE: &str = "report.html";

/// Reads recordings.
pub(super) fn read_recordings(recordings: &[RecordingArgument]) -> Result<Vec<LabelledRecording>, Failure> {
    let read = |RecordingArgument { resolver, population, directory }: &RecordingArgument| {
        let (resolver, population) = (resolver.clone(), population.clone());
        Ok(LabelledRecording { resolver, population, recording: Recording::read(directory)? })
    };
    recordings.iter().map(read).collect()
}

/// Returns the record of this run.
pub(super) fn record(arguments: &PlanOutputArguments, seed: u64) -> Result<RunRecord, Failure> {
    let command = command_line();
    let now = zones::time_or_now(arguments.now);
    Ok(RunRecord::begin(Invocation { now, command: &command, seed, commit: COMMIT })?)
}

/// A report of a command.
pub(super) struct Output<'a> {
    /// Name of the JSON file in the output directory.
    pub(super) json_file: &'a str,
    pub(super) json: Value,
    pub(super) text: String,
    pub(super) page: &'a dyn Fn(&RunRecord) -> Result<String, PageError>,
}

/// Writes the report to the output directory, if there is one, and prints it.
pub(super) fn show(
    arguments: &PlanOutputArguments,
    record: &RunRecord,
    output: Output<'_>,
) -> Result<CommandOutcome, Failure> {
    let mut json = output.json;
    if let Some(object) = json.as_object_mut() {
        object.insert("run".to_owned(), serde_json::json!(record));
    }
    if let Some(out) = &arguments.out {
        std::fs::create_dir_all(out).map_err(|source| FileError::Write { path: out.clone(), source })?;
        for (name, text) in [(output.json_file, json.to_string()), (PAGE_FILE, (output.page)(record)?)] {
            let path = out.join(name);
            write_output::<FileError>(&path, 0o644, |file| {
                file.write_all(text.as_bytes()).map_err(write_failure(&path))
            })?;
        }
    }
    if arguments.json {
        print_line(&json.to_string())?;
        return Ok(CommandOutcome::Done);
    }
    print_line(&output.text)?;
    if let Some(out) = &arguments.out {
        let (json, page) = (out.join(output.json_file), out.join(PAGE_FILE));
        print_summary(&format!("{} and {} written", json.display(), page.display()))?;
    }
    Ok(CommandOutcome::Done)
}
