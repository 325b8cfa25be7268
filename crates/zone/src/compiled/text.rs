//! Comparison of a signed zone file with the new unsigned zone. The result is the changes and a
//! directory of the lines of the file. With this result, the signer parses only the changed records
//! and copies all other lines.
//!
//! The file must have the format that this program writes: one record per line with owner, TTL,
//! class and type; absolute names in canonical order; signatures after the RRset that they cover.
//! For any other file, the comparison returns `None`, and the caller reads the whole zone file.

use super::directory::Size;
use super::directory::{Directory, chain_pattern};
use super::gather::{ChunkPropertiesBuilder, SignatureFields};
use super::source::Source;
use super::{CompiledError, DIGEST_OCTETS, StoredZone};
use crate::change::{ChangeSet, is_data, read_part};
use crate::contents::{Contents, NodesBuilder};
use crate::write::{LinePrefix, push_data_lines};
use memchr::memchr;
use nonesuch_proto::{NameRef, Rtype, push_name_from_text, text, timestamp};
use std::fs::File;
use std::ops::Range;

/// Number of octets that are read at once. The window grows if the lines of a name take more.
const INITIAL_WINDOW_OCTETS: usize = 1 << 20;
/// Maximum octets of the window. A file in which the lines of one name take more is not in the
/// required format.
const MAX_WINDOW_OCTETS: usize = 64 << 20;
/// Octets of lines at which a chunk ends. Chunks are short, because parsing records is slow.
const MIN_CHUNK_OCTETS: u64 = 2048;

/// Result of [`compare_text`].
#[derive(Debug)]
pub struct TextComparison {
    /// The signed zone.
    pub previous: StoredZone,
    /// The changes from the data of the signed zone to the new zone.
    pub changes: ChangeSet,
}

/// Compares the signed zone file, which has `length` octets, with the data of the `new` zone.
/// Returns `None` if the file is not in the format in which this program writes signed zones, or
/// has faults.
///
/// # Errors
/// The file cannot be read.
pub fn compare_text(
    file: File,
    length: u64,
    new: &Contents,
) -> Result<Option<TextComparison>, CompiledError> {
    compare(Source::of_file(file, 0, length), new)
}

/// Same as [`compare_text`], for octets in memory.
///
/// # Errors
/// None.
pub fn compare_octets(octets: Vec<u8>, new: &Contents) -> Result<Option<TextComparison>, CompiledError> {
    compare(Source::of_octets(octets), new)
}

fn compare(source: Source<'static>, new: &Contents) -> Result<Option<TextComparison>, CompiledError> {
    let mut comparison = Comparison::new(new);
    if !comparison.read(&source)? {
        return Ok(None);
    }
    let Comparison { directory, old_nodes, new_nodes, .. } = comparison;
    let old_contents = Contents::from_nodes(new.apex(), old_nodes);
    let new_contents = Contents::from_nodes(new.apex(), new_nodes);
    let changes = ChangeSet::between(&old_contents, &new_contents, is_data);
    let Ok(previous) = StoredZone::of_text(source, new.apex().clone(), directory) else { return Ok(None) };
    Ok(Some(TextComparison { previous, changes }))
}

/// A line of the file. Offsets are relative to the first line of its owner.
struct Line {
    /// The line without its newline.
    octets: Range<usize>,
    ttl: Range<usize>,
    rtype: Range<usize>,
    /// Offset of the RDATA.
    rdata: usize,
}

impl Line {
    /// Splits the line at `octets` of `text` into fields.
    fn split(text: &[u8], octets: Range<usize>, owner_octets: usize) -> Option<Self> {
        let line = &text[..octets.end];
        let ttl = octets.start + owner_octets + 1;
        let ttl_end = ttl + line.get(ttl..)?.iter().position(|octet| *octet == b'\t')?;
        let rtype = ttl_end + b"\tIN\t".len();
        if line.get(ttl_end..rtype)? != b"\tIN\t" {
            return None;
        }
        let rtype_end = rtype + line[rtype..].iter().position(|octet| *octet == b'\t')?;
        Some(Self { octets, ttl: ttl..ttl_end, rtype: rtype..rtype_end, rdata: rtype_end + 1 })
    }
}

/// The last processed name of the file.
enum LastName {
    /// The name is this node of the new zone.
    InNewZone(usize),
    /// The new zone does not have the name.
    Removed(Vec<u8>),
}

