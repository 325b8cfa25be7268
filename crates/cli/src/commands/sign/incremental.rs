//! `nonesuch zone sign --previous`: incremental signing.

use super::error::Failure;
use super::options::{load_keys, output_path, sign_options, with_denial_of_zone};
use super::outcome::{NewVersion, ResignRun};
use super::previous::{previous_zone, verify_previous, with_denial_info, with_previous};
use super::proofs;
use super::write::{show_progress, write_signed};
use crate::arguments::SignArguments;
use crate::files::{check_distinct_outputs, check_inputs, check_output, input_name, read_input};
use crate::outcome::CommandOutcome;
use crate::progress::RateBar;
use crate::zones::{self, ReadZoneError};
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::inspect::denial_by_directory;
use nonesuch_dnssec::sign::{
    SignError, is_current, resign_changes, resign_stored, resign_stored_with_contents, sign,
};
use nonesuch_dnssec::{KeySet, SignOptions};
use nonesuch_proto::Name;
use nonesuch_zone::change::{ChangeError, SerialRule};
use nonesuch_zone::compiled::TextComparison;
use nonesuch_zone::{ChangeSet, Contents, compare_signed, open_compiled};
use std::path::Path;
use std::time::Instant;

pub(super) fn run(arguments: &SignArguments) -> Result<CommandOutcome, Failure> {
    let started_at = Instant::now();
    check_outputs(arguments)?;
    if let Some(outcome) = sign_stored(arguments, started_at)? {
        return Ok(outcome);
    }
    let new = match sign_from_comparison(arguments, started_at)? {
        Comparison::Signed => return Ok(CommandOutcome::Done),
        Comparison::NeedsWholeZone(new) => Some(new),
        Comparison::NotApplicable => None,
    };
    run_whole(arguments, new, started_at)
}

/// The result of a comparison of zone files.
enum Comparison {
    /// The zone is signed and written.
    Signed,
    /// The signatures and denial records of the complete zone must be planned. Contains the new
    /// version of the unsigned zone, which is already read.
    NeedsWholeZone(Contents),
    /// Nothing was read, because the arguments permit no comparison of zone files.
    NotApplicable,
}

/// Signs a zone file incrementally if the previous zone is a zone file that this program wrote.
/// Unchanged lines are copied from it. Zones with NSEC5 need the whole zone.
fn sign_from_comparison(arguments: &SignArguments, started_at: Instant) -> Result<Comparison, Failure> {
    let resign = &arguments.resign;
    let (Some(path), Some(file)) = (&resign.previous, &arguments.file) else {
        return Ok(Comparison::NotApplicable);
    };
    if resign.compiled || resign.verify_previous {
        return Ok(Comparison::NotApplicable);
    }
    let new = zones::read_zone(file, arguments.origin.as_ref())?;
    let Some(TextComparison { previous, changes }) = compare_signed(path, &new)? else {
        return Ok(Comparison::NeedsWholeZone(new));
    };
    let Some(denial_info) = denial_by_directory(&previous) else {
        return Ok(Comparison::NeedsWholeZone(new));
    };
    let arguments = &with_denial_info(arguments, Some(denial_info), previous.first_chunk());
    if arguments.mechanism().name_hash() == NameHash::Vrf {
        return Ok(Comparison::NeedsWholeZone(new));
    }
    let keys = load_keys(arguments, new.apex())?;
    let mut options = sign_options(arguments)?;
    options.previous = Some(previous_zone(arguments, previous.first_chunk(), &options));
    let result = resign_stored_with_contents(&previous, &changes, &new, &keys, &options)?;
    let Some(new_version) = NewVersion::of(result, &previous) else {
        return Ok(Comparison::NeedsWholeZone(new));
    };
    ResignRun::new(arguments, new.apex(), &output_path(arguments), started_at).finish(new_version)?;
    Ok(Comparison::Signed)
}

/// Signs changes to a compiled zone and writes a compiled zone. Loads only the parts of the
/// previous zone that are needed. Returns `None` if the arguments request something else, if the
/// zone uses NSEC5, or if the complete zone is needed.
fn sign_stored(arguments: &SignArguments, started_at: Instant) -> Result<Option<CommandOutcome>, Failure> {
    let resign = &arguments.resign;
    let (Some(path), Some(changes)) = (&resign.previous, &resign.changes) else { return Ok(None) };
    if arguments.file.is_some() || !resign.compiled || resign.verify_previous {
        return Ok(None);
    }
    let previous = open_compiled(path, arguments.origin.as_ref()).map_err(ReadZoneError::previous)?;
    let Some(previous) = previous else { return Ok(None) };
    let Some(denial_info) = denial_by_directory(&previous) else { return Ok(None) };
    let arguments = &with_denial_info(arguments, Some(denial_info), previous.first_chunk());
    if arguments.mechanism().name_hash() == NameHash::Vrf {
        return Ok(None);
    }
    let zone = previous.apex();
    let keys = load_keys(arguments, zone)?;
    let mut options = sign_options(arguments)?;
    options.previous = Some(previous_zone(arguments, previous.first_chunk(), &options));
    let changes_set = read_changes(changes, zone)?;
    let result = resign_stored(&previous, &changes_set, &keys, &options);
    let result = result.map_err(|error| sign_failure(changes, error))?;
    let Some(new_version) = NewVersion::of(result, &previous) else { return Ok(None) };
    ResignRun::new(arguments, zone, &output_path(arguments), started_at).finish(new_version)?;
    Ok(Some(CommandOutcome::Done))
}

