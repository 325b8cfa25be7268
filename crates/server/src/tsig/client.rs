//! TSIG on the client: signing requests and verifying responses (RFC 8945 §5.3).

use super::FUDGE_SECONDS;
use super::key::TsigKey;
use super::record::{TsigRecord, TsigVariables, begin_chained_mac};
use super::server::TsigError;
use nonesuch_crypto::hmac::Mac;
use nonesuch_proto::timestamp::Rfc3339;
use std::sync::Arc;

/// Maximum number of unsigned messages in a row in a response (RFC 8945 §5.3.1).
const UNSIGNED_MAX: u32 = 99;

/// Why a client must not use a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResponseTsigError {
    /// The first or the last message is not signed.
    #[error("the response is not signed: the server may not have the key, or another host responded")]
    Unsigned,
    /// Too many messages in a row are not signed.
    #[error("100 messages in a row are not signed (RFC 8945 allows 99)")]
    TooManyUnsigned,
    /// The message or its TSIG record is malformed.
    #[error("the response or its TSIG record is malformed")]
    Malformed,
    /// The response is signed with a different key or algorithm.
    #[error("the response is signed with a different key or algorithm than the request")]
    WrongKey,
    /// The MAC is wrong.
    #[error(
        "the signature of the response is wrong: the secrets differ, or the response was altered in transit"
    )]
    BadSig,
    /// The time signed differs too much from the local time.
    #[error("the response was signed at {}, and the local time is {}: correct the clocks", Rfc3339(*time), Rfc3339(*now))]
    BadTime {
        /// The time signed, in seconds since 1970.
        time: u64,
        /// The local time, in seconds since 1970.
        now: u64,
    },
    /// The server rejected the request. An error that concerns the key or the MAC is not signed.
    #[error("the server rejected the signature of the request: {0}{advice}", advice = advice(*.0))]
    RejectedByServer(TsigError),
    /// The clock of the server differs too much from the local clock. The server signed this error.
    #[error(
        "the server rejected the time of the request: its clock is at {}: correct the clocks",
        Rfc3339(*server)
    )]
    TimeRejectedByServer {
        /// The time of the server, in seconds since 1970; 0 if the response does not contain it.
        server: u64,
    },
    /// The server reports an unknown TSIG error.
    #[error("the server reports the TSIG error {0}")]
    OtherError(u16),
}

const fn advice(error: TsigError) -> &'static str {
    match error {
        TsigError::BadKey => " (it has no key with this name and algorithm: compare names and algorithms)",
        TsigError::BadSig => " (the secrets differ)",
        TsigError::BadTrunc => " (it requires longer MACs)",
        TsigError::BadTime => " (the clocks differ: correct them)",
        TsigError::Form => "",
    }
}

/// Appends a TSIG record to the request `message`. Returns the verifier for the response.
pub fn sign_request(key: &Arc<TsigKey>, message: &mut Vec<u8>, now: u64) -> ResponseVerifier {
    let variables = TsigVariables { time: now, fudge: FUDGE_SECONDS, error: 0, other: &[] };
    let mut mac = key.begin();
    mac.update(message);
    variables.digest(key, &mut mac);
    let tag = mac.finish();
    variables.push(key.name(), key.algorithm().name(), tag.as_ref(), message);
    ResponseVerifier {
        key: Arc::clone(key),
        next_mac: begin_chained_mac(key, tag.as_ref()),
        is_first: true,
        unsigned_count: 0,
    }
}

/// A message of a response that passed verification. An unsigned message is valid only after the
/// next signed message is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedMessage {
    /// Offset of the TSIG record, or the length of the message if it has none. The header counts
    /// the TSIG record.
    pub end: usize,
    /// Whether the message is signed. The caller must not act on an unsigned message before the
    /// next signed message is verified.
    pub is_signed: bool,
}

