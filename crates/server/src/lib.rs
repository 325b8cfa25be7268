//! What every DNS server needs, whatever it answers from: reading queries, ending responses, access control, limits, cookies,
//! TSIG, dnstap and statistics.
//!
//! Nothing here knows a zone. An authoritative server and a resolver both use this crate, and neither of them the other.
#![forbid(unsafe_code)]

pub mod acl;
pub mod clock;
pub mod cookies;
pub mod dnstap;
pub mod extended_errors;
pub mod limits;
pub mod query;
pub mod reply_options;
pub mod statistics;
pub mod trailer;
pub mod tsig;
