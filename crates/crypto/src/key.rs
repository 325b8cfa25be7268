//! Private keys that sign and public keys that verify, of any algorithm in the table.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, AlgorithmEntry, Generation};
use crate::batch::Signed;
use crate::bind_format::{self, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};

/// A private key of one algorithm. What it holds is wiped when it is dropped.
pub(crate) trait Signer: Send + Sync {
    /// The DNSKEY public key field.
    fn public_key(&self) -> &[u8];
    /// Length of the key in bits, as it is commonly given.
    fn bits(&self) -> u32;
    /// Octets of every signature that [`Signer::sign`] makes.
    fn signature_octets(&self) -> usize;
    /// Appends a signature over `message`, in the form of the RRSIG signature field. On error, `out` is as before.
    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError>;
    /// Appends one signature for each message, in order. On error, `out` is as before.
    fn sign_batch(&self, messages: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SignError> {
        let before = out.len();
        out.reserve(messages.len() * self.signature_octets());
        for message in messages {
            self.sign(message, out).inspect_err(|_| out.truncate(before))?;
        }
        Ok(())
    }
    /// Draws fresh randomness for every signature from here on, where the scheme leaves the choice. Others pass it over.
    fn hedge(&mut self) {}
    /// The fields of a private key file, in order: names and their octets.
    fn fields(&self) -> Vec<(&'static str, &[u8])>;
}

/// A public key of one algorithm.
pub(crate) trait Verifier: Send + Sync {
    /// Length of the key in bits, as it is commonly given.
    fn bits(&self) -> u32;
    /// Whether `signature`, the RRSIG signature field, is one over `message`.
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature>;
    /// Appends one result for each message and signature, in order, equal to that of [`Verifier::verify`].
    fn verify_batch(&self, signed: &[Signed<'_>], outcome: &mut Vec<Result<(), BadSignature>>) {
        outcome.extend(signed.iter().map(|(message, signature)| self.verify(message, signature)));
    }
}

/// A private key that was made or read.
pub(crate) type SignerResult = Result<Box<dyn Signer>, KeyError>;

/// A public key that was parsed.
pub(crate) type VerifierResult = Result<Box<dyn Verifier>, KeyError>;

/// A public key, ready for many verifications. Clones share what was parsed.
#[derive(Clone)]
pub struct PublicKey {
    entry: &'static AlgorithmEntry,
    verifier: Arc<dyn Verifier>,
}

impl PublicKey {
    /// Parses the public key field of a DNSKEY record.
    ///
    /// # Errors
    /// Where the algorithm is unknown or the key is malformed or out of the range that is used: RSA from 1024 to
    /// 4096 bits with an odd public exponent above 1 of at most 64 bits, points on the curve for ECDSA
    /// and Ed448.
    /// [`KeyError::is_unusable`] tells the two kinds apart. The work, also of verifying with what was parsed, has a bound.
    pub fn parse(algorithm: Algorithm, key: &[u8]) -> Result<Self, KeyError> {
        let entry = algorithm.require()?;
        Ok(Self { entry, verifier: (entry.scheme.parse_public)(algorithm, key)?.into() })
    }

    /// Verifies `signature`, the signature field of an RRSIG record, over `message`.
    ///
    /// # Errors
    /// [`BadSignature`] where it does not fit, whatever its length or form.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.verifier.verify(message, signature)
    }

    pub(crate) fn verifier(&self) -> &dyn Verifier {
        &*self.verifier
    }

    /// What clones of this key have in common, and no other key that lives at the same time.
    pub(crate) fn identity(&self) -> *const () {
        Arc::as_ptr(&self.verifier).cast()
    }

    /// The algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.entry.algorithm
    }

    /// Length of the key in bits: of the modulus for RSA, of the curve's field for ECDSA, 256 for Ed25519, 456 for Ed448,
    /// of the encoded public key for the others.
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

/// A private key. It is wiped from memory when dropped, and its `Debug` form shows nothing of it.
pub struct PrivateKey {
    entry: &'static AlgorithmEntry,
    signer: Box<dyn Signer>,
}

impl PrivateKey {
    /// Makes a key. `bits` is for RSA: 1280, 2048, 3072 or 4096; the algorithm's default where `None`.
    ///
    /// # Errors
    /// Where the algorithm is unknown, the length is not offered, or the library fails.
    pub fn generate(algorithm: Algorithm, bits: Option<u16>) -> Result<Self, KeyError> {
        Self::make(Generation { algorithm, bits, force: false })
    }

    /// As [`PrivateKey::generate`], and makes RSA keys of 1024 bits too. Such keys are known to be weak: for
    /// experiments, and for comparison with zones that still have them.
    ///
    /// # Errors
    /// As [`PrivateKey::generate`].
    pub fn generate_forced(algorithm: Algorithm, bits: Option<u16>) -> Result<Self, KeyError> {
        Self::make(Generation { algorithm, bits, force: true })
    }

    fn make(wanted: Generation) -> Result<Self, KeyError> {
        let entry = wanted.algorithm.require()?;
        Ok(Self { entry, signer: (entry.scheme.generate)(wanted)? })
    }

    /// Reads the text of a `.private` file as BIND, ldns and PowerDNS write it, format v1.2 or v1.3. Fields that
    /// say nothing of the key itself, such as `Created:`, are passed over. The public key is derived.
    ///
    /// # Errors
    /// Where the text is not such a file, a field is missing or damaged, the algorithm is unknown, or the values
    /// do not make a key.
    pub fn from_bind(text: &str) -> Result<Self, KeyError> {
        let file = PrivateFile::parse(text)?;
        let entry = file.algorithm().require()?;
        file.require_dialect(entry.scheme.dialect)?;
        Ok(Self { entry, signer: (entry.scheme.read_private)(&file)? })
    }

    /// The text of a `.private` file, format v1.3, without times.
    #[must_use]
    pub fn to_bind(&self) -> Zeroizing<String> {
        bind_format::render(self.entry, &self.signer.fields())
    }

    /// The public key field of the DNSKEY record.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.signer.public_key()
    }

    /// Checks that `field`, the public key field of a DNSKEY record that stands beside this key, is its own, octet by
    /// octet: another encoding of the same key would have another key tag.
    ///
    /// # Errors
    /// [`KeyError::PublicKeyMismatch`] where it is another one.
    pub fn check_public(&self, field: &[u8]) -> Result<(), KeyError> {
        if field == self.public_key() {
            return Ok(());
        }
        Err(KeyError::PublicKeyMismatch(self.algorithm()))
    }

    /// The algorithm of the key.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.entry.algorithm
    }

