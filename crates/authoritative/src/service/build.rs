//! Builds a served version from the records of a zone: verifies them as the zone's settings
//! require, prepares online signing, and compiles the image.

use super::activity::Activity;
use super::image_inputs::{ImageInputs, inputs_digest, signers_digest};
use super::record_limits;
use super::settings::{
    FULL_VERIFICATION_LIMIT, OnFault, OnlineSigning, SigningMode, VerifyChoice, ZoneSettings,
};
use super::version_error::rejection_period;
use super::{KeyLoader, SigningKeys, VersionError};
use crate::Published;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::denial::nsec5::Nsec5Evidence;
use nonesuch_dnssec::inspect;
use nonesuch_dnssec::online::{
    Nsec5Prover, Nsec5Zone, OnlineKeys, OnlineOptions, PrepareError, prepare_unverified, verify_signed_part,
};
use nonesuch_dnssec::verify::{
    FaultyZone, Mode, Report, VerifiedPredecessor, VerifyInputs, VerifyProgress, VerifyWarning,
    format_fault_count, into_verified_with,
};
use nonesuch_dnssec::{Verified, VerifyOptions};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::image::CompileError;
use nonesuch_zone::{Contents, Verification};
use std::path::Path;

/// The previously published version of a zone.
pub(super) struct VerifiedVersion<'b> {
    pub(super) contents: &'b Contents,
    /// Time at which all its signatures were verified, in seconds since 1970 modulo 2^32.
    pub(super) verified_at: Option<u32>,
}

/// Settings and times with which a zone is built.
pub(super) struct Builder<'b> {
    pub(super) settings: &'b ZoneSettings,
    pub(super) key_loader: &'b KeyLoader,
    pub(super) activity: &'b Activity,
    /// Time of verification, in seconds since 1970 modulo 2^32.
    pub(super) now: u32,
    /// Time at which timing metadata in key files is evaluated, in seconds since 1970; `None`
    /// ignores the metadata.
    pub(super) key_time: Option<u32>,
    /// Whether the caller needs the records after the build, for storing or for transfers.
    pub(super) returns_contents: bool,
}

/// A built version of a zone.
pub(super) struct BuiltVersion {
    pub(super) published: Published,
    /// The records before they were prepared for online signing. Present if the caller needs them,
    /// and possibly otherwise.
    pub(super) contents: Option<Contents>,
    pub(super) record_count: u64,
    pub(super) metadata: BuildMetadata,
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
pub(super) struct BuildMetadata {
    /// Extent of the verification, for the headers of the image and of the records.
    pub(super) of_image: Verification,
    pub(super) of_contents: Verification,
    /// Denial mechanism and keys of the image of a zone that is signed online.
    pub(super) inputs: Option<ImageInputs>,
}

/// Result of the verification that the settings require.
enum VerifyOutcome {
    Valid(Verified),
    /// The zone has faults and is served nevertheless.
    Faulty(FaultyZone),
    /// The zone was not verified.
    Unverified(Contents),
}

impl VerifyOutcome {
    const fn contents(&self) -> &Contents {
        match self {
            Self::Valid(verified) => verified.contents(),
            Self::Faulty(FaultyZone { contents, .. }) | Self::Unverified(contents) => contents,
        }
    }

    fn publish(&self) -> Result<Published, CompileError> {
        match self {
            Self::Valid(verified) => Published::new(verified),
            other => Published::unverified(other.contents()),
        }
    }

    fn publish_nsec5(&self, prover: Nsec5Prover) -> Result<Published, CompileError> {
        match self {
            Self::Valid(verified) => Published::nsec5(verified, prover),
            other => Published::nsec5_unverified(other.contents(), prover),
        }
    }
}

/// How much of a zone to verify.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerifyPlan {
    /// Everything.
    Full,
    /// The structure, and the signatures that differ from the previous version.
    Changed,
    /// Everything except the mathematics of signatures.
    Structural,
    Nothing,
    /// The structure. The signatures were verified when the zone was compiled, at the time `at`.
    Recorded {
        at: u32,
    },
}

