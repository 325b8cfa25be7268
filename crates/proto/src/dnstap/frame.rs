//! Frame Streams, the transport of dnstap messages. A data frame is its length in four octets,
//! followed by the data. A control frame follows a length of zero: its own length, its type and its
//! fields.
//!
//! A file is unidirectional: START, data, STOP. On a socket, the writer sends READY first and waits
//! for ACCEPT. At the end it sends STOP and waits for FINISH.

/// Types of control frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Control {
    /// The reader accepts one of the content types in READY.
    Accept = 1,
    /// Data follows.
    Start = 2,
    /// No more data follows.
    Stop = 3,
    /// The writer requests the content types of the reader.
    Ready = 4,
    /// The reader has received STOP.
    Finish = 5,
}

impl Control {
    const ALL: [Self; 5] = [Self::Accept, Self::Start, Self::Stop, Self::Ready, Self::Finish];
}

/// The field of a control frame that contains a content type.
const FIELD_CONTENT_TYPE: u32 = 1;
/// Maximum octets of a control frame, as in other implementations.
pub const CONTROL_MAX: u32 = 512;
/// Maximum octets of a data frame: a query, a response and their fields.
pub const DATA_MAX: u32 = 1 << 18;

/// A control frame without its two length fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlFrame<'a> {
    /// Its type.
    pub control: Control,
    /// Its content types.
    pub content_types: Vec<&'a [u8]>,
}

impl<'a> ControlFrame<'a> {
    /// Reads a control frame of at most [`CONTROL_MAX`] octets. `frame` begins with its type, after
    /// the two length fields. Returns `None` if it is malformed.
    #[must_use]
    pub fn read(frame: &'a [u8]) -> Option<Self> {
        let mut rest = frame;
        let number = take_word(&mut rest)?;
        let control = Control::ALL.into_iter().find(|control| *control as u32 == number)?;
        let mut content_types = Vec::new();
        while !rest.is_empty() {
            let field = take_word(&mut rest)?;
            let octets = take_word(&mut rest)?;
            let (value, tail) = rest.split_at_checked(octets as usize)?;
            if field == FIELD_CONTENT_TYPE {
                content_types.push(value);
            }
            rest = tail;
        }
        Some(Self { control, content_types })
    }

    /// Whether the frame permits `content_type`. A frame without a content type permits all.
    #[must_use]
    pub fn permits(&self, content_type: &[u8]) -> bool {
        self.content_types.is_empty() || self.content_types.contains(&content_type)
    }
}

fn take_word(octets: &mut &[u8]) -> Option<u32> {
    let (word, rest) = octets.split_first_chunk()?;
    *octets = rest;
    Some(u32::from_be_bytes(*word))
}

/// Appends a control frame, with a content type if one is given.
pub fn push_control(control: Control, content_type: Option<&[u8]>, out: &mut Vec<u8>) {
    let field = content_type.map_or(0, |octets| 8 + octets.len() as u32);
    for word in [0, 4 + field, control as u32] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    if let Some(octets) = content_type {
        out.extend_from_slice(&FIELD_CONTENT_TYPE.to_be_bytes());
        out.extend_from_slice(&(octets.len() as u32).to_be_bytes());
        out.extend_from_slice(octets);
    }
}

/// Appends a data frame. `write` appends its `octets` octets.
pub fn push_data(octets: usize, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    debug_assert!(octets < DATA_MAX as usize);
    out.extend_from_slice(&(octets as u32).to_be_bytes());
    write(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_control_frame_is_read_back(
            which in 0usize..5,
            content_type in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..400)),
        ) {
            let mut out = Vec::new();
            push_control(Control::ALL[which], content_type.as_deref(), &mut out);
            let length = u32::from_be_bytes([out[4], out[5], out[6], out[7]]);
            prop_assert_eq!(&out[..4], &[0; 4]);
            prop_assert_eq!(length as usize, out.len() - 8);
            let frame = ControlFrame::read(&out[8..]).expect("a frame");
            prop_assert_eq!(frame.control, Control::ALL[which]);
            prop_assert_eq!(frame.content_types, Vec::from_iter(content_type.as_deref()));
            // A frame that ends early is malformed, except after its type.
            for end in 0..out.len() - 8 {
                prop_assert_eq!(ControlFrame::read(&out[8..8 + end]).is_some(), end == 4);
            }
        }
    }

    #[test]
    fn an_unknown_control_frame_is_malformed() {
        for number in [0u32, 6, u32::MAX] {
            assert_eq!(ControlFrame::read(&number.to_be_bytes()), None);
        }
    }
}
