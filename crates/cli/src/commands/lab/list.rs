//! `nonesuch lab list`: the built-in experiments, and the other DNS servers that experiments and
//! tests can start.

use super::Failure;
use crate::arguments::LabListArguments;
use crate::files::print_line;
use crate::outcome::CommandOutcome;
use nonesuch_lab::experiment::{Definition, ParameterOverrides, built_in};
use nonesuch_lab::peers::Peer;
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn list(arguments: &LabListArguments) -> Result<CommandOutcome, Failure> {
    let short = built_in(ParameterOverrides::default())?;
    let full = built_in(ParameterOverrides { full: true, set: &[] })?;
    let experiments = || short.iter().zip(&full);
    if arguments.json {
        let experiments: Vec<Value> =
            experiments().map(|(short, full)| experiment_json(short, full)).collect();
        let peers: Vec<Value> = Peer::all().map(peer_json).collect();
        print_line(&json!({ "experiments": experiments, "peers": peers }).to_string())?;
        return Ok(CommandOutcome::Done);
    }
    for (short, full) in experiments() {
        let (default_duration, full_duration) =
            (duration_text(short.method.duration()), duration_text(full.method.duration()));
        print_line(&format!(
            "{}\n    {}\n    about {default_duration}; {full_duration} with --full",
            short.name, short.question
        ))?;
    }
    print_line("\nother DNS servers for comparison (docs/peers.md)")?;
    for peer in Peer::all() {
        print_line(&peer_text(peer))?;
    }
    Ok(CommandOutcome::Done)
}

fn experiment_json(short: &Definition, full: &Definition) -> Value {
    json!({
        "name": short.name,
        "title": short.title,
        "question": short.question,
        "method": short.method.name(),
        "seconds": short.method.duration().as_secs_f64(),
        "full_seconds": full.method.duration().as_secs_f64(),
    })
}

fn peer_json(peer: Peer) -> Value {
    let info = peer.info();
    json!({
        "name": info.name,
        "title": info.title,
        "role": info.role.name(),
        "programs": info.programs,
        "missing": peer.missing_programs(),
        "package": info.package,
        "version": peer.version(),
    })
}

/// The name, the role, and the version, or the missing programs.
fn peer_text(peer: Peer) -> String {
    let (info, missing) = (peer.info(), peer.missing_programs());
    let state = if missing.is_empty() {
        peer.version().unwrap_or_else(|| "unknown version".to_owned())
    } else {
        format!("missing: {}; package: {}", missing.join(", "), info.package)
    };
    format!("    {:18} {:14} {state}", info.name, info.role.name())
}

/// Formats a duration in seconds, minutes or hours.
fn duration_text(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
