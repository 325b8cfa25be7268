//! Verifiable random functions (VRFs): the hashes of NSEC5, which only the holder of a private key
//! can compute and everyone can verify. Inputs and outputs are octets: the caller must ensure that
//! the input of NSEC5 is a name in canonical form.
//!
//! The functions are defined in RFC 9381. The choice of suites and their numbers is from "Making
//! NSEC5 Practical for DNSSEC", section 4, and draft-vcelak-nsec5. [`VRF_ALGORITHMS`] is the only
//! list of the supported VRFs. To add a VRF, add a row there, a module in `vrf/`, and its vectors
//! to `tests/vrf-vectors.json`.
//!
//! - [`VrfPrivateKey`] generates a proof and its hash, for one input or for many at once.
//! - [`VrfPublicKey`] verifies. It is parsed and validated once (RFC 9381, section 5.4.5).
//!
//! ```
//! use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey, VrfPublicKey};
//!
//! let key = VrfPrivateKey::generate(VrfAlgorithm::P256_SHA256_TAI)?;
//! let name = b"\x03www\x07example\x00";
//! let mut proof = Vec::new();
//! let hash = key.prove(name, &mut proof)?;
//! let public = VrfPublicKey::parse(key.algorithm(), key.public_key())?;
//! assert_eq!(public.verify(name, &proof), Ok(hash));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The holder of the private key can compute the hash of any name, and therefore find names with a
//! dictionary, as with NSEC3. The time of a proof may depend on the *input* (see
//! [`VrfAlgorithmEntry::hides_input`]), but not on the key.

mod batch;
mod edwards;
mod error;
mod key_file;
mod p256;
mod rsa_fdh;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

pub use self::batch::{VrfProof, VrfProveItem, VrfVerifyItem, prove_batch, verify_batch};
use self::edwards::Suite;
pub use self::error::{BadProof, ProveError, VrfKeyError};
use crate::Algorithm;
use crate::bind_format::parse_number;
use crate::implementation::{Implementation, Operation};
use crate::wipe::wiping_stack;

/// Length of every VRF hash in octets, as NSEC5 uses it. It must fit into a label in base32hex.
pub const VRF_HASH_OCTETS: usize = 32;

/// Maximum number of inputs that share their inversions. More inputs save little, and each needs
/// 1 kB.
const MAX_BATCH_INPUTS: usize = 32;

/// Maximum stack usage of proving on a curve, in bytes: tables and points of one input at a time.
const STACK_BYTES: usize = 32 * 1024;

/// The NSEC5 algorithm number of a VRF: the first octet of NSEC5KEY RDATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VrfAlgorithm(pub u8);

impl VrfAlgorithm {
    /// ECVRF-P256-SHA256-TAI (RFC 9381, suite 0x01).
    pub const P256_SHA256_TAI: Self = Self(1);
    /// ECVRF-EDWARDS25519-SHA512-TAI (RFC 9381, suite 0x03).
    pub const EDWARDS25519_SHA512_TAI: Self = Self(2);
    /// ECVRF-EDWARDS25519-SHA512-ELL2 (RFC 9381, suite 0x04).
    pub const EDWARDS25519_SHA512_ELL2: Self = Self(3);
    /// RSA-FDH-VRF-SHA256 (RFC 9381, section 4) with 2048 bits.
    pub const RSA_FDH_SHA256: Self = Self(128);

    /// Returns the row of the table, or `None` if the algorithm is unknown.
    #[must_use]
    pub fn entry(self) -> Option<&'static VrfAlgorithmEntry> {
        VRF_ALGORITHMS.iter().find(|entry| entry.algorithm == self)
    }

    /// Returns the algorithm with this name on the command line, in any case, or with this number.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let entry = VRF_ALGORITHMS.iter().find(|entry| {
            entry.name.eq_ignore_ascii_case(name) || parse_number(name) == Some(entry.algorithm.0)
        });
        entry.map(|entry| entry.algorithm)
    }

    /// Returns whether the private key of the VRF key `vrf_key` can also sign for `key`, the public
    /// key field of a DNSKEY record with `algorithm` or an alias of it. NSEC5 requires that the VRF
    /// key of a server cannot sign ("Making NSEC5 Practical for DNSSEC", section 3.3). Both
    /// arguments are public key fields; the result is `false` if one of them is malformed.
    ///
    /// Points are compared without their sign: the scalar x of P gives −x of −P. RSA keys are
    /// compared by modulus, not by exponent: one private exponent is sufficient to factor the
    /// modulus, and thus to compute the private exponent for any public exponent.
    #[must_use]
    pub fn is_signing_key(self, vrf_key: &[u8], algorithm: Algorithm, key: &[u8]) -> bool {
        let Some(entry) = self.entry() else { return false };
        if !entry.signing_algorithms.contains(&algorithm.without_alias()) {
            return false;
        }
        let number = match entry.construction {
            Construction::P256 => p256::coordinate,
            Construction::EdwardsTryAndIncrement | Construction::EdwardsElligator => edwards::coordinate,
            Construction::Rsa => rsa_fdh::modulus,
        };
        number(vrf_key).is_some_and(|found| number(key) == Some(found))
    }

    fn require(self) -> Result<&'static VrfAlgorithmEntry, VrfKeyError> {
        self.entry().ok_or(VrfKeyError::UnknownAlgorithm(self))
    }
}

