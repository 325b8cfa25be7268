//! `nonesuch zone sign --previous`: signs again what was signed before.

use super::nsec5::{self, Proved};
use super::sign::{options, output, tell_progress, tell_warnings, with_denial_of, write_signed};
use super::verify::watched;
use crate::Outcome;
use crate::arguments::{SignArguments, ZonemdHashes};
use crate::error::Failure;
use crate::files::{
    check_inputs, check_output, check_two_outputs, input_name, is_same_file, is_standard, print_line,
    read_input, write_failure, write_output,
};
use crate::progress::Rates;
use crate::{keys, zones};
use nonesuch_dnssec::denial::Mapping;
use nonesuch_dnssec::denial::nsec5::Nsec5Evidence;
use nonesuch_dnssec::facts::{DenialFacts, denial, denial_by_directory};
use nonesuch_dnssec::sign::{
    Mending, Previous, Resigned, SignError, SignStatistics, SignSummary, SignWarning, is_current,
    resign_changes, resign_compared, resign_stored, sign,
};
use nonesuch_dnssec::{KeySet, SignOptions, Signed, VerifyOptions};
use nonesuch_proto::Name;
use nonesuch_zone::change::{ChangeError, SerialRule};
use nonesuch_zone::compiled::Compared;
use nonesuch_zone::write::{write_splice, write_zone};
use nonesuch_zone::{
    Base, ChangeSet, Contents, Splice, StoredZone, Verification, compare_signed, compiled, open_compiled,
    zonemd,
};
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

/// The zone file, where it is signed from scratch and written as one.
pub(super) fn plain_file(arguments: &SignArguments) -> Option<&Path> {
    let again = &arguments.again;
    arguments.file.as_deref().filter(|_| again.previous.is_none() && !again.compiled)
}

/// What a run made.
enum Made<'a> {
    /// Nothing: the previous zone is the outcome.
    Unchanged(Base<'a>),
    /// A zone file, which is written already.
    Written(SignSummary),
    Whole(Signed),
    /// The previous zone with other nodes in places.
    Mended(Resigned<'a>),
}

impl Made<'_> {
    fn statistics(&self) -> SignStatistics {
        match self {
            Self::Unchanged(previous) => {
                let serial = previous.soa().map_or(0, |soa| soa.serial);
                SignStatistics { serial, records: previous.record_count(), ..SignStatistics::default() }
            }
            Self::Written(summary) => summary.statistics,
            Self::Whole(signed) => signed.statistics(),
            Self::Mended(resigned) => resigned.statistics(),
        }
    }

    fn warnings(&self) -> &[SignWarning] {
        match self {
            Self::Unchanged(_) => &[],
            Self::Written(summary) => &summary.warnings,
            Self::Whole(signed) => signed.warnings(),
            Self::Mended(resigned) => resigned.warnings(),
        }
    }

    /// Names planned anew, where not all were.
    fn names_planned(&self) -> Option<usize> {
        if let Self::Mended(resigned) = self { resigned.names_planned() } else { None }
    }

    /// What differs from the previous signed zone, if there is one.
    fn changes(&self, previous: Option<&Contents>) -> Option<ChangeSet> {
        match (self, previous) {
            (Self::Mended(resigned), _) => Some(resigned.changes()),
            (Self::Whole(signed), Some(previous)) => {
                Some(ChangeSet::between(previous, signed.contents(), |_| true))
            }
            _ => None,
        }
    }
}

pub(super) fn run(arguments: &SignArguments) -> Result<Outcome, Failure> {
    let begun = Instant::now();
    check_outputs(arguments)?;
    if let Some(outcome) = mend(arguments, begun)? {
        return Ok(outcome);
    }
    let new = match compare(arguments, begun)? {
        Comparison::Done => return Ok(Outcome::Done),
        Comparison::Read(new) => Some(new),
        Comparison::Nothing => None,
    };
    run_whole(arguments, new, begun)
}

/// What came of comparing zone files.
enum Comparison {
    /// The zone is signed and written.
    Done,
    /// The whole zone must be planned; this is the new zone.
    Read(Contents),
    /// There was nothing to compare.
    Nothing,
}

