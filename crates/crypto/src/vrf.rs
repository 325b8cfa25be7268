//! Verifiable random functions: the hashes of NSEC5, which only the holder of a private key can compute and everyone can
//! verify. Octets in, octets out: that the input of NSEC5 is a name in canonical form is the caller's business.
//!
//! RFC 9381 and, for the choice of suites and their numbers, "Making NSEC5 Practical for DNSSEC", section 4, and
//! draft-vcelak-nsec5. [`VRF_ALGORITHMS`] is the one place that knows which there are. To add one, add a row there, a module
//! in `vrf/`, and its vectors to `tests/vrf-vectors.json`.
//!
//! - [`VrfPrivateKey`] proves: a proof and the hash that it proves, for one input or for many at once.
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
//! Whoever has the private key can compute the hash of any name, and so find names by dictionary as with NSEC3. The time
//! that a proof takes can tell something of the *input* (see [`VrfAlgorithmEntry::hides_input`]) and nothing of the key.

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

use self::edwards::Suite;
pub use self::error::{BadProof, ProveError, VrfKeyError};
use crate::Algorithm;
use crate::bind_format::parse_number;
use crate::wipe::wiping_stack;

/// Octets of every VRF hash, as NSEC5 uses it: it must fit a label in base32hex.
pub const VRF_HASH_OCTETS: usize = 32;

/// Inputs that share their inversions: more save little and need 1 kB each.
const BATCH: usize = 32;

/// Octets of stack that proving on a curve takes at most: tables and points of one input at a time.
const STACK: usize = 32 * 1024;

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

    /// The row of the table, if there is one.
    #[must_use]
    pub fn entry(self) -> Option<&'static VrfAlgorithmEntry> {
        VRF_ALGORITHMS.iter().find(|entry| entry.algorithm == self)
    }

    /// The algorithm of this name on the command line, in any case, or of this number.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let entry = VRF_ALGORITHMS.iter().find(|entry| {
            entry.name.eq_ignore_ascii_case(name) || parse_number(name) == Some(entry.algorithm.0)
        });
        entry.map(|entry| entry.algorithm)
    }

    /// Whether the private half of the VRF key `vrf_key` also signs for `key`, the public key field of a DNSKEY record with
    /// `algorithm` or an alias of it: NSEC5 relies on a server whose VRF key signs nothing ("Making NSEC5 Practical for
    /// DNSSEC", section 3.3). Both are public key fields; `false` where one is malformed.
    ///
    /// Points are compared up to their sign: the scalar x of P gives −x of −P. RSA keys are compared by modulus, not by exponent:
    /// one private exponent is enough to factor the modulus, and so to compute the private exponent of any public exponent.
    #[must_use]
    pub fn is_signing_key(self, vrf_key: &[u8], algorithm: Algorithm, key: &[u8]) -> bool {
        let Some(entry) = self.entry() else { return false };
        if !entry.signing_algorithms.contains(&algorithm.without_alias()) {
            return false;
        }
        let number = match entry.kind {
            Kind::P256 => p256::coordinate,
            Kind::EdwardsTryAndIncrement | Kind::EdwardsElligator => edwards::coordinate,
            Kind::Rsa => rsa_fdh::modulus,
        };
        number(vrf_key).is_some_and(|found| number(key) == Some(found))
    }

    fn require(self) -> Result<&'static VrfAlgorithmEntry, VrfKeyError> {
        self.entry().ok_or(VrfKeyError::UnknownAlgorithm(self))
    }
}

/// The mnemonic, or the number of an algorithm that the table does not have.
impl fmt::Display for VrfAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.entry() {
            Some(entry) => f.write_str(entry.mnemonic),
            None => write!(f, "{}", self.0),
        }
    }
}

/// What the secret of a private key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretForm {
    /// A scalar from 1 to below the order of the curve: 32 octets, big-endian.
    Scalar,
    /// A random seed of 32 octets, expanded as in RFC 8032.
    Seed,
    /// An `RSAPrivateKey` (RFC 8017, appendix A.1.2).
    RsaPrivateKey,
}

/// A row of the table: what is to be known of a VRF.
#[derive(Debug)]
#[non_exhaustive]
pub struct VrfAlgorithmEntry {
    /// The NSEC5 algorithm number.
    pub algorithm: VrfAlgorithm,
    /// The name on the command line.
    pub name: &'static str,
    /// The name in RFC 9381, upper case.
    pub mnemonic: &'static str,
    /// Octets of the public key field; `None` where keys differ (RSA: 260 with the usual exponent).
    pub public_key_octets: Option<usize>,
    /// Octets of every proof.
    pub proof_octets: usize,
    /// What the secret of a private key is.
    pub secret: SecretForm,
    /// Whether the time that proving and verifying take is the same for all inputs of one length.
    pub hides_input: bool,
    /// The DNSSEC algorithms whose keys are of the same curve, or of RSA too, aliases resolved. RSA includes the numbers of
    /// SHA-1 (RFC 3110, RFC 5155), which other validators know.
    pub signing_algorithms: &'static [Algorithm],
    kind: Kind,
}

