//! `nonesuch plan record`: records the work of a resolver.

mod control;
mod error;
mod estimate;
mod session;
mod source;
mod stop;
mod traffic;

pub(super) use error::RecordError;

use crate::arguments::PlanRecordArguments;
use crate::files::is_standard_stream;
use crate::outcome::CommandOutcome;
use nonesuch_lab::cost_model::{RecordingSetup, VerificationSource};
use session::Session;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use stop::Stop;

/// Microseconds in a second.
const SECOND: u64 = 1_000_000;

pub(super) fn run(arguments: &PlanRecordArguments) -> Result<CommandOutcome, RecordError> {
    let stop = Stop::install(arguments.duration).map_err(RecordError::Start)?;
    // A source that cannot be opened leaves no recording behind.
    let session = || Session::open(&arguments.out, &setup(arguments), arguments.json);
    let session = match &arguments.control {
        Some(socket) => {
            let first = control::Sample::take(socket)?;
            let mut session = session()?;
            control::record(socket, first, &mut session, &stop)?;
            session
        }
        None => {
            let inputs = traffic::Inputs::open(arguments)?;
            let mut session = session()?;
            traffic::record(arguments, inputs, &mut session, &stop)?;
            session
        }
    };
    session.finish()?;
    Ok(CommandOutcome::Done)
}

fn setup(arguments: &PlanRecordArguments) -> RecordingSetup {
    let place = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let of = |what: &str, path: &Path| format!("{what} {}", place(path).display());
    let source = match (&arguments.control, &arguments.dnstap, &arguments.pcap) {
        (Some(socket), ..) => of("control socket", socket),
        (_, Some(path), _) => of("dnstap", path),
        (.., Some(path)) if is_standard_stream(path) => "packets of standard input".to_owned(),
        (.., path) => of("packets of", path.as_deref().unwrap_or_else(|| Path::new(""))),
    };
    let verified_by = match (&arguments.control, &arguments.verified) {
        (Some(_), _) => VerificationSource::Counters,
        (None, Some(_)) => VerificationSource::Library,
        (None, None) => VerificationSource::Estimated,
    };
    let window = u64::from(arguments.window) * SECOND;
    RecordingSetup { name: arguments.name.clone(), source, verified_by, window }
}

/// The time of the system, in microseconds since 1970.
fn unix_micros() -> u64 {
    // A clock before 1970 would make all windows overlap, which the recording refuses.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}
