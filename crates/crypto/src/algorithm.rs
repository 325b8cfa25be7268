//! The table of algorithms: numbers, mnemonics, sizes, and the functions that generate, read and
//! use keys.
//!
//! To add an algorithm, add:
//!
//! - a [`Scheme`] and a row in [`ALGORITHMS`];
//! - a constant of [`Algorithm`];
//! - a module that implements [`Signer`](crate::key::Signer) and
//!   [`Verifier`](crate::key::Verifier);
//! - the test vectors of the RFC in `rfc_tests.rs`.
//!
//! An algorithm and its NSEC5 alias are two rows with the same scheme. Implement a faster form for
//! many signatures in `sign_batch` and `verify_batch` of these traits; it must accept exactly the
//! signatures that the single check accepts. If the specification of the algorithm is not final,
//! the field `experimental` of the scheme contains the reason, as a warning for users who generate
//! such a key.
//!
//! The signer, the verifier, key files and `compare --all` use the table. To include an algorithm
//! in the default comparison, add it to `USUAL` of `nonesuch-lab`. Tests compare
//! `docs/algorithms.md` and the kinds of keys in the interoperability tests with the table.
//!
//! The numbers are those of the IANA registry "DNS Security Algorithm Numbers" (RFC 4034, appendix
//! A.1). 249 and 251 are the numbers in SIDN's testbed for post-quantum algorithms, which has no
//! number for SLH-DSA.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use aws_lc_rs::rand;
use zeroize::Zeroizing;

use crate::KeyError;
use crate::bind_format::PrivateFile;
use crate::hash::sha256;
use crate::implementation::{Implementation, Operation};
use crate::key::{SignerResult, VerifierResult};
use crate::vrf::VRF_ALGORITHMS;
use crate::{ecdsa, ed448, ed25519, falcon, mayo, mldsa, rsa, slhdsa};

/// A DNSSEC algorithm number, as in wire form. Any number is allowed; [`Algorithm::entry`] returns
/// whether it is known.
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
    /// Ed448 (RFC 8080).
    pub const ED448: Self = Self(16);
    /// ML-DSA-44 (draft-westerbaan-dnssec-mldsa).
    pub const MLDSA44: Self = Self(18);
    /// SLH-DSA-SHA2-128s (FIPS 205), with a number for private use.
    pub const SLHDSA128S: Self = Self(248);
    /// MAYO-2 of round 2, with a number for private use.
    pub const MAYO2: Self = Self(249);
    /// Falcon-512 of round 3, padded, with a number for private use.
    pub const FALCON512: Self = Self(251);

    /// Returns the row of [`ALGORITHMS`] for this number, or `None` if the algorithm is unknown.
    #[must_use]
    pub fn entry(self) -> Option<&'static AlgorithmEntry> {
        ALGORITHMS.iter().find(|entry| entry.algorithm == self)
    }

    /// Whether it is RSA with SHA-1 (RFC 3110, RFC 5155), which is unknown by default (RFC 9905).
    #[must_use]
    pub fn is_sha1(self) -> bool {
        SHA1_ALGORITHMS.iter().any(|entry| entry.algorithm == self)
    }

    /// Returns the alias of this algorithm for zones with NSEC5, or `None` if this algorithm is
    /// itself an alias or is unknown.
    #[must_use]
    pub fn nsec5_alias(self) -> Option<Self> {
        ALGORITHMS.iter().find(|entry| entry.alias_of == Some(self)).map(|entry| entry.algorithm)
    }

    /// Returns the original algorithm if this one is an alias, otherwise this algorithm.
    #[must_use]
    pub fn without_alias(self) -> Self {
        self.entry().and_then(|entry| entry.alias_of).unwrap_or(self)
    }

    /// Like [`Algorithm::entry`], but returns [`KeyError::UnknownAlgorithm`] if the algorithm is
    /// unknown.
    pub(crate) fn require(self) -> Result<&'static AlgorithmEntry, KeyError> {
        self.entry().ok_or(KeyError::UnknownAlgorithm(self))
    }
}

