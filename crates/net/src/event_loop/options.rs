//! Options of [`serve`](super::serve).

use super::mailbox::CONNECTIONS_MAX;
use crate::heartbeat::Heartbeats;
use crate::tcp::TcpOptions;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Options of the workers of [`serve`](super::serve).
#[derive(Clone, Debug)]
pub struct EventLoopOptions {
    /// The CPUs of the workers: worker `i` runs on `cpus[i % cpus.len()]`. Empty: on any CPU.
    pub cpus: Vec<usize>,
    /// Receives the heartbeats of the workers. The default discards them.
    pub heartbeats: Heartbeats,
    /// Maximum number of client queries without a reply, for each worker. Above it, a worker
    /// discards datagrams, and reads no further messages from connections. Default 16,384.
    pub queries_max: usize,
    /// Limits of the client connections of each worker: each worker may have `connections_max`
    /// connections, and so on. `in_flight_max` is the maximum number of queries of one connection
    /// without a reply. `finish_timeout` also limits how long the replies over UDP may take when
    /// the server stops. The limits also apply to the handshakes of each TLS listener, instead of
    /// to a worker, with `handshakes_max` connections. The limits of streams, and `heartbeats`, are
    /// not used.
    pub tcp: TcpOptions,
    /// Maximum number of TLS handshakes in progress at one listener. If it is reached, the one that
    /// has waited longest is closed for a new one. Default 1,024.
    pub handshakes_max: usize,
    /// Limits of the queries to servers.
    pub upstream: UpstreamOptions,
}

impl Default for EventLoopOptions {
    fn default() -> Self {
        Self {
            cpus: Vec::new(),
            heartbeats: Heartbeats::default(),
            queries_max: 1 << 14,
            tcp: TcpOptions::default(),
            handshakes_max: 1024,
            upstream: UpstreamOptions::default(),
        }
    }
}

impl EventLoopOptions {
    /// Maximum number of open files of `workers` workers and of the threads that perform the handshakes of
    /// `tls_listeners` addresses.
    #[must_use]
    pub const fn open_files(&self, workers: usize, tls_listeners: usize) -> u64 {
        let waiting = if tls_listeners > 0 { CONNECTIONS_MAX } else { 0 };
        let Self { tcp, upstream, .. } = self;
        let each = tcp.connections_max + waiting + upstream.sockets_max + upstream.connections_max;
        (each * workers + self.handshakes_max * tls_listeners) as u64
    }
}

/// Limits of the queries of each worker to servers. Above a limit, an exchange fails with
/// [`SendFailure::Local`](crate::machine::SendFailure::Local).
#[derive(Clone, Debug)]
pub struct UpstreamOptions {
    /// Maximum number of sockets for UDP, and so of concurrent exchanges. Default 1,024.
    pub sockets_max: usize,
    /// Source ports of exchanges over UDP. Each socket has a random port of this range. RFC 5452
    /// section 9.2 requires a range as large as possible. Default 1024 to 65535.
    pub ports: RangeInclusive<u16>,
    /// Maximum number of connections. If it is reached, an unused connection is closed for a new
    /// one. Default 256.
    pub connections_max: usize,
    /// Maximum number of connections to one server address. Default 4.
    pub connections_per_server: usize,
    /// Maximum number of queries of one connection without a response, those of ended exchanges
    /// included. Default 64.
    pub pipeline_max: usize,
    /// Time after which a connection without exchanges is closed. It is less than the idle timeout
    /// of usual servers, so that a query is rarely sent while the server closes the connection.
    /// Default 4 s.
    pub idle_timeout: Duration,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            sockets_max: 1024,
            ports: 1024..=u16::MAX,
            connections_max: 256,
            connections_per_server: 4,
            pipeline_max: 64,
            idle_timeout: Duration::from_secs(4),
        }
    }
}
