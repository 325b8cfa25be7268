//! One line of the input: a message in hexadecimal, or a JSON object with one.

use super::input::MAX_LINE_OCTETS;
use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use nonesuch_dnssec::validate::{Question, TrustedKeys, ValidationLimits};
use nonesuch_proto::message::{Message, MessageError};
use nonesuch_proto::{Name, Rtype};
use serde_json::Value;
use std::sync::Arc;

/// The response of a line.
#[derive(Debug)]
pub(super) struct Response {
    /// The JSON text of the member `id`.
    pub(super) id: Option<Box<str>>,
    pub(super) name: Name,
    pub(super) rtype: Rtype,
    pub(super) octets: Vec<u8>,
    pub(super) keys: Option<Arc<GivenKeys>>,
}

/// The trusted keys that a line gives, as RDATA, and the time of its validation.
#[derive(Debug)]
pub(super) struct GivenKeys {
    zone: Name,
    dnskeys: Vec<Vec<u8>>,
    nsec5_keys: Vec<Vec<u8>>,
    /// Seconds since 1970 modulo 2^32.
    pub(super) now: Option<u32>,
}

/// An invalid line.
#[derive(Debug)]
pub(super) struct Invalid {
    /// The JSON text of the member `id`.
    pub(super) id: Option<Box<str>>,
    pub(super) fault: LineFault,
}

/// Why a line is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum LineFault {
    #[error("longer than {MAX_LINE_OCTETS} octets: give one response on each line")]
    TooLong,
    #[error("not UTF-8 text: give the response in hexadecimal or as a JSON object")]
    NotText,
    #[error("not hexadecimal: {0}: give the whole message as hexadecimal digits, or a JSON object")]
    NotHex(data_encoding::DecodeError),
    #[error("not a JSON object: {}", json_fault(.0))]
    NotJson(serde_json::Error),
    #[error("not a DNS message: {0}: give the whole message, without the length that precedes it over TCP")]
    NotAMessage(MessageError),
    #[error("the message has no question: give it in the member question of a JSON object")]
    NoQuestion,
    #[error("no response: give it in the member messageOctetsHEX, or response")]
    NoResponse,
    #[error("member {0}: expected {1}")]
    Member(&'static str, &'static str),
    #[error("member {0} without zone and dnskey: give these members, or use --now and --anchor")]
    WithoutKeys(&'static str),
}

/// The message of the error without its line, which is that in the object.
fn json_fault(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split_once(" at line ").map_or(text.as_str(), |(fault, _)| fault);
    format!("{text} at column {}", error.column())
}

impl Invalid {
    pub(super) const fn new(fault: LineFault) -> Self {
        Self { id: None, fault }
    }
}

impl Response {
    pub(super) const fn question(&self) -> Question<'_> {
        Question { name: self.name.view(), rtype: self.rtype }
    }
}

impl GivenKeys {
    pub(super) fn has_same_keys(&self, other: &Self) -> bool {
        (&self.zone, &self.dnskeys, &self.nsec5_keys) == (&other.zone, &other.dnskeys, &other.nsec5_keys)
    }

    pub(super) fn trusted_keys(&self) -> TrustedKeys {
        let limits = ValidationLimits::default();
        let mut keys = TrustedKeys::new(&self.zone, self.dnskeys.iter().map(Vec::as_slice), &limits);
        keys.set_nsec5_keys(self.nsec5_keys.iter().map(Vec::as_slice), &limits);
        keys
    }
}

/// Reads a line.
pub(super) fn parse(line: &[u8]) -> Result<Response, Invalid> {
    let text = str::from_utf8(line).map_err(|_| Invalid::new(LineFault::NotText))?;
    if !text.starts_with('{') {
        let octets = decode_hex(text).map_err(|error| Invalid::new(LineFault::NotHex(error)))?;
        let (name, rtype) = own_question(&octets).map_err(Invalid::new)?;
        return Ok(Response { id: None, name, rtype, octets, keys: None });
    }
    let value: Value = serde_json::from_str(text).map_err(|error| Invalid::new(LineFault::NotJson(error)))?;
    let id = value.get("id").map(|id| id.to_string().into());
    match parse_object(&value) {
        Ok((name, rtype, octets, keys)) => Ok(Response { id, name, rtype, octets, keys }),
        Err(fault) => Err(Invalid { id, fault }),
    }
}

