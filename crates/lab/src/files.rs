//! Reads files that another user or program may have written, and replaces files.

use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Reads a regular file of at most `limit` octets. Does not wait for the writer of a pipe. The type
/// is checked on the open file, so that no other file can replace it in between.
///
/// # Errors
/// Fails if the file cannot be read, with [`io::ErrorKind::InvalidInput`] if it is not a regular
/// file, and with [`io::ErrorKind::FileTooLarge`] if it is longer.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // The message of `open_regular` is about zone files.
    let file = nonesuch_zone::open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidInput => io::Error::new(error.kind(), "not a regular file"),
        _ => error,
    })?;
    let mut octets = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut octets)?;
    if octets.len() as u64 > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {limit} octets")));
    }
    Ok(octets)
}

/// Writes the file `name` in `dir` under a temporary name, synchronises and renames it, so that a
/// reader finds either the old or the new contents.
///
/// # Errors
/// Fails if the file cannot be written. The error does not have the temporary name, which the user
/// does not know.
pub(crate) fn replace_file(dir: &Path, name: &str, octets: &[u8]) -> io::Result<()> {
    let write = || -> io::Result<()> {
        let permissions = Permissions::from_mode(0o644);
        let mut beside =
            tempfile::Builder::new().prefix(".nonesuch-").permissions(permissions).tempfile_in(dir)?;
        beside.write_all(octets)?;
        beside.as_file().sync_all()?;
        beside.persist(dir.join(name)).map_err(|error| error.error)?;
        File::open(dir)?.sync_all()
    };
    write().map_err(|error| error.raw_os_error().map_or(error, io::Error::from_raw_os_error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_regular_files_up_to_the_limit_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let (file, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
        std::fs::write(&file, [7_u8; 100]).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read_bounded(&file, 100).unwrap(), [7; 100]);
        for (path, limit, kind, message) in [
            (&file, 99, io::ErrorKind::FileTooLarge, "larger than 99 octets"),
            (&pipe, 100, io::ErrorKind::InvalidInput, "not a regular file"),
        ] {
            let error = read_bounded(path, limit).unwrap_err();
            assert_eq!((error.kind(), error.to_string()), (kind, message.to_owned()));
        }
        assert_eq!(read_bounded(&dir.path().join("none"), 1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
