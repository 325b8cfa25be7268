//! Writer for compiled zones. It writes from start to end, so it needs no totals in advance and no
//! seeking in the output.

use super::block::BlockWriter;
use super::directory::{Directory, Entry, MIXED_PATTERNS};
use super::gather::ChunkBuilder;
use super::header::{HeaderFields, header, trailer};
use super::read::extent;
use super::stored::StoredZone;
use super::*;
use crate::contents::{Contents, Node};
use crate::splice::{Splice, SplicePart};
use std::io::Write;
use std::ops::Range;

/// Writes `contents` as a compiled zone. `verification` is written to the header.
///
/// # Errors
/// Errors of `out`.
pub fn write(contents: &Contents, verification: Verification, out: &mut impl Write) -> io::Result<()> {
    write_in_chunks(contents, verification, DEFAULT_CHUNK_OCTETS, out)
}

/// Same as [`write()`], but a chunk ends when it has at least `chunk_octets` octets, not
/// [`DEFAULT_CHUNK_OCTETS`].
///
/// # Errors
/// Errors of `out`.
pub fn write_in_chunks(
    contents: &Contents,
    verification: Verification,
    chunk_octets: u32,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut writer =
        Writer::new(contents.apex(), &HeaderFields::of_contents(contents, verification, chunk_octets), out)?;
    contents.nodes().try_for_each(|node| writer.put_node(node))?;
    writer.finish()
}

/// Same as [`write()`], for a splice. Copies whole chunks of a compiled zone unchanged. In an RRset
/// that was read with different TTLs, all records get the TTL of the RRset.
///
/// # Errors
/// Errors of `out`, and errors of reading the copied parts.
pub fn write_splice(splice: &Splice<'_>, verification: Verification, out: &mut impl Write) -> io::Result<()> {
    let chunk_octets = splice.parts().iter().find_map(|part| match part {
        SplicePart::Nodes(..) => None,
        SplicePart::Stored(zone, _) => Some(zone.chunk_octets()),
    });
    let fields =
        HeaderFields::of_apex(&splice.head(), verification, chunk_octets.unwrap_or(DEFAULT_CHUNK_OCTETS));
    let mut writer = Writer::new(splice.apex(), &fields, out)?;
    writer.copies_chunks = chunk_octets.is_some();
    for part in splice.parts() {
        match part {
            SplicePart::Nodes(contents, range) => {
                range.clone().try_for_each(|index| writer.put_node(contents.node(index)))?;
            }
            SplicePart::Stored(zone, range) => writer.put_stored_nodes(zone, range.clone())?,
        }
    }
    writer.finish()
}

struct Writer<'o, 'z, W> {
    out: BlockWriter<'o, W>,
    header: [u8; HEADER_OCTETS],
    directory: Directory,
    /// Whether the splice has stored parts, whose unchanged chunks are copied.
    copies_chunks: bool,
    /// The nodes of the current chunk.
    current: ChunkBuilder,
    /// For each pattern number of the zone `mapped_zone`, the pattern number in the new file.
    pattern_map: Vec<u16>,
    /// The zone whose pattern numbers are the indexes of `pattern_map`.
    mapped_zone: Option<&'z StoredZone>,
}

impl<'o, 'z, W: Write> Writer<'o, 'z, W> {
    fn new(apex: &Name, fields: &HeaderFields, out: &'o mut W) -> io::Result<Self> {
        let header = header(apex, fields);
        let mut writer = Self {
            out: BlockWriter::new(out),
            header,
            directory: Directory::default(),
            copies_chunks: false,
            current: ChunkBuilder::new(fields.chunk_octets, fields.has_mixed_ttls()),
            pattern_map: Vec::new(),
            mapped_zone: None,
        };
        writer.out.put(&header)?;
        Ok(writer)
    }

