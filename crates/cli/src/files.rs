//! Writing files so that a reader meets the old file or the whole new one: beside, fsync, rename. Reading of inputs.

use crate::beside;
use crate::error::Failure;
use crate::logging::{self, Stream};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read as _, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use zeroize::{Zeroize as _, Zeroizing};

/// Octets that a key file may have: several times what the longest key takes, which is one of MAYO-2.
const KEY_FILE_OCTETS: usize = 64 << 10;

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
pub(crate) fn write_output(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if is_standard(path) {
        let mut out = BufWriter::new(io::stdout().lock());
        write(&mut out)?;
        return out.flush().map_err(Failure::Output);
    }
    // Keys are written with mode 0600 and over no other file: anything else that would take the place of one is a slip.
    if mode != KEY_MODE && path.extension().is_some_and(|extension| extension == "private") && path.exists() {
        return Err(Failure::OverKey { path: path.to_path_buf() });
    }
    let failed = |source| Failure::Write { path: path.to_path_buf(), source };
    if is_special(path) {
        let mut out = BufWriter::new(File::options().write(true).open(path).map_err(failed)?);
        write(&mut out)?;
        return out.flush().map_err(failed);
    }
    let beside = create_beside(path, mode)?;
    let mut out = BufWriter::with_capacity(1 << 20, beside.as_file());
    let written = write(&mut out).and_then(|()| out.flush().map_err(failed));
    // The buffer still holds the octets that it has written: those of a private key are wiped.
    let (_, buffer) = out.into_parts();
    if mode == KEY_MODE {
        buffer.unwrap_or_else(|error| error.into_inner()).zeroize();
    }
    written?;
    beside.as_file().sync_all().map_err(failed)?;
    beside.persist(path).map_err(|error| failed(error.error))?;
    sync_folder(folder_of(path)).map_err(failed)
}

/// Writes a file that is not there yet, as a whole or not at all.
pub(crate) fn write_new(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => Failure::FileThere { path: path.to_path_buf() },
        _ => Failure::Write { path: path.to_path_buf(), source },
    };
    check_new(path)?;
    let beside = beside::create(folder_of(path), mode).map_err(|error| failed(error.kind().into()))?;
    let mut file = beside.as_file();
    write(&mut file)?;
    file.sync_all().map_err(failed)?;
    beside.persist_noclobber(path).map_err(|error| failed(error.error))?;
    sync_folder(folder_of(path)).map_err(failed)
}

/// Refuses an output that is there already, or whose folder is not, before any work is done for it.
pub(crate) fn check_new(path: &Path) -> Result<(), Failure> {
    check_folder(path)?;
    if fs::symlink_metadata(path).is_ok() {
        return Err(Failure::FileThere { path: path.to_path_buf() });
    }
    Ok(())
}

/// The file beside `path`, where the one may take the other's place.
fn create_beside(path: &Path, mode: u32) -> Result<NamedTempFile, Failure> {
    let failed = |source| Failure::Write { path: path.to_path_buf(), source };
    check_folder(path)?;
    check_replaceable(path).map_err(failed)?;
    // The name of the file beside means nothing to the user.
    beside::create(folder_of(path), mode).map_err(|error| failed(error.kind().into()))
}

/// Refuses an output that could not be written, before any work is done for it.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    if is_standard(path) || is_special(path) { Ok(()) } else { create_beside(path, KEY_MODE).map(drop) }
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
pub(crate) fn output_beside(input: &Path, suffix: &str) -> PathBuf {
    if is_standard(input) {
        return input.to_path_buf();
    }
    let mut name = input.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// All octets of the input at `path`; `-` is standard input.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut octets = Vec::new();
    let read = if is_standard(path) {
        io::stdin().lock().read_to_end(&mut octets).map(|_| octets)
    } else {
        fs::read(path)
    };
    read.map_err(|source| Failure::Read { path: input_name(path).to_path_buf(), source })
}

/// Refuses standard input in the place of more than one input: it can be read once.
pub(crate) fn check_inputs<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> Result<(), Failure> {
    match paths.into_iter().filter(|path| is_standard(path)).count() {
        0 | 1 => Ok(()),
        _ => Err(Failure::InputTwice),
    }
}

