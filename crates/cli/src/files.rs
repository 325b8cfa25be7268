//! Writing files so that a reader meets the old file or the whole new one: beside, fsync, rename. Reading of inputs.

use crate::atomic_file;
use crate::logging::{self, Stream};
use nonesuch_zone::read::read_remedy;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use zeroize::{Zeroize as _, Zeroizing};

/// Octets that a key file may have: several times what the longest key takes, which is one of MAYO-2.
const KEY_FILE_OCTETS: usize = 64 << 10;

/// Why a file is not read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FileError {
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("standard input can be read once only: give files for all inputs but one")]
    InputTwice,
    #[error("{}: cannot be written: {source}{}", path.display(), write_remedy(source))]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: a private key stands there and is not written over: give another output file", path.display())]
    WouldOverwriteKey { path: PathBuf },
    #[error("{}: the output would take the place of a file that is read: give another output file", path.display())]
    WouldOverwriteInput { path: PathBuf },
    #[error("{}: both outputs would be written there: give another file for one of them", path.display())]
    OneOutput { path: PathBuf },
    #[error("{}: cannot be written: there is no folder {}: make it, or give another output file", path.display(), folder.display())]
    NoDirectory { path: PathBuf, folder: PathBuf },
    #[error("{}: a file is there, and is not written over: move it away, or give another", path.display())]
    FileExists { path: PathBuf },
    #[error("{0}")]
    Output(#[source] OutputError),
}

/// Standard output is not written.
#[derive(Debug, thiserror::Error)]
#[error("standard output: {0}")]
pub(crate) struct OutputError(io::Error);

impl OutputError {
    /// Whether the reader has gone, as `head` has when it has seen enough.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.0.kind() == io::ErrorKind::BrokenPipe
    }
}

impl FileError {
    /// An error of standard output.
    pub(crate) const fn output(error: io::Error) -> Self {
        Self::Output(OutputError(error))
    }
}

/// What to do where a file cannot be written.
fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ": make room, or write to another place"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": write to another place, or make this one writable"
        }
        io::ErrorKind::IsADirectory => ": a folder stands there, name a file",
        _ => "",
    }
}

/// Why what stands at a path is not read as a key file.
#[derive(Debug, thiserror::Error)]
enum NoKeyFile {
    #[error("not a regular file: give a key file, no pipe, device or folder")]
    Special,
    #[error("longer than {KEY_FILE_OCTETS} octets, which no key file is: give a key file")]
    TooLong,
    #[error("not text in UTF-8, which a key file is: restore it from a copy")]
    NotText,
}

/// Permissions of private key files: for their owner alone.
pub(crate) const KEY_MODE: u32 = 0o600;

/// Writes to `path` what `write` produces; `-` is standard output. Where anything fails, what was there stays.
pub(crate) fn write_output<E: From<FileError>>(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    if is_standard(path) {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&mut out)?;
        return Ok(out.flush().map_err(FileError::output)?);
    }
    // Keys are written with mode 0600 and over no other file: anything else that would take the place of one is a slip.
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
    // The buffer still holds the octets that it has written: those of a private key are wiped.
    let (_, buffer) = out.into_parts();
    if mode == KEY_MODE {
        buffer.unwrap_or_else(|error| error.into_inner()).zeroize();
    }
    written?;
    atomic.as_file().sync_all().map_err(failed)?;
    atomic.persist(path).map_err(|error| failed(error.error))?;
    Ok(sync_folder(parent_directory(path)).map_err(failed)?)
}

/// Writes a file that is not there yet, as a whole or not at all.
pub(crate) fn write_new<E: From<FileError>>(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => FileError::FileExists { path: path.to_path_buf() },
        _ => FileError::Write { path: path.to_path_buf(), source },
    };
    check_new(path)?;
    let atomic =
        atomic_file::create(parent_directory(path), mode).map_err(|error| failed(error.kind().into()))?;
    let mut file = atomic.as_file();
    write(&mut file)?;
    file.sync_all().map_err(failed)?;
    atomic.persist_noclobber(path).map_err(|error| failed(error.error))?;
    Ok(sync_folder(parent_directory(path)).map_err(failed)?)
}

/// Refuses an output that is there already, or whose folder is not, before any work is done for it.
pub(crate) fn check_new(path: &Path) -> Result<(), FileError> {
    check_folder(path)?;
    if fs::symlink_metadata(path).is_ok() {
        return Err(FileError::FileExists { path: path.to_path_buf() });
    }
    Ok(())
}