/// State of the comparison, which reads the file from start to end. The methods return `None` if
/// the file does not have the required format.
struct Comparison<'n> {
    new: &'n Contents,
    /// Index of the next node of the new zone.
    next: usize,
    /// The owner of this node in text, followed by a tab.
    owner: Vec<u8>,
    /// The data lines of this node.
    expected: Vec<u8>,
    prefix: LinePrefix,
    last: LastName,
    /// The apex in text: the signer's name that all signatures must have.
    signer: Vec<u8>,
    /// The names that differ, with their records in the file.
    old_nodes: NodesBuilder,
    /// The names that differ, with their records in the new zone.
    new_nodes: NodesBuilder,
    directory: Directory,
    properties: ChunkPropertiesBuilder,
    /// Number of names in the current chunk.
    chunk_names: u32,
    /// Octets of the lines in the current chunk.
    chunk_octets: u64,
    /// First name of the current chunk, in wire format.
    chunk_first_name: Vec<u8>,
    /// Text of the last NSEC or NSEC3 record from the TTL up to the fields that differ between
    /// records.
    chain_start: Vec<u8>,
    /// The pattern of this record.
    current_chain_pattern: Vec<u8>,
    /// The current name in wire format, if it is not written like the next name of the new zone.
    wire: Vec<u8>,
}

impl<'n> Comparison<'n> {
    fn new(new: &'n Contents) -> Self {
        let mut signer = Vec::new();
        text::push_name(new.apex().view(), &mut signer);
        let mut all = Self {
            new,
            next: 0,
            owner: Vec::new(),
            expected: Vec::new(),
            prefix: LinePrefix::default(),
            last: LastName::Removed(Vec::new()),
            signer,
            old_nodes: NodesBuilder::default(),
            new_nodes: NodesBuilder::default(),
            directory: Directory::of_text(),
            properties: ChunkPropertiesBuilder::default(),
            chunk_names: 0,
            chunk_octets: 0,
            chunk_first_name: Vec::new(),
            chain_start: Vec::new(),
            current_chain_pattern: Vec::new(),
            wire: Vec::new(),
        };
        all.render_next();
        all
    }

    /// Reads the file. Returns `false` if it does not have the required format.
    fn read(&mut self, source: &Source<'_>) -> Result<bool, CompiledError> {
        let mut window = vec![0; INITIAL_WINDOW_OCTETS];
        let (mut offset, mut filled) = (0, 0);
        loop {
            let remaining = source.length() - (offset + filled as u64);
            let count = (window.len() - filled).min(usize::try_from(remaining).unwrap_or(usize::MAX));
            let read = source.read_at(&mut window[filled..filled + count], offset + filled as u64);
            read.map_err(|error| source.read_error(error))?;
            filled += count;
            let is_last = count as u64 == remaining;
            let Some(used) = self.process_lines(&window[..filled], is_last) else { return Ok(false) };
            if is_last {
                return Ok(self.end().is_some());
            }
            if used == 0 {
                if window.len() >= MAX_WINDOW_OCTETS {
                    return Ok(false);
                }
                window.resize(window.len() * 2, 0);
            }
            window.copy_within(used..filled, 0);
            filled -= used;
            offset += used as u64;
        }
    }

    /// Processes all lines of `text` except those of the last name, which may continue after
    /// `text`. Returns the number of processed octets.
    fn process_lines(&mut self, text: &[u8], is_last: bool) -> Option<usize> {
        let mut lines: Vec<Line> = Vec::new();
        let (mut at, mut start, mut owner_octets) = (0, 0, 0);
        while let Some(length) = memchr(b'\n', &text[at..]) {
            let line = &text[at..at + length];
            let is_same =
                !lines.is_empty() && line.get(..=owner_octets) == text.get(start..=start + owner_octets);
            if !is_same {
                if !lines.is_empty() {
                    self.process_name(&text[start..at], owner_octets, &lines)?;
                    lines.clear();
                }
                start = at;
                owner_octets = memchr(b'\t', line)?;
            }
            let octets = at - start..at + length - start;
            lines.push(Line::split(&text[start..at + length], octets, owner_octets)?);
            at += length + 1;
        }
        if !is_last {
            return Some(start);
        }
        if !lines.is_empty() {
            self.process_name(&text[start..at], owner_octets, &lines)?;
        }
        (at == text.len()).then_some(at)
    }

