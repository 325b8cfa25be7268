//! The table of algorithms: numbers, mnemonics, sizes and the code that makes, reads and uses keys of each.
//!
//! To add an algorithm, add a row here and a module that implements [`Signer`](crate::key::Signer) and
//! [`Verifier`](crate::key::Verifier). Numbers: IANA, DNS Security Algorithm Numbers (RFC 4034, appendix A.1).

use std::fmt;
use std::str::FromStr;

use crate::KeyError;
use crate::bind_format::PrivateFile;
use crate::key::{SignerResult, VerifierResult};
use crate::{ecdsa, ed25519, rsa};

/// A DNSSEC algorithm number, as on the wire. Any number can be held; [`Algorithm::entry`] says whether it is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Algorithm(pub u8);

impl Algorithm {
    /// RSA with SHA-256 (RFC 5702).
    pub const RSASHA256: Self = Self(8);
    /// RSA with SHA-512 (RFC 5702).
    pub const RSASHA512: Self = Self(10);
    /// ECDSA on P-256 with SHA-256 (RFC 6605).
    pub const ECDSAP256SHA256: Self = Self(13);
    /// ECDSA on P-384 with SHA-384 (RFC 6605).
    pub const ECDSAP384SHA384: Self = Self(14);
    /// Ed25519 (RFC 8080).
    pub const ED25519: Self = Self(15);

    /// The row of [`ALGORITHMS`] for this number, if there is one.
    #[must_use]
    pub fn entry(self) -> Option<&'static AlgorithmEntry> {
        ALGORITHMS.iter().find(|entry| entry.algorithm == self)
    }

    /// As [`Algorithm::entry`], with the error that the operations on keys report.
    pub(crate) fn require(self) -> Result<&'static AlgorithmEntry, KeyError> {
        self.entry().ok_or(KeyError::UnknownAlgorithm(self))
    }
}

/// The mnemonic in upper case, or the number where the table has no row.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some(entry) => f.pad(entry.mnemonic),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

/// Neither the mnemonic of a known algorithm nor a number from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an algorithm: give a mnemonic such as ECDSAP256SHA256, or a number from 0 to 255")]
pub struct UnknownMnemonic;

/// A mnemonic in any case, or any number from 0 to 255.
impl FromStr for Algorithm {
    type Err = UnknownMnemonic;

    fn from_str(text: &str) -> Result<Self, UnknownMnemonic> {
        if text.bytes().all(|octet| octet.is_ascii_digit()) {
            return text.parse().map(Self).map_err(|_| UnknownMnemonic);
        }
        ALGORITHMS
            .iter()
            .find(|entry| entry.mnemonic.eq_ignore_ascii_case(text))
            .map(|entry| entry.algorithm)
            .ok_or(UnknownMnemonic)
    }
}

/// One row of the table of algorithms.
#[derive(Debug)]
pub struct AlgorithmEntry {
    /// The number on the wire.
    pub algorithm: Algorithm,
    /// The mnemonic, in upper case.
    pub mnemonic: &'static str,
    /// Length of a new key in bits where keys can have several lengths (RSA), else `None`.
    pub default_bits: Option<u16>,
    /// Why a user should be warned of this algorithm, if there is a reason.
    pub experimental: Option<&'static str>,
    /// Octets of the DNSKEY public key field where that is constant; `None` for RSA.
    pub public_key_octets: Option<usize>,
    /// Octets of a signature where that is constant; `None` for RSA, whose signatures are as long as the modulus.
    pub signature_octets: Option<usize>,
    /// Makes a key.
    pub(crate) generate: fn(Generation) -> SignerResult,
    /// Reads a key from the fields of a private key file.
    pub(crate) read_private: fn(&PrivateFile<'_>) -> SignerResult,
    /// Parses a DNSKEY public key field.
    pub(crate) parse_public: fn(Algorithm, &[u8]) -> VerifierResult,
}

/// What is asked of a new key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generation {
    /// The algorithm: several rows may share the code that makes the key.
    pub(crate) algorithm: Algorithm,
    /// Length in bits; the default of the algorithm where `None`.
    pub(crate) bits: Option<u16>,
    /// Whether a key that is known to be weak may be made.
    pub(crate) force: bool,
}

