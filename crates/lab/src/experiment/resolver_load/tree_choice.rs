//! The trees of an experiment: a root, `example.`, and zones below it.

use super::traffic::QueriedTree;
use crate::experiment::server_load::{Combination, CombinationError};
use crate::measure::AlgorithmChoice;
use crate::measure::subject::serde_as_text;
use crate::testbed::ZoneServer;
use crate::tree::{Description, ZoneDescription};
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_dnssec::Mechanism;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// Address of the server of the root; the next addresses are those of `example.` and of the zones
/// below it.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const ZONES_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 3);
/// Algorithm of the levels of the tree that the choice does not concern.
const USUAL: AlgorithmChoice = AlgorithmChoice { algorithm: Algorithm::ECDSAP256SHA256, bits: None };

/// The levels of a tree that an algorithm signs. The others have ECDSA P-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signers {
    /// All levels.
    All,
    /// The root only.
    Root,
    /// The top-level domain only.
    Tld,
    /// The zones below the top-level domain only.
    Leaf,
}

impl fmt::Display for Signers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::All => "all",
            Self::Root => "root",
            Self::Tld => "tld",
            Self::Leaf => "leaf",
        })
    }
}

/// End of the text of a publication in a conservative transition from NSEC3 to NSEC5.
const ALSO_NSEC5: &str = "+nsec5";

/// How zones are published: with a combination of algorithm and denial mechanism, or `unsigned`, or
/// in a conservative transition from NSEC3 to NSEC5, for example `ECDSAP256SHA256 nsec3+nsec5`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Publication {
    pub(super) combination: Combination,
    /// Whether the zones also have NSEC5 records, and keys and signatures of the alias number.
    pub(super) also_nsec5: bool,
}

impl Publication {
    /// The denial mechanism, or `unsigned`.
    pub(super) fn denial(&self) -> String {
        format!("{}{}", self.combination.denial, if self.also_nsec5 { ALSO_NSEC5 } else { "" })
    }
}

impl FromStr for Publication {
    type Err = CombinationError;

    fn from_str(text: &str) -> Result<Self, CombinationError> {
        let nsec3_only = text.strip_suffix(ALSO_NSEC5);
        let nsec3_only: Option<Combination> = nsec3_only.and_then(|text| text.parse().ok());
        match nsec3_only.filter(|combination| combination.denial.0 == Some(Mechanism::Nsec3)) {
            Some(combination) => Ok(Self { combination, also_nsec5: true }),
            None => Ok(Self { combination: text.parse()?, also_nsec5: false }),
        }
    }
}

impl fmt::Display for Publication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}{}", self.combination, if self.also_nsec5 { ALSO_NSEC5 } else { "" }))
    }
}

serde_as_text!(CombinationError: Publication);

/// How a tree is signed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TreeChoice {
    /// How the zones below the top-level domain are published.
    pub(super) publication: Publication,
    pub(super) signers: Signers,
}

impl TreeChoice {
    /// The description of the tree.
    pub(super) fn description(&self, tree: QueriedTree) -> Description {
        let zone = |origin: &str, level: Signers| {
            let chosen = self.publication.combination.algorithms.0.first().filter(|_| self.signs(level));
            let AlgorithmChoice { algorithm, bits } = *chosen.unwrap_or(&USUAL);
            ZoneDescription { algorithm, bits, ..ZoneDescription::new(origin) }
        };
        let zones = ZoneDescription {
            count: Some(tree.zones as u32),
            names: tree.names as u32,
            signed: self.publication.combination.denial.0.is_some(),
            denial: self.publication.combination.denial.0.unwrap_or(Mechanism::Nsec),
            also_nsec5: self.publication.also_nsec5,
            vrf: self.vrf(),
            server: Some(ZONES_ADDRESS),
            ..zone("z#.example.", Signers::Leaf)
        };
        Description {
            first_address: FIRST_ADDRESS,
            zones: vec![zone(".", Signers::Root), zone("example.", Signers::Tld), zones],
            ..Description::default()
        }
    }

    /// Whether the zones can be served by this server.
    pub(super) fn can_be_served_by(&self, server: ZoneServer) -> bool {
        server == ZoneServer::Nonesuch || self.publication.combination.denial.0 == Some(Mechanism::WhiteLies)
    }

    fn signs(&self, level: Signers) -> bool {
        self.signers == Signers::All || self.signers == level
    }

    /// The VRF of NSEC5: that of the same kind as the algorithm, as in ePrint 2017/099 §7.
    fn vrf(&self) -> VrfAlgorithm {
        match self.publication.combination.algorithms.0.first().map(|choice| choice.algorithm) {
            Some(Algorithm::RSASHA256 | Algorithm::RSASHA512) => VrfAlgorithm::RSA_FDH_SHA256,
            Some(Algorithm::ED25519) => VrfAlgorithm::EDWARDS25519_SHA512_TAI,
            _ => VrfAlgorithm::P256_SHA256_TAI,
        }
    }
}

impl fmt::Display for TreeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.signers {
            Signers::All => write!(f, "{}", self.publication),
            signers => write!(f, "{} ({signers})", self.publication),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn publications_in_all_forms() {
        for text in ["unsigned", "ECDSAP256SHA256 nsec3", "ECDSAP256SHA256 nsec3+nsec5", "ED25519 nsec5"] {
            let read = text.parse::<Publication>().expect("a publication");
            assert_eq!((read.to_string().as_str(), read.also_nsec5), (text, text.ends_with("+nsec5")));
        }
        for wrong in
            ["unsigned+nsec5", "ED25519 nsec+nsec5", "ED25519 nsec3+nsec", "ED25519 nsec3+nsec5+nsec5"]
        {
            assert!(wrong.parse::<Publication>().is_err(), "{wrong}");
        }
    }
}
