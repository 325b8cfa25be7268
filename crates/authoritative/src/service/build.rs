//! From the records of a zone to what is served: verified as the zone's settings say, prepared for what is made when
//! asked, compiled.

use super::activity::Activity;
use super::made::{Made, digest_of};
use super::settings::{FULL, Making, VerifyChoice, ZoneSettings};
use super::{KeyFiles, Refused};
use crate::Published;
use nonesuch_dnssec::denial::Mapping;
use nonesuch_dnssec::denial::nsec5::Nsec5Evidence;
use nonesuch_dnssec::facts;
use nonesuch_dnssec::online::{Nsec5Prover, Nsec5Zone, OnlineKeys, OnlineOptions, prepare_with};
use nonesuch_dnssec::verify::{
    Aids, Earlier, Mode, Report, VerifyProgress, VerifyWarning, into_verified_with,
};
use nonesuch_dnssec::{Mechanism, Verified, VerifyOptions};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::{Contents, Verification};
use std::path::{Path, PathBuf};

/// The version of a zone that was published before, whose signatures were all verified at a time.
pub(super) struct Before<'b> {
    pub(super) contents: &'b Contents,
    pub(super) verified_at: Option<u32>,
}

/// What a zone is built by.
pub(super) struct Builder<'b> {
    pub(super) settings: &'b ZoneSettings,
    pub(super) key_files: &'b KeyFiles,
    pub(super) activity: &'b Activity,
    /// In seconds since 1970 modulo 2^32.
    pub(super) now: u32,
    /// Whether the records are wanted when the zone is built: they are kept, or transferred.
    pub(super) keeps_contents: bool,
}

/// A zone ready to be served.
pub(super) struct Built {
    pub(super) published: Published,
    /// Its records, as they were before they were prepared; where they are wanted, and perhaps where not.
    pub(super) contents: Option<Contents>,
    pub(super) records: u64,
    /// What is known of the image, and of the signatures.
    pub(super) of_image: Verification,
    pub(super) of_contents: Verification,
    /// What was verified, for people.
    pub(super) verified: String,
    /// What the image was made by, where the zone alone does not tell.
    pub(super) made: Option<Made>,
}

/// What is verified of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Full,
    Changed,
    Structural,
    /// The signatures were verified when the zone was compiled.
    Recorded {
        at: u32,
    },
}

/// What is to be verified of a zone with so many signatures. `recorded` is what a compiled zone says of itself.
pub(super) fn plan(
    choice: VerifyChoice,
    signatures: u64,
    recorded: Option<Verification>,
    has_before: bool,
) -> Plan {
    let changed = if has_before { Plan::Changed } else { Plan::Full };
    match (choice, recorded) {
        (VerifyChoice::Full, _) => Plan::Full,
        (VerifyChoice::Structural, _) => Plan::Structural,
        (
            VerifyChoice::Changed | VerifyChoice::Auto | VerifyChoice::Quick,
            Some(Verification::Full { at }),
        ) => Plan::Recorded { at },
        (VerifyChoice::Auto | VerifyChoice::Quick, _) if signatures <= FULL => Plan::Full,
        (VerifyChoice::Quick, _) => Plan::Structural,
        (VerifyChoice::Changed | VerifyChoice::Auto, _) => changed,
    }
}

/// Number of signatures of a zone.
pub(super) fn count_signatures(contents: &Contents) -> u64 {
    let sets = contents.nodes().flat_map(|node| node.rrsets());
    sets.filter(|rrset| rrset.rtype() == Rtype::RRSIG).map(|rrset| rrset.count() as u64).sum()
}