/// Decides how much to verify in a zone with `signatures` signatures. `recorded` is the
/// verification that a compiled zone records; `has_previous` states whether a verified previous
/// version exists.
pub(super) fn choose_plan(
    choice: VerifyChoice,
    signatures: u64,
    recorded: Option<Verification>,
    has_previous: bool,
) -> VerifyPlan {
    let changed = if has_previous { VerifyPlan::Changed } else { VerifyPlan::Full };
    match (choice, recorded) {
        (VerifyChoice::Nothing, _) => VerifyPlan::Nothing,
        (VerifyChoice::Full, _) => VerifyPlan::Full,
        (VerifyChoice::Structural, _) => VerifyPlan::Structural,
        (
            VerifyChoice::Changed | VerifyChoice::Auto | VerifyChoice::Quick,
            Some(Verification::Full { at }),
        ) => VerifyPlan::Recorded { at },
        (VerifyChoice::Auto | VerifyChoice::Quick, _) if signatures <= FULL_VERIFICATION_LIMIT => {
            VerifyPlan::Full
        }
        (VerifyChoice::Quick, _) => VerifyPlan::Structural,
        (VerifyChoice::Changed | VerifyChoice::Auto, _) => changed,
    }
}

/// Counts the signatures of a zone.
pub(super) fn count_signatures(contents: &Contents) -> u64 {
    let sets = contents.nodes().flat_map(|node| node.rrsets());
    sets.filter(|rrset| rrset.rtype() == Rtype::RRSIG).map(|rrset| rrset.count() as u64).sum()
}

