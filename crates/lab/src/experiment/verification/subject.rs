//! What is measured: signature schemes, by the table of algorithms.

use nonesuch_crypto::{ALGORITHMS, Algorithm, AlgorithmEntry};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Algorithms with a form of `verify_batch` that is faster than a loop, and what does its arithmetic.
const BATCHED: &[(Algorithm, &str)] = &[(Algorithm::ED25519, "curve25519-dalek")];

/// What does the arithmetic of batches; nothing where there is only the loop.
fn batch_library(algorithm: Algorithm) -> Option<&'static str> {
    BATCHED.iter().find(|(batched, _)| *batched == algorithm).map(|(_, library)| *library)
}

/// Something with operations that can be counted. Other things than signatures are variants too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum Subject {
    /// Signatures by keys of one algorithm, one by one.
    Signature(Choice),
    /// Signatures of one algorithm that are verified together.
    Batch {
        /// The algorithm.
        algorithm: Algorithm,
        /// Signatures verified together.
        size: u16,
    },
}

/// An algorithm, for RSA with the length of its keys. `bits` is absent where keys have one length; in a choice of what
/// to measure, absence stands for every length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Choice {
    /// The algorithm; never an alias.
    pub algorithm: Algorithm,
    /// Length of keys, bits.
    pub bits: Option<u16>,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Operation {
    /// A signature is verified.
    Verify,
    /// A signature is made.
    Sign,
}

/// Not the name of anything that can be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no algorithm: give a mnemonic such as ED25519, for RSA also with a length, as RSASHA256/2048; a batch is ED25519*64"
)]
pub struct SubjectError(String);

impl Operation {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Verify, Self::Sign];

    /// The name, as experiments have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Sign => "sign",
        }
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|operation| operation.name() == text);
        found.ok_or_else(|| format!("'{text}' is no operation: there are verify and sign"))
    }
}

impl Choice {
    /// Every choice that `self` stands for: one for each length of keys where it names none.
    fn variants(self) -> Vec<Self> {
        let Some(entry) = self.algorithm.entry() else { return Vec::new() };
        let lengths = lengths(entry);
        if self.bits.is_some() || lengths.is_empty() {
            return vec![self];
        }
        lengths.into_iter().map(|bits| Self { bits: Some(bits), ..self }).collect()
    }

    /// The scheme in words: `RSA-2048`, `ECDSA P-256`. Both hashes of RSA share one.
    #[must_use]
    pub fn scheme(&self) -> String {
        match (self.algorithm, self.bits) {
            (Algorithm::ECDSAP256SHA256, _) => "ECDSA P-256".to_owned(),
            (Algorithm::ECDSAP384SHA384, _) => "ECDSA P-384".to_owned(),
            (Algorithm::ED25519, _) => "Ed25519".to_owned(),
            (Algorithm::ED448, _) => "Ed448".to_owned(),
            (Algorithm::MLDSA44, _) => "ML-DSA-44".to_owned(),
            (Algorithm::FALCON512, _) => "Falcon-512".to_owned(),
            (Algorithm::MAYO2, _) => "MAYO-2".to_owned(),
            (_, Some(bits)) => format!("RSA-{bits}"),
            (algorithm, None) => algorithm.to_string(),
        }
    }
}

/// Lengths of an algorithm's keys, ascending, those too that are known to be weak: zones still have them.
fn lengths(entry: &AlgorithmEntry) -> Vec<u16> {
    let lengths = entry.scheme.key_lengths.as_ref();
    lengths.map_or_else(Vec::new, |lengths| lengths.forced.iter().chain(lengths.offered).copied().collect())
}

impl Subject {
    /// What is measured: the chosen algorithms, or all of the table, and batches of `batch` signatures (none for 0).
    /// A number and its alias have the same scheme: aliases are left out.
    #[must_use]
    pub fn list(chosen: &[Choice], batch: u16) -> Vec<Self> {
        let all = || {
            let entries = ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none());
            entries.map(|entry| Choice { algorithm: entry.algorithm, bits: None }).collect()
        };
        let chosen = if chosen.is_empty() { all() } else { chosen.to_vec() };
        let mut subjects = Vec::new();
        for choice in chosen.into_iter().flat_map(Choice::variants) {
            let batched = batch > 0 && batch_library(choice.algorithm).is_some();
            let rows = [
                Some(Self::Signature(choice)),
                batched.then_some(Self::Batch { algorithm: choice.algorithm, size: batch }),
            ];
            for subject in rows.into_iter().flatten() {
                // What is named twice is measured once.
                if !subjects.contains(&subject) {
                    subjects.push(subject);
                }
            }
        }
        subjects
    }

    /// The algorithm and length of its keys.
    #[must_use]
    pub const fn choice(&self) -> Choice {
        match *self {
            Self::Signature(choice) => choice,
            Self::Batch { algorithm, .. } => Choice { algorithm, bits: None },
        }
    }

    /// In words, for readers.
    #[must_use]
    pub fn scheme(&self) -> String {
        match self {
            Self::Signature(choice) => choice.scheme(),
            Self::Batch { size, .. } => format!("{} (batch of {size})", self.choice().scheme()),
        }
    }

    /// Whether there is such an operation.
    #[must_use]
    pub fn has(&self, operation: Operation) -> bool {
        match self {
            Self::Signature(_) => true,
            Self::Batch { .. } => operation == Operation::Verify,
        }
    }

    /// What implements it.
    #[must_use]
    pub fn library(&self) -> &'static str {
        match self {
            Self::Signature(choice) => choice.algorithm.entry().map_or("", |entry| entry.scheme.library),
            Self::Batch { algorithm, .. } => batch_library(*algorithm).unwrap_or_default(),
        }
    }
}

