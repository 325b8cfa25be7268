//! The framing of messages on a connection: each has its length in two octets before it (RFC 1035
//! section 4.2.2).

/// Octets of the length prefix of a message.
pub(crate) const PREFIX_OCTETS: usize = 2;

/// The message has more than 65,535 octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Appends a message with its length prefix to `output`.
pub(crate) fn append_message(message: &[u8], output: &mut Vec<u8>) -> Result<(), TooLong> {
    let length = u16::try_from(message.len()).map_err(|_| TooLong)?;
    output.reserve(PREFIX_OCTETS + message.len());
    output.extend_from_slice(&length.to_be_bytes());
    output.extend_from_slice(message);
    Ok(())
}

/// Returns the length in the prefix of the first message of `input`.
pub(crate) fn announced_length(input: &[u8]) -> Option<usize> {
    let (prefix, _) = input.split_first_chunk::<PREFIX_OCTETS>()?;
    Some(usize::from(u16::from_be_bytes(*prefix)))
}

/// Returns the first message of `input` without its length prefix; `None` if it is incomplete.
pub(crate) fn first_message(input: &[u8]) -> Option<&[u8]> {
    input.get(PREFIX_OCTETS..PREFIX_OCTETS + announced_length(input)?)
}
