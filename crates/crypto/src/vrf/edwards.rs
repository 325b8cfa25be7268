//! ECVRF-EDWARDS25519-SHA512-TAI and -ELL2 (RFC 9381, section 5.5, suites 0x03 and 0x04). The
//! suites differ only in the function that hashes an input to the curve.
//!
//! Timing: the first suite makes attempts until it finds a point, so its time depends on the number
//! of attempts for the *input*. The input of NSEC5 is the queried name, which the client knows. The
//! second suite hashes in constant time. Multiplications by the private scalar and by the nonce run
//! in constant time.
//!
//! The hash has 64 octets. NSEC5 uses the first 32.
//!
//! Proofs are generated with the arithmetic of this crate ([`point`]) and verified with that of the
//! library.

mod field;
mod point;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod uniqueness_tests;

use aws_lc_rs::rand;
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use curve25519_dalek::traits::{IsIdentity, VartimeMultiscalarMul};
use sha2::Sha512;
use zeroize::Zeroizing;

use self::point::{Comb, Point, multiply_base};
use super::error::{BadProof, ProveError, VrfKeyError};
use super::{VRF_HASH_OCTETS, VrfAlgorithm};
use crate::hash::{sha512, sha512_into};
use crate::implementation::{Implementation, Operation};

/// Length of a challenge in octets: cLen.
const CHALLENGE_OCTETS: usize = 16;

/// Length of a public key, and of every other point, in octets.
pub(super) const PUBLIC_KEY_OCTETS: usize = 32;

/// Length of a secret seed in octets.
pub(super) const SECRET_OCTETS: usize = 32;

/// Length of a proof in octets: point, challenge, s.
pub(super) const PROOF_OCTETS: usize = PUBLIC_KEY_OCTETS + CHALLENGE_OCTETS + 32;

/// Length of the complete hash of the VRF in octets.
const FULL_HASH_OCTETS: usize = 64;

/// One of the two suites.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Suite {
    TryAndIncrement,
    Elligator,
}

impl Suite {
    fn octet(self) -> u8 {
        match self {
            Self::TryAndIncrement => 0x03,
            Self::Elligator => 0x04,
        }
    }

    fn algorithm(self) -> VrfAlgorithm {
        match self {
            Self::TryAndIncrement => VrfAlgorithm::EDWARDS25519_SHA512_TAI,
            Self::Elligator => VrfAlgorithm::EDWARDS25519_SHA512_ELL2,
        }
    }
}

pub(super) struct Private {
    suite: Suite,
    seed: Zeroizing<[u8; SECRET_OCTETS]>,
    scalar: Zeroizing<Scalar>,
    /// The second half of the hashed seed, from which nonces are derived.
    prefix: Zeroizing<[u8; 32]>,
    public_key: [u8; PUBLIC_KEY_OCTETS],
}

pub(super) struct Public {
    suite: Suite,
    /// The negated key, −Y.
    negated_key: EdwardsPoint,
    octets: [u8; PUBLIC_KEY_OCTETS],
}

/// The parts of a proof.
struct Proof {
    gamma: EdwardsPoint,
    challenge: Scalar,
    s: Scalar,
}

/// Returns y of a public key field, which P and −P have in common, or `None` if the length is
/// wrong.
pub(super) fn coordinate(key: &[u8]) -> Option<Vec<u8>> {
    let mut y: [u8; PUBLIC_KEY_OCTETS] = key.try_into().ok()?;
    y[PUBLIC_KEY_OCTETS - 1] &= 0x7f;
    Some(y.to_vec())
}

impl Private {
    /// Generates a key from a random seed.
    pub(super) fn generate(suite: Suite) -> Result<Self, VrfKeyError> {
        let mut seed = Zeroizing::new([0; SECRET_OCTETS]);
        rand::fill(seed.as_mut()).map_err(|_| VrfKeyError::Generation(suite.algorithm()))?;
        Self::from_secret(suite, seed.as_ref())
    }

