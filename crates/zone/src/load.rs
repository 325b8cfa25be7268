//! Loads zone files, compiled zones and image files (an image followed by a compiled zone). The
//! first octets of a file determine which of these it is.

use crate::builder::{ParsedZone, Warning};
use crate::compiled::{self, CompiledError, MAGIC_OCTETS, StoredZone, TextComparison, Verification};
use crate::contents::Contents;
use crate::image::file::{ImageFileError, PAGE, contents_range, is_image};
use crate::read::{self, OpenFile, ReadError, ReadFault};
use crate::regular::open_regular;
use nonesuch_proto::Name;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

/// A zone that was loaded from a file.
#[derive(Debug)]
pub struct LoadedZone {
    /// The records.
    pub contents: Contents,
    /// Warnings about the records. For a compiled zone the list is empty: the warnings were
    /// reported when the zone was compiled.
    pub warnings: Vec<Warning>,
    /// For a compiled zone, the verification that was done before the zone was compiled.
    pub verification: Option<Verification>,
}

/// Reason why a file cannot be loaded as a zone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A zone file has a fault.
    #[error(transparent)]
    Text(#[from] ReadError),
    /// A compiled zone cannot be used.
    #[error("{}: {source}", path.display())]
    Compiled {
        /// Path of the file.
        path: PathBuf,
        /// The fault.
        source: CompiledError,
    },
    /// An image file cannot be used.
    #[error("{}: {source}", path.display())]
    Image {
        /// Path of the file.
        path: PathBuf,
        /// The fault.
        source: ImageFileError,
    },
}

/// Reads the zone file or compiled zone at `path`, which may be a pipe. `origin` is the apex, if
/// the caller knows it.
///
/// # Errors
/// The file cannot be read or has a fault, or it holds a zone with another apex than `origin`.
pub fn load(path: &Path, origin: Option<&Name>) -> Result<LoadedZone, LoadError> {
    load_by(path, origin, |path| File::open(path))
}

/// Same as [`load`], but without blocking: files that are not regular files are rejected, also as
/// included files.
///
/// # Errors
/// As [`load`].
pub fn load_regular(path: &Path, origin: Option<&Name>) -> Result<LoadedZone, LoadError> {
    load_by(path, origin, open_regular)
}

fn load_by(path: &Path, origin: Option<&Name>, open: OpenFile) -> Result<LoadedZone, LoadError> {
    let unreadable =
        |error| ReadError { file: path.to_path_buf(), line: 0, column: 0, fault: ReadFault::Io(error) };
    let compiled = |source| LoadError::Compiled { path: path.to_path_buf(), source };
    let mut file = open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        // A pipe can be read only once, so the whole input is read first.
        return load_octets(file, path, origin);
    }
    let before = image_octets(&mut file, path)?;
    file.seek(io::SeekFrom::Start(before)).map_err(unreadable)?;
    let mut magic = [0; MAGIC_OCTETS];
    let is_compiled = fill(&mut file, &mut magic).map_err(unreadable)? && compiled::is_compiled(&magic);
    if before == 0 && !is_compiled {
        return Ok(of_text(read::read_file_by(path, origin, open)?));
    }
    let found = compiled::read_file(&file, before, metadata.len().saturating_sub(before));
    found.and_then(|(contents, verification)| of_compiled(contents, verification, origin)).map_err(compiled)
}

/// Reads a zone file or compiled zone from `input`, to its end. `path` is used in errors and to
/// find included files.
///
/// # Errors
/// As [`load`].
pub fn load_octets(
    mut input: impl io::Read,
    path: &Path,
    origin: Option<&Name>,
) -> Result<LoadedZone, LoadError> {
    let mut octets = Vec::new();
    input.read_to_end(&mut octets).map_err(|error| ReadError {
        file: path.to_path_buf(),
        line: 0,
        column: 0,
        fault: ReadFault::Io(error),
    })?;
    octets.drain(..(skip_image(&octets, path)? as usize).min(octets.len()));
    if !compiled::is_compiled(&octets) {
        return Ok(of_text(read::read_text(&octets, path, origin)?));
    }
    compiled::read(&octets)
        .and_then(|(contents, verification)| of_compiled(contents, verification, origin))
        .map_err(|source| LoadError::Compiled { path: path.to_path_buf(), source })
}

