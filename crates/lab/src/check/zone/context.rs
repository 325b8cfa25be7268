//! The shared state of the items of a zone check: the options, the servers, and the responses so far.

use super::ZoneCheckOptions;
use super::client::{NoAnswer, ZoneClient};
use super::discover::Discovery;
use super::lookup::{Network, PathZone, Server};
use crate::check::signature::MessageRrset;
use crate::check::{Evidence, Picture, Query, Response};
use nonesuch_proto::message::{Message, Rcode, flags};
use nonesuch_proto::{Name, Rtype};
use std::net::IpAddr;

/// Why the servers of the zone cannot be found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryFault {
    /// No server of a zone above answers.
    #[error("no server of the zone {zone} answers: check the root hints, the network and the port")]
    NoServer {
        /// The zone.
        zone: Name,
    },
    /// No server of a zone above has an address.
    #[error("no nameserver of the zone {zone} has an address")]
    NoAddress {
        /// The zone.
        zone: Name,
    },
    /// No resolver answers.
    #[error("no resolver answers: give the root servers, or check the list of resolvers")]
    NoResolver,
    /// The parent has no delegation.
    #[error(
        "the servers of {parent} have no NS records for {zone}: to check a zone before its delegation, give its nameservers"
    )]
    NotDelegated {
        /// The zone.
        zone: Name,
        /// The closest zone above it.
        parent: Name,
    },
    /// No nameserver of the zone has an address.
    #[error("no nameserver of {zone} has an address")]
    NoServerAddress {
        /// The zone.
        zone: Name,
    },
}

/// A nameserver of the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nameserver {
    pub(super) name: Name,
    pub(super) is_in_parent: bool,
    pub(super) is_in_child: bool,
    /// The addresses in referrals of the parent, or from the user.
    pub(super) glue: Vec<IpAddr>,
    /// The addresses that were looked up; for a name in the zone, those of its servers.
    pub(super) addresses: Vec<IpAddr>,
}

/// The context of the items.
#[derive(Debug)]
pub struct ZoneContext {
    pub(super) options: ZoneCheckOptions,
    pub(super) network: Network,
    pub(super) discovery: Discovery,
}

impl ZoneContext {
    /// Finds the servers of the parent and of the zone. If this fails, the items state the reason.
    #[must_use]
    pub fn new(options: ZoneCheckOptions) -> Self {
        let client = ZoneClient::new(options.timeout, options.attempts, options.rate);
        let network = Network::new(client, options.source.clone(), options.port);
        let mut context = Self { options, network, discovery: Discovery::default() };
        context.discover();
        context
    }

    /// The reason for which the servers of the zone were not found.
    #[must_use]
    pub const fn fault(&self) -> Option<&DiscoveryFault> {
        self.discovery.fault.as_ref()
    }

    /// Terms and values about the zone: its parent, its servers, the number of queries.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        let list = |servers: &[Server]| servers.iter().map(Server::text).collect::<Vec<_>>().join(", ");
        let mut facts = vec![("zone".to_owned(), self.options.zone.to_string())];
        if let Some(parent) = self.parent() {
            facts.push(("parent zone".to_owned(), parent.zone.to_string()));
            facts.push(("servers of the parent".to_owned(), list(&parent.servers)));
        }
        facts.push(("servers of the zone".to_owned(), list(&self.discovery.servers)));
        if !self.discovery.unreachable.is_empty() {
            let text = list(&self.discovery.unreachable);
            facts.push(("servers without a route from here".to_owned(), text));
        }
        if self.discovery.omitted > 0 {
            facts.push(("addresses that are not checked".to_owned(), self.discovery.omitted.to_string()));
        }
        facts.push(("queries".to_owned(), self.network.client.sent().to_string()));
        facts
    }

    /// The picture of the chain of trust from the trust anchor to the zone.
    pub fn picture(&mut self) -> Picture {
        let mut evidence = Evidence::default();
        self.chain_of_trust(&mut evidence).to_picture(&self.options)
    }

    pub(super) const fn zone(&self) -> &Name {
        &self.options.zone
    }

    /// The parent zone; `None` for the root zone and before delegation.
    pub(super) fn parent(&self) -> Option<&PathZone> {
        self.discovery.path.last()
    }

    /// The response of a server to a question about the apex, with DO.
    pub(super) fn ask_apex(
        &mut self,
        evidence: &mut Evidence,
        server: &Server,
        rtype: Rtype,
    ) -> Result<Response, NoAnswer> {
        let query = Query::new(self.zone().clone(), rtype);
        self.network.client.ask(evidence, server.address, &query)
    }

    /// The servers that answer authoritatively for the SOA record of the zone.
    pub(super) fn live_servers(&mut self, evidence: &mut Evidence) -> Vec<Server> {
        let servers = self.discovery.servers.clone();
        let mut live = Vec::new();
        for server in servers {
            let response = self.ask_apex(evidence, &server, Rtype::SOA);
            if response.is_ok_and(|response| is_authoritative(&response)) {
                live.push(server);
            }
        }
        live
    }

    /// The RRset at the apex from a server; `None` if the server does not answer, or has no such RRset.
    pub(super) fn apex_rrset(
        &mut self,
        evidence: &mut Evidence,
        server: &Server,
        rtype: Rtype,
    ) -> Option<MessageRrset> {
        let response = self.ask_apex(evidence, server, rtype).ok()?;
        if !is_authoritative(&response) {
            return None;
        }
        MessageRrset::find(&response.message, self.zone(), rtype)
    }

    /// RDATA of the DNSKEY RRset of the first server that has one; empty if the zone is not signed.
    pub(super) fn dnskeys(&mut self, evidence: &mut Evidence) -> Vec<Vec<u8>> {
        let servers = self.live_servers(evidence);
        let mut rrsets = servers.iter().filter_map(|server| self.apex_rrset(evidence, server, Rtype::DNSKEY));
        rrsets.next().map(|rrset| rrset.rdatas).unwrap_or_default()
    }

    /// Why there is no server to test; `None` if there is one.
    pub(super) fn why_no_server(&self, live: &[Server]) -> Option<String> {
        if let Some(fault) = self.fault() {
            return Some(fault.to_string());
        }
        live.is_empty().then(|| format!("no server answers authoritatively for {}", self.zone()))
    }
}

/// Whether the response is an authoritative answer or denial.
pub(super) fn is_authoritative(response: &Response) -> bool {
    response.has(flags::AA) && matches!(response.message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
}

/// Whether a message has an SOA record at this name in any section.
pub(super) fn has_soa_at(message: &Message, name: &Name) -> bool {
    message.records.iter().any(|record| record.rtype == Rtype::SOA && record.owner == *name)
}
