//! What is compared: the cells of algorithm × denial mechanism.

use nonesuch_crypto::{ALGORITHMS, Algorithm, AlgorithmEntry};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::MECHANISMS;
use std::fmt;
use std::str::FromStr;

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

/// An algorithm with the length of its keys, where they can have several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyKind {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Length in bits; `None` where all keys have the same.
    pub bits: Option<u16>,
}

/// Why a text names no [`KeyKind`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyKindError {
    /// No algorithm of the table.
    #[error("'{0}' is no algorithm that keys are made for: `nonesuch key generate --help` lists them")]
    Algorithm(String),
    /// An alias.
    #[error("{alias} costs what {algorithm} costs: name that one")]
    Alias {
        /// The alias.
        alias: Algorithm,
        /// The algorithm behind it.
        algorithm: Algorithm,
    },
    /// A length where keys have one.
    #[error("keys of {0} have one length: leave /BITS out")]
    Fixed(Algorithm),
    /// A length that keys are not made in.
    #[error("'{found}' is no length of {algorithm} keys: one of {lengths:?}")]
    Bits {
        /// The algorithm.
        algorithm: Algorithm,
        /// What was found behind the slash.
        found: String,
        /// The lengths that keys are made in.
        lengths: Vec<u16>,
    },
}

/// Mnemonic or number, for RSA with `/BITS` behind it; without, the algorithm's default length.
impl FromStr for KeyKind {
    type Err = KeyKindError;

    fn from_str(text: &str) -> Result<Self, KeyKindError> {
        let (name, bits) = match text.split_once('/') {
            Some((name, bits)) => (name, Some(bits)),
            None => (text, None),
        };
        let unknown = || KeyKindError::Algorithm(name.to_owned());
        let algorithm: Algorithm = name.parse().map_err(|_| unknown())?;
        let entry = algorithm.entry().ok_or_else(unknown)?;
        if let Some(plain) = entry.alias_of {
            return Err(KeyKindError::Alias { alias: algorithm, algorithm: plain });
        }
        let Some(lengths) = &entry.scheme.key_lengths else {
            return if bits.is_none() {
                Ok(Self { algorithm, bits: None })
            } else {
                Err(KeyKindError::Fixed(algorithm))
            };
        };
        let Some(found) = bits else { return Ok(Self { algorithm, bits: Some(lengths.default) }) };
        let lengths: Vec<u16> = lengths.forced.iter().chain(lengths.offered).copied().collect();
        match found.parse() {
            Ok(bits) if lengths.contains(&bits) => Ok(Self { algorithm, bits: Some(bits) }),
            _ => Err(KeyKindError::Bits { algorithm, found: found.to_owned(), lengths }),
        }
    }
}

/// Which algorithms are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// What nearly all signed zones have, and what RFC 8624 §3.1 recommends.
    #[default]
    Usual,
    /// All that the table of algorithms holds, with every length of keys.
    All,
    /// These.
    These(Vec<KeyKind>),
}

/// Algorithms of the usual run.
const USUAL: &[KeyKind] = &[
    KeyKind { algorithm: Algorithm::RSASHA256, bits: Some(2048) },
    KeyKind { algorithm: Algorithm::ECDSAP256SHA256, bits: None },
    KeyKind { algorithm: Algorithm::ED25519, bits: None },
];

