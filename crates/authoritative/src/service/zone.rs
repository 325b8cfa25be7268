//! A zone of a service: its settings and its runtime state.

use super::VersionError;
use super::activity::lock;
use super::build::BuildMetadata;
use super::membership::CatalogMembership;
use super::settings::{ZoneSettings, ZoneSource};
use super::state::Fingerprint;
use super::status::{ServingState, ZoneStatus};
use super::zone_lock::ZoneLock;
use crate::zones::{ServedZone, ZonePolicy};
use nonesuch_dnssec::inspect::{Expiry, ExpiryWatch};
use nonesuch_proto::Name;
use nonesuch_zone::{Contents, Journal};
use std::sync::{Arc, Mutex};

/// A zone of a service.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) apex: Name,
    /// Whether the zone is a member of a catalog, and not configured.
    is_member: bool,
    publication_lock: Arc<ZoneLock>,
    settings: Mutex<Arc<ZoneSettings>>,
    pub(super) runtime: Mutex<ZoneRuntime>,
}

/// Runtime state of a zone. The thread that changes it under its lock also makes it visible to
/// workers ([`Service::publish_state`](super::Service::publish_state)).
#[derive(Debug, Default)]
pub(super) struct ZoneRuntime {
    /// Whether the zone was removed. It must not be served again, even if a publication is in
    /// progress.
    pub(super) is_removed: bool,
    /// The last published version. Workers do not answer from it while the zone is expired.
    pub(super) served: Option<Arc<ServedZone>>,
    /// Whether no primary confirmed the zone within its expire time.
    pub(super) is_expired: bool,
    /// Whether the newest version was rejected, and no previous version exists.
    pub(super) has_failed: bool,
    /// Why the newest version was rejected.
    pub(super) error: Option<String>,
    /// Why the zone cannot be used as a catalog.
    pub(super) catalog_fault: Option<String>,
    /// The catalog of a member.
    pub(super) member_of: Option<CatalogMembership>,
    /// Why the served version is not stored, if it should be stored.
    pub(super) unstored: Option<UnstoredVersion>,
    /// Warnings about the served version and its differences from the previous one.
    pub(super) warnings: Vec<String>,
    /// Number of findings of the semantic checks; `None` if the records were not checked.
    pub(super) findings: Option<usize>,
    /// Description of the denial mechanism of the served version, for messages.
    pub(super) description: String,
    /// Description of the verification of the served version, for messages.
    pub(super) verified: String,
    /// Number of records of the served version, if it is known.
    pub(super) records: Option<u64>,
    /// Time of publication, in seconds since 1970.
    pub(super) loaded_at: u64,
    /// Fingerprints of the files that the version was read from.
    pub(super) origin: Vec<Fingerprint>,
    /// The records of the served version, if they are in memory.
    pub(super) contents: Option<Arc<Contents>>,
    /// Time at which all signatures were verified, in seconds since 1970 modulo 2^32; `None` if
    /// they were not verified.
    pub(super) verified_at: Option<u32>,
    /// The journal, if the zone is transferred and its journal can be used.
    pub(super) journal: Option<Arc<Journal>>,
    /// Digest of the keys that sign the served version online
    /// ([`signers_digest`](super::image_inputs::signers_digest)).
    pub(super) key_digest: Option<String>,
    /// Time of the next change in the timing metadata of the key files, or of the next attempt to
    /// read the keys after a failure, in seconds since 1970.
    pub(super) key_event: Option<u32>,
    /// Decides when to log a warning about the expiration of signatures.
    pub(super) expiry: ExpiryWatch,
}

/// A version that is served only from memory, because it could not be stored.
#[derive(Debug)]
pub(super) struct UnstoredVersion {
    /// Why it could not be stored.
    pub(super) error: VersionError,
    /// The metadata to store with it.
    pub(super) metadata: BuildMetadata,
}

/// Result of loading a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadOutcome {
    /// A version was published.
    Published,
    /// The served version is still current.
    Unchanged,
    /// No version is served, because the zone has no file to load; it is transferred or generated.
    Waiting,
}

impl Zone {
    /// Creates a configured zone.
    pub(super) fn new(settings: ZoneSettings, publication_lock: Arc<ZoneLock>) -> Self {
        let (apex, runtime) = (settings.apex.clone(), Mutex::default());
        Self { apex, is_member: false, publication_lock, settings: Mutex::new(Arc::new(settings)), runtime }
    }

    /// Creates a member of a catalog.
    pub(super) fn member(settings: ZoneSettings, publication_lock: Arc<ZoneLock>) -> Self {
        Self { is_member: true, ..Self::new(settings, publication_lock) }
    }

