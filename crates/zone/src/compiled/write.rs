//! Writer for compiled zones. It writes from start to end, so it needs no totals in advance and no
//! seeking in the output.

use super::block::Block;
use super::directory::{Directory, Entry, MIXED};
use super::gather::ChunkBuilder;
use super::header::{HeaderFields, header, trailer};
use super::read::extent;
use super::stored::StoredZone;
use super::*;
use crate::contents::{Contents, Node};
use crate::splice::{Part, Splice};
use std::io::Write;
use std::ops::Range;

/// Writes `contents` as a compiled zone. `verification` is written to the header.
///
/// # Errors
/// Errors of `out`.
pub fn write(contents: &Contents, verification: Verification, out: &mut impl Write) -> io::Result<()> {
    write_in_chunks(contents, verification, CHUNK, out)
}

/// Same as [`write()`], but a chunk ends when it has at least `octets` octets. When a zone changes,
/// unchanged chunks are copied: a short chunk is less often affected by a change, and long chunks
/// make the directory smaller.
///
/// # Errors
/// Errors of `out`.
pub fn write_in_chunks(
    contents: &Contents,
    verification: Verification,
    octets: u32,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut writer =
        Writer::new(contents.apex(), &HeaderFields::of_whole(contents, verification, octets), out)?;
    contents.nodes().try_for_each(|node| writer.put_node(node))?;
    writer.finish()
}

/// Same as [`write()`], for a splice, which is not copied first. Whole chunks of a compiled zone
/// are copied unchanged. In an RRset that was read with different TTLs, all records get the TTL of
/// the RRset.
///
/// # Errors
/// Errors of `out`, and errors of reading the copied parts.
pub fn write_splice(splice: &Splice<'_>, verification: Verification, out: &mut impl Write) -> io::Result<()> {
    let octets = splice.parts().iter().find_map(|part| match part {
        Part::Nodes(..) => None,
        Part::Stored(zone, _) => Some(zone.chunk_octets()),
    });
    let fields = HeaderFields::of(&splice.head(), verification, octets.unwrap_or(CHUNK));
    let mut writer = Writer::new(splice.apex(), &fields, out)?;
    writer.passes_on = octets.is_some();
    for part in splice.parts() {
        match part {
            Part::Nodes(contents, places) => {
                places.clone().try_for_each(|place| writer.put_node(contents.node(place)))?;
            }
            Part::Stored(zone, places) => writer.put_places(zone, places.clone())?,
        }
    }
    writer.finish()
}

struct Writer<'o, 'z, W> {
    block: Block<'o, W>,
    header: [u8; HEADER],
    directory: Directory,
    /// Whether unchanged chunks are copied.
    passes_on: bool,
    /// Names for the next chunk.
    gathering: ChunkBuilder,
    /// For each pattern number of `numbered`, the pattern number in the new file.
    numbers: Vec<u16>,
    /// The zone whose pattern numbers are in `numbers`.
    numbered: Option<&'z StoredZone>,
}

impl<'o, 'z, W: Write> Writer<'o, 'z, W> {
    fn new(apex: &Name, fields: &HeaderFields, out: &'o mut W) -> io::Result<Self> {
        let header = header(apex, fields);
        let mut writer = Self {
            block: Block::new(out),
            header,
            directory: Directory::default(),
            passes_on: false,
            gathering: ChunkBuilder::new(fields.chunk, fields.has_mixed_ttls()),
            numbers: Vec::new(),
            numbered: None,
        };
        writer.block.put(&header)?;
        Ok(writer)
    }

    fn put_node(&mut self, node: Node<'_>) -> io::Result<()> {
        self.gathering.push(node)?;
        let ends = if self.passes_on { self.gathering.is_overfull() } else { self.gathering.is_full() };
        if ends { self.end_chunk() } else { Ok(()) }
    }

    /// Writes the current chunk if it is not empty.
    fn end_chunk(&mut self) -> io::Result<()> {
        if self.gathering.is_empty() {
            return Ok(());
        }
        let properties = self.gathering.properties(&mut self.directory.patterns);
        let size = self.gathering.size();
        let name = self.gathering.first_name().to_vec();
        let mut gathering = std::mem::take(&mut self.gathering);
        let mut hasher = blake3::Hasher::new();
        gathering.empty(|octets| {
            hasher.update(octets);
            self.block.put(octets)
        })?;
        self.gathering = gathering;
        let pushed = self.directory.push(&name, size, properties, *hasher.finalize().as_bytes());
        pushed.ok_or_else(too_large)
    }

    /// Writes the nodes `places` of a compiled zone.
    fn put_places(&mut self, zone: &'z StoredZone, places: Range<usize>) -> io::Result<()> {
        let mut at = places.start;
        while at < places.end {
            let chunk = zone.chunk_at(at);
            let whole = zone.chunk_summary(chunk).places();
            let stays = zone.is_copyable() && at == whole.start && whole.end <= places.end;
            if stays && (self.gathering.is_empty() || self.gathering.is_half_full()) {
                self.end_chunk()?;
                let last = zone.chunk_at(places.end);
                let ends = zone.chunk_summary(last).places().end <= places.end;
                let chunks = chunk..last + usize::from(ends);
                at = zone.chunk_summary(chunks.end - 1).places().end;
                self.pass_on(zone, chunks)?;
                continue;
            }
            let end = whole.end.min(places.end);
            let Some(contents) = zone.chunk(chunk) else {
                let error = zone.failure().unwrap_or(CompiledError::Altered);
                return Err(io::Error::other(error));
            };
            (at..end).try_for_each(|place| self.put_node(contents.node(place - whole.start)))?;
            at = end;
        }
        Ok(())
    }

    /// Copies chunks unchanged.
    fn pass_on(&mut self, zone: &'z StoredZone, chunks: Range<usize>) -> io::Result<()> {
        if !self.numbered.is_some_and(|numbered| std::ptr::eq(numbered, zone)) {
            self.numbers.clear();
            let count = zone.directory.patterns.count() as u16;
            let patterns = (0..count).filter_map(|number| zone.directory.patterns.find(number));
            self.numbers.extend(patterns.map(|pattern| self.directory.patterns.intern(pattern)));
            self.numbered = Some(zone);
        }
        let number = |old: u16| if old >= MIXED { old } else { self.numbers[usize::from(old)] };
        for chunk in chunks.clone() {
            let Entry { size, mut properties, digest, .. } = zone.directory.entries[chunk];
            (properties.signers, properties.chain) = (number(properties.signers), number(properties.chain));
            let pushed = self.directory.push(zone.directory.name(chunk).wire(), size, properties, digest);
            pushed.ok_or_else(too_large)?;
        }
        let (start, octets) = extent(&zone.directory, chunks);
        self.block.copy_from(&zone.source, start, octets)
    }

    fn finish(mut self) -> io::Result<()> {
        self.end_chunk()?;
        let offset = HEADER as u64 + self.directory.total.octets;
        let directory = self.directory.write();
        let (chunks, patterns) = (self.directory.entries.len(), self.directory.patterns.count());
        let trailer = trailer(&self.header, &directory, offset, chunks as u32, patterns as u32);
        self.block.put(&directory)?;
        self.block.put(&trailer)?;
        self.block.flush()
    }
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "the zone has more names than a compiled zone can contain")
}
