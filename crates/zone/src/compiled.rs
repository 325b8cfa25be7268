//! Compiled zones: the contents of a zone, signed or not, in one file that is loaded without reading text.
//!
//! All numbers are little-endian. The file is
//!
//! | octets | what |
//! | --- | --- |
//! | 8 | magic `89 4e 53 43 5a 0d 0a 1a`: no text begins so, and a transfer as text spoils it |
//! | 4 | version of the format, 2 |
//! | 4 | mark of the byte order, 0x01020304 |
//! | 4 | flags: 1 the zone has a DNSKEY RRset at its apex, 2 it has RRsets whose records had different TTLs |
//! | 4 | what was verified before the file was made: 0 nothing, 1 structure, 2 everything |
//! | 4 | time at which that was valid, in seconds since 1970 modulo 2^32 |
//! | 4 | serial of the zone |
//! | 4 | octets with which a chunk is ended |
//! | 12 | 0 |
//! | 256 | apex in wire form, filled up with zeros |
//! | 16 | digest of the tables of algorithms that it was verified by ([`nonesuch_crypto::tables_digest`]); 0 in older files |
//! | … | chunks, one behind the other |
//! | … | directory |
//! | 8 | offset of the directory |
//! | 8 | octets of the file |
//! | 4 | number of chunks |
//! | 4 | number of patterns |
//! | 32 | BLAKE3 digest of the header, the directory and the 24 octets in front |
//! | 8 | mark of the end `9a 4e 53 43 5a 0a 0d 1b` |
//!
//! A chunk holds consecutive names with their RRsets, and nothing in it depends on what stands before it: for each name
//! its length and, in the upper three octets, its number of RRsets (4 octets); for each RRset type and type covered in 2
//! each, TTL, number of records and octets of the records in 4 each; the names in wire form; the records, each with its
//! length in two octets (big-endian, as RDATA is) before it. The first bit of the number of records says that the records
//! had different TTLs, of which this is the lowest; it is set where flag 2 is, and nowhere else.
//!
//! The directory has the patterns, each with its length in two octets before it, and an entry for each chunk: number of
//! names and of RRsets, octets of names and of records; number of records, of RRSIG records, of RRsets that have some,
//! and of NSEC and NSEC3 records; first and last expiration and inception of the signatures (all of these in 4 octets);
//! numbers of the patterns of its signatures and of its chain (2 each); BLAKE3 digest of the chunk (32); its first name,
//! with its length before it (1). A pattern says what is the same wherever there is any of it in the chunk: the keys by
//! which an RRset is signed, or what a record of the chain begins with. 0xffff stands for none, 0xfffe for several.
//!
//! So a zone that was signed before and changes in a few places is signed again with a look at the chunks that the
//! changes are in, and at the directory ([`StoredZone`]). All others are passed on as octets with the digest that they
//! have; whoever reads them finds it right or not.
//!
//! The digests tell that the file is as it was written. They do not tell who wrote it: whoever may write the file may
//! say that it was verified. It deserves the trust, and the permissions, that the server's configuration has.

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

pub(crate) use block::Block;
pub use directory::{ChunkSummary, TimeRange, Uniformity, chain_pattern, signers_pattern};
pub use read::{read, read_file};
pub use stored::StoredZone;
pub use text::{TextComparison, compare_octets, compare_text};
pub use write::{write, write_in_chunks, write_splice};

use crate::builder::ZoneFault;
use nonesuch_crypto::{TABLES_DIGEST, tables_digest};
use nonesuch_proto::Name;
use std::io;

const MAGIC: [u8; 8] = *b"\x89NSCZ\r\n\x1a";
const END_MAGIC: [u8; 8] = *b"\x9aNSCZ\n\r\x1b";
const VERSION: u32 = 2;
const BYTE_ORDER: u32 = 0x0102_0304;
/// Octets in front of the chunks.
const HEADER: usize = 320;
/// Octets behind the directory.
const TRAILER: usize = 64;
/// Octets of the trailer that are digested.
const TRAILER_NUMBERS: usize = 24;
/// Octets of a digest.
const DIGEST: usize = 32;
/// Octets of a name's and of an RRset's entry in a chunk.
const NODE: usize = 4;
const RRSET: usize = 16;
/// Bit in the number of records of an RRset: its records had different TTLs (RFC 2181 §5.2). Each record takes two octets or more of
/// less than 2^32, so that no number needs the bit.
const MIXED_TTLS: u32 = 1 << 31;
/// A chunk is ended when it has so many octets. Short ones are sooner free of changes, long ones sooner hashed.
pub const CHUNK: u32 = 2048;
/// Flag: the zone has a DNSKEY RRset at its apex.
const SIGNED: u32 = 1;
/// Flag: there are RRsets with [`MIXED_TTLS`].
const HAS_MIXED_TTLS: u32 = 2;

