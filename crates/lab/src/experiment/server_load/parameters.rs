//! Parameters of experiments with loaded servers.

use super::queries::QueryKind;
use crate::experiment::parameters::{Count, Octets, Seconds, Workers, deduplicate};
use crate::generate::ZoneModel;
use crate::measure::AlgorithmChoice;
use crate::measure::subject::{AlgorithmChoiceError, serde_as_text};
use crate::measure::zone_choice::ZoneChoice;
use crate::peers::{OnlineDenial, Peer, PeerRole};
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::VrfAlgorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::{DenialGeneration, NameHash, UnknownMechanism};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Name of this program in parameters and data.
const NONESUCH: &str = "nonesuch";
/// Name of a zone without DNSSEC in parameters.
const UNSIGNED: &str = "unsigned";
/// Assumed rate of a load with `query-limit`, in queries per second; only for the estimate of the
/// duration.
const EXPECTED_RATE: f64 = 5000.0;

/// Expected time to start a server and to validate samples of its responses, in seconds.
const START_SECONDS: f64 = 0.7;

/// Expected time to generate, sign and verify a zone, for each name, in seconds.
const PREPARATION_SECONDS: f64 = 2e-4;

/// Parameters of the experiment. Each server serves each zone with each combination of algorithms
/// and denial mechanism, and is loaded with each kind of query and each UDP payload size at each
/// rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Number of rounds. A round loads each server once with each kind of query and each UDP
    /// payload size at each rate.
    pub rounds: Count,
    /// Duration of each load, in seconds.
    pub seconds: Seconds,
    /// Maximum number of queries of each load; 0: only the duration limits it.
    pub query_limit: u32,
    /// The zones.
    pub zones: Vec<ZoneChoice>,
    /// The servers.
    pub servers: Vec<ServerChoice>,
    /// Algorithms of the signatures. Several algorithms joined with `+` sign together.
    pub algorithms: Vec<AlgorithmSet>,
    /// Denial mechanisms, or `unsigned`.
    pub denial: Vec<DenialChoice>,
    /// Combinations of algorithms and denial mechanism, instead of all combinations of `algorithms`
    /// and `denial`; empty: all.
    pub combinations: Vec<Combination>,
    /// Numbers of additional iterations of NSEC3.
    pub iterations: Vec<u16>,
    /// Kinds of queries.
    pub queries: Vec<QueryKind>,
    /// Offered rates, in queries per second; 0: a closed loop, which sends a query for each
    /// response or loss.
    pub rates: Vec<u32>,
    /// Maximum number of outstanding queries.
    pub outstanding: Count,
    /// Number of source sockets.
    pub sockets: Count,
    /// Number of workers of each server.
    pub workers: Workers,
    /// Maximum size of UDP responses, in octets, set in each server; also the UDP payload size of
    /// the queries for validation.
    pub udp_octets: Octets,
    /// UDP payload sizes of the queries in the loads, in octets; default: `udp-octets`.
    pub payloads: Vec<Octets>,
    /// Whether to compose the responses of a conservative transition from NSEC3 to NSEC5 (*Making
    /// NSEC5 Practical for DNSSEC*, IACR ePrint 2017/099 §9.1): the zone has NSEC3 and NSEC5 at the
    /// same time, for old and new resolvers. Each zone with NSEC3 (without opt-out) and one
    /// algorithm that this program serves is then also served with NSEC5.
    pub conservative_nsec5: bool,
    /// Whether to enable the metrics of Nonesuch and CoreDNS, and to read their counters of online
    /// signing before and after each load.
    pub online_counters: bool,
    /// Maximum number of responses of each server to each kind of query that are validated.
    pub samples: Count,
}

impl Default for Parameters {
    fn default() -> Self {
        let p256 = AlgorithmChoice { algorithm: Algorithm::ECDSAP256SHA256, bits: None };
        Self {
            rounds: Count::of(3),
            seconds: Seconds::of(0.5),
            query_limit: 0,
            zones: vec![ZoneChoice::Like { like: ZoneModel::Sld, names: 1000 }],
            servers: vec![ServerChoice::Nonesuch],
            algorithms: vec![AlgorithmSet(vec![p256])],
            denial: vec![DenialChoice(Some(Mechanism::Nsec)), DenialChoice(Some(Mechanism::Nsec3))],
            combinations: Vec::new(),
            iterations: vec![0],
            queries: vec![QueryKind::Existing, QueryKind::Denied],
            rates: vec![0],
            outstanding: Count::of(128),
            sockets: Count::of(1),
            workers: Workers::of(1),
            udp_octets: Octets::of(1232),
            payloads: Vec::new(),
            conservative_nsec5: false,
            online_counters: false,
            samples: Count::of(32),
        }
    }
}

