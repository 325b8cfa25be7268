//! A zone put together of consecutive nodes of other zones. Nothing is copied before it is written: of a large zone that
//! changes in few places a second copy would cost more than the changes.

use crate::compiled::{CompiledError, StoredZone};
use crate::contents::{Contents, NodesBuilder};
use crate::zone_ref::ZoneRef;
use nonesuch_proto::Name;
use std::ops::Range;

/// Parts of zones that follow one another in canonical order and make a zone together.
#[derive(Clone, Debug)]
pub struct Splice<'a> {
    apex: Name,
    parts: Vec<Part<'a>>,
}

/// Consecutive nodes of a zone, by their places there.
#[derive(Clone, Debug)]
pub(crate) enum Part<'a> {
    Nodes(&'a Contents, Range<usize>),
    Stored(&'a StoredZone, Range<usize>),
}

impl<'a> Splice<'a> {
    /// No nodes yet of the zone at `apex`.
    #[must_use]
    pub fn new(apex: &Name) -> Self {
        Self { apex: apex.clone(), parts: Vec::new() }
    }

    /// The whole of a zone.
    #[must_use]
    pub fn of(zone: impl Into<ZoneRef<'a>>) -> Self {
        let zone = zone.into();
        let mut splice = Self::new(zone.apex());
        splice.push_nodes(zone, 0..zone.node_count());
        splice
    }

    /// The zone's apex.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// Adds the nodes `range` of `zone`, which come after those that are there in canonical order.
    pub fn push_nodes(&mut self, zone: impl Into<ZoneRef<'a>>, range: Range<usize>) {
        let zone = zone.into();
        if range.is_empty() || range.end > zone.node_count() {
            return;
        }
        match (self.parts.last_mut(), zone) {
            (Some(Part::Nodes(last, places)), ZoneRef::Contents(zone))
                if std::ptr::eq(*last, zone) && places.end == range.start =>
            {
                places.end = range.end;
            }
            (Some(Part::Stored(last, places)), ZoneRef::Stored(zone))
                if std::ptr::eq(*last, zone) && places.end == range.start =>
            {
                places.end = range.end;
            }
            (_, ZoneRef::Contents(zone)) => self.parts.push(Part::Nodes(zone, range)),
            (_, ZoneRef::Stored(zone)) => self.parts.push(Part::Stored(zone, range)),
        }
    }

    /// The zone as contents of its own. Records that were read with different TTLs have that of their RRset.
    ///
    /// # Errors
    /// Where a part of a compiled zone cannot be loaded.
    pub fn to_contents(&self) -> Result<Contents, CompiledError> {
        let mut run = NodesBuilder::default();
        for part in &self.parts {
            match part {
                Part::Nodes(contents, places) => run.push_nodes(contents, places.clone()),
                Part::Stored(zone, places) => push_loaded(zone, places.clone(), &mut run)?,
            }
        }
        run.equalize_ttls();
        Ok(Contents::from_nodes(&self.apex, run))
    }

    /// The first node alone, which is the apex.
    pub(crate) fn head(&self) -> Contents {
        let mut run = NodesBuilder::default();
        let first = self.parts.first().and_then(|part| match part {
            Part::Nodes(contents, places) => Some(contents.node(places.start)),
            Part::Stored(zone, places) => zone.node(places.start),
        });
        first.into_iter().for_each(|node| run.push_node(node));
        Contents::from_nodes(&self.apex, run)
    }

    pub(crate) fn parts(&self) -> &[Part<'a>] {
        &self.parts
    }
}

fn push_loaded(zone: &StoredZone, places: Range<usize>, run: &mut NodesBuilder) -> Result<(), CompiledError> {
    for place in places {
        let Some(node) = zone.node(place) else {
            return Err(zone.failure().unwrap_or(CompiledError::Altered));
        };
        run.push_node(node);
    }
    Ok(())
}
