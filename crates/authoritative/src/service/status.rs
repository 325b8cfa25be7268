//! Status of a service and its zones, for operators and programs.

use super::Service;
use super::activity::{ActivityStatus, lock};
use nonesuch_proto::Name;
use serde::{Deserialize, Serialize};

/// State of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ServingState {
    /// The server answers from it.
    Serving,
    /// It is being loaded, or waits for its first transfer.
    NotReady,
    /// No primary confirmed it within the expire time of its SOA record.
    Expired,
    /// It cannot be loaded, and no previous version exists.
    Failed,
}

impl ServingState {
    /// Returns the name of the state.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::NotReady => "not-ready",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }
}

/// Status of one zone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ZoneStatus {
    /// Name of the zone.
    pub zone: String,
    /// State of the zone.
    pub state: ServingState,
    /// Serial of the served version.
    pub serial: Option<u32>,
    /// Signing mode and denial mechanism of the served version.
    pub served: Option<String>,
    /// Source of the zone.
    pub source: String,
    /// Number of records. `None` if it is not known, because a mapped image is not read completely.
    pub records: Option<u64>,
    /// Number of signatures in the served version.
    pub signatures: u64,
    /// Description of the verification of the served version.
    pub verified: Option<String>,
    /// Time of the next change in the timing metadata of its key files, in seconds since 1970.
    pub next_key_event: Option<u32>,
    /// Time at which the first of its signatures expires, in seconds since 1970 modulo 2^32.
    pub nearest_expiration: Option<u32>,
    /// Whether this expiration is near or has passed.
    pub expires_soon: bool,
    /// Time of publication, in seconds since 1970.
    pub loaded_at: Option<u64>,
    /// Size of the image, in bytes.
    pub image_octets: usize,
    /// The catalog that lists the zone as a member.
    pub catalog: Option<String>,
    /// The template of a member.
    pub template: Option<String>,
    /// Reason why the newest version is not served, or why a catalog cannot be used.
    pub error: Option<String>,
    /// Reason why the served version, which came from a primary, is not stored in the state
    /// directory.
    pub storage_error: Option<String>,
    /// Warnings about the served version and its differences from the previous one.
    pub warnings: Vec<String>,
    /// Number of findings of the semantic checks in the served version. `None` if its records were
    /// not checked: those of a compiled zone and of a zone from primaries.
    pub findings: Option<usize>,
}

/// Status of a service.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Number of zones that are served.
    pub serving: usize,
    /// Number of zones that wait to be loaded or transferred.
    pub not_ready: usize,
    /// Number of expired zones.
    pub expired: usize,
    /// Number of zones that cannot be loaded.
    pub failed: usize,
    /// Zones whose newest version was rejected or could not be stored, expired zones, zones with
    /// signatures that expire soon, and broken catalogs.
    pub troubled: Vec<String>,
    /// Activities in progress.
    pub activities: Vec<ActivityStatus>,
    /// Report of the last reload.
    pub last_reload: Option<ReloadReport>,
}

/// Report of a reload.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReloadReport {
    /// Time at which the reload ended, in seconds since 1970.
    pub at: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Zones that were added.
    pub added: Vec<String>,
    /// Zones that were removed.
    pub removed: Vec<String>,
    /// Zones that were loaded and published again.
    pub updated: Vec<String>,
    /// Zones whose newest version was rejected, with the reason.
    pub refused: Vec<(String, String)>,
    /// Published zones with warnings about their version.
    pub warnings: Vec<(String, String)>,
    /// Number of zones without a change.
    pub unchanged: usize,
}

impl Service {
    /// Returns the status of the service.
    #[must_use]
    pub fn status(&self) -> ServiceStatus {
        let zones = self.zone_status(None);
        let count = |state| zones.iter().filter(|zone| zone.state == state).count();
        let is_troubled = |zone: &&ZoneStatus| {
            zone.error.is_some()
                || zone.storage_error.is_some()
                || zone.expires_soon
                || zone.state == ServingState::Expired
        };
        let troubled = zones.iter().filter(is_troubled);
        ServiceStatus {
            serving: count(ServingState::Serving),
            not_ready: count(ServingState::NotReady),
            expired: count(ServingState::Expired),
            failed: count(ServingState::Failed),
            troubled: troubled.map(|zone| zone.zone.clone()).collect(),
            activities: self.activities.list(),
            last_reload: lock(&self.last_reload).clone(),
        }
    }

    /// Returns the status of one zone, or of all zones.
    #[must_use]
    pub fn zone_status(&self, apex: Option<&Name>) -> Vec<ZoneStatus> {
        let now = self.shifted_now();
        match apex {
            Some(apex) => self.zone(apex).iter().map(|zone| zone.status(now)).collect(),
            None => self.all_zones().iter().map(|zone| zone.status(now)).collect(),
        }
    }

    /// Logs a warning for each zone with signatures that expire soon or have expired. Returns the
    /// seconds after which the caller should call it again; `None` if no zone has signatures.
    pub fn warn_of_expiry(&self) -> Option<u32> {
        let now = self.shifted_now();
        self.all_zones().iter().filter_map(|zone| zone.warn_of_expiry(now)).min()
    }

    /// Returns whether any served zone needs online signatures or proofs.
    #[must_use]
    pub fn needs_online_work(&self) -> bool {
        self.all_zones().iter().any(|zone| zone.needs_online_work())
    }
}
