//! Subjects of measurements: the signature algorithms and the VRFs of NSEC5, from their tables in
//! `nonesuch-crypto`.

use nonesuch_crypto::vrf::{self, VRF_ALGORITHMS, VrfAlgorithm};
use nonesuch_crypto::{ALGORITHMS, Algorithm, AlgorithmEntry, Implementation, Operation as CryptoOperation};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Prefix of the names of VRFs. The name of the VRF in its table follows: `vrf-p256`.
const VRF_PREFIX: &str = "vrf-";

/// A subject of measurements: one algorithm with one key length, one VRF, or a batch of one of
/// these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Subject {
    /// The algorithm or VRF. If the algorithm has several key lengths, one is selected.
    pub(crate) selection: Selection,
    /// Number of signatures or proofs that are generated or verified together. `None`: one at a
    /// time.
    pub(crate) batch: Option<u16>,
}

/// A signature algorithm or a VRF, selected for measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Selection {
    /// A signature algorithm. Without a key length, it selects all key lengths.
    Signatures(AlgorithmChoice),
    /// A VRF of NSEC5.
    Vrf(VrfAlgorithm),
}

/// A signature algorithm and, for RSA, a key length. `bits` is `None` if the algorithm has only one
/// key length. In a selection for measurement, `None` selects all key lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AlgorithmChoice {
    /// The algorithm; never an alias.
    pub algorithm: Algorithm,
    /// Key length, in bits.
    pub bits: Option<u16>,
}

/// An operation that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Operation {
    /// Verify a signature, or a VRF proof.
    Verify,
    /// Generate a signature.
    Sign,
    /// Generate a VRF proof.
    Prove,
}

/// The text is not the name of a subject or selection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an algorithm: write a mnemonic such as ED25519, for RSA optionally with a length, such as \
    RSASHA256/2048, or a VRF such as vrf-p256; for a batch, write ED25519*64 or vrf-p256*32"
)]
pub struct SubjectError(String);

/// The text is not the name of an algorithm with an optional key length.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AlgorithmChoiceError {
    #[error("cannot generate keys of '{0}': `nonesuch key generate --help` lists the algorithms")]
    Algorithm(String),
    #[error("{0} has the same cost as {1}: use {1}")]
    Alias(Algorithm, Algorithm),
    #[error("keys of {0} have a fixed length: omit /BITS")]
    Fixed(Algorithm),
    #[error("'{found}' is not a length of {algorithm} keys: use one of {lengths:?}")]
    Bits { algorithm: Algorithm, found: String, lengths: Vec<u16> },
}

/// The text is not the name of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an operation: known are verify, sign and prove")]
pub struct OperationNameError(String);

impl Operation {
    /// All operations.
    pub const ALL: [Self; 3] = [Self::Verify, Self::Sign, Self::Prove];

    /// Returns the name of the operation in experiments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Sign => "sign",
            Self::Prove => "prove",
        }
    }

    /// Returns the operation in the tables of algorithms.
    const fn crypto_operation(self) -> CryptoOperation {
        match self {
            Self::Verify => CryptoOperation::Verify,
            Self::Sign | Self::Prove => CryptoOperation::Generate,
        }
    }
}

impl FromStr for Operation {
    type Err = OperationNameError;

    fn from_str(text: &str) -> Result<Self, OperationNameError> {
        let found = Self::ALL.into_iter().find(|operation| operation.name() == text);
        found.ok_or_else(|| OperationNameError(text.to_owned()))
    }
}