impl fmt::Display for Choice {
    /// `ED25519`, `RSASHA256/2048`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            Some(bits) => f.pad(&format!("{}/{bits}", self.algorithm)),
            None => self.algorithm.fmt(f),
        }
    }
}

impl FromStr for Choice {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let wrong = || SubjectError(text.to_owned());
        let (name, bits) = match text.split_once('/') {
            Some((name, bits)) => (name, Some(bits.parse::<u16>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let algorithm: Algorithm = name.parse().map_err(|_| wrong())?;
        let entry = algorithm.entry().filter(|entry| entry.alias_of.is_none()).ok_or_else(wrong)?;
        match bits {
            Some(bits) if !lengths(entry).contains(&bits) => Err(wrong()),
            _ => Ok(Self { algorithm, bits }),
        }
    }
}

impl fmt::Display for Subject {
    /// As a choice; a batch with its size, as `ED25519*64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signature(choice) => choice.fmt(f),
            Self::Batch { size, .. } => f.pad(&format!("{}*{size}", self.choice())),
        }
    }
}

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let wrong = || SubjectError(text.to_owned());
        let Some((name, size)) = text.split_once('*') else {
            let choice: Choice = text.parse()?;
            let complete = choice.bits.is_some() || choice.variants() == [choice];
            return complete.then_some(Self::Signature(choice)).ok_or_else(wrong);
        };
        let size = size.parse::<u16>().ok().filter(|size| *size > 0).ok_or_else(wrong)?;
        let Choice { algorithm, bits: None } = name.parse()? else { return Err(wrong()) };
        batch_library(algorithm).is_some().then_some(Self::Batch { algorithm, size }).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Choice {
    type Error = SubjectError;

    fn try_from(text: String) -> Result<Self, SubjectError> {
        text.parse()
    }
}

impl From<Choice> for String {
    fn from(choice: Choice) -> Self {
        choice.to_string()
    }
}

impl TryFrom<String> for Subject {
    type Error = SubjectError;

    fn try_from(text: String) -> Result<Self, SubjectError> {
        text.parse()
    }
}

impl From<Subject> for String {
    fn from(subject: Subject) -> Self {
        subject.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_subjects_are_the_table_without_aliases() {
        let subjects = Subject::list(&[], 64);
        // Two algorithms with five lengths of RSA keys each, seven with one, and the batch.
        assert_eq!(subjects.len(), 2 * 5 + 7 + 1);
        assert_eq!(subjects.iter().collect::<HashSet<_>>().len(), subjects.len());
        for entry in ALGORITHMS {
            let found = subjects.iter().any(|subject| subject.choice().algorithm == entry.algorithm);
            assert_eq!(found, entry.alias_of.is_none(), "{}", entry.mnemonic);
        }
        assert_eq!(Subject::list(&[], 0).len(), subjects.len() - 1);
        for subject in subjects {
            assert_eq!(subject.to_string().parse(), Ok(subject));
            assert!(!subject.library().is_empty() && !subject.scheme().is_empty());
        }
    }

    #[test]
    fn choices_stand_for_every_length_they_do_not_name() {
        let list = |names: &[&str]| {
            let choices: Vec<Choice> = names.iter().map(|name| name.parse().expect("a choice")).collect();
            Subject::list(&choices, 8).iter().map(Subject::to_string).collect::<Vec<_>>()
        };
        assert_eq!(list(&["rsasha256/2048", "ED25519", "15"]), ["RSASHA256/2048", "ED25519", "ED25519*8"]);
        assert_eq!(list(&["RSASHA512"]).len(), 5);
    }

    #[test]
    fn what_is_nothing_is_refused() {
        for wrong in ["", "RSA", "RSASHA256/512", "ED25519/256", "229", "99", "RSASHA256/x", "ED25519*64"] {
            assert_eq!(wrong.parse::<Choice>(), Err(SubjectError(wrong.to_owned())));
        }
        for wrong in ["RSASHA256", "ED25519*0", "ED25519*x", "ED448*64", "ED25519*"] {
            assert!(wrong.parse::<Subject>().is_err(), "{wrong}");
        }
        assert!("prove".parse::<Operation>().is_err());
    }

    #[test]
    fn batches_are_verified_only() {
        let batch: Subject = "ED25519*64".parse().expect("a batch");
        assert!(batch.has(Operation::Verify) && !batch.has(Operation::Sign));
        assert_eq!(batch.scheme(), "Ed25519 (batch of 64)");
    }
}
