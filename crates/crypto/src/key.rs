//! Private keys for signing and public keys for verification, for all algorithms in the table.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, AlgorithmEntry, GenerationParameters, SHA1_ALGORITHMS};
use crate::batch::SignedMessage;
use crate::batch::p256::LaneKey;
use crate::batch::p256::sign::BatchKey;
use crate::bind_format::{self, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};

/// The private key of one algorithm inside a [`PrivateKey`]. Its secrets are wiped on drop.
pub(crate) trait Signer: Send + Sync {
    /// Returns the DNSKEY public key field.
    fn public_key(&self) -> &[u8];
    /// Returns the length of the key in bits (see [`PublicKey::bits`]).
    fn bits(&self) -> u32;
    /// Returns the length of every signature in octets.
    fn signature_octets(&self) -> usize;
    /// Appends a signature over `message`, in the format of the RRSIG signature field. If it fails,
    /// `out` is unchanged.
    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError>;
    /// Appends one signature for each message, in order. If it fails, `out` is unchanged.
    fn sign_batch(&self, messages: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SignError> {
        let before = out.len();
        out.reserve(messages.len() * self.signature_octets());
        for message in messages {
            self.sign(message, out).inspect_err(|_| out.truncate(before))?;
        }
        Ok(())
    }
    /// Returns the form of a P-256 key for batches with other keys.
    fn batch_key(&self) -> Option<&BatchKey> {
        None
    }
    /// Uses fresh randomness for every later signature, if the scheme allows it. The default does
    /// nothing.
    fn hedge(&mut self) {}
    /// Returns the names and values of the fields of a private key file, in order. The values are
    /// octets before Base64.
    fn fields(&self) -> Vec<(&'static str, &[u8])>;
}

/// The public key of one algorithm inside a [`PublicKey`].
pub(crate) trait Verifier: Send + Sync {
    /// Returns the length of the key in bits (see [`PublicKey::bits`]).
    fn bits(&self) -> u32;
    /// Returns the approximate time of a verification, in ns, if it is not that of the scheme.
    fn nanoseconds(&self) -> Option<u32> {
        None
    }
    /// Verifies that `signature`, an RRSIG signature field, is a signature over `message`.
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature>;
    /// Appends one result for each pair of message and signature, in order. Each result is the same
    /// as that of [`Verifier::verify`].
    fn verify_batch(&self, signed: &[SignedMessage<'_>], outcome: &mut Vec<Result<(), BadSignature>>) {
        outcome.extend(signed.iter().map(|(message, signature)| self.verify(message, signature)));
    }
    /// Returns the same key without the table that batches have built; `None` if it has none.
    fn without_table(&self) -> Option<Box<dyn Verifier>> {
        None
    }
    /// Returns the octets of memory that the key takes, approximately.
    fn memory_octets(&self) -> usize {
        1024 + self.bits() as usize / 2
    }
    /// Returns the form of a P-256 key for eight lanes if `count` signatures of it are verified fastest
    /// together with those of other keys.
    fn lane_key(&self, _count: usize) -> Option<LaneKey<'_>> {
        None
    }
}

/// A private key that was generated or read, or an error.
pub(crate) type SignerResult = Result<Box<dyn Signer>, KeyError>;

/// A public key that was parsed, or an error.
pub(crate) type VerifierResult = Result<Box<dyn Verifier>, KeyError>;

/// A public key, prepared for many verifications. Clones share the parsed key.
#[derive(Clone)]
pub struct PublicKey {
    entry: &'static AlgorithmEntry,
    verifier: Arc<dyn Verifier>,
}

impl PublicKey {
    /// Parses the public key field of a DNSKEY record. The work of parsing and of later
    /// verifications is bounded.
    ///
    /// # Errors
    /// If the algorithm is unknown, if the key is malformed, or if it is outside the supported
    /// range. RSA keys must have 1024 to 4096 bits, and an odd public exponent above 1 of at most
    /// 64 bits. For ECDSA and Ed448, the key must be a point on the curve.
    /// [`KeyError::is_unusable`] distinguishes unusable keys from malformed keys.
    pub fn parse(algorithm: Algorithm, key: &[u8]) -> Result<Self, KeyError> {
        let entry = algorithm.require()?;
        Ok(Self { entry, verifier: (entry.scheme.parse_public)(algorithm, key)?.into() })
    }

    /// As [`parse`](Self::parse), for the algorithms of [`Algorithm::is_sha1`].
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse).
    pub fn parse_sha1(algorithm: Algorithm, key: &[u8]) -> Result<Self, KeyError> {
        let entry = SHA1_ALGORITHMS.iter().find(|entry| entry.algorithm == algorithm);
        let entry = entry.ok_or(KeyError::UnknownAlgorithm(algorithm))?;
        Ok(Self { entry, verifier: (entry.scheme.parse_public)(algorithm, key)?.into() })
    }

    /// Verifies `signature`, the signature field of an RRSIG record, over `message`.
    ///
    /// # Errors
    /// [`BadSignature`] if the signature is not valid, including a wrong length or format.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.verifier.verify(message, signature)
    }

