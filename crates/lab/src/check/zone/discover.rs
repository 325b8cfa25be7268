//! Finds the servers of the parent zone and of the zone, and the records of the parent about the zone.

use super::Undelegated;
use super::context::{DiscoveryFault, Nameserver, ZoneContext, is_authoritative};
use super::lookup::{ADDRESSES_MAX, NAMESERVERS_MAX, PathZone, Server, addresses_in, nameservers_in};
use crate::check::signature::MessageRrset;
use crate::check::{Evidence, Query};
use nonesuch_proto::message::{Rcode, Section, flags};
use nonesuch_proto::{Name, Rtype};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Maximum number of addresses of the zone's servers that are checked.
const SERVERS_MAX: usize = 40;

/// The results of the search for servers.
#[derive(Debug, Default)]
pub(super) struct Discovery {
    pub(super) fault: Option<DiscoveryFault>,
    /// The zones above the zone, the root zone first. Empty for the root zone and before delegation.
    pub(super) path: Vec<PathZone>,
    /// The records of each server of the parent.
    pub(super) views: Vec<ParentView>,
    pub(super) nameservers: Vec<Nameserver>,
    /// The servers of the zone.
    pub(super) servers: Vec<Server>,
    /// Servers with an address to which this machine has no route.
    pub(super) unreachable: Vec<Server>,
    /// Number of further addresses.
    pub(super) omitted: usize,
    /// RDATA of the DS records in the parent, or from the user.
    pub(super) ds: Vec<Vec<u8>>,
}

/// The records of one server of the parent about the zone.
#[derive(Clone, Debug)]
pub(super) struct ParentView {
    pub(super) server: Server,
    /// Why there is no answer.
    pub(super) fault: Option<String>,
    /// Whether the server also serves the zone itself, so that it sends no referral.
    pub(super) is_of_child: bool,
    pub(super) nameservers: Vec<Name>,
    /// The addresses in the additional section.
    pub(super) glue: Vec<(Name, IpAddr)>,
    /// Octets of the referral with DO.
    pub(super) octets: usize,
    /// RDATA of the DS records; `None` if the server does not answer.
    pub(super) ds: Option<Vec<Vec<u8>>>,
}

impl ZoneContext {
    /// Finds all servers.
    pub(super) fn discover(&mut self) {
        let mut evidence = Evidence::default();
        let result = match self.options.undelegated.clone() {
            Some(planned) => {
                self.use_planned(&mut evidence, &planned);
                Ok(())
            }
            None if self.zone().view().is_root() => self.use_hints(&mut evidence),
            None => self.use_parent(&mut evidence),
        };
        if let Err(fault) = result {
            self.discovery.fault = Some(fault);
            return;
        }
        self.place_servers(&mut evidence);
        self.add_child_nameservers(&mut evidence);
        self.place_servers(&mut evidence);
        if self.discovery.servers.is_empty() && self.discovery.unreachable.is_empty() {
            self.discovery.fault = Some(DiscoveryFault::NoServerAddress { zone: self.zone().clone() });
        }
    }

    /// Uses the nameservers that the user gave.
    fn use_planned(&mut self, evidence: &mut Evidence, planned: &Undelegated) {
        self.discovery.ds.clone_from(&planned.ds);
        for (name, glue) in planned.nameservers.iter().take(NAMESERVERS_MAX) {
            let name = name.view().to_canonical();
            let addresses =
                if glue.is_empty() { self.network.addresses(evidence, &name) } else { Vec::new() };
            let glue = glue.iter().copied().take(ADDRESSES_MAX).collect();
            let (is_in_parent, is_in_child) = (true, false);
            self.discovery.nameservers.push(Nameserver { name, is_in_parent, is_in_child, glue, addresses });
        }
    }

