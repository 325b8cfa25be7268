//! Verification rates of algorithms: measured on this machine, published in document 000, or from a
//! file.

use crate::files::read_bounded;
use crate::measure::{AlgorithmChoice, CountError, MeasureOptions, Operation, Selection, Subject, measure};
use crate::published::{self, Cell};
use crate::statistics::ValueRange;
use nonesuch_crypto::Algorithm;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum size of a file of rates, in octets.
const MAX_FILE_OCTETS: u64 = 1 << 20;
/// Maximum number of rates in a file.
const MAX_RATES: usize = 200;
/// Number of signatures in a measured batch.
const BATCH: u16 = 64;
/// Number of measurements of each rate.
const ITERATIONS: u32 = 5;

/// Where rates come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateSource {
    /// The five key benchmarks of document 000.
    Published,
    /// Measurements on this machine, one core.
    Measured,
    /// A file of the user.
    File,
}

/// The rate at which one core verifies signatures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rate {
    /// Name of the scheme: `ECDSA P-256`.
    pub scheme: String,
    /// Mnemonic of the algorithm, for RSA with the key length; `None` if it is not in the table of
    /// algorithms.
    pub algorithm: Option<String>,
    /// The implementation or device, with the batch size.
    pub implementation: String,
    /// Origin of the rate.
    pub source: RateSource,
    /// Verified signatures per second of one core; the median, if measured.
    pub per_second: f64,
    /// Minimum and maximum of several measurements.
    pub range: Option<(f64, f64)>,
    /// Whether it is the rate of batches of signatures.
    pub is_batch: bool,
    /// Octets of a signature and of a public key; `None` if the algorithm is not in the table.
    pub sizes: Option<Sizes>,
    /// Whether the algorithm is experimental in this program.
    pub is_experimental: bool,
}

/// Sizes of an algorithm, in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The signature field of an RRSIG record.
    pub signature: u32,
    /// The public key field of a DNSKEY record.
    pub key: u32,
}

/// Why rates cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum RatesError {
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: not UTF-8 text: name a TOML file with tables [[rate]]", path.display())]
    NotText { path: PathBuf },
    #[error("{}: {source}", path.display())]
    Syntax { path: PathBuf, source: Box<toml::de::Error> },
    #[error("{}: no rates: add a table [[rate]] with name, algorithm and per-second", path.display())]
    NoRates { path: PathBuf },
    #[error("{}: {found} rates; the maximum is {MAX_RATES}: remove some", path.display())]
    TooMany { path: PathBuf, found: usize },
    #[error("{}: rate {number} ({name}): per-second is {found}: write a number above 0", path.display())]
    NotPositive { path: PathBuf, number: usize, name: String, found: f64 },
    #[error("cannot measure verification on this machine: {0}")]
    Measurement(#[from] CountError),
}

/// A file of rates.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RateFile {
    #[serde(default)]
    rate: Vec<RateForm>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RateForm {
    name: String,
    algorithm: AlgorithmChoice,
    per_second: f64,
}

impl Sizes {
    /// Returns the sizes of an algorithm of the table. RSA: for the public exponent 65537, the key
    /// field has an octet for its length and three for the exponent (RFC 3110, section 2).
    pub(crate) fn of(choice: AlgorithmChoice) -> Option<Self> {
        let choice = choice.with_default_key_length();
        let scheme = choice.algorithm.entry()?.scheme;
        if let Some(bits) = choice.bits {
            let modulus = u32::from(bits) / 8;
            return Some(Self { signature: modulus, key: modulus + 4 });
        }
        let octets = |octets: Option<usize>| octets.and_then(|octets| u32::try_from(octets).ok());
        Some(Self { signature: octets(scheme.signature_octets)?, key: octets(scheme.public_key_octets)? })
    }
}

impl Rate {
    fn of(choice: AlgorithmChoice, implementation: String, source: RateSource, per_second: f64) -> Self {
        let choice = choice.with_default_key_length();
        Self {
            scheme: choice.scheme(),
            algorithm: Some(choice.to_string()),
            implementation,
            source,
            per_second,
            range: None,
            is_batch: false,
            sizes: Sizes::of(choice),
            is_experimental: choice
                .algorithm
                .entry()
                .is_some_and(|entry| entry.scheme.experimental.is_some()),
        }
    }

    /// Returns the name for tables: the scheme, with `*` if it is experimental.
    pub(crate) fn name(&self) -> String {
        let mark = if self.is_experimental { "*" } else { "" };
        format!("{}{mark}", self.scheme)
    }
}

/// Returns the five key benchmarks of document 000.
#[must_use]
pub fn published() -> Vec<Rate> {
    let rows =
        published::table("ecc-validation-rates").map(|table| table.rows.as_slice()).unwrap_or_default();
    let rate = |row: &Vec<Cell>| match row.as_slice() {
        [Cell::Text(scheme), Cell::Text(implementation), Cell::Number(per_second)] => {
            let choice = AlgorithmChoice::all().into_iter().find(|choice| choice.scheme() == *scheme)?;
            Some(Rate::of(choice, implementation.clone(), RateSource::Published, *per_second))
        }
        _ => None,
    };
    rows.iter().filter_map(rate).collect()
}

