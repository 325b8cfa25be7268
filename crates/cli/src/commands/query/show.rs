//! Output of a response as text and as JSON.

use super::chain;
use super::client::Received;
use super::error::QueryError;
use super::from_root::{Step, Steps};
use super::message::QueryTemplate;
use super::message::read_message;
use crate::outcome::CommandOutcome;
use nonesuch_lab::message_text::{
    EdnsOption, SECTIONS, edns_flag_names, flag_names, header_text, opcode_name, rcode_name, read_options,
    record_to_json, sections_text, type_and_rdata,
};
use nonesuch_net::{Transport, client::TlsParameters};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Question, Rcode, Record, Section};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::time::Duration;

/// A parsed response.
pub(super) struct ParsedResponse {
    received: Received,
    pub(super) message: Message,
    pub(super) options: Vec<EdnsOption>,
    pub(super) notes: Vec<String>,
    /// What the resolution did, if the command resolves by itself.
    pub(super) steps: Option<Steps>,
}

impl ParsedResponse {
    /// Parses a response to a query of `template`. A foreign cookie becomes a note.
    pub(super) fn read(mut received: Received, template: &QueryTemplate) -> Result<Self, QueryError> {
        let message = read_message(&received.octets, received.server)?;
        let options = read_options(&message);
        let mut notes = std::mem::take(&mut received.notes);
        let is_foreign = |option: &EdnsOption| {
            option.code == nonesuch_proto::edns::COOKIE
                && template.client_cookie().is_none_or(|own| !option.data.starts_with(own))
        };
        if options.iter().any(is_foreign) {
            notes.push("the cookie in the response does not match the cookie in the query".to_owned());
        }
        Ok(Self { received, message, options, notes, steps: None })
    }

    /// The outcome. It is negative if the server returned an error, or if the signature is missing
    /// or invalid.
    pub(super) fn outcome(&self) -> CommandOutcome {
        if self.failure_reasons().is_empty() { CommandOutcome::Done } else { CommandOutcome::Negative }
    }

    /// The reasons for a negative outcome; empty if the outcome is positive.
    pub(super) fn failure_reasons(&self) -> Vec<String> {
        let rcode = self.message.rcode();
        let is_answered = matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN);
        let server = self.received.server;
        let refused = (!is_answered).then(|| {
            let mut reasons = vec![rcode_name(rcode)];
            let errors = self.options.iter().filter(|option| option.extended_error().is_some());
            reasons.extend(errors.map(|option| format!("{} {}", option.name(), option.describe())));
            format!("{server}: {}", reasons.join(", "))
        });
        let unsigned = self.received.signature.as_ref().filter(|verdict| !verdict.is_valid);
        let unsigned = unsigned.map(|verdict| format!("{server}: TSIG {}", verdict.text));
        refused.into_iter().chain(unsigned).collect()
    }

    /// The records of a section, without the TSIG record.
    fn records(&self, section: Section) -> Vec<&Record> {
        self.message.section(section).filter(|record| record.rtype != Rtype::TSIG).collect()
    }

    /// The response as a zone file with comments; with `short`, only the RDATA of the answer
    /// section.
    pub(super) fn to_text(&self, short: bool) -> String {
        let answer = self.records(Section::Answer);
        if short {
            let lines = answer.iter().map(|record| type_and_rdata(record).1 + "\n");
            return lines.collect();
        }
        let steps = self.steps.as_ref().map(steps_text).unwrap_or_default();
        let mut text = steps + &header_text(&self.message) + &sections_text(|section| self.records(section));
        text.push('\n');
        for note in self.transport_notes() {
            let _ = writeln!(text, ";; {note}");
        }
        text
    }

    /// Notes about the transport of the response.
    fn transport_notes(&self) -> Vec<String> {
        let received = &self.received;
        let mut notes = self.notes.clone();
        notes.extend(received.tls.as_ref().map(describe_tls));
        notes.extend(received.signature.as_ref().map(|verdict| format!("TSIG {}", verdict.text)));
        if let Some(steps) = &self.steps {
            let elapsed = milliseconds(received.elapsed);
            notes.push(format!("queries to servers: {}; time: {elapsed:.3} ms", steps.queries.len()));
            return notes;
        }
        notes.push(format!(
            "{} octets from {} over {} in {:.3} ms",
            received.octets.len(),
            received.server,
            received.transport,
            milliseconds(received.elapsed)
        ));
        notes
    }

    pub(super) fn to_json(&self) -> Value {
        let header = self.message.header;
        let question = self.message.questions.iter().map(|Question { name, rtype, class }| {
            json!({ "name": name.to_string(), "class": class.to_string(), "type": rtype.to_string() })
        });
        let mut value = json!({
            "id": header.id,
            "opcode": opcode_name(header.opcode()),
            "rcode": rcode_name(self.message.rcode()),
            "flags": flag_names(header),
            "question": question.collect::<Vec<_>>(),
            "octets": self.received.octets.len(),
            "milliseconds": milliseconds(self.received.elapsed),
            "notes": self.notes,
            // RFC 8427 §2.4; `nonesuch validate` reads it.
            "messageOctetsHEX": data_encoding::HEXLOWER.encode(&self.received.octets),
        });
        if let Some(steps) = &self.steps {
            value["steps"] = steps.queries.iter().map(Step::to_json).collect();
            value["chain"] = steps.chain.iter().map(chain::to_json).collect();
        } else {
            value["server"] = json!(self.received.server.to_string());
            value["transport"] = json!(self.received.transport.to_string());
        }
        for (section, name) in SECTIONS {
            let records = self.records(section);
            value[name.to_lowercase()] = records.into_iter().map(record_to_json).collect();
        }
        if let Some(opt) = self.message.opt() {
            value["edns"] = json!({
                "version": opt.ttl >> 16 & 0xff,
                "payload": opt.class.0,
                "flags": edns_flag_names(opt.ttl as u16),
                "options": self.options.iter().map(option_to_json).collect::<Vec<_>>(),
            });
        }
        if let Some(parameters) = &self.received.tls {
            value["tls"] = json!({ "version": parameters.version, "cipher_suite": parameters.cipher_suite,
                "authenticated": parameters.authenticated });
        }
        if let Some(verdict) = &self.received.signature {
            value["tsig"] = json!({ "verified": verdict.is_valid, "text": verdict.text });
        }
        value
    }
}

/// The queries to servers and the chain of trust as comments, with an empty line after each.
fn steps_text(steps: &Steps) -> String {
    let queries: String = steps.queries.iter().map(|step| format!(";; {step}\n")).collect();
    if steps.chain.is_empty() {
        return queries + "\n";
    }
    let chain = steps.chain.iter().flat_map(chain::lines);
    let chain: String = chain.map(|line| format!(";; {line}\n")).collect();
    format!("{queries}\n;; CHAIN OF TRUST\n{chain}\n")
}

pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(super) fn option_to_json(option: &EdnsOption) -> Value {
    let mut value = json!({ "code": option.code, "name": option.name(), "text": option.describe(),
        "data": data_encoding::HEXLOWER.encode(&option.data) });
    if let Some((code, text)) = option.extended_error() {
        value["info_code"] = json!(code);
        value["extra_text"] = json!(String::from_utf8_lossy(text));
    }
    value
}

/// The negotiated parameters of a TLS connection.
pub(super) fn describe_tls(parameters: &TlsParameters) -> String {
    let certificate = if parameters.authenticated {
        "certificate verified"
    } else {
        "certificate not verified (use --tls-ca FILE)"
    };
    format!("{} {} {}, {certificate}", Transport::Tls, parameters.version, parameters.cipher_suite)
}
