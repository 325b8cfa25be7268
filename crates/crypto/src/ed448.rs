//! Ed448 keys (RFC 8080, RFC 8032).

use crate::algorithm::{Algorithm, Generation};
use crate::bind_format::PrivateFile;
use crate::error::KeyError;
use crate::key::{SignerResult, VerifierResult};

pub(crate) fn generate(wanted: Generation) -> SignerResult {
    Err(KeyError::Generation(wanted.algorithm))
}

pub(crate) fn read_private(file: &PrivateFile<'_>) -> SignerResult {
    Err(KeyError::InvalidPrivateKey(file.algorithm()))
}

pub(crate) fn parse_public(algorithm: Algorithm, _key: &[u8]) -> VerifierResult {
    Err(KeyError::UnknownAlgorithm(algorithm))
}
