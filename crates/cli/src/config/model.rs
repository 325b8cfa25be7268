//! A configuration as plain values, and the default of each. What each means stands in `etc/nonesuch.toml`.

use crate::metrics::MOST_ZONES;
use nonesuch_authoritative::acl::PORT;
use nonesuch_authoritative::cookies::Secret;
use nonesuch_authoritative::limits::{LimitSettings, Prefix, RateSettings, RequireCookie, WhenOver};
use nonesuch_authoritative::reply_options::ReplySettings;
use nonesuch_authoritative::secondary::TransfersOptions;
use nonesuch_authoritative::server::DEFAULT_SIGNATURE_CACHE;
use nonesuch_authoritative::service::{Template, ZoneSettings};
use nonesuch_authoritative::transfer::outbound;
use nonesuch_authoritative::tsig::Keys;
use nonesuch_net::has_address;
use nonesuch_net::tcp::TcpOptions;
use nonesuch_proto::Name;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// All that a configuration file says.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) server: Server,
    pub(crate) log: Log,
    pub(crate) dnstap: Option<Dnstap>,
    pub(crate) limits: Limits,
    pub(crate) cookies: Cookies,
    /// TSIG keys.
    pub(crate) keys: Keys,
    pub(crate) templates: BTreeMap<String, Template>,
    pub(crate) zones: Vec<ZoneSettings>,
}

impl Configuration {
    /// A configuration that says nothing but that this zone is served.
    pub(crate) fn of_zone(zone: ZoneSettings) -> Self {
        Self {
            server: Server::default(),
            log: Log::default(),
            dnstap: None,
            limits: Limits::default(),
            cookies: Cookies::default(),
            keys: Keys::default(),
            templates: BTreeMap::new(),
            zones: vec![zone],
        }
    }
}

/// What stands in no table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server {
    pub(crate) user: Option<String>,
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) listen_tls: Vec<SocketAddr>,
    pub(crate) tls: Option<TlsFiles>,
    /// Certificates of those that may vouch for other servers over TLS.
    pub(crate) tls_authorities: Option<PathBuf>,
    /// One for each core where `None`.
    pub(crate) workers: Option<usize>,
    pub(crate) cpus: Vec<usize>,
    pub(crate) nsid: Option<Vec<u8>>,
    /// What is answered to `id.server.` of class CH; the NSID where `None`.
    pub(crate) identity: Option<Vec<u8>>,
    /// What is answered to `version.server.` of class CH; refused where `None`.
    pub(crate) server_version: Option<Vec<u8>>,
    /// The agent domain that errors are reported to (RFC 9567).
    pub(crate) report_channel: Option<Name>,
    /// Octets that responses over TLS are padded to multiples of (RFC 8467); 0 for none.
    pub(crate) padding_block: u16,
    pub(crate) control_socket: Option<PathBuf>,
    pub(crate) control_group: Option<String>,
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) metrics_zones: usize,
    /// Octets for signatures and proofs that were made when asked.
    pub(crate) signature_cache: u64,
    /// Zones that are loaded side by side; one for each core where `None`.
    pub(crate) load_jobs: Option<usize>,
}

/// Files of the identity for DNS over TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// Addresses of loopback; that of IPv6 where the machine has it.
fn loopback() -> Vec<SocketAddr> {
    let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let there = addresses.into_iter().filter(|address| address.is_ipv4() || has_address(*address));
    there.map(|address| (address, PORT).into()).collect()
}

impl Default for Server {
    fn default() -> Self {
        Self {
            user: None,
            state_dir: None,
            listen: loopback(),
            listen_tls: Vec::new(),
            tls: None,
            tls_authorities: None,
            workers: None,
            cpus: Vec::new(),
            nsid: None,
            identity: None,
            server_version: None,
            report_channel: None,
            padding_block: ReplySettings::default().padding_block,
            control_socket: None,
            control_group: None,
            metrics_listen: None,
            metrics_zones: MOST_ZONES,
            signature_cache: DEFAULT_SIGNATURE_CACHE as u64,
            load_jobs: None,
        }
    }
}

/// Least level of what is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
    Trace,
}

/// Form of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum LogFormat {
    /// As the journal wants it under systemd, else as text.
    #[default]
    Auto,
    Text,
    Journal,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Log {
    pub(crate) level: LogLevel,
    pub(crate) format: LogFormat,
}

