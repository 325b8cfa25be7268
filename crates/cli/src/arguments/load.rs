//! Arguments of `load` and of the echo server.

use super::values::{ArgumentError, parse_seconds, parse_socket_address};
use clap::Args;
use nonesuch_lab::load::{Arrivals, Sources};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// The server: address and port.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_socket_address)]
    pub(crate) server: SocketAddr,
    /// Query file: a name and a type on each line, as dnsperf takes it.
    #[arg(long)]
    pub(crate) queries: PathBuf,
    /// Queries per second, in an open loop: each is sent when it is due, whatever the server does, and latency is counted
    /// from then. Without it the loop is closed: as many as the server answers.
    #[arg(long, value_name = "QPS")]
    pub(crate) rate: Option<f64>,
    /// How the queries of an open loop follow each other: even, or poisson (independent of each other, as those of many
    /// clients).
    #[arg(long, default_value = "even", requires = "rate")]
    pub(crate) arrivals: Arrivals,
    /// Seconds to run, or a duration as 5m.
    #[arg(long, default_value_t = 10.0, value_parser = parse_seconds)]
    pub(crate) seconds: f64,
    /// Seconds, or a duration as 1m, to send before anything counts.
    #[arg(long, default_value_t = 0.0, value_parser = parse_seconds)]
    pub(crate) warm_up: f64,
    /// Stop after so many queries.
    #[arg(long)]
    pub(crate) limit: Option<u64>,
    /// Queries outstanding at most, all threads together. Default: 128, and 4096 for each socket in an open loop, whose
    /// queries wait, and count as late, where that does not suffice.
    #[arg(long)]
    pub(crate) outstanding: Option<usize>,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Sockets of each thread: a server whose workers share an address by SO_REUSEPORT sees as many senders.
    #[arg(long, default_value_t = 1)]
    pub(crate) sockets: usize,
    /// Addresses of this machine that the sockets are bound to, spread over the prefix: a server that counts by client sees
    /// as many clients, as with 127.1.0.0/16 and 256 sockets.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) source: Option<Sources>,
    /// Set the DO bit.
    #[arg(long = "do", visible_alias = "dnssec")]
    pub(crate) dnssec_ok: bool,
    /// Set the CO bit: take compact denials with NXDOMAIN.
    #[arg(long = "co")]
    pub(crate) compact_ok: bool,
    /// UDP payload size announced; 0 sends no EDNS.
    #[arg(long, default_value_t = 1232)]
    pub(crate) edns_size: u16,
    /// An option of EDNS: its code, and its value in hexadecimal. May be repeated.
    #[arg(long, value_name = "CODE:HEX", value_parser = parse_edns_option)]
    pub(crate) edns_option: Vec<(u16, Vec<u8>)>,
    /// Put a random label before each name, another one each time.
    #[arg(long)]
    pub(crate) random_prefix: bool,
    /// What random labels and distances are drawn from.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Sleep while nothing is due in an open loop, where the CPU is needed for something else. Queries then go out, and
    /// answers are taken, up to a tenth of a millisecond late.
    #[arg(long, requires = "rate")]
    pub(crate) sleep: bool,
    /// Seconds after which a query counts as lost.
    #[arg(long, default_value_t = 1.0, value_parser = parse_seconds)]
    pub(crate) timeout: f64,
    /// Process of the server, on this machine: its CPU time and memory are reported.
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
    /// CPUs that the threads are bound to, as 0,1,2.
    #[arg(long, value_delimiter = ',')]
    pub(crate) cpus: Vec<usize>,
    /// Print JSON, with the histogram of latencies.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabEchoArguments {
    /// Address of the loopback interface, and port; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = parse_socket_address)]
    pub(crate) listen: SocketAddr,
    /// Octets of each answer.
    #[arg(long, default_value_t = 160)]
    pub(crate) octets: usize,
    /// UDP threads.
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: usize,
    /// CPUs that the workers are bound to, as 0,1,2.
    #[arg(long, value_delimiter = ',')]
    pub(crate) cpus: Vec<usize>,
}

/// Reads `CODE:HEX`; the value may be empty.
pub(super) fn parse_edns_option(text: &str) -> Result<(u16, Vec<u8>), ArgumentError> {
    let (code, value) = text.split_once(':').unwrap_or((text, ""));
    let code = code.parse().map_err(|_| ArgumentError::Expected("CODE:HEX, the code from 0 to 65535"))?;
    let value = data_encoding::HEXLOWER_PERMISSIVE.decode(value.as_bytes());
    Ok((
        code,
        value.map_err(|_| ArgumentError::Expected("CODE:HEX, the value as pairs of hexadecimal digits"))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_edns_are_read() {
        assert_eq!(parse_edns_option("10:0102aBcD"), Ok((10, vec![1, 2, 0xab, 0xcd])));
        assert_eq!(parse_edns_option("65001:"), Ok((65_001, Vec::new())));
        assert_eq!(parse_edns_option("3"), Ok((3, Vec::new())));
        for wrong in ["", "x:00", "70000:00", "10:0", "10:zz"] {
            assert!(
                parse_edns_option(wrong)
                    .is_err_and(|reason| reason.to_string().starts_with("expected CODE:HEX")),
                "{wrong}"
            );
        }
    }
}