/// Refuses an output that could not be written, or would take the place of the zone file `source`, before any work is
/// done for it.
pub(crate) fn check_output(path: &Path, source: &Path) -> Result<(), Failure> {
    if is_same_file(path, source) {
        return Err(Failure::OverSource { path: path.to_path_buf() });
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

/// Refuses two outputs that are one: neither would be whole.
pub(crate) fn check_two_outputs(a: &Path, b: &Path) -> Result<(), Failure> {
    let place =
        |path: &Path| (fs::canonicalize(folder_of(path)).ok(), path.file_name().map(ToOwned::to_owned));
    if a == b || is_same_file(a, b) || !is_standard(a) && !is_standard(b) && place(a) == place(b) {
        return Err(Failure::OneOutput { path: a.to_path_buf() });
    }
    Ok(())
}

fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = folder_of(path);
    if fs::metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(Failure::NoFolder { path: path.to_path_buf(), folder: folder.to_path_buf() });
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
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Makes a rename in `folder` last.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Reads a key file: a regular file of bounded length. What is read is wiped from memory when dropped.
pub(crate) fn read_key_file(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let octets = open_regular(path).and_then(read_bounded).and_then(into_text);
    octets.map_err(|source| Failure::Read { path: path.to_path_buf(), source })
}

/// Whether everybody may read a file: those too who are neither its owner nor of its group.
pub(crate) fn is_open(path: &Path) -> bool {
    const OTHERS_READ: u32 = 0o004;
    fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & OTHERS_READ != 0)
}

/// What is said of a private key that everybody may read.
pub(crate) fn open_key_words(private: &Path) -> String {
    format!("{}: everybody may read this private key: chmod o= it", private.display())
}

/// Reads a regular file that is short enough to be a key file; `None` where there is no such file, or it cannot be read.
/// What is read is wiped from memory when dropped.
pub(crate) fn read_small_file(path: &Path) -> Option<Zeroizing<Vec<u8>>> {
    let is_small = fs::metadata(path).is_ok_and(|metadata| metadata.len() <= KEY_FILE_OCTETS as u64);
    if is_small { open_regular(path).and_then(read_bounded).ok() } else { None }
}

fn open_regular(path: &Path) -> io::Result<File> {
    let check = |metadata: fs::Metadata| {
        if metadata.is_file() { Ok(()) } else { Err(io::Error::other(NoKeyFile::Special)) }
    };
    // To open a device may set it to work.
    check(fs::metadata(path)?)?;
    // A pipe that took the file's place meanwhile must not block.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

fn read_bounded(file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    // Room for all of it: a vector that grows leaves a copy behind that nobody wipes.
    let mut octets = Zeroizing::new(Vec::with_capacity(KEY_FILE_OCTETS + 1));
    file.take(KEY_FILE_OCTETS as u64 + 1).read_to_end(&mut octets)?;
    if octets.len() > KEY_FILE_OCTETS { Err(io::Error::other(NoKeyFile::TooLong)) } else { Ok(octets) }
}

fn into_text(mut octets: Zeroizing<Vec<u8>>) -> io::Result<Zeroizing<String>> {
    String::from_utf8(std::mem::take(&mut *octets)).map(Zeroizing::new).map_err(|error| {
        error.into_bytes().zeroize();
        io::Error::other(NoKeyFile::NotText)
    })
}

/// A writer's error as one of the output at `path`.
pub(crate) fn write_failure(path: &Path) -> impl FnOnce(io::Error) -> Failure {
    let path = path.to_path_buf();
    move |source| {
        if is_standard(&path) { Failure::Output(source) } else { Failure::Write { path, source } }
    }
}

/// Prints a line to standard output at once; a reader that has gone is an error here, not a panic.
pub(crate) fn print_line(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failure::Output)
}

/// Says something on standard error. What cannot be said there is lost: it is no reason to end otherwise.
pub(crate) fn say(line: &str) {
    if logging::print_queued(Stream::Error, line).is_none() {
        let _ = writeln!(io::stderr(), "{line}");
    }
}

/// A number of things: `1 zone`, `2 zones`.
pub(crate) fn counted(count: impl TryInto<u64>, what: &str) -> String {
    // Nothing that is counted here goes beyond 64 bits.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
