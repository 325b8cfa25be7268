//! ECDSA keys on P-256 and P-384 (RFC 6605). A public key consists of the two coordinates of a
//! point. A signature consists of the two numbers r and s. Each coordinate and number has the
//! length of the curve, without any framing.

use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm, KeyPair, ParsedPublicKey,
};
use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, GenerationParameters};
use crate::batch::p256::sign::{BatchKey, KeyedMessage, MAX_GROUP, sign};
use crate::batch::p256::{Coordinates, KeyTable, LaneKey, lane_table};
use crate::batch::{LazyTable, SignedMessage};
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::der;
use crate::error::{BadSignature, KeyError, SignError};
use crate::implementation::{Implementation, Operation};
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};
use crate::p256::{Engine, LANE_TABLE_OCTETS, LaneTable, SecretWorkspace};
use crate::wipe::wiping_stack;

/// A curve and its hash function.
pub(crate) struct Curve {
    signing: &'static EcdsaSigningAlgorithm,
    verification: &'static EcdsaVerificationAlgorithm,
    /// Length of a scalar and of a coordinate in octets.
    octets: usize,
}

/// P-256 with SHA-256.
pub(crate) static P256: Curve = Curve {
    signing: &signature::ECDSA_P256_SHA256_FIXED_SIGNING,
    verification: &signature::ECDSA_P256_SHA256_FIXED,
    octets: 32,
};

/// P-384 with SHA-384.
pub(crate) static P384: Curve = Curve {
    signing: &signature::ECDSA_P384_SHA384_FIXED_SIGNING,
    verification: &signature::ECDSA_P384_SHA384_FIXED,
    octets: 48,
};

impl Curve {
    fn bits(&self) -> u32 {
        self.octets as u32 * 8
    }
}

/// First octet of an uncompressed point (SEC 1, section 2.3.3). DNSKEY records omit it.
const UNCOMPRESSED: u8 = 0x04;

/// Maximum number of leading zero octets that may be missing in a private key file: older versions
/// of BIND omit them. One key in 65,536 has two leading zero octets; a file in which more are
/// missing is truncated.
const MAX_MISSING_ZEROS: usize = 2;

/// Size of the stack area, in bytes, in which a batch may leave secrets.
const STACK_BYTES: usize = 24 * 1024;

struct Private {
    curve: &'static Curve,
    pair: EcdsaKeyPair,
    scalar: Zeroizing<Vec<u8>>,
    /// The key for batches, which only P-256 has.
    batch: Option<BatchKey>,
}

impl Private {
    fn new(curve: &'static Curve, pair: EcdsaKeyPair, scalar: Zeroizing<Vec<u8>>) -> Self {
        let batch = BatchKey::new(&scalar);
        Self { curve, pair, scalar, batch }
    }
}

/// Appends the signature of each key over its message, in order. The keys may differ; with keys on
/// P-256, the signatures share a batch. If it fails, `out` may contain some of the signatures.
pub(crate) fn sign_together(signed: &[(&dyn Signer, &[u8])], out: &mut Vec<u8>) -> Result<(), SignError> {
    let mut workspace = SecretWorkspace::default();
    // Groups of equal size: after full groups, the remainder might be too small for a batch.
    let groups = signed.len().div_ceil(MAX_GROUP).max(1);
    for group in signed.chunks(signed.len().div_ceil(groups).max(1)) {
        let keyed = group.iter().filter_map(|(key, message)| Some((key.batch_key()?, *message)));
        let keyed: Vec<KeyedMessage<'_>> = keyed.collect();
        let is_batch_faster = group.len() >= Engine::detect().min_signing_batch();
        let is_signed = is_batch_faster
            && keyed.len() == group.len()
            && wiping_stack::<STACK_BYTES, _>(|| sign(&keyed, &mut workspace, out)).is_some();
        if !is_signed {
            group.iter().try_for_each(|(key, message)| key.sign(message, out))?;
        }
    }
    Ok(())
}

/// Generates a key.
pub(crate) fn generate(curve: &'static Curve, parameters: GenerationParameters) -> SignerResult {
    parameters.require_no_bits()?;
    let failed = |_| KeyError::Generation(parameters.algorithm);
    let pair = EcdsaKeyPair::generate(curve.signing).map_err(failed)?;
    let scalar = pair.private_key().as_be_bytes().map_err(failed)?;
    let scalar = Zeroizing::new(scalar.as_ref().to_vec());
    Ok(Box::new(Private::new(curve, pair, scalar)))
}

