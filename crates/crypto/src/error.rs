//! What can go wrong, by blame: the key ([`KeyError`]), the signature ([`BadSignature`]), or the cryptographic
//! library while signing ([`SignError`]).

use crate::Algorithm;

/// A key that cannot be made, read or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The table of algorithms has no row for this number.
    #[error("algorithm {0} is not supported")]
    UnknownAlgorithm(Algorithm),
    /// A public key field of a length that the algorithm does not have.
    #[error("a public key of {algorithm} has {expected} octets, this one has {found}")]
    PublicKeyLength {
        /// The algorithm of the key.
        algorithm: Algorithm,
        /// Octets that a public key of this algorithm has.
        expected: usize,
        /// Octets found.
        found: usize,
    },
    /// The public key field breaks the form of RFC 3110, or its modulus is even.
    #[error("the RSA public key is not in the form of RFC 3110 section 2")]
    MalformedRsa,
    /// An RSA modulus below 1024 or above 4096 bits.
    #[error("an RSA modulus of {bits} bits cannot be used: it must have 1024 to 4096 bits")]
    ModulusBits {
        /// Length of the modulus, in bits.
        bits: u32,
    },
    /// An RSA public exponent that is 0, 1 or even, with which there is no RSA.
    #[error("the RSA public exponent must be odd and above 1")]
    Exponent,
    /// An RSA public exponent that is longer than those that are used.
    #[error("an RSA public exponent of {bits} bits cannot be used: it must have at most {most} bits")]
    ExponentBits {
        /// Length of the exponent, in bits.
        bits: u32,
        /// Bits that it may have: 64 in a public key, 33 in a private one.
        most: u32,
    },
    /// The public key is no point of the algorithm's curve.
    #[error("the public key is not a point on the curve of {0}")]
    NotOnCurve(Algorithm),
    /// A public key of the right length that is not in the encoding of its algorithm.
    #[error("the public key is not in the encoding of {0}: its first octet or a coefficient is out of range")]
    MalformedPublicKey(Algorithm),
    /// A new RSA key of a length that is only made when forced.
    #[error(
        "an RSA key of {bits} bits is too weak to be made: take 2048 bits, or force it for an experiment"
    )]
    WeakBits {
        /// Length asked for, in bits.
        bits: u16,
    },
    /// A new RSA key of a length that is never made.
    #[error("RSA keys are made with 1280, 2048, 3072 or 4096 bits, not {bits}")]
    UnsupportedBits {
        /// Length asked for, in bits.
        bits: u16,
    },
    /// A key length was given for an algorithm whose keys have one length.
    #[error("keys of {0} have one length: leave the number of bits out")]
    FixedBits(Algorithm),
    /// The cryptographic library could not make a key.
    #[error("no new key of {0} could be made: the cryptographic library failed")]
    Generation(Algorithm),
    /// The text of a private key does not begin with `Private-key-format:`.
    #[error("this is not a private key file: its first line must be \"Private-key-format: v1.3\"")]
    NotAPrivateKeyFile,
    /// A version of the private key format other than v1.2 and v1.3.
    #[error("the private key file is neither of format v1.2 nor v1.3: write it anew with a current tool")]
    FormatVersion,
    /// A line of a private key file that is no `Field: value`.
    #[error("line {line} of the private key file is not of the form \"Field: value\"")]
    MalformedLine {
        /// Number of the line; the first is 1.
        line: usize,
    },
    /// A field that the algorithm needs is absent from a private key file.
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
    /// A private key of a length that the algorithm does not have.
    #[error("a private key of {algorithm} has {expected} octets, this one has {found}")]
    PrivateKeyLength {
        /// The algorithm of the key.
        algorithm: Algorithm,
        /// Octets that a private key of this algorithm has.
        expected: usize,
        /// Octets found.
        found: usize,
    },
    /// A private key file of an algorithm whose encoding is not settled, in another encoding than ours.
    #[error("the private key of {algorithm} is not in the dialect \"{expected}\": only that one can be read")]
    Dialect {
        /// The algorithm of the key.
        algorithm: Algorithm,
        /// The value of the field `Dialect` that can be read.
        expected: &'static str,
    },
    /// The octets or the text are no private key in PKCS#8, or an encrypted one.
    #[error(
        "this is no unencrypted private key in PKCS#8 (\"BEGIN PRIVATE KEY\"): convert it with `openssl pkcs8 -topk8 -nocrypt`"
    )]
    NotPkcs8,
    /// A PKCS#8 key of a kind that no algorithm of the table has.
    #[error("the PKCS#8 key is of a kind that cannot be read: RSA, P-256, P-384, Ed25519 and Ed448 can")]
    Pkcs8Kind,
    /// A PKCS#8 key of another kind than the algorithm's.
    #[error("the PKCS#8 key is no key of {0}: give the algorithm that it was made for")]
    Pkcs8Algorithm(Algorithm),
    /// The public key that stands beside a private key is not its own.
    #[error("the public key does not belong to the private key of {0}")]
    PublicKeyMismatch(Algorithm),
    /// The values of a private key are out of range or do not belong together.
    #[error("the private key of {0} is damaged: its values are out of range or do not belong together")]
    InvalidPrivateKey(Algorithm),
}

impl KeyError {
    /// Whether a received public key with this error "cannot be used": its algorithm is unknown, or it is sound as far
    /// as its form says, and outside of what is used here (RSA moduli below 1024 or above 4096 bits, public exponents
    /// above 64 bits). A validator then goes on as if it did not know the key's algorithm: a zone that nothing else
    /// secures is insecure (RFC 4035, section 5.2). With every other error the key is malformed: it counts as absent,
    /// and a zone that nothing else secures is bogus.
    #[must_use]
    pub const fn is_unusable(&self) -> bool {
        matches!(self, Self::UnknownAlgorithm(_) | Self::ModulusBits { .. } | Self::ExponentBits { .. })
    }
}

/// The signature is not one that this key made over this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the signature does not fit the key and the message")]
pub struct BadSignature;

/// A signature could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignError {
    /// The cryptographic library failed: no random numbers, no memory, or a fault found when it checked its work.
    #[error("no signature could be made: the cryptographic library failed")]
    Library,
}
