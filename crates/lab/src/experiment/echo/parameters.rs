//! The parameters of the experiment.

use crate::experiment::signing::Denial;
use crate::experiment::verification::{Count, Seconds};
use nonesuch_dnssec::Mechanism;
use nonesuch_net::udp::RESPONSE_CAPACITY;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Seconds of each load before anything counts.
pub(super) const WARM_UP: f64 = 0.1;

/// What is loaded, how often and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Rounds; each loads every server once.
    pub rounds: Count,
    /// Seconds of each load.
    pub seconds: Seconds,
    /// Names of the zone that is served.
    pub names: Count,
    /// Octets of the answers of echo servers beside those that have the size of our answers.
    pub octets: Vec<Octets>,
    /// Denial mechanisms of the zone.
    pub denial: Vec<Denial>,
    /// Which queries.
    pub queries: Vec<Kind>,
    /// Numbers of workers of a server.
    pub workers: Vec<Workers>,
    /// Queries outstanding.
    pub outstanding: Count,
    /// Sockets of the load generator, which share them.
    pub sockets: Count,
}

impl Default for Parameters {
    fn default() -> Self {
        let count = |value: i64| Count::try_from(value).unwrap_or(Count::ONE);
        Self {
            rounds: count(5),
            seconds: Seconds::try_from(1.0).expect("within its range"),
            names: count(1000),
            octets: [160, 400, 800].map(Octets).to_vec(),
            denial: [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut].map(Denial).to_vec(),
            queries: Kind::ALL.to_vec(),
            workers: vec![Workers(1)],
            outstanding: count(128),
            sockets: count(1),
        }
    }
}

impl Parameters {
    /// How long all of it takes, about: loads, and what comes before them.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let pairs = each_once(&self.denial).len() * each_once(&self.queries).len();
        let cells = (2 * pairs + each_once(&self.octets).len()) * each_once(&self.workers).len();
        let seconds = f64::from(self.rounds.value()) * (self.seconds.value() + WARM_UP) * cells as f64;
        // Making and signing the zones.
        let before = f64::from(self.names.value()) * self.denial.len() as f64 * 2e-5;
        Duration::try_from_secs_f64(seconds + before).unwrap_or(Duration::MAX)
    }
}

/// The values, each once, in their order.
pub(super) fn each_once<T: PartialEq + Copy>(values: &[T]) -> Vec<T> {
    let mut once: Vec<T> = Vec::new();
    for value in values {
        if !once.contains(value) {
            once.push(*value);
        }
    }
    once
}

/// Octets of an answer, from a header to the most that the server has room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Octets(u16);

impl Octets {
    /// The number.
    #[must_use]
    pub const fn value(self) -> u16 {
        self.0
    }

    /// The nearest size that an answer can have.
    pub(super) fn near(octets: f64) -> Self {
        Self(octets.round().clamp(12.0, RESPONSE_CAPACITY as f64) as u16)
    }
}

impl TryFrom<i64> for Octets {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        let fits = (12..=RESPONSE_CAPACITY as i64).contains(&value);
        fits.then_some(Self(value as u16))
            .ok_or_else(|| format!("{value} is not from 12 to {RESPONSE_CAPACITY} octets"))
    }
}

impl From<Octets> for i64 {
    fn from(octets: Octets) -> Self {
        Self::from(octets.0)
    }
}

/// Workers of a server, from 1 to 256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub struct Workers(u16);

impl Workers {
    /// The number.
    #[must_use]
    pub const fn value(self) -> u16 {
        self.0
    }
}

impl TryFrom<i64> for Workers {
    type Error = String;

    fn try_from(value: i64) -> Result<Self, String> {
        let fits = (1..=256).contains(&value);
        fits.then_some(Self(value as u16)).ok_or_else(|| format!("{value} is not from 1 to 256 workers"))
    }
}

impl From<Workers> for i64 {
    fn from(workers: Workers) -> Self {
        Self::from(workers.0)
    }
}

/// Which queries a server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// For names that exist.
    Existing,
    /// For names that do not.
    Denied,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Existing, Self::Denied];

    /// The name, as the data have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Existing => "existing",
            Self::Denied => "denied",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_count_every_load() {
        let parameters = Parameters {
            rounds: Count::try_from(3).expect("a count"),
            seconds: Seconds::try_from(0.9).expect("seconds"),
            names: Count::ONE,
            octets: vec![Octets(160), Octets(160), Octets(400)],
            denial: vec![Denial(Mechanism::Nsec)],
            workers: vec![Workers(1), Workers(2)],
            ..Parameters::default()
        };
        // Two kinds, each with its floor, and two sizes; two numbers of workers.
        assert!((parameters.duration().as_secs_f64() - 36.0).abs() < 0.1, "{:?}", parameters.duration());
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for wrong in [0, 11, RESPONSE_CAPACITY as i64 + 1, -1, i64::MAX] {
            assert!(Octets::try_from(wrong).is_err(), "{wrong}");
        }
        for wrong in [0, -1, 257, i64::MAX] {
            assert!(Workers::try_from(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            (Octets::near(0.4), Octets::near(289.5), Octets::near(1e9)),
            (Octets(12), Octets(290), Octets(4096))
        );
    }
}
