//! Operations on complete zones in memory: counting, removing signatures, changing records,
//! computing the size of a transfer.
//!
//! The experiment runs these operations in a separate process, `nonesuch lab zone`, to keep its own
//! memory small: Linux includes the memory of the parent process in the maximum resident memory of
//! a job.

use super::change::{Changes, change};
use super::transfer::{Transfer, transfer};
use nonesuch_dnssec::inspect::belongs_to_signer;
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::read::read_file;
use nonesuch_zone::write::write_zone;
use nonesuch_zone::{Contents, NameStatus, NodesBuilder, ReadError, name_statuses};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Operations to perform on a zone.
#[derive(Clone, Debug, Default)]
pub struct ExamineOptions {
    /// Path of the zone file.
    pub file: PathBuf,
    /// The apex, if the file does not contain it.
    pub origin: Option<Name>,
    /// Output file for the zone without the records that signing added.
    pub unsigned: Option<PathBuf>,
    /// Output file for a changed version of this unsigned zone.
    pub changed: Option<PathBuf>,
    /// Share of the records that change.
    pub share: f64,
    /// Seed of the random changes.
    pub seed: u64,
    /// Whether to compute the size of a transfer of the zone.
    pub transfer: bool,
}

/// Numbers of records, names and delegations of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneCounts {
    /// The apex.
    pub origin: String,
    pub records: u64,
    /// Names with records, including glue.
    pub names: u64,
    /// Number of delegations.
    pub delegations: u64,
    /// Number of delegations with DS records.
    pub signed_delegations: u64,
}

impl ZoneCounts {
    pub(crate) fn of(contents: &Contents) -> Self {
        let mut counts = Self {
            origin: contents.apex().to_string(),
            records: contents.record_count(),
            names: contents.node_count() as u64,
            ..Self::default()
        };
        for (node, standing) in contents.nodes().zip(name_statuses(contents)) {
            if standing == NameStatus::Delegation {
                counts.delegations += 1;
                counts.signed_delegations += u64::from(node.has(Rtype::DS));
            }
        }
        counts
    }
}

/// Result of [`examine`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExamineResult {
    /// Counts of the zone without the records that signing added.
    #[serde(flatten)]
    pub counts: ZoneCounts,
    /// Counts of the changes in the changed version, if one was written.
    pub changes: Option<Changes>,
    /// Size of a transfer of the zone as read from the file, if computed.
    pub transfer: Option<Transfer>,
}

/// Reasons why [`examine`] fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum ExamineError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Reads a zone and performs the operations in `options`.
///
/// # Errors
/// Fails if the zone cannot be read or a file cannot be written.
pub fn examine(options: &ExamineOptions) -> Result<ExamineResult, ExamineError> {
    let contents = read_file(&options.file, options.origin.as_ref())?.contents;
    let transfer = options.transfer.then(|| transfer(&contents));
    let contents = strip_dnssec(&contents);
    let write = |contents: &Contents, path: &PathBuf| {
        write_file(contents, path).map_err(|source| ExamineError::Write { path: path.clone(), source })
    };
    if let Some(path) = &options.unsigned {
        write(&contents, path)?;
    }
    let mut changes = None;
    if let Some(path) = &options.changed {
        let (changed, made) = change(&contents, options.share, options.seed);
        changes = Some(made);
        write(&changed, path)?;
    }
    Ok(ExamineResult { counts: ZoneCounts::of(&contents), changes, transfer })
}

/// Removes the records that signing adds, the keys and the records published for them, and the
/// ZONEMD record, because signing invalidates the digest (RFC 8976 §3).
pub(crate) fn strip_dnssec(contents: &Contents) -> Contents {
    let mut run = NodesBuilder::default();
    let apex = contents.apex().view();
    for node in contents.nodes() {
        let mut begun = false;
        for rrset in node.rrsets().filter(|rrset| !belongs_to_signer(node, *rrset, apex, true)) {
            if !std::mem::replace(&mut begun, true) {
                run.begin_node(node.name());
            }
            run.push_rrset(rrset);
        }
    }
    Contents::from_parts(contents.apex(), vec![run])
}

/// Writes a zone file, without fsync: the file is deleted after the run.
pub(crate) fn write_file(contents: &Contents, path: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    write_zone(contents, &mut out)?;
    out.flush()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use nonesuch_zone::read::read_text;

    const ZONE: &str = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\n@ 60 DNSKEY 257 3 13 AAAA\nns 60 A 192.0.2.1\na 60 NS ns\n\
        a 60 DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\nb 60 NS ns.b\nns.b 60 A 192.0.2.2\n\
        ns 60 NSEC a A RRSIG NSEC\n";

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

    pub(crate) fn signed_zone() -> Contents {
        let origin = "example".parse().ok();
        read_text(SIGNED.as_bytes(), Path::new("test"), origin.as_ref()).expect("a zone").contents
    }

    #[test]
    fn stripping_leaves_what_was_signed() {
        let stripped = strip_dnssec(&signed_zone());
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
    fn zones_are_counted_without_what_signing_made() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("zone"), ZONE).expect("written");
        let origin: Option<Name> = "example".parse().ok();
        let options = ExamineOptions {
            file: path("zone"),
            origin: origin.clone(),
            unsigned: Some(path("unsigned")),
            changed: Some(path("changed")),
            share: 0.1,
            transfer: true,
            ..ExamineOptions::default()
        };
        let examined = examine(&options).expect("examined");
        let counts = &examined.counts;
        assert_eq!((counts.records, counts.names), (7, 5));
        assert_eq!((counts.delegations, counts.signed_delegations), (2, 1));
        assert_eq!(examined.transfer.map(|transfer| transfer.records), Some(10));
        let again = ExamineOptions { file: path("unsigned"), origin, ..ExamineOptions::default() };
        let again = examine(&again).expect("examined");
        assert_eq!((again.counts.records, again.transfer), (7, None));
        assert!(examined.changes.is_some_and(|changes| changes.removed_records == 2));
        let lost = ExamineOptions { unsigned: Some(path("none/x")), ..options };
        let error = examine(&lost).expect_err("no such directory");
        assert!(matches!(&error, ExamineError::Write { path, .. } if path.ends_with("none/x")), "{error}");
    }
}
