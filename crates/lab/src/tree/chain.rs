//! The owners of the records in a denial chain, and which of them a name needs.

use super::description::ZoneDescription;
use super::plant::iterations;
use data_encoding::{BASE32HEX_NOPAD, HEXLOWER_PERMISSIVE};
use nonesuch_crypto::nsec3_hash;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_proto::{Name, NameRef, Rtype};

/// The chain of a zone with NSEC or NSEC3 records.
pub(super) struct Chain<'z> {
    apex: NameRef<'z>,
    zone: &'z ZoneDescription,
}

impl<'z> Chain<'z> {
    pub(super) const fn new(apex: NameRef<'z>, zone: &'z ZoneDescription) -> Self {
        Self { apex, zone }
    }

    /// The type of the records.
    pub(super) fn rtype(&self) -> Rtype {
        match self.zone.denial.name_hash() {
            NameHash::Unhashed => Rtype::NSEC,
            NameHash::Sha1 => Rtype::NSEC3,
            NameHash::Vrf => Rtype::NSEC5,
        }
    }

    /// Owner of the record that matches `name`; `None` with NSEC5. The parameters are those with
    /// which the zone is signed: faults change them only in the records.
    pub(super) fn owner_of(&self, name: NameRef<'_>) -> Option<Name> {
        match self.zone.denial.name_hash() {
            NameHash::Unhashed => Some(name.to_name()),
            NameHash::Sha1 => {
                let mut canonical = Vec::new();
                name.push_canonical(&mut canonical);
                // A malformed salt is an error of the description.
                let salt = HEXLOWER_PERMISSIVE.decode(self.zone.salt.as_bytes()).unwrap_or_default();
                self.hash_owner(&nsec3_hash(&canonical, &salt, iterations(self.zone)))
            }
            NameHash::Vrf => None,
        }
    }

    /// The owner of the record of a hash.
    pub(super) fn hash_owner(&self, hash: &[u8]) -> Option<Name> {
        let label = BASE32HEX_NOPAD.encode(hash).to_ascii_lowercase();
        Name::prepend(label.as_bytes(), self.apex).ok()
    }

    /// The owner of the record that matches `name` or would cover it: the last of `owners` at or
    /// before the owner of a matching record, or else the last one. `owners` are in canonical
    /// order.
    pub(super) fn at_or_before<'n>(
        &self,
        owners: impl Iterator<Item = NameRef<'n>>,
        name: NameRef<'_>,
    ) -> Option<NameRef<'n>> {
        let wanted = self.owner_of(name)?;
        let (mut before, mut last) = (None, None);
        for owner in owners {
            if owner.cmp_canonical(wanted.view()).is_le() {
                before = Some(owner);
            }
            last = Some(owner);
        }
        before.or(last)
    }

    /// Whether a record matches or covers `name`.
    pub(super) fn proves(&self, owner: NameRef<'_>, rdata: &[u8], name: NameRef<'_>) -> bool {
        let (Some(wanted), Some(next)) = (self.owner_of(name), self.next_owner(rdata)) else { return false };
        let (after_owner, before_next) =
            (owner.cmp_canonical(wanted.view()).is_le(), wanted.view().cmp_canonical(next.view()).is_lt());
        if owner.cmp_canonical(next.view()).is_lt() {
            after_owner && before_next
        } else {
            after_owner || before_next
        }
    }

    /// The owner of the next record.
    fn next_owner(&self, rdata: &[u8]) -> Option<Name> {
        match self.rtype() {
            Rtype::NSEC => NameRef::split_from(rdata).ok().map(|(next, _)| next.to_name()),
            _ => self.hash_owner(&rdata[next_hash(Rtype::NSEC3, rdata)?]),
        }
    }
}

/// The place of the next hash in the RDATA of an NSEC3 or NSEC5 record.
pub(super) fn next_hash(rtype: Rtype, rdata: &[u8]) -> Option<std::ops::Range<usize>> {
    // NSEC3 RDATA have hash algorithm, flags, iterations and salt before the next hash, NSEC5 RDATA
    // the key tag and flags.
    let length_at = if rtype == Rtype::NSEC3 { 5 + usize::from(*rdata.get(4)?) } else { 3 };
    let end = length_at + 1 + usize::from(*rdata.get(length_at)?);
    (end <= rdata.len()).then_some(length_at + 1..end)
}
