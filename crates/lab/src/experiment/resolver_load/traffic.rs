//! What clients ask: lists of queries for the zones of a tree.

use crate::experiment::parameters::ParameterError;
use crate::load::{QueryList, QueryListError};
use crate::measure::subject::serde_as_text;
use crate::zipf::Zipf;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

/// Number of names that `hits` repeats (document of JPRS, performance case 4: 100 names).
const HOT_NAMES: u64 = 100;
/// Exponent of the Zipf distribution of names.
const ZIPF_EXPONENT: f64 = 1.0;
/// Types that no generated name has.
const MISSING_TYPES: [&str; 8] = ["AAAA", "MX", "TXT", "SRV", "CAA", "NAPTR", "SSHFP", "TLSA"];
/// Number of names that do not exist and have names below them, in `below`.
const DENIED_PARENTS: u64 = 100;

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Traffic {
    /// `existing`: each query is for another name that exists.
    Existing,
    /// `wildcard`: each query is for another name that a wildcard matches.
    Wildcard,
    /// `hits:P`: P % of the queries are for names in the cache, the others for names that exist and
    /// were not queried before.
    Hits(u8),
    /// `denied`: each query is for another name that does not exist, and each has another denial
    /// record.
    Denied,
    /// `denied-random`: names that do not exist, at random positions between existing names, so
    /// that a denial record denies several of them.
    DeniedRandom,
    /// `mixed:P`: P % of the queries are for names that do not exist, each another one. The others
    /// are for names that exist, with a Zipf distribution.
    Mixed(u8),
    /// `no-data`: types that a name does not have, several for each name.
    NoData,
    /// `below`: names below names that do not exist (RFC 8020).
    Below,
    /// `dnskey`: the keys of each zone, of which the resolver knows nothing.
    Dnskey,
    /// `replayed`: the queries of a recording, for names that exist ([`Recorded`](super::replayed::Recorded)).
    Replayed,
}

impl FromStr for Traffic {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let unknown = || ParameterError::Traffic(text.to_owned());
        if let Some((kind, percent)) = text.split_once(':') {
            let percent = percent.parse().ok().filter(|percent| *percent <= 100).ok_or_else(unknown)?;
            return match kind {
                "hits" => Ok(Self::Hits(percent)),
                "mixed" => Ok(Self::Mixed(percent)),
                _ => Err(unknown()),
            };
        }
        Ok(match text {
            "existing" => Self::Existing,
            "wildcard" => Self::Wildcard,
            "denied" => Self::Denied,
            "denied-random" => Self::DeniedRandom,
            "no-data" => Self::NoData,
            "below" => Self::Below,
            "dnskey" => Self::Dnskey,
            "replayed" => Self::Replayed,
            _ => return Err(unknown()),
        })
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Existing => f.pad("existing"),
            Self::Wildcard => f.pad("wildcard"),
            Self::Hits(percent) => f.pad(&format!("hits:{percent}")),
            Self::Denied => f.pad("denied"),
            Self::DeniedRandom => f.pad("denied-random"),
            Self::Mixed(percent) => f.pad(&format!("mixed:{percent}")),
            Self::NoData => f.pad("no-data"),
            Self::Below => f.pad("below"),
            Self::Dnskey => f.pad("dnskey"),
            Self::Replayed => f.pad("replayed"),
        }
    }
}

serde_as_text!(ParameterError: Traffic);

/// The zones of a tree that are queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueriedTree {
    /// Number of zones.
    pub(super) zones: u64,
    /// Number of names of each zone.
    pub(super) names: u64,
}

impl QueriedTree {
    /// Number of names with an address.
    pub(super) const fn total(self) -> u64 {
        self.zones * self.names
    }

    /// The name `number` that exists, without its first label: `host` and a number. Consecutive
    /// numbers are in different zones.
    pub(super) fn place(self, number: u64) -> (u64, u64) {
        let number = number % self.total().max(1);
        (number / self.zones, number % self.zones)
    }
}

impl Traffic {
    /// Whether a load repeats its list of queries until its time is over.
    pub(super) const fn repeats(self) -> bool {
        matches!(self, Self::Hits(100))
    }

    /// Number of different names that exist and that `count` queries need; 0 if it does not depend
    /// on the number of names.
    pub(super) fn needed_names(self, count: u64) -> u64 {
        match self {
            Self::Existing | Self::Denied => count,
            Self::Hits(percent) => HOT_NAMES + count * (100 - u64::from(percent)) / 100,
            Self::NoData => count.div_ceil(MISSING_TYPES.len() as u64),
            Self::Mixed(_)
            | Self::Wildcard
            | Self::DeniedRandom
            | Self::Below
            | Self::Dnskey
            | Self::Replayed => 0,
        }
    }

    /// Queries that fill the cache before the load: each zone, so that the resolver knows its
    /// servers and keys, and the names that are in the cache. For keys of zones: only their parent.
    pub(super) fn warming(self, tree: QueriedTree) -> Result<Arc<QueryList>, QueryListError> {
        let mut text = String::new();
        if self == Self::Dnskey {
            text.push_str("example. SOA\n");
        } else {
            for zone in 0..tree.zones {
                // Writing to a `String` cannot fail.
                let _ = writeln!(text, "z{zone}.example. SOA");
            }
        }
        if matches!(self, Self::Hits(_)) {
            (0..HOT_NAMES).for_each(|number| push_existing(tree, number, &mut text));
        }
        Ok(Arc::new(QueryList::parse(Path::new("generated queries"), text.as_bytes())?))
    }

