//! Joins two responses to one query.

use nonesuch_proto::message::{Header, MessageError, Rcode, flags, read_record};
use nonesuch_proto::{Name, Rtype};
use std::collections::{HashMap, HashSet};

/// Octets of the header of a message.
const HEADER: usize = 12;
/// Maximum size of a response over UDP, whatever the client accepts: that of `nonesuch serve`.
const UDP_MAX: u16 = 1232;
/// Maximum size of a response over UDP to a query without EDNS (RFC 1035 §4.2.1).
const UDP_WITHOUT_EDNS: u16 = 512;
/// Maximum size of a message.
const MESSAGE_MAX: usize = 65_535;
/// Maximum offset of a compression pointer (RFC 1035 §4.1.4).
const POINTER_MAX: usize = 0x3fff;
/// The two high bits of a compression pointer.
const POINTER: u16 = 0xc000;

/// The reason why two responses cannot be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JoinError {
    #[error("the responses differ in more than their denial records")]
    Different,
    #[error("the records of both do not fit into a message")]
    TooLarge,
    #[error(transparent)]
    Malformed(#[from] MessageError),
}

/// A record of a message with uncompressed names.
struct WireRecord {
    section: usize,
    owner: Vec<u8>,
    rtype: Rtype,
    class: u16,
    ttl: u32,
    rdata: Vec<u8>,
}

impl WireRecord {
    /// What equal records have in common, whatever their TTL.
    fn identity(&self) -> (Vec<u8>, Rtype, &[u8]) {
        (self.owner.to_ascii_lowercase(), self.rtype, &self.rdata)
    }
}

/// A message: its header, end of the question, end of the authority section, and records.
struct Parts {
    header: Header,
    question_end: usize,
    authority_end: usize,
    records: Vec<WireRecord>,
}

impl Parts {
    fn read(message: &[u8]) -> Result<Self, MessageError> {
        let header = Header::read(message).ok_or(MessageError::Truncated)?;
        let mut at = HEADER;
        for _ in 0..header.counts[0] {
            at = Name::from_message(message, at)?.1 + 4;
        }
        let mut parts = Self { header, question_end: at, authority_end: at, records: Vec::new() };
        for (section, count) in header.counts.into_iter().enumerate().skip(1) {
            for _ in 0..count {
                let (mut owner, mut rdata) = (Vec::new(), Vec::new());
                let (fields, end) = read_record(message, at, &mut owner, &mut rdata)?;
                let (rtype, class, ttl) = (fields.rtype, fields.class.0, fields.ttl);
                parts.records.push(WireRecord { section, owner, rtype, class, ttl, rdata });
                at = end;
            }
            if section < ADDITIONAL {
                parts.authority_end = at;
            }
        }
        Ok(parts)
    }

    fn answers(&self) -> impl Iterator<Item = &WireRecord> {
        self.records.iter().filter(|record| record.section == ANSWER)
    }
}

/// Indexes of sections in the counts of a header.
const ANSWER: usize = 1;
const AUTHORITY: usize = 2;
const ADDITIONAL: usize = 3;

/// Returns the response `old` with the authority records of `new` that it lacks. A type that only
/// one version of the zone has, such as NSEC3PARAM, is answered by that version alone.
///
/// # Errors
/// If the response codes or the answers differ otherwise, or a message is malformed.
pub(super) fn join(old: &[u8], new: &[u8]) -> Result<Vec<u8>, JoinError> {
    let (mine, theirs) = (Parts::read(old)?, Parts::read(new)?);
    if mine.header.rcode() != theirs.header.rcode() {
        return Err(JoinError::Different);
    }
    match (mine.answers().count(), theirs.answers().count()) {
        (1.., 0) => return Ok(old.to_vec()),
        (0, 1..) => return Ok(new.to_vec()),
        _ => {}
    }
    let known: HashSet<_> = mine.records.iter().map(WireRecord::identity).collect();
    if theirs.answers().any(|record| !known.contains(&record.identity())) {
        return Err(JoinError::Different);
    }
    let is_added = |record: &&WireRecord| record.section == AUTHORITY && !known.contains(&record.identity());
    let added: Vec<&WireRecord> = theirs.records.iter().filter(is_added).collect();
    let mut out = old[..mine.authority_end].to_vec();
    let mut names = NameOffsets::default();
    names.learn(&out, HEADER);
    let additional = mine.records.iter().filter(|record| record.section == ADDITIONAL);
    added.iter().copied().chain(additional).for_each(|record| push_record(record, &mut names, &mut out));
    let mut counts = mine.header.counts;
    counts[AUTHORITY] += added.len() as u16;
    out[..HEADER].copy_from_slice(&Header { counts, ..mine.header }.to_octets());
    if out.len() > MESSAGE_MAX { Err(JoinError::TooLarge) } else { Ok(out) }
}

