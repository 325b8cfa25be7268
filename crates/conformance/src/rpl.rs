//! Scenarios in the format `.rpl`: scripted servers, queries of a client, and the expected replies.
//!
//! Two programs use the format, each with its own dialect ([`Dialect`]): Deckard of CZ.NIC
//! (`doc/scenario_guide.rst` and `pydnstest/`) and Unbound's `testbound` (`testcode/replay.h`,
//! `testcode/testpkts.h`). One reader reads both. [`matching`] and [`respond`] follow the rules of the
//! dialect.

mod config;
mod deckard_config;
mod entry;
mod error;
mod lines;
pub mod matching;
mod record;
pub mod respond;
mod scenario;
mod settings;
mod step;
#[cfg(test)]
mod tests;
mod unbound_config;

pub use entry::{Adjust, Entry, MatchRule};
pub use error::{RplError, RplFault};
pub use scenario::{Range, Scenario};
pub use settings::{OtherOption, ScenarioSettings, TrustAnchor, ZoneServers};
pub use step::{Action, Step};

/// The program that a scenario was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Deckard. The configuration is a list of options.
    Deckard,
    /// Unbound. The configuration is a file in the format of `unbound.conf`.
    Unbound,
}
