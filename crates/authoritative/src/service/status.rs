//! What is told of a service and its zones, for people and programs.

use super::Service;
use super::activity::{ActivityStatus, lock};
use nonesuch_proto::Name;
use serde::{Deserialize, Serialize};

/// How a zone stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ServingState {
    /// It is answered from.
    Serving,
    /// It is being loaded, or waits for its first transfer.
    NotReady,
    /// No primary was reached within its time to expire.
    Expired,
    /// It could not be loaded, and no version of before is there.
    Failed,
}

impl ServingState {
    /// The standing in one word.
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

/// What is told of one zone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ZoneStatus {
    /// Its name.
    pub zone: String,
    /// How it stands.
    pub state: ServingState,
    /// The serial of what is served.
    pub serial: Option<u32>,
    /// How it is served: unsigned, signed with which denial, signed when asked.
    pub served: Option<String>,
    /// Where it comes from.
    pub source: String,
    /// Records, where they are known: an image that is mapped is not read as a whole.
    pub records: Option<u64>,
    /// Signatures of what is served.
    pub signatures: u64,
    /// What was verified of it.
    pub verified: Option<String>,
    /// When a time in the files of its keys passes next, in seconds since 1970.
    pub next_key_event: Option<u32>,
    /// When the first of its signatures expires, in seconds since 1970 modulo 2^32.
    pub nearest_expiration: Option<u32>,
    /// Whether that is soon.
    pub expires_soon: bool,
    /// When it was published, in seconds since 1970.
    pub loaded_at: Option<u64>,
    /// Octets of its image.
    pub image_octets: usize,
    /// The catalog that it is a member of.
    pub catalog: Option<String>,
    /// The template that it is served by as a member.
    pub template: Option<String>,
    /// Why the newest version is not served, or of a catalog why it cannot be used.
    pub error: Option<String>,
    /// Why the version that is served, which came from a primary, is not stored in the state folder.
    pub storage_error: Option<String>,
    /// What is odd about the version that is served, by itself or beside the one before.
    pub warnings: Vec<String>,
    /// Number of findings of the semantic checks in the version that is served; `None` where its records were not checked: those of a
    /// compiled zone and of a zone from primaries.
    pub findings: Option<usize>,
}

/// What is told of a service.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// Zones that are served.
    pub serving: usize,
    /// Zones that wait to be loaded or transferred.
    pub not_ready: usize,
    /// Zones that have expired.
    pub expired: usize,
    /// Zones that could not be loaded.
    pub failed: usize,
    /// Zones whose newest version was refused or could not be stored, which have expired or whose signatures expire soon, and catalogs that are broken.
    pub troubled: Vec<String>,
    /// What goes on.
    pub activities: Vec<ActivityStatus>,
    /// How the last reload went.
    pub last_reload: Option<ReloadReport>,
}

/// How a reload went.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReloadReport {
    /// When it ended, in seconds since 1970.
    pub at: u64,
    /// How long it took.
    pub seconds: f64,
    /// Zones that were added.
    pub added: Vec<String>,
    /// Zones that were taken away.
    pub removed: Vec<String>,
    /// Zones that were loaded and published anew.
    pub updated: Vec<String>,
    /// Zones whose newest version was refused, and why.
    pub refused: Vec<(String, String)>,
    /// Zones that were published, and what is odd about the version.
    pub warnings: Vec<(String, String)>,
    /// Zones that were not touched.
    pub unchanged: usize,
}

impl Service {
    /// What is told of the service.
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

    /// What is told of one zone, or of all.
    #[must_use]
    pub fn zone_status(&self, apex: Option<&Name>) -> Vec<ZoneStatus> {
        let now = self.now();
        match apex {
            Some(apex) => self.zone(apex).iter().map(|zone| zone.status(now)).collect(),
            None => self.all().iter().map(|zone| zone.status(now)).collect(),
        }
    }

    /// Warns in the log of signatures that expire soon or have expired, zone by zone. Returns the seconds after which there may be
    /// more to say; `None` where no zone has signatures.
    pub fn warn_of_expiry(&self) -> Option<u32> {
        let now = self.now();
        self.all().iter().filter_map(|zone| zone.warn_of_expiry(now)).min()
    }

    /// Whether answers of a zone that is served are signed or proven when asked.
    #[must_use]
    pub fn is_online(&self) -> bool {
        self.all().iter().any(|zone| zone.is_online())
    }
}
