//! Parameters of the experiment.

use super::attack::Attack;
use crate::experiment::parameters::{Count, Seconds};
use crate::testbed::Resolver;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Expected time to build a tree for each hostile zone, in seconds.
const ZONE_SECONDS: f64 = 2e-3;
/// Expected time to start a resolver, to fill its cache and to measure single queries, in seconds.
const SINGLE_SECONDS: f64 = 4.0;

/// Parameters of the experiment. Each resolver gets each attack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Number of rounds. A round starts each resolver once for each attack.
    pub rounds: Count,
    /// The resolvers.
    pub resolvers: Vec<Resolver>,
    /// The attacks.
    pub attacks: Vec<Attack>,
    /// Number of hostile zones. A series of single queries has one query for each of them.
    pub zones: Count,
    /// Number of hostile zones of an attack in which each query of a load is for another zone.
    pub new_zones: Count,
    /// Duration of each load, in seconds.
    pub seconds: Seconds,
    /// Hostile queries per second of the attack with a rate.
    pub rate: Count,
    /// Number of outstanding hostile queries of the attack that saturates the resolver.
    pub outstanding: Count,
    /// Queries per second of the other clients.
    pub others_rate: Count,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            rounds: Count::of(3),
            resolvers: vec![Resolver::Nonesuch],
            attacks: Attack::all().to_vec(),
            zones: Count::of(100),
            new_zones: Count::of(10_000),
            seconds: Seconds::of(3.0),
            rate: Count::of(200),
            outstanding: Count::of(100),
            others_rate: Count::of(1_000),
        }
    }
}

impl Parameters {
    /// Number of hostile zones of an attack.
    pub(super) fn zones_of(&self, attack: &Attack) -> u32 {
        let zones = self.zones.value();
        if attack.needs_new_zones() { zones.max(self.new_zones.value()) } else { zones }
    }

    /// Returns the approximate duration.
    pub fn duration(&self) -> Duration {
        let trees: f64 = self.attacks.iter().map(|attack| f64::from(self.zones_of(attack))).sum();
        let runs = self.rounds.value() as usize * self.attacks.len() * self.resolvers.len();
        let of_run = SINGLE_SECONDS + 3.0 * (self.seconds.value() + super::measure::WARM_UP.as_secs_f64());
        Duration::try_from_secs_f64(trees * ZONE_SECONDS + runs as f64 * of_run).unwrap_or(Duration::MAX)
    }
}