impl Builder<'_> {
    /// Builds `contents`, of which `recorded` was verified before they were compiled.
    pub(super) fn build(
        &self,
        contents: Contents,
        recorded: Option<Verification>,
        before: Option<&Before<'_>>,
    ) -> Result<Built, Refused> {
        let is_made = matches!(self.settings.making, Making::Online { .. });
        if self.settings.requires_dnssec && !is_made && !facts::is_signed(&contents) {
            return Err(Refused::NotSigned);
        }
        let signatures = count_signatures(&contents);
        let plan = plan(self.settings.verify, signatures, recorded, before.is_some());
        let words = plan_words(plan);
        if signatures > 0 {
            let zone = self.settings.apex.to_string();
            tracing::info!(zone, signatures, "zone {zone}: verifying {}: {words}", counted(signatures));
        }
        let before = before.filter(|_| plan == Plan::Changed);
        match &self.settings.making {
            Making::Online { mechanism, keys, validity } => {
                self.build_online(contents, (*mechanism, keys, *validity), plan, before)
            }
            making => {
                let is_nsec5 =
                    facts::denial(&contents).is_some_and(|facts| facts.mechanism.mapping() == Mapping::Vrf);
                match making {
                    Making::Nsec5 { .. } if !is_nsec5 => Err(Refused::NotNsec5),
                    Making::Nsec5 { keys } => self.build_nsec5(contents, keys, plan, before),
                    _ if is_nsec5 => self.build_nsec5(contents, &self.settings.nsec5_folder()?, plan, before),
                    _ => self.build_as_it_is(contents, plan, before),
                }
            }
        }
    }

    fn build_as_it_is(
        &self,
        contents: Contents,
        plan: Plan,
        before: Option<&Before<'_>>,
    ) -> Result<Built, Refused> {
        let verified = self.verify(contents, plan, before, Nsec5Evidence::default())?;
        self.activity.phase("compile");
        let published = Published::new(&verified)?;
        Ok(self.built(published, verified, plan))
    }

    fn build_nsec5(
        &self,
        contents: Contents,
        folder: &Path,
        plan: Plan,
        before: Option<&Before<'_>>,
    ) -> Result<Built, Refused> {
        // Before the zone is verified: what must not be served is said at once.
        let zone = Nsec5Zone::of_contents(&contents);
        let prover =
            (self.key_files.prover)(folder, self.settings.source.path(), &zone).map_err(Refused::Keys)?;
        let evidence = evidence(&prover, &contents, plan);
        let verified = self.verify(contents, plan, before, evidence)?;
        self.activity.phase("compile");
        let published = Published::nsec5(&verified, prover)?;
        Ok(self.built(published, verified, plan))
    }

    fn build_online(
        &self,
        contents: Contents,
        (mechanism, keys, validity): (Mechanism, &PathBuf, u32),
        plan: Plan,
        before: Option<&Before<'_>>,
    ) -> Result<Built, Refused> {
        let (records, pairs) = (self.key_files.signing)(keys, contents.apex()).map_err(Refused::Keys)?;
        let digest = digest_of(mechanism, &records);
        let options = OnlineOptions { mechanism, records, pairs, validity };
        self.activity.phase("verify");
        let tell = |progress: VerifyProgress| self.activity.progress(progress.names, progress.total_names);
        let (records, is_signed) = (contents.record_count(), facts::is_signed(&contents));
        let kept = self.keeps_contents.then(|| contents.clone());
        let prepared =
            prepare_with(contents, options, &self.options(plan), &aids(before, &tell)).map_err(Box::new)?;
        warn_of_key_signers(&self.settings.apex, prepared.keys());
        self.activity.phase("compile");
        let of_contents = if is_signed { self.verification(plan) } else { Verification::Nothing };
        let verified =
            if is_signed { plan_words(plan).to_owned() } else { "unsigned zone, keys tried".to_owned() };
        let has_signed_keys = prepared.has_signed_keys();
        let made = Some(Made { digest, verification: of_contents, has_signed_keys });
        let published = Published::online(prepared)?;
        // The image lacks what is made when asked: by itself it is nothing to be served.
        let of_image = Verification::Nothing;
        Ok(Built { published, contents: kept, records, of_image, of_contents, verified, made })
    }

    fn verify(
        &self,
        contents: Contents,
        plan: Plan,
        before: Option<&Before<'_>>,
        evidence: Nsec5Evidence<'_>,
    ) -> Result<Verified, Refused> {
        self.activity.phase("verify");
        let tell = |progress: VerifyProgress| self.activity.progress(progress.names, progress.total_names);
        let aids = Aids { evidence, ..aids(before, &tell) };
        let verified = into_verified_with(contents, &self.options(plan), &aids);
        verified.map_err(|unverified| {
            if facts::is_key_set(&unverified.0) { Refused::OnlyKeySet } else { refused(&unverified.1) }
        })
    }

    fn options(&self, plan: Plan) -> VerifyOptions {
        let mode = match plan {
            Plan::Full | Plan::Changed => Mode::Full,
            Plan::Structural | Plan::Recorded { .. } => Mode::Structural,
        };
        VerifyOptions { now: Some(self.now), anchors: Vec::new(), mode }
    }

    fn verification(&self, plan: Plan) -> Verification {
        match plan {
            Plan::Full | Plan::Changed => Verification::Full { at: self.now },
            Plan::Structural => Verification::Structural { at: self.now },
            Plan::Recorded { at } => Verification::Full { at },
        }
    }

    fn built(&self, published: Published, verified: Verified, plan: Plan) -> Built {
        let zone = self.settings.apex.to_string();
        // Of keys it is said of every version, however much of it is verified.
        let is_other = |warning: &&VerifyWarning| !matches!(warning, VerifyWarning::AliasWithoutNsec5 { .. });
        for warning in verified.report().warnings.iter().filter(is_other) {
            tracing::warn!(zone, "zone {zone}: {warning}");
        }
        let is_signed = verified.mechanism().is_some();
        let of_contents = if is_signed { self.verification(plan) } else { Verification::Nothing };
        // Of an unsigned zone there is nothing to verify.
        let of_image = if is_signed { of_contents } else { Verification::Full { at: self.now } };
        let words = verified_words(plan, verified.report(), is_signed);
        let contents = verified.into_contents();
        Built {
            published,
            records: contents.record_count(),
            contents: Some(contents),
            of_image,
            of_contents,
            verified: words,
            made: None,
        }
    }
}

