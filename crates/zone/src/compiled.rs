//! Compiled zones: the contents of a zone, signed or not, in one file that is loaded without reading text.
//!
//! All numbers are little-endian. The file is
//!
//! | octets | what |
//! | --- | --- |
//! | 8 | magic `89 4e 53 43 5a 0d 0a 1a`: no text begins so, and a transfer as text spoils it |
//! | 4 | version of the format, 1 |
//! | 4 | mark of the byte order, 0x01020304 |
//! | 8 | length of the file in octets |
//! | 4 | number of sections |
//! | 4 | flags: 1 the zone has a DNSKEY RRset at its apex |
//! | 4 | what was verified before the file was made: 0 nothing, 1 structure, 2 everything |
//! | 4 | time at which that was valid, in seconds since 1970 modulo 2^32 |
//! | 4 | serial of the zone |
//! | 4 | 0 |
//! | 256 | apex in wire form, filled up with zeros |
//! | 16 | 0 |
//! | 24 each | table of sections: kind (4), 0 (4), offset (8), length in octets (8) |
//! | … | sections in the order of the table, each at the next multiple of 64 |
//! | 32 | BLAKE3 digest of all that stands before it |
//!
//! Sections 1 to 4 are the arenas of [`Contents`]: names in wire form one behind the other; records, each with its length
//! in two octets (big-endian, as RDATA is) before it; nodes (offset of the name, number of the first RRset, 4 octets
//! each); RRsets (offset of the first record in 8 octets, TTL in 4, type and type covered in 2 each, number of records
//! in 4, 0 in 4). A reader passes over sections that it does not know from 0x80000000 on and refuses files with others.
//!
//! The digest tells that the file is as it was written. It does not tell who wrote it: whoever may write the file may
//! say that it was verified. It deserves the trust, and the permissions, that the server's configuration has.

mod check;
mod read;
mod write;

pub use read::{read, read_from};
pub use write::{write, write_splice};

use crate::builder::ZoneFault;
use nonesuch_proto::Name;
use std::io;

const MAGIC: [u8; 8] = *b"\x89NSCZ\r\n\x1a";
const VERSION: u32 = 1;
const BYTE_ORDER: u32 = 0x0102_0304;
/// Octets before the table of sections.
const HEADER: usize = 320;
/// Octets of an entry of that table.
const TABLE_ENTRY: usize = 24;
/// What the offsets of sections are multiples of.
const ALIGNMENT: u64 = 64;
/// Octets of the digest.
const DIGEST: usize = 32;
/// Octets of a node and of an RRset.
const NODE: usize = 8;
const RRSET: usize = 24;
/// Most sections of a file.
const MAX_SECTIONS: u32 = 64;
/// Kinds of sections that a reader may pass over begin here.
const OPTIONAL: u32 = 0x8000_0000;
const NAMES: u32 = 1;
const RDATA: u32 = 2;
const NODES: u32 = 3;
const RRSETS: u32 = 4;
/// Flag: the zone has a DNSKEY RRset at its apex.
const SIGNED: u32 = 1;

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
    /// Octets are missing at the end.
    #[error("cut off: {found} of {expected} octets: copy the file again, or compile the zone anew")]
    Truncated {
        /// Octets that there should be.
        expected: u64,
        /// Octets that there are.
        found: u64,
    },
    /// There are octets behind the end.
    #[error("{found} octets instead of {expected}: copy the file again, or compile the zone anew")]
    TooLong {
        /// Octets that there should be.
        expected: u64,
        /// Octets that there are.
        found: u64,
    },
    /// The digest is not that of the octets.
    #[error(
        "altered since it was compiled (the digest does not fit): copy the file again, or compile the zone anew"
    )]
    Altered,
    /// There is a section that must be understood and is not.
    #[error("compiled with a section of kind {0}, which this program does not know: compile the zone anew")]
    UnknownSection(u32),
    /// Header or table of sections contradict themselves.
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
    #[error("compiled of the zone {found}, but the origin is {origin}: give the right origin (-o)")]
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
    /// An offset leads out of its section, or not to the end of what stands before.
    #[error("an offset leads astray")]
    Offset,
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

/// One section of the table.
#[derive(Clone, Copy, Debug)]
struct Section {
    kind: u32,
    offset: u64,
    length: u64,
}

const fn aligned(offset: u64) -> u64 {
    offset.next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests;
