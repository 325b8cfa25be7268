//! Writing compiled zones: all lengths are known beforehand, so it needs no place to seek in.

use super::*;
use crate::contents::Contents;
use nonesuch_proto::Rtype;
use std::io::Write;

/// Entries that are turned into octets at once.
const BLOCK: usize = 4096;

/// Writes `contents` as a compiled zone; `verification` says what was verified of them.
///
/// # Errors
/// Those of `out`.
pub fn write(contents: &Contents, verification: Verification, out: &mut impl Write) -> io::Result<()> {
    write_as(contents, &Facts::of(contents, verification), out)
}

/// What the header says of the zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    flags: u32,
    serial: u32,
    verification: Verification,
}

impl Facts {
    pub(super) fn of(contents: &Contents, verification: Verification) -> Self {
        let flags = if contents.apex_rrset(Rtype::DNSKEY).is_some() { SIGNED } else { 0 };
        Self { flags, serial: contents.soa().map_or(0, |soa| soa.serial), verification }
    }
}

/// Writes `contents` below a header of these `facts`.
pub(super) fn write_as(contents: &Contents, facts: &Facts, out: &mut impl Write) -> io::Result<()> {
    let lengths = [
        (NAMES, contents.names.len()),
        (RDATA, contents.rdata.len()),
        (NODES, contents.nodes.len() * NODE),
        (RRSETS, contents.rrsets.len() * RRSET),
    ];
    let mut end = (HEADER + lengths.len() * TABLE_ENTRY) as u64;
    let sections = lengths.map(|(kind, length)| {
        let section = Section { kind, offset: aligned(end), length: length as u64 };
        end = section.offset + section.length;
        section
    });
    let mut out = Hashing { out, hasher: blake3::Hasher::new(), at: 0 };
    out.put(&header(contents.apex(), facts, &sections, end + DIGEST as u64))?;
    for section in sections {
        out.fill_to(section.offset)?;
        match section.kind {
            NAMES => out.put(&contents.names)?,
            RDATA => out.put(&contents.rdata)?,
            NODES => put_nodes(contents, &mut out)?,
            _ => put_rrsets(contents, &mut out)?,
        }
    }
    let digest = out.hasher.finalize();
    out.out.write_all(digest.as_bytes())
}

fn header(apex: &Name, facts: &Facts, sections: &[Section], length: u64) -> Vec<u8> {
    let (kind, at) = match facts.verification {
        Verification::Nothing => (0u32, 0),
        Verification::Structural { at } => (1, at),
        Verification::Full { at } => (2, at),
    };
    let mut out = Vec::with_capacity(HEADER + sections.len() * TABLE_ENTRY);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&BYTE_ORDER.to_le_bytes());
    out.extend_from_slice(&length.to_le_bytes());
    for word in [sections.len() as u32, facts.flags, kind, at, facts.serial, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(apex.wire());
    out.resize(HEADER, 0);
    for section in sections {
        out.extend_from_slice(&section.kind.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&section.offset.to_le_bytes());
        out.extend_from_slice(&section.length.to_le_bytes());
    }
    out
}

fn put_nodes(contents: &Contents, out: &mut Hashing<'_, impl Write>) -> io::Result<()> {
    let mut octets = Vec::with_capacity(BLOCK * NODE);
    for block in contents.nodes.chunks(BLOCK) {
        octets.clear();
        for node in block {
            octets.extend_from_slice(&node.name.to_le_bytes());
            octets.extend_from_slice(&node.first_rrset.to_le_bytes());
        }
        out.put(&octets)?;
    }
    Ok(())
}

fn put_rrsets(contents: &Contents, out: &mut Hashing<'_, impl Write>) -> io::Result<()> {
    let mut octets = Vec::with_capacity(BLOCK * RRSET);
    for block in contents.rrsets.chunks(BLOCK) {
        octets.clear();
        for rrset in block {
            octets.extend_from_slice(&rrset.start.to_le_bytes());
            octets.extend_from_slice(&rrset.ttl.to_le_bytes());
            octets.extend_from_slice(&rrset.rtype.0.to_le_bytes());
            octets.extend_from_slice(&rrset.covered.0.to_le_bytes());
            octets.extend_from_slice(&rrset.count.to_le_bytes());
            octets.extend_from_slice(&[0; 4]);
        }
        out.put(&octets)?;
    }
    Ok(())
}

/// Hashes what it passes on.
struct Hashing<'o, W> {
    out: &'o mut W,
    hasher: blake3::Hasher,
    at: u64,
}

impl<W: Write> Hashing<'_, W> {
    fn put(&mut self, octets: &[u8]) -> io::Result<()> {
        // In pieces that are hashed and written while they are in the processor's cache.
        for piece in octets.chunks(1 << 18) {
            self.hasher.update(piece);
            self.out.write_all(piece)?;
        }
        self.at += octets.len() as u64;
        Ok(())
    }

    fn fill_to(&mut self, offset: u64) -> io::Result<()> {
        let missing = (offset - self.at) as usize;
        self.put(&[0; ALIGNMENT as usize][..missing])
    }
}