/// Whoever breaks into a server has its keys.
pub(super) fn warn_of_key_signers(zone: &Name, keys: &OnlineKeys) {
    for tag in keys.key_signing_tags() {
        tracing::warn!(
            zone = zone.to_string(),
            "zone {zone}: key {tag} signs keys alone, and its private file is in the server's folder: sign the key set elsewhere, \
             with `nonesuch zone sign --only-keys`, and keep that file there"
        );
    }
}

/// What the names of a zone with NSEC5 are matched to its records by: the stored proofs, where they are of this version; a server
/// that was given the folder once, or reads the zone before the proofs, has those of another one, and names are hashed with the
/// key then, where they are not too many to wait for.
fn evidence<'p>(prover: &'p Nsec5Prover, contents: &Contents, plan: Plan) -> Nsec5Evidence<'p> {
    let serial = contents.soa().map(|soa| soa.serial);
    let proofs = prover.proofs().filter(|proofs| Some(proofs.serial()) == serial);
    let is_hashed = matches!(plan, Plan::Full | Plan::Changed) && contents.node_count() as u64 <= FULL;
    Nsec5Evidence { proofs, key: (proofs.is_none() && is_hashed).then(|| prover.key()) }
}

fn aids<'a>(before: Option<&Before<'a>>, tell: &'a (dyn Fn(VerifyProgress) + Sync)) -> Aids<'a> {
    let earlier = before.map(|before| Earlier::recorded(before.contents, before.verified_at));
    Aids { earlier, progress: Some(tell), ..Aids::default() }
}

fn refused(report: &Report) -> Refused {
    let first = report.faults.iter().take(3).map(ToString::to_string).collect();
    Refused::Unsound { faults: report.faults.len(), first }
}

const fn plan_words(plan: Plan) -> &'static str {
    match plan {
        Plan::Full => "full",
        Plan::Changed => "changed",
        Plan::Structural => "structural",
        Plan::Recorded { .. } => "when it was compiled",
    }
}

fn counted(signatures: u64) -> String {
    format!("{signatures} signature{}", if signatures == 1 { "" } else { "s" })
}

fn verified_words(plan: Plan, report: &Report, is_signed: bool) -> String {
    match plan {
        _ if !is_signed => "nothing: unsigned".to_owned(),
        Plan::Changed if report.keys_changed => {
            let verified = counted(report.signatures_verified);
            format!("changed: all {verified}, since the keys have changed")
        }
        Plan::Changed => {
            let (verified, kept) = (report.signatures_verified, report.signatures_kept);
            format!("changed: {verified} of {}", counted(verified + kept))
        }
        Plan::Full => format!("full: {}", counted(report.signatures_verified)),
        Plan::Structural | Plan::Recorded { .. } => plan_words(plan).to_owned(),
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
            (VerifyChoice::Auto, FULL, None, true, Plan::Full),
            (VerifyChoice::Auto, FULL + 1, None, true, Plan::Changed),
            (VerifyChoice::Auto, FULL + 1, None, false, Plan::Full),
            (VerifyChoice::Auto, 1, full, true, Plan::Recorded { at: 7 }),
            (VerifyChoice::Auto, FULL + 1, structural, false, Plan::Full),
            (VerifyChoice::Full, FULL + 1, full, true, Plan::Full),
            (VerifyChoice::Changed, 1, None, true, Plan::Changed),
            (VerifyChoice::Changed, 1, None, false, Plan::Full),
            (VerifyChoice::Changed, 1, full, true, Plan::Recorded { at: 7 }),
            (VerifyChoice::Structural, 1, None, true, Plan::Structural),
            (VerifyChoice::Quick, FULL, None, false, Plan::Full),
            (VerifyChoice::Quick, FULL + 1, None, true, Plan::Structural),
            (VerifyChoice::Quick, FULL + 1, full, false, Plan::Recorded { at: 7 }),
        ] {
            let found = plan(choice, signatures, recorded, has_before);
            assert_eq!(found, expected, "{choice:?} {signatures} {recorded:?} {has_before}");
        }
    }
}
