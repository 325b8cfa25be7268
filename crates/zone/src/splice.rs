//! A zone that is composed of ranges of nodes of other zones, for example of a previous version and
//! its few changes. The nodes are copied only when the zone is written: a copy of a large zone in
//! memory would take longer than the changes.

use crate::compiled::{CompiledError, StoredZone};
use crate::contents::{Contents, NodesBuilder};
use crate::zone_ref::ZoneRef;
use nonesuch_proto::Name;
use std::ops::Range;

/// Parts of zones that together form a zone, in canonical order.
#[derive(Clone, Debug)]
pub struct Splice<'a> {
    apex: Name,
    parts: Vec<Part<'a>>,
}

/// Consecutive nodes of a zone, as a range of node indexes.
#[derive(Clone, Debug)]
pub(crate) enum Part<'a> {
    Nodes(&'a Contents, Range<usize>),
    Stored(&'a StoredZone, Range<usize>),
}

impl<'a> Splice<'a> {
    /// Creates a splice without nodes for the zone at `apex`.
    #[must_use]
    pub fn new(apex: &Name) -> Self {
        Self { apex: apex.clone(), parts: Vec::new() }
    }

    /// Creates a splice of all nodes of a zone.
    #[must_use]
    pub fn of(zone: impl Into<ZoneRef<'a>>) -> Self {
        let zone = zone.into();
        let mut splice = Self::new(zone.apex());
        splice.push_nodes(zone, 0..zone.node_count());
        splice
    }

    /// The apex of the zone.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// Appends the nodes `range` of `zone`. They must follow the existing nodes in canonical order.
    /// An empty range, or one beyond the end of `zone`, is ignored.
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

    /// Copies the nodes into new contents. In an RRset that was read with different TTLs, all
    /// records get the TTL of the RRset.
    ///
    /// # Errors
    /// A part of a compiled zone cannot be loaded.
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

    /// Returns contents with only the first node, which is the apex.
    pub(crate) fn head(&self) -> Contents {
        let mut run = NodesBuilder::default();
        let first = self.parts.first().and_then(|part| match part {
            Part::Nodes(contents, places) => Some(contents.node(places.start)),
            Part::Stored(zone, places) => zone.node(places.start),
        });
        first.into_iter().for_each(|node| run.push_node(node));
        Contents::from_nodes(&self.apex, run)
    }

    /// The parts, in canonical order.
    pub(crate) fn parts(&self) -> &[Part<'a>] {
        &self.parts
    }
}

/// Appends the nodes `places` of a compiled zone. Fails if one of them cannot be loaded.
fn push_loaded(zone: &StoredZone, places: Range<usize>, run: &mut NodesBuilder) -> Result<(), CompiledError> {
    for place in places {
        let Some(node) = zone.node(place) else {
            return Err(zone.failure().unwrap_or(CompiledError::Altered));
        };
        run.push_node(node);
    }
    Ok(())
}
