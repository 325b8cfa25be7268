//! The servers of a zone, as a task knows them.

use crate::budget::DelegationFetches;
use crate::record::Rrset;
use crate::response::addresses;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_server::acl::DNS_PORT;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// Maximum number of nameservers of a zone that are used.
const NAMESERVERS_MAX: usize = 32;
/// Maximum number of addresses of a nameserver that are used.
const ADDRESSES_MAX: usize = 16;

/// The origin of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerSource {
    /// An NS RRset.
    Referral,
    /// The root hints.
    Hints,
    /// A stub zone of the configuration.
    Stub,
    /// A forward zone of the configuration: the servers are resolvers.
    Forward,
}

/// A zone and its servers.
#[derive(Clone, Debug)]
pub(crate) struct Delegation {
    /// The apex of the zone, or of the forward zone.
    pub(crate) zone: Name,
    pub(crate) source: ServerSource,
    /// Servers that the configuration gives by address.
    pub(crate) servers: Vec<SocketAddr>,
    pub(crate) nameservers: Vec<Nameserver>,
    /// Whether the queries use TCP only.
    pub(crate) uses_tcp: bool,
    /// The address fetches that were started for this delegation.
    pub(crate) fetches: DelegationFetches,
    /// Whether the NS RRset and the addresses come from the cache.
    pub(crate) is_cached: bool,
    /// When the NS RRset expires, and those of the zones above; `None` for configured servers.
    pub(crate) expires: Option<Instant>,
}

/// A nameserver of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Nameserver {
    pub(crate) name: Name,
    pub(crate) addresses: Vec<IpAddr>,
    /// Addresses in referrals, which are used if the others fail.
    pub(crate) spare_addresses: Vec<IpAddr>,
    /// The address types that were looked up, or need not be.
    pub(crate) looked_up: Vec<Rtype>,
}

impl Nameserver {
    pub(crate) fn new(name: Name) -> Self {
        let (addresses, spare_addresses, looked_up) = (Vec::new(), Vec::new(), Vec::new());
        Self { name, addresses, spare_addresses, looked_up }
    }

    /// Adds the addresses of an A or AAAA RRset.
    pub(crate) fn add(&mut self, rrset: &Rrset) {
        for address in addresses(rrset) {
            if self.addresses.len() < ADDRESSES_MAX && !self.addresses.contains(&address) {
                self.addresses.push(address);
            }
        }
        if !self.looked_up.contains(&rrset.rtype) {
            self.looked_up.push(rrset.rtype);
        }
    }
}

impl Delegation {
    /// Servers that the configuration gives by address.
    pub(crate) fn configured(zone: NameRef<'_>, source: ServerSource, servers: Vec<SocketAddr>) -> Self {
        let (zone, nameservers) = (zone.to_name(), Vec::new());
        let (fetches, expires) = (DelegationFetches::default(), None);
        Self { zone, source, servers, nameservers, uses_tcp: false, fetches, is_cached: false, expires }
    }

    /// The servers of an NS RRset, without addresses.
    pub(crate) fn from_ns(ns: &Rrset, expires: Option<Instant>) -> Self {
        let names = ns.records.iter().filter_map(|record| NameRef::from_wire(record).ok());
        Self {
            zone: ns.owner.view().to_canonical(),
            source: ServerSource::Referral,
            servers: Vec::new(),
            nameservers: names
                .take(NAMESERVERS_MAX)
                .map(|name| Nameserver::new(name.to_canonical()))
                .collect(),
            uses_tcp: false,
            fetches: DelegationFetches::default(),
            is_cached: false,
            expires,
        }
    }

    /// Adds an A or AAAA RRset of the nameserver `name`. The RRset has another owner if `name` is an
    /// alias. An NS record must not name an alias (RFC 2181 §10.3), but some do.
    pub(crate) fn add_addresses(&mut self, name: &Name, rrset: &Rrset) {
        let is_same = |nameserver: &&mut Nameserver| nameserver.name == *name;
        self.nameservers.iter_mut().filter(is_same).for_each(|nameserver| nameserver.add(rrset));
    }

