//! `nonesuch lab capture`.

use super::error::{CaptureFormatError, Failure};
use crate::arguments::LabCaptureArguments;
use crate::files::{
    FileError, check_output, count_text, is_standard_stream, print_line, print_summary, write_output,
};
use crate::outcome::CommandOutcome;
use nonesuch_lab::capture::{
    AnonymisationKey, AnonymizeOptions, Anonymizer, CaptureFormat, CaptureOptions, CaptureOutput,
    CaptureReader, CopyCounts, CopyError, copy_messages,
};
use std::path::Path;

/// Mode of the output: queries are confidential, so other users must not read the file.
const OUTPUT_MODE: u32 = 0o640;

pub(super) fn run(arguments: &LabCaptureArguments) -> Result<CommandOutcome, Failure> {
    let output = output_format(arguments)?;
    let mut options = CaptureOptions::default();
    if !arguments.port.is_empty() {
        options.ports.clone_from(&arguments.port);
    }
    let reader = CaptureReader::open(&arguments.input, &options)?;
    check_output(&arguments.output, &arguments.input)?;
    let anonymizer = anonymizer(arguments)?;
    let mut counts = CopyCounts::default();
    write_output(&arguments.output, OUTPUT_MODE, |out| {
        counts = copy_messages(reader, anonymizer.as_ref(), output, out).map_err(|error| match error {
            CopyError::Write(source) if is_standard_stream(&arguments.output) => {
                FileError::output(source).into()
            }
            CopyError::Write(source) => FileError::Write { path: arguments.output.clone(), source }.into(),
            CopyError::Capture(error) => Failure::Capture(error),
            error => Failure::Copy(error),
        })?;
        Ok::<_, Failure>(())
    })?;
    if !is_standard_stream(&arguments.output) {
        print_counts(arguments, output, &counts)?;
    }
    Ok(CommandOutcome::Done)
}

fn output_format(arguments: &LabCaptureArguments) -> Result<CaptureOutput, CaptureFormatError> {
    if arguments.queries {
        return Ok(CaptureOutput::Questions);
    }
    let format = CaptureFormat::from_path(&arguments.output);
    format.map(CaptureOutput::Capture).ok_or_else(|| CaptureFormatError { path: arguments.output.clone() })
}

fn anonymizer(arguments: &LabCaptureArguments) -> Result<Option<Anonymizer>, Failure> {
    if !arguments.anonymize {
        return Ok(None);
    }
    let key =
        arguments.key.as_deref().map_or_else(AnonymisationKey::generate, AnonymisationKey::read_or_create)?;
    let options = AnonymizeOptions { names: arguments.names, zone: arguments.zone.clone() };
    Ok(Some(Anonymizer::new(&key, options)?))
}

fn print_counts(
    arguments: &LabCaptureArguments,
    output: CaptureOutput,
    counts: &CopyCounts,
) -> Result<(), FileError> {
    let CopyCounts { read, written, skipped } = counts;
    if arguments.json {
        let skipped: serde_json::Map<String, serde_json::Value> =
            skipped.iter().map(|(reason, count)| (reason.name().to_owned(), count.into())).collect();
        return print_line(
            &serde_json::json!({ "read": read, "written": written, "skipped": skipped }).to_string(),
        );
    }
    let unit = if output == CaptureOutput::Questions { "query" } else { "message" };
    print_summary(&summary(&arguments.output, unit, counts))
}

fn summary(path: &Path, unit: &str, counts: &CopyCounts) -> String {
    let written = match (unit, counts.written) {
        ("query", count) if count != 1 => format!("{count} queries"),
        (unit, count) => count_text(count, unit),
    };
    let mut text =
        format!("{}: {written} written, {} read", path.display(), count_text(counts.read, "message"));
    let skipped: Vec<String> =
        counts.skipped.iter().map(|(reason, count)| format!("{} {count}", reason.name())).collect();
    if !skipped.is_empty() {
        text.push_str(&format!("; skipped: {}", skipped.join(", ")));
    }
    text
}
