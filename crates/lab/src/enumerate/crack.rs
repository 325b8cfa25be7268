//! Searches for the names of NSEC3 hashes offline, on all cores: word lists, masks, and words with
//! affixes (RFC 5155 §12.1.1).
//!
//! The work of a plan is divided into units with numbers. Threads take units in order, and the number
//! of the first unit that is not finished is the position at which a later run continues.

pub mod pattern;
pub(crate) mod search;
mod targets;
pub mod words;

use super::collect::Hash;
use nonesuch_dnssec::Nsec3Params;
use nonesuch_proto::Name;
use pattern::{Mask, Pattern, PatternRange};
use search::Searcher;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};
use targets::Targets;
use words::Words;

/// Number of names of a mask in a unit.
const MASK_UNIT: u64 = 1 << 22;
/// Number of words in a unit, without affixes.
const WORD_UNIT: u64 = 1 << 14;
/// Number of hashes, iterations included, between two checks whether to stop.
const STEP: u64 = 1 << 18;
/// Minimum number of names that are tested together.
const NAMES_MIN: u64 = 64;
/// Interval of progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// Which names are tested.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    attacks: Vec<Attack>,
    digest: String,
}

/// A part of a plan.
#[derive(Clone, Debug)]
enum Attack {
    /// All words, each between the prefixes and suffixes.
    Words { words: Words, prefix: Mask, suffix: Mask, words_per_unit: u64 },
    /// The names of a mask.
    Mask { pattern: Pattern, size: u64 },
}

impl Attack {
    fn units(&self) -> u64 {
        match self {
            Self::Words { words, words_per_unit, .. } => words.len().div_ceil(*words_per_unit),
            Self::Mask { size, .. } => size.div_ceil(MASK_UNIT),
        }
    }

    fn names(&self) -> u128 {
        match self {
            Self::Words { words, prefix, suffix, .. } => {
                u128::from(words.len()) * u128::from(prefix.size()) * u128::from(suffix.size())
            }
            Self::Mask { size, .. } => u128::from(*size),
        }
    }
}

impl Plan {
    /// A plan with these words alone and with each affix, then with the masks.
    ///
    /// # Errors
    /// [`pattern::MaskError::Label`] if a mask has invalid labels.
    pub fn new(
        words: &[Words],
        prefixes: &[Mask],
        suffixes: &[Mask],
        masks: &[Mask],
    ) -> Result<Self, pattern::MaskError> {
        let mut attacks = Vec::new();
        let mut digest = blake3::Hasher::new();
        let with_empty = |affixes: &[Mask]| -> Vec<Mask> {
            std::iter::once(Mask::empty()).chain(affixes.iter().cloned()).collect()
        };
        for words in words {
            digest.update(words.digest());
            for prefix in with_empty(prefixes) {
                for suffix in with_empty(suffixes) {
                    digest.update(format!("words {prefix}\n{suffix}\n").as_bytes());
                    let names_per_word = prefix.size().saturating_mul(suffix.size());
                    let words_per_unit = (WORD_UNIT / names_per_word).max(1);
                    let (words, prefix) = (words.clone(), prefix.clone());
                    attacks.push(Attack::Words { words, prefix, suffix, words_per_unit });
                }
            }
        }
        for mask in masks {
            digest.update(format!("mask {mask}\n").as_bytes());
            attacks.push(Attack::Mask { pattern: mask.pattern()?, size: mask.size() });
        }
        let digest = digest.finalize().to_hex()[..16].to_owned();
        Ok(Self { attacks, digest })
    }

    /// Identifies the names of the plan and their order.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Number of units.
    #[must_use]
    pub fn units(&self) -> u64 {
        self.attacks.iter().map(Attack::units).fold(0, u64::saturating_add)
    }

    /// Number of names that the plan tests below one name.
    #[must_use]
    pub fn names(&self) -> u128 {
        self.attacks.iter().map(Attack::names).sum()
    }

