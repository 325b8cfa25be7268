//! The queries of a capture, in memory.

use crate::capture::{CaptureError, CaptureReader, SkipCounts, SkipReason};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Maximum octets of all queries together.
const TOTAL_OCTETS_MAX: usize = 1 << 30;
/// Maximum octets of a query in a UDP datagram over IPv4. Longer queries are skipped.
const QUERY_OCTETS_MAX: usize = 65_507;

/// Why a capture cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum ReplayError {
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error("{}: contains no query: name a capture with queries to port 53{}", path.display(), skipped_text(skipped))]
    Empty { path: PathBuf, skipped: Box<SkipCounts> },
    #[error(
        "{}: the queries have more than {limit} octets: divide the capture into parts, for example with editcap",
        path.display()
    )]
    TooLong { path: PathBuf, limit: usize },
}

/// Names what was skipped, for the error of an empty capture.
fn skipped_text(skipped: &SkipCounts) -> String {
    let skipped: Vec<String> =
        skipped.iter().map(|(reason, count)| format!("{} {count}", reason.name())).collect();
    if skipped.is_empty() { String::new() } else { format!("; skipped: {}", skipped.join(", ")) }
}

/// A captured query.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Time in ns since 1970.
    time_ns: u64,
    /// Index of the client in [`ReplayQueries::clients`].
    client: u32,
    /// Range of the query in the octets of all queries.
    start: usize,
    end: usize,
}

/// A query to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReplayQuery<'a> {
    /// Time after the first query, in ns.
    pub(super) after_ns: u64,
    /// Index of the client in [`ReplayQueries::clients`].
    pub(super) client: usize,
    pub(super) octets: &'a [u8],
}

/// The queries of a capture in the order of their times.
#[derive(Clone, Debug, Default)]
pub struct ReplayQueries {
    /// The octets of all queries.
    octets: Vec<u8>,
    entries: Vec<Entry>,
    /// The clients in the order of their first queries in the file.
    clients: Vec<IpAddr>,
    skipped: SkipCounts,
}

impl ReplayQueries {
    /// Reads the queries of a capture. Errors name `path`.
    ///
    /// # Errors
    /// [`ReplayError::Capture`] if the capture cannot be read or is damaged, [`ReplayError::Empty`]
    /// if it has no query, [`ReplayError::TooLong`] if its queries have more than 1 GiB.
    pub fn read(path: &Path, mut reader: CaptureReader) -> Result<Self, ReplayError> {
        let mut queries = Self::default();
        let mut known: HashMap<IpAddr, u32> = HashMap::new();
        for message in reader.by_ref() {
            let message = message?;
            if message.is_response {
                continue;
            }
            if message.octets.len() > QUERY_OCTETS_MAX {
                queries.skipped.count(SkipReason::Unwritable);
                continue;
            }
            let start = queries.octets.len();
            if start + message.octets.len() > TOTAL_OCTETS_MAX {
                return Err(ReplayError::TooLong { path: path.to_path_buf(), limit: TOTAL_OCTETS_MAX });
            }
            queries.octets.extend_from_slice(&message.octets);
            let address = message.client.ip();
            // The number of clients is less than the number of octets, so that it fits 32 bits.
            let client = *known.entry(address).or_insert(queries.clients.len() as u32);
            if client as usize == queries.clients.len() {
                queries.clients.push(address);
            }
            let (time_ns, end) = (message.time_ns, queries.octets.len());
            queries.entries.push(Entry { time_ns, client, start, end });
        }
        reader.skipped().iter().for_each(|(reason, number)| queries.skipped.add(reason, number));
        if queries.entries.is_empty() {
            return Err(ReplayError::Empty { path: path.to_path_buf(), skipped: Box::new(queries.skipped) });
        }
        // Stable: queries with one time keep their order in the file.
        queries.entries.sort_by_key(|entry| entry.time_ns);
        Ok(queries)
    }

    /// Number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no queries. Reading a capture without queries fails.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The addresses of the clients.
    #[must_use]
    pub fn clients(&self) -> &[IpAddr] {
        &self.clients
    }

    /// The number of skipped packets, frames and messages of the capture, by reason.
    #[must_use]
    pub const fn skipped(&self) -> &SkipCounts {
        &self.skipped
    }

    /// Length of the longest query in octets.
    pub(super) fn longest_query(&self) -> usize {
        self.entries.iter().map(|entry| entry.end - entry.start).max().unwrap_or(0)
    }

    /// Returns query `index`, or `None` after the last one.
    pub(super) fn query(&self, index: usize) -> Option<ReplayQuery<'_>> {
        let (first, entry) = (self.entries.first()?, self.entries.get(index)?);
        Some(ReplayQuery {
            after_ns: entry.time_ns - first.time_ns,
            client: entry.client as usize,
            octets: self.octets.get(entry.start..entry.end)?,
        })
    }
}
