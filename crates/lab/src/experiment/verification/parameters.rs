//! The parameters of the verification benchmark.

use super::openssl;
use super::subject::{Operation, Selection, Subject};
use crate::experiment::level::Level;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is measured, how often and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Iterations for each subject, operation and level.
    pub iterations: Count,
    /// Seconds of continuous operation in each.
    pub seconds: Seconds,
    /// Operations.
    pub operations: Vec<Operation>,
    /// Algorithms and VRFs; empty for all of their tables.
    pub algorithms: Vec<Selection>,
    /// Signatures of a batch; 0 for no batches.
    pub batch: u16,
    /// Proofs of a batch of a VRF; 0 for no batches.
    pub vrf_batch: u16,
    /// Instruction levels.
    pub levels: Vec<Level>,
    /// Iterations of `openssl speed`; 0 for none.
    pub openssl_iterations: u32,
    /// Seconds in each.
    pub openssl_seconds: Count,
    /// The CPU that all is kept on.
    pub cpu: Cpu,
    /// File of counted instructions that `tools/foreign` left; empty for none.
    pub foreign: String,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            iterations: Count(10),
            seconds: Seconds(0.2),
            operations: Operation::ALL.to_vec(),
            algorithms: Vec::new(),
            batch: 64,
            vrf_batch: 32,
            levels: vec![Level::Native],
            openssl_iterations: 3,
            openssl_seconds: Count(1),
            cpu: Cpu::Last,
            foreign: String::new(),
        }
    }
}

impl Parameters {
    /// How long all of it takes, where every level and `openssl` are there.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let subjects = Subject::list(&self.algorithms, self.batch, self.vrf_batch);
        let pairs = |operation: &Operation| subjects.iter().filter(|subject| subject.has(*operation)).count();
        let pairs: usize = self.operations.iter().map(pairs).sum();
        let ours = pairs as f64 * self.levels.len() as f64 * f64::from(self.iterations.0) * self.seconds.0;
        // `openssl speed` always does both operations.
        let names = openssl::chosen(&subjects).count() as f64;
        let theirs = names * 2.0 * f64::from(self.openssl_iterations) * f64::from(self.openssl_seconds.0);
        let theirs = theirs * self.levels.len() as f64;
        Duration::try_from_secs_f64(ours + theirs).unwrap_or(Duration::MAX)
    }
}

/// A whole number from 1 to a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Count(u32);

impl Count {
    const MOST: u32 = 1_000_000;
    /// One.
    pub const ONE: Self = Self(1);

    /// The number.
    #[must_use]
    pub const fn value(self) -> u32 {
        self.0
    }
}

impl TryFrom<i64> for Count {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        let count = u32::try_from(value).ok().filter(|count| (1..=Self::MOST).contains(count));
        count.map(Self).ok_or_else(|| format!("{value} is not from 1 to {}", Self::MOST))
    }
}

impl From<Count> for i64 {
    fn from(count: Count) -> Self {
        Self::from(count.0)
    }
}

/// Seconds, above 0 and at most an hour.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Seconds(f64);

impl Seconds {
    const MOST: f64 = 3600.0;

    /// The seconds.
    #[must_use]
    pub const fn value(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Seconds {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        // NaN is refused too.
        if value > 0.0 && value <= Self::MOST {
            return Ok(Self(value));
        }
        Err(format!("{value} is not above 0 and at most {}", Self::MOST))
    }
}

impl From<Seconds> for f64 {
    fn from(seconds: Seconds) -> Self {
        seconds.0
    }
}

/// A CPU to keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "CpuForm", into = "CpuForm")]
#[non_exhaustive]
pub enum Cpu {
    /// The last of those that may be used: interrupts mostly go to the first.
    Last,
    /// None: the system moves the work about.
    None,
    /// This one.
    Number(u32),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected the number of a CPU, \"last\" or \"none\"")]
enum CpuForm {
    Number(u32),
    Word(String),
}

impl TryFrom<CpuForm> for Cpu {
    type Error = String;

    fn try_from(form: CpuForm) -> Result<Self, String> {
        match form {
            CpuForm::Number(number) => Ok(Self::Number(number)),
            CpuForm::Word(word) if word == "last" => Ok(Self::Last),
            CpuForm::Word(word) if word == "none" => Ok(Self::None),
            CpuForm::Word(word) => {
                Err(format!("'{word}' is no CPU: expected a number, \"last\" or \"none\""))
            }
        }
    }
}

impl From<Cpu> for CpuForm {
    fn from(cpu: Cpu) -> Self {
        match cpu {
            Cpu::Last => Self::Word("last".to_owned()),
            Cpu::None => Self::Word("none".to_owned()),
            Cpu::Number(number) => Self::Number(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_all_that_is_done() {
        let choose = |names: &[&str]| names.iter().map(|name| name.parse().expect("a choice")).collect();
        let parameters = Parameters {
            iterations: Count(5),
            seconds: Seconds(2.0),
            algorithms: choose(&["ED25519", "RSASHA256/2048", "MAYO2", "vrf-p256", "vrf-rsa"]),
            levels: vec![Level::Native, Level::X86_64V2],
            openssl_iterations: 3,
            openssl_seconds: Count(1),
            ..Parameters::default()
        };
        // Five subjects with two operations, a batch with two and one with one; two names for openssl.
        assert_eq!(parameters.duration(), Duration::from_secs(13 * 2 * 5 * 2 + 2 * 2 * 2 * 3));
    }

    #[test]
    fn cpus_in_all_forms() {
        let read = |text: &str| serde_json::from_str::<Cpu>(text).map_err(|error| error.to_string());
        assert_eq!(read("3"), Ok(Cpu::Number(3)));
        assert_eq!(read("\"last\""), Ok(Cpu::Last));
        assert_eq!(read("\"none\""), Ok(Cpu::None));
        for wrong in ["-1", "\"first\"", "[]", "1.5"] {
            assert!(read(wrong).expect_err(wrong).contains("expected"), "{wrong}");
        }
        for cpu in [Cpu::Last, Cpu::None, Cpu::Number(7)] {
            assert_eq!(read(&serde_json::json!(cpu).to_string()), Ok(cpu));
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for wrong in [0, -1, i64::MAX, 1_000_001] {
            assert!(Count::try_from(wrong).is_err());
        }
        for wrong in [0.0, -0.1, f64::NAN, f64::INFINITY, 3600.1] {
            assert!(Seconds::try_from(wrong).is_err());
        }
        assert_eq!((Count::try_from(1), Seconds::try_from(3600.0)), (Ok(Count(1)), Ok(Seconds(3600.0))));
    }
}
