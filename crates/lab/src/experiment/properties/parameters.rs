//! Parameters of the experiment.

use crate::experiment::parameters::{Count, ParameterError};
use crate::measure::subject::serde_as_text;
use nonesuch_dnssec::Mechanism;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Name of a zone without signatures: legacy DNS.
const UNSIGNED: &str = "unsigned";
/// Expected time for each mechanism, in seconds.
const MECHANISM_SECONDS: f64 = 3.0;

/// A denial mechanism, or none: the zone is unsigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct MechanismChoice(pub Option<Mechanism>);

impl FromStr for MechanismChoice {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        if text == UNSIGNED { Ok(Self(None)) } else { Ok(Self(Some(text.parse()?))) }
    }
}

impl fmt::Display for MechanismChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(mechanism) => mechanism.fmt(f),
            None => f.pad(UNSIGNED),
        }
    }
}

serde_as_text!(ParameterError: MechanismChoice);

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// The mechanisms.
    pub mechanisms: Vec<MechanismChoice>,
    /// Number of names that no word list has.
    pub hidden_names: Count,
}

impl Default for Parameters {
    fn default() -> Self {
        let all = [
            Mechanism::Nsec,
            Mechanism::Nsec3,
            Mechanism::MinimalNsec,
            Mechanism::Compact,
            Mechanism::WhiteLies,
            Mechanism::Nsec5,
        ];
        let mechanisms = [None].into_iter().chain(all.map(Some)).map(MechanismChoice);
        Self { mechanisms: mechanisms.collect(), hidden_names: Count::of(12) }
    }
}

impl Parameters {
    /// Returns the approximate duration.
    pub fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.mechanisms.len() as f64 * MECHANISM_SECONDS)
    }
}
