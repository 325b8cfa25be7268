//! Why an enumeration does not start, or ends before it is complete.

use crate::query::QueryFault;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, Rtype};
use std::net::SocketAddr;
use std::time::Duration;

/// Why an enumeration does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnumerateError {
    /// The server does not answer the first queries.
    #[error("{0}")]
    Unreachable(StopReason),
    /// The server does not serve the zone.
    #[error(
        "{server}: not authoritative for {zone} (response {rcode}, without its SOA record): name a server of \
            the zone, and the apex of the zone"
    )]
    NotServed {
        /// The server.
        server: SocketAddr,
        /// The zone.
        zone: Name,
        /// The response code to the query for the SOA record.
        rcode: Rcode,
    },
    /// The name of the zone leaves no room for a label.
    #[error("{0}: too long for names below it")]
    ZoneTooLong(Name),
    /// A state is of another zone.
    #[error("the state is of the zone {found}, not of {zone}: name another state file")]
    OtherZone {
        /// The zone of the enumeration.
        zone: Name,
        /// The zone of the state.
        found: Name,
    },
    /// There is neither a server nor a state with hashes.
    #[error("nothing to do offline: the state has no hashes; give a server, for example @127.0.0.1:5300")]
    NothingOffline,
}

/// Why an enumeration ends before it is complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StopReason {
    /// The maximum number of queries is sent.
    #[error("the limit of {0} queries is reached: continue with --state, or raise --max-queries")]
    Queries(u64),
    /// The time is over.
    #[error("the time limit of {} s is reached: continue with --state, or raise --time-limit", .0.as_secs_f64())]
    Time(Duration),
    /// The server did not answer a query.
    #[error("{server}: {name} {rtype}: {fault} (attempts: {attempts})")]
    NoResponse {
        /// The server.
        server: SocketAddr,
        /// The name of the query.
        name: Name,
        /// The type of the query.
        rtype: Rtype,
        /// Number of attempts.
        attempts: u32,
        /// The fault of the last attempt.
        fault: QueryFault,
    },
    /// The server answers with an error.
    #[error("{name} {rtype}: the server answers {rcode}")]
    Rcode {
        /// The name of the query.
        name: Name,
        /// The type of the query.
        rtype: Rtype,
        /// The response code.
        rcode: Rcode,
    },
    /// A chain of NSEC records is interrupted.
    #[error("no response has the NSEC record of {0}: the chain is interrupted")]
    NoRecord(Name),
    /// The next name of an NSEC record does not follow its owner.
    #[error(
        "the NSEC record of {owner} names {next}, which neither follows it nor is the apex: the chain loops"
    )]
    Backwards {
        /// The owner of the record.
        owner: Name,
        /// The next name.
        next: Name,
    },
    /// The server denies a name without a record that covers it.
    #[error("{0}: the server denies the name without a record that covers it")]
    NotCovered(Name),
    /// The salt or the iterations of the zone changed.
    #[error(
        "the server changed the salt or the iterations of its NSEC3 records: start again without --state"
    )]
    ParametersChanged,
    /// No candidate falls into the gaps that remain.
    #[error("{hashes} hashes found no name in the gaps of the chain, which are {share:.2e} of all hashes")]
    GapsTooSmall {
        /// Number of hashes computed.
        hashes: u64,
        /// The share of the gaps of all hashes.
        share: f64,
    },
    /// A wildcard answers every name.
    #[error("a wildcard answers for names that do not exist: online guesses cannot be distinguished")]
    Wildcard,
}