    /// Processes the lines of a name. `text` contains all of them.
    fn process_name(&mut self, text: &[u8], owner_octets: usize, lines: &[Line]) -> Option<()> {
        let is_apex = self.directory.entries.is_empty() && self.chunk_names == 0;
        let is_same_text = text[..=owner_octets] == self.owner;
        let is_next = is_same_text || !is_apex && self.advance_new_zone(&text[..owner_octets])?;
        if self.chunk_names == 0 {
            self.chunk_first_name.clear();
            let name = if is_same_text { self.new.node(self.next).name().wire() } else { &self.wire };
            self.chunk_first_name.extend_from_slice(name);
        }
        if is_apex {
            // Signing changes the records at the apex, so the apex always needs a comparison.
            let part = read_part(text, self.new.apex()).filter(|part| part.node_count() == 1 && is_next)?;
            self.properties.add(part.node(0));
            self.old_nodes.push_node(part.node(0));
            self.add_new_name();
        } else {
            self.compare(text, lines, is_next)?;
        }
        self.chunk_names += 1;
        self.chunk_octets += text.len() as u64;
        if self.chunk_octets >= MIN_CHUNK_OCTETS { self.end_chunk() } else { Some(()) }
    }

    /// Moves to the first node of the new zone at or after the name `owner`, and returns whether it
    /// has this name. The text of the name differs from that of the next node. Returns `None` if
    /// the name does not follow the last one.
    fn advance_new_zone(&mut self, owner: &[u8]) -> Option<bool> {
        self.wire.clear();
        push_name_from_text(owner, None, &mut self.wire).ok()?;
        let wire = std::mem::take(&mut self.wire);
        let name = NameRef::from_wire_unchecked(&wire);
        let last = match &self.last {
            LastName::InNewZone(index) => self.new.node(*index).name(),
            LastName::Removed(wire) => NameRef::from_wire_unchecked(wire),
        };
        last.cmp_canonical(name).is_lt().then_some(())?;
        let is_next = loop {
            if self.next >= self.new.node_count() {
                break false;
            }
            match self.new.node(self.next).name().cmp_canonical(name) {
                std::cmp::Ordering::Less => self.add_new_name(),
                order => break order.is_eq(),
            }
        };
        self.wire = wire;
        Some(is_next)
    }

    /// Adds the next name of the new zone to the names that differ, and moves to the name after it.
    fn add_new_name(&mut self) {
        self.new_nodes.push_node(self.new.node(self.next));
        self.last = LastName::InNewZone(self.next);
        self.next += 1;
        self.render_next();
    }

    /// Renders the owner and the data lines of the next name of the new zone.
    fn render_next(&mut self) {
        self.owner.clear();
        self.expected.clear();
        if self.next < self.new.node_count() {
            let node = self.new.node(self.next);
            push_data_lines(node, &mut self.prefix, &mut self.owner, &mut self.expected);
        }
    }

    /// Compares the data with those of the next node of the new zone, if `is_next` states that it
    /// has the same name. Also checks the signatures and the denial records.
    fn compare(&mut self, text: &[u8], lines: &[Line], is_next: bool) -> Option<()> {
        let (mut is_same, mut has_data, mut at) = (true, false, 0);
        // The type that the next signatures must cover, and whether a signature is required.
        let (mut covered, mut needs_signature) = (&[][..], false);
        let mut signatures = 0;
        for line in lines {
            let rtype = &text[line.rtype.clone()];
            if rtype == b"RRSIG" {
                let fields = self.parse_signature(text, line, covered)?;
                self.properties.add_signature(&fields);
                signatures += 1;
                needs_signature = false;
                continue;
            }
            if std::mem::take(&mut signatures) > 0 {
                self.properties.end_signatures();
            }
            if needs_signature || rtype == b"NSEC3PARAM" {
                return None;
            }
            covered = rtype;
            if rtype == b"NSEC" || rtype == b"NSEC3" {
                self.add_chain_record(text, line)?;
                needs_signature = true;
                continue;
            }
            has_data = true;
            let octets = &text[line.octets.start..=line.octets.end];
            is_same = is_same && self.expected[at..].starts_with(octets);
            at += octets.len();
            at = at.min(self.expected.len());
        }
        if signatures > 0 {
            self.properties.end_signatures();
        }
        self.properties.add_records(lines.len() as u32);
        if needs_signature {
            return None;
        }
        let differs = if is_next { !is_same || at != self.expected.len() } else { has_data };
        if differs {
            let part = read_part(text, self.new.apex()).filter(|part| part.node_count() == 1)?;
            self.old_nodes.push_node(part.node(0));
        }
        match (is_next, differs) {
            (true, true) => self.add_new_name(),
            (true, false) => {
                self.last = LastName::InNewZone(self.next);
                self.next += 1;
                self.render_next();
            }
            (false, _) => self.last = LastName::Removed(self.wire.clone()),
        }
        Some(())
    }

