//! What the items of `check resolver` have in common: the client, the servers, and the expected results.

use super::super::authority::{Authority, AuthorityError, Observation};
use super::super::zones::{Addresses, Role, ZoneOptions};
use super::super::{CheckClient, Evidence, Query, QueryFault, Response, Transport};
use super::program::{Program, ProgramOptions};
use super::rollover;
use super::sizes::payloads;
use crate::measure::server::ServerError;
use crate::peers::PeerError;
use crate::tree::{Expectation, Tree, TreeError};
use nonesuch_proto::message::{Rcode, flags};
use nonesuch_proto::{Name, Rtype};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Who sends the queries that the servers of the check receive.
const SENDER: &str = "resolver";
/// Letters of the label of a run.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Octets of the label of a run.
const RUN_OCTETS: usize = 6;
/// Maximum number of attempts of a query: a resolver may take longer than a client waits.
const ATTEMPTS: u32 = 4;

/// What determines a check of a resolver.
#[derive(Clone, Debug)]
pub struct ResolverOptions {
    /// The resolver.
    pub target: Target,
    /// Time limit for each response.
    pub timeout: Duration,
    /// Where the servers of the check listen.
    pub place: Place,
    /// The seed of the keys of the zones.
    pub seed: u64,
    /// The present time, in seconds since 1970.
    pub now: u64,
}

/// The resolver that is checked.
#[derive(Clone, Debug)]
pub enum Target {
    /// A running one.
    Running(SocketAddr),
    /// One that the check starts.
    Program(ProgramOptions),
}

/// Where the servers of the check listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A tree of its own, with a root, on loopback addresses.
    Local {
        /// The address of the root server. The others follow it.
        root: Ipv4Addr,
        /// The port of all servers.
        port: u16,
    },
    /// A domain that is delegated from a parent outside the check.
    Delegated {
        /// The domain.
        zone: Name,
        /// The addresses of its servers.
        listen: Vec<Ipv4Addr>,
        /// The port of all servers.
        port: u16,
    },
}

/// Why a check does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The zones cannot be built.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The servers cannot be started.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The system has no random octets.
    #[error("no random octets: {0}")]
    Random(getrandom::Error),
    /// A file or directory of a resolver that the check starts cannot be written.
    #[error("cannot start the resolver: {0}")]
    Directory(std::io::Error),
    /// A resolver of another project cannot be started.
    #[error(transparent)]
    Peer(#[from] PeerError),
    /// `nonesuch resolve` cannot be started.
    #[error("nonesuch resolve: {0}")]
    Nonesuch(ServerError),
    /// The resolver does not answer with a moved clock. The text is the end of its output.
    #[error(
        "the resolver does not find the root secure with the configured key and libfaketime; its output: {0}"
    )]
    MovedClock(String),
    /// The resolver does not answer.
    #[error("{server}: {source}")]
    Silent {
        /// The resolver.
        server: SocketAddr,
        /// What happened to the first query.
        source: QueryFault,
    },
    /// The resolver does not query the servers of the check.
    #[error(
        "{0}: the resolver does not query the servers of the check: configure it with the files of --write-configuration, or delegate a domain with --delegated"
    )]
    NotUsed(SocketAddr),
    /// The resolver queries the root of the check, and not the servers below.
    #[error(
        "{0}: the resolver queries the root of the check, and not the servers of its zones: Knot Resolver ignores loopback addresses in delegations, so use --tree-address 198.18.0.1 in a network namespace (docs/check-resolver.md)"
    )]
    NotFollowed(SocketAddr),
}

/// The zones of a check at a place, for the label `run` and the addresses of run number `number`.
pub(in crate::check) fn zone_options(options: &ResolverOptions, run: &str, number: u8) -> ZoneOptions {
    let (suffix, addresses, port) = match &options.place {
        Place::Local { root, port } => (local_suffix(), Addresses::loopback(*root, number), *port),
        Place::Delegated { zone, listen, port } => (zone.clone(), Addresses::delegated(listen), *port),
    };
    // Times are modulo 2^32 (RFC 4034 §3.1.5).
    ZoneOptions { suffix, run: run.to_owned(), addresses, port, seed: options.seed, now: options.now as u32 }
}

/// The domain of a check with a tree of its own.
fn local_suffix() -> Name {
    Name::prepend(b"check", Name::root().view()).unwrap_or_else(|_| Name::root())
}

/// A check of a resolver, with its running servers.
#[derive(Debug)]
pub struct ResolverCheck {
    client: CheckClient,
    /// The resolver that the check has started.
    program: Option<(ProgramOptions, Program)>,
    authority: Authority,
    zones: ZoneOptions,
    expectations: Vec<Expectation>,
    /// Number of the observations that items have seen.
    seen: usize,
    /// Number of fresh names.
    names: u32,
    /// The UDP payload size in the last response with EDNS.
    announced: Option<u16>,
    /// The results of the roll of the key of a root, once it has run.
    rollover: Option<Result<rollover::Results, String>>,
}