/// The cells of a run, each once, the unsigned zone first: the algorithms selected, each with these mechanisms; with
/// all of them where none is given. Mechanisms with which the server would need keys are left out.
#[must_use]
pub fn cells(selection: &Selection, mechanisms: &[Mechanism]) -> Vec<Cell> {
    let kinds = match selection {
        Selection::Usual => USUAL.to_vec(),
        Selection::All => ALGORITHMS.iter().flat_map(variants).collect(),
        Selection::These(kinds) => kinds.clone(),
    };
    let known = MECHANISMS.iter().filter(|entry| entry.is_served_without_keys()).map(|entry| entry.mechanism);
    let mechanisms: Vec<Mechanism> =
        known.filter(|mechanism| mechanisms.is_empty() || mechanisms.contains(mechanism)).collect();
    let mut cells = vec![Cell::Unsigned];
    for KeyKind { algorithm, bits } in kinds {
        for &mechanism in &mechanisms {
            let cell = Cell::Signed { algorithm, bits, mechanism };
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    cells
}

/// A row of the table of algorithms with each length of its keys, those too that are known to be weak: zones still
/// have them. None for an alias, which costs what its algorithm costs.
fn variants(entry: &AlgorithmEntry) -> Vec<KeyKind> {
    let algorithm = entry.algorithm;
    if entry.alias_of.is_some() {
        return Vec::new();
    }
    match &entry.scheme.key_lengths {
        Some(lengths) => {
            let all = lengths.forced.iter().chain(lengths.offered);
            all.map(|bits| KeyKind { algorithm, bits: Some(*bits) }).collect()
        }
        None => vec![KeyKind { algorithm, bits: None }],
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
    use nonesuch_dnssec::denial::MechanismEntry;
    use std::collections::HashSet;

    fn served() -> impl Iterator<Item = &'static MechanismEntry> {
        MECHANISMS.iter().filter(|entry| entry.is_served_without_keys())
    }

    #[test]
    fn all_cells_are_every_row_of_both_tables_once() {
        let cells = cells(&Selection::All, &[]);
        assert_eq!(cells[0], Cell::Unsigned);
        // Two algorithms with five lengths of RSA keys each, and seven with one.
        assert_eq!(cells.len(), 1 + (2 * 5 + 7) * served().count());
        assert_eq!(cells.iter().collect::<HashSet<_>>().len(), cells.len());
        for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
            for denial in served() {
                let found = cells.iter().any(|cell| {
                    matches!(cell, Cell::Signed { algorithm, mechanism, .. }
                        if *algorithm == entry.algorithm && *mechanism == denial.mechanism)
                });
                assert!(found, "{} {}", entry.mnemonic, denial.name);
            }
        }
    }

    #[test]
    fn the_usual_cells_are_a_part_of_all() {
        let (default, all) = (cells(&Selection::Usual, &[]), cells(&Selection::All, &[]));
        assert_eq!(default.len(), 1 + 3 * served().count());
        assert!(default.iter().all(|cell| all.contains(cell)));
        let names: Vec<String> = default.iter().take(3).map(Cell::to_string).collect();
        assert_eq!(names, ["unsigned", "RSASHA256/2048 NSEC", "RSASHA256/2048 NSEC3"]);
    }

    #[test]
    fn kinds_of_keys_are_read() {
        let kind = |algorithm, bits| Ok(KeyKind { algorithm, bits });
        assert_eq!("rsasha256".parse(), kind(Algorithm::RSASHA256, Some(2048)));
        assert_eq!("RSASHA512/1280".parse(), kind(Algorithm::RSASHA512, Some(1280)));
        assert_eq!("8/1024".parse(), kind(Algorithm::RSASHA256, Some(1024)));
        assert_eq!("mayo2".parse(), kind(Algorithm::MAYO2, None));
        let error = |text: &str| text.parse::<KeyKind>().unwrap_err();
        for unknown in ["", "rsa", "99", "256", "/2048"] {
            assert_eq!(error(unknown), KeyKindError::Algorithm(unknown.trim_end_matches("/2048").to_owned()));
        }
        let alias = KeyKindError::Alias { alias: Algorithm(232), algorithm: Algorithm::ED448 };
        assert_eq!((error("nsec5-ed448"), error("232")), (alias.clone(), alias));
        assert_eq!(error("ed25519/256"), KeyKindError::Fixed(Algorithm::ED25519));
        for found in ["", "1281", "512", "70000", "x", "2048/1"] {
            let text = error(&format!("rsasha256/{found}")).to_string();
            assert!(
                text.contains(&format!("'{found}'")) && text.contains("[1024, 1280, 2048, 3072, 4096]"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_choice_is_taken_once_and_in_its_order() {
        let kinds = ["ed448", "rsasha256", "8/2048", "ed448"].map(|text| text.parse().unwrap());
        let chosen = cells(&Selection::These(kinds.to_vec()), &[Mechanism::Nsec3OptOut, Mechanism::Nsec]);
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
