//! Collects the records of a message into RRsets.

use crate::record::{RecordData, Rrset, Security};
use nonesuch_proto::message::{Message, Record, Section};
use nonesuch_proto::{Class, NameRef, Rtype};
use std::collections::HashMap;

/// Maximum TTL (RFC 2181 §8): a larger value counts as 0.
const TTL_MAX: u32 = i32::MAX as u32;
/// Number of records of a message whose RRsets are searched one by one.
const RECORDS_WITHOUT_INDEX: usize = 64;
/// Octets of the records of an RRset in which duplicates are searched.
const OCTETS_WITH_SEARCH: usize = 8192;
/// Octets of the fixed part of RRSIG RDATA before the type that it covers ends.
const TYPE_COVERED: usize = 2;

/// An RRset of a message, with its signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedRrset {
    pub(crate) section: Section,
    pub(crate) rrset: Rrset,
}

/// Collects the RRsets of a message whose owners are in `zone`, in order. RRSIG records are with
/// the RRset that they cover; the remaining ones are an RRset of type RRSIG. Records of other
/// classes than IN, and of meta types, are dropped.
pub(crate) fn collect_rrsets(message: &Message, zone: NameRef<'_>) -> Vec<ReceivedRrset> {
    let usable = |record: &&Record| {
        record.class == Class::IN && !record.rtype.is_meta() && record.owner.view().is_at_or_below(zone)
    };
    let (signatures, data): (Vec<&Record>, Vec<&Record>) =
        message.records.iter().filter(usable).partition(|record| record.rtype == Rtype::RRSIG);
    let mut collector = Collector::new(message.records.len());
    data.into_iter().for_each(|record| collector.add(record));
    signatures.into_iter().for_each(|signature| collector.add_signature(signature));
    collector.rrsets
}

/// The RRsets so far.
struct Collector<'m> {
    rrsets: Vec<ReceivedRrset>,
    /// Their positions, for messages with many records: the search must not take long.
    index: Option<HashMap<(Section, Rtype, NameRef<'m>), usize>>,
}

impl<'m> Collector<'m> {
    fn new(records: usize) -> Self {
        Self { rrsets: Vec::new(), index: (records > RECORDS_WITHOUT_INDEX).then(HashMap::new) }
    }

    fn find(&self, record: &'m Record, rtype: Rtype) -> Option<usize> {
        if let Some(index) = &self.index {
            return index.get(&(record.section, rtype, record.owner.view())).copied();
        }
        self.rrsets.iter().position(|received| {
            received.section == record.section
                && received.rrset.rtype == rtype
                && received.rrset.owner == record.owner
        })
    }

    /// Adds a record to its RRset.
    fn add(&mut self, record: &'m Record) {
        let ttl = if record.ttl > TTL_MAX { 0 } else { record.ttl };
        if let Some(position) = self.find(record, record.rtype) {
            let rrset = &mut self.rrsets[position].rrset;
            rrset.ttl = rrset.ttl.min(ttl);
            push_once(&mut rrset.records, &record.rdata);
            return;
        }
        if let Some(index) = &mut self.index {
            index.insert((record.section, record.rtype, record.owner.view()), self.rrsets.len());
        }
        let rrset = Rrset {
            owner: record.owner.clone(),
            rtype: record.rtype,
            class: record.class,
            ttl,
            records: [record.rdata.as_slice()].into_iter().collect(),
            signatures: RecordData::default(),
            security: Security::Unchecked,
            insecure: None,
        };
        self.rrsets.push(ReceivedRrset { section: record.section, rrset });
    }

    /// Adds a signature to the RRset that it covers.
    fn add_signature(&mut self, signature: &'m Record) {
        let covered = signature.rdata.first_chunk::<TYPE_COVERED>();
        let covered = covered.map(|octets| Rtype(u16::from_be_bytes(*octets)));
        match covered.and_then(|covered| self.find(signature, covered)) {
            Some(position) => push_once(&mut self.rrsets[position].rrset.signatures, &signature.rdata),
            None => self.add(signature),
        }
    }
}

/// Appends a record unless it is there already. Of large RRsets, which are not cached, duplicates may
/// remain: the search must not take long.
fn push_once(records: &mut RecordData, rdata: &[u8]) {
    if records.octets().len() > OCTETS_WITH_SEARCH || !records.iter().any(|known| known == rdata) {
        records.push(rdata);
    }
}
