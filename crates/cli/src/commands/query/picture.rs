//! Draws the chain of trust of a validation as an SVG file.

use super::chain::reason;
use super::error::QueryError;
use super::message::Question;
use crate::files::{check_writable, write_failure, write_output};
use nonesuch_lab::check::{ChainStep, Verdict, chain_picture};
use nonesuch_resolver::{Decision, TraceStep};
use std::path::Path;

/// Checks, before any query is sent, that the file can be written.
pub(super) fn check(path: Option<&Path>) -> Result<(), QueryError> {
    Ok(path.map_or(Ok(()), check_writable)?)
}

/// Writes the picture of these steps. `now`: the time of the validation, in seconds since 1970 modulo 2^32.
pub(super) fn write(
    path: &Path,
    question: &Question,
    steps: &[TraceStep],
    now: u32,
) -> Result<(), QueryError> {
    if steps.is_empty() {
        return Err(QueryError::NothingValidated);
    }
    let reasons: Vec<String> = steps.iter().map(|step| reason_text(&step.decision)).collect();
    let steps: Vec<ChainStep<'_>> =
        steps.iter().zip(&reasons).map(|(step, reason)| chain_step(step, reason)).collect();
    let title = format!("Chain of trust of {} {}", question.name, question.rtype);
    let svg = chain_picture(&title, &steps, now).to_svg()?;
    write_output(path, 0o644, |out| Ok(out.write_all(svg.as_bytes()).map_err(write_failure(path))?))
}

fn chain_step<'a>(step: &'a TraceStep, reason: &'a str) -> ChainStep<'a> {
    let TraceStep { name, rtype, message, decision } = step;
    let verdict = match decision {
        Decision::Validated { zone, keys, validation } => Verdict::Validated { zone, keys, validation },
        Decision::Insecure(cut, _) => Verdict::Insecure { cut, reason },
        Decision::NoKeys(..) => Verdict::NoKeys { reason },
    };
    ChainStep { name, rtype: *rtype, message, verdict }
}

fn reason_text(decision: &Decision) -> String {
    reason(decision).map_or_else(String::new, |(text, rule)| format!("{text} ({rule})"))
}
