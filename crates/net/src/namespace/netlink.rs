//! Interfaces, addresses and routes by route netlink (RFC 3549, rtnetlink(7)): the four requests
//! that a namespace of an experiment needs. Numbers are in the byte order of the machine.

use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;

use socket2::{Domain, Protocol, Socket, Type};

/// Size of a netlink header, in octets.
const HEADER: usize = 16;
/// Maximum size of an acknowledgement: a header, an error code and the request, with room for text.
const ACKNOWLEDGEMENT: usize = 4096;
/// Attribute of `IFLA_AF_SPEC` for IPv6: how link-local addresses are generated.
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
/// A request that fails if the object exists.
const CREATE: i32 = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
/// The interface generates no link-local address, and so sends no router solicitations either.
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;

/// A request: a header, a structure, and attributes.
struct Request {
    octets: Vec<u8>,
}

impl Request {
    /// Starts a request of type `kind` with its structure.
    fn new(kind: u16, flags: i32, structure: &[u8]) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut octets = vec![0; 4];
        octets.extend_from_slice(&kind.to_ne_bytes());
        octets.extend_from_slice(&flags.to_ne_bytes());
        // The sequence number and the port. The kernel fills in the port, and there is one request
        // at a time.
        octets.extend_from_slice(&[0; 8]);
        octets.extend_from_slice(structure);
        Self { octets }
    }

    /// Adds an attribute.
    fn with(mut self, kind: u16, value: &[u8]) -> Self {
        self.octets.extend_from_slice(&attribute(kind, value));
        self
    }

    /// Returns the octets, with the total length in the header.
    fn finish(mut self) -> Vec<u8> {
        let length = self.octets.len() as u32;
        self.octets[..4].copy_from_slice(&length.to_ne_bytes());
        self.octets
    }
}

/// Encodes an attribute: length without padding, type, value, padding to a multiple of four octets.
/// Values are short: addresses, numbers and attributes of these.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut octets = Vec::with_capacity(4 + value.len().next_multiple_of(4));
    octets.extend_from_slice(&(4 + value.len() as u16).to_ne_bytes());
    octets.extend_from_slice(&kind.to_ne_bytes());
    octets.extend_from_slice(value);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

/// Encodes the structure ifinfomsg for interface `index`, of which the flags `flags` are set.
fn interface_structure(index: u32, flags: u32) -> Vec<u8> {
    let mut structure = vec![libc::AF_UNSPEC as u8, 0, 0, 0];
    structure.extend_from_slice(&index.to_ne_bytes());
    structure.extend_from_slice(&flags.to_ne_bytes());
    // The flags that the request changes.
    structure.extend_from_slice(&flags.to_ne_bytes());
    structure
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// A connection to the network configuration of the namespace in which it was opened.
pub(super) struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Opens a connection in the namespace of the calling thread.
    pub(super) fn open() -> io::Result<Self> {
        let (domain, protocol) = (Domain::from(libc::AF_NETLINK), Protocol::from(libc::NETLINK_ROUTE));
        Ok(Self { socket: Socket::new(domain, Type::RAW, Some(protocol))? })
    }

    /// Sends a request and returns the result that the kernel reports.
    fn request(&self, request: Request) -> io::Result<()> {
        (&self.socket).write_all(&request.finish())?;
        let mut response = [0; ACKNOWLEDGEMENT];
        let length = (&self.socket).read(&mut response)?;
        acknowledged(response.get(..length).unwrap_or_default())
    }

    /// Sets the MTU in octets and the maximum number of waiting packets of an interface that is
    /// down, and turns off its link-local address.
    pub(super) fn configure_link(&self, index: u32, mtu: u32, queue: u32) -> io::Result<()> {
        let mode = attribute(IFLA_INET6_ADDR_GEN_MODE, &[IN6_ADDR_GEN_MODE_NONE]);
        let request = Request::new(libc::RTM_NEWLINK, 0, &interface_structure(index, 0))
            .with(libc::IFLA_MTU, &mtu.to_ne_bytes())
            .with(libc::IFLA_TXQLEN, &queue.to_ne_bytes())
            .with(libc::IFLA_AF_SPEC, &attribute(libc::AF_INET6 as u16, &mode));
        self.request(request)
    }

    /// Brings an interface up.
    pub(super) fn set_up(&self, index: u32) -> io::Result<()> {
        let up = libc::IFF_UP as u32;
        self.request(Request::new(libc::RTM_NEWLINK, 0, &interface_structure(index, up)))
    }

    /// Adds an address with a network of `prefix` bits, which gets packets at once: nothing looks
    /// for duplicates.
    pub(super) fn add_address(&self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let (flags, scope) = (libc::IFA_F_NODAD as u8, libc::RT_SCOPE_UNIVERSE);
        let mut structure = vec![family(address), prefix, flags, scope];
        structure.extend_from_slice(&index.to_ne_bytes());
        let octets = octets_of(address);
        let request = Request::new(libc::RTM_NEWADDR, CREATE, &structure)
            .with(libc::IFA_LOCAL, &octets)
            .with(libc::IFA_ADDRESS, &octets);
        self.request(request)?;
        // Linux adds the route that delivers packets to an IPv6 address in a work queue, possibly
        // after the first packet. This route has another metric, so that both can exist.
        let local = [libc::RT_TABLE_LOCAL, libc::RTPROT_STATIC, libc::RT_SCOPE_HOST, libc::RTN_LOCAL];
        if address.is_ipv6() { self.request(route(index, address, 128, local)) } else { Ok(()) }
    }

    /// Adds a route to a network of `prefix` bits through an interface.
    pub(super) fn add_route(&self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let scope = if address.is_ipv4() { libc::RT_SCOPE_LINK } else { libc::RT_SCOPE_UNIVERSE };
        let kind = [libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, scope, libc::RTN_UNICAST];
        self.request(route(index, address, prefix, kind))
    }
}

