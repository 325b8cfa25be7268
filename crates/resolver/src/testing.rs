//! Messages for tests, from text.

use crate::record::Rrset;
use nonesuch_net::machine::Now;
use nonesuch_proto::message::{Header, Message, Question, Rcode, Record, Section, flags};
use nonesuch_proto::text::Token;
use nonesuch_proto::{Class, Name, Rtype, rdata};
use std::time::Instant;

/// Returns a time.
pub(crate) fn now() -> Now {
    Now { instant: Instant::now(), unix: 1_700_000_000 }
}

/// Returns the name in the text.
pub(crate) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// Returns the record in the text: owner, TTL, type and RDATA, separated by spaces.
pub(crate) fn record(section: Section, text: &str) -> Record {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [owner, ttl, rtype, fields @ ..] = words.as_slice() else { panic!("{text}") };
    let token = |word: &&'static str| Token { octets: word.as_bytes(), quoted: false, at: 0 };
    let fields: Vec<&'static str> = fields.iter().map(|word| &*word.to_string().leak()).collect();
    let tokens: Vec<Token<'_>> = fields.iter().map(token).collect();
    let rtype = Rtype::from_mnemonic(rtype.as_bytes()).expect("a type");
    let mut octets = Vec::new();
    rdata::push_from_tokens(rtype, &tokens, None, &mut octets).expect(text);
    let (owner, ttl) = (name(owner), ttl.parse().expect("a TTL"));
    Record { section, owner, rtype, class: Class::IN, ttl, rdata: octets }
}

/// Returns a response to the question. `lines` are records; a line of the word `authority` or
/// `additional` begins this section.
pub(crate) fn response(question: (&str, Rtype), rcode: Rcode, lines: &[&str]) -> Message {
    let mut section = Section::Answer;
    let mut records = Vec::new();
    for line in lines {
        match *line {
            "authority" => section = Section::Authority,
            "additional" => section = Section::Additional,
            line => records.push(record(section, line)),
        }
    }
    let questions = vec![Question { name: name(question.0), rtype: question.1, class: Class::IN }];
    let header = Header { id: 1, flags: flags::QR | flags::AA | rcode.0, counts: [0; 4] };
    Message { header, questions, records }
}

/// Returns the RRset of these records, which have one owner and one type.
pub(crate) fn rrset(lines: &[&str]) -> Rrset {
    let records: Vec<Record> = lines.iter().map(|line| record(Section::Answer, line)).collect();
    let first = records.first().expect("a record");
    Rrset {
        owner: first.owner.clone(),
        rtype: first.rtype,
        class: first.class,
        ttl: first.ttl,
        records: records.iter().map(|record| record.rdata.as_slice()).collect(),
        signatures: <_>::default(),
        security: <_>::default(),
        insecure: None,
    }
}