    /// The attack of a unit, and the number of the unit in it.
    fn unit(&self, mut unit: u64) -> Option<(&Attack, u64)> {
        for attack in &self.attacks {
            match unit.checked_sub(attack.units()) {
                None => return Some((attack, unit)),
                Some(rest) => unit = rest,
            }
        }
        None
    }

    /// The names of the plan, as labels in wire form without the zone, for online guesses.
    pub(super) fn candidates(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.attacks.iter().flat_map(|attack| -> Box<dyn Iterator<Item = Vec<u8>> + '_> {
            match attack {
                Attack::Mask { pattern, size } => Box::new((0..*size).map(move |index| pattern.name(index))),
                Attack::Words { words, prefix, suffix, .. } => Box::new(words.iter().flat_map(move |word| {
                    let mut pattern = Pattern::default();
                    let is_valid = pattern.set_word(prefix, word, suffix);
                    let size = if is_valid { pattern.size() } else { 0 };
                    (0..size).map(move |index| pattern.name(index))
                })),
            }
        })
    }
}

/// The progress of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrackProgress {
    /// Number of names tested in this run.
    pub tested: u64,
    /// Number of names that this run tests below the current name, at most.
    pub planned: u128,
    /// Number of names found in this run.
    pub found: usize,
    /// The first unit that is not finished.
    pub position: u64,
}

/// The outcome of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CrackReport {
    /// Number of names tested.
    pub tested: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Names tested per second.
    pub hashes_per_second: f64,
    /// Number of threads.
    pub threads: usize,
    /// The instruction set of the hash function.
    pub instruction_set: &'static str,
    /// Whether all names of the plan were tested.
    pub complete: bool,
}

impl CrackReport {
    /// Adds the report of a search below another name.
    pub(super) fn add(&mut self, other: &Self) {
        *self = Self {
            tested: self.tested + other.tested,
            seconds: self.seconds + other.seconds,
            complete: self.complete && other.complete,
            ..other.clone()
        };
        self.hashes_per_second = self.tested as f64 / self.seconds.max(1e-9);
    }
}

/// The input of a search.
pub(super) struct Search<'a> {
    pub(super) plan: &'a Plan,
    pub(super) params: &'a Nsec3Params,
    /// The name below which names are tested.
    pub(super) parent: &'a Name,
    /// The hashes to be found.
    pub(super) hashes: &'a [Hash],
    /// The first unit.
    pub(super) position: u64,
    pub(super) threads: usize,
    pub(super) end: Instant,
}

/// A finished part of a unit.
struct Finished {
    /// The number of the unit, when its last part is finished.
    unit: Option<u64>,
    tested: u64,
    hits: Vec<(Hash, Name)>,
}

/// The data that the threads share.
struct Shared<'a> {
    search: &'a Search<'a>,
    targets: Targets,
    next_unit: AtomicU64,
    stop: AtomicBool,
}

