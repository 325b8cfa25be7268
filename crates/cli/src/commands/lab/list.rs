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
    let default = built_in(ParameterOverrides::default())?;
    let full = built_in(ParameterOverrides { full: true, set: &[] })?;
    let experiments = || default.iter().zip(&full);
    if arguments.json {
        let experiments: Vec<Value> =
            experiments().map(|(default, full)| experiment_json(default, full)).collect();
        let peers: Vec<Value> = Peer::all().map(peer_json).collect();
        print_line(&json!({ "experiments": experiments, "peers": peers }).to_string())?;
        return Ok(CommandOutcome::Done);
    }
    for (default, full) in experiments() {
        let (default_duration, full_duration) =
            (duration_text(default.method.duration()), duration_text(full.method.duration()));
        print_line(&format!(
            "{}\n    {}\n    about {default_duration}; {full_duration} with --full",
            default.name, default.question
        ))?;
    }
    print_line("\nother DNS servers for comparison (docs/peers.md)")?;
    for peer in Peer::all() {
        print_line(&peer_text(peer))?;
    }
    Ok(CommandOutcome::Done)
}

fn experiment_json(default: &Definition, full: &Definition) -> Value {
    json!({
        "name": default.name,
        "title": default.title,
        "question": default.question,
        "method": default.method.name(),
        // Both durations are estimates.
        "seconds": default.method.duration().as_secs_f64(),
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

/// The name, the role, and either the version or the missing programs.
fn peer_text(peer: Peer) -> String {
    let (info, missing) = (peer.info(), peer.missing_programs());
    let state = if missing.is_empty() {
        peer.version().unwrap_or_else(|| "unknown version".to_owned())
    } else {
        format!("missing: {}; package: {}", missing.join(", "), info.package)
    };
    format!("    {:18} {:14} {state}", info.name, info.role.name())
}

/// Formats a duration in seconds, minutes or hours, rounded to the nearest.
fn duration_text(duration: Duration) -> String {
    let rounded = |unit: f64| (duration.as_secs_f64() / unit).round();
    let (seconds, minutes) = (rounded(1.0), rounded(60.0));
    if seconds < 120.0 {
        format!("{seconds} s")
    } else if minutes < 120.0 {
        format!("{minutes} min")
    } else {
        format!("{} h", rounded(3600.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_rounded_to_the_nearest_unit() {
        for (seconds, text) in [
            (0.4, "0 s"),
            (59.5, "60 s"),
            (119.4, "119 s"),
            (119.6, "2 min"),
            (179.0, "3 min"),
            (7169.0, "119 min"),
            (7199.0, "2 h"),
            (3.0 * 3600.0 + 59.0 * 60.0, "4 h"),
        ] {
            assert_eq!(duration_text(Duration::from_secs_f64(seconds)), text, "{seconds}");
        }
    }
}
