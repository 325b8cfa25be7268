//! Parameters of experiments with loaded resolvers.

use super::path_choice::PathChoice;
use super::traffic::{QueriedTree, Traffic};
use super::tree_choice::{Publication, Signers, TreeChoice};
use crate::experiment::parameters::{Count, Octets, Seconds, deduplicate};
use crate::measure::AlgorithmChoice;
use crate::testbed::{Resolver, ZoneServer};
use nonesuch_net::Transport;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Expected time to start the servers of a tree and a resolver, and to stop them, in seconds.
const START_SECONDS: f64 = 1.2;
/// Expected time to build and sign a tree, for each name, in seconds.
const SIGN_SECONDS: f64 = 2e-4;
/// Expected rate of a closed loop, in queries per second, only for the estimate of the duration.
const EXPECTED_RATE: f64 = 4000.0;

/// Parameters of the experiment. Each resolver resolves each kind of traffic in each combination of
/// the other lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Number of rounds. A round measures each combination once.
    pub rounds: Count,
    /// The resolvers.
    pub resolvers: Vec<Resolver>,
    /// Algorithm and denial mechanism of the zones below the top-level domain, or `unsigned`. With
    /// `nsec3+nsec5`, the zones are in a conservative transition to NSEC5.
    pub trees: Vec<Publication>,
    /// The levels of the tree that the algorithm signs.
    pub signers: Vec<Signers>,
    /// The server of the zones below the top-level domain. PowerDNS serves only white lies.
    pub zone_servers: Vec<ZoneServer>,
    /// Number of zones below the top-level domain.
    pub zones: Count,
    /// Number of names of each of these zones.
    pub names: Count,
    /// Who uses DNSSEC: the resolver, the clients, both, none.
    pub dnssec: Vec<DnssecUse>,
    /// Whether the resolvers answer from cached denial records (RFC 8198).
    pub aggressive: Vec<bool>,
    /// Whether this program uses experimental algorithms, among them those of zones with NSEC5.
    /// Other resolvers have none.
    pub experimental_algorithms: Vec<bool>,
    /// Kinds of traffic.
    pub traffic: Vec<Traffic>,
    /// File with the queries of `replayed` traffic: a name and a type on each line. Empty: none.
    pub query_file: PathBuf,
    /// Number of queries of each load of a closed loop, and of each interval. Cache hits are
    /// limited by `seconds` instead.
    pub queries: Count,
    /// Duration of each load with a rate or with cache hits only, in seconds; otherwise its maximum.
    pub seconds: Seconds,
    /// Offered rates, in queries per second; 0: a closed loop.
    pub rates: Vec<u32>,
    /// Numbers of outstanding queries.
    pub outstanding: Vec<Count>,
    /// Number of source sockets or connections of the clients.
    pub sockets: Count,
    /// Number of queries on a connection over TCP or TLS, after which the client opens another one;
    /// 0: no limit.
    pub queries_per_connection: u32,
    /// Simulated paths.
    pub paths: Vec<PathChoice>,
    /// Transports of the queries of clients.
    pub transports: Vec<ClientTransport>,
    /// UDP payload sizes of clients and resolver, in octets.
    pub udp_octets: Vec<Octets>,
    /// Size of the cache, in MiB.
    pub cache_mib: Count,
    /// Number of loads that follow each other with the same resolver. The load generator pauses
    /// only for a few milliseconds between them.
    pub intervals: Count,
    /// What happens at the start of an interval.
    pub events: Vec<Event>,
    /// The interval with the event, starting at 0.
    pub event_at: u32,
    /// Number of responses of each load whose flags are read.
    pub samples: Count,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            rounds: Count::of(3),
            resolvers: vec![Resolver::Nonesuch],
            trees: "ECDSAP256SHA256 nsec".parse().into_iter().collect(),
            signers: vec![Signers::All],
            zone_servers: vec![ZoneServer::Nonesuch],
            zones: Count::of(10),
            names: Count::of(1000),
            dnssec: vec![DnssecUse::On],
            aggressive: vec![false],
            experimental_algorithms: vec![true],
            traffic: vec![Traffic::Existing],
            query_file: PathBuf::new(),
            queries: Count::of(5000),
            seconds: Seconds::of(60.0),
            rates: vec![0],
            outstanding: vec![Count::of(100)],
            sockets: Count::of(4),
            queries_per_connection: 0,
            paths: vec![PathChoice::direct()],
            transports: vec![ClientTransport::Udp],
            udp_octets: vec![Octets::of(1232)],
            cache_mib: Count::of(64),
            intervals: Count::of(1),
            events: vec![Event::None],
            event_at: 0,
            samples: Count::of(1000),
        }
    }
}

