//! Comparison of a signed zone file with the new unsigned zone. The result is the changes and a
//! directory of the lines of the file. So a zone file that this program has written can be signed
//! again while only the changed records are parsed. All other lines are copied.
//!
//! The file must have the format that this program writes: one record per line with owner, TTL,
//! class and type; absolute names in canonical order; signatures after the RRset that they cover.
//! The reader of zone files processes all other files.

use super::directory::Size;
use super::directory::{Directory, chain_pattern};
use super::gather::{ChunkPropertiesBuilder, SignatureFields};
use super::source::Source;
use super::{CompiledError, DIGEST, StoredZone};
use crate::change::{ChangeSet, is_data, read_part};
use crate::contents::{Contents, NodesBuilder};
use crate::write::{Line as Rendering, push_data_lines};
use memchr::memchr;
use nonesuch_proto::{NameRef, Rtype, push_name_from_text, text, timestamp};
use std::fs::File;
use std::ops::Range;

/// Number of octets that are read at once. The window grows if the lines of a name take more.
const WINDOW: usize = 1 << 20;
/// Maximum octets of the window. A file in which the lines of one name take more is processed by
/// the reader of zone files.
const MAX_WINDOW: usize = 64 << 20;
/// Octets of lines at which a chunk ends. Chunks are short, because parsing records is slow.
const CHUNK: u64 = 2048;

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
    let Comparison { directory, old, fresh, .. } = comparison;
    let (old, fresh) = (Contents::from_nodes(new.apex(), old), Contents::from_nodes(new.apex(), fresh));
    let changes = ChangeSet::between(&old, &fresh, is_data);
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
    /// Splits a line into fields. `owner` is the number of octets of its owner.
    fn split(text: &[u8], octets: Range<usize>, owner: usize) -> Option<Self> {
        let line = &text[..octets.end];
        let ttl = octets.start + owner + 1;
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
enum Last {
    /// The name is this node of the new zone.
    New(usize),
    /// The new zone does not have the name.
    Gone(Vec<u8>),
}

struct Comparison<'n> {
    new: &'n Contents,
    /// The next node of the new zone, its owner followed by a tab, and the lines of its data.
    next: usize,
    owner: Vec<u8>,
    expected: Vec<u8>,
    rendering: Rendering,
    last: Last,
    signer: Vec<u8>,
    /// The names that differ: records in the file, and records in the new zone.
    old: NodesBuilder,
    fresh: NodesBuilder,
    directory: Directory,
    builder: ChunkPropertiesBuilder,
    /// Number of names, octets and first name of the current chunk.
    names: u32,
    octets: u64,
    first: Vec<u8>,
    /// Start of the last NSEC or NSEC3 record, up to the fields that differ between records, and
    /// its pattern.
    link: Vec<u8>,
    link_pattern: Vec<u8>,
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
            rendering: Rendering::default(),
            last: Last::Gone(Vec::new()),
            signer,
            old: NodesBuilder::default(),
            fresh: NodesBuilder::default(),
            directory: Directory::of_text(),
            builder: ChunkPropertiesBuilder::default(),
            names: 0,
            octets: 0,
            first: Vec::new(),
            link: Vec::new(),
            link_pattern: Vec::new(),
            wire: Vec::new(),
        };
        all.render_next();
        all
    }

    /// Reads the file. Returns `false` if it does not have the required format.
    fn read(&mut self, source: &Source<'_>) -> Result<bool, CompiledError> {
        let mut room = vec![0; WINDOW];
        let (mut offset, mut filled) = (0, 0);
        loop {
            let left = source.length() - (offset + filled as u64);
            let part = (room.len() - filled).min(usize::try_from(left).unwrap_or(usize::MAX));
            let read = source.read_at(&mut room[filled..filled + part], offset + filled as u64);
            read.map_err(|error| source.truncated_error(error))?;
            filled += part;
            let is_last = part as u64 == left;
            let Some(used) = self.take_lines(&room[..filled], is_last) else { return Ok(false) };
            if is_last {
                return Ok(self.end().is_some());
            }
            if used == 0 {
                if room.len() >= MAX_WINDOW {
                    return Ok(false);
                }
                room.resize(room.len() * 2, 0);
            }
            room.copy_within(used..filled, 0);
            filled -= used;
            offset += used as u64;
        }
    }

    /// Processes all lines of `text` except those of the last name, which may continue after
    /// `text`. Returns the number of processed octets.
    fn take_lines(&mut self, text: &[u8], is_last: bool) -> Option<usize> {
        let mut lines: Vec<Line> = Vec::new();
        let (mut at, mut start, mut owner) = (0, 0, 0);
        while let Some(length) = memchr(b'\n', &text[at..]) {
            let line = &text[at..at + length];
            let is_same = !lines.is_empty() && line.get(..=owner) == text.get(start..=start + owner);
            if !is_same {
                if !lines.is_empty() {
                    self.take_name(&text[start..at], owner, &lines)?;
                    lines.clear();
                }
                start = at;
                owner = memchr(b'\t', line)?;
            }
            let octets = at - start..at + length - start;
            lines.push(Line::split(&text[start..at + length], octets, owner)?);
            at += length + 1;
        }
        if !is_last {
            return Some(start);
        }
        if !lines.is_empty() {
            self.take_name(&text[start..at], owner, &lines)?;
        }
        (at == text.len()).then_some(at)
    }

    /// Processes the lines of a name.
    fn take_name(&mut self, text: &[u8], owner: usize, lines: &[Line]) -> Option<()> {
        let is_apex = self.directory.entries.is_empty() && self.names == 0;
        let is_written_so = text[..=owner] == self.owner;
        let is_next = is_written_so || !is_apex && self.seek(&text[..owner])?;
        if self.names == 0 {
            self.first.clear();
            let name = if is_written_so { self.new.node(self.next).name().wire() } else { &self.wire };
            self.first.extend_from_slice(name);
        }
        if is_apex {
            // Signing changes the records at the apex, so the apex always needs a comparison.
            let part = read_part(text, self.new.apex()).filter(|part| part.node_count() == 1 && is_next)?;
            self.builder.add(part.node(0));
            self.old.push_node(part.node(0));
            self.push_next();
        } else {
            self.compare(text, lines, is_next)?;
        }
        self.names += 1;
        self.octets += text.len() as u64;
        if self.octets >= CHUNK { self.end_chunk() } else { Some(()) }
    }

    /// Moves to the first node of the new zone at or after the name `owner`, and returns whether it
    /// has this name. The text of the name differs from that of the next node. Returns `None` if
    /// the name does not follow the last one.
    fn seek(&mut self, owner: &[u8]) -> Option<bool> {
        self.wire.clear();
        push_name_from_text(owner, None, &mut self.wire).ok()?;
        let wire = std::mem::take(&mut self.wire);
        let name = NameRef::from_checked(&wire);
        let last = match &self.last {
            Last::New(place) => self.new.node(*place).name(),
            Last::Gone(wire) => NameRef::from_checked(wire),
        };
        last.cmp_canonical(name).is_lt().then_some(())?;
        let is_next = loop {
            if self.next >= self.new.node_count() {
                break false;
            }
            match self.new.node(self.next).name().cmp_canonical(name) {
                std::cmp::Ordering::Less => self.push_next(),
                order => break order.is_eq(),
            }
        };
        self.wire = wire;
        Some(is_next)
    }

    /// Adds the next name of the new zone to the names that differ.
    fn push_next(&mut self) {
        self.fresh.push_node(self.new.node(self.next));
        self.last = Last::New(self.next);
        self.next += 1;
        self.render_next();
    }

    fn render_next(&mut self) {
        self.owner.clear();
        self.expected.clear();
        if self.next < self.new.node_count() {
            let node = self.new.node(self.next);
            push_data_lines(node, &mut self.rendering, &mut self.owner, &mut self.expected);
        }
    }

    /// Compares the data with those of the next node of the new zone, if `is_next` states that it
    /// has the same name. Also checks the signatures and the denial records.
    fn compare(&mut self, text: &[u8], lines: &[Line], is_next: bool) -> Option<()> {
        let (mut is_same, mut has_data, mut at) = (true, false, 0);
        // The type that the next signatures must cover, and whether a signature is required.
        let (mut covered, mut is_open) = (&[][..], false);
        let mut signatures = 0;
        for line in lines {
            let rtype = &text[line.rtype.clone()];
            if rtype == b"RRSIG" {
                let fields = self.signature(text, line, covered)?;
                self.builder.add_signature(&fields);
                signatures += 1;
                is_open = false;
                continue;
            }
            if std::mem::take(&mut signatures) > 0 {
                self.builder.end_signatures();
            }
            if is_open || rtype == b"NSEC3PARAM" {
                return None;
            }
            covered = rtype;
            if rtype == b"NSEC" || rtype == b"NSEC3" {
                self.add_link(text, line)?;
                is_open = true;
                continue;
            }
            has_data = true;
            let octets = &text[line.octets.start..=line.octets.end];
            is_same = is_same && self.expected[at..].starts_with(octets);
            at += octets.len();
            at = at.min(self.expected.len());
        }
        if signatures > 0 {
            self.builder.end_signatures();
        }
        self.builder.add_records(lines.len() as u32);
        if is_open {
            return None;
        }
        let differs = if is_next { !is_same || at != self.expected.len() } else { has_data };
        if differs {
            let part = read_part(text, self.new.apex()).filter(|part| part.node_count() == 1)?;
            self.old.push_node(part.node(0));
        }
        match (is_next, differs) {
            (true, true) => self.push_next(),
            (true, false) => {
                self.last = Last::New(self.next);
                self.next += 1;
                self.render_next();
            }
            (false, _) => self.last = Last::Gone(self.wire.clone()),
        }
        Some(())
    }

    /// Returns the fields of a signature, which must cover the records before it.
    fn signature(&self, text: &[u8], line: &Line, covered: &[u8]) -> Option<SignatureFields> {
        let mut fields = text[line.rdata..line.octets.end].splitn(9, |octet| *octet == b' ');
        let mut next = || fields.next();
        (next()? == covered).then_some(())?;
        let (algorithm, labels, ttl) = (next()?, next()?, next()?);
        let (expiration, inception) = (timestamp::parse(next()?)?, timestamp::parse(next()?)?);
        let (tag, signer, octets) = (next()?, next()?, next()?);
        let is_sound = number(labels).is_some_and(|labels| labels < 128)
            && signer.eq_ignore_ascii_case(&self.signer)
            && octets.len().is_multiple_of(4)
            && is_base64(octets);
        is_sound.then_some(SignatureFields {
            algorithm: number(algorithm)?.try_into().ok()?,
            has_ttl: ttl == &text[line.ttl.clone()],
            expiration,
            inception,
            tag: number(tag)?.try_into().ok()?,
        })
    }

    fn add_link(&mut self, text: &[u8], line: &Line) -> Option<()> {
        let rdata = &text[line.rdata..line.octets.end];
        let is_nsec3 = &text[line.rtype.clone()] == b"NSEC3";
        // Hash algorithm, flags, iterations and salt are usually equal in all NSEC3 records.
        let mut blanks = rdata.iter().enumerate().filter(|(_, octet)| **octet == b' ');
        let end = if is_nsec3 { blanks.nth(3)?.0 } else { 0 };
        let head = &text[line.ttl.start..line.rdata + end];
        if head != self.link {
            self.link_pattern.clear();
            let ttl = number(&text[line.ttl.clone()])?;
            let (rtype, fields) = if is_nsec3 {
                (Rtype::NSEC3, nsec3_fields(&rdata[..end])?)
            } else {
                (Rtype::NSEC, Vec::new())
            };
            chain_pattern(rtype, ttl, &fields, &mut self.link_pattern);
            self.link.clear();
            self.link.extend_from_slice(head);
        }
        self.builder.add_link_pattern(&self.link_pattern);
        Some(())
    }

    fn end_chunk(&mut self) -> Option<()> {
        let properties = self.builder.properties(&mut self.directory.patterns);
        let size = Size { nodes: self.names, ..Size::default() };
        self.directory.push_octets(&self.first, size, self.octets, properties, [0; DIGEST])?;
        self.builder.clear();
        (self.names, self.octets) = (0, 0);
        Some(())
    }

    /// Ends the comparison. The remaining names of the new zone follow the last name of the file.
    fn end(&mut self) -> Option<()> {
        while self.next < self.new.node_count() {
            self.push_next();
        }
        if self.names > 0 { self.end_chunk() } else { Some(()) }
    }
}

/// Parses a number that consists only of digits.
fn number(text: &[u8]) -> Option<u32> {
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
    let mut out = vec![number(next()?)?.try_into().ok()?, number(next()?)?.try_into().ok()?];
    out.extend_from_slice(&u16::try_from(number(next()?)?).ok()?.to_be_bytes());
    let salt = match next()? {
        b"-" => Vec::new(),
        salt => data_encoding::HEXLOWER_PERMISSIVE.decode(salt).ok()?,
    };
    out.push(salt.len().try_into().ok()?);
    out.extend_from_slice(&salt);
    Some(out)
}
