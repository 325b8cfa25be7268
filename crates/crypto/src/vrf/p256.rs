//! ECVRF-P256-SHA256-TAI (RFC 9381, section 5.5, suite 0x01).
//!
//! What takes time shows of what: hashing an input to the curve tries until it finds a point, so its time tells how many
//! tries the *input* took; the input of NSEC5 is the name that was asked for, which the asker knows. Multiplications
//! by the private scalar and by the nonce take the same time for all of them.

#[cfg(test)]
mod tests;
#[cfg(test)]
mod uniqueness_tests;

use aws_lc_rs::rand;
use zeroize::Zeroizing;

use super::error::{BadProof, ProveError, VrfKeyError};
use super::{VRF_HASH_OCTETS, VrfAlgorithm};
use crate::hash::sha256;
use crate::p256::{
    Affine, COMPRESSED, Comb, EVEN, Encoded, Jacobian, Scalar, ShortTable, double_multiply_public,
    multiply_base, multiply_base_public, nonce_of_digest,
};

const SUITE: u8 = 0x01;

/// Octets of a challenge: cLen.
const CHALLENGE: usize = 16;

/// Octets of a public key: both coordinates.
pub(super) const PUBLIC_KEY: usize = 64;

/// Octets of a secret scalar.
pub(super) const SECRET: usize = 32;

/// Octets of a proof: point, challenge, s.
pub(super) const PROOF: usize = COMPRESSED + CHALLENGE + 32;

const ALGORITHM: VrfAlgorithm = VrfAlgorithm::P256_SHA256_TAI;

pub(super) struct Private {
    scalar: Zeroizing<Scalar>,
    public_key: [u8; PUBLIC_KEY],
    compressed: [u8; COMPRESSED],
}

pub(super) struct Public {
    point: Affine,
    compressed: [u8; COMPRESSED],
    table: ShortTable,
}

/// A proof in its parts.
struct Proof {
    gamma: Affine,
    challenge: u128,
    s: Scalar,
}

/// An input on its way to a proof.
struct Commitment {
    nonce: Zeroizing<Scalar>,
    /// Γ = x·H, U = k·B, V = k·H.
    points: [Jacobian; 3],
}

impl Private {
    /// Makes a key: a random scalar from 1 to below the order.
    pub(super) fn generate() -> Result<Self, VrfKeyError> {
        loop {
            let mut octets = Zeroizing::new([0; SECRET]);
            rand::fill(octets.as_mut()).map_err(|_| VrfKeyError::Generation(ALGORITHM))?;
            // One in 2³² is not below the order.
            if let Ok(key) = Self::from_secret(octets.as_ref()) {
                return Ok(key);
            }
        }
    }

    /// Takes a scalar of 32 octets, big-endian.
    pub(super) fn from_secret(octets: &[u8]) -> Result<Self, VrfKeyError> {
        let invalid = VrfKeyError::InvalidPrivateKey(ALGORITHM);
        let octets = octets.try_into().map_err(|_| invalid.clone())?;
        let scalar = Zeroizing::new(Scalar::from_octets(octets).ok_or_else(|| invalid.clone())?);
        if *scalar == Scalar::ZERO {
            return Err(invalid);
        }
        let point = Jacobian::normalize_all(&[multiply_base(&scalar)])[0];
        Ok(Self { scalar, public_key: point.to_coordinates(), compressed: point.to_compressed() })
    }

    pub(super) fn secret(&self) -> Zeroizing<Vec<u8>> {
        let octets = Zeroizing::new(self.scalar.to_octets());
        Zeroizing::new(octets.to_vec())
    }

    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Appends a proof for each input to `proofs` and its hash to `hashes` (RFC 9381, section 5.1). The inputs share their
    /// inversions. On error, some may be there.
    pub(super) fn prove_batch(
        &self,
        alphas: &[&[u8]],
        proofs: &mut Vec<u8>,
        hashes: &mut Vec<[u8; VRF_HASH_OCTETS]>,
    ) -> Result<(), ProveError> {
        let hash = |alpha: &&[u8]| hash_to_curve(&self.compressed, alpha).ok_or(ProveError::NoPoint);
        let inputs: Vec<(Affine, [u8; COMPRESSED])> = alphas.iter().map(hash).collect::<Result<_, _>>()?;
        let points: Vec<Affine> = inputs.iter().map(|(point, _)| *point).collect();
        let commit = |(comb, (_, octets)): (&Comb, &(Affine, _))| self.commit(comb, octets);
        let commitments: Vec<Commitment> =
            Comb::prepare_all(&points).iter().zip(&inputs).map(commit).collect::<Result<_, _>>()?;
        let points: Vec<Jacobian> = commitments.iter().flat_map(|commitment| commitment.points).collect();
        let encoded = Jacobian::encode_all(&points);
        for (((_, h), commitment), points) in inputs.iter().zip(&commitments).zip(encoded.chunks_exact(3)) {
            let [gamma, u, v] = points else { return Err(ProveError::Library) };
            let challenge = challenge(&self.compressed, h, gamma.as_slice(), u, v);
            let product = Zeroizing::new(Scalar::from_short(challenge).multiply(*self.scalar));
            proofs.extend_from_slice(gamma.as_slice());
            proofs.extend_from_slice(&challenge.to_be_bytes());
            proofs.extend_from_slice(&commitment.nonce.add(*product).to_octets());
            hashes.push(hash_point(gamma.as_slice()));
        }
        Ok(())
    }

