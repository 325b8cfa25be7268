//! For tests: records the contents of the memory that an operation frees. It must not contain
//! secrets.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;

/// Maximum number of bytes that one operation may free: the capacity of the log.
const CAPACITY: usize = 64 << 20;

/// The system's allocator. It copies freed memory while [`memory_freed_by`] runs in the thread.
struct RecordingAllocator;

#[global_allocator]
static ALLOCATOR: RecordingAllocator = RecordingAllocator;

/// The log of freed memory.
struct FreedMemory {
    /// Has its full capacity from the start, so that writing to it does not allocate.
    octets: Vec<u8>,
    is_full: bool,
}

thread_local! {
    static LOG: Cell<*mut FreedMemory> = const { Cell::new(ptr::null_mut()) };
}

/// Detaches the log on drop, also after a panic.
struct DetachOnDrop;

impl Drop for DetachOnDrop {
    fn drop(&mut self) {
        LOG.set(ptr::null_mut());
    }
}

// SAFETY: all memory comes from the system's allocator, with the requested layout. Reallocation is
// the default of the trait: it allocates a new block and frees the old one.
unsafe impl GlobalAlloc for RecordingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`. The memory is zeroed, so that every
        // byte may be read later.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let log = LOG.get();
        if !log.is_null() {
            // SAFETY: the log lives while it is attached, and only this thread accesses it. The
            // caller owns the block, which has this size and was initialised when it was allocated.
            let (log, octets) = unsafe { (&mut *log, std::slice::from_raw_parts(block, layout.size())) };
            if octets.len() <= log.octets.capacity() - log.octets.len() {
                log.octets.extend_from_slice(octets);
            } else {
                log.is_full = true;
            }
        }
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns all memory that `work` frees in this thread, block after block. The result of `work` is
/// dropped and included.
pub(crate) fn memory_freed_by<T>(work: impl FnOnce() -> T) -> Vec<u8> {
    let mut log = FreedMemory { octets: Vec::with_capacity(CAPACITY), is_full: false };
    {
        let _detach = DetachOnDrop;
        LOG.set(&raw mut log);
        drop(work());
    }
    assert!(!log.is_full, "too much to read");
    log.octets
}

/// Returns the bytes of a value in memory. The type must not have padding.
pub(crate) fn octets_of<T: Copy>(value: &T) -> Vec<u8> {
    // SAFETY: pointer and size are those of one value, which has no padding.
    unsafe { std::slice::from_raw_parts(ptr::from_ref(value).cast(), size_of::<T>()) }.to_vec()
}

/// Asserts that freed memory contains none of the secrets, each given with its name.
#[track_caller]
pub(crate) fn assert_wiped(freed: &[u8], secrets: &[(String, Vec<u8>)]) {
    assert!(!freed.is_empty() && !secrets.is_empty(), "there is something to read");
    for (what, secret) in secrets {
        assert!(secret.len() >= 8 && secret.iter().any(|octet| *octet != 0), "{what} is constant");
        let found = freed.windows(secret.len()).any(|window| window == secret.as_slice());
        assert!(!found, "{what} was left in memory that was given back");
    }
}

#[test]
fn unwiped_memory_is_detected() {
    let secret = vec![("a secret".to_owned(), (100..132).collect::<Vec<u8>>())];
    let unwiped = memory_freed_by(|| (100..132).collect::<Vec<u8>>());
    let grown = memory_freed_by(|| {
        let mut secret = zeroize::Zeroizing::new((100..132).collect::<Vec<u8>>());
        secret.reserve(1000);
    });
    for freed in [unwiped, grown] {
        assert!(std::panic::catch_unwind(|| assert_wiped(&freed, &secret)).is_err());
    }
    assert_wiped(&memory_freed_by(|| zeroize::Zeroizing::new((100..132).collect::<Vec<u8>>())), &secret);
}