impl Builder<'_> {
    /// Builds `contents`. `recorded` is the verification that a compiled zone records, `previous`
    /// the previous version if it was verified.
    pub(super) fn build(
        &self,
        contents: Contents,
        recorded: Option<Verification>,
        previous: Option<&VerifiedVersion<'_>>,
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
        let plan = choose_plan(self.settings.verify, signatures, recorded, previous.is_some());
        let plan_text = plan_text(plan);
        if signatures > 0 && plan != VerifyPlan::Nothing {
            let zone = self.settings.apex.to_string();
            tracing::info!(name: "zone-verifying", zone, signatures, "zone {zone}: verifying {}: {plan_text}", count_text(signatures));
        }
        let previous = previous.filter(|_| plan == VerifyPlan::Changed);
        let mut built = self.build_planned(contents, plan, previous)?;
        built.warnings.extend(record_limits::check(built.published.image(), self.settings.limits)?);
        Ok(built)
    }

    /// Builds `contents` in the way that the signing mode of the settings requires.
    fn build_planned(
        &self,
        contents: Contents,
        plan: VerifyPlan,
        previous: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        match &self.settings.signing_mode {
            SigningMode::Online(signing) => self.build_online(contents, signing, plan, previous),
            mode => {
                let is_nsec5 = inspect::denial(&contents)
                    .is_some_and(|denial| denial.mechanism.name_hash() == NameHash::Vrf);
                match mode {
                    SigningMode::Nsec5 { .. } if !is_nsec5 && !self.settings.serves_faulty() => {
                        Err(VersionError::NotNsec5)
                    }
                    SigningMode::Nsec5 { .. } if !is_nsec5 => {
                        let mut built = self.build_as_loaded(contents, plan, previous)?;
                        built.warnings.push(WITHOUT_NSEC5.to_owned());
                        Ok(built)
                    }
                    SigningMode::Nsec5 { key_directory } => {
                        self.build_nsec5(contents, key_directory, plan, previous)
                    }
                    _ if is_nsec5 => {
                        self.build_nsec5(contents, &self.settings.nsec5_directory()?, plan, previous)
                    }
                    _ => self.build_as_loaded(contents, plan, previous),
                }
            }
        }
    }

    /// Builds a zone that is served with the signatures and denial records that it contains.
    fn build_as_loaded(
        &self,
        contents: Contents,
        plan: VerifyPlan,
        previous: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        let outcome = self.verify(contents, plan, previous, Nsec5Evidence::default())?;
        self.activity.begin_phase("compile");
        let published = outcome.publish()?;
        Ok(self.finish(published, outcome, plan))
    }

    /// Builds a zone with NSEC5. `directory` contains its VRF key.
    fn build_nsec5(
        &self,
        contents: Contents,
        directory: &Path,
        plan: VerifyPlan,
        previous: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        // Loads the key before verification, so that an unusable key is reported without delay.
        let zone = Nsec5Zone::of_contents(&contents);
        let prover =
            (self.key_loader.load_prover)(directory, self.settings.source.path(), &zone).map_err(Box::new)?;
        let evidence = nsec5_evidence(&prover, &contents, plan);
        let outcome = self.verify(contents, plan, previous, evidence)?;
        self.activity.begin_phase("compile");
        let published = outcome.publish_nsec5(prover)?;
        Ok(self.finish(published, outcome, plan))
    }

    /// Builds a zone that is signed online.
    fn build_online(
        &self,
        contents: Contents,
        signing: &OnlineSigning,
        plan: VerifyPlan,
        previous: Option<&VerifiedVersion<'_>>,
    ) -> Result<BuiltVersion, VersionError> {
        let OnlineSigning { mechanism, validity, .. } = *signing;
        let keys =
            (self.key_loader.load_signing_keys)(&signing.key_directory, contents.apex(), self.key_time)
                .map_err(Box::new)?;
        let (digest, key_digest) = (inputs_digest(mechanism, &keys), Some(signers_digest(mechanism, &keys)));
        let SigningKeys { records, pairs, sync } = keys;
        let options = OnlineOptions { mechanism, records, pairs, validity, sync };
        let (record_count, is_signed) = (contents.record_count(), inspect::is_signed(&contents));
        let (contents, faults) = self.verify_online(contents, plan, previous)?;
        let prepared = prepare_unverified(&contents, options).map_err(Box::new)?;
        let contents = self.returns_contents.then_some(contents);
        warn_of_key_signers(&self.settings.apex, prepared.keys());
        self.activity.begin_phase("compile");
        let is_verified = is_signed && faults.is_none();
        let of_contents = if is_verified { self.verification_record(plan) } else { Verification::Nothing };
        let verified = match &faults {
            Some(report) => faults_text(plan, report),
            None if plan == VerifyPlan::Nothing => NOTHING_VERIFIED.to_owned(),
            None if is_signed => plan_text(plan).to_owned(),
            None => "unsigned zone, keys tried".to_owned(),
        };
        let has_signed_keys = prepared.has_signed_keys();
        let inputs = Some(ImageInputs { digest, verification: of_contents, has_signed_keys });
        let published = Published::online(prepared)?;
        // Without the records that are generated online, the image must not be served.
        let metadata = BuildMetadata { of_image: Verification::Nothing, of_contents, inputs };
        let warnings = faults.iter().map(fault_warning).collect();
        Ok(BuiltVersion { published, contents, record_count, metadata, verified, warnings, key_digest })
    }

    /// Verifies the signed part of a zone that is signed online. Returns a report if the zone is
    /// served with faults.
    fn verify_online(
        &self,
        contents: Contents,
        plan: VerifyPlan,
        previous: Option<&VerifiedVersion<'_>>,
    ) -> Result<(Contents, Option<Report>), VersionError> {
        if plan == VerifyPlan::Nothing {
            return Ok((contents, None));
        }
        self.activity.begin_phase("verify");
        let report_progress =
            |progress: VerifyProgress| self.activity.set_progress(progress.names, progress.total_names);
        match verify_signed_part(
            contents,
            &self.verify_options(plan),
            &verify_inputs(previous, &report_progress),
        ) {
            Ok(contents) => Ok((contents, None)),
            Err(faulty) if faulty.report.digest_fault().is_some() => Err(rejection(&faulty.report, self.now)),
            Err(faulty) if self.settings.on_fault == OnFault::Warn => {
                Ok((faulty.contents, Some(faulty.report)))
            }
            Err(faulty) => Err(Box::new(PrepareError::Faulty(Box::new(faulty.report))).into()),
        }
    }

    /// Verifies a zone that is not signed online. Returns an error if it has faults and the
    /// settings do not permit serving it nevertheless.
    fn verify(
        &self,
        contents: Contents,
        plan: VerifyPlan,
        previous: Option<&VerifiedVersion<'_>>,
        evidence: Nsec5Evidence<'_>,
    ) -> Result<VerifyOutcome, VersionError> {
        if plan == VerifyPlan::Nothing {
            return Ok(VerifyOutcome::Unverified(contents));
        }
        self.activity.begin_phase("verify");
        let report_progress =
            |progress: VerifyProgress| self.activity.set_progress(progress.names, progress.total_names);
        let inputs = VerifyInputs { evidence, ..verify_inputs(previous, &report_progress) };
        match into_verified_with(contents, &self.verify_options(plan), &inputs) {
            Ok(verified) => Ok(VerifyOutcome::Valid(verified)),
            // Independent of `on-fault`: the publisher computed the digest over other records (RFC
            // 8976 §4).
            Err(faulty) if faulty.report.digest_fault().is_some() => Err(rejection(&faulty.report, self.now)),
            Err(faulty) if self.settings.on_fault == OnFault::Warn => Ok(VerifyOutcome::Faulty(*faulty)),
            Err(faulty) if inspect::has_only_signed_key_set(&faulty.contents) => {
                Err(VersionError::OnlyKeySet)
            }
            Err(faulty) => Err(rejection(&faulty.report, self.now)),
        }
    }

    fn verify_options(&self, plan: VerifyPlan) -> VerifyOptions {
        let mode = match plan {
            VerifyPlan::Full | VerifyPlan::Changed => Mode::Full,
            VerifyPlan::Structural | VerifyPlan::Nothing | VerifyPlan::Recorded { .. } => Mode::Structural,
        };
        VerifyOptions { now: Some(self.now), anchors: Vec::new(), mode }
    }

    /// Returns the verification to record for a zone that was verified as `plan` requires.
    fn verification_record(&self, plan: VerifyPlan) -> Verification {
        match plan {
            VerifyPlan::Full | VerifyPlan::Changed => Verification::Full { at: self.now },
            VerifyPlan::Structural => Verification::Structural { at: self.now },
            VerifyPlan::Nothing => Verification::Nothing,
            VerifyPlan::Recorded { at } => Verification::Full { at },
        }
    }

    /// Returns the built version with the metadata that follow from its verification.
    fn finish(&self, published: Published, outcome: VerifyOutcome, plan: VerifyPlan) -> BuiltVersion {
        let report = match &outcome {
            VerifyOutcome::Valid(verified) => Some(verified.report()),
            VerifyOutcome::Faulty(FaultyZone { report, .. }) => Some(report),
            VerifyOutcome::Unverified(_) => None,
        };
        let zone = self.settings.apex.to_string();
        // Warnings about alias keys are logged for each version, even without verification.
        let is_other =
            |warning: &&VerifyWarning| !matches!(warning, VerifyWarning::AliasAlgorithmWithoutNsec5 { .. });
        for warning in report.iter().flat_map(|report| &report.warnings).filter(is_other) {
            tracing::warn!(name: "zone-warning", zone, "zone {zone}: {warning}");
        }
        let (of_image, of_contents, verified, warnings) = match &outcome {
            VerifyOutcome::Valid(verified) => {
                let is_signed = verified.mechanism().is_some();
                let of_contents =
                    if is_signed { self.verification_record(plan) } else { Verification::Nothing };
                // An unsigned zone has nothing to verify.
                let of_image = if is_signed { of_contents } else { Verification::Full { at: self.now } };
                (of_image, of_contents, verified_text(plan, verified.report(), is_signed), Vec::new())
            }
            // The next start verifies the zone again and repeats the warning.
            VerifyOutcome::Faulty(FaultyZone { report, .. }) => {
                let verified = faults_text(plan, report);
                (Verification::Nothing, Verification::Nothing, verified, vec![fault_warning(report)])
            }
            VerifyOutcome::Unverified(_) => {
                let verified = NOTHING_VERIFIED.to_owned();
                (Verification::Nothing, Verification::Nothing, verified, Vec::new())
            }
        };
        let contents = match outcome {
            VerifyOutcome::Valid(verified) => verified.into_contents(),
            VerifyOutcome::Faulty(FaultyZone { contents, .. }) | VerifyOutcome::Unverified(contents) => {
                contents
            }
        };
        BuiltVersion {
            published,
            record_count: contents.record_count(),
            contents: Some(contents),
            metadata: BuildMetadata { of_image, of_contents, inputs: None },
            verified,
            warnings,
            key_digest: None,
        }
    }
}

