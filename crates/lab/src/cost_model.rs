//! The resolver cost model of document 000: how many signatures a resolver verifies, as a function of
//! the queries that it sends.
//!
//! [`Recording`] has the counts of a resolver for each window of time.

mod recording;

pub use recording::{DomainCounts, Recording, VerificationSource, Window};
