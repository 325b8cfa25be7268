//! dnstap (dnstap.info): the messages as protocol buffers, and the frames of Frame Streams that
//! contain them.
//!
//! The module only encodes and decodes octets. The server writes dnstap, and the laboratory reads
//! and writes it. Both may depend on this crate, and neither on the other.

mod frame;
mod message;

pub use frame::{CONTROL_MAX, Control, ControlFrame, DATA_MAX, push_control, push_data};
pub use message::{Dnstap, Message, MessageKind, family, protocol};

/// The content type of dnstap in the control frames of Frame Streams.
pub const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";
