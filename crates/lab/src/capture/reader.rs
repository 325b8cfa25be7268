//! Reads the messages of a capture in any format.

use super::CapturedMessage;
use super::error::CaptureError;
use super::frames::DnstapSource;
use super::input::Input;
use super::packets::PacketSource;
use super::pcap_file::PacketFile;
use super::skip::SkipCounts;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Options for reading a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureOptions {
    /// Ports of servers in packets. Other packets are skipped. dnstap files do not use them.
    pub ports: Vec<u16>,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        Self { ports: vec![53] }
    }
}

/// The contents of a capture by its format.
enum Source {
    /// pcap and pcapng.
    Packets(PacketSource),
    Dnstap(DnstapSource),
}

/// Iterator over the messages of a capture, in the order of the file.
pub struct CaptureReader {
    input: Input,
    source: Source,
    /// Messages that are read but not returned: those of one packet or frame.
    ready: VecDeque<CapturedMessage>,
    skipped: SkipCounts,
    ended: bool,
}

impl CaptureReader {
    /// Opens a file. Its first octets determine the format.
    ///
    /// # Errors
    /// [`CaptureError::Open`] or [`CaptureError::Read`] if the file cannot be read,
    /// [`CaptureError::Format`] if it is not a pcap, pcapng or dnstap file,
    /// [`CaptureError::ContentType`] if its frames are not dnstap, [`CaptureError::Malformed`] or
    /// [`CaptureError::TooLarge`] if its start is damaged.
    pub fn open(path: &Path, options: &CaptureOptions) -> Result<Self, CaptureError> {
        let file =
            File::open(path).map_err(|source| CaptureError::Open { path: path.to_path_buf(), source })?;
        Self::new(path, Box::new(file), options)
    }

    /// Reads a capture from `source`. Errors name `path`.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open) except [`CaptureError::Open`].
    pub fn new(
        path: &Path,
        source: Box<dyn Read + Send>,
        options: &CaptureOptions,
    ) -> Result<Self, CaptureError> {
        let mut input = Input::new(path, source);
        let source = if let Some(source) = DnstapSource::open(&mut input)? {
            Source::Dnstap(source)
        } else if let Some(file) = PacketFile::open(&mut input)? {
            Source::Packets(PacketSource::new(file, options.ports.clone()))
        } else {
            return Err(CaptureError::Format { path: path.to_path_buf() });
        };
        Ok(Self { input, source, ready: VecDeque::new(), skipped: SkipCounts::default(), ended: false })
    }

    /// Number of packets, segments and frames that were skipped so far.
    #[must_use]
    pub const fn skipped(&self) -> &SkipCounts {
        &self.skipped
    }

    /// Whether dnstap has ended with a STOP frame, so that no frame is missing. Packets have no such
    /// mark.
    pub(super) const fn has_stopped(&self) -> bool {
        matches!(&self.source, Source::Dnstap(source) if source.has_stopped())
    }

    /// Reads the next packet or frame. Returns false at the end of the file.
    fn read_next(&mut self) -> Result<bool, CaptureError> {
        let Self { input, source, ready, skipped, .. } = self;
        match source {
            Source::Packets(source) => source.read_block(input, ready, skipped),
            Source::Dnstap(source) => source.read_frame(input, ready, skipped),
        }
    }
}

impl Iterator for CaptureReader {
    type Item = Result<CapturedMessage, CaptureError>;

    /// Returns the next message, or the error after which nothing more can be read.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(Ok(message));
            }
            if self.ended {
                return None;
            }
            match self.read_next() {
                Ok(has_more) => self.ended = !has_more,
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
