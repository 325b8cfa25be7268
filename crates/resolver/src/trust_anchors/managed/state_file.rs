//! The text format of the state: one line for each key, for people to read.
//!
//! ```text
//! ; Trust anchors of ., updated automatically (RFC 5011). Do not change this file.
//! nonesuch-trust-anchors 1
//! zone .
//! query next=2026-10-12T00:00:00Z original-ttl=172800 expiration-interval=1814400
//! key valid since=2026-10-11T00:00:00Z DNSKEY 257 3 8 AwEAAaz... ; tag 20326
//! key addpend since=2026-10-11T00:00:00Z until=2026-11-10T00:00:00Z signers=20326 DNSKEY 257 3 8 AwEAAa9... ; tag 38696
//! end 2
//! ```
//!
//! `query` has no times of signatures before the first RRset that was accepted. The states are
//! `addpend`, `valid`, `missing`, `revoked` and `removed`. `end` has the number of keys, so that a
//! truncated file is not read.

use super::key::{KeyState, ManagedKey};
use super::refresh::Refresh;
use super::rrset::SignatureTimes;
use super::{ManagedAnchor, ManagedAnchorError, clamp};
use crate::trust_anchors::ZoneAnchor;
use crate::trust_anchors::file::{RecordFault, check};
use nonesuch_proto::rdata::{push_from_tokens, push_text};
use nonesuch_proto::text::Token;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::fmt::Write as _;

/// The first word of a state file.
const MAGIC: &str = "nonesuch-trust-anchors";
/// The version of the format.
const VERSION: &str = "1";
/// Maximum number of keys in a file.
const MAX_KEYS: usize = 64;
/// Maximum number of signers of a key.
const MAX_SIGNERS: usize = 32;

/// Why a state file is not read. The messages have no file name; the caller adds it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A line has a fault.
    #[error(
        "line {line}: {fault}: restore the file from a copy, or delete it to start again from the configured \
        trust anchors"
    )]
    Line {
        /// The line, from 1.
        line: usize,
        /// The fault.
        fault: StateFault,
    },
    /// The file is of another zone.
    #[error("it is the state of the zone {found}, not of {expected}: name the file of {expected}")]
    OtherZone {
        /// The zone in the file.
        found: Name,
        /// The zone of the configured trust anchors.
        expected: Name,
    },
    /// The configured trust anchors are wrong.
    #[error("{0}")]
    Configured(#[from] ManagedAnchorError),
}

/// A fault of a line in a state file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateFault {
    /// The first line is not that of a state file.
    #[error("this is not a file of trust anchor states: expected '{MAGIC} {VERSION}'")]
    NoStateFile,
    /// The file has another version.
    #[error("the version of the format is not {VERSION}")]
    Version,
    /// The line is not the one that the format has here.
    #[error("expected a line that begins with '{0}'")]
    Expected(&'static str),
    /// A field is missing or malformed.
    #[error("expected the field '{0}'")]
    Field(&'static str),
    /// The state of a key is unknown.
    #[error("expected a state: addpend, valid, missing, revoked or removed")]
    State,
    /// The key is malformed.
    #[error("{0}")]
    Key(RecordFault),
    /// The key occurs twice.
    #[error("this key occurs twice")]
    SecondKey,
    /// There are too many keys.
    #[error("more than {MAX_KEYS} keys")]
    TooManyKeys,
    /// The number of keys in the last line is wrong.
    #[error("the number of keys is not {0}")]
    Count(usize),
    /// The file has further lines after its last line.
    #[error("a line follows the last one")]
    Trailing,
}

impl ManagedAnchor {
    /// Returns the state as text, which [`ManagedAnchor::parse`] reads.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!(
            "; Trust anchors of {0}, updated automatically (RFC 5011). Do not change this file.\n\
            {MAGIC} {VERSION}\nzone {0}\nquery next={1}",
            self.apex,
            Rfc3339(self.refresh.next),
        );
        // Writing to a `String` cannot fail.
        if let Some(times) = self.refresh.times {
            let (ttl, interval) = (times.original_ttl, times.expiration_interval);
            let _ = write!(text, " original-ttl={ttl} expiration-interval={interval}");
        }
        text.push('\n');
        for key in &self.keys {
            push_key(key, &mut text);
        }
        let _ = writeln!(text, "end {}", self.keys.len());
        text
    }

    /// Reads the state from text and merges it with the configured trust anchors of today, as the
    /// documentation of the module describes. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// The text is malformed or of another zone, or as [`ManagedAnchor::new`].
    pub fn parse(text: &str, configured: &ZoneAnchor, now: u64) -> Result<Self, StateError> {
        let (apex, refresh, keys) = read(text).map_err(|(line, fault)| StateError::Line { line, fault })?;
        if apex != configured.apex {
            return Err(StateError::OtherZone { found: apex, expected: configured.apex.clone() });
        }
        Ok(Self::with_keys(configured, keys, refresh, clamp(now))?)
    }
}

