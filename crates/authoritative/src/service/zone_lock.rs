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
    busy: Mutex<()>,
    /// Whether the stored versions must be deleted before the next publication.
    deletes: AtomicBool,
}

/// Holds the lock of a zone until it is dropped.
#[derive(Debug)]
pub(super) struct ZoneLockGuard<'z> {
    service: &'z Service,
    zone: &'z Zone,
    busy: Option<MutexGuard<'z, ()>>,
}

impl Drop for ZoneLockGuard<'_> {
    fn drop(&mut self) {
        drop(self.busy.take());
        self.service.clean_up(self.zone.apex(), self.zone.publication_lock());
    }
}

impl Service {
    /// Waits until no other thread publishes a version of the zone, and locks it.
    pub(super) fn lock_zone<'z>(&'z self, zone: &'z Zone) -> ZoneLockGuard<'z> {
        let busy = lock(&zone.publication_lock().busy);
        self.delete_versions(zone.apex(), zone.publication_lock());
        ZoneLockGuard { service: self, zone, busy: Some(busy) }
    }

    /// Returns the lock for a new zone with this name.
    pub(super) fn zone_lock(&self, apex: &Name) -> Arc<ZoneLock> {
        lock(&self.abandoned).get(apex).cloned().unwrap_or_default()
    }

    /// Marks a zone as removed. Does not wait for its publication. With `is_kept`, its stored files
    /// remain.
    pub(super) fn abandon_zone(&self, apex: &Name, publication_lock: &Arc<ZoneLock>, is_kept: bool) {
        publication_lock.deletes.fetch_or(!is_kept, SeqCst);
        lock(&self.abandoned).insert(apex.clone(), Arc::clone(publication_lock));
        self.clean_up(apex, publication_lock);
    }

    /// Deletes all stored files of a zone that does not exist. Returns whether any existed.
    pub(super) fn delete_stored(&self, apex: &Name) -> bool {
        let Some(state) = &self.state else { return false };
        let is_deleted = state.remove(apex);
        let publication_lock = lock(&self.abandoned).get(apex).cloned();
        if let Some(publication_lock) = &publication_lock {
            self.abandon_zone(apex, publication_lock, false);
        }
        is_deleted || publication_lock.is_some()
    }

    /// Cleans up after a removed zone. During a publication it does nothing, because the
    /// publication calls it when it ends.
    fn clean_up(&self, apex: &Name, publication_lock: &Arc<ZoneLock>) {
        // Checked again after each release: a removal in the meantime could not take the lock, and
        // relies on this thread.
        while self.is_abandoned(apex, publication_lock) {
            let _busy = match publication_lock.busy.try_lock() {
                Ok(busy) => busy,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let mut abandoned = lock(&self.abandoned);
            if abandoned.get(apex).is_some_and(|found| Arc::ptr_eq(found, publication_lock)) {
                abandoned.remove(apex);
            }
            drop(abandoned);
            self.delete_versions(apex, publication_lock);
        }
    }

    fn is_abandoned(&self, apex: &Name, publication_lock: &Arc<ZoneLock>) -> bool {
        publication_lock.deletes.load(SeqCst)
            || lock(&self.abandoned).get(apex).is_some_and(|found| Arc::ptr_eq(found, publication_lock))
    }

    fn delete_versions(&self, apex: &Name, publication_lock: &ZoneLock) {
        if publication_lock.deletes.swap(false, SeqCst)
            && let Some(state) = &self.state
        {
            state.remove_versions(apex);
        }
    }
}
