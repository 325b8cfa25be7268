//! Input and output files. Outputs are written to a temporary file, synchronized (fsync) and
//! renamed, so that a reader sees either the old file or the complete new file.

use crate::atomic_file;
use crate::logging::{self, Stream};
use nonesuch_zone::read::read_remedy;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use zeroize::{Zeroize as _, Zeroizing};

/// Maximum size of a key file, in octets. It is several times the size of the file of a MAYO-2 key,
/// which is the largest.
const MAX_KEY_FILE_OCTETS: usize = 64 << 10;

/// Why a file is not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FileError {
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("standard input can be read only once: name files for all other inputs")]
    StandardInputTwice,
    #[error("{}: cannot be written: {source}{}", path.display(), write_remedy(source))]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: is a private key; refusing to overwrite it: name another output file", path.display())]
    WouldOverwriteKey { path: PathBuf },
    #[error("{}: the output would overwrite an input file: name another output file", path.display())]
    WouldOverwriteInput { path: PathBuf },
    #[error("{}: two outputs have the same file: name another file for one of them", path.display())]
    SameOutput { path: PathBuf },
    #[error("{}: cannot be written: the directory {} does not exist: create it, or name another output \
        file", path.display(), directory.display())]
    NoDirectory { path: PathBuf, directory: PathBuf },
    #[error("{}: already exists; refusing to overwrite it: move it, or name another file", path.display())]
    FileExists { path: PathBuf },
    #[error("{0}")]
    Output(#[source] OutputError),
}

/// Why standard output is not written.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
pub(crate) struct OutputError(io::Error);

impl OutputError {
    /// Whether the reader has closed the output, as `head` does.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl FileError {
    /// Wraps an error of standard output.
    pub(crate) const fn output(error: io::Error) -> Self {
        Self::Output(OutputError(error))
    }
}

/// The remedy for a file that exceeds the limit of the process or the file system.
pub(crate) const FILE_SIZE_REMEDY: &str =
    ": raise the limit on the size of files (ulimit -f), or use a file system that permits larger files";

/// The remedy for a file that cannot be written.
fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free disk space, or name another output file"
        }
        io::ErrorKind::FileTooLarge => FILE_SIZE_REMEDY,
        io::ErrorKind::PermissionDenied => {
            ": make the file and its directory writable, or name another output file"
        }
        io::ErrorKind::ReadOnlyFilesystem => ": name an output file on a writable file system",
        io::ErrorKind::IsADirectory => ": name a file in it",
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ": correct the path",
        _ => "",
    }
}

/// Why a file is not read as a key file.
#[derive(Debug, thiserror::Error)]
enum NotAKeyFile {
    #[error("not a regular file, but a pipe, device or directory: name a key file")]
    Special,
    #[error("longer than {MAX_KEY_FILE_OCTETS} octets, the maximum of a key file: name a key file")]
    TooLong,
    #[error("not UTF-8 text, so not a key file: restore it from a backup")]
    NotText,
}

/// Mode of private key files: only the owner has access.
pub(crate) const KEY_MODE: u32 = 0o600;

/// Writes the output of `write` to `path`; `-` is standard output. A device, pipe or socket is
/// written directly. Otherwise, a new file with the permissions `mode` replaces the file at `path`.
///
/// # Errors
/// An error of `write`; or the file cannot be written or is a private key. The old file then stays
/// unchanged, except if the last step fails, which makes the rename durable.
pub(crate) fn write_output<E: From<FileError>>(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    if is_standard_stream(path) {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&mut out)?;
        return Ok(out.flush().map_err(FileError::output)?);
    }
    // Key files are written with mode 0600 and never replace a file. If another output would
    // replace a key file, this is a mistake.
    if mode != KEY_MODE && path.extension().is_some_and(|extension| extension == "private") && path.exists() {
        return Err(FileError::WouldOverwriteKey { path: path.to_path_buf() }.into());
    }
    let failed = |source| FileError::Write { path: path.to_path_buf(), source };
    if is_special(path) {
        let mut out = BufWriter::new(File::options().write(true).open(path).map_err(failed)?);
        write(&mut out)?;
        return Ok(out.flush().map_err(failed)?);
    }
    let atomic = create_atomic(path, mode)?;
    let mut out = BufWriter::with_capacity(1 << 20, atomic.as_file());
    let written = write(&mut out).and_then(|()| Ok(out.flush().map_err(failed)?));
    // The buffer still contains the octets that were written. Those of a private key are wiped.
    let (_, buffer) = out.into_parts();
    if mode == KEY_MODE {
        buffer.unwrap_or_else(|error| error.into_inner()).zeroize();
    }
    written?;
    atomic.as_file().sync_all().map_err(failed)?;
    atomic.persist(path).map_err(|error| failed(error.error))?;
    Ok(sync_directory(parent_directory(path)).map_err(failed)?)
}

