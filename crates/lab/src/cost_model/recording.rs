//! A recording: the work of one resolver in windows of time, and the domains that it queried.

use nonesuch_proto::Name;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VerificationSource {
    /// The counters of the resolver itself.
    Counters,
    /// A library, preloaded in the resolver's process, that counts calls of libcrypto.
    Library,
    /// Our own cache and validator, applied to the recorded responses: an estimate.
    Estimated,
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
