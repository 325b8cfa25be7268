//! What can go wrong with VRFs, by blame: the key ([`VrfKeyError`]), the proof ([`BadProof`]), or the prover
//! ([`ProveError`]).

use super::VrfAlgorithm;

/// A VRF key that cannot be made, read or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VrfKeyError {
    /// The table has no row for this number.
    #[error("NSEC5 algorithm {0} is not supported: supported are 1, 2, 3 and 128")]
    UnknownAlgorithm(VrfAlgorithm),
    /// A public key of a length that the algorithm does not have.
    #[error("a public key of {algorithm} has {expected} octets, this one has {found}")]
    PublicKeyLength {
        /// The algorithm of the key.
        algorithm: VrfAlgorithm,
        /// Octets that a public key of this algorithm has.
        expected: usize,
        /// Octets found.
        found: usize,
    },
    /// The public key is no point of the curve.
    #[error("the public key is not a point on the curve of {0}")]
    NotOnCurve(VrfAlgorithm),
    /// The octets stand for a point, but are not those that the standard gives it.
    #[error("the public key of {0} is not in canonical form")]
    NotCanonical(VrfAlgorithm),
    /// The public key is the neutral element: every output would be the same.
    #[error("the public key of {0} is the neutral element of the curve: take a key that was made properly")]
    NeutralElement(VrfAlgorithm),
    /// The public key is a point of order 2, 4 or 8 (RFC 9381, section 5.4.5).
    #[error("the public key of {0} is a point of small order: take a key that was made properly")]
    SmallOrder(VrfAlgorithm),
    /// The public key breaks the form of RFC 3110, or its modulus is even.
    #[error("the RSA public key is not in the form of RFC 3110 section 2")]
    MalformedRsa,
    /// An RSA modulus of another length than 2048 bits.
    #[error("an RSA VRF key has a modulus of 2048 bits, this one has {bits}")]
    ModulusBits {
        /// Length of the modulus, in bits.
        bits: u32,
    },
    /// An RSA public exponent that is even, 0, 1 or too long.
    #[error("the RSA public exponent must be odd, above 1 and at most 64 bits long (33 in a private key)")]
    Exponent,
    /// The values of a private key are out of range or do not belong together.
    #[error("the VRF private key of {0} is damaged: its values are out of range or do not belong together")]
    InvalidPrivateKey(VrfAlgorithm),
    /// The public key that stands beside a private key is not its own.
    #[error("the field \"PublicKey\" does not belong to the private key of {0}: restore the file")]
    PublicKeyMismatch(VrfAlgorithm),
    /// The cryptographic library could not make a key.
    #[error("no new key of {0} could be made: the cryptographic library failed")]
    Generation(VrfAlgorithm),
    /// The text does not begin as a file of a VRF private key does.
    #[error("this is not a VRF private key file: its first line must be \"Nonesuch-VRF-key-format: v1\"")]
    NotAKeyFile,
    /// A version of the format other than v1.
    #[error(
        "the VRF private key file is not of format v1: read it with the version of this program that wrote it"
    )]
    FormatVersion,
    /// A line that is no `Field: value`.
    #[error("line {line} of the VRF private key file is not of the form \"Field: value\"")]
    MalformedLine {
        /// Number of the line; the first is 1.
        line: usize,
    },
    /// A field that this format does not have.
    #[error("line {line} of the VRF private key file has a field that format v1 does not know")]
    UnknownField {
        /// Number of the line; the first is 1.
        line: usize,
    },
    /// A field is absent.
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

/// The proof is not one for this key and input, whatever its length or form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the VRF proof does not fit the key and the input")]
pub struct BadProof;

/// A proof could not be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// None of the 256 tries found a point (RFC 9381, section 5.4.1.1). Happens to one input in 2²⁵⁶.
    #[error("no point of the curve belongs to this VRF input: leave the name out or change the key")]
    NoPoint,
    /// The cryptographic library failed: no random numbers, no memory, or a fault found when it checked its work.
    #[error("no VRF proof could be made: the cryptographic library failed")]
    Library,
}
