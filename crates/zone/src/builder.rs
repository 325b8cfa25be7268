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

/// Size in octets at which a part ends.
pub(crate) const PART_OCTETS: usize = 1 << 20;

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
    /// The records after the last part; they all come from the file with index `buffer_file`.
    buffer: RecordBuffer,
    buffer_file: u16,
}

impl Builder {
    /// Adds one record with the TTL `ttl` in seconds. `write` appends its RDATA with uncompressed
    /// names.
    ///
    /// # Errors
    /// The error of `write`; no record is then added.
    pub fn push<E>(
        &mut self,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        location: SourceLocation,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if location.file != self.buffer_file || self.buffer.len() >= PART_OCTETS {
            self.end_part();
            self.buffer_file = location.file;
        }
        self.buffer.push(owner, rtype, ttl, location.line, write)
    }

    /// Moves the records of the buffer, if there are any, to a new part.
    fn end_part(&mut self) {
        if !self.buffer.is_empty() {
            let mut part = self.buffer.take_part();
            part.set_start(self.buffer_file, 0);
            self.parts.push(part);
        }
    }

    /// Adds the records of `part` after the records added so far.
    pub(crate) fn push_part(&mut self, part: Part) {
        self.end_part();
        self.parts.push(part);
    }

    fn gather(mut self) -> GatheredParts {
        self.end_part();
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
    ///
    /// # Errors
    /// The records do not form a zone; [`ZoneFault`] lists the reasons.
    pub fn finish(self, origin: Option<&Name>) -> Result<ParsedZone, ZoneError> {
        let gathered = self.gather();
        let apex = gathered.find_apex(origin)?;
        if gathered.counts().names > u32::MAX as usize {
            return Err(ZoneError { fault: ZoneFault::TooLarge, location: SourceLocation::default() });
        }
        gathered.check_owners(&apex)?;
        let order = order::sort(&gathered, apex.view().len());
        let mut parsed = assemble::assemble(gathered, &apex, &order)?;
        if parsed.contents.apex_rrset(Rtype::NS).is_none() {
            parsed.warnings.push(Warning::NoNs);
        }
        Ok(parsed)
    }
}