/// An atomic file that may take the place of `path`.
fn create_atomic(path: &Path, mode: u32) -> Result<NamedTempFile, FileError> {
    let failed = |source| FileError::Write { path: path.to_path_buf(), source };
    check_folder(path)?;
    check_replaceable(path).map_err(failed)?;
    // The name of the atomic file means nothing to the user.
    atomic_file::create(parent_directory(path), mode).map_err(|error| failed(error.kind().into()))
}

/// Refuses an output that could not be written, before any work is done for it.
pub(crate) fn check_writable(path: &Path) -> Result<(), FileError> {
    if is_standard(path) || is_special(path) { Ok(()) } else { create_atomic(path, KEY_MODE).map(drop) }
}

/// Whether `path` stands for standard input or output.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// What messages call the input at `path`.
pub(crate) fn input_name(path: &Path) -> &Path {
    if is_standard(path) { Path::new("standard input") } else { path }
}

/// Where an output goes whose name is not given: to the input's with `suffix` behind it, to standard output where the input
/// is standard input.
pub(crate) fn default_output(input: &Path, suffix: &str) -> PathBuf {
    if is_standard(input) {
        return input.to_path_buf();
    }
    let mut name = input.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// All octets of the input at `path`; `-` is standard input.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>, FileError> {
    let mut octets = Vec::new();
    let read = if is_standard(path) {
        io::stdin().lock().read_to_end(&mut octets).map(|_| octets)
    } else {
        fs::read(path)
    };
    read.map_err(|source| FileError::Read { path: input_name(path).to_path_buf(), source })
}

/// Refuses standard input in the place of more than one input: it can be read once.
pub(crate) fn check_inputs<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), FileError> {
    match paths.into_iter().filter(|path| is_standard(path)).count() {
        0 | 1 => Ok(()),
        _ => Err(FileError::InputTwice),
    }
}

/// Refuses an output that could not be written, or would take the place of the zone file `source`, before any work is
/// done for it.
pub(crate) fn check_output(path: &Path, source: &Path) -> Result<(), FileError> {
    if is_same_file(path, source) {
        return Err(FileError::WouldOverwriteInput { path: path.to_path_buf() });
    }
    check_writable(path)
}

/// Whether both are one file, by whatever name: links and other spellings of the path too.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        _ if is_standard(a) || is_standard(b) => false,
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// Whether both paths name one place in the file system, where there may be no file.
pub(crate) fn is_same_place(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        (fs::canonicalize(parent_directory(path)).ok(), path.file_name().map(ToOwned::to_owned))
    };
    a == b || is_same_file(a, b) || !is_standard(a) && !is_standard(b) && place(a) == place(b)
}

/// Whether there is nothing at `path`.
pub(crate) fn is_missing(path: &Path) -> bool {
    !is_standard(path)
        && fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Refuses two outputs that are one: neither would be whole.
pub(crate) fn check_two_outputs(a: &Path, b: &Path) -> Result<(), FileError> {
    if is_same_place(a, b) {
        return Err(FileError::OneOutput { path: a.to_path_buf() });
    }
    Ok(())
}

fn check_folder(path: &Path) -> Result<(), FileError> {
    let folder = parent_directory(path);
    if fs::metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(FileError::NoDirectory { path: path.to_path_buf(), folder: folder.to_path_buf() });
    }
    Ok(())
}

/// Refuses what a rename would not replace, a folder, and what it would against its owner's wish: a file that nobody may
/// write.
fn check_replaceable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.permissions().readonly() => Err(io::ErrorKind::PermissionDenied.into()),
        _ => Ok(()),
    }
}

/// Whether a device, pipe or socket stands at `path`: a rename would put a file in its place.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// The folder that `path` stands in.
pub(crate) fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// The path that a file at `path` is replaced at: a rename to a symbolic link would replace the link.
///
/// # Errors
/// Where the link leads to nothing: the file would be somewhere else than its operator has said.
pub(crate) fn resolve_link(path: &Path) -> io::Result<PathBuf> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        fs::canonicalize(path)
    } else {
        Ok(path.to_path_buf())
    }
}

/// Makes a rename in `folder` last.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Reads a key file, as [`read_key_text`].
pub(crate) fn read_key_file(path: &Path) -> Result<Zeroizing<String>, FileError> {
    read_key_text(path).map_err(|source| FileError::Read { path: path.to_path_buf(), source })
}

/// Reads a key file: a regular file of bounded length. What is read is wiped from memory when dropped.
pub(crate) fn read_key_text(path: &Path) -> io::Result<Zeroizing<String>> {
    open_key_file(path).and_then(read_bounded).and_then(into_text)
}

