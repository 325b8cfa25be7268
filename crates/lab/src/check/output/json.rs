//! Results as JSON, with all messages.

use super::super::{CheckReport, Exchange, ItemResult};
use crate::message_text;
use data_encoding::HEXLOWER;
use nonesuch_proto::timestamp::Rfc3339;
use serde_json::{Value, json};
use std::time::UNIX_EPOCH;

impl CheckReport {
    /// The report as JSON: facts, numbers of results, and the results with all messages in hexadecimal and
    /// as text.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let summary = self.summary();
        let facts = self.facts.iter().map(|(term, value)| (term.clone(), json!(value)));
        json!({
            "kind": self.kind,
            "subject": self.subject,
            "profile": self.profile.name(),
            "started_at": self.started_at_text(),
            "facts": Value::Object(facts.collect()),
            "passed": summary.passed,
            "failed": summary.failed,
            "not_testable": summary.not_testable,
            "items": self.results.iter().map(result_to_json).collect::<Vec<_>>(),
        })
    }

    /// The start of the check in the format of RFC 3339.
    pub(super) fn started_at_text(&self) -> String {
        let seconds = self.started_at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Rfc3339(seconds).to_string()
    }
}

fn result_to_json(result: &ItemResult) -> Value {
    let evidence = &result.evidence;
    json!({
        "id": result.item.id,
        "subject": result.item.subject,
        "rules": result.item.rules,
        "method": result.item.method,
        "result": result.outcome.name(),
        "text": result.outcome.text(),
        "seconds": result.elapsed.as_secs_f64(),
        "notes": evidence.notes,
        "exchanges": evidence.exchanges.iter().map(exchange_to_json).collect::<Vec<_>>(),
        "omitted_exchanges": evidence.omitted,
    })
}

fn exchange_to_json(exchange: &Exchange) -> Value {
    let mut value = json!({
        "sender": exchange.sender,
        "server": exchange.server.to_string(),
        "transport": exchange.transport.name(),
        "milliseconds": exchange.elapsed.as_secs_f64() * 1e3,
        "query": HEXLOWER.encode(&exchange.query),
        "query_text": message_text::to_text(&exchange.query),
    });
    match &exchange.reply {
        Ok(octets) => {
            value["response"] = json!(HEXLOWER.encode(octets));
            value["response_text"] = json!(message_text::to_text(octets));
        }
        Err(fault) => value["fault"] = json!(fault),
    }
    value
}
