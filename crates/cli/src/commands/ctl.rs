//! `nonesuch ctl`: asks a running server over its control socket.

mod export;

use super::serve_control::SIGN_OF_LIFE;
use super::serve_words::address_words;
use crate::Outcome;
use crate::arguments::{CONFIGURATION, ControlArguments, ControlCommand, ControlZoneCommand, SOCKET};
use crate::config;
use crate::error::Failure;
use crate::files::{counted, print_line, say};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

/// Octets of an answer: a line for each of some hundred thousand zones.
const ANSWER_OCTETS: u64 = 1 << 30;
/// Lines of an answer that wait to be taken.
const LINES_AHEAD: usize = 16;

pub(crate) fn run(arguments: &ControlArguments) -> Result<Outcome, Failure> {
    let socket = find_socket(arguments)?;
    if let ControlCommand::Zone(ControlZoneCommand::Export { zone, file }) = &arguments.command {
        return export::run(arguments, &socket, zone, file.as_deref());
    }
    let mut lines = ask(&socket, &request(&arguments.command), Duration::from_secs(arguments.timeout))?;
    let last = lines.pop().ok_or_else(|| Failure::ControlEnded { path: socket.clone() })?;
    if let Some(error) = last.get("error") {
        return fail(arguments, error);
    }
    let Some(done) = last.get("done") else { return Err(Failure::ControlAnswer { path: socket }) };
    if arguments.json {
        let is_list = matches!(arguments.command, ControlCommand::Zone(ControlZoneCommand::Status { .. }));
        let shown = if is_list { Value::Array(lines) } else { done.clone() };
        print_line(&shown.to_string())?;
        return Ok(outcome_of(done));
    }
    match &arguments.command {
        ControlCommand::Status => print_status(done)?,
        ControlCommand::Reload { zone: None } => return print_reload(done),
        ControlCommand::Reload { zone: Some(zone) } => {
            let words = match (done["updated"].as_bool(), done["asked"].as_bool()) {
                (_, Some(true)) => "its primaries are asked",
                (Some(true), _) => "loaded and served",
                _ => "unchanged",
            };
            print_line(&format!("zone {zone}: {words}"))?;
            for warning in done["warnings"].as_array().into_iter().flatten() {
                print_line(&format!("warning: zone {zone}: {}", warning.as_str().unwrap_or("?")))?;
            }
        }
        ControlCommand::Zone(ControlZoneCommand::Status { zone }) => print_zones(&lines, zone.is_some())?,
        ControlCommand::Zone(
            ControlZoneCommand::Refresh { zone } | ControlZoneCommand::Retransfer { zone },
        ) => {
            print_line(&format!("zone {zone}: its primaries are asked"))?;
        }
        ControlCommand::Zone(ControlZoneCommand::Purge { zone }) => {
            print_line(&format!("zone {zone}: what was kept of it is removed"))?;
        }
        // That is another way of answering.
        ControlCommand::Zone(ControlZoneCommand::Export { .. }) => {}
        ControlCommand::Purge => print_purge(done)?,
        ControlCommand::Stop => print_line("the server stops")?,
    }
    Ok(Outcome::Done)
}

/// A reload with zones that were refused is an answer "no".
fn outcome_of(done: &Value) -> Outcome {
    let is_refused = done["refused"].as_array().is_some_and(|refused| !refused.is_empty());
    if is_refused { Outcome::No } else { Outcome::Done }
}

fn fail(arguments: &ControlArguments, error: &Value) -> Result<Outcome, Failure> {
    if arguments.json {
        print_line(&json!({ "error": error }).to_string())?;
    } else {
        say(&format!("nonesuch: error: {}", error.as_str().unwrap_or("the server gives no reason")));
    }
    Ok(Outcome::No)
}

fn find_socket(arguments: &ControlArguments) -> Result<PathBuf, Failure> {
    if let Some(socket) = &arguments.socket {
        return Ok(socket.clone());
    }
    if let Some(path) = &arguments.config {
        let socket = config::find_control_socket(path)?;
        return socket.ok_or_else(|| Failure::NoControlSocket { path: path.clone() });
    }
    // Who may use the socket need not be let read the configuration.
    let socket = config::find_control_socket(Path::new(CONFIGURATION)).ok().flatten();
    Ok(socket.unwrap_or_else(|| PathBuf::from(SOCKET)))
}

