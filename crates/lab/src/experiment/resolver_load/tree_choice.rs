//! The trees of an experiment: a root, `example.`, and zones below it.

use super::traffic::QueriedTree;
use crate::experiment::server_load::Combination;
use crate::measure::AlgorithmChoice;
use crate::testbed::ZoneServer;
use crate::tree::{Description, ZoneDescription};
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_dnssec::Mechanism;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::Ipv4Addr;

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

/// How a tree is signed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TreeChoice {
    /// Algorithm and denial mechanism of the zones below the top-level domain, or unsigned.
    pub(super) combination: Combination,
    pub(super) signers: Signers,
}

impl TreeChoice {
    /// The description of the tree.
    pub(super) fn description(&self, tree: QueriedTree) -> Description {
        let zone = |origin: &str, level: Signers| {
            let chosen = self.combination.algorithms.0.first().filter(|_| self.signs(level));
            let AlgorithmChoice { algorithm, bits } = *chosen.unwrap_or(&USUAL);
            ZoneDescription { algorithm, bits, ..ZoneDescription::new(origin) }
        };
        let zones = ZoneDescription {
            count: Some(tree.zones as u32),
            names: tree.names as u32,
            signed: self.combination.denial.0.is_some(),
            denial: self.combination.denial.0.unwrap_or(Mechanism::Nsec),
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
        server == ZoneServer::Nonesuch || self.combination.denial.0 == Some(Mechanism::WhiteLies)
    }

    fn signs(&self, level: Signers) -> bool {
        self.signers == Signers::All || self.signers == level
    }

    /// The VRF of NSEC5: that of the same kind as the algorithm, as in ePrint 2017/099 §7.
    fn vrf(&self) -> VrfAlgorithm {
        match self.combination.algorithms.0.first().map(|choice| choice.algorithm) {
            Some(Algorithm::RSASHA256 | Algorithm::RSASHA512) => VrfAlgorithm::RSA_FDH_SHA256,
            Some(Algorithm::ED25519) => VrfAlgorithm::EDWARDS25519_SHA512_TAI,
            _ => VrfAlgorithm::P256_SHA256_TAI,
        }
    }
}

impl fmt::Display for TreeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.signers {
            Signers::All => write!(f, "{}", self.combination),
            signers => write!(f, "{} ({signers})", self.combination),
        }
    }
}
