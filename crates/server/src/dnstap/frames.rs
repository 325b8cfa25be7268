//! Frame Streams, the transport of dnstap messages. A data frame is its length in four octets,
//! followed by the data. A control frame follows a length of zero: its own length, its type and its
//! fields.
//!
//! A file is unidirectional: START, data, STOP. On a socket, the writer sends READY first and waits
//! for ACCEPT. At the end it sends STOP and waits for FINISH.

use std::io::{self, Read, Write};

/// Types of control frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum ControlType {
    /// The reader accepts one of the content types in READY.
    Accept = 1,
    /// Data follows.
    Start = 2,
    /// No more data follows.
    Stop = 3,
    /// The writer offers content types, and requests those of the reader.
    Ready = 4,
    /// The reader has received STOP.
    Finish = 5,
}

/// The field of a control frame that contains a content type.
const FIELD_CONTENT_TYPE: u32 = 1;
/// Maximum octets of a control frame, as in other implementations.
const CONTROL_OCTETS_MAX: u32 = 512;
/// Maximum octets of a data frame: a query, a response and their fields.
const DATA_OCTETS_MAX: u32 = 1 << 18;

/// Appends a control frame, with a content type if one is given.
pub(super) fn push_control(control: ControlType, content_type: Option<&[u8]>, out: &mut Vec<u8>) {
    let field = content_type.map_or(0, |octets| 8 + octets.len() as u32);
    for number in [0, 4 + field, control as u32] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    if let Some(octets) = content_type {
        out.extend_from_slice(&FIELD_CONTENT_TYPE.to_be_bytes());
        out.extend_from_slice(&(octets.len() as u32).to_be_bytes());
        out.extend_from_slice(octets);
    }
}

/// Writes READY, waits for ACCEPT with this content type, and writes START.
pub(super) fn open(stream: &mut (impl Read + Write), content_type: &[u8]) -> io::Result<()> {
    let mut out = Vec::new();
    push_control(ControlType::Ready, Some(content_type), &mut out);
    stream.write_all(&out)?;
    let (control, types) = read_control(stream)?;
    if control != ControlType::Accept as u32 {
        return Err(io::Error::other("the reader did not answer READY with ACCEPT"));
    }
    // A reader that sends no content type accepts all.
    if !types.is_empty() && !types.iter().any(|accepted| accepted == content_type) {
        return Err(io::Error::other("the reader does not accept the content type of dnstap"));
    }
    out.clear();
    push_control(ControlType::Start, Some(content_type), &mut out);
    stream.write_all(&out)
}

/// Writes STOP and waits for FINISH.
pub(super) fn close(stream: &mut (impl Read + Write)) -> io::Result<()> {
    let mut out = Vec::new();
    push_control(ControlType::Stop, None, &mut out);
    stream.write_all(&out)?;
    match read_control(stream)?.0 {
        control if control == ControlType::Finish as u32 => Ok(()),
        _ => Err(io::Error::other("the reader did not answer STOP with FINISH")),
    }
}

/// Reads a control frame. Returns its type and its content types.
fn read_control(stream: &mut impl Read) -> io::Result<(u32, Vec<Vec<u8>>)> {
    let malformed = || io::Error::new(io::ErrorKind::InvalidData, "the reader sent no control frame");
    let (escape, length) = (read_u32(stream)?, read_u32(stream)?);
    if escape != 0 || !(4..=CONTROL_OCTETS_MAX).contains(&length) {
        return Err(malformed());
    }
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame)?;
    let (mut rest, mut types) = (&frame[..], Vec::new());
    let control = take_u32(&mut rest).ok_or_else(malformed)?;
    while let Some(field) = take_u32(&mut rest) {
        let octets = take_u32(&mut rest).ok_or_else(malformed)?;
        let (value, tail) = rest.split_at_checked(octets as usize).ok_or_else(malformed)?;
        if field == FIELD_CONTENT_TYPE {
            types.push(value.to_vec());
        }
        rest = tail;
    }
    Ok((control, types))
}

fn read_u32(stream: &mut impl Read) -> io::Result<u32> {
    let mut octets = [0; 4];
    stream.read_exact(&mut octets)?;
    Ok(u32::from_be_bytes(octets))
}

fn take_u32(octets: &mut &[u8]) -> Option<u32> {
    let (number, rest) = octets.split_first_chunk()?;
    *octets = rest;
    Some(u32::from_be_bytes(*number))
}

/// Appends a data frame. `write` appends its `octets` octets.
pub(super) fn push_data(octets: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    debug_assert!(octets < DATA_OCTETS_MAX as usize);
    out.extend_from_slice(&(octets as u32).to_be_bytes());
    write(out);
}
