//! Publishes a version of a zone: verifies, compiles, stores, adds it to the journal, replaces the
//! previous version and notifies secondaries.

use super::activity::{Activity, lock};
use super::build::{Builder, BuiltVersion, VerifiedVersion};
use super::compare::{self, SerialChange, VersionSummary};
use super::settings::{SigningMode, VerifyChoice, ZoneSettings, ZoneSource};
use super::state::{Fingerprint, JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX, STATE_SUFFIX, ZONE_SUFFIX};
use super::zone::{UnstoredVersion, Zone};
use super::{Service, VersionError, ZoneEvent};
use crate::zones::ServedZone;
use crate::{Published, open_image};
use nonesuch_proto::{Name, serial};
use nonesuch_secondary::{LocalSoa, is_expired};
use nonesuch_server::clock::milliseconds_since_1970;
use nonesuch_server::clock::seconds_now;
use nonesuch_zone::semantics::{self, Findings};
use nonesuch_zone::{ChangeSet, Contents, Journal, Verification, load_regular};
use std::path::Path;
use std::sync::Arc;

/// Maximum number of logged findings of the semantic checks for one version, for each kind of
/// finding.
pub const MAX_FINDINGS_PER_KIND: usize = 3;
/// Maximum number of logged findings of the semantic checks for one version, for all kinds
/// together.
pub const MAX_FINDINGS: usize = 20;

/// Records of a zone that are to be published.
pub(super) struct Candidate<'c> {
    pub(super) contents: Contents,
    /// Verification that a compiled zone records.
    pub(super) recorded: Option<Verification>,
    /// Changes that lead from the previous version to these records, if known.
    pub(super) steps: &'c [ChangeSet],
    /// Fingerprints of the files from which the records were read.
    pub(super) origin: Vec<Fingerprint>,
    /// Origin of the version, as in [`Version::is_new`].
    pub(super) is_new: bool,
}

impl Candidate<'_> {
    /// Creates a candidate from records of a primary or a file, without further information.
    pub(super) const fn new(contents: Contents) -> Self {
        Self { contents, recorded: None, steps: &[], origin: Vec::new(), is_new: true }
    }
}

/// A version of a zone that is ready to be served.
pub(super) struct Version {
    pub(super) published: Published,
    /// The records, if they remain in memory ([`ZoneSettings::keeps_contents_in_memory`]).
    pub(super) contents: Option<Arc<Contents>>,
    /// Number of records, if it is known.
    pub(super) records: Option<u64>,
    /// Description of the verification, for messages.
    pub(super) verified: String,
    /// Time at which all its signatures were verified, in seconds since 1970 modulo 2^32; `None` if
    /// they were not.
    pub(super) verified_at: Option<u32>,
    /// Fingerprints of the files from which the records were read.
    pub(super) origin: Vec<Fingerprint>,
    /// Warnings about this version and its differences from the previous one.
    pub(super) warnings: Vec<String>,
    /// Number of findings of the semantic checks; `None` if the records were not checked.
    pub(super) findings: Option<usize>,
    /// Whether the version came from a primary or a file, or was generated. Only such a version
    /// ends the expiry of a zone; a stored version does not.
    pub(super) is_new: bool,
    /// Digest of the keys that sign the version online
    /// ([`signers_digest`](super::image_inputs::signers_digest)).
    pub(super) key_digest: Option<String>,
    /// The reason why the version is not in the state directory, if it should be there.
    pub(super) unstored: Option<UnstoredVersion>,
}

/// The last published version.
pub(super) struct LastVersion {
    pub(super) contents: Arc<Contents>,
    /// Time of verification, as in [`Version::verified_at`].
    pub(super) verified_at: Option<u32>,
}

impl Version {
    /// Creates a new version from a built one. `origin` contains the fingerprints of its files.
    pub(super) fn of(built: BuiltVersion, settings: &ZoneSettings, origin: Vec<Fingerprint>) -> Self {
        let verified_at = match built.metadata.of_contents {
            Verification::Full { at } => Some(at),
            Verification::Nothing | Verification::Structural { .. } | Verification::OtherTables { .. } => {
                None
            }
        };
        Self {
            published: built.published,
            records: Some(built.record_count),
            contents: built.contents.filter(|_| settings.keeps_contents_in_memory()).map(Arc::new),
            verified: built.verified,
            verified_at,
            origin,
            warnings: built.warnings,
            findings: None,
            is_new: true,
            key_digest: built.key_digest,
            unstored: None,
        }
    }
}

