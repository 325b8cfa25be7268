//! `nonesuch ctl`: sends requests to a running server over its control socket.

mod error;
mod export;
mod resolver;
mod zones;

pub(crate) use error::Failure;

use crate::arguments::{
    ControlArguments, ControlCommand, ControlZoneCommand, DEFAULT_CONFIGURATION, DEFAULT_SOCKET,
};
use crate::config;
use crate::control_protocol::{
    Activity, Line, PurgeResult, RefreshFailure, RefusedConfiguration, ReloadResult, Request, ResolverStatus,
    ServerStatus, TransferIn, TransferOut, ZoneAdded, ZoneNotified, ZoneReloaded, ZoneReport, addresses_text,
    parse_response,
};
use crate::files::{FileError, count_text, print_line, print_summary, print_to_stderr};
use crate::outcome::CommandOutcome;
use nonesuch_authoritative::service::ReloadReport;
use nonesuch_proto::Name;
use resolver::{
    negative_anchor_request, print_negative_anchors, print_resolver_reload, print_resolver_status,
};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use zones::print_zones;

/// Maximum length of a response other than an export, in octets; enough for one line for each of
/// several hundred thousand zones.
const MAX_RESPONSE_OCTETS: u64 = 1 << 30;
/// Maximum number of response lines that wait to be processed.
const MAX_QUEUED_LINES: usize = 16;

pub(crate) fn run(arguments: &ControlArguments) -> Result<CommandOutcome, Failure> {
    let socket = find_socket(arguments)?;
    if let ControlCommand::Zone(ControlZoneCommand::Export { zone, file }) = &arguments.command {
        return export::run(arguments, &socket, zone, file.as_deref());
    }
    let timeout = Duration::from_secs(arguments.timeout);
    let Response { zones, last_line } = request_all(&socket, &to_request(&arguments.command), timeout)?;
    let result = match last_line {
        Some(Line::Done(result)) => result,
        Some(Line::Error(error)) => return print_refusal(arguments, &error),
        _ => return Err(Failure::ConnectionClosed { path: socket }),
    };
    let command = &arguments.command;
    if arguments.json {
        let is_list = matches!(
            command,
            ControlCommand::Zone(ControlZoneCommand::Status { .. })
                | ControlCommand::Status { zone: Some(_) }
        );
        let output = if is_list { Value::Array(zones) } else { result.clone() };
        print_line(&output.to_string())?;
        return Ok(outcome_of(command, &result));
    }
    print_as_text(command, &zones, &result).ok_or(Failure::UnexpectedResponse { path: socket })??;
    Ok(outcome_of(command, &result))
}

/// Prints the response as text: `zones` are its zone statuses, and `result` is its last line.
/// Returns `None` if the response has another form than the command requires.
fn print_as_text(command: &ControlCommand, zones: &[Value], result: &Value) -> Option<Result<(), FileError>> {
    Some(match command {
        ControlCommand::Status { zone: None } => match parse_response(result) {
            Some(status) => print_status(&status),
            None => print_resolver_status(&parse_response(result)?),
        },
        ControlCommand::Status { zone: Some(_) } => print_zones(&parse_zone_reports(zones)?, true),
        ControlCommand::Zone(ControlZoneCommand::Status { zone }) => {
            print_zones(&parse_zone_reports(zones)?, zone.is_some())
        }
        ControlCommand::Reload { zone: None } => match parse_response(result) {
            Some(reloaded) => print_reload(&reloaded),
            None => print_resolver_reload(&parse_response(result)?),
        },
        ControlCommand::Reload { zone: Some(zone) } => print_zone_reload(zone, &parse_response(result)?),
        ControlCommand::Zone(
            ControlZoneCommand::Refresh { zone } | ControlZoneCommand::Retransfer { zone },
        ) => print_summary(&format!("zone {zone}: contacting its primaries")),
        ControlCommand::Zone(ControlZoneCommand::Notify { zone }) => {
            let ZoneNotified { serial, servers, .. } = parse_response(result)?;
            let (serial, servers) = (serial.unwrap_or_default(), short_list(&servers));
            print_summary(&format!("zone {zone}: sending NOTIFY with serial {serial} to {servers}"))
        }
        ControlCommand::Zone(ControlZoneCommand::Add { zone, .. }) => {
            print_added(zone, &parse_response(result)?)
        }
        ControlCommand::Zone(ControlZoneCommand::Remove { zone }) => {
            print_summary(&format!("zone {zone}: removed"))
        }
        ControlCommand::Zone(ControlZoneCommand::Purge { zone }) => {
            print_summary(&format!("zone {zone}: stored files removed"))
        }
        // The module `export` handles this response.
        ControlCommand::Zone(ControlZoneCommand::Export { .. }) => Ok(()),
        ControlCommand::NegativeAnchor(command) => print_negative_anchors(command, result)?,
        ControlCommand::Purge => print_purge(&parse_response(result)?),
        ControlCommand::Stop => print_summary("the server is stopping"),
    })
}

