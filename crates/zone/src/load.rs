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
    /// For a compiled zone, the verification that its header states. It was done before the zone
    /// was compiled.
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
    let read_error =
        |error| ReadError { file: path.to_path_buf(), line: 0, column: 0, fault: ReadFault::Io(error) };
    let compiled = |source| LoadError::Compiled { path: path.to_path_buf(), source };
    let mut file = open(path).map_err(read_error)?;
    let metadata = file.metadata().map_err(read_error)?;
    if !metadata.is_file() {
        // A pipe can be read only once, so the whole input is read first.
        return load_octets(file, path, origin);
    }
    let image_octets = image_octets(&mut file, path)?;
    file.seek(io::SeekFrom::Start(image_octets)).map_err(read_error)?;
    let mut magic = [0; MAGIC_OCTETS];
    let is_compiled =
        read_octets(&mut file, &mut magic).map_err(read_error)? && compiled::is_compiled(&magic);
    if image_octets == 0 && !is_compiled {
        return Ok(of_text(read::read_file_by(path, origin, open)?));
    }
    let result = compiled::read_file(&file, image_octets, metadata.len().saturating_sub(image_octets));
    result.and_then(|(contents, verification)| of_compiled(contents, verification, origin)).map_err(compiled)
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
    octets.drain(..(image_octets_in(&octets, path)? as usize).min(octets.len()));
    if !compiled::is_compiled(&octets) {
        return Ok(of_text(read::read_text(&octets, path, origin)?));
    }
    compiled::read(&octets)
        .and_then(|(contents, verification)| of_compiled(contents, verification, origin))
        .map_err(|source| LoadError::Compiled { path: path.to_path_buf(), source })
}

/// Opens the compiled zone at `path` without loading all of it; [`StoredZone`] loads chunks on
/// demand. Returns `None` if `path` is not a regular file with a compiled zone, or cannot be
/// opened. `origin` is the apex, if the caller knows it.
///
/// # Errors
/// The parts of the file that are read here have a fault, or the zone has another apex than
/// `origin`.
pub fn open_compiled(path: &Path, origin: Option<&Name>) -> Result<Option<StoredZone>, LoadError> {
    let compiled = |source| LoadError::Compiled { path: path.to_path_buf(), source };
    let Some(mut file) = open_if_regular(path) else { return Ok(None) };
    let image_octets = image_octets(&mut file, path)?;
    let mut magic = [0; MAGIC_OCTETS];
    let is_read =
        file.seek(io::SeekFrom::Start(image_octets)).and_then(|_| read_octets(&mut file, &mut magic));
    if !matches!(is_read, Ok(true)) || !compiled::is_compiled(&magic) {
        return Ok(None);
    }
    let length = file.metadata().map_err(|error| compiled(error.into()))?.len();
    let zone = StoredZone::open(file, image_octets, length.saturating_sub(image_octets)).map_err(compiled)?;
    check_origin(zone.apex(), origin).map_err(compiled)?;
    Ok(Some(zone))
}

/// Compares the signed zone file at `path`, the result of the last signing, with the data of the
/// `new` zone. Returns `None` if `path` is not a regular file, or the file is not in the format in
/// which this program writes signed zones.
///
/// # Errors
/// The file cannot be read.
pub fn compare_signed(path: &Path, new: &Contents) -> Result<Option<TextComparison>, LoadError> {
    let read_error = |source| LoadError::Compiled { path: path.to_path_buf(), source };
    let Some(file) = open_if_regular(path) else { return Ok(None) };
    let length = file.metadata().map_err(|error| read_error(error.into()))?.len();
    compiled::compare_text(file, length, new).map_err(read_error)
}

/// Opens `path` if it is a regular file. The type is also checked before opening, because the
/// writer of a pipe would treat the opening as a reader. If the file cannot be opened, the reader
/// of zone files reports the error.
fn open_if_regular(path: &Path) -> Option<File> {
    std::fs::metadata(path).ok().filter(|metadata| metadata.is_file())?;
    open_regular(path).ok()
}

/// Returns the number of octets of the image at the start of a file; 0 if there is no image. `head`
/// is the start of the file with at least [`PAGE`] octets, or the whole file.
fn image_octets_in(head: &[u8], path: &Path) -> Result<u64, LoadError> {
    if !is_image(head) {
        return Ok(0);
    }
    let range =
        contents_range(head).map_err(|source| LoadError::Image { path: path.to_path_buf(), source })?;
    Ok(range.start)
}

/// Same as [`image_octets_in`], for a file at its start.
fn image_octets(file: &mut File, path: &Path) -> Result<u64, LoadError> {
    let mut head = Vec::with_capacity(PAGE);
    let read = file.take(PAGE as u64).read_to_end(&mut head);
    read.map_err(|error| ReadError {
        file: path.to_path_buf(),
        line: 0,
        column: 0,
        fault: ReadFault::Io(error),
    })?;
    image_octets_in(&head, path)
}

/// Reads `octets` from the file. Returns `false` if the file has fewer octets.
fn read_octets(file: &mut File, octets: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(octets) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

fn of_text(parsed: ParsedZone) -> LoadedZone {
    LoadedZone { contents: parsed.contents, warnings: parsed.warnings, verification: None }
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
