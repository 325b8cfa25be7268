//! The parts of a builder, with consecutive numbers for all groups.

use super::fault::{SourceLocation, ZoneError, ZoneFault};
use super::part::{Counts, Part};
use nonesuch_proto::{Name, NameRef};
use rayon::prelude::*;

/// Number of groups in a page of [`GatheredParts::pages`].
const GROUPS_PER_PAGE: usize = 1024;

/// All parts, with consecutive numbers for all groups.
pub(super) struct GatheredParts {
    pub(super) parts: Vec<Part>,
    /// For each part, the number of its first group.
    first_groups: Vec<u32>,
    /// For each page of [`GROUPS_PER_PAGE`] groups, the part of the first group of the page.
    pages: Vec<u32>,
    /// Number of groups.
    count: u64,
}

impl GatheredParts {
    pub(super) fn new(parts: Vec<Part>) -> Self {
        let mut count = 0u64;
        let mut first_groups = Vec::with_capacity(parts.len());
        let mut pages = Vec::new();
        for (index, part) in parts.iter().enumerate() {
            first_groups.push(count as u32);
            count += part.group_count() as u64;
            let page_count = count.div_ceil(GROUPS_PER_PAGE as u64) as usize;
            if pages.len() < page_count {
                pages.resize(page_count, index as u32);
            }
        }
        Self { parts, first_groups, pages, count }
    }

    pub(super) const fn group_count(&self) -> usize {
        self.count as usize
    }

    /// Returns the number of the first group of a part.
    pub(super) fn first_group(&self, part: usize) -> u32 {
        self.first_groups[part]
    }

    /// Returns the part of a group, and the index of the group in this part.
    pub(super) fn locate(&self, number: u32) -> (&Part, usize) {
        let page = number as usize / GROUPS_PER_PAGE;
        let from = self.pages[page] as usize;
        let to = self.pages.get(page + 1).map_or(self.parts.len(), |part| *part as usize + 1);
        let part = from + self.first_groups[from..to].partition_point(|first| *first <= number) - 1;
        (&self.parts[part], (number - self.first_groups[part]) as usize)
    }

    /// Returns the owner of a group.
    pub(super) fn name(&self, number: u32) -> NameRef<'_> {
        let (part, group) = self.locate(number);
        part.name(group)
    }

    /// Returns the sums of the counts of all parts.
    pub(super) fn counts(&self) -> Counts {
        self.parts.iter().map(Part::counts).fold(Counts::default(), |all, part| Counts {
            records: all.records + part.records,
            names: all.names + part.names,
            rdata: all.rdata + part.rdata,
        })
    }

    /// Determines the apex: the given origin, otherwise the owner of the first SOA record.
    ///
    /// # Errors
    /// [`ZoneFault::Empty`] without records, [`ZoneFault::NoSoa`] without an SOA record,
    /// [`ZoneFault::WrongOrigin`] if the owner of the first SOA record is not `origin`.
    pub(super) fn find_apex(&self, origin: Option<&Name>) -> Result<Name, ZoneError> {
        match (origin, self.parts.iter().find_map(Part::soa)) {
            (Some(origin), Some((found, location))) => {
                if found == origin.view() {
                    return Ok(found.to_name());
                }
                let fault = ZoneFault::WrongOrigin { found: found.to_name(), origin: origin.clone() };
                Err(ZoneError { fault, location })
            }
            (None, Some((found, _))) => Ok(found.to_name()),
            (_, None) if self.counts().records == 0 => {
                Err(ZoneError { fault: ZoneFault::Empty, location: SourceLocation::default() })
            }
            (origin, None) => {
                let apex = origin.cloned().unwrap_or_else(Name::root);
                Err(ZoneError { fault: ZoneFault::NoSoa(apex), location: SourceLocation::default() })
            }
        }
    }

    /// Checks that all owners are in the zone. The error is for the first record outside it.
    pub(super) fn check_owners(&self, apex: &Name) -> Result<(), ZoneError> {
        let outside = self.parts.par_iter().find_map_first(|part| {
            let outside = |group: &usize| !part.name(*group).is_at_or_below(apex.view());
            (0..part.group_count()).find(outside).map(|group| part.group(group)).map(|(owner, records)| {
                let location = records
                    .clone()
                    .next()
                    .map_or_else(SourceLocation::default, |first| part.location_of(&first));
                (owner.to_name(), location)
            })
        });
        match outside {
            Some((owner, location)) => {
                Err(ZoneError { fault: ZoneFault::OutOfZone { owner, apex: apex.clone() }, location })
            }
            None => Ok(()),
        }
    }
}
