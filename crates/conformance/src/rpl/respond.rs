//! Builds the message that a simulated server sends for an entry, as `Entry.reply` of
//! `pydnstest/scenario.py` (Deckard) and `adjust_packet` of `testcode/testpkts.c` (Unbound).

use super::Dialect;
use super::entry::{Entry, opt_record};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Header, Message, Rcode, flags};

/// Payload size of adjusted messages, in octets: the default of dnspython.
const ADJUSTED_PAYLOAD: u16 = 1232;

/// Returns the message for `query` according to the entry; `None` if the server does not answer.
#[must_use]
pub fn respond(entry: &Entry, dialect: Dialect, query: &Message) -> Option<Vec<u8>> {
    let adjust = entry.adjust;
    if adjust.is_silent {
        return None;
    }
    match (dialect, &entry.raw) {
        (Dialect::Deckard, Some(raw)) => Some(adjust_raw(raw, adjust.copies_id_to_raw, query)),
        (Dialect::Deckard, None) => Some(respond_as_deckard(entry, query)),
        (Dialect::Unbound, Some(raw)) => Some(match Message::parse(raw) {
            Ok(message) => adjust_as_unbound(message, entry, query),
            Err(_) => adjust_raw(raw, adjust.copies_id, query),
        }),
        (Dialect::Unbound, None) => Some(adjust_as_unbound(entry.message.clone(), entry, query)),
    }
}

/// Returns the response with which Deckard answers a query that no entry matches: SERVFAIL.
#[must_use]
pub fn servfail(query: &Message) -> Vec<u8> {
    let kept = query.header.flags & (flags::OPCODE | flags::RD);
    let header = Header { id: query.header.id, flags: flags::QR | kept | Rcode::SERVFAIL.0, counts: [0; 4] };
    let opt = query.opt().map(|_| opt_record(ADJUSTED_PAYLOAD, 0, Vec::new()));
    Message { header, questions: query.questions.clone(), records: opt.into_iter().collect() }.to_octets()
}

/// Returns RAW octets, with the ID of the query if `copies_id`.
fn adjust_raw(raw: &[u8], copies_id: bool, query: &Message) -> Vec<u8> {
    let mut octets = raw.to_vec();
    if let Some(id) = octets.first_chunk_mut().filter(|_| copies_id) {
        *id = query.header.id.to_be_bytes();
    }
    octets
}

fn respond_as_deckard(entry: &Entry, query: &Message) -> Vec<u8> {
    let mut message = entry.message.clone();
    // An entry has a random ID.
    message.header.id = if entry.adjust.copies_id { query.header.id } else { !query.header.id };
    if !entry.adjust.copies_id && !entry.adjust.copies_question {
        return message.to_octets();
    }
    let names = (message.questions.first_mut(), query.questions.first());
    if let (Some(question), Some(asked), true) = (names.0, names.1, entry.adjust.copies_id) {
        question.name = asked.name.clone();
    }
    if entry.adjust.copies_question {
        message.questions.clone_from(&query.questions);
    }
    copy_edns(&mut message, query);
    message.to_octets()
}

/// Gives `message` the EDNS version and flags of the query, or no EDNS.
fn copy_edns(message: &mut Message, query: &Message) {
    let extended_rcode = message.rcode().0 >> 4;
    let options = message.opt().map(|opt| opt.rdata.clone()).unwrap_or_default();
    message.records.retain(|record| record.rtype != Rtype::OPT);
    let of_query = query.opt().map(|opt| opt.ttl & 0x00ff_ffff);
    if of_query.is_some() || extended_rcode != 0 {
        let ttl = of_query.unwrap_or(0) | u32::from(extended_rcode) << 24;
        message.records.push(opt_record(ADJUSTED_PAYLOAD, ttl, options));
    }
}

fn adjust_as_unbound(mut message: Message, entry: &Entry, query: &Message) -> Vec<u8> {
    if entry.adjust.copies_question && !query.questions.is_empty() {
        message.questions.clone_from(&query.questions);
    }
    if entry.adjust.copies_id {
        message.header.id = query.header.id;
    }
    message.to_octets()
}