fn parse_zone_reports(zones: &[Value]) -> Option<Vec<ZoneReport>> {
    zones.iter().map(parse_response).collect()
}

/// The outcome is negative if a reload rejected zones, or if an added zone cannot be loaded.
fn outcome_of(command: &ControlCommand, result: &Value) -> CommandOutcome {
    let is_negative = match command {
        ControlCommand::Reload { zone: None } => {
            parse_response(result).is_some_and(|reloaded: ReloadResult| !reloaded.report.refused.is_empty())
        }
        ControlCommand::Zone(ControlZoneCommand::Add { .. }) => {
            parse_response(result).is_some_and(|added: ZoneAdded| added.error.is_some())
        }
        _ => false,
    };
    if is_negative { CommandOutcome::Negative } else { CommandOutcome::Done }
}

/// Prints the error that the server returned. The outcome is negative.
fn print_refusal(arguments: &ControlArguments, error: &str) -> Result<CommandOutcome, Failure> {
    if arguments.json {
        print_line(&json!({ "error": error }).to_string())?;
    } else {
        print_to_stderr(&format!("nonesuch: error: {error}"));
    }
    Ok(CommandOutcome::Negative)
}

/// The path of the control socket: from `--socket`, from the configuration that `--config` names,
/// or from the default configuration; otherwise the default path.
fn find_socket(arguments: &ControlArguments) -> Result<PathBuf, Failure> {
    if let Some(socket) = &arguments.socket {
        return Ok(socket.clone());
    }
    if let Some(path) = &arguments.config {
        let socket = config::find_control_socket(path)?;
        return socket.ok_or_else(|| Failure::NoControlSocket { path: path.clone() });
    }
    // A user of the socket may lack permission to read the configuration.
    let socket = config::find_control_socket(Path::new(DEFAULT_CONFIGURATION)).ok().flatten();
    Ok(socket.unwrap_or_else(|| PathBuf::from(DEFAULT_SOCKET)))
}

fn to_request(command: &ControlCommand) -> Request {
    use ControlZoneCommand as OfZone;
    let name = |zone: &Name| zone.to_string();
    match command {
        ControlCommand::Status { zone: None } => Request::Status {},
        ControlCommand::Status { zone: Some(zone) } => Request::ZoneStatus { zone: Some(name(zone)) },
        ControlCommand::Reload { zone } => Request::Reload { zone: zone.as_ref().map(name) },
        ControlCommand::Zone(OfZone::Status { zone }) => {
            Request::ZoneStatus { zone: zone.as_ref().map(name) }
        }
        ControlCommand::Zone(OfZone::Refresh { zone }) => Request::ZoneRefresh { zone: name(zone) },
        ControlCommand::Zone(OfZone::Retransfer { zone }) => Request::ZoneRetransfer { zone: name(zone) },
        ControlCommand::Zone(OfZone::Notify { zone }) => Request::ZoneNotify { zone: name(zone) },
        ControlCommand::Zone(OfZone::Add { zone, settings }) => {
            Request::ZoneAdd { zone: name(zone), settings: settings.iter().cloned().collect() }
        }
        ControlCommand::Zone(OfZone::Remove { zone }) => Request::ZoneRemove { zone: name(zone) },
        ControlCommand::Zone(OfZone::Purge { zone }) => Request::ZonePurge { zone: name(zone) },
        ControlCommand::Zone(OfZone::Export { zone, .. }) => Request::ZoneExport { zone: name(zone) },
        ControlCommand::NegativeAnchor(command) => negative_anchor_request(command),
        ControlCommand::Purge => Request::Purge {},
        ControlCommand::Stop => Request::Stop {},
    }
}

