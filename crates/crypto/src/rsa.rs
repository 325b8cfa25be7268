//! RSA keys with PKCS#1 v1.5 signatures (RFC 3110, RFC 5702), from 1024 to 4096 bits.
//!
//! `aws-lc-rs` performs most operations. [`rsa_ffi`](crate::rsa_ffi) signs with and generates keys
//! below 2048 bits, and verifies with long public exponents.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    self, ParsedPublicKey, RsaKeyPair, RsaParameters, RsaPublicKeyComponents, RsaSignatureEncoding,
};
use pkcs8::PrivateKeyInfoRef;
use pkcs8::der::Decode as _;
use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, GenerationParameters};
use crate::bind_format::PrivateFile;
use crate::der::{self, RSA_NUMBER_COUNT, RsaNumbers};
use crate::error::{BadSignature, KeyError, SignError};
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};
use crate::rsa_ffi::{Hash, Rsa};

/// Default length of a new key in bits. The table of algorithms contains all lengths.
pub(crate) const DEFAULT_BITS: u16 = 2048;

/// Supported lengths of the modulus in bits. RFC 5702, section 2, defines the maximum, and allows
/// RSASHA256 from 512 bits on. Keys shorter than 1024 bits can be broken.
const MODULUS_BITS: std::ops::RangeInclusive<u32> = 1024..=4096;

/// Minimum length of a modulus, in bits, with which `aws-lc-rs` generates keys and signs.
const MIN_AWS_LC_RS_SIGNING_BITS: u32 = 2048;

/// Maximum length of a public exponent, in bits, with which `aws-lc-rs` verifies. A private key may
/// not have a longer one.
const MAX_AWS_LC_RS_EXPONENT_BITS: u32 = 33;

/// Maximum length of the public exponent of a received key, in bits. Together with the maximum
/// modulus, it limits the work for a hostile key to 128 multiplications of 4096 bits. This takes
/// 0.23 ms on a 2.6 GHz Zen 5 core: 13 times as long as an ordinary key of 2048 bits, and as long
/// as one verification on P-384.
const MAX_EXPONENT_BITS: u32 = 64;

/// Time of a multiplication modulo a number of 4096 bits, in ns, on a core of 2.6 GHz.
const MULTIPLICATION_NANOSECONDS: u32 = 1_800;
/// Time of the rest of a verification, in ns.
const OVERHEAD_NANOSECONDS: u32 = 5_000;

/// A hash function of RSA signatures, and its names in the libraries.
pub(crate) struct HashVariant {
    hash: Hash,
    signing: &'static RsaSignatureEncoding,
    verification: &'static RsaParameters,
}

/// RSA with SHA-256.
pub(crate) static SHA256: HashVariant = HashVariant {
    hash: Hash::Sha256,
    signing: &signature::RSA_PKCS1_SHA256,
    verification: &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
};

/// RSA with SHA-512.
pub(crate) static SHA512: HashVariant = HashVariant {
    hash: Hash::Sha512,
    signing: &signature::RSA_PKCS1_SHA512,
    verification: &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
};

/// The fields of a private key file, in the order of [`RsaNumbers`].
pub(crate) const RSA_FIELDS: [&str; RSA_NUMBER_COUNT] = [
    "Modulus",
    "PublicExponent",
    "PrivateExponent",
    "Prime1",
    "Prime2",
    "Exponent1",
    "Exponent2",
    "Coefficient",
];

/// Returns the length of a big-endian number without leading zeros, in bits.
fn bit_length(number: &[u8]) -> u32 {
    let first = number.first().map_or(0, |first| first.leading_zeros());
    u32::try_from(number.len()).unwrap_or(u32::MAX / 8).saturating_mul(8) - first
}

/// The two numbers of a public key, big-endian without leading zeros.
struct PublicNumbers<'a> {
    exponent: &'a [u8],
    modulus: &'a [u8],
}

