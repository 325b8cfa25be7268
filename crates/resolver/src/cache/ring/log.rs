//! The log of a shard: entries one after another in segments of a fixed size.
//!
//! Segments are allocated on demand up to a maximum. Then writing goes on in the first segment, and
//! so on in a circle. In the segment that is written, new entries are before the *head*, and the
//! entries of the previous round that are still there begin at the *tail*:
//!
//! ```text
//! 0               head        tail                  end      SEGMENT_OCTETS
//! |  new entries   |   free    |   oldest entries    |  unused  |
//! ```
//!
//! The caller removes the oldest entries until the free part is large enough. No entry crosses the
//! end of a segment.

use super::entry::{ALIGNMENT, Entry, HEADER_OCTETS, Header};
use std::num::NonZeroU32;

/// Octets of a segment.
pub(super) const SEGMENT_OCTETS: usize = 64 << 10;
/// Multiples of [`ALIGNMENT`] in a segment.
const SEGMENT_UNITS: usize = SEGMENT_OCTETS / ALIGNMENT;
/// Maximum number of segments: positions have 32 bits, and 0 is no position.
const SEGMENTS_MAX: usize = (1 << 32) / SEGMENT_UNITS - 1;

/// The place of an entry in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Position(NonZeroU32);

impl Position {
    fn new(segment: usize, offset: usize) -> Self {
        let unit = segment * SEGMENT_UNITS + offset / ALIGNMENT + 1;
        Self(u32::try_from(unit).ok().and_then(NonZeroU32::new).expect("segments are bounded"))
    }

    /// Returns the position that [`Position::to_word`] has encoded; `None` for 0.
    pub(super) fn from_word(word: u32) -> Option<Self> {
        NonZeroU32::new(word).map(Self)
    }

    /// Returns the position as a number other than 0.
    pub(super) const fn to_word(self) -> u32 {
        self.0.get()
    }

    const fn segment(self) -> usize {
        (self.0.get() - 1) as usize / SEGMENT_UNITS
    }

    const fn offset(self) -> usize {
        (self.0.get() - 1) as usize % SEGMENT_UNITS * ALIGNMENT
    }
}

/// The log.
#[derive(Debug)]
pub(super) struct Log {
    segments: Vec<Box<[u8]>>,
    /// The end of the entries of each segment in the previous round.
    ends: Vec<usize>,
    segments_max: usize,
    /// The segment that is written.
    current: usize,
    /// The end of the new entries in the current segment.
    head: usize,
    /// The start of the oldest entries in the current segment; `SEGMENT_OCTETS` if there are none.
    tail: usize,
}

impl Log {
    /// Returns an empty log of at most `segments_max` segments, at least one.
    pub(super) fn new(segments_max: usize) -> Self {
        let mut log = Self {
            segments: Vec::new(),
            ends: Vec::new(),
            segments_max: segments_max.clamp(1, SEGMENTS_MAX),
            current: 0,
            head: 0,
            tail: SEGMENT_OCTETS,
        };
        log.allocate();
        log
    }

    fn allocate(&mut self) {
        self.segments.push(vec![0; SEGMENT_OCTETS].into_boxed_slice());
        self.ends.push(0);
    }

    /// Returns the octets of memory that are allocated.
    pub(super) const fn octets(&self) -> usize {
        self.segments.len() * SEGMENT_OCTETS
    }

    /// Whether an entry of `size` octets can be appended.
    pub(super) const fn has_room(&self, size: usize) -> bool {
        self.tail - self.head >= size
    }

    /// Returns the oldest entry in the current segment; `None` if all of its entries are new.
    pub(super) fn oldest(&self) -> Option<(Position, Header)> {
        if self.tail == SEGMENT_OCTETS {
            return None;
        }
        let position = Position::new(self.current, self.tail);
        Some((position, self.header(position)))
    }

    /// Frees the octets of the oldest entry, which [`Log::oldest`] has returned.
    pub(super) fn drop_oldest(&mut self, header: &Header) {
        self.set_tail(self.tail + header.size());
    }

    /// Sets the start of the oldest entries. Behind their end, the rest of the segment is free.
    fn set_tail(&mut self, offset: usize) {
        self.tail = if offset < self.ends[self.current] { offset } else { SEGMENT_OCTETS };
    }

    /// Makes the oldest entry, which [`Log::oldest`] has returned, the newest one. Returns its new
    /// position. It is not marked as used any more.
    pub(super) fn renew_oldest(&mut self, header: &Header) -> Position {
        let size = header.size();
        let position = Position::new(self.current, self.head);
        let segment = &mut self.segments[self.current];
        segment.copy_within(self.tail..self.tail + size, self.head);
        Header::set_used(&mut segment[self.head..], false);
        self.head += size;
        self.set_tail(self.tail + size);
        position
    }

    /// Goes on in the next segment, after [`Log::oldest`] has returned `None`. `may_grow`: whether a
    /// segment may be allocated.
    pub(super) fn advance(&mut self, may_grow: bool) {
        self.ends[self.current] = self.head;
        self.current += 1;
        if self.current == self.segments.len() {
            if may_grow && self.segments.len() < self.segments_max {
                self.allocate();
            } else {
                self.current = 0;
            }
        }
        self.head = 0;
        self.set_tail(0);
    }

    /// Appends an entry, for which there must be room.
    pub(super) fn append(&mut self, header: &Header, entry: &Entry<'_>) -> Position {
        let position = Position::new(self.current, self.head);
        let octets = &mut self.segments[self.current][self.head..self.head + header.size()];
        header.write(octets);
        let (name, value) = octets[HEADER_OCTETS..].split_at_mut(entry.name.len());
        name.copy_from_slice(entry.name);
        value[..entry.value.len()].copy_from_slice(entry.value);
        self.head += header.size();
        position
    }

    fn octets_at(&self, position: Position) -> &[u8] {
        &self.segments[position.segment()][position.offset()..]
    }

    /// Returns the header of an entry.
    pub(super) fn header(&self, position: Position) -> Header {
        Header::read(self.octets_at(position))
    }

    /// Returns an entry.
    pub(super) fn entry(&self, position: Position) -> Entry<'_> {
        let octets = self.octets_at(position);
        Header::read(octets).entry(octets)
    }

    /// Marks an entry as used.
    pub(super) fn mark_used(&mut self, position: Position) {
        Header::set_used(&mut self.segments[position.segment()][position.offset()..], true);
    }

    /// Returns the positions of all entries, of those that were removed too.
    #[cfg(test)]
    pub(super) fn positions(&self) -> Vec<Position> {
        let mut positions = Vec::new();
        for segment in 0..self.segments.len() {
            let oldest = if segment == self.current { self.tail } else { 0 };
            let old = oldest..self.ends[segment];
            let new = 0..if segment == self.current { self.head } else { 0 };
            for part in [new, old] {
                let mut at = part.start;
                while at < part.end {
                    positions.push(Position::new(segment, at));
                    at += self.header(Position::new(segment, at)).size();
                }
                assert!(part.is_empty() || at == part.end, "entries end where their part ends");
            }
        }
        positions
    }
}