/// Warning about a version without NSEC5 of a zone with `nsec5-keys`. It is not an error for a zone
/// that is served with faults: the primary may begin or end signing with NSEC5.
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
        format_fault_count(report.faults.len()),
        first_faults(report).join("; ")
    )
}

/// Describes the verification of a version that is served with faults.
fn faults_text(plan: VerifyPlan, report: &Report) -> String {
    format!("{}: {}", plan_text(plan), format_fault_count(report.faults.len()))
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

/// Returns the evidence that maps the names of a zone with NSEC5 to its records: the stored proofs,
/// if they belong to this version. They belong to another version if the operator copied the
/// directory only once, or if the server reads a new zone before the new proofs exist. Then names
/// are hashed with the key, unless there are more than [`FULL_VERIFICATION_LIMIT`].
fn nsec5_evidence<'p>(prover: &'p Nsec5Prover, contents: &Contents, plan: VerifyPlan) -> Nsec5Evidence<'p> {
    let serial = contents.soa().map(|soa| soa.serial);
    let proofs = prover.proofs().filter(|proofs| Some(proofs.serial()) == serial);
    let is_hashed = matches!(plan, VerifyPlan::Full | VerifyPlan::Changed)
        && contents.node_count() as u64 <= FULL_VERIFICATION_LIMIT;
    Nsec5Evidence { proofs, key: (proofs.is_none() && is_hashed).then(|| prover.key()) }
}

