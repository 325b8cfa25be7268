//! Publishing a version of a zone: verified, compiled, kept, noted in the journal, swapped in, told.

use super::activity::{Activity, lock};
use super::build::{Builder, BuiltVersion, VerifiedVersion};
use super::compare::{self, SerialChange, VersionSummary};
use super::settings::{SigningMode, VerifyChoice, ZoneSettings, ZoneSource};
use super::state::{Fingerprint, JOURNAL, JOURNAL_PART, STATE, ZONE};
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

/// Findings of the semantic checks that are logged of one version, of each kind.
pub const SEMANTIC_KIND: usize = 3;
/// Findings of the semantic checks that are logged of one version, of all kinds together.
pub const SEMANTIC_LINES: usize = 20;

/// The records of a zone on their way to being published.
pub(super) struct Candidate<'c> {
    pub(super) contents: Contents,
    /// What was verified of them when they were compiled, where they were.
    pub(super) recorded: Option<Verification>,
    /// The steps that led to them from the previous version, where they are known.
    pub(super) steps: &'c [ChangeSet],
    /// Those of the files that they were read from.
    pub(super) origin: Vec<Fingerprint>,
    /// As [`Version::is_new`].
    pub(super) is_new: bool,
}

impl Candidate<'_> {
    /// Records that came from a primary or a file, of which nothing else is known.
    pub(super) const fn new(contents: Contents) -> Self {
        Self { contents, recorded: None, steps: &[], origin: Vec::new(), is_new: true }
    }
}

/// A version of a zone on its way to being served.
pub(super) struct Version {
    pub(super) published: Published,
    pub(super) contents: Option<Arc<Contents>>,
    pub(super) records: Option<u64>,
    pub(super) verified: String,
    /// When its signatures were verified.
    pub(super) verified_at: Option<u32>,
    pub(super) origin: Vec<Fingerprint>,
    /// What is odd about it, beside the one before.
    pub(super) warnings: Vec<String>,
    /// Number of findings of the semantic checks; `None` where the records were not checked.
    pub(super) findings: Option<usize>,
    /// Whether it came from a primary or a file: what is kept tells nothing of how old it is.
    pub(super) is_new: bool,
    /// The digest of the keys that sign it online ([`signers_digest`](super::image_inputs::signers_digest)).
    pub(super) key_digest: Option<String>,
    /// Why it is not in the state folder, where it is to be there.
    pub(super) unstored: Option<UnstoredVersion>,
}

/// The version that was published last.
pub(super) struct LastVersion {
    pub(super) contents: Arc<Contents>,
    /// As [`Version::verified_at`].
    pub(super) verified_at: Option<u32>,
}

