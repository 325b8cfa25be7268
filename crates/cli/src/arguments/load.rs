//! Arguments of `load` and of the echo server.

use super::replay::ReplayArguments;
use super::values::{ArgumentError, parse_seconds, parse_socket_address, parse_time};
use clap::Args;
use nonesuch_lab::load::{Arrivals, SourcePrefix};
use nonesuch_proto::Name;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Send the queries to this address and port.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_socket_address)]
    pub(crate) server: SocketAddr,
    /// Read the queries from this file: a name and a type on each line, as in dnsperf.
    #[arg(long, required_unless_present_any = ["zone", "replay"], conflicts_with = "zone")]
    pub(crate) queries: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) replay: ReplayArguments,
    /// Generate queries for the names in this zone file or compiled zone.
    ///
    /// 50,000 queries, drawn with Zipf's law (exponent 1). --seed selects other queries.
    #[arg(long, value_name = "FILE")]
    pub(crate) zone: Option<PathBuf>,
    /// Set the apex of the zone. Default: the owner of the SOA record in the file.
    #[arg(long, short, requires = "zone")]
    pub(crate) origin: Option<Name>,
    /// Set the share of queries for names that are not in the zone, in percent.
    #[arg(long, value_name = "PERCENT", requires = "zone", default_value_t = 0,
        value_parser = clap::value_parser!(u8).range(..=100))]
    pub(crate) denied_share: u8,
    /// Draw the queries of the file at random with Zipf's law, with this exponent.
    ///
    /// The first query of the file is the most frequent one. Range: 0 (all alike) to 10.
    #[arg(long, value_name = "EXPONENT", conflicts_with = "zone")]
    pub(crate) zipf: Option<f64>,
    /// Send this number of queries per second, at most 10000000, in an open loop.
    ///
    /// Each query is sent at its scheduled time, whatever the server does, and latency counts from
    /// that time. Default: a closed loop, in which each response or loss causes the next query.
    #[arg(long, value_name = "QPS", group = "schedule")]
    pub(crate) rate: Option<f64>,
    /// Set the schedule of an open loop: even or poisson.
    ///
    /// poisson: the send times are independent of each other, like those of many clients.
    #[arg(long, default_value = "even", requires = "rate")]
    pub(crate) arrivals: Arrivals,
    /// Send queries for this time: seconds, or a duration such as 5m.
    #[arg(long, default_value_t = 10.0, value_parser = parse_seconds)]
    pub(crate) seconds: f64,
    /// Send queries for this time before the measurement: seconds, or a duration such as 1m.
    #[arg(long, default_value_t = 0.0, value_parser = parse_seconds)]
    pub(crate) warm_up: f64,
    /// Stop after this number of queries.
    #[arg(long)]
    pub(crate) limit: Option<u64>,
    /// Limit the outstanding queries of all threads together.
    ///
    /// Default: 128; in an open loop 4096 for each socket. In an open loop, queries above the limit
    /// wait and count as late.
    #[arg(long)]
    pub(crate) outstanding: Option<usize>,
    /// Set the number of threads.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Set the number of sockets of each thread: 1 to 4096.
    ///
    /// A server whose workers share an address with SO_REUSEPORT sees one sender for each socket.
    #[arg(long, default_value_t = 1)]
    pub(crate) sockets: usize,
    /// Send the queries over TCP.
    ///
    /// Queries are pipelined. The latency of the first query of a connection includes opening it.
    #[arg(long)]
    pub(crate) tcp: bool,
    /// Send the queries over TLS (DoT).
    ///
    /// Without --tls-ca the certificate of the server is not verified.
    #[arg(long, conflicts_with = "tcp")]
    pub(crate) tls: bool,
    /// Verify the certificate of the server with this PEM file.
    ///
    /// It contains the certificate of the authority that signed it, or the certificate itself.
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// Require this name in the certificate of the server. Default: its address.
    #[arg(long, value_name = "NAME", requires = "tls")]
    pub(crate) tls_hostname: Option<String>,
    /// Repeat a query over TCP after a truncated response.
    ///
    /// The latency of the query ends with the response over TCP.
    #[arg(long, conflicts_with_all = ["tcp", "tls"])]
    pub(crate) follow_truncated: bool,
    /// Set the number of TCP or TLS connections of each thread: 1 to 4096.
    #[arg(long, default_value_t = 1)]
    pub(crate) connections: usize,
    /// Open a new connection after this number of queries; 0: never.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) queries_per_connection: u64,
    /// Bind the sockets to local addresses from this prefix.
    ///
    /// A server that counts by client address sees one client for each socket, for example with
    /// 127.1.0.0/16 and 256 sockets.
    #[arg(long, value_name = "PREFIX")]
    pub(crate) source: Option<SourcePrefix>,
    /// Set the DO bit.
    #[arg(long = "do", visible_alias = "dnssec")]
    pub(crate) dnssec_ok: bool,
    /// Set the CO bit: accept compact denial with NXDOMAIN.
    #[arg(long = "co")]
    pub(crate) compact_ok: bool,
    /// Set the CD bit: request that a resolver does not validate.
    #[arg(long = "cd")]
    pub(crate) checking_disabled: bool,
    /// Request the identifier of the server (NSID), and count the identifiers.
    #[arg(long)]
    pub(crate) nsid: bool,
    /// Send a cookie from each socket, and the server cookie of earlier responses.
    #[arg(long)]
    pub(crate) cookie: bool,
    /// Set the EDNS payload size, in octets; 0 sends no EDNS.
    #[arg(long, default_value_t = 1232)]
    pub(crate) edns_size: u16,
    /// Send this EDNS option: code, and value in hexadecimal. May be repeated.
    #[arg(long, value_name = "CODE:HEX", value_parser = parse_edns_option)]
    pub(crate) edns_option: Vec<(u16, Vec<u8>)>,
    /// Add a random label before each name, different for each query and each run.
    #[arg(long, group = "random_labels")]
    pub(crate) random_prefix: bool,
    /// Add a random label of six characters before each name, as the evaluation of NSEC5 does.
    #[arg(long, group = "random_labels")]
    pub(crate) random_label: bool,
    /// Let the random labels depend only on --seed, so that runs repeat them.
    ///
    /// Caches of the server may then have the responses of an earlier run.
    #[arg(long, requires = "random_labels")]
    pub(crate) repeatable: bool,
    /// Set the seed of random intervals and queries and, with --repeatable, of random labels.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Sleep between the queries of an open loop.
    ///
    /// Leaves the CPU to other processes. Queries are sent and responses received up to 0.1 ms
    /// late.
    #[arg(long, requires = "schedule")]
    pub(crate) sleep: bool,
    /// Count a query as lost after this time, at most 1h: seconds, or a duration such as 2s.
    #[arg(long, default_value_t = 1.0, value_parser = parse_seconds)]
    pub(crate) timeout: f64,
    /// Report CPU time and memory of the server with this process ID, and what limited the load.
    #[arg(long, value_name = "PID")]
    pub(crate) server_pid: Option<u32>,
    /// Bind the threads to these CPUs, for example 0,1,2.
    #[arg(long, value_delimiter = ',')]
    pub(crate) cpus: Vec<usize>,
    /// Validate this number of responses after the load, at most 10000, selected at random.
    ///
    /// The keys of the zone are fetched from the server over TCP or TLS. The exit status is 1 if a
    /// response is bogus. Requires --do and --anchor.
    #[arg(long, value_name = "N", requires_all = ["anchor", "dnssec_ok"])]
    pub(crate) validate: Option<usize>,
    /// Trust the DS or DNSKEY records in this file. Their owner is the zone of the queries.
    #[arg(long, value_name = "FILE", requires = "validate")]
    pub(crate) anchor: Option<PathBuf>,
    /// Validate the signatures at this time: RFC 3339, YYYYMMDDHHmmSS, or relative (now-1h).
    ///
    /// Default: the present.
    #[arg(long, value_name = "TIME", value_parser = parse_time, requires = "validate")]
    pub(crate) now: Option<u32>,
    /// Search for the highest rate without loss.
    ///
    /// The rate doubles from --rate (default 1000) until a step fails; then bisection finds the
    /// limit to 5 %. A step fails if too many queries are lost, or if the responses fall more than
    /// 2 % behind the rate.
    #[arg(long, conflicts_with_all = ["seconds", "limit", "validate"])]
    pub(crate) ramp: bool,
    /// Set the maximum share of lost queries in a step of --ramp, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1, requires = "ramp")]
    pub(crate) ramp_loss: f64,
    /// Set the duration of a step of --ramp: seconds, or a duration such as 1m.
    #[arg(long, default_value_t = 5.0, value_parser = parse_seconds, requires = "ramp")]
    pub(crate) ramp_seconds: f64,
    /// Print rate, loss and latency of each interval: seconds, or a duration such as 1m; 0: never.
    ///
    /// Default: 10 if the load takes longer than 10 seconds, and never with --json. With --json,
    /// each interval is a line with the key "interval", before the report.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, conflicts_with = "ramp")]
    pub(crate) interval: Option<f64>,
    /// Print JSON, which includes the histogram of latencies.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LabEchoArguments {
    /// Listen on this address of the loopback interface and port; port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0", value_parser = parse_socket_address)]
    pub(crate) listen: SocketAddr,
    /// Set the size of each response, in octets.
    #[arg(long, default_value_t = 160)]
    pub(crate) octets: usize,
    /// Set the number of UDP threads.
    #[arg(long, default_value_t = 1)]
    pub(crate) workers: usize,
    /// Bind the workers to these CPUs, for example 0,1,2.
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
            let error = parse_edns_option(wrong).unwrap_err();
            assert!(
                matches!(error, ArgumentError::Expected(form) if form.starts_with("CODE:HEX")),
                "{wrong}: {error}"
            );
        }
    }
}
