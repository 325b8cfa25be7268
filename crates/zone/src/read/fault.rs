//! What is wrong with a zone file, and where.

use crate::builder::ZoneFault;
use crate::lexer::LexFault;
use nonesuch_proto::rdata::RdataFault;
use nonesuch_proto::{Class, NameError, Rtype};
use std::path::PathBuf;

/// What is wrong with a zone file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// The file cannot be read.
    #[error("cannot be read: {error}{remedy}", error = .0, remedy = read_remedy(.0))]
    Io(#[from] std::io::Error),
    /// A quote is not closed on its line.
    #[error("a double quote is not closed on its line")]
    UnclosedQuote,
    /// A parenthesis is not closed.
    #[error("a parenthesis is not closed: the file ends inside an entry")]
    UnclosedParenthesis,
    /// A closing parenthesis without an opening one.
    #[error("a closing parenthesis without an opening one")]
    StrayParenthesis,
    /// A parenthesis inside parentheses.
    #[error("parentheses do not nest")]
    NestedParenthesis,
    /// The first record has no owner.
    #[error("the first record has no owner name")]
    NoOwner,
    /// An owner name is malformed.
    #[error("bad owner name: {0}")]
    Owner(NameError),
    /// Neither the record nor anything before it says a TTL.
    #[error("no TTL: give one in the record or with $TTL")]
    NoTtl,
    /// The type is missing.
    #[error("the record ends before its type")]
    NoType,
    /// A token is neither TTL, class nor type.
    #[error("'{0}' is no TTL, class or type (unknown types are written TYPEn)")]
    UnknownToken(String),
    /// A TTL is larger than any may be.
    #[error("{0} is more than a TTL may be: write 2147483647 s at most (RFC 2181, section 8)")]
    LongTtl(String),
    /// The class is not IN.
    #[error("class {0} is not served here: zones are of class IN")]
    Class(Class),
    /// A meta type or query type stands as data.
    #[error("{0} is a query or meta type and cannot be data in a zone")]
    MetaType(Rtype),
    /// RDATA is malformed.
    #[error("{rtype}: {fault}")]
    Rdata {
        /// The record's type.
        rtype: Rtype,
        /// What is wrong.
        fault: RdataFault,
    },
    /// A directive is malformed.
    #[error("malformed {0} directive")]
    Directive(&'static str),
    /// A directive is unknown.
    #[error("unknown directive {0} (known: $ORIGIN, $TTL, $INCLUDE)")]
    UnknownDirective(String),
    /// Included files nest too deeply.
    #[error("$INCLUDE nests deeper than 10 files: does a file include itself?")]
    IncludeDepth,
    /// The records are no zone.
    #[error("{0}")]
    Zone(ZoneFault),
}

/// A fault with file, line and column; line and column are 0 where the fault is the whole file's.
#[derive(Debug)]
pub struct ReadError {
    /// The file.
    pub file: PathBuf,
    /// Line, from 1.
    pub line: u32,
    /// Column in octets, from 1.
    pub column: u32,
    /// What is wrong.
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

/// What to do where a file cannot be read, to be put behind the error; empty where the error says all.
#[must_use]
pub fn read_remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::IsADirectory => ": name a file in it",
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => ": mend the path",
        std::io::ErrorKind::PermissionDenied => ": make it readable for this user",
        _ => "",
    }
}
