//! The results of incremental signing, their output and their report.

use super::error::Failure;
use super::proofs::ZoneProofs;
use super::write::log_warnings;
use crate::arguments::SignArguments;
use crate::files::{
    FileError, is_same_file, is_standard_stream, print_line, print_summary, write_failure, write_output,
};
use nonesuch_dnssec::Signed;
use nonesuch_dnssec::sign::{IncrementalResult, ResignedZone, SignStatistics, SignSummary, SignWarning};
use nonesuch_proto::Name;
use nonesuch_zone::write::{write_splice, write_zone};
use nonesuch_zone::{ChangeSet, Contents, Splice, StoredZone, Verification, ZoneRef, compiled};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// The new version from a run.
pub(super) enum NewVersion<'a> {
    /// No change: the previous zone is the result.
    Unchanged(ZoneRef<'a>),
    /// A zone file that is already written.
    Written(SignSummary),
    Whole(Signed),
    /// The previous zone with some nodes replaced.
    Incremental(ResignedZone<'a>),
}

impl<'a> NewVersion<'a> {
    /// The new version from incremental signing of the stored zone `previous`; `None` if the
    /// complete zone must be planned.
    pub(super) fn of(result: IncrementalResult<'a>, previous: &'a StoredZone) -> Option<Self> {
        match result {
            IncrementalResult::Impossible => None,
            IncrementalResult::Unchanged => Some(Self::Unchanged(previous.into())),
            IncrementalResult::Signed(resigned) => Some(Self::Incremental(resigned)),
        }
    }

    pub(super) fn statistics(&self) -> SignStatistics {
        match self {
            Self::Unchanged(previous) => {
                let serial = previous.soa().map_or(0, |soa| soa.serial);
                SignStatistics { serial, records: previous.record_count(), ..SignStatistics::default() }
            }
            Self::Written(summary) => summary.statistics,
            Self::Whole(signed) => signed.statistics(),
            Self::Incremental(resigned) => resigned.statistics(),
        }
    }

    fn warnings(&self) -> &[SignWarning] {
        match self {
            Self::Unchanged(_) => &[],
            Self::Written(summary) => &summary.warnings,
            Self::Whole(signed) => signed.warnings(),
            Self::Incremental(resigned) => resigned.warnings(),
        }
    }

    /// Number of names whose records were planned again; `None` if all were.
    fn names_planned(&self) -> Option<usize> {
        if let Self::Incremental(resigned) = self { resigned.names_planned() } else { None }
    }

    /// The changes from the previous signed zone, if there is one.
    fn changes(&self, previous: Option<&Contents>) -> Option<ChangeSet> {
        match (self, previous) {
            (Self::Incremental(resigned), _) => Some(resigned.changes()),
            (Self::Whole(signed), Some(previous)) => {
                Some(ChangeSet::between(previous, signed.contents(), |_| true))
            }
            _ => None,
        }
    }
}

/// A run of incremental signing: writes and reports its result.
pub(super) struct ResignRun<'r> {
    arguments: &'r SignArguments,
    zone: &'r Name,
    output: &'r Path,
    started_at: Instant,
    /// The previous signed zone, if it is in memory.
    pub(super) previous: Option<&'r Contents>,
    /// The NSEC5 proofs of the new version; `None` for other mechanisms.
    pub(super) zone_proofs: Option<&'r ZoneProofs>,
}

impl<'r> ResignRun<'r> {
    pub(super) const fn new(
        arguments: &'r SignArguments,
        zone: &'r Name,
        output: &'r Path,
        started_at: Instant,
    ) -> Self {
        Self { arguments, zone, output, started_at, previous: None, zone_proofs: None }
    }

    /// Writes the new version, if it is not written yet, and reports it.
    pub(super) fn finish(&self, new_version: NewVersion<'_>) -> Result<(), Failure> {
        let resign = &self.arguments.resign;
        log_warnings(new_version.warnings());
        let report = Report {
            statistics: new_version.statistics(),
            names_planned: new_version.names_planned(),
            unchanged: matches!(new_version, NewVersion::Unchanged(_)),
        };
        // Before the zone: if this fails, the same changes can be generated again.
        if let Some(path) = &resign.changes_out {
            write_changes(path, new_version.changes(self.previous).as_ref())?;
        }
        // The previous zone file stays unchanged, octet by octet.
        let is_in_place = |previous: &Path| is_same_file(previous, self.output);
        if !(report.unchanged && resign.previous.as_deref().is_some_and(is_in_place)) {
            write(self.output, new_version, resign.compiled)?;
        }
        if !is_standard_stream(self.output) {
            self.report(&report)?;
        }
        Ok(())
    }

