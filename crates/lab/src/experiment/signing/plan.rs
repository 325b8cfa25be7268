//! Selection and order of the jobs.
//!
//! A round has all trials of one run with the same zone and mechanism: those of the published
//! study's algorithms, or those of the additional algorithms. Without a time limit, the rounds are
//! in the order of runs. With a time limit, the rounds with the figures of the published study are
//! first. A trial that is not expected to end in time is omitted and reported, because signing a
//! large zone with RSA can take minutes.

use super::parameters::{ChosenAlgorithm, Parameters};
use crate::measure::ZoneCounts;
use crate::measure::cost::{Costs, SIGNED_SHARE, estimate_signatures};
use crate::measure::zone_choice::ZoneChoice;
use nonesuch_crypto::Algorithm;
use std::time::Duration;

/// Base of all ratios.
pub(super) const BASE: Algorithm = Algorithm::ECDSAP256SHA256;

/// One signing and verification of a zone. `run` is the number of the run, starting at 0. The other
/// fields are indices into the lists `zones`, `denials`, `choices` and `signers` of the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Trial {
    pub(super) run: u32,
    pub(super) zone: usize,
    pub(super) denial: usize,
    pub(super) algorithm: usize,
    pub(super) level: usize,
}

impl Trial {
    /// Returns the key of the trial's costs.
    pub(super) const fn costs(self) -> [usize; 2] {
        [self.algorithm, self.level]
    }
}

/// Numbers and algorithms that determine a plan.
pub(super) struct PlanInput<'s> {
    pub(super) runs: u32,
    pub(super) zones: usize,
    pub(super) denials: usize,
    pub(super) levels: usize,
    pub(super) choices: &'s [ChosenAlgorithm],
    /// Whether the experiment has a time limit.
    pub(super) limited: bool,
}

/// One zone and one mechanism in one run, with the algorithms of the published study, or with the
/// additional algorithms if `additions` is set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Round {
    run: u32,
    zone: usize,
    denial: usize,
    additions: bool,
}

impl PlanInput<'_> {
    /// Returns all trials in the order of measurement.
    pub(super) fn trials(&self) -> Vec<Trial> {
        let mut rounds = Vec::new();
        for run in 0..self.runs {
            for zone in 0..self.zones {
                for denial in 0..self.denials {
                    rounds.extend([false, true].map(|additions| Round { run, zone, denial, additions }));
                }
            }
        }
        if self.limited {
            // The sort must be stable, so that rounds with the same priority stay in the order of
            // runs.
            rounds.sort_by_key(|round| self.priority(*round));
        }
        rounds.into_iter().flat_map(|round| self.trials_of(round)).collect()
    }

    /// Returns the priority of a round; lower values are first. The zones are in ascending order of
    /// size. For the largest zone, only the rounds with the last mechanism have a high priority. In
    /// the built-in experiment, the last mechanism is the one with the fewest signatures.
    const fn priority(&self, round: Round) -> u8 {
        let (first, last) = (round.zone == 0, round.zone + 1 == self.zones);
        let last_denial = round.denial + 1 == self.denials;
        match (round.run, round.additions) {
            (0, false) if first => 0,
            (0, false) if last && last_denial => 1,
            (0, false) if !last => 2,
            (0, true) if first => 3,
            (0, true) if !last && last_denial => 4,
            (1.., false) if first => 5,
            (0, _) => 6,
            _ => 7,
        }
    }

    /// Returns the trials of a round. With a time limit and additional algorithms, every round
    /// includes the base algorithm, so that the ratios are of measurements close in time.
    fn trials_of(&self, round: Round) -> Vec<Trial> {
        let is_base = |place: &usize| self.choices[*place].choice.algorithm == BASE;
        let is_of = |place: &usize| {
            self.choices[*place].addition == round.additions
                || (self.limited && is_base(place) && self.has_additions())
        };
        let mut places: Vec<usize> = (0..self.choices.len()).filter(is_of).collect();
        // The base algorithm is first, so that an incomplete round contains it.
        places.sort_by_key(|place| !is_base(place));
        let Round { run, zone, denial, .. } = round;
        let trial = |algorithm, level| Trial { run, zone, denial, algorithm, level };
        places
            .into_iter()
            .flat_map(|algorithm| (0..self.levels).map(move |level| trial(algorithm, level)))
            .collect()
    }

    fn has_additions(&self) -> bool {
        self.choices.iter().any(|chosen| chosen.addition)
    }
}

