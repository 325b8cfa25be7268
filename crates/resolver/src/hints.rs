//! Root hints: names and addresses of the servers of the root zone, for the priming query (RFC
//! 9609).

use crate::addresses::is_unusable_address;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::net::IpAddr;

/// Maximum number of servers in hints.
pub const MAX_HINT_SERVERS: usize = 64;
/// Maximum number of addresses of one server in hints.
pub const MAX_HINT_ADDRESSES: usize = 16;

/// The servers of the root zone with their IPv4 and IPv6 addresses, as IANA published them in 2025
/// (<https://www.internic.net/domain/named.root>).
const ROOT_SERVERS: [(&str, &str, &str); 13] = [
    ("a.root-servers.net.", "198.41.0.4", "2001:503:ba3e::2:30"),
    ("b.root-servers.net.", "170.247.170.2", "2801:1b8:10::b"),
    ("c.root-servers.net.", "192.33.4.12", "2001:500:2::c"),
    ("d.root-servers.net.", "199.7.91.13", "2001:500:2d::d"),
    ("e.root-servers.net.", "192.203.230.10", "2001:500:a8::e"),
    ("f.root-servers.net.", "192.5.5.241", "2001:500:2f::f"),
    ("g.root-servers.net.", "192.112.36.4", "2001:500:12::d0d"),
    ("h.root-servers.net.", "198.97.190.53", "2001:500:1::53"),
    ("i.root-servers.net.", "192.36.148.17", "2001:7fe::53"),
    ("j.root-servers.net.", "192.58.128.30", "2001:503:c27::2:30"),
    ("k.root-servers.net.", "193.0.14.129", "2001:7fd::1"),
    ("l.root-servers.net.", "199.7.83.42", "2001:500:9f::42"),
    ("m.root-servers.net.", "202.12.27.33", "2001:dc3::35"),
];

/// The servers of the root zone. The default are those of the Internet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hints {
    servers: Vec<(Name, Vec<IpAddr>)>,
}

impl Default for Hints {
    fn default() -> Self {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address of the table");
        let servers = ROOT_SERVERS.iter().map(|(name, ipv4, ipv6)| {
            (name.parse().expect("a name of the table"), vec![address(ipv4), address(ipv6)])
        });
        Self { servers: servers.collect() }
    }
}

impl Hints {
    /// Returns hints with these servers, each given by its name and an address. A server with
    /// several addresses occurs several times.
    ///
    /// # Errors
    /// There is no server, an address is not that of a server or occurs twice for the same server, or
    /// there are more than [`MAX_HINT_SERVERS`] servers or [`MAX_HINT_ADDRESSES`] of one server.
    pub fn new(addresses: impl IntoIterator<Item = (Name, IpAddr)>) -> Result<Self, HintsError> {
        let mut hints = Self { servers: Vec::new() };
        for (server, address) in addresses {
            if hints.addresses_of(&server).is_none() {
                hints.add_server(server.clone())?;
            }
            hints.add_address(&server, address)?;
        }
        hints.check()
    }

    /// Returns the hints that the records of a hints file form: NS records of the root, and A and
    /// AAAA records of the servers that these name, in any order. A record is its owner, its type
    /// and its RDATA without compression.
    ///
    /// # Errors
    /// The records contain other records, or do not form hints within [`MAX_HINT_SERVERS`] and
    /// [`MAX_HINT_ADDRESSES`]. [`HintsError`] names the record and the remedy.
    pub fn from_records(records: &[(Name, Rtype, Vec<u8>)]) -> Result<Self, HintsError> {
        let mut hints = Self { servers: Vec::new() };
        for (owner, rtype, rdata) in records {
            if *rtype == Rtype::NS {
                hints.add_server(read_server(owner, rdata)?)?;
            }
        }
        for (owner, rtype, rdata) in records {
            if *rtype != Rtype::NS {
                hints.add_address(owner, read_address(owner, *rtype, rdata)?)?;
            }
        }
        hints.check()
    }

    /// Returns the name of each server and its addresses, at least one.
    #[must_use]
    pub fn servers(&self) -> &[(Name, Vec<IpAddr>)] {
        &self.servers
    }