/// Displays the mnemonic in upper case, or the number if the algorithm is unknown.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some(entry) => f.pad(entry.mnemonic),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

/// Error: the text is neither the mnemonic of a known algorithm nor a number from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an algorithm: write a mnemonic such as ECDSAP256SHA256, or a number from 0 to 255")]
pub struct UnknownMnemonic;

/// Parses a mnemonic in any case, or any number from 0 to 255.
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

/// One row of the table of algorithms: a number and its signature scheme.
#[derive(Debug)]
pub struct AlgorithmEntry {
    /// The number in wire form.
    pub algorithm: Algorithm,
    /// The mnemonic, in upper case.
    pub mnemonic: &'static str,
    /// The original algorithm, if this number is an alias that marks zones with NSEC5.
    pub alias_of: Option<Algorithm>,
    /// The signature scheme of keys and signatures.
    pub scheme: &'static Scheme,
}

/// A signature scheme: sizes, and the functions that generate, read and use keys. An algorithm and
/// its alias share one scheme.
#[derive(Debug)]
pub struct Scheme {
    /// Operations that are faster in batches ([`sign_batch`](crate::sign_batch),
    /// [`verify_batch`](crate::verify_batch)) than one at a time.
    pub batched: &'static [Operation],
    /// Approximate time of the verification of one signature, in ns, on a core of 2.6 GHz with AVX-512
    /// (docs/component-benchmarks.md). For RSA: 4096 bits and the exponent 65537. For ML-DSA-44: a key that was
    /// not used before.
    /// [`PublicKey::verification_nanoseconds`](crate::PublicKey::verification_nanoseconds) is that of a key.
    pub verification_nanoseconds: u32,
    /// Whether a signature takes more than 10 ms, so that signing a large zone takes hours. `compare
    /// --all` omits such schemes, and tests sign less with them.
    pub signs_slowly: bool,
    /// Lengths of keys, or `None` if all keys have the same length. Only RSA has several lengths.
    pub key_lengths: Option<KeyLengths>,
    /// Whether no quantum computer is known to forge signatures of this scheme.
    pub is_post_quantum: bool,
    /// The reason for a warning to users of this scheme, if there is one.
    pub experimental: Option<&'static str>,
    /// Length of the DNSKEY public key field in octets, if it is constant; `None` for RSA.
    pub public_key_octets: Option<usize>,
    /// Length of a signature in octets, if it is constant. `None` for RSA, whose signatures are as
    /// long as the modulus.
    pub signature_octets: Option<usize>,
    /// Required value of the field `Dialect` in private key files, for schemes whose encoding will
    /// change. Files with another value are rejected.
    pub(crate) dialect: Option<&'static str>,
    /// Returns the code that performs an operation; see [`crate::implementation()`].
    pub(crate) implementation: fn(Operation, usize) -> Implementation,
    /// Generates a key.
    pub(crate) generate: fn(GenerationParameters) -> SignerResult,
    /// Reads a key from the fields of a private key file.
    pub(crate) read_private: fn(&PrivateFile<'_>) -> SignerResult,
    /// Parses a DNSKEY public key field.
    pub(crate) parse_public: fn(Algorithm, &[u8]) -> VerifierResult,
}

/// Lengths of the keys of an algorithm, in bits.
#[derive(Debug)]
pub struct KeyLengths {
    /// Default length of a new key.
    pub default: u16,
    /// Lengths of keys that can be generated, in ascending order.
    pub offered: &'static [u16],
    /// Further lengths, which are known to be weak. Keys with these lengths are only generated with
    /// [`PrivateKey::generate_any_length`](crate::PrivateKey::generate_any_length).
    pub forced: &'static [u16],
}

/// Parameters for the generation of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GenerationParameters {
    /// The algorithm. Several rows may share the function that generates the key.
    pub(crate) algorithm: Algorithm,
    /// Length in bits; `None` selects the default of the algorithm.
    pub(crate) bits: Option<u16>,
    /// Whether lengths that are known to be weak are allowed.
    pub(crate) force: bool,
}

