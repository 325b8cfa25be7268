//! Writer for zone files: one record per line, canonical order, absolute names.

use crate::compiled::{Block, CompiledError, StoredZone};
use crate::contents::{Contents, Node, Rrset};
use crate::ordered::for_each_ordered;
use crate::splice::{Part, Splice};
use nonesuch_proto::{NameRef, Rtype, rdata, text};
use std::io::{self, Write};
use std::ops::Range;

/// Number of nodes that a thread converts to text at once.
const CHUNK_NODES: usize = 2048;

/// Writes `splice` as a zone file. Copies the lines of nodes that are unchanged in a signed zone
/// file.
///
/// # Errors
/// Errors of `out`, and errors of reading the copied parts.
pub fn write_splice(splice: &Splice<'_>, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer { block: Block::new(out), line: Line::default(), text: Vec::new() };
    let apex = splice.apex().view();
    for part in splice.parts() {
        match part {
            Part::Nodes(contents, places) => {
                places.clone().try_for_each(|place| writer.put_node(contents.node(place), apex))?;
            }
            Part::Stored(zone, places) => writer.put_places(zone, places.clone(), apex)?,
        }
    }
    writer.block.flush()
}

struct Writer<'o, W> {
    block: Block<'o, W>,
    line: Line,
    /// The lines of a name.
    text: Vec<u8>,
}

impl<W: Write> Writer<'_, W> {
    fn put_node(&mut self, node: Node<'_>, apex: NameRef<'_>) -> io::Result<()> {
        self.text.clear();
        push_lines(node, apex, &mut self.line, &mut self.text);
        self.block.put(&self.text)
    }

    fn put_places(
        &mut self,
        zone: &StoredZone,
        mut places: Range<usize>,
        apex: NameRef<'_>,
    ) -> io::Result<()> {
        while !places.is_empty() {
            if let Some(next) = zone.pass_on_text(places.clone(), &mut self.block)? {
                places.start = next;
                continue;
            }
            let Some(node) = zone.node(places.start) else {
                let error = zone.failure().unwrap_or(CompiledError::Altered);
                return Err(io::Error::other(error));
            };
            self.put_node(node, apex)?;
            places.start += 1;
        }
        zone.check_as_before()
    }
}

/// Writes `contents` as a zone file, the SOA record first.
///
/// # Errors
/// Errors of `out`.
pub fn write_zone(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    let count = contents.node_count();
    for_each_ordered(
        count.div_ceil(CHUNK_NODES),
        |chunk, line: &mut Line, text: &mut Vec<u8>| {
            text.clear();
            let end = ((chunk + 1) * CHUNK_NODES).min(count);
            let apex = contents.apex().view();
            (chunk * CHUNK_NODES..end).for_each(|index| push_lines(contents.node(index), apex, line, text));
            Ok(())
        },
        |text| out.write_all(text),
    )
}

/// Writes `zone` as a zone file, chunk by chunk. Only a few chunks of a compiled zone are in memory
/// at a time.
///
/// # Errors
/// Errors of `out`, and errors of reading the zone.
pub fn write_stored(zone: &StoredZone, out: &mut impl Write) -> io::Result<()> {
    for_each_ordered(
        zone.chunks().len(),
        |chunk, (): &mut (), text: &mut Vec<u8>| {
            text.clear();
            push_part(&zone.load(chunk).map_err(io::Error::other)?, text);
            Ok(())
        },
        |text| out.write_all(text),
    )?;
    zone.check_as_before()
}

/// Returns the number of octets that [`write_zone`] writes for `contents`.
#[must_use]
pub fn text_octets(contents: &Contents) -> u64 {
    struct Count(u64);
    impl Write for Count {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0 += octets.len() as u64;
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting cannot fail.
    let _ = write_zone(contents, &mut count);
    count.0
}

/// Appends the lines of `part`, which is a zone or consecutive nodes of one.
pub fn push_part(part: &Contents, out: &mut Vec<u8>) {
    let mut line = Line::default();
    part.nodes().for_each(|node| push_lines(node, part.apex().view(), &mut line, out));
}

/// Start of a line: owner, TTL, class and type. The buffer is reused for every RRset.
#[derive(Default)]
pub(crate) struct Line {
    head: Vec<u8>,
    /// Number of octets of the owner and the tab after it.
    owner: usize,
}

impl Line {
    fn set_owner(&mut self, node: Node<'_>) {
        self.head.clear();
        text::push_name(node.name(), &mut self.head);
        self.head.push(b'\t');
        self.owner = self.head.len();
    }

    fn set_rrset(&mut self, rrset: Rrset<'_>) {
        self.head.truncate(self.owner);
        text::push_decimal(rrset.ttl(), &mut self.head);
        self.head.extend_from_slice(b"\tIN\t");
        let rtype = rrset.rtype();
        match rdata::entry(rtype).filter(|_| !rtype.is_private_use()) {
            Some(entry) => self.head.extend_from_slice(entry.mnemonic.as_bytes()),
            None => self.head.extend_from_slice(rtype.in_zone_text().to_string().as_bytes()),
        }
        self.head.push(b'\t');
    }
}

/// Appends the lines of a node. At the apex, the SOA record is first, as RFC 5936 §2.2 and readers
/// of zone files expect. All other types are in numeric order.
fn push_lines(node: Node<'_>, apex: NameRef<'_>, line: &mut Line, out: &mut Vec<u8>) {
    let is_apex = node.name() == apex;
    line.set_owner(node);
    if is_apex {
        for rrset in node.rrsets().filter(|rrset| rrset.covered() == Rtype::SOA) {
            push_rrset(line, rrset, out);
        }
    }
    for rrset in node.rrsets().filter(|rrset| !is_apex || rrset.covered() != Rtype::SOA) {
        push_rrset(line, rrset, out);
    }
}

/// Appends the lines of a node to `out`, without records that are generated by signing, and the
/// owner with the following tab to `owner`.
pub(crate) fn push_data_lines(node: Node<'_>, line: &mut Line, owner: &mut Vec<u8>, out: &mut Vec<u8>) {
    line.set_owner(node);
    owner.extend_from_slice(&line.head);
    for rrset in node.rrsets().filter(|rrset| !rrset.rtype().is_signature_or_chain()) {
        push_rrset(line, rrset, out);
    }
}

fn push_rrset(line: &mut Line, rrset: Rrset<'_>, out: &mut Vec<u8>) {
    line.set_rrset(rrset);
    for octets in rrset.rdatas() {
        out.extend_from_slice(&line.head);
        rdata::push_text(rrset.rtype(), octets, out);
        rdata::push_comment(rrset.rtype(), octets, out);
        out.push(b'\n');
    }
}
