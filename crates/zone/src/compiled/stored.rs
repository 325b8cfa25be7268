//! A zone in an open file. Chunks are loaded on demand; the directory has the properties of all
//! other chunks. A compiled zone contains a directory. For a signed zone file, the comparison
//! (`text`) builds it.

use super::directory::{ChunkSummary, Directory, Entry};
use super::header::{Envelope, HeaderFields};
use super::source::Source;
use super::{BlockWriter, CompiledError, DEFAULT_CHUNK_OCTETS, Flaw, check, read};
use crate::builder::ZoneFault;
use crate::change::read_part;
use crate::contents::{Contents, Node};
use nonesuch_proto::{Name, NameRef};
use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// A zone in a file, compiled or text. Its chunks are loaded and checked on demand.
///
/// A name in a chunk that cannot be loaded appears not to exist, and [`StoredZone::take_failure`]
/// returns the reason. The caller must call it before it uses any result of reading the zone.
#[derive(Debug)]
pub struct StoredZone {
    pub(super) source: Source<'static>,
    apex: Name,
    format: ChunkFormat,
    pub(super) directory: Directory,
    /// The first chunk, which is always loaded.
    head: Contents,
    /// The other chunks. The slot of the first chunk stays empty.
    chunks: Vec<OnceLock<Option<Box<Contents>>>>,
    failure: Mutex<Option<CompiledError>>,
}

/// Format of the chunks.
#[derive(Debug)]
enum ChunkFormat {
    Compiled(HeaderFields),
    /// Lines of a zone file.
    Text,
}

impl StoredZone {
    /// Opens the compiled zone in `length` octets of `file` at `offset`, and loads its first chunk.
    ///
    /// # Errors
    /// The header, the directory or the first chunk is not valid.
    pub fn open(file: File, offset: u64, length: u64) -> Result<Self, CompiledError> {
        Self::of_source(Source::of_file(file, offset, length))
    }

    /// Same as [`StoredZone::open`], for octets in memory.
    ///
    /// # Errors
    /// As [`StoredZone::open`].
    pub fn of_octets(octets: Vec<u8>) -> Result<Self, CompiledError> {
        Self::of_source(Source::of_octets(octets))
    }

    fn of_source(source: Source<'static>) -> Result<Self, CompiledError> {
        let envelope = Envelope::read(&source)?;
        let directory = Directory::read(&envelope)?;
        Self::load_head(source, envelope.apex, ChunkFormat::Compiled(envelope.header), directory)
    }

    /// Creates a zone from a zone file with this directory.
    pub(super) fn of_text(
        source: Source<'static>,
        apex: Name,
        directory: Directory,
    ) -> Result<Self, CompiledError> {
        Self::load_head(source, apex, ChunkFormat::Text, directory)
    }

    fn load_head(
        source: Source<'static>,
        apex: Name,
        format: ChunkFormat,
        directory: Directory,
    ) -> Result<Self, CompiledError> {
        let chunks: Vec<_> = directory.entries.iter().map(|_| OnceLock::new()).collect();
        let head = Contents::empty(&apex);
        if chunks.is_empty() {
            return Err(CompiledError::Zone(ZoneFault::NoSoa(apex)));
        }
        let mut zone = Self { source, apex, format, directory, head, chunks, failure: Mutex::new(None) };
        zone.head = zone.load(0)?;
        zone.check_header(&zone.head)?;
        Ok(zone)
    }

    fn check_header(&self, head: &Contents) -> Result<(), CompiledError> {
        if let ChunkFormat::Compiled(fields) = &self.format { fields.check(head) } else { Ok(()) }
    }

    /// Whether the chunks are in the format of compiled zones.
    pub(super) const fn is_compiled(&self) -> bool {
        matches!(self.format, ChunkFormat::Compiled(_))
    }

    /// Whether chunks may be copied unchanged to another zone. RRsets with different TTLs do not
    /// permit this.
    pub(super) const fn is_copyable(&self) -> bool {
        matches!(&self.format, ChunkFormat::Compiled(fields) if !fields.has_mixed_ttls())
    }

    /// Apex of the zone.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// The first chunk of the zone: the apex with all its records, and the names after it.
    #[must_use]
    pub const fn first_chunk(&self) -> &Contents {
        &self.head
    }

    /// Size in octets at which a chunk ends.
    pub(super) const fn chunk_octets(&self) -> u32 {
        if let ChunkFormat::Compiled(fields) = &self.format {
            fields.chunk_octets
        } else {
            DEFAULT_CHUNK_OCTETS
        }
    }

    /// Number of names that own records.
    #[must_use]
    pub const fn node_count(&self) -> usize {
        self.directory.total.nodes as usize
    }

    /// Number of records.
    #[must_use]
    pub const fn record_count(&self) -> u64 {
        self.directory.total.records
    }