impl Service {
    /// Verifies, compiles, stores and serves `candidate`. Returns its serial.
    pub(super) fn publish_contents(
        &self,
        zone: &Zone,
        candidate: Candidate<'_>,
        activity: &Activity,
    ) -> Result<u32, VersionError> {
        let Candidate { contents, recorded, steps, origin, is_new } = candidate;
        let settings = zone.settings();
        let last_summary = self.last_summary(zone);
        let last = self.last_version(zone, &settings);
        let last_contents = last.as_ref().map(|last| &*last.contents);
        let verified = last.as_ref().filter(|last| last.verified_at.is_some());
        let verified =
            verified.map(|last| VerifiedVersion { contents: &last.contents, verified_at: last.verified_at });
        let builder = self.builder(&settings, activity, self.shifted_now());
        let findings = check_semantics(&contents, &settings);
        let built = builder.build(contents, recorded, verified.as_ref())?;
        let after = built.contents.as_ref();
        let serial_change =
            after.map_or(SerialChange::NoPrevious, |after| SerialChange::of(last_contents, after));
        let mut warnings = compare::compare_versions(
            last_summary.as_ref(),
            &built.published,
            serial_change,
            &settings,
            self.shifted_now(),
        )?;
        warnings.extend(findings.iter().flat_map(|findings| findings.lines(MAX_FINDINGS)));
        activity.begin_phase("keep");
        let is_from_primaries = settings.source == ZoneSource::Primaries;
        let has_nothing_stored = self.has_nothing_stored(zone);
        let stored = self
            .clear_ambiguous_journal(zone, &settings, serial_change)
            .and_then(|()| self.persist(zone, &built, &origin));
        let serial = built.published.image().serial();
        let unstored = match stored {
            Ok(()) => None,
            // A zone from primaries is served from memory. Otherwise each retry would transfer the
            // complete zone again, and the zone would expire although its primaries respond. Other
            // zones are served from memory if no version is stored, because then a restart cannot
            // serve an older version.
            Err(error) if is_from_primaries || has_nothing_stored && !error.is_foreign_file() => {
                let name = zone.apex.to_string();
                tracing::error!(
                    name: "zone-not-stored",
                    zone = name,
                    serial,
                    "zone {name}: not stored, serving serial {serial} from memory: {error}"
                );
                Some(UnstoredVersion { error, metadata: built.metadata.clone() })
            }
            Err(error) => return Err(error),
        };
        // The journal contains only changes between stored versions.
        let has_gap = unstored.is_some() || lock(&zone.runtime).unstored.is_some();
        let journal_base = last_contents.filter(|_| !has_gap);
        if let Some(after) = after {
            self.add_to_journal(zone, &settings, journal_base, serial_change, after, steps);
        }
        drop(last);
        let findings = findings.map(|findings| findings.total());
        let mut version = Version { unstored, findings, is_new, ..Version::of(built, &settings, origin) };
        version.warnings.extend(warnings);
        if self.serve_version(zone, version) { Ok(serial) } else { Err(VersionError::UnknownZone) }
    }

    /// Returns whether no version of a zone is stored, so that a restart cannot serve an older
    /// version than the current one.
    pub(super) fn has_nothing_stored(&self, zone: &Zone) -> bool {
        let runtime = lock(&zone.runtime);
        let is_served_from_disk = runtime.served.is_some() && runtime.unstored.is_none();
        drop(runtime);
        !is_served_from_disk
            && self.state_directory.as_ref().is_none_or(|state| !state.has_file(&zone.apex, ZONE_SUFFIX))
    }

