//! Other DNS servers: starts, configures and stops them, each on a loopback address with a free
//! port and a directory of its own.
//!
//! [`Peer::info`] states for each program what it can do. [`PeerServer::start`] writes the
//! configuration that a [`Setup`] describes, starts the program, and waits until it answers. A
//! program that is not installed is an error with its package ([`PeerError::Missing`]), so that a
//! caller can leave it out by name.
//!
//! No configuration sends traffic outside 127.0.0.0/8: zones are only sent to given addresses,
//! resolvers use a source address of the loopback interface, and requests that some programs make
//! on their own (priming with the public root servers, security polling, trust anchor telemetry)
//! are off. docs/peers.md describes the configurations.

mod check;
mod config;
mod dnstap;
mod error;
mod flush;
mod info;
mod server;
mod setup;
#[cfg(test)]
mod tests;

pub(crate) use config::run_to_end;
pub use error::PeerError;
pub(crate) use info::version_of;
pub use info::{OnlineDenial, Peer, PeerInfo, PeerRole, find_program};
pub use server::PeerServer;
pub use setup::{
    PeerZone, PrimaryTls, ResolverSetup, RootServer, Serving, Setup, StubZone, TlsIdentity, TransferKey,
    TrustAnchor, Upstream, free_address,
};