/// Displays the mnemonic, or the number if the algorithm is unknown.
impl fmt::Display for VrfAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some(entry) => f.write_str(entry.mnemonic),
            None => write!(f, "{}", self.0),
        }
    }
}

/// The format of the secret of a private key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretForm {
    /// A scalar that is at least 1 and below the order of the curve: 32 octets, big-endian.
    Scalar,
    /// A random seed of 32 octets, expanded as in RFC 8032.
    Seed,
    /// An `RSAPrivateKey` (RFC 8017, appendix A.1.2).
    RsaPrivateKey,
}

/// A row of the table: the properties of a VRF.
#[derive(Debug)]
#[non_exhaustive]
pub struct VrfAlgorithmEntry {
    /// The NSEC5 algorithm number.
    pub algorithm: VrfAlgorithm,
    /// The name on the command line.
    pub name: &'static str,
    /// The name in RFC 9381, upper case.
    pub mnemonic: &'static str,
    /// Length of the public key field in octets, or `None` if it is not constant (RSA: 260 with the
    /// usual exponent).
    pub public_key_octets: Option<usize>,
    /// Length of every proof in octets.
    pub proof_octets: usize,
    /// The format of the secret of a private key.
    pub secret: SecretForm,
    /// Whether the time of proving and verifying is the same for all inputs of one length.
    pub hides_input: bool,
    /// The DNSSEC algorithms whose keys use the same curve, or RSA, without aliases. RSA includes
    /// the numbers with SHA-1 (RFC 3110, RFC 5155), which other validators know.
    pub signing_algorithms: &'static [Algorithm],
    /// Operations that are faster in batches ([`VrfPrivateKey::prove_batch`],
    /// [`VrfPublicKey::verify_batch`]) than one at a time, some of them only with AVX-512 IFMA.
    pub batched: &'static [Operation],
    /// Approximate time of the verification of one proof in a batch, in ns, on a core of 2.6 GHz with
    /// AVX-512 IFMA (docs/component-benchmarks.md).
    pub verification_nanoseconds: u32,
    construction: Construction,
}

/// Selects the module and the suite that implement the algorithm.
#[derive(Clone, Copy, Debug)]
enum Construction {
    P256,
    EdwardsTryAndIncrement,
    EdwardsElligator,
    Rsa,
}

