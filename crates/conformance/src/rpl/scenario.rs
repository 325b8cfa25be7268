//! Whole scenarios.

use super::Dialect;
use super::config;
use super::entry::Entry;
use super::error::{RplError, RplFault};
use super::lines::{Lines, address, number, without_comment, words};
use super::record::Defaults;
use super::settings::ScenarioSettings;
use super::step::Step;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Maximum length of a file in octets. The longest scenario of Deckard has 413 KiB.
const MAX_FILE: u64 = 16 << 20;

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The file.
    pub file: PathBuf,
    /// The text after SCENARIO_BEGIN.
    pub title: String,
    /// The configuration that the scenario expects.
    pub settings: ScenarioSettings,
    /// Simulated servers, in the order of the file.
    pub ranges: Vec<Range>,
    /// The steps, in the order of the file.
    pub steps: Vec<Step>,
}

/// A simulated server during a range of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The line of RANGE_BEGIN.
    pub line: u32,
    /// Number of the first step.
    pub first: u32,
    /// Number of the last step.
    pub last: u32,
    /// The addresses of the server; empty: any address.
    pub addresses: Vec<SocketAddr>,
    /// What the server answers. The first entry that matches a query is used.
    pub entries: Vec<Entry>,
}

impl Scenario {
    /// Reads the scenario in `file`. `dialect`: `None` to detect the dialect.
    ///
    /// # Errors
    /// If the file cannot be read, or at the first fault in it.
    pub fn read(file: &Path, dialect: Option<Dialect>) -> Result<Self, RplError> {
        let fail = |kind| RplError { file: file.to_owned(), line: 0, fault: RplFault::Unreadable(kind) };
        let length = std::fs::metadata(file).map_err(|error| fail(error.kind()))?.len();
        if length > MAX_FILE {
            return Err(fail(std::io::ErrorKind::FileTooLarge));
        }
        let octets = std::fs::read(file).map_err(|error| fail(error.kind()))?;
        Self::parse(&String::from_utf8_lossy(&octets), file, dialect)
    }

    /// Reads a scenario. `file` is used in errors; `dialect`: `None` to detect the dialect.
    ///
    /// # Errors
    /// At the first fault.
    pub fn parse(text: &str, file: &Path, dialect: Option<Dialect>) -> Result<Self, RplError> {
        let mut lines = Lines::new(text);
        let read = read(&mut lines, file, dialect);
        read.map_err(|fault| RplError { file: file.to_owned(), line: lines.number, fault })
    }
}

fn read(lines: &mut Lines<'_>, file: &Path, dialect: Option<Dialect>) -> Result<Scenario, RplFault> {
    let (settings, first) = config::read(lines, dialect)?;
    let first = match first {
        Some(line) => line,
        None => lines.next_line().ok_or(RplFault::Missing("SCENARIO_BEGIN"))?,
    };
    let title = first.strip_prefix("SCENARIO_BEGIN").ok_or_else(|| unexpected(first, "SCENARIO_BEGIN"))?;
    let mut scenario = Scenario {
        file: file.to_owned(),
        title: title.trim().to_owned(),
        settings,
        ranges: Vec::new(),
        steps: Vec::new(),
    };
    read_body(lines, &mut scenario)?;
    Ok(scenario)
}

/// Reads ranges and steps until SCENARIO_END, or until the end of the file: some scenarios of
/// Deckard have no SCENARIO_END.
fn read_body(lines: &mut Lines<'_>, scenario: &mut Scenario) -> Result<(), RplFault> {
    let dialect = scenario.settings.dialect;
    let mut defaults = Defaults::default();
    while let Some(line) = lines.next_line() {
        match without_comment(line).split_whitespace().next().unwrap_or_default() {
            "RANGE_BEGIN" => scenario.ranges.push(Range::read(line, lines, dialect, &mut defaults)?),
            "STEP" => {
                let step = Step::read(line, lines, dialect, &mut defaults)?;
                let is_later = scenario.steps.last().is_none_or(|last| last.number < step.number);
                if dialect == Dialect::Unbound && !is_later {
                    return Err(RplFault::StepOrder(step.number));
                }
                scenario.steps.push(step);
            }
            "$ORIGIN" => defaults.origin = config::name(words(line).nth(1).unwrap_or_default())?,
            "$TTL" => defaults.ttl = number(words(line).nth(1))?,
            "SCENARIO_END" => return Ok(()),
            _ => return Err(unexpected(line, "RANGE_BEGIN, STEP or SCENARIO_END")),
        }
    }
    Ok(())
}

impl Range {
    /// Reads a range whose first line is `line`.
    fn read(
        line: &str,
        lines: &mut Lines<'_>,
        dialect: Dialect,
        defaults: &mut Defaults,
    ) -> Result<Self, RplFault> {
        let mut arguments = words(line).skip(1);
        let (first, last) = (number(arguments.next())?, number(arguments.next())?);
        let mut range = Self { line: lines.number, first, last, addresses: Vec::new(), entries: Vec::new() };
        if let Some(word) = arguments.next() {
            range.addresses.push(address(Some(word))?);
        }
        loop {
            let line = lines.next_line().ok_or(RplFault::Missing("RANGE_END"))?;
            match without_comment(line).split_whitespace().next().unwrap_or_default() {
                "RANGE_END" => return Ok(range),
                "ADDRESS" => range.add_address(address(words(line).nth(1))?, dialect),
                "ENTRY_BEGIN" => range.entries.push(Entry::read(lines, dialect, defaults)?),
                _ => return Err(unexpected(line, "ADDRESS, ENTRY_BEGIN or RANGE_END")),
            }
        }
    }

    /// Adds an address. A range of Unbound has only one, the last.
    fn add_address(&mut self, address: SocketAddr, dialect: Dialect) {
        if dialect == Dialect::Unbound {
            self.addresses.clear();
        }
        self.addresses.push(address);
    }
}

fn unexpected(line: &str, expected: &'static str) -> RplFault {
    let found = line.split_whitespace().next().unwrap_or_default().to_owned();
    RplFault::Unexpected { found, expected }
}