fn push_key(key: &ManagedKey, text: &mut String) {
    let _ = write!(text, "key {} since={}", key.state().name(), Rfc3339(key.since()));
    if let KeyState::AddPend { until, .. } | KeyState::Revoked { until } = key.state() {
        let _ = write!(text, " until={}", Rfc3339(*until));
    }
    if let KeyState::AddPend { signers, .. } = key.state() {
        let signers: Vec<String> = signers.iter().map(u16::to_string).collect();
        let _ = write!(text, " signers={}", signers.join(","));
    }
    let mut rdata = Vec::new();
    push_text(Rtype::DNSKEY, key.rdata(), &mut rdata);
    let _ = writeln!(text, " DNSKEY {} ; tag {}", String::from_utf8_lossy(&rdata), key.tag());
}

type Read<T> = Result<T, StateFault>;

/// The words of a line, without those after a word that begins with a semicolon.
struct Words<'a>(std::str::SplitAsciiWhitespace<'a>);

impl<'a> Words<'a> {
    fn take(&mut self) -> Option<&'a str> {
        self.0.next().filter(|word| !word.starts_with(';'))
    }

    /// Takes the word `name=value` and returns the value.
    fn value(&mut self, name: &'static str) -> Read<&'a str> {
        let value = self.take().and_then(|word| word.strip_prefix(name)?.strip_prefix('='));
        value.ok_or(StateFault::Field(name))
    }

    fn time(&mut self, name: &'static str) -> Read<u64> {
        let time = Rfc3339::parse(self.value(name)?.as_bytes());
        time.map(|time| time.0).ok_or(StateFault::Field(name))
    }

    fn number(&mut self, name: &'static str) -> Read<u32> {
        self.value(name)?.parse().map_err(|_| StateFault::Field(name))
    }

    /// Checks that there are no more words.
    fn end(&mut self, last: &'static str) -> Read<()> {
        if self.take().is_none() { Ok(()) } else { Err(StateFault::Field(last)) }
    }
}

/// The lines of a file that are not comments.
struct Lines<'a> {
    lines: std::iter::Enumerate<std::str::Lines<'a>>,
    /// The last line, from 1.
    line: usize,
}

impl<'a> Lines<'a> {
    /// Returns the first word of the next line and the other words.
    fn next(&mut self) -> Option<(&'a str, Words<'a>)> {
        for (index, line) in self.lines.by_ref() {
            self.line = index + 1;
            let mut words = Words(line.split_ascii_whitespace());
            if let Some(first) = words.take() {
                return Some((first, words));
            }
        }
        self.line += 1;
        None
    }

