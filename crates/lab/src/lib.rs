//! The laboratory: load generation, zone generation, comparison, experiments and reports.
//!
//! A comparison signs and verifies zones in its own process and takes query names from these zones.
//! Therefore this crate depends on `nonesuch-zone` and `nonesuch-dnssec`. It does not depend on the
//! server crates: the measured server is a child process that receives DNS queries like any other
//! server. The caller passes the command that starts the server. The laboratory waits for an output
//! line that contains "ready" and then sends queries.
#![forbid(unsafe_code)]

pub mod capture;
pub mod check;
mod conditions;
pub mod cost_model;
mod data;
pub mod enumerate;
pub mod experiment;
mod files;
pub mod generate;
pub mod link;
pub mod load;
mod machine;
pub mod measure;
pub mod message_text;
pub mod peers;
mod presentation;
pub mod process;
pub mod proxy;
mod published;
mod query;
pub mod record;
pub mod report;
mod statistics;
mod testbed;
pub mod tree;