/// All supported VRFs, in ascending order of their numbers.
pub static VRF_ALGORITHMS: [VrfAlgorithmEntry; 4] = [
    VrfAlgorithmEntry {
        algorithm: VrfAlgorithm::P256_SHA256_TAI,
        name: "p256",
        mnemonic: "ECVRF-P256-SHA256-TAI",
        public_key_octets: Some(p256::PUBLIC_KEY_OCTETS),
        proof_octets: p256::PROOF_OCTETS,
        secret: SecretForm::Scalar,
        hides_input: false,
        signing_algorithms: &[Algorithm::ECDSAP256SHA256],
        batched: &[Operation::Generate, Operation::Verify],
        verification_nanoseconds: 20_000,
        construction: Construction::P256,
    },
    VrfAlgorithmEntry {
        algorithm: VrfAlgorithm::EDWARDS25519_SHA512_TAI,
        name: "ed25519-tai",
        mnemonic: "ECVRF-EDWARDS25519-SHA512-TAI",
        public_key_octets: Some(edwards::PUBLIC_KEY_OCTETS),
        proof_octets: edwards::PROOF_OCTETS,
        secret: SecretForm::Seed,
        hides_input: false,
        signing_algorithms: &[Algorithm::ED25519],
        batched: &[Operation::Generate],
        verification_nanoseconds: 80_000,
        construction: Construction::EdwardsTryAndIncrement,
    },
    VrfAlgorithmEntry {
        algorithm: VrfAlgorithm::EDWARDS25519_SHA512_ELL2,
        name: "ed25519",
        mnemonic: "ECVRF-EDWARDS25519-SHA512-ELL2",
        public_key_octets: Some(edwards::PUBLIC_KEY_OCTETS),
        proof_octets: edwards::PROOF_OCTETS,
        secret: SecretForm::Seed,
        hides_input: true,
        signing_algorithms: &[Algorithm::ED25519],
        batched: &[Operation::Generate],
        verification_nanoseconds: 80_000,
        construction: Construction::EdwardsElligator,
    },
    VrfAlgorithmEntry {
        algorithm: VrfAlgorithm::RSA_FDH_SHA256,
        name: "rsa",
        mnemonic: "RSA-FDH-VRF-SHA256",
        public_key_octets: None,
        proof_octets: rsa_fdh::PROOF_OCTETS,
        secret: SecretForm::RsaPrivateKey,
        hides_input: true,
        signing_algorithms: &[Algorithm(5), Algorithm(7), Algorithm::RSASHA256, Algorithm::RSASHA512],
        batched: &[],
        verification_nanoseconds: 20_000,
        construction: Construction::Rsa,
    },
];

/// Returns the code that performs an operation of a VRF, or `None` if the VRF is unknown.
#[must_use]
pub fn implementation(algorithm: VrfAlgorithm, operation: Operation) -> Option<Implementation> {
    Some(match algorithm.entry()?.construction {
        Construction::P256 => p256::implementation(),
        Construction::EdwardsTryAndIncrement | Construction::EdwardsElligator => {
            edwards::implementation(operation)
        }
        Construction::Rsa => Implementation::AWS_LC,
    })
}

/// A VRF private key. It is wiped from memory on drop, and its `Debug` output contains no secrets.
pub struct VrfPrivateKey {
    entry: &'static VrfAlgorithmEntry,
    /// Boxed, so that only one copy exists to wipe, however often the owner moves.
    key: Box<Private>,
}

enum Private {
    P256(p256::Private),
    Edwards(edwards::Private),
    Rsa(rsa_fdh::Private),
}

impl VrfPrivateKey {
    /// Generates a private key for `algorithm` with the random numbers of the system.
    ///
    /// # Errors
    /// If the algorithm is unknown or the library fails.
    pub fn generate(algorithm: VrfAlgorithm) -> Result<Self, VrfKeyError> {
        let entry = algorithm.require()?;
        let generate = || {
            Ok(Box::new(match entry.construction {
                Construction::P256 => Private::P256(p256::Private::generate()?),
                Construction::EdwardsTryAndIncrement => {
                    Private::Edwards(edwards::Private::generate(Suite::TryAndIncrement)?)
                }
                Construction::EdwardsElligator => {
                    Private::Edwards(edwards::Private::generate(Suite::Elligator)?)
                }
                Construction::Rsa => Private::Rsa(rsa_fdh::Private::generate()?),
            }))
        };
        Ok(Self { entry, key: wiping_stack::<STACK_BYTES, _>(generate)? })
    }

    /// Reads the secret of a key, in the format of [`VrfAlgorithmEntry::secret`], and derives the
    /// public key.
    ///
    /// # Errors
    /// If the algorithm is unknown, the secret is out of range or damaged, or an RSA key does not
    /// have 2048 bits.
    pub fn from_secret(algorithm: VrfAlgorithm, secret: &[u8]) -> Result<Self, VrfKeyError> {
        let entry = algorithm.require()?;
        let read = || {
            Ok(Box::new(match entry.construction {
                Construction::P256 => Private::P256(p256::Private::from_secret(secret)?),
                Construction::EdwardsTryAndIncrement => {
                    Private::Edwards(edwards::Private::from_secret(Suite::TryAndIncrement, secret)?)
                }
                Construction::EdwardsElligator => {
                    Private::Edwards(edwards::Private::from_secret(Suite::Elligator, secret)?)
                }
                Construction::Rsa => Private::Rsa(rsa_fdh::Private::from_secret(secret)?),
            }))
        };
        Ok(Self { entry, key: wiping_stack::<STACK_BYTES, _>(read)? })
    }

