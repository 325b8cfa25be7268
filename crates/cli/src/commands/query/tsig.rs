//! Signing of the query, and what the answer's signature says (RFC 8945).

use super::QueryError;
use nonesuch_authoritative::seconds_now;
use nonesuch_authoritative::tsig::{self, Algorithm, AnswerVerifier, Key};
use nonesuch_proto::Name;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The key that queries are signed with.
#[derive(Clone, Debug)]
pub(super) struct Signing(Arc<Key>);

impl Signing {
    /// Reads a key of the command line: the name of a file, with the key's name in front where it holds the secret alone, or the key
    /// itself.
    pub(super) fn read(text: &str) -> Result<Self, QueryError> {
        let path = Path::new(text);
        // A key has colons, and its base64 may have slashes: a file is what is there.
        if !path.exists() && text.contains(':') {
            if let Some((named, path)) = split_file(text) {
                return read_named(named, path);
            }
            let key = Key::from_argument(text).map_err(|error| {
                QueryError::Key(format!(
                    "{error}; --tsig-key takes NAME:ALGORITHM:SECRET, a file with a key as BIND has it, or NAME:FILE, the secret in \
                     the file"
                ))
            })?;
            return Ok(Self(Arc::new(key)));
        }
        let text = read_file(path)?;
        let fault = |reason: String| QueryError::KeyFile { path: path.to_owned(), reason };
        if is_secret(&text) {
            let place = path.display();
            return Err(fault(format!(
                "holds a secret, and not the name of its key: give NAME:{place}, or NAME:ALGORITHM:{place}"
            )));
        }
        let mut keys = tsig::read_keys(&text).map_err(|error| fault(error.to_string()))?.into_iter();
        match (keys.next(), keys.next()) {
            (Some(key), None) => Ok(Self(Arc::new(key))),
            (None, _) => Err(fault(
                "holds no key: write key \"NAME\" { algorithm hmac-sha256; secret \"…\"; };".to_owned(),
            )),
            _ => Err(fault("holds more than one key: give a file with the one to sign with".to_owned())),
        }
    }

    /// Signs `query`; gives what verifies its answers.
    pub(super) fn sign(&self, query: &mut Vec<u8>) -> Verifier {
        Verifier {
            answers: tsig::sign_request(&self.0, query, seconds_now()),
            name: self.0.name().to_string(),
        }
    }
}

/// What stands before the name of a file that is there, and that file: `NAME:FILE`, `NAME:ALGORITHM:FILE`.
fn split_file(text: &str) -> Option<(&str, &Path)> {
    let ends = text.match_indices(':').map(|(end, _)| end).take(2);
    let mut splits = ends.map(|end| (&text[..end], Path::new(&text[end + 1..])));
    splits.find(|(_, path)| path.is_file())
}

fn read_file(path: &Path) -> Result<Zeroizing<String>, QueryError> {
    fs::read_to_string(path).map(Zeroizing::new).map_err(|error| {
        let reason = format!("cannot be read: {error}; give a key file, NAME:FILE or NAME:ALGORITHM:SECRET");
        QueryError::KeyFile { path: path.to_owned(), reason }
    })
}

/// The key of a file as a server's configuration names it, with `named` before it, the key's name and perhaps its algorithm: the
/// secret in base64 alone, or keys as BIND has them.
fn read_named(named: &str, path: &Path) -> Result<Signing, QueryError> {
    let text = read_file(path)?;
    let fault = |reason: String| QueryError::KeyFile { path: path.to_owned(), reason };
    if !text.contains('{') {
        let argument = Zeroizing::new(format!("{named}:{}", text.trim()));
        let key = Key::from_argument(&argument).map_err(|error| fault(error.to_string()))?;
        return Ok(Signing(Arc::new(key)));
    }
    let (algorithms, names): (Vec<&str>, Vec<&str>) =
        named.split(':').partition(|part| part.parse::<Algorithm>().is_ok());
    let name: Name = names
        .first()
        .and_then(|name| name.parse().ok())
        .ok_or_else(|| QueryError::Key(format!("'{named}' is no name of a key")))?;
    let keys = tsig::read_keys(&text).map_err(|error| fault(error.to_string()))?;
    let key = keys.into_iter().find(|key| key.name().to_canonical() == name.view().to_canonical());
    let key = key.ok_or_else(|| fault(format!("holds no key {name}: name one that it holds")))?;
    let is_other =
        |text: &&str| text.parse::<Algorithm>().is_ok_and(|algorithm| algorithm != key.algorithm());
    if algorithms.iter().any(is_other) {
        return Err(fault(format!("the key is of {}: leave the algorithm out", key.algorithm())));
    }
    Ok(Signing(Arc::new(key)))
}

/// Whether a file's text is a secret in base64 and nothing else.
fn is_secret(text: &str) -> bool {
    let octets = Zeroizing::new(text.trim().as_bytes().to_vec());
    !octets.is_empty() && data_encoding::BASE64.decode(&octets).map(Zeroizing::new).is_ok()
}

/// Verifies the messages of one answer in order.
pub(super) struct Verifier {
    answers: AnswerVerifier,
    name: String,
}

/// What a signature is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) is_right: bool,
    /// In words.
    pub(super) text: String,
}

impl Verifier {
    /// Verifies the one message of an answer.
    pub(super) fn verify_only(mut self, message: &[u8]) -> Verdict {
        let checked = self.answers.verify(message, seconds_now()).map(drop);
        let checked = checked.and_then(|()| self.answers.finish());
        match checked {
            Ok(()) => Verdict { is_right: true, text: format!("signed with {}, verified", self.name) },
            Err(fault) => Verdict { is_right: false, text: format!("key {}: {fault}", self.name) },
        }
    }

    /// Verifies the next message of a transfer.
    pub(super) fn verify(&mut self, message: &[u8]) -> Result<(), String> {
        self.answers.verify(message, seconds_now()).map(drop).map_err(|fault| fault.to_string())
    }

    /// After the last message, which must have been signed.
    pub(super) fn finish(self) -> Result<(), String> {
        self.answers.finish().map_err(|fault| fault.to_string())
    }
}
