//! Reading compiled zones. The file is read once, from front to end, hashed on the way; nothing of it is used before its
//! digest is found right and its contents are checked.

use super::*;
use crate::contents::{Contents, NodeEntry, RrsetEntry};
use nonesuch_proto::{NameRef, Rtype};
use std::io::Read;

/// Octets that are read, hashed and taken over at once; a multiple of what an entry takes.
const BLOCK: usize = 4096 * RRSET;

/// Takes a compiled zone from `octets`.
///
/// # Errors
/// What keeps the octets from being a compiled zone.
pub fn read(octets: &[u8]) -> Result<(Contents, Verification), CompiledError> {
    read_from(&mut &octets[..], octets.len() as u64)
}

/// Takes a compiled zone of `length` octets from `source`, from its beginning on.
///
/// # Errors
/// What keeps the octets from being a compiled zone, and those of `source`.
pub fn read_from(source: &mut impl Read, length: u64) -> Result<(Contents, Verification), CompiledError> {
    let mut source = Source { source, hasher: blake3::Hasher::new(), at: 0, length };
    let header = source.read_header()?;
    let mut contents =
        Contents { apex: header.apex, names: vec![], rdata: vec![], nodes: vec![], rrsets: vec![] };
    for section in &header.sections {
        source.skip(section.offset - source.at)?;
        match section.kind {
            NAMES => contents.names = source.take_octets(section.length)?,
            RDATA => contents.rdata = source.take_octets(section.length)?,
            NODES => contents.nodes = source.take_entries(section.length, node)?,
            RRSETS => contents.rrsets = source.take_entries(section.length, rrset)?,
            _ => source.skip(section.length)?,
        }
    }
    source.check_digest()?;
    check::check(&contents)?;
    if contents.soa().map(|soa| soa.serial) != Some(header.serial) {
        return Err(CompiledError::Layout("serial"));
    }
    if (header.flags & SIGNED != 0) != contents.apex_rrset(Rtype::DNSKEY).is_some() {
        return Err(CompiledError::Layout("flags"));
    }
    Ok((contents, header.verification))
}

fn node(octets: &[u8; NODE]) -> NodeEntry {
    NodeEntry { name: word(octets, 0), first_rrset: word(octets, 4) }
}

fn rrset(octets: &[u8; RRSET]) -> RrsetEntry {
    let short = |at: usize| Rtype(u16::from_le_bytes([octets[at], octets[at + 1]]));
    RrsetEntry {
        start: long(octets, 0),
        ttl: word(octets, 8),
        rtype: short(12),
        covered: short(14),
        count: word(octets, 16),
    }
}

fn word(octets: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

fn long(octets: &[u8], at: usize) -> u64 {
    u64::from(word(octets, at)) | u64::from(word(octets, at + 4)) << 32
}

/// What stands before the sections.
struct Header {
    flags: u32,
    serial: u32,
    verification: Verification,
    apex: Name,
    sections: Vec<Section>,
}

/// Octets that are counted and hashed while they are read.
struct Source<'s, R> {
    source: &'s mut R,
    hasher: blake3::Hasher,
    at: u64,
    /// Octets that there are.
    length: u64,
}

