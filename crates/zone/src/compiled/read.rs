//! Reader for whole compiled zones. It returns a zone only after it has verified all digests and
//! checked the contents.

use super::directory::{Directory, Entry};
use super::gather::ChunkPropertiesBuilder;
use super::header::Envelope;
use super::source::{Source, try_resize, u16_le, u32_le};
use super::*;
use crate::contents::{Capacity, Contents, NodeEntry, RrsetEntry};
use nonesuch_proto::Rtype;
use rayon::prelude::*;
use std::fs::File;
use std::ops::Range;

/// Octets of chunks that are read at once. A larger chunk is read alone.
const WINDOW_OCTETS: u64 = 4 << 20;
/// Number of chunks whose digests and entries a task of the thread pool checks.
const CHUNKS_PER_TASK: usize = 64;

/// Reads a compiled zone from `octets`. Returns its contents and the verification that the header
/// states; signatures are not verified again.
///
/// # Errors
/// The octets are not a valid compiled zone.
pub fn read(octets: &[u8]) -> Result<(Contents, Verification), CompiledError> {
    read_all(&Source::of_octets(octets))
}

/// Reads a compiled zone from `length` octets of `file` at `offset`. Returns the same as [`read()`].
///
/// # Errors
/// The octets are not a valid compiled zone, or the file cannot be read.
pub fn read_file(file: &File, offset: u64, length: u64) -> Result<(Contents, Verification), CompiledError> {
    read_all(&Source::of_file(file.try_clone()?, offset, length))
}

fn read_all(source: &Source<'_>) -> Result<(Contents, Verification), CompiledError> {
    let envelope = Envelope::read(source)?;
    let directory = Directory::read(&envelope)?;
    let contents = read_contents(source, &envelope.apex, &directory)?;
    envelope.header.check(&contents)?;
    // `HeaderFields::check` does not check this flag, because a stored zone calls it with only the
    // first chunk. The flag may be set without such RRsets; it then only prevents copying of
    // chunks.
    if contents.has_mixed_ttls() && !envelope.header.has_mixed_ttls() {
        return Err(CompiledError::Layout("flags"));
    }
    Ok((contents, envelope.header.verification))
}

/// Reads and checks all contents.
pub(super) fn read_contents(
    source: &Source<'_>,
    apex: &Name,
    directory: &Directory,
) -> Result<Contents, CompiledError> {
    let mut contents = reserve(apex, directory)?;
    let (mut next, mut buffer) = (0, Vec::new());
    while next < directory.entries.len() {
        let chunks = next_window(directory, next);
        let (start, octets) = extent(directory, chunks.clone());
        try_resize(&mut buffer, octets)?;
        source.read_at(&mut buffer, start).map_err(|error| source.read_error(error))?;
        let entries = &directory.entries[chunks.clone()];
        let chunk_of = |entry: &Entry| &buffer[(entry.offset - start) as usize..][..entry.octets as usize];
        let have_digests = |entries: &[Entry]| entries.iter().all(|entry| has_digest(chunk_of(entry), entry));
        if !entries.par_chunks(CHUNKS_PER_TASK).all(have_digests) {
            return Err(CompiledError::Altered);
        }
        for entry in entries {
            decode(entry, chunk_of(entry), &mut contents)?;
        }
        next = chunks.end;
    }
    check::check(&contents)?;
    check_entries(&contents, directory)?;
    Ok(contents)
}

/// Returns the chunks from `first` on that are read at once.
fn next_window(directory: &Directory, first: usize) -> Range<usize> {
    let entries = &directory.entries[first..];
    let start = entries.first().map_or(0, |entry| entry.offset);
    let count = entries.partition_point(|entry| entry.offset + entry.octets <= start + WINDOW_OCTETS);
    first..first + count.max(1)
}

/// Returns the offset of the first chunk, and the total length of the chunks in octets.
pub(super) fn extent(directory: &Directory, chunks: Range<usize>) -> (u64, u64) {
    let entries = &directory.entries[chunks];
    let start = entries.first().map_or(0, |entry| entry.offset);
    let end = entries.last().map_or(0, |entry| entry.offset + entry.octets);
    (start, end - start)
}

