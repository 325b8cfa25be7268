//! Options of a resolver, their defaults and their ranges.

mod error;
mod limits;
mod validation;

pub use error::OptionsError;
pub use limits::{ClientLimits, MAX_TTL, TtlBounds};
pub use validation::{NegativeAnchor, ValidationOptions};

use crate::budget::UpstreamLimits;

use crate::addresses::is_unusable_address;
use crate::hints::Hints;
use crate::zones::{ZoneRule, ZoneRules};
use error::check;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_server::acl::{AccessEntry, AccessList, Prefix};
use nonesuch_server::chaos::Chaos;
use nonesuch_server::reply_options::ReplySettings;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

/// Range of [`ResolverOptions::memory`], in bytes.
pub const MEMORY_RANGE: RangeInclusive<u64> = 8 << 20..=1 << 40;
/// Range of [`ResolverOptions::edns_payload`], in octets.
pub const EDNS_PAYLOAD_RANGE: RangeInclusive<u16> = 512..=4096;

/// The options of a resolver. The default resolves names in the Internet for clients on this host.
#[derive(Clone, Debug)]
pub struct ResolverOptions {
    /// The servers of the root zone.
    pub hints: Hints,
    /// Forward and stub zones.
    pub zones: ZoneRules,
    /// Apexes of the local zones that are off, see [`known_zones`](crate::local_names::known_zones).
    pub disabled_local_zones: Vec<Name>,
    /// Identifier in replies with NSID (RFC 5001); empty: replies have no NSID.
    pub nsid: Vec<u8>,
    /// Identity and version in class CH.
    pub chaos: Chaos,
    /// The permitted clients. Others get REFUSED. Entries with a TSIG key are errors.
    pub access: AccessList,
    /// Limits of the queries of clients.
    pub clients: ClientLimits,
    /// Bound of all memory that depends on traffic: cache, queries in flight and buffers, in bytes
    /// ([`MEMORY_RANGE`]).
    pub memory: u64,
    /// Maximum number of servers of which properties, such as the round-trip time, are stored.
    pub server_entries: u32,
    /// Limits of the work for one client query.
    pub limits: UpstreamLimits,
    /// Bounds of TTLs.
    pub ttl: TtlBounds,
    /// Whether servers get only the labels of a name that they need (RFC 9156).
    pub qname_minimisation: bool,
    /// Whether failures are reported to the agents that authoritative servers name (RFC 9567).
    pub error_reporting: bool,
    /// Whether NXDOMAIN for a name answers queries for names below it (RFC 8020).
    pub nxdomain_cut: bool,
    /// Whether the letter case of query names is random, and responses must copy it
    /// (draft-vixie-dnsext-dns0x20).
    pub use_0x20: bool,
    /// The EDNS payload size in queries, and the maximum size of a response over UDP, in octets
    /// ([`EDNS_PAYLOAD_RANGE`]).
    pub edns_payload: u16,
    /// Replies over TLS to padded queries are padded to a multiple of this number of octets (RFC
    /// 8467); 0: no padding.
    pub padding_block: u16,
    /// Which address families are used for queries.
    pub families: AddressFamilies,
    /// Trust anchors, algorithms and use of denial records.
    pub validation: ValidationOptions,
    /// Addresses that are not queried, even if an NS record leads to them. Servers of hints and of
    /// forward and stub zones are queried nevertheless.
    pub do_not_query: Vec<Prefix>,
}

impl Default for ResolverOptions {
    fn default() -> Self {
        let entry = |prefix| AccessEntry { prefix: Some(prefix), ..AccessEntry::default() };
        Self {
            hints: Hints::default(),
            zones: ZoneRules::default(),
            disabled_local_zones: Vec::new(),
            nsid: Vec::new(),
            chaos: Chaos::default(),
            access: AccessList::new(Prefix::loopback().into_iter().map(entry).collect()),
            clients: ClientLimits::default(),
            memory: 128 << 20,
            server_entries: 20_000,
            limits: UpstreamLimits::default(),
            ttl: TtlBounds::default(),
            qname_minimisation: true,
            error_reporting: false,
            nxdomain_cut: true,
            use_0x20: false,
            edns_payload: 1232,
            padding_block: ReplySettings::default().padding_block,
            families: AddressFamilies::default(),
            validation: ValidationOptions::default(),
            do_not_query: Vec::new(),
        }
    }
}