impl GenerationParameters {
    /// Returns [`KeyError::FixedBits`] if a length is given. For algorithms with a fixed key
    /// length.
    pub(crate) fn require_no_bits(&self) -> Result<(), KeyError> {
        match self.bits {
            Some(_) => Err(KeyError::FixedBits(self.algorithm)),
            None => Ok(()),
        }
    }

    /// Returns a random seed of `octets` octets. For algorithms with a fixed key length whose keys
    /// are derived from a seed. It fails if a length is given, or if there are no random numbers.
    pub(crate) fn random_seed(&self, octets: usize) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        self.require_no_bits()?;
        let mut seed = Zeroizing::new(vec![0; octets]);
        rand::fill(&mut seed).map_err(|_| KeyError::Generation(self.algorithm))?;
        Ok(seed)
    }
}

/// Lengths of RSA keys. RFC 5702, section 2, defines the maximum.
const RSA_LENGTHS: Option<KeyLengths> =
    Some(KeyLengths { default: rsa::DEFAULT_BITS, offered: &[1280, 2048, 3072, 4096], forced: &[1024] });

/// MAYO-2 is experimental because ePrint 2025/1143 reduces its security to about 113 of the 128
/// bits that round 2 claims.
const MAYO_WARNING: &str = "MAYO-2 of round 2 is known to be weaker than claimed (about 113 bits, ePrint 2025/1143) and its \
     format will change; its number is for private use";

/// Falcon-512 is experimental because its standard, FN-DSA, is not published and will differ.
const FALCON_WARNING: &str =
    "Falcon-512 of round 3 will differ from the future standard FN-DSA; its number is for private use";

/// SLH-DSA is experimental because no specification defines its use in DNSSEC.
const SLHDSA_WARNING: &str = "no specification defines SLH-DSA for DNSSEC, its signatures have 7856 octets and take a fifth \
     of a second or more each; its number is for private use";

/// PKCS#1 v1.5 with SHA-256 (RFC 5702).
static RSA_SHA256: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 40_000,
    signs_slowly: false,
    key_lengths: RSA_LENGTHS,
    is_post_quantum: false,
    experimental: None,
    public_key_octets: None,
    signature_octets: None,
    dialect: None,
    implementation: |_, _| Implementation::AWS_LC,
    generate: |parameters| rsa::generate(&rsa::SHA256, parameters),
    read_private: |file| rsa::read_private(&rsa::SHA256, file),
    parse_public: |algorithm, key| rsa::parse_public(&rsa::SHA256, algorithm, key),
};

/// PKCS#1 v1.5 with SHA-1 (RFC 3110, RFC 5155). Nothing is signed with it.
static RSA_SHA1: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 40_000,
    signs_slowly: false,
    key_lengths: None,
    is_post_quantum: false,
    experimental: None,
    public_key_octets: None,
    signature_octets: None,
    dialect: None,
    implementation: |_, _| Implementation::AWS_LC,
    generate: |parameters| Err(KeyError::UnknownAlgorithm(parameters.algorithm)),
    read_private: |file| Err(KeyError::UnknownAlgorithm(file.algorithm())),
    parse_public: rsa::parse_public_sha1,
};

/// PKCS#1 v1.5 with SHA-512 (RFC 5702).
static RSA_SHA512: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 40_000,
    signs_slowly: false,
    key_lengths: RSA_LENGTHS,
    is_post_quantum: false,
    experimental: None,
    public_key_octets: None,
    signature_octets: None,
    dialect: None,
    implementation: |_, _| Implementation::AWS_LC,
    generate: |parameters| rsa::generate(&rsa::SHA512, parameters),
    read_private: |file| rsa::read_private(&rsa::SHA512, file),
    parse_public: |algorithm, key| rsa::parse_public(&rsa::SHA512, algorithm, key),
};

