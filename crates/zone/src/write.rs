//! Writer for zone files: one record per line, canonical order, absolute names.

use crate::compiled::{BlockWriter, CompiledError, StoredZone};
use crate::contents::{Contents, Node, Rrset};
use crate::ordered::for_each_ordered;
use crate::splice::{Splice, SplicePart};
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
    let mut writer = Writer { out: BlockWriter::new(out), prefix: LinePrefix::default(), text: Vec::new() };
    let apex = splice.apex().view();
    for part in splice.parts() {
        match part {
            SplicePart::Nodes(contents, range) => {
                range.clone().try_for_each(|index| writer.put_node(contents.node(index), apex))?;
            }
            SplicePart::Stored(zone, range) => writer.put_stored_nodes(zone, range.clone(), apex)?,
        }
    }
    writer.out.flush()
}

struct Writer<'o, W> {
    out: BlockWriter<'o, W>,
    prefix: LinePrefix,
    /// The lines of a name.
    text: Vec<u8>,
}

impl<W: Write> Writer<'_, W> {
    fn put_node(&mut self, node: Node<'_>, apex: NameRef<'_>) -> io::Result<()> {
        self.text.clear();
        push_lines(node, apex, &mut self.prefix, &mut self.text);
        self.out.put(&self.text)
    }

    /// Writes the nodes `range` of a stored zone. Copies the lines of whole chunks if the zone is a
    /// zone file.
    fn put_stored_nodes(
        &mut self,
        zone: &StoredZone,
        mut range: Range<usize>,
        apex: NameRef<'_>,
    ) -> io::Result<()> {
        while !range.is_empty() {
            if let Some(next) = zone.copy_lines(range.clone(), &mut self.out)? {
                range.start = next;
                continue;
            }
            let Some(node) = zone.node(range.start) else {
                let error = zone.take_failure().unwrap_or(CompiledError::Altered);
                return Err(io::Error::other(error));
            };
            self.put_node(node, apex)?;
            range.start += 1;
        }
        zone.check_unmodified()
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
        |chunk, prefix: &mut LinePrefix, text: &mut Vec<u8>| {
            text.clear();
            let end = ((chunk + 1) * CHUNK_NODES).min(count);
            let apex = contents.apex().view();
            (chunk * CHUNK_NODES..end).for_each(|index| push_lines(contents.node(index), apex, prefix, text));
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
    zone.check_unmodified()
}

/// Returns the number of octets that [`write_zone`] writes for `contents`.
#[must_use]
pub fn text_octets(contents: &Contents) -> u64 {
    struct OctetCounter(u64);
    impl Write for OctetCounter {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0 += octets.len() as u64;
            Ok(octets.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = OctetCounter(0);
    // Counting cannot fail.
    let _ = write_zone(contents, &mut counter);
    counter.0
}

/// Appends the lines of `part`, which is a whole zone or consecutive nodes of a zone.
pub fn push_part(part: &Contents, out: &mut Vec<u8>) {
    let mut prefix = LinePrefix::default();
    part.nodes().for_each(|node| push_lines(node, part.apex().view(), &mut prefix, out));
}

/// The fields before the RDATA in a line: owner, TTL, class and type, each followed by a tab. The
/// buffer is reused for every RRset.
#[derive(Default)]
pub(crate) struct LinePrefix {
    octets: Vec<u8>,
    /// Number of octets of the owner and the tab after it.
    owner_octets: usize,
}

impl LinePrefix {
    fn set_owner(&mut self, node: Node<'_>) {
        self.octets.clear();
        text::push_name(node.name(), &mut self.octets);
        self.octets.push(b'\t');
        self.owner_octets = self.octets.len();
    }

    fn set_rrset(&mut self, rrset: Rrset<'_>) {
        self.octets.truncate(self.owner_octets);
        text::push_decimal(rrset.ttl(), &mut self.octets);
        self.octets.extend_from_slice(b"\tIN\t");
        let rtype = rrset.rtype();
        match rdata::entry(rtype).filter(|_| !rtype.is_private_use()) {
            Some(entry) => self.octets.extend_from_slice(entry.mnemonic.as_bytes()),
            None => self.octets.extend_from_slice(rtype.in_zone_text().to_string().as_bytes()),
        }
        self.octets.push(b'\t');
    }
}

/// Appends the lines of a node. At the apex, the SOA record is first, as RFC 5936 §2.2 and readers
/// of zone files expect. All other types are in numeric order.
fn push_lines(node: Node<'_>, apex: NameRef<'_>, prefix: &mut LinePrefix, out: &mut Vec<u8>) {
    let is_apex = node.name() == apex;
    prefix.set_owner(node);
    if is_apex {
        for rrset in node.rrsets().filter(|rrset| rrset.covered() == Rtype::SOA) {
            push_rrset(prefix, rrset, out);
        }
    }
    for rrset in node.rrsets().filter(|rrset| !is_apex || rrset.covered() != Rtype::SOA) {
        push_rrset(prefix, rrset, out);
    }
}

/// Appends the lines of a node to `out`, without records that are generated by signing, and the
/// owner with the following tab to `owner`.
pub(crate) fn push_data_lines(
    node: Node<'_>,
    prefix: &mut LinePrefix,
    owner: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    prefix.set_owner(node);
    owner.extend_from_slice(&prefix.octets);
    for rrset in node.rrsets().filter(|rrset| !rrset.rtype().is_signature_or_chain()) {
        push_rrset(prefix, rrset, out);
    }
}

fn push_rrset(prefix: &mut LinePrefix, rrset: Rrset<'_>, out: &mut Vec<u8>) {
    prefix.set_rrset(rrset);
    for octets in rrset.rdatas() {
        out.extend_from_slice(&prefix.octets);
        rdata::push_text(rrset.rtype(), octets, out);
        rdata::push_comment(rrset.rtype(), octets, out);
        out.push(b'\n');
    }
}
