//! Errors of the zone file reader, with their positions.

use crate::builder::ZoneFault;
use crate::lexer::LexFault;
use nonesuch_proto::rdata::RdataFault;
use nonesuch_proto::{Class, NameError, Rtype};
use std::path::PathBuf;

/// Fault in a zone file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// The file cannot be read.
    #[error("cannot be read: {error}{remedy}", error = .0, remedy = read_remedy(.0))]
    Io(#[from] std::io::Error),
    /// A quoted string does not end on its line.
    #[error("a double quote is not closed on its line")]
    UnclosedQuote,
    /// A parenthesis is not closed.
    #[error("a parenthesis is not closed: the file ends inside an entry")]
    UnclosedParenthesis,
    /// A closing parenthesis has no opening parenthesis.
    #[error("a closing parenthesis without an opening one")]
    StrayParenthesis,
    /// A parenthesis is opened inside parentheses.
    #[error("nested parentheses are not allowed")]
    NestedParenthesis,
    /// The first record has no owner.
    #[error("the first record has no owner name")]
    NoOwner,
    /// An owner name is malformed.
    #[error("bad owner name: {0}")]
    Owner(NameError),
    /// The origin in $ORIGIN or $INCLUDE is malformed.
    #[error("bad origin: {0}")]
    Origin(NameError),
    /// Neither the record nor the text before it specifies a TTL.
    #[error("no TTL: write one in the record or with $TTL")]
    NoTtl,
    /// The type is missing.
    #[error("the record ends before its type")]
    NoType,
    /// A token is not a TTL, a class or a type.
    #[error("'{0}' is not a TTL, class or type (write an unknown type as TYPEn)")]
    UnknownToken(String),
    /// A TTL exceeds the maximum, 2147483647 seconds (RFC 2181 §8).
    #[error("the TTL {0} is too large: the maximum is 2147483647 s (RFC 2181 section 8)")]
    TtlTooLarge(String),
    /// The class is not IN.
    #[error("class {0} is not supported: write class IN")]
    Class(Class),
    /// The record has the class IN twice.
    #[error("the class is given twice: remove one")]
    RepeatedClass,
    /// The type is a meta type or query type and cannot be data.
    #[error("{0} is a query or meta type and cannot be data in a zone")]
    MetaType(Rtype),
    /// The RDATA is malformed.
    #[error("{rtype}: {fault}")]
    Rdata {
        /// Type of the record.
        rtype: Rtype,
        /// The fault in the RDATA.
        fault: RdataFault,
    },
    /// A directive is malformed.
    #[error("malformed {0} directive")]
    Directive(&'static str),
    /// A directive is unknown.
    #[error("unknown directive {0} (known: $ORIGIN, $TTL, $INCLUDE)")]
    UnknownDirective(String),
    /// The nesting of included files is too deep.
    #[error("$INCLUDE is nested more than 10 files deep: check whether a file includes itself")]
    IncludeDepth,
    /// The records do not form a zone.
    #[error("{0}")]
    Zone(ZoneFault),
}

/// A fault with file, line and column. Line and column are 0 if the fault has no position in the
/// file, for example if the file cannot be opened.
#[derive(Debug)]
pub struct ReadError {
    /// Path of the file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: u32,
    /// Column in octets, from 1.
    pub column: u32,
    /// The fault.
    pub fault: ReadFault,
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.line, self.column) {
            (0, _) => write!(f, "{}: {}", self.file.display(), self.fault),
            (line, 0) => write!(f, "{}:{line}: {}", self.file.display(), self.fault),
            (line, column) => write!(f, "{}:{line}:{column}: {}", self.file.display(), self.fault),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<LexFault> for ReadFault {
    fn from(fault: LexFault) -> Self {
        match fault {
            LexFault::UnclosedQuote => Self::UnclosedQuote,
            LexFault::UnclosedParenthesis => Self::UnclosedParenthesis,
            LexFault::StrayParenthesis => Self::StrayParenthesis,
            LexFault::NestedParenthesis => Self::NestedParenthesis,
        }
    }
}

/// Returns advice for an error of opening or reading a file, as a suffix for the message. The
/// advice is empty if the error needs none.
#[must_use]
pub fn read_remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::IsADirectory => ": name a file in it",
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => ": correct the path",
        std::io::ErrorKind::PermissionDenied => ": give this user permission to read it",
        _ => "",
    }
}
