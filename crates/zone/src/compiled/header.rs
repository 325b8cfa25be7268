//! Header and trailer of a compiled zone.

use super::source::{Source, u32_le, u64_le};
use super::*;
use crate::contents::Contents;
use nonesuch_proto::{NameRef, Rtype};

/// Offset in the header of the digest of the algorithm tables, which extends to the end of the
/// header.
const TABLES: usize = HEADER - TABLES_DIGEST;

/// Fields of the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderFields {
    pub(super) flags: u32,
    pub(super) serial: u32,
    pub(super) verification: Verification,
    /// Octets at which a chunk ends.
    pub(super) chunk: u32,
}

impl HeaderFields {
    /// Returns the fields for unchanged contents. Sets the flag for different TTLs if the contents
    /// have such RRsets.
    pub(super) fn of_whole(contents: &Contents, verification: Verification, chunk: u32) -> Self {
        let mut fields = Self::of(contents, verification, chunk);
        fields.flags |= if contents.has_mixed_ttls() { HAS_MIXED_TTLS } else { 0 };
        fields
    }

    /// Returns the fields for a zone with this apex and with one TTL in each RRset.
    pub(super) fn of(apex: &Contents, verification: Verification, chunk: u32) -> Self {
        let flags = if apex.apex_rrset(Rtype::DNSKEY).is_some() { SIGNED } else { 0 };
        Self { flags, serial: apex.soa().map_or(0, |soa| soa.serial), verification, chunk }
    }

    /// Whether there are RRsets with records of different TTLs.
    pub(super) const fn has_mixed_ttls(&self) -> bool {
        self.flags & HAS_MIXED_TTLS != 0
    }

    /// Checks that the fields match the zone with this apex.
    pub(super) fn check(&self, apex: &Contents) -> Result<(), CompiledError> {
        let right = Self::of(apex, self.verification, self.chunk);
        if right.serial != self.serial {
            return Err(CompiledError::Layout("serial"));
        }
        if right.flags != self.flags & !HAS_MIXED_TTLS { Err(CompiledError::Layout("flags")) } else { Ok(()) }
    }
}

pub(super) fn header(apex: &Name, fields: &HeaderFields) -> [u8; HEADER] {
    let [kind, at] = fields.verification.to_words();
    let mut out = [0; HEADER];
    out[..8].copy_from_slice(&MAGIC);
    let words = [VERSION, BYTE_ORDER, fields.flags, kind, at, fields.serial, fields.chunk];
    for (place, word) in out[8..36].as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
    out[48..48 + apex.wire().len()].copy_from_slice(apex.wire());
    out[TABLES..].copy_from_slice(&tables_digest());
    out
}

/// Returns the trailer of a file whose directory is at `offset`.
pub(super) fn trailer(
    header: &[u8; HEADER],
    directory: &[u8],
    offset: u64,
    chunks: u32,
    patterns: u32,
) -> [u8; TRAILER] {
    let mut out = [0; TRAILER];
    let length = offset + directory.len() as u64 + TRAILER as u64;
    out[..8].copy_from_slice(&offset.to_le_bytes());
    out[8..16].copy_from_slice(&length.to_le_bytes());
    out[16..20].copy_from_slice(&chunks.to_le_bytes());
    out[20..24].copy_from_slice(&patterns.to_le_bytes());
    let digest = digest(header, directory, &out[..TRAILER_NUMBERS]);
    out[TRAILER_NUMBERS..TRAILER_NUMBERS + DIGEST].copy_from_slice(&digest);
    out[TRAILER_NUMBERS + DIGEST..].copy_from_slice(&END_MAGIC);
    out
}

pub(super) fn digest(header: &[u8], directory: &[u8], numbers: &[u8]) -> [u8; DIGEST] {
    *blake3::Hasher::new().update(header).update(directory).update(numbers).finalize().as_bytes()
}

/// Header, trailer, and the octets of the directory, with a verified digest.
pub(super) struct Envelope {
    pub(super) apex: Name,
    pub(super) header: HeaderFields,
    pub(super) directory: Vec<u8>,
    /// Offset of the directory, and end of the chunks.
    pub(super) offset: u64,
    pub(super) chunks: u32,
    pub(super) patterns: u32,
}

impl Envelope {
    pub(super) fn read(source: &Source<'_>) -> Result<Self, CompiledError> {
        let found = source.length();
        let truncated = CompiledError::Truncated { found };
        let octets = source.take(0, found.min(HEADER as u64))?;
        if !is_compiled(&octets) {
            return Err(CompiledError::NotCompiled);
        }
        if octets.len() < HEADER {
            return Err(truncated);
        }
        match (u32_le(&octets, 8), u32_le(&octets, 12)) {
            (_, mark) if mark == BYTE_ORDER.swap_bytes() => return Err(CompiledError::ByteOrder),
            (version, _) if version != VERSION => return Err(CompiledError::Version(version)),
            (_, mark) if mark != BYTE_ORDER => return Err(CompiledError::Layout("header")),
            _ => {}
        }
        let Some(end) = found.checked_sub(TRAILER as u64).filter(|end| *end >= HEADER as u64) else {
            return Err(truncated);
        };
        let trailer = source.take(end, TRAILER as u64)?;
        if !trailer.ends_with(&END_MAGIC) || u64_le(&trailer, 8) != found {
            return Err(truncated);
        }
        let offset = u64_le(&trailer, 0);
        if offset < HEADER as u64 || offset > end {
            return Err(CompiledError::Layout("directory offset"));
        }
        let directory = source.take(offset, end - offset)?;
        let digest = digest(&octets, &directory, &trailer[..TRAILER_NUMBERS]);
        if digest != trailer[TRAILER_NUMBERS..TRAILER_NUMBERS + DIGEST] {
            return Err(CompiledError::Altered);
        }
        let (apex, header) = read_header(&octets)?;
        let (chunks, patterns) = (u32_le(&trailer, 16), u32_le(&trailer, 20));
        Ok(Self { apex, header, directory, offset, chunks, patterns })
    }
}

fn read_header(octets: &[u8]) -> Result<(Name, HeaderFields), CompiledError> {
    let [flags, kind, at, serial, chunk] = [16, 20, 24, 28, 32].map(|place| u32_le(octets, place));
    let tables = octets.last_chunk().copied().unwrap_or_default();
    let verification = Verification::from_words([kind, at], tables);
    let verification = verification.ok_or(CompiledError::Layout("verification"))?;
    let apex = NameRef::split_from(&octets[48..TABLES]).map_err(|_| CompiledError::Layout("apex"))?.0;
    Ok((apex.to_name(), HeaderFields { flags, serial, verification, chunk }))
}
