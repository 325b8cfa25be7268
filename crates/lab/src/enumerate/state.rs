//! The state of an enumeration as a text file, from which a later run continues.
//!
//! Each line has a keyword and fields separated by spaces:
//!
//! | line | content |
//! | --- | --- |
//! | `nonesuch-enumerate 1` | first line: format and its version |
//! | `zone NAME` | the zone |
//! | `params ITERATIONS SALT` | parameters of the NSEC3 records; salt in hexadecimal, or `-` |
//! | `nsec3 HASH NEXT OPTOUT TYPES` | NSEC3 record: hashes in base32hex, 0 or 1, types separated by commas, or `-` |
//! | `sample KNOWN UNCOVERED SPAN` | sample for the estimate of the number of names |
//! | `nsec OWNER NEXT TYPES` | NSEC record |
//! | `name HASH NAME` | a name with its hash |
//! | `done PLAN PARENT POSITION` | number of units of a search plan that are finished below a name |
//! | `end` | last line: the file is complete |

use super::collect::{Hash, Nsec3Chain};
use super::estimate::Sample;
use super::hash_chain::ChainRecord;
use super::walk::{NsecChain, NsecRecord};
use data_encoding::{BASE32HEX_NOPAD, HEXLOWER_PERMISSIVE};
use nonesuch_dnssec::Nsec3Params;
use nonesuch_dnssec::denial::nsec3::label;
use nonesuch_proto::{Name, Rtype};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const FIRST_LINE: &str = "nonesuch-enumerate 1";

/// The collected data of a zone.
#[derive(Clone, Debug)]
pub struct State {
    /// The zone.
    pub zone: Name,
    /// The NSEC records.
    pub nsec: NsecChain,
    /// The NSEC3 records.
    pub nsec3: Nsec3Chain,
    /// The names found for hashes of `nsec3`.
    pub names: BTreeMap<Hash, Name>,
    /// The finished units of each search plan below each name.
    pub positions: BTreeMap<(String, Name), u64>,
}

/// A line of a state is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}: remove the file, or name another one, to start again")]
pub struct StateError {
    /// The number of the line, from 1.
    pub line: usize,
    /// The fault.
    pub fault: StateFault,
}

/// A fault of a state file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StateFault {
    /// The first line is not that of a state.
    #[error("not a state of nonesuch enumerate")]
    Format,
    /// A line has an unknown keyword or malformed fields.
    #[error("malformed line")]
    Line,
    /// The last line is missing.
    #[error("the file is incomplete")]
    Incomplete,
}

impl State {
    /// The state before the first query.
    #[must_use]
    pub fn new(zone: &Name) -> Self {
        Self {
            zone: zone.view().to_canonical(),
            nsec: NsecChain::default(),
            nsec3: Nsec3Chain::default(),
            names: BTreeMap::new(),
            positions: BTreeMap::new(),
        }
    }

    /// The hashes whose names are unknown.
    pub fn unknown_hashes(&self) -> impl Iterator<Item = &Hash> {
        self.nsec3.chain.records().map(|(hash, _)| hash).filter(|hash| !self.names.contains_key(*hash))
    }

    /// Writes the state.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\nzone {}\n", self.zone);
        // Writing to a `String` cannot fail.
        if let Some(params) = &self.nsec3.params {
            let _ = writeln!(text, "params {} {}", params.iterations, salt_text(&params.salt));
        }
        for (hash, record) in self.nsec3.chain.records() {
            let (hash, next) = (hash_text(hash), hash_text(&record.next));
            let _ = writeln!(
                text,
                "nsec3 {hash} {next} {} {}",
                u8::from(record.opt_out),
                types_text(&record.types)
            );
        }
        for Sample { known, uncovered, span } in self.nsec3.chain.samples() {
            let _ = writeln!(text, "sample {known} {uncovered:e} {span:e}");
        }
        for (owner, record) in self.nsec.records() {
            let _ = writeln!(text, "nsec {owner} {} {}", record.next, types_text(&record.types));
        }
        for (hash, name) in &self.names {
            let _ = writeln!(text, "name {} {name}", hash_text(hash));
        }
        for ((plan, parent), position) in &self.positions {
            let _ = writeln!(text, "done {plan} {parent} {position}");
        }
        text + "end\n"
    }

    /// Reads a state.
    ///
    /// # Errors
    /// The text is not a complete state.
    pub fn parse(text: &str) -> Result<Self, StateError> {
        let mut lines = text.lines().zip(1..);
        let fault = |line, fault| StateError { line, fault };
        let first = lines.next().filter(|(line, _)| *line == FIRST_LINE);
        first.ok_or_else(|| fault(1, StateFault::Format))?;
        let zone = lines.next().and_then(|(line, _)| line.strip_prefix("zone ")?.parse().ok());
        let mut state = Self::new(&zone.ok_or_else(|| fault(2, StateFault::Line))?);
        let (mut samples, mut last, mut is_complete) = (Vec::new(), 2, false);
        for (line, number) in lines {
            last = number;
            if is_complete {
                return Err(fault(number, StateFault::Line));
            }
            let fields: Vec<&str> = line.split(' ').collect();
            is_complete = fields == ["end"];
            if !is_complete {
                state.read_line(&fields, &mut samples).ok_or_else(|| fault(number, StateFault::Line))?;
            }
        }
        state.nsec3.chain.set_samples(samples);
        if is_complete { Ok(state) } else { Err(fault(last, StateFault::Incomplete)) }
    }

    fn read_line(&mut self, fields: &[&str], samples: &mut Vec<Sample>) -> Option<()> {
        match fields {
            ["params", iterations, salt] => {
                let salt = if *salt == "-" {
                    Vec::new()
                } else {
                    HEXLOWER_PERMISSIVE.decode(salt.as_bytes()).ok()?
                };
                self.nsec3.params = Some(Nsec3Params { salt, iterations: iterations.parse().ok()? });
            }
            ["nsec3", hash, next, opt_out, types] => {
                let opt_out = opt_out.parse::<u8>().ok()? != 0;
                let record = ChainRecord { next: read_hash(next)?, opt_out, types: read_types(types)? };
                self.nsec3.chain.insert(read_hash(hash)?, record);
            }
            ["sample", known, uncovered, span] => samples.push(Sample {
                known: known.parse().ok()?,
                uncovered: uncovered.parse().ok().filter(|share| (0.0..=1.0).contains(share))?,
                span: span.parse().ok().filter(|share| (0.0..=1.0).contains(share))?,
            }),
            ["nsec", owner, next, types] => {
                let record = NsecRecord { next: next.parse().ok()?, types: read_types(types)? };
                self.nsec.insert(owner.parse().ok()?, record);
            }
            ["name", hash, name] => {
                self.names.insert(read_hash(hash)?, name.parse().ok()?);
            }
            ["done", plan, parent, position] => {
                let place = ((*plan).to_owned(), parent.parse().ok()?);
                self.positions.insert(place, position.parse().ok()?);
            }
            _ => return None,
        }
        Some(())
    }

    /// The hashes whose names are unknown, in the format of hashcat's mode 8300: hash, zone, salt and
    /// iterations. One line for each.
    #[must_use]
    pub fn to_hashcat(&self) -> String {
        let Some(params) = &self.nsec3.params else { return String::new() };
        let zone = self.zone.to_string();
        let zone = zone.trim_end_matches('.');
        let salt = data_encoding::HEXLOWER.encode(&params.salt);
        let mut text = String::new();
        for hash in self.unknown_hashes() {
            let _ = writeln!(text, "{}:.{zone}:{salt}:{}", hash_text(hash), params.iterations);
        }
        text
    }
}