/// ECDSA on P-256 with SHA-256 (RFC 6605).
static ECDSA_P256: Scheme = Scheme {
    batched: &[Operation::Generate, Operation::Verify],
    verification_nanoseconds: 14_000,
    signs_slowly: false,
    key_lengths: None,
    is_post_quantum: false,
    experimental: None,
    public_key_octets: Some(64),
    signature_octets: Some(64),
    dialect: None,
    implementation: ecdsa::p256_implementation,
    generate: |parameters| ecdsa::generate(&ecdsa::P256, parameters),
    read_private: |file| ecdsa::read_private(&ecdsa::P256, file),
    parse_public: |algorithm, key| ecdsa::parse_public(&ecdsa::P256, algorithm, key),
};

/// ECDSA on P-384 with SHA-384 (RFC 6605).
static ECDSA_P384: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 220_000,
    signs_slowly: false,
    key_lengths: None,
    is_post_quantum: false,
    experimental: None,
    public_key_octets: Some(96),
    signature_octets: Some(96),
    dialect: None,
    implementation: |_, _| Implementation::AWS_LC,
    generate: |parameters| ecdsa::generate(&ecdsa::P384, parameters),
    read_private: |file| ecdsa::read_private(&ecdsa::P384, file),
    parse_public: |algorithm, key| ecdsa::parse_public(&ecdsa::P384, algorithm, key),
};

/// Ed25519 (RFC 8080).
static ED25519: Scheme = Scheme {
    batched: &[Operation::Verify],
    verification_nanoseconds: 35_000,
    signs_slowly: false,
    key_lengths: None,
    is_post_quantum: false,
    experimental: None,
    public_key_octets: Some(32),
    signature_octets: Some(64),
    dialect: None,
    implementation: ed25519::implementation,
    generate: ed25519::generate,
    read_private: ed25519::read_private,
    parse_public: ed25519::parse_public,
};

/// Ed448 (RFC 8080).
static ED448: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 165_000,
    signs_slowly: false,
    key_lengths: None,
    is_post_quantum: false,
    experimental: None,
    public_key_octets: Some(57),
    signature_octets: Some(114),
    dialect: None,
    implementation: |_, _| Implementation::portable("crrl"),
    generate: ed448::generate,
    read_private: ed448::read_private,
    parse_public: ed448::parse_public,
};

/// ML-DSA-44, pure, with an empty context (draft-westerbaan-dnssec-mldsa-03, FIPS 204).
static MLDSA44: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 45_000,
    signs_slowly: false,
    key_lengths: None,
    is_post_quantum: true,
    experimental: None,
    public_key_octets: Some(1312),
    signature_octets: Some(2420),
    dialect: None,
    implementation: mldsa::implementation,
    generate: mldsa::generate,
    read_private: mldsa::read_private,
    parse_public: mldsa::parse_public,
};

/// SLH-DSA-SHA2-128s, pure, with an empty context (FIPS 205).
static SLHDSA128S: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 200_000,
    signs_slowly: true,
    key_lengths: None,
    is_post_quantum: true,
    experimental: Some(SLHDSA_WARNING),
    public_key_octets: Some(32),
    signature_octets: Some(7856),
    dialect: None,
    implementation: |_, _| slhdsa::implementation(),
    generate: slhdsa::generate,
    read_private: slhdsa::read_private,
    parse_public: slhdsa::parse_public,
};

/// MAYO-2 of round 2 of the NIST call for additional signatures.
static MAYO2: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 31_000,
    signs_slowly: false,
    key_lengths: None,
    is_post_quantum: true,
    experimental: Some(MAYO_WARNING),
    public_key_octets: Some(4912),
    signature_octets: Some(186),
    dialect: Some("mayo2-round2"),
    implementation: |_, _| mayo::implementation(),
    generate: mayo::generate,
    read_private: mayo::read_private,
    parse_public: mayo::parse_public,
};