/// The response of a server.
#[derive(Default)]
struct Response {
    /// The zone statuses.
    zones: Vec<Value>,
    /// [`Line::Done`] or [`Line::Error`]; `None` if the response is incomplete.
    last_line: Option<Line>,
}

/// Sends a request and returns the response without progress lines.
fn request_all(socket: &Path, request: &Request, timeout: Duration) -> Result<Response, Failure> {
    let mut response = Response::default();
    request_each_line(socket, request, ResponseLimits { timeout, octets: MAX_RESPONSE_OCTETS }, |line| {
        match line {
            Line::Zone(zone) => response.zones.push(zone),
            Line::Text(_) | Line::Working(_) => {}
            Line::Done(_) | Line::Error(_) => response.last_line = Some(line),
        }
        Ok(())
    })?;
    Ok(response)
}

/// Returns the status of a resolver.
///
/// # Errors
/// Fails if the resolver does not respond, or if the response is not that of a resolver.
pub(crate) fn resolver_status(socket: &Path, timeout: Duration) -> Result<ResolverStatus, Failure> {
    let unexpected = || Failure::UnexpectedResponse { path: socket.to_path_buf() };
    match request_all(socket, &Request::Status {}, timeout)?.last_line {
        Some(Line::Done(status)) => parse_response(&status).ok_or_else(unexpected),
        Some(Line::Error(_)) => Err(unexpected()),
        _ => Err(Failure::ConnectionClosed { path: socket.to_path_buf() }),
    }
}

/// Limits of a response.
#[derive(Clone, Copy)]
struct ResponseLimits {
    /// Maximum time between two lines.
    timeout: Duration,
    /// Maximum length of the response, in octets.
    octets: u64,
}

/// Sends a request and calls `process_line` for each line of the response except progress lines.
/// Each line, including progress lines, restarts the timeout.
fn request_each_line(
    socket: &Path,
    request: &Request,
    ResponseLimits { timeout, octets }: ResponseLimits,
    mut process_line: impl FnMut(Line) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (sender, receiver) = mpsc::sync_channel(MAX_QUEUED_LINES);
    // A request contains only names and configuration values, so serialization does not fail.
    let text = serde_json::to_string(request).unwrap_or_default() + "\n";
    let path = socket.to_path_buf();
    // A separate thread, because connect(2) could block longer than the timeout if the server does
    // not accept the connection.
    let exchange_lines = move || {
        let outcome = exchange(&path, &text, octets, &sender);
        // Fails only if the receiver has timed out.
        let _ = sender.send(outcome.map_or_else(|failure| Err(Box::new(failure)), |()| Ok(None)));
    };
    std::thread::Builder::new().spawn(exchange_lines).map_err(Failure::Thread)?;
    loop {
        match receiver.recv_timeout(timeout) {
            Ok(Ok(Some(Line::Working(_)))) => {}
            Ok(Ok(Some(line))) => process_line(line)?,
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(failure)) => return Err(*failure),
            Err(_) => {
                let seconds = timeout.as_secs();
                return Err(Failure::Timeout { path: socket.to_path_buf(), seconds });
            }
        }
    }
}

/// A line of a response; `None` for its end, and an error if it ends early.
type LineResult = Result<Option<Line>, Box<Failure>>;

