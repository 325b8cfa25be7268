//! The resolver cost model of document 000: how many signatures a resolver verifies, as a function of
//! the queries that it sends.
//!
//! [`Recording`] has the counts of a resolver for each window of time. [`TrafficRecorder`] counts
//! them from messages of a capture or of dnstap, and [`VerificationTotals`] adds the verified
//! signatures that the counting library (`tools/count-verifications`) has counted.

mod record;
mod recording;

pub use record::{
    BoundedMap, CountedDomain, DomainCounter, Gap, GapReason, SpaceSaving, TimeSource, TotalsError,
    TrafficCounts, TrafficRecorder, VerificationTotals, Verified,
};
pub use recording::{
    DomainCounts, Recording, RecordingError, RecordingSetup, RecordingWriter, VerificationSource, Window,
    WindowFault,
};
