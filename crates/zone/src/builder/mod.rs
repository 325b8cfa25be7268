//! From records in any order to [`Contents`]: gathers them in parts (`part`), sorts the owners (`order`), and makes
//! nodes of them, dropping duplicates and checking what a zone must hold (`assemble`).

mod assemble;
mod fault;
mod order;
mod part;

pub use fault::{Place, Warning, ZoneError, ZoneFault};
pub(crate) use part::{OpenPart, Part};

use crate::contents::Contents;
use nonesuch_proto::{Name, NameRef, Rtype};
use part::Counts;
use rayon::prelude::*;

/// Octets from which on a part is closed.
pub(crate) const PART: usize = 1 << 20;

/// Groups of a page in the directory of parts.
const PAGE: usize = 1024;

/// Gathers records in any order.
#[derive(Default)]
pub struct Builder {
    parts: Vec<Part>,
    open: OpenPart,
    open_file: u16,
}

impl Builder {
    /// An empty builder for a file of `octets`. Memory is taken as records come, and at first for one part.
    #[must_use]
    pub fn with_capacity_for(octets: usize) -> Self {
        Self { open: OpenPart::with_capacity(octets.min(PART)), ..Self::default() }
    }

    /// Adds one record; `write` appends its RDATA, names uncompressed. Nothing is added where it fails.
    pub fn push<E>(
        &mut self,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        place: Place,
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

    /// Adds the records of `part` behind those added before.
    pub(crate) fn add(&mut self, part: Part) {
        self.close();
        self.parts.push(part);
    }

    fn gather(mut self) -> Gathered {
        self.close();
        let mut count = 0u64;
        let mut firsts = Vec::with_capacity(self.parts.len());
        let mut directory = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            firsts.push(count as u32);
            count += part.group_count() as u64;
            let pages = count.div_ceil(PAGE as u64) as usize;
            if directory.len() < pages {
                directory.resize(pages, index as u32);
            }
        }
        Gathered { parts: self.parts, firsts, directory, count }
    }

    /// Owner, type and RDATA of the records, in the order in which they were added.
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

    /// Sorts and checks the records. `origin` is the apex where it is known; otherwise the SOA record's owner is.
    pub fn finish(self, origin: Option<&Name>) -> Result<(Contents, Vec<Warning>), ZoneError> {
        let gathered = self.gather();
        let apex = gathered.find_apex(origin)?;
        if gathered.counts().names > u32::MAX as usize {
            return Err(ZoneError { fault: ZoneFault::TooLarge, place: Place::default() });
        }
        gathered.check_owners(&apex)?;
        let order = order::sort(&gathered, apex.view().len());
        let (contents, mut warnings) = assemble::assemble(gathered, &apex, &order)?;
        if contents.apex_rrset(Rtype::NS).is_none() {
            warnings.push(Warning::NoNs);
        }
        Ok((contents, warnings))
    }
}

/// All parts; groups are numbered through.
struct Gathered {
    parts: Vec<Part>,
    /// For each part the number of its first group.
    firsts: Vec<u32>,
    /// For each [`PAGE`] of groups the part that the first of them is in.
    directory: Vec<u32>,
    count: u64,
}

impl Gathered {
    const fn group_count(&self) -> usize {
        self.count as usize
    }

    fn first_group(&self, part: usize) -> u32 {
        self.firsts[part]
    }

    /// The part of a group, and the group's index in it.
    fn locate(&self, number: u32) -> (&Part, usize) {
        let page = number as usize / PAGE;
        let from = self.directory[page] as usize;
        let to = self.directory.get(page + 1).map_or(self.parts.len(), |part| *part as usize + 1);
        let part = from + self.firsts[from..to].partition_point(|first| *first <= number) - 1;
        (&self.parts[part], (number - self.firsts[part]) as usize)
    }

    fn name(&self, number: u32) -> NameRef<'_> {
        let (part, group) = self.locate(number);
        part.name(group)
    }

    fn counts(&self) -> Counts {
        self.parts.iter().map(Part::counts).fold(Counts::default(), |all, part| Counts {
            records: all.records + part.records,
            names: all.names + part.names,
            rdata: all.rdata + part.rdata,
        })
    }

    /// The apex: the given origin, or else the owner of the first SOA record.
    fn find_apex(&self, origin: Option<&Name>) -> Result<Name, ZoneError> {
        match (origin, self.parts.iter().find_map(Part::soa)) {
            (Some(origin), Some((found, place))) => {
                if found == origin.view() {
                    return Ok(found.to_name());
                }
                let fault = ZoneFault::WrongOrigin { found: found.to_name(), origin: origin.clone() };
                Err(ZoneError { fault, place })
            }
            (None, Some((found, _))) => Ok(found.to_name()),
            (_, None) if self.counts().records == 0 => {
                Err(ZoneError { fault: ZoneFault::Empty, place: Place::default() })
            }
            (origin, None) => {
                let apex = origin.cloned().unwrap_or_else(Name::root);
                Err(ZoneError { fault: ZoneFault::NoSoa(apex), place: Place::default() })
            }
        }
    }

    /// Whether all owners are in the zone; the fault is that of the first record that is not.
    fn check_owners(&self, apex: &Name) -> Result<(), ZoneError> {
        let outside = self.parts.par_iter().find_map_first(|part| {
            let outside = |group: &usize| !part.name(*group).is_at_or_below(apex.view());
            (0..part.group_count()).find(outside).map(|group| part.group(group)).map(|(owner, records)| {
                let place = records.clone().next().map_or_else(Place::default, |first| part.place(&first));
                (owner.to_name(), place)
            })
        });
        match outside {
            Some((owner, place)) => {
                Err(ZoneError { fault: ZoneFault::OutOfZone { owner, apex: apex.clone() }, place })
            }
            None => Ok(()),
        }
    }
}
