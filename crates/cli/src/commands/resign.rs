//! `nonesuch zone sign --previous`: signs again what was signed before.

use super::nsec5::{self, Proved};
use super::sign::{options, output};
use crate::Outcome;
use crate::arguments::SignArguments;
use crate::error::Failure;
use crate::files::{check_output, print_line, write_failure, write_output};
use crate::{keys, zones};
use nonesuch_dnssec::denial::Mapping;
use nonesuch_dnssec::sign::{Previous, Resigned, SignError, SignStatistics, resign, resign_changes, sign};
use nonesuch_dnssec::{KeySet, SignOptions, Signed};
use nonesuch_proto::Name;
use nonesuch_zone::change::{ChangeError, SerialRule};
use nonesuch_zone::write::write_zone;
use nonesuch_zone::{ChangeSet, Contents, Verification, compiled};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

/// The zone file, where it is signed from scratch and written as one.
pub(super) fn plain_file(arguments: &SignArguments) -> Option<&Path> {
    let again = &arguments.again;
    arguments.file.as_deref().filter(|_| again.previous.is_none() && !again.compiled)
}

/// What a run left.
struct Done<'a> {
    contents: &'a Contents,
    statistics: SignStatistics,
    /// Names planned anew, where not all were.
    names_planned: Option<usize>,
    unchanged: bool,
}

pub(super) fn run(arguments: &SignArguments) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    let again = &arguments.again;
    let origin = arguments.origin.as_ref();
    let previous = again.previous.as_deref().map(|path| zones::read_zone(path, origin)).transpose()?;
    let mut contents = arguments.file.as_deref().map(|path| zones::read_zone(path, origin)).transpose()?;
    let Some(zone) = contents.as_ref().or(previous.as_ref()).map(|zone| zone.apex().clone()) else {
        return Ok(Outcome::Done);
    };
    let mut keys = keys::load(&arguments.keys, &zone)?;
    if arguments.hedged {
        keys.hedge();
    }
    let output = output(arguments);
    if let Some(file) = &arguments.file {
        check_output(&output, file)?;
    }
    let mut options = options(arguments)?;
    if let (Mapping::Vrf, Some(previous), Some(path)) =
        (options.mechanism.mapping(), &previous, &again.changes)
    {
        // Proofs are made of names, so all names are needed.
        let changed = read_changes(path, &zone)?.apply(previous, SerialRule::Any);
        contents = Some(changed.map_err(|error| change_failure(path, error))?);
    }
    let mut proved = match &contents {
        Some(contents) => nsec5::prepare(arguments, &output, contents, &keys)?,
        None => None,
    };
    options.nsec5 = proved.as_ref().map(|proved| proved.chain(arguments.keep_nsec5key));
    options.previous = previous.as_ref().map(|contents| Previous {
        refresh: again.refresh.unwrap_or_else(|| Previous::new(contents, period(&options)).refresh),
        verify: again.verify_previous,
        contents,
    });
    let outcome = match (&contents, &previous) {
        (Some(contents), Some(previous)) => {
            let signed = resign(contents, &keys, &options)?;
            let wanted = again.changes_out.is_some();
            signed.map(|signed| (between(previous, &signed, wanted), signed, None))
        }
        (Some(contents), None) => Some((None, sign(contents, &keys, &options)?, None)),
        (None, _) => apply(arguments, &zone, &keys, &options)?,
    };
    let serial = finish(arguments, &output, outcome, previous.as_ref(), proved.as_ref(), begun)?;
    if let Some(proved) = &mut proved {
        proved.store(serial, &keys)?;
    }
    Ok(Outcome::Done)
}

/// The changes of the signed zone, the zone, and how many names were planned anew.
type Made = (Option<ChangeSet>, Signed, Option<usize>);

fn between(previous: &Contents, signed: &Signed, wanted: bool) -> Option<ChangeSet> {
    wanted.then(|| ChangeSet::between(previous, signed.contents(), |_| true))
}

/// Seconds from the time of signing to the expiration.
const fn period(options: &SignOptions<'_>) -> u32 {
    options.expiration.wrapping_sub(options.now)
}

