//! What signing again made: the zone as a whole, or the nodes that take the place of others in the previous one.

use crate::sign::SignError;
use crate::sign::{SignStatistics, SignWarning, Signed};
use nonesuch_zone::{ChangeSet, Contents, NodesBuilder, Splice, ZoneRef};

/// What [`resign_changes`](crate::sign::resign_changes) made. The names that stay are not copied: they are those of the
/// previous zone.
#[derive(Debug)]
pub struct ResignedZone<'a> {
    previous: ZoneRef<'a>,
    /// The whole zone, or the nodes that are new.
    signed: Signed,
    /// Where these go; `None` for the whole zone.
    places: Option<Vec<NameChange>>,
}

/// A name that was planned anew: its place in the previous zone, and whether it is there and in the new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameChange {
    /// Where it is, or would stand.
    pub(super) at: usize,
    pub(super) was: bool,
    pub(super) is: bool,
}

/// The names planned anew.
pub(super) struct PlannedNames {
    pub(super) patch: Signed,
    /// In canonical order.
    pub(super) places: Vec<NameChange>,
}

impl<'a> ResignedZone<'a> {
    pub(super) fn incremental(previous: ZoneRef<'a>, PlannedNames { patch, places }: PlannedNames) -> Self {
        Self { previous, signed: patch, places: Some(places) }
    }

    pub(super) const fn whole(previous: ZoneRef<'a>, signed: Signed) -> Self {
        Self { previous, signed, places: None }
    }

    /// The zone, to be written or copied.
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

    /// What differs from the previous signed zone, signatures and chain included: what a secondary needs (RFC 1995).
    #[must_use]
    pub fn changes(&self) -> ChangeSet {
        let new = self.signed.contents();
        let Some(places) = &self.places else {
            // What is planned as a whole is wholly in memory.
            return ChangeSet::between(self.previous.head(), new, |_| true);
        };
        let mut replaced = NodesBuilder::default();
        let gone = places.iter().filter(|place| place.was).filter_map(|place| self.previous.node(place.at));
        gone.for_each(|node| replaced.push_node(node));
        let replaced = Contents::from_nodes(self.previous.apex(), replaced);
        ChangeSet::between(&replaced, new, |_| true)
    }

    /// The zone with its signatures, all of it copied.
    ///
    /// # Errors
    /// Where a part of the previous zone that stays cannot be loaded.
    pub fn into_signed(self) -> Result<Signed, SignError> {
        if self.places.is_none() {
            return Ok(self.signed);
        }
        let contents = self.splice().to_contents()?;
        Ok(Signed { contents, ..self.signed })
    }

    /// Whether parts of the file of the previous zone are in the new one, which were never read.
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

    /// The apex of the new zone, where not the whole zone was planned.
    pub(super) fn apex(&self) -> Option<nonesuch_zone::Node<'_>> {
        self.signed.contents().nodes().next()
    }

    /// What signing did, of the whole zone.
    #[must_use]
    pub const fn statistics(&self) -> SignStatistics {
        self.signed.statistics()
    }

    /// What was done otherwise than asked.
    #[must_use]
    pub fn warnings(&self) -> &[SignWarning] {
        self.signed.warnings()
    }

    /// Names planned anew; `None` where the whole zone was planned, because the keys' RRset, the parameters of the
    /// chain or its TTL differ, or the previous zone is not as this signer makes it.
    #[must_use]
    pub fn names_planned(&self) -> Option<usize> {
        self.places.as_ref().map(Vec::len)
    }
}
