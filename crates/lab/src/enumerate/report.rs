//! The report of an enumeration, as text and JSON.

use super::crack::CrackReport;
use super::estimate::Estimate;
use super::guess::GuessReport;
use super::stolen::StolenReport;
use nonesuch_proto::{Name, Rtype};
use serde::Serialize;
use std::fmt::Write as _;

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// What an enumeration has learnt.
#[derive(Clone, Debug, Serialize)]
pub struct EnumerationReport {
    /// The zone.
    pub zone: String,
    /// The server; `None` offline.
    pub server: Option<String>,
    /// The denial mechanism; `None` for a zone without DNSSEC denials, and offline.
    pub mechanism: Option<String>,
    /// The data that an attacker can learn from a zone with this mechanism.
    pub lesson: &'static str,
    /// Whether all that can be learnt was learnt.
    pub complete: bool,
    /// Why the enumeration ended before it was complete.
    pub stopped: Option<String>,
    /// Number of queries, attempts included.
    pub queries: u64,
    /// Duration of the queries in seconds.
    pub query_seconds: f64,
    /// Maximum number of queries per second.
    pub rate: Option<f64>,
    /// The names, in canonical order.
    pub names: Vec<FoundName>,
    /// The hashes of a zone with NSEC3.
    pub hashes: Option<HashReport>,
    /// The estimated number of names in the chain.
    pub estimated_names: Option<Estimate>,
    /// The search for the names of hashes.
    pub crack: Option<CrackReport>,
    /// The guesses online.
    pub guesses: Option<GuessReport>,
    /// What a thief of the server can do.
    pub stolen: Option<StolenReport>,
}

/// A name of the zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundName {
    /// The name.
    pub name: String,
    /// Its types; empty if unknown, or for an empty non-terminal.
    pub types: Vec<String>,
}

impl FoundName {
    pub(super) fn new(name: &Name, types: &[Rtype]) -> Self {
        Self { name: name.to_string(), types: types.iter().map(Rtype::to_string).collect() }
    }
}

/// The hashes of a zone.
#[derive(Clone, Debug, Serialize)]
pub struct HashReport {
    /// Additional iterations.
    pub iterations: u16,
    /// The salt in hexadecimal, or `-`.
    pub salt: String,
    /// Whether a record has the opt-out flag.
    pub opt_out: bool,
    /// Number of records.
    pub records: usize,
    /// The share of all hashes that the records cover, 0 to 1.
    pub coverage: f64,
    /// Number of hashes whose names are known.
    pub cracked: usize,
    /// The hashes whose names are unknown.
    pub unknown: Vec<UnknownHash>,
}

/// A hash whose name is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownHash {
    /// The hash in base32hex.
    pub hash: String,
    /// The types of the name.
    pub types: Vec<String>,
}

impl EnumerationReport {
    /// The report as text. Lists at most `listed` names and hashes each.
    #[must_use]
    pub fn to_text(&self, listed: usize) -> String {
        let mut text = String::new();
        self.push_names(listed, &mut text);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "zone {}: {}", self.zone, self.mechanism.as_deref().unwrap_or("no mechanism"));
        let _ = writeln!(text, "learnable: {}", self.lesson);
        if let (Some(server), Some(rate)) = (&self.server, self.rate) {
            let (queries, seconds) = (self.queries, self.query_seconds);
            let _ =
                writeln!(text, "queries: {queries} to {server} in {seconds:.1} s, at most {rate} per second");
        }
        if let Some(hashes) = &self.hashes {
            hashes.push(&mut text);
        }
        self.push_size(&mut text);
        if let Some(crack) = &self.crack {
            push_crack(crack, &mut text);
        }
        if let Some(guesses) = &self.guesses {
            self.push_guesses(guesses, &mut text);
        }
        if let Some(stolen) = &self.stolen {
            stolen.push_text(&mut text);
        }
        let end = match (&self.stopped, self.complete) {
            (Some(reason), _) => format!("incomplete: {reason}"),
            (None, true) => "complete".to_owned(),
            (None, false) => "incomplete".to_owned(),
        };
        let _ = writeln!(text, "{end}: {} known", count(self.names.len(), "name"));
        text
    }

    fn push_names(&self, listed: usize, text: &mut String) {
        for name in self.names.iter().take(listed) {
            let _ = writeln!(text, "{} {}", name.name, types_text(&name.types));
        }
        let unknown = self.hashes.iter().flat_map(|hashes| &hashes.unknown);
        for hash in unknown.take(listed) {
            let _ = writeln!(text, "{}.{} {}", hash.hash, self.zone, types_text(&hash.types));
        }
        let unknown = self.hashes.as_ref().map_or(0, |hashes| hashes.unknown.len());
        let hidden = self.names.len().saturating_sub(listed) + unknown.saturating_sub(listed);
        if hidden > 0 {
            let _ = writeln!(text, "and {hidden} more (--json lists all)");
        }
    }

    fn push_size(&self, text: &mut String) {
        let Some(Estimate { names, standard_error }) = self.estimated_names else { return };
        let size = if standard_error > 0.0 {
            format!(
                "about {names:.0} (standard error {standard_error:.0}), from the distances between hashes"
            )
        } else {
            format!("{names:.0}")
        };
        let _ = writeln!(text, "names in the chain: {size}");
    }

    fn push_guesses(&self, guesses: &GuessReport, text: &mut String) {
        let GuessReport { tested, found, planned } = guesses;
        let _ = write!(text, "guesses online: {found} of {tested} names exist ({planned} planned)");
        let rate = self.rate.unwrap_or_default();
        let _ = writeln!(text, "; {:.0} guesses a day at {rate} queries per second", rate * DAY);
    }
}

impl HashReport {
    fn push(&self, text: &mut String) {
        let Self { iterations, salt, records, coverage, cracked, .. } = self;
        let opt_out = if self.opt_out { ", opt-out" } else { "" };
        let _ = writeln!(text, "NSEC3: {iterations} iterations, salt {salt}{opt_out}");
        let covered = coverage * 100.0;
        let _ = writeln!(
            text,
            "hashes: {records} records cover {covered:.4} % of all hashes; {cracked} names found, {} unknown",
            self.unknown.len()
        );
    }
}

fn push_crack(crack: &CrackReport, text: &mut String) {
    let CrackReport { tested, seconds, hashes_per_second, threads, instruction_set, complete } = crack;
    let millions = hashes_per_second / 1e6;
    let end = if *complete { "" } else { "; not all names of the plan were tested" };
    let _ = writeln!(
        text,
        "search: {tested} names in {seconds:.2} s, {millions:.1} million per second ({}, {instruction_set}){end}",
        count(*threads, "thread")
    );
}

fn types_text(types: &[String]) -> String {
    if types.is_empty() { "-".to_owned() } else { types.join(" ") }
}

/// A number with a noun in the singular.
fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
