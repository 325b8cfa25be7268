//! Opens regular files only. Opening a pipe would wait for a writer, and a device may have no end.

use std::fs::{File, FileType};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Error: the path leads to a file that is not a regular file. The field describes its type.
#[derive(Debug, thiserror::Error)]
#[error(
    "it is {0}, but a server reads zones only from regular files: write the zone to a regular file, and name that file"
)]
struct NotRegularFile(&'static str);

/// Opens the regular file at `path` for reading, without blocking. The type is checked on the open
/// file, so that no other file can replace it in between.
///
/// # Errors
/// `InvalidInput` if the file is not a regular file; otherwise the error of the system.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // O_NONBLOCK has no effect on a regular file (open(2)), except that opening fails if another
    // process holds a lease on the file.
    let opened = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path);
    // Opening a socket fails, so its type comes from the path.
    let metadata = match &opened {
        Ok(file) => file.metadata(),
        Err(_) => std::fs::metadata(path),
    };
    match metadata {
        Ok(metadata) if !metadata.is_file() => {
            let kind = NotRegularFile(kind_of(metadata.file_type()));
            Err(io::Error::new(io::ErrorKind::InvalidInput, kind))
        }
        Ok(_) => opened,
        Err(error) => opened.and(Err(error)),
    }
}

/// Returns a description of a file type, for the error.
fn kind_of(file_type: FileType) -> &'static str {
    if file_type.is_fifo() {
        "a pipe"
    } else if file_type.is_dir() {
        "a directory"
    } else if file_type.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadError, ReadError, ReadFault, load, load_regular};
    use std::path::PathBuf;
    use std::process::Command;

    /// Returns the file that is not a regular file, and its kind, when the zone file at `path` is
    /// loaded and only regular files are allowed.
    fn rejected_file(path: &Path) -> (PathBuf, &'static str) {
        match load_regular(path, None).unwrap_err() {
            LoadError::Text(ReadError { file, line: 0, fault: ReadFault::Io(error), .. }) => {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<NotRegularFile>());
                (file, inner.unwrap_or_else(|| panic!("{error:?}")).0)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn files_that_are_not_regular_are_rejected_without_blocking() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("device")).unwrap();
        for (name, kind) in
            [("pipe", "a pipe"), ("socket", "a socket"), ("directory", "a directory"), ("device", "a device")]
        {
            assert_eq!(rejected_file(&at(name)), (at(name), kind));
        }
        assert_eq!(open_regular(&at("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn included_files_must_be_regular_if_the_zone_file_must_be() {
        let dir = tempfile::tempdir().unwrap();
        let (zone, pipe) = (dir.path().join("zone"), dir.path().join("pipe"));
        let text = "$ORIGIN example.\n@ 60 SOA . . 7 1 1 1 1\n@ 60 NS ns.other.\n";
        std::fs::write(&zone, text).unwrap();
        assert_eq!(load_regular(&zone, None).unwrap().contents.record_count(), 2);
        std::fs::write(&zone, format!("{text}$INCLUDE pipe\n")).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(rejected_file(&zone), (pipe.clone(), "a pipe"));
        // `load` reads a pipe to its end.
        let writer = std::thread::spawn(move || std::fs::write(pipe, "a 60 A 192.0.2.1\n").unwrap());
        assert_eq!(load(&zone, None).unwrap().contents.record_count(), 3);
        writer.join().unwrap();
    }
}
