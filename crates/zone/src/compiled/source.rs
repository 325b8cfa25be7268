//! Source of the octets of a compiled zone: a file or memory.

use super::CompiledError;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::time::SystemTime;

/// A range of octets with random access.
#[derive(Debug)]
pub(super) struct Source<'s> {
    backing: Backing<'s>,
    length: u64,
    /// Modification time of the file when it was opened.
    modified: Option<SystemTime>,
}

#[derive(Debug)]
enum Backing<'s> {
    Octets(Cow<'s, [u8]>),
    /// The file, and the offset of the range in it.
    File(File, u64),
}

impl<'s> Source<'s> {
    pub(super) fn of_octets(octets: impl Into<Cow<'s, [u8]>>) -> Self {
        let octets = octets.into();
        Self { length: octets.len() as u64, backing: Backing::Octets(octets), modified: None }
    }

    pub(super) fn of_file(file: File, offset: u64, length: u64) -> Self {
        Self { modified: modified(&file), backing: Backing::File(file, offset), length }
    }

    /// Whether the modification time of the file is the same as when it was opened. Always true for
    /// memory.
    pub(super) fn is_unmodified(&self) -> bool {
        match &self.backing {
            Backing::Octets(_) => true,
            Backing::File(file, _) => modified(file) == self.modified,
        }
    }

    pub(super) const fn length(&self) -> u64 {
        self.length
    }

    /// Fills `octets` with the octets at `at`.
    pub(super) fn read_at(&self, octets: &mut [u8], at: u64) -> io::Result<()> {
        match &self.backing {
            Backing::File(file, offset) => file.read_exact_at(octets, offset + at),
            Backing::Octets(all) => {
                let found = usize::try_from(at).ok().and_then(|at| all.get(at..)?.get(..octets.len()));
                octets.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }

    /// Reads the octets `at..at + length`. Too little memory is an error and does not abort the
    /// process.
    pub(super) fn read_range(&self, at: u64, length: u64) -> Result<Vec<u8>, CompiledError> {
        if at.checked_add(length).is_none_or(|end| end > self.length) {
            return Err(CompiledError::Truncated { found: self.length });
        }
        let mut octets = Vec::new();
        try_resize(&mut octets, length)?;
        self.read_at(&mut octets, at).map_err(|error| self.read_error(error))?;
        Ok(octets)
    }

    /// Converts an error of reading. The end of the file is reported as
    /// [`CompiledError::Truncated`], because the file has become shorter since it was opened.
    pub(super) fn read_error(&self, error: io::Error) -> CompiledError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => CompiledError::Truncated { found: self.length },
            _ => CompiledError::Io(error),
        }
    }
}

/// Changes the length of `octets`; new octets are 0. Too little memory is an error and does not
/// abort the process.
pub(super) fn try_resize(octets: &mut Vec<u8>, length: u64) -> io::Result<()> {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let additional = length.saturating_sub(octets.len());
    octets.try_reserve_exact(additional).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    octets.resize(length, 0);
    Ok(())
}

/// Returns the modification time; `None` if the system does not provide it.
fn modified(file: &File) -> Option<SystemTime> {
    file.metadata().and_then(|metadata| metadata.modified()).ok()
}

pub(super) fn u32_le(octets: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
}

pub(super) fn u16_le(octets: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([octets[at], octets[at + 1]])
}

pub(super) fn u64_le(octets: &[u8], at: usize) -> u64 {
    u64::from(u32_le(octets, at)) | u64::from(u32_le(octets, at + 4)) << 32
}
