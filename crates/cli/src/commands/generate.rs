//! `nonesuch zone generate`: writes a generated zone and, on request, queries for it.

use crate::arguments::GenerateArguments;
use crate::files::{FileError, print_line, write_output};
use crate::outcome::CommandOutcome;
use nonesuch_lab::generate::{GenerateError, GenerateOptions, QuerySummary, generate, queries};
use std::path::Path;

/// Why no zone is generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Generate(#[from] GenerateError),
}

pub(crate) fn run(arguments: &GenerateArguments) -> Result<CommandOutcome, Failure> {
    let origin = arguments.origin.to_string();
    let options = GenerateOptions {
        like: arguments.like,
        names: arguments.names,
        seed: arguments.seed,
        origin: &origin,
    };
    let output = arguments.output.as_deref().unwrap_or_else(|| Path::new("-"));
    let mut zone_summary = None;
    write_output(output, 0o644, |mut out| {
        zone_summary = Some(generate(&options, &mut out)?);
        Ok::<_, Failure>(())
    })?;
    let query_summary =
        arguments.queries.as_ref().map(|path| write_queries(arguments, &options, path)).transpose()?;
    if arguments.json {
        print_line(&serde_json::json!({ "zone": zone_summary, "queries": query_summary }).to_string())?;
    }
    Ok(CommandOutcome::Done)
}

/// Writes queries for the generated zone to `path`.
fn write_queries(
    arguments: &GenerateArguments,
    options: &GenerateOptions<'_>,
    path: &Path,
) -> Result<QuerySummary, Failure> {
    let mut query_summary = QuerySummary::default();
    write_output(path, 0o644, |mut out| {
        query_summary = queries(options, arguments.denied, arguments.query_count, arguments.seed, &mut out)?;
        Ok::<_, Failure>(())
    })?;
    Ok(query_summary)
}