/// Signs what comes of the previous zone by the change set given.
fn apply(
    arguments: &SignArguments,
    zone: &Name,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<Option<Made>, Failure> {
    let Some(path) = &arguments.again.changes else { return Ok(None) };
    let resigned =
        resign_changes(&read_changes(path, zone)?, keys, options).map_err(|error| match error {
            SignError::Change(error) => change_failure(path, error),
            error => error.into(),
        })?;
    Ok(resigned.map(|Resigned { signed, changes, names_planned }| (Some(changes), signed, names_planned)))
}

fn read_changes(path: &Path, zone: &Name) -> Result<ChangeSet, Failure> {
    let text = fs::read(path).map_err(|source| Failure::Read { path: path.to_path_buf(), source })?;
    ChangeSet::parse(&text, zone).map_err(|source| Failure::ChangeSet { path: path.to_path_buf(), source })
}

fn change_failure(path: &Path, error: ChangeError) -> Failure {
    Failure::Change { path: path.to_path_buf(), line: error.line, fault: error.fault }
}

/// Writes what was made; where that is nothing, the previous zone is the outcome. Returns its serial.
fn finish(
    arguments: &SignArguments,
    output: &Path,
    outcome: Option<Made>,
    previous: Option<&Contents>,
    proved: Option<&Proved>,
    begun: Instant,
) -> Result<u32, Failure> {
    let again = &arguments.again;
    let (changes, signed, names_planned) = match outcome {
        Some((changes, signed, names_planned)) => (changes, Some(signed), names_planned),
        None => (None, None, None),
    };
    for warning in signed.iter().flat_map(Signed::warnings) {
        tracing::warn!("{warning}");
    }
    let Some(contents) = signed.as_ref().map(Signed::contents).or(previous) else { return Ok(0) };
    let unchanged = signed.is_none();
    // The previous zone itself stays as it is, octet by octet.
    if !(unchanged && again.previous.as_deref().is_some_and(|previous| is_same_file(previous, output))) {
        write(output, contents, again.compiled)?;
    }
    if let Some(path) = &again.changes_out {
        write_output(path, 0o644, |mut out| match &changes {
            Some(changes) => changes.write(&mut out).map_err(write_failure(path)),
            None => Ok(()),
        })?;
    }
    let serial = contents.soa().map_or(0, |soa| soa.serial);
    if output != Path::new("-") {
        let statistics = signed
            .as_ref()
            .map_or_else(|| SignStatistics { serial, ..SignStatistics::default() }, Signed::statistics);
        let done = Done { contents, statistics, names_planned, unchanged };
        report(arguments, &done, output, proved, begun.elapsed().as_secs_f64())?;
    }
    Ok(serial)
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => false,
    }
}

fn write(output: &Path, contents: &Contents, as_compiled: bool) -> Result<(), Failure> {
    write_output(output, 0o644, |mut out: &mut dyn Write| {
        let outcome = if as_compiled {
            // Nobody has verified what was made.
            compiled::write(contents, Verification::Nothing, &mut out)
        } else {
            write_zone(contents, &mut out)
        };
        outcome.map_err(write_failure(output))
    })
}

fn report(
    arguments: &SignArguments,
    done: &Done<'_>,
    output: &Path,
    proved: Option<&Proved>,
    seconds: f64,
) -> Result<(), Failure> {
    let Done { contents, statistics, names_planned, unchanged } = done;
    if arguments.json {
        let report = serde_json::json!({
            "zone": contents.apex().to_string(), "output": output, "denial": arguments.denial.to_string(),
            "serial": statistics.serial, "records": contents.record_count(), "rrsets_signed": statistics.rrsets_signed,
            "signatures": statistics.signatures, "signatures_kept": statistics.signatures_kept,
            "chain_records": statistics.chain_records, "unchanged": unchanged, "names_planned": names_planned,
            "seconds": seconds, "nsec5": proved.map(Proved::to_json),
        });
        return print_line(&report.to_string());
    }
    let (path, zone, serial) = (output.display(), contents.apex(), statistics.serial);
    if *unchanged {
        return print_line(&format!(
            "{path}: zone {zone} is unchanged and no signature is to be refreshed: serial {serial} stays; {seconds:.2} s"
        ));
    }
    print_line(&format!(
        "{path}: zone {zone} signed with {}: serial {serial}, {} records, {} signatures made, {} kept; {seconds:.2} s",
        arguments.denial.entry().title,
        contents.record_count(),
        statistics.signatures,
        statistics.signatures_kept,
    ))?;
    proved.map_or(Ok(()), |proved| print_line(&proved.to_string()))
}
