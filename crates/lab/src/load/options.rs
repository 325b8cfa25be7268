//! Options of a load.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nonesuch_net::Transport;
use nonesuch_net::tls::ClientTls;

use super::{Arrivals, LoadError, OUTSTANDING_MAX, QueryList, RATE_MAX, SourcePrefix, encoder};

/// Maximum number of sampled responses. With the maximum size of a response, they take 650 MB.
const SAMPLES_MAX: usize = 10_000;
/// Maximum octets of all EDNS options together.
const EDNS_OPTIONS_MAX: usize = 512;

/// Options of a load.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Address of the server.
    pub server: SocketAddr,
    /// The queries, in the order of sending; after the last one, the list starts again. With `n`
    /// threads, each thread sends every `n`-th query. A closed loop sorts each group of 1024
    /// queries by length.
    pub queries: Arc<QueryList>,
    /// Exponent of Zipf's law, with which the queries are drawn from the list: the query at
    /// position `n`, from 1, has the weight `n^-zipf`. `seed` determines the queries. After at
    /// least 2^20 queries, the load repeats them. `None`: the queries are sent in the order of the
    /// list.
    pub zipf: Option<f64>,
    /// Duration of the warm-up, which the report does not count.
    pub warm_up: Duration,
    /// Duration of the load after the warm-up, in seconds.
    pub seconds: f64,
    /// Maximum number of outstanding queries of all threads together.
    pub outstanding: usize,
    /// Number of threads.
    pub threads: usize,
    /// Number of sockets of each thread. A server that distributes clients to its workers by
    /// address and port (`SO_REUSEPORT`) sees each socket as a client. For a server with several
    /// workers, use several times as many sockets as workers.
    pub sockets: usize,
    /// Transport of the queries. With TCP and TLS, the queries are pipelined (RFC 7766 §6.2.1.1).
    pub transport: Transport,
    /// TLS settings; required with [`Transport::Tls`].
    pub tls: Option<ClientTls>,
    /// Number of connections of each thread, with TCP, TLS or `follow_truncated`. They are opened
    /// when their first queries are due.
    pub connections: usize,
    /// Number of queries on a connection, after which it is closed and the next one opened; 0: no
    /// limit. The latency of the first query of a connection includes opening the connection.
    pub queries_per_connection: u64,
    /// Whether to repeat a query over TCP after a truncated response over UDP. The latency of the
    /// query ends with the response over TCP.
    pub follow_truncated: bool,
    /// Source addresses of the sockets: the sockets are distributed evenly over this prefix. By
    /// default the system selects the address.
    pub sources: Option<SourcePrefix>,
    /// Whether to set the DO flag (DNSSEC OK, RFC 3225).
    pub dnssec_ok: bool,
    /// Whether to set the CO flag (Compact Answers OK, RFC 9824 §5.1).
    pub compact_ok: bool,
    /// Whether to set the CD flag (Checking Disabled, RFC 4035 §3.2.2).
    pub checking_disabled: bool,
    /// Whether to set the AD flag: a resolver marks secure responses also without DO (RFC 6840 §5.7).
    pub authentic_data: bool,
    /// Whether to request the identifier of the name server (RFC 5001), which the report counts.
    pub nsid: bool,
    /// Whether to send a cookie (RFC 7873): the client cookie of the socket or connection, and the
    /// last server cookie that it received.
    pub cookies: bool,
    /// Number of responses, selected at random with `seed`, that the report contains as samples.
    /// Truncated responses that are followed are not selected.
    pub samples: usize,
    /// UDP payload size in the queries (RFC 6891 §6.2.3), in octets; 0 sends queries without EDNS.
    pub edns_size: u16,
    /// EDNS options: code and value.
    pub edns_options: Vec<(u16, Vec<u8>)>,
    /// Whether to add a different random label at the start of each name, so that no cache has a
    /// response.
    pub random_prefix: bool,
    /// Whether to add a random label of six characters at the start of each name: the queries for
    /// names that do not exist in the evaluation of NSEC5 (ePrint 2017/099 §7).
    pub random_label: bool,
    /// Share of the queries that get a random label, in percent. The others are for the name in the
    /// list.
    pub label_percent: u8,
    /// Whether the random labels depend only on `seed`. Otherwise, each load has other labels: a
    /// cache of the server has responses of earlier loads with the same labels.
    pub repeatable: bool,
    /// Rate of an open loop, in queries per second of all threads together; `None` selects a closed
    /// loop.
    pub rate: Option<f64>,
    /// Distribution of the send times in an open loop.
    pub arrivals: Arrivals,
    /// Seed of random send times and labels.
    pub seed: u64,
    /// Whether a thread of an open loop may poll instead of sleeping: if the next query is due
    /// within 120 µs, or while it waits for responses. A sleeping thread wakes up late, and then
    /// sends or receives late.
    pub may_poll: bool,
    /// Time after sending until a query counts as lost.
    pub timeout: Duration,
    /// Maximum number of queries after the warm-up; the load ends earlier if its duration is over.
    /// `None`: only the duration limits the load.
    pub limit: Option<u64>,
    /// Process ID of the server, if it runs on this machine, to measure its CPU time and memory.
    /// `None`: they are not measured.
    pub server_pid: Option<u32>,
    /// CPUs to which the threads are bound: thread `i` runs on `cpus[i % cpus.len()]`. `None` or an
    /// empty list: the threads are not bound.
    pub cpus: Option<Vec<usize>>,
}

