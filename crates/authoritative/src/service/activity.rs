//! Activities that may take long: loading, verifying, publishing. The status shows their progress,
//! and the log their duration.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Duration in seconds from which the end of an activity is logged with level info instead of
/// debug.
const SLOW: f64 = 1.0;

/// Kind of an activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ActivityKind {
    /// Loading a zone at startup or for a reload.
    Load,
    /// Reloading the configuration and all zones.
    Reload,
    /// Publishing a zone that was transferred or generated.
    Publish,
}

impl fmt::Display for ActivityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Load => "load",
            Self::Reload => "reload",
            Self::Publish => "publish",
        })
    }
}

/// All activities in progress.
#[derive(Clone, Debug, Default)]
pub struct Activities {
    going: Arc<Mutex<Vec<Arc<ActivityState>>>>,
}

#[derive(Debug)]
struct ActivityState {
    kind: ActivityKind,
    zone: Option<String>,
    begun: Instant,
    phase: Mutex<&'static str>,
    done: AtomicU64,
    total: AtomicU64,
}

/// An activity. It ends when this is dropped.
#[derive(Debug)]
pub struct Activity {
    shared: Arc<ActivityState>,
    all: Activities,
}

/// Progress of an activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityStatus {
    /// Kind of the activity.
    pub kind: ActivityKind,
    /// The zone, if the activity concerns one zone.
    pub zone: Option<String>,
    /// The current phase.
    pub phase: Cow<'static, str>,
    /// Number of completed steps of this phase.
    pub done: u64,
    /// Total number of steps of this phase; 0 if it is not known.
    pub total: u64,
    /// Duration so far, in seconds.
    pub seconds: f64,
}

impl Activities {
    /// Begins an activity, which is listed until the returned value is dropped. `zone` is its zone,
    /// if it has only one.
    #[must_use]
    pub fn begin(&self, kind: ActivityKind, zone: Option<String>) -> Activity {
        let (done, total) = Default::default();
        let shared = Arc::new(ActivityState {
            kind,
            zone,
            begun: Instant::now(),
            phase: Mutex::new("begin"),
            done,
            total,
        });
        lock(&self.going).push(Arc::clone(&shared));
        Activity { shared, all: self.clone() }
    }

    /// Returns the activities in progress, the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<ActivityStatus> {
        lock(&self.going).iter().map(|shared| shared.status()).collect()
    }
}

impl ActivityState {
    fn status(&self) -> ActivityStatus {
        ActivityStatus {
            kind: self.kind,
            zone: self.zone.clone(),
            phase: Cow::Borrowed(*lock(&self.phase)),
            done: self.done.load(Relaxed),
            total: self.total.load(Relaxed),
            seconds: self.begun.elapsed().as_secs_f64(),
        }
    }
}

impl Activity {
    /// Begins the phase with this name, without progress.
    pub fn phase(&self, phase: &'static str) {
        self.progress(0, 0);
        *lock(&self.shared.phase) = phase;
    }

    /// Sets the progress of the phase: `done` of `total` steps.
    pub fn progress(&self, done: u64, total: u64) {
        self.shared.done.store(done, Relaxed);
        self.shared.total.store(total, Relaxed);
    }

    /// Returns the duration so far, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.shared.begun.elapsed().as_secs_f64()
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        lock(&self.all.going).retain(|other| !Arc::ptr_eq(other, &self.shared));
        let (seconds, zone, kind) = (self.seconds(), self.shared.zone.as_deref(), self.shared.kind);
        let of = zone.map_or_else(|| kind.to_string(), |zone| format!("zone {zone}: {kind}"));
        if seconds >= SLOW {
            tracing::info!(name: "work-finished", zone, seconds, "{of} took {seconds:.1} s");
        } else {
            tracing::debug!(name: "work-finished", zone, seconds, "{of} took {seconds:.3} s");
        }
    }
}

/// Locks a mutex, also after a panic of another thread. The protected data is consistent at any
/// time.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_listed_until_it_ends() {
        let all = Activities::default();
        let first = all.begin(ActivityKind::Load, Some("example.".to_owned()));
        let second = all.begin(ActivityKind::Reload, None);
        first.phase("verify");
        first.progress(3, 10);
        let list = all.list();
        assert_eq!((&*list[0].phase, list[0].done, list[0].total), ("verify", 3, 10));
        assert_eq!((list[1].kind, &*list[1].phase), (ActivityKind::Reload, "begin"));
        drop(first);
        assert_eq!(all.list().len(), 1);
        drop(second);
        assert!(all.list().is_empty());
    }
}
