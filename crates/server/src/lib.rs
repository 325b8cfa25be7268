//! Parts that every DNS server needs: reading queries, ending responses, access control, limits,
//! cookies, TSIG, dnstap and statistics.
//!
//! This crate does not depend on zone data. Both an authoritative server and a resolver can use it.
#![forbid(unsafe_code)]

pub mod acl;
pub mod chaos;
pub mod clock;
pub mod compress;
pub mod cookies;
pub mod dnstap;
pub mod extended_errors;
pub mod limits;
pub mod listen;
pub mod query;
pub mod reply_options;
pub mod statistics;
pub mod trailer;
pub mod tsig;