impl Parameters {
    /// Returns the approximate duration: the loads, and the preparation of the zones.
    pub fn duration(&self) -> Duration {
        let subjects = self.subjects().len() as f64;
        let loads =
            self.queries.len() * self.rates.len() * self.payloads.len().max(1) * self.rounds.value() as usize;
        let limited = match self.query_limit {
            0 => f64::INFINITY,
            limit => f64::from(limit) / EXPECTED_RATE,
        };
        let load = self.seconds.value().min(limited) + super::WARM_UP_SECONDS;
        let names = |zone: &ZoneChoice| if let ZoneChoice::Like { names, .. } = zone { *names } else { 0 };
        let names = self.zones.iter().map(names).sum::<u64>() as f64 / self.zones.len().max(1) as f64;
        let seconds = subjects * (loads as f64 * load + START_SECONDS + names * PREPARATION_SECONDS);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Returns the subjects that are possible, without duplicates, in the order of the parameters.
    pub(super) fn subjects(&self) -> Vec<SubjectChoice> {
        let mut subjects = Vec::new();
        for (zone, server) in
            self.zones.iter().flat_map(|zone| self.servers.iter().map(move |server| (zone, *server)))
        {
            for Combination { algorithms, denial } in self.combinations() {
                let has_iterations = matches!(denial.0, Some(Mechanism::Nsec3 | Mechanism::Nsec3OptOut));
                let iterations = if has_iterations { self.iterations.clone() } else { vec![0] };
                if server.serves(denial) {
                    subjects.extend(iterations.iter().map(|iterations| SubjectChoice {
                        zone: zone.clone(),
                        server,
                        algorithms: algorithms.clone(),
                        denial,
                        iterations: *iterations,
                    }));
                }
            }
        }
        if self.conservative_nsec5 {
            let with_nsec5: Vec<_> = subjects.iter().filter_map(SubjectChoice::with_nsec5).collect();
            subjects.extend(with_nsec5);
        }
        deduplicate(subjects)
    }

    /// Returns the combinations of algorithms and denial mechanism.
    fn combinations(&self) -> Vec<Combination> {
        if !self.combinations.is_empty() {
            return self.combinations.clone();
        }
        let of = |denial: &DenialChoice| {
            let denial = *denial;
            let algorithms =
                if denial.0.is_some() { self.algorithms.clone() } else { vec![AlgorithmSet(Vec::new())] };
            algorithms.into_iter().map(move |algorithms| Combination { algorithms, denial })
        };
        self.denial.iter().flat_map(of).collect()
    }

    /// Returns the UDP payload sizes of the queries in the loads, in octets.
    pub(super) fn payloads(&self) -> &[Octets] {
        if self.payloads.is_empty() { std::slice::from_ref(&self.udp_octets) } else { &self.payloads }
    }

    /// Returns `list` with each payload size and each rate in queries per second (`None`: closed
    /// loop).
    pub(super) fn loads_of<T: Copy>(&self, list: T) -> impl Iterator<Item = (T, u16, Option<f64>)> {
        let offered = |rate: &u32| Some(f64::from(*rate)).filter(|rate| *rate > 0.0);
        self.payloads().iter().flat_map(move |payload| {
            self.rates.iter().map(move |rate| (list, payload.value(), offered(rate)))
        })
    }
}

/// A server, and the zone that it serves.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SubjectChoice {
    pub(super) zone: ZoneChoice,
    pub(super) server: ServerChoice,
    /// Empty for an unsigned zone.
    pub(super) algorithms: AlgorithmSet,
    pub(super) denial: DenialChoice,
    pub(super) iterations: u16,
}

impl SubjectChoice {
    /// Returns the VRF of an NSEC5 chain: that of the same kind as the first algorithm, as in ePrint
    /// 2017/099 §7, otherwise that on P-256.
    pub(super) fn vrf(&self) -> VrfAlgorithm {
        match self.algorithms.0.first().map(|choice| choice.algorithm) {
            Some(Algorithm::RSASHA256 | Algorithm::RSASHA512) => VrfAlgorithm::RSA_FDH_SHA256,
            Some(Algorithm::ED25519) => VrfAlgorithm::EDWARDS25519_SHA512_TAI,
            _ => VrfAlgorithm::P256_SHA256_TAI,
        }
    }

    /// Returns the same zone with NSEC5, if this is an NSEC3 zone with one algorithm that this
    /// program serves.
    pub(super) fn with_nsec5(&self) -> Option<Self> {
        let is_in_pair = self.server == ServerChoice::Nonesuch
            && self.denial.0 == Some(Mechanism::Nsec3)
            && self.algorithms.0.len() == 1;
        let denial = DenialChoice(Some(Mechanism::Nsec5));
        is_in_pair.then(|| Self { denial, iterations: 0, ..self.clone() })
    }

    /// Describes the zone: its source, algorithms and denial mechanism.
    pub(super) fn zone_description(&self) -> String {
        let Self { zone, algorithms, denial, iterations, .. } = self;
        let space = if algorithms.0.is_empty() { "" } else { " " };
        let iterations = if *iterations > 0 { format!(", {iterations} iterations") } else { String::new() };
        format!("{zone}, {algorithms}{space}{denial}{iterations}")
    }
}

impl fmt::Display for SubjectChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.server, self.zone_description())
    }
}