/// Writes a new file with the permissions `mode`, completely or not at all.
///
/// # Errors
/// An error of `write`; or the file exists or cannot be written.
pub(crate) fn write_new_file<E: From<FileError>>(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => FileError::FileExists { path: path.to_path_buf() },
        _ => FileError::Write { path: path.to_path_buf(), source },
    };
    check_new_output(path)?;
    let atomic =
        atomic_file::create(parent_directory(path), mode).map_err(|error| failed(without_path(&error)))?;
    let mut file = atomic.as_file();
    write(&mut file)?;
    file.sync_all().map_err(failed)?;
    atomic.persist_noclobber(path).map_err(|error| failed(error.error))?;
    Ok(sync_directory(parent_directory(path)).map_err(failed)?)
}

/// Checks, before any work is done, that an output does not exist and that its directory exists.
pub(crate) fn check_new_output(path: &Path) -> Result<(), FileError> {
    check_directory_exists(path)?;
    if fs::symlink_metadata(path).is_ok() {
        return Err(FileError::FileExists { path: path.to_path_buf() });
    }
    Ok(())
}

/// A temporary file that can replace `path`.
fn create_atomic(path: &Path, mode: u32) -> Result<NamedTempFile, FileError> {
    let failed = |source| FileError::Write { path: path.to_path_buf(), source };
    check_directory_exists(path)?;
    check_replaceable(path).map_err(failed)?;
    atomic_file::create(parent_directory(path), mode).map_err(|error| failed(without_path(&error)))
}

/// The error of creating a temporary file, without the name of this file, which means nothing to
/// the user. The text is that of the system, so that one cause always has the same text.
fn without_path(error: &io::Error) -> io::Error {
    let code = match error.kind() {
        io::ErrorKind::PermissionDenied => libc::EACCES,
        io::ErrorKind::ReadOnlyFilesystem => libc::EROFS,
        io::ErrorKind::StorageFull => libc::ENOSPC,
        io::ErrorKind::QuotaExceeded => libc::EDQUOT,
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::NotADirectory => libc::ENOTDIR,
        kind => return kind.into(),
    };
    io::Error::from_raw_os_error(code)
}

/// Checks, before any work is done, that an output can be written. Does not change the file.
pub(crate) fn check_writable(path: &Path) -> Result<(), FileError> {
    if is_standard_stream(path) || is_special(path) {
        Ok(())
    } else {
        create_atomic(path, KEY_MODE).map(drop)
    }
}

/// Whether `path` refers to standard input or output.
pub(crate) fn is_standard_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// The name of the input at `path` in messages.
pub(crate) fn input_name(path: &Path) -> &Path {
    if is_standard_stream(path) { Path::new("standard input") } else { path }
}

/// The default output path: the path of the input with the suffix `suffix`, or standard output if
/// the input is standard input.
pub(crate) fn default_output(input: &Path, suffix: &str) -> PathBuf {
    if is_standard_stream(input) {
        return input.to_path_buf();
    }
    let mut name = input.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Reads the complete input at `path`; `-` is standard input.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut octets = Vec::new();
    let read = if is_standard_stream(path) {
        io::stdin().lock().read_to_end(&mut octets).map(|_| octets)
    } else {
        fs::read(path)
    };
    read.map_err(|source| FileError::Read { path: input_name(path).to_path_buf(), source })
}

/// Fails if more than one input is standard input, because it can be read only once.
pub(crate) fn check_inputs<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), FileError> {
    match paths.into_iter().filter(|path| is_standard_stream(path)).count() {
        0 | 1 => Ok(()),
        _ => Err(FileError::StandardInputTwice),
    }
}

