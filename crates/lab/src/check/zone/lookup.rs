//! Looks up the zones above a name, and the addresses of nameservers: from the root servers without
//! recursion, or through resolvers.

use super::Source;
use super::client::{NoAnswer, ZoneClient};
use super::context::DiscoveryFault;
use crate::check::{Evidence, Query, Response};
use nonesuch_proto::message::{Message, Rcode, Section, flags};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// Maximum number of nameservers of a zone that are used.
pub(super) const NAMESERVERS_MAX: usize = 16;
/// Maximum number of addresses of a nameserver that are used, of each family.
pub(super) const ADDRESSES_MAX: usize = 4;
/// Number of servers of a zone above the parent that are queried before it counts as unreachable.
const SERVERS_TRIED: usize = 6;
/// Maximum depth of lookups that need other lookups.
const DEPTH_MAX: usize = 5;

/// A server at one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// The nameserver, or the first one with this address.
    pub(super) name: Name,
    pub(super) address: SocketAddr,
}

impl Server {
    /// The name and the address, for the texts of outcomes.
    pub(super) fn text(&self) -> String {
        format!("{} ({})", self.name, self.address)
    }
}

/// A zone above the checked zone.
#[derive(Clone, Debug)]
pub(super) struct PathZone {
    pub(super) zone: Name,
    pub(super) servers: Vec<Server>,
    /// Flags of queries to the servers: 0, or those for resolvers.
    pub(super) flags: u16,
}

/// The client, with the addresses that it has looked up.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) client: ZoneClient,
    source: Source,
    port: u16,
    addresses: HashMap<Name, Vec<IpAddr>>,
    depth: usize,
}

impl Network {
    pub(super) fn new(client: ZoneClient, source: Source, port: u16) -> Self {
        Self { client, source, port, addresses: HashMap::new(), depth: 0 }
    }

    /// The zones above `name`, the root zone first; empty for the root zone.
    ///
    /// # Errors
    /// A zone above has no server that answers.
    pub(super) fn path(
        &mut self,
        evidence: &mut Evidence,
        name: &Name,
    ) -> Result<Vec<PathZone>, DiscoveryFault> {
        if name.view().is_root() {
            return Ok(Vec::new());
        }
        match self.source.clone() {
            Source::Root(hints) => self.path_from_root(evidence, name, &hints),
            Source::Resolvers(resolvers) => self.path_from_resolvers(evidence, name, &resolvers),
        }
    }

    /// The addresses of a name, at most [`ADDRESSES_MAX`] of each family; empty if it has none or they cannot be
    /// found.
    pub(super) fn addresses(&mut self, evidence: &mut Evidence, name: &Name) -> Vec<IpAddr> {
        let key = name.view().to_canonical();
        if let Some(known) = self.addresses.get(&key) {
            return known.clone();
        }
        if self.depth >= DEPTH_MAX {
            return Vec::new();
        }
        self.depth += 1;
        let mut found = Vec::new();
        for rtype in [Rtype::A, Rtype::AAAA] {
            if let Some(response) = self.resolve(evidence, name, rtype) {
                let addresses = addresses_in(&response.message, name, &[Section::Answer]);
                found.extend(addresses.into_iter().take(ADDRESSES_MAX));
            }
        }
        self.depth -= 1;
        self.addresses.insert(key, found.clone());
        found
    }

    /// The response to a question from a server of its zone, or from a resolver.
    pub(super) fn resolve(&mut self, evidence: &mut Evidence, name: &Name, rtype: Rtype) -> Option<Response> {
        let query = Query::new(name.clone(), rtype);
        if let Source::Resolvers(resolvers) = self.source.clone() {
            let query = query.with_flags(flags::RD);
            return resolvers.iter().find_map(|resolver| self.client.ask(evidence, *resolver, &query).ok());
        }
        let path = self.path(evidence, name).ok()?;
        let mut zone = path.into_iter().next_back()?;
        if let Ok(Some(servers)) = self.find_cut(evidence, &zone, name) {
            zone.servers = servers;
        }
        zone.servers.iter().take(SERVERS_TRIED).find_map(|server| {
            let response = self.client.ask(evidence, server.address, &query).ok()?;
            response.has(flags::AA).then_some(response)
        })
    }

    fn path_from_root(
        &mut self,
        evidence: &mut Evidence,
        name: &Name,
        hints: &[(Name, IpAddr)],
    ) -> Result<Vec<PathZone>, DiscoveryFault> {
        let servers = hints.iter().map(|(name, address)| self.server(name, *address)).collect();
        let mut path = vec![PathZone { zone: Name::root(), servers, flags: 0 }];
        for ancestor in ancestors(name) {
            let current = path.last().cloned().ok_or(DiscoveryFault::NoResolver)?;
            if let Some(servers) = self.find_cut(evidence, &current, &ancestor)? {
                path.push(PathZone { zone: ancestor, servers, flags: 0 });
            }
        }
        Ok(path)
    }

