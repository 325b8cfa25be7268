//! The probe measures operations and outputs raw counts. The laboratory runs it in programs that
//! are built for other instruction levels or processors.
//!
//! The probe has two modes:
//!
//! - [`measure`] generates keys, performs all requested measurements, and returns one report.
//! - [`follow`] reads keys and orders, one for each line, and writes one line of JSON for each
//!   order. The caller can thus alternate between several programs.

use super::bench::{Bench, OperationError, PrepareError, make_key};
use super::subject::{Operation, Subject};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _, Write};

/// Name of this program in rows.
pub(crate) const NAME: &str = "nonesuch";

/// Version of the JSON format of the report and of the lines.
pub(crate) const FORMAT: u32 = 2;

/// Maximum length of an order, in octets. The keys of all subjects need less than 1 % of it.
const ORDER_MAX: u64 = 16 << 20;

/// Result of one measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountResult {
    pub operations: u64,
    /// Elapsed wall time, in seconds.
    pub seconds: f64,
    /// CPU time of the thread, in seconds, up to the last clock tick; `None` if the system does not
    /// provide it.
    pub cpu_seconds: Option<f64>,
}

/// Options of [`measure`].
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// Subjects; empty: all.
    pub subjects: Vec<Subject>,
    /// Operations. Operations that a subject does not have are skipped for this subject.
    pub operations: Vec<Operation>,
    /// Number of iterations.
    pub iterations: u32,
    /// Duration of each measurement, in seconds.
    pub seconds: f64,
    /// Seed of messages and VRF inputs.
    pub seed: u64,
    /// Commit of this program, or `unknown`.
    pub commit: &'static str,
}

/// Result of [`measure`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Description of the program and its subjects.
    #[serde(flatten)]
    pub ready: Ready,
    /// Measurements, in the order of the iterations.
    pub counts: Vec<Measurement>,
}

/// One measurement of one operation of a subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub iteration: u32,
    pub subject: Subject,
    pub operation: Operation,
    /// Result of the measurement.
    #[serde(flatten)]
    pub counted: CountResult,
}

/// The code that performs an operation of a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImplementationInfo {
    pub library: String,
    /// Form of the arithmetic, as in [`nonesuch_crypto::Implementation`].
    pub kernel: String,
    /// Instruction set that the kernel requires.
    pub instruction_set: String,
    /// Number of operations in one call; 1 without batches. `None` if unknown.
    pub batch: Option<u16>,
}

/// Properties of a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectInfo {
    pub subject: String,
    /// Name of the signature scheme or VRF.
    pub scheme: String,
    /// Libraries of all operations.
    pub library: String,
    /// Version of the libraries; empty if unknown.
    pub library_version: String,
    /// Reason why the scheme is experimental, if it is.
    pub experimental: Option<String>,
    /// Octets of the public key field in the DNSKEY or NSEC5KEY record.
    pub key_octets: u64,
    /// Octets of a signature or proof.
    pub signature_octets: u64,
    /// The code of each operation, by the name of the operation. Empty in a list of several
    /// programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub implementations: BTreeMap<String, ImplementationInfo>,
}

/// Description of the program that measures, and of its subjects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Version of the JSON format.
    pub format: u32,
    pub version: String,
    /// Commit of the program, as in [`RunRecord`](crate::record::RunRecord); empty if it does not
    /// report the commit.
    #[serde(default)]
    pub commit: String,
    /// Target architecture of the program.
    pub architecture: String,
    /// CPU features above the baseline that the compiler could use in the whole program.
    pub compiled_for: Vec<String>,
    pub subjects: Vec<SubjectInfo>,
    /// Subjects that cannot be measured, with the reason.
    pub failed: Vec<(String, String)>,
    /// Octets of each signed message; 0 if the subjects are only VRFs.
    pub message_octets: u64,
}