    /// Reads the text of a VRF private key file.
    ///
    /// ```text
    /// Nonesuch-VRF-key-format: v1
    /// Algorithm: 1 (ECVRF-P256-SHA256-TAI)
    /// PublicKey: <Base64 of the public key field>
    /// PrivateKey: <Base64 of the secret>
    /// ```
    ///
    /// Blank lines and lines that begin with `;` are ignored.
    ///
    /// # Errors
    /// If the text is not such a file, a field is missing, unknown or damaged, the algorithm is
    /// unknown, or the public key does not belong to the private key.
    pub fn from_text(text: &str) -> Result<Self, VrfKeyError> {
        key_file::read(text)
    }

    /// Returns the text of a VRF private key file. Only the owner of the file may have permission
    /// to read it.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        key_file::write(self)
    }

    /// Returns the public key field of the NSEC5KEY record.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        match &*self.key {
            Private::P256(key) => key.public_key(),
            Private::Edwards(key) => key.public_key(),
            Private::Rsa(key) => key.public_key(),
        }
    }

    /// Returns the algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> VrfAlgorithm {
        self.entry.algorithm
    }

    /// Appends the proof for `alpha`, with [`VrfAlgorithmEntry::proof_octets`] octets, to `proof`.
    /// Returns the hash that the proof proves. The same input always has the same proof.
    ///
    /// # Errors
    /// If the library fails, or if no point of the curve belongs to the input. `proof` is then
    /// unchanged.
    pub fn prove(&self, alpha: &[u8], proof: &mut Vec<u8>) -> Result<[u8; VRF_HASH_OCTETS], ProveError> {
        let mut hashes = Vec::with_capacity(1);
        self.prove_batch(&[alpha], proof, &mut hashes)?;
        hashes.pop().ok_or(ProveError::Library)
    }

    /// Appends a proof for each input to `proofs` and its hash to `hashes`, in order. The results
    /// are the same as those of [`VrfPrivateKey::prove`], but proofs on curves share their
    /// inversions.
    ///
    /// # Errors
    /// If the library fails, or if no point of the curve belongs to an input. `proofs` and `hashes`
    /// are then unchanged.
    pub fn prove_batch(
        &self,
        alphas: &[&[u8]],
        proofs: &mut Vec<u8>,
        hashes: &mut Vec<[u8; VRF_HASH_OCTETS]>,
    ) -> Result<(), ProveError> {
        let before = (proofs.len(), hashes.len());
        proofs.reserve(alphas.len() * self.entry.proof_octets);
        hashes.reserve(alphas.len());
        let outcome = alphas.chunks(MAX_BATCH_INPUTS).try_for_each(|alphas| match &*self.key {
            Private::P256(key) => {
                let items: Vec<p256::ProveItem<'_>> = alphas.iter().map(|alpha| (key, *alpha)).collect();
                wiping_stack::<STACK_BYTES, _>(|| p256::prove_batch(&items, proofs, hashes))
            }
            Private::Edwards(key) => {
                wiping_stack::<STACK_BYTES, _>(|| key.prove_batch(alphas, proofs, hashes))
            }
            Private::Rsa(key) => alphas.iter().try_for_each(|alpha| key.prove(alpha, proofs, hashes)),
        });
        outcome.inspect_err(|_| {
            proofs.truncate(before.0);
            hashes.truncate(before.1);
        })
    }

    fn secret(&self) -> Zeroizing<Vec<u8>> {
        match &*self.key {
            Private::P256(key) => key.secret(),
            Private::Edwards(key) => key.secret(),
            Private::Rsa(key) => key.secret(),
        }
    }
}

impl fmt::Debug for VrfPrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VrfPrivateKey").field("algorithm", &self.entry.mnemonic).finish_non_exhaustive()
    }
}

/// A VRF public key, validated and prepared for many verifications. Clones share the parsed key.
#[derive(Clone)]
pub struct VrfPublicKey {
    entry: &'static VrfAlgorithmEntry,
    key: Arc<Public>,
}

enum Public {
    P256(Box<p256::Public>),
    Edwards(edwards::Public),
    Rsa(rsa_fdh::Public),
}

