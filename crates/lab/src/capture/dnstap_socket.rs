//! Connections of dnstap writers to a Unix socket: the reader's side of bidirectional Frame Streams.
//!
//! A writer sends READY and waits for ACCEPT, then sends START, frames and STOP, and waits for FINISH.
//! A writer that is configured to be unidirectional begins with START, as in a file.

use super::error::CaptureError;
use super::reader::{CaptureOptions, CaptureReader};
use super::skip::SkipCounts;
use nonesuch_proto::dnstap::{CONTENT_TYPE, CONTROL_MAX, Control, ControlFrame, push_control};
use std::io::{self, Cursor, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Maximum time to wait for the first frames of a writer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Length of the two length fields of a control frame, in octets.
const PREFIX: usize = 8;

/// A connection of a dnstap writer, and iterator over its messages.
pub struct DnstapConnection {
    stream: UnixStream,
    reader: CaptureReader,
    is_bidirectional: bool,
}

impl DnstapConnection {
    /// Answers the request of a writer that has connected to the socket at `path`, which errors name.
    ///
    /// # Errors
    /// [`CaptureError::Read`] if the writer ends the connection or sends nothing for 5 seconds,
    /// [`CaptureError::Malformed`] if its first frames are malformed, [`CaptureError::ContentType`] if
    /// it does not send dnstap.
    pub fn accept(mut stream: UnixStream, path: &Path) -> Result<Self, CaptureError> {
        let failed = |source| CaptureError::Read { path: path.to_path_buf(), offset: 0, source };
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        let malformed =
            || CaptureError::Malformed { path: path.to_path_buf(), offset: 0, what: "first control frame" };
        let mut first = read_control_frame(&mut stream).map_err(failed)?.ok_or_else(malformed)?;
        let frame = ControlFrame::read(&first[PREFIX..]).ok_or_else(malformed)?;
        let is_bidirectional = frame.control == Control::Ready;
        if is_bidirectional {
            if !frame.permits(CONTENT_TYPE) {
                return Err(CaptureError::ContentType { path: path.to_path_buf() });
            }
            let mut accept = Vec::new();
            push_control(Control::Accept, Some(CONTENT_TYPE), &mut accept);
            stream.write_all(&accept).map_err(failed)?;
            first = read_control_frame(&mut stream).map_err(failed)?.ok_or_else(malformed)?;
        }
        stream.set_read_timeout(None).map_err(failed)?;
        let input = Cursor::new(first).chain(stream.try_clone().map_err(failed)?);
        let reader = CaptureReader::new(path, Box::new(input), &CaptureOptions::default())?;
        Ok(Self { stream, reader, is_bidirectional })
    }

    /// Whether the writer has ended the frames with STOP. If not, it was killed, and frames may be missing.
    #[must_use]
    pub const fn has_stopped(&self) -> bool {
        self.reader.has_stopped()
    }

    /// Number of frames that were skipped so far.
    #[must_use]
    pub const fn skipped(&self) -> &SkipCounts {
        self.reader.skipped()
    }
}

impl Iterator for DnstapConnection {
    type Item = <CaptureReader as Iterator>::Item;

    /// Returns the next message, or the error after which nothing more can be read.
    fn next(&mut self) -> Option<Self::Item> {
        self.reader.next()
    }
}

impl Drop for DnstapConnection {
    /// Reports to the writer that all its frames have arrived.
    fn drop(&mut self) {
        if self.is_bidirectional {
            let mut finish = Vec::new();
            push_control(Control::Finish, None, &mut finish);
            // The writer may have closed the connection.
            let _ = self.stream.write_all(&finish);
        }
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Reads a control frame with its two length fields. Returns `None` if it is none, or too long.
fn read_control_frame(stream: &mut UnixStream) -> io::Result<Option<Vec<u8>>> {
    let mut octets = vec![0; PREFIX];
    stream.read_exact(&mut octets)?;
    let (zero, length) = octets.split_at(PREFIX / 2);
    let length = length.first_chunk().map_or(0, |length| u32::from_be_bytes(*length));
    if zero != [0; PREFIX / 2] || length > CONTROL_MAX {
        return Ok(None);
    }
    octets.resize(PREFIX + length as usize, 0);
    stream.read_exact(&mut octets[PREFIX..])?;
    Ok(Some(octets))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{query, write};
    use super::super::{CaptureFormat, CapturedMessage};
    use super::*;
    use std::thread;

    /// Writes `octets` to a connection and closes it. Returns the delivered messages, and the octets sent back.
    fn connection(octets: &[u8]) -> (Result<Vec<CapturedMessage>, CaptureError>, Vec<u8>) {
        let (mut writer, reader) = UnixStream::pair().expect("a pair");
        let read = thread::spawn(move || {
            DnstapConnection::accept(reader, Path::new("tap")).and_then(|messages| messages.collect())
        });
        writer.write_all(octets).expect("written");
        writer.shutdown(Shutdown::Write).expect("ended");
        let messages = read.join().expect("a reader");
        let mut answers = Vec::new();
        let _ = writer.read_to_end(&mut answers);
        (messages, answers)
    }

    fn control(control: Control, content_type: Option<&[u8]>) -> Vec<u8> {
        let mut octets = Vec::new();
        push_control(control, content_type, &mut octets);
        octets
    }

    #[test]
    fn a_writer_gets_accept_and_finish() {
        let message = query();
        let file = write(std::slice::from_ref(&message), CaptureFormat::Dnstap);
        let ready = control(Control::Ready, Some(CONTENT_TYPE));
        let (messages, answers) = connection(&[ready, file.clone()].concat());
        assert_eq!(messages.expect("messages"), std::slice::from_ref(&message));
        let wanted = [control(Control::Accept, Some(CONTENT_TYPE)), control(Control::Finish, None)].concat();
        assert_eq!(answers, wanted);
        // A unidirectional writer waits for nothing.
        let (messages, answers) = connection(&file);
        assert_eq!((messages.expect("messages"), answers), (vec![message], Vec::new()));
    }

    #[test]
    fn other_writers_are_refused() {
        let (messages, _) = connection(&control(Control::Ready, Some(b"protobuf:other")));
        assert!(matches!(messages, Err(CaptureError::ContentType { .. })));
        for octets in [
            b"GET / HTTP/1.1\r\n".to_vec(),
            control(Control::Ready, None)[..9].to_vec(),
            vec![0, 0, 0, 0, 0, 1, 0, 0],
        ] {
            assert!(connection(&octets).0.is_err());
        }
    }
}
