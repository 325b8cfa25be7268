//! Validates responses for test programs in other languages. It reads one JSON object per line from
//! standard input, and writes one JSON object per line to standard output.
//!
//! Input:
//! `{"zone": "example.", "dnskey": ["<Base64 of RDATA>", …], "nsec5key": […], "now": 1750000000,
//! "question": {"name": "a.example.", "type": "A"}, "response": "<Base64 of the message>"}`.
//! Types are mnemonics, `TYPEn` or numbers. If the input has `id`, the output has the same `id`.
//!
//! Output:
//! `{"id": …, "status": "secure", "proved": "nxdomain", "rcode": "NXDOMAIN", "reason": null,
//! "signatures": 3, "hashes": 0, "vrf": 2}`, or `{"id": …, "status": "error", "error": "…"}` if the
//! line is invalid.

use data_encoding::BASE64;
use nonesuch_dnssec::validate::{
    Budget, ProvedAnswer, Question, SecurityStatus, TrustedKeys, Validation, ValidationLimits,
    validate_octets,
};
use nonesuch_proto::{Name, Rtype};
use serde_json::{Value, json};
use std::error::Error;
use std::io::{BufRead, BufWriter, Write};

fn main() -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    // Consecutive lines usually have the same keys, which are then parsed and validated only once.
    let mut previous_keys: Option<(Value, TrustedKeys)> = None;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let value: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        let mut outcome = validate_line(&value, &mut previous_keys)
            .unwrap_or_else(|error| json!({ "status": "error", "error": error.to_string() }));
        if let (Some(id), Some(object)) = (value.get("id"), outcome.as_object_mut()) {
            object.insert(String::from("id"), id.clone());
        }
        writeln!(out, "{outcome}")?;
    }
    out.flush()
}

/// Validates the response of one input line; returns the output without `id`.
fn validate_line(
    value: &Value,
    previous_keys: &mut Option<(Value, TrustedKeys)>,
) -> Result<Value, Box<dyn Error>> {
    let question = value.get("question").ok_or("no question")?;
    let name = name_of(question.get("name"))?;
    let rtype = type_of(question.get("type"))?;
    let response = octets_of(value.get("response").ok_or("no response")?)?;
    let now = value.get("now").and_then(Value::as_u64).ok_or("no time")?;
    let keys = keys_of(value, previous_keys)?;
    let question = Question { name: name.view(), rtype };
    // Times are modulo 2^32 (RFC 4034 §3.1.5).
    let validation = validate_octets(question, &response, keys, now as u32, &mut Budget::default());
    Ok(render(&validation))
}

/// Returns the trusted keys of a line. Reuses `previous_keys`, those of the previous line, if they
/// are the same; otherwise replaces them.
fn keys_of<'k>(
    value: &Value,
    previous_keys: &'k mut Option<(Value, TrustedKeys)>,
) -> Result<&'k TrustedKeys, Box<dyn Error>> {
    let key_fields = json!([value.get("zone"), value.get("dnskey"), value.get("nsec5key")]);
    let keys = match previous_keys.take() {
        Some((previous, keys)) if previous == key_fields => keys,
        _ => {
            let apex = name_of(value.get("zone"))?;
            let (dnskeys, nsec5_keys) = (list_of(value.get("dnskey"))?, list_of(value.get("nsec5key"))?);
            let limits = ValidationLimits::default();
            let mut keys = TrustedKeys::new(&apex, dnskeys.iter().map(Vec::as_slice), &limits);
            keys.set_nsec5_keys(nsec5_keys.iter().map(Vec::as_slice), &limits);
            keys
        }
    };
    Ok(&previous_keys.insert((key_fields, keys)).1)
}

fn name_of(value: Option<&Value>) -> Result<Name, Box<dyn Error>> {
    let text = value.and_then(Value::as_str).ok_or("no name")?;
    Ok(text.parse().map_err(|error| format!("{text}: {error}"))?)
}

fn type_of(value: Option<&Value>) -> Result<Rtype, Box<dyn Error>> {
    let number = value.and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok()).map(Rtype);
    let text = value.and_then(Value::as_str).and_then(|text| text.parse().ok());
    Ok(number.or(text).ok_or("no type")?)
}

fn octets_of(value: &Value) -> Result<Vec<u8>, Box<dyn Error>> {
    let text = value.as_str().ok_or("no text of Base64")?;
    Ok(BASE64.decode(text.as_bytes()).map_err(|error| format!("Base64: {error}"))?)
}

/// Decodes a list of Base64 texts. A missing value is an empty list.
fn list_of(value: Option<&Value>) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let list = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    list.iter().map(octets_of).collect()
}

/// The output for a validation, without `id`.
fn render(validation: &Validation) -> Value {
    let work = validation.work;
    json!({
        "status": validation.status.name(),
        "reason": reason(&validation.status),
        "proved": validation.proved.as_ref().map(proved_name),
        "rcode": validation.rcode.to_string(),
        "signatures": work.signatures,
        "hashes": work.hashes,
        "vrf": work.proofs,
    })
}

/// Formats the name of the variant in lower case with hyphens, followed by its message.
fn reason(status: &SecurityStatus) -> Option<String> {
    let (debug, text) = match status {
        SecurityStatus::Secure => return None,
        SecurityStatus::Bogus(reason) => (format!("{reason:?}"), reason.to_string()),
        SecurityStatus::Insecure(insecurity) => (format!("{insecurity:?}"), insecurity.to_string()),
        SecurityStatus::Indeterminate(undecided) => (format!("{undecided:?}"), undecided.to_string()),
    };
    let mut code = String::new();
    for letter in debug.chars().take_while(char::is_ascii_alphanumeric) {
        if letter.is_ascii_uppercase() && !code.is_empty() {
            code.push('-');
        }
        code.push(letter.to_ascii_lowercase());
    }
    Some(format!("{code}: {text}"))
}

/// The value of `proved` in the output.
const fn proved_name(proved: &ProvedAnswer) -> &'static str {
    match proved {
        ProvedAnswer::Answer => "answer",
        ProvedAnswer::WildcardAnswer => "wildcard-answer",
        ProvedAnswer::NoData => "nodata",
        ProvedAnswer::WildcardNoData => "wildcard-nodata",
        ProvedAnswer::NxDomain => "nxdomain",
        ProvedAnswer::Referral { has_ds: true, .. } => "referral-signed",
        ProvedAnswer::Referral { has_ds: false, .. } => "referral-unsigned",
        ProvedAnswer::Alias { .. } => "alias",
        ProvedAnswer::DnameTooLong => "overlong",
    }
}
