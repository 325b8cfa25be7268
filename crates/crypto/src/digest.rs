//! DS digests (RFC 4034 section 5.1.4, RFC 4509, RFC 6605), key tags (RFC 4034, appendix B), and
//! SHA-384 and SHA-512 for data in pieces.

use std::fmt;

use aws_lc_rs::digest;

/// A DS digest type, as in wire form. Any number is allowed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct DigestType(pub u8);

impl DigestType {
    /// SHA-1 (RFC 3658). Only for checking existing DS records; RFC 8624 forbids it in new ones.
    pub const SHA1: Self = Self(1);
    /// SHA-256 (RFC 4509).
    pub const SHA256: Self = Self(2);
    /// SHA-384 (RFC 6605).
    pub const SHA384: Self = Self(4);

    fn implementation(self) -> Option<&'static digest::Algorithm> {
        match self {
            Self::SHA1 => Some(&digest::SHA1_FOR_LEGACY_USE_ONLY),
            Self::SHA256 => Some(&digest::SHA256),
            Self::SHA384 => Some(&digest::SHA384),
            _ => None,
        }
    }

    /// Returns the length of a digest of this type in octets, or `None` if the type is unknown.
    #[must_use]
    pub fn octets(self) -> Option<usize> {
        self.implementation().map(digest::Algorithm::output_len)
    }

    /// Returns the digest over the concatenation of `parts`, or `None` if the type is unknown. For
    /// a DS record, the parts are the owner name in canonical wire form and the DNSKEY RDATA.
    #[must_use]
    pub fn digest(self, parts: &[&[u8]]) -> Option<Vec<u8>> {
        let mut context = digest::Context::new(self.implementation()?);
        for part in parts {
            context.update(part);
        }
        Some(context.finish().as_ref().to_vec())
    }
}

/// Displays the name of the hash function, or the number if the type is unknown.
impl fmt::Display for DigestType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::SHA1 => f.pad("SHA-1"),
            Self::SHA256 => f.pad("SHA-256"),
            Self::SHA384 => f.pad("SHA-384"),
            Self(number) => fmt::Display::fmt(&number, f),
        }
    }
}

/// A hash function for incremental hashing (FIPS 180-4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum HashFunction {
    /// SHA-384; the digest has 48 octets.
    Sha384,
    /// SHA-512; the digest has 64 octets.
    Sha512,
}

impl HashFunction {
    const fn implementation(self) -> &'static digest::Algorithm {
        match self {
            Self::Sha384 => &digest::SHA384,
            Self::Sha512 => &digest::SHA512,
        }
    }

    /// Returns the length of a digest in octets.
    #[must_use]
    pub fn octets(self) -> usize {
        self.implementation().output_len()
    }

    /// Starts a digest.
    #[must_use]
    pub fn begin(self) -> Hasher {
        Hasher(digest::Context::new(self.implementation()))
    }
}

/// An unfinished digest; see [`HashFunction::begin`].
#[derive(Clone)]
pub struct Hasher(digest::Context);

impl Hasher {
    /// Adds octets to the digest.
    pub fn update(&mut self, octets: &[u8]) {
        self.0.update(octets);
    }

    /// Returns the digest over all octets added.
    #[must_use]
    pub fn finish(self) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").finish_non_exhaustive()
    }
}

/// Returns the key tag of a DNSKEY (RFC 4034, appendix B). `dnskey_rdata` is its RDATA: flags,
/// protocol, algorithm, public key.
///
/// The different rule for algorithm 1 (appendix B.1) is not implemented, because that algorithm is
/// not supported.
#[must_use]
pub fn key_tag(dnskey_rdata: &[u8]) -> u16 {
    let mut pairs = dnskey_rdata.chunks_exact(2);
    // A 64-bit sum cannot overflow, whatever the length of the RDATA.
    let mut sum: u64 = pairs.by_ref().map(|pair| u64::from(pair[0]) << 8 | u64::from(pair[1])).sum();
    if let [last] = pairs.remainder() {
        sum += u64::from(*last) << 8;
    }
    // The carries are added once, and a carry from this addition is discarded: the key tag is not a
    // ones' complement sum.
    sum += (sum >> 16) & 0xffff;
    (sum & 0xffff) as u16
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_are_digested_as_one_message() {
        // FIPS 180-4 examples: "abc".
        let abc = |kind: DigestType| HEXLOWER.encode(&kind.digest(&[b"a", b"", b"bc"]).unwrap());
        assert_eq!(abc(DigestType::SHA1), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(abc(DigestType::SHA256), sha256);
        let sha384 = "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
                      8086072ba1e7cc2358baeca134c825a7";
        assert_eq!(abc(DigestType::SHA384), sha384);
    }

    #[test]
    fn pieces_are_hashed_as_one_message() {
        // FIPS 180-4 examples: "abc".
        let abc = |function: HashFunction| {
            let mut hasher = function.begin();
            [&b"a"[..], b"", b"bc"].into_iter().for_each(|piece| hasher.update(piece));
            let digest = hasher.finish();
            assert_eq!(digest.len(), function.octets());
            HEXLOWER.encode(&digest)
        };
        assert_eq!(
            abc(HashFunction::Sha384),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
        );
        assert_eq!(
            abc(HashFunction::Sha512),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        );
    }

    #[test]
    fn unknown_types_have_no_digest() {
        for number in [0, 3, 5, 255] {
            assert_eq!(DigestType(number).digest(&[b"abc"]), None);
            assert_eq!(DigestType(number).octets(), None);
            assert_eq!(DigestType(number).to_string(), number.to_string());
        }
        assert_eq!(DigestType::SHA384.octets(), Some(48));
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(4))]

        /// Compares with the reference code of RFC 4034, appendix B.
        #[test]
        fn key_tag_equals_the_reference_code(rdata in proptest::collection::vec(any::<u8>(), 0..700)) {
            let mut ac: u32 = 0;
            for (i, octet) in rdata.iter().enumerate() {
                ac += if i & 1 == 1 { u32::from(*octet) } else { u32::from(*octet) << 8 };
            }
            ac += (ac >> 16) & 0xffff;
            prop_assert_eq!(u32::from(key_tag(&rdata)), ac & 0xffff);
        }
    }
}