impl LoadOptions {
    /// Creates options with default values: ten seconds, one thread, 128 outstanding queries, EDNS
    /// with 1232 octets, DO set.
    #[must_use]
    pub fn new(server: SocketAddr, queries: Arc<QueryList>) -> Self {
        Self {
            server,
            queries,
            zipf: None,
            warm_up: Duration::ZERO,
            seconds: 10.0,
            // With the usual default size (208 KiB), the receive buffer of a server's socket holds
            // about 200 queries.
            outstanding: 128,
            threads: 1,
            sockets: 1,
            transport: Transport::Udp,
            tls: None,
            connections: 1,
            queries_per_connection: 0,
            follow_truncated: false,
            sources: None,
            dnssec_ok: true,
            compact_ok: false,
            checking_disabled: false,
            authentic_data: false,
            nsid: false,
            cookies: false,
            samples: 0,
            edns_size: 1232,
            edns_options: Vec::new(),
            random_prefix: false,
            random_label: false,
            label_percent: 100,
            repeatable: false,
            rate: None,
            arrivals: Arrivals::Even,
            seed: 1,
            may_poll: true,
            timeout: Duration::from_secs(1),
            limit: None,
            server_pid: None,
            cpus: None,
        }
    }

    /// Whether the threads of an open loop poll: the options permit it, and this process may use
    /// more CPUs than there are threads.
    pub(super) fn polls(&self) -> bool {
        self.may_poll && thread::available_parallelism().is_ok_and(|cpus| cpus.get() > self.threads)
    }

    /// Returns the number of sockets or connections of each thread.
    pub(super) const fn sockets_per_thread(&self) -> usize {
        if matches!(self.transport, Transport::Udp) { self.sockets } else { self.connections }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`LoadError::Misconfigured`] with the option of `nonesuch load` that is not valid.
    pub(super) fn check(&self) -> Result<(), LoadError> {
        let hour = Duration::from_secs(3600);
        let per_thread = self.sockets_per_thread();
        let sockets = self.threads.saturating_mul(per_thread);
        // The first socket of the first thread may have the most outstanding queries.
        let largest = self.outstanding.div_ceil(self.threads.max(1)).div_ceil(per_thread.max(1));
        let is_outstanding_valid = self.outstanding >= sockets && largest <= OUTSTANDING_MAX;
        let has_tls = self.transport != Transport::Tls || self.tls.is_some();
        let edns_octets: usize = self.edns_options.iter().map(|(_, value)| 4 + value.len()).sum();
        let has_edns = self.edns_size > 0;
        // Whether the value is valid, the option of `nonesuch load`, and the permitted values.
        let rules = [
            (!self.queries.is_empty(), "--queries", "at least one query"),
            (self.threads > 0, "--threads", "1 or more"),
            ((1..=4096).contains(&self.sockets), "--sockets", "1 to 4096"),
            ((1..=4096).contains(&self.connections), "--connections", "1 to 4096"),
            (has_tls, "--tls", "given with TLS settings"),
            (
                is_outstanding_valid,
                "--outstanding",
                "1 to 16384 for each socket or connection of each thread",
            ),
            (
                self.sources.is_none_or(|sources| sources.has_family_of(self.server.ip())),
                "--source",
                "of the same family as the server's address",
            ),
            (self.samples <= SAMPLES_MAX, "--validate", "at most 10000"),
            (self.zipf.is_none_or(|zipf| (0.0..=10.0).contains(&zipf)), "--zipf", "0 to 10"),
            (!(self.random_prefix && self.random_label), "--random-label", "used without --random-prefix"),
            (self.warm_up <= hour, "--warm-up", "at most an hour"),
            (self.seconds > 0.0 && self.seconds <= 1e9, "--seconds", "more than 0, at most 1000000000"),
            (
                self.rate.is_none_or(|rate| rate > 0.0 && rate <= RATE_MAX),
                "--rate",
                "more than 0, at most 10000000",
            ),
            (!self.timeout.is_zero() && self.timeout <= hour, "--timeout", "more than 0, at most an hour"),
            (self.limit != Some(0), "--limit", "1 or more"),
            (
                has_edns || !(self.dnssec_ok || self.compact_ok),
                "--edns-size",
                "greater than 0 with DO or CO, which need EDNS",
            ),
            (has_edns || !(self.nsid || self.cookies), "--edns-size", "greater than 0 with NSID or cookies"),
            (
                !self.follow_truncated || self.transport == Transport::Udp,
                "--follow-truncated",
                "used with UDP only",
            ),
            (
                edns_octets == 0 || (has_edns && edns_octets <= EDNS_OPTIONS_MAX),
                "--edns-option",
                "at most 512 octets in total, and empty without EDNS",
            ),
            (
                !(self.random_prefix || self.random_label)
                    || self.queries.longest_name() + encoder::RANDOM_LABEL_MAX <= 255,
                if self.random_label { "--random-label" } else { "--random-prefix" },
                "off, unless all names of the query list have at most 242 octets",
            ),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            Some((_, option, wanted)) => Err(LoadError::Misconfigured { option, wanted }),
            None => Ok(()),
        }
    }
}