/// Reserves memory for all contents. Too little memory is an error and does not abort the process.
fn reserve(apex: &Name, directory: &Directory) -> Result<Contents, CompiledError> {
    let total = &directory.total;
    let mut contents = Contents::with_capacity(apex, Capacity::default());
    let no_memory = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    contents.names.try_reserve_exact(total.names as usize).map_err(no_memory)?;
    contents.rdata.try_reserve_exact(total.rdata as usize).map_err(no_memory)?;
    contents.nodes.try_reserve_exact(total.nodes as usize).map_err(no_memory)?;
    contents.rrsets.try_reserve_exact(total.rrsets as usize).map_err(no_memory)?;
    Ok(contents)
}

/// Whether a chunk has the digest in its directory entry.
pub(super) fn has_digest(octets: &[u8], entry: &Entry) -> bool {
    *blake3::hash(octets).as_bytes() == entry.digest
}

/// Appends a chunk (nodes, RRsets, names and records) to `all`. Checks only that the lengths fit;
/// the caller must call `check::check` or `check::check_chunk` afterwards.
///
/// # Panics
/// Panics if `octets` does not have the length of the chunk.
pub(super) fn decode(entry: &Entry, octets: &[u8], all: &mut Contents) -> Result<(), CompiledError> {
    let size = &entry.size;
    let (nodes, rest) = octets.split_at(size.nodes as usize * NODE_ENTRY_SIZE);
    let (rrsets, rest) = rest.split_at(size.rrsets as usize * RRSET_ENTRY_SIZE);
    let (names, rdata) = rest.split_at(size.names as usize);
    let (mut name, mut rrset) = (all.names.len() as u64, all.rrsets.len() as u64);
    let (name_end, rrset_end) = (name + names.len() as u64, rrset + u64::from(size.rrsets));
    for node in nodes.as_chunks::<NODE_ENTRY_SIZE>().0 {
        all.nodes.push(NodeEntry { name: name as u32, first_rrset: rrset as u32 });
        let lengths = u32::from_le_bytes(*node);
        name += u64::from(lengths & 0xff);
        rrset += u64::from(lengths >> 8);
    }
    let mut start = all.rdata.len() as u64;
    let end = start + rdata.len() as u64;
    for octets in rrsets.as_chunks::<RRSET_ENTRY_SIZE>().0 {
        let [rtype, covered] = [0, 2].map(|at| Rtype(u16_le(octets, at)));
        let [ttl, count, length] = [4, 8, 12].map(|at| u32_le(octets, at));
        let (count, mixed_ttls) = (count & !MIXED_TTLS_BIT, count & MIXED_TTLS_BIT != 0);
        all.rrsets.push(RrsetEntry { start, ttl, rtype, covered, count, mixed_ttls });
        start += u64::from(length);
    }
    if name != name_end || rrset != rrset_end || start != end {
        return Err(CompiledError::Malformed { node: entry.first_node as usize, flaw: Flaw::Length });
    }
    all.names.extend_from_slice(names);
    all.rdata.extend_from_slice(rdata);
    Ok(())
}

/// Checks the directory entries. A later signing run relies on them.
fn check_entries(contents: &Contents, directory: &Directory) -> Result<(), CompiledError> {
    let chunks: Vec<usize> = (0..directory.entries.len()).collect();
    let are_correct =
        |chunks: &[usize]| chunks.iter().all(|chunk| check_entry(contents, 0, directory, *chunk));
    if chunks.par_chunks(CHUNKS_PER_TASK).all(are_correct) {
        Ok(())
    } else {
        Err(CompiledError::Layout("directory"))
    }
}

/// Whether the directory entry of a chunk is correct. `contents` holds the zone without its first
/// `before` nodes: node `i` of the zone is node `i - before` of `contents`.
pub(super) fn check_entry(contents: &Contents, before: usize, directory: &Directory, chunk: usize) -> bool {
    let nodes = directory.summary(chunk).node_range();
    let mut builder = ChunkPropertiesBuilder::default();
    nodes.clone().for_each(|index| builder.add(contents.node(index - before)));
    contents.node(nodes.start - before).name().wire() == directory.name(chunk).wire()
        && builder.matches(&directory.entries[chunk].properties, &directory.patterns)
}
