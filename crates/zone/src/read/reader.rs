//! Reads files block by block: several blocks speculatively in parallel, and the rest sequentially.

use super::block::{AssumedState, SpeculativeBlock, read_speculatively};
use super::entry::{EntryReader, Include, Located, State};
use super::fault::{ReadError, ReadFault};
use super::source::{Block, BlockSplitter, Source};
use crate::builder::{Builder, PART_OCTETS, RecordBuffer};
use crate::lexer::{Lexer, Step};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Limit of the nesting of $INCLUDE: the zone file has depth 0, and a file at depth `MAX_INCLUDE`
/// is an error.
const MAX_INCLUDE: usize = 10;
/// Number of blocks per thread that are read in parallel.
const BLOCKS: usize = 4;

/// Function that opens the zone file and the files that it includes.
pub(crate) type OpenFile = fn(&Path) -> io::Result<File>;

/// Reads a zone file and the files that it includes.
pub(super) struct Reader {
    pub(super) builder: Builder,
    pub(super) files: Vec<PathBuf>,
    /// Approximate size of a block in octets.
    pub(super) block_octets: usize,
    pub(super) open: OpenFile,
    part: RecordBuffer,
}

/// State of reading one file.
struct Current<'a> {
    file: u16,
    depth: usize,
    state: State,
    /// Number of newlines before the next block.
    lines: u32,
    queue: VecDeque<Job<'a>>,
    cutter: BlockSplitter<'a>,
}

struct Job<'a> {
    block: Block<'a>,
    guessed: Option<SpeculativeBlock>,
}

/// Result of reading a block.
enum BlockEnd {
    Whole,
    /// The entry at this offset, after this number of newlines, continues beyond the end of the
    /// block.
    Cut(usize, u32),
}

impl Reader {
    pub(super) fn new(path: &Path, block_octets: usize) -> Self {
        let (builder, part) = (Builder::default(), RecordBuffer::default());
        Self { builder, files: vec![path.to_path_buf()], block_octets, open: |path| File::open(path), part }
    }

    /// Reads the file `path`, which has index 0 in `files`.
    pub(super) fn read_file(&mut self, path: &Path, state: State) -> Result<State, ReadError> {
        let file = (self.open)(path).map_err(|error| at_file(path, error))?;
        self.read(Source::File(file), 0, 0, state)
    }

    /// Reads `source`, which has index `file` in `files`. Returns the state after it.
    pub(super) fn read(
        &mut self,
        source: Source<'_>,
        file: u16,
        depth: usize,
        state: State,
    ) -> Result<State, ReadError> {
        let cutter = BlockSplitter::new(source, self.block_octets);
        let mut current = Current { file, depth, state, lines: 0, queue: VecDeque::new(), cutter };
        let mut blocks = current.take_blocks();
        while !blocks.is_empty() {
            let guessed = blocks.len();
            let ahead = current.guess_blocks(blocks);
            current.queue.extend(ahead.into_iter().map(|block| Job { block, guessed: None }));
            self.read_jobs(guessed, &mut current)?;
            blocks = current.queue.drain(..).map(|job| job.block).collect();
            if blocks.is_empty() {
                blocks = current.take_blocks();
            }
        }
        match current.cutter.fault.take() {
            Some(error) => Err(at_file(&self.files[usize::from(file)], error)),
            None => Ok(current.state),
        }
    }

    /// Reads the first `count` jobs of the queue. An entry that continues in later jobs takes these
    /// from the queue too.
    fn read_jobs(&mut self, count: usize, current: &mut Current<'_>) -> Result<(), ReadError> {
        let left = current.queue.len() - count;
        while current.queue.len() > left
            && let Some(job) = current.queue.pop_front()
        {
            self.read_job(job, current)?;
        }
        Ok(())
    }