/// Whether everybody may read a file: those too who are neither its owner nor of its group.
pub(crate) fn is_world_readable(path: &Path) -> bool {
    const OTHERS_READ: u32 = 0o004;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & OTHERS_READ != 0)
}

/// What is said of a private key that everybody may read.
pub(crate) fn readable_key_warning(private: &Path) -> String {
    format!("{}: everybody may read this private key: chmod o= it", private.display())
}

/// Reads a regular file that is short enough to be a key file; `None` where there is no such file, or it cannot be read.
/// What is read is wiped from memory when dropped.
pub(crate) fn read_small_file(path: &Path) -> Option<Zeroizing<Vec<u8>>> {
    let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= KEY_FILE_OCTETS as u64);
    if is_small { open_key_file(path).and_then(read_bounded).ok() } else { None }
}

fn open_key_file(path: &Path) -> io::Result<File> {
    open_regular(path)?.ok_or_else(|| io::Error::other(NoKeyFile::Special))
}

/// Opens a regular file for reading; `None` where something else is at `path`. Never waits, whoever may replace the file.
pub(crate) fn open_regular(path: &Path) -> io::Result<Option<File>> {
    // To open a device may set it to work.
    if fs::metadata(path)?.is_file() { open_replaced(path) } else { Ok(None) }
}

/// Opens a file that a pipe or a device may have replaced since it was looked at: that is closed again, without waiting for a writer.
fn open_replaced(path: &Path) -> io::Result<Option<File>> {
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    let is_regular = file.metadata()?.is_file();
    Ok(is_regular.then_some(file))
}

fn read_bounded(file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    // Room for all of it: a vector that grows leaves a copy behind that nobody wipes.
    let mut octets = Zeroizing::new(Vec::with_capacity(KEY_FILE_OCTETS + 1));
    file.take(KEY_FILE_OCTETS as u64 + 1).read_to_end(&mut octets)?;
    if octets.len() > KEY_FILE_OCTETS { Err(io::Error::other(NoKeyFile::TooLong)) } else { Ok(octets) }
}

/// Reads all of `source` into a buffer that begins with `room` octets. The octets are wiped from memory when dropped. Each buffer that
/// was too small is wiped too.
pub(crate) fn read_wiped(mut source: impl io::Read, room: usize) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut octets = Zeroizing::new(vec![0; room.max(1)]);
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

/// Reads a regular file of at most `most` octets of text, in which there is no secret.
pub(crate) fn read_public_text(path: &Path, most: usize) -> io::Result<String> {
    let mut text = String::new();
    open_key_file(path)?.take(most as u64 + 1).read_to_string(&mut text)?;
    if text.len() > most { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(text) }
}

fn into_text(mut octets: Zeroizing<Vec<u8>>) -> io::Result<Zeroizing<String>> {
    String::from_utf8(std::mem::take(&mut *octets)).map(Zeroizing::new).map_err(|error| {
        error.into_bytes().zeroize();
        io::Error::other(NoKeyFile::NotText)
    })
}

/// A writer's error as one of the output at `path`.
pub(crate) fn write_failure(path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_path_buf();
    move |source| {
        if is_standard(&path) { FileError::output(source) } else { FileError::Write { path, source } }
    }
}

/// Prints a line to standard output at once; a reader that has gone is an error here, not a panic.
pub(crate) fn print_line(line: &str) -> Result<(), FileError> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(FileError::output)
}

/// Prints the summary of a run on standard output, unless the command is quiet.
pub(crate) fn print_summary(line: &str) -> Result<(), FileError> {
    if logging::is_quiet() { Ok(()) } else { print_line(line) }
}

/// Says something on standard error. What cannot be said there is lost: it is no reason to end otherwise.
pub(crate) fn say(line: &str) {
    if logging::print_queued(Stream::Error, line).is_none() {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// A number of things: `1 zone`, `2 zones`.
pub(crate) fn count_text(count: impl TryInto<u64>, what: &str) -> String {
    // Nothing that is counted here goes beyond 64 bits.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    /// Between the look at a file and its opening, whoever may write to its directory may put a pipe in its place.
    #[test]
    fn a_pipe_that_replaces_a_regular_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        fs::write(&file, "x").unwrap();
        assert!(open_replaced(&pipe).unwrap().is_none());
        assert!(open_replaced(&file).unwrap().is_some());
        assert!(open_regular(&pipe).unwrap().is_none());
        assert!(open_regular(folder.path()).unwrap().is_none());
    }
}