/// Where the algorithm is found.
#[derive(Clone, Copy, Debug)]
enum Kind {
    P256,
    EdwardsTryAndIncrement,
    EdwardsElligator,
    Rsa,
}

/// Every VRF that is supported, by number.
pub static VRF_ALGORITHMS: [VrfAlgorithmEntry; 4] = [
    VrfAlgorithmEntry {
        algorithm: VrfAlgorithm::P256_SHA256_TAI,
        name: "p256",
        mnemonic: "ECVRF-P256-SHA256-TAI",
        public_key_octets: Some(p256::PUBLIC_KEY),
        proof_octets: p256::PROOF,
        secret: SecretForm::Scalar,
        hides_input: false,
        signing_algorithms: &[Algorithm::ECDSAP256SHA256],
        kind: Kind::P256,
    },
    VrfAlgorithmEntry {
        algorithm: VrfAlgorithm::EDWARDS25519_SHA512_TAI,
        name: "ed25519-tai",
        mnemonic: "ECVRF-EDWARDS25519-SHA512-TAI",
        public_key_octets: Some(edwards::PUBLIC_KEY),
        proof_octets: edwards::PROOF,
        secret: SecretForm::Seed,
        hides_input: false,
        signing_algorithms: &[Algorithm::ED25519],
        kind: Kind::EdwardsTryAndIncrement,
    },
    VrfAlgorithmEntry {
        algorithm: VrfAlgorithm::EDWARDS25519_SHA512_ELL2,
        name: "ed25519",
        mnemonic: "ECVRF-EDWARDS25519-SHA512-ELL2",
        public_key_octets: Some(edwards::PUBLIC_KEY),
        proof_octets: edwards::PROOF,
        secret: SecretForm::Seed,
        hides_input: true,
        signing_algorithms: &[Algorithm::ED25519],
        kind: Kind::EdwardsElligator,
    },
    VrfAlgorithmEntry {
        algorithm: VrfAlgorithm::RSA_FDH_SHA256,
        name: "rsa",
        mnemonic: "RSA-FDH-VRF-SHA256",
        public_key_octets: None,
        proof_octets: rsa_fdh::PROOF,
        secret: SecretForm::RsaPrivateKey,
        hides_input: true,
        signing_algorithms: &[Algorithm(5), Algorithm(7), Algorithm::RSASHA256, Algorithm::RSASHA512],
        kind: Kind::Rsa,
    },
];

/// A VRF private key. It is wiped from memory when dropped, and its `Debug` form shows nothing of it.
pub struct VrfPrivateKey {
    entry: &'static VrfAlgorithmEntry,
    /// Boxed, so that there is one copy to wipe however often the owner moves.
    key: Box<Private>,
}

enum Private {
    P256(p256::Private),
    Edwards(edwards::Private),
    Rsa(rsa_fdh::Private),
}

impl VrfPrivateKey {
    /// Makes a key.
    ///
    /// # Errors
    /// Where the algorithm is unknown or the library fails.
    pub fn generate(algorithm: VrfAlgorithm) -> Result<Self, VrfKeyError> {
        let entry = algorithm.require()?;
        let generate = || {
            Ok(Box::new(match entry.kind {
                Kind::P256 => Private::P256(p256::Private::generate()?),
                Kind::EdwardsTryAndIncrement => {
                    Private::Edwards(edwards::Private::generate(Suite::TryAndIncrement)?)
                }
                Kind::EdwardsElligator => Private::Edwards(edwards::Private::generate(Suite::Elligator)?),
                Kind::Rsa => Private::Rsa(rsa_fdh::Private::generate()?),
            }))
        };
        Ok(Self { entry, key: wiping_stack::<STACK, _>(generate)? })
    }

    /// Takes the secret of a key, in the form that the table tells, and derives the public key.
    ///
    /// # Errors
    /// Where the algorithm is unknown, the secret is out of range or damaged, or an RSA key has not 2048 bits.
    pub fn from_secret(algorithm: VrfAlgorithm, secret: &[u8]) -> Result<Self, VrfKeyError> {
        let entry = algorithm.require()?;
        let read = || {
            Ok(Box::new(match entry.kind {
                Kind::P256 => Private::P256(p256::Private::from_secret(secret)?),
                Kind::EdwardsTryAndIncrement => {
                    Private::Edwards(edwards::Private::from_secret(Suite::TryAndIncrement, secret)?)
                }
                Kind::EdwardsElligator => {
                    Private::Edwards(edwards::Private::from_secret(Suite::Elligator, secret)?)
                }
                Kind::Rsa => Private::Rsa(rsa_fdh::Private::from_secret(secret)?),
            }))
        };
        Ok(Self { entry, key: wiping_stack::<STACK, _>(read)? })
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
    /// Blank lines and those that begin with `;` are passed over.
    ///
    /// # Errors
    /// Where the text is no such file, a field is missing, unknown or damaged, the algorithm is unknown, or the two keys do
    /// not belong together.
    pub fn from_text(text: &str) -> Result<Self, VrfKeyError> {
        key_file::read(text)
    }

    /// The text of a VRF private key file, which only its owner may read.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        key_file::write(self)
    }

