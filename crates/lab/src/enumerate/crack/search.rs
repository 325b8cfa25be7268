//! Computes the NSEC3 hashes of the names of patterns, and reports the names that a sieve accepts.
//!
//! A name changes only in the words of its message that contain variable octets. For names of the same
//! pattern, only these words are written.

use super::pattern::{Pattern, PatternRange};
use nonesuch_crypto::{NSEC3_LANES, Nsec3Blocks, Nsec3Hasher, Nsec3Hashes, nsec3_hash};
use nonesuch_dnssec::Nsec3Params;
use nonesuch_proto::{MAX_NAME, Name, NameRef};

/// The hash of a name.
type Hash = [u8; 20];

/// Decides which hashes are of interest.
pub(crate) trait Sieve {
    /// Whether a hash that begins with these 32 bits may match: a fast check without false negatives.
    fn may_match(&self, first_word: u32) -> bool;

    /// Whether the hash matches.
    fn matches(&self, hash: &Hash) -> bool;
}

/// Searches below one name, in one thread.
#[derive(Debug)]
pub(crate) struct Searcher {
    params: Nsec3Params,
    /// The wire form of the name below which the candidates are.
    parent: Vec<u8>,
    hasher: Nsec3Hasher,
    blocks: Nsec3Blocks,
    hashes: Nsec3Hashes,
    /// Number of names in `blocks`.
    filled: usize,
    /// Length of each name in octets.
    lengths: [usize; NSEC3_LANES],
    /// The pattern of the constant words of each lane.
    patterns: [u64; NSEC3_LANES],
    /// The number of the current pattern.
    pattern: u64,
    hits: Vec<(Hash, Name)>,
    /// Number of hashes computed.
    tested: u64,
}

/// A variable octet in the words of a message.
#[derive(Clone, Copy, Debug, Default)]
struct Digit {
    word: usize,
    shift: u32,
    /// The index of the current octet in its set.
    index: usize,
}

impl Searcher {
    pub(crate) fn new(params: &Nsec3Params, parent: NameRef<'_>) -> Self {
        Self {
            params: params.clone(),
            parent: parent.to_canonical().wire().to_vec(),
            hasher: Nsec3Hasher::new(&params.salt, params.iterations),
            blocks: Nsec3Blocks::default(),
            hashes: Nsec3Hashes::default(),
            filled: 0,
            lengths: [0; NSEC3_LANES],
            patterns: [0; NSEC3_LANES],
            pattern: 0,
            hits: Vec::new(),
            tested: 0,
        }
    }

    /// Number of names tested so far.
    pub(crate) const fn tested(&self) -> u64 {
        self.tested
    }

    /// Returns the names that matched since the last call.
    pub(crate) fn take_hits(&mut self) -> Vec<(Hash, Name)> {
        std::mem::take(&mut self.hits)
    }

    /// Tests the names of a range of the pattern. Some of them may wait for [`flush`](Self::flush).
    pub(crate) fn search(&mut self, pattern: &Pattern, range: PatternRange, sieve: &impl Sieve) {
        let range =
            PatternRange { count: range.count.min(pattern.size().saturating_sub(range.start)), ..range };
        let name = [&pattern.name(range.start), self.parent.as_slice()].concat();
        if name.len() > MAX_NAME || range.count == 0 {
            return;
        }
        match Nsec3Blocks::message(&name, &self.params.salt) {
            Some(message) => self.search_blocks(pattern, range, message, name.len(), sieve),
            None => self.search_each(pattern, range, sieve),
        }
    }

    /// Tests names whose messages fit into one block.
    fn search_blocks(
        &mut self,
        pattern: &Pattern,
        range: PatternRange,
        mut message: [u32; 16],
        length: usize,
        sieve: &impl Sieve,
    ) {
        self.pattern += 1;
        let mut digits = digits(pattern, range.start);
        let words = match (digits.first(), digits.last()) {
            (Some(first), Some(last)) => first.word..last.word + 1,
            _ => 0..0,
        };
        for _ in 0..range.count {
            let lane = self.filled;
            self.lengths[lane] = length;
            if self.patterns[lane] == self.pattern {
                for word in words.clone() {
                    self.blocks.set_word(lane, word, message[word]);
                }
            } else {
                self.blocks.set(lane, &message);
                self.patterns[lane] = self.pattern;
            }
            self.filled += 1;
            if self.filled == NSEC3_LANES {
                self.flush(sieve);
            }
            advance(pattern, &mut digits, &mut message);
        }
    }

    /// Tests names whose messages are longer than one block.
    #[cold]
    fn search_each(&mut self, pattern: &Pattern, range: PatternRange, sieve: &impl Sieve) {
        for index in range.start..range.start + range.count {
            let name = [&pattern.name(index), self.parent.as_slice()].concat();
            let hash = nsec3_hash(&name, &self.params.salt, self.params.iterations);
            self.tested += 1;
            if sieve.matches(&hash) {
                self.push_hit(hash, &name);
            }
        }
    }

