//! Copies a capture to another format, or to a query list.

use super::CapturedMessage;
use super::anonymize::Anonymizer;
use super::error::CaptureError;
use super::question::question_line;
use super::reader::CaptureReader;
use super::skip::{SkipCounts, SkipReason};
use super::writer::{CaptureFormat, CaptureWriter};
use std::io::{self, Write};

/// Output of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureOutput {
    /// All messages, as a capture.
    Capture(CaptureFormat),
    /// The questions of the queries, as a query list for the load generator: a name and a type on
    /// each line. Responses are ignored.
    Questions,
}

/// Counts of a copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyCounts {
    /// Number of messages read.
    pub read: u64,
    /// Number of messages or lines written.
    pub written: u64,
    /// Number of packets, frames and messages that were skipped when reading, anonymising or
    /// writing.
    pub skipped: SkipCounts,
}

/// Reasons why a copy fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The capture cannot be read or anonymised.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The output cannot be written.
    #[error("cannot write the messages: {0}")]
    Write(#[from] io::Error),
}

/// Writes the messages in one of the output formats.
enum OutputWriter<W> {
    Capture(CaptureWriter<W>),
    Questions(W),
}

impl<W: Write> OutputWriter<W> {
    fn new(out: W, output: CaptureOutput) -> io::Result<Self> {
        Ok(match output {
            CaptureOutput::Capture(format) => Self::Capture(CaptureWriter::new(out, format)?),
            CaptureOutput::Questions => Self::Questions(out),
        })
    }

    /// Writes a message. Returns false if the output format cannot represent it.
    fn write(&mut self, message: &CapturedMessage) -> io::Result<bool> {
        match self {
            Self::Capture(writer) => writer.write(message),
            Self::Questions(out) => match question_line(&message.octets) {
                Some(line) => out.write_all(line.as_bytes()).map(|()| true),
                None => Ok(false),
            },
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Capture(writer) => writer.finish().map(drop),
            Self::Questions(mut out) => out.flush(),
        }
    }
}

/// Copies all messages of a capture to `out`, and anonymises them first if `anonymizer` is given.
///
/// # Errors
/// [`CopyError::Capture`] if the capture is damaged or cannot be anonymised, [`CopyError::Write`]
/// if `out` fails.
pub fn copy_messages(
    mut reader: CaptureReader,
    anonymizer: Option<&Anonymizer>,
    output: CaptureOutput,
    out: impl Write,
) -> Result<CopyCounts, CopyError> {
    let mut counts = CopyCounts::default();
    let mut writer = OutputWriter::new(out, output)?;
    for message in reader.by_ref() {
        let mut message = message?;
        counts.read += 1;
        if matches!(writer, OutputWriter::Questions(_)) && message.is_response {
            continue;
        }
        if let Some(anonymizer) = anonymizer
            && !anonymizer.apply(&mut message)?
        {
            counts.skipped.count(SkipReason::Unparsable);
            continue;
        }
        if writer.write(&message)? {
            counts.written += 1;
        } else {
            counts.skipped.count(SkipReason::Unwritable);
        }
    }
    writer.finish()?;
    reader.skipped().iter().for_each(|(reason, number)| counts.skipped.add(reason, number));
    Ok(counts)
}
