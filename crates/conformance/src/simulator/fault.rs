//! Faults of a machine that the simulator detects.

use nonesuch_net::machine::{ClientToken, ExchangeId};
use std::time::Duration;

/// A fault of a machine. The trace of the simulator shows the events that led to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Clients have no reply, and nothing is left to do, or their patience has ended.
    #[error("{} client queries have no reply after {at:?}: {unanswered:?}", .unanswered.len())]
    Hang {
        /// The queries.
        unanswered: Vec<ClientToken>,
        /// Time since the start of the simulation.
        at: Duration,
    },
    /// The number of turns has reached [`Options::turn_limit`](super::Options::turn_limit).
    #[error("{turns} turns until {at:?}, and there is more to do")]
    TooManyTurns {
        /// Number of turns.
        turns: u64,
        /// Time since the start of the simulation.
        at: Duration,
    },
    /// A machine returned more outputs in one turn than
    /// [`Options::output_limit`](super::Options::output_limit).
    #[error("worker {worker} does not stop returning outputs at {at:?}")]
    TooManyOutputs {
        /// Number of the worker.
        worker: usize,
        /// Time since the start of the simulation.
        at: Duration,
    },
    /// A machine used the identifier of an exchange twice.
    #[error("worker {worker} used {exchange:?} twice")]
    ExchangeReused {
        /// Number of the worker.
        worker: usize,
        /// The identifier.
        exchange: ExchangeId,
    },
    /// A machine closed an exchange that it had not opened.
    #[error("worker {worker} closed {exchange:?}, which it had not opened")]
    UnknownExchange {
        /// Number of the worker.
        worker: usize,
        /// The identifier.
        exchange: ExchangeId,
    },
    /// A machine answered a query that it did not have, or answered a query twice.
    #[error("worker {worker} answered {token:?}, which it does not have or has answered before")]
    UnknownToken {
        /// Number of the worker.
        worker: usize,
        /// The token of the reply.
        token: ClientToken,
    },
    /// A machine woke a worker that does not exist.
    #[error("worker {worker} woke worker {woken}, which does not exist")]
    UnknownWorker {
        /// Number of the worker.
        worker: usize,
        /// Number of the worker that does not exist.
        woken: usize,
    },
}