    fn commit(&self, comb: &Comb, h: &[u8; COMPRESSED]) -> Result<Commitment, ProveError> {
        let nonce = nonce(&self.scalar, h).ok_or(ProveError::Library)?;
        let points = [comb.multiply(&self.scalar), multiply_base(&nonce), comb.multiply(&nonce)];
        Ok(Commitment { nonce, points })
    }
}

impl Public {
    /// Parses both coordinates and validates the point: no other check is due on a curve of prime order, whose point at
    /// infinity has no such form (RFC 9381, section 5.4.5).
    pub(super) fn parse(octets: &[u8]) -> Result<Self, VrfKeyError> {
        let octets: &[u8; PUBLIC_KEY] = octets.try_into().map_err(|_| VrfKeyError::PublicKeyLength {
            algorithm: ALGORITHM,
            expected: PUBLIC_KEY,
            found: octets.len(),
        })?;
        let point = Affine::from_coordinates(octets).ok_or(VrfKeyError::NotOnCurve(ALGORITHM))?;
        Ok(Self { point, compressed: point.to_compressed(), table: ShortTable::prepare(&point) })
    }

    pub(super) fn coordinates(&self) -> [u8; PUBLIC_KEY] {
        self.point.to_coordinates()
    }

    /// Verifies a proof and returns its hash (RFC 9381, section 5.3).
    pub(super) fn verify(&self, alpha: &[u8], octets: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
        let proof = Proof::parse(octets).ok_or(BadProof)?;
        let (h, h_octets) = hash_to_curve(&self.compressed, alpha).ok_or(BadProof)?;
        let [u, v] = self.commitments(&h, &proof);
        let gamma = &octets[..COMPRESSED];
        if challenge(&self.compressed, &h_octets, gamma, &u, &v) != proof.challenge {
            return Err(BadProof);
        }
        Ok(hash_point(gamma))
    }

    /// U = s·B − c·Y and V = s·H − c·Γ.
    fn commitments(&self, h: &Affine, proof: &Proof) -> [Encoded; 2] {
        let u = multiply_base_public(self.table.multiply(proof.challenge).negate(), &proof.s);
        let challenge = Scalar::from_short(proof.challenge);
        let v = double_multiply_public(&proof.s, h, &challenge, &proof.gamma.negate());
        let encoded = Jacobian::encode_all(&[u, v]);
        [encoded[0], encoded[1]]
    }
}

impl Proof {
    /// Splits a proof (RFC 9381, section 5.4.4). `None` where its point is none, or s is not below the order.
    fn parse(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; PROOF] = octets.try_into().ok()?;
        let (gamma, rest) = octets.split_first_chunk::<COMPRESSED>()?;
        let (challenge, s) = rest.split_first_chunk::<CHALLENGE>()?;
        let s = Scalar::from_octets(s.try_into().ok()?)?;
        let gamma = Affine::from_compressed(gamma)?;
        Some(Self { gamma, challenge: u128::from_be_bytes(*challenge), s })
    }
}

/// The hash of a proof, which is not verified (RFC 9381, section 5.2).
pub(super) fn proof_to_hash(octets: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    Proof::parse(octets).ok_or(BadProof)?;
    Ok(hash_point(&octets[..COMPRESSED]))
}

fn hash_point(gamma: &[u8]) -> [u8; VRF_HASH_OCTETS] {
    let mut message = [0; 2 + COMPRESSED + 1];
    message[..2].copy_from_slice(&[SUITE, 0x03]);
    message[2..2 + COMPRESSED].copy_from_slice(gamma);
    sha256(&message)
}

/// Try and increment (RFC 9381, section 5.4.1.1): two tries on average, 256 at most.
fn hash_to_curve(salt: &[u8; COMPRESSED], alpha: &[u8]) -> Option<(Affine, [u8; COMPRESSED])> {
    let mut message = Vec::with_capacity(2 + COMPRESSED + alpha.len() + 2);
    message.extend_from_slice(&[SUITE, 0x01]);
    message.extend_from_slice(salt);
    message.extend_from_slice(alpha);
    message.extend_from_slice(&[0, 0]);
    let counter = message.len() - 2;
    let mut octets = [EVEN; COMPRESSED];
    for count in 0..=u8::MAX {
        message[counter] = count;
        octets[1..].copy_from_slice(&sha256(&message));
        if let Some(point) = Affine::from_compressed(&octets) {
            return Some((point, octets));
        }
    }
    None
}

/// The challenge (RFC 9381, section 5.4.3), over the key too: without it, and without every point that the proof speaks of,
/// a prover could choose one of them afterwards.
fn challenge(key: &[u8; COMPRESSED], h: &[u8; COMPRESSED], gamma: &[u8], u: &Encoded, v: &Encoded) -> u128 {
    let mut message = Vec::with_capacity(2 + 5 * COMPRESSED + 1);
    message.extend_from_slice(&[SUITE, 0x02]);
    for point in [key.as_slice(), h, gamma, u.as_slice(), v.as_slice()] {
        message.extend_from_slice(point);
    }
    message.push(0);
    let digest = sha256(&message);
    u128::from_be_bytes(std::array::from_fn(|octet| digest[octet]))
}

/// The nonce of RFC 6979, section 3.2, for the octets of H (RFC 9381, section 5.4.2.1). `None` where the library fails.
fn nonce(secret: &Scalar, h: &[u8; COMPRESSED]) -> Option<Zeroizing<Scalar>> {
    nonce_of_digest(secret, Scalar::from_octets_reduced(&sha256(h)), &[])
}
