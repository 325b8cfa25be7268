//! The file with the totals.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The environment variable that names the file.
const VARIABLE: &str = "NONESUCH_VERIFICATIONS";
/// Maximum octets of a line: three numbers.
const LINE_MAX: usize = 64;

struct Output {
    file: File,
    /// Device and inode, to recognize a descriptor that was closed and used again.
    place: (u64, u64),
    /// Whether the last line is incomplete, because the disk was full.
    is_cut: AtomicBool,
}

static OUTPUT: OnceLock<Output> = OnceLock::new();

/// Opens the file for appending.
pub(crate) fn open() {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let opened =
        OpenOptions::new().append(true).create(true).mode(0o644).custom_flags(libc::O_NOFOLLOW).open(&path);
    let output = opened.and_then(above_standard_streams).and_then(|file| {
        let metadata = file.metadata()?;
        Ok(Output { file, place: (metadata.dev(), metadata.ino()), is_cut: AtomicBool::new(false) })
    });
    match output {
        Ok(output) => {
            let _ = OUTPUT.set(output);
        }
        Err(error) => {
            complain(&format!("{}: cannot be opened: {error}: no totals are written", path.display()))
        }
    }
}

/// Moves the descriptor above those of the standard streams, which a program may open later.
fn above_standard_streams(file: File) -> std::io::Result<File> {
    const FIRST: i32 = 3;
    if file.as_raw_fd() >= FIRST {
        return Ok(file);
    }
    // SAFETY: the descriptor is open.
    let moved = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, FIRST) };
    if moved < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, so nothing else owns it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(moved) }))
}

pub(crate) fn is_open() -> bool {
    OUTPUT.get().is_some()
}

/// Writes a line with the time in microseconds since 1970. Returns false if the descriptor is no
/// longer that of the file. A line that cannot be written, for example to a full disk, is omitted.
pub(crate) fn write(time: u64, total: u64) -> bool {
    let Some(output) = OUTPUT.get() else { return false };
    let is_same = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino()) == output.place;
    if !output.file.metadata().is_ok_and(is_same) {
        return false;
    }
    let mut line = [0; LINE_MAX];
    let mut rest = &mut line[..];
    let start = if output.is_cut.load(Ordering::Relaxed) { "\n" } else { "" };
    let _ = writeln!(rest, "{start}{time} {total} {}", std::process::id());
    let length = LINE_MAX - rest.len();
    // One write(2) for each line, so that lines of several processes do not mix.
    if let Ok(written) = (&output.file).write(&line[..length]) {
        output.is_cut.store(written < length, Ordering::Relaxed);
    }
    true
}

/// The time in microseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

/// Prints a message to standard error.
pub(crate) fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "count-verifications: {message}");
}