/// Returns the request for a new route: `kind` is its table, its origin, its scope and its type.
fn route(index: u32, address: IpAddr, prefix: u8, kind: [u8; 4]) -> Request {
    let structure = [[family(address), prefix, 0, 0], kind, [0; 4]];
    Request::new(libc::RTM_NEWROUTE, CREATE, structure.as_flattened())
        .with(libc::RTA_DST, &octets_of(address))
        .with(libc::RTA_OIF, &index.to_ne_bytes())
}

/// Reads an acknowledgement: a message of type NLMSG_ERROR with a negative error number, or 0 for
/// success.
fn acknowledged(response: &[u8]) -> io::Result<()> {
    let kind = response.get(4..6).and_then(|octets| octets.try_into().ok()).map(u16::from_ne_bytes);
    let code = response.get(HEADER..HEADER + 4).and_then(|octets| octets.try_into().ok());
    match (kind, code.map(i32::from_ne_bytes)) {
        (Some(kind), Some(0)) if i32::from(kind) == libc::NLMSG_ERROR => Ok(()),
        (Some(kind), Some(code)) if i32::from(kind) == libc::NLMSG_ERROR => {
            Err(io::Error::from_raw_os_error(code.saturating_neg()))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads attributes: the inverse of `attribute`.
    fn attributes(mut octets: &[u8]) -> Vec<(u16, Vec<u8>)> {
        let mut found = Vec::new();
        while !octets.is_empty() {
            let number = |at: usize| u16::from_ne_bytes([octets[at], octets[at + 1]]);
            let length = usize::from(number(0));
            found.push((number(2), octets[4..length].to_vec()));
            octets = &octets[length.next_multiple_of(4)..];
        }
        found
    }

    proptest! {
        #[test]
        fn attributes_of_a_request_are_read_back(
            expected in prop::collection::vec((any::<u16>(), prop::collection::vec(any::<u8>(), 0..40)), 0..5),
        ) {
            let start = Request::new(libc::RTM_NEWADDR, 0, &[7; 8]);
            let request = expected.iter().fold(start, |request, (kind, value)| request.with(*kind, value));
            let octets = request.finish();
            prop_assert_eq!(&octets[..4], &(octets.len() as u32).to_ne_bytes());
            prop_assert_eq!(&octets[HEADER..HEADER + 8], &[7; 8]);
            prop_assert_eq!(attributes(&octets[HEADER + 8..]), expected);
        }

        #[test]
        fn a_response_without_a_whole_code_is_an_error(length in 0..HEADER + 4, rest in any::<[u8; HEADER + 4]>()) {
            prop_assert!(acknowledged(&rest[..length]).is_err());
        }
    }

    #[test]
    fn an_error_number_becomes_an_error() {
        let mut response = [0; 36];
        response[4..6].copy_from_slice(&2_u16.to_ne_bytes());
        assert!(acknowledged(&response).is_ok());
        response[16..20].copy_from_slice(&(-libc::EEXIST).to_ne_bytes());
        let error = acknowledged(&response).expect_err("an error");
        assert_eq!(error.raw_os_error(), Some(libc::EEXIST));
        response[16..20].copy_from_slice(&i32::MIN.to_ne_bytes());
        assert!(acknowledged(&response).is_err());
    }
}
