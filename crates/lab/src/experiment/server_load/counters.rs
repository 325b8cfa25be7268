//! Counters of online signing, from the metrics of a server.

use crate::measure::metrics::{read_metrics, total};
use crate::measure::server::{ServedZone, ServerError, ServerKeys};
use crate::peers::Peer;
use serde::Serialize;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// What a server has counted since its start. `None`: the server does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct OnlineCounts {
    /// Private-key operations.
    pub(super) online_operations: Option<u64>,
    /// Signatures and proofs that were in the cache.
    pub(super) cache_hits: Option<u64>,
    /// Signatures and proofs that were not in the cache.
    pub(super) cache_misses: Option<u64>,
}

/// The metrics of a server over HTTP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metrics {
    address: SocketAddr,
    /// Names of the metrics, in the order of [`OnlineCounts`]. Empty if the server has no such metric.
    names: [&'static str; 3],
}

impl Metrics {
    /// The metrics of this program.
    pub(super) const fn of_nonesuch(address: SocketAddr) -> Self {
        let names = [
            "nonesuch_online_operations_total",
            "nonesuch_online_cache_hits_total",
            "nonesuch_online_cache_misses_total",
        ];
        Self { address, names }
    }

    /// The metrics of a peer; `None` if it has no such metrics.
    pub(super) fn of_peer(peer: Peer, address: SocketAddr) -> Option<Self> {
        let names = ["", "coredns_dnssec_cache_hits_total", "coredns_dnssec_cache_misses_total"];
        (peer == Peer::CoreDns).then_some(Self { address, names })
    }

    /// The line that enables the metrics in a server block of CoreDNS.
    pub(super) fn coredns_line(self) -> String {
        format!("  prometheus {}\n", self.address)
    }

    /// The configuration of `nonesuch serve` with these metrics. It has the settings of
    /// [`serve_command`](crate::measure::server::serve_command).
    pub(super) fn configuration(self, zone: &ServedZone, workers: u16, udp_octets: u16) -> String {
        let quoted = |text: &dyn std::fmt::Display| toml::Value::String(text.to_string()).to_string();
        let keys = match &zone.keys {
            ServerKeys::None => String::new(),
            ServerKeys::Online { mechanism, directory } => {
                let (name, directory) = (mechanism.entry().name, quoted(&directory.display()));
                format!("denial = \"{name}\"\nkeys = {directory}\n")
            }
            ServerKeys::Nsec5 { directory } => format!("nsec5-keys = {}\n", quoted(&directory.display())),
        };
        format!(
            "version = 1\nlisten = [\"127.0.0.1:0\"]\nmetrics-listen = \"{}\"\nworkers = {workers}\n\
             max-udp-size = {udp_octets}\n[zone.{}]\nfile = {}\nverify = \"structural\"\n{keys}",
            self.address,
            quoted(&zone.origin),
            quoted(&zone.file.display()),
        )
    }

    /// Reads the counters.
    pub(super) fn read(self) -> io::Result<OnlineCounts> {
        Ok(self.counts_in(&read_metrics(self.address)?))
    }

    fn counts_in(self, text: &str) -> OnlineCounts {
        let [online_operations, cache_hits, cache_misses] =
            self.names.map(|name| (!name.is_empty()).then(|| total(text, name, "")));
        OnlineCounts { online_operations, cache_hits, cache_misses }
    }
}

/// Returns the command that serves the zone of a configuration, which is written to `directory`.
pub(super) fn serving(mut program: Command, directory: &Path, text: &str) -> Result<Command, ServerError> {
    let path = directory.join("nonesuch.toml");
    fs::write(&path, text).map_err(|source| ServerError::Log { path: path.clone(), source })?;
    program.args(["serve", "--config"]).arg(path);
    Ok(program)
}

impl OnlineCounts {
    /// Returns the differences from the earlier counts.
    pub(super) fn since(self, earlier: Self) -> Self {
        let difference = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            online_operations: difference(self.online_operations, earlier.online_operations),
            cache_hits: difference(self.cache_hits, earlier.cache_hits),
            cache_misses: difference(self.cache_misses, earlier.cache_misses),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9153);

    #[test]
    fn samples_of_a_counter_are_added() {
        let text = "HTTP/1.0 200 OK\r\n\r\n# TYPE nonesuch_online_cache_hits_total counter\n\
                    nonesuch_online_cache_hits_total{mechanism=\"data\",algorithm=\"13\"} 40\n\
                    nonesuch_online_cache_hits_total{mechanism=\"compact\",algorithm=\"13\"} 2\n\
                    nonesuch_online_cache_hits_total_other 9\nnonesuch_online_cache_misses_total 1.5e+03\n";
        let counts = Metrics::of_nonesuch(ADDRESS).counts_in(text);
        let expected =
            OnlineCounts { online_operations: Some(0), cache_hits: Some(42), cache_misses: Some(1500) };
        assert_eq!(counts, expected);
        let later = OnlineCounts { cache_hits: Some(50), online_operations: None, ..counts };
        let expected = OnlineCounts { online_operations: None, cache_hits: Some(8), cache_misses: Some(0) };
        assert_eq!(later.since(counts), expected);
    }

    #[test]
    fn only_coredns_is_a_peer_with_these_metrics() {
        assert!(Metrics::of_peer(Peer::Knot, ADDRESS).is_none());
        let metrics = Metrics::of_peer(Peer::CoreDns, ADDRESS).expect("metrics");
        let text = "coredns_dnssec_cache_misses_total{server=\"dns://127.0.0.1:5300\"} 7\n";
        let expected = OnlineCounts { online_operations: None, cache_hits: Some(0), cache_misses: Some(7) };
        assert_eq!(metrics.counts_in(text), expected);
        assert_eq!(metrics.coredns_line(), "  prometheus 127.0.0.1:9153\n");
    }
}
