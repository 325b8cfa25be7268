//! The probe: a program that measures and tells raw counts, so that other builds of ours can be asked.
//!
//! It has two forms. Asked once ([`measure`]), it makes keys, measures all that it is told to, and prints one JSON
//! document. Followed ([`follow`]), it is given keys, then order after order, and answers each with a line of JSON:
//! whoever gives the orders can go over several programs in turn.

use super::bench::{Bench, OperationError, PrepareError, make_key};
use super::subject::{Operation, Subject};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read as _, Write};

/// What our own rows are called.
pub(crate) const NAME: &str = "nonesuch";

/// Version of the document and of the lines.
const FORMAT: u32 = 1;

/// Octets of the longest order: keys of all subjects take less than a hundredth.
const ORDER_MAX: u64 = 16 << 20;

/// What one measurement counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountResult {
    pub operations: u64,
    /// Seconds on the wall that they took.
    pub seconds: f64,
    /// Seconds that the processor spent on them, up to the last tick of the system's clock, where it is told.
    pub cpu_seconds: Option<f64>,
}

/// What the probe is to measure, when asked once.
#[derive(Clone, Debug)]
pub struct MeasureOptions {
    /// What; empty for all.
    pub subjects: Vec<Subject>,
    /// Operations.
    pub operations: Vec<Operation>,
    /// Iterations.
    pub iterations: u32,
    /// Seconds in each.
    pub seconds: f64,
    /// What messages are drawn from.
    pub seed: u64,
}

/// All that the probe counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Who counted.
    #[serde(flatten)]
    pub ready: Ready,
    /// The counts, iteration by iteration.
    pub counts: Vec<Measurement>,
}

/// A count and what it is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    pub iteration: u32,
    pub subject: Subject,
    pub operation: Operation,
    /// What was counted.
    #[serde(flatten)]
    pub counted: CountResult,
}

/// What is known of a subject beside the figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectInfo {
    pub subject: String,
    /// The signature scheme or VRF, in words.
    pub scheme: String,
    pub library: String,
    /// That library's version; empty where unknown.
    pub library_version: String,
    /// Why a reader should be warned of the scheme.
    pub experimental: Option<String>,
    /// Octets of the public key field of DNSKEY or NSEC5KEY.
    pub key_octets: u64,
    /// Octets of a signature or proof.
    pub signature_octets: u64,
}

/// Who measures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Ready {
    /// Version of this form.
    pub format: u32,
    pub version: String,
    /// The architecture that the program was built for.
    pub architecture: String,
    /// Instructions above its baseline that the compiler was allowed to use anywhere.
    pub compiled_for: Vec<String>,
    pub subjects: Vec<SubjectInfo>,
    /// Those that cannot be measured, and why.
    pub failed: Vec<(String, String)>,
    /// Octets of every message that is signed; 0 where none is.
    pub message_octets: u64,
}

/// What a followed probe is told.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// What will be measured, with the keys, and what messages are drawn from. The keys sign nothing else.
    Prepare {
        /// Subjects and the text of their private key files.
        keys: Vec<(Subject, String)>,
        seed: u64,
    },
    Count {
        subject: Subject,
        operation: Operation,
        seconds: f64,
    },
}

/// What it answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// The answer to [`Order::Prepare`].
    Ready(Ready),
    /// The answer to [`Order::Count`].
    Counted(CountResult),
    /// An order that cannot be carried out.
    Failed(String),
}

/// Why a probe ended before its orders did.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what variants and fields are
pub enum FollowError {
    #[error("orders on standard input, answers on standard output: {0}")]
    Stream(#[from] io::Error),
    #[error("line {line} of standard input is no order of `nonesuch lab run`: {source}")]
    Order { line: u64, source: serde_json::Error },
}

/// Why there is no count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what variants and fields are
pub enum CountError {
    #[error("{0} was not prepared")]
    Unprepared(Subject),
    #[error("{subject}: {}: {source}", operation.name())]
    Operation { subject: Subject, operation: Operation, source: OperationError },
}

/// Subjects that are ready, in the order of the keys.
#[derive(Default)]
pub(crate) struct Benches(Vec<(Subject, Bench)>);

impl Benches {
    /// Prepares what the keys are for.
    pub(crate) fn prepare(
        keys: impl Iterator<Item = (Subject, Result<String, PrepareError>)>,
        seed: u64,
    ) -> (Self, Ready) {
        let mut benches = Self::default();
        let mut ready = Ready {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            architecture: std::env::consts::ARCH.to_owned(),
            compiled_for: compiled_for(),
            ..Ready::default()
        };
        for (subject, key) in keys {
            let bench = key.and_then(|key| Bench::new(subject, &key, seed));
            match bench {
                Ok(bench) => {
                    ready.subjects.push(facts(subject, &bench));
                    ready.message_octets =
                        bench.message_octets().map_or(ready.message_octets, |octets| octets as u64);
                    benches.0.push((subject, bench));
                }
                Err(reason) => ready.failed.push((subject.to_string(), reason.to_string())),
            }
        }
        (benches, ready)
    }

