//! `nonesuch zone compile`: verifies a zone and writes a compiled zone with its image.

use crate::arguments::{CompileArguments, CompileVerify};
use crate::files::{
    FileError, check_output, default_output, input_name, is_standard_stream, print_line, print_summary,
    write_failure, write_output,
};
use crate::nsec5::{self, EvidenceError};
use crate::outcome::CommandOutcome;
use crate::zones::{self, MAX_LISTED_PER_KIND, ONLY_KEY_SET_MESSAGE, ReadZoneError, first_of_each_kind};
use nonesuch_authoritative::service::{MAX_FINDINGS, MAX_FINDINGS_PER_KIND};
use nonesuch_dnssec::VerifyOptions;
use nonesuch_dnssec::inspect::has_only_signed_key_set;
use nonesuch_dnssec::verify::{Mode, Report, VerifyInputs, VerifyWarning, into_verified_with};
use nonesuch_zone::image::CompileError;
use nonesuch_zone::semantics;
use nonesuch_zone::{Contents, Image, Verification, image};
use std::mem::discriminant;
use std::path::{Path, PathBuf};

/// Why a zone is not compiled.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Load(#[from] ReadZoneError),
    Evidence(#[from] EvidenceError),
    Compile(#[from] CompileError),
}

pub(crate) fn run(arguments: &CompileArguments) -> Result<CommandOutcome, Failure> {
    let output = output_path(arguments);
    check_output(&output, &arguments.file)?;
    let contents = zones::read_zone(&arguments.file, arguments.origin.as_ref())?;
    let Some(CheckedZone { contents, verification, image_verification }) = verify(arguments, contents)?
    else {
        return Ok(CommandOutcome::Negative);
    };
    // A server that maps the image neither reads nor checks the records, so the checks run here.
    for line in semantics::check(&contents, MAX_FINDINGS_PER_KIND).lines(MAX_FINDINGS) {
        tracing::warn!(name: "zone-warning", "{}: {line}", input_name(&arguments.file).display());
    }
    let image = Image::compile(&contents)?;
    let mut octets = 0;
    write_output(&output, 0o644, |out| {
        let mut out = CountingWriter { out, octets: 0 };
        let written = image::file::write(&image, image_verification, &contents, verification, &mut out);
        written.map_err(write_failure(&output))?;
        octets = out.octets;
        Ok::<_, FileError>(())
    })?;
    if !is_standard_stream(&output) {
        let report = report_text(arguments, &contents, verification, &output, octets);
        if arguments.json { print_line(&report) } else { print_summary(&report) }?;
    }
    Ok(CommandOutcome::Done)
}

fn output_path(arguments: &CompileArguments) -> PathBuf {
    arguments.output.clone().unwrap_or_else(|| default_output(&arguments.file, ".image"))
}

/// Contents that may be compiled.
struct CheckedZone {
    contents: Contents,
    /// Extent of the verification of signatures; [`Verification::Nothing`] for an unsigned zone.
    verification: Verification,
    /// Extent of the verification on which a server that maps the image relies. Unlike
    /// `verification`, it is full for an unsigned zone that was verified.
    image_verification: Verification,
}

/// Verifies the contents. Returns `None` if they have faults, which are reported.
fn verify(arguments: &CompileArguments, contents: Contents) -> Result<Option<CheckedZone>, Failure> {
    let mode = match arguments.verify {
        CompileVerify::None => {
            let nothing = Verification::Nothing;
            return Ok(Some(CheckedZone { contents, verification: nothing, image_verification: nothing }));
        }
        CompileVerify::Full => Mode::Full,
        CompileVerify::Structural => Mode::Structural,
    };
    let at = zones::time_or_now(arguments.now);
    let options = VerifyOptions { now: Some(at), mode, ..VerifyOptions::default() };
    let evidence = nsec5::load_evidence(&arguments.file, arguments.nsec5_keys.as_deref(), &contents)?;
    let inputs = VerifyInputs { evidence: evidence.view(), ..VerifyInputs::default() };
    match into_verified_with(contents, &options, &inputs) {
        Ok(verified) => {
            for warning in &verified.report().warnings {
                tracing::warn!(name: "zone-warning", "{}: {warning}", input_name(&arguments.file).display());
            }
            let verification = recorded_verification(verified.report(), mode, at);
            let is_signed = verified.mechanism().is_some();
            let image_verification = if is_signed { verification } else { Verification::Full { at } };
            Ok(Some(CheckedZone { contents: verified.into_contents(), verification, image_verification }))
        }
        Err(faulty) => {
            print_faults(arguments, &faulty.contents, &faulty.report)?;
            Ok(None)
        }
    }
}

/// The extent of the verification that the file records. In an unsigned zone, there is nothing to
/// verify. In a zone with NSEC5, names cannot be matched to NSEC5 records without the proofs or the
/// VRF key; the verification is then only structural.
fn recorded_verification(report: &Report, mode: Mode, at: u32) -> Verification {
    let is_matched = !report.warnings.contains(&VerifyWarning::NamesNotMatched);
    match (report.mechanism, mode) {
        (None, _) => Verification::Nothing,
        (Some(_), Mode::Full) if is_matched => Verification::Full { at },
        (Some(_), _) => Verification::Structural { at },
    }
}

/// Prints the faults of a zone that is not compiled.
fn print_faults(arguments: &CompileArguments, contents: &Contents, report: &Report) -> Result<(), FileError> {
    let faults = first_of_each_kind(&report.faults, MAX_LISTED_PER_KIND, |fault| discriminant(&fault.reason));
    if arguments.json {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        let count = report.faults.len();
        let report_json = serde_json::json!({ "compiled": false, "faults": faults, "fault_count": count });
        return print_line(&report_json.to_string());
    }
    let unlisted = report.faults.len() - faults.len();
    for fault in faults {
        print_line(&format!("fault: {fault}"))?;
    }
    if has_only_signed_key_set(contents) {
        print_line(&format!("note: {ONLY_KEY_SET_MESSAGE}"))?;
    }
    if unlisted > 0 {
        print_line(&format!(
            "note: listed the first {MAX_LISTED_PER_KIND} faults of each kind, {unlisted} left out: `nonesuch \
                zone verify --all` lists all"
        ))?;
    }
    print_line(&format!(
        "{}: not compiled: {}; correct the zone or sign it again, or compile it without verification \
            with --verify none",
        input_name(&arguments.file).display(),
        report.format_fault_count()
    ))
}

/// The report about the compiled zone, as text or JSON.
fn report_text(
    arguments: &CompileArguments,
    contents: &Contents,
    verification: Verification,
    output: &Path,
    octets: u64,
) -> String {
    let serial = contents.soa().map(|soa| soa.serial);
    let verified = match verification {
        Verification::Nothing | Verification::OtherTables { .. } => "nothing",
        Verification::Structural { .. } => "structural",
        Verification::Full { .. } => "full",
    };
    if arguments.json {
        let report = serde_json::json!({
            "compiled": true, "zone": contents.apex().to_string(), "output": output, "serial": serial,
            "names": contents.node_count(), "records": contents.record_count(), "octets": octets, "verified": verified,
        });
        return report.to_string();
    }
    format!(
        "{}: zone {} compiled: serial {}, {} names, {} records, {octets} octets; verified: {verified}",
        output.display(),
        contents.apex(),
        serial.unwrap_or(0),
        contents.node_count(),
        contents.record_count(),
    )
}

/// A writer that counts the octets.
struct CountingWriter<'o> {
    out: &'o mut dyn std::io::Write,
    octets: u64,
}

impl std::io::Write for CountingWriter<'_> {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(octets)?;
        self.octets += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
