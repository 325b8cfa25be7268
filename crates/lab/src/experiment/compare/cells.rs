//! Cells of a comparison: combinations of algorithm and denial mechanism.

use crate::experiment::parameters::deduplicate;
use crate::measure::Choice;
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::MECHANISMS;
use std::fmt;

/// A way to publish the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cell {
    /// Without DNSSEC, as the baseline.
    Unsigned,
    /// Signed with keys of this algorithm and length, and with this denial mechanism.
    Signed(Choice, Mechanism),
}

/// Default algorithms: the algorithms of nearly all signed zones, and the recommended ones (RFC
/// 8624 §3.1).
pub const USUAL: [Choice; 3] = [
    Choice { algorithm: Algorithm::RSASHA256, bits: Some(2048) },
    Choice { algorithm: Algorithm::ECDSAP256SHA256, bits: None },
    Choice { algorithm: Algorithm::ED25519, bits: None },
];

/// Returns the cells of a run without duplicates. The first is the unsigned zone. Each algorithm in
/// `choices` is combined with each of `mechanisms`, or with all mechanisms if the list is empty. A
/// choice without a key length has the default length. Mechanisms for which the server needs
/// private keys are omitted.
#[must_use]
pub fn cells(choices: &[Choice], mechanisms: &[Mechanism]) -> Vec<Cell> {
    let known = MECHANISMS.iter().filter(|entry| entry.is_served_without_keys()).map(|entry| entry.mechanism);
    let mechanisms: Vec<Mechanism> =
        known.filter(|mechanism| mechanisms.is_empty() || mechanisms.contains(mechanism)).collect();
    let of = |choice: &Choice| {
        let choice = choice.with_length();
        mechanisms.iter().map(move |mechanism| Cell::Signed(choice, *mechanism))
    };
    deduplicate([Cell::Unsigned].into_iter().chain(choices.iter().flat_map(of)))
}

impl fmt::Display for Cell {
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
    use nonesuch_dnssec::denial::MechanismEntry;
    use std::collections::HashSet;

    fn served() -> impl Iterator<Item = &'static MechanismEntry> {
        MECHANISMS.iter().filter(|entry| entry.is_served_without_keys())
    }

    #[test]
    fn all_cells_are_every_row_of_both_tables_once() {
        let cells = cells(&Choice::all(), &[]);
        assert_eq!(cells[0], Cell::Unsigned);
        // Two algorithms with five RSA key lengths each, and seven with one key length.
        assert_eq!(cells.len(), 1 + (2 * 5 + 7) * served().count());
        assert_eq!(cells.iter().collect::<HashSet<_>>().len(), cells.len());
        for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
            for denial in served() {
                let found = cells.iter().any(|cell| {
                    matches!(cell, Cell::Signed(choice, mechanism)
                        if choice.algorithm == entry.algorithm && *mechanism == denial.mechanism)
                });
                assert!(found, "{} {}", entry.mnemonic, denial.name);
            }
        }
    }

    #[test]
    fn the_usual_cells_are_a_part_of_all() {
        let (default, all) = (cells(&USUAL, &[]), cells(&Choice::all(), &[]));
        assert_eq!(default.len(), 1 + 3 * served().count());
        assert!(default.iter().all(|cell| all.contains(cell)));
        let names: Vec<String> = default.iter().take(3).map(Cell::to_string).collect();
        assert_eq!(names, ["unsigned", "RSASHA256/2048 NSEC", "RSASHA256/2048 NSEC3"]);
    }

    #[test]
    fn a_choice_is_taken_once_and_in_its_order() {
        let kinds = ["ed448", "rsasha256", "8/2048", "ed448"].map(|text| text.parse().unwrap());
        let chosen = cells(&kinds, &[Mechanism::Nsec3OptOut, Mechanism::Nsec]);
        let names: Vec<String> = chosen.iter().map(Cell::to_string).collect();
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
