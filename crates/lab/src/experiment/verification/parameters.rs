//! Parameters of the verification benchmark.

use crate::experiment::parameters::{Count, Cpu, Seconds};
use crate::measure::level::Level;
use crate::measure::{Operation, Selection, Subject, openssl};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Number of iterations for each subject, operation and level.
    pub iterations: Count,
    /// Duration of continuous operation in each iteration, in seconds.
    pub seconds: Seconds,
    pub operations: Vec<Operation>,
    /// Algorithms and VRFs; empty: all.
    pub algorithms: Vec<Selection>,
    /// Number of signatures in a batch; 0: no batches.
    pub batch: u16,
    /// Number of VRF proofs in a batch; 0: no batches.
    pub vrf_batch: u16,
    pub levels: Vec<Level>,
    /// Number of iterations of `openssl speed`; 0: none.
    pub openssl_iterations: u32,
    /// Duration of each of these iterations, in seconds.
    pub openssl_seconds: Count,
    /// CPU to which all programs are bound.
    pub cpu: Cpu,
    /// File of instruction counts that `tools/foreign` has written; empty: none.
    pub foreign: String,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            iterations: Count::of(4),
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
    /// Returns the approximate duration, if all levels and `openssl` are available.
    pub fn duration(&self) -> Duration {
        let subjects = Subject::list(&self.algorithms, self.batch, self.vrf_batch);
        let pairs = Subject::count_pairs(&subjects, &self.operations);
        let ours =
            (pairs * self.levels.len()) as f64 * f64::from(self.iterations.value()) * self.seconds.value();
        // `openssl speed` always measures both operations.
        let names = (openssl::chosen(&subjects).count() * 2 * self.levels.len()) as f64;
        let theirs = names * f64::from(self.openssl_iterations) * f64::from(self.openssl_seconds.value());
        Duration::try_from_secs_f64(ours + theirs).unwrap_or(Duration::MAX)
    }
}