    fn put_node(&mut self, node: Node<'_>) -> io::Result<()> {
        self.current.push(node)?;
        let is_complete =
            if self.copies_chunks { self.current.is_overfull() } else { self.current.is_full() };
        if is_complete { self.end_chunk() } else { Ok(()) }
    }

    /// Writes the current chunk if it is not empty.
    fn end_chunk(&mut self) -> io::Result<()> {
        if self.current.is_empty() {
            return Ok(());
        }
        let properties = self.current.properties(&mut self.directory.patterns);
        let size = self.current.size();
        let name = self.current.first_name().to_vec();
        let mut current = std::mem::take(&mut self.current);
        let mut hasher = blake3::Hasher::new();
        current.drain(|octets| {
            hasher.update(octets);
            self.out.put(octets)
        })?;
        self.current = current;
        let pushed = self.directory.push(&name, size, properties, *hasher.finalize().as_bytes());
        pushed.ok_or_else(too_large)
    }

    /// Writes the nodes `range` of a stored zone. Copies whole chunks if the chunk before them is
    /// large enough to end.
    fn put_stored_nodes(&mut self, zone: &'z StoredZone, range: Range<usize>) -> io::Result<()> {
        let mut next = range.start;
        while next < range.end {
            let chunk = zone.chunk_of_node(next);
            let chunk_range = zone.chunk_summary(chunk).node_range();
            let is_copied = zone.is_copyable() && next == chunk_range.start && chunk_range.end <= range.end;
            if is_copied && (self.current.is_empty() || self.current.is_half_full()) {
                self.end_chunk()?;
                let last = zone.chunk_of_node(range.end);
                let is_last_whole = zone.chunk_summary(last).node_range().end <= range.end;
                let chunks = chunk..last + usize::from(is_last_whole);
                next = zone.chunk_summary(chunks.end - 1).node_range().end;
                self.copy_chunks(zone, chunks)?;
                continue;
            }
            let end = chunk_range.end.min(range.end);
            let Some(contents) = zone.chunk(chunk) else {
                let error = zone.take_failure().unwrap_or(CompiledError::Altered);
                return Err(io::Error::other(error));
            };
            (next..end).try_for_each(|index| self.put_node(contents.node(index - chunk_range.start)))?;
            next = end;
        }
        Ok(())
    }

    /// Copies chunks unchanged.
    fn copy_chunks(&mut self, zone: &'z StoredZone, chunks: Range<usize>) -> io::Result<()> {
        if !self.mapped_zone.is_some_and(|mapped| std::ptr::eq(mapped, zone)) {
            self.pattern_map.clear();
            let count = zone.directory.patterns.count() as u16;
            let patterns = (0..count).filter_map(|number| zone.directory.patterns.find(number));
            self.pattern_map.extend(patterns.map(|pattern| self.directory.patterns.intern(pattern)));
            self.mapped_zone = Some(zone);
        }
        let new_number =
            |old: u16| if old >= MIXED_PATTERNS { old } else { self.pattern_map[usize::from(old)] };
        for chunk in chunks.clone() {
            let Entry { size, mut properties, digest, .. } = zone.directory.entries[chunk];
            (properties.signers, properties.chain) =
                (new_number(properties.signers), new_number(properties.chain));
            let pushed = self.directory.push(zone.directory.name(chunk).wire(), size, properties, digest);
            pushed.ok_or_else(too_large)?;
        }
        let (start, octets) = extent(&zone.directory, chunks);
        self.out.copy_from(&zone.source, start, octets)
    }

    fn finish(mut self) -> io::Result<()> {
        self.end_chunk()?;
        let offset = HEADER_OCTETS as u64 + self.directory.total.octets;
        let directory = self.directory.encode();
        let (chunks, patterns) = (self.directory.entries.len(), self.directory.patterns.count());
        let trailer = trailer(&self.header, &directory, offset, chunks as u32, patterns as u32);
        self.out.put(&directory)?;
        self.out.put(&trailer)?;
        self.out.flush()
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "the zone has more names than a compiled zone can contain")
}
