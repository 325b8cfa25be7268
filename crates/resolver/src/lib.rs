//! The recursive resolver (RFC 1034 §5.3.3): a state machine without I/O, as quinn-proto is.
//!
//! [`Resolver`] is a [`Machine`](nonesuch_net::machine::Machine): it takes events and the time, and
//! returns outputs. It has no socket, no clock and no source of entropy: a driver owns them, passes
//! the time, and passes a seed at the start. A server has one `Resolver` for each worker thread; all
//! of them share one [`Cache`] and one [`ServerTable`].
//!
//! - `task` resolves one question: it finds the closest delegation, selects a server, sends a
//!   query, and continues with the response until it has an answer. Equal questions share a task.
//! - `exchange` is one query to one server: identifiers, EDNS, cookies, timeouts, truncation.
//! - `response` decides what a response of a server means, and which of its records are used.
//! - `cache` has RRsets, negative answers and failures, in memory of a fixed size.
//! - `denials` has validated denial records, which deny further names (RFC 8198).
//! - `servers` has what is known of each server address: round-trip time, EDNS support, cookies.
//! - `budget` bounds the work for one client query.
//! - `trace` records how answers are validated, if a program asks for it.
//! - `recorded` validates recorded responses without queries.
//! - `local_names` answers names that are not looked up; `hints` has the root servers.
#![forbid(unsafe_code)]

mod addresses;
mod budget;
pub mod cache;
mod client;
mod delegation;
pub mod denials;
mod exchange;
mod hasher;
pub mod hints;
pub mod local_names;
mod lookup;
mod managed_anchors;
mod model;
mod name_map;
mod negative_anchors;
pub mod options;
mod record;
pub mod recorded;
mod reply;
mod resolver;
mod response;
mod servers;
mod shared;
mod task;
#[cfg(test)]
mod testing;
mod trace;
mod trust;
pub mod trust_anchors;
mod validation;
pub mod zones;

pub use addresses::is_unusable_address;
pub use budget::{Budget, DelegationFetches, LimitReached, UpstreamLimits};
pub use cache::{Cache, CacheOptions};
pub use denials::{DenialCache, DenialCacheOptions, DenialStatistics};
pub use managed_anchors::{AnchorEvent, ReplaceError};
pub use model::{Model, ModelTotals};
pub use negative_anchors::{
    ActiveNegativeAnchor, MAX_ADDED_NEGATIVE_ANCHORS, MAX_NEGATIVE_ANCHOR_LIFETIME, NegativeAnchorEnd,
    TooManyNegativeAnchors,
};
pub use record::{RecordData, Rrset, Security};
pub use resolver::Resolver;
pub use servers::{
    Attempt, Cookie, Next, NoServer, Purpose, QueryKind, Repeat, ResponseFacts, ServerTable,
    ServerTableOptions, ServerTableStatistics, ZoneKey,
};
pub use shared::Shared;
pub use trace::{Decision, TraceStep};
pub use trust::TrustTable;
