//! Steps: what happens one after the other.

use super::Dialect;
use super::entry::Entry;
use super::error::RplFault;
use super::lines::{Lines, address, number, without_comment};
use super::record::Defaults;
use std::net::SocketAddr;
use std::time::Duration;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number, which a range of servers refers to.
    pub number: u32,
    /// The line of STEP.
    pub line: u32,
    /// What happens.
    pub action: Action,
}

/// What happens in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `QUERY`: a client sends the message; Unbound may give the address of the client.
    Query(Entry, Option<SocketAddr>),
    /// `CHECK_ANSWER`: the reply must match the entry; Unbound may give the address of the client.
    CheckAnswer(Entry, Option<SocketAddr>),
    /// `CHECK_OUT_QUERY`: the resolver has sent a query, to this address if one is given.
    CheckOutQuery(Entry, Option<SocketAddr>),
    /// `REPLY`: a server sends the message.
    Reply(Entry),
    /// `TIME_PASSES ELAPSE`: time passes.
    TimePasses(Duration),
    /// `TIMEOUT`: the query to a server runs into its timeout.
    Timeout,
    /// `ERROR`: the query to a server fails.
    Error,
    /// `NOTHING`, `TRAFFIC`, and `CHECK_TEMPFILE`, which only concerns Unbound's files.
    Nothing,
    /// Another action, which is unsupported.
    Unsupported(String),
}

impl Step {
    /// Reads a step whose first line is `line`.
    pub(super) fn read(
        line: &str,
        lines: &mut Lines<'_>,
        dialect: Dialect,
        defaults: &mut Defaults,
    ) -> Result<Self, RplFault> {
        let first_line = lines.number;
        let mut words = without_comment(line).split_whitespace().skip(1);
        let number = number(words.next())?;
        let name = words.next().unwrap_or_default();
        let rest: Vec<&str> = words.collect();
        let mut entry = || read_entry(lines, dialect, defaults);
        let action = match name {
            "QUERY" => Action::Query(entry()?, read_address(&rest)?),
            "CHECK_ANSWER" | "ANSWER" => {
                let entry = entry()?;
                match rest.iter().find(|word| word.contains('=')) {
                    Some(repetition) => Action::Unsupported((*repetition).to_owned()),
                    None => Action::CheckAnswer(entry, read_address(&rest)?),
                }
            }
            "CHECK_OUT_QUERY" => Action::CheckOutQuery(entry()?, read_address(&rest)?),
            "REPLY" | "MOCK" => Action::Reply(entry()?),
            "TIME_PASSES" => read_time(&rest)?,
            "TIMEOUT" => Action::Timeout,
            "ERROR" => Action::Error,
            "NOTHING" | "TRAFFIC" => Action::Nothing,
            "CHECK_TEMPFILE" | "CHECK_TEMP_FILE" => skip_file(lines).map(|()| Action::Nothing)?,
            "CHECK_AUTOTRUST" => skip_file(lines).map(|()| Action::Unsupported(name.to_owned()))?,
            "ASSIGN" | "INFRA_RTT" | "FLUSH_MESSAGE" | "EXPIRE_MESSAGE" => {
                Action::Unsupported(name.to_owned())
            }
            _ => return Err(RplFault::UnknownWord { keyword: "STEP", word: name.to_owned() }),
        };
        Ok(Self { number, line: first_line, action })
    }

    /// Returns the entry of the step, if it has one.
    #[must_use]
    pub const fn entry(&self) -> Option<&Entry> {
        match &self.action {
            Action::Query(entry, _)
            | Action::CheckAnswer(entry, _)
            | Action::CheckOutQuery(entry, _)
            | Action::Reply(entry) => Some(entry),
            _ => None,
        }
    }
}

/// Reads the entry of a step.
fn read_entry(lines: &mut Lines<'_>, dialect: Dialect, defaults: &mut Defaults) -> Result<Entry, RplFault> {
    let line = lines.next_line().ok_or(RplFault::Missing("ENTRY_BEGIN"))?;
    match line.split_whitespace().next() {
        Some(first) if first.starts_with("ENTRY_BEGIN") => Entry::read(lines, dialect, defaults),
        found => {
            Err(RplFault::Unexpected { found: found.unwrap_or_default().to_owned(), expected: "ENTRY_BEGIN" })
        }
    }
}

/// Reads `ADDRESS ip_address`.
fn read_address(words: &[&str]) -> Result<Option<SocketAddr>, RplFault> {
    match words {
        [] => Ok(None),
        ["ADDRESS", word] => address(Some(word)).map(Some),
        [word, ..] => Err(RplFault::Unexpected { found: (*word).to_owned(), expected: "ADDRESS or nothing" }),
    }
}

/// Reads `ELAPSE seconds`. `EVAL` needs Unbound's macros, which are unsupported.
fn read_time(words: &[&str]) -> Result<Action, RplFault> {
    let seconds = match words {
        ["ELAPSE", seconds] => *seconds,
        ["EVAL", ..] => return Ok(Action::Unsupported("TIME_PASSES EVAL".to_owned())),
        _ => return Err(RplFault::Unexpected { found: words.join(" "), expected: "ELAPSE or EVAL" }),
    };
    let duration = seconds.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let fault = || RplFault::Value { expected: "a number of seconds", found: seconds.to_owned() };
    duration.map(Action::TimePasses).ok_or_else(fault)
}

/// Skips the contents of a file, which follow a step in FILE_BEGIN and FILE_END.
fn skip_file(lines: &mut Lines<'_>) -> Result<(), RplFault> {
    lines.skip_until("FILE_END")
}
