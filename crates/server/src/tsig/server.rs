//! TSIG on the server: verifying requests and signing responses (RFC 8945 §5.2).

use super::FUDGE_SECONDS;
use super::key::{TsigKey, TsigKeys};
use super::record::{TsigRecord, TsigVariables, begin_chained_mac, record_octets};
use nonesuch_proto::message::{HEADER, Header, Rcode, flags};
use nonesuch_proto::{Name, NameRef};
use std::fmt;
use std::sync::Arc;

/// Why a server rejects a request. RFC 8945 §3 defines the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TsigError {
    /// The message or its TSIG record is malformed.
    Form,
    /// The MAC is wrong.
    BadSig,
    /// The key is unknown, or has a different algorithm.
    BadKey,
    /// The time signed differs too much from the local time.
    BadTime,
    /// The MAC is shorter than the configured minimum.
    BadTrunc,
}

impl TsigError {
    /// The number in the TSIG record; 0 for [`TsigError::Form`], which has no TSIG record in the
    /// response.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Form => 0,
            Self::BadSig => 16,
            Self::BadKey => 17,
            Self::BadTime => 18,
            Self::BadTrunc => 22,
        }
    }

    /// Returns the error with this number in a TSIG record.
    #[must_use]
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            16 => Some(Self::BadSig),
            17 => Some(Self::BadKey),
            18 => Some(Self::BadTime),
            22 => Some(Self::BadTrunc),
            _ => None,
        }
    }

    /// The response code of the response.
    #[must_use]
    pub const fn rcode(self) -> Rcode {
        if matches!(self, Self::Form) { Rcode::FORMERR } else { Rcode::NOTAUTH }
    }
}

impl fmt::Display for TsigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Form => "FORMERR",
            Self::BadSig => "BADSIG",
            Self::BadKey => "BADKEY",
            Self::BadTime => "BADTIME",
            Self::BadTrunc => "BADTRUNC",
        })
    }
}

/// A request with a valid signature of a configured key.
#[derive(Clone, Debug)]
pub struct VerifiedRequest {
    key: Arc<TsigKey>,
    mac: Box<[u8]>,
    /// Octets of the request before its TSIG record.
    octets: usize,
}

impl VerifiedRequest {
    /// The key that signed the request.
    #[must_use]
    pub const fn key(&self) -> &Arc<TsigKey> {
        &self.key
    }

    /// The name of the key, in lower case.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.key.name()
    }

    /// Octets of the request before its TSIG record.
    #[must_use]
    pub const fn octets(&self) -> usize {
        self.octets
    }

    /// Returns the signer for the response to this request.
    #[must_use]
    pub fn signer(&self) -> ResponseSigner {
        ResponseSigner { key: Arc::clone(&self.key), prior_mac: self.mac.to_vec(), is_first: true }
    }
}

impl TsigKeys {
    /// Verifies a request of any opcode; `None` if it has no TSIG record.
    ///
    /// `now`: local time, in seconds since 1970.
    ///
    /// # Errors
    /// Returns the rejection, which contains the response to send.
    pub fn verify(&self, message: &[u8], now: u64) -> Result<Option<VerifiedRequest>, TsigRejection> {
        let Ok(found) = TsigRecord::find(message) else { return Err(TsigRejection::malformed()) };
        let Some(record) = found else { return Ok(None) };
        let of_algorithm = |key: &&Arc<TsigKey>| key.algorithm().name() == record.algorithm;
        let Some(key) = self.find(&record.key).filter(of_algorithm) else {
            return Err(TsigRejection::new(TsigError::BadKey, &record, None));
        };
        if !record.has_possible_length(key.algorithm()) {
            return Err(TsigRejection::malformed());
        }
        let mut mac = key.begin();
        record.digest_message(message, &mut mac);
        record.variables().digest(key, &mut mac);
        if !mac.verify(record.mac) {
            return Err(TsigRejection::new(TsigError::BadSig, &record, None));
        }
        // RFC 8945 §5.2: the server checks time and local policy last. It signs the errors of these
        // checks.
        if !record.is_timely(now) {
            return Err(TsigRejection::new(TsigError::BadTime, &record, Some(key)));
        }
        if record.mac.len() < key.min_mac_octets() {
            return Err(TsigRejection::new(TsigError::BadTrunc, &record, Some(key)));
        }
        Ok(Some(VerifiedRequest { key: Arc::clone(key), mac: record.mac.into(), octets: record.offset }))
    }
}

/// Signs the messages of one response, in order.
#[derive(Clone, Debug)]
pub struct ResponseSigner {
    key: Arc<TsigKey>,
    /// The MAC that the next message follows: first the MAC of the request, then the MAC of the
    /// preceding message.
    prior_mac: Vec<u8>,
    is_first: bool,
}