/// What was verified of a zone before it was compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Verification {
    /// Nothing, as of an unsigned zone.
    #[default]
    Nothing,
    /// Everything but the mathematics of signatures.
    Structural {
        /// When that was so, in seconds since 1970 modulo 2^32.
        at: u32,
    },
    /// Everything.
    Full {
        /// When that was so, in seconds since 1970 modulo 2^32.
        at: u32,
    },
    /// Verified by a program with other tables of algorithms, or by one that did not record their digest: to be verified again. It
    /// is written as [`Verification::Nothing`].
    OtherTables {
        /// When it was verified, in seconds since 1970 modulo 2^32.
        at: u32,
    },
}

impl Verification {
    /// The two words of a header: the kind, and the time.
    pub(crate) const fn to_words(self) -> [u32; 2] {
        match self {
            Self::Nothing | Self::OtherTables { .. } => [0, 0],
            Self::Structural { at } => [1, at],
            Self::Full { at } => [2, at],
        }
    }

    /// Reads the two words of a header with the digest of the tables of algorithms; `None` for an unknown kind.
    pub(crate) fn from_words([kind, at]: [u32; 2], tables: [u8; TABLES_DIGEST]) -> Option<Self> {
        let is_ours = tables == tables_digest();
        match kind {
            0 => Some(Self::Nothing),
            1 | 2 if !is_ours => Some(Self::OtherTables { at }),
            1 => Some(Self::Structural { at }),
            2 => Some(Self::Full { at }),
            _ => None,
        }
    }
}

/// Why octets are not a compiled zone that can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompiledError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It does not begin as a compiled zone does.
    #[error("not a compiled zone")]
    NotCompiled,
    /// It has the other byte order.
    #[error("compiled in another byte order: compile the zone with this program")]
    ByteOrder,
    /// It is of a version that is not known.
    #[error(
        "compiled in version {0} of the format, and this program knows version {VERSION}: compile the zone anew"
    )]
    Version(u32),
    /// It does not end as a compiled zone does.
    #[error(
        "cut off: the end is missing, or something stands behind it ({found} octets): copy the file again, or compile the zone anew"
    )]
    Truncated {
        /// Octets that there are.
        found: u64,
    },
    /// The digest is not that of the octets.
    #[error(
        "altered since it was compiled (the digest does not fit): copy the file again, or compile the zone anew"
    )]
    Altered,
    /// Header or directory contradict themselves or the chunks.
    #[error("malformed {0}: compile the zone anew")]
    Layout(&'static str),
    /// The digest fits, but the contents are not well formed.
    #[error("malformed contents at name {node}, counted from 0: {flaw}: compile the zone anew")]
    Malformed {
        /// Place of the name in the file.
        node: usize,
        /// What is wrong there.
        flaw: Flaw,
    },
    /// The records are no zone.
    #[error("{0}")]
    Zone(ZoneFault),
    /// The zone is another one than was asked for.
    #[error(
        "compiled of the zone {found}, but the origin is {origin}: name the zone {found} (the origin, -o, on a command line), or give the file of {origin}"
    )]
    WrongOrigin {
        /// The zone of the file.
        found: Name,
        /// The origin that was given.
        origin: Name,
    },
}

/// What is wrong at a name of a compiled zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// A length leads beyond what is there, or something is left over.
    #[error("a length does not fit")]
    Length,
    /// A name is malformed.
    #[error("the name is malformed")]
    Name,
    /// The name does not come after the one before, or is not below the apex.
    #[error("the name is out of order or not in the zone")]
    NameOrder,
    /// RRsets are not in the order of types, signatures behind what they cover.
    #[error("RRsets are out of order")]
    RrsetOrder,
    /// A type is no type of data, a TTL too large, or the type covered is not that of the records.
    #[error("type or TTL of an RRset is impossible")]
    Rrset,
    /// RDATA is malformed for its type.
    #[error("RDATA is malformed")]
    Rdata,
    /// Records of an RRset are not in canonical order, or one stands twice.
    #[error("records of an RRset are out of order")]
    RecordOrder,
}

/// Whether octets begin as a compiled zone does.
#[must_use]
pub fn is_compiled(octets: &[u8]) -> bool {
    octets.starts_with(&MAGIC)
}

/// Octets of [`is_compiled`]'s magic.
pub const MAGIC_OCTETS: usize = MAGIC.len();

#[cfg(test)]
mod tests;