/// Returns the estimated duration of all runs, without regard to the time limit.
pub(super) fn estimate_duration(parameters: &Parameters) -> Duration {
    let choices = parameters.choices();
    let (costs, zones) = (Costs::default(), parameters.zones.len());
    let mut seconds = 0.0;
    for (place, zone) in parameters.zones.iter().enumerate() {
        // For a zone file that has not been read, the estimate assumes 150 octets for each name.
        let names = match zone {
            ZoneChoice::Like { names, .. } => *names,
            ZoneChoice::File { path, .. } => std::fs::metadata(path).map_or(0, |data| data.len() / 150),
        };
        let signed_delegations = (names as f64 * SIGNED_SHARE) as u64;
        let counts = ZoneCounts { names, delegations: names, signed_delegations, ..ZoneCounts::default() };
        for denial in &parameters.denial {
            let signatures = estimate_signatures(&counts, denial.0);
            for (algorithm, ChosenAlgorithm { choice, .. }) in choices.iter().enumerate() {
                for level in 0..parameters.levels.len() {
                    let extras = level == 0 && parameters.served.holds(place, zones);
                    seconds += costs.expected_seconds([algorithm, level], *choice, signatures, extras);
                }
            }
        }
    }
    Duration::try_from_secs_f64(seconds * f64::from(parameters.runs.value())).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> Vec<ChosenAlgorithm> {
        let names =
            [("RSASHA256/1280", false), ("ECDSAP256SHA256", false), ("MAYO2", false), ("ED25519", true)];
        names
            .map(|(name, addition)| ChosenAlgorithm { choice: name.parse().expect("a choice"), addition })
            .to_vec()
    }

    fn plan_input(choices: &[ChosenAlgorithm], limited: bool) -> PlanInput<'_> {
        PlanInput { runs: 2, zones: 3, denials: 3, levels: 2, choices, limited }
    }

    #[test]
    fn without_a_limit_runs_follow_each_other_and_nothing_is_twice() {
        let choices = choices();
        let trials = plan_input(&choices, false).trials();
        assert_eq!(trials.len(), 2 * 3 * 3 * 2 * 4);
        assert!(trials.is_sorted_by_key(|trial| (trial.run, trial.zone, trial.denial)));
        for (place, trial) in trials.iter().enumerate() {
            assert!(!trials[..place].contains(trial));
        }
        // Each round begins with the base algorithm.
        assert_eq!((trials[0].algorithm, trials[1].algorithm, trials[2].algorithm), (1, 1, 0));
    }

    #[test]
    fn with_a_limit_the_studys_trials_come_first_and_each_round_has_its_base() {
        let choices = choices();
        let trials = plan_input(&choices, true).trials();
        let of = |trial: &Trial| (trial.run, trial.zone, trial.denial, trial.algorithm == 3);
        let rounds: Vec<_> = {
            let mut rounds: Vec<_> = trials.iter().map(of).collect();
            rounds.dedup();
            rounds.into_iter().filter(|round| !round.3).collect()
        };
        assert_eq!(rounds[..4], [(0, 0, 0, false), (0, 0, 1, false), (0, 0, 2, false), (0, 2, 2, false)]);
        // All trials are in the plan.
        for trial in plan_input(&choices, false).trials() {
            assert!(trials.contains(&trial), "{trial:?}");
        }
        for (place, _) in
            trials.iter().enumerate().filter(|(_, trial)| trial.algorithm == 3 && trial.level == 0)
        {
            assert_eq!((trials[place - 2].algorithm, trials[place - 1].algorithm), (1, 1));
        }
    }
}