    /// Returns the approximate time of one verification, in ns, as
    /// [`Scheme::verification_nanoseconds`](crate::Scheme::verification_nanoseconds): that of the scheme,
    /// more for RSA keys with long exponents, and less for ML-DSA keys that have verified signatures. The
    /// time to hash the message is not included.
    #[must_use]
    pub fn verification_nanoseconds(&self) -> u32 {
        self.verifier.nanoseconds().unwrap_or(self.entry.scheme.verification_nanoseconds)
    }

    pub(crate) fn verifier(&self) -> &dyn Verifier {
        &*self.verifier
    }

    /// Returns an identity that all clones of this key share. No other key has it while this key
    /// exists.
    pub(crate) fn identity(&self) -> *const () {
        Arc::as_ptr(&self.verifier).cast()
    }

    /// Returns the same key without the table that [`verify_batch`](crate::verify_batch) has built; `None` if
    /// it has none.
    #[must_use]
    pub fn without_table(&self) -> Option<Self> {
        Some(Self { entry: self.entry, verifier: self.verifier.without_table()?.into() })
    }

    /// Returns the octets of memory that the key takes, approximately. It grows when a table is built
    /// for batches.
    #[must_use]
    pub fn memory_octets(&self) -> usize {
        self.verifier.memory_octets()
    }

    /// Returns the algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.entry.algorithm
    }

    /// Returns the length of the key in bits: of the modulus for RSA, of the field of the curve for
    /// ECDSA, 256 for Ed25519, 456 for Ed448, and of the encoded public key for other algorithms.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.verifier.bits()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey")
            .field("algorithm", &self.entry.mnemonic)
            .field("bits", &self.bits())
            .finish_non_exhaustive()
    }
}

/// A private key. It is wiped from memory on drop, and its `Debug` output contains no secrets.
pub struct PrivateKey {
    entry: &'static AlgorithmEntry,
    signer: Box<dyn Signer>,
}

impl PrivateKey {
    /// Generates a key. `bits` is the length of an RSA key: 1280, 2048, 3072 or 4096. `None`
    /// selects the default, 2048. For other algorithms, it must be `None`.
    ///
    /// # Errors
    /// If the algorithm is unknown, a length is given for an algorithm without a choice of lengths,
    /// the length is weak (1024) or not supported, or the library fails.
    pub fn generate(algorithm: Algorithm, bits: Option<u16>) -> Result<Self, KeyError> {
        Self::generate_with(GenerationParameters { algorithm, bits, force: false })
    }

    /// Like [`PrivateKey::generate`], but also generates RSA keys of 1024 bits. Such keys are known
    /// to be weak. Use them only for experiments, and for comparison with zones that still have
    /// them.
    ///
    /// # Errors
    /// The same as those of [`PrivateKey::generate`], except that for RSA 1024 is not an error.
    pub fn generate_any_length(algorithm: Algorithm, bits: Option<u16>) -> Result<Self, KeyError> {
        Self::generate_with(GenerationParameters { algorithm, bits, force: true })
    }

    fn generate_with(parameters: GenerationParameters) -> Result<Self, KeyError> {
        let entry = parameters.algorithm.require()?;
        Ok(Self { entry, signer: (entry.scheme.generate)(parameters)? })
    }

    /// Reads the text of a `.private` file as BIND, ldns and PowerDNS write it, in format v1.2 or
    /// v1.3. It ignores fields that are not part of the key, such as `Created:`. It derives the
    /// public key from the private key.
    ///
    /// # Errors
    /// If the text is not such a file, a field is missing or damaged, the algorithm is unknown, or
    /// the values do not form a key.
    pub fn from_bind(text: &str) -> Result<Self, KeyError> {
        let file = PrivateFile::parse(text)?;
        let entry = file.algorithm().require()?;
        file.require_dialect(entry.scheme.dialect)?;
        Ok(Self { entry, signer: (entry.scheme.read_private)(&file)? })
    }

    /// Returns the text of a `.private` file in format v1.3, without times.
    #[must_use]
    pub fn to_bind(&self) -> Zeroizing<String> {
        bind_format::render(self.entry, &self.signer.fields())
    }