/// A line that the caller of [`follow`] sends.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// Prepares subjects with their keys. These keys are used only for the measurement.
    Prepare {
        /// Subjects with the texts of their private key files.
        keys: Vec<(Subject, String)>,
        seed: u64,
    },
    Count {
        subject: Subject,
        operation: Operation,
        seconds: f64,
    },
}

/// A line that [`follow`] writes.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// Response to [`Order::Prepare`].
    Ready(Ready),
    /// Response to [`Order::Count`].
    Counted(CountResult),
    /// Reason why an order failed.
    Failed(String),
}

/// Reasons why [`follow`] ends before its input ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum FollowError {
    #[error("cannot read requests from standard input or write answers to standard output: {0}")]
    Stream(#[from] io::Error),
    #[error("line {line} of standard input is not a request of `nonesuch lab run`: {source}")]
    Order { line: u64, source: serde_json::Error },
}

/// Reasons why a measurement fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum CountError {
    #[error("{0} was not prepared")]
    Unprepared(Subject),
    #[error("{subject}: {}: {source}", operation.name())]
    Operation { subject: Subject, operation: Operation, source: OperationError },
}

/// Prepared subjects, in the order of their keys.
#[derive(Default)]
pub(crate) struct Benches(Vec<(Subject, Bench)>);

impl Benches {
    /// Prepares the subjects of `keys`. Returns their benches and the description of the program.
    /// The description lists subjects that failed.
    pub(crate) fn prepare(
        keys: impl Iterator<Item = (Subject, Result<String, PrepareError>)>,
        seed: u64,
        commit: &str,
    ) -> (Self, Ready) {
        let mut benches = Self::default();
        let mut ready = Ready {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit.to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            compiled_for: compiled_for(),
            ..Ready::default()
        };
        for (subject, key) in keys {
            let bench = key.and_then(|key| Bench::new(subject, &key, seed));
            match bench {
                Ok(bench) => {
                    ready.subjects.push(subject_info(subject, &bench));
                    ready.message_octets =
                        bench.message_octets().map_or(ready.message_octets, |octets| octets as u64);
                    benches.0.push((subject, bench));
                }
                Err(reason) => ready.failed.push((subject.to_string(), reason.to_string())),
            }
        }
        (benches, ready)
    }

    /// Repeats `operation` of a prepared subject for `seconds` and counts the operations.
    pub(crate) fn count(
        &self,
        subject: Subject,
        operation: Operation,
        seconds: f64,
    ) -> Result<CountResult, CountError> {
        let found = self.0.iter().find(|(other, _)| *other == subject);
        let (_, bench) = found.ok_or(CountError::Unprepared(subject))?;
        bench.count(operation, seconds).map_err(|source| CountError::Operation { subject, operation, source })
    }
}

fn subject_info(subject: Subject, bench: &Bench) -> SubjectInfo {
    let entry = subject.choice().and_then(|choice| choice.algorithm.entry());
    let implementations = implementations(subject);
    let library = libraries(&implementations);
    SubjectInfo {
        subject: subject.to_string(),
        scheme: subject.scheme(),
        library_version: library_version(&library),
        library,
        experimental: entry.and_then(|entry| entry.scheme.experimental).map(str::to_owned),
        key_octets: bench.key_octets() as u64,
        signature_octets: bench.signature_octets() as u64,
        implementations,
    }
}

/// Returns the code of each operation of a subject in this process, by the name of the operation.
fn implementations(subject: Subject) -> BTreeMap<String, ImplementationInfo> {
    let info = |operation: Operation| {
        let found = subject.implementation(operation).filter(|_| subject.has(operation))?;
        let info = ImplementationInfo {
            library: found.library.to_owned(),
            kernel: found.kernel.to_owned(),
            instruction_set: found.instruction_set.to_owned(),
            batch: Some(subject.batch.unwrap_or(1)),
        };
        Some((operation.name().to_owned(), info))
    };
    Operation::ALL.into_iter().filter_map(info).collect()
}

