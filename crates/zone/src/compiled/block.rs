//! Buffered output of many short pieces and of data that is copied from a file. Only one buffer of
//! the copied data is in memory at a time.

use super::source::Source;
use std::io::{self, Write};

/// Size of the buffer in octets.
const BUFFER_OCTETS: usize = 1 << 20;

/// Writer that collects octets and writes them in blocks of [`BUFFER_OCTETS`].
pub(crate) struct BlockWriter<'o, W> {
    out: &'o mut W,
    buffer: Vec<u8>,
    /// Number of octets in the buffer that are not written yet.
    filled: usize,
}

impl<'o, W: Write> BlockWriter<'o, W> {
    pub(crate) fn new(out: &'o mut W) -> Self {
        Self { out, buffer: vec![0; BUFFER_OCTETS], filled: 0 }
    }

    /// Appends `octets` to the buffer, and writes the buffer when it is full.
    pub(crate) fn put(&mut self, mut octets: &[u8]) -> io::Result<()> {
        while !octets.is_empty() {
            let free = &mut self.buffer[self.filled..];
            let (head, tail) = octets.split_at(free.len().min(octets.len()));
            free[..head.len()].copy_from_slice(head);
            self.filled += head.len();
            octets = tail;
            self.flush_full()?;
        }
        Ok(())
    }

    /// Copies `octets` octets of `source` from the offset `start`.
    ///
    /// # Errors
    /// Errors of reading and of writing. If `source` has become shorter, the error contains
    /// [`CompiledError::Truncated`](super::CompiledError::Truncated).
    pub(super) fn copy_from(
        &mut self,
        source: &Source<'_>,
        mut start: u64,
        mut octets: u64,
    ) -> io::Result<()> {
        while octets > 0 {
            let free = &mut self.buffer[self.filled..];
            let count = free.len().min(usize::try_from(octets).unwrap_or(usize::MAX));
            let read = source.read_at(&mut free[..count], start);
            read.map_err(|error| io::Error::other(source.read_error(error)))?;
            self.filled += count;
            start += count as u64;
            octets -= count as u64;
            self.flush_full()?;
        }
        Ok(())
    }

    fn flush_full(&mut self) -> io::Result<()> {
        if self.filled == self.buffer.len() { self.flush() } else { Ok(()) }
    }

    /// Writes the buffered octets.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer[..self.filled])?;
        self.filled = 0;
        Ok(())
    }
}
