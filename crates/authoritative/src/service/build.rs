//! Builds a served version from the records of a zone: verifies them as the zone's settings
//! require, prepares online signing, and compiles the image.

use super::activity::Activity;
use super::image_inputs::{ImageInputs, inputs_digest, signers_digest};
use super::record_limits;
use super::settings::{
    FULL_VERIFICATION_LIMIT, OnFault, OnlineSigning, SigningMode, VerifyChoice, ZoneSettings,
};
use super::version_error::rejection_period;
use super::{KeyFiles, SigningKeys, VersionError};
use crate::Published;
use nonesuch_dnssec::denial::Mapping;
use nonesuch_dnssec::denial::nsec5::Nsec5Evidence;
use nonesuch_dnssec::inspect;
use nonesuch_dnssec::online::{
    Nsec5Prover, Nsec5Zone, OnlineKeys, OnlineOptions, PrepareError, prepare_unverified, verify_as_it_is,
};
use nonesuch_dnssec::verify::{
    FaultyZone, Mode, Report, VerifiedPredecessor, VerifyInputs, VerifyProgress, VerifyWarning, count_faults,
    into_verified_with,
};
use nonesuch_dnssec::{Verified, VerifyOptions};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::image::CompileError;
use nonesuch_zone::{Contents, Verification};
use std::path::Path;

/// The previously published version of a zone. `verified_at` is the time at which all its
/// signatures were verified.
pub(super) struct VerifiedVersion<'b> {
    pub(super) contents: &'b Contents,
    pub(super) verified_at: Option<u32>,
}

/// Settings and times with which a zone is built.
pub(super) struct Builder<'b> {
    pub(super) settings: &'b ZoneSettings,
    pub(super) key_files: &'b KeyFiles,
    pub(super) activity: &'b Activity,
    /// Time of verification, in seconds since 1970 modulo 2^32.
    pub(super) now: u32,
    /// Time at which timing metadata in key files is evaluated; `None` ignores the metadata.
    pub(super) key_time: Option<u32>,
    /// Whether the caller needs the records after the build, for storing or for transfers.
    pub(super) keeps_contents: bool,
}

/// A built version of a zone.
pub(super) struct BuiltVersion {
    pub(super) published: Published,
    /// The records before they were prepared for online signing. Present if the caller needs them,
    /// and possibly otherwise.
    pub(super) contents: Option<Contents>,
    pub(super) records: u64,
    pub(super) record: BuildRecord,
    /// Description of the verification, for messages.
    pub(super) verified: String,
    /// Warnings about faults in the version.
    pub(super) warnings: Vec<String>,
    /// Digest of the signing keys, as in
    /// [`Version::key_digest`](super::publish::Version::key_digest).
    pub(super) key_digest: Option<String>,
}

/// Metadata that is stored with the image and the records.
#[derive(Clone, Debug)]
pub(super) struct BuildRecord {
    /// Extent of the verification, for the headers of the image and of the records.
    pub(super) of_image: Verification,
    pub(super) of_contents: Verification,
    /// Denial mechanism and keys of the image of a zone that is signed online.
    pub(super) inputs: Option<ImageInputs>,
}

/// Result of the verification that the settings require.
enum VerifyOutcome {
    Sound(Verified),
    /// The zone has faults and is served nevertheless.
    Faulty(FaultyZone),
    /// The zone was not verified.
    Unverified(Contents),
}

impl VerifyOutcome {
    const fn contents(&self) -> &Contents {
        match self {
            Self::Sound(verified) => verified.contents(),
            Self::Faulty(FaultyZone { contents, .. }) | Self::Unverified(contents) => contents,
        }
    }

    fn publish(&self) -> Result<Published, CompileError> {
        match self {
            Self::Sound(verified) => Published::new(verified),
            other => Published::unverified(other.contents()),
        }
    }

    fn publish_nsec5(&self, prover: Nsec5Prover) -> Result<Published, CompileError> {
        match self {
            Self::Sound(verified) => Published::nsec5(verified, prover),
            other => Published::nsec5_unverified(other.contents(), prover),
        }
    }
}

/// The part of a zone to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Full,
    Changed,
    Structural,
    Nothing,
    /// The signatures were verified when the zone was compiled.
    Recorded {
        at: u32,
    },
}