/// Signs a zone file again where the zone file that was signed last was written here: lines that stay are passed on as
/// they are.
fn compare(arguments: &SignArguments, begun: Instant) -> Result<Comparison, Failure> {
    let again = &arguments.again;
    let (Some(path), Some(file)) = (&again.previous, &arguments.file) else { return Ok(Comparison::Nothing) };
    if again.compiled || again.verify_previous {
        return Ok(Comparison::Nothing);
    }
    let new = zones::read_zone(file, arguments.origin.as_ref())?;
    let Some(Compared { previous, changes }) = compare_signed(path, &new)? else {
        return Ok(Comparison::Read(new));
    };
    let Some(facts) = denial_by_directory(&previous) else { return Ok(Comparison::Read(new)) };
    let arguments = &with_facts(arguments, Some(facts), previous.head());
    if arguments.mechanism().mapping() == Mapping::Vrf {
        return Ok(Comparison::Read(new));
    }
    let keys = load_keys(arguments, new.apex())?;
    let mut options = options(arguments)?;
    options.previous = Some(kept(arguments, previous.head(), &options));
    let made = match resign_compared(&previous, &changes, &new, &keys, &options)? {
        Mending::Impossible => return Ok(Comparison::Read(new)),
        Mending::Unchanged => Made::Unchanged((&previous).into()),
        Mending::Mended(resigned) => Made::Mended(resigned),
    };
    finish(arguments, new.apex(), &output(arguments), made, None, None, begun)?;
    Ok(Comparison::Done)
}

fn load_keys(arguments: &SignArguments, zone: &Name) -> Result<KeySet, Failure> {
    let mut keys = keys::load(&arguments.keys, zone)?;
    if arguments.hedged {
        keys.hedge();
    }
    Ok(keys)
}

/// Signs a compiled zone with changes to a compiled zone, loading no more of it than is needed; `None` where this is not
/// what is asked for, or the whole zone is needed.
fn mend(arguments: &SignArguments, begun: Instant) -> Result<Option<Outcome>, Failure> {
    let again = &arguments.again;
    let (Some(path), Some(changes)) = (&again.previous, &again.changes) else { return Ok(None) };
    if arguments.file.is_some() || !again.compiled || again.verify_previous {
        return Ok(None);
    }
    let Some(previous) = open_compiled(path, arguments.origin.as_ref())? else { return Ok(None) };
    let Some(facts) = denial_by_directory(&previous) else { return Ok(None) };
    let arguments = &with_facts(arguments, Some(facts), previous.head());
    if arguments.mechanism().mapping() == Mapping::Vrf {
        return Ok(None);
    }
    let zone = previous.apex();
    let keys = load_keys(arguments, zone)?;
    let mut options = options(arguments)?;
    options.previous = Some(kept(arguments, previous.head(), &options));
    let changes_set = read_changes(changes, zone)?;
    let mended = resign_stored(&previous, &changes_set, &keys, &options);
    let made = match mended.map_err(|error| sign_failure(changes, error))? {
        Mending::Impossible => return Ok(None),
        Mending::Unchanged => Made::Unchanged((&previous).into()),
        Mending::Mended(resigned) => Made::Mended(resigned),
    };
    finish(arguments, zone, &output(arguments), made, None, None, begun)?;
    Ok(Some(Outcome::Done))
}

/// Signs with the whole zone planned or at hand; `new` is the zone file where it was read already.
fn run_whole(arguments: &SignArguments, new: Option<Contents>, begun: Instant) -> Result<Outcome, Failure> {
    let origin = arguments.origin.as_ref();
    let previous =
        arguments.again.previous.as_deref().map(|path| zones::read_zone(path, origin)).transpose()?;
    let arguments = &as_before(arguments, previous.as_ref());
    let again = &arguments.again;
    if let (Some(path), Some(previous), true) = (&again.previous, &previous, again.verify_previous) {
        verify_previous(path, previous)?;
    }
    let read = || arguments.file.as_deref().map(|path| zones::read_zone(path, origin)).transpose();
    let mut contents = if new.is_some() { new } else { read()? };
    let arguments =
        &contents.as_ref().map_or_else(|| arguments.clone(), |contents| with_denial_of(arguments, contents));
    let Some(zone) = contents.as_ref().or(previous.as_ref()).map(|zone| zone.apex().clone()) else {
        return Ok(Outcome::Done);
    };
    let keys = load_keys(arguments, &zone)?;
    let output = output(arguments);
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
    options.previous = previous.as_ref().map(|contents| kept(arguments, contents, &options));
    let bar = Rates::new("signing");
    let tell = |at| tell_progress(&bar, at);
    options.progress = bar.is_seen().then_some(&tell);
    let made = match (&contents, &previous) {
        (Some(contents), previous) => sign_contents(arguments, contents, previous.as_ref(), &keys, &options)?,
        (None, Some(previous)) => apply(arguments, previous, &keys, &options)?,
        (None, None) => return Ok(Outcome::Done),
    };
    bar.end();
    let serial = made.statistics().serial;
    finish(arguments, &zone, &output, made, previous.as_ref(), proved.as_ref(), begun)?;
    if let Some(proved) = &mut proved {
        proved.store(serial, &keys)?;
        nsec5::warn_of_signing_keys(&output);
    }
    Ok(Outcome::Done)
}