    /// Returns a builder for a zone with these settings. Signatures must be valid at `now`; keys
    /// are those of the current time.
    pub(super) fn builder<'b>(
        &'b self,
        settings: &'b ZoneSettings,
        activity: &'b Activity,
        now: u32,
    ) -> Builder<'b> {
        let returns_contents = self.state_directory.is_some() || settings.keeps_contents_in_memory();
        let key_time = settings.key_time(self.shifted_now());
        Builder { settings, key_loader: &self.key_loader, activity, now, key_time, returns_contents }
    }

    /// Returns a summary of the last published version, for warnings about differences. Returns
    /// `None` if no version is served or stored.
    pub(super) fn last_summary(&self, zone: &Zone) -> Option<VersionSummary> {
        if let Some(served) = &lock(&zone.runtime).served {
            return Some(VersionSummary::of(served.published()));
        }
        let state = self.state_directory.as_ref().filter(|state| state.has_file(&zone.apex, ZONE_SUFFIX))?;
        // If the stored version cannot be read, there is nothing to compare.
        let file = open_image(&state.path(&zone.apex, ZONE_SUFFIX)).ok().flatten()?;
        Some(VersionSummary::of_image(file.image(), state.image_inputs(&zone.apex).is_some()))
    }

    /// Returns the last published version if the next one needs it: unchanged parts need no new
    /// verification, and changes are written to the journal.
    pub(super) fn last_version(&self, zone: &Zone, settings: &ZoneSettings) -> Option<LastVersion> {
        let runtime = lock(&zone.runtime);
        if let Some(contents) = runtime.contents.clone() {
            return Some(LastVersion { contents, verified_at: runtime.verified_at });
        }
        let has_many_signatures = runtime
            .served
            .as_ref()
            .is_none_or(|served| served.published().image().signatures() > super::FULL_VERIFICATION_LIMIT);
        drop(runtime);
        let verification_needs_it = match settings.verify {
            VerifyChoice::Changed => true,
            VerifyChoice::Auto => has_many_signatures,
            VerifyChoice::Full | VerifyChoice::Quick | VerifyChoice::Structural | VerifyChoice::Nothing => {
                false
            }
        };
        let state = self
            .state_directory
            .as_ref()
            .filter(|_| verification_needs_it || settings.keeps_contents_in_memory())?;
        // The stored version is optional. If it cannot be read, the server verifies more.
        let loaded = load_regular(&state.path(&zone.apex, ZONE_SUFFIX), Some(&zone.apex)).ok()?;
        let verified_at = match loaded.verification {
            Some(Verification::Full { at }) => Some(at),
            _ => None,
        };
        Some(LastVersion { contents: Arc::new(loaded.contents), verified_at })
    }

    /// Clears the journal if the serial of a version is lower than the previous one, or is the same
    /// for different records. This happens before the version is stored: a crash between the steps
    /// causes larger transfers, but no wrong ones.
    pub(super) fn clear_ambiguous_journal(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        serial_change: SerialChange,
    ) -> Result<(), VersionError> {
        let Some(state) = self.state_directory.as_ref().filter(|_| settings.keeps_contents_in_memory())
        else {
            return Ok(());
        };
        let noted = compare::note_reused(state, &zone.apex, serial_change);
        let failed = |source| VersionError::Store { path: state.path(&zone.apex, STATE_SUFFIX), source };
        if noted.map_err(failed)?
            && let Some(journal) = self.usable_journal(zone, settings, None)
        {
            journal.clear().map_err(|error| failed(std::io::Error::other(error)))?;
        }
        Ok(())
    }

    /// Adds the changes from the previous version to the journal, one entry for each step, so that
    /// a secondary with an intermediate version receives the later changes. If the journal cannot
    /// be written, transfers become larger; nothing else changes.
    pub(super) fn add_to_journal(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        before: Option<&Contents>,
        serial_change: SerialChange,
        contents: &Contents,
        steps: &[ChangeSet],
    ) {
        let (from, before) = match (serial_change, before) {
            (SerialChange::Unchanged, _) => return,
            (SerialChange::Increased { from }, Some(before)) => (Some(from), Some(before)),
            _ => (None, None),
        };
        let Some(journal) = self.usable_journal(zone, settings, from) else { return };
        let is_unambiguous = |from: &u32| {
            self.state_directory
                .as_ref()
                .is_some_and(|state| compare::is_unambiguous(state, &zone.apex, *from))
        };
        let serials = from.filter(is_unambiguous).zip(contents.soa().map(|soa| soa.serial));
        let appended = match before.zip(serials) {
            Some((_, (from, to))) if is_consecutive(steps, from, to) => journal.append_all(steps),
            Some((before, _)) => journal.append(&ChangeSet::between(before, contents, |_| true)).map(drop),
            None => journal.clear(),
        };
        if let Err(error) = appended {
            let name = zone.apex.to_string();
            tracing::warn!(name: "change-not-stored", zone = name, "zone {name}: no incremental transfers of this change: {error}");
        }
    }

    /// Returns the journal of a zone that is transferred; `None` if the zone needs no journal or it
    /// cannot be used. Clears a journal that does not end at serial `end`; this happens if a
    /// version was stored without a journal entry. With `None`, the end is not checked.
    fn usable_journal(&self, zone: &Zone, settings: &ZoneSettings, end: Option<u32>) -> Option<Arc<Journal>> {
        let state = self.state_directory.as_ref()?;
        let is_wanted = settings.keeps_contents_in_memory()
            && settings.transfers.journal_octets > 0
            && !matches!(settings.signing_mode, SigningMode::Online(_));
        let mut journal = lock(&zone.runtime).journal.take().filter(|_| is_wanted);
        if is_wanted && journal.is_none() {
            let path = state.path(&zone.apex, JOURNAL_SUFFIX);
            // The runtime state is not locked here: other threads need it, and the disk may be
            // slow.
            let foreign_suffix = [JOURNAL_SUFFIX, NEW_JOURNAL_SUFFIX]
                .into_iter()
                .find(|suffix| !state.may_write(&zone.apex, suffix));
            if let Some(suffix) = foreign_suffix {
                let name = zone.apex.to_string();
                tracing::warn!(
                    name: "journal-not-usable",
                    zone = name,
                    "zone {name}: no incremental transfers: {} is not a journal; move it to another directory",
                    state.path(&zone.apex, suffix).display()
                );
            } else {
                journal = open_journal(&path, &zone.apex, settings.transfers.journal_octets).map(Arc::new);
            }
        }
        let mut is_unusable = false;
        if let Some((expected, journal)) = end.zip(journal.as_ref())
            && journal.serials().is_some_and(|(_, found)| found != expected)
        {
            let name = zone.apex.to_string();
            tracing::warn!(
                name: "journal-cleared",
                zone = name,
                "zone {name}: clearing the journal, it does not end at serial {expected}"
            );
            if let Err(error) = journal.clear() {
                tracing::warn!(name: "journal-not-usable", zone = name, "zone {name}: no incremental transfers: {error}");
                is_unusable = true;
            }
        }
        let journal = journal.filter(|_| !is_unusable);
        lock(&zone.runtime).journal.clone_from(&journal);
        journal
    }

    /// Replaces the served version. Returns `false` if the zone was removed.
    pub(super) fn serve_version(&self, zone: &Zone, mut version: Version) -> bool {
        let settings = zone.settings();
        version.warnings.extend(compare::alias_warnings(&version.published));
        let (serial, is_new) = (version.published.image().serial(), version.is_new);
        let journal = self.usable_journal(zone, &settings, Some(serial));
        let description = version.published.description();
        let has_expired = !is_new && self.has_expired(zone, &settings, version.contents.as_deref());
        let mut runtime = lock(&zone.runtime);
        if runtime.is_removed {
            return false;
        }
        // Decided before the zone is served. Afterwards the state machine of the transfers decides,
        // not the stored timers.
        runtime.is_expired |= has_expired && runtime.served.is_none();
        let mut served = ServedZone::new(version.published, zone.policy());
        if let Some(contents) = &version.contents {
            served = served.with_contents(Arc::clone(contents));
        }
        if let Some(journal) = journal {
            served = served.with_journal(journal);
        }
        runtime.served = Some(Arc::new(served));
        runtime.has_failed = false;
        // A stored version does not end the expiry of a zone; only a primary does (RFC 1034
        // §4.3.5).
        runtime.is_expired &= !version.is_new && settings.source == ZoneSource::Primaries;
        runtime.description = description;
        runtime.verified = version.verified;
        runtime.records = version.records;
        runtime.loaded_at = seconds_now();
        runtime.origin = version.origin;
        runtime.contents = version.contents;
        runtime.verified_at = version.verified_at;
        runtime.warnings.clone_from(&version.warnings);
        runtime.findings = version.findings;
        runtime.key_digest = version.key_digest;
        runtime.unstored = version.unstored;
        let (name, description, verified) =
            (zone.apex.to_string(), runtime.description.clone(), runtime.verified.clone());
        self.publish_state(zone, &runtime);
        drop(runtime);
        tracing::info!(name: "zone-published", zone = name, serial, "zone {name}: serial {serial}, {description}; verified: {verified}");
        for warning in &version.warnings {
            tracing::warn!(name: "zone-warning", zone = name, serial, "zone {name}: {warning}");
        }
        self.send_event(&ZoneEvent::Published { apex: zone.apex.clone(), is_new });
        true
    }

    /// Returns whether the stored version of a zone of primaries expired while the server was not
    /// running.
    fn has_expired(&self, zone: &Zone, settings: &ZoneSettings, contents: Option<&Contents>) -> bool {
        let Some(state) = self.state_directory.as_ref().filter(|_| settings.source == ZoneSource::Primaries)
        else {
            return false;
        };
        let timers = state.read_state(&zone.apex).timers;
        let timing = settings.transfers.timing();
        contents
            .and_then(LocalSoa::of)
            .is_some_and(|soa| is_expired(timers, soa, timing, milliseconds_since_1970()))
    }

    /// Records for the status whether the newest version was published (`None`) or why it was
    /// rejected. Logs a rejection.
    pub(super) fn record_result(&self, zone: &Zone, rejection: Option<&VersionError>) {
        let mut runtime = lock(&zone.runtime);
        if runtime.is_removed {
            return;
        }
        runtime.error = rejection.map(ToString::to_string);
        let has_failed = rejection.is_some() && runtime.served.is_none();
        if std::mem::replace(&mut runtime.has_failed, has_failed) != has_failed {
            self.publish_state(zone, &runtime);
        }
        let is_served = runtime.served.is_some();
        drop(runtime);
        if let Some(error) = rejection {
            let name = zone.apex.to_string();
            if is_served {
                tracing::error!(name: "zone-rejected", zone = name, "zone {name}: rejected, keeping the previous version: {error}");
            } else {
                tracing::error!(name: "zone-not-served", zone = name, "zone {name}: rejected, not served: {error}");
            }
        }
    }
}

