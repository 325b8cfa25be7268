//! Writing compiled zones: all lengths are known beforehand, so it needs no place to seek in.

use super::*;
use crate::contents::Contents;
use crate::splice::{Span, Splice};
use nonesuch_proto::Rtype;
use std::io::Write;

/// Octets that are hashed and written at once, while they are in the processor's cache.
const BLOCK: usize = 1 << 20;

/// Writes `contents` as a compiled zone; `verification` says what was verified of them.
///
/// # Errors
/// Those of `out`.
pub fn write(contents: &Contents, verification: Verification, out: &mut impl Write) -> io::Result<()> {
    write_as(contents, &Facts::of(contents, verification), out)
}

/// Writes `splice` as a compiled zone, without a copy of it; otherwise as [`write`].
///
/// # Errors
/// Those of `out`.
pub fn write_splice(splice: &Splice<'_>, verification: Verification, out: &mut impl Write) -> io::Result<()> {
    let facts = Facts::of(&splice.head(), verification);
    write_spans(splice.apex(), splice.spans(), &facts, out)
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
    write_spans(contents.apex(), &[Span::of(contents)], facts, out)
}

fn write_spans(apex: &Name, spans: &[Span<'_>], facts: &Facts, out: &mut impl Write) -> io::Result<()> {
    let sum = |length: fn(&Span<'_>) -> usize| spans.iter().map(length).sum::<usize>();
    let lengths = [
        (NAMES, sum(|span| span.names().len())),
        (RDATA, sum(|span| span.rdata().len())),
        (NODES, sum(|span| span.nodes().len()) * NODE),
        (RRSETS, sum(|span| span.rrsets().len()) * RRSET),
    ];
    let mut end = (HEADER + lengths.len() * TABLE_ENTRY) as u64;
    let sections = lengths.map(|(kind, length)| {
        let section = Section { kind, offset: aligned(end), length: length as u64 };
        end = section.offset + section.length;
        section
    });
    let mut out = Hashing { out, hasher: blake3::Hasher::new(), at: 0, block: Vec::with_capacity(BLOCK) };
    out.put(&header(apex, facts, &sections, end + DIGEST as u64))?;
    for section in sections {
        out.fill_to(section.offset)?;
        match section.kind {
            NAMES => spans.iter().try_for_each(|span| out.put(span.names()))?,
            RDATA => spans.iter().try_for_each(|span| out.put(span.rdata()))?,
            NODES => put_nodes(spans, &mut out)?,
            _ => put_rrsets(spans, &mut out)?,
        }
    }
    out.finish()
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

fn put_nodes(spans: &[Span<'_>], out: &mut Hashing<'_, impl Write>) -> io::Result<()> {
    let (mut names, mut rrsets) = (0, 0);
    for span in spans {
        let start = span.start();
        for node in span.nodes() {
            let mut octets = [0; NODE];
            octets[..4].copy_from_slice(&(node.name - start.names + names).to_le_bytes());
            octets[4..].copy_from_slice(&(node.first_rrset - start.rrsets + rrsets).to_le_bytes());
            out.put(&octets)?;
        }
        names += span.names().len() as u32;
        rrsets += span.rrsets().len() as u32;
    }
    Ok(())
}

fn put_rrsets(spans: &[Span<'_>], out: &mut Hashing<'_, impl Write>) -> io::Result<()> {
    let mut rdata = 0;
    for span in spans {
        let start = span.start();
        for rrset in span.rrsets() {
            let mut octets = [0; RRSET];
            octets[..8].copy_from_slice(&(rrset.start - start.rdata + rdata).to_le_bytes());
            octets[8..12].copy_from_slice(&rrset.ttl.to_le_bytes());
            octets[12..14].copy_from_slice(&rrset.rtype.0.to_le_bytes());
            octets[14..16].copy_from_slice(&rrset.covered.0.to_le_bytes());
            octets[16..20].copy_from_slice(&rrset.count.to_le_bytes());
            out.put(&octets)?;
        }
        rdata += span.rdata().len() as u64;
    }
    Ok(())
}

/// Hashes what it passes on, block by block: many short pieces cost no more than a few long ones.
struct Hashing<'o, W> {
    out: &'o mut W,
    hasher: blake3::Hasher,
    at: u64,
    /// What is neither hashed nor written yet, less than a block.
    block: Vec<u8>,
}

impl<W: Write> Hashing<'_, W> {
    #[inline]
    fn put(&mut self, mut octets: &[u8]) -> io::Result<()> {
        self.at += octets.len() as u64;
        while self.block.len() + octets.len() >= BLOCK {
            let (head, tail) = octets.split_at(BLOCK - self.block.len());
            self.block.extend_from_slice(head);
            self.flush()?;
            octets = tail;
        }
        self.block.extend_from_slice(octets);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.block);
        self.out.write_all(&self.block)?;
        self.block.clear();
        Ok(())
    }

    fn fill_to(&mut self, offset: u64) -> io::Result<()> {
        let missing = (offset - self.at) as usize;
        self.put(&[0; ALIGNMENT as usize][..missing])
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.write_all(self.hasher.finalize().as_bytes())
    }
}
