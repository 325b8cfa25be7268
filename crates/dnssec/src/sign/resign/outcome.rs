//! What signing again made: the zone as a whole, or the nodes that take the place of others in the previous one.

use crate::sign::{SignStatistics, SignWarning, Signed};
use nonesuch_zone::{ChangeSet, Contents, Run, Splice};

/// What [`resign_changes`](crate::sign::resign_changes) made. The names that stay are not copied: they are those of the
/// previous zone.
#[derive(Debug)]
pub struct Resigned<'a> {
    previous: &'a Contents,
    /// The whole zone, or the nodes that are new.
    signed: Signed,
    /// Where these go; `None` for the whole zone.
    places: Option<Vec<Place>>,
}

/// A name that was planned anew: its place in the previous zone, and whether it is there and in the new one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Where it is, or would stand.
    pub(super) at: usize,
    pub(super) was: bool,
    pub(super) is: bool,
}

/// The names planned anew.
pub(super) struct Mended {
    pub(super) patch: Signed,
    /// In canonical order.
    pub(super) places: Vec<Place>,
}

impl<'a> Resigned<'a> {
    pub(super) fn mended(previous: &'a Contents, Mended { patch, places }: Mended) -> Self {
        Self { previous, signed: patch, places: Some(places) }
    }

    pub(super) const fn whole(previous: &'a Contents, signed: Signed) -> Self {
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
        let Some(places) = &self.places else { return ChangeSet::between(self.previous, new, |_| true) };
        let mut replaced = Run::default();
        for place in places.iter().filter(|place| place.was) {
            replaced.push_nodes(self.previous, place.at..place.at + 1);
        }
        let replaced = Contents::from_run(self.previous.apex(), replaced);
        ChangeSet::between(&replaced, new, |_| true)
    }

    /// The zone with its signatures, all of it copied.
    #[must_use]
    pub fn into_signed(self) -> Signed {
        if self.places.is_none() {
            return self.signed;
        }
        let contents = self.splice().to_contents();
        Signed { contents, ..self.signed }
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