impl AlgorithmChoice {
    /// Returns all algorithms with all their key lengths, without aliases: an alias has the same
    /// cost as its algorithm.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let entries = ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none());
        entries.flat_map(|entry| Self { algorithm: entry.algorithm, bits: None }.variants()).collect()
    }

    /// Adds the default key length if `bits` is `None` and the algorithm has several key lengths.
    pub(crate) fn with_default_key_length(self) -> Self {
        let lengths = self.algorithm.entry().and_then(|entry| entry.scheme.key_lengths.as_ref());
        Self { bits: self.bits.or_else(|| lengths.map(|lengths| lengths.default)), ..self }
    }

    /// Returns one choice for each key length if `bits` is `None`, otherwise `self`.
    fn variants(self) -> Vec<Self> {
        let Some(entry) = self.algorithm.entry() else { return Vec::new() };
        let lengths = lengths(entry);
        if self.bits.is_some() || lengths.is_empty() {
            return vec![self];
        }
        lengths.into_iter().map(|bits| Self { bits: Some(bits), ..self }).collect()
    }

    /// Returns the name of the scheme: `RSA-2048`, `ECDSA P-256`. RSA has the same name with both
    /// hashes.
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
            (Algorithm::SLHDSA128S, _) => "SLH-DSA-128s".to_owned(),
            (_, Some(bits)) => format!("RSA-{bits}"),
            (algorithm, None) => algorithm.to_string(),
        }
    }

    /// Whether the scheme is considered secure against quantum computers.
    #[must_use]
    pub const fn is_post_quantum(&self) -> bool {
        matches!(
            self.algorithm,
            Algorithm::MLDSA44 | Algorithm::FALCON512 | Algorithm::MAYO2 | Algorithm::SLHDSA128S
        )
    }

    /// Whether signing a large zone takes hours, because a signature takes more than 10 ms
    /// ([`Scheme::signs_slowly`](nonesuch_crypto::Scheme::signs_slowly)).
    #[must_use]
    pub fn signs_slowly(&self) -> bool {
        self.algorithm.entry().is_some_and(|entry| entry.scheme.signs_slowly)
    }
}

/// Returns the reason why an algorithm is experimental, or `None` if it is not. `name` is the
/// mnemonic of the algorithm or the name of its scheme.
pub(crate) fn experimental(name: &str) -> Option<&'static str> {
    let is_it = |entry: &&AlgorithmEntry| {
        entry.mnemonic == name || AlgorithmChoice { algorithm: entry.algorithm, bits: None }.scheme() == name
    };
    ALGORITHMS.iter().find(is_it)?.scheme.experimental
}

/// Returns the key lengths of an algorithm in ascending order, including weak ones, because zones
/// still use them.
fn lengths(entry: &AlgorithmEntry) -> Vec<u16> {
    let lengths = entry.scheme.key_lengths.as_ref();
    lengths.map_or_else(Vec::new, |lengths| lengths.forced.iter().chain(lengths.offered).copied().collect())
}

impl Subject {
    /// Returns the subjects of the selections in `chosen`, or of all algorithms and VRFs if
    /// `chosen` is empty. If `batch` is not 0, batches of `batch` signatures are included; if
    /// `vrf_batch` is not 0, batches of `vrf_batch` proofs. Aliases are omitted, because they have
    /// the same scheme as their algorithm.
    #[must_use]
    pub fn list(chosen: &[Selection], batch: u16, vrf_batch: u16) -> Vec<Self> {
        let chosen = if chosen.is_empty() { Selection::all() } else { chosen.to_vec() };
        let mut subjects = Vec::new();
        for subject in chosen.into_iter().flat_map(|selection| selection.subjects(batch, vrf_batch)) {
            // Measure a subject once, even if it is selected twice.
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        }
        subjects
    }

    /// Returns the number of pairs of a subject and an operation that it has.
    pub(crate) fn count_pairs(subjects: &[Self], operations: &[Operation]) -> usize {
        let has = |operation: &Operation| subjects.iter().filter(|subject| subject.has(*operation)).count();
        operations.iter().map(has).sum()
    }

    /// Returns the algorithm and key length, or `None` for a VRF.
    #[must_use]
    pub const fn choice(&self) -> Option<AlgorithmChoice> {
        if let Selection::Signatures(choice) = self.selection { Some(choice) } else { None }
    }

    /// Returns the name of the scheme or VRF for reports, with the batch size.
    #[must_use]
    pub fn scheme(&self) -> String {
        let scheme = match self.selection {
            Selection::Signatures(choice) => choice.scheme(),
            Selection::Vrf(algorithm) => algorithm.to_string(),
        };
        self.batch.map_or_else(|| scheme.clone(), |size| format!("{scheme} (batch of {size})"))
    }

    /// Whether the subject has this operation. A batch has only operations that are faster in
    /// batches than one at a time.
    #[must_use]
    pub fn has(&self, operation: Operation) -> bool {
        let is_known = match self.selection {
            Selection::Signatures(_) => operation != Operation::Prove,
            Selection::Vrf(_) => operation != Operation::Sign,
        };
        is_known && (self.batch.is_none() || self.selection.batched().contains(&operation.crypto_operation()))
    }

