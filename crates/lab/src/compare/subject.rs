//! What is compared on: a zone and the queries that fit it.

use crate::generate::{GenerateError, GenerateOptions, QueryKind, generate, queries, queries_from_owners};
use crate::load::{QueryList, QueryListError};
use nonesuch_dnssec::facts::is_of_signer;
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::{Contents, ReadError, Run, standings, write};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Queries in each list that is made; load asks them again from the first when all are sent.
pub const QUERIES: u64 = 50_000;

/// A zone without DNSSEC records, and queries for it.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The zone.
    pub contents: Contents,
    /// Where it comes from, for the reader of the report: a file, or how it was generated.
    pub source: String,
    /// Queries for names that exist.
    pub existing: Arc<QueryList>,
    /// Queries for names that do not exist.
    pub denied: Arc<QueryList>,
}

/// Why there is nothing to compare on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubjectError {
    /// The zone or its queries cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The origin is no name.
    #[error("origin \"{origin}\" is no domain name: {fault}")]
    Origin {
        /// The origin given.
        origin: String,
        /// What is wrong.
        fault: nonesuch_proto::NameError,
    },
    /// The generated zone cannot be read: an error of the program.
    #[error("the generated zone cannot be read, which is an error of the program, please report it: {0}")]
    Read(#[from] ReadError),
    /// The queries that were made cannot be read: an error of the program.
    #[error(
        "the queries made for the zone cannot be read, which is an error of the program, please report it: {0}"
    )]
    Queries(#[from] QueryListError),
}

impl Subject {
    /// A generated zone and queries for it, both by the seed of `options`.
    ///
    /// # Errors
    /// Where `options` fit no zone.
    pub fn generated(options: &GenerateOptions<'_>) -> Result<Self, SubjectError> {
        let origin = Name::from_text(options.origin.as_bytes(), None)
            .map_err(|fault| SubjectError::Origin { origin: options.origin.to_owned(), fault })?;
        let mut text = Vec::new();
        generate(options, &mut text)?;
        let contents =
            nonesuch_zone::read::read_text(&text, Path::new("generated zone"), Some(&origin))?.contents;
        let list = |kind| -> Result<Arc<QueryList>, SubjectError> {
            let mut text = Vec::new();
            queries(options, kind, QUERIES, options.seed, &mut text)?;
            Ok(Arc::new(QueryList::parse(Path::new("generated queries"), &text)?))
        };
        let GenerateOptions { like, names, seed, .. } = options;
        Ok(Self {
            contents,
            source: format!("generated like a {like}, {names} names, seed {seed}"),
            existing: list(QueryKind::Existing)?,
            denied: list(QueryKind::Denied)?,
        })
    }

    /// A zone of the user's, without its DNSSEC records, and queries for it by `seed`.
    ///
    /// # Errors
    /// Where it has no name to ask for, or none can be denied.
    pub fn of_zone(contents: &Contents, source: String, seed: u64) -> Result<Self, SubjectError> {
        let contents = strip(contents);
        let owners = owners(&contents);
        let origin = contents.apex().to_string();
        let list = |kind| -> Result<Arc<QueryList>, SubjectError> {
            let owners = owners.iter().map(|(name, types)| (name.as_str(), types.as_slice()));
            let mut text = Vec::new();
            queries_from_owners(&origin, owners, kind, QUERIES, seed, &mut text)?;
            Ok(Arc::new(QueryList::parse(Path::new("queries for the zone"), &text)?))
        };
        let (existing, denied) = (list(QueryKind::Existing)?, list(QueryKind::Denied)?);
        Ok(Self { contents, source, existing, denied })
    }
}

/// Authoritative names and delegations with their types.
fn owners(contents: &Contents) -> Vec<(String, Vec<u16>)> {
    contents
        .nodes()
        .zip(standings(contents))
        .filter(|(_, standing)| standing.is_in_zone())
        .map(|(node, _)| (node.name().to_string(), node.rrsets().map(|rrset| rrset.rtype().0).collect()))
        .collect()
}

/// The zone as it was before it was signed: without what signing makes, the keys and what is published of them, and the
/// zone's digest, which signing makes wrong (RFC 8976 §3).
#[must_use]
pub fn strip(contents: &Contents) -> Contents {
    let mut run = Run::default();
    let apex = contents.apex().view();
    for node in contents.nodes() {
        let mut begun = false;
        for rrset in node.rrsets().filter(|rrset| !is_of_signer(node, *rrset, apex, true)) {
            if !std::mem::replace(&mut begun, true) {
                run.begin_node(node.name());
            }
            run.push_rrset(rrset);
        }
    }
    Contents::from_runs(contents.apex(), vec![run])
}