/// Reads the scalar of a private key file and derives the public key.
pub(crate) fn read_private(curve: &'static Curve, file: &PrivateFile<'_>) -> SignerResult {
    let algorithm = file.algorithm();
    let encoded_scalar = file.octets(PRIVATE_KEY)?;
    let missing = match curve.octets.checked_sub(encoded_scalar.len()) {
        Some(missing) if missing <= MAX_MISSING_ZEROS => missing,
        _ => {
            return Err(KeyError::PrivateKeyLength {
                algorithm,
                expected: curve.octets,
                found: encoded_scalar.len(),
            });
        }
    };
    let mut scalar = Zeroizing::new(vec![0; curve.octets]);
    scalar[missing..].copy_from_slice(&encoded_scalar);
    // The library checks that the scalar is neither 0 nor above the order of the curve.
    let pair = EcdsaKeyPair::from_private_key_der(curve.signing, &der::write_ec_private_key(&scalar))
        .map_err(|_| KeyError::InvalidPrivateKey(algorithm))?;
    Ok(Box::new(Private::new(curve, pair, scalar)))
}

/// Returns the code that performs an operation on P-256; see [`crate::implementation()`].
pub(crate) fn p256_implementation(operation: Operation, batch: usize) -> Implementation {
    let engine = Engine::detect();
    let minimum = match operation {
        Operation::Generate => engine.min_signing_batch(),
        Operation::Verify => {
            engine.min_signatures_without_table().unwrap_or_else(|| engine.min_signatures_for_table())
        }
    };
    if batch >= minimum { engine.implementation() } else { Implementation::AWS_LC }
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        let point = self.pair.public_key().as_ref();
        point.strip_prefix(&[UNCOMPRESSED]).unwrap_or(point)
    }

    fn bits(&self) -> u32 {
        self.curve.bits()
    }

    fn signature_octets(&self) -> usize {
        self.curve.octets * 2
    }

    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        let signature = self.pair.sign(&SystemRandom::new(), message).map_err(|_| SignError::Library)?;
        out.extend_from_slice(signature.as_ref());
        Ok(())
    }

    fn sign_batch(&self, messages: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SignError> {
        let before = out.len();
        out.reserve(messages.len() * self.signature_octets());
        let signed: Vec<(&dyn Signer, &[u8])> =
            messages.iter().map(|message| (self as &dyn Signer, *message)).collect();
        sign_together(&signed, out).inspect_err(|_| out.truncate(before))
    }

    fn batch_key(&self) -> Option<&BatchKey> {
        self.batch.as_ref()
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        vec![(PRIVATE_KEY, &self.scalar)]
    }
}

/// Octets of the table of a key for batches of its own.
const KEY_TABLE_OCTETS: usize = 256 << 10;

struct Public {
    curve: &'static Curve,
    key: ParsedPublicKey,
    /// What batches use; only keys on P-256 have it.
    batch: Option<Batch>,
}

struct Batch {
    coordinates: Coordinates,
    /// For batches of this key alone.
    key_table: LazyTable<KeyTable>,
    /// For batches with other keys.
    lane_table: LazyTable<LaneTable>,
}

impl Batch {
    const fn new(coordinates: Coordinates) -> Self {
        Self { coordinates, key_table: LazyTable::new(), lane_table: LazyTable::new() }
    }
}

impl Public {
    fn table(&self, count: usize) -> Option<&KeyTable> {
        let Batch { coordinates, key_table, .. } = self.batch.as_ref()?;
        let engine = Engine::detect();
        // Lanes verify few signatures of a key nearly as fast without a table, which takes much memory.
        let is_small = count < engine.min_signatures_for_table();
        if is_small && engine.min_signatures_without_table().is_some() && !key_table.is_built() {
            return None;
        }
        key_table.table(count, engine.min_signatures_for_table(), || KeyTable::new(coordinates))
    }
}

/// Parses a public key and checks that it is a point of the curve.
pub(crate) fn parse_public(curve: &'static Curve, algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    let expected = curve.octets * 2;
    if key.len() != expected {
        return Err(KeyError::PublicKeyLength { algorithm, expected, found: key.len() });
    }
    let batch = key.try_into().ok().map(Batch::new);
    let mut point = Vec::with_capacity(1 + key.len());
    point.push(UNCOMPRESSED);
    point.extend_from_slice(key);
    let key = ParsedPublicKey::new(curve.verification, point).map_err(|_| KeyError::NotOnCurve(algorithm))?;
    Ok(Box::new(Public { curve, key, batch }))
}

impl Verifier for Public {
    fn bits(&self) -> u32 {
        self.curve.bits()
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.key.verify_sig(message, signature).map_err(|_| BadSignature)
    }