impl Version {
    pub(super) fn of(built: BuiltVersion, settings: &ZoneSettings, origin: Vec<Fingerprint>) -> Self {
        let verified_at = match built.record.of_contents {
            Verification::Full { at } => Some(at),
            Verification::Nothing | Verification::Structural { .. } | Verification::OtherTables { .. } => {
                None
            }
        };
        Self {
            published: built.published,
            records: Some(built.records),
            contents: built.contents.filter(|_| settings.holds_contents()).map(Arc::new),
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
    /// Verifies, compiles, keeps and serves `candidate`; returns its serial.
    pub(super) fn publish_contents(
        &self,
        zone: &Zone,
        candidate: Candidate<'_>,
        activity: &Activity,
    ) -> Result<u32, VersionError> {
        let Candidate { contents, recorded, steps, origin, is_new } = candidate;
        let settings = zone.settings();
        let seen = self.previous_version(zone);
        let last = self.last_version(zone, &settings);
        let held = last.as_ref().map(|last| &*last.contents);
        let before = last.as_ref().filter(|last| last.verified_at.is_some());
        let before =
            before.map(|last| VerifiedVersion { contents: &last.contents, verified_at: last.verified_at });
        let builder = self.builder(&settings, activity, self.now());
        let findings = check_semantics(&contents, &settings);
        let built = builder.build(contents, recorded, before.as_ref())?;
        let after = built.contents.as_ref();
        let relation = after.map_or(SerialChange::NoPrevious, |after| SerialChange::of(held, after));
        let mut warnings =
            compare::compare_versions(seen.as_ref(), &built.published, relation, &settings, self.now())?;
        warnings.extend(findings.iter().flat_map(|findings| findings.lines(SEMANTIC_LINES)));
        activity.phase("keep");
        let is_from_primaries = settings.source == ZoneSource::Primaries;
        let has_nothing_stored = self.has_nothing_stored(zone);
        let stored =
            self.empty_journal(zone, &settings, relation).and_then(|()| self.persist(zone, &built, &origin));
        let serial = built.published.image().serial();
        let unstored = match stored {
            Ok(()) => None,
            // A zone from primaries is served from memory. Otherwise each retry would transfer the whole zone again, and the zone would
            // expire although its primaries answer. Without a stored version, no restart can bring an older one back.
            Err(error) if is_from_primaries || has_nothing_stored && !error.is_in_the_way() => {
                let name = zone.apex.to_string();
                tracing::error!(
                    zone = name,
                    serial,
                    "zone {name}: not stored, serving serial {serial} from memory: {error}"
                );
                Some(UnstoredVersion { error, record: built.record.clone() })
            }
            Err(error) => return Err(error),
        };
        // The journal leads from one stored version to the next.
        let is_gap = unstored.is_some() || lock(&zone.runtime).unstored.is_some();
        let before = held.filter(|_| !is_gap);
        if let Some(after) = after {
            self.add_to_journal(zone, &settings, before, relation, after, steps);
        }
        drop(last);
        let findings = findings.map(|findings| findings.total());
        let mut version = Version { unstored, findings, is_new, ..Version::of(built, &settings, origin) };
        version.warnings.extend(warnings);
        if self.serve(zone, version) { Ok(serial) } else { Err(VersionError::Unknown) }
    }

    /// Whether no version of a zone is stored: a restart serves no older one than is served now.
    pub(super) fn has_nothing_stored(&self, zone: &Zone) -> bool {
        let facts = lock(&zone.runtime);
        let is_served_from_disk = facts.served.is_some() && facts.unstored.is_none();
        drop(facts);
        !is_served_from_disk && self.state.as_ref().is_none_or(|state| !state.has(&zone.apex, ZONE))
    }

    /// What a zone with these settings is built by, with signatures that are valid at `now` and the keys of the present.
    pub(super) fn builder<'b>(
        &'b self,
        settings: &'b ZoneSettings,
        activity: &'b Activity,
        now: u32,
    ) -> Builder<'b> {
        let keeps_contents = self.state.is_some() || settings.holds_contents();
        let key_time = settings.key_time(self.now());
        Builder { settings, key_files: &self.key_files, activity, now, key_time, keeps_contents }
    }

    /// What was published of a zone last, as far as people are warned by it.
    pub(super) fn previous_version(&self, zone: &Zone) -> Option<VersionSummary> {
        if let Some(served) = &lock(&zone.runtime).served {
            return Some(VersionSummary::of(served.published()));
        }
        let state = self.state.as_ref().filter(|state| state.has(&zone.apex, ZONE))?;
        // Where what is kept cannot be read, there is nothing to compare.
        let file = open_image(&state.path(&zone.apex, ZONE)).ok().flatten()?;
        Some(VersionSummary::of_image(file.image(), state.image_inputs(&zone.apex).is_some()))
    }

    /// The version that was published last, where it is of use for the next one: what has not changed need not be verified
    /// again, and what has goes into the journal.
    pub(super) fn last_version(&self, zone: &Zone, settings: &ZoneSettings) -> Option<LastVersion> {
        let facts = lock(&zone.runtime);
        if let Some(contents) = facts.contents.clone() {
            return Some(LastVersion { contents, verified_at: facts.verified_at });
        }
        let many =
            facts.served.as_ref().is_none_or(|served| served.published().image().signatures() > super::FULL);
        drop(facts);
        let for_verifying = match settings.verify {
            VerifyChoice::Changed => true,
            VerifyChoice::Auto => many,
            VerifyChoice::Full | VerifyChoice::Quick | VerifyChoice::Structural | VerifyChoice::Nothing => {
                false
            }
        };
        let state = self.state.as_ref().filter(|_| for_verifying || settings.holds_contents())?;
        // What was kept is of use, and no more: where it cannot be read, more is verified.
        let loaded = load_regular(&state.path(&zone.apex, ZONE), Some(&zone.apex)).ok()?;
        let verified_at = match loaded.verification {
            Some(Verification::Full { at }) => Some(at),
            _ => None,
        };
        Some(LastVersion { contents: Arc::new(loaded.contents), verified_at })
    }

