//! Addresses and zones as keys of tables, and their hashes.

use nonesuch_proto::NameRef;
use siphasher::sip::SipHasher13;
use std::net::{IpAddr, SocketAddr};

/// The address and port of a server. Scope identifiers are not part of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AddressKey {
    /// The address in the form of IPv6; an IPv4 address is mapped (RFC 4291 §2.5.5.2).
    pub(super) address: [u8; 16],
    port: u16,
}

impl AddressKey {
    pub(super) const fn new(server: SocketAddr) -> Self {
        let address = match server.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        Self { address, port: server.port() }
    }

    /// Whether packets to the server are IPv4 packets.
    pub(super) const fn is_ipv4(&self) -> bool {
        matches!(self.address, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, ..])
    }

    /// Returns the octets that servers of one network share: 16 bits of an IPv4 address, 48 bits of
    /// an IPv6 address.
    pub(super) fn network(&self) -> &[u8] {
        if self.is_ipv4() { &self.address[..14] } else { &self.address[..6] }
    }
}

/// A zone, for [`ServerTable`](super::ServerTable) only: a keyed hash of its name. Two names that
/// differ only in case have the same key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ZoneKey(pub(super) u64);

/// The keyed hash of the tables. Without the key, nobody can choose addresses or names that share a
/// place in a table with those of another zone.
pub(super) struct KeyedHash(SipHasher13);

impl KeyedHash {
    pub(super) fn new(key: &[u8; 16]) -> Self {
        Self(SipHasher13::new_with_key(key))
    }

    pub(super) fn address(&self, key: &AddressKey) -> u64 {
        let mut octets = [0; 18];
        octets[..16].copy_from_slice(&key.address);
        octets[16..].copy_from_slice(&key.port.to_be_bytes());
        self.0.hash(&octets)
    }

    pub(super) fn octets(&self, octets: &[u8]) -> u64 {
        self.0.hash(octets)
    }

    pub(super) fn zone(&self, name: NameRef<'_>) -> ZoneKey {
        let mut lower_case = [0; 255];
        let wire = name.wire();
        // A name has at most 255 octets.
        let octets = &mut lower_case[..wire.len().min(255)];
        octets.copy_from_slice(&wire[..octets.len()]);
        octets.make_ascii_lowercase();
        ZoneKey(self.0.hash(octets))
    }
}

/// Mixes 64 bits: one step of SplitMix64 from the state `value`.
pub(super) const fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    fn key(text: &str) -> AddressKey {
        AddressKey::new(text.parse().expect("an address"))
    }

    #[test]
    fn port_and_address_make_a_server() {
        assert_ne!(key("192.0.2.1:53"), key("192.0.2.1:54"));
        assert_ne!(key("192.0.2.1:53"), key("192.0.2.2:53"));
        assert_eq!(key("192.0.2.1:53"), key("[::ffff:192.0.2.1]:53"));
        let hash = KeyedHash::new(&[1; 16]);
        assert_ne!(hash.address(&key("192.0.2.1:53")), hash.address(&key("192.0.2.1:54")));
    }

    #[test]
    fn the_network_is_a_part_of_the_address() {
        assert!(key("192.0.2.1:53").is_ipv4() && !key("[2001:db8::1]:53").is_ipv4());
        assert_eq!(key("192.0.2.1:53").network(), key("192.0.3.1:53").network());
        assert_ne!(key("192.0.2.1:53").network(), key("192.1.2.1:53").network());
        assert_eq!(key("[2001:db8:1:2::]:53").network(), key("[2001:db8:1:3::]:53").network());
        assert_ne!(key("[2001:db8:1:2::]:53").network(), key("[2001:db8:2:2::]:53").network());
    }

    #[test]
    fn a_zone_has_one_key_in_any_case_and_another_with_another_secret() {
        let name = |text: &str| text.parse::<Name>().expect("a name");
        let hash = KeyedHash::new(&[1; 16]);
        assert_eq!(hash.zone(name("Example.").view()), hash.zone(name("eXAMPLE.").view()));
        assert_ne!(hash.zone(name("example.").view()), hash.zone(name("example.org.").view()));
        assert_ne!(hash.zone(NameRef::ROOT), KeyedHash::new(&[2; 16]).zone(NameRef::ROOT));
    }
}
