//! Reads files block by block: several blocks speculatively in parallel, and the rest sequentially.

use super::block::{AssumedState, SpeculativeBlock, read_speculatively};
use super::entry::{EntryReader, EntryState, Include, Located};
use super::fault::{ReadError, ReadFault};
use super::source::{Block, BlockSplitter, Source};
use crate::builder::{Builder, PART_OCTETS, RecordBuffer};
use crate::lexer::{Lexer, LexerStep};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Exclusive upper limit of the depth of $INCLUDE. The zone file has depth 0.
const INCLUDE_DEPTH_LIMIT: usize = 10;
/// Number of blocks per thread that are read in parallel.
const BLOCKS_PER_THREAD: usize = 4;

/// Function that opens the zone file and the files that it includes.
pub(crate) type OpenFile = fn(&Path) -> io::Result<File>;

/// Reads a zone file and the files that it includes.
pub(super) struct Reader {
    pub(super) builder: Builder,
    /// The zone file, then the included files in the order of inclusion.
    pub(super) files: Vec<PathBuf>,
    /// Approximate size of a block in octets.
    pub(super) block_octets: usize,
    /// Opens the zone file and the files that it includes.
    pub(super) open: OpenFile,
    /// The records that were read sequentially after the last part.
    buffer: RecordBuffer,
}

/// State of reading one file.
struct FileState<'a> {
    /// Index of the file in [`Reader::files`].
    file: u16,
    /// Depth of $INCLUDE.
    depth: usize,
    /// State before the next block.
    entry_state: EntryState,
    /// Number of newlines before the next block.
    lines: u32,
    /// The next blocks, in order.
    queue: VecDeque<Job<'a>>,
    splitter: BlockSplitter<'a>,
}

/// A block to read, with the result of speculative reading, if any.
struct Job<'a> {
    block: Block<'a>,
    speculative: Option<SpeculativeBlock>,
}

/// Result of reading a block.
enum BlockEnd {
    /// The last entry ends in the block.
    Complete,
    /// The entry at this offset, after this number of newlines, continues beyond the end of the
    /// block.
    Cut(usize, u32),
}

impl Reader {
    pub(super) fn new(path: &Path, block_octets: usize) -> Self {
        let (builder, buffer) = (Builder::default(), RecordBuffer::default());
        Self { builder, files: vec![path.to_path_buf()], block_octets, open: |path| File::open(path), buffer }
    }

    /// Reads the file `path`, which has index 0 in `files`.
    pub(super) fn read_file(&mut self, path: &Path, state: EntryState) -> Result<EntryState, ReadError> {
        let file = (self.open)(path).map_err(|error| file_error(path, error))?;
        self.read(Source::File(file), 0, 0, state)
    }

    /// Reads `source`, which has index `file` in `files`. Returns the state after it.
    pub(super) fn read(
        &mut self,
        source: Source<'_>,
        file: u16,
        depth: usize,
        state: EntryState,
    ) -> Result<EntryState, ReadError> {
        let splitter = BlockSplitter::new(source, self.block_octets);
        let mut file_state =
            FileState { file, depth, entry_state: state, lines: 0, queue: VecDeque::new(), splitter };
        let mut blocks = file_state.take_blocks();
        while !blocks.is_empty() {
            let speculative_count = blocks.len();
            let following = file_state.read_speculative_blocks(blocks);
            file_state.queue.extend(following.into_iter().map(|block| Job { block, speculative: None }));
            self.read_jobs(speculative_count, &mut file_state)?;
            blocks = file_state.queue.drain(..).map(|job| job.block).collect();
            if blocks.is_empty() {
                blocks = file_state.take_blocks();
            }
        }
        match file_state.splitter.fault.take() {
            Some(error) => Err(file_error(&self.files[usize::from(file)], error)),
            None => Ok(file_state.entry_state),
        }
    }

    /// Reads the first `count` jobs of the queue. An entry that continues in later jobs takes these
    /// from the queue too.
    fn read_jobs(&mut self, count: usize, file_state: &mut FileState<'_>) -> Result<(), ReadError> {
        let remaining = file_state.queue.len() - count;
        while file_state.queue.len() > remaining
            && let Some(job) = file_state.queue.pop_front()
        {
            self.read_job(job, file_state)?;
        }
        Ok(())
    }

