//! `nonesuch zone verify`.

use crate::Outcome;
use crate::arguments::VerifyArguments;
use crate::commands::nsec5;
use crate::error::{Failure, KEY_SET};
use crate::files::{check_inputs, input_name};
use crate::progress::Rates;
use crate::zones;
use nonesuch_dnssec::VerifyOptions;
use nonesuch_dnssec::denial::nsec5::Nsec5Evidence;
use nonesuch_dnssec::facts::is_key_set;
use nonesuch_dnssec::verify::{Aids, Mode, Progress, Report, VerifyProgress, verify_aided};
use nonesuch_zone::Contents;
use std::io::{BufWriter, Write};
use std::time::Instant;

pub(crate) fn run(arguments: &VerifyArguments) -> Result<Outcome, Failure> {
    check_inputs(std::iter::once(&arguments.file).chain(&arguments.anchor))?;
    let contents = zones::read_zone(&arguments.file, arguments.origin.as_ref())?;
    let anchors = match &arguments.anchor {
        Some(path) => zones::read_anchors(path, contents.apex())?,
        None => Vec::new(),
    };
    let options = VerifyOptions { now: Some(zones::now_or(arguments.now)), anchors, mode: Mode::Full };
    let evidence = nsec5::load_evidence(&arguments.file, arguments.nsec5_keys.as_deref(), &contents)?;
    let begun = Instant::now();
    let report = watched(&contents, &options, &evidence.view());
    let seconds = begun.elapsed().as_secs_f64();
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written = if arguments.json {
        write_json(&contents, &report, seconds, &mut out)
    } else {
        write_text(arguments, &contents, &report, seconds, &mut out)
    };
    written.and_then(|()| out.flush()).map_err(Failure::Output)?;
    Ok(if report.faults.is_empty() { Outcome::Done } else { Outcome::No })
}

/// Verifies, and shows on a terminal how far it has come.
pub(super) fn watched(contents: &Contents, options: &VerifyOptions, evidence: &Nsec5Evidence<'_>) -> Report {
    let bar = Rates::new("verifying");
    let tell = |at: VerifyProgress| {
        bar.tell(at.names, at.total_names, &[(at.signatures, "signatures"), (at.names, "names")]);
    };
    let progress = bar.is_seen().then_some(&tell as Progress<'_>);
    let report = verify_aided(contents, options, &Aids { evidence: *evidence, progress, earlier: None });
    bar.end();
    report
}

fn write_text(
    arguments: &VerifyArguments,
    contents: &Contents,
    report: &Report,
    seconds: f64,
    out: &mut impl Write,
) -> std::io::Result<()> {
    for warning in &report.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    for fault in &report.faults {
        writeln!(out, "fault: {fault}")?;
    }
    let denial = report.mechanism.map_or("not signed", |mechanism| mechanism.entry().title);
    let verdict = if report.is_sound() { "verified".to_owned() } else { report.fault_count() };
    if !report.is_sound() && is_key_set(contents) {
        writeln!(out, "note: {KEY_SET}")?;
    }
    let hashes: Vec<String> = report.zonemd.iter().map(ToString::to_string).collect();
    let digests =
        if hashes.is_empty() { String::new() } else { format!(", ZONEMD {} verified", hashes.join(" ")) };
    writeln!(
        out,
        "{}: zone {}: {verdict}; {} RRsets, {} signatures verified, {denial}{digests}, {seconds:.2} s",
        input_name(&arguments.file).display(),
        contents.apex(),
        report.rrsets,
        report.signatures_verified,
    )
}

fn write_json(
    contents: &Contents,
    report: &Report,
    seconds: f64,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let faults: Vec<serde_json::Value> = report
        .faults
        .iter()
        .map(|fault| {
            serde_json::json!({
                "owner": fault.owner.to_string(), "type": fault.rtype.map(|rtype| rtype.to_string()),
                "reason": fault.reason.to_string(),
            })
        })
        .collect();
    let warnings: Vec<String> = report.warnings.iter().map(ToString::to_string).collect();
    let value = serde_json::json!({
        "zone": contents.apex().to_string(), "verified": report.faults.is_empty(), "rrsets": report.rrsets,
        "signatures_verified": report.signatures_verified,
        "denial": report.mechanism.map(|mechanism| mechanism.to_string()), "faults": faults, "warnings": warnings,
        "key_set": is_key_set(contents), "zonemd": report.zonemd.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "seconds": seconds,
    });
    writeln!(out, "{value}")
}