    fn read_job<'a>(&mut self, job: Job<'a>, current: &mut Current<'a>) -> Result<(), ReadError> {
        let Job { mut block, guessed } = job;
        if let Some(guessed) = guessed {
            let lines = guessed.lines;
            if let Some(mut part) = guessed.accept(&mut current.state) {
                part.set_start(current.file, current.lines);
                self.builder.push_part(part);
                current.lines += lines;
                current.cutter.recycle(block.text);
                return Ok(());
            }
        }
        while let BlockEnd::Cut(start, lines) = self.read_block(&block, current)? {
            // Keep a byte order mark in the text, so that the columns of the first line are
            // correct.
            let start = if lines == 0 && block.is_first { 0 } else { start };
            current.lines += lines;
            current.extend(&mut block, start);
            if block.is_last
                && let Some(error) = current.cutter.fault.take()
            {
                return Err(at_file(&self.files[usize::from(current.file)], error));
            }
        }
        current.cutter.recycle(block.text);
        Ok(())
    }

    /// Reads a block sequentially, with the known state.
    fn read_block(&mut self, block: &Block<'_>, current: &mut Current<'_>) -> Result<BlockEnd, ReadError> {
        let mut lexer = Lexer::new(&block.text, block.is_last);
        if block.is_first {
            lexer.skip_byte_order_mark();
        }
        let mut entries = EntryReader::new();
        loop {
            let step = lexer.next_entry().map_err(|(fault, at)| (fault.into(), at));
            let read = match step {
                Ok(Step::Entry) => entries.read(&lexer, &mut current.state, &mut self.part),
                Ok(Step::Cut) => {
                    self.close_part(current);
                    return Ok(BlockEnd::Cut(lexer.start, lexer.line - 1));
                }
                Ok(Step::End) => {
                    self.close_part(current);
                    current.lines += lexer.lines();
                    return Ok(BlockEnd::Whole);
                }
                Err(located) => Err(located),
            };
            let outcome = match read {
                Ok(None) => Ok(()),
                Ok(Some(include)) => self.include(include, current)?,
                Err(located) => Err(located),
            };
            if let Err((fault, at)) = outcome {
                let (line, column) = lexer.position(at);
                let file = self.files[usize::from(current.file)].clone();
                return Err(ReadError { file, line: current.lines + line, column, fault });
            }
            if self.part.len() >= PART_OCTETS {
                self.close_part(current);
            }
        }
    }

    fn close_part(&mut self, current: &Current<'_>) {
        if !self.part.is_empty() {
            let mut part = self.part.take_part();
            part.set_start(current.file, current.lines);
            self.builder.push_part(part);
        }
    }

    /// Reads an included file. Its $ORIGIN does not change the origin of the including file
    /// (RFC 1035 §5.1). The inner `Result` is a fault of the directive; the outer one is a fault in
    /// the included file.
    fn include(
        &mut self,
        include: Include,
        current: &mut Current<'_>,
    ) -> Result<Result<(), Located>, ReadError> {
        let Include { path, origin, at } = include;
        let file = u16::try_from(self.files.len()).ok().filter(|_| current.depth + 1 < MAX_INCLUDE);
        let Some(file) = file else { return Ok(Err((ReadFault::IncludeDepth, at))) };
        self.close_part(current);
        let including = &self.files[usize::from(current.file)];
        let folder = including.parent().unwrap_or_else(|| Path::new("."));
        let path = folder.join(&*String::from_utf8_lossy(&path));
        self.files.push(path.clone());
        let source = (self.open)(&path).map_err(|error| at_file(&path, error))?;
        let mut state = State::new(origin);
        (state.default_ttl, state.last_ttl) = (current.state.default_ttl, current.state.last_ttl);
        let after = self.read(Source::File(source), file, current.depth + 1, state)?;
        (current.state.default_ttl, current.state.last_ttl) = (after.default_ttl, after.last_ttl);
        Ok(Ok(()))
    }
}

impl<'a> Current<'a> {
    fn take_blocks(&mut self) -> Vec<Block<'a>> {
        self.cutter.take_blocks(BLOCKS * rayon::current_num_threads())
    }

    /// Reads `blocks` speculatively and appends them to the queue. Returns the blocks after them,
    /// which have not been read.
    fn guess_blocks(&mut self, blocks: Vec<Block<'a>>) -> Vec<Block<'a>> {
        // A text of one block does not benefit from speculative reading.
        if blocks.len() == 1 {
            self.queue.extend(blocks.into_iter().map(|block| Job { block, guessed: None }));
            return self.take_blocks();
        }
        let guesses = self.guess(&blocks);
        let (jobs, ahead) = rayon::join(|| read_side_by_side(blocks, guesses), || self.take_blocks());
        self.queue.extend(jobs);
        ahead
    }

    /// Assumes the state before each of `blocks`, without parsing their entries.
    fn guess(&self, blocks: &[Block<'a>]) -> Vec<AssumedState> {
        let mut inherited = AssumedState::from_state(&self.state);
        let mut guesses = Vec::with_capacity(blocks.len());
        for block in blocks {
            guesses.push(inherited.clone());
            inherited.pass(block);
        }
        guesses
    }

    /// Removes the text of `block` before `start` and appends the next blocks until the text has at
    /// least doubled. The doubling limits how often a long entry is read. If no block follows,
    /// `block` becomes the last of its file.
    fn extend(&mut self, block: &mut Block<'a>, start: usize) {
        let mut text = block.text[start..].to_vec();
        let wanted = 2 * text.len();
        block.is_last = false;
        while text.len() < wanted && !block.is_last {
            let next = self.queue.pop_front().map(|job| job.block);
            let Some(next) = next.or_else(|| self.cutter.take_blocks(1).pop()) else {
                block.is_last = true;
                break;
            };
            text.extend_from_slice(&next.text);
            block.is_last = next.is_last;
            self.cutter.recycle(next.text);
        }
        block.is_first &= start == 0;
        block.text = Cow::Owned(text);
    }
}

fn read_side_by_side<'a>(blocks: Vec<Block<'a>>, guesses: Vec<AssumedState>) -> Vec<Job<'a>> {
    blocks
        .into_par_iter()
        .zip(guesses)
        .map_init(RecordBuffer::default, |part, (block, guess)| {
            let guessed = read_speculatively(guess, &block, part);
            Job { block, guessed }
        })
        .collect()
}

pub(super) fn at_file(path: &Path, error: io::Error) -> ReadError {
    ReadError { file: path.to_path_buf(), line: 0, column: 0, fault: ReadFault::Io(error) }
}
