//! Zone files, compiled zones and image files (a compiled zone behind an image) alike: which of them a file is, its first
//! octets say.

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

/// A zone as it was found in a file.
#[derive(Debug)]
pub struct LoadedZone {
    /// The records.
    pub contents: Contents,
    /// What is odd about them; of a compiled zone that was said when it was compiled.
    pub warnings: Vec<Warning>,
    /// For a compiled zone, what was verified before it was compiled.
    pub verification: Option<Verification>,
}

/// Why a file holds no zone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A zone file has a fault.
    #[error(transparent)]
    Text(#[from] ReadError),
    /// A compiled zone cannot be used.
    #[error("{}: {source}", path.display())]
    Compiled {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: CompiledError,
    },
    /// An image file cannot be used.
    #[error("{}: {source}", path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ImageFileError,
    },
}

/// Reads the zone file or compiled zone at `path`, which may be a pipe. `origin` is the apex where it is known.
///
/// # Errors
/// What keeps the file from being a zone, or one of that origin.
pub fn load(path: &Path, origin: Option<&Name>) -> Result<LoadedZone, LoadError> {
    load_by(path, origin, |path| File::open(path))
}

/// As [`load`], for those who must not wait: what is no regular file is refused, among the files that are included too.
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
        // A pipe is read once.
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

/// Reads the zone file or compiled zone that `input` holds, to its end; errors call it `path`, beside which included files
/// are looked for.
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

/// Opens the compiled zone at `path` so that what is looked at is loaded; `None` where no regular file with one is there.
/// `origin` is the apex where it is known.
///
/// # Errors
/// What keeps the file from being a compiled zone, as far as it is looked at, or one of that origin.
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

/// Compares the zone file at `path`, which was signed last, with the data of the `new` zone; `None` where it cannot be
/// compared without reading it as a zone file, or is none.
///
/// # Errors
/// Those of reading.
pub fn compare_signed(path: &Path, new: &Contents) -> Result<Option<TextComparison>, LoadError> {
    let unreadable = |source| LoadError::Compiled { path: path.to_path_buf(), source };
    let Some(file) = open_where_regular(path) else { return Ok(None) };
    let length = file.metadata().map_err(|error| unreadable(error.into()))?.len();
    compiled::compare_text(file, length, new).map_err(unreadable)
}

/// Opens a regular file: a pipe would wait for its writer. What cannot be opened is for the reader of zone files to complain
/// of. A pipe is not even opened, which its writer would take for a reader.
fn open_where_regular(path: &Path) -> Option<File> {
    std::fs::metadata(path).ok().filter(|metadata| metadata.is_file())?;
    open_regular(path).ok()
}

/// Octets of the image in front of the contents, in a file that begins with `head`; 0 where there is none.
fn skip_image(head: &[u8], path: &Path) -> Result<u64, LoadError> {
    if !is_image(head) {
        return Ok(0);
    }
    let range =
        contents_range(head).map_err(|source| LoadError::Image { path: path.to_path_buf(), source })?;
    Ok(range.start)
}

/// As [`skip_image`], of a file.
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

/// Fills `octets` from the file; `false` where it has less.
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
