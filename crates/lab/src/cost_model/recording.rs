//! A recording: the work of one resolver in windows of time, and the domains that it queried.
//!
//! A recording is a directory. [`RecordingWriter`] writes it, and [`Recording::read`] reads it. The
//! tables are in Parquet files for other tools, and in CSV files with the same rows, which this
//! program reads: the reader of the Parquet library may panic on a damaged file.

mod columns;
mod error;
mod files;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use error::{RecordingError, WindowFault};
pub use write::{RecordingSetup, RecordingWriter};

use nonesuch_proto::Name;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The work of a resolver in one window of time. The symbols are those of document 000.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Start, in microseconds since 1970.
    pub start: u64,
    /// Length in microseconds.
    pub length: u64,
    /// Queries to authoritative servers, repeated ones and those over TCP included (Q).
    pub queries: u64,
    /// Those over TCP.
    pub tcp_queries: u64,
    /// Responses (R). A truncated response and the response over TCP after it are two.
    pub responses: u64,
    /// Truncated responses.
    pub truncated: u64,
    /// Responses with at least one RRSIG record (R_s).
    pub signed_responses: u64,
    /// RRSIG records in responses (S).
    pub signatures: u64,
    /// Verified signatures, failed ones included (S_v).
    pub verified: u64,
    /// Octets of the responses: DNS messages without headers of lower layers. `None` if the source does
    /// not have it.
    pub response_octets: Option<u64>,
}

impl Window {
    /// End, in microseconds since 1970.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// The queries for one domain: the closest enclosing zone that a server of the recording answered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainCounts {
    /// The apex of the zone.
    pub domain: Name,
    /// Queries to its servers.
    pub queries: u64,
    /// Whether a response of its servers had an RRSIG record of this signer.
    pub signed: bool,
}

/// What counted the verified signatures of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerificationSource {
    /// The counters of the resolver itself.
    Counters,
    /// A library, preloaded in the resolver's process, that counts calls of libcrypto.
    Library,
    /// Our own cache and validator, applied to the recorded responses: an estimate.
    Estimated,
}

impl fmt::Display for VerificationSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Counters => "counters of the resolver",
            Self::Library => "counting library",
            Self::Estimated => "estimated",
        })
    }
}

/// A recording of one resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Name for reports: the resolver, the traffic, the time.
    pub name: String,
    /// What counted the verified signatures.
    pub verified_by: VerificationSource,
    /// Windows without gaps, in the order of time. Times between windows are times without a
    /// complete recording.
    pub windows: Vec<Window>,
    /// Domains, that with most queries first. The number is bounded; rare domains may be missing.
    pub domains: Vec<DomainCounts>,
}