/// Decides how much to verify in a zone with `signatures` signatures. `recorded` is the
/// verification that a compiled zone records.
pub(super) fn plan(
    choice: VerifyChoice,
    signatures: u64,
    recorded: Option<Verification>,
    has_before: bool,
) -> Plan {
    let changed = if has_before { Plan::Changed } else { Plan::Full };
    match (choice, recorded) {
        (VerifyChoice::Nothing, _) => Plan::Nothing,
        (VerifyChoice::Full, _) => Plan::Full,
        (VerifyChoice::Structural, _) => Plan::Structural,
        (
            VerifyChoice::Changed | VerifyChoice::Auto | VerifyChoice::Quick,
            Some(Verification::Full { at }),
        ) => Plan::Recorded { at },
        (VerifyChoice::Auto | VerifyChoice::Quick, _) if signatures <= FULL_VERIFICATION_LIMIT => Plan::Full,
        (VerifyChoice::Quick, _) => Plan::Structural,
        (VerifyChoice::Changed | VerifyChoice::Auto, _) => changed,
    }
}

/// Counts the signatures of a zone.
pub(super) fn count_signatures(contents: &Contents) -> u64 {
    let sets = contents.nodes().flat_map(|node| node.rrsets());
    sets.filter(|rrset| rrset.rtype() == Rtype::RRSIG).map(|rrset| rrset.count() as u64).sum()
}