/// A query of the check, and what the servers saw meanwhile.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) response: Result<Response, QueryFault>,
    /// The queries of the resolver.
    pub(super) upstream: Vec<Observation>,
}

/// What a client sees of a security status (RFC 4035 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// AD is set.
    Secure,
    /// AD is clear.
    Insecure,
    /// SERVFAIL.
    Fails,
}

impl Status {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Secure => "secure (AD=1)",
            Self::Insecure => "insecure (AD=0)",
            Self::Fails => "SERVFAIL",
        }
    }
}

impl Asked {
    /// The status, or the fault of the exchange.
    pub(super) fn status(&self) -> Result<Status, String> {
        let response = self.response.as_ref().map_err(ToString::to_string)?;
        let has_ad = response.has(flags::AD);
        Ok(match response.message.rcode() {
            Rcode::SERVFAIL => Status::Fails,
            _ if has_ad => Status::Secure,
            _ => Status::Insecure,
        })
    }

    /// The response.
    pub(super) fn ok(&self) -> Result<&Response, String> {
        self.response.as_ref().map_err(ToString::to_string)
    }
}

impl ResolverCheck {
    /// Builds the zones and starts the servers.
    ///
    /// # Errors
    /// The zones cannot be built, or the servers cannot be started.
    pub fn start(options: &ResolverOptions) -> Result<Self, StartError> {
        let mut check = Self::prepare(options)?;
        check.probe()?;
        Ok(check)
    }

    /// As [`ResolverCheck::start`], without a query to the resolver.
    pub(super) fn prepare(options: &ResolverOptions) -> Result<Self, StartError> {
        let mut random = [0; RUN_OCTETS + 1];
        getrandom::fill(&mut random).map_err(StartError::Random)?;
        let (number, letters) = random.split_first().unwrap_or((&1, &[]));
        let run: String =
            letters.iter().map(|octet| char::from(LETTERS[usize::from(*octet) % LETTERS.len()])).collect();
        // A label that begins with a digit would be unusual.
        let zones = zone_options(options, &format!("r{run}"), (*number).clamp(1, 250));
        let content = zones.build()?;
        let expectations = content.tree.expectations();
        let authority = Authority::start(content)?;
        let (server, program) = match &options.target {
            Target::Running(server) => (*server, None),
            Target::Program(program) => {
                let started = Program::start(program, &zones, authority.tree())?;
                (started.address, Some((program.clone(), started)))
            }
        };
        let client = CheckClient { server, timeout: options.timeout, attempts: ATTEMPTS };
        let (seen, names, announced, rollover) = (0, 0, None, None);
        Ok(Self { client, program, authority, zones, expectations, seen, names, announced, rollover })
    }

    /// The resolver must find the domain of the run at the servers of the check.
    fn probe(&mut self) -> Result<(), StartError> {
        let server = self.client.server;
        let domain = self.domain();
        let asked = self.lookup(&mut Evidence::default(), &domain, Rtype::SOA);
        let is_queried = asked.upstream.iter().any(|seen| seen.is_for(&domain));
        match asked.response {
            Err(source) => Err(StartError::Silent { server, source }),
            Ok(_) if asked.upstream.is_empty() => Err(StartError::NotUsed(server)),
            Ok(_) if !is_queried => Err(StartError::NotFollowed(server)),
            Ok(_) => Ok(()),
        }
    }

