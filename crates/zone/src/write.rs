//! Writing zone files: one record a line, canonical order, absolute names.

use crate::contents::{Contents, Node, Rrset};
use crate::ordered::for_each_ordered;
use nonesuch_proto::{Rtype, rdata, text};
use std::io::{self, Write};

/// Nodes rendered at once by one thread.
const CHUNK: usize = 2048;

/// Writes `contents` as a zone file, the SOA record first.
///
/// # Errors
/// Those of `out`.
pub fn write_zone(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    let count = contents.node_count();
    for_each_ordered(
        count.div_ceil(CHUNK),
        |chunk, line: &mut Line, text: &mut Vec<u8>| {
            text.clear();
            let end = ((chunk + 1) * CHUNK).min(count);
            (chunk * CHUNK..end).for_each(|index| push_node(contents, contents.node(index), line, text));
            Ok(())
        },
        |text| out.write_all(text),
    )
}

/// Appends the lines of `part`: a zone, or consecutive nodes of one.
pub fn push_part(part: &Contents, out: &mut Vec<u8>) {
    let mut line = Line::default();
    part.nodes().for_each(|node| push_node(part, node, &mut line, out));
}

/// What lines begin with: owner, TTL, class and type; room that is used again for every RRset.
#[derive(Default)]
struct Line {
    head: Vec<u8>,
    /// Octets of the owner.
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

/// RFC 5936 §2.2 and every reader expect the SOA record first; elsewhere the order of types is numeric.
fn push_node(contents: &Contents, node: Node<'_>, line: &mut Line, out: &mut Vec<u8>) {
    let is_apex = node.name() == contents.apex().view();
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

fn push_rrset(line: &mut Line, rrset: Rrset<'_>, out: &mut Vec<u8>) {
    line.set_rrset(rrset);
    for octets in rrset.rdatas() {
        out.extend_from_slice(&line.head);
        rdata::push_text(rrset.rtype(), octets, out);
        rdata::push_comment(rrset.rtype(), octets, out);
        out.push(b'\n');
    }
}
