//! Signs the query and verifies the signature of the response (RFC 8945).

use super::error::{KeyArgumentFault, KeyFileFault, QueryError};
use nonesuch_proto::Name;
use nonesuch_server::clock::seconds_now;
use nonesuch_server::tsig::{
    self, ResponseTsigError, ResponseVerifier, TsigAlgorithm, TsigKey, TsigKeyError,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The key that signs queries.
#[derive(Clone, Debug)]
pub(crate) struct TsigSigner(Arc<TsigKey>);

impl TsigSigner {
    /// Reads the argument of `--tsig-key`: a file, a file with the name of the key as prefix if the
    /// file contains only the secret, or the key itself.
    pub(crate) fn read(text: &str) -> Result<Self, QueryError> {
        let path = Path::new(text);
        // A key contains colons, and its base64 may contain slashes, so an argument is a file only
        // if the file exists.
        if !path.exists() && text.contains(':') {
            if let Some((named, path)) = split_file(text) {
                return read_named(named, path);
            }
            let key = TsigKey::from_argument(text).map_err(|error| argument_error(text, error))?;
            return Ok(Self(Arc::new(key)));
        }
        let text = read_file(path)?;
        let fault = |reason| QueryError::KeyFile { path: path.to_owned(), reason };
        if is_secret(&text) {
            return Err(fault(KeyFileFault::SecretAlone { path: path.to_owned() }));
        }
        let mut keys = tsig::read_keys(&text).map_err(|error| fault(error.into()))?.into_iter();
        match (keys.next(), keys.next()) {
            (Some(key), None) => Ok(Self(Arc::new(key))),
            (None, _) => Err(fault(KeyFileFault::NoKey)),
            _ => Err(fault(KeyFileFault::SeveralKeys { path: path.to_owned() })),
        }
    }

    pub(crate) fn key_name(&self) -> String {
        self.0.name().to_string()
    }

    /// Octets that signing adds to a query: the length of the TSIG record.
    pub(crate) fn octets(&self) -> usize {
        self.0.record_octets()
    }

    /// Signs `query` and returns the verifier of its responses.
    pub(crate) fn sign(&self, query: &mut Vec<u8>) -> Verifier {
        Verifier { answers: tsig::sign_request(&self.0, query, seconds_now()), name: self.key_name() }
    }
}

/// Converts the error of a key in the argument `text`. If the last part is no valid secret but a
/// path in an existing directory, the error is that this file is missing. Any other last part may
/// be a mistyped secret, which a message must not contain.
fn argument_error(text: &str, error: TsigKeyError) -> QueryError {
    let path = Path::new(text.rsplit(':').next().unwrap_or_default());
    let is_in_directory = path.parent().is_some_and(|dir| dir.parent().is_some() && dir.is_dir());
    match (error, fs::metadata(path)) {
        (TsigKeyError::Secret(_), Err(error)) if is_in_directory => {
            QueryError::KeyFile { path: path.to_owned(), reason: KeyFileFault::Read(error) }
        }
        (error, _) => QueryError::Key(KeyArgumentFault::Key(error)),
    }
}

/// Splits `NAME:FILE` or `NAME:ALGORITHM:FILE` before the file name. Returns `None` if neither
/// split gives the name of an existing file.
fn split_file(text: &str) -> Option<(&str, &Path)> {
    let ends = text.match_indices(':').map(|(end, _)| end).take(2);
    let mut splits = ends.map(|end| (&text[..end], Path::new(&text[end + 1..])));
    splits.find(|(_, path)| path.is_file())
}

fn read_file(path: &Path) -> Result<Zeroizing<String>, QueryError> {
    let text = fs::read_to_string(path).map(Zeroizing::new);
    text.map_err(|error| QueryError::KeyFile { path: path.to_owned(), reason: KeyFileFault::Read(error) })
}

/// Reads a key from a file in the formats of a server's configuration: only the secret in base64,
/// or keys in BIND format. `named` is the prefix of the file name: the name of the key, optionally
/// with its algorithm.
fn read_named(named: &str, path: &Path) -> Result<TsigSigner, QueryError> {
    let text = read_file(path)?;
    let fault = |reason| QueryError::KeyFile { path: path.to_owned(), reason };
    if !text.contains('{') {
        let argument = Zeroizing::new(format!("{named}:{}", text.trim()));
        let key = TsigKey::from_argument(&argument).map_err(|error| match error {
            TsigKeyError::Secret(_) => fault(KeyFileFault::NoSecret),
            error => fault(error.into()),
        })?;
        return Ok(TsigSigner(Arc::new(key)));
    }
    let (algorithms, names): (Vec<&str>, Vec<&str>) =
        named.split(':').partition(|part| part.parse::<TsigAlgorithm>().is_ok());
    let name: Name = names
        .first()
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| QueryError::Key(KeyArgumentFault::Name(named.to_owned())))?;
    let keys = tsig::read_keys(&text).map_err(|error| fault(error.into()))?;
    let key = keys.into_iter().find(|key| key.name().to_canonical() == name.view().to_canonical());
    let key = key.ok_or_else(|| fault(KeyFileFault::KeyNotInFile(name.clone())))?;
    let is_other =
        |text: &&str| text.parse::<TsigAlgorithm>().is_ok_and(|algorithm| algorithm != key.algorithm());
    if algorithms.iter().any(is_other) {
        return Err(fault(KeyFileFault::OtherAlgorithm(key.algorithm())));
    }
    Ok(TsigSigner(Arc::new(key)))
}

/// Whether the text of a file is only a secret in base64.
fn is_secret(text: &str) -> bool {
    let octets = Zeroizing::new(text.trim().as_bytes().to_vec());
    !octets.is_empty() && data_encoding::BASE64.decode(&octets).map(Zeroizing::new).is_ok()
}

/// Verifies the messages of one response in order.
pub(crate) struct Verifier {
    answers: ResponseVerifier,
    name: String,
}

/// The result of verifying the signature of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) is_valid: bool,
    /// The result as text.
    pub(crate) text: String,
}

impl Verifier {
    /// Verifies a response of a single message.
    pub(crate) fn verify_single(mut self, message: &[u8]) -> Verdict {
        let checked = self.answers.verify(message, seconds_now()).map(drop);
        let checked = checked.and_then(|()| self.answers.finish());
        match checked {
            Ok(()) => Verdict { is_valid: true, text: format!("signed with {}, verified", self.name) },
            Err(fault) => Verdict { is_valid: false, text: format!("key {}: {fault}", self.name) },
        }
    }

    /// Verifies the next message of a transfer.
    pub(crate) fn verify(&mut self, message: &[u8]) -> Result<(), ResponseTsigError> {
        self.answers.verify(message, seconds_now()).map(drop)
    }

    /// Finishes after the last message.
    ///
    /// # Errors
    /// The last message was not signed (RFC 8945 §5.3.1).
    pub(crate) fn finish(self) -> Result<(), ResponseTsigError> {
        self.answers.finish()
    }
}
