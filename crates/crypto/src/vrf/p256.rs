//! ECVRF-P256-SHA256-TAI (RFC 9381, section 5.5, suite 0x01).
//!
//! Timing: hashing to the curve makes attempts until it finds a point, so its time depends on the
//! number of attempts for the *input*. The input of NSEC5 is the queried name, which the client
//! knows. Multiplications by the private scalar and by the nonce run in constant time.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod uniqueness_tests;

use aws_lc_rs::rand;
use zeroize::Zeroizing;

use super::error::{BadProof, ProveError, VrfKeyError};
use super::{VRF_HASH_OCTETS, VrfAlgorithm};
use crate::hash::sha256;
use crate::implementation::Implementation;
use crate::p256::{
    Affine, COMPRESSED_OCTETS, EVEN_Y_PREFIX, EncodedPoint, Engine, Jacobian, Scalar, ShortTable, Statement,
    double_multiply_public, multiply_base, multiply_base_public, nonce_of_digest,
};

const SUITE: u8 = 0x01;

/// Length of a challenge in octets: cLen.
const CHALLENGE_OCTETS: usize = 16;

/// Length of a public key in octets: both coordinates.
pub(super) const PUBLIC_KEY_OCTETS: usize = 64;

/// Length of a secret scalar in octets.
pub(super) const SECRET_OCTETS: usize = 32;

/// Length of a proof in octets: point, challenge, s.
pub(super) const PROOF_OCTETS: usize = COMPRESSED_OCTETS + CHALLENGE_OCTETS + 32;

const ALGORITHM: VrfAlgorithm = VrfAlgorithm::P256_SHA256_TAI;

pub(super) struct Private {
    scalar: Zeroizing<Scalar>,
    public_key: [u8; PUBLIC_KEY_OCTETS],
    compressed: [u8; COMPRESSED_OCTETS],
}

pub(super) struct Public {
    point: Affine,
    compressed: [u8; COMPRESSED_OCTETS],
    table: ShortTable,
}

/// A key, an input and its proof.
pub(super) type Item<'a> = (&'a Public, &'a [u8], &'a [u8]);

/// A key and an input to prove.
pub(super) type ProveItem<'a> = (&'a Private, &'a [u8]);

/// The result of a verification: the hash of the proof, or the error of an invalid proof.
type VerifyResult = Result<[u8; VRF_HASH_OCTETS], BadProof>;

/// The parts of a proof.
struct Proof {
    gamma: Affine,
    challenge: u128,
    s: Scalar,
}

/// Returns x of a public key field, which P and −P have in common, or `None` if the length is
/// wrong.
pub(super) fn coordinate(key: &[u8]) -> Option<Vec<u8>> {
    let (x, y) = key.split_at_checked(PUBLIC_KEY_OCTETS / 2)?;
    (y.len() == x.len()).then(|| x.to_vec())
}

impl Private {
    /// Generates a key: a random scalar that is at least 1 and below the order.
    pub(super) fn generate() -> Result<Self, VrfKeyError> {
        loop {
            let mut octets = Zeroizing::new([0; SECRET_OCTETS]);
            rand::fill(octets.as_mut()).map_err(|_| VrfKeyError::Generation(ALGORITHM))?;
            // One candidate in 2³² is not below the order.
            if let Ok(key) = Self::from_secret(octets.as_ref()) {
                return Ok(key);
            }
        }
    }

    /// Reads a scalar of 32 big-endian octets.
    pub(super) fn from_secret(octets: &[u8]) -> Result<Self, VrfKeyError> {
        let invalid = VrfKeyError::InvalidPrivateKey(ALGORITHM);
        let octets = octets.try_into().map_err(|_| invalid.clone())?;
        let scalar = Zeroizing::new(Scalar::from_octets(octets).ok_or_else(|| invalid.clone())?);
        if *scalar == Scalar::ZERO {
            return Err(invalid);
        }
        let product = Zeroizing::new(multiply_base(&scalar));
        let point = Jacobian::normalize_all(std::slice::from_ref(&product))[0];
        Ok(Self { scalar, public_key: point.to_coordinates(), compressed: point.to_compressed() })
    }

    pub(super) fn secret(&self) -> Zeroizing<Vec<u8>> {
        let octets = Zeroizing::new(self.scalar.to_octets());
        Zeroizing::new(octets.to_vec())
    }

    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }
}