/// Sends `request` and passes each line of the response to `line_sender`. A response of more than
/// `max_octets` octets is an error.
fn exchange(
    socket: &Path,
    request: &str,
    max_octets: u64,
    line_sender: &mpsc::SyncSender<LineResult>,
) -> Result<(), Failure> {
    let unreachable = |source| Failure::Unreachable { path: socket.to_path_buf(), source };
    let mut stream = UnixStream::connect(socket).map_err(unreachable)?;
    // A write error is reported later, because the server may have sent the reason before it closed
    // the connection.
    let written = stream.write_all(request.as_bytes());
    let mut stream = BufReader::new(stream.take(max_octets));
    loop {
        let mut line = Vec::new();
        if let Err(source) = stream.read_until(b'\n', &mut line) {
            return Err(unreachable(written.err().unwrap_or(source)));
        }
        match line.last() {
            Some(b'\n') => {}
            // A line without a line end may be incomplete.
            Some(_) => return Err(Failure::ConnectionClosed { path: socket.to_path_buf() }),
            None => return written.map_err(unreachable),
        }
        let line = serde_json::from_slice::<Line>(&line);
        let line = line.map_err(|_| Failure::UnexpectedResponse { path: socket.to_path_buf() })?;
        let is_last = matches!(line, Line::Done(_) | Line::Error(_));
        // Sending fails only if the receiver has ended.
        if line_sender.send(Ok(Some(line))).is_err() || is_last {
            return Ok(());
        }
    }
}

/// Maximum number of list items in text output.
const MAX_LISTED_ITEMS: usize = 20;

/// The list as text. If it has more than [`MAX_LISTED_ITEMS`] items, the text has the first items
/// and the number of the others.
fn short_list(items: &[String]) -> String {
    match items.split_at_checked(MAX_LISTED_ITEMS) {
        Some((first, rest)) if !rest.is_empty() => format!("{} and {} more", first.join(", "), rest.len()),
        _ => items.join(", "),
    }
}

fn print_status(status: &ServerStatus) -> Result<(), FileError> {
    let service = &status.service;
    let mut lines = vec![
        process_line(&status.version, status.pid, status.up_seconds),
        format!("listening on {}", addresses_text(&status.listen, &status.listen_tls)),
        format!(
            "zones: {} served, {} waiting, {} expired, {} failed",
            service.serving, service.not_ready, service.expired, service.failed
        ),
        format!("datagrams: {} in, {} out", status.datagrams_in, status.datagrams_out),
    ];
    if !service.troubled.is_empty() {
        let troubled = short_list(&service.troubled);
        lines.push(format!(
            "zones with problems: {troubled} (`nonesuch ctl zone status ZONE` shows the \
            reason)"
        ));
    }
    let failures = &status.refresh_failures;
    lines.extend(failures.zones.iter().map(refresh_failure_line));
    let more = failures.count.saturating_sub(failures.zones.len());
    if more > 0 {
        lines.push(format!("refresh failing: {} more", count_text(more, "zone")));
    }
    lines.extend(refused_configuration_lines(status.refused_configuration.as_ref()));
    lines.extend(restart_line(&status.needs_restart));
    lines.extend(service.activities.iter().map(activity_line));
    let transfer_line = |direction: &str, zone: &str, peer: &str, records: u64, octets: u64| {
        let (records, octets) = (count_text(records, "record"), count_text(octets, "octet"));
        format!("{direction}: {zone} with {peer}: {records}, {octets}")
    };
    for TransferIn { zone, primary, records, octets, .. } in &status.transfers_in {
        lines.push(transfer_line("transfer in", zone, primary, *records, *octets));
    }
    for TransferOut { zone, client, records, octets, .. } in &status.transfers_out {
        lines.push(transfer_line("transfer out", zone, client, *records, *octets));
    }
    if let Some(reload) = &service.last_reload {
        lines.push(format!("last reload at {}: {}", format_time(reload.at), reload_text(reload)));
    }
    lines.iter().try_for_each(|line| print_line(line))
}

/// The line about settings that take effect at the next start; `None` without such settings.
fn restart_line(settings: &[String]) -> Option<String> {
    let is_needed = !settings.is_empty();
    is_needed
        .then(|| format!("configuration: restart the server to apply the changes of {}", settings.join(", ")))
}

fn activity_line(activity: &Activity) -> String {
    let Activity { kind, zone, phase, done, total, seconds } = activity;
    let zone = zone.as_ref().map_or_else(String::new, |zone| format!(" {zone}"));
    let progress = if *total > 0 { format!(", {done} of {total}") } else { String::new() };
    format!("{kind}{zone}: {phase}{progress}, for {seconds:.1} s")
}

fn reload_text(reload: &ReloadReport) -> String {
    format!(
        "{} added, {} removed, {} updated, {} rejected, {} unchanged, in {:.2} s",
        reload.added.len(),
        reload.removed.len(),
        reload.updated.len(),
        reload.refused.len(),
        reload.unchanged,
        reload.seconds
    )
}