    /// Returns the code that performs an operation of the subject in this process.
    #[must_use]
    pub fn implementation(&self, operation: Operation) -> Option<Implementation> {
        let (operation, batch) = (operation.crypto_operation(), self.batch.map_or(1, usize::from));
        match self.selection {
            // A measurement repeats the batch with the same key, so that its table is built.
            Selection::Signatures(choice) if operation == CryptoOperation::Verify && self.batch.is_some() => {
                nonesuch_crypto::implementation(choice.algorithm, operation, usize::MAX)
            }
            Selection::Signatures(choice) => {
                nonesuch_crypto::implementation(choice.algorithm, operation, batch)
            }
            Selection::Vrf(algorithm) => vrf::implementation(algorithm, operation),
        }
    }
}

impl Selection {
    /// Returns all algorithms, without aliases, and all VRFs.
    fn all() -> Vec<Self> {
        let entries = ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none());
        let signatures =
            entries.map(|entry| Self::Signatures(AlgorithmChoice { algorithm: entry.algorithm, bits: None }));
        signatures.chain(VRF_ALGORITHMS.iter().map(|entry| Self::Vrf(entry.algorithm))).collect()
    }

    /// Returns the algorithm with each selected key length. The list is empty for a VRF.
    pub(crate) fn choices(self) -> Vec<AlgorithmChoice> {
        if let Self::Signatures(choice) = self { choice.variants() } else { Vec::new() }
    }

    /// Returns one selection for each key length if `self` has none, otherwise `self`.
    fn variants(self) -> Vec<Self> {
        match self {
            Self::Signatures(_) => self.choices().into_iter().map(Self::Signatures).collect(),
            Self::Vrf(_) => vec![self],
        }
    }

    /// Returns the operations that are faster in batches than one at a time. A selection of one key
    /// length has none.
    fn batched(self) -> &'static [CryptoOperation] {
        match self {
            Self::Signatures(AlgorithmChoice { algorithm, bits: None }) => {
                algorithm.entry().map_or(&[], |entry| entry.scheme.batched)
            }
            Self::Signatures(_) => &[],
            Self::Vrf(algorithm) => algorithm.entry().map_or(&[], |entry| entry.batched),
        }
    }

    /// Returns the subjects of this selection, followed by a batch if batches are faster than a
    /// loop.
    fn subjects(self, batch: u16, vrf_batch: u16) -> Vec<Subject> {
        let single = |selection| Subject { selection, batch: None };
        let size = if matches!(self, Self::Vrf(_)) { vrf_batch } else { batch };
        let has_batches = size > 0 && !self.batched().is_empty();
        let batched = has_batches.then_some(Subject { selection: self, batch: Some(size) });
        self.variants().into_iter().map(single).chain(batched).collect()
    }
}

/// Parses the name of a VRF such as `vrf-p256`.
fn vrf(text: &str) -> Option<VrfAlgorithm> {
    let name = text.get(..VRF_PREFIX.len()).filter(|prefix| prefix.eq_ignore_ascii_case(VRF_PREFIX));
    name.and_then(|prefix| VrfAlgorithm::from_name(&text[prefix.len()..]))
}

/// Returns the name of a VRF with the prefix.
fn vrf_name(algorithm: VrfAlgorithm) -> String {
    format!("{VRF_PREFIX}{}", algorithm.entry().map_or("", |entry| entry.name))
}

impl fmt::Display for AlgorithmChoice {
    /// Formats as `ED25519` or `RSASHA256/2048`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            Some(bits) => f.pad(&format!("{}/{bits}", self.algorithm)),
            None => self.algorithm.fmt(f),
        }
    }
}

impl FromStr for AlgorithmChoice {
    type Err = AlgorithmChoiceError;

    fn from_str(text: &str) -> Result<Self, AlgorithmChoiceError> {
        let (name, bits) = match text.split_once('/') {
            Some((name, bits)) => (name, Some(bits)),
            None => (text, None),
        };
        let unknown = || AlgorithmChoiceError::Algorithm(name.to_owned());
        let algorithm: Algorithm = name.parse().map_err(|_| unknown())?;
        let entry = algorithm.entry().ok_or_else(unknown)?;
        if let Some(plain) = entry.alias_of {
            return Err(AlgorithmChoiceError::Alias(algorithm, plain));
        }
        let Some(found) = bits else { return Ok(Self { algorithm, bits: None }) };
        let lengths = lengths(entry);
        match found.parse() {
            _ if lengths.is_empty() => Err(AlgorithmChoiceError::Fixed(algorithm)),
            Ok(bits) if lengths.contains(&bits) => Ok(Self { algorithm, bits: Some(bits) }),
            _ => Err(AlgorithmChoiceError::Bits { algorithm, found: found.to_owned(), lengths }),
        }
    }
}

