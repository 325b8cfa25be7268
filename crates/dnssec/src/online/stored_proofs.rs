//! The stored proofs of a zone with NSEC5, with an index by name.

use crate::denial::nsec5::{ProofEntry, Proofs};
use nonesuch_crypto::vrf::VRF_HASH_OCTETS;
use nonesuch_proto::{MAX_NAME, NameRef};

/// Number of names in a group. [`Proofs::names`] has the names in canonical order. The index has
/// the offset of the first name of each group; a binary search over these names finds the group,
/// and then reads the names of this group.
const GROUP_SIZE: usize = 8;

/// The proofs with an index of their names, which needs half a byte of memory for each name.
#[derive(Debug)]
pub(super) struct StoredProofs {
    proofs: Proofs,
    /// Offset in [`Proofs::names`] of the first name of each group.
    offsets: Vec<u32>,
}

impl StoredProofs {
    /// Indexes the proofs; `None` if the names exceed the 32-bit offsets of the index.
    pub(super) fn new(proofs: Proofs) -> Option<Self> {
        let names = proofs.names();
        let mut offsets = Vec::with_capacity(proofs.len().div_ceil(GROUP_SIZE));
        let mut rest = names;
        for index in 0..proofs.len() {
            if index % GROUP_SIZE == 0 {
                offsets.push(u32::try_from(names.len() - rest.len()).ok()?);
            }
            (_, rest) = NameRef::split_from(rest).ok()?;
        }
        Some(Self { proofs, offsets })
    }

    pub(super) const fn proofs(&self) -> &Proofs {
        &self.proofs
    }

    pub(super) const fn zone(&self) -> NameRef<'_> {
        self.proofs.zone().view()
    }

    pub(super) const fn len(&self) -> usize {
        self.proofs.len()
    }

    /// Hash and proof of `name`, which must be in lower case and in the zone; `None` if no proof of
    /// this name is stored.
    pub(super) fn find(&self, name: NameRef<'_>) -> Option<(&[u8; VRF_HASH_OCTETS], &[u8])> {
        let mut buffer = [0; MAX_NAME];
        let relative = self.relative_name(name, &mut buffer)?;
        let next_group = self.offsets.partition_point(|offset| {
            self.name_at(*offset as usize).is_some_and(|(name, _)| name.cmp_canonical(relative).is_le())
        });
        let group = next_group.checked_sub(1)?;
        let mut offset = self.offsets[group] as usize;
        for index in group * GROUP_SIZE..((group + 1) * GROUP_SIZE).min(self.proofs.len()) {
            let (name, octets) = self.name_at(offset)?;
            if name.wire() == relative.wire() {
                return self.proofs.get(index);
            }
            offset += octets;
        }
        None
    }

    /// The name at `offset`, and its length in octets.
    fn name_at(&self, offset: usize) -> Option<(NameRef<'_>, usize)> {
        let (name, _) = NameRef::split_from(self.proofs.names().get(offset..)?).ok()?;
        Some((name, name.len()))
    }

    /// The part of `name` before the apex, with the root in place of the apex.
    fn relative_name<'r>(&self, name: NameRef<'_>, buffer: &'r mut [u8; MAX_NAME]) -> Option<NameRef<'r>> {
        let prefix_octets = name.len().checked_sub(self.proofs.zone().wire().len())?;
        buffer[..prefix_octets].copy_from_slice(&name.wire()[..prefix_octets]);
        buffer[prefix_octets] = 0;
        Some(NameRef::from_wire_unchecked(&buffer[..=prefix_octets]))
    }

    /// All names with hash and proof, in canonical order. The prover checks a sample of them.
    pub(super) fn entries(&self) -> impl Iterator<Item = ProofEntry<'_>> {
        self.proofs.entries()
    }
}
