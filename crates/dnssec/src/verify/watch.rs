//! Progress of a verification.

use nonesuch_zone::Contents;
use std::sync::atomic::{AtomicU64, Ordering};

/// Progress of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Number of names whose signatures are verified.
    pub names: u64,
    /// Number of names in the zone.
    pub total_names: u64,
    /// Number of valid signatures, both verified and reused.
    pub signatures: u64,
}

/// Callback for the progress of a verification. Several threads may call it.
pub type ProgressFn<'p> = &'p (dyn Fn(VerifyProgress) + Sync);

/// Counts verified names and valid signatures of all threads.
pub(super) struct ProgressCounter<'w> {
    progress: Option<ProgressFn<'w>>,
    total_names: u64,
    names: AtomicU64,
    signatures: AtomicU64,
}

impl<'w> ProgressCounter<'w> {
    pub(super) fn new(contents: &Contents, progress: Option<ProgressFn<'w>>) -> Self {
        let total_names = contents.node_count() as u64;
        Self { progress, total_names, names: AtomicU64::new(0), signatures: AtomicU64::new(0) }
    }

    /// Adds `names` and `signatures` to the counts, and calls the callback with the new counts.
    pub(super) fn report(&self, names: usize, signatures: u64) {
        let Some(progress) = self.progress else { return };
        let add = |sum: &AtomicU64, more: u64| sum.fetch_add(more, Ordering::Relaxed) + more;
        let (names, signatures) = (add(&self.names, names as u64), add(&self.signatures, signatures));
        progress(VerifyProgress { names, total_names: self.total_names, signatures });
    }
}