/// Where dnstap goes, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dnstap {
    pub(crate) to: DnstapTo,
    pub(crate) identity: Option<String>,
    pub(crate) queries: bool,
    pub(crate) responses: bool,
    /// Octets that wait for each thread.
    pub(crate) queue: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DnstapTo {
    Socket(PathBuf),
    File(PathBuf),
}

/// Bounds on what clients may take. Times in seconds, sizes in octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) exempt: Vec<Prefix>,
    pub(crate) tcp_connections: usize,
    pub(crate) tcp_connections_each: usize,
    pub(crate) tcp_queries_in_flight: usize,
    pub(crate) tcp_memory: u64,
    pub(crate) tcp_idle: u64,
    pub(crate) tcp_first_message: u64,
    pub(crate) tcp_write: u64,
    pub(crate) tls_handshake: u64,
    /// Responses of one kind and name a second to each network; 0 for no limit.
    pub(crate) responses_per_second: u32,
    /// The same of denials of names, all of a zone together.
    pub(crate) nxdomain_responses_per_second: u32,
    /// The same of referrals.
    pub(crate) referral_responses_per_second: u32,
    /// Responses of all kinds a second to each network; 0 for no limit.
    pub(crate) client_responses_per_second: u32,
    pub(crate) slip: u8,
    pub(crate) response_table: u64,
    /// Percent of each worker's time that online operations may take.
    pub(crate) online_share: u8,
    /// The same, while all else leaves the worker no time.
    pub(crate) online_busy_share: u8,
    pub(crate) online_over: WhenOver,
    pub(crate) transfers_out: usize,
    /// Of them to one network.
    pub(crate) transfers_out_each: usize,
    /// How long a client of a transfer may acknowledge no octet.
    pub(crate) transfer_out_idle: u64,
    /// How long a transfer to a client may take in all.
    pub(crate) transfer_out_time: u64,
    pub(crate) transfers_in: usize,
    pub(crate) transfers_in_each: usize,
    /// How long a transfer from a primary may take, verification aside.
    pub(crate) transfer_in_time: u64,
    /// How long a primary may be silent in one.
    pub(crate) transfer_in_idle: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let transfers = TransfersOptions::default();
        let LimitSettings { exempt, online, .. } = LimitSettings::default();
        let rates = RateSettings::default();
        let connections = TcpOptions::default();
        Self {
            exempt,
            tcp_connections: 4096,
            tcp_connections_each: 128,
            tcp_queries_in_flight: 64,
            tcp_memory: 64 << 20,
            tcp_idle: 10,
            tcp_first_message: 5,
            tcp_write: 5,
            tls_handshake: 5,
            responses_per_second: 0,
            nxdomain_responses_per_second: 0,
            referral_responses_per_second: 0,
            client_responses_per_second: 0,
            slip: rates.slip,
            response_table: rates.table_octets as u64,
            online_share: online.share,
            online_busy_share: online.busy_share,
            online_over: online.when_over,
            transfers_out: outbound::DEFAULT_MOST,
            transfers_out_each: outbound::DEFAULT_EACH,
            transfer_out_idle: connections.stream_idle_timeout.as_secs(),
            transfer_out_time: connections.stream_time_max.as_secs(),
            transfers_in: transfers.transfers,
            transfers_in_each: transfers.transfers_each,
            transfer_in_time: transfers.time_limit.as_secs(),
            transfer_in_idle: transfers.idle_limit.as_secs(),
        }
    }
}

/// DNS cookies (RFC 7873, RFC 9018).
#[derive(Clone, Default)]
pub(crate) struct Cookies {
    pub(crate) is_off: bool,
    /// The current secret and others that are accepted; none: a random one.
    pub(crate) secrets: Vec<Secret>,
    pub(crate) demand: RequireCookie,
}

impl std::fmt::Debug for Cookies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { is_off, secrets, demand } = self;
        f.debug_struct("Cookies")
            .field("is_off", is_off)
            .field("secrets", &secrets.len())
            .field("demand", demand)
            .finish()
    }
}

impl PartialEq for Cookies {
    fn eq(&self, other: &Self) -> bool {
        (self.is_off, self.demand) == (other.is_off, other.demand)
            && self.secrets.iter().map(|secret| **secret).eq(other.secrets.iter().map(|secret| **secret))
    }
}
