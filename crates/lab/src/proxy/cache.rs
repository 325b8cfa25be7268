//! The caches of faulty proxies. A correct proxy has none (RFC 5625 does not require one).

use super::fault::{Fault, Faults};
use super::message::question;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Section, flags};
use std::collections::HashMap;

/// Maximum number of entries. The cache is emptied when it is full.
const ENTRIES_MAX: usize = 256;

/// The types that some devices cache.
const CACHED_TYPES: [Rtype; 8] =
    [Rtype::A, Rtype::NS, Rtype::CNAME, Rtype::SOA, Rtype::PTR, Rtype::MX, Rtype::TXT, Rtype::AAAA];

/// Responses by question, in lower case.
#[derive(Debug, Default)]
pub(super) struct Cache {
    entries: HashMap<Vec<u8>, Vec<u8>>,
}

impl Cache {
    /// The response to a query, if it is in the cache.
    pub(super) fn answer(&self, query: &[u8], faults: Faults) -> Option<Vec<u8>> {
        if !faults.has_any(&[Fault::CacheWithoutRrsig, Fault::CacheRegardless]) {
            return None;
        }
        let mut response = self.entries.get(&question(query)?.to_ascii_lowercase())?.clone();
        response.get_mut(..2)?.copy_from_slice(query.get(..2)?);
        Some(response)
    }

    /// Adds a response, as the faults require.
    pub(super) fn add(&mut self, response: &[u8], faults: Faults) {
        let cached = if faults.has(Fault::CacheWithoutRrsig) {
            without_signatures(response)
        } else if faults.has(Fault::CacheRegardless) {
            Some(response.to_vec())
        } else {
            None
        };
        let (Some(cached), Some(asked)) = (cached, question(response)) else { return };
        if self.entries.len() >= ENTRIES_MAX {
            self.entries.clear();
        }
        self.entries.insert(asked.to_ascii_lowercase(), cached);
    }
}

/// The answer of a type that is cached, with only the records of these types.
fn without_signatures(response: &[u8]) -> Option<Vec<u8>> {
    let mut message = Message::parse(response).ok()?;
    let asked = message.questions.first()?.rtype;
    if message.rcode() != Rcode::NOERROR
        || message.header.flags & flags::TC != 0
        || !CACHED_TYPES.contains(&asked)
    {
        return None;
    }
    message
        .records
        .retain(|record| record.section == Section::Answer && CACHED_TYPES.contains(&record.rtype));
    (!message.records.is_empty()).then(|| message.to_octets())
}