impl Builder<'_> {
    /// Builds `contents`. `recorded` is the verification from before the zone was compiled.
    pub(super) fn build(
        &self,
        contents: Contents,
        recorded: Option<Verification>,
        before: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        let is_online = matches!(self.settings.signing_mode, SigningMode::Online(_));
        if self.settings.requires_dnssec && !is_online && !inspect::is_signed(&contents) {
            return Err(VersionError::NotSigned);
        }
        // RFC 2181 §6.1 requires NS records at the apex. A zone without a SOA record cannot be
        // compiled.
        if self.settings.serves_faulty() && contents.apex_rrset(Rtype::NS).is_none() {
            return Err(VersionError::NoApexNs);
        }
        let signatures = count_signatures(&contents);
        let plan = plan(self.settings.verify, signatures, recorded, before.is_some());
        let words = plan_text(plan);
        if signatures > 0 && plan != Plan::Nothing {
            let zone = self.settings.apex.to_string();
            tracing::info!(name: "zone-verifying", zone, signatures, "zone {zone}: verifying {}: {words}", count_text(signatures));
        }
        let before = before.filter(|_| plan == Plan::Changed);
        let mut built = self.build_planned(contents, plan, before)?;
        built.warnings.extend(record_limits::check(built.published.image(), self.settings.limits)?);
        Ok(built)
    }

    fn build_planned(
        &self,
        contents: Contents,
        plan: Plan,
        before: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        match &self.settings.signing_mode {
            SigningMode::Online(signing) => self.build_online(contents, signing, plan, before),
            mode => {
                let is_nsec5 = inspect::denial(&contents)
                    .is_some_and(|denial| denial.mechanism.mapping() == Mapping::Vrf);
                match mode {
                    SigningMode::Nsec5 { .. } if !is_nsec5 && !self.settings.serves_faulty() => {
                        Err(VersionError::NotNsec5)
                    }
                    SigningMode::Nsec5 { .. } if !is_nsec5 => {
                        let mut built = self.build_as_it_is(contents, plan, before)?;
                        built.warnings.push(WITHOUT_NSEC5.to_owned());
                        Ok(built)
                    }
                    SigningMode::Nsec5 { keys } => self.build_nsec5(contents, keys, plan, before),
                    _ if is_nsec5 => {
                        self.build_nsec5(contents, &self.settings.nsec5_directory()?, plan, before)
                    }
                    _ => self.build_as_it_is(contents, plan, before),
                }
            }
        }
    }

    fn build_as_it_is(
        &self,
        contents: Contents,
        plan: Plan,
        before: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        let outcome = self.verify(contents, plan, before, Nsec5Evidence::default())?;
        self.activity.phase("compile");
        let published = outcome.publish()?;
        Ok(self.built(published, outcome, plan))
    }

    fn build_nsec5(
        &self,
        contents: Contents,
        folder: &Path,
        plan: Plan,
        before: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        // Loads the key before verification, so that an unusable key is reported without delay.
        let zone = Nsec5Zone::of_contents(&contents);
        let prover = (self.key_files.prover)(folder, self.settings.source.path(), &zone).map_err(Box::new)?;
        let evidence = evidence(&prover, &contents, plan);
        let outcome = self.verify(contents, plan, before, evidence)?;
        self.activity.phase("compile");
        let published = outcome.publish_nsec5(prover)?;
        Ok(self.built(published, outcome, plan))
    }

    fn build_online(
        &self,
        contents: Contents,
        signing: &OnlineSigning,
        plan: Plan,
        before: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        let OnlineSigning { mechanism, validity, .. } = *signing;
        let keys =
            (self.key_files.signing)(&signing.keys, contents.apex(), self.key_time).map_err(Box::new)?;
        let (digest, key_digest) = (inputs_digest(mechanism, &keys), Some(signers_digest(mechanism, &keys)));
        let SigningKeys { records, pairs, sync } = keys;
        let options = OnlineOptions { mechanism, records, pairs, validity, sync };
        let (records, is_signed) = (contents.record_count(), inspect::is_signed(&contents));
        let (contents, faults) = self.verify_online(contents, plan, before)?;
        let prepared = prepare_unverified(&contents, options).map_err(Box::new)?;
        let contents = self.keeps_contents.then_some(contents);
        warn_of_key_signers(&self.settings.apex, prepared.keys());
        self.activity.phase("compile");
        let is_verified = is_signed && faults.is_none();
        let of_contents = if is_verified { self.verification(plan) } else { Verification::Nothing };
        let verified = match &faults {
            Some(report) => faults_text(plan, report),
            None if plan == Plan::Nothing => NOTHING_VERIFIED.to_owned(),
            None if is_signed => plan_text(plan).to_owned(),
            None => "unsigned zone, keys tried".to_owned(),
        };
        let has_signed_keys = prepared.has_signed_keys();
        let inputs = Some(ImageInputs { digest, verification: of_contents, has_signed_keys });
        let published = Published::online(prepared)?;
        // Without the records that are generated online, the image must not be served.
        let record = BuildRecord { of_image: Verification::Nothing, of_contents, inputs };
        let warnings = faults.iter().map(fault_warning).collect();
        Ok(BuiltVersion { published, contents, records, record, verified, warnings, key_digest })
    }

    /// Verifies the signed part of a zone that is signed online. Returns a report if the zone is
    /// served with faults.
    fn verify_online(
        &self,
        contents: Contents,
        plan: Plan,
        before: Option<&VerifiedVersion<'_>>,
    ) -> Result<(Contents, Option<Report>), VersionError> {
        if plan == Plan::Nothing {
            return Ok((contents, None));
        }
        self.activity.phase("verify");
        let report_progress =
            |progress: VerifyProgress| self.activity.progress(progress.names, progress.total_names);
        match verify_as_it_is(contents, &self.options(plan), &verify_inputs(before, &report_progress)) {
            Ok(contents) => Ok((contents, None)),
            Err(faulty) if faulty.report.wrong_digest().is_some() => Err(rejection(&faulty.report, self.now)),
            Err(faulty) if self.settings.on_fault == OnFault::Warn => {
                Ok((faulty.contents, Some(faulty.report)))
            }
            Err(faulty) => Err(Box::new(PrepareError::Unsound(Box::new(faulty.report))).into()),
        }
    }

    fn verify(
        &self,
        contents: Contents,
        plan: Plan,
        before: Option<&VerifiedVersion<'_>>,
        evidence: Nsec5Evidence<'_>,
    ) -> Result<VerifyOutcome, VersionError> {
        if plan == Plan::Nothing {
            return Ok(VerifyOutcome::Unverified(contents));
        }
        self.activity.phase("verify");
        let report_progress =
            |progress: VerifyProgress| self.activity.progress(progress.names, progress.total_names);
        let inputs = VerifyInputs { evidence, ..verify_inputs(before, &report_progress) };
        match into_verified_with(contents, &self.options(plan), &inputs) {
            Ok(verified) => Ok(VerifyOutcome::Sound(verified)),
            // Independent of `on-fault`: the publisher computed the digest over other records (RFC
            // 8976 §4).
            Err(faulty) if faulty.report.wrong_digest().is_some() => Err(rejection(&faulty.report, self.now)),
            Err(faulty) if self.settings.on_fault == OnFault::Warn => Ok(VerifyOutcome::Faulty(*faulty)),
            Err(faulty) if inspect::is_key_set(&faulty.contents) => Err(VersionError::OnlyKeySet),
            Err(faulty) => Err(rejection(&faulty.report, self.now)),
        }
    }

    fn options(&self, plan: Plan) -> VerifyOptions {
        let mode = match plan {
            Plan::Full | Plan::Changed => Mode::Full,
            Plan::Structural | Plan::Nothing | Plan::Recorded { .. } => Mode::Structural,
        };
        VerifyOptions { now: Some(self.now), anchors: Vec::new(), mode }
    }

    fn verification(&self, plan: Plan) -> Verification {
        match plan {
            Plan::Full | Plan::Changed => Verification::Full { at: self.now },
            Plan::Structural => Verification::Structural { at: self.now },
            Plan::Nothing => Verification::Nothing,
            Plan::Recorded { at } => Verification::Full { at },
        }
    }

    fn built(&self, published: Published, outcome: VerifyOutcome, plan: Plan) -> BuiltVersion {
        let report = match &outcome {
            VerifyOutcome::Sound(verified) => Some(verified.report()),
            VerifyOutcome::Faulty(FaultyZone { report, .. }) => Some(report),
            VerifyOutcome::Unverified(_) => None,
        };
        let zone = self.settings.apex.to_string();
        // Warnings about alias keys are logged for each version, even without verification.
        let is_other = |warning: &&VerifyWarning| !matches!(warning, VerifyWarning::AliasWithoutNsec5 { .. });
        for warning in report.iter().flat_map(|report| &report.warnings).filter(is_other) {
            tracing::warn!(name: "zone-warning", zone, "zone {zone}: {warning}");
        }
        let (of_image, of_contents, words, warnings) = match &outcome {
            VerifyOutcome::Sound(verified) => {
                let is_signed = verified.mechanism().is_some();
                let of_contents = if is_signed { self.verification(plan) } else { Verification::Nothing };
                // An unsigned zone has nothing to verify.
                let of_image = if is_signed { of_contents } else { Verification::Full { at: self.now } };
                (of_image, of_contents, verified_text(plan, verified.report(), is_signed), Vec::new())
            }
            // The next start verifies the zone again and repeats the warning.
            VerifyOutcome::Faulty(FaultyZone { report, .. }) => {
                let words = faults_text(plan, report);
                (Verification::Nothing, Verification::Nothing, words, vec![fault_warning(report)])
            }
            VerifyOutcome::Unverified(_) => {
                let words = NOTHING_VERIFIED.to_owned();
                (Verification::Nothing, Verification::Nothing, words, Vec::new())
            }
        };
        let contents = match outcome {
            VerifyOutcome::Sound(verified) => verified.into_contents(),
            VerifyOutcome::Faulty(FaultyZone { contents, .. }) | VerifyOutcome::Unverified(contents) => {
                contents
            }
        };
        BuiltVersion {
            published,
            records: contents.record_count(),
            contents: Some(contents),
            record: BuildRecord { of_image, of_contents, inputs: None },
            verified: words,
            warnings,
            key_digest: None,
        }
    }
}

