//! Why a scenario failed.

use crate::rpl::matching::Mismatch;
use crate::simulator::Fault;
use nonesuch_net::Transport;
use std::fmt;
use std::net::SocketAddr;

/// The failure of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The reason.
    pub failure: Failure,
    /// Queries for which the scenario defines no response. They may be the cause of the failure.
    pub undefined: Vec<UndefinedQuery>,
    /// Whether QNAME minimisation was on.
    pub minimises: bool,
    /// The trace of the simulator, one line for each event.
    pub trace: String,
}

/// The reason why a scenario failed. Lines are those of the scenario file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The reply is not the expected one.
    #[error("step {step} (line {line}): {mismatch}; the reply:\n    {reply}")]
    Mismatch {
        /// Number of the step.
        step: u32,
        /// Line of the step.
        line: u32,
        /// The first difference.
        mismatch: Box<Mismatch>,
        /// The reply as text.
        reply: String,
    },
    /// There is no reply.
    #[error("step {step} (line {line}): no reply")]
    NoReply {
        /// Number of the step.
        step: u32,
        /// Line of the step.
        line: u32,
    },
    /// The reply cannot be read.
    #[error("step {step} (line {line}): the reply is malformed: {reply}")]
    MalformedReply {
        /// Number of the step.
        step: u32,
        /// Line of the step.
        line: u32,
        /// The reply in hexadecimal digits.
        reply: String,
    },
    /// The reply does not have the octets of RAW.
    #[error("step {step} (line {line}): expected the octets {expected}, received {received}")]
    RawMismatch {
        /// Number of the step.
        step: u32,
        /// Line of the step.
        line: u32,
        /// The expected octets in hexadecimal digits.
        expected: String,
        /// The reply in hexadecimal digits.
        received: String,
    },
    /// The machine did not send the query of CHECK_OUT_QUERY, or has no query to which REPLY, TIMEOUT
    /// or ERROR applies.
    #[error("step {step} (line {line}): no such query was sent{pending}")]
    NoQuery {
        /// Number of the step.
        step: u32,
        /// Line of the step.
        line: u32,
        /// The queries without a response, each in a line.
        pending: String,
    },
    /// The machine sent queries for which the scenario defines no response.
    #[error("no response is defined for some queries")]
    UndefinedQueries,
    /// The machine sent a malformed query.
    #[error("malformed query to {server}: {message}")]
    MalformedQuery {
        /// The server.
        server: SocketAddr,
        /// The message in hexadecimal digits.
        message: String,
    },
    /// No query matched an entry with MANDATORY.
    #[error("no query matched the entry in line {0}, which is MANDATORY")]
    MandatoryEntry(u32),
    /// The scenario does not check a reply.
    #[error("{0} more replies than the scenario checks")]
    UncheckedReplies(usize),
    /// The machine violated its interface, or did not come to an end.
    #[error("{0}")]
    Fault(#[from] Fault),
    /// The steps do not come to an end.
    #[error("the scenario does not end after {0} rounds")]
    TooManyRounds(u32),
}

/// A query for which the scenario defines no response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedQuery {
    /// Number of the step.
    pub step: u32,
    /// The server.
    pub server: SocketAddr,
    /// The transport.
    pub transport: Transport,
    /// The question.
    pub question: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.minimises { "with" } else { "without" };
        write!(f, "{} ({mode} QNAME minimisation)", self.failure)?;
        for query in &self.undefined {
            write!(f, "\n  {query}")?;
        }
        Ok(())
    }
}

impl fmt::Display for UndefinedQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, server, transport, question } = self;
        write!(f, "step {step}: no response is defined for {question} to {server} over {transport}")
    }
}