impl ResponseSigner {
    /// Octets that signing adds to a message: the length of the TSIG record.
    #[must_use]
    pub fn octets(&self) -> usize {
        record_octets(&self.key)
    }

    /// Appends the TSIG record to `message`, which is complete except for this record.
    pub fn sign(&mut self, message: &mut Vec<u8>, now: u64) {
        self.sign_with(message, TsigVariables { time: now, fudge: FUDGE_SECONDS, error: 0, other: &[] });
    }

    fn sign_with(&mut self, message: &mut Vec<u8>, variables: TsigVariables<'_>) {
        let mut mac = begin_chained_mac(&self.key, &self.prior_mac);
        mac.update(message);
        if self.is_first {
            variables.digest(&self.key, &mut mac);
        } else {
            variables.digest_timers(&mut mac);
        }
        self.is_first = false;
        let tag = mac.finish();
        variables.push(self.key.name(), self.key.algorithm().name(), tag.as_ref(), message);
        self.prior_mac.clear();
        self.prior_mac.extend_from_slice(tag.as_ref());
    }
}

/// A rejected request, with the data for the error response.
#[derive(Clone, Debug)]
pub struct TsigRejection {
    error: TsigError,
    /// The fields of the request's TSIG record for the response; `None` if the record is malformed.
    echo: Option<Echo>,
}

#[derive(Clone, Debug)]
struct Echo {
    key: Name,
    algorithm: Name,
    time: u64,
    fudge: u16,
    /// Signs the response if the MAC of the request was valid.
    signer: Option<ResponseSigner>,
}

impl TsigRejection {
    const fn malformed() -> Self {
        Self { error: TsigError::Form, echo: None }
    }

    fn new(error: TsigError, record: &TsigRecord<'_>, key: Option<&Arc<TsigKey>>) -> Self {
        let signer = |key: &Arc<TsigKey>| ResponseSigner {
            key: Arc::clone(key),
            prior_mac: record.mac.to_vec(),
            is_first: true,
        };
        let echo = Echo {
            key: record.key.clone(),
            algorithm: record.algorithm.to_name(),
            time: record.time,
            fudge: record.fudge,
            signer: key.map(signer),
        };
        Self { error, echo: Some(echo) }
    }

    /// Why the server rejects the request.
    #[must_use]
    pub const fn error(&self) -> TsigError {
        self.error
    }

    /// The name of the key in the request, in lower case, if it could be read.
    #[must_use]
    pub fn key(&self) -> Option<NameRef<'_>> {
        self.echo.as_ref().map(|echo| echo.key.view())
    }

    /// Writes the complete error response to `request` into `out`. `opt` is the OPT record of the
    /// response in wire form; empty: the response has none. `now` is in seconds since 1970.
    ///
    /// RFC 8945 §5.3.2: an error that concerns the key or the MAC is not signed; an error that
    /// concerns time or truncation is signed. If the request has no header, `out` stays empty.
    pub fn answer(&self, request: &[u8], opt: &[u8], now: u64, out: &mut Vec<u8>) {
        out.clear();
        let Some(header) = Header::read(request) else { return };
        let copied_flags = header.flags & (flags::OPCODE | flags::RD);
        let question = read_question(request, header).unwrap_or_default();
        let counts = [u16::from(!question.is_empty()), 0, 0, u16::from(!opt.is_empty())];
        let response_header =
            Header { id: header.id, flags: flags::QR | copied_flags | self.error.rcode().0, counts };
        out.extend_from_slice(&response_header.to_octets());
        out.extend_from_slice(question);
        out.extend_from_slice(opt);
        let Some(echo) = &self.echo else { return };
        let server_time = now.to_be_bytes();
        // RFC 8945 §5.2.3: the field Time Signed has the client's time, because the client must be
        // able to verify the response. The field Other Data has the server's time.
        let (time, other) =
            if self.error == TsigError::BadTime { (echo.time, &server_time[2..]) } else { (now, &[][..]) };
        let fudge = if self.error == TsigError::BadTime { echo.fudge } else { FUDGE_SECONDS };
        let variables = TsigVariables { time, fudge, error: self.error.number(), other };
        match echo.signer.clone() {
            Some(mut signer) => signer.sign_with(out, variables),
            None => variables.push(echo.key.view(), echo.algorithm.view(), &[], out),
        }
    }
}

/// Returns the single question of a message; `None` if the number of questions differs from one, or
/// if the question cannot be read.
fn read_question(message: &[u8], header: Header) -> Option<&[u8]> {
    if header.counts[0] != 1 {
        return None;
    }
    let (name, _) = NameRef::split_from(message.get(HEADER..)?).ok()?;
    message.get(HEADER..HEADER + name.len() + 4)
}