/// The primary may sign the zone with NSEC5 in a later version, or may have done so in an earlier
/// one.
pub(super) const WITHOUT_NSEC5: &str =
    "nsec5-keys is configured, but this version is not signed with NSEC5: serving it without NSEC5";

/// Description of the verification of a zone with `verify = "none"`.
pub(super) const NOTHING_VERIFIED: &str = "nothing: verify = \"none\"";

/// Returns the first three faults of a report.
fn first_faults(report: &Report) -> Vec<String> {
    report.faults.iter().take(3).map(ToString::to_string).collect()
}

/// Returns the warning about a version that is served with faults.
fn fault_warning(report: &Report) -> String {
    format!(
        "verification found {}, first: {}; serving this version because of on-fault = \"warn\"",
        count_faults(report.faults.len()),
        first_faults(report).join("; ")
    )
}

fn faults_text(plan: Plan, report: &Report) -> String {
    format!("{}: {}", plan_text(plan), count_faults(report.faults.len()))
}

/// Warns about private key-signing keys on the server: an intruder could copy them.
pub(super) fn warn_of_key_signers(zone: &Name, keys: &OnlineKeys) {
    for tag in keys.key_signing_tags() {
        tracing::warn!(
            name: "ksk-in-key-directory",
            zone = zone.to_string(),
            "zone {zone}: key {tag} signs only the key set, and its private key file is in the server's key directory: sign the key set on another \
             machine, with `nonesuch zone sign --only-keys`, and keep the private key file there"
        );
    }
}

