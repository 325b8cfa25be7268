//! The networks that clients are counted under, as people write them.

use super::Limits;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Limits {
    /// The network that `client` is counted under where responses are limited: its first address, and how many bits make it.
    #[must_use]
    pub fn network_of(&self, client: IpAddr) -> Option<(IpAddr, u8)> {
        let settings = self.settings.responses.as_ref()?;
        Some(match client.to_canonical() {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(settings.ipv4_prefix.min(32))).unwrap_or(0);
                (Ipv4Addr::from_bits(address.to_bits() & mask).into(), settings.ipv4_prefix)
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(settings.ipv6_prefix.min(128))).unwrap_or(0);
                (Ipv6Addr::from_bits(address.to_bits() & mask).into(), settings.ipv6_prefix)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{LimitSettings, RateSettings};

    #[test]
    fn a_client_is_in_its_network() {
        let rates = RateSettings { ipv4_prefix: 24, ipv6_prefix: 56, ..RateSettings::default() };
        let settings = LimitSettings { responses: Some(rates), ..LimitSettings::default() };
        let limits = Limits::new(&settings).unwrap();
        for (client, expected) in [
            ("192.0.2.77", ("192.0.2.0", 24)),
            ("::ffff:192.0.2.77", ("192.0.2.0", 24)),
            ("2001:db8:1:2ff:3::4", ("2001:db8:1:200::", 56)),
        ] {
            let network = (expected.0.parse().unwrap(), expected.1);
            assert_eq!(limits.network_of(client.parse().unwrap()), Some(network));
        }
        let settings = LimitSettings { responses: None, ..LimitSettings::default() };
        assert_eq!(Limits::new(&settings).unwrap().network_of("192.0.2.77".parse().unwrap()), None);
    }
}