    /// Returns the public key field of the DNSKEY record.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.signer.public_key()
    }

    /// Checks that `field`, the public key field of a DNSKEY record for this key, equals the public
    /// key, octet by octet. Another encoding of the same key is not accepted, because it would have
    /// another key tag.
    ///
    /// # Errors
    /// [`KeyError::PublicKeyMismatch`] if `field` differs.
    pub fn check_public(&self, field: &[u8]) -> Result<(), KeyError> {
        if field == self.public_key() {
            return Ok(());
        }
        Err(KeyError::PublicKeyMismatch(self.algorithm()))
    }

    /// Returns the algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.entry.algorithm
    }

    /// Returns the length of the key in bits, as [`PublicKey::bits`] does.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.signer.bits()
    }

    /// Returns the length of every signature of this key, in octets.
    #[must_use]
    pub fn signature_octets(&self) -> usize {
        self.signer.signature_octets()
    }

    pub(crate) fn signer(&self) -> &dyn Signer {
        &*self.signer
    }

    /// Uses fresh randomness for every later signature, if the scheme allows it: ML-DSA ("hedged"),
    /// SLH-DSA and MAYO. This protects against faults that are induced while signing. Without it, a message
    /// always has the same signature.
    pub fn hedge(&mut self) {
        self.signer.hedge();
    }

    /// Appends a signature over `message` to `out`, in the format of the RRSIG signature field.
    ///
    /// # Errors
    /// If the library fails. `out` is then unchanged.
    pub fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        self.signer.sign(message, out)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKey")
            .field("algorithm", &self.entry.mnemonic)
            .field("bits", &self.bits())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use data_encoding::BASE64;

    use super::*;
    use crate::freed::{assert_wiped, memory_freed_by};
    use crate::{ALGORITHMS, VerifyItem, sign_batch, verify_batch};

    const fn assert_shared<T: Send + Sync>() {}
    const _: () = assert_shared::<PublicKey>();
    const _: () = assert_shared::<PrivateKey>();

    /// Returns one key of each algorithm.
    fn keys() -> Vec<PrivateKey> {
        let generate = |entry: &AlgorithmEntry| PrivateKey::generate(entry.algorithm, None).unwrap();
        ALGORITHMS.iter().map(generate).collect()
    }

    /// Returns one key of each algorithm, except of the aliases of algorithms that sign slowly.
    fn keys_for_few_signatures() -> Vec<PrivateKey> {
        let is_slow_alias = |key: &PrivateKey| key.entry.scheme.signs_slowly && key.entry.alias_of.is_some();
        keys().into_iter().filter(|key| !is_slow_alias(key)).collect()
    }

    /// Returns one key of each algorithm that does not sign slowly.
    fn keys_for_many_signatures() -> Vec<PrivateKey> {
        keys().into_iter().filter(|key| !key.entry.scheme.signs_slowly).collect()
    }

    fn public(key: &PrivateKey) -> PublicKey {
        PublicKey::parse(key.algorithm(), key.public_key()).unwrap()
    }

    /// Returns the secret fields of a key, as octets and in Base64.
    fn secrets_of(key: &PrivateKey) -> Vec<(String, Vec<u8>)> {
        let is_secret = |(name, _): &(&str, &[u8])| !["Modulus", "PublicExponent"].contains(name);
        let forms = |(name, octets): (&str, &[u8])| {
            // A part of a long field is sufficient to find it.
            let part = &octets[..octets.len().min(48)];
            [
                (format!("{key:?} {name}"), part.to_vec()),
                (format!("{key:?} {name} in Base64"), BASE64.encode(&part[..24]).into_bytes()),
            ]
        };
        key.signer.fields().into_iter().filter(is_secret).flat_map(forms).collect()
    }

    #[test]
    fn private_keys_are_wiped_when_read_used_and_dropped() {
        for key in keys().into_iter().filter(|key| key.entry.alias_of.is_none()) {
            let (text, secrets) = (key.to_bind(), secrets_of(&key));
            let messages = vec![&b"an RRset"[..]; if key.entry.scheme.signs_slowly { 1 } else { 20 }];
            let work = || {
                let read = PrivateKey::from_bind(&text).unwrap();
                let mut out = Vec::new();
                read.sign(b"an RRset", &mut out).unwrap();
                read.signer().sign_batch(&messages, &mut out).unwrap();
                read.to_bind()
            };
            assert_wiped(&memory_freed_by(work), &secrets);
            assert_wiped(&memory_freed_by(|| key), &secrets);
        }
    }

    #[test]
    fn sizes_agree_with_the_table() {
        for key in keys_for_few_signatures() {
            let entry = key.algorithm().entry().unwrap();
            assert_eq!(key.bits(), public(&key).bits());
            assert_eq!(key.public_key().len(), entry.scheme.public_key_octets.unwrap_or(256 + 4), "{key:?}");
            assert_eq!(key.signature_octets(), entry.scheme.signature_octets.unwrap_or(256), "{key:?}");
            let mut out = vec![7];
            key.sign(b"octets", &mut out).unwrap();
            assert_eq!(out.len(), 1 + key.signature_octets(), "{key:?}");
            assert_eq!(out[0], 7);
        }
    }

    #[test]
    fn private_files_keep_the_key() {
        for key in keys_for_few_signatures() {
            let text = key.to_bind();
            let read = PrivateKey::from_bind(&text).unwrap();
            assert_eq!(read.to_bind(), text);
            assert_eq!(read.public_key(), key.public_key());
            let mut signature = Vec::new();
            read.sign(b"octets", &mut signature).unwrap();
            assert_eq!(public(&key).verify(b"octets", &signature), Ok(()));
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        for key in keys() {
            let shown = format!("{key:?}");
            assert_eq!(
                shown,
                format!(
                    "PrivateKey {{ algorithm: {:?}, bits: {}, .. }}",
                    key.algorithm().to_string(),
                    key.bits()
                )
            );
        }
    }

    #[test]
    fn batches_equal_single_calls() {
        let keys = keys_for_few_signatures();
        let messages: Vec<&[u8]> = vec![b"", b"one", b"two", &[0; 3000]];
        for key in &keys {
            let public = public(key);
            let mut out = vec![1, 2];
            sign_batch(key, &messages, &mut out).unwrap();
            assert_eq!(out.len(), 2 + messages.len() * key.signature_octets());
            let signatures = out[2..].chunks(key.signature_octets());
            let mut items: Vec<_> = messages
                .iter()
                .zip(signatures)
                .map(|(message, signature)| VerifyItem { key: &public, message, signature })
                .collect();
            items[1].message = b"other";
            let mut outcome = vec![Err(BadSignature)];
            verify_batch(&items, &mut outcome);
            assert_eq!(outcome, [Ok(()), Err(BadSignature), Ok(()), Ok(())]);
        }
    }

    #[test]
    fn one_key_serves_many_threads() {
        for key in keys_for_many_signatures() {
            let public = public(&key);
            std::thread::scope(|scope| {
                for thread in 0..4_u8 {
                    let (key, public) = (&key, &public);
                    scope.spawn(move || {
                        for round in 0..8_u8 {
                            let mut signature = Vec::new();
                            key.sign(&[thread, round], &mut signature).unwrap();
                            assert_eq!(public.verify(&[thread, round], &signature), Ok(()));
                        }
                    });
                }
            });
        }
    }

    #[test]
    fn unknown_algorithms_are_named() {
        let unknown = KeyError::UnknownAlgorithm(Algorithm(99));
        assert_eq!(PublicKey::parse(Algorithm(99), &[0; 64]).err(), Some(unknown.clone()));
        assert_eq!(PrivateKey::generate(Algorithm(99), None).err(), Some(unknown.clone()));
        assert!(unknown.to_string().contains("99"), "{unknown}");
    }

    #[test]
    fn signed_messages_verify_and_flipped_bits_do_not() {
        let keys: Vec<_> = keys_for_many_signatures().into_iter().map(|key| (public(&key), key)).collect();
        let config = ProptestConfig { cases: 48, ..crate::rfc_tests::seeded_config(6) };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let inputs = (proptest::collection::vec(any::<u8>(), 1..600), any::<prop::sample::Index>());
        runner
            .run(&inputs, |(message, position)| {
                for (public, key) in &keys {
                    let mut signature = Vec::new();
                    key.sign(&message, &mut signature).unwrap();
                    prop_assert_eq!(public.verify(&message, &signature), Ok(()));
                    let flip = |octets: &[u8]| {
                        let mut octets = octets.to_vec();
                        let bit = position.index(octets.len() * 8);
                        octets[bit / 8] ^= 1 << (bit % 8);
                        octets
                    };
                    prop_assert_eq!(public.verify(&message, &flip(&signature)), Err(BadSignature));
                    prop_assert_eq!(public.verify(&flip(&message), &signature), Err(BadSignature));
                    prop_assert_eq!(public.verify(&message, &signature[1..]), Err(BadSignature));
                    signature.push(0);
                    prop_assert_eq!(public.verify(&message, &signature), Err(BadSignature));
                }
                Ok(())
            })
            .unwrap();
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(1))]

        #[test]
        fn public_keys_of_any_octets_do_not_panic(
            position in 0..ALGORITHMS.len(),
            fitting in any::<bool>(),
            mut key in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let entry = &ALGORITHMS[position];
            if let (true, Some(length)) = (fitting, entry.scheme.public_key_octets) {
                key.push(1);
                key = key.into_iter().cycle().take(length).collect();
            }
            if let Ok(key) = PublicKey::parse(entry.algorithm, &key) {
                prop_assert_eq!(key.verify(b"message", &[0; 64]), Err(BadSignature));
            }
        }
    }
}
