//! DNS names, types, records and messages: wire form, presentation form, canonical form and
//! canonical order.
//!
//! This crate does no I/O, does not read the clock and does not handle keys. Reading, writing,
//! checking and canonicalising RDATA all follow one table of record types, [`rdata::TYPES`].
#![forbid(unsafe_code)]

pub mod bitmap;
pub mod dnstap;
pub mod edns;
mod escape;
pub mod message;
mod name;
mod predecessor;
pub mod rdata;
mod rtype;
pub mod serial;
pub mod text;
pub mod timestamp;

pub use name::{
    Labels, MAX_LABEL, MAX_NAME, Name, NameError, NameRef, WildcardBuffer,
    push_from_text as push_name_from_text,
};
pub use rtype::{Class, Rtype, ZoneText};