/// The salt in presentation form (RFC 5155 §3.3).
pub(super) fn salt_text(salt: &[u8]) -> String {
    if salt.is_empty() { "-".to_owned() } else { data_encoding::HEXLOWER.encode(salt) }
}

/// A hash as in an owner name.
pub(super) fn hash_text(hash: &Hash) -> String {
    String::from_utf8_lossy(&label(hash)).into_owned()
}

fn read_hash(text: &str) -> Option<Hash> {
    BASE32HEX_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok()?.try_into().ok()
}

fn types_text(types: &[Rtype]) -> String {
    let names: Vec<String> = types.iter().map(Rtype::to_string).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

fn read_types(text: &str) -> Option<Vec<Rtype>> {
    if text == "-" { Some(Vec::new()) } else { text.split(',').map(|name| name.parse().ok()).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        let mut state = State::new(&"Example.".parse().expect("a name"));
        state.nsec3.params = Some(Nsec3Params { salt: vec![0xaa, 1], iterations: 5 });
        for (owner, next, types) in [(1, 90, vec![Rtype::A, Rtype(65_280)]), (90, 200, vec![])] {
            let record = ChainRecord { next: [next; 20], opt_out: owner == 90, types };
            state.nsec3.chain.insert_sample([owner; 20], record);
        }
        let record = NsecRecord { next: "b\\032c.example.".parse().expect("a name"), types: vec![Rtype::NS] };
        state.nsec.insert("example.".parse().expect("a name"), record);
        state.names.insert([90; 20], "www.example.".parse().expect("a name"));
        state.positions.insert(("abc".to_owned(), "example.".parse().expect("a name")), 17);
        state
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let text = state().to_text();
        let read = State::parse(&text).expect("a state");
        assert_eq!(read.to_text(), text);
        assert_eq!(read.nsec3.chain.len(), 2);
        assert_eq!(read.nsec3.chain.samples(), state().nsec3.chain.samples());
        assert_eq!(read.positions.len(), 1);
    }

    #[test]
    fn a_damaged_state_is_rejected_with_its_line() {
        let text = state().to_text();
        let fault = |text: &str| State::parse(text).map(|_| ()).expect_err("damaged");
        assert_eq!(fault(""), StateError { line: 1, fault: StateFault::Format });
        assert_eq!(fault(&text.replace("end\n", "")).fault, StateFault::Incomplete);
        assert_eq!(
            fault(&text.replace("params 5", "params x")),
            StateError { line: 3, fault: StateFault::Line }
        );
        assert_eq!(fault(&(text.clone() + "end\n")).fault, StateFault::Line);
        // A file that was cut anywhere is never read as a smaller state.
        for length in (0..text.len() - 1).filter(|length| text.is_char_boundary(*length)) {
            assert!(State::parse(&text[..length]).is_err(), "{length}");
        }
    }

    /// The example of hashcat for its mode 8300.
    #[test]
    fn hashes_are_exported_for_hashcat() {
        let mut state = State::new(&"lvdsiqfj.net.".parse().expect("a name"));
        state.nsec3.params = Some(Nsec3Params { salt: vec![0x33, 0x16, 0x44, 0x73], iterations: 1 });
        let hash = read_hash("7b5n74kq8r441blc2c5qbbat19baj79r").expect("a hash");
        let record = ChainRecord { next: hash, opt_out: false, types: Vec::new() };
        state.nsec3.chain.insert(hash, record);
        assert_eq!(state.to_hashcat(), "7b5n74kq8r441blc2c5qbbat19baj79r:.lvdsiqfj.net:33164473:1\n");
        let name: Name = "x.lvdsiqfj.net.".parse().expect("a name");
        state.names.insert(hash, name);
        assert_eq!(state.to_hashcat(), "");
    }
}