/// Returns the evidence that maps the names of a zone with NSEC5 to its records. It is the stored
/// proofs if they belong to this version. They belong to another version if the server received the
/// directory only once, or reads the zone before the proofs; then names are hashed with the key,
/// unless there are too many of them.
fn evidence<'p>(prover: &'p Nsec5Prover, contents: &Contents, plan: Plan) -> Nsec5Evidence<'p> {
    let serial = contents.soa().map(|soa| soa.serial);
    let proofs = prover.proofs().filter(|proofs| Some(proofs.serial()) == serial);
    let is_hashed =
        matches!(plan, Plan::Full | Plan::Changed) && contents.node_count() as u64 <= FULL_VERIFICATION_LIMIT;
    Nsec5Evidence { proofs, key: (proofs.is_none() && is_hashed).then(|| prover.key()) }
}

fn verify_inputs<'a>(
    before: Option<&VerifiedVersion<'a>>,
    report_progress: &'a (dyn Fn(VerifyProgress) + Sync),
) -> VerifyInputs<'a> {
    let predecessor =
        before.map(|before| VerifiedPredecessor::from_record(before.contents, before.verified_at));
    VerifyInputs { predecessor, progress: Some(report_progress), ..VerifyInputs::default() }
}

fn rejection(report: &Report, now: u32) -> VersionError {
    if let Some(fault) = report.wrong_digest() {
        return VersionError::WrongDigest(Box::new(fault.clone()));
    }
    let verdict = rejection_period(report, now);
    VersionError::Unsound { faults: report.faults.len(), first: first_faults(report), verdict }
}

const fn plan_text(plan: Plan) -> &'static str {
    match plan {
        Plan::Full => "full",
        Plan::Changed => "changed",
        Plan::Structural => "structural",
        Plan::Nothing => "nothing",
        Plan::Recorded { .. } => "when it was compiled",
    }
}

fn count_text(signatures: u64) -> String {
    format!("{signatures} signature{}", if signatures == 1 { "" } else { "s" })
}

fn verified_text(plan: Plan, report: &Report, is_signed: bool) -> String {
    match plan {
        _ if !is_signed => "nothing: unsigned".to_owned(),
        Plan::Changed if report.keys_changed => {
            let verified = count_text(report.signatures_verified);
            format!("changed: all {verified}, because the keys changed")
        }
        Plan::Changed => {
            let (verified, kept) = (report.signatures_verified, report.signatures_kept);
            format!("changed: {verified} of {}", count_text(verified + kept))
        }
        Plan::Full => format!("full: {}", count_text(report.signatures_verified)),
        Plan::Structural | Plan::Nothing | Plan::Recorded { .. } => plan_text(plan).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_verified_follows_the_choice_and_the_size() {
        let full = Some(Verification::Full { at: 7 });
        let structural = Some(Verification::Structural { at: 7 });
        for (choice, signatures, recorded, has_before, expected) in [
            (VerifyChoice::Auto, FULL_VERIFICATION_LIMIT, None, true, Plan::Full),
            (VerifyChoice::Auto, FULL_VERIFICATION_LIMIT + 1, None, true, Plan::Changed),
            (VerifyChoice::Auto, FULL_VERIFICATION_LIMIT + 1, None, false, Plan::Full),
            (VerifyChoice::Auto, 1, full, true, Plan::Recorded { at: 7 }),
            (VerifyChoice::Auto, FULL_VERIFICATION_LIMIT + 1, structural, false, Plan::Full),
            (VerifyChoice::Full, FULL_VERIFICATION_LIMIT + 1, full, true, Plan::Full),
            (VerifyChoice::Changed, 1, None, true, Plan::Changed),
            (VerifyChoice::Changed, 1, None, false, Plan::Full),
            (VerifyChoice::Changed, 1, full, true, Plan::Recorded { at: 7 }),
            (VerifyChoice::Structural, 1, None, true, Plan::Structural),
            (VerifyChoice::Nothing, FULL_VERIFICATION_LIMIT + 1, full, true, Plan::Nothing),
            (VerifyChoice::Quick, FULL_VERIFICATION_LIMIT, None, false, Plan::Full),
            (VerifyChoice::Quick, FULL_VERIFICATION_LIMIT + 1, None, true, Plan::Structural),
            (VerifyChoice::Quick, FULL_VERIFICATION_LIMIT + 1, full, false, Plan::Recorded { at: 7 }),
        ] {
            let found = plan(choice, signatures, recorded, has_before);
            assert_eq!(found, expected, "{choice:?} {signatures} {recorded:?} {has_before}");
        }
    }
}