    /// Length of the key in bits, as [`PublicKey::bits`].
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.signer.bits()
    }

    /// Octets of every signature that this key makes.
    #[must_use]
    pub fn signature_octets(&self) -> usize {
        self.signer.signature_octets()
    }

    pub(crate) fn signer(&self) -> &dyn Signer {
        &*self.signer
    }

    /// Draws fresh randomness for every signature from here on, where the scheme leaves the choice: ML-DSA
    /// ("hedged") and MAYO.
    /// It guards against faults that are induced while signing; without it, one message has one signature.
    pub fn hedge(&mut self) {
        self.signer.hedge();
    }

    /// Appends a signature over `message` to `out`, in the form of the RRSIG signature field.
    ///
    /// # Errors
    /// Where the library fails; `out` is then as before.
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
    use crate::freed::{assert_wiped, freed_by};
    use crate::{ALGORITHMS, VerifyItem, sign_batch, verify_batch};

    const fn assert_shared<T: Send + Sync>() {}
    const _: () = assert_shared::<PublicKey>();
    const _: () = assert_shared::<PrivateKey>();

    /// One key of each algorithm.
    fn keys() -> Vec<PrivateKey> {
        let make = |entry: &AlgorithmEntry| PrivateKey::generate(entry.algorithm, None).unwrap();
        ALGORITHMS.iter().map(make).collect()
    }

    fn public(key: &PrivateKey) -> PublicKey {
        PublicKey::parse(key.algorithm(), key.public_key()).unwrap()
    }

    /// What the fields of a key say that no public key does, as octets and in Base64.
    fn secrets_of(key: &PrivateKey) -> Vec<(String, Vec<u8>)> {
        let is_secret = |(name, _): &(&str, &[u8])| !["Modulus", "PublicExponent"].contains(name);
        let forms = |(name, octets): (&str, &[u8])| {
            // Of long ones a part is enough to be seen.
            let part = &octets[..octets.len().min(48)];
            [
                (format!("{key:?} {name}"), part.to_vec()),
                (format!("{key:?} {name} in Base64"), BASE64.encode(&part[..24]).into_bytes()),
            ]
        };
        key.signer.fields().into_iter().filter(is_secret).flat_map(forms).collect()
    }

    #[test]
    fn nothing_of_private_keys_is_left_when_they_are_read_used_and_dropped() {
        for key in keys().into_iter().filter(|key| key.entry.alias_of.is_none()) {
            let (text, secrets) = (key.to_bind(), secrets_of(&key));
            let messages = vec![&b"an RRset"[..]; 20];
            let work = || {
                let read = PrivateKey::from_bind(&text).unwrap();
                let mut out = Vec::new();
                read.sign(b"an RRset", &mut out).unwrap();
                read.signer().sign_batch(&messages, &mut out).unwrap();
                read.to_bind()
            };
            assert_wiped(&freed_by(work), &secrets);
            assert_wiped(&freed_by(|| key), &secrets);
        }
    }

    #[test]
    fn sizes_agree_with_the_table() {
        for key in keys() {
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
        for key in keys() {
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
        let keys = keys();
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
        for key in keys() {
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
        assert_eq!(unknown.to_string(), "algorithm 99 is not supported");
    }

    #[test]
    fn signed_messages_verify_and_flipped_bits_do_not() {
        let keys: Vec<_> = keys().into_iter().map(|key| (public(&key), key)).collect();
        let config = ProptestConfig { cases: 48, ..crate::rfc_tests::seeded(6) };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let inputs = (proptest::collection::vec(any::<u8>(), 1..600), any::<prop::sample::Index>());
        runner
            .run(&inputs, |(message, place)| {
                for (public, key) in &keys {
                    let mut signature = Vec::new();
                    key.sign(&message, &mut signature).unwrap();
                    prop_assert_eq!(public.verify(&message, &signature), Ok(()));
                    let flip = |octets: &[u8]| {
                        let mut octets = octets.to_vec();
                        let bit = place.index(octets.len() * 8);
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
        #![proptest_config(crate::rfc_tests::seeded(1))]

        #[test]
        fn public_keys_of_any_octets_do_not_panic(
            place in 0..ALGORITHMS.len(),
            fitting in any::<bool>(),
            mut key in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let entry = &ALGORITHMS[place];
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
