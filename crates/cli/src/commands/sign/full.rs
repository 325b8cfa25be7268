//! `nonesuch zone sign FILE`: signs a zone file from scratch.

use super::error::Failure;
use super::options::{load_keys, output_path, sign_options, with_denial_of_zone};
use super::proofs;
use super::write::{log_warnings, show_progress, write_signed};
use crate::arguments::SignArguments;
use crate::files::{FileError, check_output, is_standard_stream, print_line, print_summary};
use crate::outcome::CommandOutcome;
use crate::progress::RateBar;
use crate::zones;
use nonesuch_dnssec::sign::SignSummary;
use nonesuch_zone::Contents;
use std::path::Path;
use std::time::Instant;

pub(super) fn run(arguments: &SignArguments, file: &Path) -> Result<CommandOutcome, Failure> {
    let started_at = Instant::now();
    let output = output_path(arguments);
    check_output(&output, file)?;
    let contents = zones::read_zone(file, arguments.origin.as_ref())?;
    let arguments = &with_denial_of_zone(arguments, &contents);
    let keys = load_keys(arguments, contents.apex())?;
    let mut options = sign_options(arguments)?;
    let mut zone_proofs = proofs::prepare(arguments, &output, &contents, &keys)?;
    let bar = RateBar::new("signing");
    let show = |at| show_progress(&bar, at);
    options.nsec5 = zone_proofs.as_ref().map(|zone_proofs| zone_proofs.chain(arguments.keep_nsec5key));
    options.progress = bar.is_visible().then_some(&show);
    let signing = Instant::now();
    let summary = write_signed(&contents, &keys, &options, &output)?;
    let signing = signing.elapsed().as_secs_f64();
    bar.end();
    log_warnings(&summary.warnings);
    if let Some(zone_proofs) = &mut zone_proofs {
        zone_proofs.store(summary.statistics.serial, &keys)?;
        proofs::warn_of_signing_keys(&output);
    }
    if !is_standard_stream(&output) {
        let seconds = Seconds { signing, all: started_at.elapsed().as_secs_f64() };
        report(arguments, &contents, &summary, &output, zone_proofs.as_ref(), seconds)?;
    }
    Ok(CommandOutcome::Done)
}

/// The durations of the steps of a run, in seconds.
struct Seconds {
    /// Signing, which includes writing the signed zone.
    signing: f64,
    /// The whole run.
    all: f64,
}

fn report(
    arguments: &SignArguments,
    contents: &Contents,
    summary: &SignSummary,
    output: &Path,
    zone_proofs: Option<&proofs::ZoneProofs>,
    seconds: Seconds,
) -> Result<(), FileError> {
    let (statistics, Seconds { signing, all }) = (summary.statistics, seconds);
    if arguments.json {
        let report = serde_json::json!({
            "zone": contents.apex().to_string(), "output": output, "denial": arguments.mechanism().to_string(),
            "serial": statistics.serial, "records": statistics.records, "rrsets_signed": statistics.rrsets_signed,
            "signatures": statistics.signatures, "chain_records": statistics.chain_records,
            "signing_seconds": signing, "seconds": all, "nsec5": zone_proofs.map(proofs::ZoneProofs::to_json),
        });
        print_line(&report.to_string())
    } else {
        print_summary(&format!(
            "{}: zone {} signed with {}: serial {}, {} records, {} signatures, {} denial records; {signing:.2} s of \
             {all:.2} s signing and writing",
            output.display(),
            contents.apex(),
            arguments.mechanism().entry().title,
            statistics.serial,
            statistics.records,
            statistics.signatures,
            statistics.chain_records,
        ))?;
        zone_proofs.map_or(Ok(()), |zone_proofs| print_summary(&zone_proofs.to_string()))
    }
}
