//! Selection and order of the jobs, and estimates of their duration.
//!
//! A round has all trials of one run with the same zone and mechanism: those of the published
//! study's algorithms, or those of the additional algorithms. Without a time limit, the rounds are
//! in the order of runs. With a time limit, the rounds with the figures of the published study are
//! first. A trial that is not expected to end in time is omitted and reported, because signing a
//! large zone with RSA can take minutes.

use super::parameters::{ChosenAlgorithm, Parameters, ZoneChoice};
use crate::measure::{Choice, ZoneCounts};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use std::collections::HashMap;
use std::time::Duration;

/// Base of all ratios.
pub(super) const BASE: Algorithm = Algorithm::ECDSAP256SHA256;

/// CPU time of a signature and of its verification, in µs, by algorithm and key length in bits. The
/// times are those of a processor of 2.6 GHz at level x86-64-v2. These estimates apply until the
/// algorithm has been measured.
const SIGNATURE_US: &[(Algorithm, Option<u16>, [f64; 2])] = &[
    (Algorithm::RSASHA256, Some(1024), [160.0, 15.0]),
    (Algorithm::RSASHA256, Some(1280), [370.0, 20.0]),
    (Algorithm::RSASHA256, Some(2048), [880.0, 30.0]),
    (Algorithm::RSASHA256, Some(3072), [2800.0, 50.0]),
    (Algorithm::RSASHA256, Some(4096), [6500.0, 80.0]),
    (Algorithm::ECDSAP256SHA256, None, [30.0, 65.0]),
    (Algorithm::ECDSAP384SHA384, None, [150.0, 250.0]),
    (Algorithm::ED25519, None, [20.0, 30.0]),
    (Algorithm::ED448, None, [100.0, 200.0]),
    (Algorithm::MLDSA44, None, [380.0, 90.0]),
    (Algorithm::FALCON512, None, [260.0, 40.0]),
    (Algorithm::MAYO2, None, [60.0, 15.0]),
];
/// Estimate for all other algorithms: CPU time of a signature and of its verification, in µs.
const UNKNOWN_SIGNATURE_US: [f64; 2] = [1000.0, 1000.0];
/// Time for reading, hashing and writing for each signature, in both jobs together, in µs.
const OTHER_WORK_US: f64 = 30.0;
/// Time to start two processes, in seconds.
const START_SECONDS: f64 = 0.05;
/// Estimated time for serving, transfer and re-signing, as a multiple of the time for signing and
/// verifying.
const EXTRAS_RATIO: f64 = 0.7;
/// Estimated share of delegations with DS records, if they have not been counted.
const SIGNED_SHARE: f64 = 0.5;

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

/// Returns the estimated CPU time of a signature and of its verification, in µs.
fn estimate_us(choice: Choice) -> [f64; 2] {
    let same = |algorithm: Algorithm| {
        // RSA has the same cost with both hashes.
        algorithm == choice.algorithm || (choice.bits.is_some() && algorithm == Algorithm::RSASHA256)
    };
    let found = SIGNATURE_US.iter().find(|(algorithm, bits, _)| same(*algorithm) && *bits == choice.bits);
    found.map_or(UNKNOWN_SIGNATURE_US, |(.., estimate)| *estimate)
}

/// Estimates the number of signatures of a zone. In a zone with many delegations, each DS RRset and
/// each record of the chain has a signature (RFC 4035 §2.2). The chain has a record for each
/// delegation; with opt-out, only for each delegation with DS records (RFC 5155 §6). A zone with
/// few delegations has about 2.5 signatures for each name.
pub(super) fn estimate_signatures(zone: &ZoneCounts, mechanism: Mechanism) -> f64 {
    let ZoneCounts { names, delegations, signed_delegations: signed, .. } = *zone;
    if delegations < names / 4 {
        return names as f64 * 2.5;
    }
    let chain = if mechanism.is_opt_out() { signed } else { delegations };
    (chain + signed) as f64
}

/// Durations of jobs: estimates until they are measured.
#[derive(Debug, Default)]
pub(super) struct Costs {
    /// Measured wall time in seconds for each signature, for signing and verifying together, by
    /// algorithm and level.
    measured: HashMap<[usize; 2], f64>,
    /// Measured time in seconds for serving, transfer and re-signing, for each signature.
    extras: Option<f64>,
}

impl Costs {
    /// Returns the expected wall time of a trial, in seconds. `extras` adds serving, transfer and
    /// re-signing.
    pub(super) fn expected_seconds(
        &self,
        trial: Trial,
        choice: Choice,
        signatures: f64,
        extras: bool,
    ) -> f64 {
        let estimate = || (estimate_us(choice).iter().sum::<f64>() + OTHER_WORK_US) * 1e-6 / effective_cpus();
        let each = self.measured.get(&[trial.algorithm, trial.level]).copied().unwrap_or_else(estimate);
        let more = if extras { self.extras.unwrap_or(each * EXTRAS_RATIO) } else { 0.0 };
        signatures * (each + more) + START_SECONDS
    }

    /// Records the wall time of signing and verifying a zone with this number of signatures.
    pub(super) fn record(&mut self, trial: Trial, signatures: u64, seconds: f64) {
        if signatures > 0 {
            self.measured.insert([trial.algorithm, trial.level], seconds / signatures as f64);
        }
    }

    /// Records the wall time of serving, transfer and re-signing.
    pub(super) fn record_extras(&mut self, signatures: u64, seconds: f64) {
        if signatures > 0 {
            self.extras = Some(seconds / signatures as f64);
        }
    }
}

/// Effective number of CPUs of a job. Signing and verifying use all CPUs; reading and writing use
/// one.
fn effective_cpus() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| (count.get() as f64 * 0.85).max(1.0))
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
                    let trial = Trial { run: 0, zone: place, denial: 0, algorithm, level };
                    let extras = level == 0 && parameters.served.holds(place, zones);
                    seconds += costs.expected_seconds(trial, *choice, signatures, extras);
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

    #[test]
    fn costs_are_estimated_then_measured() {
        let choices = choices();
        let trial = Trial { run: 0, zone: 0, denial: 0, algorithm: 0, level: 1 };
        let mut costs = Costs::default();
        let before = costs.expected_seconds(trial, choices[0].choice, 1e6, false);
        assert!(before > 1.0);
        costs.record(trial, 1000, 2.0);
        assert!(
            (costs.expected_seconds(trial, choices[0].choice, 1e6, false) - 2000.0 - START_SECONDS).abs()
                < 1e-6
        );
        costs.record_extras(1000, 0.5);
        assert!(
            (costs.expected_seconds(trial, choices[0].choice, 1e6, true) - 2500.0 - START_SECONDS).abs()
                < 1e-6
        );
        assert_eq!(estimate_us("RSASHA512/2048".parse().expect("a choice")), [880.0, 30.0]);
    }

    #[test]
    fn opt_out_signs_secure_delegations_alone() {
        let zone =
            ZoneCounts { names: 1000, delegations: 1000, signed_delegations: 300, ..ZoneCounts::default() };
        assert_eq!(estimate_signatures(&zone, Mechanism::Nsec), 1300.0);
        assert_eq!(estimate_signatures(&zone, Mechanism::Nsec3OptOut), 600.0);
    }
}
