//! What is going on that takes its time: loading, verifying, transfers. Shown with its progress while it goes on, and
//! logged with its duration when it ends.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Seconds from which the end of an activity is logged as of interest to whoever runs the server.
const SLOW: f64 = 1.0;

/// What goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ActivityKind {
    /// A zone is loaded at the start or for a reload.
    Load,
    /// The configuration and all zones are reloaded.
    Reload,
    /// A zone that was transferred or made is published.
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

/// All that goes on.
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

/// One thing that goes on; it ends when dropped.
#[derive(Debug)]
pub struct Activity {
    shared: Arc<ActivityState>,
    all: Activities,
}

/// How far an activity has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActivityStatus {
    /// What goes on.
    pub kind: ActivityKind,
    /// The zone that it is about.
    pub zone: Option<String>,
    /// What is done at the moment.
    pub phase: Cow<'static, str>,
    /// Steps of this phase that are done.
    pub done: u64,
    /// Steps of this phase; 0 where that is not known.
    pub total: u64,
    /// Since when it goes on.
    pub seconds: f64,
}

impl Activities {
    /// Begins an activity.
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

    /// What goes on, the oldest first.
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
    /// Begins a phase.
    pub fn phase(&self, phase: &'static str) {
        self.progress(0, 0);
        *lock(&self.shared.phase) = phase;
    }

    /// So many steps of the phase are done.
    pub fn progress(&self, done: u64, total: u64) {
        self.shared.done.store(done, Relaxed);
        self.shared.total.store(total, Relaxed);
    }

    /// Seconds since it began.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.shared.begun.elapsed().as_secs_f64()
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        lock(&self.all.going).retain(|other| !Arc::ptr_eq(other, &self.shared));
        let (seconds, zone, kind) = (self.seconds(), self.shared.zone.as_deref(), self.shared.kind);
        let of = zone.map_or_else(|| kind.to_string(), |zone| format!("{kind} of {zone}"));
        if seconds >= SLOW {
            tracing::info!(zone, seconds, "{of} took {seconds:.1} s");
        } else {
            tracing::debug!(zone, seconds, "{of} took {seconds:.3} s");
        }
    }
}

/// A lock that a panic of another thread does not keep: what it guards is whole at any time.
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
