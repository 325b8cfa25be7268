//! The handshakes of Frame Streams on a socket: the writer sends READY first and waits for ACCEPT.
//! At the end it sends STOP and waits for FINISH.

use nonesuch_proto::dnstap::{CONTROL_MAX, Control, ControlFrame, push_control};
use std::io::{self, Read, Write};

/// Writes READY, waits for ACCEPT with this content type, and writes START.
pub(super) fn open(stream: &mut (impl Read + Write), content_type: &[u8]) -> io::Result<()> {
    let mut out = Vec::new();
    push_control(Control::Ready, Some(content_type), &mut out);
    stream.write_all(&out)?;
    let mut frame = Vec::new();
    let answer = read_control(stream, &mut frame)?;
    if answer.control != Control::Accept {
        return Err(io::Error::other("the reader did not answer READY with ACCEPT"));
    }
    // A reader that sends no content type accepts all.
    if !answer.permits(content_type) {
        return Err(io::Error::other("the reader does not accept the content type of dnstap"));
    }
    out.clear();
    push_control(Control::Start, Some(content_type), &mut out);
    stream.write_all(&out)
}

/// Writes STOP and waits for FINISH.
pub(super) fn close(stream: &mut (impl Read + Write)) -> io::Result<()> {
    let mut out = Vec::new();
    push_control(Control::Stop, None, &mut out);
    stream.write_all(&out)?;
    let mut frame = Vec::new();
    match read_control(stream, &mut frame)?.control {
        Control::Finish => Ok(()),
        _ => Err(io::Error::other("the reader did not answer STOP with FINISH")),
    }
}

/// Reads a control frame into `frame`.
fn read_control<'a>(stream: &mut impl Read, frame: &'a mut Vec<u8>) -> io::Result<ControlFrame<'a>> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the reader sent no control frame");
    let (escape, length) = (read_word(stream)?, read_word(stream)?);
    if escape != 0 || !(4..=CONTROL_MAX).contains(&length) {
        return Err(malformed());
    }
    frame.resize(length as usize, 0);
    stream.read_exact(frame)?;
    ControlFrame::read(frame).ok_or_else(malformed)
}

fn read_word(stream: &mut impl Read) -> io::Result<u32> {
    let mut octets = [0; 4];
    stream.read_exact(&mut octets)?;
    Ok(u32::from_be_bytes(octets))
}
