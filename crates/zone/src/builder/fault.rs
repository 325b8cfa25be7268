//! Faults of a zone, warnings about it, and source locations.

use nonesuch_proto::{Name, Rtype};

/// Source location of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct SourceLocation {
    /// Index of the file: 0 is the zone file, the others are included files in the order of
    /// inclusion.
    pub file: u16,
    /// Line, from 1; 0 if the record was not read from a file.
    pub line: u32,
}

/// Reason why records do not form a valid zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneFault {
    /// There are no records.
    #[error("the file has no records: name the zone file that begins with the SOA record of the zone")]
    Empty,
    /// There is no SOA record at the apex.
    #[error("the zone has no SOA record at its apex {0}: add one")]
    NoSoa(Name),
    /// The owner of the SOA record is not the given origin.
    #[error("the SOA record is at {found}, not at {origin}: name the file of zone {origin}")]
    WrongOrigin {
        /// Owner of the SOA record.
        found: Name,
        /// The given origin.
        origin: Name,
    },
    /// There is a second SOA record, or an SOA record below the apex.
    #[error("a second SOA record, at {0}: a zone has exactly one, at its apex; remove the others")]
    SecondSoa(Name),
    /// The owner of a record is outside the zone.
    #[error("{owner} is not in the zone {apex}: remove the record, or correct the origin")]
    OutOfZone {
        /// The owner.
        owner: Name,
        /// Apex of the zone.
        apex: Name,
    },
    /// A name has a CNAME record and other data (RFC 1034 §3.6.2, RFC 2181 §10.1).
    #[error("{owner} has a CNAME record and {other} records: an alias must have no other data")]
    CnameAndOther {
        /// The owner.
        owner: Name,
        /// The other type.
        other: Rtype,
    },
    /// A name has more than one CNAME or DNAME record (RFC 2181 §10.1, RFC 6672 §2.4).
    #[error("{owner} has more than one {rtype} record: at most one is allowed")]
    NotSingleton {
        /// The owner.
        owner: Name,
        /// CNAME or DNAME.
        rtype: Rtype,
    },
    /// An RRset with its signatures does not fit in a message (RFC 1035 §4.2.2).
    #[error(
        "{owner}: the {rtype} records{} take a message of {octets} octets, but the maximum is 65535 (RFC \
        1035 section 4.2.2): remove some, or distribute them over several names",
        if *is_signed { " with their signatures" } else { "" }
    )]
    RrsetTooLarge {
        /// The owner.
        owner: Name,
        /// The type.
        rtype: Rtype,
        /// Octets of the smallest message with this RRset: header, question, records and
        /// signatures.
        octets: usize,
        /// Whether `octets` includes signatures.
        is_signed: bool,
    },
    /// The zone exceeds the address range: the names take more than 4 GiB.
    #[error("the zone is too large: its names need more than 4 GiB")]
    TooLarge,
}

/// A fault with the source location of the record that causes it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct ZoneError {
    /// The fault.
    pub fault: ZoneFault,
    /// Source location of the record.
    pub location: SourceLocation,
}

/// Property of a zone that is unusual and does not prevent its use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// The records of an RRset have different TTLs; the lowest TTL is used (RFC 2181 §5.2).
    #[error("the {rtype} records of {owner} have different TTLs; the lowest TTL is used")]
    MixedTtl {
        /// The owner.
        owner: Name,
        /// The type.
        rtype: Rtype,
    },
    /// Duplicate records; each record is stored once (RFC 2181 §5).
    #[error("ignored {count} duplicate records")]
    Duplicates {
        /// Number of dropped records.
        count: u64,
    },
    /// There is no NS record at the apex.
    #[error("the zone has no NS record at its apex")]
    NoNs,
}