    /// Parses a signature, which must cover the type `covered`.
    fn parse_signature(&self, text: &[u8], line: &Line, covered: &[u8]) -> Option<SignatureFields> {
        let mut fields = text[line.rdata..line.octets.end].splitn(9, |octet| *octet == b' ');
        let mut next = || fields.next();
        (next()? == covered).then_some(())?;
        let (algorithm, labels, ttl) = (next()?, next()?, next()?);
        let (expiration, inception) = (timestamp::parse(next()?)?, timestamp::parse(next()?)?);
        let (tag, signer, octets) = (next()?, next()?, next()?);
        let is_valid = parse_decimal(labels).is_some_and(|labels| labels < 128)
            && signer.eq_ignore_ascii_case(&self.signer)
            && octets.len().is_multiple_of(4)
            && is_base64(octets);
        is_valid.then_some(SignatureFields {
            algorithm: parse_decimal(algorithm)?.try_into().ok()?,
            has_ttl: ttl == &text[line.ttl.clone()],
            expiration,
            inception,
            tag: parse_decimal(tag)?.try_into().ok()?,
        })
    }

    /// Adds an NSEC or NSEC3 record to the properties of the chunk.
    fn add_chain_record(&mut self, text: &[u8], line: &Line) -> Option<()> {
        let rdata = &text[line.rdata..line.octets.end];
        let is_nsec3 = &text[line.rtype.clone()] == b"NSEC3";
        // Hash algorithm, flags, iterations and salt are usually equal in all NSEC3 records.
        let mut blanks = rdata.iter().enumerate().filter(|(_, octet)| **octet == b' ');
        let end = if is_nsec3 { blanks.nth(3)?.0 } else { 0 };
        let start = &text[line.ttl.start..line.rdata + end];
        if start != self.chain_start {
            self.current_chain_pattern.clear();
            let ttl = parse_decimal(&text[line.ttl.clone()])?;
            let (rtype, fields) = if is_nsec3 {
                (Rtype::NSEC3, nsec3_fields(&rdata[..end])?)
            } else {
                (Rtype::NSEC, Vec::new())
            };
            chain_pattern(rtype, ttl, &fields, &mut self.current_chain_pattern);
            self.chain_start.clear();
            self.chain_start.extend_from_slice(start);
        }
        self.properties.add_chain_pattern(&self.current_chain_pattern);
        Some(())
    }

    /// Adds the current chunk to the directory.
    fn end_chunk(&mut self) -> Option<()> {
        let properties = self.properties.build(&mut self.directory.patterns);
        let size = Size { nodes: self.chunk_names, ..Size::default() };
        self.directory.push_octets(
            &self.chunk_first_name,
            size,
            self.chunk_octets,
            properties,
            [0; DIGEST_OCTETS],
        )?;
        self.properties.clear();
        (self.chunk_names, self.chunk_octets) = (0, 0);
        Some(())
    }

    /// Ends the comparison. The remaining names of the new zone follow the last name of the file.
    fn end(&mut self) -> Option<()> {
        while self.next < self.new.node_count() {
            self.add_new_name();
        }
        if self.chunk_names > 0 { self.end_chunk() } else { Some(()) }
    }
}

/// Parses a number that consists only of digits.
fn parse_decimal(text: &[u8]) -> Option<u32> {
    let digit = |octet: &u8| octet.is_ascii_digit().then(|| u32::from(octet - b'0'));
    let add = |sum: u32, octet: &u8| sum.checked_mul(10)?.checked_add(digit(octet)?);
    text.first()?;
    text.iter().try_fold(0, add)
}

/// Whether all octets are base64 characters. Padding may be at any position.
fn is_base64(text: &[u8]) -> bool {
    let is_wrong = |octet: &u8| !(octet.is_ascii_alphanumeric() | matches!(octet, b'+' | b'/' | b'='));
    !text.is_empty() && !text.iter().fold(false, |wrong, octet| wrong | is_wrong(octet))
}

/// Converts hash algorithm, flags, iterations and salt from text (RFC 5155 §3.3) to wire format
/// (§3.2).
fn nsec3_fields(text: &[u8]) -> Option<Vec<u8>> {
    let mut fields = text.split(|octet| *octet == b' ');
    let mut next = || fields.next();
    let mut out = vec![parse_decimal(next()?)?.try_into().ok()?, parse_decimal(next()?)?.try_into().ok()?];
    out.extend_from_slice(&u16::try_from(parse_decimal(next()?)?).ok()?.to_be_bytes());
    let salt = match next()? {
        b"-" => Vec::new(),
        salt => data_encoding::HEXLOWER_PERMISSIVE.decode(salt).ok()?,
    };
    out.push(salt.len().try_into().ok()?);
    out.extend_from_slice(&salt);
    Some(out)
}
