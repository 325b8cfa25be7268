//! Signs a complete zone directly into its output file, with progress display and log.

use super::error::Failure;
use crate::files::{write_failure, write_output};
use crate::progress::{ProgressCount, RateBar};
use nonesuch_dnssec::sign::{SignProgress, SignSummary, SignWarning, sign_streaming};
use nonesuch_dnssec::{KeySet, SignOptions};
use nonesuch_zone::Contents;
use nonesuch_zone::write::push_part;
use std::path::Path;

/// Shows the progress of signing.
pub(super) fn show_progress(bar: &RateBar, at: SignProgress) {
    let signatures = ProgressCount { done: at.signatures, name: "signatures" };
    bar.show(at.rrsets, at.total_rrsets, &[signatures, ProgressCount { done: at.records, name: "records" }]);
}

/// Logs deviations from the arguments.
pub(super) fn log_warnings(warnings: &[SignWarning]) {
    for warning in warnings {
        tracing::warn!(name: "sign-warning", "{warning}");
    }
}

/// Writes the signed zone while signing continues.
pub(super) fn write_signed(
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
    output: &Path,
) -> Result<SignSummary, Failure> {
    let mut summary = None;
    write_output(output, 0o644, |out| {
        let render = |part: &Contents, text: &mut Vec<u8>| {
            text.clear();
            push_part(part, text);
        };
        let take = |text: &mut Vec<u8>| {
            out.write_all(text).map_err(|error| Failure::from(write_failure(output)(error)))
        };
        summary = Some(sign_streaming(contents, keys, options, render, take)?);
        Ok::<_, Failure>(())
    })?;
    Ok(summary.unwrap_or_default())
}