    /// The queries `first` to `first + count` of this traffic, which is not [`Traffic::Replayed`]. They depend only
    /// on the arguments.
    pub(super) fn queries(
        self,
        tree: QueriedTree,
        (first, count): (u64, u64),
        seed: u64,
    ) -> Result<Arc<QueryList>, QueryListError> {
        let mut text = String::new();
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ first.rotate_left(32));
        let zipf = Zipf::new(if matches!(self, Self::Mixed(_)) { tree.total() } else { 1 }, ZIPF_EXPONENT);
        // All names with a type, before the same names with the next type: a resolver knows the first
        // denial when it gets the second query for a name.
        let each_type = count.div_ceil(MISSING_TYPES.len() as u64).max(1);
        let mut fresh = HOT_NAMES + self.needed_names(first).saturating_sub(HOT_NAMES);
        for number in first..first + count {
            let (host, zone) = tree.place(number);
            // Writing to a `String` cannot fail.
            let _ = match self {
                Self::Existing | Self::Replayed => writeln!(text, "host{host}.z{zone}.example. A"),
                Self::Wildcard => writeln!(text, "n{number}.wild.z{zone}.example. A"),
                Self::Denied => writeln!(text, "host{host}-no.z{zone}.example. A"),
                Self::Hits(percent) => {
                    if random.random_range(0..100) < percent {
                        push_existing(tree, random.random_range(0..HOT_NAMES), &mut text);
                    } else {
                        push_existing(tree, fresh, &mut text);
                        fresh += 1;
                    }
                    Ok(())
                }
                Self::DeniedRandom => {
                    let (host, zone) = tree.place(random.random_range(0..tree.total().max(1)));
                    writeln!(text, "host{host}-{:06x}.z{zone}.example. A", random.random_range(0..0x100_0000))
                }
                Self::Mixed(percent) if random.random_range(0..100) < percent => {
                    writeln!(text, "host{host}-n{number}.z{zone}.example. A")
                }
                Self::Mixed(_) => {
                    push_existing(tree, zipf.draw(&mut random), &mut text);
                    Ok(())
                }
                Self::NoData => {
                    let (host, zone) =
                        tree.place(first / MISSING_TYPES.len() as u64 + (number - first) % each_type);
                    let missing = MISSING_TYPES[((number - first) / each_type) as usize];
                    writeln!(text, "host{host}.z{zone}.example. {missing}")
                }
                Self::Dnskey => writeln!(text, "z{}.example. DNSKEY", number % tree.zones),
                Self::Below => {
                    let (host, zone) = tree.place(number % DENIED_PARENTS);
                    writeln!(text, "n{number}.host{host}-no.z{zone}.example. A")
                }
            };
        }
        Ok(Arc::new(QueryList::parse(Path::new("generated queries"), text.as_bytes())?))
    }
}

/// Adds the query for the name `number` that exists.
fn push_existing(tree: QueriedTree, number: u64, text: &mut String) {
    let (host, zone) = tree.place(number);
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "host{host}.z{zone}.example. A");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const TREE: QueriedTree = QueriedTree { zones: 5, names: 100 };

    fn lines(traffic: Traffic, range: (u64, u64)) -> Vec<String> {
        let list = traffic.queries(TREE, range, 1).expect("queries");
        (0..list.len()).map(|index| format!("{:?}", list.question(index))).collect()
    }

    fn different(lines: &[String]) -> usize {
        lines.iter().collect::<BTreeSet<_>>().len()
    }

    #[test]
    fn names_in_all_forms() {
        for text in [
            "existing",
            "wildcard",
            "hits:80",
            "denied",
            "denied-random",
            "mixed:50",
            "no-data",
            "below",
            "dnskey",
            "replayed",
        ] {
            assert_eq!(text.parse::<Traffic>().map(|traffic| traffic.to_string()), Ok(text.to_owned()));
        }
        for wrong in ["", "hits", "hits:101", "hits:x", "mixed:", "denied:5"] {
            assert!(wrong.parse::<Traffic>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_query_is_new_except_hits_and_zipf() {
        for traffic in
            [Traffic::Existing, Traffic::Wildcard, Traffic::Denied, Traffic::NoData, Traffic::Below]
        {
            let (first, next) = (lines(traffic, (0, 200)), lines(traffic, (200, 200)));
            assert_eq!(different(&[first, next].concat()), 400, "{traffic}");
        }
        let all_hits = lines(Traffic::Hits(100), (0, 2000));
        assert_eq!(different(&all_hits), HOT_NAMES as usize);
        let warmed = Traffic::Hits(100).warming(TREE).expect("queries");
        assert_eq!(warmed.len() as u64, TREE.zones + HOT_NAMES);
    }

    #[test]
    fn new_names_of_hits_are_not_in_the_cache() {
        let hot: BTreeSet<String> = lines(Traffic::Hits(100), (0, 2000)).into_iter().collect();
        let half = lines(Traffic::Hits(50), (0, 400));
        let fresh: Vec<String> = half.into_iter().filter(|line| !hot.contains(line)).collect();
        assert!((150..250).contains(&fresh.len()), "{}", fresh.len());
        assert_eq!(different(&fresh), fresh.len());
    }
}
