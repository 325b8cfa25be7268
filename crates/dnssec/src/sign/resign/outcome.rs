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
    /// The whole zone, or only the nodes of the planned names, as in [`ZonePatch`].
    signed: Signed,
    /// The planned names; `None` if `signed` is the whole zone.
    name_changes: Option<Vec<NameChange>>,
}

/// A name that was planned again: its position, and whether the previous and the new zone have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct NameChange {
    /// Its index in the previous zone, or the index at which it would be inserted.
    pub(super) index: usize,
    pub(super) in_previous: bool,
    pub(super) in_new: bool,
}

/// The part of the new zone that was planned again; all other names are those of the previous zone.
pub(super) struct ZonePatch {
    /// The planned names that the new zone has. The statistics are those of the whole zone.
    pub(super) patch: Signed,
    /// All planned names, sorted in canonical order.
    pub(super) name_changes: Vec<NameChange>,
}

impl<'a> ResignedZone<'a> {
    pub(super) fn incremental(previous: ZoneRef<'a>, ZonePatch { patch, name_changes }: ZonePatch) -> Self {
        Self { previous, signed: patch, name_changes: Some(name_changes) }
    }

    pub(super) const fn whole(previous: ZoneRef<'a>, signed: Signed) -> Self {
        Self { previous, signed, name_changes: None }
    }

    /// The new zone as nodes of the previous zone and new nodes, for writing or copying.
    #[must_use]
    pub fn splice(&self) -> Splice<'_> {
        let patch = self.signed.contents();
        let Some(name_changes) = &self.name_changes else { return Splice::of(patch) };
        let mut splice = Splice::new(patch.apex());
        // Indexes of the next nodes to take from the previous zone and from the patch.
        let (mut next_old, mut next_new) = (0, 0);
        for change in name_changes {
            splice.push_nodes(self.previous, next_old..change.index);
            next_old = change.index + usize::from(change.in_previous);
            if change.in_new {
                splice.push_nodes(patch, next_new..next_new + 1);
                next_new += 1;
            }
        }
        splice.push_nodes(self.previous, next_old..self.previous.node_count());
        splice
    }

    /// All differences from the previous signed zone, including signatures and chain, as for IXFR
    /// (RFC 1995).
    #[must_use]
    pub fn changes(&self) -> ChangeSet {
        let new = self.signed.contents();
        let Some(name_changes) = &self.name_changes else {
            // If the whole zone was planned, the previous zone is completely in memory.
            return ChangeSet::between(self.previous.head(), new, |_| true);
        };
        let mut replaced = NodesBuilder::default();
        let old_nodes = name_changes
            .iter()
            .filter(|change| change.in_previous)
            .filter_map(|change| self.previous.node(change.index));
        old_nodes.for_each(|node| replaced.push_node(node));
        let replaced = Contents::from_nodes(self.previous.apex(), replaced);
        ChangeSet::between(&replaced, new, |_| true)
    }

    /// The complete zone with its signatures; copies the unchanged names.
    ///
    /// # Errors
    /// If an unchanged part of the previous zone cannot be loaded.
    pub fn into_signed(self) -> Result<Signed, SignError> {
        if self.name_changes.is_none() {
            return Ok(self.signed);
        }
        let contents = self.splice().to_contents()?;
        Ok(Signed { contents, ..self.signed })
    }

    /// Whether the new zone refers to the file of the previous zone for unchanged parts. The file
    /// must then remain until the new zone is written or copied.
    #[must_use]
    pub const fn refers_to_previous_file(&self) -> bool {
        self.name_changes.is_some() && matches!(self.previous, ZoneRef::Stored(_))
    }

    /// Adds the warnings that the zone does not have yet.
    pub(super) fn add_warnings(&mut self, warnings: Vec<SignWarning>) {
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

    /// Number of names that were planned again; `None` if the whole zone was planned. This is
    /// necessary if the signing keys, the parameters of the chain or its TTL change, or if the
    /// previous zone has other records than this signer would have generated.
    #[must_use]
    pub fn names_planned(&self) -> Option<usize> {
        self.name_changes.as_ref().map(Vec::len)
    }
}