/// Tests the names of a plan. `on_found` is called for each name found, `on_progress` about twice a
/// second and at the end.
pub(super) fn run(
    search: &Search<'_>,
    mut on_found: impl FnMut(Hash, Name),
    mut on_progress: impl FnMut(CrackProgress),
) -> CrackReport {
    let started_at = Instant::now();
    let shared = Shared {
        search,
        targets: Targets::new(search.hashes),
        next_unit: AtomicU64::new(search.position),
        stop: AtomicBool::new(false),
    };
    let mut progress =
        CrackProgress { tested: 0, planned: search.plan.names(), found: 0, position: search.position };
    let mut finished_units = BTreeSet::new();
    thread::scope(|scope| {
        let (sender, finished) = mpsc::channel();
        for _ in 0..search.threads.max(1) {
            let (shared, sender) = (&shared, sender.clone());
            scope.spawn(move || work(shared, &sender));
        }
        drop(sender);
        let mut reported_at = Instant::now();
        loop {
            match finished.recv_timeout(PROGRESS_INTERVAL) {
                Ok(Finished { unit, tested, hits }) => {
                    progress.tested += tested;
                    progress.found += hits.len();
                    hits.into_iter().for_each(|(hash, name)| on_found(hash, name));
                    finished_units.extend(unit);
                    while finished_units.remove(&progress.position) {
                        progress.position += 1;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if Instant::now() >= search.end {
                shared.stop.store(true, Relaxed);
            }
            if reported_at.elapsed() >= PROGRESS_INTERVAL {
                on_progress(progress);
                reported_at = Instant::now();
            }
        }
    });
    on_progress(progress);
    let seconds = started_at.elapsed().as_secs_f64();
    CrackReport {
        tested: progress.tested,
        seconds,
        hashes_per_second: progress.tested as f64 / seconds.max(1e-9),
        threads: search.threads.max(1),
        instruction_set: nonesuch_crypto::Nsec3Hasher::new(&[], 0).implementation().instruction_set,
        complete: progress.position >= search.plan.units(),
    }
}

/// One thread: tests unit after unit.
fn work(shared: &Shared<'_>, sender: &Sender<Finished>) {
    let search = shared.search;
    let mut searcher = Searcher::new(search.params, search.parent.view());
    let mut reported = 0;
    while !shared.stop.load(Relaxed) {
        let unit = shared.next_unit.fetch_add(1, Relaxed);
        let Some((attack, number)) = search.plan.unit(unit) else { return };
        let mut report = |searcher: &mut Searcher, unit: Option<u64>| {
            let tested = searcher.tested() - reported;
            reported = searcher.tested();
            // The receiver ends only after all threads.
            let _ = sender.send(Finished { unit, tested, hits: searcher.take_hits() });
        };
        let is_finished = match attack {
            Attack::Mask { pattern, size } => {
                test_mask(shared, &mut searcher, pattern, (number * MASK_UNIT, *size), &mut report)
            }
            Attack::Words { words, prefix, suffix, words_per_unit } => {
                let range = number * words_per_unit..((number + 1) * words_per_unit).min(words.len());
                let words = range.filter_map(|index| words.word(index));
                test_words(shared, &mut searcher, words, [prefix, suffix], &mut report)
            }
        };
        searcher.flush(&shared.targets);
        report(&mut searcher, is_finished.then_some(unit));
    }
}

/// Number of names between two checks whether to stop, at most `names`.
pub(super) fn names_per_step(names: u64, iterations: u16) -> u64 {
    (STEP / (u64::from(iterations) + 1)).clamp(NAMES_MIN, names)
}

/// Tests a unit of a mask. Returns `false` if the search was stopped before its end.
fn test_mask(
    shared: &Shared<'_>,
    searcher: &mut Searcher,
    pattern: &Pattern,
    (first, size): (u64, u64),
    report: &mut impl FnMut(&mut Searcher, Option<u64>),
) -> bool {
    let end = (first + MASK_UNIT).min(size);
    let step = names_per_step(STEP, shared.search.params.iterations);
    let mut start = first;
    while start < end {
        if shared.stop.load(Relaxed) {
            return false;
        }
        let count = step.min(end - start);
        searcher.search(pattern, PatternRange { start, count }, &shared.targets);
        start += count;
        report(searcher, None);
    }
    true
}

/// Tests words with their affixes. Returns `false` if the search was stopped before its end.
fn test_words<'w>(
    shared: &Shared<'_>,
    searcher: &mut Searcher,
    words: impl Iterator<Item = &'w [u8]>,
    [prefix, suffix]: [&Mask; 2],
    report: &mut impl FnMut(&mut Searcher, Option<u64>),
) -> bool {
    let mut pattern = Pattern::default();
    let step = names_per_step(STEP, shared.search.params.iterations);
    let mut since_report = 0;
    for word in words {
        if !pattern.set_word(prefix, word, suffix) {
            continue;
        }
        let size = pattern.size();
        let mut start = 0;
        while start < size {
            if shared.stop.load(Relaxed) {
                return false;
            }
            let count = step.min(size - start);
            searcher.search(&pattern, PatternRange { start, count }, &shared.targets);
            start += count;
            since_report += count;
            if since_report >= step {
                report(searcher, None);
                since_report = 0;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests;
