//! Source addresses on the loopback interface for captured clients.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

/// First network, as the upper 24 bits of its addresses: 127.1.0.0/24.
const FIRST_NETWORK: u32 = 127 << 16 | 1 << 8;
/// Number of networks: up to 127.254.255.0/24.
const NETWORK_COUNT: u32 = 254 << 8;
/// Number of bits of an IPv6 address after the /56 prefix by which servers limit rates.
const IPV6_HOST_BITS: u32 = 128 - 56;

/// Returns an address in 127.0.0.0/8 for each client. Clients of one network, IPv4 /24 or IPv6 /56,
/// have addresses in one /24 network. IPv4 clients keep their last octet. With more than 65,024
/// networks, some networks share a /24 network.
pub(super) fn loopback_addresses(clients: &[IpAddr]) -> Vec<IpAddr> {
    // The index of a network, and the number of its clients so far.
    let mut networks: HashMap<(bool, u128), (u32, u32)> = HashMap::new();
    let address = |client: &IpAddr| {
        let key = match client {
            IpAddr::V4(address) => (true, u128::from(address.to_bits() >> 8)),
            IpAddr::V6(address) => (false, address.to_bits() >> IPV6_HOST_BITS),
        };
        let next = networks.len() as u32 % NETWORK_COUNT;
        let (network, count) = networks.entry(key).or_insert((next, 0));
        *count += 1;
        let host = match client {
            IpAddr::V4(address) => address.to_bits() & 0xff,
            IpAddr::V6(_) => 1 + (*count - 1) % 254,
        };
        Ipv4Addr::from_bits((FIRST_NETWORK + *network) << 8 | host).into()
    };
    clients.iter().map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(clients: &[&str]) -> Vec<String> {
        let clients: Vec<IpAddr> = clients.iter().map(|text| text.parse().expect("an address")).collect();
        loopback_addresses(&clients).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn networks_and_last_octets_are_kept() {
        let clients = ["192.0.2.1", "192.0.2.255", "198.51.100.1", "192.0.2.7", "0.0.0.0"];
        let expected = ["127.1.0.1", "127.1.0.255", "127.1.1.1", "127.1.0.7", "127.1.2.0"];
        assert_eq!(addresses(&clients), expected);
        let clients = ["2001:db8::1", "2001:db8:0:ff::1", "2001:db8:0:100::1", "::192.0.2.1", "192.0.2.1"];
        assert_eq!(addresses(&clients), ["127.1.0.1", "127.1.0.2", "127.1.1.1", "127.1.2.1", "127.1.3.1"]);
    }

    #[test]
    fn addresses_stay_in_the_loopback_network_and_differ() {
        let clients: Vec<IpAddr> =
            (0..70_000u32).map(|network| Ipv4Addr::from_bits(network << 8 | 5).into()).collect();
        let mut found = loopback_addresses(&clients);
        assert!(found.iter().all(IpAddr::is_loopback));
        assert_eq!(
            (found[NETWORK_COUNT as usize - 1], found[NETWORK_COUNT as usize]),
            ([127, 254, 255, 5].into(), found[0])
        );
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), NETWORK_COUNT as usize);
    }
}
