//! The dnstap writer thread: takes the buffers of the threads, writes them, and reconnects.

use super::frames;
use super::queue::FrameBuffer;
use super::{Destination, DnstapError, DnstapState};
use nonesuch_proto::dnstap::{CONTENT_TYPE, Control, push_control};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Interval in which the writer takes the buffers.
const INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time for a reader to accept a buffer, or to answer a control frame.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same when the export ends.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// Pauses between connection attempts: doubled from the first value to the last.
const RETRY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// The open file or connection.
enum Output {
    File(File),
    Socket(UnixStream),
}

impl Output {
    fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.write_all(octets),
            Self::Socket(stream) => stream.write_all(octets),
        }
    }

    fn close(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => {
                let mut stop = Vec::new();
                push_control(Control::Stop, None, &mut stop);
                file.write_all(&stop)
            }
            Self::Socket(stream) => {
                stream.set_write_timeout(Some(LAST_PATIENCE))?;
                stream.set_read_timeout(Some(LAST_PATIENCE))?;
                frames::close(stream)
            }
        }
    }
}

pub(super) struct Writer {
    destination: Destination,
    shared: Arc<DnstapState>,
    output: Option<Output>,
    /// Time of the next connection attempt, and the pause after it.
    retry_at: Instant,
    pause: Duration,
    /// Empty except between two swaps.
    frames: FrameBuffer,
}

impl Writer {
    pub(super) fn new(destination: Destination, shared: Arc<DnstapState>) -> Result<Self, DnstapError> {
        let mut writer = Self {
            destination,
            shared,
            output: None,
            retry_at: Instant::now(),
            pause: RETRY.0,
            frames: FrameBuffer::default(),
        };
        if let Destination::File(path) = &writer.destination {
            let file = begin_file(path).map_err(|source| DnstapError::File { path: path.clone(), source })?;
            writer.shared.opened.fetch_add(1, Relaxed);
            writer.output = Some(Output::File(file));
        }
        Ok(writer)
    }

    pub(super) fn run(mut self) {
        loop {
            // Read `stop` before the buffers: frames that were queued before the stop must be
            // written.
            let stop = self.shared.stop.load(Relaxed);
            if self.shared.reopen.swap(false, Relaxed) && self.was_moved_away() {
                self.close();
                self.retry_at = Instant::now();
            }
            if self.output.is_none() && (stop || Instant::now() >= self.retry_at) {
                self.open();
            }
            if self.output.is_some() {
                self.write_all();
            }
            if stop {
                self.close();
                return;
            }
            thread::park_timeout(INTERVAL);
        }
    }

    fn open(&mut self) {
        let opened = match &self.destination {
            Destination::File(path) => begin_file(path).map(Output::File),
            Destination::Socket(path) => connect(path).map(Output::Socket),
        };
        match opened {
            Ok(output) => {
                self.shared.opened.fetch_add(1, Relaxed);
                tracing::info!(name: "dnstap-opened", file = %self.path().display(), "dnstap: output opened");
                self.output = Some(output);
                self.pause = RETRY.0;
            }
            Err(error) => self.handle_error(&error),
        }
    }

    /// Closes the output after an error, and schedules the next attempt.
    fn handle_error(&mut self, error: &io::Error) {
        self.shared.failures.fetch_add(1, Relaxed);
        // Log only the first failure after each successful connection.
        if self.output.take().is_some() || self.pause == RETRY.0 {
            let file = self.path().display();
            tracing::warn!(name: "dnstap-failed", %file, %error, "dnstap: output failed, retrying");
        }
        self.retry_at = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(RETRY.1);
    }

    fn path(&self) -> &Path {
        match &self.destination {
            Destination::File(path) | Destination::Socket(path) => path,
        }
    }

    /// Whether the path no longer names the open file.
    fn was_moved_away(&self) -> bool {
        let Some(Output::File(file)) = &self.output else { return false };
        let place = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        fs::metadata(self.path()).ok().map(place) != file.metadata().ok().map(place)
    }

    fn write_all(&mut self) {
        for lane in self.shared.queues() {
            let Some(output) = &mut self.output else { return };
            lane.swap(&mut self.frames);
            if self.frames.count == 0 {
                continue;
            }
            match output.write(&self.frames.octets) {
                Ok(()) => {
                    self.shared.written.fetch_add(self.frames.count, Relaxed);
                    self.shared.octets.fetch_add(self.frames.octets.len() as u64, Relaxed);
                }
                Err(error) => {
                    self.shared.lost.fetch_add(self.frames.count, Relaxed);
                    self.handle_error(&error);
                }
            }
            self.frames.octets.clear();
            self.frames.count = 0;
        }
    }

    fn close(&mut self) {
        let Some(mut output) = self.output.take() else { return };
        if let Err(error) = output.close() {
            tracing::warn!(name: "dnstap-not-closed", file = %self.path().display(), %error, "dnstap: output not closed cleanly");
        }
    }
}

fn connect(path: &Path) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    frames::open(&mut stream, CONTENT_TYPE)?;
    Ok(stream)
}

/// Creates a file that begins with START. An existing file is never overwritten, because frames
/// cannot follow STOP.
fn begin_file(path: &Path) -> io::Result<File> {
    if let Ok(metadata) = fs::metadata(path)
        && metadata.is_file()
        && metadata.len() > 0
    {
        let changed = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        fs::rename(path, free_name(path, changed))?;
    }
    // Queries and responses are confidential, so other users must not read the file.
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o640).open(path)?;
    let mut start = Vec::new();
    push_control(Control::Start, Some(CONTENT_TYPE), &mut start);
    file.write_all(&start)?;
    Ok(file)
}

/// Returns `PATH.SECONDS`, or the first of `PATH.SECONDS.1`, … that does not exist.
fn free_name(path: &Path, seconds: u64) -> PathBuf {
    let named = |suffix: String| {
        let mut name = OsString::from(path);
        name.push(suffix);
        PathBuf::from(name)
    };
    let plain = named(format!(".{seconds}"));
    if !plain.exists() {
        return plain;
    }
    let mut numbered = (1_u64..).map(|number| named(format!(".{seconds}.{number}")));
    numbered.find(|name| !name.exists()).unwrap_or(plain)
}