    /// Uses the servers of the root zone in the hints, or in the answer of a resolver.
    fn use_hints(&mut self, evidence: &mut Evidence) -> Result<(), DiscoveryFault> {
        let hints = match &self.options.source {
            super::Source::Root(hints) => hints.clone(),
            super::Source::Resolvers(_) => {
                let response = self.network.resolve(evidence, &Name::root(), Rtype::NS);
                let response = response.ok_or(DiscoveryFault::NoResolver)?;
                let names = nameservers_in(&response.message, &Name::root());
                let found = names.into_iter().flat_map(|name| {
                    let addresses = self.network.addresses(evidence, &name);
                    addresses.into_iter().map(move |address| (name.clone(), address))
                });
                found.collect()
            }
        };
        for (name, address) in hints {
            self.add_nameserver(&name, true).glue.push(address);
        }
        Ok(())
    }

    /// Asks all servers of the parent.
    fn use_parent(&mut self, evidence: &mut Evidence) -> Result<(), DiscoveryFault> {
        let zone = self.zone().clone();
        self.discovery.path = self.network.path(evidence, &zone)?;
        let Some(parent) = self.parent().cloned() else { return Err(DiscoveryFault::NoResolver) };
        for server in parent.servers.iter().take(SERVERS_MAX) {
            let view = self.parent_view(evidence, server);
            self.discovery.views.push(view);
        }
        let views = self.discovery.views.clone();
        if views.iter().all(|view| view.fault.is_some()) {
            return Err(DiscoveryFault::NoServer { zone: parent.zone });
        }
        // A server of both zones answers with the data of the child.
        let has_referral = views.iter().any(|view| !view.is_of_child && !view.nameservers.is_empty());
        for view in views.iter().filter(|view| !has_referral || !view.is_of_child) {
            for name in &view.nameservers {
                self.add_nameserver(name, has_referral);
            }
            for (name, address) in &view.glue {
                let known = self.discovery.nameservers.iter_mut().find(|known| known.name == *name);
                if let Some(known) = known
                    && known.glue.len() < ADDRESSES_MAX
                    && !known.glue.contains(address)
                {
                    known.glue.push(*address);
                }
            }
        }
        let ds = views.iter().filter_map(|view| view.ds.clone()).find(|ds| !ds.is_empty());
        self.discovery.ds = ds.unwrap_or_default();
        if self.discovery.nameservers.is_empty() {
            return Err(DiscoveryFault::NotDelegated { zone, parent: parent.zone });
        }
        Ok(())
    }

