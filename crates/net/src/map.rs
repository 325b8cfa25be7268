//! Memory: files mapped into it, and giving back what is free.

use memmap2::{Mmap, MmapOptions};
use std::fs::File;
use std::io;

/// The front of a file, mapped for reading.
///
/// Files that are mapped are replaced by renaming others over them, never written in place: then the map keeps the octets
/// of the file that it was made of. Whoever cuts the file off in place nonetheless makes the process end with SIGBUS when it
/// reads what is gone, and whoever writes into it changes what is read. So the file wants the permissions of the program.
#[derive(Debug)]
pub struct Map(Mmap);

impl Map {
    /// Maps the first `length` octets of a file, and reads them into the page cache where they are not in it.
    ///
    /// # Errors
    /// Those of the system; `UnexpectedEof` where the file is shorter.
    #[allow(unsafe_code)]
    pub fn of_file(file: &File, length: usize) -> io::Result<Self> {
        if file.metadata()?.len() < length as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the map is read only and private, and has as many octets as the file has. It is undefined when another
        // process changes these octets in the meantime; the files that are mapped are only ever replaced by renaming (see
        // above), and whoever may write them is trusted as whoever may write this program.
        unsafe { MmapOptions::new().len(length).populate().map(file) }.map(Self)
    }
}

/// Has the allocator keep little of what is freed, in each of its arenas, and map what is large by itself; for programs that run
/// for long and allocate much now and then, in threads that come and go.
///
/// By default glibc raises both bounds to what was freed last, up to 32 and 64 MiB, and each of its arenas, eight for each CPU,
/// keeps so much: memory grows for hours until each has had the largest work to do. [`release_free_memory`] does not help,
/// since it leaves the ends of all arenas but the first (mallopt(3), `M_TRIM_THRESHOLD`).
///
/// The system's allocator is used rather than `mimalloc`, which keeps what is freed: reading and compiling a zone allocate much
/// and free nearly all of it. With 100,000 signed delegations (NSEC, P-256) the server then had 245 MiB resident under
/// mimalloc, and 111 MiB under glibc's allocator. Answering from an image allocates nothing under either.
pub fn keep_little_free_memory() {
    #[cfg(target_env = "gnu")]
    bound_free_memory();
}

/// Octets at the end of an arena that are kept free.
#[cfg(target_env = "gnu")]
const KEPT: libc::c_int = 256 << 10;
/// Octets from which on memory is mapped by itself: all of it is given back when it is freed.
#[cfg(target_env = "gnu")]
const LARGE: libc::c_int = 512 << 10;

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn bound_free_memory() {
    for (name, octets) in [(libc::M_TRIM_THRESHOLD, KEPT), (libc::M_MMAP_THRESHOLD, LARGE)] {
        // SAFETY: mallopt takes two numbers, and locks what it sets. It refuses what is out of range, which leaves the default.
        unsafe { libc::mallopt(name, octets) };
    }
}

/// Gives memory that was freed back to the system, as far as the allocator can: what a program has allocated on its way to a
/// steady state is of no use to it any more.
pub fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    trim();
}

#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
fn trim() {
    // SAFETY: malloc_trim takes a number, locks what it works on, and touches no memory that is in use.
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
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
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
