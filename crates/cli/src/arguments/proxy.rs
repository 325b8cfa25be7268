//! Arguments of `proxy`.

use super::values::{ArgumentError, parse_seconds, parse_socket_address};
use clap::Args;
use nonesuch_lab::proxy::{FAULTS, Fault};
use std::net::SocketAddr;

#[derive(Debug, Args)]
pub(crate) struct ProxyArguments {
    /// Forward the queries to this server.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_socket_address, required_unless_present = "list_faults")]
    pub(crate) upstream: Option<SocketAddr>,
    /// Listen on this address and port; port 0 selects a free port.
    ///
    /// It must be one address of the local network, no unspecified address (RFC 5625 section 6.2).
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5301", value_parser = parse_socket_address)]
    pub(crate) listen: SocketAddr,
    /// Give the proxy a known fault of such devices, for tests; may be repeated.
    ///
    /// --list-faults prints the faults.
    #[arg(long, value_parser = parse_fault)]
    pub(crate) fault: Vec<Fault>,
    /// Print the faults with the checks that find them, and do not forward.
    #[arg(long)]
    pub(crate) list_faults: bool,
    /// With --fault open-wan: also listen on this address, that of the provider's side.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_socket_address)]
    pub(crate) wan: Option<SocketAddr>,
    /// Limit the queries over UDP that wait for a response: 1 to 1024.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) in_flight: u16,
    /// Limit the TCP connections of clients: 1 to 1024.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) connections: u16,
    /// Set the time limit for a response: seconds, or a duration such as 1m.
    #[arg(long, value_name = "DURATION", default_value_t = 5.0, value_parser = parse_timeout)]
    pub(crate) timeout: f64,
    /// Print the line "ready", and the faults, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_fault(text: &str) -> Result<Fault, ArgumentError> {
    let names = || FAULTS.iter().map(|entry| entry.name).collect();
    text.parse().map_err(|_| ArgumentError::ExpectedOneOf(names()))
}

fn parse_timeout(text: &str) -> Result<f64, ArgumentError> {
    let seconds = parse_seconds(text)?;
    let is_valid = (0.001..=3600.0).contains(&seconds);
    if is_valid { Ok(seconds) } else { Err(ArgumentError::Expected("0.001 to 3600 seconds")) }
}
