//! Errors of scenario files.

use nonesuch_proto::NameError;
use nonesuch_proto::rdata::RdataError;
use std::fmt;
use std::path::PathBuf;

/// A fault of a scenario file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RplError {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 if the fault concerns the whole file.
    pub line: u32,
    /// The fault.
    pub fault: RplFault,
}

impl fmt::Display for RplError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.fault),
            line => write!(f, "{}:{line}: {}", self.file.display(), self.fault),
        }
    }
}

impl std::error::Error for RplError {}

/// A fault of a scenario file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RplFault {
    /// The file cannot be read.
    #[error("cannot read the file: {0}")]
    Unreadable(std::io::ErrorKind),
    /// The text ends before a keyword that must follow.
    #[error("{0} is missing before the end of the file")]
    Missing(&'static str),
    /// A line begins with a word that is not permitted there.
    #[error("unexpected {found}; expected {expected}")]
    Unexpected {
        /// The first word of the line.
        found: String,
        /// What is permitted.
        expected: &'static str,
    },
    /// A word of a list, such as MATCH, is unknown.
    #[error("unknown word {word} after {keyword}")]
    UnknownWord {
        /// The keyword of the line.
        keyword: &'static str,
        /// The unknown word.
        word: String,
    },
    /// A number, a time or an address is malformed.
    #[error("expected {expected}, found {found}")]
    Value {
        /// The permitted form.
        expected: &'static str,
        /// The text.
        found: String,
    },
    /// A step does not follow the previous one.
    #[error("step {0} does not have a higher number than the step before it")]
    StepOrder(u32),
    /// A quoted string does not end on its line.
    #[error("a quoted string does not end on its line")]
    UnclosedQuote,
    /// An owner name or a zone name is malformed.
    #[error("malformed name: {0}")]
    Name(#[from] NameError),
    /// A record has no type, or an unknown one.
    #[error("the record has no known type")]
    NoType,
    /// The RDATA of a record is malformed.
    #[error("malformed RDATA: {0}")]
    Rdata(#[from] RdataError),
    /// An option of the configuration is unknown.
    #[error("unknown option {0}")]
    UnknownOption(String),
}
