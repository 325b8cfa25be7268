//! The zone of a comparison, and queries for it.

use super::ROUNDS;
use crate::experiment::parameters::QueriedNames;
use crate::generate::{GenerateError, GenerateOptions, QueriedZone, generate, queries};
use crate::load::{QueryList, QueryListError};
use crate::measure::examine::strip_dnssec;
use nonesuch_zone::read::read_text;
use nonesuch_zone::{Contents, ReadError};
use std::path::Path;
use std::sync::Arc;

/// Number of queries in each generated list. A load repeats the list.
const QUERIES: u64 = 50_000;

/// A zone without DNSSEC records, and queries for it.
#[derive(Clone, Debug)]
pub struct ComparedZone {
    pub(super) contents: Contents,
    /// Origin of the zone for the report: a file, or the parameters of the generated zone.
    pub(super) source: String,
    /// Queries for existing names: a list for the warm-up and for each round.
    existing: Vec<Arc<QueryList>>,
    /// Queries for non-existent names, likewise. The names of the lists differ, so that a server
    /// that signs online has no signatures of an earlier round.
    denied: Vec<Arc<QueryList>>,
    /// The query for the keys of the zone.
    dnskey: Arc<QueryList>,
}

/// Reasons why a zone cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum ComparedZoneError {
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error("cannot read the generated zone: {0}; this is a bug in nonesuch, please report it")]
    Read(#[from] ReadError),
    #[error(
        "cannot read the queries that were generated for the zone: {0}; this is a bug in nonesuch, please report it"
    )]
    Queries(#[from] QueryListError),
}

impl ComparedZone {
    /// Generates a zone and queries for it, both with the seed in `options`.
    ///
    /// # Errors
    /// Fails if an option is invalid.
    pub fn generate(options: &GenerateOptions<'_>) -> Result<Self, ComparedZoneError> {
        let mut text = Vec::new();
        generate(options, &mut text)?;
        let contents = read_text(&text, Path::new("generated zone"), None)?.contents;
        let GenerateOptions { like, names, seed, .. } = options;
        let source = format!("generated like a {like}, {names} names, seed {seed}");
        Self::with_queries(contents, source, *seed, |denied_percent, seed, text| {
            queries(options, denied_percent, QUERIES, seed, text).map(drop)
        })
    }

    /// Uses an existing zone without its DNSSEC records, and generates queries for it with `seed`.
    ///
    /// # Errors
    /// Fails if the zone has no names to query, or no name that can be denied.
    pub fn of_contents(contents: &Contents, source: String, seed: u64) -> Result<Self, ComparedZoneError> {
        let contents = strip_dnssec(contents);
        let queried = QueriedZone::of(&contents);
        Self::with_queries(contents, source, seed, |denied_percent, seed, text| {
            queried.write_queries(denied_percent, QUERIES, seed, text).map(drop)
        })
    }

    /// `write` writes queries of which a percentage asks for non-existent names, with a seed.
    fn with_queries(
        contents: Contents,
        source: String,
        seed: u64,
        write: impl Fn(u8, u64, &mut Vec<u8>) -> Result<(), GenerateError>,
    ) -> Result<Self, ComparedZoneError> {
        let list = |text: &[u8]| QueryList::parse(Path::new("generated queries"), text).map(Arc::new);
        let lists = |denied_percent| -> Result<Vec<_>, ComparedZoneError> {
            let seeds = (0..=u64::from(ROUNDS)).map(|round| seed.wrapping_add(round));
            seeds
                .map(|seed| {
                    let mut text = Vec::new();
                    write(denied_percent, seed, &mut text)?;
                    Ok(list(&text)?)
                })
                .collect()
        };
        let dnskey = list(format!("{} DNSKEY", contents.apex()).as_bytes())?;
        Ok(Self { existing: lists(0)?, denied: lists(100)?, dnskey, contents, source })
    }

    /// Returns the query for the DNSKEY RRset.
    pub(super) fn dnskey_query(&self) -> Arc<QueryList> {
        Arc::clone(&self.dnskey)
    }

    /// Returns the queries of a round; round 0 is the warm-up.
    pub(super) fn queries(&self, names: QueriedNames, round: u32) -> Arc<QueryList> {
        let lists = if names == QueriedNames::Existing { &self.existing } else { &self.denied };
        Arc::clone(&lists[round as usize % lists.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::compare::figures::ZoneInfo;
    use crate::generate::ZoneModel;
    use crate::measure::examine::tests::signed_zone;
    use nonesuch_zone::write::write_zone;

    #[test]
    fn a_zone_is_counted_and_queried() {
        let zone = ComparedZone::of_contents(&signed_zone(), "a file".to_owned(), 1).expect("a zone");
        let info = ZoneInfo::of(&zone);
        assert_eq!((info.counts.names, info.counts.records), (5, 7));
        assert_eq!((info.counts.delegations, info.counts.signed_delegations), (2, 1));
        let mut text = Vec::new();
        write_zone(&zone.contents, &mut text).expect("written");
        assert_eq!(info.octets, text.len() as u64);
        for names in [QueriedNames::Existing, QueriedNames::Denied] {
            assert_eq!(zone.queries(names, 0).len() as u64, QUERIES);
        }
    }

    #[test]
    fn each_round_denies_other_names() {
        let options = GenerateOptions { like: ZoneModel::Tld, names: 300, seed: 1, origin: "test." };
        let zone = ComparedZone::generate(&options).expect("a zone");
        let question = |round| zone.queries(QueriedNames::Denied, round).question(0).map(<[u8]>::to_vec);
        let first = question(0);
        assert!(first.is_some() && (1..=ROUNDS).all(|round| question(round) != first));
    }

    #[test]
    fn a_generated_zone_has_the_requested_names() {
        let options = GenerateOptions { like: ZoneModel::Tld, names: 300, seed: 1, origin: "test." };
        let zone = ComparedZone::generate(&options).expect("a zone");
        assert_eq!(ZoneInfo::of(&zone).counts.delegations, 300);
        assert_eq!(zone.source, "generated like a tld, 300 names, seed 1");
        let wrong = GenerateOptions { origin: "a..b.", ..options };
        assert!(matches!(ComparedZone::generate(&wrong), Err(ComparedZoneError::Read(_))));
    }
}
