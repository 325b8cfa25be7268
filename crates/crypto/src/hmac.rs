//! Message authentication codes: HMAC (RFC 2104, FIPS 198-1) with SHA-2 functions, as TSIG uses
//! them (RFC 8945 §6).
//!
//! HMAC-SHA-1 and HMAC-MD5 are not implemented: RFC 8945 allows HMAC-SHA-1 only for old peers, and
//! forbids HMAC-MD5.

use std::fmt;

use aws_lc_rs::hmac;
use subtle::ConstantTimeEq;

use crate::wipe::wiping_stack;

/// Size of the stack area, in bytes, in which creating a key or a code may leave a state: the
/// library passes its contexts by value.
const STACK_BYTES: usize = 4096;

/// The hash function of a message authentication code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MacAlgorithm {
    /// HMAC-SHA-256; the code has 32 octets.
    Sha256,
    /// HMAC-SHA-384; the code has 48 octets.
    Sha384,
    /// HMAC-SHA-512; the code has 64 octets.
    Sha512,
}

impl MacAlgorithm {
    const fn implementation(self) -> hmac::Algorithm {
        match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    /// Returns the length of a complete code in octets.
    #[must_use]
    pub const fn octets(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

/// A key for message authentication codes. It does not contain the secret, but the state of the
/// hash function after the secret. The library wipes this state when the key is dropped.
pub struct MacKey {
    algorithm: MacAlgorithm,
    key: Box<hmac::Key>,
}

impl MacKey {
    /// Creates the key from a secret of any length. RFC 8945 §8 recommends a secret as long as a
    /// complete code.
    #[must_use]
    pub fn new(algorithm: MacAlgorithm, secret: &[u8]) -> Self {
        let make = || Box::new(hmac::Key::new(algorithm.implementation(), secret));
        Self { algorithm, key: wiping_stack::<STACK_BYTES, _>(make) }
    }

    /// Begins the computation of an authentication code with this key.
    #[must_use]
    pub fn begin(&self) -> Mac {
        Mac(Box::new(hmac::Context::with_key(&self.key)))
    }
}

impl fmt::Debug for MacKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MacKey").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// An unfinished code. Its state is wiped on drop.
#[derive(Clone)]
pub struct Mac(Box<hmac::Context>);

impl Mac {
    /// Adds octets to the code.
    pub fn update(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// Returns the code over all octets added.
    #[must_use]
    pub fn finish(self) -> Tag {
        Tag(self.0.sign())
    }

    /// Returns whether `code` is the code over all octets added, or a non-empty prefix of it. The
    /// time depends only on the length of `code`. The caller must check that a truncated code is
    /// long enough.
    #[must_use]
    pub fn verify(self, code: &[u8]) -> bool {
        let tag = self.finish();
        let expected = tag.as_ref().get(..code.len());
        expected.is_some_and(|expected| !code.is_empty() && bool::from(expected.ct_eq(code)))
    }
}

impl fmt::Debug for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mac").finish_non_exhaustive()
    }
}

/// A complete code.
#[derive(Clone, Copy)]
pub struct Tag(hmac::Tag);

impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        self.0.as_ref()
    }
}

/// Does not show the code: until the message is sent, anyone who knows the code can forge the
/// message.
impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tag").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use data_encoding::HEXLOWER;

    const ALL: [MacAlgorithm; 3] = [MacAlgorithm::Sha256, MacAlgorithm::Sha384, MacAlgorithm::Sha512];

    fn code(algorithm: MacAlgorithm, secret: &[u8], message: &[u8]) -> String {
        let mut mac = MacKey::new(algorithm, secret).begin();
        // In two pieces, because messages arrive in pieces.
        let (head, tail) = message.split_at(message.len() / 2);
        mac.update(head);
        mac.update(tail);
        HEXLOWER.encode(mac.finish().as_ref())
    }

    /// RFC 4231 §4.3 and §4.7: a secret shorter than a code, and one longer than a block.
    #[test]
    fn rfc4231_codes() {
        let short: (&[u8], &[u8]) = (b"Jefe", b"what do ya want for nothing?");
        let long: (&[u8], &[u8]) = (&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First");
        let cases = [
            (MacAlgorithm::Sha256, short, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
            (
                MacAlgorithm::Sha384,
                short,
                "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
            ),
            (
                MacAlgorithm::Sha512,
                short,
                "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
            ),
            (MacAlgorithm::Sha256, long, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
            (
                MacAlgorithm::Sha384,
                long,
                "4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c60c2ef6ab4030fe8296248df163f44952",
            ),
            (
                MacAlgorithm::Sha512,
                long,
                "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598",
            ),
        ];
        for (algorithm, (secret, message), expected) in cases {
            assert_eq!(code(algorithm, secret, message), expected, "{algorithm:?}");
        }
    }

    #[test]
    fn codes_and_their_prefixes_verify_and_other_codes_do_not() {
        for algorithm in ALL {
            let key = MacKey::new(algorithm, b"secret");
            let mut mac = key.begin();
            mac.update(b"message");
            let whole = mac.clone().finish();
            assert_eq!(whole.as_ref().len(), algorithm.octets());
            assert!(mac.clone().verify(whole.as_ref()));
            assert!(mac.clone().verify(&whole.as_ref()[..10]));
            assert!(!mac.clone().verify(&[]));
            assert!(!mac.clone().verify(&[whole.as_ref(), &[0]].concat()));
            let mut other = whole.as_ref().to_vec();
            other[9] ^= 1;
            assert!(!mac.clone().verify(&other));
            mac.update(b"!");
            assert!(!mac.verify(whole.as_ref()));
        }
    }

    #[test]
    fn nothing_secret_is_shown() {
        let key = MacKey::new(MacAlgorithm::Sha256, b"\x01\x02secret");
        let mac = key.begin();
        let shown = format!("{key:?} {mac:?} {:?}", mac.clone().finish());
        assert_eq!(shown, "MacKey { algorithm: Sha256, .. } Mac { .. } Tag { .. }");
    }
}
