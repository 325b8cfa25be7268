//! Properties of messages in the form in which they are compared and shown.

use crate::describe::{FLAGS, FlagNames, read_opt};
use nonesuch_proto::message::{Message, Question, Record, Section};
use nonesuch_proto::{NameRef, Rtype, rdata};
use std::collections::BTreeSet;
use std::fmt;

/// Returns the records of a section without OPT and TSIG, which dnspython does not count either.
pub(super) fn comparable_records(message: &Message, section: Section) -> impl Iterator<Item = &Record> {
    message.section(section).filter(|record| record.rtype != Rtype::TSIG)
}

/// Returns octets that are equal for equal records.
pub(super) fn key(record: &Record, compares_ttl: bool) -> Vec<u8> {
    let mut key = Vec::new();
    record.owner.view().push_canonical(&mut key);
    key.extend_from_slice(&record.class.0.to_be_bytes());
    key.extend_from_slice(&record.rtype.0.to_be_bytes());
    key.extend_from_slice(&if compares_ttl { record.ttl } else { 0 }.to_be_bytes());
    rdata::push_canonical(record.rtype, &record.rdata, &mut key);
    key
}

pub(super) fn question(message: &Message) -> Option<&Question> {
    message.questions.first()
}

pub(super) fn text(value: Option<impl fmt::Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

pub(super) fn flags(message: &Message) -> String {
    let known = FLAGS.iter().fold(0, |mask, (bit, _)| mask | bit);
    FlagNames(message.header.flags & known).to_string()
}

/// Displays version and payload size.
pub(super) struct Pair(pub(super) (u8, u16));

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {}, payload {}", self.0.0, self.0.1)
    }
}

/// Displays octets as hexadecimal digits.
pub(super) struct Hex<'o>(pub(super) &'o [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&data_encoding::HEXLOWER.encode(self.0))
    }
}

/// Returns the option with the code `code` as text.
pub(super) fn option(message: &Message, code: u16) -> String {
    text(read_opt(message).and_then(|opt| opt.option(code).map(Hex)))
}

pub(super) fn edns_text(message: &Message) -> String {
    let Some(opt) = read_opt(message) else { return "no EDNS".to_owned() };
    format!(
        "EDNS version {}, payload {}, flags {:#06x}, options {}",
        opt.version,
        opt.payload,
        opt.flags,
        Hex(opt.options)
    )
}

/// Returns the types in the answer section. With `signatures`, RRSIG is listed by its covered type.
pub(super) fn types(message: &Message, signatures: bool) -> String {
    let types: BTreeSet<String> = message
        .section(Section::Answer)
        .filter_map(|record| match (record.rtype, record.rdata.first_chunk()) {
            (Rtype::RRSIG, Some(covered)) if signatures => {
                Some(format!("RRSIG({})", Rtype(u16::from_be_bytes(*covered))))
            }
            (Rtype::RRSIG, _) => None,
            (rtype, _) => Some(rtype.to_string()),
        })
        .collect();
    types.into_iter().collect::<Vec<_>>().join(" ")
}

/// Returns the serial of the first SOA record in the authority section.
pub(super) fn soa_serial(message: &Message) -> Option<u32> {
    let soa = message.section(Section::Authority).find(|record| record.rtype.0 == 6)?;
    let (_, rest) = NameRef::split_from(&soa.rdata).ok()?;
    let (_, rest) = NameRef::split_from(rest).ok()?;
    rest.first_chunk().map(|serial| u32::from_be_bytes(*serial))
}
