//! Why a file of trust anchors is not read.

use super::{MAX_FILE_OCTETS, MAX_FILE_RECORDS};
use nonesuch_crypto::{DigestType, KeyError};
use nonesuch_proto::rdata::RdataFault;
use nonesuch_proto::{Name, NameError, Rtype};

/// Why a file of trust anchors is not read. The messages have no file name; the caller adds it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnchorFileError {
    /// The file is too large.
    #[error("it has more than {MAX_FILE_OCTETS} bytes: name a file with trust anchors only")]
    TooLarge,
    /// There are too many records.
    #[error("line {line}: more than {MAX_FILE_RECORDS} records: name a file with trust anchors only")]
    TooManyRecords {
        /// The line of the first record above the maximum.
        line: u32,
    },
    /// The file has no record.
    #[error("it has no trust anchor: add a DS or DNSKEY record")]
    NoRecord,
    /// The file has records, and none is a trust anchor.
    #[error(
        "none of its {records} records is a trust anchor: their states or their times of validity exclude \
        them; add a DS or DNSKEY record of a key that the zone uses"
    )]
    NoAnchor {
        /// The number of records.
        records: usize,
    },
    /// The text has a syntax fault.
    #[error("line {line}: {fault}")]
    Syntax {
        /// The line, from 1.
        line: u32,
        /// The fault.
        fault: SyntaxFault,
    },
    /// A record cannot be a trust anchor.
    #[error("line {line}: {owner} {rtype}: {fault}")]
    Record {
        /// The first line of the record, from 1.
        line: u32,
        /// Its owner.
        owner: Name,
        /// Its type.
        rtype: Rtype,
        /// The fault.
        fault: RecordFault,
    },
}

/// A syntax fault in a file of trust anchors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxFault {
    /// An opening parenthesis has no closing one.
    #[error("the record has an opening parenthesis without a closing one: add ')'")]
    OpenParenthesis,
    /// A closing parenthesis has no opening one.
    #[error("closing parenthesis without an opening one: remove it")]
    ClosingParenthesis,
    /// The owner is not a name.
    #[error("the owner of the record is not a domain name: {0}")]
    Owner(NameError),
    /// The first record has no owner.
    #[error("the first record has no owner: begin the line with the apex of the zone")]
    NoOwner,
    /// A record has no known type.
    #[error("expected a record: write ZONE DS or ZONE DNSKEY with its fields")]
    NoType,
    /// A class is not IN.
    #[error("only records of class IN can be trust anchors: write IN or no class")]
    Class,
    /// A directive other than $ORIGIN and $TTL.
    #[error("unknown directive: only $ORIGIN and $TTL are allowed; remove it")]
    Directive,
    /// $ORIGIN has no name.
    #[error("$ORIGIN needs one domain name")]
    Origin,
    /// The XML is malformed.
    #[error("malformed XML: {0}: fetch the file again")]
    Xml(&'static str),
    /// The XML has a declaration, such as a document type.
    #[error("XML declarations (<!...>) are not supported: remove it")]
    XmlDeclaration,
    /// The root element of the XML is not `TrustAnchor`.
    #[error("expected the element <TrustAnchor>: name a file with the form of root-anchors.xml (RFC 9718)")]
    XmlRoot,
    /// An element is missing.
    #[error("<{parent}> has no element <{element}>: add it")]
    MissingElement {
        /// The element that lacks another.
        parent: &'static str,
        /// The missing element.
        element: &'static str,
    },
    /// An element occurs twice.
    #[error("a second element <{0}>: remove it")]
    SecondElement(&'static str),
    /// The text of the element `Zone` is not a name.
    #[error("the element <Zone> is not a domain name: {0}")]
    Zone(NameError),
    /// The attribute `validFrom` or `validUntil` is not a time.
    #[error("the attribute {0} is not a time: write it as 2010-07-15T00:00:00+00:00")]
    Time(&'static str),
}

/// Why a record cannot be a trust anchor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordFault {
    /// The record has another type.
    #[error("only DS and DNSKEY records can be trust anchors: remove it")]
    OtherType,
    /// The RDATA is malformed.
    #[error("{0}: correct the record")]
    Rdata(RdataFault),
    /// The key is revoked (RFC 5011 §2.1).
    #[error("key {tag} is revoked (REVOKE flag): remove the record")]
    Revoked {
        /// The key tag, with the REVOKE flag.
        tag: u16,
    },
    /// The key is not a zone key (RFC 4034 §2.1.1).
    #[error("key {tag} is not a zone key (flags {flags}): write a key with the flags 257 or 256")]
    NotZoneKey {
        /// The key tag.
        tag: u16,
        /// The flags.
        flags: u16,
    },
    /// The protocol field is not 3 (RFC 4034 §2.1.2).
    #[error("key {tag} has the protocol {protocol}: write 3")]
    Protocol {
        /// The key tag.
        tag: u16,
        /// The protocol field.
        protocol: u8,
    },
    /// The public key is malformed for its algorithm.
    #[error("key {tag}: {error}: correct the record")]
    Key {
        /// The key tag.
        tag: u16,
        /// Why the key is malformed.
        error: KeyError,
    },
    /// The digest does not have the length of its type.
    #[error(
        "the digest of key {tag} has {found} octets, but {digest_type} has {expected}: correct the record"
    )]
    DigestLength {
        /// The key tag.
        tag: u16,
        /// The digest type.
        digest_type: DigestType,
        /// The length of a digest of this type, in octets.
        expected: usize,
        /// The length found, in octets.
        found: usize,
    },
}
