//! What the items of `check proxy` have in common: the client, and the resolver behind the proxy.

use super::super::authority::Observation;
use super::super::{CheckClient, Evidence, Query, QueryFault, Response, Transport};
use super::upstream::Upstream;
use crate::proxy::{Fault, Proxy, ProxyError, ProxyOptions};
use crate::query::random_id;
use nonesuch_net::NetError;
use nonesuch_proto::message::{Message, flags};
use nonesuch_proto::{Name, Rtype};
use std::net::SocketAddr;
use std::time::Duration;

/// Who sends the queries that the resolver of the check receives.
const SENDER: &str = "proxy";
/// Number of attempts of the first query.
const PROBES: u32 = 3;

/// What determines a check of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyCheckOptions {
    /// The proxy; `None` starts `nonesuch proxy`.
    pub proxy: Option<SocketAddr>,
    /// The address on which the resolver of the check listens. The proxy must forward queries to it. Port 0
    /// selects a free port, for a proxy that the check starts.
    pub upstream: SocketAddr,
    /// The address of the proxy on the side of the provider.
    pub wan: Option<SocketAddr>,
    /// The faults of the proxy that the check starts.
    pub faults: Vec<Fault>,
    /// Time limit for each response.
    pub timeout: Duration,
}

/// Why a check of a proxy does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyCheckError {
    /// The resolver of the check cannot listen.
    #[error(
        "{address}: {source}: choose another address for the resolver of the check with --upstream-listen"
    )]
    Listen {
        /// Its address.
        address: SocketAddr,
        /// The fault.
        source: NetError,
    },
    /// The proxy of the check cannot be started.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The proxy does not forward queries to the check.
    #[error("{proxy}: {reason}: set {upstream} as the DNS server to which the proxy forwards queries")]
    NotForwarded {
        /// The proxy.
        proxy: SocketAddr,
        /// The resolver of the check.
        upstream: SocketAddr,
        /// What happened to the query.
        reason: String,
    },
    /// The system has no random octets.
    #[error(transparent)]
    Random(QueryFault),
}

/// A check of a proxy, with its running resolver.
#[derive(Debug)]
pub struct ProxyCheck {
    client: CheckClient,
    upstream: Upstream,
    /// Before the resolver stops.
    _proxy: Option<Proxy>,
    pub(super) wan: Option<SocketAddr>,
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
    /// Starts the resolver of the check, and the proxy if it has no address.
    ///
    /// # Errors
    /// They cannot be started, or a first query does not pass the proxy.
    pub fn start(options: &ProxyCheckOptions) -> Result<Self, ProxyCheckError> {
        let listen = options.upstream;
        let upstream =
            Upstream::start(listen).map_err(|source| ProxyCheckError::Listen { address: listen, source })?;
        let proxy = match options.proxy {
            Some(_) => None,
            None => Some(Proxy::start(&ProxyOptions {
                faults: options.faults.clone(),
                wan: options.wan,
                timeout: options.timeout,
                ..ProxyOptions::new((upstream.address.ip(), 0).into(), upstream.address)
            })?),
        };
        let server = proxy.as_ref().map_or_else(|| options.proxy.unwrap_or(listen), Proxy::address);
        let client = CheckClient { server, timeout: options.timeout, attempts: 1 };
        let run = format!("r{:05}", random_id().map_err(ProxyCheckError::Random)?);
        let mut check = Self { client, upstream, _proxy: proxy, wan: options.wan, run, names: 0, seen: 0 };
        check.probe()?;
        Ok(check)
    }

    /// A small query without EDNS must pass.
    fn probe(&mut self) -> Result<(), ProxyCheckError> {
        let mut reason = String::new();
        for _ in 0..PROBES {
            let query = self.query("probe", Rtype::A).without_edns();
            let passed = self.pass(&mut Evidence::default(), &query, Transport::Udp);
            match (&passed.received, passed.upstream.is_empty()) {
                (Ok(_), false) => return Ok(()),
                (Ok(_), true) => reason = "a response came from another server".to_owned(),
                (Err(fault), true) => reason.clone_from(fault),
                (Err(fault), false) => reason = format!("the query was forwarded, and {fault}"),
            }
        }
        Err(ProxyCheckError::NotForwarded {
            proxy: self.client.server,
            upstream: self.upstream.address,
            reason,
        })
    }

    /// The proxy.
    #[must_use]
    pub const fn server(&self) -> SocketAddr {
        self.client.server
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
        let received = client.send(evidence, &sent, transport).map_err(|fault| fault.to_string());
        let (seen, upstream) = self.upstream.observations_from(self.seen);
        self.seen = seen;
        upstream.iter().for_each(|observation| evidence.push(observation.clone().into_exchange(SENDER)));
        Passed { sent, received, upstream }
    }

    /// A client of another address than the proxy's.
    pub(super) fn client_of(&self, server: SocketAddr) -> CheckClient {
        CheckClient { server, ..self.client.clone() }
    }
}