/// Signs with the complete zone in memory. `new` is the new version of the unsigned zone if it has
/// already been read.
fn run_whole(
    arguments: &SignArguments,
    new: Option<Contents>,
    started_at: Instant,
) -> Result<CommandOutcome, Failure> {
    let origin = arguments.origin.as_ref();
    let previous =
        arguments.resign.previous.as_deref().map(|path| zones::read_previous(path, origin)).transpose()?;
    let arguments = &with_previous(arguments, previous.as_ref());
    let resign = &arguments.resign;
    if let (Some(path), Some(previous), true) = (&resign.previous, &previous, resign.verify_previous) {
        verify_previous(path, previous)?;
    }
    let read = || arguments.file.as_deref().map(|path| zones::read_zone(path, origin)).transpose();
    let mut contents = if new.is_some() { new } else { read()? };
    let arguments = &contents
        .as_ref()
        .map_or_else(|| arguments.clone(), |contents| with_denial_of_zone(arguments, contents));
    let Some(zone) = contents.as_ref().or(previous.as_ref()).map(|zone| zone.apex().clone()) else {
        return Ok(CommandOutcome::Done);
    };
    let keys = load_keys(arguments, &zone)?;
    let output = output_path(arguments);
    let mut options = sign_options(arguments)?;
    if let (NameHash::Vrf, Some(previous), Some(path)) =
        (options.mechanism.name_hash(), &previous, &resign.changes)
    {
        // Proofs require all names of the zone.
        let changed = read_changes(path, &zone)?.apply(previous, SerialRule::Any);
        contents = Some(changed.map_err(|error| change_failure(path, error))?);
    }
    let mut zone_proofs = match &contents {
        Some(contents) => proofs::prepare(arguments, &output, contents, &keys)?,
        None => None,
    };
    options.nsec5 = zone_proofs.as_ref().map(|zone_proofs| zone_proofs.chain(arguments.keep_nsec5key));
    options.previous = previous.as_ref().map(|contents| previous_zone(arguments, contents, &options));
    let bar = RateBar::new("signing");
    let show = |at| show_progress(&bar, at);
    options.progress = bar.is_visible().then_some(&show);
    let new_version = match (&contents, &previous) {
        (Some(contents), previous) => sign_contents(arguments, contents, previous.as_ref(), &keys, &options)?,
        (None, Some(previous)) => sign_changes(arguments, previous, &keys, &options)?,
        (None, None) => return Ok(CommandOutcome::Done),
    };
    bar.end();
    let serial = new_version.statistics().serial;
    let mut run = ResignRun::new(arguments, &zone, &output, started_at);
    (run.previous, run.zone_proofs) = (previous.as_ref(), zone_proofs.as_ref());
    run.finish(new_version)?;
    if let Some(zone_proofs) = &mut zone_proofs {
        zone_proofs.store(serial, &keys)?;
        proofs::warn_of_signing_keys(&output);
    }
    Ok(CommandOutcome::Done)
}

/// Checks that no output overwrites an input. Only the previous zone may be replaced by the new
/// zone.
fn check_outputs(arguments: &SignArguments) -> Result<(), Failure> {
    let resign = &arguments.resign;
    let output = output_path(arguments);
    check_inputs(arguments.file.iter().chain(&resign.changes).chain(&resign.previous))?;
    for input in arguments.file.iter().chain(&resign.changes) {
        check_output(&output, input)?;
    }
    if let Some(changes_out) = &resign.changes_out {
        for input in arguments.file.iter().chain(&resign.changes).chain(&resign.previous) {
            check_output(changes_out, input)?;
        }
        check_distinct_outputs(&output, changes_out)?;
    }
    Ok(())
}

/// Signs `contents` and reuses signatures of the previous zone. If the signed zone is not needed
/// afterwards, the zone file is written while signing continues.
fn sign_contents<'a>(
    arguments: &SignArguments,
    contents: &Contents,
    previous: Option<&'a Contents>,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<NewVersion<'a>, Failure> {
    let resign = &arguments.resign;
    if let Some(previous) = previous
        && is_current(contents, keys, options)?
    {
        return Ok(NewVersion::Unchanged(previous.into()));
    }
    if resign.compiled || resign.changes_out.is_some() {
        return Ok(NewVersion::Whole(sign(contents, keys, options)?));
    }
    write_signed(contents, keys, options, &output_path(arguments)).map(NewVersion::Written)
}

/// Signs the result of applying the change set to the previous zone.
fn sign_changes<'a>(
    arguments: &SignArguments,
    previous: &'a Contents,
    keys: &KeySet,
    options: &SignOptions<'a>,
) -> Result<NewVersion<'a>, Failure> {
    let Some(path) = &arguments.resign.changes else { return Ok(NewVersion::Unchanged(previous.into())) };
    let changes = read_changes(path, previous.apex())?;
    let resigned = resign_changes(&changes, keys, options).map_err(|error| sign_failure(path, error))?;
    Ok(resigned.map_or_else(|| NewVersion::Unchanged(previous.into()), NewVersion::Incremental))
}

/// Converts an error of signing the changes in the file `path`.
fn sign_failure(path: &Path, error: SignError) -> Failure {
    match error {
        SignError::Change(error) => change_failure(path, error),
        error => error.into(),
    }
}

fn read_changes(path: &Path, zone: &Name) -> Result<ChangeSet, Failure> {
    let text = read_input(path)?;
    let path = input_name(path).to_path_buf();
    ChangeSet::parse(&text, zone).map_err(|source| Failure::ChangeSet { path, source })
}

fn change_failure(path: &Path, error: ChangeError) -> Failure {
    Failure::Change { path: input_name(path).to_path_buf(), line: error.line, fault: error.fault }
}