    fn verify_batch(&self, signed: &[SignedMessage<'_>], outcome: &mut Vec<Result<(), BadSignature>>) {
        let Some(table) = self.table(signed.len()) else {
            outcome.extend(signed.iter().map(|(message, signature)| self.verify(message, signature)));
            return;
        };
        // If the table rejects a signature, the single check decides.
        let result = |(is_valid, (message, signature)): (bool, &SignedMessage<'_>)| match is_valid {
            true => Ok(()),
            false => self.verify(message, signature),
        };
        outcome.extend(table.verify(signed).into_iter().zip(signed).map(result));
    }

    fn without_table(&self) -> Option<Box<dyn Verifier>> {
        let Batch { coordinates, key_table, lane_table } = self.batch.as_ref()?;
        let batch = Some(Batch::new(*coordinates));
        let (curve, key) = (self.curve, self.key.clone());
        let has_table = key_table.is_built() || lane_table.is_built();
        has_table.then(|| Box::new(Self { curve, key, batch }) as Box<dyn Verifier>)
    }

    fn memory_octets(&self) -> usize {
        let has = |is_built: bool, octets| if is_built { octets } else { 0 };
        let tables = self.batch.as_ref().map_or(0, |Batch { key_table, lane_table, .. }| {
            has(key_table.is_built(), KEY_TABLE_OCTETS) + has(lane_table.is_built(), LANE_TABLE_OCTETS)
        });
        1024 + tables
    }

    fn lane_key(&self, count: usize) -> Option<LaneKey<'_>> {
        let Batch { coordinates, lane_table: table, .. } = self.batch.as_ref()?;
        let engine = Engine::detect();
        engine.min_signatures_without_table()?;
        if self.table(count).is_some() {
            return None;
        }
        let minimum = engine.min_signatures_for_lane_table();
        let table = table.table(count, minimum, || lane_table(coordinates));
        Some(table.map_or(LaneKey::Coordinates(coordinates), LaneKey::Table))
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::{BASE64, HEXLOWER};

    use super::*;
    use crate::{PrivateKey, PublicKey};

    const CURVES: [(Algorithm, &Curve); 2] =
        [(Algorithm::ECDSAP256SHA256, &P256), (Algorithm::ECDSAP384SHA384, &P384)];

    fn read_scalar(algorithm: Algorithm, scalar: &[u8]) -> Result<PrivateKey, KeyError> {
        let scalar = BASE64.encode(scalar);
        let number = algorithm.0;
        PrivateKey::from_bind(&format!(
            "Private-key-format: v1.3\nAlgorithm: {number}\nPrivateKey: {scalar}\n"
        ))
    }

    #[test]
    fn points_off_the_curve_are_rejected() {
        for (algorithm, _) in CURVES {
            let key = PrivateKey::generate(algorithm, None).unwrap();
            let mut point = key.public_key().to_vec();
            point[40] ^= 1;
            assert_eq!(PublicKey::parse(algorithm, &point).err(), Some(KeyError::NotOnCurve(algorithm)));
            point.fill(0);
            assert_eq!(PublicKey::parse(algorithm, &point).err(), Some(KeyError::NotOnCurve(algorithm)));
            point.fill(0xff);
            assert_eq!(PublicKey::parse(algorithm, &point).err(), Some(KeyError::NotOnCurve(algorithm)));
            let (expected, found) = (point.len(), point.len() + 1);
            point.insert(0, UNCOMPRESSED);
            let error = KeyError::PublicKeyLength { algorithm, expected, found };
            assert_eq!(PublicKey::parse(algorithm, &point).err(), Some(error));
        }
    }

    #[test]
    fn scalars_out_of_range_are_rejected() {
        for (algorithm, curve) in CURVES {
            let invalid = KeyError::InvalidPrivateKey(algorithm);
            for scalar in [vec![0; curve.octets], vec![0xff; curve.octets]] {
                assert_eq!(read_scalar(algorithm, &scalar).err(), Some(invalid.clone()), "{scalar:?}");
            }
            let expected = curve.octets;
            for found in [0, 1, curve.octets - 3, curve.octets + 1] {
                let error = KeyError::PrivateKeyLength { algorithm, expected, found };
                assert_eq!(read_scalar(algorithm, &vec![1; found]).err(), Some(error));
            }
        }
    }

    #[test]
    fn leading_zeros_may_be_missing() {
        // Scalar 1: the public key is the base point (SEC 2, section 2.4.2).
        let mut scalar = [0; 30];
        scalar[29] = 1;
        let key = read_scalar(Algorithm::ECDSAP256SHA256, &scalar).unwrap();
        let base = "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296\
                    4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5";
        assert_eq!(HEXLOWER.encode(key.public_key()), base);
        let expected = format!("PrivateKey: {}E=\n", "A".repeat(42));
        assert!(key.to_bind().ends_with(&expected));
    }

    #[test]
    fn a_zero_signature_fits_nothing() {
        for (algorithm, curve) in CURVES {
            let key = PrivateKey::generate(algorithm, None).unwrap();
            let public = PublicKey::parse(algorithm, key.public_key()).unwrap();
            assert_eq!(public.verify(b"message", &vec![0; curve.octets * 2]), Err(BadSignature));
        }
    }
}
