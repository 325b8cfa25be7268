//! The buffers of a connection: messages with their length prefixes in both directions.

use crate::framing::{PREFIX_OCTETS, TooLong, announced_length, append_message, first_message};
use std::io;

/// Maximum unused octets of an output buffer that is not empty.
const UNUSED_MAX: usize = 1 << 13;

/// Octets that were received and not processed yet.
#[derive(Debug, Default)]
pub(super) struct Input {
    octets: Vec<u8>,
    /// Octets at the start that were processed.
    start: usize,
}

impl Input {
    fn rest(&self) -> &[u8] {
        self.octets.get(self.start..).unwrap_or_default()
    }

    pub(super) fn push(&mut self, octets: &[u8]) {
        self.trim();
        self.octets.extend_from_slice(octets);
    }

    /// Returns the next complete message without its length prefix, and removes it.
    pub(super) fn next_message(&mut self) -> Option<&[u8]> {
        let rest = self.octets.get(self.start..)?;
        let message = first_message(rest)?;
        self.start += PREFIX_OCTETS + message.len();
        Some(message)
    }

    /// Whether there is a complete message.
    pub(super) fn has_message(&self) -> bool {
        first_message(self.rest()).is_some()
    }

    /// The length of the next message, of which only the prefix may have arrived.
    pub(super) fn announced_length(&self) -> Option<usize> {
        announced_length(self.rest())
    }

    /// Whether there are no octets, not even a part of a message.
    pub(super) fn is_empty(&self) -> bool {
        self.rest().is_empty()
    }

    pub(super) const fn capacity(&self) -> usize {
        self.octets.capacity()
    }

    /// Frees the memory of processed octets.
    pub(super) fn trim(&mut self) {
        self.octets.drain(..self.start.min(self.octets.len()));
        self.start = 0;
        if self.octets.is_empty() {
            self.octets = Vec::new();
        }
    }
}

/// Messages to send.
#[derive(Debug, Default)]
pub(super) struct Output {
    octets: Vec<u8>,
    /// Octets at the start that the system has accepted.
    start: usize,
    /// Number of messages in `octets`.
    messages: u64,
}

impl Output {
    /// Number of octets that the system has not accepted yet.
    pub(super) fn unwritten(&self) -> usize {
        self.octets.len() - self.start
    }

    /// Appends a message with its length prefix.
    pub(super) fn push(&mut self, message: &[u8]) -> Result<(), TooLong> {
        append_message(message, &mut self.octets)?;
        self.messages += 1;
        Ok(())
    }

    /// Writes with `write` as many octets as the system accepts. Length prefixes and messages are
    /// written together (RFC 7766 section 8). Returns the number of messages of which the last
    /// octets were written; it is exact only when everything is written.
    pub(super) fn write(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<u64> {
        while let Some(rest) = self.octets.get(self.start..).filter(|rest| !rest.is_empty()) {
            match write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(octets) => self.start += octets,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.trim();
                    return Ok(0);
                }
                Err(error) => return Err(error),
            }
        }
        let messages = self.messages;
        *self = Self::default();
        Ok(messages)
    }

    pub(super) const fn capacity(&self) -> usize {
        self.octets.capacity()
    }

    /// Frees the memory of written octets, if it is much.
    fn trim(&mut self) {
        if self.octets.capacity() > self.unwritten() + UNUSED_MAX {
            self.octets.drain(..self.start);
            self.start = 0;
            self.octets.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::framed;
    use proptest::prelude::*;

    #[test]
    fn a_message_that_is_too_long_is_not_taken() {
        let mut output = Output::default();
        assert_eq!(output.push(&[0; 1 << 16]), Err(TooLong));
        assert_eq!(output.unwritten(), 0);
        assert_eq!(output.push(&[0; 65_535]), Ok(()));
        assert_eq!(output.unwritten(), 65_537);
    }

    #[test]
    fn an_end_of_the_stream_while_writing_is_an_error() {
        let mut output = Output::default();
        output.push(b"message").expect("short");
        assert_eq!(output.write(|_| Ok(0)).map_err(|error| error.kind()), Err(io::ErrorKind::WriteZero));
    }

    proptest! {
        /// Messages survive any division into reads and writes, and no memory stays.
        #[test]
        fn messages_survive_any_division(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..2000), 1..20),
            sizes in prop::collection::vec(1usize..3000, 1..20),
        ) {
            let mut output = Output::default();
            for message in &messages {
                output.push(message).expect("short");
            }
            let mut sizes = sizes.into_iter().cycle();
            let (mut input, mut received, mut written, mut counted) =
                (Input::default(), Vec::new(), Vec::new(), 0);
            while output.unwritten() > 0 {
                let mut room = sizes.next();
                counted += output
                    .write(|octets| {
                        let size = room.take().ok_or(io::ErrorKind::WouldBlock)?.min(octets.len());
                        written.extend_from_slice(&octets[..size]);
                        input.push(&octets[..size]);
                        Ok(size)
                    })
                    .expect("written");
                while let Some(message) = input.next_message() {
                    received.push(message.to_vec());
                }
            }
            input.trim();
            prop_assert_eq!(written, messages.iter().flat_map(|message| framed(message)).collect::<Vec<_>>());
            prop_assert_eq!(counted, messages.len() as u64);
            prop_assert_eq!(received, messages);
            prop_assert!(input.is_empty() && !input.has_message() && input.announced_length().is_none());
            prop_assert_eq!((input.capacity(), output.capacity()), (0, 0));
        }
    }
}
