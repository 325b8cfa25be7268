//! Compiled zones: the contents of a zone, signed or unsigned, in a binary file that is loaded
//! without parsing text.
//!
//! Numbers are little-endian, except in names and records, which are in wire format. The file has
//! this format:
//!
//! | octets | content |
//! | --- | --- |
//! | 8 | magic `89 4e 53 43 5a 0d 0a 1a`: no text begins with it, and a transfer in text mode alters it |
//! | 4 | version of the format, 2 |
//! | 4 | byte order mark 0x01020304: the octets `04 03 02 01`; a file with other octets is rejected |
//! | 4 | flags: 1 the zone has a DNSKEY RRset at its apex, 2 it can have RRsets with records of different TTLs |
//! | 4 | verification before the file was written: 0 none, 1 structural, 2 full |
//! | 4 | time for which the verification is valid, in seconds since 1970 modulo 2^32 |
//! | 4 | serial of the zone |
//! | 4 | size in octets at which a chunk ends |
//! | 12 | reserved, zeros |
//! | 256 | apex in wire format, padded with zeros |
//! | 16 | digest of the algorithm tables used for the verification ([`nonesuch_crypto::tables_digest`]); 0 in older files |
//! | … | chunks, consecutive |
//! | … | directory |
//! | 8 | offset of the directory |
//! | 8 | octets of the file |
//! | 4 | number of chunks |
//! | 4 | number of patterns |
//! | 32 | BLAKE3 digest of the header, the directory and the 24 octets before this digest |
//! | 8 | end mark `9a 4e 53 43 5a 0a 0d 1b` |
//!
//! A chunk holds consecutive names with their RRsets and does not depend on the chunks before it:
//!
//! - For each name, 4 octets: its length in the lowest octet, its number of RRsets in the upper
//!   three.
//! - For each RRset: type and covered type (2 octets each), TTL, number of records, octets of the
//!   records (4 octets each). The highest bit of the number of records states that the records had
//!   different TTLs; the TTL here is the lowest of them. This bit is set only in a file with flag
//!   2.
//! - The names in wire format.
//! - The records, each preceded by its length in two octets (big-endian, like RDATA).
//!
//! The directory holds the patterns, each preceded by its length in two octets, and then an entry
//! for each chunk:
//!
//! - Number of names, number of RRsets, octets of names, octets of records (4 octets each).
//! - Number of records, of RRSIG records, of RRsets with RRSIG records, and of NSEC and NSEC3
//!   records (4 octets each).
//! - First and last expiration and inception of the signatures (4 octets each).
//! - Pattern number of its signatures and of its chain (2 octets each).
//! - BLAKE3 digest of the chunk (32 octets).
//! - Its first name, preceded by its length (1 octet).
//!
//! A pattern describes a property that all signatures, or all chain records, of a chunk share: the
//! keys that sign an RRset, or the start of the RDATA of a chain record. The pattern number 0xffff
//! means that the chunk has no such records, 0xfffe that it has several patterns.
//!
//! To re-sign a zone after a few changes, the signer reads only the directory and the chunks with
//! changes ([`StoredZone`]). It copies all other chunks as octets with their digests; a reader of
//! the new file verifies them.
//!
//! The digests show that the file is unaltered. They do not show who wrote it: a user with write
//! permission can also state that the zone was verified. Therefore the file needs the same
//! protection and permissions as the server's configuration.

mod block;
mod check;
mod directory;
mod gather;
mod header;
mod read;
mod source;
mod stored;
mod text;
mod write;

pub(crate) use block::BlockWriter;
pub use directory::{ChunkSummary, TimeRange, Uniformity, chain_pattern, signers_pattern};
pub use read::{read, read_file};
pub use stored::StoredZone;
pub use text::{TextComparison, compare_octets, compare_text};
pub use write::{write, write_in_chunks, write_splice};

use crate::builder::ZoneFault;
use nonesuch_crypto::{TABLES_DIGEST_OCTETS, tables_digest};
use nonesuch_proto::Name;
use std::io;

const MAGIC: [u8; 8] = *b"\x89NSCZ\r\n\x1a";
const END_MAGIC: [u8; 8] = *b"\x9aNSCZ\n\r\x1b";
const VERSION: u32 = 2;
const BYTE_ORDER: u32 = 0x0102_0304;
/// Octets before the chunks.
const HEADER_OCTETS: usize = 320;
/// Octets after the directory.
const TRAILER_OCTETS: usize = 64;
/// Octets at the start of the trailer that the digest in the trailer covers.
const TRAILER_DIGESTED_OCTETS: usize = 24;
/// Octets of a BLAKE3 digest.
const DIGEST_OCTETS: usize = 32;
/// Octets of the entry of a name in a chunk.
const NODE_ENTRY_SIZE: usize = 4;
/// Octets of the entry of an RRset in a chunk.
const RRSET_ENTRY_SIZE: usize = 16;
/// Bit in the field for the number of records of an RRset: the records had different TTLs (RFC 2181
/// §5.2). No number of records needs this bit, because each record takes at least two octets, and
/// the records of an RRset take less than 2^32 octets.
const MIXED_TTLS_BIT: u32 = 1 << 31;
/// Default of the size in octets at which a chunk ends. A change affects fewer records if chunks
/// are short; long chunks are hashed faster and need a smaller directory.
pub const DEFAULT_CHUNK_OCTETS: u32 = 2048;
/// Flag: the zone has a DNSKEY RRset at its apex.
const FLAG_SIGNED: u32 = 1;
/// Flag: the file can have RRsets with [`MIXED_TTLS_BIT`].
const FLAG_MIXED_TTLS: u32 = 2;