/// Who uses DNSSEC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DnssecUse {
    /// Neither.
    Off,
    /// Clients set the DO flag, and the resolver does not validate.
    Do,
    /// The resolver validates, and clients do not set the DO flag.
    Validation,
    /// The resolver validates, and clients set the DO flag.
    On,
}

/// Transport of the queries of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientTransport {
    /// UDP, and TCP after a truncated response.
    Udp,
    /// TCP.
    Tcp,
    /// DNS over TLS (RFC 7858).
    Tls,
}

impl ClientTransport {
    /// The transport of the load generator.
    pub(super) const fn of_load(self) -> Transport {
        match self {
            Self::Udp => Transport::Udp,
            Self::Tcp => Transport::Tcp,
            Self::Tls => Transport::Tls,
        }
    }
}

impl fmt::Display for ClientTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
        })
    }
}

/// What happens to a resolver under load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Event {
    /// Nothing.
    None,
    /// It is stopped, and started again with an empty cache.
    Restart,
    /// All cached data are removed with the command of its operators. What it knows about servers
    /// stays, except in BIND.
    CacheFlush,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::None => "none",
            Self::Restart => "restart",
            Self::CacheFlush => "cache-flush",
        })
    }
}

/// The tree, its servers, and the path to them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Surroundings {
    pub(super) tree: TreeChoice,
    pub(super) zone_server: ZoneServer,
    pub(super) path: PathChoice,
}

/// The configuration of a resolver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ResolverCase {
    pub(super) resolver: Resolver,
    pub(super) dnssec: DnssecUse,
    pub(super) aggressive: bool,
    /// Whether it is this program with experimental algorithms.
    pub(super) experimental: bool,
    pub(super) udp_octets: u16,
}

impl ResolverCase {
    /// Whether the resolver validates.
    pub(super) const fn validates(&self) -> bool {
        matches!(self.dnssec, DnssecUse::Validation | DnssecUse::On)
    }

    /// Whether the queries of its clients have the DO flag.
    pub(super) const fn dnssec_ok(&self) -> bool {
        matches!(self.dnssec, DnssecUse::Do | DnssecUse::On)
    }
}

/// What clients send.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LoadCase {
    pub(super) traffic: Traffic,
    pub(super) transport: ClientTransport,
    pub(super) outstanding: u32,
    /// `None`: a closed loop.
    pub(super) rate: Option<f64>,
    pub(super) event: Event,
}

impl fmt::Display for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tree, zone_server, path } = self;
        let server = if *zone_server == ZoneServer::Powerdns { ", PowerDNS" } else { "" };
        write!(f, "{tree}{server}, {path}")
    }
}

impl fmt::Display for ResolverCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resolver, dnssec, aggressive, experimental, udp_octets } = self;
        let dnssec = match dnssec {
            DnssecUse::Off => "without DNSSEC",
            DnssecUse::Do => "DO",
            DnssecUse::Validation => "validation",
            DnssecUse::On => "validation and DO",
        };
        let aggressive = if *aggressive { ", aggressive denial" } else { "" };
        let is_old = *resolver == Resolver::Nonesuch && !experimental;
        let old = if is_old { " without experimental algorithms" } else { "" };
        write!(f, "{resolver}{old}, {dnssec}{aggressive}, {udp_octets} octets")
    }
}

impl Parameters {
    /// The zones that are queried.
    pub(super) fn queried_tree(&self) -> QueriedTree {
        QueriedTree { zones: self.zones.value().into(), names: self.names.value().into() }
    }

