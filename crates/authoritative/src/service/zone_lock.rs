//! The lock that a thread holds while it publishes a version of a zone.
//!
//! A zone can be removed while a thread verifies a version of it, which may take long. The removal
//! does not wait. The files that the thread still writes are deleted when it ends, or before a zone
//! with the same name is loaded.

use super::Service;
use super::activity::lock;
use super::zone::Zone;
use nonesuch_proto::Name;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

/// Held while a version of a zone is published. A new zone shares it with a removed zone of the
/// same name that has a publication in progress.
#[derive(Debug, Default)]
pub(super) struct ZoneLock {
    publication: Mutex<()>,
    /// Whether the stored versions must be deleted before the next publication.
    must_delete_versions: AtomicBool,
}

/// Holds the lock of a zone until it is dropped.
#[derive(Debug)]
pub(super) struct ZoneLockGuard<'z> {
    service: &'z Service,
    zone: &'z Zone,
    publication: Option<MutexGuard<'z, ()>>,
}

impl Drop for ZoneLockGuard<'_> {
    fn drop(&mut self) {
        drop(self.publication.take());
        self.service.clean_up(self.zone.apex(), self.zone.publication_lock());
    }
}

impl Service {
    /// Waits until no other thread publishes a version of the zone, and locks it.
    pub(super) fn lock_zone<'z>(&'z self, zone: &'z Zone) -> ZoneLockGuard<'z> {
        let publication = lock(&zone.publication_lock().publication);
        self.delete_versions(zone.apex(), zone.publication_lock());
        ZoneLockGuard { service: self, zone, publication: Some(publication) }
    }

    /// Returns the lock for a new zone with this name: that of a removed zone with a publication in
    /// progress, otherwise a new one.
    pub(super) fn zone_lock(&self, apex: &Name) -> Arc<ZoneLock> {
        lock(&self.removed_zone_locks).get(apex).cloned().unwrap_or_default()
    }

    /// Marks a zone as removed, and cleans up unless a publication is in progress, for which it
    /// does not wait. With `keeps_files`, the stored files of the zone remain.
    pub(super) fn mark_removed(&self, apex: &Name, publication_lock: &Arc<ZoneLock>, keeps_files: bool) {
        publication_lock.must_delete_versions.fetch_or(!keeps_files, SeqCst);
        lock(&self.removed_zone_locks).insert(apex.clone(), Arc::clone(publication_lock));
        self.clean_up(apex, publication_lock);
    }

    /// Deletes all stored files of a zone that does not exist. Returns whether any existed.
    pub(super) fn delete_stored(&self, apex: &Name) -> bool {
        let Some(state) = &self.state_directory else { return false };
        let is_deleted = state.remove(apex);
        let publication_lock = lock(&self.removed_zone_locks).get(apex).cloned();
        if let Some(publication_lock) = &publication_lock {
            self.mark_removed(apex, publication_lock, false);
        }
        is_deleted || publication_lock.is_some()
    }

    /// Cleans up after a removed zone. During a publication it does nothing, because the
    /// publication calls it when it ends.
    fn clean_up(&self, apex: &Name, publication_lock: &Arc<ZoneLock>) {
        // Checked again after each release: a removal in the meantime could not take the lock, and
        // relies on this thread.
        while self.needs_clean_up(apex, publication_lock) {
            let _publication = match publication_lock.publication.try_lock() {
                Ok(publication) => publication,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let mut locks = lock(&self.removed_zone_locks);
            if locks.get(apex).is_some_and(|found| Arc::ptr_eq(found, publication_lock)) {
                locks.remove(apex);
            }
            drop(locks);
            self.delete_versions(apex, publication_lock);
        }
    }

    /// Returns whether the zone was removed and its clean-up is not finished.
    fn needs_clean_up(&self, apex: &Name, publication_lock: &Arc<ZoneLock>) -> bool {
        publication_lock.must_delete_versions.load(SeqCst)
            || lock(&self.removed_zone_locks)
                .get(apex)
                .is_some_and(|found| Arc::ptr_eq(found, publication_lock))
    }

    /// Deletes the stored versions of the zone, if its removal requires that.
    fn delete_versions(&self, apex: &Name, publication_lock: &ZoneLock) {
        if publication_lock.must_delete_versions.swap(false, SeqCst)
            && let Some(state) = &self.state_directory
        {
            state.remove_versions(apex);
        }
    }
}
