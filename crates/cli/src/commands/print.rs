//! `nonesuch zone print`: prints a zone of any input format as a zone file, one record per line, in
//! canonical order.

use crate::arguments::PrintArguments;
use crate::files::{check_new_output, is_standard_stream, write_failure, write_new_file, write_output};
use crate::outcome::CommandOutcome;
use crate::zones::{self, ReadZoneError, ZoneError};
use nonesuch_zone::open_compiled;
use nonesuch_zone::write::{write_stored, write_zone};
use std::io::Write;
use std::path::Path;

pub(crate) fn run(arguments: &PrintArguments) -> Result<CommandOutcome, ZoneError> {
    let standard = Path::new("-");
    match arguments.output.as_deref().filter(|output| !is_standard_stream(output)) {
        Some(output) => {
            check_new_output(output)?;
            write_new_file(output, 0o644, |out| print(arguments, output, out))?;
        }
        None => write_output(standard, 0o644, |out| print(arguments, standard, out))?,
    }
    Ok(CommandOutcome::Done)
}

fn print(arguments: &PrintArguments, output: &Path, mut out: &mut dyn Write) -> Result<(), ZoneError> {
    let (file, origin) = (arguments.file.as_path(), arguments.origin.as_ref());
    // A compiled zone is read in chunks, so that it need not fit into memory.
    let stored = if is_standard_stream(file) {
        None
    } else {
        open_compiled(file, origin).map_err(ReadZoneError::from)?
    };
    let written = match &stored {
        Some(zone) => write_stored(zone, &mut out),
        None => write_zone(&zones::read_zone(file, origin)?, &mut out),
    };
    Ok(written.map_err(write_failure(output))?)
}
