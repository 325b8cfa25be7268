//! What the SOA record of a zone asks for, and the bounds that it is kept within.

use super::stored::Timers;
use nonesuch_proto::Rtype;
use nonesuch_zone::Contents;

/// Bounds of a time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeBounds {
    /// At least so many.
    pub min: u32,
    /// At most so many; not less than `least`.
    pub max: u32,
}

impl TimeBounds {
    pub(super) fn milliseconds(self, seconds: u32) -> u64 {
        u64::from(seconds.min(self.max).max(self.min)) * 1000
    }
}

/// Bounds of what SOA records ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From a successful round to the next.
    pub refresh: TimeBounds,
    /// From a failed round to the next.
    pub retry: TimeBounds,
    /// From the last successful round to the zone's expiry.
    pub expire: TimeBounds,
}

impl Default for Timing {
    /// Refresh: 1 minute to 4 weeks; retry: 10 seconds to 2 weeks; expire: 10 minutes and more.
    fn default() -> Self {
        Self {
            refresh: TimeBounds { min: 60, max: 2_419_200 },
            retry: TimeBounds { min: 10, max: 1_209_600 },
            expire: TimeBounds { min: 600, max: u32::MAX },
        }
    }
}

/// When a primary last had the version that is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastRefresh {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// Milliseconds that were left to the zone then, where the primary, which has it of another, said that they are less than the
    /// EXPIRE of the SOA record (RFC 7314 §4).
    pub left: Option<u64>,
}

impl LastRefresh {
    /// What stored timers say, in milliseconds of a clock that the system's clock is ahead of by `ahead` milliseconds.
    pub(super) fn of(timers: Timers, ahead: i64) -> Self {
        Self {
            at: timers.refreshed.saturating_mul(1000).saturating_add_signed(-ahead),
            left: timers.left.map(|seconds| u64::from(seconds) * 1000),
        }
    }

    /// When a zone expires that was refreshed so, in milliseconds since 1970. `limit` is the milliseconds from a success to the
    /// expiry that SOA record and settings set.
    pub(super) fn expires_at(self, limit: u64) -> u64 {
        self.at.saturating_add(self.left.map_or(limit, |left| left.min(limit)))
    }
}

/// Whether a stored version has expired at `now`, in milliseconds since 1970, as the stored timers say
/// (RFC 1035 §3.3.13, EXPIRE; RFC 7314 §4). Timers of another version do not count.
#[must_use]
pub fn is_expired(timers: Option<Timers>, held: LocalSoa, timing: Timing, now: u64) -> bool {
    let Some(timers) = timers.filter(|timers| timers.serial == held.serial) else {
        return false;
    };
    let refreshed = LastRefresh::of(timers, 0);
    // A time to come is the word of a clock that was wrong, as in `Machine::new`.
    let refreshed = LastRefresh { at: refreshed.at.min(now), ..refreshed };
    refreshed.expires_at(timing.expire.milliseconds(held.expire)) <= now
}

/// What the SOA record of the version that is here says, times in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSoa {
    /// Serial.
    pub serial: u32,
    /// REFRESH.
    pub refresh: u32,
    /// RETRY.
    pub retry: u32,
    /// EXPIRE.
    pub expire: u32,
}

impl LocalSoa {
    /// Of a zone.
    #[must_use]
    pub fn of(contents: &Contents) -> Option<Self> {
        let rdata = contents.apex_rrset(Rtype::SOA)?.rdatas().next()?;
        Self::from_rdata(rdata)
    }

    /// Of the RDATA of an SOA record, names uncompressed.
    #[must_use]
    pub fn from_rdata(rdata: &[u8]) -> Option<Self> {
        let numbers: &[u8; 20] = rdata.get(rdata.len().checked_sub(20)?..)?.try_into().ok()?;
        let word =
            |at: usize| u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
        Some(Self { serial: word(0), refresh: word(4), retry: word(8), expire: word(12) })
    }
}