    /// Counts; the error is what an answer says.
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

fn facts(subject: Subject, bench: &Bench) -> SubjectInfo {
    let entry = subject.choice().and_then(|choice| choice.algorithm.entry());
    SubjectInfo {
        subject: subject.to_string(),
        scheme: subject.scheme(),
        library: subject.library().to_owned(),
        library_version: library_version(subject.library()),
        experimental: entry.and_then(|entry| entry.scheme.experimental).map(str::to_owned),
        key_octets: bench.key_octets() as u64,
        signature_octets: bench.signature_octets() as u64,
    }
}

/// Versions of a library, or of several joined by ` + `, from the lock file that this program was built with; empty
/// where unknown.
fn library_version(libraries: &str) -> String {
    libraries.split(" + ").map(version_of_one).collect::<Vec<_>>().join(" + ")
}

fn version_of_one(library: &str) -> &'static str {
    let package = match library {
        "aws-lc" => "aws-lc-sys",
        // It comes in parts of one version.
        "fn-dsa" => "fn-dsa-sign",
        "nonesuch" => return env!("CARGO_PKG_VERSION"),
        other => other,
    };
    let listed = option_env!("NONESUCH_LIBRARIES").unwrap_or_default();
    let versions = listed.split(' ').filter_map(|pair| pair.split_once('='));
    versions.filter(|(name, _)| *name == package).map(|(_, version)| version).next().unwrap_or_default()
}

/// Features that the compiler took for granted, of those that make up the levels of x86-64, and their like elsewhere.
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

/// Makes keys and measures, iteration by iteration over all subjects and operations. What cannot be measured is listed;
/// an operation that fails ends it.
///
/// # Errors
/// Where an operation fails.
pub fn measure(options: &MeasureOptions) -> Result<ProbeReport, CountError> {
    let subjects =
        if options.subjects.is_empty() { Subject::list(&[], 64, 32) } else { options.subjects.clone() };
    let keys = subjects.iter().map(|subject| (*subject, make_key(*subject)));
    let (benches, ready) = Benches::prepare(keys, options.seed);
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

/// Follows orders until there are no more.
///
/// # Errors
/// Where a line is no order, or the other side is gone.
pub fn follow(orders: impl BufRead, mut answers: impl Write) -> Result<(), FollowError> {
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
                let (prepared, ready) = Benches::prepare(keys, seed);
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

/// Writes an order or an answer as a line.
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
        follow(orders.as_slice(), &mut answers).expect("followed");
        let answers: Vec<Answer> = answers
            .split_inclusive(|octet| *octet == b'\n')
            .map(|line| serde_json::from_slice(line).expect("an answer"))
            .collect();
        assert!(
            matches!(&answers[0], Answer::Ready(ready) if ready.subjects.len() == 1 && ready.failed[0].0 == "RSASHA256/1024")
        );
        assert!(matches!(&answers[1], Answer::Counted(counted) if counted.operations > 0));
        assert!(matches!(&answers[2], Answer::Failed(reason) if reason == "RSASHA256/1024 was not prepared"));
        assert_eq!(answers.len(), 3);
    }

    #[test]
    fn what_is_no_order_ends_it() {
        for wrong in ["x\n", "{}\n", "{\"count\":{}}\n"] {
            let error = follow(wrong.as_bytes(), Vec::new()).expect_err(wrong).to_string();
            assert!(error.starts_with("line 1 of standard input is no order"), "{error}");
        }
        follow(&b""[..], Vec::new()).expect("nothing to do");
    }

    #[test]
    fn versions_of_libraries_are_known() {
        for subject in Subject::list(&[], 64, 32) {
            for version in library_version(subject.library()).split(" + ") {
                assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{subject}: '{version}'");
            }
        }
    }
}