impl ResolverOptions {
    /// Checks that all values are in their ranges.
    ///
    /// # Errors
    /// The first value that is out of its range, or that contradicts another one.
    pub fn check(&self) -> Result<(), OptionsError> {
        check("memory", self.memory, MEMORY_RANGE, "bytes")?;
        check("server-entries", self.server_entries, 64..=10_000_000, "servers")?;
        check("edns-payload", self.edns_payload, EDNS_PAYLOAD_RANGE, "octets")?;
        self.clients.check()?;
        limits::check_upstream(&self.limits)?;
        self.ttl.check()?;
        if let Some(key) = self.access.keys().next() {
            return Err(OptionsError::AccessKey { name: key.clone() });
        }
        if !self.hints.addresses().any(|address| self.families.allows(address)) {
            return Err(OptionsError::NoHint { families: self.families });
        }
        self.check_families_of_zones()
    }

    fn check_families_of_zones(&self) -> Result<(), OptionsError> {
        let allows = |rule: &ZoneRule| rule.servers.iter().any(|server| self.families.allows(server.ip()));
        match self.zones.iter().find(|rule| !allows(rule)) {
            Some(rule) => Err(OptionsError::NoServer { apex: rule.apex.clone(), families: self.families }),
            None => Ok(()),
        }
    }

    /// Whether the resolver may query a server of the zone `zone` at `address`, which it learnt from
    /// records of this or another zone. It may always query the addresses in hints, forward zones
    /// and stub zones; the caller does not ask for these.
    ///
    /// An address that no server in the Internet can have ([`is_unusable_address`]) is not queried,
    /// with one exception: if the hints, or the stub zone at or above `zone`, name a loopback
    /// address, loopback addresses of their subdomains are queried. A zone outside such a stub zone
    /// cannot make the resolver query services of its host.
    #[must_use]
    pub fn may_query(&self, zone: NameRef<'_>, address: IpAddr) -> bool {
        let is_usable = if address.is_loopback() {
            self.has_loopback_servers(zone)
        } else {
            !is_unusable_address(address)
        };
        is_usable
            && self.families.allows(address)
            && !self.do_not_query.iter().any(|prefix| prefix.contains(address))
    }

    /// Whether the hints or the stub zone from which iteration for `zone` starts have a loopback
    /// address.
    fn has_loopback_servers(&self, zone: NameRef<'_>) -> bool {
        match self.zones.closest_stub(zone) {
            Some(rule) => rule.servers.iter().any(|server| server.ip().is_loopback()),
            None => self.hints.addresses().any(|address| address.is_loopback()),
        }
    }
}

/// Which address families are used for queries to servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressFamilies {
    /// Both: the round-trip time decides.
    #[default]
    Both,
    /// IPv6 addresses of a zone's servers are used only if it has no usable IPv4 address.
    PreferIpv4,
    /// IPv4 addresses of a zone's servers are used only if it has no usable IPv6 address.
    PreferIpv6,
    /// Only IPv4.
    OnlyIpv4,
    /// Only IPv6.
    OnlyIpv6,
}

impl AddressFamilies {
    /// All values with their names in the configuration.
    pub const NAMES: [(&str, Self); 5] = [
        ("both", Self::Both),
        ("prefer-ipv4", Self::PreferIpv4),
        ("prefer-ipv6", Self::PreferIpv6),
        ("ipv4", Self::OnlyIpv4),
        ("ipv6", Self::OnlyIpv6),
    ];

    /// Returns the types of the addresses that are looked up.
    #[must_use]
    pub const fn types(self) -> &'static [Rtype] {
        match self {
            Self::Both | Self::PreferIpv4 | Self::PreferIpv6 => &[Rtype::A, Rtype::AAAA],
            Self::OnlyIpv4 => &[Rtype::A],
            Self::OnlyIpv6 => &[Rtype::AAAA],
        }
    }

    /// Removes the addresses of a family that is not used, and those of the other family if there are
    /// some of the preferred one.
    pub(crate) fn keep_preferred(self, addresses: &mut Vec<SocketAddr>) {
        let prefers_ipv4 = match self {
            Self::PreferIpv4 => true,
            Self::PreferIpv6 => false,
            Self::Both => return,
            Self::OnlyIpv4 | Self::OnlyIpv6 => return addresses.retain(|address| self.allows(address.ip())),
        };
        if addresses.iter().any(|address| address.is_ipv4() == prefers_ipv4) {
            addresses.retain(|address| address.is_ipv4() == prefers_ipv4);
        }
    }

    /// Whether addresses of the family of `address` are used at all.
    #[must_use]
    pub const fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Both | Self::PreferIpv4 | Self::PreferIpv6 => true,
            Self::OnlyIpv4 => address.is_ipv4(),
            Self::OnlyIpv6 => address.is_ipv6(),
        }
    }
}

impl fmt::Display for AddressFamilies {
    /// Writes the value of the configuration key `address-families`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMES.iter().find(|(_, families)| families == self).map(|(name, _)| *name);
        f.pad(name.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
