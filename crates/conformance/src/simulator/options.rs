//! Options of the simulator: seed, limits and properties of paths.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Options of a simulation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of all random numbers of the simulator.
    pub seed: u64,
    /// The instant of the time zero. The default is now; a machine only compares instants, so the
    /// instant does not influence its behaviour.
    pub start: Instant,
    /// UNIX time at the start, in seconds.
    pub unix: u64,
    /// The path to servers that are not in `paths`.
    pub default_path: Path,
    /// The paths to single servers.
    pub paths: BTreeMap<IpAddr, Path>,
    /// Maximum time from a client query to its reply.
    pub patience: Duration,
    /// Maximum number of open exchanges of a worker. Further exchanges fail with
    /// [`SendFailure::Local`](nonesuch_net::machine::SendFailure::Local).
    pub exchange_limit: usize,
    /// Maximum number of turns of all workers.
    pub turn_limit: u64,
    /// Maximum number of outputs of a worker in one turn.
    pub output_limit: usize,
    /// Maximum number of entries of the trace. The oldest entries are removed first.
    pub trace_limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            start: Instant::now(),
            unix: 1_700_000_000,
            default_path: Path::default(),
            paths: BTreeMap::new(),
            patience: Duration::from_secs(30),
            exchange_limit: 4096,
            turn_limit: 1_000_000,
            output_limit: 100_000,
            trace_limit: 100_000,
        }
    }
}

impl Options {
    /// Returns the path to a server.
    #[must_use]
    pub fn path(&self, server: IpAddr) -> Path {
        self.paths.get(&server).copied().unwrap_or(self.default_path)
    }
}

/// Properties of the path between the machines and a server. Each property applies to both
/// directions, except `truncation`. TCP has only the delay and the jitter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Time of a message in one direction.
    pub delay: Duration,
    /// Maximum additional time of a message. It is different for each message, so messages overtake
    /// each other.
    pub jitter: Duration,
    /// Probability that a message is lost, 0 to 1.
    pub loss: f64,
    /// Probability that a message arrives twice, 0 to 1.
    pub duplication: f64,
    /// Probability that one octet of a message is changed, 0 to 1.
    pub corruption: f64,
    /// Probability that a response arrives truncated: with the TC flag and without records, 0 to 1.
    pub truncation: f64,
    /// Maximum number of octets of a message; larger messages are lost, as fragments are.
    pub datagram_limit: usize,
}

impl Default for Path {
    /// Returns a path without faults, with a delay of 10 ms.
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(10),
            jitter: Duration::ZERO,
            loss: 0.0,
            duplication: 0.0,
            corruption: 0.0,
            truncation: 0.0,
            datagram_limit: 65_535,
        }
    }
}