    /// Derives a key from a seed of 32 octets (RFC 8032, section 5.1.5).
    pub(super) fn from_secret(suite: Suite, seed: &[u8]) -> Result<Self, VrfKeyError> {
        let seed: [u8; SECRET_OCTETS] =
            seed.try_into().map_err(|_| VrfKeyError::InvalidPrivateKey(suite.algorithm()))?;
        let seed = Zeroizing::new(seed);
        let mut expanded = Zeroizing::new([0; 64]);
        sha512_into(seed.as_ref(), &mut expanded);
        let (low, high) = expanded.split_at(32);
        let (mut clamped, mut prefix) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]));
        clamped.copy_from_slice(low);
        prefix.copy_from_slice(high);
        *clamped = clamp_integer(*clamped);
        let scalar = Zeroizing::new(Scalar::from_bytes_mod_order(*clamped));
        let public_key = EdwardsPoint::mul_base(&scalar).compress().to_bytes();
        Ok(Self { suite, seed, scalar, prefix, public_key })
    }

    pub(super) fn secret(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.seed.to_vec())
    }

    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Appends a proof for each input to `proofs` and its hash to `hashes` (RFC 9381, section 5.1).
    /// The inputs share their inversions. If it fails, the output may contain some of the results.
    pub(super) fn prove_batch(
        &self,
        alphas: &[&[u8]],
        proofs: &mut Vec<u8>,
        hashes: &mut Vec<[u8; VRF_HASH_OCTETS]>,
    ) -> Result<(), ProveError> {
        let inputs = self.hash_to_curve_all(alphas).ok_or(ProveError::NoPoint)?;
        // Reserve the full capacity: copies that a growing vector leaves in freed memory are not
        // wiped.
        let mut nonces = Zeroizing::new(Vec::with_capacity(inputs.len()));
        nonces.extend(inputs.iter().map(|(_, h)| *self.nonce(h)));
        let mut points = Zeroizing::new(Vec::with_capacity(4 * inputs.len()));
        for ((point, _), nonce) in inputs.iter().zip(&*nonces) {
            let comb = Comb::prepare(point);
            let gamma = comb.multiply(&self.scalar);
            points.extend([gamma, multiply_base(nonce), comb.multiply(nonce), gamma.multiply_by_cofactor()]);
        }
        let encoded = Point::encode_all(&points);
        for (((_, h), nonce), points) in inputs.iter().zip(&*nonces).zip(encoded.chunks_exact(4)) {
            let [gamma, u, v, cleared] = points else { return Err(ProveError::Library) };
            let challenge = challenge(self.suite, [&self.public_key, h, gamma, u, v]);
            let s = Zeroizing::new(*nonce + scalar_of_challenge(challenge) * *self.scalar);
            proofs.extend_from_slice(gamma);
            proofs.extend_from_slice(&challenge);
            proofs.extend_from_slice(s.as_bytes());
            hashes.push(truncate(&hash_point(self.suite, cleared)));
        }
        Ok(())
    }

    /// Returns the point of each input, and its encoding.
    fn hash_to_curve_all(&self, alphas: &[&[u8]]) -> Option<Vec<(Point, [u8; 32])>> {
        match self.suite {
            Suite::TryAndIncrement => {
                let hash =
                    |alpha: &&[u8]| try_and_increment(&self.public_key, alpha, decode_and_clear_cofactor);
                let points: Vec<Point> = alphas.iter().map(hash).collect::<Option<_>>()?;
                let octets = Point::encode_all(&points);
                Some(points.into_iter().zip(octets).collect())
            }
            Suite::Elligator => {
                let points: Vec<_> = alphas.iter().map(|alpha| elligator(&self.public_key, alpha)).collect();
                let octets = EdwardsPoint::compress_batch_alloc(&points);
                octets.iter().map(|octets| Some((Point::decode(&octets.0)?, octets.0))).collect()
            }
        }
    }

    /// Returns the nonce of RFC 8032, section 5.1.6, for the octets of H (RFC 9381, section
    /// 5.4.2.2).
    fn nonce(&self, h: &[u8; 32]) -> Zeroizing<Scalar> {
        let mut message = Zeroizing::new([0; 64]);
        message[..32].copy_from_slice(&*self.prefix);
        message[32..].copy_from_slice(h);
        let mut digest = Zeroizing::new([0; 64]);
        sha512_into(message.as_ref(), &mut digest);
        Zeroizing::new(Scalar::from_bytes_mod_order_wide(&digest))
    }
}

/// Returns the code that performs an operation: the multiplications of this crate prove, those of
/// the library verify.
pub(super) fn implementation(operation: Operation) -> Implementation {
    match operation {
        Operation::Generate => Implementation::portable("nonesuch + curve25519-dalek"),
        Operation::Verify => library_implementation(),
    }
}

