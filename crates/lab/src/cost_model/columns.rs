//! The counts of a recording as rates: a column for each symbol of the model, in events per second,
//! with one number for each window.

use super::{Recording, Window};
use serde::Serialize;
use std::fmt;
use std::ops::Range;

/// Minimum number of windows of a fit.
pub const MIN_WINDOWS: usize = 30;
/// Maximum difference of the length of a window from the median, as a share of it.
const MAX_LENGTH_DIFFERENCE: f64 = 0.01;

/// A column of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // the names are those of the fields of `Window`
pub enum Symbol {
    Queries,
    Responses,
    SignedResponses,
    Signatures,
    Verified,
}

impl Symbol {
    /// All symbols, in the order of the chain of the model.
    pub const ALL: [Self; 5] =
        [Self::Queries, Self::Responses, Self::SignedResponses, Self::Signatures, Self::Verified];

    /// Returns the symbol of document 000.
    #[must_use]
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Queries => "Q",
            Self::Responses => "R",
            Self::SignedResponses => "R_s",
            Self::Signatures => "S",
            Self::Verified => "S_v",
        }
    }

    /// Returns what the symbol counts.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Queries => "queries to authoritative servers",
            Self::Responses => "responses",
            Self::SignedResponses => "responses with signatures",
            Self::Signatures => "signatures in responses",
            Self::Verified => "verified signatures",
        }
    }

    const fn count(self, window: &Window) -> u64 {
        match self {
            Self::Queries => window.queries,
            Self::Responses => window.responses,
            Self::SignedResponses => window.signed_responses,
            Self::Signatures => window.signatures,
            Self::Verified => window.verified,
        }
    }

    /// What to do if the symbol is 0 in all windows.
    const fn remedy(self) -> &'static str {
        match self {
            Self::Queries | Self::Responses => "record a resolver that gets queries",
            Self::SignedResponses | Self::Signatures => {
                "check that the resolver sets the DO bit, and that the recording has its queries and \
                 not those of its clients"
            }
            Self::Verified => "check that the resolver validates, and that its verifications are counted",
        }
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.letter(), self.meaning())
    }
}

/// Why the windows of a recording cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum FitError {
    #[error(
        "{recording}: {found} windows of equal length; a fit needs at least {MIN_WINDOWS}: record for a \
         longer time, or with shorter windows"
    )]
    TooFewWindows { recording: String, found: usize },
    #[error("{recording}: {symbol} is 0 in all windows: {}", symbol.remedy())]
    AllZero { recording: String, symbol: Symbol },
    #[error(
        "{recording}: {symbol} is the same in all windows, so no line can be fitted: record traffic with a \
         rate that varies"
    )]
    Constant { recording: String, symbol: Symbol },
    #[error(
        "{recording}: window {number}, start {start} µs: {large} is {more}, but {small} is {less}: the columns are \
         swapped or damaged; record again"
    )]
    Contradiction {
        recording: String,
        /// Number of the window, from 1.
        number: usize,
        start: u64,
        large: Symbol,
        more: u64,
        small: Symbol,
        less: u64,
    },
    #[error("{recording}: window {number}, start {start} µs: its length is 0: record again")]
    NoLength { recording: String, number: usize, start: u64 },
    #[error("nothing to fit: name at least one recording")]
    NoRecordings,
}

/// The windows of a recording as rates.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    /// Events per second, in the order of [`Symbol::ALL`].
    rates: [Vec<f64>; 5],
    /// Start of each window, in microseconds since 1970.
    pub(crate) starts: Vec<u64>,
    /// Median length of the windows, in seconds.
    pub(crate) window_seconds: f64,
    /// Number of windows that are not used, because their length differs from the median by more than
    /// 1 %.
    pub(crate) omitted: usize,
}

impl Columns {
    /// Checks the windows and returns their rates.
    pub(crate) fn of(recording: &Recording) -> Result<Self, FitError> {
        let name = || recording.name.clone();
        for (index, window) in recording.windows.iter().enumerate() {
            check(window, index + 1, &recording.name)?;
        }
        let mut lengths: Vec<u64> = recording.windows.iter().map(|window| window.length).collect();
        lengths.sort_unstable();
        let median = lengths.get(lengths.len() / 2).copied().unwrap_or_default() as f64;
        let is_alike =
            |window: &&Window| (window.length as f64 - median).abs() <= MAX_LENGTH_DIFFERENCE * median;
        let windows: Vec<&Window> = recording.windows.iter().filter(is_alike).collect();
        if windows.len() < MIN_WINDOWS {
            return Err(FitError::TooFewWindows { recording: name(), found: windows.len() });
        }
        let rates = Symbol::ALL.map(|symbol| {
            let rate = |window: &&Window| symbol.count(window) as f64 * 1e6 / window.length as f64;
            windows.iter().map(rate).collect::<Vec<f64>>()
        });
        for (symbol, column) in Symbol::ALL.into_iter().zip(&rates) {
            if column.iter().all(|rate| *rate == 0.0) {
                return Err(FitError::AllZero { recording: name(), symbol });
            }
            let first = column[0];
            if column.iter().all(|rate| (rate - first).abs() <= 1e-9 * first) {
                return Err(FitError::Constant { recording: name(), symbol });
            }
        }
        Ok(Self {
            rates,
            starts: windows.iter().map(|window| window.start).collect(),
            window_seconds: median / 1e6,
            omitted: recording.windows.len() - windows.len(),
        })
    }

    /// Number of times between windows that have no window. Lags count windows, so autocorrelation
    /// across these times is taken for that of adjacent windows.
    pub(crate) fn gaps(&self) -> usize {
        let longest = (self.window_seconds * 1.5e6) as u64;
        self.starts.windows(2).filter(|pair| pair[1].saturating_sub(pair[0]) > longest).count()
    }

    /// Number of windows.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the rates of a symbol, in events per second.
    pub(crate) fn rates(&self, symbol: Symbol) -> &[f64] {
        &self.rates[symbol as usize]
    }

    /// Returns the windows in a range.
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        Self {
            rates: Symbol::ALL.map(|symbol| self.rates(symbol)[range.clone()].to_vec()),
            starts: self.starts[range].to_vec(),
            window_seconds: self.window_seconds,
            omitted: 0,
        }
    }
}

/// Checks that the counts of a window do not contradict each other. S_v can be greater than S, because
/// a validator tries several keys with the same tag.
fn check(window: &Window, number: usize, recording: &str) -> Result<(), FitError> {
    let start = window.start;
    if window.length == 0 {
        return Err(FitError::NoLength { recording: recording.to_owned(), number, start });
    }
    let pairs = [(Symbol::Responses, Symbol::SignedResponses), (Symbol::Signatures, Symbol::SignedResponses)];
    for (large, small) in pairs {
        let (less, more) = (small.count(window), large.count(window));
        if more < less {
            let recording = recording.to_owned();
            return Err(FitError::Contradiction { recording, number, start, large, more, small, less });
        }
    }
    Ok(())
}
