//! What the items of `check proxy` have in common: the client, and the resolver behind the proxy.

use super::super::authority::Observation;
use super::super::{CheckClient, Evidence, Query, Response, Transport};
use super::start::{
    ProxyCheckError, ProxyCheckOptions, ProxyTarget, RESOLVER, RunningProxy, at, direct_network,
    linked_network,
};
use super::upstream::Upstream;
use crate::query::random_id;
use crate::testbed::{Network, PlacedLink, Site};
use nonesuch_proto::message::{Message, flags};
use nonesuch_proto::{Name, Rtype};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Who sends the queries that the resolver of the check receives.
const SENDER: &str = "proxy";
/// Number of attempts of the first query.
const PROBES: u32 = 3;
/// Time limit for a program to answer the first query.
const READY_LIMIT: Duration = Duration::from_secs(10);
/// Pause between first queries to a program.
const PAUSE: Duration = Duration::from_millis(20);
/// Time limit for a response that the path drops.
const SILENCE: Duration = Duration::from_millis(200);

/// A check of a proxy, with its running resolver.
#[derive(Debug)]
pub struct ProxyCheck {
    options: ProxyCheckOptions,
    client: CheckClient,
    upstream: Upstream,
    /// Before the resolver stops.
    proxy: RunningProxy,
    /// `None`: the parts use the network of this process.
    network: Option<Network>,
    /// The label of the run.
    run: String,
    names: u32,
    seen: usize,
}

/// A message of the check, and what the resolver behind the proxy saw.
#[derive(Debug)]
pub(super) struct Passed {
    /// The octets that the client sent.
    pub(super) sent: Vec<u8>,
    /// The octets that the client received.
    pub(super) received: Result<Vec<u8>, String>,
    /// Whether the client waited for the whole time limit.
    pub(super) is_timeout: bool,
    /// The queries that arrived behind the proxy.
    pub(super) upstream: Vec<Observation>,
}

impl Passed {
    /// The response of the proxy.
    pub(super) fn response(&self) -> Result<Response, String> {
        let octets = self.received.clone()?;
        let message = Message::parse(&octets).map_err(|fault| format!("malformed response: {fault}"))?;
        Ok(Response { message, octets })
    }

    /// The query as it arrived behind the proxy.
    pub(super) fn forwarded(&self) -> Result<&Observation, String> {
        self.upstream.last().ok_or_else(|| "the query did not arrive behind the proxy".to_owned())
    }

    /// The query arrived unchanged, and so did the response, except for the ID (RFC 5625 §3).
    pub(super) fn is_unchanged(&self) -> Result<(), String> {
        let forwarded = self.forwarded()?;
        if let Some(difference) = difference(&self.sent, &forwarded.query) {
            return Err(format!("the query was changed: {difference}"));
        }
        let received = self.received.as_ref().map_err(Clone::clone)?;
        let sent = forwarded.reply.as_ref().ok_or("the resolver of the check did not answer")?;
        match difference(sent, received) {
            Some(difference) => Err(format!("the response was changed: {difference}")),
            None => Ok(()),
        }
    }
}

/// How two messages differ except for the ID; `None` if they are equal.
fn difference(before: &[u8], after: &[u8]) -> Option<String> {
    let (before, after) = (before.get(2..).unwrap_or_default(), after.get(2..).unwrap_or_default());
    if before == after {
        return None;
    }
    if before.len() != after.len() {
        return Some(format!("{} octets became {}", before.len() + 2, after.len() + 2));
    }
    let at = before.iter().zip(after).position(|(a, b)| a != b)?;
    Some(format!("octet {} was 0x{:02x} and became 0x{:02x}", at + 2, before[at], after[at]))
}

impl ProxyCheck {
    /// Starts the resolver of the check, and the proxy unless it is running.
    ///
    /// # Errors
    /// They cannot be started, or a first query does not pass the proxy.
    pub fn start(options: &ProxyCheckOptions) -> Result<Self, ProxyCheckError> {
        let network = match options.target {
            ProxyTarget::Program(_) => Some(direct_network()?),
            ProxyTarget::Own(_) | ProxyTarget::Running(_) => None,
        };
        Self::start_in(network, options, Transport::Udp)
    }

    /// Starts another check of the same proxy, over a path.
    pub(super) fn start_over(&self, path: &PlacedLink, probe: Transport) -> Result<Self, ProxyCheckError> {
        if let ProxyTarget::Running(proxy) = self.options.target {
            return Err(ProxyCheckError::NoPath { proxy });
        }
        Self::start_in(Some(linked_network(path)?), &self.options, probe)
    }

    /// Starts all parts in a network. The first query has the transport `probe`.
    fn start_in(
        network: Option<Network>,
        options: &ProxyCheckOptions,
        probe: Transport,
    ) -> Result<Self, ProxyCheckError> {
        let listen = network.as_ref().map_or(options.upstream, |_| RESOLVER);
        let upstream = at(network.as_ref(), Site::Servers, || Upstream::start(listen))?
            .map_err(|source| ProxyCheckError::Listen { address: listen, source })?;
        let proxy = RunningProxy::start(options, network.as_ref(), upstream.address)?;
        let client = CheckClient { server: proxy.address, timeout: options.timeout, attempts: 1 };
        let run = format!("r{:05}", random_id().map_err(ProxyCheckError::Random)?);
        let options = options.clone();
        let mut check = Self { options, client, upstream, proxy, network, run, names: 0, seen: 0 };
        check.probe(probe)?;
        Ok(check)
    }

