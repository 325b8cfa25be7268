//! Activities that may take long: loading or publishing a zone, and reloading the configuration.
//! The status of the server shows their progress. The log contains their duration.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Minimum duration, in seconds, of an activity whose end is logged with level info. The end of a
/// shorter activity is logged with level debug.
const SLOW_SECONDS: f64 = 1.0;

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
    in_progress: Arc<Mutex<Vec<Arc<ActivityState>>>>,
}

/// State of an activity, shared by the thread that performs it and by [`Activities`].
#[derive(Debug)]
struct ActivityState {
    kind: ActivityKind,
    zone: Option<String>,
    started_at: Instant,
    phase: Mutex<&'static str>,
    /// Completed and total steps of the phase.
    done: AtomicU64,
    total: AtomicU64,
}

/// An activity in progress. It ends when this value is dropped, which also logs its duration.
#[derive(Debug)]
pub struct Activity {
    state: Arc<ActivityState>,
    activities: Activities,
}

/// Progress of an activity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityStatus {
    /// Kind of the activity.
    pub kind: ActivityKind,
    /// The name of its zone; `None` if the activity concerns all zones.
    pub zone: Option<String>,
    /// The name of the current phase, for example `read` or `verify`.
    pub phase: Cow<'static, str>,
    /// Number of completed steps of this phase.
    pub done: u64,
    /// Total number of steps of this phase; 0 if it is not known.
    pub total: u64,
    /// Duration so far, in seconds.
    pub seconds: f64,
}

impl Activities {
    /// Begins an activity, which is listed until the returned value is dropped. `zone` is the name
    /// of its zone; `None` if the activity concerns all zones.
    #[must_use]
    pub fn begin(&self, kind: ActivityKind, zone: Option<String>) -> Activity {
        let state = Arc::new(ActivityState {
            kind,
            zone,
            started_at: Instant::now(),
            phase: Mutex::new("begin"),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
        });
        lock(&self.in_progress).push(Arc::clone(&state));
        Activity { state, activities: self.clone() }
    }

    /// Returns the activities in progress, the oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<ActivityStatus> {
        lock(&self.in_progress).iter().map(|state| state.status()).collect()
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
            seconds: self.started_at.elapsed().as_secs_f64(),
        }
    }
}

impl Activity {
    /// Begins the phase with this name, and resets the progress.
    pub fn begin_phase(&self, phase: &'static str) {
        self.set_progress(0, 0);
        *lock(&self.state.phase) = phase;
    }

    /// Sets the progress of the phase: `done` of `total` steps.
    pub fn set_progress(&self, done: u64, total: u64) {
        self.state.done.store(done, Relaxed);
        self.state.total.store(total, Relaxed);
    }

    /// Returns the duration so far, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.state.started_at.elapsed().as_secs_f64()
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        lock(&self.activities.in_progress).retain(|other| !Arc::ptr_eq(other, &self.state));
        let (seconds, zone, kind) = (self.seconds(), self.state.zone.as_deref(), self.state.kind);
        let subject = zone.map_or_else(|| kind.to_string(), |zone| format!("zone {zone}: {kind}"));
        if seconds >= SLOW_SECONDS {
            tracing::info!(name: "work-finished", zone, seconds, "{subject} took {seconds:.1} s");
        } else {
            tracing::debug!(name: "work-finished", zone, seconds, "{subject} took {seconds:.3} s");
        }
    }
}

/// Locks a mutex. Ignores that a thread panicked while it held the lock: the data behind every
/// mutex of the service is consistent after each statement.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activities_are_listed_until_they_end() {
        let all = Activities::default();
        let first = all.begin(ActivityKind::Load, Some("example.".to_owned()));
        let second = all.begin(ActivityKind::Reload, None);
        first.begin_phase("verify");
        first.set_progress(3, 10);
        let list = all.list();
        assert_eq!((&*list[0].phase, list[0].done, list[0].total), ("verify", 3, 10));
        assert_eq!((list[1].kind, &*list[1].phase), (ActivityKind::Reload, "begin"));
        drop(first);
        assert_eq!(all.list().len(), 1);
        drop(second);
        assert!(all.list().is_empty());
    }
}
