//! Collects the records of a message into RRsets.

use crate::record::{RecordData, Rrset, Security};
use nonesuch_proto::message::{Message, Record, Section};
use nonesuch_proto::{Class, NameRef, Rtype};

/// Maximum TTL (RFC 2181 §8): a larger value counts as 0.
const TTL_MAX: u32 = i32::MAX as u32;
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
    let mut rrsets: Vec<ReceivedRrset> = Vec::new();
    let usable = |record: &&Record| {
        record.class == Class::IN && !record.rtype.is_meta() && record.owner.view().is_at_or_below(zone)
    };
    let (signatures, data): (Vec<&Record>, Vec<&Record>) =
        message.records.iter().filter(usable).partition(|record| record.rtype == Rtype::RRSIG);
    for record in data {
        add(&mut rrsets, record, |rrset| &mut rrset.records);
    }
    for signature in signatures {
        let covered =
            signature.rdata.get(..TYPE_COVERED).map(|octets| u16::from_be_bytes([octets[0], octets[1]]));
        let covers = |received: &&mut ReceivedRrset| {
            received.section == signature.section
                && Some(received.rrset.rtype.0) == covered
                && received.rrset.owner == signature.owner
        };
        match rrsets.iter_mut().find(covers) {
            Some(received) => push_once(&mut received.rrset.signatures, &signature.rdata),
            None => add(&mut rrsets, signature, |rrset| &mut rrset.records),
        }
    }
    rrsets
}

/// Adds a record to its RRset.
fn add(rrsets: &mut Vec<ReceivedRrset>, record: &Record, part: fn(&mut Rrset) -> &mut RecordData) {
    let ttl = if record.ttl > TTL_MAX { 0 } else { record.ttl };
    let is_same = |received: &&mut ReceivedRrset| {
        received.section == record.section
            && received.rrset.rtype == record.rtype
            && received.rrset.owner == record.owner
    };
    if let Some(received) = rrsets.iter_mut().find(is_same) {
        received.rrset.ttl = received.rrset.ttl.min(ttl);
        push_once(part(&mut received.rrset), &record.rdata);
        return;
    }
    let mut rrset = Rrset {
        owner: record.owner.clone(),
        rtype: record.rtype,
        class: record.class,
        ttl,
        records: RecordData::default(),
        signatures: RecordData::default(),
        security: Security::Unchecked,
    };
    part(&mut rrset).push(&record.rdata);
    rrsets.push(ReceivedRrset { section: record.section, rrset });
}

fn push_once(records: &mut RecordData, rdata: &[u8]) {
    if !records.iter().any(|known| known == rdata) {
        records.push(rdata);
    }
}