    fn expect(&mut self, keyword: &'static str) -> Read<Words<'a>> {
        match self.next() {
            Some((first, words)) if first == keyword => Ok(words),
            _ => Err(StateFault::Expected(keyword)),
        }
    }
}

/// Reads the zone, the schedule and the keys.
///
/// # Errors
/// The line of the first fault, and the fault.
fn read(text: &str) -> Result<(Name, Refresh, Vec<ManagedKey>), (usize, StateFault)> {
    let mut lines = Lines { lines: text.lines().enumerate(), line: 0 };
    read_lines(&mut lines).map_err(|fault| (lines.line, fault))
}

fn read_lines(lines: &mut Lines<'_>) -> Read<(Name, Refresh, Vec<ManagedKey>)> {
    let mut header = lines.expect(MAGIC).map_err(|_| StateFault::NoStateFile)?;
    if header.take() != Some(VERSION) || header.end("version").is_err() {
        return Err(StateFault::Version);
    }
    let mut zone = lines.expect("zone")?;
    let apex = zone.take().and_then(|name| Name::from_text(name.as_bytes(), Some(NameRef::ROOT)).ok());
    let apex = apex.ok_or(StateFault::Field("zone"))?.view().to_canonical();
    zone.end("zone")?;
    let refresh = read_query(lines.expect("query")?)?;
    let keys = read_keys(lines)?;
    if lines.next().is_some() { Err(StateFault::Trailing) } else { Ok((apex, refresh, keys)) }
}

/// Reads the lines of the keys and the line `end`.
fn read_keys(lines: &mut Lines<'_>) -> Read<Vec<ManagedKey>> {
    let mut keys: Vec<ManagedKey> = Vec::new();
    loop {
        match lines.next() {
            Some(("key", words)) => {
                let key = read_key(words)?;
                if keys.len() == MAX_KEYS {
                    return Err(StateFault::TooManyKeys);
                }
                if keys.iter().any(|known| known.rdata() == key.rdata()) {
                    return Err(StateFault::SecondKey);
                }
                keys.push(key);
            }
            Some(("end", mut words)) => {
                let count = words.take().and_then(|count| count.parse().ok());
                let is_right = count == Some(keys.len()) && words.end("end").is_ok();
                return if is_right { Ok(keys) } else { Err(StateFault::Count(keys.len())) };
            }
            _ => return Err(StateFault::Expected("key' or 'end")),
        }
    }
}

fn read_query(mut words: Words<'_>) -> Read<Refresh> {
    let next = words.time("next")?;
    // A copy of the iterator: the other fields are optional.
    if Words(words.0.clone()).take().is_none() {
        return Ok(Refresh { next, times: None });
    }
    let original_ttl = words.number("original-ttl")?;
    let expiration_interval = words.number("expiration-interval")?;
    words.end("expiration-interval")?;
    Ok(Refresh { next, times: Some(SignatureTimes { original_ttl, expiration_interval }) })
}

fn read_key(mut words: Words<'_>) -> Read<ManagedKey> {
    let name = words.take().ok_or(StateFault::State)?;
    let since = words.time("since")?;
    let state = match name {
        "addpend" => {
            KeyState::AddPend { until: words.time("until")?, signers: read_signers(words.value("signers")?)? }
        }
        "valid" => KeyState::Valid,
        "missing" => KeyState::Missing,
        "revoked" => KeyState::Revoked { until: words.time("until")? },
        "removed" => KeyState::Removed,
        _ => return Err(StateFault::State),
    };
    if words.take() != Some("DNSKEY") {
        return Err(StateFault::Field("DNSKEY"));
    }
    let fields = std::iter::from_fn(|| words.take());
    let tokens: Vec<Token<'_>> =
        fields.map(|word| Token { octets: word.as_bytes(), quoted: false, at: 0 }).collect();
    let mut rdata = Vec::new();
    push_from_tokens(Rtype::DNSKEY, &tokens, None, &mut rdata)
        .map_err(|error| StateFault::Key(RecordFault::Rdata(error.fault)))?;
    check(Rtype::DNSKEY, rdata.clone()).map_err(StateFault::Key)?;
    Ok(ManagedKey::new(rdata, state, since))
}

fn read_signers(text: &str) -> Read<Vec<u16>> {
    let signers: Option<Vec<u16>> =
        text.split(',').take(MAX_SIGNERS + 1).map(|tag| tag.parse().ok()).collect();
    signers.filter(|signers| signers.len() <= MAX_SIGNERS).ok_or(StateFault::Field("signers"))
}
