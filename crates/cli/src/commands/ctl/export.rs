//! `nonesuch ctl zone export`: a zone of a running server as a zone file, written as it comes.

use super::{ask_each, fail, request};
use crate::Outcome;
use crate::arguments::ControlArguments;
use crate::error::Failure;
use crate::files::{print_line, write_failure, write_new, write_output};
use nonesuch_proto::Name;
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// How the answer ended.
enum End {
    Done(Value),
    Refused(Value),
}

pub(super) fn run(
    arguments: &ControlArguments,
    socket: &Path,
    zone: &Name,
    file: Option<&Path>,
) -> Result<Outcome, Failure> {
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
        Some(file) => write_new(file, 0o644, write),
        None => write_output(output, 0o644, write),
    };
    match (written, end) {
        (_, Some(End::Refused(error))) => fail(arguments, &error),
        (Err(failure), _) => Err(failure),
        (Ok(()), Some(End::Done(done))) => {
            // Nothing but the zone goes where the zone goes.
            if file.is_some() {
                let (serial, records) = (&done["serial"], &done["records"]);
                let words = format!("zone {zone}: serial {serial}, {records} records: {}", output.display());
                print_line(&if arguments.json { done.to_string() } else { words })?;
            }
            Ok(Outcome::Done)
        }
        (Ok(()), None) => Err(Failure::ControlEnded { path: socket.to_path_buf() }),
    }
}

/// Copies what the server sends to `out`; what does not come to its end is no zone.
fn copy(
    arguments: &ControlArguments,
    socket: &Path,
    output: &Path,
    out: &mut dyn Write,
) -> Result<End, Failure> {
    let mut end = None;
    let patience = Duration::from_secs(arguments.timeout);
    ask_each(socket, &request(&arguments.command), (patience, u64::MAX), |mut line| {
        if let Some(text) = line["text"].as_str() {
            out.write_all(text.as_bytes()).map_err(write_failure(output))?;
        } else if line.get("error").is_some() {
            end = Some(End::Refused(line["error"].take()));
        } else if line.get("done").is_some() {
            end = Some(End::Done(line["done"].take()));
        }
        Ok(())
    })?;
    end.ok_or_else(|| Failure::ControlEnded { path: socket.to_path_buf() })
}
