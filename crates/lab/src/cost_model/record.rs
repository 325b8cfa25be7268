//! Counts the work of a resolver from messages between it and servers.

mod bounded_map;
mod domains;
mod gap;
mod space_saving;
mod totals;
mod traffic;
mod windows;

pub use bounded_map::BoundedMap;
pub use domains::DomainCounter;
pub use gap::{Gap, GapReason};
pub use space_saving::{CountedDomain, SpaceSaving};
pub use totals::{TotalsError, VerificationTotals, Verified};
pub use traffic::{TrafficCounts, TrafficRecorder};
pub use windows::TimeSource;