/// What is kept of `contents`, as the arguments say.
fn kept<'a>(arguments: &SignArguments, contents: &'a Contents, options: &SignOptions<'_>) -> Previous<'a> {
    let again = &arguments.again;
    let refresh = again.refresh.unwrap_or_else(|| Previous::new(contents, period(options)).refresh);
    Previous { refresh, verify: again.verify_previous, contents }
}

/// No output takes the place of what is read, but for the previous zone, which the new one may replace.
fn check_outputs(arguments: &SignArguments) -> Result<(), Failure> {
    let again = &arguments.again;
    let output = output(arguments);
    check_inputs(arguments.file.iter().chain(&again.changes).chain(&again.previous))?;
    for input in arguments.file.iter().chain(&again.changes) {
        check_output(&output, input)?;
    }
    if let Some(changes_out) = &again.changes_out {
        for input in arguments.file.iter().chain(&again.changes).chain(&again.previous) {
            check_output(changes_out, input)?;
        }
        check_two_outputs(&output, changes_out)?;
    }
    Ok(())
}

/// The arguments with what they leave open taken of the previous zone: mechanism, NSEC3 parameters, and, where the zone
/// file has none of its own, ZONEMD.
fn as_before(arguments: &SignArguments, previous: Option<&Contents>) -> SignArguments {
    match previous {
        Some(previous) => with_facts(arguments, denial(previous), previous),
        None => arguments.clone(),
    }
}

/// The same of a previous zone with this apex that denies existence so.
fn with_facts(arguments: &SignArguments, facts: Option<DenialFacts>, apex: &Contents) -> SignArguments {
    let mut arguments = arguments.clone();
    arguments.set_denial(facts);
    let hashes = zonemd::hashes(apex);
    if arguments.zonemd.is_none() && !hashes.is_empty() {
        arguments.zonemd = Some(ZonemdHashes(hashes));
    }
    arguments
}

/// Verifies the previous zone as a whole. That signatures have expired is no fault here: they are made anew.
fn verify_previous(path: &Path, previous: &Contents) -> Result<(), Failure> {
    let report = watched(previous, &VerifyOptions::default(), &Nsec5Evidence::default());
    let count = report.faults.len();
    match report.faults.into_iter().next() {
        Some(first) => Err(Failure::PreviousNotSound { path: input_name(path).to_path_buf(), count, first }),
        None => Ok(()),
    }
}

/// Signs `contents`, with what may be kept of the previous zone. A zone file is written while signing goes on, where
/// nobody needs the signed zone afterwards.
fn sign_contents<'a>(
    arguments: &SignArguments,
    contents: &Contents,
    previous: Option<&'a Contents>,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> Result<Made<'a>, Failure> {
    let again = &arguments.again;
    if let Some(previous) = previous
        && is_current(contents, keys, options)?
    {
        return Ok(Made::Unchanged(previous.into()));
    }
    if again.compiled || again.changes_out.is_some() {
        return Ok(Made::Whole(sign(contents, keys, options)?));
    }
    write_signed(contents, keys, options, &output(arguments)).map(Made::Written)
}

/// Seconds from the time of signing to the expiration.
const fn period(options: &SignOptions<'_>) -> u32 {
    options.expiration.wrapping_sub(options.now)
}

/// Signs what comes of the previous zone by the change set given.
fn apply<'a>(
    arguments: &SignArguments,
    previous: &'a Contents,
    keys: &KeySet,
    options: &SignOptions<'a>,
) -> Result<Made<'a>, Failure> {
    let Some(path) = &arguments.again.changes else { return Ok(Made::Unchanged(previous.into())) };
    let changes = read_changes(path, previous.apex())?;
    let resigned = resign_changes(&changes, keys, options).map_err(|error| sign_failure(path, error))?;
    Ok(resigned.map_or_else(|| Made::Unchanged(previous.into()), Made::Mended))
}