/// The maximum size of a response over UDP to `query` (RFC 6891 §6.2.3).
pub(super) fn udp_limit(query: &[u8]) -> usize {
    let read = Parts::read(query).ok();
    let opt = read.and_then(|parts| parts.records.into_iter().find(|record| record.rtype == Rtype::OPT));
    usize::from(opt.map_or(UDP_WITHOUT_EDNS, |opt| opt.class.clamp(UDP_WITHOUT_EDNS, UDP_MAX)))
}

/// The response to `message` without records except OPT, with the flag TC (RFC 2181 §9).
pub(super) fn truncated(message: &[u8]) -> Result<Vec<u8>, MessageError> {
    Ok(without_records(message, &Parts::read(message)?, |flags| flags | flags::TC))
}

/// The response SERVFAIL to `query`; `None` if the query is malformed.
pub(super) fn server_failure(query: &[u8]) -> Option<Vec<u8>> {
    let parts = Parts::read(query).ok()?;
    let failed = |flags| flags & !flags::AD | flags::QR | Rcode::SERVFAIL.0;
    Some(without_records(query, &parts, failed))
}

/// The message without records except OPT, with other flags.
fn without_records(message: &[u8], parts: &Parts, change: impl Fn(u16) -> u16) -> Vec<u8> {
    let mut out = message[..parts.question_end].to_vec();
    let mut names = NameOffsets::default();
    let opt: Vec<&WireRecord> = parts.records.iter().filter(|record| record.rtype == Rtype::OPT).collect();
    opt.iter().for_each(|record| push_record(record, &mut names, &mut out));
    let counts = [parts.header.counts[0], 0, 0, opt.len() as u16];
    let header = Header { flags: change(parts.header.flags), counts, ..parts.header };
    out[..HEADER].copy_from_slice(&header.to_octets());
    out
}

/// Where a message has names, in lower case: targets of compression pointers.
#[derive(Default)]
struct NameOffsets(HashMap<Vec<u8>, u16>);

impl NameOffsets {
    /// Adds the uncompressed name at the offset `start` and its suffixes.
    fn learn(&mut self, message: &[u8], start: usize) {
        let mut at = start;
        let Some(end) = name_end(message, start) else { return };
        while at < end && at <= POINTER_MAX && message[at] != 0 {
            self.0.entry(message[at..end].to_ascii_lowercase()).or_insert(at as u16);
            at += 1 + usize::from(message[at]);
        }
    }

    /// Appends `name`, compressed (RFC 1035 §4.1.4), and adds it.
    fn push(&mut self, name: &[u8], out: &mut Vec<u8>) {
        let (start, mut at) = (out.len(), 0);
        while name[at] != 0 {
            let suffix = name[at..].to_ascii_lowercase();
            if let Some(offset) = self.0.get(&suffix) {
                out.extend_from_slice(&name[..at]);
                out.extend_from_slice(&(POINTER | offset).to_be_bytes());
                break;
            }
            at += 1 + usize::from(name[at]);
        }
        if name[at] == 0 {
            out.extend_from_slice(name);
        }
        let mut prefix = 0;
        while prefix < at && start + prefix <= POINTER_MAX {
            self.0.entry(name[prefix..].to_ascii_lowercase()).or_insert((start + prefix) as u16);
            prefix += 1 + usize::from(name[prefix]);
        }
    }
}

/// The end of the uncompressed name at the offset `at`.
fn name_end(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
}

fn push_record(record: &WireRecord, names: &mut NameOffsets, out: &mut Vec<u8>) {
    names.push(&record.owner, out);
    out.extend_from_slice(&record.rtype.0.to_be_bytes());
    out.extend_from_slice(&record.class.to_be_bytes());
    out.extend_from_slice(&record.ttl.to_be_bytes());
    // A record of a message has at most 65,535 octets of RDATA.
    out.extend_from_slice(&(record.rdata.len() as u16).to_be_bytes());
    out.extend_from_slice(&record.rdata);
}

#[cfg(test)]
mod tests;