impl fmt::Display for Selection {
    /// Formats as `RSASHA256`, `RSASHA256/2048` or `vrf-p256`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signatures(choice) => choice.fmt(f),
            Self::Vrf(algorithm) => f.pad(&vrf_name(*algorithm)),
        }
    }
}

impl FromStr for Selection {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let signatures = || text.parse().map(Self::Signatures).map_err(|_| SubjectError(text.to_owned()));
        vrf(text).map_or_else(signatures, |algorithm| Ok(Self::Vrf(algorithm)))
    }
}

impl fmt::Display for Subject {
    /// Formats the selection. For a batch, `*` and the size follow: `ED25519*64`, `vrf-p256*32`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.batch {
            Some(size) => f.pad(&format!("{}*{size}", self.selection)),
            None => self.selection.fmt(f),
        }
    }
}

impl FromStr for Subject {
    type Err = SubjectError;

    fn from_str(text: &str) -> Result<Self, SubjectError> {
        let wrong = || SubjectError(text.to_owned());
        let Some((name, size)) = text.split_once('*') else {
            let selection: Selection = text.parse()?;
            let is_complete = selection.variants() == [selection];
            return is_complete.then_some(Self { selection, batch: None }).ok_or_else(wrong);
        };
        let size = size.parse::<u16>().ok().filter(|size| *size > 0);
        let selection = name.parse().ok().filter(|selection: &Selection| !selection.batched().is_empty());
        let (selection, size) = selection.zip(size).ok_or_else(wrong)?;
        Ok(Self { selection, batch: Some(size) })
    }
}

/// Implements the conversions for serialisation as text.
macro_rules! serde_as_text {
    ($error:ty: $($name:ident),*) => {$(
        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.to_string()
            }
        }
    )*};
}

pub(crate) use serde_as_text;

