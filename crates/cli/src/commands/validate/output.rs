//! The results as text and as JSON.

use super::line::{Invalid, Response};
use crate::files::count_text;
use nonesuch_dnssec::validate::ProvedAnswer;
use nonesuch_proto::message::Message;
use nonesuch_resolver::recorded::{RecordedResult, RecordedValidation};
use serde_json::{Value, json};
use std::fmt;
use std::path::Path;

/// The number of responses by status, and of invalid lines.
#[derive(Debug, Default)]
pub(super) struct Summary {
    secure: usize,
    insecure: usize,
    bogus: usize,
    indeterminate: usize,
    pub(super) invalid: usize,
}

impl Summary {
    pub(super) fn count(&mut self, validation: &RecordedValidation) {
        let count = match validation.status() {
            "secure" => &mut self.secure,
            "insecure" => &mut self.insecure,
            "bogus" => &mut self.bogus,
            _ => &mut self.indeterminate,
        };
        *count += 1;
    }

    pub(super) const fn responses(&self) -> usize {
        self.secure + self.insecure + self.bogus + self.indeterminate
    }

    /// Whether all responses are secure or insecure.
    pub(super) const fn is_positive(&self) -> bool {
        self.bogus + self.indeterminate == 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { secure, insecure, bogus, indeterminate, invalid } = self;
        let responses = count_text(self.responses(), "response");
        write!(
            f,
            "{responses}: {secure} secure, {insecure} insecure, {bogus} bogus, {indeterminate} indeterminate"
        )?;
        if *invalid > 0 { write!(f, "; {}", count_text(*invalid, "invalid line")) } else { Ok(()) }
    }
}

/// `FILE:LINE: NAME TYPE: STATUS, PROVED CONTENT: REASON (RULE)`.
pub(super) fn to_text(
    path: &Path,
    number: usize,
    response: &Response,
    validation: &RecordedValidation,
) -> String {
    let Response { name, rtype, .. } = response;
    let mut text = format!("{}:{number}: {name} {rtype}: {}", path.display(), validation.status());
    if let Some(proved) = validation.proved() {
        text = format!("{text}, {}", proved_name(proved));
    }
    match validation.reason() {
        Some((reason, rule)) => format!("{text}: {reason} ({rule})"),
        None => text,
    }
}

pub(super) fn to_json(number: usize, response: &Response, validation: &RecordedValidation) -> Value {
    let reason = validation.reason();
    let rcode = match &validation.result {
        RecordedResult::Validated(validation) => Some(validation.rcode),
        RecordedResult::Insecure(..) | RecordedResult::Broken(_) => {
            Message::parse(&response.octets).ok().map(|message| message.rcode())
        }
    };
    let mut value = json!({
        "line": number,
        "question": { "name": response.name.to_string(), "type": response.rtype.to_string() },
        "zone": validation.zone.as_ref().map(ToString::to_string),
        "rcode": rcode.map(|rcode| rcode.to_string()),
        "status": validation.status(),
        "proved": validation.proved().map(proved_name),
        "reason": reason.as_ref().map(|(reason, _)| reason),
        "rule": reason.as_ref().map(|(_, rule)| rule),
        "info_code": validation.extended_error(),
        "signatures": validation.work.signatures,
        "hashes": validation.work.hashes,
        "vrf": validation.work.proofs,
    });
    insert_id(&mut value, response.id.as_deref());
    value
}

pub(super) fn invalid_to_json(number: usize, invalid: &Invalid) -> Value {
    let mut value = json!({ "line": number, "status": "error", "error": invalid.fault.to_string() });
    insert_id(&mut value, invalid.id.as_deref());
    value
}

fn insert_id(value: &mut Value, id: Option<&str>) {
    if let Some(id) = id.and_then(|id| serde_json::from_str(id).ok()) {
        value["id"] = id;
    }
}

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