impl<'a> PublicNumbers<'a> {
    /// Splits a DNSKEY public key field (RFC 3110, section 2). Returns [`KeyError::MalformedRsa`]
    /// if it does not have this format.
    fn parse(key: &'a [u8]) -> Result<Self, KeyError> {
        let (length, rest) = match *key {
            [0, high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), rest),
            [0, ..] | [] => return Err(KeyError::MalformedRsa),
            [length, ref rest @ ..] => (usize::from(length), rest),
        };
        let (exponent, modulus) = rest.split_at_checked(length).ok_or(KeyError::MalformedRsa)?;
        // "Leading zero octets are prohibited in the exponent and modulus." An exponent of zero is
        // accepted here; `check` reports it as [`KeyError::Exponent`].
        if modulus.first().is_none_or(|first| *first == 0) || (exponent.len() > 1 && exponent[0] == 0) {
            return Err(KeyError::MalformedRsa);
        }
        Ok(Self { exponent, modulus })
    }

    /// Returns the public key field. The exponent must have less than 256 octets.
    fn encode(&self) -> Vec<u8> {
        let mut key = Vec::with_capacity(1 + self.exponent.len() + self.modulus.len());
        key.push(self.exponent.len() as u8);
        key.extend_from_slice(self.exponent);
        key.extend_from_slice(self.modulus);
        key
    }

    /// Returns an error for an unsupported key: a modulus that is out of range or even, or an
    /// exponent that is even, 0, 1, or has more than `max_exponent_bits` bits.
    fn check(&self, max_exponent_bits: u32) -> Result<(), KeyError> {
        let bits_found = bit_length(self.modulus);
        if !MODULUS_BITS.contains(&bits_found) {
            return Err(KeyError::ModulusBits { bits: bits_found });
        }
        let is_odd = |number: &[u8]| number.last().is_some_and(|last| last & 1 == 1);
        if !is_odd(self.exponent) || self.exponent == [1] {
            return Err(KeyError::Exponent);
        }
        let bits_found = bit_length(self.exponent);
        if bits_found > max_exponent_bits {
            return Err(KeyError::ExponentBits { bits: bits_found, maximum: max_exponent_bits });
        }
        if !is_odd(self.modulus) {
            return Err(KeyError::MalformedRsa);
        }
        Ok(())
    }
}

/// The library object that signs.
enum LibraryKey {
    /// For keys from [`MIN_AWS_LC_RS_SIGNING_BITS`] on.
    AwsLcRs(RsaKeyPair),
    /// For shorter keys.
    AwsLc(Rsa),
}

struct Private {
    variant: &'static HashVariant,
    library_key: LibraryKey,
    numbers: RsaNumbers,
    public_key: Vec<u8>,
}

/// Generates a key with the public exponent 65537.
pub(crate) fn generate(variant: &'static HashVariant, parameters: GenerationParameters) -> SignerResult {
    let bits = parameters.bits.unwrap_or(DEFAULT_BITS);
    let numbers = match bits {
        1280 => generate_with_aws_lc(bits),
        1024 if parameters.force => generate_with_aws_lc(bits),
        2048 => generate_with_aws_lc_rs(KeySize::Rsa2048),
        3072 => generate_with_aws_lc_rs(KeySize::Rsa3072),
        4096 => generate_with_aws_lc_rs(KeySize::Rsa4096),
        1024 => return Err(KeyError::WeakBits { bits }),
        _ => return Err(KeyError::UnsupportedBits { bits }),
    };
    from_numbers(variant, parameters.algorithm, numbers.ok_or(KeyError::Generation(parameters.algorithm))?)
}

fn generate_with_aws_lc(bits: u16) -> Option<RsaNumbers> {
    der::read_rsa_private_key(&Rsa::generate(bits)?.private_der()?)
}

fn generate_with_aws_lc_rs(size: KeySize) -> Option<RsaNumbers> {
    let key: Pkcs8V1Der<'_> = RsaKeyPair::generate(size).ok()?.as_der().ok()?;
    let info = PrivateKeyInfoRef::from_der(key.as_ref()).ok()?;
    der::read_rsa_private_key(info.private_key.as_bytes())
}

/// Reads the numbers from a private key file, without leading zeros.
pub(crate) fn read_private(variant: &'static HashVariant, file: &PrivateFile<'_>) -> SignerResult {
    let mut numbers = RsaNumbers::default();
    for (number, name) in numbers.iter_mut().zip(RSA_FIELDS) {
        let octets = file.octets(name)?;
        let zeros = octets.iter().take_while(|octet| **octet == 0).count();
        *number = Zeroizing::new(octets[zeros..].to_vec());
    }
    from_numbers(variant, file.algorithm(), numbers)
}

