//! Selection and order of the jobs, and estimates of their duration.
//!
//! A round consists of all algorithms and levels for one zone and one mechanism. Without a time
//! limit, the rounds are in the order of runs. With a time limit, the rounds with the figures of
//! the published study are first. A job that is not expected to end in time is omitted and
//! reported, because an RSA key can need minutes for a large zone.

use super::parameters::{ChosenAlgorithm, Parameters, ZoneChoice};
use crate::measure::{Choice, ZoneCounts};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use std::collections::HashMap;
use std::time::Duration;

/// Base of all ratios.
pub(super) const BASE: Algorithm = Algorithm::ECDSAP256SHA256;

/// CPU time of a signature and of its verification, in µs, with a processor of 2.6 GHz at level
/// x86-64-v2. These estimates apply until the algorithm has been measured.
const GUESSES: &[(Algorithm, Option<u16>, [f64; 2])] = &[
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
/// Estimate for all other algorithms.
const UNKNOWN: [f64; 2] = [1000.0, 1000.0];
/// Time for reading, hashing and writing for each signature, in both jobs together, in µs.
const OTHER_WORK: f64 = 30.0;
/// Time to start two processes, in seconds.
const STARTS: f64 = 0.05;
/// Estimated time for serving, transfer and re-signing, relative to that for signing and verifying.
const EXTRAS: f64 = 0.7;
/// Estimated share of delegations with DS records, if they have not been counted.
const SIGNED_SHARE: f64 = 0.5;

/// One signing and verification of a zone. The fields except `run` are indices into the lists of
/// the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cell {
    pub(super) run: u32,
    pub(super) zone: usize,
    pub(super) denial: usize,
    pub(super) algorithm: usize,
    pub(super) level: usize,
}

/// Numbers that determine a plan.
pub(super) struct Shape<'s> {
    pub(super) runs: u32,
    pub(super) zones: usize,
    pub(super) denials: usize,
    pub(super) levels: usize,
    pub(super) choices: &'s [ChosenAlgorithm],
    pub(super) limited: bool,
}

/// One zone and one mechanism, with the algorithms of the study or with the additions.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Round {
    run: u32,
    zone: usize,
    denial: usize,
    additions: bool,
}

impl Shape<'_> {
    pub(super) fn cells(&self) -> Vec<Cell> {
        let mut rounds = Vec::new();
        for run in 0..self.runs {
            for zone in 0..self.zones {
                for denial in 0..self.denials {
                    rounds.extend([false, true].map(|additions| Round { run, zone, denial, additions }));
                }
            }
        }
        if self.limited {
            // The sort must be stable.
            rounds.sort_by_key(|round| self.urgency(*round));
        }
        rounds.into_iter().flat_map(|round| self.round(round)).collect()
    }

    /// Returns the priority of a round; lower values are first. Large zones use the last mechanism.
    const fn urgency(&self, round: Round) -> u8 {
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

    /// Returns the cells of a round. With a time limit, a round of additions also measures the base
    /// algorithm again.
    fn round(&self, round: Round) -> Vec<Cell> {
        let is_base = |place: &usize| self.choices[*place].choice.algorithm == BASE;
        let is_of = |place: &usize| {
            self.choices[*place].addition == round.additions
                || (self.limited && is_base(place) && self.has_additions())
        };
        let mut places: Vec<usize> = (0..self.choices.len()).filter(is_of).collect();
        // The base algorithm is first, so that an incomplete round contains it.
        places.sort_by_key(|place| !is_base(place));
        let Round { run, zone, denial, .. } = round;
        let cell = |algorithm, level| Cell { run, zone, denial, algorithm, level };
        places
            .into_iter()
            .flat_map(|algorithm| (0..self.levels).map(move |level| cell(algorithm, level)))
            .collect()
    }

    fn has_additions(&self) -> bool {
        self.choices.iter().any(|chosen| chosen.addition)
    }
}

/// Returns the estimated CPU time of a signature and of its verification, in µs.
fn guess(choice: Choice) -> [f64; 2] {
    let same = |algorithm: Algorithm| {
        // RSA has the same cost with both hashes.
        algorithm == choice.algorithm || (choice.bits.is_some() && algorithm == Algorithm::RSASHA256)
    };
    let found = GUESSES.iter().find(|(algorithm, bits, _)| same(*algorithm) && *bits == choice.bits);
    found.map_or(UNKNOWN, |(.., guess)| *guess)
}

/// Estimates the number of signatures of a zone: those of the DS RRsets, and those of a chain over
/// all delegations (RFC 4035 §2.2), or with opt-out over delegations with DS records (RFC 5155 §6).
/// A zone with few delegations has about 2.5 signatures for each name.
pub(super) fn signatures(zone: &ZoneCounts, mechanism: Mechanism) -> f64 {
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
    learnt: HashMap<[usize; 2], f64>,
    /// Measured time in seconds for serving, transfer and re-signing, for each signature.
    extras: Option<f64>,
}