/// Checks, before any work is done, that an output can be written and would not replace the zone
/// file `source`.
pub(crate) fn check_output(path: &Path, source: &Path) -> Result<(), FileError> {
    if is_same_file(path, source) {
        return Err(FileError::WouldOverwriteInput { path: path.to_path_buf() });
    }
    check_writable(path)
}

/// Whether both paths refer to the same file, also through links or different spellings.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        _ if is_standard_stream(a) || is_standard_stream(b) => false,
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Whether both paths refer to the same location in the file system. The file need not exist.
pub(crate) fn is_same_path(a: &Path, b: &Path) -> bool {
    let resolved = |path: &Path| {
        (fs::canonicalize(parent_directory(path)).ok(), path.file_name().map(ToOwned::to_owned))
    };
    a == b
        || is_same_file(a, b)
        || !is_standard_stream(a) && !is_standard_stream(b) && resolved(a) == resolved(b)
}

/// Whether no file exists at `path`. False for `-`, and for a path that cannot be examined.
pub(crate) fn is_missing(path: &Path) -> bool {
    !is_standard_stream(path)
        && fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Fails if two outputs have the same path, because one would overwrite the other.
pub(crate) fn check_distinct_outputs(a: &Path, b: &Path) -> Result<(), FileError> {
    if is_same_path(a, b) {
        return Err(FileError::SameOutput { path: a.to_path_buf() });
    }
    Ok(())
}

/// Checks that the parent directory of `path` exists.
fn check_directory_exists(path: &Path) -> Result<(), FileError> {
    let directory = parent_directory(path);
    if fs::metadata(directory).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(FileError::NoDirectory { path: path.to_path_buf(), directory: directory.to_path_buf() });
    }
    Ok(())
}

/// Checks that a rename can and may replace the file: it cannot replace a directory, and it must
/// not replace a read-only file.
fn check_replaceable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        Ok(metadata) if metadata.permissions().readonly() => Err(io::Error::from_raw_os_error(libc::EACCES)),
        _ => Ok(()),
    }
}

/// Whether a device, pipe or socket is at `path`. A rename would replace it with a file.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The parent directory of `path`; `.` for a path without a directory.
pub(crate) fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// The path at which a file at `path` is replaced. For a symbolic link, this is the target, because
/// a rename to the link would replace the link.
///
/// # Errors
/// The target of the link does not exist. Otherwise, the file would be created at a path that the
/// operator did not intend.
pub(crate) fn resolve_link(path: &Path) -> io::Result<PathBuf> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        fs::canonicalize(path)
    } else {
        Ok(path.to_path_buf())
    }
}

/// Makes a rename in `directory` durable.
fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Reads a key file, like [`read_key_text`].
pub(crate) fn read_key_file(path: &Path) -> Result<Zeroizing<String>, FileError> {
    read_key_text(path).map_err(|source| FileError::Read { path: path.to_path_buf(), source })
}

/// Reads a key file: a regular file of limited size. The text is wiped from memory on drop.
pub(crate) fn read_key_text(path: &Path) -> io::Result<Zeroizing<String>> {
    open_key_file(path).and_then(read_bounded).and_then(into_text)
}

/// Whether users other than the owner and outside the group may read a file.
pub(crate) fn is_world_readable(path: &Path) -> bool {
    const OTHERS_READ: u32 = 0o004;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & OTHERS_READ != 0)
}

/// The warning about a private key that every user may read.
pub(crate) fn readable_key_warning(private: &Path) -> String {
    format!("{}: every user may read this private key: chmod o= it", private.display())
}

/// Reads a regular file that is not larger than a key file. Returns `None` if there is no such file
/// or it cannot be read. The content is wiped from memory on drop.
pub(crate) fn read_small_file(path: &Path) -> Option<Zeroizing<Vec<u8>>> {
    let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_KEY_FILE_OCTETS as u64);
    if is_small { open_key_file(path).and_then(read_bounded).ok() } else { None }
}

fn open_key_file(path: &Path) -> io::Result<File> {
    open_regular(path)?.ok_or_else(|| io::Error::other(NotAKeyFile::Special))
}

