//! Messages that were sent and received.

use std::net::SocketAddr;
use std::time::Duration;

/// Maximum number of exchanges of an item that its evidence has. Further ones are counted.
const EXCHANGES_MAX: usize = 200;

/// How a message was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// One datagram.
    Udp,
    /// A TCP connection.
    Tcp,
}

impl Transport {
    /// "UDP" or "TCP".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
        }
    }
}

/// A query and what answered it.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Who sent the query: "check", or the subject of the check if the tree of the check received it.
    pub sender: &'static str,
    /// The server.
    pub server: SocketAddr,
    /// The transport.
    pub transport: Transport,
    /// The query.
    pub query: Vec<u8>,
    /// The response, or the fault because of which it is missing.
    pub reply: Result<Vec<u8>, String>,
    /// Time from the query to the response or to the fault.
    pub elapsed: Duration,
}

/// All exchanges of an item.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The exchanges, in the order of their start.
    pub exchanges: Vec<Exchange>,
    /// Number of further exchanges.
    pub omitted: usize,
    /// Observations that are no exchange, for example a counter or the output of a program.
    pub notes: Vec<String>,
}

impl Evidence {
    /// Adds an exchange.
    pub fn push(&mut self, exchange: Exchange) {
        if self.exchanges.len() < EXCHANGES_MAX {
            self.exchanges.push(exchange);
        } else {
            self.omitted += 1;
        }
    }
}
