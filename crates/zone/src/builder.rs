//! Builder of [`Contents`] from records in any order. `part` stores the records, `order` sorts
//! their owners, and `assemble` creates the nodes, removes duplicates and checks the rules for a
//! zone.

mod assemble;
mod fault;
mod gathered;
mod order;
mod part;

pub use fault::{SourceLocation, Warning, ZoneError, ZoneFault};
pub(crate) use part::{Part, RecordBuffer};

use crate::contents::Contents;
use gathered::GatheredParts;
use nonesuch_proto::{Name, NameRef, Rtype};

/// Size in octets at which a part is closed.
pub(crate) const PART: usize = 1 << 20;

/// A zone that was built from records.
#[derive(Debug)]
pub struct ParsedZone {
    /// The records.
    pub contents: Contents,
    /// Warnings about the records.
    pub warnings: Vec<Warning>,
}

/// Collects records in any order.
#[derive(Default)]
pub struct Builder {
    parts: Vec<Part>,
    open: RecordBuffer,
    open_file: u16,
}

impl Builder {
    /// Adds one record. `write` appends its RDATA with uncompressed names. If `write` fails, no
    /// record is added.
    pub fn push<E>(
        &mut self,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        place: SourceLocation,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if place.file != self.open_file || self.open.len() >= PART {
            self.close();
            self.open_file = place.file;
        }
        self.open.push(owner, rtype, ttl, place.line, write)
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            let mut part = self.open.close();
            part.set_place(self.open_file, 0);
            self.parts.push(part);
        }
    }

    /// Adds the records of `part` after the records added so far.
    pub(crate) fn add(&mut self, part: Part) {
        self.close();
        self.parts.push(part);
    }

    fn gather(mut self) -> GatheredParts {
        self.close();
        GatheredParts::new(self.parts)
    }

    /// Returns owner, type and RDATA of the records in the order in which they were added.
    pub(crate) fn into_records(self) -> Vec<(Name, Rtype, Vec<u8>)> {
        let gathered = self.gather();
        let groups =
            gathered.parts.iter().flat_map(|part| (0..part.group_count()).map(|group| part.group(group)));
        groups
            .flat_map(|(owner, records)| {
                records.map(move |record| (owner.to_name(), record.rtype, record.rdata.to_vec()))
            })
            .collect()
    }

    /// Sorts and checks the records. `origin` is the apex; if it is `None`, the owner of the first
    /// SOA record is the apex.
    pub fn finish(self, origin: Option<&Name>) -> Result<ParsedZone, ZoneError> {
        let gathered = self.gather();
        let apex = gathered.find_apex(origin)?;
        if gathered.counts().names > u32::MAX as usize {
            return Err(ZoneError { fault: ZoneFault::TooLarge, place: SourceLocation::default() });
        }
        gathered.check_owners(&apex)?;
        let order = order::sort(&gathered, apex.view().len());
        let mut reading = assemble::assemble(gathered, &apex, &order)?;
        if reading.contents.apex_rrset(Rtype::NS).is_none() {
            reading.warnings.push(Warning::NoNs);
        }
        Ok(reading)
    }
}
