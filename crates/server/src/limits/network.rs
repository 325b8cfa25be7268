//! The client networks that the log messages of rate limiting contain.

use super::Limits;
use crate::acl::Prefix;
use std::net::IpAddr;

impl Limits {
    /// Returns the network that rate limiting counts `client` under, as its first address and
    /// prefix length. Returns `None` if response rate limiting is off.
    #[must_use]
    pub fn network_of(&self, client: IpAddr) -> Option<(IpAddr, u8)> {
        let settings = self.settings.responses.as_ref()?;
        let client = client.to_canonical();
        let bits = if client.is_ipv4() { settings.ipv4_prefix } else { settings.ipv6_prefix };
        Some((Prefix::containing(client, bits)?.address(), bits))
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