    /// What the check observed of the resolver.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        let (count, observations) = self.authority.observations_from(0);
        let payloads = payloads(&observations);
        let range = payloads.iter().min().zip(payloads.iter().max());
        let range = range.map(|(smallest, largest)| match smallest == largest {
            true => smallest.to_string(),
            false => format!("{smallest} to {largest}"),
        });
        let over_tcp = observations.iter().filter(|seen| seen.transport == Transport::Tcp).count();
        let fact = |name: &str, value: String| (name.to_owned(), value);
        vec![
            fact("domain of the run", self.zones.domain()),
            fact(
                "announced to clients (octets)",
                self.announced.map_or_else(|| "no EDNS".to_owned(), |size| size.to_string()),
            ),
            fact("announced to servers (octets)", range.unwrap_or_else(|| "no EDNS".to_owned())),
            fact("queries of the resolver", count.to_string()),
            fact("of these over TCP", over_tcp.to_string()),
        ]
    }

    /// Whether the check has a root of its own.
    pub(super) fn has_root(&self) -> bool {
        self.zones.addresses.has_root()
    }

    /// The resolver.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.client.server
    }

    /// The results of the roll of the key of a root, which runs once. An error is the reason why it cannot be
    /// tested.
    pub(super) fn rollover(&mut self, evidence: &mut Evidence) -> Result<rollover::Results, String> {
        if self.rollover.is_none() {
            let results = rollover::requirement(self.program.as_ref().map(|(program, _)| program));
            let results = results.and_then(|(program, library)| {
                let place = (self.zones.addresses.of(Role::Unreachable), self.zones.port);
                let run =
                    rollover::run(program, &library, place, (self.zones.seed, self.zones.now), evidence);
                run.map_err(|fault| fault.to_string())
            });
            self.rollover = Some(results);
        } else {
            evidence.notes.push("the messages are those of the first item of RFC 5011".to_owned());
        }
        self.rollover.clone().unwrap_or_else(|| Err("it did not run".to_owned()))
    }

    /// Checks this resolver from now on, with one attempt of each query.
    #[cfg(test)]
    pub(super) const fn set_server(&mut self, server: SocketAddr) {
        self.client.server = server;
        self.client.attempts = 1;
    }

    /// The client.
    pub(super) const fn client(&self) -> &CheckClient {
        &self.client
    }

    /// The zones.
    pub(super) fn tree(&self) -> &Tree {
        self.authority.tree()
    }

    pub(super) const fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The questions about the zones with their expected results.
    pub(super) fn expectations(&self) -> &[Expectation] {
        &self.expectations
    }

    /// Whether servers with this part have an address of their own.
    pub(super) fn is_separate(&self, role: Role) -> bool {
        self.zones.addresses.is_separate(role)
    }

    /// A name below the domain of the run. `relative` is without a final dot.
    pub(super) fn name(&self, relative: &str) -> Name {
        // The names of the items fit: `ResolverCheck::start` has built the zones.
        format!("{relative}.{}", self.zones.domain()).parse().unwrap_or_else(|_| Name::root())
    }

    /// The domain of the run.
    pub(super) fn domain(&self) -> Name {
        self.zones.domain().parse().unwrap_or_else(|_| Name::root())
    }

    /// A name of the domain of the check, above that of the run.
    pub(super) fn constant_name(&self, relative: &str) -> Name {
        format!("{relative}.{}", self.zones.suffix).parse().unwrap_or_else(|_| Name::root())
    }

    /// The label of the run.
    pub(super) fn run(&self) -> &str {
        &self.zones.run
    }

    /// A label that no item has used.
    pub(super) fn fresh_label(&mut self) -> String {
        self.names += 1;
        format!("new{}", self.names)
    }

    /// Sends a query over UDP, and over TCP after TC.
    pub(super) fn ask(&mut self, evidence: &mut Evidence, query: &Query) -> Asked {
        self.observe(evidence, |client, evidence| client.ask(evidence, query))
    }

    /// Sends a query for a name with RD, DO and the payload size 1,232.
    pub(super) fn lookup(&mut self, evidence: &mut Evidence, name: &Name, rtype: Rtype) -> Asked {
        self.ask(evidence, &lookup(name, rtype))
    }

    /// Runs an exchange, and adds the queries of the resolver to the evidence.
    pub(super) fn observe(
        &mut self,
        evidence: &mut Evidence,
        exchange: impl FnOnce(&CheckClient, &mut Evidence) -> Result<Response, QueryFault>,
    ) -> Asked {
        // Queries that belong to earlier items, such as late repetitions, are not part of this one.
        (self.seen, _) = self.authority.observations_from(self.seen);
        let response = exchange(&self.client, evidence);
        let opt = response.as_ref().ok().and_then(|response| response.message.opt());
        self.announced = opt.map(|opt| opt.class.0).or(self.announced);
        let upstream = self.new_observations(evidence);
        Asked { response, upstream }
    }

    /// The queries of the resolver since the last call, which become part of the evidence.
    pub(super) fn new_observations(&mut self, evidence: &mut Evidence) -> Vec<Observation> {
        let (seen, upstream) = self.authority.observations_from(self.seen);
        self.seen = seen;
        upstream.iter().for_each(|observation| evidence.push(observation.clone().into_exchange(SENDER)));
        upstream
    }

    /// Asks a question, and compares its status.
    pub(super) fn expect(
        &mut self,
        evidence: &mut Evidence,
        (name, rtype): (&Name, Rtype),
        rcode: Rcode,
        expected: Status,
    ) -> Result<(), String> {
        let asked = self.lookup(evidence, name, rtype);
        let found = asked.status().map_err(|fault| format!("{name} {rtype}: {fault}"))?;
        let found_rcode = asked.ok()?.message.rcode();
        if found != expected {
            return Err(format!(
                "{name} {rtype}: expected {}, observed {}",
                expected.name(),
                describe(found, found_rcode)
            ));
        }
        if found != Status::Fails && found_rcode != rcode {
            return Err(format!(
                "{name} {rtype}: expected RCODE {}, observed {}",
                rcode_name(rcode),
                rcode_name(found_rcode)
            ));
        }
        Ok(())
    }
}

/// A status with the RCODE, if it is unusual.
pub(super) fn describe(status: Status, rcode: Rcode) -> String {
    match (status, rcode) {
        (Status::Fails, _) | (_, Rcode::NOERROR | Rcode::NXDOMAIN) => status.name().to_owned(),
        (_, rcode) => format!("RCODE {}", rcode_name(rcode)),
    }
}

/// The mnemonic of an RCODE.
pub(super) fn rcode_name(rcode: Rcode) -> String {
    rcode.to_string()
}

/// A query with RD, DO and the payload size 1,232.
pub(super) fn lookup(name: &Name, rtype: Rtype) -> Query {
    Query::new(name.clone(), rtype).with_flags(flags::RD)
}