    /// A small query without EDNS must pass.
    fn probe(&mut self, transport: Transport) -> Result<(), ProxyCheckError> {
        let mut attempts = 0;
        let deadline = Instant::now() + READY_LIMIT;
        loop {
            let query = self.query("probe", Rtype::A).without_edns();
            let passed = self.pass(&mut Evidence::default(), &query, transport);
            let reason = match (passed.received, passed.upstream.is_empty()) {
                (Ok(_), false) => return Ok(()),
                (Ok(_), true) => "a response came from another server".to_owned(),
                (Err(fault), true) => fault,
                (Err(fault), false) => format!("the query was forwarded, and {fault}"),
            };
            attempts += 1;
            // A program opens its sockets some time after its start.
            let may_be_late = self.proxy.is_starting()? && Instant::now() < deadline;
            if attempts >= PROBES && !may_be_late {
                let upstream = self.upstream.address;
                return Err(ProxyCheckError::NotForwarded { proxy: self.client.server, upstream, reason });
            }
            if may_be_late {
                thread::sleep(PAUSE);
            }
        }
    }

    /// The proxy.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.client.server
    }

    /// The proxy of the options.
    pub(super) const fn target(&self) -> &ProxyTarget {
        &self.options.target
    }

    /// The address of the proxy on the side of the provider.
    pub(super) const fn wan(&self) -> Option<SocketAddr> {
        self.options.wan
    }

    /// Number of packets of responses that have crossed the path.
    pub(super) fn response_packets(&self) -> u64 {
        self.network.as_ref().map_or(0, |network| network.counters().backward.delivered)
    }

    /// Makes the resolver of the check refuse TCP connections during `action`.
    pub(super) fn without_tcp<T>(
        &mut self,
        action: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, ProxyCheckError> {
        self.upstream.close_tcp();
        let result = action(self);
        let address = self.upstream.address;
        let upstream = &mut self.upstream;
        at(self.network.as_ref(), Site::Servers, || upstream.open_tcp())?
            .map_err(|source| ProxyCheckError::Listen { address, source })?;
        Ok(result)
    }

    /// A query with RD, DO and the payload size 4,096 for a new name that begins with `label`.
    pub(super) fn query(&mut self, label: &str, rtype: Rtype) -> Query {
        self.names += 1;
        let name = format!("{label}-{}.{}.proxy.check.", self.names, self.run);
        // The labels are those of the items.
        let name: Name = name.parse().unwrap_or_else(|_| Name::root());
        Query::new(name, rtype).with_flags(flags::RD).with_payload(4096)
    }

    /// Sends a query through the proxy.
    pub(super) fn pass(&mut self, evidence: &mut Evidence, query: &Query, transport: Transport) -> Passed {
        let id = random_id().unwrap_or(1);
        self.pass_octets(evidence, query.to_octets(id), transport)
    }

    /// Sends octets through the proxy.
    pub(super) fn pass_octets(
        &mut self,
        evidence: &mut Evidence,
        sent: Vec<u8>,
        transport: Transport,
    ) -> Passed {
        let client = self.client.clone();
        self.pass_to(&client, evidence, sent, transport)
    }

    /// Sends octets with another client.
    pub(super) fn pass_to(
        &mut self,
        client: &CheckClient,
        evidence: &mut Evidence,
        sent: Vec<u8>,
        transport: Transport,
    ) -> Passed {
        (self.seen, _) = self.upstream.observations_from(self.seen);
        let sending = at(self.network.as_ref(), Site::Clients, || client.send(evidence, &sent, transport));
        let (received, is_timeout) = match sending {
            Ok(Ok(octets)) => (Ok(octets), false),
            Ok(Err(fault)) => (Err(fault.to_string()), fault.is_timeout()),
            Err(fault) => (Err(fault.to_string()), false),
        };
        let (seen, upstream) = self.upstream.observations_from(self.seen);
        self.seen = seen;
        upstream.iter().for_each(|observation| evidence.push(observation.clone().into_exchange(SENDER)));
        Passed { sent, received, is_timeout, upstream }
    }

    /// Sends a query over UDP that may remain without a response, with a short time limit.
    pub(super) fn pass_briefly(&mut self, evidence: &mut Evidence, query: &Query) -> Passed {
        let client = CheckClient { timeout: self.client.timeout.min(SILENCE), ..self.client.clone() };
        self.pass_to(&client, evidence, query.to_octets(random_id().unwrap_or(1)), Transport::Udp)
    }

    /// A client of another address than the proxy's.
    pub(super) fn client_of(&self, server: SocketAddr) -> CheckClient {
        CheckClient { server, ..self.client.clone() }
    }
}