/// Returns the names of all libraries, each once, joined by ` + `.
fn libraries(implementations: &BTreeMap<String, ImplementationInfo>) -> String {
    let mut names: Vec<&str> =
        implementations.values().flat_map(|implementation| implementation.library.split(" + ")).collect();
    names.sort_unstable();
    names.dedup();
    names.join(" + ")
}

/// Returns the version of a library from the lock file of the build; empty if unknown. `libraries`
/// can contain several names joined by ` + `; the result has the same form.
fn library_version(libraries: &str) -> String {
    libraries.split(" + ").map(version_of_one).collect::<Vec<_>>().join(" + ")
}

fn version_of_one(library: &str) -> &'static str {
    let package = match library {
        "aws-lc" => "aws-lc-sys",
        // The library consists of several crates with the same version.
        "fn-dsa" => "fn-dsa-sign",
        "nonesuch" => return env!("CARGO_PKG_VERSION"),
        other => other,
    };
    let listed = option_env!("NONESUCH_LIBRARIES").unwrap_or_default();
    let versions = listed.split(' ').filter_map(|pair| pair.split_once('='));
    versions.filter(|(name, _)| *name == package).map(|(_, version)| version).next().unwrap_or_default()
}

/// Returns the enabled CPU features of the compilation: features that distinguish the levels of
/// x86-64, and similar features of other architectures.
fn compiled_for() -> Vec<String> {
    let features = [
        ("sse4.2", cfg!(target_feature = "sse4.2")),
        ("avx", cfg!(target_feature = "avx")),
        ("avx2", cfg!(target_feature = "avx2")),
        ("bmi2", cfg!(target_feature = "bmi2")),
        ("adx", cfg!(target_feature = "adx")),
        ("avx512f", cfg!(target_feature = "avx512f")),
        ("sha", cfg!(target_feature = "sha")),
        ("sha3", cfg!(target_feature = "sha3")),
    ];
    features.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).to_owned()).collect()
}

/// Generates keys and measures all operations of all subjects in each iteration. The report lists
/// subjects that cannot be measured.
///
/// # Errors
/// Fails if an operation of a prepared subject fails.
pub fn measure(options: &MeasureOptions) -> Result<ProbeReport, CountError> {
    let subjects =
        if options.subjects.is_empty() { Subject::list(&[], 64, 32) } else { options.subjects.clone() };
    let keys = subjects.iter().map(|subject| (*subject, make_key(*subject)));
    let (benches, ready) = Benches::prepare(keys, options.seed, options.commit);
    let mut counts = Vec::new();
    for iteration in 0..options.iterations {
        for (subject, _) in &benches.0 {
            for operation in options.operations.iter().filter(|operation| subject.has(**operation)) {
                let counted = benches.count(*subject, *operation, options.seconds)?;
                counts.push(Measurement { iteration, subject: *subject, operation: *operation, counted });
            }
        }
    }
    Ok(ProbeReport { ready, counts })
}

/// Reads orders and writes answers until the input ends. `commit` is the commit of this program, or
/// `unknown`.
///
/// # Errors
/// Fails if a line is not a valid order or if reading or writing fails.
pub fn follow(commit: &str, orders: impl BufRead, mut answers: impl Write) -> Result<(), FollowError> {
    let mut benches = Benches::default();
    let mut orders = orders;
    for line in 1.. {
        let mut text = String::new();
        if (&mut orders).take(ORDER_MAX).read_line(&mut text)? == 0 {
            break;
        }
        let order = serde_json::from_str(&text).map_err(|source| FollowError::Order { line, source })?;
        let answer = match order {
            Order::Prepare { keys, seed } => {
                let keys = keys.into_iter().map(|(subject, key)| (subject, Ok(key)));
                let (prepared, ready) = Benches::prepare(keys, seed, commit);
                benches = prepared;
                Answer::Ready(ready)
            }
            Order::Count { subject, operation, seconds } => {
                match benches.count(subject, operation, seconds) {
                    Ok(counted) => Answer::Counted(counted),
                    Err(error) => Answer::Failed(error.to_string()),
                }
            }
        };
        push_line(&answer, &mut answers)?;
    }
    Ok(())
}