    fn read_job<'a>(&mut self, job: Job<'a>, file_state: &mut FileState<'a>) -> Result<(), ReadError> {
        let Job { mut block, speculative } = job;
        if let Some(speculative) = speculative {
            let lines = speculative.lines;
            if let Some(mut part) = speculative.accept(&mut file_state.entry_state) {
                part.set_start(file_state.file, file_state.lines);
                self.builder.push_part(part);
                file_state.lines += lines;
                file_state.splitter.recycle(block.text);
                return Ok(());
            }
        }
        while let BlockEnd::Cut(start, lines) = self.read_block(&block, file_state)? {
            // Keep a byte order mark in the text, so that the columns of the first line are
            // correct.
            let start = if lines == 0 && block.is_first { 0 } else { start };
            file_state.lines += lines;
            file_state.extend_block(&mut block, start);
            if block.is_last
                && let Some(error) = file_state.splitter.fault.take()
            {
                return Err(file_error(&self.files[usize::from(file_state.file)], error));
            }
        }
        file_state.splitter.recycle(block.text);
        Ok(())
    }

    /// Reads a block sequentially, with the known state.
    fn read_block(
        &mut self,
        block: &Block<'_>,
        file_state: &mut FileState<'_>,
    ) -> Result<BlockEnd, ReadError> {
        let mut lexer = Lexer::new(&block.text, block.is_last);
        if block.is_first {
            lexer.skip_byte_order_mark();
        }
        let mut entries = EntryReader::new();
        loop {
            let step = lexer.next_entry().map_err(|(fault, at)| (fault.into(), at));
            let read = match step {
                Ok(LexerStep::Entry) => entries.read(&lexer, &mut file_state.entry_state, &mut self.buffer),
                Ok(LexerStep::Cut) => {
                    self.end_part(file_state);
                    return Ok(BlockEnd::Cut(lexer.start, lexer.line - 1));
                }
                Ok(LexerStep::End) => {
                    self.end_part(file_state);
                    file_state.lines += lexer.lines();
                    return Ok(BlockEnd::Complete);
                }
                Err(located) => Err(located),
            };
            let outcome = match read {
                Ok(None) => Ok(()),
                Ok(Some(include)) => self.read_include(include, file_state)?,
                Err(located) => Err(located),
            };
            if let Err((fault, at)) = outcome {
                let (line, column) = lexer.position(at);
                let file = self.files[usize::from(file_state.file)].clone();
                return Err(ReadError { file, line: file_state.lines + line, column, fault });
            }
            if self.buffer.len() >= PART_OCTETS {
                self.end_part(file_state);
            }
        }
    }

    /// Moves the records of the buffer, if there are any, to a part of the builder.
    fn end_part(&mut self, file_state: &FileState<'_>) {
        if !self.buffer.is_empty() {
            let mut part = self.buffer.take_part();
            part.set_start(file_state.file, file_state.lines);
            self.builder.push_part(part);
        }
    }

    /// Reads an included file. Its $ORIGIN does not change the origin of the including file
    /// (RFC 1035 §5.1). The inner `Result` is a fault of the directive; the outer one is a fault in
    /// the included file.
    fn read_include(
        &mut self,
        include: Include,
        file_state: &mut FileState<'_>,
    ) -> Result<Result<(), Located>, ReadError> {
        let Include { path, origin, at } = include;
        let file =
            u16::try_from(self.files.len()).ok().filter(|_| file_state.depth + 1 < INCLUDE_DEPTH_LIMIT);
        let Some(file) = file else { return Ok(Err((ReadFault::IncludeDepth, at))) };
        self.end_part(file_state);
        let including = &self.files[usize::from(file_state.file)];
        let directory = including.parent().unwrap_or_else(|| Path::new("."));
        let path = directory.join(&*String::from_utf8_lossy(&path));
        self.files.push(path.clone());
        let source = (self.open)(&path).map_err(|error| file_error(&path, error))?;
        let mut state = EntryState::new(origin);
        (state.default_ttl, state.last_ttl) =
            (file_state.entry_state.default_ttl, file_state.entry_state.last_ttl);
        let after = self.read(Source::File(source), file, file_state.depth + 1, state)?;
        (file_state.entry_state.default_ttl, file_state.entry_state.last_ttl) =
            (after.default_ttl, after.last_ttl);
        Ok(Ok(()))
    }
}

impl<'a> FileState<'a> {
    fn take_blocks(&mut self) -> Vec<Block<'a>> {
        self.splitter.take_blocks(BLOCKS_PER_THREAD * rayon::current_num_threads())
    }

    /// Reads `blocks` speculatively and appends them to the queue. Meanwhile, takes the blocks
    /// after them from the file, and returns these unread blocks.
    fn read_speculative_blocks(&mut self, blocks: Vec<Block<'a>>) -> Vec<Block<'a>> {
        // A text of one block does not benefit from speculative reading.
        if blocks.len() == 1 {
            self.queue.extend(blocks.into_iter().map(|block| Job { block, speculative: None }));
            return self.take_blocks();
        }
        let states = self.assume_states(&blocks);
        let (jobs, following) = rayon::join(|| read_in_parallel(blocks, states), || self.take_blocks());
        self.queue.extend(jobs);
        following
    }

    /// Assumes the state before each of `blocks`, without parsing their entries.
    fn assume_states(&self, blocks: &[Block<'a>]) -> Vec<AssumedState> {
        let mut assumed = AssumedState::from_state(&self.entry_state);
        let mut states = Vec::with_capacity(blocks.len());
        for block in blocks {
            states.push(assumed.clone());
            assumed.advance_past(block);
        }
        states
    }

    /// Removes the text of `block` before `start` and appends the next blocks until the text has at
    /// least doubled. The doubling limits how often a long entry is read. If no block follows,
    /// `block` becomes the last of its file.
    fn extend_block(&mut self, block: &mut Block<'a>, start: usize) {
        let mut text = block.text[start..].to_vec();
        let min_octets = 2 * text.len();
        block.is_last = false;
        while text.len() < min_octets && !block.is_last {
            let next = self.queue.pop_front().map(|job| job.block);
            let Some(next) = next.or_else(|| self.splitter.take_blocks(1).pop()) else {
                block.is_last = true;
                break;
            };
            text.extend_from_slice(&next.text);
            block.is_last = next.is_last;
            self.splitter.recycle(next.text);
        }
        block.is_first &= start == 0;
        block.text = Cow::Owned(text);
    }
}

fn read_in_parallel<'a>(blocks: Vec<Block<'a>>, states: Vec<AssumedState>) -> Vec<Job<'a>> {
    blocks
        .into_par_iter()
        .zip(states)
        .map_init(RecordBuffer::default, |buffer, (block, assumed)| {
            let speculative = read_speculatively(assumed, &block, buffer);
            Job { block, speculative }
        })
        .collect()
}

/// Returns the error of opening or reading the file `path`.
fn file_error(path: &Path, error: io::Error) -> ReadError {
    ReadError { file: path.to_path_buf(), line: 0, column: 0, fault: ReadFault::Io(error) }
}