    /// Adds addresses of a nameserver that are used if the others fail.
    pub(crate) fn add_spare_addresses(&mut self, rrset: &Rrset) {
        for nameserver in self.nameservers.iter_mut().filter(|nameserver| nameserver.name == rrset.owner) {
            let room = ADDRESSES_MAX.saturating_sub(nameserver.spare_addresses.len());
            nameserver.spare_addresses.extend(addresses(rrset).take(room));
        }
    }

    /// Uses the spare addresses. Returns whether some of them are new.
    pub(crate) fn use_spare_addresses(&mut self) -> bool {
        let mut has_new = false;
        for nameserver in &mut self.nameservers {
            for address in std::mem::take(&mut nameserver.spare_addresses) {
                if !nameserver.addresses.contains(&address) {
                    nameserver.addresses.push(address);
                    has_new = true;
                }
            }
        }
        has_new
    }

    /// Marks an address type of a nameserver as looked up.
    pub(crate) fn set_looked_up(&mut self, name: &Name, rtype: Rtype) {
        for nameserver in self.nameservers.iter_mut().filter(|nameserver| nameserver.name == *name) {
            if !nameserver.looked_up.contains(&rtype) {
                nameserver.looked_up.push(rtype);
            }
        }
    }

    /// Returns a nameserver with the address types that were not looked up. The search begins at the
    /// nameserver with the number `start`, modulo their number. Nameservers in the zone are left
    /// out: only the servers of the zone know their addresses.
    pub(crate) fn next_unknown_nameserver(
        &self,
        start: usize,
        types: &[Rtype],
    ) -> Option<(Name, Vec<Rtype>)> {
        let count = self.nameservers.len();
        let rotated = (0..count).map(|number| &self.nameservers[(start % count + number) % count]);
        rotated.filter(|nameserver| !nameserver.name.view().is_at_or_below(self.zone.view())).find_map(
            |nameserver| {
                let missing = types.iter().copied().filter(|rtype| !nameserver.looked_up.contains(rtype));
                let missing: Vec<Rtype> = missing.collect();
                (!missing.is_empty()).then(|| (nameserver.name.clone(), missing))
            },
        )
    }

    /// Whether the servers are resolvers.
    pub(crate) fn is_forwarder(&self) -> bool {
        self.source == ServerSource::Forward
    }

    /// Whether a server with an address that `permits` accepts is known, or its address can be looked
    /// up without the servers of the zone.
    pub(crate) fn is_usable(&self, permits: impl Fn(IpAddr) -> bool) -> bool {
        !self.servers.is_empty()
            || self.nameservers.iter().any(|nameserver| {
                nameserver.addresses.iter().any(|address| permits(*address))
                    || !nameserver.name.view().is_at_or_below(self.zone.view())
            })
    }

    /// The known addresses of all servers that `permits` accepts.
    pub(crate) fn addresses(&self, permits: impl Fn(IpAddr) -> bool) -> Vec<SocketAddr> {
        let known = self.nameservers.iter().flat_map(|nameserver| &nameserver.addresses);
        let known = known.filter(|address| permits(**address));
        let known = known.map(|address| SocketAddr::new(*address, DNS_PORT));
        let mut all = self.servers.clone();
        for address in known {
            if !all.contains(&address) {
                all.push(address);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rrset;

    #[test]
    fn a_zone_is_usable_if_a_permitted_address_or_a_name_outside_is_known() {
        let usable = |server: &str| {
            let ns = rrset(&[&format!("example. 60 NS {server}")]);
            let mut delegation = Delegation::from_ns(&ns, None);
            let addresses = rrset(&["ns.example. 60 AAAA 2001:db8::1"]);
            delegation.add_addresses(&addresses.owner, &addresses);
            [delegation.is_usable(|_| true), delegation.is_usable(|address| address.is_ipv4())]
        };
        assert_eq!(usable("ns.example."), [true, false]);
        assert_eq!(usable("ns2.example."), [false, false]);
        assert_eq!(usable("ns.other."), [true, true]);
    }
}