/// Writes a value as one line of JSON.
pub(crate) fn push_line(value: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let mut line = serde_json::to_vec(value).map_err(io::Error::other)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_that_is_asked_once_goes_over_all_in_turn() {
        let subjects = ["ED25519", "ED25519*4"].map(|name| name.parse().expect("a subject")).to_vec();
        let options = MeasureOptions {
            subjects,
            operations: Operation::ALL.to_vec(),
            iterations: 2,
            seconds: 1e-4,
            seed: 1,
            commit: "abc",
        };
        let report = measure(&options).expect("measured");
        let order: Vec<String> = report
            .counts
            .iter()
            .map(|count| format!("{} {} {}", count.iteration, count.subject, count.operation.name()))
            .collect();
        let once = |iteration| {
            [" ED25519 verify", " ED25519 sign", " ED25519*4 verify"].map(|what| format!("{iteration}{what}"))
        };
        assert_eq!(order, [once(0), once(1)].concat());
        let verifying = |place: usize| &report.ready.subjects[place].implementations["verify"];
        assert_eq!((verifying(0).library.as_str(), verifying(0).batch), ("aws-lc", Some(1)));
        assert_eq!((verifying(1).library.as_str(), verifying(1).batch), ("nonesuch + crrl", Some(4)));
        assert_eq!(verifying(1).kernel, "portable");
        assert_eq!((report.ready.subjects.len(), report.ready.message_octets), (2, 105));
        assert_eq!(report.ready.architecture, std::env::consts::ARCH);
        let text = serde_json::to_string(&report).expect("written");
        assert_eq!(serde_json::from_str::<ProbeReport>(&text).expect("read"), report);
    }

    #[test]
    fn a_followed_probe_answers_line_by_line() {
        let subject: Subject = "ED25519".parse().expect("a subject");
        let key = make_key(subject).expect("a key");
        let lost: Subject = "RSASHA256/1024".parse().expect("a subject");
        let mut orders = Vec::new();
        let count = |subject| Order::Count { subject, operation: Operation::Verify, seconds: 1e-4 };
        push_line(
            &Order::Prepare { keys: vec![(subject, key), (lost, "x".to_owned())], seed: 1 },
            &mut orders,
        )
        .expect("written");
        push_line(&count(subject), &mut orders).expect("written");
        push_line(&count(lost), &mut orders).expect("written");
        let mut answers = Vec::new();
        follow("abc", orders.as_slice(), &mut answers).expect("followed");
        let answers: Vec<Answer> = answers
            .split_inclusive(|octet| *octet == b'\n')
            .map(|line| serde_json::from_slice(line).expect("an answer"))
            .collect();
        assert!(
            matches!(&answers[0], Answer::Ready(ready) if ready.subjects.len() == 1 && ready.failed[0].0 == "RSASHA256/1024" && ready.commit == "abc")
        );
        assert!(matches!(&answers[1], Answer::Counted(counted) if counted.operations > 0));
        let unprepared = CountError::Unprepared(lost).to_string();
        assert!(matches!(&answers[2], Answer::Failed(reason) if *reason == unprepared));
        assert!(unprepared.contains("RSASHA256/1024"), "{unprepared}");
        assert_eq!(answers.len(), 3);
    }

    #[test]
    fn what_is_no_order_ends_it() {
        for wrong in ["x\n", "{}\n", "{\"count\":{}}\n"] {
            let error = follow("abc", wrong.as_bytes(), Vec::new()).expect_err(wrong);
            assert!(matches!(error, FollowError::Order { line: 1, .. }), "{error}");
        }
        follow("abc", &b""[..], Vec::new()).expect("nothing to do");
    }

    #[test]
    fn versions_of_libraries_are_known() {
        for subject in Subject::list(&[], 64, 32) {
            for version in library_version(&libraries(&implementations(subject))).split(" + ") {
                assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{subject}: '{version}'");
            }
        }
    }
}