/// What the zone is like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneFacts {
    /// The apex, in presentation format.
    pub origin: String,
    /// Where the zone comes from.
    pub source: String,
    /// Records.
    pub records: u64,
    /// Names that own records, glue among them.
    pub names: u64,
    /// Zone cuts.
    pub delegations: u64,
    /// Those with DS records.
    pub signed_delegations: u64,
    /// Octets of the zone file.
    pub octets: u64,
}

impl ZoneFacts {
    /// Counts what `subject` holds.
    #[must_use]
    pub fn of(subject: &Subject) -> Self {
        let contents = &subject.contents;
        let mut facts = Self {
            origin: contents.apex().to_string(),
            source: subject.source.clone(),
            records: contents.record_count(),
            names: contents.node_count() as u64,
            octets: write::text_octets(contents),
            ..Self::default()
        };
        for (node, standing) in contents.nodes().zip(standings(contents)) {
            if standing == nonesuch_zone::Standing::Delegation {
                facts.delegations += 1;
                facts.signed_delegations += u64::from(node.has(Rtype::DS));
            }
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Like;

    fn contents(text: &str) -> Contents {
        let reading = nonesuch_zone::read::read_text(
            text.as_bytes(),
            Path::new("test"),
            Some(&"example".parse().expect("a name")),
        );
        reading.expect("a zone").contents
    }

    const SIGNED: &str = "\
@ 3600 SOA ns admin 1 2 3 4 5
@ 3600 NS ns
@ 3600 NSEC3PARAM 1 0 0 -
@ 3600 DNSKEY 257 3 13 AAAA
@ 3600 CDNSKEY 257 3 13 AAAA
@ 3600 RRSIG SOA 13 1 3600 20300101000000 20200101000000 1 example. AAAA
ns 3600 A 192.0.2.1
ns 3600 RRSIG A 13 2 3600 20300101000000 20200101000000 1 example. AAAA
ns 3600 NSEC child A RRSIG NSEC
child 3600 NS ns.child
child 3600 DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000
other 3600 NS ns.child
ns.child 3600 A 192.0.2.2
2vptu5timamqttgl4luu9kg21e0aor3s 3600 NSEC3 1 0 0 - 2VPTU5TIMAMQTTGL4LUU9KG21E0AOR3S A
";

    #[test]
    fn stripping_leaves_what_was_signed() {
        let stripped = strip(&contents(SIGNED));
        let names: Vec<String> = stripped.nodes().map(|node| node.name().to_string()).collect();
        assert_eq!(
            names,
            ["example.", "child.example.", "ns.child.example.", "ns.example.", "other.example."]
        );
        let types: Vec<u16> = stripped
            .nodes()
            .flat_map(|node| node.rrsets().map(|rrset| rrset.rtype().0).collect::<Vec<_>>())
            .collect();
        assert_eq!(types, [2, 6, 2, 43, 1, 1, 2]);
    }

    #[test]
    fn a_zone_is_counted_and_asked_for() {
        let subject = Subject::of_zone(&contents(SIGNED), "a file".to_owned(), 1).expect("a subject");
        let facts = ZoneFacts::of(&subject);
        assert_eq!((facts.names, facts.records), (5, 7));
        assert_eq!((facts.delegations, facts.signed_delegations), (2, 1));
        let mut text = Vec::new();
        write::write_zone(&subject.contents, &mut text).expect("written");
        assert_eq!(facts.octets, text.len() as u64);
        assert_eq!((subject.existing.len() as u64, subject.denied.len() as u64), (QUERIES, QUERIES));
    }

    #[test]
    fn a_generated_zone_has_what_was_asked_for() {
        let options = GenerateOptions { like: Like::Tld, names: 300, seed: 1, origin: "test." };
        let subject = Subject::generated(&options).expect("a subject");
        assert_eq!(ZoneFacts::of(&subject).delegations, 300);
        assert_eq!(subject.source, "generated like a tld, 300 names, seed 1");
        let wrong = GenerateOptions { origin: "a..b.", ..options };
        assert!(matches!(Subject::generated(&wrong), Err(SubjectError::Origin { .. })));
    }
}