fn request(command: &ControlCommand) -> Value {
    let of_zone =
        |command: &str, zone: &nonesuch_proto::Name| json!({ "command": command, "zone": zone.to_string() });
    match command {
        ControlCommand::Status => json!({ "command": "status" }),
        ControlCommand::Reload { zone: None } => json!({ "command": "reload" }),
        ControlCommand::Reload { zone: Some(zone) } => of_zone("reload", zone),
        ControlCommand::Zone(ControlZoneCommand::Status { zone: None }) => {
            json!({ "command": "zone-status" })
        }
        ControlCommand::Zone(ControlZoneCommand::Status { zone: Some(zone) }) => of_zone("zone-status", zone),
        ControlCommand::Zone(ControlZoneCommand::Refresh { zone }) => of_zone("zone-refresh", zone),
        ControlCommand::Zone(ControlZoneCommand::Retransfer { zone }) => of_zone("zone-retransfer", zone),
        ControlCommand::Zone(ControlZoneCommand::Purge { zone }) => of_zone("zone-purge", zone),
        ControlCommand::Zone(ControlZoneCommand::Export { zone, .. }) => of_zone("zone-export", zone),
        ControlCommand::Purge => json!({ "command": "purge" }),
        ControlCommand::Stop => json!({ "command": "stop" }),
    }
}

/// Sends a request; returns the lines of the answer.
fn ask(socket: &Path, request: &Value, patience: Duration) -> Result<Vec<Value>, Failure> {
    let mut lines = Vec::new();
    ask_each(socket, request, (patience, ANSWER_OCTETS), |line| {
        lines.push(line);
        Ok(())
    })?;
    Ok(lines)
}

/// Sends a request, and has `take` each line of the answer, which has `most` octets. It waits as long as signs of life come, with
/// at most `patience` between.
fn ask_each(
    socket: &Path,
    request: &Value,
    (patience, most): (Duration, u64),
    mut take: impl FnMut(Value) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (sender, receiver) = mpsc::sync_channel(LINES_AHEAD);
    let (path, text) = (socket.to_path_buf(), format!("{request}\n"));
    // A thread of its own: to connect takes for ever where the server accepts nobody.
    let body = move || {
        let outcome = converse(&path, &text, most, &sender);
        // Nobody waits any longer.
        let _ = sender.send(outcome.map_or_else(|failure| Err(Box::new(failure)), |()| Ok(None)));
    };
    std::thread::Builder::new().spawn(body).map_err(Failure::Thread)?;
    loop {
        match receiver.recv_timeout(patience) {
            Ok(Ok(Some(line))) if line.get(SIGN_OF_LIFE).is_some() => {}
            Ok(Ok(Some(line))) => take(line)?,
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(failure)) => return Err(*failure),
            Err(_) => {
                let seconds = patience.as_secs();
                return Err(Failure::ControlSilent { path: socket.to_path_buf(), seconds });
            }
        }
    }
}

/// One line of an answer; `None` at its end.
type Line = Result<Option<Value>, Box<Failure>>;

