//! The laboratory: load generation, zone generation, comparison, experiments and reports.
//!
//! A comparison signs and verifies contents in its own process, and takes the names for its queries from them; so this crate
//! uses the types of `nonesuch-zone` and `nonesuch-dnssec`. It does not use those of the server: the server that it measures
//! is a child process, met over the wire as any other. How a server is started is data that the caller passes; the laboratory
//! reads a line with "ready" and then speaks DNS.
#![forbid(unsafe_code)]

mod data;
pub mod experiment;
pub mod generate;
pub mod load;
mod machine;
pub mod measure;
mod presentation;
pub mod process;
mod published;
pub mod report;
mod statistics;