/// Appends a proof for each item to `proofs` and its hash to `hashes` (RFC 9381, section 5.1). The
/// items share their inversions, whatever their keys are. If it fails, the output may contain some
/// of the results.
pub(super) fn prove_batch(
    items: &[ProveItem<'_>],
    proofs: &mut Vec<u8>,
    hashes: &mut Vec<[u8; VRF_HASH_OCTETS]>,
) -> Result<(), ProveError> {
    let engine = Engine::detect();
    let salted: Vec<SaltedInput<'_>> = items.iter().map(|(key, alpha)| (&key.compressed, *alpha)).collect();
    let (inputs, _) = hash_all_to_curve(engine, &salted, &[]).ok_or(ProveError::NoPoint)?;
    // Reserve the full capacity: copies that a growing vector leaves in freed memory are not wiped.
    let mut secrets = Zeroizing::new(Vec::with_capacity(items.len()));
    secrets.extend(items.iter().map(|(key, _)| *key.scalar));
    let mut nonces = Zeroizing::new(Vec::with_capacity(items.len()));
    for (secret, (_, octets)) in secrets.iter().zip(&inputs) {
        nonces.push(*nonce(secret, octets).ok_or(ProveError::Library)?);
    }
    let points: Vec<Affine> = inputs.iter().map(|(point, _)| *point).collect();
    // Γ = x·H, U = k·B, V = k·H.
    let products = engine.commit(&points, &secrets, &nonces);
    for ((((key, _), (_, h)), nonce), points) in items.iter().zip(&inputs).zip(&*nonces).zip(products) {
        let [gamma, u, v] = points.map(EncodedPoint::from);
        let gamma = gamma.as_slice();
        let challenge = challenge(&key.compressed, h, gamma, &u, &v);
        let product = Zeroizing::new(Scalar::from_short(challenge).multiply(*key.scalar));
        proofs.extend_from_slice(gamma);
        proofs.extend_from_slice(&challenge.to_be_bytes());
        proofs.extend_from_slice(&nonce.add(*product).to_octets());
        hashes.push(hash_point(gamma));
    }
    Ok(())
}

/// Returns the code that performs all operations.
pub(super) fn implementation() -> Implementation {
    Engine::detect().implementation()
}

impl Public {
    /// Parses both coordinates and validates the point. No other check is necessary: the order of
    /// the curve is prime, and its point at infinity has no such encoding (RFC 9381, section
    /// 5.4.5).
    pub(super) fn parse(octets: &[u8]) -> Result<Self, VrfKeyError> {
        let octets: &[u8; PUBLIC_KEY_OCTETS] =
            octets.try_into().map_err(|_| VrfKeyError::PublicKeyLength {
                algorithm: ALGORITHM,
                expected: PUBLIC_KEY_OCTETS,
                found: octets.len(),
            })?;
        let point = Affine::from_coordinates(octets).ok_or(VrfKeyError::NotOnCurve(ALGORITHM))?;
        Ok(Self::new(point))
    }

    fn new(point: Affine) -> Self {
        let (compressed, table) = (point.to_compressed(), ShortTable::prepare(&point));
        Self { point, compressed, table }
    }

    pub(super) fn coordinates(&self) -> [u8; PUBLIC_KEY_OCTETS] {
        self.point.to_coordinates()
    }

    /// Verifies a proof and returns its hash (RFC 9381, section 5.3).
    pub(super) fn verify(&self, alpha: &[u8], octets: &[u8]) -> VerifyResult {
        let engine = Engine::detect();
        let results = engine.has_lanes().then(|| batch_results(engine, &[(self, alpha, octets)])).flatten();
        results.and_then(|mut results| results.pop()?).unwrap_or_else(|| self.verify_portably(alpha, octets))
    }

    /// Like [`Public::verify`], with portable code.
    fn verify_portably(&self, alpha: &[u8], octets: &[u8]) -> VerifyResult {
        let proof = Proof::parse(octets).ok_or(BadProof)?;
        let (h, h_octets) = hash_to_curve(&self.compressed, alpha).ok_or(BadProof)?;
        let [u, v] = self.commitments(&h, &proof);
        let gamma = &octets[..COMPRESSED_OCTETS];
        if challenge(&self.compressed, &h_octets, gamma, &u, &v) != proof.challenge {
            return Err(BadProof);
        }
        Ok(hash_point(gamma))
    }

    /// Returns U = s·B − c·Y and V = s·H − c·Γ.
    fn commitments(&self, h: &Affine, proof: &Proof) -> [EncodedPoint; 2] {
        let u = multiply_base_public(self.table.multiply(proof.challenge).negate(), &proof.s);
        let challenge = Scalar::from_short(proof.challenge);
        let v = double_multiply_public(&proof.s, h, &challenge, &proof.gamma.negate());
        let encoded = Jacobian::encode_all(&[u, v]);
        [encoded[0], encoded[1]]
    }
}

/// Appends the result of [`Public::verify`] for each item to `outcome`, in order.
pub(super) fn verify_batch(items: &[Item<'_>], outcome: &mut Vec<VerifyResult>) {
    let engine = Engine::detect();
    let single = |(key, alpha, proof): &Item<'_>| key.verify_portably(alpha, proof);
    for items in items.chunks(super::MAX_BATCH_INPUTS) {
        let results = if engine.has_lanes() { batch_results(engine, items) } else { None };
        let results = results.unwrap_or_else(|| vec![None; items.len()]);
        let pairs = results.into_iter().zip(items);
        outcome.extend(pairs.map(|(result, item)| result.unwrap_or_else(|| single(item))));
    }
}

/// Returns the result for each item. A result is `None` if the single verification must decide;
/// the function returns `None` if it must decide for all items.
fn batch_results(engine: Engine, items: &[Item<'_>]) -> Option<Vec<Option<VerifyResult>>> {
    let parts: Vec<_> = items.iter().map(|(_, _, proof)| Proof::split(proof)).collect();
    let gammas: Vec<_> = parts.iter().flatten().map(|(gamma, ..)| **gamma).collect();
    let inputs: Vec<SaltedInput<'_>> = items
        .iter()
        .zip(&parts)
        .filter(|(_, parts)| parts.is_some())
        .map(|((key, alpha, _), _)| (&key.compressed, *alpha))
        .collect();
    let (inputs, gammas) = hash_all_to_curve(engine, &inputs, &gammas)?;
    let mut points = inputs.into_iter().zip(gammas);
    // The statement and the octets of H of each item; `None` if its proof is malformed.
    let mut statement = |((key, ..), parts): (&Item<'_>, Option<(_, u128, Scalar)>)| {
        let (_, challenge, s) = parts?;
        let ((h, h_octets), gamma) = points.next()?;
        Some((Statement { key: key.point, h, gamma: gamma?, challenge, s }, h_octets))
    };
    let statements: Vec<_> = items.iter().zip(parts).map(&mut statement).collect();
    let well_formed: Vec<Statement> = statements.iter().flatten().map(|(statement, _)| *statement).collect();
    let mut commitments = engine.commitments(&well_formed).into_iter();
    let mut result = |((key, _, octets), statement): (&Item<'_>, &Option<(Statement, _)>)| {
        let Some((statement, h)) = statement else { return Some(Err(BadProof)) };
        let ([u, v], gamma) = (commitments.next()??.map(EncodedPoint::from), &octets[..COMPRESSED_OCTETS]);
        let is_valid = challenge(&key.compressed, h, gamma, &u, &v) == statement.challenge;
        Some(if is_valid { Ok(hash_point(gamma)) } else { Err(BadProof) })
    };
    Some(items.iter().zip(&statements).map(&mut result).collect())
}

impl Proof {
    /// Splits a proof (RFC 9381, section 5.4.4). Returns `None` if its point is invalid, or if s is
    /// not below the order.
    fn parse(octets: &[u8]) -> Option<Self> {
        let (gamma, challenge, s) = Self::split(octets)?;
        Some(Self { gamma: Affine::from_compressed(gamma)?, challenge, s })
    }

    /// Returns the octets of the point, the challenge and s, or `None` if s is not below the order.
    fn split(octets: &[u8]) -> Option<(&[u8; COMPRESSED_OCTETS], u128, Scalar)> {
        let octets: &[u8; PROOF_OCTETS] = octets.try_into().ok()?;
        let (gamma, rest) = octets.split_first_chunk::<COMPRESSED_OCTETS>()?;
        let (challenge, s) = rest.split_first_chunk::<CHALLENGE_OCTETS>()?;
        Some((gamma, u128::from_be_bytes(*challenge), Scalar::from_octets(s.try_into().ok()?)?))
    }
}

/// Returns the hash of a proof without verifying it (RFC 9381, section 5.2).
pub(super) fn proof_to_hash(octets: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    Proof::parse(octets).ok_or(BadProof)?;
    Ok(hash_point(&octets[..COMPRESSED_OCTETS]))
}

/// Like [`proof_to_hash`], for a proof that was verified.
pub(super) fn hash_of_valid_proof(octets: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    let octets: &[u8; PROOF_OCTETS] = octets.try_into().map_err(|_| BadProof)?;
    Ok(hash_point(&octets[..COMPRESSED_OCTETS]))
}

fn hash_point(gamma: &[u8]) -> [u8; VRF_HASH_OCTETS] {
    let mut message = [0; 2 + COMPRESSED_OCTETS + 1];
    message[..2].copy_from_slice(&[SUITE, 0x03]);
    message[2..2 + COMPRESSED_OCTETS].copy_from_slice(gamma);
    sha256(&message)
}

/// Iterator over the encoded candidates for the point of an input, in order (RFC 9381, section
/// 5.4.1.1): two attempts on average, at most 256.
struct CandidatePoints {
    message: Vec<u8>,
    counters: std::ops::RangeInclusive<u8>,
}

impl CandidatePoints {
    fn new(salt: &[u8; COMPRESSED_OCTETS], alpha: &[u8]) -> Self {
        let mut message = Vec::with_capacity(2 + COMPRESSED_OCTETS + alpha.len() + 2);
        message.extend_from_slice(&[SUITE, 0x01]);
        message.extend_from_slice(salt);
        message.extend_from_slice(alpha);
        message.extend_from_slice(&[0, 0]);
        Self { message, counters: 0..=u8::MAX }
    }
}

impl Iterator for CandidatePoints {
    type Item = [u8; COMPRESSED_OCTETS];

    fn next(&mut self) -> Option<Self::Item> {
        let counter = self.message.len() - 2;
        self.message[counter] = self.counters.next()?;
        let mut octets = [EVEN_Y_PREFIX; COMPRESSED_OCTETS];
        octets[1..].copy_from_slice(&sha256(&self.message));
        Some(octets)
    }
}

/// Hashes an input to the curve with try and increment.
fn hash_to_curve(salt: &[u8; COMPRESSED_OCTETS], alpha: &[u8]) -> Option<HashedInput> {
    CandidatePoints::new(salt, alpha).find_map(|octets| Some((Affine::from_compressed(&octets)?, octets)))
}

/// A point to which an input was hashed, and its octets.
type HashedInput = (Affine, [u8; COMPRESSED_OCTETS]);

/// The compressed public key and an input.
type SaltedInput<'a> = (&'a [u8; COMPRESSED_OCTETS], &'a [u8]);

/// Like [`hash_to_curve`], for several inputs. If a vector has unused lanes, an input is tried with
/// several counters at once. The first candidate that is a point is used. Also decompresses `others`, which
/// share a vector with the candidates of few inputs.
fn hash_all_to_curve(
    engine: Engine,
    salted: &[SaltedInput<'_>],
    others: &[[u8; COMPRESSED_OCTETS]],
) -> Option<(Vec<HashedInput>, Vec<Option<Affine>>)> {
    let mut candidate_points: Vec<CandidatePoints> =
        salted.iter().map(|(salt, alpha)| CandidatePoints::new(salt, alpha)).collect();
    let mut found = vec![None; salted.len()];
    let mut pending: Vec<usize> = (0..salted.len()).collect();
    let (mut inputs, mut octets) = (Vec::new(), others.to_vec());
    let mut other_points = Vec::with_capacity(others.len());
    while !pending.is_empty() {
        inputs.clear();
        let (first, wanted) = (octets.len(), octets.len() + pending.len());
        let candidates = match wanted {
            0..=4 => engine.candidates(wanted) - first,
            _ => engine.candidates(pending.len()),
        };
        for input in &pending {
            octets.extend(candidate_points[*input].by_ref().take(candidates / pending.len()));
            inputs.resize(octets.len() - first, *input);
        }
        if inputs.is_empty() {
            return None;
        }
        let mut points = engine.decompress(&octets).into_iter();
        other_points.extend(points.by_ref().take(first));
        for ((input, octets), point) in inputs.iter().zip(&octets[first..]).zip(points) {
            found[*input] = found[*input].or_else(|| Some((point?, *octets)));
        }
        pending.retain(|input| found[*input].is_none());
        octets.clear();
    }
    Some((found.into_iter().collect::<Option<_>>()?, other_points))
}

/// Returns the challenge (RFC 9381, section 5.4.3). It covers the key and every point of the proof:
/// a prover could choose a point that it does not cover afterwards.
fn challenge(
    key: &[u8; COMPRESSED_OCTETS],
    h: &[u8; COMPRESSED_OCTETS],
    gamma: &[u8],
    u: &EncodedPoint,
    v: &EncodedPoint,
) -> u128 {
    let mut message = Vec::with_capacity(2 + 5 * COMPRESSED_OCTETS + 1);
    message.extend_from_slice(&[SUITE, 0x02]);
    for point in [key.as_slice(), h, gamma, u.as_slice(), v.as_slice()] {
        message.extend_from_slice(point);
    }
    message.push(0);
    let digest = sha256(&message);
    u128::from_be_bytes(std::array::from_fn(|octet| digest[octet]))
}

/// Returns the nonce of RFC 6979, section 3.2, for the octets of H (RFC 9381, section 5.4.2.1), or
/// `None` if the library fails.
fn nonce(secret: &Scalar, h: &[u8; COMPRESSED_OCTETS]) -> Option<Zeroizing<Scalar>> {
    nonce_of_digest(secret, Scalar::from_octets_reduced(&sha256(h)), &[])
}