/// Verifies the messages of one response, in order.
#[derive(Clone, Debug)]
pub struct ResponseVerifier {
    key: Arc<TsigKey>,
    /// The started MAC of the next signed message: it has digested the previous MAC and the
    /// unsigned messages since.
    next_mac: Mac,
    is_first: bool,
    /// Number of messages since the last signed message.
    unsigned_count: u32,
}

impl ResponseVerifier {
    /// Verifies the next message of the response at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// Fails if the response must not be used. The caller then discards the whole response and
    /// verifies no further message.
    pub fn verify(&mut self, message: &[u8], now: u64) -> Result<CheckedMessage, ResponseTsigError> {
        let Some(record) = TsigRecord::find(message).map_err(|_| ResponseTsigError::Malformed)? else {
            return self.accept_unsigned(message);
        };
        if record.key.view() != self.key.name() || record.algorithm != self.key.algorithm().name() {
            return Err(ResponseTsigError::WrongKey);
        }
        let error = TsigError::from_number(record.error);
        // RFC 8945 §5.3.2: a server that does not have the key, or has a different secret, cannot
        // sign. NSD does not sign BADTIME either; its time is then not used.
        if let (Some(error @ (TsigError::BadKey | TsigError::BadSig | TsigError::BadTime)), true) =
            (error, record.mac.is_empty())
        {
            return Err(ResponseTsigError::RejectedByServer(error));
        }
        if !record.has_possible_length(self.key.algorithm()) {
            return Err(ResponseTsigError::Malformed);
        }
        let next = begin_chained_mac(&self.key, record.mac);
        let mut mac = std::mem::replace(&mut self.next_mac, next);
        record.digest_message(message, &mut mac);
        if self.is_first {
            record.variables().digest(&self.key, &mut mac);
        } else {
            record.variables().digest_timers(&mut mac);
        }
        if !mac.verify(record.mac) {
            return Err(ResponseTsigError::BadSig);
        }
        (self.is_first, self.unsigned_count) = (false, 0);
        check_error(&record, error)?;
        if !record.is_timely(now) {
            return Err(ResponseTsigError::BadTime { time: record.time, now });
        }
        if record.mac.len() < self.key.min_mac_octets() {
            return Err(ResponseTsigError::Malformed);
        }
        Ok(CheckedMessage { end: record.offset, is_signed: true })
    }

    /// Accepts an unsigned message. The MAC of the next signed message covers it.
    fn accept_unsigned(&mut self, message: &[u8]) -> Result<CheckedMessage, ResponseTsigError> {
        if self.is_first {
            return Err(ResponseTsigError::Unsigned);
        }
        self.unsigned_count += 1;
        if self.unsigned_count > UNSIGNED_MAX {
            return Err(ResponseTsigError::TooManyUnsigned);
        }
        self.next_mac.update(message);
        Ok(CheckedMessage { end: message.len(), is_signed: false })
    }

    /// Continues the response after a request with this MAC.
    #[cfg(test)]
    pub(super) fn continue_after(&mut self, mac: &[u8]) {
        self.next_mac = begin_chained_mac(&self.key, mac);
    }

    /// Checks that the response may end here, after its last message.
    ///
    /// # Errors
    /// [`ResponseTsigError::Unsigned`] if the last message is not signed, or if there was no
    /// message.
    pub const fn finish(&self) -> Result<(), ResponseTsigError> {
        if self.is_first || self.unsigned_count > 0 { Err(ResponseTsigError::Unsigned) } else { Ok(()) }
    }
}

/// Returns the error that a signed record reports.
fn check_error(record: &TsigRecord<'_>, error: Option<TsigError>) -> Result<(), ResponseTsigError> {
    match (record.error, error) {
        (0, _) => Ok(()),
        (_, Some(TsigError::BadTime)) => {
            let server = <[u8; 6]>::try_from(record.other)
                .map_or(0, |[a, b, c, d, e, f]| u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
            Err(ResponseTsigError::TimeRejectedByServer { server })
        }
        (_, Some(error)) => Err(ResponseTsigError::RejectedByServer(error)),
        (number, None) => Err(ResponseTsigError::OtherError(number)),
    }
}