/// Falcon-512 of round 3 of the NIST competition, with signatures padded to constant length.
static FALCON512: Scheme = Scheme {
    batched: &[],
    verification_nanoseconds: 10_000,
    signs_slowly: false,
    key_lengths: None,
    is_post_quantum: true,
    experimental: Some(FALCON_WARNING),
    public_key_octets: Some(897),
    signature_octets: Some(666),
    dialect: Some("falcon-round3-padded"),
    implementation: falcon::implementation,
    generate: falcon::generate,
    read_private: falcon::read_private,
    parse_public: falcon::parse_public,
};

/// All supported algorithms, in ascending order of their numbers.
///
/// The numbers from 228 to 237 are aliases for zones with NSEC5. They are unregistered and for
/// experiments. A resolver that does not know NSEC5 does not know these numbers either, and treats
/// such a zone as insecure, not as bogus.
pub static ALGORITHMS: &[AlgorithmEntry] = &[
    row(8, "RSASHA256", &RSA_SHA256),
    row(10, "RSASHA512", &RSA_SHA512),
    row(13, "ECDSAP256SHA256", &ECDSA_P256),
    row(14, "ECDSAP384SHA384", &ECDSA_P384),
    row(15, "ED25519", &ED25519),
    row(16, "ED448", &ED448),
    row(18, "MLDSA44", &MLDSA44),
    alias_row(228, "NSEC5-RSASHA256", Algorithm::RSASHA256, &RSA_SHA256),
    alias_row(229, "NSEC5-ECDSAP256SHA256", Algorithm::ECDSAP256SHA256, &ECDSA_P256),
    alias_row(230, "NSEC5-ECDSAP384SHA384", Algorithm::ECDSAP384SHA384, &ECDSA_P384),
    alias_row(231, "NSEC5-ED25519", Algorithm::ED25519, &ED25519),
    alias_row(232, "NSEC5-ED448", Algorithm::ED448, &ED448),
    alias_row(233, "NSEC5-MLDSA44", Algorithm::MLDSA44, &MLDSA44),
    alias_row(234, "NSEC5-FALCON512", Algorithm::FALCON512, &FALCON512),
    alias_row(235, "NSEC5-MAYO2", Algorithm::MAYO2, &MAYO2),
    alias_row(236, "NSEC5-RSASHA512", Algorithm::RSASHA512, &RSA_SHA512),
    alias_row(237, "NSEC5-SLHDSA128S", Algorithm::SLHDSA128S, &SLHDSA128S),
    row(248, "SLHDSA128S", &SLHDSA128S),
    row(249, "MAYO2", &MAYO2),
    row(251, "FALCON512", &FALCON512),
];

/// Algorithms with SHA-1, which must not be used to validate (RFC 9905). Only
/// [`PublicKey::parse_sha1`](crate::PublicKey::parse_sha1) knows them.
pub(crate) static SHA1_ALGORITHMS: &[AlgorithmEntry] =
    &[row(5, "RSASHA1", &RSA_SHA1), row(7, "RSASHA1-NSEC3-SHA1", &RSA_SHA1)];

/// Revision of the tables. Increment it if a row verifies other signatures or proofs than before
/// although its fields are unchanged.
const TABLES_REVISION: u8 = 1;

/// Length of [`tables_digest`] in octets.
pub const TABLES_DIGEST_OCTETS: usize = 16;

