//! `nonesuch validate`: validates recorded responses from trust anchors, without queries.

mod input;
mod line;
mod output;

use crate::arguments::ValidateArguments;
use crate::files::{FileError, count_text, input_name, print_to_stderr};
use crate::logging;
use crate::outcome::CommandOutcome;
use crate::trust_anchors::{TrustAnchorsError, trust_anchors};
use crate::zones::time_or_now;
use input::{InputError, Line, read_lines};
use line::{GivenKeys, Response};
use nonesuch_dnssec::validate::{Budget, Question, TrustedKeys, ValidationLimits, validate_octets};
use nonesuch_proto::message::Message;
use nonesuch_resolver::recorded::{RecordedResponses, RecordedResult, RecordedValidation};
use output::Summary;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of invalid lines that are listed.
const MAX_LISTED: usize = 100;

/// Why the responses are not all validated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Anchor(#[from] TrustAnchorsError),
    #[error("{}: {source}", path.display())]
    Input { path: PathBuf, source: InputError },
    #[error("{}: {}{}", path.display(), count_text(*count, "invalid line"), unlisted(*count))]
    InvalidLines { path: PathBuf, count: usize },
    #[error("{}: no response: give one on each line, in hexadecimal or as a JSON object", path.display())]
    NoResponse { path: PathBuf },
}

fn unlisted(count: usize) -> String {
    if count > MAX_LISTED { format!(", of which the first {MAX_LISTED} are listed") } else { String::new() }
}

pub(crate) fn run(arguments: &ValidateArguments) -> Result<CommandOutcome, Failure> {
    let path = input_name(&arguments.file).to_path_buf();
    let now = time_or_now(arguments.now);
    let anchors = trust_anchors(arguments.anchor.as_deref(), false, now)?;
    let lines = read_lines(&arguments.file)?;
    let mut validator = Validator { recorded: RecordedResponses::new(anchors, now), previous: None, now };
    for response in lines.iter().filter_map(|line| line.content.as_ref().ok()) {
        if let Ok(message) = Message::parse(&response.octets) {
            validator.recorded.add(response.question(), &Arc::new(message));
        }
    }
    let summary = write_results(arguments, &path, &lines, &mut validator).map_err(FileError::output)?;
    match (summary.invalid, summary.responses()) {
        (0, 0) => Err(Failure::NoResponse { path }),
        (0, _) if summary.is_positive() => Ok(CommandOutcome::Done),
        (0, _) => Ok(CommandOutcome::Negative),
        (count, _) => Err(Failure::InvalidLines { path, count }),
    }
}

/// Validates the responses in the order of the input, and writes the results.
fn write_results(
    arguments: &ValidateArguments,
    path: &Path,
    lines: &[Line],
    validator: &mut Validator,
) -> std::io::Result<Summary> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut summary = Summary::default();
    for line in lines {
        match &line.content {
            Ok(response) => {
                let validation = validator.validate(response);
                summary.count(&validation);
                if arguments.json {
                    writeln!(out, "{}", output::to_json(line.number, response, &validation))?;
                } else {
                    writeln!(out, "{}", output::to_text(path, line.number, response, &validation))?;
                }
            }
            Err(invalid) => {
                summary.invalid += 1;
                if summary.invalid <= MAX_LISTED {
                    let place = format!("{}:{}", path.display(), line.number);
                    print_to_stderr(&format!("nonesuch: error: {place}: {}", invalid.fault));
                }
                if arguments.json {
                    writeln!(out, "{}", output::invalid_to_json(line.number, invalid))?;
                }
            }
        }
    }
    if !arguments.json && !logging::is_quiet() && summary.responses() > 0 {
        writeln!(out, "{}: {summary}", path.display())?;
    }
    out.flush()?;
    Ok(summary)
}

/// Validates responses with the recorded ones, or with the keys that their lines give.
struct Validator {
    recorded: RecordedResponses,
    /// Consecutive lines usually have the same keys, which are then parsed and validated only once.
    previous: Option<(Arc<GivenKeys>, TrustedKeys)>,
    now: u32,
}

impl Validator {
    fn validate(&mut self, response: &Response) -> RecordedValidation {
        match (&response.keys, Message::parse(&response.octets)) {
            (None, Ok(message)) => self.recorded.validate(response.question(), &Arc::new(message)),
            (Some(given), _) => {
                let now = given.now.unwrap_or(self.now);
                validate_with(response, self.trusted_keys(given), now)
            }
            (None, Err(_)) => {
                // The status does not depend on the keys.
                let keys = TrustedKeys::new(&response.name, [], &ValidationLimits::default());
                RecordedValidation { zone: None, ..validate_with(response, &keys, self.now) }
            }
        }
    }

    /// Returns the keys that a line gives.
    fn trusted_keys(&mut self, given: &Arc<GivenKeys>) -> &TrustedKeys {
        let keys = match self.previous.take() {
            Some((previous, keys)) if previous.has_same_keys(given) => keys,
            _ => given.trusted_keys(),
        };
        &self.previous.insert((Arc::clone(given), keys)).1
    }
}

/// Validates a response with trusted keys.
fn validate_with(response: &Response, keys: &TrustedKeys, now: u32) -> RecordedValidation {
    let question: Question<'_> = response.question();
    let validation = validate_octets(question, &response.octets, keys, now, &mut Budget::default());
    let (zone, work) = (Some(keys.apex().to_name()), validation.work);
    RecordedValidation { zone, result: RecordedResult::Validated(Box::new(validation)), work }
}