    /// The records of a server of the parent about the zone.
    pub(super) fn parent_view(&mut self, evidence: &mut Evidence, server: &Server) -> ParentView {
        let zone = self.zone().clone();
        let mut view = ParentView {
            server: server.clone(),
            fault: None,
            is_of_child: false,
            nameservers: Vec::new(),
            glue: Vec::new(),
            octets: 0,
            ds: None,
        };
        let query = Query::new(zone.clone(), Rtype::NS);
        match self.network.client.ask(evidence, server.address, &query) {
            Err(fault) => view.fault = Some(fault.to_string()),
            Ok(response) => {
                let message = &response.message;
                let rcode = message.rcode();
                if !matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN) {
                    view.fault = Some(format!("response code {rcode}"));
                }
                view.is_of_child = response.has(flags::AA)
                    && message.section(Section::Answer).any(|record| record.rtype == Rtype::NS);
                view.nameservers = nameservers_in(message, &zone);
                view.octets = response.octets.len();
                for name in additional_names(message) {
                    let addresses = addresses_in(message, &name, &[Section::Additional]);
                    view.glue.extend(addresses.into_iter().map(|address| (name.clone(), address)));
                }
            }
        }
        let query = Query::new(zone.clone(), Rtype::DS);
        if let Ok(response) = self.network.client.ask(evidence, server.address, &query)
            && is_authoritative(&response)
        {
            let rrset = MessageRrset::find(&response.message, &zone, Rtype::DS);
            view.ds = Some(rrset.map(|rrset| rrset.rdatas).unwrap_or_default());
        }
        view
    }

    fn add_nameserver(&mut self, name: &Name, is_in_parent: bool) -> &mut Nameserver {
        let name = name.view().to_canonical();
        let list = &mut self.discovery.nameservers;
        let index = list.iter().position(|known| known.name == name).unwrap_or_else(|| {
            let (is_in_child, glue, addresses) = (false, Vec::new(), Vec::new());
            list.push(Nameserver { name, is_in_parent, is_in_child, glue, addresses });
            list.len() - 1
        });
        list[index].is_in_parent |= is_in_parent;
        &mut list[index]
    }

    /// Adds the nameservers that only the zone itself names.
    fn add_child_nameservers(&mut self, evidence: &mut Evidence) {
        for server in self.live_servers(evidence) {
            let Ok(response) = self.ask_apex(evidence, &server, Rtype::NS) else { continue };
            if !is_authoritative(&response) {
                continue;
            }
            for name in nameservers_in(&response.message, &self.zone().clone()) {
                let is_known = self.discovery.nameservers.iter().any(|known| known.name == name);
                if is_known || self.discovery.nameservers.len() < 2 * NAMESERVERS_MAX {
                    self.add_nameserver(&name, false).is_in_child = true;
                }
            }
        }
    }

    /// Looks up the addresses of all nameservers, and separates the addresses without a route.
    fn place_servers(&mut self, evidence: &mut Evidence) {
        let zone = self.zone().clone();
        for index in 0..self.discovery.nameservers.len() {
            let Nameserver { name, addresses, glue, .. } = self.discovery.nameservers[index].clone();
            let is_in_zone = name.view().is_at_or_below(zone.view());
            let found = match (addresses.is_empty(), is_in_zone) {
                (false, _) => addresses,
                (true, true) => self.own_addresses(evidence, &name),
                // An address in a referral may be outdated, but it is what resolvers use.
                (true, false) if self.options.undelegated.is_some() && !glue.is_empty() => Vec::new(),
                (true, false) => self.network.addresses(evidence, &name),
            };
            self.discovery.nameservers[index].addresses = found;
        }
        self.discovery.omitted = 0;
        for nameserver in self.discovery.nameservers.clone() {
            for address in nameserver.glue.iter().chain(&nameserver.addresses) {
                let server = self.network.server(&nameserver.name, *address);
                let known = self.discovery.servers.iter().chain(&self.discovery.unreachable);
                let count = known.clone().count();
                if known.into_iter().any(|known| known.address == server.address) {
                    continue;
                }
                if count >= SERVERS_MAX {
                    self.discovery.omitted += 1;
                } else if has_route(server.address) {
                    self.discovery.servers.push(server);
                } else {
                    self.discovery.unreachable.push(server);
                }
            }
        }
    }

    /// The addresses that the servers of the zone have for a name in the zone.
    pub(super) fn own_addresses(&mut self, evidence: &mut Evidence, name: &Name) -> Vec<IpAddr> {
        for server in self.live_servers(evidence) {
            let mut found = Vec::new();
            for rtype in [Rtype::A, Rtype::AAAA] {
                let query = Query::new(name.clone(), rtype);
                if let Ok(response) = self.network.client.ask(evidence, server.address, &query) {
                    let addresses = addresses_in(&response.message, name, &[Section::Answer]);
                    found.extend(addresses.into_iter().take(ADDRESSES_MAX));
                }
            }
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }
}

/// The owners of addresses in the additional section.
fn additional_names(message: &nonesuch_proto::message::Message) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    for record in message.section(Section::Additional) {
        let name = record.owner.view().to_canonical();
        let is_address = matches!(record.rtype, Rtype::A | Rtype::AAAA);
        if is_address && names.len() < NAMESERVERS_MAX && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// Whether this machine has a route to the address. No packet is sent.
fn has_route(address: SocketAddr) -> bool {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let connected = UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(address));
    let is_missing = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::HostUnreachable
                | io::ErrorKind::AddrNotAvailable
                | io::ErrorKind::Unsupported
        )
    };
    !connected.is_err_and(|error| is_missing(&error) || address.is_ipv6())
}