    /// Tests the names that wait.
    #[inline]
    pub(crate) fn flush(&mut self, sieve: &impl Sieve) {
        if self.filled == 0 {
            return;
        }
        self.hasher.hash(&self.blocks, &mut self.hashes);
        let first_words = *self.hashes.first_words();
        for (lane, first_word) in first_words.iter().enumerate().take(self.filled) {
            if sieve.may_match(*first_word) {
                self.check(lane, sieve);
            }
        }
        self.tested += self.filled as u64;
        self.filled = 0;
    }

    #[cold]
    fn check(&mut self, lane: usize, sieve: &impl Sieve) {
        let hash = self.hashes.hash(lane);
        if sieve.matches(&hash) {
            let octets = self.blocks.octets(lane);
            let length = self.lengths[lane];
            self.push_hit(hash, octets.get(..length).unwrap_or_default());
        }
    }

    fn push_hit(&mut self, hash: Hash, wire: &[u8]) {
        // The patterns have valid labels.
        if let Ok(name) = NameRef::from_wire(wire) {
            self.hits.push((hash, name.to_name()));
        }
    }
}

/// The variable octets of the name with the index `start`.
fn digits(pattern: &Pattern, start: u64) -> Vec<Digit> {
    let mut rest = start;
    let mut digits = vec![Digit::default(); pattern.positions.len()];
    for (digit, position) in digits.iter_mut().zip(&pattern.positions).rev() {
        let size = position.set.len() as u64;
        let shift = 24 - 8 * (position.at as u32 % 4);
        *digit = Digit { word: position.at / 4, shift, index: (rest % size) as usize };
        rest /= size;
    }
    digits
}

/// Changes the message to that of the next name; after the last, to that of the first.
#[inline]
fn advance(pattern: &Pattern, digits: &mut [Digit], message: &mut [u32; 16]) {
    for (digit, position) in digits.iter_mut().zip(&pattern.positions).rev() {
        digit.index += 1;
        let is_last = digit.index == position.set.len();
        if is_last {
            digit.index = 0;
        }
        let word = &mut message[digit.word];
        *word = *word & !(0xff << digit.shift) | u32::from(position.set[digit.index]) << digit.shift;
        if !is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Mask;
    use super::*;
    use std::collections::HashSet;

    struct All;

    impl Sieve for All {
        fn may_match(&self, _: u32) -> bool {
            true
        }

        fn matches(&self, _: &Hash) -> bool {
            true
        }
    }

    fn params(salt: &[u8], iterations: u16) -> Nsec3Params {
        Nsec3Params { salt: salt.to_vec(), iterations }
    }

    #[test]
    fn every_name_of_a_mask_is_hashed_once() {
        let long = format!("{}.example.", "z".repeat(50));
        for (parent, salt, iterations) in
            [("example.", &[][..], 0), ("example.", &[1, 2, 3], 5), (&long, &[], 0), (".", &[0; 36], 2)]
        {
            let parent: Name = parent.parse().expect("a name");
            let params = params(salt, iterations);
            let mask: Mask = "a[0-2].?d[x-z]-?h".parse().expect("a mask");
            let pattern = mask.pattern().expect("a pattern");
            let mut searcher = Searcher::new(&params, parent.view());
            // Ranges of any size, over the borders of lanes.
            let (mut start, mut count) = (0, 1);
            while start < pattern.size() {
                searcher.search(&pattern, PatternRange { start, count }, &All);
                (start, count) = (start + count, count + 7);
            }
            searcher.flush(&All);
            let hits = searcher.take_hits();
            assert_eq!((hits.len() as u64, searcher.tested()), (mask.size(), mask.size()));
            let names: HashSet<String> = hits.iter().map(|(_, name)| name.to_string()).collect();
            assert_eq!(names.len() as u64, mask.size());
            for (hash, name) in hits {
                assert_eq!(hash, nsec3_hash(name.wire(), salt, iterations), "{name}");
            }
        }
    }

    #[test]
    fn words_of_different_lengths_share_a_batch() {
        let parent: Name = "example.".parse().expect("a name");
        let mut searcher = Searcher::new(&params(&[], 0), parent.view());
        let mut pattern = Pattern::default();
        let words: Vec<String> =
            (0..40).map(|number| "w".repeat(number % 30 + 1) + &number.to_string()).collect();
        for word in &words {
            assert!(pattern.set_word(&Mask::empty(), word.as_bytes(), &Mask::empty()));
            searcher.search(&pattern, PatternRange { start: 0, count: 1 }, &All);
        }
        searcher.flush(&All);
        let names: Vec<String> = searcher.take_hits().iter().map(|(_, name)| name.to_string()).collect();
        let expected: Vec<String> = words.iter().map(|word| format!("{word}.example.")).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_name_that_is_too_long_is_skipped() {
        let parent: Name = [&*"x".repeat(63); 3].join(".").parse().expect("a name");
        let mut searcher = Searcher::new(&params(&[], 0), parent.view());
        let mask: Mask = "y".repeat(62).parse().expect("a mask");
        let pattern = mask.pattern().expect("a pattern");
        searcher.search(&pattern, PatternRange { start: 0, count: 1 }, &All);
        searcher.flush(&All);
        assert_eq!(searcher.tested(), 0);
    }
}
