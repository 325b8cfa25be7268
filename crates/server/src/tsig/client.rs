//! A client's side: requests signed, answers verified.

use super::FUDGE;
use super::key::TsigKey;
use super::record::{Record, Variables, begin_after};
use super::server::TsigError;
use nonesuch_crypto::hmac::Mac;
use nonesuch_proto::timestamp::Rfc3339;
use std::sync::Arc;

/// Messages of an answer in a row that need not be signed (RFC 8945 §5.3.1).
const UNSIGNED_MAX: u32 = 99;

/// Why an answer is not to be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseTsigError {
    /// The first or the last message is not signed.
    #[error("the answer is not signed: the server may have no such key, or somebody else answered")]
    Unsigned,
    /// Too many messages in a row are not signed.
    #[error("100 messages in a row are not signed (RFC 8945 allows 99)")]
    TooManyUnsigned,
    /// The message, or its TSIG record, is not well formed.
    #[error("the answer's message or TSIG record is malformed")]
    Form,
    /// The answer is signed with another key.
    #[error("the answer is signed with another key or algorithm than the request")]
    WrongKey,
    /// The MAC is wrong.
    #[error("the answer's signature is wrong: the secrets differ, or the answer was altered on its way")]
    BadSig,
    /// The time signed is too far from ours.
    #[error("the answer was signed at {}, and it is {}: set the clocks right", Rfc3339(*time), Rfc3339(*now))]
    BadTime {
        /// The time signed.
        time: u64,
        /// Our time.
        now: u64,
    },
    /// The server refuses the request; its word is not signed where it concerns key or MAC.
    #[error("the server refuses the request's signature: {0}{hint}", hint = hint(*.0))]
    RejectedByServer(TsigError),
    /// The server's clock is too far from ours; that is signed.
    #[error(
        "the server refuses the request's time: its clock says {}: set the clocks right",
        Rfc3339(*server)
    )]
    RefusedTime {
        /// The server's time; 0 where it does not say.
        server: u64,
    },
    /// The server reports an error that is not known here.
    #[error("the server reports the TSIG error {0}")]
    OtherError(u16),
}

const fn hint(error: TsigError) -> &'static str {
    match error {
        TsigError::BadKey => " (it has no such key of that algorithm: compare names and algorithms)",
        TsigError::BadSig => " (the secrets differ)",
        TsigError::BadTrunc => " (it wants longer MACs)",
        TsigError::BadTime => " (the clocks differ: set them)",
        TsigError::Form => "",
    }
}

/// Appends a TSIG record to the request `message`; returns what verifies its answer.
pub fn sign_request(key: &Arc<TsigKey>, message: &mut Vec<u8>, now: u64) -> AnswerVerifier {
    let variables = Variables { time: now, fudge: FUDGE, error: 0, other: &[] };
    let mut mac = key.begin();
    mac.update(message);
    variables.digest(key, &mut mac);
    let tag = mac.finish();
    variables.push(key.name(), key.algorithm().name(), tag.as_ref(), message);
    AnswerVerifier {
        key: Arc::clone(key),
        running: begin_after(key, tag.as_ref()),
        is_first: true,
        unsigned: 0,
    }
}

/// A message of an answer that may be believed, now or once the next signed one is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedMessage {
    /// Where the TSIG record begins; the message's length where there is none. The header counts the record.
    pub end: usize,
    /// Whether the message is signed. What is not must not be acted upon before the next signed one is verified.
    pub is_signed: bool,
}

/// Verifies the messages of one answer, in their order.
#[derive(Clone, Debug)]
pub struct AnswerVerifier {
    key: Arc<TsigKey>,
    /// The code of the next signed message, over what came before it.
    running: Mac,
    is_first: bool,
    /// Messages since the last one that was signed.
    unsigned: u32,
}

impl AnswerVerifier {
    /// Verifies the next message.
    ///
    /// # Errors
    /// Why the answer is not to be believed. Nothing of it is, then, and no further message is to be verified.
    pub fn verify(&mut self, message: &[u8], now: u64) -> Result<CheckedMessage, ResponseTsigError> {
        let Some(record) = Record::find(message).map_err(|_| ResponseTsigError::Form)? else {
            return self.pass(message);
        };
        if record.key.view() != self.key.name() || record.algorithm != self.key.algorithm().name() {
            return Err(ResponseTsigError::WrongKey);
        }
        let error = TsigError::from_number(record.error);
        // RFC 8945 §5.3.2: a server that knows no key, or another secret, cannot sign. NSD does not sign BADTIME either: the time
        // that it says is not believed then.
        if let (Some(error @ (TsigError::BadKey | TsigError::BadSig | TsigError::BadTime)), true) =
            (error, record.mac.is_empty())
        {
            return Err(ResponseTsigError::RejectedByServer(error));
        }
        if !record.has_possible_length(self.key.algorithm()) {
            return Err(ResponseTsigError::Form);
        }
        let next = begin_after(&self.key, record.mac);
        let mut mac = std::mem::replace(&mut self.running, next);
        record.digest_message(message, &mut mac);
        if self.is_first {
            record.variables().digest(&self.key, &mut mac);
        } else {
            record.variables().digest_timers(&mut mac);
        }
        if !mac.verify(record.mac) {
            return Err(ResponseTsigError::BadSig);
        }
        (self.is_first, self.unsigned) = (false, 0);
        check_error(&record, error)?;
        if !record.is_timely(now) {
            return Err(ResponseTsigError::BadTime { time: record.time, now });
        }
        if record.mac.len() < self.key.min_mac() {
            return Err(ResponseTsigError::Form);
        }
        Ok(CheckedMessage { end: record.at, is_signed: true })
    }

    /// Takes a message that is not signed: the next signed one vouches for it.
    fn pass(&mut self, message: &[u8]) -> Result<CheckedMessage, ResponseTsigError> {
        if self.is_first {
            return Err(ResponseTsigError::Unsigned);
        }
        self.unsigned += 1;
        if self.unsigned > UNSIGNED_MAX {
            return Err(ResponseTsigError::TooManyUnsigned);
        }
        self.running.update(message);
        Ok(CheckedMessage { end: message.len(), is_signed: false })
    }

    /// Has the answer follow on a request with this MAC.
    #[cfg(test)]
    pub(super) fn follow(&mut self, mac: &[u8]) {
        self.running = begin_after(&self.key, mac);
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// [`ResponseTsigError::Unsigned`] where the last message was not signed, or there was none.
    pub const fn finish(&self) -> Result<(), ResponseTsigError> {
        if self.is_first || self.unsigned > 0 { Err(ResponseTsigError::Unsigned) } else { Ok(()) }
    }
}

/// What the server says in a signed record.
fn check_error(record: &Record<'_>, error: Option<TsigError>) -> Result<(), ResponseTsigError> {
    match (record.error, error) {
        (0, _) => Ok(()),
        (_, Some(TsigError::BadTime)) => {
            let server = <[u8; 6]>::try_from(record.other)
                .map_or(0, |[a, b, c, d, e, f]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
            Err(ResponseTsigError::RefusedTime { server })
        }
        (_, Some(error)) => Err(ResponseTsigError::RejectedByServer(error)),
        (number, None) => Err(ResponseTsigError::OtherError(number)),
    }
}