/// Returns the inputs of a verification without NSEC5 evidence.
fn verify_inputs<'a>(
    previous: Option<&VerifiedVersion<'a>>,
    report_progress: &'a (dyn Fn(VerifyProgress) + Sync),
) -> VerifyInputs<'a> {
    let predecessor =
        previous.map(|version| VerifiedPredecessor::assume_verified(version.contents, version.verified_at));
    VerifyInputs { predecessor, progress: Some(report_progress), ..VerifyInputs::default() }
}

/// Returns the error for a version with faults that was verified at `now`.
fn rejection(report: &Report, now: u32) -> VersionError {
    if let Some(fault) = report.digest_fault() {
        return VersionError::WrongDigest(Box::new(fault.clone()));
    }
    let verdict = rejection_period(report, now);
    VersionError::FaultsFound { faults: report.faults.len(), first: first_faults(report), verdict }
}

const fn plan_text(plan: VerifyPlan) -> &'static str {
    match plan {
        VerifyPlan::Full => "full",
        VerifyPlan::Changed => "changed",
        VerifyPlan::Structural => "structural",
        VerifyPlan::Nothing => "nothing",
        VerifyPlan::Recorded { .. } => "when it was compiled",
    }
}

fn count_text(signatures: u64) -> String {
    format!("{signatures} signature{}", if signatures == 1 { "" } else { "s" })
}

fn verified_text(plan: VerifyPlan, report: &Report, is_signed: bool) -> String {
    match plan {
        _ if !is_signed => "nothing: unsigned".to_owned(),
        VerifyPlan::Changed if report.keys_changed => {
            let verified = count_text(report.signatures_verified);
            format!("changed: all {verified}, because the keys changed")
        }
        VerifyPlan::Changed => {
            let (verified, kept) = (report.signatures_verified, report.signatures_kept);
            format!("changed: {verified} of {}", count_text(verified + kept))
        }
        VerifyPlan::Full => format!("full: {}", count_text(report.signatures_verified)),
        VerifyPlan::Structural | VerifyPlan::Nothing | VerifyPlan::Recorded { .. } => {
            plan_text(plan).to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_follows_the_choice_and_the_number_of_signatures() {
        let full = Some(Verification::Full { at: 7 });
        let structural = Some(Verification::Structural { at: 7 });
        for (choice, signatures, recorded, has_previous, expected) in [
            (VerifyChoice::Auto, FULL_VERIFICATION_LIMIT, None, true, VerifyPlan::Full),
            (VerifyChoice::Auto, FULL_VERIFICATION_LIMIT + 1, None, true, VerifyPlan::Changed),
            (VerifyChoice::Auto, FULL_VERIFICATION_LIMIT + 1, None, false, VerifyPlan::Full),
            (VerifyChoice::Auto, 1, full, true, VerifyPlan::Recorded { at: 7 }),
            (VerifyChoice::Auto, FULL_VERIFICATION_LIMIT + 1, structural, false, VerifyPlan::Full),
            (VerifyChoice::Full, FULL_VERIFICATION_LIMIT + 1, full, true, VerifyPlan::Full),
            (VerifyChoice::Changed, 1, None, true, VerifyPlan::Changed),
            (VerifyChoice::Changed, 1, None, false, VerifyPlan::Full),
            (VerifyChoice::Changed, 1, full, true, VerifyPlan::Recorded { at: 7 }),
            (VerifyChoice::Structural, 1, None, true, VerifyPlan::Structural),
            (VerifyChoice::Nothing, FULL_VERIFICATION_LIMIT + 1, full, true, VerifyPlan::Nothing),
            (VerifyChoice::Quick, FULL_VERIFICATION_LIMIT, None, false, VerifyPlan::Full),
            (VerifyChoice::Quick, FULL_VERIFICATION_LIMIT + 1, None, true, VerifyPlan::Structural),
            (VerifyChoice::Quick, FULL_VERIFICATION_LIMIT + 1, full, false, VerifyPlan::Recorded { at: 7 }),
        ] {
            let found = choose_plan(choice, signatures, recorded, has_previous);
            assert_eq!(found, expected, "{choice:?} {signatures} {recorded:?} {has_previous}");
        }
    }
}