    /// Each tree with each server of its zones and each path.
    pub(super) fn surroundings(&self) -> Vec<Surroundings> {
        let mut all = Vec::new();
        for (publication, signers) in
            self.trees.iter().flat_map(|one| self.signers.iter().map(move |two| (one, two)))
        {
            let tree = TreeChoice { publication: publication.clone(), signers: *signers };
            for zone_server in self.zone_servers.iter().filter(|server| tree.can_be_served_by(**server)) {
                all.extend(self.paths.iter().map(|path| Surroundings {
                    tree: tree.clone(),
                    zone_server: *zone_server,
                    path: path.clone(),
                }));
            }
        }
        deduplicate(all)
    }

    /// The configurations of resolvers.
    pub(super) fn resolver_cases(&self) -> Vec<ResolverCase> {
        let mut cases = Vec::new();
        for (resolver, dnssec) in
            self.resolvers.iter().flat_map(|one| self.dnssec.iter().map(move |two| (one, two)))
        {
            for (aggressive, experimental) in self
                .aggressive
                .iter()
                .flat_map(|one| self.experimental_algorithms.iter().map(move |two| (one, two)))
            {
                cases.extend(self.udp_octets.iter().map(|octets| ResolverCase {
                    resolver: *resolver,
                    dnssec: *dnssec,
                    aggressive: *aggressive,
                    experimental: *experimental && *resolver == Resolver::Nonesuch,
                    udp_octets: octets.value(),
                }));
            }
        }
        deduplicate(cases)
    }

    /// The loads. Each is for a resolver with an empty cache.
    pub(super) fn load_cases(&self) -> Vec<LoadCase> {
        let mut cases = Vec::new();
        for (traffic, transport) in
            self.traffic.iter().flat_map(|one| self.transports.iter().map(move |two| (one, two)))
        {
            for (outstanding, event) in
                self.outstanding.iter().flat_map(|one| self.events.iter().map(move |two| (one, two)))
            {
                cases.extend(self.rates.iter().map(|rate| LoadCase {
                    traffic: *traffic,
                    transport: *transport,
                    outstanding: outstanding.value(),
                    rate: Some(f64::from(*rate)).filter(|rate| *rate > 0.0),
                    event: *event,
                }));
            }
        }
        deduplicate(cases)
    }

    /// Number of queries of a load; with a rate, those of its duration; one for each zone if the
    /// queries are for their keys.
    pub(super) fn queries_of(&self, load: &LoadCase) -> u64 {
        if load.traffic == Traffic::Dnskey {
            return self.zones.value().into();
        }
        load.rate
            .map_or_else(|| self.queries.value().into(), |rate| (rate * self.seconds.value()).ceil() as u64)
    }

    /// Returns the approximate duration.
    pub fn duration(&self) -> Duration {
        let loads = self.load_cases();
        let round_trips = self.paths.iter().filter_map(|path| path.properties()).map(|(rtt, _)| rtt);
        let mean_round_trip = round_trips.sum::<f64>() / 1000.0 / self.paths.len().max(1) as f64;
        let of_load = |load: &LoadCase| {
            if load.rate.is_some() || load.traffic.repeats() {
                return self.seconds.value();
            }
            let queries = f64::from(self.queries.value());
            let waiting = queries * mean_round_trip / f64::from(load.outstanding);
            (queries / EXPECTED_RATE + waiting).min(self.seconds.value())
        };
        let loads: f64 =
            loads.iter().map(|load| of_load(load) * f64::from(self.intervals.value()) + START_SECONDS).sum();
        let surroundings = self.surroundings().len() as f64;
        let measured = f64::from(self.rounds.value())
            * surroundings
            * (self.resolver_cases().len() as f64 * loads + START_SECONDS);
        let trees = (self.trees.len() * self.signers.len()) as f64;
        let signed = trees * self.queried_tree().total() as f64 * SIGN_SECONDS;
        Duration::try_from_secs_f64(measured + signed).unwrap_or(Duration::MAX)
    }
}

impl TreeChoice {
    /// Algorithm and key length for the data; `None` for an unsigned zone.
    pub(super) fn scheme(&self) -> Option<String> {
        self.publication.combination.algorithms.0.first().map(AlgorithmChoice::scheme)
    }
}