fn converse(socket: &Path, request: &str, most: u64, lines: &mpsc::SyncSender<Line>) -> Result<(), Failure> {
    let failed = |source| Failure::Control { path: socket.to_path_buf(), source };
    let mut stream = UnixStream::connect(socket).map_err(failed)?;
    // Where the server takes no request, it may have said why.
    let written = stream.write_all(request.as_bytes());
    let mut stream = BufReader::new(stream.take(most));
    loop {
        let mut line = Vec::new();
        if let Err(source) = stream.read_until(b'\n', &mut line) {
            return Err(failed(written.err().unwrap_or(source)));
        }
        match line.last() {
            Some(b'\n') => {}
            // Without its end it may be anything.
            Some(_) => return Err(Failure::ControlEnded { path: socket.to_path_buf() }),
            None => return written.map_err(failed),
        }
        let value = serde_json::from_slice::<Value>(&line);
        let value = value.map_err(|_| Failure::ControlAnswer { path: socket.to_path_buf() })?;
        // The status of a zone has its error.
        let is_refusal = value.get("error").is_some() && value.get("zone").is_none();
        let is_last = is_refusal || value.get("done").is_some();
        if lines.send(Ok(Some(value))).is_err() || is_last {
            return Ok(());
        }
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn list(value: &Value) -> String {
    let items = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    items.collect::<Vec<_>>().join(", ")
}

/// So many of a list are named to a person.
const NAMED: usize = 20;

/// As [`list`]; of long lists the beginning, and how many more there are.
fn short_list(value: &Value) -> String {
    let count = value.as_array().map_or(0, Vec::len);
    if count <= NAMED {
        return list(value);
    }
    let first: Vec<Value> = value.as_array().into_iter().flatten().take(NAMED).cloned().collect();
    format!("{} and {} more", list(&Value::from(first)), count - NAMED)
}

fn print_status(status: &Value) -> Result<(), Failure> {
    let mut lines = vec![
        format!(
            "nonesuch {}, process {}, up {}",
            status["version"].as_str().unwrap_or("?"),
            status["pid"],
            duration(number(&status["up_seconds"]))
        ),
        format!("listening on {}", address_words(status)),
        format!(
            "zones: {} served, {} waiting, {} expired, {} failed",
            status["serving"], status["not_ready"], status["expired"], status["failed"]
        ),
        format!("datagrams: {} in, {} out", status["datagrams_in"], status["datagrams_out"]),
    ];
    let troubled = short_list(&status["troubled"]);
    if !troubled.is_empty() {
        lines.push(format!("look at: {troubled} (`nonesuch ctl zone status ZONE` says why)"));
    }
    if let Some(refused) = status.get("refused_configuration").filter(|refused| !refused.is_null()) {
        lines.push(format!("configuration of {} refused, the one of before stays:", time(&refused["at"])));
        let problems = refused["problems"].as_str().unwrap_or("?").lines();
        lines.extend(problems.map(|problem| format!("  {problem}")));
    }
    let restart = list(&status["needs_restart"]);
    if !restart.is_empty() {
        lines.push(format!("to take effect, these need a new start: {restart}"));
    }
    for activity in status["activities"].as_array().into_iter().flatten() {
        lines.push(activity_line(activity));
    }
    for (key, words) in [("transfers_in", "transfer in"), ("transfers_out", "transfer out")] {
        for transfer in status[key].as_array().into_iter().flatten() {
            let peer = transfer["primary"].as_str().or_else(|| transfer["client"].as_str()).unwrap_or("?");
            lines.push(format!(
                "{words}: {} with {peer}: {}, {}",
                transfer["zone"].as_str().unwrap_or("?"),
                counted(transfer["records"].as_u64().unwrap_or_default(), "record"),
                counted(transfer["octets"].as_u64().unwrap_or_default(), "octet"),
            ));
        }
    }
    if let Some(reload) = status.get("last_reload").filter(|reload| !reload.is_null()) {
        lines.push(format!("last reload at {}: {}", time(&reload["at"]), reload_words(reload)));
    }
    lines.iter().try_for_each(|line| print_line(line))
}

fn activity_line(activity: &Value) -> String {
    let zone = activity["zone"].as_str().map_or_else(String::new, |zone| format!(" {zone}"));
    let (done, total) = (number(&activity["done"]), number(&activity["total"]));
    let progress = if total > 0 { format!(", {done} of {total}") } else { String::new() };
    let seconds = activity["seconds"].as_f64().unwrap_or(0.0);
    format!(
        "{}{zone}: {}{progress}, since {seconds:.1} s",
        activity["kind"].as_str().unwrap_or("?"),
        activity["phase"].as_str().unwrap_or("?")
    )
}

fn reload_words(reload: &Value) -> String {
    let count = |key: &str| reload[key].as_array().map_or(0, Vec::len);
    format!(
        "{} added, {} removed, {} updated, {} refused, {} unchanged, in {:.2} s",
        count("added"),
        count("removed"),
        count("updated"),
        count("refused"),
        reload["unchanged"],
        reload["seconds"].as_f64().unwrap_or(0.0)
    )
}

fn print_reload(reload: &Value) -> Result<Outcome, Failure> {
    print_line(&format!("reload: {}", reload_words(reload)))?;
    for refused in reload["refused"].as_array().into_iter().flatten() {
        let text = |index: usize| refused[index].as_str().unwrap_or("?").to_owned();
        print_line(&format!("refused: zone {}: {}", text(0), text(1)))?;
    }
    for warning in reload["warnings"].as_array().into_iter().flatten() {
        let text = |index: usize| warning[index].as_str().unwrap_or("?").to_owned();
        print_line(&format!("warning: zone {}: {}", text(0), text(1)))?;
    }
    let restart = list(&reload["needs_restart"]);
    if !restart.is_empty() {
        print_line(&format!("to take effect, these need a new start: {restart}"))?;
    }
    Ok(outcome_of(reload))
}

fn print_purge(done: &Value) -> Result<(), Failure> {
    let purged = list(&done["purged"]);
    let count = done["purged"].as_array().map_or(0, Vec::len);
    print_line(&match count {
        0 => "nothing is kept but of zones that are there".to_owned(),
        count => format!("removed what was kept of {}: {purged}", counted(count, "zone")),
    })
}

fn print_zones(zones: &[Value], in_full: bool) -> Result<(), Failure> {
    if in_full {
        return zones.iter().try_for_each(print_zone);
    }
    let rows: Vec<[String; 6]> = zones
        .iter()
        .map(|zone| {
            let text = |key: &str| zone[key].as_str().unwrap_or("-").to_owned();
            let serial = zone["serial"].as_u64().map_or_else(|| "-".to_owned(), |serial| serial.to_string());
            let expires = zone.get("nearest_expiration").filter(|time| !time.is_null());
            [
                text("zone"),
                text("state"),
                serial,
                expires.map_or_else(|| "-".to_owned(), time),
                text("served"),
                remarks(zone),
            ]
        })
        .collect();
    let mut head = ["zone", "state", "serial", "signatures expire", "served", ""].map(str::to_owned);
    if rows.iter().any(|row| !row[5].is_empty()) {
        head[5].push_str("look at");
    }
    let mut widths = [0; 6];
    for row in std::iter::once(&head).chain(&rows) {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = (*width).max(cell.chars().count()));
    }
    for row in std::iter::once(&head).chain(&rows) {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        print_line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// What is to be looked at of a zone, in a few words.
fn remarks(zone: &Value) -> String {
    let has = |key: &str| zone.get(key).is_some_and(|value| !value.is_null());
    let mut words = Vec::new();
    if has("error") {
        words.push("refused");
    }
    if zone["expires_soon"] == true {
        let now = jiff::Timestamp::now().as_second();
        let is_over = zone["nearest_expiration"].as_i64().is_some_and(|end| end <= now);
        words.push(if is_over { "signatures expired" } else { "signatures expire soon" });
    }
    if has("storage_error") {
        words.push("not stored");
    }
    if has("transfer_error") {
        words.push("transfer error");
    }
    if zone["behind"].as_array().is_some_and(|behind| !behind.is_empty()) {
        words.push("primary behind");
    }
    words.join(", ")
}

fn print_zone(zone: &Value) -> Result<(), Failure> {
    let times = ["nearest_expiration", "loaded_at", "refreshed", "next_refresh", "expires"];
    let order = [
        "zone",
        "state",
        "serial",
        "served",
        "source",
        "catalog",
        "template",
        "records",
        "signatures",
        "verified",
        "nearest_expiration",
        "loaded_at",
        "image_octets",
        "primary",
        "refreshed",
        "next_refresh",
        "expires",
        "error",
        "storage_error",
        "warnings",
        "transfer_error",
        "rejected_serial",
        "behind",
    ];
    for key in order {
        let Some(value) = zone.get(key).filter(|value| !value.is_null()) else { continue };
        if let Value::Array(lines) = value {
            for line in lines {
                print_line(&format!("{:19} {}", key.replace('_', " "), line.as_str().unwrap_or("?")))?;
            }
            continue;
        }
        let text = match value {
            value if times.contains(&key) => time(value),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        print_line(&format!("{:19} {text}", key.replace('_', " ")))?;
    }
    Ok(())
}

/// A time in seconds since 1970.
fn time(value: &Value) -> String {
    let seconds = value.as_i64().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    seconds.map_or_else(|| value.to_string(), |time| time.to_string())
}

fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_short() {
        let names = |count: usize| -> Value { (0..count).map(|number| format!("z{number}.")).collect() };
        assert_eq!(short_list(&names(0)), "");
        assert_eq!(short_list(&names(2)), "z0., z1.");
        assert!(short_list(&names(NAMED)).ends_with(", z19."));
        assert!(short_list(&names(NAMED + 1000)).ends_with(", z19. and 1000 more"));
    }
}
