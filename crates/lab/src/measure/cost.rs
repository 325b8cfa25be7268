//! Expected durations of signing and verifying zones, for experiments with a time limit: estimates
//! until an algorithm is measured.

use super::{AlgorithmChoice, ZoneCounts};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use std::collections::HashMap;

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
    (Algorithm::SLHDSA128S, None, [2_600_000.0, 2000.0]),
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
pub(crate) const SIGNED_SHARE: f64 = 0.5;

/// Returns the estimated CPU time of a signature and of its verification, in µs.
fn estimate_us(choice: AlgorithmChoice) -> [f64; 2] {
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
pub(crate) fn estimate_signatures(zone: &ZoneCounts, mechanism: Mechanism) -> f64 {
    let ZoneCounts { names, delegations, signed_delegations: signed, .. } = *zone;
    if delegations < names / 4 {
        return names as f64 * 2.5;
    }
    let chain = if mechanism.is_opt_out() { signed } else { delegations };
    (chain + signed) as f64
}

/// Durations of jobs: estimates until they are measured.
#[derive(Debug, Default)]
pub(crate) struct Costs {
    /// Measured wall time in seconds for each signature, for signing and verifying together, by the
    /// numbers of algorithm and level.
    measured: HashMap<[usize; 2], f64>,
    /// Measured time in seconds for serving, transfer and re-signing, for each signature.
    extras: Option<f64>,
}

impl Costs {
    /// Returns the expected wall time of signing and verifying a zone, in seconds. `key` identifies
    /// algorithm and level. `extras` adds serving, transfer and re-signing.
    pub(crate) fn expected_seconds(
        &self,
        key: [usize; 2],
        choice: AlgorithmChoice,
        signatures: f64,
        extras: bool,
    ) -> f64 {
        let estimate = || (estimate_us(choice).iter().sum::<f64>() + OTHER_WORK_US) * 1e-6 / effective_cpus();
        let each = self.measured.get(&key).copied().unwrap_or_else(estimate);
        let more = if extras { self.extras.unwrap_or(each * EXTRAS_RATIO) } else { 0.0 };
        signatures * (each + more) + START_SECONDS
    }

    /// Records the wall time of signing and verifying a zone with this number of signatures.
    pub(crate) fn record(&mut self, key: [usize; 2], signatures: u64, seconds: f64) {
        if signatures > 0 {
            self.measured.insert(key, seconds / signatures as f64);
        }
    }

    /// Records the wall time of serving, transfer and re-signing.
    pub(crate) fn record_extras(&mut self, signatures: u64, seconds: f64) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_estimated_then_measured() {
        let (key, choice) = ([0, 1], "RSASHA256/1280".parse().expect("a choice"));
        let mut costs = Costs::default();
        let before = costs.expected_seconds(key, choice, 1e6, false);
        assert!(before > 1.0);
        costs.record(key, 1000, 2.0);
        assert!((costs.expected_seconds(key, choice, 1e6, false) - 2000.0 - START_SECONDS).abs() < 1e-6);
        costs.record_extras(1000, 0.5);
        assert!((costs.expected_seconds(key, choice, 1e6, true) - 2500.0 - START_SECONDS).abs() < 1e-6);
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
