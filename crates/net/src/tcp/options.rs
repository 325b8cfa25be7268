//! Limits for the number of connections, their times and their memory.

use crate::heartbeat::Heartbeats;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Limits of the connections of [`serve`](super::serve).
#[derive(Debug, Clone)]
pub struct TcpOptions {
    /// Maximum number of open connections. Default 4,096.
    pub connections_max: usize,
    /// Maximum number of open connections of one client: of an IPv4 address, or of an IPv6 prefix
    /// of 64 bits. Default 128.
    pub connections_per_client: usize,
    /// Clients that are exempt from the limit for each client. Default: the loopback addresses.
    pub exempt: ExemptClients,
    /// Maximum wait of a connection for its next message. It decreases when the number of open
    /// connections exceeds half of `connections_max`, down to a tenth at `connections_max` (RFC
    /// 7766 section 6.2.3). Default 10 s.
    pub idle_timeout: Duration,
    /// Maximum time until the first complete message of a connection. Default 5 s.
    pub first_message_timeout: Duration,
    /// Maximum time from the first to the last octet of a message. Default 5 s.
    pub message_timeout: Duration,
    /// Maximum time in which a peer acknowledges 16 KiB of answers, or accepts all answers if they
    /// are shorter. Default 5 s.
    pub write_timeout: Duration,
    /// Maximum time in which the peer of a stream acknowledges 16 KiB, or the rest if it is
    /// shorter. Default 30 s.
    pub stream_idle_timeout: Duration,
    /// Maximum total time of a stream. Default 2 h.
    pub stream_time_max: Duration,
    /// Maximum time for sending the remaining answers when the server stops. Default 10 s.
    pub finish_timeout: Duration,
    /// Maximum time of a TLS handshake. Default 5 s.
    pub handshake_timeout: Duration,
    /// Maximum octets of a received message. A longer message closes the connection. Default 16
    /// KiB.
    pub message_max: usize,
    /// Maximum number of concurrent deferred answers of one connection. Default 64.
    pub in_flight_max: usize,
    /// Maximum octets in the buffers of all connections: incomplete messages, answers that peers
    /// have not accepted yet, and TLS handshakes. If it is exceeded, the connections that made no
    /// progress for the longest time are closed. Default 64 MiB.
    pub memory_max: usize,
    /// Receives the heartbeat of the server's loop. The default discards it.
    pub heartbeats: Heartbeats,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            connections_max: 4096,
            connections_per_client: 128,
            exempt: ExemptClients::loopback(),
            idle_timeout: Duration::from_secs(10),
            first_message_timeout: Duration::from_secs(5),
            message_timeout: Duration::from_secs(5),
            write_timeout: Duration::from_secs(5),
            stream_idle_timeout: Duration::from_secs(30),
            stream_time_max: Duration::from_secs(7200),
            finish_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(5),
            message_max: 1 << 14,
            in_flight_max: 64,
            memory_max: 64 << 20,
            heartbeats: Heartbeats::default(),
        }
    }
}

impl TcpOptions {
    /// Returns the idle timeout for `open` open connections.
    pub(crate) fn idle_timeout_at(&self, open: usize) -> Duration {
        let max = u32::try_from(self.connections_max.max(1)).unwrap_or(u32::MAX >> 4).min(u32::MAX >> 4);
        let open = u32::try_from(open).unwrap_or(max).min(max);
        let above_half = (2 * open).saturating_sub(max);
        self.idle_timeout.saturating_mul(10 * max - 9 * above_half) / (10 * max)
    }

    /// Returns the shortest time limit of a connection.
    pub(crate) fn shortest_timeout(&self) -> Duration {
        let times = [
            self.idle_timeout,
            self.first_message_timeout,
            self.message_timeout,
            self.write_timeout,
            self.stream_idle_timeout,
            self.stream_time_max,
            self.handshake_timeout,
        ];
        times.into_iter().min().unwrap_or_default()
    }
}

/// Clients that are exempt from a limit.
#[derive(Clone)]
pub struct ExemptClients(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl ExemptClients {
    /// Clients for which `is_exempt` returns `true`.
    pub fn new(is_exempt: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_exempt))
    }

    /// 127.0.0.0/8 and ::1, which no packet from a network has as its source.
    #[must_use]
    pub fn loopback() -> Self {
        Self::new(|address| address.is_loopback())
    }

    /// Whether `address` is exempt.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        (self.0)(address)
    }
}

impl fmt::Debug for ExemptClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExemptClients")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_falls_above_half() {
        let options = TcpOptions {
            connections_max: 100,
            idle_timeout: Duration::from_secs(10),
            ..TcpOptions::default()
        };
        let seconds = [0, 50, 75, 100, 1000].map(|open| options.idle_timeout_at(open).as_secs_f64());
        for (found, expected) in seconds.into_iter().zip([10.0, 10.0, 5.5, 1.0, 1.0]) {
            assert!((found - expected).abs() < 1e-6, "{found}");
        }
    }

    #[test]
    fn loopback_is_exempt_by_default() {
        let exempt = TcpOptions::default().exempt;
        for (text, expected) in
            [("127.9.9.9", true), ("::1", true), ("192.0.2.1", false), ("2001:db8::1", false)]
        {
            assert_eq!(exempt.contains(text.parse().expect("an address")), expected, "{text}");
        }
    }
}
