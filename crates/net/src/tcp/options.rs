//! How many connections there may be, how long they may take, and how much they may hold.

use crate::heartbeat::Heartbeats;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// How [`serve`](super::serve) bounds its connections.
#[derive(Debug, Clone)]
pub struct TcpOptions {
    /// How many connections are open at most. Default 4,096.
    pub connections_max: usize,
    /// How many connections of one client are open at most: of an IPv4 address, or of an IPv6 network of 64 bits.
    /// Default 128.
    pub connections_per_client: usize,
    /// Clients that the limit for each client does not bind. Default: the loopback addresses.
    pub exempt: ExemptClients,
    /// How long a connection may wait for its next message; as more than half of the connections are taken it falls, to a
    /// tenth when all are (RFC 7766 section 6.2.3). Default 10 s.
    pub idle_timeout: Duration,
    /// How long a connection may take to bring its first whole message. Default 5 s.
    pub first_message_timeout: Duration,
    /// How long a message may take from its first octet to its last. Default 5 s.
    pub message_timeout: Duration,
    /// How long a peer may take to acknowledge 16 KiB of answers, or to accept all where there are fewer. Default 5 s.
    pub write_timeout: Duration,
    /// How long the peer of a stream may take to acknowledge 16 KiB, or all that is left where that is less. Default 30 s.
    pub stream_idle_timeout: Duration,
    /// How long a stream may take in all. Default 2 h.
    pub stream_time_max: Duration,
    /// How long peers may take the answers that are there when the server stops. Default 10 s.
    pub finish_timeout: Duration,
    /// How long a TLS handshake may take. Default 5 s.
    pub handshake_timeout: Duration,
    /// Octets of a message that is read; a longer one closes the connection. Default 16 KiB.
    pub message_max: usize,
    /// Answers of one connection that are put off at once. Default 64.
    pub in_flight_max: usize,
    /// Octets that the buffers of all connections take, of begun messages, of answers that peers are slow to take and of TLS
    /// handshakes: past it, those connections are closed that have moved nothing for longest. Default 64 MiB.
    pub memory_max: usize,
    /// Where the server's loop reports. By default nowhere.
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
    /// The idle time where `open` connections are open.
    pub(super) fn idle_timeout_at(&self, open: usize) -> Duration {
        let most = u32::try_from(self.connections_max.max(1)).unwrap_or(u32::MAX >> 4).min(u32::MAX >> 4);
        let open = u32::try_from(open).unwrap_or(most).min(most);
        let above_half = (2 * open).saturating_sub(most);
        self.idle_timeout.saturating_mul(10 * most - 9 * above_half) / (10 * most)
    }

    /// The shortest time that anything may take.
    pub(super) fn shortest(&self) -> Duration {
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

/// Clients that a limit does not bind.
#[derive(Clone)]
pub struct ExemptClients(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl ExemptClients {
    /// Those for which `is_exempt` says so.
    pub fn new(is_exempt: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_exempt))
    }

    /// 127.0.0.0/8 and ::1: no packet from a network has them as its source.
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
        f.write_str("Exempt")
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