/// Verification of a zone before it was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verification {
    /// The zone was not verified, for example because it is unsigned.
    #[default]
    Nothing,
    /// Structural verification: everything except the mathematics of signatures.
    Structural {
        /// Time for which the verification is valid, in seconds since 1970 modulo 2^32.
        at: u32,
    },
    /// Full verification.
    Full {
        /// Time for which the verification is valid, in seconds since 1970 modulo 2^32.
        at: u32,
    },
    /// The zone was verified with other algorithm tables, or the file does not record the digest of
    /// the tables. The zone must be verified again. This variant is written as
    /// [`Verification::Nothing`].
    OtherTables {
        /// Time for which the verification was valid, in seconds since 1970 modulo 2^32.
        at: u32,
    },
}

impl Verification {
    /// Returns the two numbers for a header: the kind (0 none, 1 structural, 2 full) and the time.
    pub(crate) const fn to_words(self) -> [u32; 2] {
        match self {
            Self::Nothing | Self::OtherTables { .. } => [0, 0],
            Self::Structural { at } => [1, at],
            Self::Full { at } => [2, at],
        }
    }

    /// Parses the two numbers of a header. `tables` is the digest of the algorithm tables that the
    /// header states. Returns `None` for an unknown kind.
    pub(crate) fn from_words([kind, at]: [u32; 2], tables: [u8; TABLES_DIGEST_OCTETS]) -> Option<Self> {
        let is_current = tables == tables_digest();
        match kind {
            0 => Some(Self::Nothing),
            1 | 2 if !is_current => Some(Self::OtherTables { at }),
            1 => Some(Self::Structural { at }),
            2 => Some(Self::Full { at }),
            _ => None,
        }
    }
}

/// Reason why a file is not a usable compiled zone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompiledError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file does not begin with the magic of a compiled zone.
    #[error("not a compiled zone")]
    NotCompiled,
    /// The file has the other byte order.
    #[error("compiled zone in another byte order: compile the zone with this program")]
    ByteOrder,
    /// The version of the format is unknown.
    #[error(
        "compiled zone of format version {0}, but this program supports version {VERSION}: compile the zone again"
    )]
    Version(u32),
    /// The file does not end like a compiled zone.
    #[error(
        "truncated, or followed by other data ({found} bytes): copy the file again, or compile the zone again"
    )]
    Truncated {
        /// Size of the file in octets.
        found: u64,
    },
    /// A digest does not match.
    #[error("altered after compilation (digest mismatch): copy the file again, or compile the zone again")]
    Altered,
    /// The header or the directory is inconsistent, or does not match the chunks. The field names
    /// the affected part of the file.
    #[error("malformed {0}: compile the zone again")]
    Layout(&'static str),
    /// The digest matches, but the contents are malformed.
    #[error("malformed contents at name number {node} (the first is 0): {flaw}: compile the zone again")]
    Malformed {
        /// Index of the name in the file, from 0. If the lengths in a chunk do not fit, the index
        /// of the first name of the chunk.
        node: usize,
        /// The fault.
        flaw: Flaw,
    },
    /// The records do not form a valid zone.
    #[error("{0}")]
    Zone(ZoneFault),
    /// The file holds another zone than the requested one.
    #[error("compiled zone of {found}, not of {origin}: name the file of zone {origin}")]
    WrongOrigin {
        /// The zone of the file.
        found: Name,
        /// The requested origin.
        origin: Name,
    },
}

/// Fault at a name of a compiled zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// A length exceeds the available octets, or octets are left over.
    #[error("a length is inconsistent")]
    Length,
    /// A name is malformed.
    #[error("the name is malformed")]
    Name,
    /// The name does not follow the previous name, or is not at or below the apex.
    #[error("the name is out of order or not in the zone")]
    NameOrder,
    /// RRsets are not in the order of their types, or signatures do not follow the RRset that they
    /// cover.
    #[error("RRsets are out of order")]
    RrsetOrder,
    /// A type is not a data type, a TTL exceeds the maximum, or the covered type differs from the
    /// type in the records.
    #[error("type or TTL of an RRset is invalid")]
    Rrset,
    /// RDATA is malformed for its type.
    #[error("RDATA is malformed")]
    Rdata,
    /// The records of an RRset are not in canonical order, or contain a duplicate.
    #[error("records of an RRset are out of order")]
    RecordOrder,
}

/// Whether `octets` begin with the magic of a compiled zone.
#[must_use]
pub fn is_compiled(octets: &[u8]) -> bool {
    octets.starts_with(&MAGIC)
}

/// Length of the magic in octets, for [`is_compiled`].
pub const MAGIC_OCTETS: usize = MAGIC.len();

#[cfg(test)]
mod tests;