/// Returns a digest of the tables of algorithms, [`ALGORITHMS`] and [`VRF_ALGORITHMS`]: the first
/// octets of a SHA-256 hash.
///
/// A signature of an algorithm that is not in the table counts as a signature of an unknown
/// algorithm. Therefore a zone that a program with another table has verified must be verified
/// again.
#[must_use]
pub fn tables_digest() -> [u8; TABLES_DIGEST_OCTETS] {
    static DIGEST: OnceLock<[u8; TABLES_DIGEST_OCTETS]> = OnceLock::new();
    *DIGEST.get_or_init(|| {
        let signing = ALGORITHMS.iter().map(|entry| {
            let Scheme { public_key_octets, signature_octets, dialect, .. } = entry.scheme;
            let (number, mnemonic, alias) = (entry.algorithm.0, entry.mnemonic, entry.alias_of);
            format!("{number} {mnemonic} {alias:?} {public_key_octets:?} {signature_octets:?} {dialect:?}\n")
        });
        let vrfs = VRF_ALGORITHMS
            .iter()
            .map(|entry| format!("{} {} {}\n", entry.algorithm.0, entry.mnemonic, entry.proof_octets));
        digest_rows(TABLES_REVISION, signing.chain(vrfs))
    })
}

fn digest_rows(revision: u8, rows: impl Iterator<Item = String>) -> [u8; TABLES_DIGEST_OCTETS] {
    let mut octets = vec![revision];
    rows.for_each(|row| octets.extend_from_slice(row.as_bytes()));
    let digest = sha256(&octets);
    std::array::from_fn(|octet| digest[octet])
}

const fn row(number: u8, mnemonic: &'static str, scheme: &'static Scheme) -> AlgorithmEntry {
    AlgorithmEntry { algorithm: Algorithm(number), mnemonic, alias_of: None, scheme }
}

const fn alias_row(
    number: u8,
    mnemonic: &'static str,
    original: Algorithm,
    scheme: &'static Scheme,
) -> AlgorithmEntry {
    AlgorithmEntry { algorithm: Algorithm(number), mnemonic, alias_of: Some(original), scheme }
}

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
    fn the_digest_of_the_tables_depends_on_rows_and_revision() {
        let rows = ["8 RSASHA256\n", "13 ECDSAP256SHA256\n"].map(str::to_owned);
        let digest = |revision, rows: &[String]| digest_rows(revision, rows.iter().cloned());
        let whole = digest(1, &rows);
        assert_eq!(whole, digest(1, &rows));
        assert_ne!(whole, digest(2, &rows));
        assert_ne!(whole, digest(1, &rows[..1]));
        assert_ne!(tables_digest(), [0; TABLES_DIGEST_OCTETS], "older files have zeros there");
    }

    #[test]
    fn rows_ascend() {
        assert!(ALGORITHMS.is_sorted_by(|a, b| a.algorithm < b.algorithm));
    }

    #[test]
    fn every_algorithm_has_one_alias_of_the_same_scheme() {
        for entry in ALGORITHMS {
            match entry.alias_of {
                None => {
                    let alias = entry.algorithm.nsec5_alias().and_then(Algorithm::entry).unwrap();
                    assert_eq!(alias.alias_of, Some(entry.algorithm));
                    assert!(std::ptr::eq(alias.scheme, entry.scheme));
                    assert_eq!(alias.mnemonic, format!("NSEC5-{}", entry.mnemonic));
                    assert_eq!(alias.algorithm.without_alias(), entry.algorithm);
                    assert_eq!(entry.algorithm.without_alias(), entry.algorithm);
                }
                Some(_) => assert_eq!(entry.algorithm.nsec5_alias(), None),
            }
        }
    }

    #[test]
    fn a_length_is_rejected_for_algorithms_with_fixed_length() {
        for entry in ALGORITHMS.iter().filter(|entry| entry.scheme.key_lengths.is_none()) {
            let algorithm = entry.algorithm;
            let parameters = GenerationParameters { algorithm, bits: Some(2048), force: true };
            assert_eq!((entry.scheme.generate)(parameters).err(), Some(KeyError::FixedBits(algorithm)));
        }
    }
}
