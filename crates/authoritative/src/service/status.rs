//! What is told of a service and its zones, for people and programs.

use super::activity::ActivityStatus;
use serde::Serialize;

/// How a zone stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ZoneStanding {
    /// It is answered from.
    Serving,
    /// It is being loaded, or waits for its first transfer.
    NotReady,
    /// No primary was reached within its time to expire.
    Expired,
    /// It could not be loaded, and no version of before is there.
    Failed,
}

impl ZoneStanding {
    /// The standing in one word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::NotReady => "not-ready",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }
}

/// What is told of one zone.
#[derive(Clone, Debug, Serialize)]
pub struct ZoneStatus {
    /// Its name.
    pub zone: String,
    /// How it stands.
    pub state: ZoneStanding,
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
    /// When the first of its signatures expires, in seconds since 1970 modulo 2^32.
    pub nearest_expiration: Option<u32>,
    /// Whether that is soon.
    pub expires_soon: bool,
    /// When it was published, in seconds since 1970.
    pub loaded_at: Option<u64>,
    /// Octets of its image.
    pub image_octets: usize,
    /// Why the newest version is not served.
    pub error: Option<String>,
    /// What is odd about the version that is served, beside the one before.
    pub warnings: Vec<String>,
}

/// What is told of a service.
#[derive(Clone, Debug, Serialize)]
pub struct ServiceStatus {
    /// Zones that are served.
    pub serving: usize,
    /// Zones that wait to be loaded or transferred.
    pub not_ready: usize,
    /// Zones that have expired.
    pub expired: usize,
    /// Zones that could not be loaded.
    pub failed: usize,
    /// Zones whose newest version was refused, or whose signatures expire soon.
    pub troubled: Vec<String>,
    /// What goes on.
    pub activities: Vec<ActivityStatus>,
    /// How the last reload went.
    pub last_reload: Option<ReloadReport>,
}

/// How a reload went.
#[derive(Clone, Debug, Default, Serialize)]
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