    /// Takes out of the journal what does not lead to a version that is about to be kept, where its serial is one that was
    /// published before. Done first: a stop in between leaves larger transfers, and nothing that leads astray.
    pub(super) fn empty_journal(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        relation: SerialChange,
    ) -> Result<(), VersionError> {
        let Some(state) = self.state.as_ref().filter(|_| settings.holds_contents()) else { return Ok(()) };
        let noted = compare::note_reused(state, &zone.apex, relation);
        let failed = |source| VersionError::Store { path: state.path(&zone.apex, STATE), source };
        if noted.map_err(failed)?
            && let Some(journal) = self.journal(zone, settings, None)
        {
            journal.clear().map_err(|error| failed(std::io::Error::other(error)))?;
        }
        Ok(())
    }

    /// Notes what differs from the version of before in the journal that incremental transfers are made of: one entry for
    /// each step, so that whoever has a version in between is given what follows it. A journal that cannot be written makes
    /// transfers larger, and nothing else.
    pub(super) fn add_to_journal(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        before: Option<&Contents>,
        relation: SerialChange,
        contents: &Contents,
        steps: &[ChangeSet],
    ) {
        let (from, before) = match (relation, before) {
            (SerialChange::Unchanged, _) => return,
            (SerialChange::Increased { from }, Some(before)) => (Some(from), Some(before)),
            _ => (None, None),
        };
        let Some(journal) = self.journal(zone, settings, from) else { return };
        let is_unambiguous = |from: &u32| {
            self.state.as_ref().is_some_and(|state| compare::is_unambiguous(state, &zone.apex, *from))
        };
        let serials = from.filter(is_unambiguous).zip(contents.soa().map(|soa| soa.serial));
        let appended = match before.zip(serials) {
            Some((_, (from, to))) if leads(steps, from, to) => journal.append_all(steps),
            Some((before, _)) => journal.append(&ChangeSet::between(before, contents, |_| true)).map(drop),
            None => journal.clear(),
        };
        if let Err(error) = appended {
            let name = zone.apex.to_string();
            tracing::warn!(zone = name, "zone {name}: no incremental transfers of this change: {error}");
        }
    }

    /// The journal of a zone that is transferred. What does not lead to the version with the serial `to` is taken out: that was
    /// kept without a word in the journal.
    fn journal(&self, zone: &Zone, settings: &ZoneSettings, to: Option<u32>) -> Option<Arc<Journal>> {
        let state = self.state.as_ref()?;
        let is_wanted = settings.holds_contents()
            && settings.transfers.journal_octets > 0
            && !matches!(settings.signing_mode, SigningMode::Online(_));
        let mut journal = lock(&zone.runtime).journal.take().filter(|_| is_wanted);
        if is_wanted && journal.is_none() {
            let path = state.path(&zone.apex, JOURNAL);
            // Not with the facts held: others ask for them, and the disk may be slow.
            let taken = [JOURNAL, JOURNAL_PART].into_iter().find(|suffix| !state.is_free(&zone.apex, suffix));
            if let Some(suffix) = taken {
                let name = zone.apex.to_string();
                tracing::warn!(
                    zone = name,
                    "zone {name}: no incremental transfers: {} is no journal; move it elsewhere",
                    state.path(&zone.apex, suffix).display()
                );
            } else {
                journal = open_journal(&path, &zone.apex, settings.transfers.journal_octets).map(Arc::new);
            }
        }
        let mut is_stale = false;
        if let Some((found, journal)) = to.zip(journal.as_ref())
            && journal.serials().is_some_and(|(_, end)| end != found)
        {
            let name = zone.apex.to_string();
            tracing::warn!(
                zone = name,
                "zone {name}: the journal does not lead to serial {found}: begun anew"
            );
            if let Err(error) = journal.clear() {
                tracing::warn!(zone = name, "zone {name}: no incremental transfers: {error}");
                is_stale = true;
            }
        }
        let journal = journal.filter(|_| !is_stale);
        lock(&zone.runtime).journal.clone_from(&journal);
        journal
    }

