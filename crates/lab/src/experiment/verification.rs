//! The verification benchmark: how many signatures one core verifies, and makes, in a second, and how many proofs of the
//! VRFs of NSEC5.
//!
//! The method is that of "The Performance Impact of Elliptic Curve Cryptography on DNSSEC Validation" (IEEE/ACM
//! Transactions on Networking 25(2), 2017): iterations of some seconds of continuous operation, operations counted, and
//! ratios against RSA and ECDSA. Iterations go over all algorithms, operations and instruction levels in turn, so that
//! a disturbance of the machine does not hit one of them alone.

mod bench;
mod foreign;
mod openssl;
mod parameters;
mod present;
mod probe;
mod ratios;
mod runner;
mod subject;
mod summary;

pub use foreign::{ForeignError, ForeignFacts};
pub use parameters::{Count, Cpu, Parameters, Seconds};
pub use probe::{Counted, FollowError, MeasureOptions, Measurement, ProbeReport, follow, measure};
pub use subject::{Choice, Operation, Selection, Subject, SubjectError};

pub(super) use present::report;
pub(super) use runner::{pin, run};

use super::level::Level;
use serde::{Deserialize, Serialize};

/// What was measured with what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Programs that measured, in the order of columns and bars.
    pub backends: Vec<Backend>,
    /// What they measured.
    pub subjects: Vec<SubjectFacts>,
    /// Octets of every message that was signed; 0 where none was.
    pub message_octets: u64,
    /// The CPU that all were kept on; nothing where they were not.
    pub cpu: Option<u64>,
    /// What was counted elsewhere, where a file of it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<ForeignFacts>,
}

impl About {
    /// Places of the programs that charts and ratio tables show: ours at every level, and the first of each other one.
    /// A bar for each would be too many to be read; the tables of levels have them all.
    fn shown(&self) -> Vec<usize> {
        let is_first =
            |place: usize| self.backends[..place].iter().all(|other| other.name != self.backends[place].name);
        (0..self.backends.len())
            .filter(|place| self.backends[*place].name == runner::NAME || is_first(*place))
            .collect()
    }
}

/// A program that measured at one instruction level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backend {
    /// `nonesuch` or `openssl`.
    pub name: String,
    /// The instruction level.
    pub level: String,
    /// Version, as the program tells it.
    pub version: String,
    /// What was put into its environment.
    pub environment: Vec<(String, String)>,
    /// Instructions above the architecture's baseline that the compiler was allowed to use anywhere.
    pub compiled_for: Vec<String>,
}

impl Backend {
    /// What the columns and bars of this backend are called.
    #[must_use]
    pub fn label(&self) -> String {
        match (self.name == openssl::NAME, self.level == Level::Native.name()) {
            (false, _) => self.level.clone(),
            (true, true) => self.name.clone(),
            (true, false) => format!("{} {}", self.name, self.level),
        }
    }
}

/// What is known of a subject beside the figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubjectFacts {
    /// Its name in the data.
    pub subject: String,
    /// The signature scheme or VRF, in words.
    pub scheme: String,
    /// What implements it.
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

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(super) use tests::sample;