    pub(super) const fn apex(&self) -> &Name {
        &self.apex
    }

    pub(super) const fn is_member(&self) -> bool {
        self.is_member
    }

    pub(super) const fn publication_lock(&self) -> &Arc<ZoneLock> {
        &self.publication_lock
    }

    pub(super) fn settings(&self) -> Arc<ZoneSettings> {
        Arc::clone(&lock(&self.settings))
    }

    /// Replaces the settings. Returns whether they differ from the previous ones.
    pub(super) fn set_settings(&self, settings: ZoneSettings) -> bool {
        let mut current = lock(&self.settings);
        let differs = **current != settings;
        if differs {
            *current = Arc::new(settings);
        }
        differs
    }

    pub(super) fn policy(&self) -> Arc<ZonePolicy> {
        Arc::new(self.settings().policy())
    }

    pub(super) fn contents(&self) -> Option<Arc<Contents>> {
        lock(&self.runtime).contents.clone()
    }

    pub(super) fn serving_state(&self) -> ServingState {
        lock(&self.runtime).serving_state()
    }

    /// Drops the runtime state of the removed zone, including its open files.
    pub(super) fn clear_runtime(&self) {
        *lock(&self.runtime) = ZoneRuntime { is_removed: true, ..ZoneRuntime::default() };
    }

    /// Logs a warning if signatures expire soon or have expired. Returns the seconds after which
    /// the caller should call it again; `None` if the zone is not served or has no signatures.
    pub(super) fn warn_of_expiry(&self, now: u32) -> Option<u32> {
        let mut runtime = lock(&self.runtime);
        let period = runtime.served.as_ref()?.published().image().period()?;
        let warning = runtime.expiry.due_warning(period, now);
        drop(runtime);
        if let Some(expiry) = warning {
            let (name, expired) = (self.apex.to_string(), matches!(expiry, Expiry::Expired { .. }));
            tracing::warn!(name: "signatures-expire", zone = name, expired, "zone {name}: {expiry}");
        }
        Some(Expiry::of(period, now).seconds_to_next_check())
    }

    /// Returns whether responses need online signatures or proofs.
    pub(super) fn needs_online_work(&self) -> bool {
        lock(&self.runtime).served.as_ref().is_some_and(|served| served.published().needs_online_work())
    }

    pub(super) fn status(&self, now: u32) -> ZoneStatus {
        let settings = self.settings();
        let runtime = lock(&self.runtime);
        let image = runtime.served.as_ref().map(|served| served.published().image());
        let period = image.and_then(|image| image.period());
        let expires_soon = period.is_some_and(|period| !Expiry::of(period, now).is_far());
        ZoneStatus {
            zone: self.apex.to_string(),
            state: runtime.serving_state(),
            serial: image.map(|image| image.serial()),
            served: image.map(|_| runtime.description.clone()),
            source: describe_source(&settings),
            records: runtime.records,
            signatures: image.map_or(0, |image| image.signatures()),
            verified: image.map(|_| runtime.verified.clone()),
            next_key_event: runtime.key_event,
            nearest_expiration: period.map(|period| period.expiration),
            expires_soon,
            loaded_at: image.map(|_| runtime.loaded_at),
            image_octets: image.map_or(0, |image| image.octets()),
            catalog: runtime.member_of.as_ref().map(|member_of| member_of.catalog.to_string()),
            template: runtime.member_of.as_ref().map(|member_of| member_of.template.clone()),
            error: runtime.error.clone().or_else(|| runtime.catalog_fault.clone()),
            storage_error: runtime.unstored.as_ref().map(|unstored| unstored.error.to_string()),
            warnings: runtime.warnings.clone(),
            findings: runtime.findings,
        }
    }
}

impl ZoneRuntime {
    const fn serving_state(&self) -> ServingState {
        if self.is_expired {
            ServingState::Expired
        } else if self.served.is_some() {
            ServingState::Serving
        } else if self.has_failed {
            ServingState::Failed
        } else {
            ServingState::NotReady
        }
    }
}

/// Returns the source of a zone for its status.
fn describe_source(settings: &ZoneSettings) -> String {
    match &settings.source {
        ZoneSource::File(path) | ZoneSource::Stream(path) => path.display().to_string(),
        ZoneSource::Primaries => {
            let primaries: Vec<String> =
                settings.transfers.primaries.iter().map(|remote| remote.address.to_string()).collect();
            format!("from {}", primaries.join(", "))
        }
        ZoneSource::Producer => "catalog of this server".to_owned(),
    }
}
