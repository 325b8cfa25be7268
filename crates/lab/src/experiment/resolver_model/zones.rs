//! The zones: which of them are signed, and how popular they are.

use super::Parameters;
use crate::tree::{Description, ZoneDescription};
use nonesuch_dnssec::Mechanism;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use std::fmt;
use std::net::Ipv4Addr;

/// The top-level domains, in the order of their shares of signed zones.
const TOP_LEVEL_DOMAINS: [&str; 2] = ["rarely-signed.", "widely-signed."];
/// Address of the server of the root.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// Address of the server of the zones below the top-level domains.
const ZONES_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 4);
/// Records of a zone that mail servers query.
const MAIL_RECORDS: &str = "@ MX 10 host0\n@ TXT \"v=spf1 mx -all\"\n";

/// How many zones are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signed {
    /// The share of today.
    Today,
    /// All.
    All,
}

impl Signed {
    /// Name of the directory of the tree.
    pub(super) const fn file_name(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::All => "all",
        }
    }
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Today => "zones signed as today",
            Self::All => "all zones signed",
        })
    }
}

/// The zones below the top-level domains. Both trees have the same names.
#[derive(Debug)]
pub(super) struct Zones {
    /// Number of zones of each top-level domain.
    each: u32,
    /// Number of signed zones today, of each top-level domain.
    signed: [u32; 2],
    names: u32,
    ttl: u32,
    parent_ttl: u32,
    /// The zones, the most popular one first.
    ranking: Vec<u32>,
}

impl Zones {
    /// The seed determines the popularity of each zone, which does not depend on whether it is signed.
    pub(super) fn new(parameters: &Parameters, seed: u64) -> Self {
        let each = parameters.zones.value();
        let mut ranking: Vec<u32> = (0..2 * each).collect();
        ranking.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
        Self {
            each,
            signed: parameters
                .signed_shares
                .map(|share| (f64::from(each) * share.clamp(0.0, 1.0)).round() as u32),
            names: parameters.names.value(),
            ttl: parameters.ttl.value(),
            parent_ttl: parameters.parent_ttl.value(),
            ranking,
        }
    }

    /// Number of zones.
    pub(super) fn count(&self) -> u64 {
        self.ranking.len() as u64
    }

    /// Number of zones that are signed today.
    pub(super) fn signed_count(&self) -> u64 {
        self.signed.iter().map(|count| u64::from(*count)).sum()
    }

    /// Number of names with an address of each zone.
    pub(super) const fn names(&self) -> u64 {
        self.names as u64
    }

    /// The apex of the zone with this rank, from 0.
    pub(super) fn origin(&self, rank: u64) -> String {
        let zone = self.ranking[(rank % self.count()) as usize];
        let (domain, number) = (usize::from(zone >= self.each), zone % self.each);
        let signed = self.signed[domain];
        let label = if number < signed { format!("s{number}") } else { format!("u{}", number - signed) };
        format!("{label}.{}", TOP_LEVEL_DOMAINS[domain])
    }

    /// The description of the tree.
    pub(super) fn description(&self, signed: Signed) -> Description {
        let parent = |origin: &str, denial| ZoneDescription {
            denial,
            ttl: self.parent_ttl,
            samples: Some(false),
            ..ZoneDescription::new(origin)
        };
        let mut zones = vec![parent(".", Mechanism::Nsec)];
        for (domain, signed_today) in TOP_LEVEL_DOMAINS.into_iter().zip(self.signed) {
            zones.push(parent(domain, Mechanism::Nsec3OptOut));
            for (letter, count, is_signed) in
                [('s', signed_today, true), ('u', self.each - signed_today, signed == Signed::All)]
            {
                if count > 0 {
                    zones.push(self.leaves(&format!("{letter}#.{domain}"), count, is_signed));
                }
            }
        }
        Description { first_address: FIRST_ADDRESS, zones, ..Description::default() }
    }

    fn leaves(&self, origin: &str, count: u32, signed: bool) -> ZoneDescription {
        ZoneDescription {
            count: Some(count),
            signed,
            denial: Mechanism::Nsec3,
            ttl: self.ttl,
            names: self.names,
            samples: Some(false),
            records: MAIL_RECORDS.to_owned(),
            server: Some(ZONES_ADDRESS),
            ..ZoneDescription::new(origin)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::parameters::Count;
    use crate::tree::Tree;
    use std::collections::BTreeSet;

    #[test]
    fn both_trees_have_every_ranked_zone_and_the_share_of_signed_ones() {
        let parameters =
            Parameters { zones: Count::of(10), signed_shares: [0.2, 0.6], ..Parameters::default() };
        let zones = Zones::new(&parameters, 1);
        let ranked: BTreeSet<String> = (0..zones.count()).map(|rank| zones.origin(rank)).collect();
        assert_eq!((ranked.len(), zones.signed_count()), (20, 8));
        for (signed, expected) in [(Signed::Today, 8), (Signed::All, 20)] {
            let tree = Tree::build(&zones.description(signed), 1, 1_767_225_600).expect("a tree");
            let leaves = tree.zones.iter().filter(|zone| zone.origin.view().label_count() == 2);
            let origins: BTreeSet<String> = leaves.clone().map(|zone| zone.origin.to_string()).collect();
            assert_eq!(origins, ranked);
            let signed = leaves.filter(|zone| {
                let apex = zone.contents.find(zone.origin.view()).expect("an apex");
                apex.has(nonesuch_proto::Rtype::DNSKEY)
            });
            assert_eq!(signed.count(), expected);
        }
        assert_ne!(zones.origin(0), Zones::new(&parameters, 2).origin(0));
    }
}
