//! Crypto-PAn: prefix-preserving anonymisation of addresses with AES-128 (Xu, Fan, Ammar and Moon,
//! ICNP 2002). The common prefix of two addresses and that of their replacements have the same
//! length.

use super::error::{CaptureError, KeyError};
use super::key::AnonymisationKey;
use aws_lc_rs::cipher::{AES_128, EncryptingKey, UnboundCipherKey};
use std::net::{IpAddr, SocketAddr};
use zeroize::Zeroizing;

/// Length of a block of AES in octets.
const AES_BLOCK_SIZE: usize = 16;

/// Replaces addresses. The replacements depend on the key.
#[derive(Debug)]
pub struct CryptoPan {
    cipher: EncryptingKey,
    padding: Zeroizing<[u8; AES_BLOCK_SIZE]>,
}

impl CryptoPan {
    /// Creates the replacement function of a key.
    ///
    /// # Errors
    /// [`KeyError::Cipher`] if the cryptographic library rejects the key.
    pub fn new(key: &AnonymisationKey) -> Result<Self, KeyError> {
        let (key, block) = key.halves();
        let cipher = UnboundCipherKey::new(&AES_128, key).and_then(EncryptingKey::ecb);
        let cipher = cipher.map_err(|_| KeyError::Cipher)?;
        let mut padding = Zeroizing::new([0; AES_BLOCK_SIZE]);
        padding.copy_from_slice(block);
        cipher.encrypt(&mut padding[..]).map_err(|_| KeyError::Cipher)?;
        Ok(Self { cipher, padding })
    }

    /// Returns the replacement of an address.
    ///
    /// # Errors
    /// [`CaptureError::Cipher`] if the cryptographic library fails.
    pub fn replace_address(&self, address: IpAddr) -> Result<IpAddr, CaptureError> {
        Ok(match address {
            IpAddr::V4(address) => {
                let mut octets = address.octets();
                self.replace_octets(&mut octets)?;
                octets.into()
            }
            IpAddr::V6(address) => {
                let mut octets = address.octets();
                self.replace_octets(&mut octets)?;
                octets.into()
            }
        })
    }

    /// Replaces the IP address of a client or server. The port stays.
    pub(super) fn replace_ip(&self, address: &mut SocketAddr) -> Result<(), CaptureError> {
        address.set_ip(self.replace_address(address.ip())?);
        Ok(())
    }

    /// Replaces the octets of an address, at most 16, or its first octets.
    ///
    /// Bit `n` of the replacement is bit `n` of the address, inverted if the first bit of the
    /// encrypted block is set. The block consists of the first `n` bits of the address, and the
    /// padding.
    pub(super) fn replace_octets(&self, octets: &mut [u8]) -> Result<(), CaptureError> {
        let mut address = [0; AES_BLOCK_SIZE];
        for (slot, octet) in address.iter_mut().zip(&*octets) {
            *slot = *octet;
        }
        let (address, padding) = (u128::from_be_bytes(address), u128::from_be_bytes(*self.padding));
        let bits = 8 * octets.len().min(AES_BLOCK_SIZE) as u32;
        let block = |bit: u32| {
            let mask = u128::MAX.checked_shr(bit).unwrap_or(0);
            (address & !mask | padding & mask).to_be_bytes()
        };
        let mut blocks: Vec<u8> = (0..bits).flat_map(block).collect();
        self.cipher.encrypt(&mut blocks).map_err(|_| CaptureError::Cipher)?;
        for (bit, block) in blocks.chunks_exact(AES_BLOCK_SIZE).enumerate() {
            octets[bit / 8] ^= (block[0] >> 7) << (7 - bit % 8);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The key of the sample in the distribution of Crypto-PAn.
    const SAMPLE_KEY: [u8; 32] = [
        21, 34, 23, 141, 51, 164, 207, 128, 19, 10, 91, 22, 73, 144, 125, 16, 216, 152, 143, 131, 121, 121,
        101, 39, 98, 87, 76, 45, 42, 132, 34, 2,
    ];

    fn sample() -> CryptoPan {
        CryptoPan::new(&AnonymisationKey::from_octets(&SAMPLE_KEY)).expect("a key")
    }

    fn replaced(text: &str) -> String {
        sample().replace_address(text.parse().expect("an address")).expect("replaced").to_string()
    }

    #[test]
    fn the_sample_of_the_distribution_is_reproduced() {
        for (address, expected) in [
            ("128.11.68.132", "135.242.180.132"),
            ("129.118.74.4", "134.136.186.123"),
            ("130.132.252.244", "133.68.164.234"),
            ("141.223.7.43", "141.167.8.160"),
            ("141.233.145.108", "141.129.237.235"),
            ("152.163.225.39", "151.140.114.167"),
            ("156.29.3.236", "147.225.12.42"),
            ("165.247.96.84", "162.9.99.234"),
            ("192.102.249.13", "252.138.62.131"),
            ("198.51.77.238", "249.18.186.254"),
            ("203.12.160.252", "244.248.163.4"),
        ] {
            assert_eq!(replaced(address), expected, "{address}");
        }
    }

    #[test]
    fn ipv6_addresses_are_as_in_other_implementations() {
        // The vectors of github.com/Yawning/cryptopan, which other implementations use as well.
        for (address, expected) in [
            ("::1", "78ff:f001:9fc0:20df:8380:b1f1:704:ed"),
            ("::2", "78ff:f001:9fc0:20df:8380:b1f1:704:ef"),
            ("::ffff", "78ff:f001:9fc0:20df:8380:b1f1:704:f838"),
            ("2001:db8::1", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1e"),
            ("2001:db8::2", "4401:2bc:603f:d91d:27f:ff8e:e6f1:dc1c"),
        ] {
            assert_eq!(replaced(address), expected, "{address}");
        }
    }

    proptest! {
        #[test]
        fn prefixes_are_preserved(key in any::<[u8; 32]>(), a in any::<u128>(), bits in 0u32..=128, v4 in any::<bool>()) {
            let pan = CryptoPan::new(&AnonymisationKey::from_octets(&key)).expect("a key");
            // Differs from `a` after the first `bits` bits.
            let b = if bits == 128 { a } else { a ^ (1 << 127) >> bits };
            let length = if v4 { 4 } else { 16 };
            let replaced = |address: u128| {
                let mut octets = address.to_be_bytes();
                pan.replace_octets(&mut octets[..length]).expect("replaced");
                octets[length..].fill(0);
                u128::from_be_bytes(octets)
            };
            let common = (replaced(a) ^ replaced(b)).leading_zeros();
            prop_assert_eq!(common, if v4 && bits >= 32 { 128 } else { bits });
        }
    }
}
