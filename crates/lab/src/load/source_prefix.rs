//! Source addresses of queries. To a server that distinguishes clients by address, each source
//! address is a client.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A prefix of addresses of this machine, for example `127.1.0.0/16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePrefix {
    first: IpAddr,
    length: u8,
}

/// The text is not a prefix of addresses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address prefix: write it like 127.1.0.0/16, with all bits after the prefix zero")]
pub struct SourcePrefixError {
    text: String,
}

impl FromStr for SourcePrefix {
    type Err = SourcePrefixError;

    fn from_str(text: &str) -> Result<Self, SourcePrefixError> {
        let read = || {
            let (first, length) = text.split_once('/')?;
            let sources = Self { first: first.parse().ok()?, length: length.parse().ok()? };
            let is_valid = sources.length <= sources.address_bits()
                && sources.first_as_integer() & (sources.address_count() - 1) == 0;
            is_valid.then_some(sources)
        };
        read().ok_or_else(|| SourcePrefixError { text: text.to_owned() })
    }
}

impl fmt::Display for SourcePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

impl SourcePrefix {
    const fn address_bits(&self) -> u8 {
        if self.first.is_ipv4() { 32 } else { 128 }
    }

    const fn first_as_integer(&self) -> u128 {
        match self.first {
            IpAddr::V4(address) => address.to_bits() as u128,
            IpAddr::V6(address) => address.to_bits(),
        }
    }

    /// Returns the number of addresses in the prefix; 2^127 for `::/0`.
    fn address_count(&self) -> u128 {
        1 << (self.address_bits() - self.length).min(127)
    }

    /// Whether a socket with such an address can reach `server`: both have the same address family.
    pub(super) const fn has_family_of(&self, server: IpAddr) -> bool {
        self.first.is_ipv4() == server.is_ipv4()
    }

    /// Returns source address `index` of `count`. The prefix is divided into `count` equal parts;
    /// the address is in the middle of its part.
    pub(super) fn address(&self, index: usize, count: usize) -> IpAddr {
        let part = (self.address_count() / count.max(1) as u128).max(1);
        let address = self.first_as_integer() + (part * index as u128 + part / 2) % self.address_count();
        match self.first {
            IpAddr::V4(_) => Ipv4Addr::from_bits(address as u32).into(),
            IpAddr::V6(_) => Ipv6Addr::from_bits(address).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(text: &str, count: usize) -> Vec<String> {
        let sources: SourcePrefix = text.parse().expect("a prefix");
        assert_eq!(sources.to_string(), text);
        (0..count).map(|index| sources.address(index, count).to_string()).collect()
    }

    #[test]
    fn sockets_are_spread_over_the_prefix() {
        assert_eq!(addresses("127.1.0.0/30", 2), ["127.1.0.1", "127.1.0.3"]);
        assert_eq!(addresses("127.1.0.0/30", 4), ["127.1.0.0", "127.1.0.1", "127.1.0.2", "127.1.0.3"]);
        assert_eq!(addresses("127.0.0.1/32", 3), ["127.0.0.1"; 3]);
        let networks = addresses("127.1.0.0/16", 256);
        assert_eq!((networks[0].as_str(), networks[255].as_str()), ("127.1.0.128", "127.1.255.128"));
        assert_eq!(addresses("2001:db8::/32", 2), ["2001:db8:4000::", "2001:db8:c000::"]);
        assert_eq!(addresses("::/0", 1), ["4000::"]);
    }

    #[test]
    fn what_is_no_prefix_is_refused() {
        for wrong in ["", "127.0.0.1", "127.0.0.0/33", "127.0.0.1/8", "2001:db8::/129", "x/8", "127.0.0.0/x"]
        {
            assert!(wrong.parse::<SourcePrefix>().is_err(), "{wrong}");
        }
    }
}