/// A server: this program, or an authoritative peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ServerChoice {
    /// `nonesuch serve`.
    Nonesuch,
    /// Another server.
    Peer(Peer),
}

impl ServerChoice {
    /// Whether the server can serve a zone in this way.
    fn serves(self, denial: DenialChoice) -> bool {
        let (Self::Peer(peer), Some(mechanism)) = (self, denial.0) else { return true };
        if mechanism.generation() == DenialGeneration::Online {
            return online_denial(mechanism).is_some_and(|denial| peer.info().online.contains(&denial));
        }
        mechanism.name_hash() != NameHash::Vrf
    }
}

/// Returns the online denial that corresponds to `mechanism`; `None` if no peer implements it.
pub(super) const fn online_denial(mechanism: Mechanism) -> Option<OnlineDenial> {
    match mechanism {
        Mechanism::Compact => Some(OnlineDenial::Compact),
        Mechanism::WhiteLies => Some(OnlineDenial::WhiteLies),
        _ => None,
    }
}

/// The text is not the name of a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an authoritative server: write nonesuch or a name that `nonesuch lab list` shows")]
pub struct ServerNameError(String);

impl FromStr for ServerChoice {
    type Err = ServerNameError;

    fn from_str(text: &str) -> Result<Self, ServerNameError> {
        let is_named = |peer: &Peer| peer.info().name == text && peer.info().role == PeerRole::Authoritative;
        let peer = || Peer::all().find(is_named).map(Self::Peer);
        let found = if text == NONESUCH { Some(Self::Nonesuch) } else { peer() };
        found.ok_or_else(|| ServerNameError(text.to_owned()))
    }
}

impl fmt::Display for ServerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nonesuch => NONESUCH,
            Self::Peer(peer) => peer.info().name,
        })
    }
}

/// Algorithms that sign a zone together, as during an algorithm rollover (RFC 6781 §4.1.4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AlgorithmSet(pub(in crate::experiment) Vec<AlgorithmChoice>);

impl AlgorithmSet {
    /// Returns the schemes for the data; `None` without algorithms.
    pub(in crate::experiment) fn schemes(&self) -> Option<String> {
        let schemes: Vec<String> = self.0.iter().map(AlgorithmChoice::scheme).collect();
        Some(schemes.join(" + ")).filter(|schemes| !schemes.is_empty())
    }
}

impl FromStr for AlgorithmSet {
    type Err = AlgorithmChoiceError;

    fn from_str(text: &str) -> Result<Self, AlgorithmChoiceError> {
        let choices =
            text.split('+').map(|part| Ok(part.trim().parse::<AlgorithmChoice>()?.with_default_key_length()));
        Ok(Self(choices.collect::<Result<_, AlgorithmChoiceError>>()?))
    }
}

impl fmt::Display for AlgorithmSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.0.iter().map(AlgorithmChoice::to_string).collect();
        f.pad(&names.join("+"))
    }
}

/// A denial mechanism; `None` for an unsigned zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DenialChoice(pub(in crate::experiment) Option<Mechanism>);

impl FromStr for DenialChoice {
    type Err = UnknownMechanism;

    fn from_str(text: &str) -> Result<Self, UnknownMechanism> {
        if text == UNSIGNED { Ok(Self(None)) } else { Ok(Self(Some(text.parse()?))) }
    }
}

impl fmt::Display for DenialChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(mechanism) => mechanism.fmt(f),
            None => f.pad(UNSIGNED),
        }
    }
}

/// A combination of algorithms and denial mechanism: `ECDSAP256SHA256 nsec5`, or `unsigned`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Combination {
    /// Empty for an unsigned zone.
    pub(in crate::experiment) algorithms: AlgorithmSet,
    pub(in crate::experiment) denial: DenialChoice,
}

/// The text is not a combination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a combination: write algorithms and denial mechanism with a space between them, for example ECDSAP256SHA256 nsec5, or unsigned"
)]
pub struct CombinationError(String);

impl FromStr for Combination {
    type Err = CombinationError;

    fn from_str(text: &str) -> Result<Self, CombinationError> {
        let wrong = || CombinationError(text.to_owned());
        if text == UNSIGNED {
            return Ok(Self { algorithms: AlgorithmSet(Vec::new()), denial: DenialChoice(None) });
        }
        let (algorithms, mechanism) = text.split_once(' ').ok_or_else(wrong)?;
        let algorithms = algorithms.parse().map_err(|_| wrong())?;
        let mechanism = mechanism.trim().parse().map_err(|_| wrong())?;
        Ok(Self { algorithms, denial: DenialChoice(Some(mechanism)) })
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.algorithms.0.is_empty() { "" } else { " " };
        f.pad(&format!("{}{space}{}", self.algorithms, self.denial))
    }
}

serde_as_text!(ServerNameError: ServerChoice);
serde_as_text!(AlgorithmChoiceError: AlgorithmSet);
serde_as_text!(UnknownMechanism: DenialChoice);
serde_as_text!(CombinationError: Combination);
