//! Splits text into blocks at positions where an entry probably begins.
//!
//! A block ends after a newline that is followed by an octet which can begin an owner name. Inside
//! parentheses and after an escaped newline, such a position is not the start of an entry. The
//! reader detects this case, because an entry does not end with its block.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};

/// Size of a block in octets. The block and the records from it fit in the cache of a core.
pub(super) const BLOCK: usize = 256 << 10;

/// Spare capacity of a block for the text carried over from the previous block.
const SLACK: usize = 4096;

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
    octets: usize,
    /// Text that was read beyond the end of the last block.
    carry: Vec<u8>,
    is_first: bool,
    ended: bool,
    /// Memory of blocks that are no longer in use.
    spare: Vec<Vec<u8>>,
    /// The error that ended reading.
    pub(super) fault: Option<io::Error>,
}

impl<'a> BlockSplitter<'a> {
    pub(super) fn new(source: Source<'a>, octets: usize) -> Self {
        let (carry, spare) = (Vec::new(), Vec::new());
        let octets = if matches!(source, Source::File(_)) { octets.clamp(1, BLOCK) } else { octets };
        Self { source, octets, carry, is_first: true, ended: false, spare, fault: None }
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
                    self.ended = true;
                    break;
                }
            }
        }
        blocks
    }

    /// Takes the memory of a block for reuse.
    pub(super) fn recycle(&mut self, text: Cow<'a, [u8]>) {
        if let Cow::Owned(memory) = text {
            self.spare.push(memory);
        }
    }

    fn next_block(&mut self) -> io::Result<Option<Block<'a>>> {
        if self.ended {
            return Ok(None);
        }
        let is_first = std::mem::replace(&mut self.is_first, false);
        let octets = self.octets;
        let text = match &mut self.source {
            Source::Text(text) => {
                let end = find_cut_from(text, octets).unwrap_or(text.len());
                let (block, rest) = text.split_at(end);
                *text = rest;
                self.ended = rest.is_empty();
                Cow::Borrowed(block)
            }
            Source::File(_) => Cow::Owned(self.fill()?),
        };
        Ok(Some(Block { text, is_first, is_last: self.ended }))
    }

    /// Reads until the text has a split position or the file ends.
    fn fill(&mut self) -> io::Result<Vec<u8>> {
        let Source::File(file) = &mut self.source else { return Ok(Vec::new()) };
        let mut text = self.spare.pop().unwrap_or_default();
        text.clear();
        text.append(&mut self.carry);
        let mut searched = 0;
        loop {
            // A block without a split position doubles, so that the search takes linear time.
            let wanted = self.octets.max(text.len());
            if text.capacity() - text.len() < wanted {
                text.reserve_exact(wanted + SLACK);
            }
            let read = file.by_ref().take(wanted as u64).read_to_end(&mut text)?;
            if read < wanted {
                self.ended = true;
                return Ok(text);
            }
            if let Some(cut) = find_last_cut(&text, searched) {
                self.carry.extend_from_slice(&text[cut..]);
                text.truncate(cut);
                return Ok(text);
            }
            searched = text.len() - 1;
        }
    }
}

/// Whether an entry may begin at `at`.
fn is_cut(text: &[u8], at: usize) -> bool {
    at > 0
        && text[at - 1] == b'\n'
        && !matches!(text.get(at), None | Some(b' ' | b'\t' | b'\r' | b'\n' | b';' | b'(' | b')' | b'"'))
}

/// Returns the first split position at or after `octets`.
fn find_cut_from(text: &[u8], octets: usize) -> Option<usize> {
    (octets.max(1)..text.len()).find(|at| is_cut(text, *at))
}

/// Returns the last split position after `searched`.
fn find_last_cut(text: &[u8], searched: usize) -> Option<usize> {
    (searched + 1..text.len()).rev().find(|at| is_cut(text, *at))
}