    /// Swaps a version in; tells whether the zone is still there to be served.
    pub(super) fn serve(&self, zone: &Zone, mut version: Version) -> bool {
        let settings = zone.settings();
        version.warnings.extend(compare::alias_warnings(&version.published));
        let (serial, is_new) = (version.published.image().serial(), version.is_new);
        let journal = self.journal(zone, &settings, Some(serial));
        let words = version.published.description();
        let has_expired = !is_new && self.has_expired(zone, &settings, version.contents.as_deref());
        let mut facts = lock(&zone.runtime);
        if facts.is_removed {
            return false;
        }
        // Decided before the zone is served. Later the state machine of the transfers decides, not the stored timers.
        facts.is_expired |= has_expired && facts.served.is_none();
        let mut served = ServedZone::new(version.published, zone.policy());
        if let Some(contents) = &version.contents {
            served = served.with_contents(Arc::clone(contents));
        }
        if let Some(journal) = journal {
            served = served.with_journal(journal);
        }
        facts.served = Some(Arc::new(served));
        facts.has_failed = false;
        // A version that is kept is as old as it was: a primary alone ends the expiry of a zone (RFC 1034 §4.3.5).
        facts.is_expired &= !version.is_new && settings.source == ZoneSource::Primaries;
        facts.description = words;
        facts.verified = version.verified;
        facts.records = version.records;
        facts.loaded_at = seconds_now();
        facts.origin = version.origin;
        facts.contents = version.contents;
        facts.verified_at = version.verified_at;
        facts.warnings.clone_from(&version.warnings);
        facts.findings = version.findings;
        facts.key_digest = version.key_digest;
        facts.unstored = version.unstored;
        let (name, words, verified) =
            (zone.apex.to_string(), facts.description.clone(), facts.verified.clone());
        self.show(zone, &facts);
        drop(facts);
        tracing::info!(zone = name, serial, "zone {name}: serial {serial}, {words}; verified: {verified}");
        for warning in &version.warnings {
            tracing::warn!(zone = name, serial, "zone {name}: {warning}");
        }
        self.send_event(&ZoneEvent::Published { apex: zone.apex.clone(), is_new });
        true
    }

    /// Whether the stored version of a zone of primaries has expired while the server was down.
    fn has_expired(&self, zone: &Zone, settings: &ZoneSettings, contents: Option<&Contents>) -> bool {
        let Some(state) = self.state.as_ref().filter(|_| settings.source == ZoneSource::Primaries) else {
            return false;
        };
        let timers = state.facts(&zone.apex).timers;
        let timing = settings.transfers.timing();
        contents
            .and_then(LocalSoa::of)
            .is_some_and(|held| is_expired(timers, held, timing, milliseconds_since_1970()))
    }

    /// Notes why the newest version of a zone is refused, or that it is not.
    pub(super) fn note(&self, zone: &Zone, refused: Option<&VersionError>) {
        let mut facts = lock(&zone.runtime);
        if facts.is_removed {
            return;
        }
        facts.error = refused.map(ToString::to_string);
        let has_failed = refused.is_some() && facts.served.is_none();
        if std::mem::replace(&mut facts.has_failed, has_failed) != has_failed {
            self.show(zone, &facts);
        }
        let is_served = facts.served.is_some();
        drop(facts);
        if let Some(error) = refused {
            let name = zone.apex.to_string();
            let rest = if is_served { "the version of before stays" } else { "it is not served" };
            tracing::error!(zone = name, "zone {name}: refused, {rest}: {error}");
        }
    }
}

/// Checks the records of a zone that has its file here. Those of a transferred zone are the matter of its primary.
fn check_semantics(contents: &Contents, settings: &ZoneSettings) -> Option<Findings> {
    settings.source.path().map(|_| semantics::check(contents, SEMANTIC_KIND))
}

fn open_journal(path: &Path, apex: &Name, most: u64) -> Option<Journal> {
    let zone = apex.to_string();
    let opened = Journal::open(path, apex, most).map(|(journal, _)| journal);
    let opened = opened.or_else(|error| {
        tracing::warn!(zone, "{}: {error}; a new one takes its place", path.display());
        Journal::replace(path, apex, most)
    });
    opened.map_err(|error| tracing::warn!(zone, "zone {zone}: no incremental transfers: {error}")).ok()
}

/// Whether steps lead from one serial to another, each from where the one in front of it ends.
fn leads(steps: &[ChangeSet], from: u32, to: u32) -> bool {
    let serial = |contents: &Contents| contents.soa().map(|soa| soa.serial);
    let end = steps.iter().try_fold(from, |at, step| {
        let next = serial(step.added()).filter(|next| serial::is_before(at, *next));
        next.filter(|_| serial(step.removed()) == Some(at))
    });
    !steps.is_empty() && end == Some(to)
}