/// Opens a regular file for reading. Returns `None` for other kinds of files. Never blocks, even if
/// another user replaces the file at the same time.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    // Opening a device may trigger an action of the device.
    if fs::metadata(path)?.is_file() { open_without_blocking(path) } else { Ok(None) }
}

/// Opens a file that another user may have replaced with a pipe or a device since it was checked.
/// Does not wait for a writer. Returns `None` for a pipe or device, which is closed again.
fn open_without_blocking(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let is_regular = file.metadata()?.is_file();
    Ok(is_regular.then_some(file))
}

/// Reads at most [`MAX_KEY_FILE_OCTETS`] octets. Fails if the file is longer.
fn read_bounded(file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    // The capacity is sufficient for the maximum size, because a reallocation would leave a copy
    // that is not wiped.
    let mut octets = Zeroizing::new(Vec::with_capacity(MAX_KEY_FILE_OCTETS + 1));
    file.take(MAX_KEY_FILE_OCTETS as u64 + 1).read_to_end(&mut octets)?;
    if octets.len() > MAX_KEY_FILE_OCTETS { Err(io::Error::other(NotAKeyFile::TooLong)) } else { Ok(octets) }
}

/// Reads all of `source`, with an initial buffer of `capacity` octets. The octets are wiped from
/// memory on drop, and each smaller buffer is wiped when it is replaced.
pub(crate) fn read_wiped(mut source: impl io::Read, capacity: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut octets = Zeroizing::new(vec![0; capacity.max(1)]);
    let mut length = 0;
    loop {
        if length == octets.len() {
            let mut larger = Zeroizing::new(vec![0; 2 * length]);
            larger[..length].copy_from_slice(&octets);
            octets = larger;
        }
        match source.read(&mut octets[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    octets.truncate(length);
    Ok(octets)
}

/// Reads a regular text file of at most `max` octets that contains no secret.
pub(crate) fn read_public_text(path: &Path, max: usize) -> io::Result<String> {
    let mut text = String::new();
    open_key_file(path)?.take(max as u64 + 1).read_to_string(&mut text)?;
    if text.len() > max { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

fn into_text(mut octets: Zeroizing<Vec<u8>>) -> io::Result<Zeroizing<String>> {
    String::from_utf8(std::mem::take(&mut *octets)).map(Zeroizing::new).map_err(|error| {
        error.into_bytes().zeroize();
        io::Error::other(NotAKeyFile::NotText)
    })
}

/// Converts the error of a writer to an error of the output at `path`.
pub(crate) fn write_failure(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_path_buf();
    move |source| {
        if is_standard_stream(&path) { FileError::output(source) } else { FileError::Write { path, source } }
    }
}

/// Prints a line to standard output and flushes it. If the reader has closed the output, this is an
/// error, not a panic.
pub(crate) fn print_line(line: &str) -> Result<(), FileError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(FileError::output)
}

/// Prints the summary of a run to standard output, unless the command is quiet.
pub(crate) fn print_summary(line: &str) -> Result<(), FileError> {
    if logging::is_quiet() { Ok(()) } else { print_line(line) }
}

/// Prints a line to standard error. Ignores a write error, because it must not change the outcome.
pub(crate) fn print_to_stderr(line: &str) {
    if logging::print_queued(Stream::Error, line).is_none() {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// A number with a noun, which is given in the singular: `1 zone`, `2 zones`.
pub(crate) fn count_text(count: impl TryInto<u64>, noun: &str) -> String {
    // No count here exceeds 64 bits.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    /// Between the check of a file and its opening, a user with write access to its directory can
    /// replace it with a pipe.
    #[test]
    fn opening_a_pipe_that_replaced_a_regular_file_does_not_block() {
        let directory = tempfile::tempdir().unwrap();
        let (pipe, file) = (directory.path().join("pipe"), directory.path().join("file"));
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        fs::write(&file, "x").unwrap();
        assert!(open_without_blocking(&pipe).unwrap().is_none());
        assert!(open_without_blocking(&file).unwrap().is_some());
        assert!(open_regular(&pipe).unwrap().is_none());
        assert!(open_regular(directory.path()).unwrap().is_none());
    }
}