    /// The public key field of the NSEC5KEY record.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        match &*self.key {
            Private::P256(key) => key.public_key(),
            Private::Edwards(key) => key.public_key(),
            Private::Rsa(key) => key.public_key(),
        }
    }

    /// The algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> VrfAlgorithm {
        self.entry.algorithm
    }

    /// Appends the proof for `alpha` to `proof`, [`VrfAlgorithmEntry::proof_octets`] octets, and returns the hash that it
    /// proves. The same input always has the same proof.
    ///
    /// # Errors
    /// Where the library fails; `proof` is then as before.
    pub fn prove(&self, alpha: &[u8], proof: &mut Vec<u8>) -> Result<[u8; VRF_HASH_OCTETS], ProveError> {
        let mut hashes = Vec::with_capacity(1);
        self.prove_batch(&[alpha], proof, &mut hashes)?;
        hashes.pop().ok_or(ProveError::Library)
    }

    /// Appends a proof for each input to `proofs` and its hash to `hashes`, in order: what [`VrfPrivateKey::prove`] makes,
    /// with the inversions shared that points on curves cost.
    ///
    /// # Errors
    /// Where the library fails; `proofs` and `hashes` are then as before.
    pub fn prove_batch(
        &self,
        alphas: &[&[u8]],
        proofs: &mut Vec<u8>,
        hashes: &mut Vec<[u8; VRF_HASH_OCTETS]>,
    ) -> Result<(), ProveError> {
        let before = (proofs.len(), hashes.len());
        proofs.reserve(alphas.len() * self.entry.proof_octets);
        hashes.reserve(alphas.len());
        let outcome = alphas.chunks(BATCH).try_for_each(|alphas| match &*self.key {
            Private::P256(key) => wiping_stack::<STACK, _>(|| key.prove_batch(alphas, proofs, hashes)),
            Private::Edwards(key) => wiping_stack::<STACK, _>(|| key.prove_batch(alphas, proofs, hashes)),
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

/// A VRF public key, validated and ready for many verifications. Clones share what was parsed.
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
    /// Parses the public key field of an NSEC5KEY record and validates the key (RFC 9381, section 5.4.5). That costs about
    /// half as much as one verification, and is to be done once for each key.
    ///
    /// # Errors
    /// Where the algorithm is unknown, the field has the wrong length or form, the point is not on the curve or of small
    /// order, or an RSA key has not 2048 bits or an exponent that is even, 1 or above 64 bits.
    pub fn parse(algorithm: VrfAlgorithm, key: &[u8]) -> Result<Self, VrfKeyError> {
        let entry = algorithm.require()?;
        let key = match entry.kind {
            Kind::P256 => Public::P256(Box::new(p256::Public::parse(key)?)),
            Kind::EdwardsTryAndIncrement => {
                Public::Edwards(edwards::Public::parse(Suite::TryAndIncrement, key)?)
            }
            Kind::EdwardsElligator => Public::Edwards(edwards::Public::parse(Suite::Elligator, key)?),
            Kind::Rsa => Public::Rsa(rsa_fdh::Public::parse(key)?),
        };
        Ok(Self { entry, key: Arc::new(key) })
    }

    /// Verifies `proof` for `alpha` and returns the hash that it proves.
    ///
    /// # Errors
    /// [`BadProof`] where it does not fit, whatever its length or form.
    pub fn verify(&self, alpha: &[u8], proof: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
        match &*self.key {
            Public::P256(key) => key.verify(alpha, proof),
            Public::Edwards(key) => key.verify(alpha, proof),
            Public::Rsa(key) => key.verify(alpha, proof),
        }
    }

    /// Verifies many proofs: each item is an input and its proof. `outcome` is emptied, then holds what
    /// [`VrfPublicKey::verify`] returns for each item, in order.
    ///
    /// On P-256 it takes a fraction of the time of single verifications where the processor has AVX-512 IFMA; elsewhere it is a
    /// loop.
    pub fn verify_batch(
        &self,
        items: &[(&[u8], &[u8])],
        outcome: &mut Vec<Result<[u8; VRF_HASH_OCTETS], BadProof>>,
    ) {
        outcome.clear();
        match &*self.key {
            Public::P256(key) => key.verify_batch(items, outcome),
            _ => outcome.extend(items.iter().map(|(alpha, proof)| self.verify(alpha, proof))),
        }
    }

    /// The algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> VrfAlgorithm {
        self.entry.algorithm
    }

    /// The public key field again.
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

/// The hash of a proof that was verified before, or was made here: nothing but its form is checked (RFC 9381, section 5.2).
///
/// # Errors
/// [`BadProof`] where the algorithm is unknown or the proof has not its form.
pub fn proof_to_hash(algorithm: VrfAlgorithm, proof: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    match algorithm.entry().ok_or(BadProof)?.kind {
        Kind::P256 => p256::proof_to_hash(proof),
        Kind::EdwardsTryAndIncrement => edwards::proof_to_hash(Suite::TryAndIncrement, proof),
        Kind::EdwardsElligator => edwards::proof_to_hash(Suite::Elligator, proof),
        Kind::Rsa => rsa_fdh::proof_to_hash(proof),
    }
}