impl<R: Read> Source<'_, R> {
    /// Fills `octets`; what ends before is cut off.
    fn fill(&mut self, octets: &mut [u8]) -> Result<(), CompiledError> {
        self.source.read_exact(octets).map_err(|error| self.cut_off(error))?;
        self.hasher.update(octets);
        self.at += octets.len() as u64;
        Ok(())
    }

    fn cut_off(&self, error: io::Error) -> CompiledError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                CompiledError::Truncated { expected: self.length, found: self.at }
            }
            _ => CompiledError::Io(error),
        }
    }

    fn read_header(&mut self) -> Result<Header, CompiledError> {
        let mut octets = [0; HEADER];
        let known = HEADER.min(self.length as usize);
        self.fill(&mut octets[..known])?;
        if !is_compiled(&octets) {
            return Err(CompiledError::NotCompiled);
        }
        if known < HEADER {
            return Err(CompiledError::Truncated { expected: HEADER as u64, found: known as u64 });
        }
        match (word(&octets, 8), word(&octets, 12)) {
            (_, mark) if mark == BYTE_ORDER.swap_bytes() => return Err(CompiledError::ByteOrder),
            (version, _) if version != VERSION => return Err(CompiledError::Version(version)),
            (_, mark) if mark != BYTE_ORDER => return Err(CompiledError::Layout("header")),
            _ => {}
        }
        let expected = long(&octets, 16);
        match self.length {
            found if found < expected => return Err(CompiledError::Truncated { expected, found }),
            found if found > expected => return Err(CompiledError::TooLong { expected, found }),
            _ => {}
        }
        let [count, flags, kind, at, serial] = [24, 28, 32, 36, 40].map(|place| word(&octets, place));
        let verification = match kind {
            0 => Verification::Nothing,
            1 => Verification::Structural { at },
            2 => Verification::Full { at },
            _ => return Err(CompiledError::Layout("verification")),
        };
        let apex = NameRef::split_from(&octets[48..304]).map_err(|_| CompiledError::Layout("apex"))?.0;
        let sections = self.read_table(count)?;
        Ok(Header { flags, serial, verification, apex: apex.to_name(), sections })
    }

    /// Sections follow one another without overlap up to the digest, and those of the contents are there once.
    fn read_table(&mut self, count: u32) -> Result<Vec<Section>, CompiledError> {
        if count > MAX_SECTIONS {
            return Err(CompiledError::Layout("number of sections"));
        }
        let wrong = || CompiledError::Layout("table of sections");
        let limit = self.length.checked_sub(DIGEST as u64).ok_or_else(wrong)?;
        let mut sections: Vec<Section> = Vec::with_capacity(count as usize);
        let mut end = (HEADER + count as usize * TABLE_ENTRY) as u64;
        for _ in 0..count {
            let mut octets = [0; TABLE_ENTRY];
            self.fill(&mut octets)?;
            let section =
                Section { kind: word(&octets, 0), offset: long(&octets, 8), length: long(&octets, 16) };
            if section.offset != aligned(end) {
                return Err(wrong());
            }
            end = section.offset.checked_add(section.length).filter(|end| *end <= limit).ok_or_else(wrong)?;
            if !(NAMES..=RRSETS).contains(&section.kind) && section.kind < OPTIONAL {
                return Err(CompiledError::UnknownSection(section.kind));
            }
            if sections.iter().any(|other| other.kind == section.kind) {
                return Err(wrong());
            }
            sections.push(section);
        }
        let is_there = |kind| sections.iter().any(|section| section.kind == kind);
        if end != limit || !(NAMES..=RRSETS).all(is_there) { Err(wrong()) } else { Ok(sections) }
    }

    fn skip(&mut self, octets: u64) -> Result<(), CompiledError> {
        let mut room = vec![0; BLOCK.min(octets as usize)];
        let end = self.at + octets;
        while self.at < end {
            let length = room.len().min((end - self.at) as usize);
            self.fill(&mut room[..length])?;
        }
        Ok(())
    }

    fn take_octets(&mut self, length: u64) -> Result<Vec<u8>, CompiledError> {
        let mut octets = reserve(length)?;
        let end = self.at + length;
        while self.at < end {
            let start = octets.len();
            let wanted = (BLOCK as u64).min(end - self.at);
            let found = self.source.by_ref().take(wanted).read_to_end(&mut octets)?;
            self.hasher.update(&octets[start..]);
            self.at += found as u64;
            if (found as u64) < wanted {
                return Err(self.cut_off(io::ErrorKind::UnexpectedEof.into()));
            }
        }
        Ok(octets)
    }

    fn take_entries<const N: usize, T>(
        &mut self,
        length: u64,
        entry: impl Fn(&[u8; N]) -> T,
    ) -> Result<Vec<T>, CompiledError> {
        // Numbers of nodes and RRsets have 32 bits.
        if !length.is_multiple_of(N as u64) || length / N as u64 > u64::from(u32::MAX) {
            return Err(CompiledError::Layout("section"));
        }
        let mut entries = reserve(length / N as u64)?;
        let mut room = vec![0; BLOCK.min(length as usize)];
        let end = self.at + length;
        while self.at < end {
            let part = room.len().min((end - self.at) as usize);
            self.fill(&mut room[..part])?;
            entries.extend(room[..part].as_chunks::<N>().0.iter().map(&entry));
        }
        Ok(entries)
    }

    fn check_digest(&mut self) -> Result<(), CompiledError> {
        let digest = self.hasher.finalize();
        let mut stated = [0; DIGEST];
        self.fill(&mut stated)?;
        if digest == blake3::Hash::from_bytes(stated) { Ok(()) } else { Err(CompiledError::Altered) }
    }
}

/// Room for `count` entries; too many are an error, not an abort.
fn reserve<T>(count: u64) -> Result<Vec<T>, CompiledError> {
    let mut entries = Vec::new();
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    entries.try_reserve_exact(count).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    Ok(entries)
}
