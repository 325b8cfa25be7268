//! The list of scenarios that are known not to pass.

use std::fmt;
use std::path::Path;

/// Why a scenario does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionKind {
    /// The scenario needs something that the resolver does not have; the reason names it.
    NotApplicable,
    /// The resolver behaves differently on purpose; the reason cites the RFC.
    Deviation,
}

impl ExceptionKind {
    const ALL: [Self; 2] = [Self::NotApplicable, Self::Deviation];

    /// Returns the word of the list.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotApplicable => "not-applicable",
            Self::Deviation => "deviation",
        }
    }
}

impl fmt::Display for ExceptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The end of the path of the scenario, for example `resolver/iter_resolve.rpl`.
    pub file: String,
    /// The kind.
    pub kind: ExceptionKind,
    /// The reason.
    pub reason: String,
    /// The line of the list.
    pub line: u32,
}

/// A fault of the list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExceptionsError {
    /// A line does not have the form of an entry.
    #[error("line {0}: expected FILE = KIND: REASON, where KIND is not-applicable or deviation")]
    Line(u32),
    /// A file is listed twice.
    #[error("line {0}: {1} is listed twice")]
    Duplicate(u32, String),
}

/// The list. Each line is `FILE = KIND: REASON`; a comment begins with `#`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exceptions(Vec<Exception>);

impl Exceptions {
    /// Reads a list.
    ///
    /// # Errors
    /// At the first malformed line, or a file that is listed twice.
    pub fn parse(text: &str) -> Result<Self, ExceptionsError> {
        let mut list: Vec<Exception> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let exception = parse_line(number, line).ok_or(ExceptionsError::Line(number))?;
            if list.iter().any(|other| other.file == exception.file) {
                return Err(ExceptionsError::Duplicate(number, exception.file));
            }
            list.push(exception);
        }
        Ok(Self(list))
    }

    /// Returns the list in the source of this crate, for the scenarios of Deckard.
    ///
    /// # Errors
    /// If the list is malformed, which a test prevents.
    pub fn built_in() -> Result<Self, ExceptionsError> {
        Self::parse(include_str!("../../exceptions.txt"))
    }

    /// Returns the entry of a scenario.
    #[must_use]
    pub fn find(&self, scenario: &Path) -> Option<&Exception> {
        self.0.iter().find(|exception| scenario.ends_with(&exception.file))
    }

    /// Returns all entries.
    pub fn iter(&self) -> impl Iterator<Item = &Exception> {
        self.0.iter()
    }
}

fn parse_line(number: u32, line: &str) -> Option<Exception> {
    let (file, rest) = line.split_once('=')?;
    let (kind, reason) = rest.split_once(':')?;
    let kind = ExceptionKind::ALL.into_iter().find(|known| known.word() == kind.trim())?;
    let (file, reason) = (file.trim().to_owned(), reason.trim().to_owned());
    let is_complete = !file.is_empty() && !reason.is_empty();
    is_complete.then_some(Exception { file, kind, reason, line: number })
}
