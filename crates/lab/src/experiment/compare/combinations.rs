//! The combinations of algorithm and denial mechanism that a comparison measures.

use crate::experiment::parameters::deduplicate;
use crate::measure::AlgorithmChoice;
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::{MECHANISMS, NameHash};
use std::fmt;

/// Algorithm and denial mechanism of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Combination {
    /// Without DNSSEC, as the baseline.
    Unsigned,
    /// Signed with keys of this algorithm and length, and with this denial mechanism.
    Signed(AlgorithmChoice, Mechanism),
}

/// Default algorithms: the algorithms of nearly all signed zones, the recommended ones (RFC 8624
/// §3.1), and a standard for signatures that quantum computers cannot forge (FIPS 204).
pub const DEFAULT_ALGORITHMS: [AlgorithmChoice; 4] = [
    AlgorithmChoice { algorithm: Algorithm::RSASHA256, bits: Some(2048) },
    AlgorithmChoice { algorithm: Algorithm::ECDSAP256SHA256, bits: None },
    AlgorithmChoice { algorithm: Algorithm::ED25519, bits: None },
    AlgorithmChoice { algorithm: Algorithm::MLDSA44, bits: None },
];

/// Default mechanisms.
pub const DEFAULT_MECHANISMS: [Mechanism; 6] = [
    Mechanism::Nsec,
    Mechanism::Nsec3,
    Mechanism::Nsec3OptOut,
    Mechanism::Nsec5,
    Mechanism::Compact,
    Mechanism::WhiteLies,
];

/// Returns the combinations of a run without duplicates. The first is the unsigned zone. Each
/// algorithm in `choices` is combined with each of `mechanisms`, or with all mechanisms if the list
/// is empty. A choice without a key length has the default length.
#[must_use]
pub fn combinations(choices: &[AlgorithmChoice], mechanisms: &[Mechanism]) -> Vec<Combination> {
    let known = MECHANISMS.iter().map(|entry| entry.mechanism);
    let mechanisms: Vec<Mechanism> =
        known.filter(|mechanism| mechanisms.is_empty() || mechanisms.contains(mechanism)).collect();
    let of = |choice: &AlgorithmChoice| {
        let choice = choice.with_default_key_length();
        mechanisms.iter().map(move |mechanism| Combination::Signed(choice, *mechanism))
    };
    deduplicate([Combination::Unsigned].into_iter().chain(choices.iter().flat_map(of)))
}

impl Combination {
    /// Whether the chain omits insecure delegations.
    pub(super) fn is_opt_out(&self) -> bool {
        matches!(self, Self::Signed(_, mechanism) if mechanism.is_opt_out())
    }

    /// Whether the specification of the algorithm or mechanism is not final. For NSEC5, it is an
    /// expired draft, and other validators do not support it.
    pub(super) fn is_experimental(&self) -> bool {
        let Self::Signed(choice, mechanism) = self else { return false };
        let scheme = choice.algorithm.entry().map(|entry| entry.scheme);
        mechanism.name_hash() == NameHash::Vrf || scheme.is_some_and(|scheme| scheme.experimental.is_some())
    }
}

impl fmt::Display for Combination {
    /// Formats as `unsigned`, `ED25519 NSEC3` or `RSASHA256/2048 NSEC`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned => f.pad("unsigned"),
            Self::Signed(choice, mechanism) => f.pad(&format!("{choice} {}", mechanism.entry().title)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_crypto::ALGORITHMS;
    use std::collections::HashSet;

    #[test]
    fn all_combinations_are_every_row_of_both_tables_once() {
        let all = combinations(&AlgorithmChoice::all(), &[]);
        assert_eq!(all[0], Combination::Unsigned);
        // Two algorithms with five RSA key lengths each, and eight with one key length.
        assert_eq!(all.len(), 1 + (2 * 5 + 8) * MECHANISMS.len());
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
        for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
            for denial in MECHANISMS {
                let found = all.iter().any(|combination| {
                    matches!(combination, Combination::Signed(choice, mechanism)
                        if choice.algorithm == entry.algorithm && *mechanism == denial.mechanism)
                });
                assert!(found, "{} {}", entry.mnemonic, denial.name);
            }
        }
    }

    #[test]
    fn the_default_combinations_are_a_part_of_all() {
        let default = combinations(&DEFAULT_ALGORITHMS, &DEFAULT_MECHANISMS);
        let all = combinations(&AlgorithmChoice::all(), &[]);
        assert_eq!(default.len(), 1 + 4 * 6);
        assert!(default.iter().all(|combination| all.contains(combination)));
        let names: Vec<String> = default.iter().take(3).map(Combination::to_string).collect();
        assert_eq!(names, ["unsigned", "RSASHA256/2048 NSEC", "RSASHA256/2048 NSEC3"]);
    }

    #[test]
    fn a_choice_is_taken_once_and_in_its_order() {
        let kinds = ["ed448", "rsasha256", "8/2048", "ed448"].map(|text| text.parse().unwrap());
        let chosen = combinations(&kinds, &[Mechanism::Nsec3OptOut, Mechanism::Nsec]);
        let names: Vec<String> = chosen.iter().map(Combination::to_string).collect();
        let expected = [
            "unsigned",
            "ED448 NSEC",
            "ED448 NSEC3 opt-out",
            "RSASHA256/2048 NSEC",
            "RSASHA256/2048 NSEC3 opt-out",
        ];
        assert_eq!(names, expected);
    }
}
