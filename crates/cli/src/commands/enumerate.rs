//! `nonesuch enumerate`: what an attacker learns about a zone from the denials of its server.

mod stolen;

use crate::arguments::{EnumerateArguments, ExportFormat};
use crate::commands::query::{QueryError, first_address};
use crate::files::{
    FileError, check_writable, is_missing, print_line, print_to_stderr, read_public_text, write_failure,
    write_output,
};
use crate::logging;
use crate::outcome::CommandOutcome;
use crate::progress;
use crate::zones::time_or_now;
use indicatif::ProgressBar;
use nonesuch_lab::enumerate::crack::pattern::MaskError;
use nonesuch_lab::enumerate::{
    ClientOptions, EnumerateError, EnumerateOptions, Event, Plan, State, StateError, Words, WordsError,
    enumerate, lesson,
};
use nonesuch_proto::Name;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;
use stolen::StolenServerError;

/// Maximum size of a state file, in octets.
const STATE_MAX: usize = 1 << 30;
/// Maximum number of names, and of hashes, that the text lists.
const LISTED_MAX: usize = 1000;

/// Why `nonesuch enumerate` fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Enumerate(#[from] EnumerateError),
    Server(#[from] QueryError),
    #[error("'{0}' is not a server: write @ADDRESS or @ADDRESS:PORT, for example @127.0.0.1:5300")]
    ServerForm(String),
    #[error("{}: {source}", path.display())]
    State {
        path: PathBuf,
        source: StateError,
    },
    Words(#[from] WordsError),
    #[error("a mask: {0}")]
    Mask(#[from] MaskError),
    Stolen(#[from] StolenServerError),
    #[error("cannot get random octets from the system: {0}")]
    Random(getrandom::Error),
}

pub(crate) fn run(arguments: &EnumerateArguments) -> Result<CommandOutcome, Failure> {
    let zone = arguments.zone.view().to_canonical();
    let options = options(arguments, &zone)?;
    let mut state = read_state(arguments.state.as_deref(), &zone)?;
    for output in [&arguments.state, &arguments.export_file].into_iter().flatten() {
        check_writable(output)?;
    }
    let bar = progress::spinner("querying the server");
    let mut saved = Ok(());
    let outcome = enumerate(&options, &mut state, &mut |event| {
        if let Event::Save(state) = event {
            saved = save_state(arguments.state.as_deref(), state);
        } else {
            show(&bar, &event);
        }
    });
    bar.finish_and_clear();
    let report = outcome?;
    saved?;
    if let (Some(ExportFormat::Hashcat), Some(path)) = (arguments.export, &arguments.export_file) {
        write_text(path, &state.to_hashcat())?;
    }
    if arguments.json {
        print_line(&serde_json::json!(report).to_string())?;
    } else {
        print_line(report.to_text(LISTED_MAX).trim_end_matches('\n'))?;
    }
    Ok(if report.complete { CommandOutcome::Done } else { CommandOutcome::Negative })
}

/// Shows progress on a terminal.
fn show(bar: &ProgressBar, event: &Event<'_>) {
    match event {
        Event::Recognised(recognised) => {
            let mechanism = recognised.mechanism().map_or("no denial records", |found| found.entry().title);
            if !bar.is_hidden() && !logging::is_quiet() {
                bar.suspend(|| print_to_stderr(&format!("{mechanism}: {}", lesson(*recognised))));
            }
        }
        Event::Collected(records, coverage, queries) => {
            let share =
                coverage.map_or_else(String::new, |share| format!(", {:.4} % of all hashes", share * 100.0));
            bar.set_message(format!("{records} records{share}, {queries} queries"));
        }
        Event::Cracking(progress) => {
            let (tested, planned) = (progress.tested as f64 / 1e6, progress.planned as f64 / 1e6);
            bar.set_message(format!(
                "{tested:.0} of {planned:.0} million names tested, {} found",
                progress.found
            ));
        }
        _ => {}
    }
}

fn options(arguments: &EnumerateArguments, zone: &Name) -> Result<EnumerateOptions, Failure> {
    let names = &arguments.names;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => {
            let mut octets = [0; 8];
            getrandom::fill(&mut octets).map_err(Failure::Random)?;
            u64::from_be_bytes(octets)
        }
    };
    let stolen = &arguments.stolen_server;
    Ok(EnumerateOptions {
        zone: zone.clone(),
        client: client(arguments)?,
        seed,
        plan: plan(arguments)?,
        crack: !names.no_crack,
        depth: names.depth,
        threads: names.threads.map_or_else(cores, usize::from),
        crack_time_limit: duration(arguments.limits.time_limit),
        guesses: names.guesses,
        stolen: (!stolen.is_empty()).then(|| stolen::read(stolen, zone)).transpose()?,
        now: time_or_now(arguments.now),
    })
}

fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

fn client(arguments: &EnumerateArguments) -> Result<Option<ClientOptions>, Failure> {
    let Some(server) = &arguments.server else { return Ok(None) };
    let server = server.strip_prefix('@').ok_or_else(|| Failure::ServerForm(server.clone()))?;
    let limits = &arguments.limits;
    Ok(Some(ClientOptions {
        server: first_address(server)?,
        rate: limits.rate,
        timeout: duration(limits.timeout),
        attempts: limits.retries.saturating_add(1),
        max_queries: limits.max_queries,
        time_limit: duration(limits.time_limit),
        tcp: limits.tcp,
    }))
}

/// The words and masks; without any, the common labels.
fn plan(arguments: &EnumerateArguments) -> Result<Plan, Failure> {
    let names = &arguments.names;
    let mut words: Vec<Words> = names.words.iter().map(|path| Words::read(path)).collect::<Result<_, _>>()?;
    if words.is_empty() && names.mask.is_empty() {
        words.push(Words::common());
    }
    Ok(Plan::new(&words, &names.prefix, &names.suffix, &names.mask)?)
}

fn read_state(path: Option<&Path>, zone: &Name) -> Result<State, Failure> {
    let Some(path) = path.filter(|path| !is_missing(path)) else { return Ok(State::new(zone)) };
    let text = read_public_text(path, STATE_MAX);
    let text = text.map_err(|source| FileError::Read { path: path.to_path_buf(), source })?;
    State::parse(&text).map_err(|source| Failure::State { path: path.to_path_buf(), source })
}

/// Replaces the state file, if there is one.
fn save_state(path: Option<&Path>, state: &State) -> Result<(), FileError> {
    path.map_or(Ok(()), |path| write_text(path, &state.to_text()))
}

fn write_text(path: &Path, text: &str) -> Result<(), FileError> {
    write_output(path, 0o644, |out| out.write_all(text.as_bytes()).map_err(write_failure(path)))
}