    /// The servers of the zone at `name` if it is a zone below `current`; `None` if it is no zone.
    fn find_cut(
        &mut self,
        evidence: &mut Evidence,
        current: &PathZone,
        name: &Name,
    ) -> Result<Option<Vec<Server>>, DiscoveryFault> {
        let query = Query::new(name.clone(), Rtype::NS);
        for server in current.servers.iter().take(SERVERS_TRIED) {
            let Ok(response) = self.client.ask(evidence, server.address, &query) else { continue };
            if !matches!(response.message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN) {
                continue;
            }
            let names = nameservers_in(&response.message, name);
            if names.is_empty() {
                return Ok(None);
            }
            let servers = self.servers_of(evidence, &names, &response.message);
            let fault = DiscoveryFault::NoAddress { zone: name.clone() };
            return if servers.is_empty() { Err(fault) } else { Ok(Some(servers)) };
        }
        Err(DiscoveryFault::NoServer { zone: current.zone.clone() })
    }

    /// The servers of these names, with the addresses in a message if it has them.
    fn servers_of(&mut self, evidence: &mut Evidence, names: &[Name], message: &Message) -> Vec<Server> {
        let mut servers = Vec::new();
        for name in names.iter().take(NAMESERVERS_MAX) {
            let mut addresses = addresses_in(message, name, &[Section::Additional]);
            addresses.truncate(ADDRESSES_MAX);
            if addresses.is_empty() {
                addresses = self.addresses(evidence, name);
            }
            servers.extend(addresses.into_iter().map(|address| self.server(name, address)));
        }
        servers
    }

    fn path_from_resolvers(
        &mut self,
        evidence: &mut Evidence,
        name: &Name,
        resolvers: &[SocketAddr],
    ) -> Result<Vec<PathZone>, DiscoveryFault> {
        let mut zones = vec![Name::root()];
        for ancestor in ancestors(name) {
            let response = self.resolve(evidence, &ancestor, Rtype::SOA).ok_or(DiscoveryFault::NoResolver)?;
            let has_soa = response
                .message
                .section(Section::Answer)
                .any(|record| record.rtype == Rtype::SOA && record.owner == ancestor);
            zones.extend(has_soa.then_some(ancestor));
        }
        let parent = zones.last().cloned().unwrap_or_else(Name::root);
        let response = self.resolve(evidence, &parent, Rtype::NS).ok_or(DiscoveryFault::NoResolver)?;
        let names = nameservers_in(&response.message, &parent);
        let parent_servers = self.servers_of(evidence, &names, &response.message);
        if parent_servers.is_empty() {
            return Err(DiscoveryFault::NoAddress { zone: parent });
        }
        // The zones above the parent are only needed for the chain of trust: a resolver has their records.
        let via: Vec<Server> =
            resolvers.iter().map(|address| Server { name: Name::root(), address: *address }).collect();
        let flags = flags::RD | flags::CD;
        let path = zones.into_iter().map(|zone| PathZone { zone, servers: via.clone(), flags });
        let mut path: Vec<PathZone> = path.collect();
        if let Some(last) = path.last_mut() {
            (last.servers, last.flags) = (parent_servers, 0);
        }
        Ok(path)
    }

    pub(super) fn server(&self, name: &Name, address: IpAddr) -> Server {
        Server { name: name.clone(), address: SocketAddr::new(address, self.port) }
    }

    /// The first response of the servers of a zone to a question.
    pub(super) fn ask_zone(
        &mut self,
        evidence: &mut Evidence,
        zone: &PathZone,
        name: &Name,
        rtype: Rtype,
    ) -> Result<Response, NoAnswer> {
        let query = Query::new(name.clone(), rtype).with_flags(zone.flags);
        let mut last = NoAnswer::Silent("UDP");
        for server in zone.servers.iter().take(SERVERS_TRIED) {
            match self.client.ask(evidence, server.address, &query) {
                Ok(response)
                    if response.message.rcode() == Rcode::SERVFAIL
                        || response.message.rcode() == Rcode::REFUSED => {}
                Ok(response) => return Ok(response),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }
}

/// The names between the root and `name`, without both, the shortest first.
fn ancestors(name: &Name) -> Vec<Name> {
    let above = std::iter::successors(name.view().parent(), |name| name.parent());
    let mut names: Vec<Name> = above.filter(|name| !name.is_root()).map(NameRef::to_canonical).collect();
    names.reverse();
    names
}

/// The nameservers of the zone at `zone` in a response of its servers or of its parent.
pub(super) fn nameservers_in(message: &Message, zone: &Name) -> Vec<Name> {
    let records = message.records.iter().filter(|record| {
        record.section != Section::Additional && record.rtype == Rtype::NS && record.owner == *zone
    });
    let mut names: Vec<Name> = Vec::new();
    for name in records.filter_map(|record| NameRef::from_wire(&record.rdata).ok()) {
        let name = name.to_canonical();
        if names.len() < NAMESERVERS_MAX && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The addresses of a name in these sections of a message.
pub(super) fn addresses_in(message: &Message, name: &Name, sections: &[Section]) -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    for record in message.records.iter().filter(|record| sections.contains(&record.section)) {
        if record.owner == *name
            && let Some(address) = read_address(record.rtype, &record.rdata)
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    addresses
}

/// The address in the RDATA of an A or AAAA record.
pub(super) fn read_address(rtype: Rtype, rdata: &[u8]) -> Option<IpAddr> {
    match rtype {
        Rtype::A => <[u8; 4]>::try_from(rdata).ok().map(IpAddr::from),
        Rtype::AAAA => <[u8; 16]>::try_from(rdata).ok().map(IpAddr::from),
        _ => None,
    }
}