type Parts = (Name, Rtype, Vec<u8>, Option<Arc<GivenKeys>>);

fn parse_object(value: &Value) -> Result<Parts, LineFault> {
    let octets = response_octets(value)?;
    let (name, rtype) = match value.get("question") {
        // `nonesuch query --json` prints a list.
        Some(Value::Array(questions)) if questions.is_empty() => own_question(&octets)?,
        Some(Value::Array(questions)) if questions.len() == 1 => named_question(&questions[0])?,
        Some(question) => named_question(question)?,
        None => own_question(&octets)?,
    };
    Ok((name, rtype, octets, given_keys(value)?))
}

fn response_octets(value: &Value) -> Result<Vec<u8>, LineFault> {
    let text = |member| value.get(member).map(|text: &Value| text.as_str().unwrap_or("?"));
    // RFC 8427 §2.4.
    if let Some(text) = text("messageOctetsHEX") {
        return decode_hex(text).map_err(|_| LineFault::Member("messageOctetsHEX", "hexadecimal digits"));
    }
    let text = text("response").ok_or(LineFault::NoResponse)?;
    let octets = decode_hex(text).or_else(|_| BASE64.decode(text.as_bytes()));
    octets.map_err(|_| LineFault::Member("response", "a message in Base64 or hexadecimal"))
}

fn decode_hex(text: &str) -> Result<Vec<u8>, data_encoding::DecodeError> {
    let digits: Vec<u8> = text.bytes().filter(|octet| !octet.is_ascii_whitespace()).collect();
    HEXLOWER_PERMISSIVE.decode(&digits)
}

/// Returns the question of the message itself.
fn own_question(octets: &[u8]) -> Result<(Name, Rtype), LineFault> {
    let message = Message::parse(octets).map_err(LineFault::NotAMessage)?;
    let question = message.questions.into_iter().next().ok_or(LineFault::NoQuestion)?;
    Ok((question.name, question.rtype))
}

fn named_question(question: &Value) -> Result<(Name, Rtype), LineFault> {
    let name =
        name_of(question.get("name")).ok_or(LineFault::Member("question", "an object with name and type"))?;
    let rtype = question.get("type").and_then(type_of);
    Ok((name, rtype.ok_or(LineFault::Member("question", "a type such as A, TYPE65 or 65"))?))
}

fn name_of(value: Option<&Value>) -> Option<Name> {
    value.and_then(Value::as_str).and_then(|text| text.parse().ok())
}

fn type_of(value: &Value) -> Option<Rtype> {
    let number = value.as_u64().and_then(|number| u16::try_from(number).ok()).map(Rtype);
    number.or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

fn given_keys(value: &Value) -> Result<Option<Arc<GivenKeys>>, LineFault> {
    let now = match value.get("now") {
        // Times are modulo 2^32 (RFC 4034 §3.1.5).
        Some(now) => Some(now.as_u64().ok_or(LineFault::Member("now", "seconds since 1970"))? as u32),
        None => None,
    };
    if value.get("zone").is_none() {
        let unused = ["dnskey", "nsec5key"].into_iter().find(|member| value.get(member).is_some());
        return match (unused, now) {
            (Some(_), _) => Err(LineFault::Member("zone", "the apex of the zone of the keys")),
            (None, Some(_)) => Err(LineFault::WithoutKeys("now")),
            (None, None) => Ok(None),
        };
    }
    let zone = name_of(value.get("zone")).ok_or(LineFault::Member("zone", "a name"))?;
    let (dnskeys, nsec5_keys) = (rdata_list(value, "dnskey")?, rdata_list(value, "nsec5key")?);
    Ok(Some(Arc::new(GivenKeys { zone, dnskeys, nsec5_keys, now })))
}

/// Decodes a list of Base64 texts. A missing member is an empty list.
fn rdata_list(value: &Value, member: &'static str) -> Result<Vec<Vec<u8>>, LineFault> {
    let expected = || LineFault::Member(member, "a list of RDATA in Base64");
    let Some(list) = value.get(member) else { return Ok(Vec::new()) };
    let texts = list.as_array().ok_or_else(expected)?.iter().map(Value::as_str);
    texts.map(|text| BASE64.decode(text?.as_bytes()).ok()).map(|rdata| rdata.ok_or_else(expected)).collect()
}
