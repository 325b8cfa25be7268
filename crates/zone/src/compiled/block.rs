//! Buffered output in blocks, for many short pieces and for data that is copied from a file. Copied
//! data is never in memory as a whole.

use super::source::Source;
use std::io::{self, Write};

/// Number of octets that are written at once.
const BLOCK: usize = 1 << 20;

pub(crate) struct Block<'o, W> {
    out: &'o mut W,
    octets: Vec<u8>,
    /// Number of octets in the buffer that are not written yet.
    filled: usize,
}

impl<'o, W: Write> Block<'o, W> {
    pub(crate) fn new(out: &'o mut W) -> Self {
        Self { out, octets: vec![0; BLOCK], filled: 0 }
    }

    pub(crate) fn put(&mut self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            let room = &mut self.octets[self.filled..];
            let (head, tail) = octets.split_at(room.len().min(octets.len()));
            room[..head.len()].copy_from_slice(head);
            self.filled += head.len();
            octets = tail;
            self.flush_full()?;
        }
        Ok(())
    }

    /// Copies `octets` octets of `source` from the offset `start`.
    pub(super) fn copy_from(
        &mut self,
        source: &Source<'_>,
        mut start: u64,
        mut octets: u64,
    ) -> io::Result<()> {
        while octets > 0 {
            let room = &mut self.octets[self.filled..];
            let part = room.len().min(usize::try_from(octets).unwrap_or(usize::MAX));
            let read = source.read_at(&mut room[..part], start);
            read.map_err(|error| io::Error::other(source.truncated_error(error)))?;
            self.filled += part;
            start += part as u64;
            octets -= part as u64;
            self.flush_full()?;
        }
        Ok(())
    }

    fn flush_full(&mut self) -> io::Result<()> {
        if self.filled == self.octets.len() { self.flush() } else { Ok(()) }
    }

    /// Writes the buffered octets.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.octets[..self.filled])?;
        self.filled = 0;
        Ok(())
    }
}