serde_as_text!(SubjectError: Selection, Subject);
serde_as_text!(AlgorithmChoiceError: AlgorithmChoice);

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_subjects_are_the_tables_without_aliases() {
        let subjects = Subject::list(&[], 64, 32);
        // Two algorithms with five RSA key lengths each, eight with one key length, and two batches;
        // four VRFs, three of them with a batch.
        assert_eq!(subjects.len(), 2 * 5 + 8 + 2 + 4 + 3);
        assert_eq!(subjects.iter().collect::<HashSet<_>>().len(), subjects.len());
        for entry in ALGORITHMS {
            let is_it = |choice: AlgorithmChoice| choice.algorithm == entry.algorithm;
            let found = subjects.iter().any(|subject| subject.choice().is_some_and(is_it));
            assert_eq!(found, entry.alias_of.is_none(), "{}", entry.mnemonic);
        }
        for entry in &VRF_ALGORITHMS {
            assert!(
                subjects.iter().any(|subject| subject.selection == Selection::Vrf(entry.algorithm)),
                "{}",
                entry.mnemonic
            );
        }
        assert_eq!(Subject::list(&[], 0, 0).len(), subjects.len() - 5);
        for subject in subjects {
            assert_eq!(subject.to_string().parse(), Ok(subject));
            assert!(!subject.scheme().is_empty());
            for operation in Operation::ALL.into_iter().filter(|operation| subject.has(*operation)) {
                assert!(subject.implementation(operation).is_some(), "{subject} {}", operation.name());
            }
        }
    }

    #[test]
    fn choices_stand_for_every_length_they_do_not_name() {
        let list = |names: &[&str]| {
            let chosen: Vec<Selection> = names.iter().map(|name| name.parse().expect("a choice")).collect();
            Subject::list(&chosen, 8, 4).iter().map(Subject::to_string).collect::<Vec<_>>()
        };
        assert_eq!(list(&["rsasha256/2048", "ED25519", "15"]), ["RSASHA256/2048", "ED25519", "ED25519*8"]);
        assert_eq!(list(&["RSASHA512"]).len(), 5);
        assert_eq!(list(&["VRF-P256", "vrf-rsa", "vrf-1"]), ["vrf-p256", "vrf-p256*4", "vrf-rsa"]);
    }

    #[test]
    fn what_is_nothing_is_refused() {
        for wrong in ["", "RSA", "RSASHA256/512", "ED25519/256", "229", "99", "RSASHA256/x", "ED25519*64"] {
            assert_eq!(wrong.parse::<Selection>(), Err(SubjectError(wrong.to_owned())));
        }
        for wrong in [
            "RSASHA256",
            "ED25519*0",
            "ED25519*x",
            "ED448*64",
            "ED25519*",
            "vrf-",
            "vrf-p384",
            "vrf-rsa*32",
            "vrf-p256*0",
        ] {
            assert!(wrong.parse::<Subject>().is_err(), "{wrong}");
        }
        assert!("vrf-p256*32".parse::<Selection>().is_err());
        assert!("hash".parse::<Operation>().is_err());
    }

    #[test]
    fn batches_have_the_operations_that_are_faster_in_batches() {
        let batch: Subject = "ED25519*64".parse().expect("a batch");
        assert!(batch.has(Operation::Verify) && !batch.has(Operation::Sign));
        assert_eq!(batch.scheme(), "Ed25519 (batch of 64)");
        let single: Subject = "ED25519".parse().expect("a subject");
        assert_ne!(batch.implementation(Operation::Verify), single.implementation(Operation::Verify));
        let batch: Subject = "ECDSAP256SHA256*64".parse().expect("a batch");
        assert!(batch.has(Operation::Verify) && batch.has(Operation::Sign));
        let library = |operation| batch.implementation(operation).map(|found| found.library);
        assert_eq!([Operation::Verify, Operation::Sign].map(library), [Some("nonesuch"); 2]);
    }

    #[test]
    fn vrfs_prove_and_verify_and_their_batches_what_shares_work() {
        let has = |name: &str| {
            let subject: Subject = name.parse().expect("a subject");
            Operation::ALL.map(|operation| subject.has(operation))
        };
        assert_eq!(has("ED25519"), [true, true, false]);
        assert_eq!(has("vrf-ed25519"), [true, false, true]);
        assert_eq!(has("vrf-ed25519*32"), [false, false, true]);
        assert_eq!(has("vrf-p256*32"), [true, false, true]);
        let batch: Subject = "vrf-ed25519*32".parse().expect("a batch");
        assert_eq!(batch.scheme(), "ECVRF-EDWARDS25519-SHA512-ELL2 (batch of 32)");
    }

    #[test]
    fn choices_are_read_and_have_a_length() {
        let choice = |algorithm, bits| Ok(AlgorithmChoice { algorithm, bits });
        let read = |text: &str| text.parse().map(AlgorithmChoice::with_default_key_length);
        assert_eq!(read("rsasha256"), choice(Algorithm::RSASHA256, Some(2048)));
        assert_eq!(read("RSASHA512/1280"), choice(Algorithm::RSASHA512, Some(1280)));
        assert_eq!(read("8/1024"), choice(Algorithm::RSASHA256, Some(1024)));
        assert_eq!(read("mayo2"), choice(Algorithm::MAYO2, None));
        let error = |text: &str| text.parse::<AlgorithmChoice>().unwrap_err();
        for unknown in ["", "rsa", "99", "256", "/2048"] {
            assert_eq!(
                error(unknown),
                AlgorithmChoiceError::Algorithm(unknown.trim_end_matches("/2048").to_owned())
            );
        }
        let alias = AlgorithmChoiceError::Alias(Algorithm(232), Algorithm::ED448);
        assert_eq!((error("nsec5-ed448"), error("232")), (alias.clone(), alias));
        assert_eq!(error("ed25519/256"), AlgorithmChoiceError::Fixed(Algorithm::ED25519));
        for found in ["", "1281", "512", "70000", "x", "2048/1"] {
            let (algorithm, lengths) = (Algorithm::RSASHA256, vec![1024, 1280, 2048, 3072, 4096]);
            let expected = AlgorithmChoiceError::Bits { algorithm, found: found.to_owned(), lengths };
            assert_eq!(error(&format!("rsasha256/{found}")), expected);
        }
    }
}
