//! Messages with length prefixes in a stream of octets (RFC 1035 §4.2.2).

/// Length of the length prefix of a message in octets.
const PREFIX_SIZE: usize = 2;

/// Appends a message with its length prefix to `output`. `write` writes the message to a slice of
/// `size` octets, and returns its length, which is less than 65,536.
pub(super) fn push_message(output: &mut Vec<u8>, size: usize, write: impl FnOnce(&mut [u8]) -> usize) {
    let start = output.len() + PREFIX_SIZE;
    output.resize(start + size, 0);
    let length = write(&mut output[start..]);
    output[start - PREFIX_SIZE..start].copy_from_slice(&(length as u16).to_be_bytes());
    output.truncate(start + length);
}

/// Splits a stream into messages.
#[derive(Debug, Default)]
pub(super) struct MessageSplitter {
    /// Received octets of an incomplete message: less than the prefix and 65,535 octets.
    partial: Vec<u8>,
}

impl MessageSplitter {
    /// Takes the next octets of the stream, and calls `on_message` for each message that is
    /// complete.
    pub(super) fn split(&mut self, mut octets: &[u8], mut on_message: impl FnMut(&[u8])) {
        while !self.partial.is_empty() {
            let missing = self.missing_octets();
            if missing == 0 {
                on_message(&self.partial[PREFIX_SIZE..]);
                self.partial.clear();
                break;
            }
            if octets.is_empty() {
                return;
            }
            let (next, rest) = octets.split_at(missing.min(octets.len()));
            self.partial.extend_from_slice(next);
            octets = rest;
        }
        while let Some((prefix, rest)) = octets.split_first_chunk::<PREFIX_SIZE>() {
            let length = usize::from(u16::from_be_bytes(*prefix));
            let Some((message, rest)) = rest.split_at_checked(length) else { break };
            on_message(message);
            octets = rest;
        }
        self.partial.extend_from_slice(octets);
    }

    /// Returns the number of octets that are missing in the partial message: in its prefix, or
    /// behind it.
    fn missing_octets(&self) -> usize {
        match self.partial.split_first_chunk::<PREFIX_SIZE>() {
            Some((prefix, rest)) => usize::from(u16::from_be_bytes(*prefix)) - rest.len(),
            None => PREFIX_SIZE - self.partial.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_survive_any_split(
            messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..20),
            sizes in proptest::collection::vec(1usize..30, 1..20),
        ) {
            let mut stream = Vec::new();
            for message in &messages {
                push_message(&mut stream, 25, |slot| {
                    slot[..message.len()].copy_from_slice(message);
                    message.len()
                });
            }
            let (mut splitter, mut found) = (MessageSplitter::default(), Vec::new());
            for octets in chunks(&stream, &sizes) {
                splitter.split(octets, |message| found.push(message.to_vec()));
            }
            prop_assert_eq!(found, messages);
        }
    }

    /// Divides `octets` into chunks of these sizes, which repeat.
    fn chunks<'a>(octets: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
        let (mut chunks, mut rest) = (Vec::new(), octets);
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (next, after) = rest.split_at((*size).min(rest.len()));
            chunks.push(next);
            rest = after;
        }
        chunks
    }

    proptest! {
        /// A server can send any octets. Small values are frequent, so that messages are complete.
        #[test]
        fn chunks_do_not_change_the_messages(
            octets in proptest::collection::vec(prop_oneof![4 => 0u8..4, 1 => any::<u8>()], 0..300),
            sizes in proptest::collection::vec(1usize..9, 1..20),
        ) {
            let split = |chunks: &[&[u8]]| {
                let (mut splitter, mut found) = (MessageSplitter::default(), Vec::new());
                chunks.iter().for_each(|octets| splitter.split(octets, |message| found.push(message.to_vec())));
                // A message that is complete with the next octets can wait in the splitter.
                splitter.split(&[], |message| found.push(message.to_vec()));
                (found, splitter.partial)
            };
            let (found, rest) = split(&chunks(&octets, &sizes));
            prop_assert_eq!(&(found.clone(), rest.clone()), &split(&[&octets]));
            let mut stream = Vec::new();
            for message in &found {
                push_message(&mut stream, message.len(), |slot| {
                    slot.copy_from_slice(message);
                    message.len()
                });
            }
            prop_assert_eq!([stream, rest].concat(), octets);
        }
    }

    #[test]
    fn the_longest_message_arrives_whole() {
        let stream = [&[0xff, 0xff][..], &[7; 65_535], &[0, 1, 8]].concat();
        let (mut splitter, mut lengths) = (MessageSplitter::default(), Vec::new());
        stream.chunks(1000).for_each(|octets| splitter.split(octets, |message| lengths.push(message.len())));
        assert_eq!((lengths, splitter.partial.len()), (vec![65_535, 1], 0));
    }
}
