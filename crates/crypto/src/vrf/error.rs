//! Errors of VRF keys ([`VrfKeyError`]), of proofs ([`BadProof`]), and of proving ([`ProveError`]).

use super::VrfAlgorithm;

/// A VRF key cannot be generated, read or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VrfKeyError {
    /// The table of VRFs does not contain this number.
    #[error("NSEC5 algorithm {0} is not supported: supported are 1, 2, 3 and 128")]
    UnknownAlgorithm(VrfAlgorithm),
    /// The length of a public key is wrong for the algorithm.
    #[error("a public key of {algorithm} must have {expected} octets, but this one has {found}")]
    PublicKeyLength {
        /// The algorithm of the key.
        algorithm: VrfAlgorithm,
        /// Expected length of the public key in octets.
        expected: usize,
        /// Length found, in octets.
        found: usize,
    },
    /// The public key is not a point of the curve.
    #[error("the public key is not a point on the curve of {0}")]
    NotOnCurve(VrfAlgorithm),
    /// The octets represent a point, but are not its canonical encoding.
    #[error("the public key of {0} is not in canonical form")]
    NotCanonical(VrfAlgorithm),
    /// The public key is the neutral element. Every output would be the same.
    #[error("the public key of {0} is the neutral element of the curve: use a correctly generated key")]
    NeutralElement(VrfAlgorithm),
    /// The public key is a point of order 2, 4 or 8 (RFC 9381, section 5.4.5).
    #[error("the public key of {0} is a point of small order: use a correctly generated key")]
    SmallOrder(VrfAlgorithm),
    /// The public key does not have the format of RFC 3110, or its modulus is even.
    #[error("the RSA public key is not in the form of RFC 3110 section 2")]
    MalformedRsa,
    /// An RSA modulus does not have 2048 bits.
    #[error("an RSA VRF key must have a modulus of 2048 bits, but this one has {bits}")]
    ModulusBits {
        /// Length of the modulus, in bits.
        bits: u32,
    },
    /// An RSA public exponent is even, 0, 1 or too long.
    #[error(
        "the RSA public exponent must be odd, greater than 1 and at most 64 bits long (33 bits in a private key)"
    )]
    Exponent,
    /// The values of a private key are out of range or inconsistent.
    #[error("the VRF private key of {0} is damaged: its values are out of range or inconsistent")]
    InvalidPrivateKey(VrfAlgorithm),
    /// The public key next to a private key does not belong to it.
    #[error("the field \"PublicKey\" does not belong to the private key of {0}: restore the file")]
    PublicKeyMismatch(VrfAlgorithm),
    /// The cryptographic library failed to generate a key.
    #[error("cannot generate a key of {0}: the cryptographic library failed")]
    Generation(VrfAlgorithm),
    /// The text does not begin like a VRF private key file.
    #[error("this is not a VRF private key file: its first line must be \"Nonesuch-VRF-key-format: v1\"")]
    NotAKeyFile,
    /// The version of the format is not v1.
    #[error(
        "the VRF private key file does not have format v1: use the version of this program that wrote it"
    )]
    FormatVersion,
    /// A line does not have the form `Field: value`.
    #[error("line {line} of the VRF private key file does not have the form \"Field: value\"")]
    MalformedLine {
        /// Line number, starting at 1.
        line: usize,
    },
    /// A field does not exist in this format.
    #[error("line {line} of the VRF private key file has a field that is not part of format v1")]
    UnknownField {
        /// Line number, starting at 1.
        line: usize,
    },
    /// A field is missing.
    #[error("the VRF private key file has no field \"{0}\"")]
    MissingField(&'static str),
    /// A field occurs twice.
    #[error("the VRF private key file has the field \"{0}\" twice")]
    RepeatedField(&'static str),
    /// The `Algorithm:` field does not begin with a number from 0 to 255.
    #[error("the field \"Algorithm\" of the VRF private key file must begin with an NSEC5 algorithm number")]
    AlgorithmField,
    /// A field is not Base64.
    #[error("the field \"{0}\" of the VRF private key file is not Base64")]
    NotBase64(&'static str),
}

/// The proof is not valid for this key and input, whatever its length or format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the VRF proof does not verify for this key and input")]
pub struct BadProof;

/// A proof could not be generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// None of the 256 attempts found a point (RFC 9381, section 5.4.1.1). This happens for one
    /// input in 2²⁵⁶.
    #[error("this VRF input cannot be mapped to a point of the curve: remove the name or change the key")]
    NoPoint,
    /// The cryptographic library failed: no random numbers, no memory, or its self-check of the
    /// result found a fault.
    #[error("cannot generate the VRF proof: the cryptographic library failed")]
    Library,
}
