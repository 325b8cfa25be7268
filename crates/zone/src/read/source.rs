//! Splits text into blocks at positions where an entry probably begins.
//!
//! A block ends after a newline that is followed by an octet which can begin an owner name. Inside
//! parentheses and after an escaped newline, such a position is not the start of an entry. The
//! reader detects this case, because an entry does not end with its block.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};

/// Size of a block in octets. The block and the records from it fit in the cache of a core.
pub(super) const BLOCK_OCTETS: usize = 256 << 10;

/// Spare capacity of a block for the text that is carried over from the previous block, in octets.
const SPARE_OCTETS: usize = 4096;

/// Source of the text.
pub(super) enum Source<'a> {
    Text(&'a [u8]),
    File(File),
}

/// Part of the text of a file.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) text: Cow<'a, [u8]>,
    /// Whether the block is at the start of its file.
    pub(super) is_first: bool,
    /// Whether the block is known to end at the end of its file.
    pub(super) is_last: bool,
}

/// Splits a source into blocks.
pub(super) struct BlockSplitter<'a> {
    source: Source<'a>,
    /// Approximate size of a block in octets.
    block_octets: usize,
    /// Text that was read beyond the end of the last block.
    carried: Vec<u8>,
    is_first: bool,
    /// Whether the source has ended or cannot be read.
    has_ended: bool,
    /// Memory of blocks that are no longer in use.
    free_buffers: Vec<Vec<u8>>,
    /// The error that ended reading.
    pub(super) fault: Option<io::Error>,
}

impl<'a> BlockSplitter<'a> {
    /// Creates a splitter for blocks of about `block_octets` octets; for a file at most
    /// [`BLOCK_OCTETS`].
    pub(super) fn new(source: Source<'a>, block_octets: usize) -> Self {
        let (carried, free_buffers) = (Vec::new(), Vec::new());
        let block_octets = if matches!(source, Source::File(_)) {
            block_octets.clamp(1, BLOCK_OCTETS)
        } else {
            block_octets
        };
        Self { source, block_octets, carried, is_first: true, has_ended: false, free_buffers, fault: None }
    }

    /// Returns the next blocks, at most `count`. The result is empty if the text has ended or
    /// cannot be read.
    pub(super) fn take_blocks(&mut self, count: usize) -> Vec<Block<'a>> {
        let mut blocks = Vec::new();
        while blocks.len() < count {
            match self.next_block() {
                Ok(Some(block)) => blocks.push(block),
                Ok(None) => break,
                Err(error) => {
                    self.fault = Some(error);
                    self.has_ended = true;
                    break;
                }
            }
        }
        blocks
    }

    /// Takes the memory of a block for reuse.
    pub(super) fn recycle(&mut self, text: Cow<'a, [u8]>) {
        if let Cow::Owned(memory) = text {
            self.free_buffers.push(memory);
        }
    }

    fn next_block(&mut self) -> io::Result<Option<Block<'a>>> {
        if self.has_ended {
            return Ok(None);
        }
        let is_first = std::mem::replace(&mut self.is_first, false);
        let block_octets = self.block_octets;
        let text = match &mut self.source {
            Source::Text(text) => {
                let end = find_split_from(text, block_octets).unwrap_or(text.len());
                let (block, rest) = text.split_at(end);
                *text = rest;
                self.has_ended = rest.is_empty();
                Cow::Borrowed(block)
            }
            Source::File(_) => Cow::Owned(self.read_block()?),
        };
        Ok(Some(Block { text, is_first, is_last: self.has_ended }))
    }

    /// Reads from the file until the text has a split position or the file ends.
    fn read_block(&mut self) -> io::Result<Vec<u8>> {
        let Source::File(file) = &mut self.source else { return Ok(Vec::new()) };
        let mut text = self.free_buffers.pop().unwrap_or_default();
        text.clear();
        text.append(&mut self.carried);
        let mut searched = 0;
        loop {
            // A block without a split position doubles, so that the search takes linear time.
            let read_octets = self.block_octets.max(text.len());
            if text.capacity() - text.len() < read_octets {
                text.reserve_exact(read_octets + SPARE_OCTETS);
            }
            let read = file.by_ref().take(read_octets as u64).read_to_end(&mut text)?;
            if read < read_octets {
                self.has_ended = true;
                return Ok(text);
            }
            if let Some(split) = find_last_split(&text, searched) {
                self.carried.extend_from_slice(&text[split..]);
                text.truncate(split);
                return Ok(text);
            }
            searched = text.len() - 1;
        }
    }
}

/// Whether an entry may begin at the offset `at`: after a newline, with an octet that can begin an
/// owner name.
fn may_begin_entry(text: &[u8], at: usize) -> bool {
    at > 0
        && text[at - 1] == b'\n'
        && !matches!(text.get(at), None | Some(b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' | b'"'))
}

/// Returns the first split position at or after `offset`.
fn find_split_from(text: &[u8], offset: usize) -> Option<usize> {
    (offset.max(1)..text.len()).find(|at| may_begin_entry(text, *at))
}

/// Returns the last split position after the offset `searched`.
fn find_last_split(text: &[u8], searched: usize) -> Option<usize> {
    (searched + 1..text.len()).rev().find(|at| may_begin_entry(text, *at))
}
