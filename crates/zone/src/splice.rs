//! A zone that is composed of ranges of nodes of other zones, for example of a previous version and
//! its few changes. A splice copies no nodes until the zone is written, because a copy of a large
//! zone in memory would take longer than the few changes.

use crate::compiled::{CompiledError, StoredZone};
use crate::contents::{Contents, NodesBuilder};
use crate::zone_ref::ZoneRef;
use nonesuch_proto::Name;
use std::ops::Range;

/// Parts of zones that together form a zone, in canonical order.
#[derive(Clone, Debug)]
pub struct Splice<'a> {
    apex: Name,
    parts: Vec<SplicePart<'a>>,
}

/// Consecutive nodes of a zone, as a range of node indexes.
#[derive(Clone, Debug)]
pub(crate) enum SplicePart<'a> {
    /// Nodes of contents in memory.
    Nodes(&'a Contents, Range<usize>),
    /// Nodes of a zone in a file.
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
            (Some(SplicePart::Nodes(last, last_range)), ZoneRef::Contents(zone))
                if std::ptr::eq(*last, zone) && last_range.end == range.start =>
            {
                last_range.end = range.end;
            }
            (Some(SplicePart::Stored(last, last_range)), ZoneRef::Stored(zone))
                if std::ptr::eq(*last, zone) && last_range.end == range.start =>
            {
                last_range.end = range.end;
            }
            (_, ZoneRef::Contents(zone)) => self.parts.push(SplicePart::Nodes(zone, range)),
            (_, ZoneRef::Stored(zone)) => self.parts.push(SplicePart::Stored(zone, range)),
        }
    }

    /// Copies the nodes into new contents. In an RRset that was read with different TTLs, all
    /// records get the TTL of the RRset.
    ///
    /// # Errors
    /// A chunk of a stored zone cannot be loaded.
    pub fn to_contents(&self) -> Result<Contents, CompiledError> {
        let mut builder = NodesBuilder::default();
        for part in &self.parts {
            match part {
                SplicePart::Nodes(contents, range) => builder.push_nodes(contents, range.clone()),
                SplicePart::Stored(zone, range) => push_stored_nodes(zone, range.clone(), &mut builder)?,
            }
        }
        builder.equalize_ttls();
        Ok(Contents::from_nodes(&self.apex, builder))
    }

    /// Returns contents with only the first node, which is the apex.
    pub(crate) fn head(&self) -> Contents {
        let mut builder = NodesBuilder::default();
        let first = self.parts.first().and_then(|part| match part {
            SplicePart::Nodes(contents, range) => Some(contents.node(range.start)),
            SplicePart::Stored(zone, range) => zone.node(range.start),
        });
        first.into_iter().for_each(|node| builder.push_node(node));
        Contents::from_nodes(&self.apex, builder)
    }

    /// The parts, in canonical order.
    pub(crate) fn parts(&self) -> &[SplicePart<'a>] {
        &self.parts
    }
}

/// Appends the nodes `range` of a stored zone. Fails if one of them cannot be loaded.
fn push_stored_nodes(
    zone: &StoredZone,
    range: Range<usize>,
    builder: &mut NodesBuilder,
) -> Result<(), CompiledError> {
    for index in range {
        let Some(node) = zone.node(index) else {
            return Err(zone.take_failure().unwrap_or(CompiledError::Altered));
        };
        builder.push_node(node);
    }
    Ok(())
}