/// Measures all algorithms on this machine: one signature at a time, and batches where these are
/// faster. RSA has keys of the default length, and one row, because its hashes have the same cost.
///
/// # Errors
/// Fails if an operation fails.
pub fn measured(seconds: f64, seed: u64, commit: &'static str) -> Result<Vec<Rate>, RatesError> {
    let report = measure(&MeasureOptions {
        subjects: subjects(),
        operations: vec![Operation::Verify],
        iterations: ITERATIONS,
        seconds: seconds / f64::from(ITERATIONS),
        seed,
        commit,
    })?;
    let rate = |subject: Subject| {
        let counts = report.counts.iter().filter(|count| count.subject == subject);
        let rates: Vec<f64> =
            counts.map(|count| count.counted.operations as f64 / count.counted.seconds).collect();
        let ValueRange { value, least, most } = ValueRange::median(&rates)?;
        let implementation = subject.implementation(Operation::Verify)?;
        let batch = subject.batch.map_or_else(String::new, |size| format!(", batch of {size}"));
        let name = format!("this machine, {}{batch}", implementation.library);
        let rate = Rate::of(subject.choice()?, name, RateSource::Measured, value);
        Some(Rate { range: Some((least, most)), is_batch: subject.batch.is_some(), ..rate })
    };
    Ok(subjects().into_iter().filter_map(rate).collect())
}

fn subjects() -> Vec<Subject> {
    let choices = AlgorithmChoice::all().into_iter().filter(|choice| {
        *choice == AlgorithmChoice { bits: None, ..*choice }.with_default_key_length()
            && choice.algorithm != Algorithm::RSASHA512
    });
    // A selection with a key length has no batches; the others have no key length.
    let selections: Vec<Selection> = choices.map(Selection::Signatures).collect();
    Subject::list(&selections, BATCH, 0)
}

/// Reads a file of rates:
///
/// ```toml
/// [[rate]]
/// name = "home router"
/// algorithm = "ECDSAP256SHA256"
/// per-second = 35
/// ```
///
/// # Errors
/// Fails if the file cannot be read, is not in this form, has no rates or more than 200, or if a rate
/// is not a positive number.
pub fn read(path: &Path) -> Result<Vec<Rate>, RatesError> {
    let path_buf = || path.to_path_buf();
    let octets = read_bounded(path, MAX_FILE_OCTETS)
        .map_err(|source| RatesError::Read { path: path_buf(), source })?;
    let text = String::from_utf8(octets).map_err(|_| RatesError::NotText { path: path_buf() })?;
    let file: RateFile = toml::from_str(&text)
        .map_err(|source| RatesError::Syntax { path: path_buf(), source: Box::new(source) })?;
    match file.rate.len() {
        0 => return Err(RatesError::NoRates { path: path_buf() }),
        found if found > MAX_RATES => return Err(RatesError::TooMany { path: path_buf(), found }),
        _ => {}
    }
    let rate = |(index, RateForm { name, algorithm, per_second }): (usize, RateForm)| {
        if !per_second.is_finite() || per_second <= 0.0 {
            let (path, number) = (path_buf(), index + 1);
            return Err(RatesError::NotPositive { path, number, name, found: per_second });
        }
        Ok(Rate::of(algorithm, name, RateSource::File, per_second))
    };
    file.rate.into_iter().enumerate().map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_rates_are_the_five_of_the_document() {
        let rates = published();
        let found: Vec<(&str, f64)> =
            rates.iter().map(|rate| (rate.scheme.as_str(), rate.per_second)).collect();
        assert_eq!(
            found,
            [
                ("ECDSA P-384", 1236.0),
                ("ECDSA P-256", 3685.0),
                ("ECDSA P-256", 9787.0),
                ("Ed25519", 14162.0),
                ("Ed448", 4817.0)
            ]
        );
        assert!(rates.iter().all(|rate| rate.sizes.is_some()));
    }

    #[test]
    fn every_algorithm_has_sizes_and_is_measured() {
        for entry in nonesuch_crypto::ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
            let choice = AlgorithmChoice { algorithm: entry.algorithm, bits: None };
            assert!(Sizes::of(choice).is_some(), "{}", entry.mnemonic);
            let is_measured = subjects().iter().any(|subject| {
                subject
                    .choice()
                    .is_some_and(|found| found.scheme() == choice.with_default_key_length().scheme())
            });
            assert!(is_measured, "{}", entry.mnemonic);
        }
        let rsa = AlgorithmChoice { algorithm: Algorithm::RSASHA256, bits: Some(2048) };
        assert_eq!(Sizes::of(rsa), Some(Sizes { signature: 256, key: 260 }));
        assert!(subjects().iter().filter(|subject| subject.batch.is_some()).count() >= 2);
    }

    fn error_of(text: &str) -> RatesError {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("rates.toml");
        std::fs::write(&path, text).expect("written");
        read(&path).expect_err("refused")
    }

    #[test]
    fn files_of_rates_are_read_and_checked() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("rates.toml");
        let text = "[[rate]]\nname = 'a router'\nalgorithm = 'ecdsap256sha256'\nper-second = 35\n\
            [[rate]]\nname = 'x'\nalgorithm = 'RSASHA256/1024'\nper-second = 1e3\n";
        std::fs::write(&path, text).expect("written");
        let rates = read(&path).expect("rates");
        assert_eq!((rates[0].per_second, rates[0].scheme.as_str()), (35.0, "ECDSA P-256"));
        assert_eq!(rates[1].sizes, Some(Sizes { signature: 128, key: 132 }));
        assert!(matches!(error_of(""), RatesError::NoRates { .. }));
        assert!(matches!(error_of("rate = 3"), RatesError::Syntax { .. }));
        let with = |value: &str| format!("[[rate]]\nname='n'\nalgorithm='ED25519'\nper-second={value}\n");
        for value in ["0", "-1", "nan", "inf"] {
            assert!(matches!(error_of(&with(value)), RatesError::NotPositive { number: 1, .. }), "{value}");
        }
        assert!(matches!(error_of(&with("1").repeat(201)), RatesError::TooMany { found: 201, .. }));
        assert!(matches!(error_of(&with("1").replace("ED25519", "ROT13")), RatesError::Syntax { .. }));
        assert!(matches!(read(&folder.path().join("none")), Err(RatesError::Read { .. })));
    }
}
