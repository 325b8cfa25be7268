//! Cells that count sizes and times, and what they say when they are read.

use std::array;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Adds to a counter that one thread writes: no locked instruction is needed.
#[inline]
pub(super) fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Counters at zero.
pub(super) fn zeros<const N: usize>() -> [AtomicU64; N] {
    array::from_fn(|_| AtomicU64::new(0))
}

/// Cells of sizes above 4096 octets: up to 8192, 16384, 32768 and 65536.
const LARGE: usize = 4;
/// The largest size that is told from others close to it.
const FINE: usize = 4096;

/// Counts messages by size: in cells of `STEP` octets, `CELLS` of them and one for 0; then in the cells of [`LARGE`].
#[derive(Debug)]
pub(super) struct SizeCells<const STEP: usize, const CELLS: usize> {
    cells: [AtomicU64; CELLS],
    large: [AtomicU64; LARGE],
    octets: AtomicU64,
}

/// Queries: nearly all have less than 512 octets; one cell for each size needs no arithmetic, and few of them are used.
pub(super) type QuerySizes = SizeCells<1, { FINE + 1 }>;
/// Responses: of many sizes. 1232, 512 and 4096 are upper ends of cells.
pub(super) type ResponseSizes = SizeCells<16, { FINE / 16 + 1 }>;

impl<const STEP: usize, const CELLS: usize> SizeCells<STEP, CELLS> {
    pub(super) fn new() -> Self {
        Self { cells: zeros(), large: zeros(), octets: AtomicU64::new(0) }
    }

    #[inline]
    pub(super) fn count(&self, octets: usize) {
        // No message has as many octets that this overflows; if one had, it would be among the large ones all the same.
        match self.cells.get(octets.saturating_add(STEP - 1) / STEP) {
            Some(cell) => add(cell, 1),
            None => self.count_large(octets),
        }
        add(&self.octets, octets as u64);
    }

    #[cold]
    fn count_large(&self, octets: usize) {
        add(&self.large[large_cell(octets)], 1);
    }
}

/// The cell of a size above 4096.
fn large_cell(octets: usize) -> usize {
    let upper_ends = [2 * FINE, 4 * FINE, 8 * FINE];
    upper_ends.iter().position(|most| octets <= *most).unwrap_or(LARGE - 1)
}

/// Messages by size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// By the largest size of each cell that is not empty; all above 32768 are counted under 65536.
    cells: BTreeMap<usize, u64>,
    /// Octets of all messages together.
    pub octets: u64,
}

impl Sizes {
    pub(super) fn add<const STEP: usize, const CELLS: usize>(&mut self, sizes: &SizeCells<STEP, CELLS>) {
        let fine = sizes.cells.iter().enumerate().map(|(index, cell)| (index * STEP, cell));
        let large = sizes.large.iter().enumerate().map(|(index, cell)| ((2 * FINE) << index, cell));
        for (most, cell) in fine.chain(large) {
            let times = cell.load(Relaxed);
            if times > 0 {
                *self.cells.entry(most).or_default() += times;
            }
        }
        self.octets += sizes.octets.load(Relaxed);
    }

    /// Messages of at most `octets`: a multiple of 16 up to 4096, or 8192, 16384, 32768 or 65536.
    #[must_use]
    pub fn up_to(&self, octets: usize) -> u64 {
        self.cells.range(..=octets).map(|(_, times)| times).sum()
    }

    /// All messages.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.cells.values().sum()
    }
}

/// Upper ends of the cells of latencies, in nanoseconds: 1, 2 and 5 of each decade from a microsecond to 10 s. One more
/// cell has what took longer.
pub const LATENCY_BOUNDS: [u64; 22] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
    200_000_000,
    500_000_000,
    1_000_000_000,
    2_000_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// Counts messages by latency.
#[derive(Debug)]
pub(super) struct LatencyCells {
    cells: [AtomicU64; LATENCY_BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

impl LatencyCells {
    pub(super) fn new() -> Self {
        Self { cells: zeros(), nanoseconds: AtomicU64::new(0) }
    }

    /// Counts `messages` that took `nanoseconds` each.
    pub(super) fn count(&self, nanoseconds: u64, messages: u64) {
        let cell = LATENCY_BOUNDS.partition_point(|bound| *bound < nanoseconds);
        add(&self.cells[cell], messages);
        add(&self.nanoseconds, nanoseconds.saturating_mul(messages));
    }
}

/// Messages by latency.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Messages in each cell: up to each of [`LATENCY_BOUNDS`] and above the one before, and longer than the last.
    pub cells: [u64; LATENCY_BOUNDS.len() + 1],
    /// Nanoseconds of all messages together.
    pub nanoseconds: u64,
}

impl Latencies {
    pub(super) fn add(&mut self, cells: &LatencyCells) {
        for (sum, cell) in self.cells.iter_mut().zip(&cells.cells) {
            *sum += cell.load(Relaxed);
        }
        self.nanoseconds += cells.nanoseconds.load(Relaxed);
    }
}