impl VrfPublicKey {
    /// Parses the public key field of an NSEC5KEY record and validates the key (RFC 9381, section
    /// 5.4.5). This takes about half as long as one verification and is needed once for each key.
    ///
    /// # Errors
    /// If the algorithm is unknown, the field has the wrong length or format, the point is not on
    /// the curve or has small order, an RSA key does not have 2048 bits, or its exponent is even, 1
    /// or longer than 64 bits.
    pub fn parse(algorithm: VrfAlgorithm, key: &[u8]) -> Result<Self, VrfKeyError> {
        let entry = algorithm.require()?;
        let key = match entry.construction {
            Construction::P256 => Public::P256(Box::new(p256::Public::parse(key)?)),
            Construction::EdwardsTryAndIncrement => {
                Public::Edwards(edwards::Public::parse(Suite::TryAndIncrement, key)?)
            }
            Construction::EdwardsElligator => Public::Edwards(edwards::Public::parse(Suite::Elligator, key)?),
            Construction::Rsa => Public::Rsa(rsa_fdh::Public::parse(key)?),
        };
        Ok(Self { entry, key: Arc::new(key) })
    }

    /// Verifies `proof` for `alpha` and returns the hash that it proves.
    ///
    /// # Errors
    /// [`BadProof`] if the proof is not valid, including a wrong length or format.
    pub fn verify(&self, alpha: &[u8], proof: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
        match &*self.key {
            Public::P256(key) => key.verify(alpha, proof),
            Public::Edwards(key) => key.verify(alpha, proof),
            Public::Rsa(key) => key.verify(alpha, proof),
        }
    }

    /// Like [`verify_batch`], for proofs of this key. Each item is an input and its proof.
    pub fn verify_batch(
        &self,
        items: &[(&[u8], &[u8])],
        outcome: &mut Vec<Result<[u8; VRF_HASH_OCTETS], BadProof>>,
    ) {
        let items = items.iter().map(|(input, proof)| VrfVerifyItem { key: self, input, proof });
        verify_batch(&items.collect::<Vec<_>>(), outcome);
    }

    /// Returns the algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> VrfAlgorithm {
        self.entry.algorithm
    }

    /// Returns the approximate time of one verification, in ns
    /// ([`VrfAlgorithmEntry::verification_nanoseconds`]).
    #[must_use]
    pub fn verification_nanoseconds(&self) -> u32 {
        self.entry.verification_nanoseconds
    }

    /// Returns the octets of memory that the key takes, approximately.
    #[must_use]
    pub fn memory_octets(&self) -> usize {
        match &*self.key {
            Public::P256(key) => size_of_val(&**key),
            Public::Edwards(_) | Public::Rsa(_) => 4096,
        }
    }

    /// Returns the public key field.
    #[must_use]
    pub fn to_octets(&self) -> Vec<u8> {
        match &*self.key {
            Public::P256(key) => key.coordinates().to_vec(),
            Public::Edwards(key) => key.octets().to_vec(),
            Public::Rsa(key) => key.octets().to_vec(),
        }
    }
}

impl fmt::Debug for VrfPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VrfPublicKey").field("algorithm", &self.entry.mnemonic).finish_non_exhaustive()
    }
}

/// Returns the hash of a proof that was already verified, or that this program generated. It checks
/// only the format of the proof (RFC 9381, section 5.2).
///
/// # Errors
/// [`BadProof`] if the algorithm is unknown or the format of the proof is wrong.
pub fn proof_to_hash(algorithm: VrfAlgorithm, proof: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    match algorithm.entry().ok_or(BadProof)?.construction {
        Construction::P256 => p256::proof_to_hash(proof),
        Construction::EdwardsTryAndIncrement => edwards::proof_to_hash(Suite::TryAndIncrement, proof),
        Construction::EdwardsElligator => edwards::proof_to_hash(Suite::Elligator, proof),
        Construction::Rsa => rsa_fdh::proof_to_hash(proof),
    }
}

/// Like [`proof_to_hash`], for a proof that was verified with a key of this algorithm. It does not
/// check the format again where the hash does not need it: on P-256, this saves the square root that
/// decompresses the point.
///
/// # Errors
/// [`BadProof`] if the algorithm is unknown or the proof has a wrong length.
pub fn hash_of_valid_proof(algorithm: VrfAlgorithm, proof: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    match algorithm.entry().ok_or(BadProof)?.construction {
        Construction::P256 => p256::hash_of_valid_proof(proof),
        _ => proof_to_hash(algorithm, proof),
    }
}
