//! RRsets, as the cache of denials stores them.

use crate::record::{RecordData, Rrset, Security};
use nonesuch_proto::{Class, Name, Rtype};

/// Estimate of the octets of an entry in addition to its data: the structure, its reference count, its
/// places in the map of entries and in the order of expiry, and the overhead of its allocations.
const ENTRY_OCTETS: usize = 384;
/// Octets of a name that a [`Name`] stores in place.
const NAME_IN_PLACE: usize = 22;

/// A stored RRset of class IN.
#[derive(Debug)]
pub(super) struct StoredRrset {
    owner: Name,
    rtype: Rtype,
    records: RecordData,
    signatures: RecordData,
    /// The second of expiry.
    pub(super) expires: u32,
}

impl StoredRrset {
    /// Copies an RRset, which expires at this second.
    pub(super) fn new(rrset: &Rrset, expires: u32) -> Self {
        let (records, signatures) = (rrset.records.clone(), rrset.signatures.clone());
        Self { owner: rrset.owner.clone(), rtype: rrset.rtype, records, signatures, expires }
    }

    pub(super) const fn owner(&self) -> &Name {
        &self.owner
    }

    pub(super) const fn rtype(&self) -> Rtype {
        self.rtype
    }

    /// Returns the RDATA of the first record.
    pub(super) fn first(&self) -> Option<&[u8]> {
        self.records.iter().next()
    }

    /// Returns the RRset with the TTL that remains, at least one second.
    pub(super) fn to_rrset(&self, now: u32) -> Rrset {
        Rrset {
            owner: self.owner.clone(),
            rtype: self.rtype,
            class: Class::IN,
            ttl: self.expires.saturating_sub(now).max(1),
            records: self.records.clone(),
            signatures: self.signatures.clone(),
            security: Security::Secure,
            insecure: None,
        }
    }

    /// Returns the octets on the heap.
    pub(super) fn octets(&self) -> usize {
        let owner = self.owner.wire().len();
        let owner = if owner > NAME_IN_PLACE { owner } else { 0 };
        owner + self.records.octets().len() + self.signatures.octets().len()
    }
}

/// A denial record, or the proof of a name with NSEC5.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) rrset: StoredRrset,
    /// For a record, the key of the next name or hash. For a proof, the key that a record has if it
    /// matches the name.
    pub(super) next: Box<[u8]>,
    /// Whether the name that the record matches may be the closest encloser of names. False for a
    /// zone cut and for the owner of a DNAME record.
    pub(super) can_be_encloser: bool,
    /// Whether the record has the opt-out flag.
    pub(super) is_opt_out: bool,
}

impl Entry {
    /// Whether a record with this key covers `other`.
    pub(super) fn covers(&self, key: &[u8], other: &[u8]) -> bool {
        let next = &*self.next;
        if key < next { key < other && other < next } else { key < other || other < next }
    }

    /// Whether the entry is the proof of a name, and not a denial record.
    pub(super) fn is_proof(&self) -> bool {
        self.rrset.rtype == Rtype::NSEC5PROOF
    }

    /// Whether the entry is a denial record that can deny a name.
    pub(super) fn can_cover(&self) -> bool {
        !self.is_proof() && !self.is_opt_out
    }

    /// Returns the octets that the entry counts with, if its key has `key` octets.
    pub(super) fn octets(&self, key: usize) -> usize {
        ENTRY_OCTETS + key + self.next.len() + self.rrset.octets()
    }
}
