//! Memory: mapped files, and returning free memory to the system.

use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io;

/// The beginning of a file, mapped for reading.
///
/// A mapped file must be replaced by renaming another file over it, never written in place. The map
/// then keeps the contents of the original file. If another process truncates the file in place,
/// the kernel ends this process with SIGBUS when it reads the missing part. If another process
/// writes to the file, the contents of the map change. So only users who may replace the program
/// may have write permission to the file.
#[derive(Debug)]
pub struct Map(Mmap);

impl Map {
    /// Maps the first `length` octets of a file, and reads them into the page cache.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file is shorter than `length`; otherwise errors of the system.
    #[allow(unsafe_code)]
    pub fn of_file(file: &File, length: usize) -> io::Result<Self> {
        if file.metadata()?.len() < length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the map is read-only and private, and is not longer than the file. The behaviour
        // is undefined if another process changes the mapped octets meanwhile. Mapped files are
        // only replaced by renaming (see above), and users with write permission to them are
        // trusted as if they could write this program.
        unsafe { MmapOptions::new().len(length).populate().map(file) }.map(Self)
    }
}

/// Configures glibc's allocator to keep little freed memory in each of its arenas, and to map large
/// allocations separately. Without glibc, it does nothing. It is for programs that run for a long
/// time and sometimes allocate much, in threads that start and end.
///
/// By default, glibc raises both thresholds to the size of the last freed allocation, up to 32 and
/// 64 MiB. Each of its arenas, eight for each CPU, keeps this much memory. So memory usage grows
/// for hours, until each arena has had the largest work. [`release_free_memory`] does not help,
/// because it does not trim the ends of arenas other than the first (mallopt(3),
/// `M_TRIM_THRESHOLD`).
///
/// The program uses the system's allocator instead of `mimalloc`, which keeps freed memory: reading
/// and compiling a zone allocates much and frees nearly all of it. With 100,000 signed delegations
/// (NSEC, P-256), the server had 245 MiB of resident memory with mimalloc, and 111 MiB with glibc's
/// allocator. Answering from an image allocates nothing with either.
pub fn keep_little_free_memory() {
    #[cfg(target_env = "gnu")]
    set_allocator_thresholds();
}

/// Free octets that are kept at the end of an arena.
#[cfg(target_env = "gnu")]
const TRIM_THRESHOLD: libc::c_int = 256 << 10;
/// Minimum size in octets of allocations that are mapped separately. Their memory is returned
/// completely when it is freed.
#[cfg(target_env = "gnu")]
const MMAP_THRESHOLD: libc::c_int = 512 << 10;

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn set_allocator_thresholds() {
    for (name, octets) in [(libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD), (libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD)]
    {
        // SAFETY: mallopt takes two numbers and locks the data that it changes. It rejects values
        // out of range, which leaves the default.
        unsafe { libc::mallopt(name, octets) };
    }
}

/// Returns freed memory to the system, as far as the allocator can. Useful after startup, because
/// the memory used during startup is not needed any more.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    trim_arenas();
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn trim_arenas() {
    // SAFETY: malloc_trim takes a number, locks the data that it works on, and accesses no memory
    // that is in use.
    unsafe { libc::malloc_trim(0) };
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_map_keeps_the_octets_of_a_file_that_was_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (path, other) = (directory.path().join("a"), directory.path().join("b"));
        File::create(&path).unwrap().write_all(b"first octets").unwrap();
        File::create(&other).unwrap().write_all(b"second").unwrap();
        let open = |length| Map::of_file(&File::open(&path)?, length);
        let map = open(5).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert_eq!(map.as_ref(), b"first");
        assert_eq!(open(6).unwrap().as_ref(), b"second");
        assert_eq!(open(7).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