impl Costs {
    pub(super) fn expect(&self, cell: Cell, choice: Choice, signatures: f64, extras: bool) -> f64 {
        let guess = || (guess(choice).iter().sum::<f64>() + OTHER_WORK) * 1e-6 / cores();
        let each = self.learnt.get(&[cell.algorithm, cell.level]).copied().unwrap_or_else(guess);
        let more = if extras { self.extras.unwrap_or(each * EXTRAS) } else { 0.0 };
        signatures * (each + more) + STARTS
    }

    pub(super) fn learn(&mut self, cell: Cell, signatures: u64, seconds: f64) {
        if signatures > 0 {
            self.learnt.insert([cell.algorithm, cell.level], seconds / signatures as f64);
        }
    }

    pub(super) fn learn_extras(&mut self, signatures: u64, seconds: f64) {
        if signatures > 0 {
            self.extras = Some(seconds / signatures as f64);
        }
    }
}

/// Effective number of CPUs of a job. Signing and verifying use all CPUs; reading and writing use
/// one.
fn cores() -> f64 {
    std::thread::available_parallelism().map_or(1.0, |count| (count.get() as f64 * 0.85).max(1.0))
}

/// Returns the estimated duration of all jobs.
pub(super) fn whole_duration(parameters: &Parameters) -> Duration {
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
            let signatures = signatures(&counts, denial.0);
            for (algorithm, ChosenAlgorithm { choice, .. }) in choices.iter().enumerate() {
                for level in 0..parameters.levels.len() {
                    let cell = Cell { run: 0, zone: place, denial: 0, algorithm, level };
                    let extras = level == 0 && parameters.served.holds(place, zones);
                    seconds += costs.expect(cell, *choice, signatures, extras);
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

    fn shape(choices: &[ChosenAlgorithm], limited: bool) -> Shape<'_> {
        Shape { runs: 2, zones: 3, denials: 3, levels: 2, choices, limited }
    }

    #[test]
    fn without_a_limit_runs_follow_each_other_and_nothing_is_twice() {
        let choices = choices();
        let cells = shape(&choices, false).cells();
        assert_eq!(cells.len(), 2 * 3 * 3 * 2 * 4);
        assert!(cells.is_sorted_by_key(|cell| (cell.run, cell.zone, cell.denial)));
        for (place, cell) in cells.iter().enumerate() {
            assert!(!cells[..place].contains(cell));
        }
        // Each round begins with the base algorithm.
        assert_eq!((cells[0].algorithm, cells[1].algorithm, cells[2].algorithm), (1, 1, 0));
    }

    #[test]
    fn with_a_limit_the_studys_cells_come_first_and_each_round_has_its_base() {
        let choices = choices();
        let cells = shape(&choices, true).cells();
        let of = |cell: &Cell| (cell.run, cell.zone, cell.denial, cell.algorithm == 3);
        let rounds: Vec<_> = {
            let mut rounds: Vec<_> = cells.iter().map(of).collect();
            rounds.dedup();
            rounds.into_iter().filter(|round| !round.3).collect()
        };
        assert_eq!(rounds[..4], [(0, 0, 0, false), (0, 0, 1, false), (0, 0, 2, false), (0, 2, 2, false)]);
        // All cells are in the plan.
        for cell in shape(&choices, false).cells() {
            assert!(cells.contains(&cell), "{cell:?}");
        }
        for (place, _) in cells.iter().enumerate().filter(|(_, cell)| cell.algorithm == 3 && cell.level == 0)
        {
            assert_eq!((cells[place - 2].algorithm, cells[place - 1].algorithm), (1, 1));
        }
    }

    #[test]
    fn costs_are_guessed_then_learnt() {
        let choices = choices();
        let cell = Cell { run: 0, zone: 0, denial: 0, algorithm: 0, level: 1 };
        let mut costs = Costs::default();
        let before = costs.expect(cell, choices[0].choice, 1e6, false);
        assert!(before > 1.0);
        costs.learn(cell, 1000, 2.0);
        assert!((costs.expect(cell, choices[0].choice, 1e6, false) - 2000.0 - STARTS).abs() < 1e-6);
        costs.learn_extras(1000, 0.5);
        assert!((costs.expect(cell, choices[0].choice, 1e6, true) - 2500.0 - STARTS).abs() < 1e-6);
        assert_eq!(guess("RSASHA512/2048".parse().expect("a choice")), [880.0, 30.0]);
    }

    #[test]
    fn opt_out_signs_secure_delegations_alone() {
        let zone =
            ZoneCounts { names: 1000, delegations: 1000, signed_delegations: 300, ..ZoneCounts::default() };
        assert_eq!(signatures(&zone, Mechanism::Nsec), 1300.0);
        assert_eq!(signatures(&zone, Mechanism::Nsec3OptOut), 600.0);
    }
}
