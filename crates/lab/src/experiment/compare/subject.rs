//! The zone of a comparison, and queries for it.

use crate::generate::{GenerateError, GenerateOptions, generate, queries, queries_for_zone};
use crate::load::{QueryList, QueryListError};
use crate::measure::examine::strip;
use nonesuch_zone::read::read_text;
use nonesuch_zone::{Contents, ReadError};
use std::path::Path;
use std::sync::Arc;

/// Number of queries in each generated list. A load repeats the list.
const QUERIES: u64 = 50_000;

/// A zone without DNSSEC records, and queries for it.
#[derive(Clone, Debug)]
pub struct Subject {
    pub(super) contents: Contents,
    /// Origin of the zone for the report: a file, or the parameters of the generated zone.
    pub(super) source: String,
    /// Queries for existing names.
    pub(super) existing: Arc<QueryList>,
    /// Queries for non-existent names.
    pub(super) denied: Arc<QueryList>,
}

/// Reasons why a zone cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum SubjectError {
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error("cannot read the generated zone: {0}; this is a bug in nonesuch, please report it")]
    Read(#[from] ReadError),
    #[error(
        "cannot read the queries that were generated for the zone: {0}; this is a bug in nonesuch, please report it"
    )]
    Queries(#[from] QueryListError),
}

impl Subject {
    /// Generates a zone and queries for it, both with the seed in `options`.
    ///
    /// # Errors
    /// Fails if an option is invalid.
    pub fn generated(options: &GenerateOptions<'_>) -> Result<Self, SubjectError> {
        let mut text = Vec::new();
        generate(options, &mut text)?;
        let contents = read_text(&text, Path::new("generated zone"), None)?.contents;
        let list = |denied_percent| -> Result<_, SubjectError> {
            let mut text = Vec::new();
            queries(options, denied_percent, QUERIES, options.seed, &mut text)?;
            Ok(Arc::new(QueryList::parse(Path::new("generated queries"), &text)?))
        };
        let GenerateOptions { like, names, seed, .. } = options;
        let source = format!("generated like a {like}, {names} names, seed {seed}");
        Ok(Self { contents, source, existing: list(0)?, denied: list(100)? })
    }

    /// Uses an existing zone without its DNSSEC records, and generates queries for it with `seed`.
    ///
    /// # Errors
    /// Fails if the zone has no names to query, or no name that can be denied.
    pub fn of_zone(contents: &Contents, source: String, seed: u64) -> Result<Self, SubjectError> {
        let contents = strip(contents);
        let list = |denied_percent| -> Result<_, SubjectError> {
            let mut text = Vec::new();
            queries_for_zone(&contents, denied_percent, QUERIES, seed, &mut text)?;
            Ok(Arc::new(QueryList::parse(Path::new("queries for the zone"), &text)?))
        };
        let (existing, denied) = (list(0)?, list(100)?);
        Ok(Self { contents, source, existing, denied })
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
    fn a_zone_is_counted_and_asked_for() {
        let subject = Subject::of_zone(&signed_zone(), "a file".to_owned(), 1).expect("a subject");
        let facts = ZoneInfo::of(&subject);
        assert_eq!((facts.counts.names, facts.counts.records), (5, 7));
        assert_eq!((facts.counts.delegations, facts.counts.signed_delegations), (2, 1));
        let mut text = Vec::new();
        write_zone(&subject.contents, &mut text).expect("written");
        assert_eq!(facts.octets, text.len() as u64);
        assert_eq!((subject.existing.len() as u64, subject.denied.len() as u64), (QUERIES, QUERIES));
    }

    #[test]
    fn a_generated_zone_has_what_was_asked_for() {
        let options = GenerateOptions { like: ZoneModel::Tld, names: 300, seed: 1, origin: "test." };
        let subject = Subject::generated(&options).expect("a subject");
        assert_eq!(ZoneInfo::of(&subject).counts.delegations, 300);
        assert_eq!(subject.source, "generated like a tld, 300 names, seed 1");
        let wrong = GenerateOptions { origin: "a..b.", ..options };
        assert!(matches!(Subject::generated(&wrong), Err(SubjectError::Read(_))));
    }
}
