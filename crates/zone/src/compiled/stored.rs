//! A zone in an open file. Chunks are loaded on demand; the directory has the properties of all
//! other chunks. A compiled zone contains a directory. For a signed zone file, the comparison
//! (`text`) builds it.

use super::directory::{ChunkSummary, Directory, Entry};
use super::header::{Envelope, HeaderFields};
use super::source::Source;
use super::{Block, CHUNK, CompiledError, Flaw, check, read};
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
/// A name in a chunk that cannot be loaded appears not to exist, and [`StoredZone::failure`]
/// returns the reason. The caller must call it before it uses any result of reading the zone.
#[derive(Debug)]
pub struct StoredZone {
    pub(super) source: Source<'static>,
    apex: Name,
    form: Form,
    pub(super) directory: Directory,
    /// The first chunk.
    head: Contents,
    /// The other chunks. The slot of the first chunk stays empty.
    chunks: Vec<OnceLock<Option<Box<Contents>>>>,
    failure: Mutex<Option<CompiledError>>,
}

/// Format of the chunks.
#[derive(Debug)]
enum Form {
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
        Self::with_head(source, envelope.apex, Form::Compiled(envelope.header), directory)
    }

    /// Creates a zone from a zone file with this directory.
    pub(super) fn of_text(
        source: Source<'static>,
        apex: Name,
        directory: Directory,
    ) -> Result<Self, CompiledError> {
        Self::with_head(source, apex, Form::Text, directory)
    }

    fn with_head(
        source: Source<'static>,
        apex: Name,
        form: Form,
        directory: Directory,
    ) -> Result<Self, CompiledError> {
        let chunks: Vec<_> = directory.entries.iter().map(|_| OnceLock::new()).collect();
        let head = Contents::empty(&apex);
        if chunks.is_empty() {
            return Err(CompiledError::Zone(ZoneFault::NoSoa(apex)));
        }
        let mut zone = Self { source, apex, form, directory, head, chunks, failure: Mutex::new(None) };
        zone.head = zone.load(0)?;
        zone.check_header(&zone.head)?;
        Ok(zone)
    }

    fn check_header(&self, head: &Contents) -> Result<(), CompiledError> {
        if let Form::Compiled(fields) = &self.form { fields.check(head) } else { Ok(()) }
    }

    /// Whether the chunks are in the format of compiled zones.
    pub(super) const fn is_compiled(&self) -> bool {
        matches!(self.form, Form::Compiled(_))
    }

    /// Whether chunks may be copied unchanged to another zone. RRsets with different TTLs do not
    /// permit this.
    pub(super) const fn is_copyable(&self) -> bool {
        matches!(&self.form, Form::Compiled(fields) if !fields.has_mixed_ttls())
    }

    /// Apex of the zone.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// The first names of the zone, including the apex with all its records.
    #[must_use]
    pub const fn head(&self) -> &Contents {
        &self.head
    }

    /// Octets at which a chunk ends.
    pub(super) const fn chunk_octets(&self) -> u32 {
        if let Form::Compiled(fields) = &self.form { fields.chunk } else { CHUNK }
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

    /// Returns the chunk that contains the name at index `place` in canonical order.
    pub(crate) fn chunk_at(&self, place: usize) -> usize {
        self.directory.chunk_at(place)
    }

    /// Returns the summary of `chunk`.
    pub(crate) fn chunk_summary(&self, chunk: usize) -> ChunkSummary<'_> {
        self.directory.summary(chunk)
    }

    /// Returns the node at index `place` in canonical order; `None` if it does not exist or cannot
    /// be loaded.
    #[must_use]
    pub fn node(&self, place: usize) -> Option<Node<'_>> {
        let chunk = self.directory.chunk_at(place);
        let inside = place.checked_sub(self.directory.entries.get(chunk)?.first_node as usize)?;
        let contents = self.chunk(chunk)?;
        (inside < contents.node_count()).then(|| contents.node(inside))
    }

    /// Finds the index and the node of `name`. If it does not exist, returns the index at which it
    /// would be inserted.
    pub fn find(&self, name: NameRef<'_>) -> Result<(usize, Node<'_>), usize> {
        let chunk = self.directory.chunk_of(name);
        let places = self.directory.summary(chunk).places();
        // The index after the chunk keeps the names in order, even if the chunk cannot be loaded.
        let Some(contents) = self.chunk(chunk) else { return Err(places.end) };
        let start = places.start;
        match contents.find(name) {
            Ok(node) => Ok((start + node.index(), node)),
            Err(place) => Err(start + place),
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

    /// Copies the lines of a zone file for the nodes `places`, from the first one on, as far as
    /// they are whole chunks. Returns the index after the copied nodes, or `None` if nothing can be
    /// copied.
    pub(crate) fn pass_on_text<W: Write>(
        &self,
        places: Range<usize>,
        out: &mut Block<'_, W>,
    ) -> io::Result<Option<usize>> {
        let first = self.chunk_at(places.start);
        let whole = self.chunk_summary(first).places();
        if self.is_compiled() || whole.start != places.start || whole.end > places.end {
            return Ok(None);
        }
        let last = self.chunk_at(places.end);
        let ends = self.chunk_summary(last).places().end <= places.end;
        let chunks = first..last + usize::from(ends);
        let next = self.chunk_summary(chunks.end - 1).places().end;
        let (start, octets) = read::extent(&self.directory, chunks);
        out.copy_from(&self.source, start, octets)?;
        Ok(Some(next))
    }

    /// Checks that a zone file was not modified since it was opened. Its lines are copied without a
    /// digest.
    ///
    /// # Errors
    /// The file was modified.
    pub(crate) fn check_as_before(&self) -> io::Result<()> {
        if self.is_compiled() || self.source.is_as_before() {
            return Ok(());
        }
        Err(io::Error::other("the file of the previous signed zone was modified during signing: sign again"))
    }

    /// Returns the first error of loading a chunk, if any, and clears it.
    pub fn failure(&self) -> Option<CompiledError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Loads an existing chunk without storing it in `self`.
    pub(crate) fn load(&self, chunk: usize) -> Result<Contents, CompiledError> {
        let entry = &self.directory.entries[chunk];
        let place = entry.first_node as usize;
        let octets = self.source.take(entry.offset, entry.octets)?;
        let contents = match self.form {
            Form::Compiled(_) => self.decode(entry, &octets)?,
            Form::Text => read_part(&octets, &self.apex)
                .filter(|part| part.node_count() == entry.size.nodes as usize)
                .ok_or(CompiledError::Layout("reference to a part of the zone file"))?,
        };
        check::check_chunk(&contents, place)?;
        if !read::check_entry(&contents, place, &self.directory, chunk) {
            return Err(CompiledError::Layout("directory"));
        }
        // The names after the last name of this chunk must be in the next chunk.
        let last = contents.nodes().last().map(Node::name);
        let next = (chunk + 1 < self.directory.entries.len()).then(|| self.directory.name(chunk + 1));
        if last.zip(next).is_some_and(|(last, next)| last.cmp_canonical(next).is_ge()) {
            let node = place + contents.node_count();
            return Err(CompiledError::Malformed { node, flaw: Flaw::NameOrder });
        }
        Ok(contents)
    }

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