fn from_numbers(variant: &'static HashVariant, algorithm: Algorithm, numbers: RsaNumbers) -> SignerResult {
    let [modulus, exponent, private_exponent, ..] = &numbers;
    let public = PublicNumbers { exponent, modulus };
    public.check(MAX_AWS_LC_RS_EXPONENT_BITS)?;
    let invalid = || KeyError::InvalidPrivateKey(algorithm);
    // The check of the library accepts a private exponent that is longer than the modulus, but the
    // library then fails to sign with it.
    if bit_length(private_exponent) > bit_length(modulus) {
        return Err(invalid());
    }
    let key = der::write_rsa_private_key(&numbers).ok_or_else(invalid)?;
    // In both cases, the library checks that the numbers are consistent.
    let library_key = if bit_length(modulus) >= MIN_AWS_LC_RS_SIGNING_BITS {
        LibraryKey::AwsLcRs(RsaKeyPair::from_der(&key).map_err(|_| invalid())?)
    } else {
        LibraryKey::AwsLc(Rsa::from_private_der(&key).ok_or_else(invalid)?)
    };
    let public_key = public.encode();
    Ok(Box::new(Private { variant, library_key, numbers, public_key }))
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    fn bits(&self) -> u32 {
        bit_length(&self.numbers[0])
    }

    fn signature_octets(&self) -> usize {
        self.numbers[0].len()
    }

    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        let before = out.len();
        out.resize(before + self.signature_octets(), 0);
        let signature = &mut out[before..];
        let done = match &self.library_key {
            LibraryKey::AwsLcRs(key) => {
                key.sign(self.variant.signing, &SystemRandom::new(), message, signature).is_ok()
            }
            LibraryKey::AwsLc(key) => key.sign(self.variant.hash, message, signature),
        };
        if !done {
            out.truncate(before);
            return Err(SignError::Library);
        }
        Ok(())
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        RSA_FIELDS.into_iter().zip(self.numbers.iter().map(|number| number.as_slice())).collect()
    }
}

/// A public key with an exponent that `aws-lc-rs` supports.
struct Public {
    /// Length of the modulus in bits.
    bits: u32,
    nanoseconds: u32,
    key: ParsedPublicKey,
}

/// A public key with an exponent that is too long for `aws-lc-rs`.
struct LongExponent {
    bits: u32,
    nanoseconds: u32,
    hash: Hash,
    key: Rsa,
}

/// Parses a public key in the format of RFC 3110.
pub(crate) fn parse_public(
    variant: &'static HashVariant,
    _algorithm: Algorithm,
    key: &[u8],
) -> VerifierResult {
    parse_verifier(variant.verification, variant.hash, key)
}

/// As [`parse_public`], for signatures with SHA-1 (RFC 3110 section 3).
pub(crate) fn parse_public_sha1(_algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    parse_verifier(&signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY, Hash::Sha1, key)
}

fn parse_verifier(verification: &'static RsaParameters, hash: Hash, key: &[u8]) -> VerifierResult {
    let public = PublicNumbers::parse(key)?;
    public.check(MAX_EXPONENT_BITS)?;
    let PublicNumbers { exponent, modulus } = public;
    let bits = bit_length(modulus);
    let nanoseconds = verification_nanoseconds(bits, exponent);
    if bit_length(exponent) > MAX_AWS_LC_RS_EXPONENT_BITS {
        let key = Rsa::from_public(modulus, exponent).ok_or(KeyError::MalformedRsa)?;
        return Ok(Box::new(LongExponent { bits, nanoseconds, hash, key }));
    }
    let key = RsaPublicKeyComponents { n: modulus, e: exponent }
        .to_parsed_public_key(verification)
        .map_err(|_| KeyError::MalformedRsa)?;
    Ok(Box::new(Public { bits, nanoseconds, key }))
}

