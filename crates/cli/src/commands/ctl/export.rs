//! `nonesuch ctl zone export`: writes a zone of a running server to a zone file while the server
//! sends it.

use super::error::Failure;
use super::{ResponseLimits, print_refusal, request_each_line, to_request};
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
enum LastLine {
    /// The zone is complete; its [`ZoneExported`].
    Done(Value),
    /// The server does not export the zone, with the reason.
    Refused(String),
}

/// Writes `zone` to `file`, which must not exist, or to standard output if `file` is `None` or `-`.
pub(super) fn run(
    arguments: &ControlArguments,
    socket: &Path,
    zone: &Name,
    file: Option<&Path>,
) -> Result<CommandOutcome, Failure> {
    let file = file.filter(|file| !is_standard_stream(file));
    let mut last_line = None;
    let output = file.unwrap_or_else(|| Path::new("-"));
    let write = |out: &mut dyn Write| {
        last_line = Some(copy(arguments, socket, output, out)?);
        match last_line {
            // An error, so that `write_new_file` creates no file. `print_refusal` prints the
            // reason.
            Some(LastLine::Refused(_)) => Err(Failure::NotExported { zone: zone.clone() }),
            _ => Ok(()),
        }
    };
    let written = match file {
        Some(file) => write_new_file(file, 0o644, write),
        None => write_output(output, 0o644, write),
    };
    match (written, last_line) {
        (_, Some(LastLine::Refused(error))) => print_refusal(arguments, &error),
        (Err(failure), _) => Err(failure),
        (Ok(()), Some(LastLine::Done(result))) => {
            // On standard output, the summary would be mixed with the zone, so `--json` has no
            // effect there.
            if file.is_some() {
                let unexpected = || Failure::UnexpectedResponse { path: socket.to_path_buf() };
                let ZoneExported { serial, records, .. } = parse_response(&result).ok_or_else(unexpected)?;
                // A served zone has a serial; the type permits zones without one.
                let serial = serial.map_or_else(|| "null".to_owned(), |serial| serial.to_string());
                let text = format!("zone {zone}: serial {serial}, {records} records: {}", output.display());
                if arguments.json { print_line(&result.to_string()) } else { print_summary(&text) }?;
            }
            Ok(CommandOutcome::Done)
        }
        // Not reached: both functions call `write`, which fails without a last line.
        (Ok(()), None) => Err(Failure::ConnectionClosed { path: socket.to_path_buf() }),
    }
}

/// Copies the text from the server to `out`, which writes to `output`. Fails if the response has no
/// last line, because the zone is then incomplete.
fn copy(
    arguments: &ControlArguments,
    socket: &Path,
    output: &Path,
    out: &mut dyn Write,
) -> Result<LastLine, Failure> {
    let mut last_line = None;
    let timeout = Duration::from_secs(arguments.timeout);
    let limits = ResponseLimits { timeout, octets: u64::MAX };
    request_each_line(socket, &to_request(&arguments.command), limits, |line| {
        match line {
            Line::Text(text) => out.write_all(text.as_bytes()).map_err(write_failure(output))?,
            Line::Error(error) => last_line = Some(LastLine::Refused(error)),
            Line::Done(result) => last_line = Some(LastLine::Done(result)),
            Line::Zone(_) | Line::Working(_) => {}
        }
        Ok(())
    })?;
    last_line.ok_or_else(|| Failure::ConnectionClosed { path: socket.to_path_buf() })
}
