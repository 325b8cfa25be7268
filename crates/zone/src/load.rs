//! Zone files and compiled zones alike: which of them a file is, its first octets say.

use crate::builder::Warning;
use crate::compiled::{self, CompiledError, MAGIC_OCTETS, Verification};
use crate::contents::Contents;
use crate::read::{self, ReadError, ReadFault};
use nonesuch_proto::Name;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};

/// A zone as it was found in a file.
#[derive(Debug)]
pub struct Loaded {
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
}

/// Reads the zone file or compiled zone at `path`. `origin` is the apex where it is known.
///
/// # Errors
/// What keeps the file from being a zone, or one of that origin.
pub fn load(path: &Path, origin: Option<&Name>) -> Result<Loaded, LoadError> {
    let unreadable =
        |error| ReadError { file: path.to_path_buf(), line: 0, column: 0, fault: ReadFault::Io(error) };
    let compiled = |source| LoadError::Compiled { path: path.to_path_buf(), source };
    let mut file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        // A pipe is read once.
        return load_octets(file, path, origin);
    }
    let mut magic = [0; MAGIC_OCTETS];
    if !fill(&mut file, &mut magic).map_err(unreadable)? || !compiled::is_compiled(&magic) {
        return Ok(of_text(read::read_file(path, origin)?));
    }
    file.rewind().map_err(unreadable)?;
    let found = compiled::read_from(&mut file, metadata.len());
    found.and_then(|found| of_compiled(found, origin)).map_err(compiled)
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
) -> Result<Loaded, LoadError> {
    let mut octets = Vec::new();
    input.read_to_end(&mut octets).map_err(|error| ReadError {
        file: path.to_path_buf(),
        line: 0,
        column: 0,
        fault: ReadFault::Io(error),
    })?;
    if !compiled::is_compiled(&octets) {
        return Ok(of_text(read::read_text(&octets, path, origin)?));
    }
    compiled::read(&octets)
        .and_then(|found| of_compiled(found, origin))
        .map_err(|source| LoadError::Compiled { path: path.to_path_buf(), source })
}

/// Fills `octets` from the file; `false` where it has less.
fn fill(file: &mut File, octets: &mut [u8]) -> io::Result<bool> {
    match file.read_exact(octets) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        outcome => outcome.map(|()| true),
    }
}

fn of_text(reading: read::Reading) -> Loaded {
    Loaded { contents: reading.contents, warnings: reading.warnings, verification: None }
}

fn of_compiled(
    (contents, verification): (Contents, Verification),
    origin: Option<&Name>,
) -> Result<Loaded, CompiledError> {
    if let Some(origin) = origin.filter(|origin| *origin != contents.apex()) {
        return Err(CompiledError::WrongOrigin { found: contents.apex().clone(), origin: origin.clone() });
    }
    Ok(Loaded { contents, warnings: Vec::new(), verification: Some(verification) })
}
