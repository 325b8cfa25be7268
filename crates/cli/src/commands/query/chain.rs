//! The steps of a validation as text and as JSON.

use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::validate::{ProvedAnswer, RrsetOutcome, RrsetStatus, SecurityStatus, Validation};
use nonesuch_proto::{Name, Rtype};
use nonesuch_resolver::{Decision, TraceStep};
use serde_json::{Value, json};

/// A line for the response, and an indented line for each RRset that the validation needed.
pub(super) fn lines(step: &TraceStep) -> Vec<String> {
    let TraceStep { name, rtype, decision, .. } = step;
    let mut lines = vec![format!("{name} {rtype}: {}", describe(decision))];
    if let Decision::Validated { zone, validation, .. } = decision {
        let rrsets = validation.rrsets.iter();
        let rrsets = rrsets.filter_map(|rrset| Some((rrset, rrset_text(step, zone, rrset)?)));
        lines.extend(rrsets.map(|(rrset, text)| format!("  {} {}: {text}", rrset.owner, rrset.rtype)));
    }
    lines
}

pub(super) fn to_json(step: &TraceStep) -> Value {
    let TraceStep { name, rtype, decision, .. } = step;
    let mut value = json!({
        "name": name.to_string(),
        "type": rtype.to_string(),
        "status": status(decision),
        "text": describe(decision),
    });
    match decision {
        Decision::Validated { zone, validation, .. } => {
            value["zone"] = json!(zone.to_string());
            value["proved"] = json!(validation.proved.as_ref().map(proved_text));
            let rrsets = validation.rrsets.iter().map(|rrset| rrset_to_json(step, zone, rrset));
            value["rrsets"] = rrsets.collect();
        }
        Decision::Insecure(cut, _) => value["zone"] = json!(cut.to_string()),
        Decision::NoKeys(code, _) => value["info_code"] = json!(code),
    }
    if let Some((reason, rule)) = reason(decision) {
        (value["reason"], value["rule"]) = (json!(reason), json!(rule));
    }
    value
}

fn rrset_to_json(step: &TraceStep, zone: &Name, rrset: &RrsetOutcome) -> Value {
    let signatures = signatures(step, zone, rrset).into_iter();
    let signatures =
        signatures.map(|(tag, algorithm)| json!({ "tag": tag, "algorithm": algorithm.to_string() }));
    let mut value = json!({
        "owner": rrset.owner.to_string(),
        "type": rrset.rtype.to_string(),
        "status": rrset_status(&rrset.status),
        "keys": signatures.collect::<Vec<_>>(),
    });
    if let RrsetStatus::Bogus(reason) = &rrset.status {
        (value["reason"], value["rule"]) = (json!(reason.to_string()), json!(reason.rule()));
    }
    value
}

/// The status in RFC 4033 §5.
fn status(decision: &Decision) -> &'static str {
    match decision {
        Decision::Validated { validation, .. } => validation.status.name(),
        Decision::Insecure(..) => "insecure",
        Decision::NoKeys(..) => "bogus",
    }
}

const fn rrset_status(status: &RrsetStatus) -> &'static str {
    match status {
        RrsetStatus::Secure => "secure",
        RrsetStatus::Synthesised => "synthesised",
        RrsetStatus::Proven => "proven",
        RrsetStatus::Unsigned => "unsigned",
        RrsetStatus::Bogus(_) => "bogus",
        RrsetStatus::Unused => "unused",
    }
}

/// Why the response is not secure, and by which rule.
pub(super) fn reason(decision: &Decision) -> Option<(String, &'static str)> {
    Some(match decision {
        Decision::Validated { validation, .. } => match &validation.status {
            SecurityStatus::Secure => return None,
            SecurityStatus::Insecure(reason) => (reason.to_string(), reason.rule()),
            SecurityStatus::Bogus(reason) => (reason.to_string(), reason.rule()),
            SecurityStatus::Indeterminate(reason) => (reason.to_string(), reason.rule()),
        },
        Decision::Insecure(_, reason) => (reason.to_string(), reason.rule()),
        Decision::NoKeys(_, text) => (text.to_string(), "RFC 4035 §5.2"),
    })
}

fn describe(decision: &Decision) -> String {
    let mut text = status(decision).to_owned();
    match decision {
        Decision::Validated { validation, .. } => {
            if let Validation { proved: Some(proved), .. } = &**validation {
                text = format!("{text}, {}", proved_text(proved));
            }
        }
        Decision::Insecure(cut, _) => text = format!("{text} at and below {cut}"),
        Decision::NoKeys(..) => {}
    }
    match reason(decision) {
        Some((reason, rule)) => format!("{text}: {reason} ({rule})"),
        None => text,
    }
}

fn proved_text(proved: &ProvedAnswer) -> String {
    match proved {
        ProvedAnswer::Answer => "answer".to_owned(),
        ProvedAnswer::WildcardAnswer => "answer from a wildcard".to_owned(),
        ProvedAnswer::NoData => "no data".to_owned(),
        ProvedAnswer::WildcardNoData => "no data at a wildcard".to_owned(),
        ProvedAnswer::NxDomain => "the name does not exist".to_owned(),
        ProvedAnswer::Referral { child, has_ds: true } => format!("signed delegation {child}"),
        ProvedAnswer::Referral { child, has_ds: false } => format!("unsigned delegation {child}"),
        ProvedAnswer::Alias { target } => format!("alias of {target}"),
        ProvedAnswer::DnameTooLong => "the target of the DNAME record is too long".to_owned(),
    }
}

/// What the validation decided about an RRset; `None` if it did not need it.
fn rrset_text(step: &TraceStep, zone: &Name, rrset: &RrsetOutcome) -> Option<String> {
    Some(match &rrset.status {
        RrsetStatus::Secure => {
            let keys = signatures(step, zone, rrset).into_iter();
            let keys: Vec<String> = keys.map(|(tag, algorithm)| format!("{tag} ({algorithm})")).collect();
            let named =
                if rrset.rtype == Rtype::DNSKEY { ", which its DS RRset or trust anchor names" } else { "" };
            format!("signed by key {} of {zone}{named}", keys.join(", "))
        }
        RrsetStatus::Synthesised => "follows from the DNAME record".to_owned(),
        RrsetStatus::Proven => format!("verified with the NSEC5 key of {zone}"),
        RrsetStatus::Bogus(reason) => format!("bogus: {reason} ({})", reason.rule()),
        RrsetStatus::Unsigned | RrsetStatus::Unused => return None,
    })
}

/// Key tags and algorithms of the signatures over an RRset by trusted keys of the zone.
fn signatures(step: &TraceStep, zone: &Name, rrset: &RrsetOutcome) -> Vec<(u16, Algorithm)> {
    let Decision::Validated { keys, .. } = &step.decision else { return Vec::new() };
    let records = step.message.section(rrset.section);
    let records = records.filter(|record| record.rtype == Rtype::RRSIG && record.owner == rrset.owner);
    let signatures = records.filter_map(|record| Rrsig::parse(&record.rdata));
    let signatures = signatures.filter(|rrsig| rrsig.covered == rrset.rtype && rrsig.signer == zone.view());
    let signatures = signatures.map(|rrsig| (rrsig.tag, rrsig.algorithm));
    signatures.filter(|signature| keys.contains(signature)).collect()
}
