//! Address prefixes.

use super::AccessError;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    network: Network,
    bits: u8,
}

/// The first address of a prefix, and the mask of the shared bits. The mask is stored, because rate
/// limiting compares prefixes for each response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Network {
    V4 { address: u32, mask: u32 },
    V6 { address: u128, mask: u128 },
}

impl Prefix {
    /// Returns the prefix of the first `bits` of `address`. Returns `None` if `bits` exceeds the
    /// width of the address, or if `address` has other bits set.
    #[must_use]
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        Self::containing(address, bits).filter(|prefix| prefix.address() == address)
    }

    /// Returns the prefix that contains only `address`.
    #[must_use]
    pub fn of_address(address: IpAddr) -> Option<Self> {
        Self::containing(address, width_of(address))
    }

    /// Returns the prefix of length `bits` that contains `address`; `None` if `bits` exceeds the
    /// width of the address.
    #[must_use]
    pub fn containing(address: IpAddr, bits: u8) -> Option<Self> {
        if bits > width_of(address) {
            return None;
        }
        let network = match address {
            IpAddr::V4(address) => {
                let mask = !u32::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                Network::V4 { address: address.to_bits() & mask, mask }
            }
            IpAddr::V6(address) => {
                let mask = !u128::MAX.checked_shr(u32::from(bits)).unwrap_or(0);
                Network::V6 { address: address.to_bits() & mask, mask }
            }
        };
        Some(Self { network, bits })
    }

    /// The first address of the prefix.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        match self.network {
            Network::V4 { address, .. } => IpAddr::V4(Ipv4Addr::from_bits(address)),
            Network::V6 { address, .. } => IpAddr::V6(Ipv6Addr::from_bits(address)),
        }
    }

    /// Whether the prefix contains `address`. An IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2)
    /// counts as an IPv4 address.
    #[inline]
    #[must_use]
    pub const fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address.to_canonical()) {
            (Network::V4 { address: network, mask }, IpAddr::V4(address)) => {
                address.to_bits() & mask == network
            }
            (Network::V6 { address: network, mask }, IpAddr::V6(address)) => {
                address.to_bits() & mask == network
            }
            _ => false,
        }
    }

    /// Whether this prefix contains all addresses of `other`.
    #[must_use]
    pub const fn covers(&self, other: &Self) -> bool {
        self.bits <= other.bits && self.contains(other.address())
    }
}

const fn width_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address();
        if self.bits == width_of(address) {
            return fmt::Display::fmt(&address, f);
        }
        write!(f, "{address}/{}", self.bits)
    }
}

impl FromStr for Prefix {
    type Err = AccessError;

    fn from_str(text: &str) -> Result<Self, AccessError> {
        let parse_error = || AccessError::Prefix(text.to_owned());
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| parse_error())?;
        let width = width_of(address);
        let bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| parse_error()))?;
        let meant = Self::containing(address, bits).ok_or_else(parse_error)?;
        if meant.address() != address {
            return Err(AccessError::HostBits { given: text.to_owned(), meant });
        }
        Ok(meant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_prefix_contains_what_shares_its_bits(bits in 0u8..=128, shared in 0u32..=128, a: u128, b: u128) {
            let mask = !u128::MAX.checked_shr(shared).unwrap_or(0);
            let b = a & mask | b & !mask;
            let prefix = Prefix::containing(IpAddr::V6(Ipv6Addr::from_bits(a)), bits).unwrap();
            let other = Ipv6Addr::from_bits(b);
            let same = (0..bits).all(|bit| (a ^ b) >> (127 - bit) & 1 == 0);
            // An IPv4-mapped address belongs to the other family.
            prop_assert_eq!(prefix.contains(IpAddr::V6(other)), same && other.to_ipv4_mapped().is_none());
            prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
            let (bits, a, b) = (bits % 33, (a >> 96) as u32, (b >> 96) as u32);
            let prefix = Prefix::containing(IpAddr::V4(Ipv4Addr::from_bits(a)), bits).unwrap();
            let other = Ipv4Addr::from_bits(b);
            let same = (0..bits).all(|bit| (a ^ b) >> (31 - bit) & 1 == 0);
            prop_assert_eq!(prefix.contains(IpAddr::V4(other)), same);
            prop_assert_eq!(prefix.contains(IpAddr::V6(other.to_ipv6_mapped())), same);
            prop_assert!(!prefix.contains(IpAddr::V6(Ipv6Addr::LOCALHOST)));
            prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
        }
    }
}
