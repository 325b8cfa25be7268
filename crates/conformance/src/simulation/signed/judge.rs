//! Compares replies with the results of the oracle.

use super::chain::CHAIN_TYPES;
use super::oracle::{Answer, Phase, Verdict};
use super::world::World;
use crate::describe::{MessageText, RecordText};
use crate::simulation::{Results, Violation};
use nonesuch_net::machine::ClientToken;
use nonesuch_proto::message::{Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Name, Rtype};
use std::collections::BTreeMap;

/// A client query.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) token: ClientToken,
    pub(super) name: Name,
    pub(super) rtype: Rtype,
    /// The flags RD, CD and AD.
    pub(super) flags: u16,
    pub(super) dnssec_ok: bool,
    pub(super) phase: Phase,
}

impl Asked {
    /// The ID of the query.
    pub(super) const fn id(&self) -> u16 {
        self.name.wire().len() as u16
    }

    const fn checks(&self) -> bool {
        self.flags & flags::CD == 0
    }

    /// Whether the client understands the AD flag (RFC 6840 §5.7).
    const fn requests_ad(&self) -> bool {
        self.checks() && (self.dnssec_ok || self.flags & flags::AD != 0)
    }

    fn question(&self) -> String {
        let cd = if self.checks() { "" } else { " CD" };
        let dnssec_ok = if self.dnssec_ok { " DO" } else { "" };
        format!("{} {}{cd}{dnssec_ok} ({:?})", self.name, self.rtype, self.phase)
    }
}

/// Judges the reply to a query.
pub(super) fn check_reply(
    world: &World,
    query: &Asked,
    message: &[u8],
    results: &mut Results,
) -> Result<(), Violation> {
    let question = query.question();
    let reply = Message::parse(message).ok().filter(|reply| {
        let asked = reply.questions.first();
        reply.header.id == query.id()
            && reply.header.flags & (flags::QR | flags::RA) == flags::QR | flags::RA
            && asked.is_some_and(|asked| asked.name == query.name && asked.rtype == query.rtype)
    });
    let Some(reply) = reply else { return Err(Violation::Malformed { question }) };
    results.replies += 1;
    let is_failure = reply.rcode() == Rcode::SERVFAIL;
    results.failures += u64::from(is_failure);
    let has_ad = reply.header.flags & flags::AD != 0;
    results.secure += u64::from(has_ad);
    let is_false = |record: &&Record| {
        record.rtype != Rtype::RRSIG && !world.is_permitted(&record.owner, record.rtype, &record.rdata)
    };
    if query.checks()
        && let Some(record) = reply.section(Section::Answer).find(is_false)
    {
        return Err(Violation::Forged { question, record: RecordText(record).to_string() });
    }
    let verdict = world.verdict(&query.name, query.rtype, query.checks(), query.phase);
    let Some(verdict) = verdict else { return Ok(()) };
    let untrue = |expected: String| Violation::Untrue {
        question: question.clone(),
        expected,
        reply: MessageText(&reply).to_string(),
    };
    if is_failure {
        results.bogus += u64::from(verdict.must_fail);
        let is_right = verdict.must_fail || verdict.may_fail;
        return if is_right { Ok(()) } else { Err(untrue(describe(&verdict))) };
    }
    if verdict.must_fail {
        return Err(untrue("SERVFAIL, because it is bogus".to_owned()));
    }
    if has_ad && !(query.requests_ad() && verdict.is_secure) {
        return Err(untrue("without AD".to_owned()));
    }
    if verdict.may_be_false && !is_true(&reply, &verdict) {
        return if has_ad { Err(untrue("secure".to_owned())) } else { Ok(()) };
    }
    results.compared += 1;
    if !is_true(&reply, &verdict) {
        return Err(untrue(describe(&verdict)));
    }
    if has_ad != (query.requests_ad() && verdict.is_secure) && !verdict.may_be_false {
        return Err(untrue("with AD".to_owned()));
    }
    match check_dnssec_records(query, &reply, &verdict) {
        Some(expected) => Err(untrue(expected.to_owned())),
        None => Ok(()),
    }
}

fn describe(verdict: &Verdict) -> String {
    let mut text = verdict.rcode.to_string();
    for Answer { owner, rtype, set } in &verdict.answer {
        text.push_str(&format!(", {owner} {} {rtype} ({})", set.ttl, set.rdatas.len()));
    }
    text + if verdict.is_secure { ", secure" } else { ", insecure" }
}

/// Whether a reply has the correct RCODE and records, with TTLs that are not too large.
fn is_true(reply: &Message, verdict: &Verdict) -> bool {
    let mut expected: BTreeMap<(Name, Rtype, &[u8]), u32> = BTreeMap::new();
    for Answer { owner, rtype, set } in &verdict.answer {
        expected.extend(set.rdatas.iter().map(|rdata| ((owner.clone(), *rtype, rdata.as_slice()), set.ttl)));
    }
    let is_data = |record: &&Record| record.rtype != Rtype::RRSIG;
    let records: Vec<&Record> = reply.section(Section::Answer).filter(is_data).collect();
    reply.rcode() == verdict.rcode
        && records.len() == expected.len()
        && records.iter().all(|record| {
            let key = (record.owner.clone(), record.rtype, record.rdata.as_slice());
            // Signatures limit the TTLs of secure data only.
            expected.get(&key).is_some_and(|ttl| !verdict.limits_ttls || record.ttl <= *ttl)
        })
}

/// Checks that a client with DO gets signatures and proofs of secure answers, and another one none
/// (RFC 4035 §3.2.1). Returns what is missing.
fn check_dnssec_records(query: &Asked, reply: &Message, verdict: &Verdict) -> Option<&'static str> {
    let is_dnssec = |record: &Record| record.rtype == Rtype::RRSIG || CHAIN_TYPES.contains(&record.rtype);
    if !query.dnssec_ok {
        return reply.records.iter().any(is_dnssec).then_some("without DNSSEC records");
    }
    if !verdict.is_secure || !query.checks() {
        return None;
    }
    let covers = |record: &Record, rtype: Rtype| {
        record.rtype == Rtype::RRSIG && record.rdata.starts_with(&rtype.0.to_be_bytes())
    };
    let has_signature = |answer: &Answer| {
        let mut records = reply.section(Section::Answer);
        records.any(|record| record.owner == answer.owner && covers(record, answer.rtype))
    };
    // CNAME records that follow from a DNAME record have no signature.
    let mut signed = verdict.answer.iter().filter(|answer| !answer.set.signatures.is_empty());
    if !signed.all(has_signature) {
        return Some("with signatures");
    }
    let is_negative = verdict.rcode == Rcode::NXDOMAIN || verdict.answer.is_empty();
    let mut authority = reply.section(Section::Authority);
    let has_proof = !is_negative || authority.any(|record| CHAIN_TYPES.contains(&record.rtype));
    (!has_proof).then_some("with a proof")
}
