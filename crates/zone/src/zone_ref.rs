//! Read access to a zone: contents in memory, or a compiled zone of which chunks are loaded on
//! demand.

use crate::compiled::{CompiledError, StoredZone};
use crate::contents::{Contents, Node, Soa};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::ops::Range;

/// Read access to a zone, which is completely or partly in memory.
#[derive(Clone, Copy, Debug)]
pub enum ZoneRef<'a> {
    /// The zone is in memory.
    Contents(&'a Contents),
    /// Chunks are loaded on demand. A name in a chunk that cannot be loaded appears not to exist;
    /// see [`StoredZone::take_failure`].
    Stored(&'a StoredZone),
}

impl<'a> From<&'a Contents> for ZoneRef<'a> {
    fn from(contents: &'a Contents) -> Self {
        Self::Contents(contents)
    }
}

impl<'a> From<&'a StoredZone> for ZoneRef<'a> {
    fn from(zone: &'a StoredZone) -> Self {
        Self::Stored(zone)
    }
}

/// A name that was found in a zone.
#[derive(Clone, Copy, Debug)]
pub struct FoundNode<'a> {
    /// Index in the canonical order of the whole zone. [`Node::index`] may be the index in a part
    /// of the zone.
    pub index: usize,
    /// The name with its records.
    pub node: Node<'a>,
}

impl<'a> ZoneRef<'a> {
    /// Apex of the zone.
    #[must_use]
    pub const fn apex(self) -> &'a Name {
        match self {
            Self::Contents(contents) => contents.apex(),
            Self::Stored(zone) => zone.apex(),
        }
    }

    /// Contents that begin with the apex: the whole zone, or the first chunk of a stored zone.
    #[must_use]
    pub fn head(self) -> &'a Contents {
        match self {
            Self::Contents(contents) => contents,
            Self::Stored(zone) => zone.first_chunk(),
        }
    }

    /// Returns the fields of the SOA record; `None` if the zone has none or it is malformed.
    #[must_use]
    pub fn soa(self) -> Option<Soa> {
        self.head().soa()
    }

    /// Number of names that own records.
    #[must_use]
    pub const fn node_count(self) -> usize {
        match self {
            Self::Contents(contents) => contents.node_count(),
            Self::Stored(zone) => zone.node_count(),
        }
    }

    /// Number of records.
    #[must_use]
    pub fn record_count(self) -> u64 {
        match self {
            Self::Contents(contents) => contents.record_count(),
            Self::Stored(zone) => zone.record_count(),
        }
    }

    /// Returns the node at `index` in canonical order; `None` if it does not exist or cannot
    /// be loaded.
    #[must_use]
    pub fn node(self, index: usize) -> Option<Node<'a>> {
        match self {
            Self::Contents(contents) => (index < contents.node_count()).then(|| contents.node(index)),
            Self::Stored(zone) => zone.node(index),
        }
    }

    /// Iterates over the nodes `range`; ends early at a node that does not exist or cannot be
    /// loaded.
    pub fn nodes(self, range: Range<usize>) -> impl Iterator<Item = FoundNode<'a>> {
        range.map_while(move |index| Some(FoundNode { index, node: self.node(index)? }))
    }

    /// Finds the node of `name`.
    ///
    /// # Errors
    /// The index at which the node would be inserted.
    pub fn find(self, name: NameRef<'_>) -> Result<FoundNode<'a>, usize> {
        match self {
            Self::Contents(contents) => {
                contents.find(name).map(|node| FoundNode { index: node.index(), node })
            }
            Self::Stored(zone) => zone.find(name).map(|(index, node)| FoundNode { index, node }),
        }
    }

    /// Returns the index of the first node in `range` with an RRset of `rtype`, which must be NSEC
    /// or NSEC3. Does not load chunks without such records.
    #[must_use]
    pub fn first_chain_node(self, range: Range<usize>, rtype: Rtype) -> Option<usize> {
        let is_chain_node = |index: &usize| self.node(*index).is_some_and(|node| node.has(rtype));
        let mut rest = range;
        while !rest.is_empty() {
            let loaded = self.loaded_range(rest.start);
            let loaded = rest.start..loaded.end.min(rest.end);
            let found = if self.may_have_chain_record(loaded.start) {
                loaded.clone().find(is_chain_node)
            } else {
                None
            };
            if found.is_some() {
                return found;
            }
            rest.start = loaded.end;
        }
        None
    }

    /// Same as [`ZoneRef::first_chain_node`], for the last node.
    #[must_use]
    pub fn last_chain_node(self, range: Range<usize>, rtype: Rtype) -> Option<usize> {
        let is_chain_node = |index: &usize| self.node(*index).is_some_and(|node| node.has(rtype));
        let mut rest = range;
        while !rest.is_empty() {
            let loaded = self.loaded_range(rest.end - 1);
            let loaded = loaded.start.max(rest.start)..rest.end;
            let found = if self.may_have_chain_record(loaded.start) {
                loaded.clone().rev().find(is_chain_node)
            } else {
                None
            };
            if found.is_some() {
                return found;
            }
            rest.end = loaded.start;
        }
        None
    }

    /// Returns the range of nodes that are loaded together with the node at `index`.
    fn loaded_range(self, index: usize) -> Range<usize> {
        match self {
            Self::Contents(contents) => 0..contents.node_count(),
            Self::Stored(zone) => zone.chunk_summary(zone.chunk_of_node(index)).node_range(),
        }
    }

    /// Whether a node that is loaded together with the node at `index` may have an NSEC or NSEC3
    /// record.
    fn may_have_chain_record(self, index: usize) -> bool {
        match self {
            Self::Contents(_) => true,
            Self::Stored(zone) => zone.chunk_summary(zone.chunk_of_node(index)).chain_records() > 0,
        }
    }

    /// Checks that all parts of the zone that were accessed could be loaded.
    ///
    /// # Errors
    /// The first reason why a part could not be loaded. The call clears the reason
    /// ([`StoredZone::take_failure`]).
    pub fn check_loaded(self) -> Result<(), CompiledError> {
        match self {
            Self::Contents(_) => Ok(()),
            Self::Stored(zone) => zone.take_failure().map_or(Ok(()), Err),
        }
    }
}
