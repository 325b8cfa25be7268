//! Header and trailer of a compiled zone.

use super::source::{Source, u32_le, u64_le};
use super::*;
use crate::contents::Contents;
use nonesuch_proto::{NameRef, Rtype};

/// Offset in the header of the digest of the algorithm tables, which extends to the end of the
/// header.
const TABLES_DIGEST_OFFSET: usize = HEADER_OCTETS - TABLES_DIGEST_OCTETS;

/// Offset of the apex in the header.
const APEX_OFFSET: usize = 48;

/// Fields of the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeaderFields {
    pub(super) flags: u32,
    pub(super) serial: u32,
    pub(super) verification: Verification,
    /// Size in octets at which a chunk ends.
    pub(super) chunk_octets: u32,
}

impl HeaderFields {
    /// Returns the fields for unchanged contents. Sets the flag for different TTLs if the contents
    /// have such RRsets.
    pub(super) fn of_contents(contents: &Contents, verification: Verification, chunk_octets: u32) -> Self {
        let mut fields = Self::of_apex(contents, verification, chunk_octets);
        fields.flags |= if contents.has_mixed_ttls() { FLAG_MIXED_TTLS } else { 0 };
        fields
    }

    /// Returns the fields for a zone without RRsets of different TTLs. `apex` contains at least the
    /// apex.
    pub(super) fn of_apex(apex: &Contents, verification: Verification, chunk_octets: u32) -> Self {
        let flags = if apex.apex_rrset(Rtype::DNSKEY).is_some() { FLAG_SIGNED } else { 0 };
        Self { flags, serial: apex.soa().map_or(0, |soa| soa.serial), verification, chunk_octets }
    }

    /// Whether there can be RRsets with records of different TTLs.
    pub(super) const fn has_mixed_ttls(&self) -> bool {
        self.flags & FLAG_MIXED_TTLS != 0
    }

    /// Checks that serial and flags match the zone, except [`FLAG_MIXED_TTLS`]. `apex` contains at
    /// least the apex.
    pub(super) fn check(&self, apex: &Contents) -> Result<(), CompiledError> {
        let expected = Self::of_apex(apex, self.verification, self.chunk_octets);
        if expected.serial != self.serial {
            return Err(CompiledError::Layout("serial"));
        }
        if expected.flags != self.flags & !FLAG_MIXED_TTLS {
            Err(CompiledError::Layout("flags"))
        } else {
            Ok(())
        }
    }
}

/// Returns the header in the format of the file.
pub(super) fn header(apex: &Name, fields: &HeaderFields) -> [u8; HEADER_OCTETS] {
    let [kind, at] = fields.verification.to_words();
    let mut out = [0; HEADER_OCTETS];
    out[..8].copy_from_slice(&MAGIC);
    let words = [VERSION, BYTE_ORDER, fields.flags, kind, at, fields.serial, fields.chunk_octets];
    for (field, word) in out[8..36].as_chunks_mut::<4>().0.iter_mut().zip(words) {
        *field = word.to_le_bytes();
    }
    out[APEX_OFFSET..APEX_OFFSET + apex.wire().len()].copy_from_slice(apex.wire());
    out[TABLES_DIGEST_OFFSET..].copy_from_slice(&tables_digest());
    out
}

/// Returns the trailer of a file whose directory is at `offset`.
pub(super) fn trailer(
    header: &[u8; HEADER_OCTETS],
    directory: &[u8],
    offset: u64,
    chunks: u32,
    patterns: u32,
) -> [u8; TRAILER_OCTETS] {
    let mut out = [0; TRAILER_OCTETS];
    let length = offset + directory.len() as u64 + TRAILER_OCTETS as u64;
    out[..8].copy_from_slice(&offset.to_le_bytes());
    out[8..16].copy_from_slice(&length.to_le_bytes());
    out[16..20].copy_from_slice(&chunks.to_le_bytes());
    out[20..24].copy_from_slice(&patterns.to_le_bytes());
    let digest = digest(header, directory, &out[..TRAILER_DIGESTED_OCTETS]);
    out[TRAILER_DIGESTED_OCTETS..TRAILER_DIGESTED_OCTETS + DIGEST_OCTETS].copy_from_slice(&digest);
    out[TRAILER_DIGESTED_OCTETS + DIGEST_OCTETS..].copy_from_slice(&END_MAGIC);
    out
}

/// Returns the digest of the trailer: over the header, the directory, and the numbers at the start
/// of the trailer.
pub(super) fn digest(header: &[u8], directory: &[u8], numbers: &[u8]) -> [u8; DIGEST_OCTETS] {
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
        let octets = source.read_range(0, found.min(HEADER_OCTETS as u64))?;
        if !is_compiled(&octets) {
            return Err(CompiledError::NotCompiled);
        }
        if octets.len() < HEADER_OCTETS {
            return Err(truncated);
        }
        match (u32_le(&octets, 8), u32_le(&octets, 12)) {
            (_, mark) if mark == BYTE_ORDER.swap_bytes() => return Err(CompiledError::ByteOrder),
            (version, _) if version != VERSION => return Err(CompiledError::Version(version)),
            (_, mark) if mark != BYTE_ORDER => return Err(CompiledError::Layout("header")),
            _ => {}
        }
        let Some(end) = found.checked_sub(TRAILER_OCTETS as u64).filter(|end| *end >= HEADER_OCTETS as u64)
        else {
            return Err(truncated);
        };
        let trailer = source.read_range(end, TRAILER_OCTETS as u64)?;
        if !trailer.ends_with(&END_MAGIC) || u64_le(&trailer, 8) != found {
            return Err(truncated);
        }
        let offset = u64_le(&trailer, 0);
        if offset < HEADER_OCTETS as u64 || offset > end {
            return Err(CompiledError::Layout("directory offset"));
        }
        let directory = source.read_range(offset, end - offset)?;
        let digest = digest(&octets, &directory, &trailer[..TRAILER_DIGESTED_OCTETS]);
        if digest != trailer[TRAILER_DIGESTED_OCTETS..TRAILER_DIGESTED_OCTETS + DIGEST_OCTETS] {
            return Err(CompiledError::Altered);
        }
        let (apex, header) = read_header(&octets)?;
        let (chunks, patterns) = (u32_le(&trailer, 16), u32_le(&trailer, 20));
        Ok(Self { apex, header, directory, offset, chunks, patterns })
    }
}

fn read_header(octets: &[u8]) -> Result<(Name, HeaderFields), CompiledError> {
    let [flags, kind, at, serial, chunk_octets] = [16, 20, 24, 28, 32].map(|offset| u32_le(octets, offset));
    let tables = octets.last_chunk().copied().unwrap_or_default();
    let verification = Verification::from_words([kind, at], tables);
    let verification = verification.ok_or(CompiledError::Layout("verification"))?;
    let apex = NameRef::split_from(&octets[APEX_OFFSET..TABLES_DIGEST_OFFSET])
        .map_err(|_| CompiledError::Layout("apex"))?
        .0;
    Ok((apex.to_name(), HeaderFields { flags, serial, verification, chunk_octets }))
}
