//! The times in the SOA record of a zone, and their bounds.

use super::stored::Timers;
use nonesuch_proto::Rtype;
use nonesuch_zone::Contents;

/// Bounds of a time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBounds {
    /// The minimum.
    pub min: u32,
    /// The maximum; not less than `min`.
    pub max: u32,
}

impl TimeBounds {
    pub(super) fn milliseconds(self, seconds: u32) -> u64 {
        u64::from(seconds.min(self.max).max(self.min)) * 1000
    }
}

/// Bounds of the times in SOA records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From a successful round to the next round.
    pub refresh: TimeBounds,
    /// From a failed round to the next round.
    pub retry: TimeBounds,
    /// From the last successful round to the expiry of the zone.
    pub expire: TimeBounds,
}

impl Default for Timing {
    /// Refresh: 1 minute to 4 weeks; retry: 10 seconds to 2 weeks; expire: at least 10 minutes.
    fn default() -> Self {
        Self {
            refresh: TimeBounds { min: 60, max: 2_419_200 },
            retry: TimeBounds { min: 10, max: 1_209_600 },
            expire: TimeBounds { min: 600, max: u32::MAX },
        }
    }
}

/// The last time at which a primary confirmed the local version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRefresh {
    /// Time of the confirmation, in milliseconds since 1970.
    pub at: u64,
    /// Milliseconds until expiry at that time. Set if the primary, which may itself be a secondary,
    /// reports less than the EXPIRE field of the SOA record (RFC 7314 §4).
    pub left: Option<u64>,
}

impl LastRefresh {
    /// Converts stored timers. `clock_offset_ms`: milliseconds by which the system's clock is ahead
    /// of the clock of the result.
    pub(super) fn of(timers: Timers, clock_offset_ms: i64) -> Self {
        Self {
            at: timers.refreshed.saturating_mul(1000).saturating_add_signed(-clock_offset_ms),
            left: timers.left.map(|seconds| u64::from(seconds) * 1000),
        }
    }

    /// Returns the time at which a zone with this refresh expires, in milliseconds since 1970.
    /// `limit`: milliseconds from a success to the expiry, according to the SOA record and the
    /// settings.
    pub(super) fn expires_at(self, limit: u64) -> u64 {
        self.at.saturating_add(self.left.map_or(limit, |left| left.min(limit)))
    }
}

/// Whether a stored version has expired at `now`, in milliseconds since 1970, according to the
/// stored timers (RFC 1035 §3.3.13, EXPIRE; RFC 7314 §4). Timers of another version are ignored.
#[must_use]
pub fn is_expired(timers: Option<Timers>, local_soa: LocalSoa, timing: Timing, now: u64) -> bool {
    let Some(timers) = timers.filter(|timers| timers.serial == local_soa.serial) else {
        return false;
    };
    let refreshed = LastRefresh::of(timers, 0);
    // A time in the future comes from a clock that was wrong, as in `Machine::new`.
    let refreshed = LastRefresh { at: refreshed.at.min(now), ..refreshed };
    refreshed.expires_at(timing.expire.milliseconds(local_soa.expire)) <= now
}

/// Serial and times of the SOA record of the local version; the times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSoa {
    /// The serial of the version.
    pub serial: u32,
    /// REFRESH field.
    pub refresh: u32,
    /// RETRY field.
    pub retry: u32,
    /// EXPIRE field.
    pub expire: u32,
}

impl LocalSoa {
    /// Returns the values of the zone's SOA record; `None` if the zone has no valid SOA record.
    #[must_use]
    pub fn of(contents: &Contents) -> Option<Self> {
        let rdata = contents.apex_rrset(Rtype::SOA)?.rdatas().next()?;
        Self::from_rdata(rdata)
    }

    /// Returns the values of an SOA record's RDATA with uncompressed names.
    #[must_use]
    pub fn from_rdata(rdata: &[u8]) -> Option<Self> {
        let numbers: &[u8; 20] = rdata.get(rdata.len().checked_sub(20)?..)?.try_into().ok()?;
        let number_at =
            |at: usize| u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
        Some(Self { serial: number_at(0), refresh: number_at(4), retry: number_at(8), expire: number_at(12) })
    }
}
