//! Reading of files that others can have written.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Reads a regular file of at most `limit` octets.
///
/// # Errors
/// Fails if the file cannot be read, with [`io::ErrorKind::InvalidInput`] if it is not a regular
/// file, and with [`io::ErrorKind::FileTooLarge`] if it is longer.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a FIFO would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut octets = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > limit {
        let reason = format!("larger than {} MiB", limit >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(octets)
}