/// Opens the compiled zone at `path` without loading all of it; [`StoredZone`] loads chunks on
/// demand. Returns `None` if `path` is not a regular file with a compiled zone. `origin` is the
/// apex, if the caller knows it.
///
/// # Errors
/// The parts of the file that are read here have a fault, or the zone has another apex than
/// `origin`.
pub fn open_compiled(path: &Path, origin: Option<&Name>) -> Result<Option<StoredZone>, LoadError> {
    let compiled = |source| LoadError::Compiled { path: path.to_path_buf(), source };
    let Some(mut file) = open_where_regular(path) else { return Ok(None) };
    let before = image_octets(&mut file, path)?;
    let mut magic = [0; MAGIC_OCTETS];
    let is_there = file.seek(io::SeekFrom::Start(before)).and_then(|_| fill(&mut file, &mut magic));
    if !matches!(is_there, Ok(true)) || !compiled::is_compiled(&magic) {
        return Ok(None);
    }
    let length = file.metadata().map_err(|error| compiled(error.into()))?.len();
    let zone = StoredZone::open(file, before, length.saturating_sub(before)).map_err(compiled)?;
    check_origin(zone.apex(), origin).map_err(compiled)?;
    Ok(Some(zone))
}

/// Compares the signed zone file at `path`, the result of the last signing, with the data of the
/// `new` zone. Returns `None` if the file does not have the form that such a comparison needs, or
/// is not a zone file.
///
/// # Errors
/// The file cannot be read.
pub fn compare_signed(path: &Path, new: &Contents) -> Result<Option<TextComparison>, LoadError> {
    let unreadable = |source| LoadError::Compiled { path: path.to_path_buf(), source };
    let Some(file) = open_where_regular(path) else { return Ok(None) };
    let length = file.metadata().map_err(|error| unreadable(error.into()))?.len();
    compiled::compare_text(file, length, new).map_err(unreadable)
}

/// Opens `path` if it is a regular file. The type is checked before opening as well, because the
/// writer of a pipe would take the opening for a reader. If the file cannot be opened, the reader
/// of zone files reports the error.
fn open_where_regular(path: &Path) -> Option<File> {
    std::fs::metadata(path).ok().filter(|metadata| metadata.is_file())?;
    open_regular(path).ok()
}

/// Returns the number of octets of the image that precedes the contents, in a file that begins with
/// `head`; 0 if there is no image.
fn skip_image(head: &[u8], path: &Path) -> Result<u64, LoadError> {
    if !is_image(head) {
        return Ok(0);
    }
    let range =
        contents_range(head).map_err(|source| LoadError::Image { path: path.to_path_buf(), source })?;
    Ok(range.start)
}

/// Same as [`skip_image`], for a file.
fn image_octets(file: &mut File, path: &Path) -> Result<u64, LoadError> {
    let mut head = Vec::with_capacity(PAGE);
    let read = file.take(PAGE as u64).read_to_end(&mut head);
    read.map_err(|error| ReadError {
        file: path.to_path_buf(),
        line: 0,
        column: 0,
        fault: ReadFault::Io(error),
    })?;
    skip_image(&head, path)
}

/// Fills `octets` from the file. Returns `false` if the file has fewer octets.
fn fill(file: &mut File, octets: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(octets) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

fn of_text(reading: ParsedZone) -> LoadedZone {
    LoadedZone { contents: reading.contents, warnings: reading.warnings, verification: None }
}

fn of_compiled(
    contents: Contents,
    verification: Verification,
    origin: Option<&Name>,
) -> Result<LoadedZone, CompiledError> {
    check_origin(contents.apex(), origin)?;
    Ok(LoadedZone { contents, warnings: Vec::new(), verification: Some(verification) })
}

fn check_origin(apex: &Name, origin: Option<&Name>) -> Result<(), CompiledError> {
    match origin.filter(|origin| *origin != apex) {
        Some(origin) => Err(CompiledError::WrongOrigin { found: apex.clone(), origin: origin.clone() }),
        None => Ok(()),
    }
}