/// Every algorithm that keys can be made, read and used for, by ascending number.
pub static ALGORITHMS: &[AlgorithmEntry] = &[
    AlgorithmEntry {
        algorithm: Algorithm::RSASHA256,
        mnemonic: "RSASHA256",
        default_bits: Some(rsa::DEFAULT_BITS),
        experimental: None,
        public_key_octets: None,
        signature_octets: None,
        generate: |wanted| rsa::generate(&rsa::SHA256, wanted),
        read_private: |file| rsa::read_private(&rsa::SHA256, file),
        parse_public: |algorithm, key| rsa::parse_public(&rsa::SHA256, algorithm, key),
    },
    AlgorithmEntry {
        algorithm: Algorithm::RSASHA512,
        mnemonic: "RSASHA512",
        default_bits: Some(rsa::DEFAULT_BITS),
        experimental: None,
        public_key_octets: None,
        signature_octets: None,
        generate: |wanted| rsa::generate(&rsa::SHA512, wanted),
        read_private: |file| rsa::read_private(&rsa::SHA512, file),
        parse_public: |algorithm, key| rsa::parse_public(&rsa::SHA512, algorithm, key),
    },
    AlgorithmEntry {
        algorithm: Algorithm::ECDSAP256SHA256,
        mnemonic: "ECDSAP256SHA256",
        default_bits: None,
        experimental: None,
        public_key_octets: Some(64),
        signature_octets: Some(64),
        generate: |wanted| ecdsa::generate(&ecdsa::P256, wanted),
        read_private: |file| ecdsa::read_private(&ecdsa::P256, file),
        parse_public: |algorithm, key| ecdsa::parse_public(&ecdsa::P256, algorithm, key),
    },
    AlgorithmEntry {
        algorithm: Algorithm::ECDSAP384SHA384,
        mnemonic: "ECDSAP384SHA384",
        default_bits: None,
        experimental: None,
        public_key_octets: Some(96),
        signature_octets: Some(96),
        generate: |wanted| ecdsa::generate(&ecdsa::P384, wanted),
        read_private: |file| ecdsa::read_private(&ecdsa::P384, file),
        parse_public: |algorithm, key| ecdsa::parse_public(&ecdsa::P384, algorithm, key),
    },
    AlgorithmEntry {
        algorithm: Algorithm::ED25519,
        mnemonic: "ED25519",
        default_bits: None,
        experimental: None,
        public_key_octets: Some(32),
        signature_octets: Some(64),
        generate: ed25519::generate,
        read_private: ed25519::read_private,
        parse_public: ed25519::parse_public,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mnemonics_and_numbers_are_read_and_written() {
        for entry in ALGORITHMS {
            let algorithm = entry.algorithm;
            assert_eq!(algorithm.to_string(), entry.mnemonic);
            assert_eq!(entry.mnemonic.to_lowercase().parse(), Ok(algorithm));
            assert_eq!(algorithm.0.to_string().parse(), Ok(algorithm));
        }
        assert_eq!("99".parse(), Ok(Algorithm(99)));
        assert_eq!(Algorithm(99).to_string(), "99");
        for wrong in ["", "256", "-1", "+8", "rsa", " 8"] {
            assert_eq!(wrong.parse::<Algorithm>(), Err(UnknownMnemonic), "{wrong:?}");
        }
    }

    #[test]
    fn rows_ascend() {
        assert!(ALGORITHMS.is_sorted_by(|a, b| a.algorithm < b.algorithm));
    }

    #[test]
    fn a_length_is_refused_where_keys_have_one() {
        for entry in ALGORITHMS.iter().filter(|entry| entry.default_bits.is_none()) {
            let algorithm = entry.algorithm;
            let wanted = Generation { algorithm, bits: Some(2048), force: true };
            assert_eq!((entry.generate)(wanted).err(), Some(KeyError::FixedBits(algorithm)));
        }
    }
}
