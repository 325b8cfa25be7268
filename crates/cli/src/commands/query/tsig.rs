//! Signing of the query, and what the answer's signature says (RFC 8945).

use super::QueryError;
use nonesuch_authoritative::seconds_now;
use nonesuch_authoritative::tsig::{self, AnswerVerifier, Key};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// The key that queries are signed with.
#[derive(Clone, Debug)]
pub(super) struct Signing(Arc<Key>);

impl Signing {
    /// Reads a key of the command line: the name of a file, or the key itself.
    pub(super) fn read(text: &str) -> Result<Self, QueryError> {
        let path = Path::new(text);
        // A key has colons, and its base64 may have slashes: a file is what is there.
        if !path.exists() && text.contains(':') {
            let key = Key::from_argument(text).map_err(|error| {
                QueryError::Key(format!("{error}; --tsig-key takes NAME:ALGORITHM:SECRET, or a file"))
            })?;
            return Ok(Self(Arc::new(key)));
        }
        let fault = |reason: String| QueryError::KeyFile { path: path.to_owned(), reason };
        let text = fs::read_to_string(path).map(Zeroizing::new);
        let text = text.map_err(|error| {
            fault(format!("cannot be read: {error}; give a key file, or NAME:ALGORITHM:SECRET"))
        })?;
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
