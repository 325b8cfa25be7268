//! Blocks that are read before what stands in front of them: on a guess of the state, side by side.
//!
//! What a guess yields is taken where the guess was right, and else thrown away. A block that holds a fault, an
//! $INCLUDE, an entry that does not end in it, or a record with the owner of the block in front yields nothing: it is read
//! again in its turn, so that faults and what leads to them are those of reading from front to back.

use super::entry::{EntryReader, State};
use super::source::Block;
use crate::builder::{OpenPart, PART, Part};
use crate::lexer::{Lexer, Step};
use nonesuch_proto::Name;
use nonesuch_proto::text::parse_ttl;

/// Octets at the end of a block in which directives are looked for.
const TAIL: usize = 8 << 10;

/// What a block yields on a guess.
pub(super) struct SpeculativeBlock {
    /// The guess.
    before: AssumedState,
    /// The records, their place not yet set.
    part: Part,
    /// The state behind the block.
    after: State,
    /// Number of newlines in the block.
    pub(super) lines: u32,
}

/// What is guessed about the text in front of a block.
#[derive(Clone)]
pub(super) struct AssumedState {
    origin: Option<Name>,
    default_ttl: Option<u32>,
}

impl AssumedState {
    /// Of entries behind those that led to `state`.
    pub(super) fn from_state(state: &State) -> Self {
        Self { origin: state.origin.clone(), default_ttl: state.default_ttl }
    }

    /// Whether entries behind `state` read as was guessed.
    fn holds(&self, state: &State) -> bool {
        // Names are kept in the case in which they are written: the origin's too.
        self.default_ttl == state.default_ttl
            && self.origin.as_ref().map(Name::wire) == state.origin.as_ref().map(Name::wire)
    }

    /// Goes on behind `block`, with the last directives that stand at the begin of a line near its end, or anywhere
    /// in the first block of a file.
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

/// Reads `block` as if `before` were what stands in front of it.
pub(super) fn read_speculatively(
    before: AssumedState,
    block: &Block<'_>,
    part: &mut OpenPart,
) -> Option<SpeculativeBlock> {
    // A text without places to cut is one entry that never ends, or a name with very many records.
    if block.text.len() > 16 * PART {
        return None;
    }
    part.clear();
    let mut state = State::new(before.origin.clone());
    state.default_ttl = before.default_ttl;
    state.inherited = Some(0);
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
                    part: part.close(),
                    after: state,
                    lines: lexer.lines(),
                });
            }
            Ok(Step::Cut) | Err(_) => return None,
        }
    }
}

impl SpeculativeBlock {
    /// The records, where `state` is what was guessed; it then moves behind the block.
    pub(super) fn accept(self, state: &mut State) -> Option<Part> {
        let Self { before, mut part, after, .. } = self;
        if !before.holds(state) {
            return None;
        }
        match (after.inherited, state.last_ttl) {
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
