//! `nonesuch ctl zone export`: writes a zone of a running server to a zone file while the server
//! sends it.

use super::error::Failure;
use super::{ResponseLimits, fail, request_each_line, to_request};
use crate::arguments::ControlArguments;
use crate::control_protocol::{Line, ZoneExported, parse_response};
use crate::files::{
    is_standard_stream, print_line, print_summary, write_failure, write_new_file, write_output,
};
use crate::outcome::CommandOutcome;
use nonesuch_proto::Name;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// The last line of the response.
enum End {
    /// The zone is complete.
    Done(Value),
    /// The server does not export the zone, with the reason.
    Refused(String),
}

pub(super) fn run(
    arguments: &ControlArguments,
    socket: &Path,
    zone: &Name,
    file: Option<&Path>,
) -> Result<CommandOutcome, Failure> {
    let file = file.filter(|file| !is_standard_stream(file));
    let mut end = None;
    let output = file.unwrap_or_else(|| Path::new("-"));
    let write = |out: &mut dyn Write| {
        end = Some(copy(arguments, socket, output, out)?);
        match end {
            Some(End::Refused(_)) => Err(Failure::NotExported { zone: zone.clone() }),
            _ => Ok(()),
        }
    };
    let written = match file {
        Some(file) => write_new_file(file, 0o644, write),
        None => write_output(output, 0o644, write),
    };
    match (written, end) {
        (_, Some(End::Refused(error))) => fail(arguments, &error),
        (Err(failure), _) => Err(failure),
        (Ok(()), Some(End::Done(done))) => {
            // On standard output, the summary would be mixed with the zone.
            if file.is_some() {
                let unknown = || Failure::UnexpectedResponse { path: socket.to_path_buf() };
                let ZoneExported { serial, records, .. } = parse_response(&done).ok_or_else(unknown)?;
                let serial = serial.map_or_else(|| "null".to_owned(), |serial| serial.to_string());
                let text = format!("zone {zone}: serial {serial}, {records} records: {}", output.display());
                if arguments.json { print_line(&done.to_string()) } else { print_summary(&text) }?;
            }
            Ok(CommandOutcome::Done)
        }
        (Ok(()), None) => Err(Failure::ConnectionClosed { path: socket.to_path_buf() }),
    }
}

/// Copies the text from the server to `out`. Fails if the response has no final line, because the
/// zone is then incomplete.
fn copy(
    arguments: &ControlArguments,
    socket: &Path,
    output: &Path,
    out: &mut dyn Write,
) -> Result<End, Failure> {
    let mut end = None;
    let timeout = Duration::from_secs(arguments.timeout);
    let bounds = ResponseLimits { timeout, octets: u64::MAX };
    request_each_line(socket, &to_request(&arguments.command), bounds, |line| {
        match line {
            Line::Text(text) => out.write_all(text.as_bytes()).map_err(write_failure(output))?,
            Line::Error(error) => end = Some(End::Refused(error)),
            Line::Done(done) => end = Some(End::Done(done)),
            Line::Zone(_) | Line::Working(_) => {}
        }
        Ok(())
    })?;
    end.ok_or_else(|| Failure::ConnectionClosed { path: socket.to_path_buf() })
}
