//! Addresses of servers that the resolver never queries, whoever names them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether no server in the Internet can have this address: the unspecified, loopback,
/// multicast, broadcast, link-local and reserved addresses, and IPv6 addresses that stand for such
/// an IPv4 address.
///
/// Zones can have NS records for such addresses. A query to a loopback address would reach a
/// service of this host, or the resolver itself; one to a multicast or broadcast address would reach
/// many hosts. Addresses for private use (RFC 1918, RFC 4193) are not included: resolvers of many
/// networks query servers there.
#[must_use]
pub const fn is_unusable_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_unusable_ipv4(address),
        IpAddr::V6(address) => is_unusable_ipv6(address),
    }
}

const fn is_unusable_ipv4(address: Ipv4Addr) -> bool {
    // 0.0.0.0/8 means "this network" (RFC 1122 §3.2.1.3); Linux sends to 0.0.0.0 over loopback.
    // 240.0.0.0/4 is reserved (RFC 1112 §4) and includes the broadcast address.
    let first = address.octets()[0];
    first == 0 || first >= 240 || address.is_loopback() || address.is_multicast() || address.is_link_local()
}

const fn is_unusable_ipv6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    match segments {
        // ::/96 includes the unspecified address, the loopback address and the deprecated
        // IPv4-compatible addresses (RFC 4291 §2.5.5.1).
        [0, 0, 0, 0, 0, 0, ..] => true,
        // IPv4-mapped addresses (RFC 4291 §2.5.5.2) are not in packets. A socket may translate
        // ::ffff:127.0.0.1 to a loopback address.
        [0, 0, 0, 0, 0, 0xffff, ..] => true,
        // 64:ff9b::/96 (RFC 6052 §2.1): a translator (NAT64) sends the query to the IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_unusable_ipv4(Ipv4Addr::from_bits((high as u32) << 16 | low as u32))
        }
        // Multicast ff00::/8, link-local fe80::/10, and the deprecated site-local fec0::/10
        // (RFC 3879).
        [first, ..] => first >= 0xfe80,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unusable(address: &str) -> bool {
        is_unusable_address(address.parse().unwrap())
    }

    #[test]
    fn no_server_has_a_special_address() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.0.1",
            "224.0.0.251",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:192.0.2.1",
            "64:ff9b::127.0.0.1",
            "64:ff9b::255.255.255.255",
            "fe80::1",
            "febf:ffff::1",
            "fec0::1",
            "ff02::fb",
        ] {
            assert!(unusable(address), "{address}");
        }
    }

    #[test]
    fn servers_have_other_addresses() {
        for address in [
            "1.0.0.0",
            "10.0.0.1",
            "100.64.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "172.16.0.1",
            "192.0.2.1",
            "192.168.1.1",
            "223.255.255.255",
            "64:ff9b::192.0.2.1",
            "2001:503:ba3e::2:30",
            "2001:db8::1",
            "fd00::1",
            "fe7f::1",
        ] {
            assert!(!unusable(address), "{address}");
        }
    }
}