/// Runs the semantic checks for a zone that is loaded from a file. Returns `None` for other zones:
/// the primary is responsible for a transferred zone.
fn check_semantics(contents: &Contents, settings: &ZoneSettings) -> Option<Findings> {
    settings.source.path().map(|_| semantics::check(contents, MAX_FINDINGS_PER_KIND))
}

/// Opens the journal at `path`, and replaces one that cannot be opened. Returns `None` if that
/// fails too; the reason is logged.
fn open_journal(path: &Path, apex: &Name, max_octets: u64) -> Option<Journal> {
    let zone = apex.to_string();
    let opened = Journal::open(path, apex, max_octets).map(|(journal, _)| journal);
    let opened = opened.or_else(|error| {
        tracing::warn!(name: "journal-replaced", zone, "zone {zone}: replacing the journal {}: {error}", path.display());
        Journal::replace(path, apex, max_octets)
    });
    opened.map_err(|error| tracing::warn!(name: "journal-not-usable", zone, "zone {zone}: no incremental transfers: {error}")).ok()
}

/// Returns whether `steps` lead from serial `from` to serial `to`, and each step begins at the
/// serial at which the previous one ends.
fn is_consecutive(steps: &[ChangeSet], from: u32, to: u32) -> bool {
    let serial = |contents: &Contents| contents.soa().map(|soa| soa.serial);
    let end = steps.iter().try_fold(from, |current, step| {
        let next = serial(step.added()).filter(|next| serial::is_before(current, *next));
        next.filter(|_| serial(step.removed()) == Some(current))
    });
    !steps.is_empty() && end == Some(to)
}