    /// Iterates over the summaries of all chunks, in order.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = ChunkSummary<'_>> + DoubleEndedIterator {
        (0..self.chunks.len()).map(|chunk| self.directory.summary(chunk))
    }

    /// Returns the chunk that contains the node at `index` in canonical order.
    pub(crate) fn chunk_of_node(&self, index: usize) -> usize {
        self.directory.chunk_of_node(index)
    }

    /// Returns the summary of `chunk`.
    pub(crate) fn chunk_summary(&self, chunk: usize) -> ChunkSummary<'_> {
        self.directory.summary(chunk)
    }

    /// Returns the node at `index` in canonical order; `None` if it does not exist or cannot
    /// be loaded.
    #[must_use]
    pub fn node(&self, index: usize) -> Option<Node<'_>> {
        let chunk = self.directory.chunk_of_node(index);
        let index_in_chunk = index.checked_sub(self.directory.entries.get(chunk)?.first_node as usize)?;
        let contents = self.chunk(chunk)?;
        (index_in_chunk < contents.node_count()).then(|| contents.node(index_in_chunk))
    }

    /// Finds the node of `name`. Returns its index in the zone, and the node.
    ///
    /// # Errors
    /// The index at which the node would be inserted. If the chunk cannot be loaded, the index after
    /// the chunk.
    pub fn find(&self, name: NameRef<'_>) -> Result<(usize, Node<'_>), usize> {
        let chunk = self.directory.chunk_of_name(name);
        let range = self.directory.summary(chunk).node_range();
        // The index after the chunk keeps the names in order, even if the chunk cannot be loaded.
        let Some(contents) = self.chunk(chunk) else { return Err(range.end) };
        match contents.find(name) {
            Ok(node) => Ok((range.start + node.index(), node)),
            Err(index) => Err(range.start + index),
        }
    }

    /// Returns the names of a chunk; `None` if it cannot be loaded.
    pub(crate) fn chunk(&self, chunk: usize) -> Option<&Contents> {
        if chunk == 0 {
            return Some(&self.head);
        }
        let loaded = self.chunks.get(chunk)?.get_or_init(|| match self.load(chunk) {
            Ok(contents) => Some(Box::new(contents)),
            Err(error) => {
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
                None
            }
        });
        loaded.as_deref()
    }

    /// Copies the lines of whole chunks to `out`, from the first node of `range` to the last whole
    /// chunk in `range`. Returns the index after the copied nodes. Returns `None` and copies
    /// nothing if the zone is compiled, or the first node of `range` does not begin a chunk that
    /// ends in `range`.
    pub(crate) fn copy_lines<W: Write>(
        &self,
        range: Range<usize>,
        out: &mut BlockWriter<'_, W>,
    ) -> io::Result<Option<usize>> {
        let first = self.chunk_of_node(range.start);
        let first_range = self.chunk_summary(first).node_range();
        if self.is_compiled() || first_range.start != range.start || first_range.end > range.end {
            return Ok(None);
        }
        let last = self.chunk_of_node(range.end);
        let is_last_whole = self.chunk_summary(last).node_range().end <= range.end;
        let chunks = first..last + usize::from(is_last_whole);
        let next = self.chunk_summary(chunks.end - 1).node_range().end;
        let (start, octets) = read::extent(&self.directory, chunks);
        out.copy_from(&self.source, start, octets)?;
        Ok(Some(next))
    }

    /// Checks that a zone file was not modified since it was opened. This check replaces the
    /// digests that a zone file does not have.
    ///
    /// # Errors
    /// The file was modified.
    pub(crate) fn check_unmodified(&self) -> io::Result<()> {
        if self.is_compiled() || self.source.is_unmodified() {
            return Ok(());
        }
        Err(io::Error::other("the file of the previous signed zone was modified during signing: sign again"))
    }

    /// Returns the first error of loading a chunk, if any, and clears it.
    pub fn take_failure(&self) -> Option<CompiledError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Loads and checks a chunk without storing it in `self`. `chunk` must exist.
    pub(crate) fn load(&self, chunk: usize) -> Result<Contents, CompiledError> {
        let entry = &self.directory.entries[chunk];
        let first_node = entry.first_node as usize;
        let octets = self.source.read_range(entry.offset, entry.octets)?;
        let contents = match self.format {
            ChunkFormat::Compiled(_) => self.decode(entry, &octets)?,
            ChunkFormat::Text => read_part(&octets, &self.apex)
                .filter(|part| part.node_count() == entry.size.nodes as usize)
                .ok_or(CompiledError::Layout("reference to a part of the zone file"))?,
        };
        check::check_chunk(&contents, first_node)?;
        if !read::check_entry(&contents, first_node, &self.directory, chunk) {
            return Err(CompiledError::Layout("directory"));
        }
        // The names after the last name of this chunk must be in the next chunk.
        let last = contents.nodes().last().map(Node::name);
        let next = (chunk + 1 < self.directory.entries.len()).then(|| self.directory.name(chunk + 1));
        if last.zip(next).is_some_and(|(last, next)| last.cmp_canonical(next).is_ge()) {
            let node = first_node + contents.node_count();
            return Err(CompiledError::Malformed { node, flaw: Flaw::NameOrder });
        }
        Ok(contents)
    }

    /// Decodes a chunk of a compiled zone after its digest is verified.
    fn decode(&self, entry: &Entry, octets: &[u8]) -> Result<Contents, CompiledError> {
        if !read::has_digest(octets, entry) {
            return Err(CompiledError::Altered);
        }
        let mut contents = Contents::empty(&self.apex);
        contents.nodes.reserve_exact(entry.size.nodes as usize);
        contents.rrsets.reserve_exact(entry.size.rrsets as usize);
        read::decode(entry, octets, &mut contents)?;
        Ok(contents)
    }
}