/// Returns the approximate time of a verification: that of a multiplication for each bit of the exponent
/// and one more for each bit that is set, proportional to the square of the length of the modulus.
fn verification_nanoseconds(bits: u32, exponent: &[u8]) -> u32 {
    let ones: u32 = exponent.iter().map(|octet| octet.count_ones()).sum();
    let multiplications = bit_length(exponent) + ones;
    OVERHEAD_NANOSECONDS
        + multiplications * MULTIPLICATION_NANOSECONDS * (bits / 64).pow(2) / (4096 / 64_u32).pow(2)
}

impl Verifier for Public {
    fn bits(&self) -> u32 {
        self.bits
    }

    fn nanoseconds(&self) -> Option<u32> {
        Some(self.nanoseconds)
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.key.verify_sig(message, signature).map_err(|_| BadSignature)
    }
}

impl Verifier for LongExponent {
    fn bits(&self) -> u32 {
        self.bits
    }

    fn nanoseconds(&self) -> Option<u32> {
        Some(self.nanoseconds)
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.key.verify(self.hash, message, signature).then_some(()).ok_or(BadSignature)
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;

    use super::*;
    use crate::{PrivateKey, PublicKey};

    fn parse(key: &[u8]) -> Result<PublicKey, KeyError> {
        PublicKey::parse(Algorithm::RSASHA256, key)
    }

    /// Returns a public key field with a modulus of this many bits, all of them set.
    fn field(exponent: &[u8], modulus_bits: usize) -> Vec<u8> {
        let mut modulus = vec![0xff; modulus_bits.div_ceil(8)];
        if !modulus_bits.is_multiple_of(8) {
            modulus[0] = (1 << (modulus_bits % 8)) - 1;
        }
        PublicNumbers { exponent, modulus: &modulus }.encode()
    }

    /// A long exponent takes as long as a verification on P-384.
    #[test]
    fn the_time_of_a_verification_grows_with_exponent_and_modulus() {
        let time = |exponent: &[u8], bits| parse(&field(exponent, bits)).unwrap().verification_nanoseconds();
        let [small, usual, long] = [time(&[1, 0, 1], 1024), time(&[1, 0, 1], 4096), time(&[0xff; 8], 4096)];
        assert!(small < 10_000 && (30_000..50_000).contains(&usual), "{small} {usual}");
        assert!((200_000..260_000).contains(&long), "{long}");
        assert_eq!(Algorithm::RSASHA256.entry().unwrap().scheme.verification_nanoseconds, 40_000);
    }

    #[test]
    fn moduli_out_of_range_are_rejected() {
        for bits in [1024, 1025, 2048, 4095, 4096] {
            assert_eq!(parse(&field(&[1, 0, 1], bits)).map(|key| key.bits() as usize), Ok(bits));
        }
        for bits in [8, 512, 1016, 1023, 4097, 16384] {
            let error = KeyError::ModulusBits { bits: bits as u32 };
            assert_eq!(parse(&field(&[1, 0, 1], bits)).err(), Some(error));
        }
    }

    #[test]
    fn exponents_out_of_range_are_rejected() {
        let good: [&[u8]; 5] = [&[3], &[1, 0, 1], &[1, 0, 0, 0, 1], &[3, 0, 0, 0, 1], &[0xff; 8]];
        for exponent in good {
            assert!(parse(&field(exponent, 2048)).is_ok(), "{exponent:?}");
        }
        let bad: [&[u8]; 5] = [&[0], &[1], &[2], &[1, 0, 0], &[2; 9]];
        for exponent in bad {
            assert_eq!(parse(&field(exponent, 2048)).err(), Some(KeyError::Exponent), "{exponent:?}");
        }
        for (exponent, bits) in [(&[1, 0, 0, 0, 0, 0, 0, 0, 1][..], 65), (&[0xff; 255], 2040)] {
            let error = KeyError::ExponentBits { bits, maximum: 64 };
            assert_eq!(parse(&field(exponent, 2048)).err(), Some(error), "{exponent:?}");
        }
        let mut none = field(&[], 2048);
        none.splice(..0, [0, 0]);
        assert_eq!(parse(&none).err(), Some(KeyError::Exponent));
    }

    #[test]
    fn malformed_fields_are_rejected() {
        let good = field(&[1, 0, 1], 2048);
        let mut long_form = vec![0, 0];
        long_form.extend_from_slice(&good);
        assert!(parse(&long_form).is_ok());
        let mut even = good.clone();
        *even.last_mut().unwrap() = 0xfe;
        let mut zero_in_modulus = good.clone();
        zero_in_modulus.insert(4, 0);
        let bad: [&[u8]; 9] = [
            &[],
            &[0],
            &[0, 0],
            &[0, 0, 3, 1, 0, 1],
            &[3, 1, 0],
            &[3, 1, 0, 1],
            &[0, 0xff, 0xff, 1],
            &even,
            &zero_in_modulus,
        ];
        for key in bad {
            assert_eq!(parse(key).err(), Some(KeyError::MalformedRsa), "{key:?}");
        }
        assert_eq!(parse(&field(&[0, 1, 0, 1], 2048)).err(), Some(KeyError::MalformedRsa));
    }

    #[test]
    fn keys_of_every_length_are_generated() {
        for bits in [1280, 2048, 3072] {
            let key = PrivateKey::generate(Algorithm::RSASHA512, Some(bits)).unwrap();
            assert_signs(&key, u32::from(bits));
        }
        assert_signs(&PrivateKey::generate_any_length(Algorithm::RSASHA256, Some(1024)).unwrap(), 1024);
        assert_signs(&PrivateKey::generate_any_length(Algorithm::RSASHA256, None).unwrap(), 2048);
    }

    fn assert_signs(key: &PrivateKey, bits: u32) {
        let public = PublicKey::parse(key.algorithm(), key.public_key()).unwrap();
        assert_eq!((key.bits(), public.bits()), (bits, bits));
        assert_eq!(key.signature_octets() as u32, bits / 8);
        let read = PrivateKey::from_bind(&key.to_bind()).unwrap();
        assert_eq!(read.to_bind(), key.to_bind());
        for key in [key, &read] {
            let mut signature = Vec::new();
            key.sign(b"message", &mut signature).unwrap();
            assert_eq!(public.verify(b"message", &signature), Ok(()));
            signature[9] ^= 1;
            assert_eq!(public.verify(b"message", &signature), Err(BadSignature));
        }
    }

    #[test]
    fn weak_and_unsupported_lengths_are_rejected() {
        let make = |bits| PrivateKey::generate(Algorithm::RSASHA256, Some(bits)).err();
        assert_eq!(make(1024), Some(KeyError::WeakBits { bits: 1024 }));
        for bits in [0, 1, 512, 1023, 1281, 2047, 4097, u16::MAX] {
            assert_eq!(make(bits), Some(KeyError::UnsupportedBits { bits }));
            let forced = PrivateKey::generate_any_length(Algorithm::RSASHA256, Some(bits));
            assert_eq!(forced.err(), Some(KeyError::UnsupportedBits { bits }));
        }
    }

    /// d + φ·2^200 is congruent to d, and longer than the modulus.
    #[test]
    fn private_exponents_longer_than_the_modulus_are_rejected() {
        for bits in [1280, 2048] {
            let text = PrivateKey::generate(Algorithm::RSASHA256, Some(bits)).unwrap().to_bind();
            let long = BASE64.encode(&vec![0xff; usize::from(bits) / 8 + 1]);
            let lines = text.lines().map(|line| match line.strip_prefix("PrivateExponent: ") {
                Some(_) => format!("PrivateExponent: {long}\n"),
                None => format!("{line}\n"),
            });
            let error = PrivateKey::from_bind(&lines.collect::<String>()).err();
            assert_eq!(error, Some(KeyError::InvalidPrivateKey(Algorithm::RSASHA256)));
        }
    }

    /// Replaces each number of a key in turn by a wrong one.
    #[test]
    fn damaged_private_keys_are_rejected() {
        for bits in [1280, 2048] {
            let text = PrivateKey::generate(Algorithm::RSASHA256, Some(bits)).unwrap().to_bind();
            for (index, name) in RSA_FIELDS.iter().enumerate() {
                let replace = |value: &str| {
                    let lines = text.lines().map(|line| match line.split_once(": ") {
                        Some((field, _)) if field == *name => format!("{field}: {value}\n"),
                        _ => format!("{line}\n"),
                    });
                    PrivateKey::from_bind(&lines.collect::<String>()).err()
                };
                // 5 is odd and therefore a valid public exponent, but not that of this key. As a
                // modulus, it is too short.
                let expected = match index {
                    0 => KeyError::ModulusBits { bits: 3 },
                    _ => KeyError::InvalidPrivateKey(Algorithm::RSASHA256),
                };
                assert_eq!(replace("BQ=="), Some(expected), "{name} of {bits} bits");
                assert!(replace("").is_some(), "{name} of {bits} bits");
                let huge = BASE64.encode(&vec![0xff; 70_000]);
                assert!(replace(&huge).is_some(), "{name} of {bits} bits");
                assert_eq!(replace("!"), Some(KeyError::NotBase64(name)));
            }
        }
    }

    /// Public exponents of 33, 34 and 64 bits. The signatures over "long exponent" were computed
    /// with separate code.
    #[test]
    fn long_exponents_verify() {
        let vectors = [
            (
                "BQEAAAABx+h4etPtjeuJJZl54B+dpSQ4Bhz2OsPxJV5aAiebNzoWMfEpv+UoGmjG9q9VGpNPLbxjiwP70JFAsDL+noPsG5BZamGJ8D0y\
                 N6UnQvhn9Xyj+PJcVEmxaWb93nRWacdgfT4r2Lg2XQU2pgBHMrDX6uOvgIssdLS04pYTlCnyrRc=",
                "CjYBf1nWL6wvpfwD9tDvRUGpihLn3+s3FvMaP/t+o/qWiuC39v/K+LhTqmB3u9RIiCq9j/cpMop2vfCiZWomCXBjDci7nrHzM5Y+jan0\
                 8p2/eVTCNM364DD6Xq98NbIvgAhuCHwrXAFvvLGjGW3mRKZUvZmgXM70D24PBrS+q50=",
            ),
            (
                "BQIAAAARy92ZSzQNT2dqZyBdTX/5W/3a9oknjHxu3dv0y1A8pxQSWGRtWhQwhHd2/pY3ghI+VMh69XYbf846FnYCQRgtxIRWAxK7SQdh\
                 knrwuiWjkrl1PXzEwhqWm2HTygV0g/R8lQAOFwmTCdZeBnbdzuSa7IRTzrexyQ9FGApfvn6I34E=",
                "BxRfcnao1c/qZLuQ2xGQYu7cksxRnXFD7xMCmROcgrwAotTZ1cxbKm6qy7rsVH/Too4pCS3WvqZrd5yDmmbnpKDonsgA/6RzHkFWymOG\
                 Kd4JuiEkVLyxgVAyBgvyBwr8sEUuvf4QD+WyC8XKk+D9aZmA/6N0/hbvejQDSIy428Q=",
            ),
            (
                "CP/////////FtlsIm2b7Ey86bm4J7qLi7dWcsNBS55OU/+f361OZWs1UDoCfXJGHLmjNe1byhYhmyNzaG2N0mXrZZeYIA53qly/GsUHz\
                 jP/9O2pdVLb7W9iuQzjeNewkN/yS4m8DSQJ2h1OryC0C9cmamokZoKyuqeNytmP8I8O+EaT3FLdoiV0=",
                "SEBBc2jtDy4i+dh22nQ0wkE1FVsctWH8crLCR1V/JxRep+ZfJMK5kPekAk9khE/Fd5Vk+kaP48HxGN/VMdDH0M3RSVS7lK09xw9PArDy\
                 6mL7INHLPysgPM5H+joFwqzjyXaGOTAn2l6lIyah1z/WsI97OCW9bKmnZfEXWLfxTQc=",
            ),
        ];
        for (key, signature) in vectors {
            let key = parse(&BASE64.decode(key.as_bytes()).unwrap()).unwrap();
            let mut signature = BASE64.decode(signature.as_bytes()).unwrap();
            assert_eq!(key.bits(), 1024);
            assert_eq!(key.verify(b"long exponent", &signature), Ok(()));
            assert_eq!(key.verify(b"short exponent", &signature), Err(BadSignature));
            assert_eq!(key.verify(b"long exponent", &signature[1..]), Err(BadSignature));
            signature[100] ^= 0x80;
            assert_eq!(key.verify(b"long exponent", &signature), Err(BadSignature));
        }
    }
}
