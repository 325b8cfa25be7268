//! Signing whole zones: what it costs to sign and to verify a top-level domain with each algorithm, under each denial
//! mechanism and at each instruction level, in times of ECDSA P-256.
//!
//! The method is that of "Evaluating post-quantum cryptography in DNSSEC signing for top-level domain operators" (SIDN,
//! TMA 2025): zone files are signed and verified as a whole by the program that an operator would run, and the size of
//! the outcome is taken. Each job is a process of its own, of which the system tells CPU time and memory. Runs go over
//! all algorithms and levels in turn, so that a disturbance of the machine does not hit one of them alone.

mod change;
mod child;
mod examine;
mod parameters;
mod plan;
mod present;
mod rows;
mod runner;
mod summary;
mod transfer;

pub use change::{Changes, change};
pub use examine::{ExamineError, ExamineOptions, Examined, examine};
pub use parameters::{Denial, Minutes, Parameters, Sizes, ZoneChoice};
pub use transfer::{Transfer, pack, transfer};

pub(super) use present::report;
pub(super) use runner::run;

use serde::{Deserialize, Serialize};

/// What was measured with what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The zones, from the smallest.
    pub zones: Vec<ZoneFacts>,
    /// The programs, in the order in which they took turns.
    pub levels: Vec<LevelFacts>,
    /// The algorithms, in the order of the report.
    pub algorithms: Vec<AlgorithmFacts>,
    /// The CPU that everything was kept on; nothing where it was not.
    pub cpu: Option<u64>,
    /// Jobs that there was no time for, in words.
    pub left_out: Vec<String>,
    /// How long it took, s.
    pub seconds: f64,
}

/// What is known of a zone before it is signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneFacts {
    /// Its name in the data.
    pub zone: String,
    /// Where it comes from.
    pub source: String,
    /// The apex.
    pub origin: String,
    /// Records.
    pub records: u64,
    /// Names that own records, glue among them.
    pub names: u64,
    /// Zone cuts.
    pub delegations: u64,
    /// Those with DS records.
    pub signed_delegations: u64,
    /// Octets of the zone file.
    pub octets: u64,
    /// What differs in the changed form of the zone; nothing where none was made.
    pub changes: Option<Changes>,
}

/// A program that keeps to an instruction level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelFacts {
    /// The instruction level.
    pub level: String,
    /// Version, as the program tells it.
    pub version: String,
    /// What was put into its environment.
    pub environment: Vec<(String, String)>,
}

/// What is known of an algorithm beside the figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlgorithmFacts {
    /// Its name in the data: the mnemonic, for RSA with the length of the keys.
    pub algorithm: String,
    /// The signature scheme in words.
    pub scheme: String,
    /// What implements it.
    pub library: String,
    /// Why a reader should be warned of the scheme.
    pub experimental: Option<String>,
    /// Whether it withstands quantum computers, as far as is known.
    pub post_quantum: bool,
    /// Whether it is beyond what the published study compared.
    pub addition: bool,
    /// Octets of a signature.
    pub signature_octets: u64,
}

#[cfg(test)]
mod tests;