/// Why changes of the file `path` were not signed.
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

/// Writes what was made and is not written yet, and says what it is.
fn finish(
    arguments: &SignArguments,
    zone: &Name,
    output: &Path,
    made: Made<'_>,
    previous: Option<&Contents>,
    proved: Option<&Proved>,
    begun: Instant,
) -> Result<(), Failure> {
    let again = &arguments.again;
    tell_warnings(made.warnings());
    let changes = again.changes_out.as_ref().map(|path| (path, made.changes(previous)));
    let report = Report {
        zone,
        statistics: made.statistics(),
        names_planned: made.names_planned(),
        unchanged: matches!(made, Made::Unchanged(_)),
    };
    // Before the zone: where it cannot be written, the same changes can be made again.
    if let Some((path, changes)) = changes {
        write_output(path, 0o644, |mut out| match &changes {
            Some(changes) => changes.write(&mut out).map_err(write_failure(path)),
            None => Ok(()),
        })?;
    }
    // The previous zone itself stays as it is, octet by octet.
    if !(report.unchanged && again.previous.as_deref().is_some_and(|previous| is_same_file(previous, output)))
    {
        write(output, made, again.compiled)?;
    }
    if is_standard(output) {
        return Ok(());
    }
    report.print(arguments, output, proved, begun.elapsed().as_secs_f64())
}

fn write(output: &Path, made: Made<'_>, as_compiled: bool) -> Result<(), Failure> {
    if matches!(made, Made::Written(_)) {
        return Ok(());
    }
    write_output(output, 0o644, |mut out: &mut dyn Write| {
        let outcome = match made {
            Made::Mended(resigned) if as_compiled => {
                // Nobody has verified what was made.
                compiled::write_splice(&resigned.splice(), Verification::Nothing, &mut out)
            }
            Made::Mended(resigned) if resigned.keeps_parts_of_file() => {
                write_splice(&resigned.splice(), &mut out)
            }
            Made::Mended(resigned) => write_zone(resigned.into_signed()?.contents(), &mut out),
            Made::Whole(signed) => write_contents(signed.contents(), as_compiled, &mut out),
            Made::Unchanged(Base::Contents(previous)) => write_contents(previous, as_compiled, &mut out),
            Made::Unchanged(Base::Stored(previous)) => write_unchanged(previous, as_compiled, &mut out),
            Made::Written(_) => Ok(()),
        };
        outcome.map_err(write_failure(output))
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

/// What is said of a run.
struct Report<'a> {
    zone: &'a Name,
    statistics: SignStatistics,
    names_planned: Option<usize>,
    unchanged: bool,
}

impl Report<'_> {
    fn print(
        &self,
        arguments: &SignArguments,
        output: &Path,
        proved: Option<&Proved>,
        seconds: f64,
    ) -> Result<(), Failure> {
        let &Self { zone, statistics, names_planned, unchanged } = self;
        if arguments.json {
            let report = serde_json::json!({
                "zone": zone.to_string(), "output": output, "denial": arguments.mechanism().to_string(),
                "serial": statistics.serial, "records": statistics.records, "rrsets_signed": statistics.rrsets_signed,
                "signatures": statistics.signatures, "signatures_kept": statistics.signatures_kept,
                "chain_records": statistics.chain_records, "unchanged": unchanged, "names_planned": names_planned,
                "seconds": seconds, "nsec5": proved.map(Proved::to_json),
            });
            return print_line(&report.to_string());
        }
        let (path, serial) = (output.display(), statistics.serial);
        if unchanged {
            return print_line(&format!(
                "{path}: zone {zone} is unchanged and no signature is to be refreshed: serial {serial} stays; {seconds:.2} s"
            ));
        }
        print_line(&format!(
            "{path}: zone {zone} signed with {}: serial {serial}, {} records, {} signatures made, {} kept; {seconds:.2} s",
            arguments.mechanism().entry().title,
            statistics.records,
            statistics.signatures,
            statistics.signatures_kept,
        ))?;
        proved.map_or(Ok(()), |proved| print_line(&proved.to_string()))
    }
}
