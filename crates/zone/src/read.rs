//! Reader for zone files (RFC 1035 §5, RFC 2308 §4 for $TTL, RFC 3597 §5 for unknown types).
//!
//! `source` splits the text into blocks. `block` reads the blocks on all cores, `entry` reads each
//! entry, and `reader` joins the blocks in order. The whole text is never in memory at once. The
//! result, including the errors and their positions, is the same as with sequential reading.

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
use entry::EntryState;
use nonesuch_proto::{Name, Rtype};
pub(crate) use reader::OpenFile;
use reader::Reader;
use source::{BLOCK_OCTETS, Source};
use std::fs::File;
use std::path::Path;

/// Reads the zone file at `path`, which may be a pipe, and the files that it includes.
///
/// `origin` is the apex and the initial $ORIGIN. If it is `None`, the file must give the origin
/// with $ORIGIN or with absolute names, and the owner of the SOA record is the apex.
///
/// # Errors
/// The first fault in the text, with its position; [`ReadFault::Zone`] if the records do not form a
/// zone; [`ReadFault::Io`] if a file cannot be read.
pub fn read_file(path: &Path, origin: Option<&Name>) -> Result<ParsedZone, ReadError> {
    read_file_by(path, origin, |path| File::open(path))
}

/// Same as [`read_file`], but opens the zone file and the files that it includes with `open`.
pub(crate) fn read_file_by(
    path: &Path,
    origin: Option<&Name>,
    open: OpenFile,
) -> Result<ParsedZone, ReadError> {
    let mut reader = Reader::new(path, BLOCK_OCTETS);
    reader.open = open;
    reader.read_file(path, EntryState::new(origin.cloned()))?;
    finish(reader, origin)
}

/// Reads the zone file `text`. `path` is used in errors and to find included files; for `origin`
/// see [`read_file`].
///
/// # Errors
/// As [`read_file`].
pub fn read_text(text: &[u8], path: &Path, origin: Option<&Name>) -> Result<ParsedZone, ReadError> {
    read_text_in_blocks(text, path, origin, BLOCK_OCTETS)
}

/// Same as [`read_text`], but with blocks of at least `block_octets` octets, for tests and
/// measurements. The result does not depend on this number. If it is at least the length of the
/// text, the text is read sequentially.
///
/// # Errors
/// As [`read_file`].
pub fn read_text_in_blocks(
    text: &[u8],
    path: &Path,
    origin: Option<&Name>,
    block_octets: usize,
) -> Result<ParsedZone, ReadError> {
    let mut reader = Reader::new(path, block_octets);
    reader.read(Source::Text(text), 0, 0, EntryState::new(origin.cloned()))?;
    finish(reader, origin)
}

/// Reads records that need not form a zone, for example DS and DNSKEY records in a file of trust
/// anchors. The TTL is optional. Returns the owner, type and RDATA of each record in the order of
/// the file.
///
/// # Errors
/// The first fault in the text, or an included file that cannot be read.
pub fn read_records(
    text: &[u8],
    path: &Path,
    origin: &Name,
) -> Result<Vec<(Name, Rtype, Vec<u8>)>, ReadError> {
    let mut reader = Reader::new(path, BLOCK_OCTETS);
    let mut state = EntryState::new(Some(origin.clone()));
    state.last_ttl = Some(0);
    reader.read(Source::Text(text), 0, 0, state)?;
    Ok(reader.builder.into_records())
}

fn finish(reader: Reader, origin: Option<&Name>) -> Result<ParsedZone, ReadError> {
    let Reader { builder, files, .. } = reader;
    builder.finish(origin).map_err(|error| ReadError {
        file: files[usize::from(error.location.file)].clone(),
        line: error.location.line,
        column: u32::from(error.location.line > 0),
        fault: ReadFault::Zone(error.fault),
    })
}
