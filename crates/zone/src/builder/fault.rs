//! What makes records no zone, what is odd about them, and where they were read.

use nonesuch_proto::{Name, Rtype};

/// Where a record was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SourceLocation {
    /// Index of the file: 0 is the zone file, others are included files in order of inclusion.
    pub file: u16,
    /// Line, from 1; 0 where the record was not read from a file.
    pub line: u32,
}

/// What makes records no zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneFault {
    /// There is no record at all.
    #[error("there are no records in it: give the zone's own file, which begins with its SOA record")]
    Empty,
    /// There is no SOA record at the apex.
    #[error("the zone has no SOA record at its apex {0}: every zone has one, add it")]
    NoSoa(Name),
    /// The SOA record is not where the origin says.
    #[error(
        "the SOA record is at {found}, but the origin is {origin}: name the zone {found} (the origin, -o, on a command line), or give the file of {origin}"
    )]
    WrongOrigin {
        /// Owner of the SOA record.
        found: Name,
        /// Origin given.
        origin: Name,
    },
    /// There is a second SOA record.
    #[error("a second SOA record, at {0}: a zone has exactly one, at its apex")]
    SecondSoa(Name),
    /// A record's owner is not in the zone.
    #[error("{owner} is not in the zone {apex}: remove the record, or mend the origin")]
    OutOfZone {
        /// The owner.
        owner: Name,
        /// The zone's apex.
        apex: Name,
    },
    /// CNAME stands beside other data (RFC 1034 §3.6.2, RFC 2181 §10.1).
    #[error("{owner} has a CNAME record and {other} too: an alias has no other data")]
    CnameAndOther {
        /// The owner.
        owner: Name,
        /// The other type.
        other: Rtype,
    },
    /// More than one CNAME or DNAME (RFC 2181 §10.1, RFC 6672 §2.4).
    #[error("{owner} has more than one {rtype} record: at most one is allowed")]
    NotSingleton {
        /// The owner.
        owner: Name,
        /// CNAME or DNAME.
        rtype: Rtype,
    },
    /// No message has room for an RRset with its signatures (RFC 1035 §4.2.2).
    #[error(
        "{owner}: the {rtype} records{} take a message of {octets} octets, and the largest has 65535 (RFC 1035 section 4.2.2): \
         remove some, or spread them over several names",
        if *is_signed { " with their signatures" } else { "" }
    )]
    RrsetTooLarge {
        /// The owner.
        owner: Name,
        /// The type.
        rtype: Rtype,
        /// Octets of the smallest message that would have it: header, question, records and signatures.
        octets: usize,
        /// Whether signatures are counted.
        is_signed: bool,
    },
    /// The zone holds more than can be addressed.
    #[error("the zone is too large: names take more than 4 GiB")]
    TooLarge,
}

/// A fault with the place of the record that has it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct ZoneError {
    /// What is wrong.
    pub fault: ZoneFault,
    /// Where.
    pub place: SourceLocation,
}

/// What is odd about a zone without making it unusable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The records of an RRset have different TTLs; the least is used (RFC 2181 §5.2).
    #[error("the {rtype} records of {owner} have different TTLs; the least is used")]
    MixedTtl {
        /// The owner.
        owner: Name,
        /// The type.
        rtype: Rtype,
    },
    /// The same record was given more than once and kept once (RFC 2181 §5).
    #[error("{count} duplicate records were dropped")]
    Duplicates {
        /// How many.
        count: u64,
    },
    /// There is no NS record at the apex.
    #[error("the zone has no NS record at its apex")]
    NoNs,
}
