//! Judges of the resolver. All of them drive a [`Machine`](nonesuch_net::machine::Machine) without
//! sockets and without a clock.
//!
//! - [`simulator`] is the driver of one or several machines in virtual time, on a virtual network
//!   with delay, loss, duplication and reordering. The same seed gives the same trace.
//! - [`rpl`] reads scenarios in the format of Deckard and of Unbound's `testbound`.
//! - [`runner`] runs a scenario in the simulator and judges the replies.
//! - [`simulation`] runs random trees with faulty and hostile servers, and judges the resolver. Its
//!   [`FaultyTree`](simulation::FaultyTree) is a fixed tree with many kinds of faults.
//!   [`simulation::signed`] judges validation with trees of signed zones.
//! - [`sockets`] serves a simulated network on sockets, to compare resolvers.
//!
//! The program `conformance` runs directories of scenarios.
#![forbid(unsafe_code)]

pub mod describe;
#[cfg(test)]
mod forwarder;
pub mod resolver;
pub mod rpl;
pub mod runner;
pub mod simulation;
pub mod simulator;
pub mod sockets;