    /// Returns the addresses of all servers. An address may occur several times.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.servers.iter().flat_map(|(_, addresses)| addresses).copied()
    }

    fn addresses_of(&mut self, server: &Name) -> Option<&mut Vec<IpAddr>> {
        self.servers.iter_mut().find(|(known, _)| known == server).map(|(_, addresses)| addresses)
    }

    fn add_server(&mut self, server: Name) -> Result<(), HintsError> {
        if self.addresses_of(&server).is_some() {
            return Err(HintsError::RepeatedServer { server });
        }
        if self.servers.len() == MAX_HINT_SERVERS {
            return Err(HintsError::TooManyServers);
        }
        self.servers.push((server, Vec::new()));
        Ok(())
    }

    fn add_address(&mut self, server: &Name, address: IpAddr) -> Result<(), HintsError> {
        // A local copy of the root zone may be served on a loopback address.
        if is_unusable_address(address) && !address.is_loopback() {
            return Err(HintsError::Address { server: server.clone(), address });
        }
        let Some(addresses) = self.addresses_of(server) else {
            return Err(HintsError::NotAServer { owner: server.clone() });
        };
        if addresses.contains(&address) {
            return Err(HintsError::RepeatedAddress { server: server.clone(), address });
        }
        if addresses.len() == MAX_HINT_ADDRESSES {
            return Err(HintsError::TooManyAddresses { server: server.clone() });
        }
        addresses.push(address);
        Ok(())
    }

    /// Checks that there are servers, and that each has an address.
    fn check(self) -> Result<Self, HintsError> {
        if self.servers.is_empty() {
            return Err(HintsError::NoServer);
        }
        match self.servers.iter().find(|(_, addresses)| addresses.is_empty()) {
            Some((server, _)) => Err(HintsError::NoAddress { server: server.clone() }),
            None => Ok(self),
        }
    }
}

/// Reads the server that an NS record names.
fn read_server(owner: &Name, rdata: &[u8]) -> Result<Name, HintsError> {
    if !owner.view().is_root() {
        return Err(HintsError::NotOfRoot { owner: owner.clone() });
    }
    match NameRef::from_wire(rdata) {
        Ok(server) => Ok(server.to_name()),
        Err(_) => Err(HintsError::Malformed { owner: owner.clone(), rtype: Rtype::NS }),
    }
}

/// Reads the address in an A or AAAA record.
fn read_address(owner: &Name, rtype: Rtype, rdata: &[u8]) -> Result<IpAddr, HintsError> {
    let address = match rtype {
        Rtype::A => rdata.try_into().ok().map(|octets: [u8; 4]| IpAddr::from(octets)),
        Rtype::AAAA => rdata.try_into().ok().map(|octets: [u8; 16]| IpAddr::from(octets)),
        _ => return Err(HintsError::OtherType { owner: owner.clone(), rtype }),
    };
    address.ok_or_else(|| HintsError::Malformed { owner: owner.clone(), rtype })
}

/// Why records are not root hints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HintsError {
    /// There is no NS record.
    #[error("no NS record of the root: add lines like '. NS a.root-servers.net.'")]
    NoServer,
    /// A server has no address.
    #[error("server {server} has no address: add an A or AAAA record, or remove its NS record")]
    NoAddress {
        /// The name of the server.
        server: Name,
    },
    /// An NS record is not of the root.
    #[error("{owner} NS: hints have only NS records of the root: remove it")]
    NotOfRoot {
        /// The owner of the record.
        owner: Name,
    },
    /// An address record is not of a server.
    #[error("{owner} is not a server of the root: add '. NS {owner}', or remove its address records")]
    NotAServer {
        /// The owner of the record.
        owner: Name,
    },
    /// A record has another type.
    #[error("{owner} {rtype}: hints have only NS, A and AAAA records: remove it")]
    OtherType {
        /// The owner of the record.
        owner: Name,
        /// Its type.
        rtype: Rtype,
    },
    /// The RDATA of a record is malformed.
    #[error("{owner} {rtype}: malformed RDATA: correct it, or remove the record")]
    Malformed {
        /// The owner of the record.
        owner: Name,
        /// Its type.
        rtype: Rtype,
    },
    /// No server can have the address.
    #[error("server {server}: {address} cannot be the address of a server: write a unicast address")]
    Address {
        /// The name of the server.
        server: Name,
        /// The address.
        address: IpAddr,
    },
    /// A server occurs twice.
    #[error("server {server} has two NS records: remove one")]
    RepeatedServer {
        /// The name of the server.
        server: Name,
    },
    /// A server has the same address twice.
    #[error("server {server} has the address {address} twice: remove one")]
    RepeatedAddress {
        /// The name of the server.
        server: Name,
        /// The address.
        address: IpAddr,
    },
    /// There are too many servers.
    #[error("more than {MAX_HINT_SERVERS} NS records: remove some")]
    TooManyServers,
    /// A server has too many addresses.
    #[error("server {server} has more than {MAX_HINT_ADDRESSES} addresses: remove some")]
    TooManyAddresses {
        /// The name of the server.
        server: Name,
    },
}

#[cfg(test)]
mod tests;