/// Returns the code of curve25519-dalek, which its build script and the processor select. The
/// option `--cfg curve25519_dalek_backend` of the compiler restricts the selection.
fn library_implementation() -> Implementation {
    let library = "curve25519-dalek";
    #[cfg(all(
        target_arch = "x86_64",
        not(any(curve25519_dalek_backend = "serial", curve25519_dalek_backend = "fiat"))
    ))]
    {
        let is_avx512_built = cfg!(any(
            curve25519_dalek_backend = "avx512",
            all(
                target_feature = "avx512ifma",
                target_feature = "avx512vl",
                not(curve25519_dalek_backend = "simd")
            )
        ));
        let has_avx512 = is_x86_feature_detected!("avx512ifma") && is_x86_feature_detected!("avx512vl");
        if is_avx512_built && has_avx512 {
            return Implementation::vectors(library, "AVX-512 IFMA");
        }
        if is_x86_feature_detected!("avx2") {
            return Implementation::vectors(library, "AVX2");
        }
    }
    Implementation::portable(library)
}

impl Public {
    /// Parses a point and validates it (RFC 9381, section 5.4.5): it rejects a key of small order.
    /// It accepts a key with a component of small order in addition to the component of large
    /// order. Such a key does no harm, because the hash is over the product with the cofactor.
    pub(super) fn parse(suite: Suite, octets: &[u8]) -> Result<Self, VrfKeyError> {
        let algorithm = suite.algorithm();
        let octets: [u8; PUBLIC_KEY_OCTETS] = octets.try_into().map_err(|_| {
            VrfKeyError::PublicKeyLength { algorithm, expected: PUBLIC_KEY_OCTETS, found: octets.len() }
        })?;
        let point = CompressedEdwardsY(octets).decompress().ok_or(VrfKeyError::NotOnCurve(algorithm))?;
        if !is_canonical(&octets) {
            return Err(VrfKeyError::NotCanonical(algorithm));
        }
        if point.is_identity() {
            return Err(VrfKeyError::NeutralElement(algorithm));
        }
        if point.is_small_order() {
            return Err(VrfKeyError::SmallOrder(algorithm));
        }
        Ok(Self { suite, negated_key: -point, octets })
    }

    pub(super) fn octets(&self) -> [u8; PUBLIC_KEY_OCTETS] {
        self.octets
    }

    /// Verifies a proof and returns its hash (RFC 9381, section 5.3).
    pub(super) fn verify(&self, alpha: &[u8], octets: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
        let proof = Proof::parse(octets).ok_or(BadProof)?;
        let h = hash_to_curve(self.suite, &self.octets, alpha).ok_or(BadProof)?;
        let [u, v] = self.commitments(&h, &proof);
        let [h, u, v, cleared] = EdwardsPoint::compress_batch(&[h, u, v, proof.gamma.mul_by_cofactor()]);
        let (gamma, rest) = octets.split_first_chunk().ok_or(BadProof)?;
        let expected = challenge(self.suite, [&self.octets, &h.0, gamma, &u.0, &v.0]);
        if !rest.starts_with(&expected) {
            return Err(BadProof);
        }
        Ok(truncate(&hash_point(self.suite, &cleared.0)))
    }

    /// Returns U = s·B − c·Y and V = s·H − c·Γ. All values are public.
    fn commitments(&self, h: &EdwardsPoint, proof: &Proof) -> [EdwardsPoint; 2] {
        let u =
            EdwardsPoint::vartime_double_scalar_mul_basepoint(&proof.challenge, &self.negated_key, &proof.s);
        let v = EdwardsPoint::vartime_multiscalar_mul([&proof.s, &proof.challenge], [h, &-proof.gamma]);
        [u, v]
    }
}

impl Proof {
    /// Splits a proof (RFC 9381, section 5.4.4). Returns `None` if its point is invalid or not in
    /// the form of RFC 8032, or if s is not below the order.
    fn parse(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; PROOF_OCTETS] = octets.try_into().ok()?;
        let (gamma, rest) = octets.split_first_chunk()?;
        let (challenge, s) = rest.split_first_chunk()?;
        let s = Option::from(Scalar::from_canonical_bytes(s.try_into().ok()?))?;
        Some(Self { gamma: decode(gamma)?, challenge: scalar_of_challenge(*challenge), s })
    }
}

/// Returns the hash of a proof without verifying it (RFC 9381, section 5.2).
pub(super) fn proof_to_hash(suite: Suite, octets: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    let proof = Proof::parse(octets).ok_or(BadProof)?;
    Ok(truncate(&hash_point(suite, &proof.gamma.mul_by_cofactor().compress().0)))
}

fn hash_point(suite: Suite, cleared: &[u8; 32]) -> [u8; FULL_HASH_OCTETS] {
    let mut message = [0; 2 + 32 + 1];
    message[..2].copy_from_slice(&[suite.octet(), 0x03]);
    message[2..34].copy_from_slice(cleared);
    sha512(&message)
}

