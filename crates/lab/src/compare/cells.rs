//! What is compared: the cells of algorithm × denial mechanism.

use nonesuch_crypto::{ALGORITHMS, Algorithm, AlgorithmEntry};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::MECHANISMS;
use std::fmt;

/// One way to publish the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cell {
    /// Without DNSSEC: what everything else is to be held against.
    Unsigned,
    /// Signed.
    Signed {
        /// With keys of this algorithm.
        algorithm: Algorithm,
        /// Length of both keys in bits, where the algorithm has several.
        bits: Option<u16>,
        /// How the zone denies existence.
        mechanism: Mechanism,
    },
}

/// Algorithms of the default run: what nearly all signed zones have, and what RFC 8624 §3.1 recommends.
const DEFAULT: &[(Algorithm, Option<u16>)] =
    &[(Algorithm::RSASHA256, Some(2048)), (Algorithm::ECDSAP256SHA256, None), (Algorithm::ED25519, None)];

/// The cells of a run, the unsigned zone first: the default subset, or `all` that the tables of algorithms and of
/// mechanisms hold.
#[must_use]
pub fn cells(all: bool) -> Vec<Cell> {
    let algorithms = if all { ALGORITHMS.iter().flat_map(variants).collect() } else { DEFAULT.to_vec() };
    let signed = algorithms.into_iter().flat_map(|(algorithm, bits)| {
        let mechanisms = MECHANISMS.iter().map(|entry| entry.mechanism);
        mechanisms.map(move |mechanism| Cell::Signed { algorithm, bits, mechanism })
    });
    std::iter::once(Cell::Unsigned).chain(signed).collect()
}

/// A row of the table of algorithms with each length of its keys, those too that are known to be weak: zones still
/// have them. None for an alias, which costs what its algorithm costs.
fn variants(entry: &AlgorithmEntry) -> Vec<(Algorithm, Option<u16>)> {
    if entry.alias_of.is_some() {
        return Vec::new();
    }
    match &entry.scheme.key_lengths {
        Some(lengths) => {
            let all = lengths.forced.iter().chain(lengths.offered);
            all.map(|bits| (entry.algorithm, Some(*bits))).collect()
        }
        None => vec![(entry.algorithm, None)],
    }
}

impl fmt::Display for Cell {
    /// `unsigned`, `ED25519 NSEC3`, `RSASHA256/2048 NSEC`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned => f.pad("unsigned"),
            Self::Signed { algorithm, bits, mechanism } => {
                let bits = bits.map(|bits| format!("/{bits}")).unwrap_or_default();
                f.pad(&format!("{algorithm}{bits} {}", mechanism.entry().title))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn all_cells_are_every_row_of_both_tables_once() {
        let cells = cells(true);
        assert_eq!(cells[0], Cell::Unsigned);
        // Two algorithms with five lengths of RSA keys each, and seven with one.
        assert_eq!(cells.len(), 1 + (2 * 5 + 7) * MECHANISMS.len());
        assert_eq!(cells.iter().collect::<HashSet<_>>().len(), cells.len());
        for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
            for denial in MECHANISMS {
                let found = cells.iter().any(|cell| {
                    matches!(cell, Cell::Signed { algorithm, mechanism, .. }
                        if *algorithm == entry.algorithm && *mechanism == denial.mechanism)
                });
                assert!(found, "{} {}", entry.mnemonic, denial.name);
            }
        }
    }

    #[test]
    fn the_default_is_a_part_of_all() {
        let (default, all) = (cells(false), cells(true));
        assert_eq!(default.len(), 1 + 3 * MECHANISMS.len());
        assert!(default.iter().all(|cell| all.contains(cell)));
        let names: Vec<String> = default.iter().take(3).map(Cell::to_string).collect();
        assert_eq!(names, ["unsigned", "RSASHA256/2048 NSEC", "RSASHA256/2048 NSEC3"]);
    }
}
