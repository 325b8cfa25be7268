//! The attacks: hostile zones below `example.`, and the questions that make a validator work on
//! them.

use crate::experiment::parameters::ParameterError;
use nonesuch_crypto::Algorithm;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;

/// RRSIG records of a forged answer.
pub(super) const SIGNATURES: u64 = 24;
/// DNSKEY records with one key tag.
const COLLIDING_KEYS: u64 = 12;
/// Labels of a deep name between its first label and the zone.
const DEPTH: usize = 100;

/// A kind of attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attack {
    /// Name in parameters and data.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) kind: Kind,
}

/// The expensive records of a zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Forged signatures over the answers.
    Signatures(ForgedKeys),
    /// DS records and DNSKEY records with one tag, and no right digest.
    Ds,
    /// Denials of deep names with this number of NSEC3 iterations and the longest salt.
    Nsec3(u16),
    /// Denials of deep names with NSEC5, which peers do not know.
    Nsec5,
}

/// DNSKEY records that never sign.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ForgedKeys {
    pub(super) algorithm: Algorithm,
    /// Octets of a modulus or of a coordinate.
    pub(super) octets: usize,
    /// Number of keys with the tag of the signatures.
    pub(super) count: u64,
}

const P256: (Algorithm, usize) = (Algorithm::ECDSAP256SHA256, 32);
const P384: (Algorithm, usize) = (Algorithm::ECDSAP384SHA384, 48);
const RSA2048: (Algorithm, usize) = (Algorithm::RSASHA256, 256);
const RSA4096: (Algorithm, usize) = (Algorithm::RSASHA256, 512);

const fn attack(name: &'static str, title: &'static str, kind: Kind) -> Attack {
    Attack { name, title, kind }
}

const fn forged((algorithm, octets): (Algorithm, usize), count: u64) -> Kind {
    Kind::Signatures(ForgedKeys { algorithm, octets, count })
}

/// All attacks.
const ATTACKS: [Attack; 12] = [
    attack("keytrap-p256", "12 colliding keys, 24 RRSIGs, P-256", forged(P256, COLLIDING_KEYS)),
    attack("keytrap-p384", "12 colliding keys, 24 RRSIGs, P-384", forged(P384, COLLIDING_KEYS)),
    attack("keytrap-rsa2048", "12 colliding keys, 24 RRSIGs, RSA-2048", forged(RSA2048, COLLIDING_KEYS)),
    attack("keytrap-rsa4096", "12 colliding keys, 24 RRSIGs, RSA-4096", forged(RSA4096, COLLIDING_KEYS)),
    attack("signatures-p256", "one key, 24 RRSIGs, P-256", forged(P256, 1)),
    attack("signatures-p384", "one key, 24 RRSIGs, P-384", forged(P384, 1)),
    attack("signatures-rsa2048", "one key, 24 RRSIGs, RSA-2048", forged(RSA2048, 1)),
    attack("signatures-rsa4096", "one key, 24 RRSIGs, RSA-4096", forged(RSA4096, 1)),
    attack("ds", "32 colliding DS, 13 colliding keys", Kind::Ds),
    attack("encloser-50", "100 labels, NSEC3 50 iterations", Kind::Nsec3(50)),
    attack("encloser-150", "100 labels, NSEC3 150 iterations", Kind::Nsec3(150)),
    attack("nsec5", "100 labels, NSEC5", Kind::Nsec5),
];

impl Attack {
    /// All attacks, in the order of reports.
    pub(super) const fn all() -> &'static [Self] {
        &ATTACKS
    }

    /// Question `number` for a zone, as a line of a query list. Different numbers give names that no
    /// cache knows.
    pub(super) fn question(&self, zone: u64, number: u64) -> String {
        match self.kind {
            Kind::Signatures(_) | Kind::Ds => format!("n{number}.wild.z{zone}.example. A\n"),
            Kind::Nsec3(_) | Kind::Nsec5 => {
                format!("{}n{number}.z{zone}.example. A\n", "a.".repeat(DEPTH))
            }
        }
    }

    /// Whether only the first query for a zone is expensive, so that each query of a load is for
    /// another zone.
    pub(super) const fn needs_new_zones(&self) -> bool {
        matches!(self.kind, Kind::Ds)
    }

    /// Whether the hostile zones have forged data. A validator must not mark answers from them as
    /// secure. The other hostile zones are only expensive: their denials are genuine.
    pub(super) const fn has_forged_data(&self) -> bool {
        matches!(self.kind, Kind::Signatures(_) | Kind::Ds)
    }

    /// Whether Unbound interrupts a validation with timers, for seconds, and then drops the late
    /// response: its CPU time for a query is measured with many queries at once.
    pub(super) const fn is_interrupted_by_unbound(&self) -> bool {
        matches!(self.kind, Kind::Nsec3(_))
    }

    /// Whether the peers know the mechanism. To them, a zone with an unknown algorithm is unsigned.
    pub(super) const fn is_known_to_peers(&self) -> bool {
        !matches!(self.kind, Kind::Nsec5)
    }
}

impl FromStr for Attack {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let found = ATTACKS.iter().find(|attack| attack.name == text);
        found.copied().ok_or_else(|| ParameterError::Attack {
            found: text.to_owned(),
            known: ATTACKS.map(|attack| attack.name).join(", "),
        })
    }
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

impl Serialize for Attack {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name)
    }
}

impl<'de> Deserialize<'de> for Attack {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_attacks_are_read_back() {
        for attack in Attack::all() {
            assert_eq!(attack.to_string().parse(), Ok(*attack));
            assert!(!attack.title.is_empty() && !attack.name.contains(' '), "{attack}");
        }
        let Err(ParameterError::Attack { found, known }) = "keytrap".parse::<Attack>() else {
            panic!("an unknown attack")
        };
        assert_eq!((found.as_str(), known.split(", ").count()), ("keytrap", Attack::all().len()));
    }

    #[test]
    fn questions_are_names_of_the_maximum_length_or_below_the_wildcard() {
        for attack in Attack::all() {
            let question = attack.question(19_999, 999_999);
            let name: nonesuch_proto::Name = question.trim_end_matches(" A\n").parse().expect("a name");
            let zone: nonesuch_proto::Name = "z19999.example.".parse().expect("a name");
            assert!(name.view().is_at_or_below(zone.view()), "{attack}");
            assert_ne!(question, attack.question(19_999, 999_998));
        }
    }
}
