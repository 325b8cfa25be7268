//! Speculative reading of blocks: several blocks are read in parallel, each with an assumed state
//! of the reader at its start.
//!
//! The result of a block is used if the assumption was correct, and is discarded otherwise. A block
//! yields no result if it contains a fault, an $INCLUDE directive, or an entry that does not end in
//! the block, or if its first record takes its owner from the block before it. Such a block is read
//! again sequentially, so that faults are the same as with sequential reading.

use super::entry::{EntryReader, State};
use super::source::Block;
use crate::builder::{PART_OCTETS, Part, RecordBuffer};
use crate::lexer::{Lexer, Step};
use nonesuch_proto::Name;
use nonesuch_proto::text::parse_ttl;

/// Number of octets at the end of a block that are searched for directives.
const TAIL: usize = 8 << 10;

/// Result of the speculative reading of a block.
pub(super) struct SpeculativeBlock {
    /// The assumed state before the block.
    before: AssumedState,
    /// The records of the block; their source location is not yet set.
    part: Part,
    /// The state after the block.
    after: State,
    /// Number of newlines in the block.
    pub(super) lines: u32,
}

/// Assumed state of the reader at the start of a block.
#[derive(Clone)]
pub(super) struct AssumedState {
    origin: Option<Name>,
    default_ttl: Option<u32>,
}

impl AssumedState {
    /// Assumes the directives in `state`.
    pub(super) fn from_state(state: &State) -> Self {
        Self { origin: state.origin.clone(), default_ttl: state.default_ttl }
    }

    /// Whether `state` has the assumed directives, so that entries after it have the assumed
    /// meaning.
    fn holds(&self, state: &State) -> bool {
        // Owner names inherit the letter case of the origin, so the comparison is octet by octet.
        self.default_ttl == state.default_ttl
            && self.origin.as_ref().map(Name::wire) == state.origin.as_ref().map(Name::wire)
    }

    /// Updates the assumption for the text after `block`. It searches for the last $ORIGIN and $TTL
    /// directives at the start of a line, in the last [`TAIL`] octets of the block, or in the whole
    /// block if it is the first of its file.
    pub(super) fn pass(&mut self, block: &Block<'_>) {
        let text = &block.text[..];
        let start = if block.is_first { 0 } else { text.len().saturating_sub(TAIL) };
        let (mut origin, mut ttl) = (None, None);
        let mut end = text.len();
        while let Some(at) = text[start..end].iter().rposition(|octet| *octet == b'$') {
            end = start + at;
            if end > 0 && text[end - 1] != b'\n' {
                continue;
            }
            let line = text[end..].split(|octet| *octet == b'\n').next().unwrap_or_default();
            let mut words = line.split(|octet| b" \t\r;".contains(octet)).filter(|word| !word.is_empty());
            match (words.next().map(<[u8]>::to_ascii_uppercase).as_deref(), words.next()) {
                (Some(b"$ORIGIN"), Some(word)) if origin.is_none() => origin = Some(word),
                (Some(b"$TTL"), Some(word)) if ttl.is_none() => ttl = parse_ttl(word),
                _ => {}
            }
            if origin.is_some() && ttl.is_some() {
                break;
            }
        }
        let read = |word| Name::from_text(word, self.origin.as_ref().map(Name::view)).ok();
        self.origin = origin.and_then(read).or_else(|| self.origin.take());
        self.default_ttl = ttl.or(self.default_ttl);
    }
}

/// Reads `block` with the assumed state `before`. Returns `None` if the block must be read
/// sequentially.
pub(super) fn read_speculatively(
    before: AssumedState,
    block: &Block<'_>,
    part: &mut RecordBuffer,
) -> Option<SpeculativeBlock> {
    // A text that the splitter cannot split is one entry that never ends, or one name with very
    // many records.
    if block.text.len() > 16 * PART_OCTETS {
        return None;
    }
    part.clear();
    let mut state = State::new(before.origin.clone());
    state.default_ttl = before.default_ttl;
    state.leading_without_ttl = Some(0);
    let mut lexer = Lexer::new(&block.text, block.is_last);
    if block.is_first {
        lexer.skip_byte_order_mark();
    }
    let mut entries = EntryReader::new();
    loop {
        match lexer.next_entry() {
            Ok(Step::Entry) => {
                let read = entries.read(&lexer, &mut state, part);
                if !matches!(read, Ok(None)) {
                    return None;
                }
            }
            Ok(Step::End) => {
                return Some(SpeculativeBlock {
                    before,
                    part: part.take_part(),
                    after: state,
                    lines: lexer.lines(),
                });
            }
            Ok(Step::Cut) | Err(_) => return None,
        }
    }
}

impl SpeculativeBlock {
    /// Returns the records if `state` is the assumed state, and advances `state` to the end of the
    /// block.
    pub(super) fn accept(self, state: &mut State) -> Option<Part> {
        let Self { before, mut part, after, .. } = self;
        if !before.holds(state) {
            return None;
        }
        match (after.leading_without_ttl, state.last_ttl) {
            (None | Some(0), _) => {}
            (Some(count), Some(ttl)) => part.set_leading_ttls(count, ttl),
            (Some(_), None) => return None,
        }
        state.origin = after.origin;
        state.default_ttl = after.default_ttl;
        state.last_ttl = after.last_ttl.or(state.last_ttl);
        if !after.owner.is_empty() {
            state.owner = after.owner;
        }
        Some(part)
    }
}
