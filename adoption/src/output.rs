//! Output files: written under a temporary name, synchronised and renamed, so that a reader finds
//! either the old or the new contents.

use crate::error::AdoptionError;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file that gets its name when it is complete.
pub(crate) struct Output {
    file: NamedTempFile,
    path: PathBuf,
}

impl Output {
    /// Creates the temporary file in the directory of `path`.
    pub(crate) fn create(path: &Path) -> Result<Self, AdoptionError> {
        let file = tempfile::Builder::new()
            .prefix(".nonesuch-")
            .permissions(Permissions::from_mode(0o644))
            .tempfile_in(directory_of(path));
        let path = path.to_owned();
        match file {
            Ok(file) => Ok(Self { file, path }),
            Err(source) => Err(AdoptionError::Write { path, source: without_path(source) }),
        }
    }

    /// Returns a handle for a writer.
    pub(crate) fn writer(&self) -> Result<File, AdoptionError> {
        self.file.as_file().try_clone().map_err(|source| self.failed(source))
    }

    /// Gives the file its name.
    pub(crate) fn commit(self) -> Result<(), AdoptionError> {
        self.file.as_file().sync_all().map_err(|source| self.failed(source))?;
        let Self { file, path } = self;
        let failed = |source| AdoptionError::Write { path: path.clone(), source };
        file.persist(&path).map_err(|error| failed(error.error))?;
        let directory = File::open(directory_of(&path)).map_err(failed)?;
        directory.sync_all().map_err(failed)
    }

    fn failed(&self, source: io::Error) -> AdoptionError {
        AdoptionError::Write { path: self.path.clone(), source }
    }
}

/// Returns the directory of a file.
fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Writes a file with these contents.
pub(crate) fn write_file(path: &Path, octets: &[u8]) -> Result<(), AdoptionError> {
    let output = Output::create(path)?;
    io::Write::write_all(&mut output.writer()?, octets).map_err(|source| output.failed(source))?;
    output.commit()
}

/// Creates a directory and those above it.
pub(crate) fn create_directory(path: &Path) -> Result<(), AdoptionError> {
    fs::create_dir_all(path).map_err(|source| AdoptionError::Write { path: path.to_owned(), source })
}

/// Removes the temporary name, which the user does not know, from an error.
fn without_path(error: io::Error) -> io::Error {
    error.raw_os_error().map_or(error, io::Error::from_raw_os_error)
}
