//! Speculative reading of blocks: several blocks are read in parallel, each with an assumed state
//! of the reader at its start.
//!
//! The result of a block is used if the assumption was correct, and is discarded otherwise. A block
//! yields no result if it contains a fault, an $INCLUDE directive, or an entry that does not end in
//! the block, or if its first record takes its owner from the block before it. Such a block is read
//! again sequentially, so that faults are the same as with sequential reading.

use super::entry::{EntryReader, EntryState};
use super::source::Block;
use crate::builder::{PART_OCTETS, Part, RecordBuffer};
use crate::lexer::{Lexer, LexerStep};
use nonesuch_proto::Name;
use nonesuch_proto::text::parse_ttl;

/// Number of octets at the end of a block that are searched for directives.
const TAIL_OCTETS: usize = 8 << 10;

/// Result of the speculative reading of a block.
pub(super) struct SpeculativeBlock {
    /// The assumed state before the block.
    assumed: AssumedState,
    /// The records of the block; their source location is not yet set.
    records: Part,
    /// The state after the block.
    end_state: EntryState,
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
    pub(super) fn from_state(state: &EntryState) -> Self {
        Self { origin: state.origin.clone(), default_ttl: state.default_ttl }
    }

    /// Whether `state` has the assumed directives, so that the entries of the block have the
    /// same meaning.
    fn matches(&self, state: &EntryState) -> bool {
        // Owner names inherit the letter case of the origin, so the comparison is octet by octet.
        self.default_ttl == state.default_ttl
            && self.origin.as_ref().map(Name::wire) == state.origin.as_ref().map(Name::wire)
    }

    /// Updates the assumption for the text after `block`. Searches for the last $ORIGIN and $TTL
    /// directives at the start of a line. Searches only the last [`TAIL_OCTETS`] octets of the
    /// block, except in the first block of a file, whose directives often apply to the whole file.
    pub(super) fn advance_past(&mut self, block: &Block<'_>) {
        let text = &block.text[..];
        let start = if block.is_first { 0 } else { text.len().saturating_sub(TAIL_OCTETS) };
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
        let parse_origin = |word| Name::from_text(word, self.origin.as_ref().map(Name::view)).ok();
        self.origin = origin.and_then(parse_origin).or_else(|| self.origin.take());
        self.default_ttl = ttl.or(self.default_ttl);
    }
}

/// Reads `block` with the state `assumed`; `records` is a buffer. Returns `None` if the block must
/// be read sequentially.
pub(super) fn read_speculatively(
    assumed: AssumedState,
    block: &Block<'_>,
    records: &mut RecordBuffer,
) -> Option<SpeculativeBlock> {
    // So large a block is one entry without end, or many records of one name. Speculative
    // reading would store all its records in one part.
    if block.text.len() > 16 * PART_OCTETS {
        return None;
    }
    records.clear();
    let mut state = EntryState::new(assumed.origin.clone());
    state.default_ttl = assumed.default_ttl;
    state.leading_without_ttl = Some(0);
    let mut lexer = Lexer::new(&block.text, block.is_last);
    if block.is_first {
        lexer.skip_byte_order_mark();
    }
    let mut entries = EntryReader::new();
    loop {
        match lexer.next_entry() {
            Ok(LexerStep::Entry) => {
                let read = entries.read(&lexer, &mut state, records);
                if !matches!(read, Ok(None)) {
                    return None;
                }
            }
            Ok(LexerStep::End) => {
                return Some(SpeculativeBlock {
                    assumed,
                    records: records.take_part(),
                    end_state: state,
                    lines: lexer.lines(),
                });
            }
            Ok(LexerStep::Cut) | Err(_) => return None,
        }
    }
}

impl SpeculativeBlock {
    /// Returns the records and advances `state` to the end of the block, if `state` is the assumed
    /// state. Otherwise returns `None` and leaves `state` unchanged; the block must then be read
    /// sequentially.
    pub(super) fn accept(self, state: &mut EntryState) -> Option<Part> {
        let Self { assumed, mut records, end_state, .. } = self;
        if !assumed.matches(state) {
            return None;
        }
        match (end_state.leading_without_ttl, state.last_ttl) {
            (None | Some(0), _) => {}
            (Some(count), Some(ttl)) => records.set_leading_ttls(count, ttl),
            (Some(_), None) => return None,
        }
        state.origin = end_state.origin;
        state.default_ttl = end_state.default_ttl;
        state.last_ttl = end_state.last_ttl.or(state.last_ttl);
        if !end_state.owner.is_empty() {
            state.owner = end_state.owner;
        }
        Some(records)
    }
}