    fn report(&self, report: &Report) -> Result<(), FileError> {
        let Self { arguments, zone, output, zone_proofs, .. } = self;
        let &Report { statistics, names_planned, unchanged } = report;
        let seconds = self.started_at.elapsed().as_secs_f64();
        if arguments.json {
            let report = serde_json::json!({
                "zone": zone.to_string(), "output": output, "denial": arguments.mechanism().to_string(),
                "serial": statistics.serial, "records": statistics.records, "rrsets_signed": statistics.rrsets_signed,
                "signatures": statistics.signatures, "signatures_kept": statistics.signatures_kept,
                "chain_records": statistics.chain_records, "unchanged": unchanged, "names_planned": names_planned,
                "seconds": seconds, "nsec5": zone_proofs.map(ZoneProofs::to_json),
            });
            return print_line(&report.to_string());
        }
        let (path, serial) = (output.display(), statistics.serial);
        if unchanged {
            return print_summary(&format!(
                "{path}: zone {zone} is unchanged and no signature needs a refresh: serial {serial} \
                    stays; {seconds:.2} s"
            ));
        }
        print_summary(&format!(
            "{path}: zone {zone} signed with {}: serial {serial}, {} records, {} signatures generated, \
                {} reused; {seconds:.2} s",
            arguments.mechanism().entry().title,
            statistics.records,
            statistics.signatures,
            statistics.signatures_kept,
        ))?;
        zone_proofs.map_or(Ok(()), |zone_proofs| print_summary(&zone_proofs.to_string()))
    }
}

/// Counters of a run.
struct Report {
    statistics: SignStatistics,
    names_planned: Option<usize>,
    unchanged: bool,
}

/// Writes the change set; an empty file without changes.
fn write_changes(path: &Path, changes: Option<&ChangeSet>) -> Result<(), FileError> {
    write_output(path, 0o644, |mut out| match changes {
        Some(changes) => changes.write(&mut out).map_err(write_failure(path)),
        None => Ok(()),
    })
}

/// Writes the new version to `output` as a zone file or, with `as_compiled`, as a compiled zone.
fn write(output: &Path, new_version: NewVersion<'_>, as_compiled: bool) -> Result<(), Failure> {
    if matches!(new_version, NewVersion::Written(_)) {
        return Ok(());
    }
    write_output(output, 0o644, |mut out: &mut dyn Write| {
        let outcome = match new_version {
            NewVersion::Incremental(resigned) if as_compiled => {
                // The new version has not been verified.
                compiled::write_splice(&resigned.splice(), Verification::Nothing, &mut out)
            }
            NewVersion::Incremental(resigned) if resigned.refers_to_previous_file() => {
                write_splice(&resigned.splice(), &mut out)
            }
            NewVersion::Incremental(resigned) => write_zone(resigned.into_signed()?.contents(), &mut out),
            NewVersion::Whole(signed) => write_contents(signed.contents(), as_compiled, &mut out),
            NewVersion::Unchanged(ZoneRef::Contents(previous)) => {
                write_contents(previous, as_compiled, &mut out)
            }
            NewVersion::Unchanged(ZoneRef::Stored(previous)) => {
                write_unchanged(previous, as_compiled, &mut out)
            }
            NewVersion::Written(_) => Ok(()),
        };
        Ok(outcome.map_err(write_failure(output))?)
    })
}

fn write_contents(contents: &Contents, as_compiled: bool, mut out: &mut dyn Write) -> io::Result<()> {
    if as_compiled {
        compiled::write(contents, Verification::Nothing, &mut out)
    } else {
        write_zone(contents, &mut out)
    }
}

fn write_unchanged(previous: &StoredZone, as_compiled: bool, mut out: &mut dyn Write) -> io::Result<()> {
    if as_compiled {
        compiled::write_splice(&Splice::of(previous), Verification::Nothing, &mut out)
    } else {
        write_splice(&Splice::of(previous), &mut out)
    }
}
