//! Cuts text into blocks at places where an entry most likely begins.
//!
//! A block ends behind a newline that is followed by an octet which can begin an owner name. Inside parentheses and
//! behind an escaped newline that is no begin of an entry: whoever reads blocks finds out, as the entry in front does not
//! end with its block.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read};

/// Octets of a block: with what is made of it, it stays in a core's cache.
pub(super) const BLOCK: usize = 256 << 10;

/// Room in a block for what was read behind the one in front.
const SLACK: usize = 4096;

/// Where text comes from.
pub(super) enum Source<'a> {
    Text(&'a [u8]),
    File(File),
}

/// Some of the text of a file.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) text: Cow<'a, [u8]>,
    /// Whether it begins where its file begins.
    pub(super) is_first: bool,
    /// Whether its file is known to end where it ends.
    pub(super) is_last: bool,
}

/// Cuts a source into blocks.
pub(super) struct BlockSplitter<'a> {
    source: Source<'a>,
    /// Octets of a block, more or less.
    octets: usize,
    /// Text that was read behind the last block.
    carry: Vec<u8>,
    is_first: bool,
    ended: bool,
    /// Memory of blocks that are done with.
    spare: Vec<Vec<u8>>,
    /// Why there is no more text.
    pub(super) fault: Option<io::Error>,
}

impl<'a> BlockSplitter<'a> {
    pub(super) fn new(source: Source<'a>, octets: usize) -> Self {
        let (carry, spare) = (Vec::new(), Vec::new());
        let octets = if matches!(source, Source::File(_)) { octets.clamp(1, BLOCK) } else { octets };
        Self { source, octets, carry, is_first: true, ended: false, spare, fault: None }
    }

    /// The next blocks, at most `count`; none where the text ends or cannot be read.
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

    /// Takes back the memory of a block.
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

    /// Reads until there is a place to cut or the file ends.
    fn fill(&mut self) -> io::Result<Vec<u8>> {
        let Source::File(file) = &mut self.source else { return Ok(Vec::new()) };
        let mut text = self.spare.pop().unwrap_or_default();
        text.clear();
        text.append(&mut self.carry);
        let mut searched = 0;
        loop {
            // A block without a place to cut doubles, so that searching stays linear.
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

/// The first place to cut from `octets` on.
fn find_cut_from(text: &[u8], octets: usize) -> Option<usize> {
    (octets.max(1)..text.len()).find(|at| is_cut(text, *at))
}

/// The last place to cut behind `searched`.
fn find_last_cut(text: &[u8], searched: usize) -> Option<usize> {
    (searched + 1..text.len()).rev().find(|at| is_cut(text, *at))
}
