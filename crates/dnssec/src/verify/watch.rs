//! How far verifying has come, for those who wait.

use nonesuch_zone::Contents;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far verifying has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Names whose signatures are verified.
    pub names: u64,
    /// Names that the zone has.
    pub total_names: u64,
    /// Signatures that are good.
    pub signatures: u64,
}

/// What follows how far verifying has come, from any thread.
pub type ProgressFn<'p> = &'p (dyn Fn(VerifyProgress) + Sync);

pub(super) struct Watch<'w> {
    progress: Option<ProgressFn<'w>>,
    total_names: u64,
    names: AtomicU64,
    signatures: AtomicU64,
}

impl<'w> Watch<'w> {
    pub(super) fn new(contents: &Contents, progress: Option<ProgressFn<'w>>) -> Self {
        let total_names = contents.node_count() as u64;
        Self { progress, total_names, names: AtomicU64::new(0), signatures: AtomicU64::new(0) }
    }

    /// So many names more are done, with so many good signatures.
    pub(super) fn tell(&self, names: usize, signatures: u64) {
        let Some(progress) = self.progress else { return };
        let add = |to: &AtomicU64, more: u64| to.fetch_add(more, Ordering::Relaxed) + more;
        let (names, signatures) = (add(&self.names, names as u64), add(&self.signatures, signatures));
        progress(VerifyProgress { names, total_names: self.total_names, signatures });
    }
}
