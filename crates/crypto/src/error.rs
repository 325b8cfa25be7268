//! Errors of keys ([`KeyError`]), of signatures ([`BadSignature`]), and of the cryptographic
//! library while signing ([`SignError`]).

use crate::Algorithm;

/// A key cannot be generated, read or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The table of algorithms does not contain this number.
    #[error("algorithm {0} is not supported")]
    UnknownAlgorithm(Algorithm),
    /// The length of a public key field is wrong for the algorithm.
    #[error("a public key of {algorithm} must have {expected} octets, but this one has {found}")]
    PublicKeyLength {
        /// The algorithm of the key.
        algorithm: Algorithm,
        /// Expected length of the public key in octets.
        expected: usize,
        /// Length found, in octets.
        found: usize,
    },
    /// The public key field does not have the format of RFC 3110, or its modulus is even.
    #[error("the RSA public key is not in the form of RFC 3110 section 2")]
    MalformedRsa,
    /// An RSA modulus has less than 1024 or more than 4096 bits.
    #[error("an RSA modulus of {bits} bits is not supported: it must have 1024 to 4096 bits")]
    ModulusBits {
        /// Length of the modulus, in bits.
        bits: u32,
    },
    /// An RSA public exponent is 0, 1 or even, which RSA does not allow.
    #[error("the RSA public exponent must be odd and greater than 1")]
    Exponent,
    /// An RSA public exponent is longer than supported.
    #[error("an RSA public exponent of {bits} bits is not supported: it must have at most {maximum} bits")]
    ExponentBits {
        /// Length of the exponent, in bits.
        bits: u32,
        /// Maximum length in bits: 64 in a public key, 33 in a private key.
        maximum: u32,
    },
    /// The public key is not a point of the algorithm's curve.
    #[error("the public key is not a point on the curve of {0}")]
    NotOnCurve(Algorithm),
    /// A public key has the right length, but is not in the encoding of its algorithm.
    #[error("the public key is not in the encoding of {0}: its first octet or a coefficient is out of range")]
    MalformedPublicKey(Algorithm),
    /// A new RSA key has a length that is only generated with
    /// [`PrivateKey::generate_any_length`](crate::PrivateKey::generate_any_length).
    #[error(
        "an RSA key of {bits} bits is too weak: generate one with 2048 bits, or force the generation for an experiment"
    )]
    WeakBits {
        /// Requested length in bits.
        bits: u16,
    },
    /// A new RSA key has a length that is never generated.
    #[error("unsupported RSA key length of {bits} bits: generate a key with 1280, 2048, 3072 or 4096 bits")]
    UnsupportedBits {
        /// Requested length in bits.
        bits: u16,
    },
    /// A key length was given for an algorithm with a fixed key length.
    #[error("keys of {0} have a fixed length: omit the number of bits")]
    FixedBits(Algorithm),
    /// The cryptographic library failed to generate a key.
    #[error("cannot generate a key of {0}: the cryptographic library failed")]
    Generation(Algorithm),
    /// The text of a private key does not begin with `Private-key-format:`.
    #[error("this is not a private key file: its first line must be \"Private-key-format: v1.3\"")]
    NotAPrivateKeyFile,
    /// The version of the private key format is neither v1.2 nor v1.3.
    #[error("the private key file has neither format v1.2 nor v1.3: write it again with a current tool")]
    FormatVersion,
    /// A line of a private key file does not have the form `Field: value`.
    #[error("line {line} of the private key file does not have the form \"Field: value\"")]
    MalformedLine {
        /// Line number, starting at 1.
        line: usize,
    },
    /// A private key file lacks a field that the algorithm needs.
    #[error("the private key file has no field \"{0}\"")]
    MissingField(&'static str),
    /// A field occurs twice in a private key file.
    #[error("the private key file has the field \"{0}\" twice")]
    RepeatedField(&'static str),
    /// The `Algorithm:` field of a private key file does not begin with a number from 0 to 255.
    #[error("the field \"Algorithm\" of the private key file must begin with an algorithm number")]
    AlgorithmField,
    /// A field of a private key file is not Base64.
    #[error("the field \"{0}\" of the private key file is not Base64")]
    NotBase64(&'static str),
    /// The length of a private key is wrong for the algorithm.
    #[error("a private key of {algorithm} must have {expected} octets, but this one has {found}")]
    PrivateKeyLength {
        /// The algorithm of the key.
        algorithm: Algorithm,
        /// Expected length of the private key in octets.
        expected: usize,
        /// Length found, in octets.
        found: usize,
    },
    /// The algorithm of a private key file has no final encoding, and the key is in an encoding
    /// that is not supported.
    #[error(
        "the private key of {algorithm} is not in the dialect \"{expected}\": no other dialect is supported"
    )]
    Dialect {
        /// The algorithm of the key.
        algorithm: Algorithm,
        /// The supported value of the field `Dialect`.
        expected: &'static str,
    },
    /// The octets or the text are not an unencrypted private key in PKCS#8.
    #[error(
        "this is not an unencrypted private key in PKCS#8 (\"BEGIN PRIVATE KEY\"): convert it with `openssl pkcs8 -topk8 -nocrypt`"
    )]
    NotPkcs8,
    /// The kind of a PKCS#8 key does not correspond to any supported algorithm.
    #[error("the PKCS#8 key has an unsupported type: supported are RSA, P-256, P-384, Ed25519 and Ed448")]
    Pkcs8Kind,
    /// A PKCS#8 key is not a key of the requested algorithm.
    #[error("the PKCS#8 key is not a key of {0}: set the algorithm for which it was generated")]
    Pkcs8Algorithm(Algorithm),
    /// The public key next to a private key does not belong to it.
    #[error("the public key does not belong to the private key of {0}")]
    PublicKeyMismatch(Algorithm),
    /// The values of a private key are out of range or inconsistent.
    #[error("the private key of {0} is damaged: its values are out of range or inconsistent")]
    InvalidPrivateKey(Algorithm),
}

impl KeyError {
    /// Returns whether a received public key with this error is unusable rather than malformed. It
    /// is unusable if its algorithm is unknown, or if its format is valid but outside the supported
    /// range (RSA moduli below 1024 or above 4096 bits, public exponents above 64 bits).
    ///
    /// A validator treats an unusable key like a key of an unknown algorithm: a zone that no other
    /// key secures is insecure (RFC 4035, section 5.2). With every other error, the key is
    /// malformed and the validator ignores it: a zone that no other key secures is bogus.
    #[must_use]
    pub const fn is_unusable(&self) -> bool {
        matches!(self, Self::UnknownAlgorithm(_) | Self::ModulusBits { .. } | Self::ExponentBits { .. })
    }
}

/// The signature is not a valid signature by the key over the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature does not verify for this key and message")]
pub struct BadSignature;

/// A signature could not be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The cryptographic library failed: no random numbers, no memory, or its self-check of the
    /// signature found a fault.
    #[error("cannot generate the signature: the cryptographic library failed")]
    Library,
}
