//! Writing zone files: one record a line, canonical order, absolute names.

use crate::contents::{Contents, Node};
use nonesuch_proto::{rdata, text};
use rayon::prelude::*;
use std::io::{self, Write};

/// Nodes rendered at once by one thread.
const CHUNK: usize = 2048;
/// Chunks in memory at once.
const WINDOW: usize = 32;

/// Writes `contents` as a zone file, the SOA record first.
pub fn write_zone(contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    let starts: Vec<usize> = (0..contents.node_count()).step_by(CHUNK).collect();
    for window in starts.chunks(WINDOW) {
        let texts: Vec<Vec<u8>> = window.par_iter().map(|start| render(contents, *start)).collect();
        for text in texts {
            out.write_all(&text)?;
        }
    }
    Ok(())
}

fn render(contents: &Contents, start: usize) -> Vec<u8> {
    let end = (start + CHUNK).min(contents.node_count());
    let mut text = Vec::with_capacity((end - start) * 256);
    for index in start..end {
        push_node(contents.node(index), index == 0, &mut text);
    }
    text
}

/// RFC 5936 §2.2 and every reader expect the SOA record first; elsewhere the order of types is numeric.
fn push_node(node: Node<'_>, is_apex: bool, out: &mut Vec<u8>) {
    let mut owner = Vec::with_capacity(64);
    text::push_name(node.name(), &mut owner);
    let soa = nonesuch_proto::Rtype::SOA;
    if is_apex {
        for rrset in node.rrsets().filter(|rrset| rrset.covered() == soa) {
            push_rrset(&owner, rrset, out);
        }
    }
    for rrset in node.rrsets().filter(|rrset| !is_apex || rrset.covered() != soa) {
        push_rrset(&owner, rrset, out);
    }
}

fn push_rrset(owner: &[u8], rrset: crate::Rrset<'_>, out: &mut Vec<u8>) {
    let mut middle = Vec::with_capacity(24);
    middle.push(b'\t');
    text::push_decimal(rrset.ttl(), &mut middle);
    middle.extend_from_slice(format!("\tIN\t{}\t", rrset.rtype().in_zone_text()).as_bytes());
    for octets in rrset.rdatas() {
        out.extend_from_slice(owner);
        out.extend_from_slice(&middle);
        rdata::push_text(rrset.rtype(), octets, out);
        rdata::push_comment(rrset.rtype(), octets, out);
        out.push(b'\n');
    }
}
