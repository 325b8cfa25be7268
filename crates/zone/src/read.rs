//! Reading zone files (RFC 1035 §5, RFC 2308 §4 for $TTL, RFC 3597 §5 for unknown types).
//!
//! Text is cut into blocks (`source`), which are read on all cores (`block`), entry by entry (`entry`), and put together
//! in order (`reader`); the text is never held as a whole. The result, including faults and their places, is the same as
//! that of reading from front to back.

mod block;
mod entry;
mod fault;
mod reader;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use entry::{Located, read_fixed_fields};
pub use fault::{ReadError, ReadFault, read_remedy};

use crate::builder::ParsedZone;
use entry::State;
use nonesuch_proto::{Name, Rtype};
pub(crate) use reader::OpenFile;
use reader::Reader;
use source::{BLOCK, Source};
use std::fs::File;
use std::path::Path;

/// Reads the zone file at `path`, which may be a pipe. `origin` is the apex and the first $ORIGIN; without it the file
/// must say it with $ORIGIN or absolute names, and the SOA record's owner is the apex.
pub fn read_file(path: &Path, origin: Option<&Name>) -> Result<ParsedZone, ReadError> {
    read_file_by(path, origin, |path| File::open(path))
}

/// As [`read_file`], files opened by `open`.
pub(crate) fn read_file_by(
    path: &Path,
    origin: Option<&Name>,
    open: OpenFile,
) -> Result<ParsedZone, ReadError> {
    let mut reader = Reader::new(path, BLOCK);
    reader.open = open;
    reader.read_file(path, State::new(origin.cloned()))?;
    finish(reader, origin)
}

/// Reads a zone file's `text`; `path` is used in errors and to find included files.
pub fn read_text(text: &[u8], path: &Path, origin: Option<&Name>) -> Result<ParsedZone, ReadError> {
    read_text_in_blocks(text, path, origin, BLOCK)
}

/// Reads as [`read_text`] does, the text cut into blocks of at least so many octets that are read side by side. What
/// comes out is the same for every number, and with the text's length or more it is read from front to back: for tests and
/// measurements.
pub fn read_text_in_blocks(
    text: &[u8],
    path: &Path,
    origin: Option<&Name>,
    octets: usize,
) -> Result<ParsedZone, ReadError> {
    let mut reader = Reader::new(path, octets);
    reader.read(Source::Text(text), 0, 0, State::new(origin.cloned()))?;
    finish(reader, origin)
}

/// Reads records that need not be a zone, as DS and DNSKEY records in a file of trust anchors; a TTL may be
/// missing. Returns owner, type and RDATA in the order of the file.
pub fn read_records(
    text: &[u8],
    path: &Path,
    origin: &Name,
) -> Result<Vec<(Name, Rtype, Vec<u8>)>, ReadError> {
    let mut reader = Reader::new(path, BLOCK);
    let mut state = State::new(Some(origin.clone()));
    state.last_ttl = Some(0);
    reader.read(Source::Text(text), 0, 0, state)?;
    Ok(reader.builder.into_records())
}

fn finish(reader: Reader, origin: Option<&Name>) -> Result<ParsedZone, ReadError> {
    let Reader { builder, files, .. } = reader;
    builder.finish(origin).map_err(|error| ReadError {
        file: files[usize::from(error.place.file)].clone(),
        line: error.place.line,
        column: u32::from(error.place.line > 0),
        fault: ReadFault::Zone(error.fault),
    })
}
