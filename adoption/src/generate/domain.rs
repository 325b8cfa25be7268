//! The domains of the model, and their state on a day.

use super::model::{OPERATORS, Operator, Rollover, SOURCES};
use crate::snapshot::Day;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Part of the domains that exist at the start of the period; the others are registered later.
const BORN_BEFORE: f64 = 0.7;
/// One of this number of rows has not been measured.
const UNKNOWN_ONE_IN: u64 = 500;
/// Duration of the rollover of a domain, as part of the rollover of all domains of its operator.
const ROLLOVER: f64 = 0.05;
/// Popular domains are signed more often: factor of the first rank and of the last.
const POPULARITY: (f64, f64) = (1.6, 0.8);
/// The last rank, whatever the number of domains.
const MAX_RANK: f64 = 1_000_000.0;

/// A domain with its random numbers, each from 0 to 1.
pub(super) struct Domain {
    /// Index in [`SOURCES`].
    pub(super) source: usize,
    /// Index in [`OPERATORS`].
    pub(super) operator: usize,
    pub(super) name: String,
    pub(super) rank: Option<i32>,
    /// When it is registered, as part of the period.
    pub(super) born: f64,
    signs: f64,
    has_ds: f64,
    changes: f64,
    seed: u64,
}

/// State of a domain on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not measured.
    Unknown,
    Unsigned,
    /// With keys.
    Keys {
        rollover: Rollover,
        has_ds: bool,
        zero_iterations: bool,
    },
}

/// Returns about `count` domains in the order of their sources and names.
pub(super) fn population(count: u32, seed: u64) -> Vec<Domain> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut domains = Vec::with_capacity(count as usize);
    for (source, of_source) in SOURCES.iter().enumerate() {
        let count = (f64::from(count) * of_source.share).ceil();
        for index in 0..count as u32 {
            let rank = of_source.is_ranked.then(|| 1 + (f64::from(index) * MAX_RANK / count) as i32);
            domains.push(Domain {
                source,
                operator: choose_operator(source, random.random()),
                name: format!("name{index:08}.{}", of_source.suffix),
                rank,
                born: ((random.random::<f64>() - BORN_BEFORE) / (1.0 - BORN_BEFORE)).max(0.0),
                signs: random.random(),
                has_ds: random.random(),
                changes: random.random(),
                seed: random.random(),
            });
        }
    }
    domains
}

fn choose_operator(source: usize, at: f64) -> usize {
    let mut sum = 0.0;
    let chosen = OPERATORS.iter().position(|operator| {
        sum += operator.shares[source];
        at < sum
    });
    chosen.unwrap_or(0)
}

impl Domain {
    /// Returns the state at this part of the period, which is that day.
    pub(super) fn state(&self, progress: f64, day: Day) -> State {
        if mixed(self.seed ^ day as u64).is_multiple_of(UNKNOWN_ONE_IN) {
            return State::Unknown;
        }
        let operator = &OPERATORS[self.operator];
        if self.signs >= operator.signed * self.popularity() * operator.signing.at(progress) {
            return State::Unsigned;
        }
        let zero_iterations =
            operator.nsec3.as_ref().is_some_and(|policy| self.changes < policy.rfc9276.at(progress));
        State::Keys {
            rollover: self.rollover(operator, progress),
            has_ds: self.has_ds < operator.ds,
            zero_iterations,
        }
    }

    fn popularity(&self) -> f64 {
        let (first, last) = POPULARITY;
        self.rank.map_or(1.0, |rank| first + (last - first) * f64::from(rank) / MAX_RANK)
    }

    fn rollover(&self, operator: &Operator, progress: f64) -> Rollover {
        let Some((ramp, _)) = operator.rollover else { return Rollover::Before };
        let begun = ramp.at(progress);
        // Each domain begins at its own part of the ramp, and all end with it.
        let start = self.changes * (1.0 - ROLLOVER);
        match begun - start {
            since if since <= 0.0 => Rollover::Before,
            since if since < ROLLOVER => Rollover::During,
            _ => Rollover::After,
        }
    }
}

/// Returns a number that looks random: the last step of SplitMix64 (Steele, Lea, Flood 2014).
const fn mixed(seed: u64) -> u64 {
    let seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ (seed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_population_depends_only_on_the_seed() {
        let names = |seed| {
            let domains = population(1000, seed);
            domains
                .into_iter()
                .map(|domain| (domain.source, domain.name, domain.operator))
                .collect::<Vec<_>>()
        };
        assert_eq!(names(1), names(1));
        assert_ne!(names(1), names(2));
        assert!(names(1).is_sorted_by_key(|(source, name, _)| (*source, name.clone())));
        assert!((1000..1010).contains(&names(1).len()));
    }

    #[test]
    fn a_domain_never_stops_signing_and_rolls_over_once() {
        let mut both = 0;
        for domain in population(2000, 1) {
            let states: Vec<State> = (0..=1000)
                .map(|step| domain.state(f64::from(step) / 1000.0, step))
                .filter(|state| *state != State::Unknown)
                .collect();
            let order = |state: &State| match state {
                State::Unknown => unreachable!("filtered"),
                State::Unsigned => 0,
                State::Keys { rollover: Rollover::Before, .. } => 1,
                State::Keys { rollover: Rollover::During, .. } => 2,
                State::Keys { rollover: Rollover::After, .. } => 3,
            };
            assert!(states.is_sorted_by_key(order), "{}", domain.name);
            both += usize::from(states.iter().any(|state| order(state) == 2));
        }
        assert!(both > 0);
    }
}
