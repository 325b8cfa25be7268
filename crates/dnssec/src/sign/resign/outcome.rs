//! The result of signing a zone again: the whole zone, or the nodes that replace nodes of the
//! previous zone.

use crate::sign::SignError;
use crate::sign::{SignStatistics, SignWarning, Signed};
use nonesuch_zone::{ChangeSet, Contents, NodesBuilder, Splice, ZoneRef};

/// The result of [`resign_changes`](crate::sign::resign_changes). Unchanged names are not copied;
/// they are in the previous zone.
#[derive(Debug)]
pub struct ResignedZone<'a> {
    previous: ZoneRef<'a>,
    /// The whole zone, or only the new nodes.
    signed: Signed,
    /// The positions of the new nodes; `None` for the whole zone.
    places: Option<Vec<NameChange>>,
}

/// A name that was planned again: its index, and whether the previous and the new zone have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameChange {
    /// Its index in the previous zone, or the index at which it would be inserted.
    pub(super) at: usize,
    pub(super) was: bool,
    pub(super) is: bool,
}

/// The names that were planned again.
pub(super) struct PlannedNames {
    pub(super) patch: Signed,
    /// Sorted in canonical order.
    pub(super) places: Vec<NameChange>,
}

impl<'a> ResignedZone<'a> {
    pub(super) fn incremental(previous: ZoneRef<'a>, PlannedNames { patch, places }: PlannedNames) -> Self {
        Self { previous, signed: patch, places: Some(places) }
    }

    pub(super) const fn whole(previous: ZoneRef<'a>, signed: Signed) -> Self {
        Self { previous, signed, places: None }
    }

    /// The zone, for writing or copying.
    #[must_use]
    pub fn splice(&self) -> Splice<'_> {
        let patch = self.signed.contents();
        let Some(places) = &self.places else { return Splice::of(patch) };
        let mut parts = Splice::new(patch.apex());
        let (mut at, mut next) = (0, 0);
        for place in places {
            parts.push_nodes(self.previous, at..place.at);
            at = place.at + usize::from(place.was);
            if place.is {
                parts.push_nodes(patch, next..next + 1);
                next += 1;
            }
        }
        parts.push_nodes(self.previous, at..self.previous.node_count());
        parts
    }

    /// All differences from the previous signed zone, including signatures and chain, as for IXFR
    /// (RFC 1995).
    #[must_use]
    pub fn changes(&self) -> ChangeSet {
        let new = self.signed.contents();
        let Some(places) = &self.places else {
            // If the whole zone was planned, the previous zone is completely in memory.
            return ChangeSet::between(self.previous.head(), new, |_| true);
        };
        let mut replaced = NodesBuilder::default();
        let gone = places.iter().filter(|place| place.was).filter_map(|place| self.previous.node(place.at));
        gone.for_each(|node| replaced.push_node(node));
        let replaced = Contents::from_nodes(self.previous.apex(), replaced);
        ChangeSet::between(&replaced, new, |_| true)
    }

    /// The complete zone with its signatures; copies the unchanged names.
    ///
    /// # Errors
    /// If an unchanged part of the previous zone cannot be loaded.
    pub fn into_signed(self) -> Result<Signed, SignError> {
        if self.places.is_none() {
            return Ok(self.signed);
        }
        let contents = self.splice().to_contents()?;
        Ok(Signed { contents, ..self.signed })
    }

    /// Whether the new zone has parts of the file of the previous zone that were not read.
    #[must_use]
    pub const fn keeps_parts_of_file(&self) -> bool {
        self.places.is_some() && matches!(self.previous, ZoneRef::Stored(_))
    }

    pub(super) fn warn(&mut self, warnings: Vec<SignWarning>) {
        for warning in warnings {
            if !self.signed.warnings.contains(&warning) {
                self.signed.warnings.push(warning);
            }
        }
    }

    /// The apex of the new zone.
    pub(super) fn apex(&self) -> Option<nonesuch_zone::Node<'_>> {
        self.signed.contents().nodes().next()
    }

    /// Numbers of signatures and records, and the serial, for the whole zone.
    #[must_use]
    pub const fn statistics(&self) -> SignStatistics {
        self.signed.statistics()
    }

    /// Deviations from the options, and records that verification will report as faults.
    #[must_use]
    pub fn warnings(&self) -> &[SignWarning] {
        self.signed.warnings()
    }

    /// Number of names that were planned again; `None` if the whole zone was planned. This is the
    /// case if the key set, the parameters of the chain or its TTL differ, or if this signer would
    /// have generated another previous zone.
    #[must_use]
    pub fn names_planned(&self) -> Option<usize> {
        self.places.as_ref().map(Vec::len)
    }
}