fn process_line(version: &str, pid: u32, up_seconds: u64) -> String {
    format!("nonesuch {version}, process {pid}, up {}", format_duration(up_seconds))
}

fn refused_configuration_lines(refused: Option<&RefusedConfiguration>) -> Vec<String> {
    let Some(RefusedConfiguration { at, problems }) = refused else { return Vec::new() };
    let first =
        format!("configuration of {}: rejected, keeping the previous configuration:", format_time(*at));
    [first].into_iter().chain(problems.lines().map(|problem| format!("  {problem}"))).collect()
}

fn print_reload(ReloadResult { report, needs_restart }: &ReloadResult) -> Result<(), FileError> {
    print_summary(&format!("reload: {}", reload_text(report)))?;
    for (zone, reason) in &report.refused {
        print_line(&format!("rejected: zone {zone}: {reason}"))?;
    }
    for (zone, warning) in &report.warnings {
        print_line(&format!("warning: zone {zone}: {warning}"))?;
    }
    restart_line(needs_restart).map_or(Ok(()), |line| print_line(&line))
}

fn print_zone_reload(zone: &Name, reloaded: &ZoneReloaded) -> Result<(), FileError> {
    let (text, warnings) = match reloaded {
        ZoneReloaded::RefreshStarted(_) => ("contacting its primaries", &[][..]),
        ZoneReloaded::Loaded { updated: true, warnings, .. } => ("loaded and served", &warnings[..]),
        ZoneReloaded::Loaded { warnings, .. } => ("unchanged", &warnings[..]),
    };
    print_summary(&format!("zone {zone}: {text}"))?;
    print_warnings(zone, warnings)
}

fn print_warnings(zone: &Name, warnings: &[String]) -> Result<(), FileError> {
    warnings.iter().try_for_each(|warning| print_line(&format!("warning: zone {zone}: {warning}")))
}

fn print_added(zone: &Name, added: &ZoneAdded) -> Result<(), FileError> {
    match (&added.error, added.serial) {
        (Some(error), _) => print_line(&format!("zone {zone}: added, but cannot be loaded: {error}"))?,
        (None, Some(serial)) => print_summary(&format!("zone {zone}: added, serial {serial}"))?,
        (None, None) => print_summary(&format!("zone {zone}: added, waiting for its first transfer"))?,
    }
    print_warnings(zone, &added.warnings)
}

fn print_purge(PurgeResult { purged }: &PurgeResult) -> Result<(), FileError> {
    print_summary(&match purged.len() {
        0 => "no stored files of zones that are not configured".to_owned(),
        count => format!("stored files removed of {}: {}", count_text(count, "zone"), purged.join(", ")),
    })
}

/// A zone with failing refreshes, in one line.
fn refresh_failure_line(failure: &RefreshFailure) -> String {
    let RefreshFailure { zone, state, primary, since, error, next_refresh, expires } = failure;
    let mut text = format!("refresh failing: {zone} is {}", state.as_str());
    if let (Some(primary), Some(since)) = (primary, since) {
        text.push_str(&format!(", primary {primary} failing since {}", format_time(*since)));
    }
    for (at, what) in [(next_refresh, "next attempt"), (expires, "expires")] {
        if let Some(at) = at {
            text.push_str(&format!(", {what} {}", format_time(*at)));
        }
    }
    error.as_ref().map_or_else(|| text.clone(), |error| format!("{text}: {error}"))
}

/// Formats a time in seconds since 1970.
fn format_time(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| seconds.to_string(), |time| time.to_string())
}

/// Formats a duration in its two largest units.
fn format_duration(seconds: u64) -> String {
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
    fn long_lists_are_shortened() {
        let names =
            |count: usize| -> Vec<String> { (0..count).map(|number| format!("z{number}.")).collect() };
        assert_eq!(short_list(&names(0)), "");
        assert_eq!(short_list(&names(2)), "z0., z1.");
        assert!(short_list(&names(MAX_LISTED_ITEMS)).ends_with(", z19."));
        assert!(short_list(&names(MAX_LISTED_ITEMS + 1000)).ends_with(", z19. and 1000 more"));
    }
}
