//! What is done with whole zones in memory: counting, taking signatures out, changing, packing for a transfer.
//!
//! The runner leaves it to a process of its own, `nonesuch lab zone`: Linux counts the memory of the process that starts
//! a job as the job's, so the runner stays small.

use super::change::{Changes, change};
use super::transfer::{Transfer, transfer};
use crate::compare::strip;
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::read::read_file;
use nonesuch_zone::write::write_zone;
use nonesuch_zone::{Contents, ReadError, Standing, standings};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// What is to be done with a zone.
#[derive(Clone, Debug, Default)]
pub struct ExamineOptions {
    /// The zone file.
    pub file: PathBuf,
    /// The apex, where the file does not tell.
    pub origin: Option<Name>,
    /// Where the zone goes without what signing made in it.
    pub unsigned: Option<PathBuf>,
    /// Where a changed form of that goes.
    pub changed: Option<PathBuf>,
    /// The share of the records that change.
    pub share: f64,
    /// What the changes are drawn from.
    pub seed: u64,
    /// Whether a transfer of the zone is computed.
    pub transfer: bool,
}

/// What was found in a zone. Counts are of the zone without what signing made in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Examined {
    /// The apex.
    pub origin: String,
    /// Records.
    pub records: u64,
    /// Names that own records.
    pub names: u64,
    /// Zone cuts.
    pub delegations: u64,
    /// Those with DS records.
    pub signed_delegations: u64,
    /// What differs in the changed form.
    pub changes: Option<Changes>,
    /// What a transfer of the zone as it stands in the file comes to.
    pub transfer: Option<Transfer>,
}

/// Why a zone was not examined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExamineError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Does what `options` ask for.
///
/// # Errors
/// Where the zone cannot be read, or a file cannot be written.
pub fn examine(options: &ExamineOptions) -> Result<Examined, ExamineError> {
    let contents = read_file(&options.file, options.origin.as_ref())?.contents;
    let transfer = options.transfer.then(|| transfer(&contents));
    let contents = strip(&contents);
    let mut examined = count(&contents);
    examined.transfer = transfer;
    if let Some(path) = &options.unsigned {
        write(&contents, path)?;
    }
    if let Some(path) = &options.changed {
        let (changed, changes) = change(&contents, options.share, options.seed);
        examined.changes = Some(changes);
        write(&changed, path)?;
    }
    Ok(examined)
}

fn count(contents: &Contents) -> Examined {
    let mut examined = Examined {
        origin: contents.apex().to_string(),
        records: contents.record_count(),
        names: contents.node_count() as u64,
        ..Examined::default()
    };
    for (node, standing) in contents.nodes().zip(standings(contents)) {
        if standing == Standing::Delegation {
            examined.delegations += 1;
            examined.signed_delegations += u64::from(node.has(Rtype::DS));
        }
    }
    examined
}

fn write(contents: &Contents, path: &Path) -> Result<(), ExamineError> {
    let write = || -> io::Result<()> {
        let mut out = BufWriter::new(File::create(path)?);
        write_zone(contents, &mut out)?;
        out.flush()
    };
    write().map_err(|source| ExamineError::Write { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONE: &str = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\n@ 60 DNSKEY 257 3 13 AAAA\nns 60 A 192.0.2.1\na 60 NS ns\n\
        a 60 DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\nb 60 NS ns.b\nns.b 60 A 192.0.2.2\n\
        ns 60 NSEC a A RRSIG NSEC\n";

    #[test]
    fn zones_are_counted_without_what_signing_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
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
        assert_eq!((examined.records, examined.names), (7, 5));
        assert_eq!((examined.delegations, examined.signed_delegations), (2, 1));
        assert_eq!(examined.transfer.map(|transfer| transfer.records), Some(10));
        let again = ExamineOptions { file: path("unsigned"), origin, ..ExamineOptions::default() };
        let again = examine(&again).expect("examined");
        assert_eq!((again.records, again.transfer), (7, None));
        assert!(examined.changes.is_some_and(|changes| changes.removed_records == 2));
        let lost = ExamineOptions { unsigned: Some(path("none/x")), ..options };
        assert!(examine(&lost).is_err_and(|error| error.to_string().contains("none/x: cannot be written")));
    }
}
