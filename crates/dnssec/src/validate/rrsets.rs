//! Groups the records of a response into RRsets with the signatures over them.

use crate::rrsig::Rrsig;
use nonesuch_proto::message::{Message, Record, Section};
use nonesuch_proto::{Class, NameRef, Rtype, rdata};
use std::collections::HashMap;

/// Number of records of a message whose RRsets are searched one by one.
const RECORDS_WITHOUT_INDEX: usize = 64;

/// An RRset of one section.
#[derive(Debug)]
pub(super) struct Rrset<'m> {
    pub(super) section: Section,
    pub(super) owner: NameRef<'m>,
    pub(super) rtype: Rtype,
    /// The lowest TTL of its records, in seconds (RFC 2181 §5.2).
    pub(super) ttl: u32,
    /// RDATA in canonical order without duplicates (RFC 4034 §6.3).
    pub(super) rdatas: Vec<&'m [u8]>,
    /// The RRSIG records that cover it, in the order of the message.
    pub(super) signatures: Vec<&'m Record>,
}

impl Rrset<'_> {
    /// Number of octets of all RDATA.
    pub(super) fn rdata_octets(&self) -> usize {
        self.rdatas.iter().map(|rdata| rdata.len()).sum()
    }
}

type RrsetKey<'m> = (Section, NameRef<'m>, Rtype);

/// The RRsets of class IN of a response, in the order of their first records.
#[derive(Debug)]
pub(super) struct Rrsets<'m> {
    list: Vec<Rrset<'m>>,
    /// Their positions, for messages with many records: the search must not take long.
    indexes: Option<HashMap<RrsetKey<'m>, usize>>,
    /// Sections and owners of signatures that cover no RRset of the response.
    lone_signatures: Vec<(Section, NameRef<'m>)>,
}

impl<'m> Rrsets<'m> {
    /// Groups the records of a message. RRSIG records are attached to the RRsets that they cover;
    /// meta-types such as OPT are ignored.
    pub(super) fn from_message(message: &'m Message) -> Self {
        let indexes = (message.records.len() > RECORDS_WITHOUT_INDEX).then(HashMap::new);
        let mut rrsets = Self { list: Vec::new(), indexes, lone_signatures: Vec::new() };
        let is_data = |record: &&Record| record.class == Class::IN && !record.rtype.is_meta();
        for record in message.records.iter().filter(is_data) {
            if record.rtype != Rtype::RRSIG {
                rrsets.add(record);
            }
        }
        for record in message.records.iter().filter(is_data) {
            if record.rtype == Rtype::RRSIG {
                rrsets.add_signature(record);
            }
        }
        for rrset in &mut rrsets.list {
            let rtype = rrset.rtype;
            rrset.rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
            rrset.rdatas.dedup_by(|a, b| rdata::cmp_canonical(rtype, a, b).is_eq());
        }
        rrsets
    }

    fn add(&mut self, record: &'m Record) {
        let key = (record.section, record.owner.view(), record.rtype);
        let (section, owner, rtype) = key;
        let index = self.find(section, owner, rtype).unwrap_or(self.list.len());
        if index == self.list.len() {
            if let Some(indexes) = &mut self.indexes {
                indexes.insert(key, index);
            }
            let (rdatas, signatures) = (Vec::new(), Vec::new());
            self.list.push(Rrset { section, owner, rtype, ttl: record.ttl, rdatas, signatures });
        }
        let rrset = &mut self.list[index];
        rrset.ttl = rrset.ttl.min(record.ttl);
        rrset.rdatas.push(&record.rdata);
    }

    fn add_signature(&mut self, record: &'m Record) {
        let covered = Rrsig::parse(&record.rdata).map(|fields| fields.covered);
        match covered.and_then(|covered| self.find(record.section, record.owner.view(), covered)) {
            Some(index) => self.list[index].signatures.push(record),
            None => self.lone_signatures.push((record.section, record.owner.view())),
        }
    }

    /// Returns all RRsets, by index.
    pub(super) fn list(&self) -> &[Rrset<'m>] {
        &self.list
    }

    pub(super) fn get(&self, index: usize) -> &Rrset<'m> {
        &self.list[index]
    }

    /// Returns the index of an RRset; `None` if the response does not have it.
    pub(super) fn find(&self, section: Section, owner: NameRef<'_>, rtype: Rtype) -> Option<usize> {
        let Some(indexes) = &self.indexes else {
            let is_same =
                |rrset: &Rrset<'_>| rrset.rtype == rtype && rrset.section == section && rrset.owner == owner;
            return self.list.iter().position(is_same);
        };
        // The keys of the map borrow from the message, and a key for a lookup may have a shorter
        // lifetime.
        let indexes: &HashMap<RrsetKey<'_>, usize> = indexes;
        indexes.get(&(section, owner, rtype)).copied()
    }

    /// Whether `owner` has a signature in `section` that covers no RRset of the response.
    pub(super) fn has_lone_signatures(&self, section: Section, owner: NameRef<'_>) -> bool {
        self.lone_signatures.iter().any(|(in_section, at_owner)| *in_section == section && *at_owner == owner)
    }
}
