//! The echo floor: what a query costs a server that does nothing but receive and send, beside what it costs ours.
//!
//! A server of datagrams pays for system calls, for the kernel's network and for copies, whatever it answers. A server
//! that sends back the head of each query, filled up to the size of an answer, by the same code (`recvmmsg`, `sendmmsg`),
//! pays for that alone. Both are loaded in turn by the same generator, so that what is left between them is the making of
//! answers.

mod parameters;
mod present;
mod rows;
mod runner;
mod server;
mod summary;

pub use parameters::{Kind, Octets, Parameters, Workers};
pub use server::{EchoError, EchoOptions, EchoServer};

pub(super) use present::report;
pub(super) use runner::run;

use serde::{Deserialize, Serialize};

/// What was measured with what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// Version of the server.
    pub version: String,
    /// Names of the zone.
    pub names: u64,
    /// The algorithm that it was signed with.
    pub algorithm: String,
    /// The CPU that servers of one worker were kept on; nothing where they were not.
    pub server_cpu: Option<u64>,
    /// The CPU that the load generator was kept on; nothing where it was not.
    pub load_cpu: Option<u64>,
}

#[cfg(test)]
mod tests;