fn truncate(hash: &[u8; FULL_HASH_OCTETS]) -> [u8; VRF_HASH_OCTETS] {
    std::array::from_fn(|octet| hash[octet])
}

/// Converts a little-endian challenge to a scalar.
fn scalar_of_challenge(challenge: [u8; CHALLENGE_OCTETS]) -> Scalar {
    Scalar::from(u128::from_le_bytes(challenge))
}

/// Returns whether an encoding of a point is canonical, as RFC 8032, section 5.1.3, requires: y
/// must be below p = 2²⁵⁵ − 19, and there must be no sign bit if x = 0, that is, if y = ±1.
fn is_canonical(octets: &[u8; 32]) -> bool {
    let sign = octets[31] >> 7;
    let mut y = *octets;
    y[31] &= 0x7f;
    let middle = |octet: u8| y[1..31].iter().all(|other| *other == octet);
    let is_large = y[31] == 0x7f && middle(0xff);
    let is_one = y[0] == 1 && middle(0) && y[31] == 0;
    let is_minus_one = y[0] == 0xec && is_large;
    !(is_large && y[0] >= 0xed) && !(sign == 1 && (is_one || is_minus_one))
}

/// Decodes a point as in RFC 8032, section 5.1.3.
fn decode(octets: &[u8; 32]) -> Option<EdwardsPoint> {
    if !is_canonical(octets) {
        return None;
    }
    CompressedEdwardsY(*octets).decompress()
}

/// Hashes an input to a point of the library.
fn hash_to_curve(suite: Suite, salt: &[u8; PUBLIC_KEY_OCTETS], alpha: &[u8]) -> Option<EdwardsPoint> {
    let clear = |octets: &[u8; 32]| {
        let point = decode(octets)?.mul_by_cofactor();
        (!point.is_identity()).then_some(point)
    };
    match suite {
        Suite::TryAndIncrement => try_and_increment(salt, alpha, clear),
        Suite::Elligator => Some(elligator(salt, alpha)),
    }
}

/// Returns eight times the encoded point, or `None` if the octets are not a point or the result is
/// the neutral element.
fn decode_and_clear_cofactor(octets: &[u8; 32]) -> Option<Point> {
    if !is_canonical(octets) {
        return None;
    }
    let point = Point::decode(octets)?.multiply_by_cofactor();
    (!point.is_neutral()).then_some(point)
}

/// Try and increment (RFC 9381, section 5.4.1.1): two attempts on average, at most 256. `decode`
/// decodes a point and multiplies it by the cofactor. It returns `None` if the octets are not a
/// point.
fn try_and_increment<P>(
    salt: &[u8; PUBLIC_KEY_OCTETS],
    alpha: &[u8],
    decode: impl Fn(&[u8; 32]) -> Option<P>,
) -> Option<P> {
    let mut message = Vec::with_capacity(2 + PUBLIC_KEY_OCTETS + alpha.len() + 2);
    message.extend_from_slice(&[Suite::TryAndIncrement.octet(), 0x01]);
    message.extend_from_slice(salt);
    message.extend_from_slice(alpha);
    message.extend_from_slice(&[0, 0]);
    let counter = message.len() - 2;
    for count in 0..=u8::MAX {
        message[counter] = count;
        let digest = sha512(&message);
        let (candidate, _) = digest.split_first_chunk()?;
        if let Some(point) = decode(candidate) {
            return Some(point);
        }
    }
    None
}

/// `encode_to_curve` of RFC 9380 with the suite edwards25519_XMD:SHA-512_ELL2_NU_ (RFC 9381,
/// section 5.4.1.2).
fn elligator(salt: &[u8; PUBLIC_KEY_OCTETS], alpha: &[u8]) -> EdwardsPoint {
    const DOMAIN_SEPARATION_TAG: &[u8] = b"ECVRF_edwards25519_XMD:SHA-512_ELL2_NU_\x04";
    EdwardsPoint::encode_to_curve::<Sha512>(&[salt, alpha], &[DOMAIN_SEPARATION_TAG])
}

/// Returns the challenge (RFC 9381, section 5.4.3). It covers the key and every point of the proof:
/// a prover could choose a point that it does not cover afterwards.
fn challenge(suite: Suite, points: [&[u8; 32]; 5]) -> [u8; CHALLENGE_OCTETS] {
    let mut message = [0; 2 + 5 * 32 + 1];
    message[..2].copy_from_slice(&[suite.octet(), 0x02]);
    for (chunk, point) in message[2..].chunks_exact_mut(32).zip(points) {
        chunk.copy_from_slice(point);
    }
    let digest = sha512(&message);
    std::array::from_fn(|octet| digest[octet])
}
