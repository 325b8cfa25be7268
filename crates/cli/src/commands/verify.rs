//! `nonesuch zone verify`: verifies a zone and runs the semantic checks.

use crate::arguments::VerifyArguments;
use crate::files::{FileError, check_inputs, count_text, input_name};
use crate::logging;
use crate::nsec5::{self, EvidenceError};
use crate::outcome::CommandOutcome;
use crate::zones::{
    self, AnchorError, MAX_LISTED_PER_KIND, ONLY_KEY_SET_MESSAGE, ReadZoneError, first_of_each_kind,
    verify_with_progress,
};
use nonesuch_dnssec::VerifyOptions;
use nonesuch_dnssec::inspect::has_only_signed_key_set;
use nonesuch_dnssec::verify::{Fault, Mode, Report, VerifyWarning};
use nonesuch_zone::semantics::{self, Finding, Findings};
use nonesuch_zone::{Contents, LoadedZone, Warning};
use serde_json::{Value, json};
use std::io::{BufWriter, Write};
use std::mem::discriminant;
use std::time::Instant;

/// Why a zone is not verified.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Load(#[from] ReadZoneError),
    Anchor(#[from] AnchorError),
    Evidence(#[from] EvidenceError),
}

pub(crate) fn run(arguments: &VerifyArguments) -> Result<CommandOutcome, Failure> {
    check_inputs(std::iter::once(&arguments.file).chain(&arguments.anchor))?;
    let LoadedZone { contents, mut warnings, .. } =
        zones::load_zone(&arguments.file, arguments.origin.as_ref())?;
    // The verification reports these as faults.
    warnings.retain(|warning| !matches!(warning, Warning::MixedTtl { .. } | Warning::NoNs));
    zones::log_warnings(&arguments.file, &warnings);
    let anchors = match &arguments.anchor {
        Some(path) => zones::read_anchors(path, contents.apex())?,
        None => Vec::new(),
    };
    let options = VerifyOptions { now: Some(zones::time_or_now(arguments.now)), anchors, mode: Mode::Full };
    let evidence = nsec5::load_evidence(&arguments.file, arguments.nsec5_keys.as_deref(), &contents)?;
    let started_at = Instant::now();
    let report = verify_with_progress(&contents, &options, &evidence.view());
    let limit = if arguments.all { usize::MAX } else { MAX_LISTED_PER_KIND };
    let findings = semantics::check(&contents, limit);
    let outcome = VerificationOutput {
        contents: &contents,
        faults: first_of_each_kind(&report.faults, limit, |fault| discriminant(&fault.reason)),
        warnings: first_of_each_kind(&report.warnings, limit, discriminant),
        report: &report,
        findings: &findings,
        is_strict: arguments.strict,
        seconds: started_at.elapsed().as_secs_f64(),
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let written =
        if arguments.json { outcome.write_json(&mut out) } else { outcome.write_text(arguments, &mut out) };
    written.and_then(|()| out.flush()).map_err(FileError::output)?;
    Ok(if outcome.fault_count() == 0 { CommandOutcome::Done } else { CommandOutcome::Negative })
}

/// The results of verification and of the semantic checks.
struct VerificationOutput<'v> {
    contents: &'v Contents,
    report: &'v Report,
    /// The listed faults of the report.
    faults: Vec<&'v Fault>,
    /// The listed warnings of the report.
    warnings: Vec<&'v VerifyWarning>,
    findings: &'v Findings,
    /// Whether findings of the semantic checks are faults.
    is_strict: bool,
    /// Duration of the verification and the semantic checks.
    seconds: f64,
}

impl VerificationOutput<'_> {
    fn fault_count(&self) -> usize {
        self.report.faults.len() + if self.is_strict { self.findings.total() } else { 0 }
    }

    /// Number of faults, warnings and findings that are not listed.
    fn unlisted_count(&self) -> usize {
        self.report.faults.len() - self.faults.len() + self.report.warnings.len() - self.warnings.len()
            + self.findings.total()
            - self.findings.list().len()
    }

    fn write_text(&self, arguments: &VerifyArguments, out: &mut impl Write) -> std::io::Result<()> {
        let Self { contents, report, findings, .. } = self;
        for warning in &self.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        let severity = if self.is_strict { "fault" } else { "warning" };
        for finding in findings.list() {
            writeln!(out, "{severity}: {finding}")?;
        }
        for fault in &self.faults {
            writeln!(out, "fault: {fault}")?;
        }
        if !report.has_no_faults() && has_only_signed_key_set(contents) {
            writeln!(out, "note: {ONLY_KEY_SET_MESSAGE}")?;
        }
        if self.unlisted_count() > 0 {
            writeln!(
                out,
                "note: listed the first {MAX_LISTED_PER_KIND} entries of each kind, {} left out: --all lists \
                    all",
                self.unlisted_count()
            )?;
        }
        if self.fault_count() == 0 && logging::is_quiet() {
            return Ok(());
        }
        let verdict = match self.fault_count() {
            0 => "verified".to_owned(),
            count => count_text(count, "fault"),
        };
        let semantic = match findings.total() {
            0 => String::new(),
            count if self.is_strict => {
                format!(", including {} of the semantic checks (--strict)", count_text(count, "finding"))
            }
            count => format!(", {} (findings of the semantic checks)", count_text(count, "warning")),
        };
        let denial = report.mechanism.map_or("not signed", |mechanism| mechanism.entry().title);
        let hashes: Vec<String> = report.zonemd.iter().map(ToString::to_string).collect();
        let digests =
            if hashes.is_empty() { String::new() } else { format!(", ZONEMD {} verified", hashes.join(" ")) };
        writeln!(
            out,
            "{}: zone {}: {verdict}{semantic}; {} RRsets, {} signatures verified, {denial}{digests}, {:.2} s",
            input_name(&arguments.file).display(),
            contents.apex(),
            report.rrsets,
            report.signatures_verified,
            self.seconds
        )
    }

    fn write_json(&self, out: &mut impl Write) -> std::io::Result<()> {
        let Self { contents, report, findings, .. } = self;
        let warnings: Vec<String> = self.warnings.iter().map(ToString::to_string).collect();
        let value = json!({
            "zone": contents.apex().to_string(), "verified": self.fault_count() == 0, "rrsets": report.rrsets,
            "signatures_verified": report.signatures_verified,
            "denial": report.mechanism.map(|mechanism| mechanism.to_string()),
            "faults": self.faults.iter().map(|fault| fault_json(fault)).collect::<Vec<_>>(),
            "fault_count": report.faults.len(), "warnings": warnings, "warning_count": report.warnings.len(),
            "findings": findings.list().iter().map(finding_json).collect::<Vec<_>>(),
            "finding_count": findings.total(), "finding_counts": findings.counts(), "strict": self.is_strict,
            "key_set": has_only_signed_key_set(contents),
            "zonemd": report.zonemd.iter().map(ToString::to_string).collect::<Vec<_>>(), "seconds": self.seconds,
        });
        writeln!(out, "{value}")
    }
}

fn fault_json(fault: &Fault) -> Value {
    json!({
        "owner": fault.owner.to_string(), "type": fault.rtype.map(|rtype| rtype.to_string()),
        "reason": fault.reason.to_string(),
    })
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "owner": finding.owner.to_string(), "type": finding.rtype.to_string(), "kind": finding.problem.code(),
        "target": finding.problem.target().map(ToString::to_string), "reason": finding.problem.to_string(),
    })
}
