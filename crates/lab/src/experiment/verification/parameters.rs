//! The parameters of the verification benchmark.

use crate::experiment::parameters::{Count, Cpu, Seconds};
use crate::measure::level::Level;
use crate::measure::{Operation, Selection, Subject, openssl};
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
    pub operations: Vec<Operation>,
    /// Algorithms and VRFs; empty for all of their tables.
    pub algorithms: Vec<Selection>,
    /// Signatures of a batch; 0 for no batches.
    pub batch: u16,
    /// Proofs of a batch of a VRF; 0 for no batches.
    pub vrf_batch: u16,
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
            iterations: Count::of(10),
            seconds: Seconds::of(0.2),
            operations: Operation::ALL.to_vec(),
            algorithms: Vec::new(),
            batch: 64,
            vrf_batch: 32,
            levels: vec![Level::Native],
            openssl_iterations: 3,
            openssl_seconds: Count::of(1),
            cpu: Cpu::Last,
            foreign: String::new(),
        }
    }
}

impl Parameters {
    /// How long all of it takes, where every level and `openssl` are there.
    pub fn duration(&self) -> Duration {
        let subjects = Subject::list(&self.algorithms, self.batch, self.vrf_batch);
        let pairs = |operation: &Operation| subjects.iter().filter(|subject| subject.has(*operation)).count();
        let pairs: usize = self.operations.iter().map(pairs).sum();
        let ours =
            (pairs * self.levels.len()) as f64 * f64::from(self.iterations.value()) * self.seconds.value();
        // `openssl speed` always does both operations.
        let names = (openssl::chosen(&subjects).count() * 2 * self.levels.len()) as f64;
        let theirs = names * f64::from(self.openssl_iterations) * f64::from(self.openssl_seconds.value());
        Duration::try_from_secs_f64(ours + theirs).unwrap_or(Duration::MAX)
    }
}
