//! Reuse of the verification of the previous version of a zone. A signature is not verified again
//! if the signature, its records and the DNSKEY RRset are unchanged.
//!
//! All other checks run as in a full verification: fields and times of every signature, chain and
//! bit maps, keys, trust anchors, digests. Therefore the faults are the same as those of a full
//! verification.

use super::keys::ZoneKeys;
use crate::rrsig::Rrsig;
use nonesuch_proto::{NameRef, Rtype, rdata, serial};
use nonesuch_zone::{Contents, Node, Rrset};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// A zone with the time at which all its signatures were verified. The verification of its next
/// version relies on it.
#[derive(Clone, Copy, Debug)]
pub struct VerifiedPredecessor<'e> {
    contents: &'e Contents,
    /// Time of the verification; `None` if times were not checked.
    verified_at: Option<u32>,
}

impl<'e> VerifiedPredecessor<'e> {
    /// Creates a predecessor from a zone that the caller knows to be verified. The zone must have
    /// been verified in full, without fault, and with the algorithm tables of this program. So
    /// either this process has verified it, or it is a compiled zone with
    /// [`Verification::Full`](nonesuch_zone::Verification::Full).
    ///
    /// `verified_at` is the time of that verification in seconds since 1970 modulo 2^32, or `None`
    /// if times were not checked ([`VerifyOptions::now`](super::VerifyOptions)).
    #[must_use]
    pub const fn assume_verified(contents: &'e Contents, verified_at: Option<u32>) -> Self {
        Self { contents, verified_at }
    }

    /// Returns the zone.
    #[must_use]
    pub const fn contents(&self) -> &'e Contents {
        self.contents
    }

    /// Whether `next` is a version of the same zone with the same DNSKEY RRset. Otherwise no
    /// signature can be reused.
    pub(super) fn has_same_keys(&self, next: &Contents) -> bool {
        let keys = [self.contents, next].map(|zone| zone.apex_rrset(Rtype::DNSKEY));
        let [Some(old_keys), Some(new_keys)] = keys else { return false };
        self.contents.apex() == next.apex() && old_keys.rdatas().eq(new_keys.rdatas())
    }

    /// Whether the verification of the predecessor included a signature with these times. A
    /// signature outside its validity period is not verified; it is not a fault if other signatures
    /// are valid ([`SurplusSignature`](super::VerifyWarning::SurplusSignature)).
    fn has_verified(&self, fields: &Rrsig<'_>) -> bool {
        self.verified_at.is_none_or(|verified_at| {
            !serial::is_before(fields.expiration, verified_at)
                && !serial::is_before(verified_at, fields.inception)
        })
    }
}

/// Finds the signatures of the previous version of the zone, name by name in canonical order.
pub(super) struct SignatureReuse<'e> {
    predecessor: Option<VerifiedPredecessor<'e>>,
    /// Index of the node at which the search for the next name begins; 0 before the first search.
    search_start: usize,
    /// The node of the current name in the previous version; `None` if that version lacks the name.
    node: Option<Node<'e>>,
}

impl<'e> SignatureReuse<'e> {
    pub(super) const fn new(predecessor: Option<VerifiedPredecessor<'e>>) -> Self {
        Self { predecessor, search_start: 0, node: None }
    }

    /// Moves to `name`, which follows all previous names in canonical order.
    pub(super) fn advance_to(&mut self, name: NameRef<'_>) {
        let Some(predecessor) = self.predecessor else { return };
        // The first name may be anywhere in the zone. Each further name is close to the previous
        // one.
        let found = match self.search_start {
            0 => predecessor.contents.find(name),
            start => predecessor.contents.find_from(start, name),
        };
        self.search_start = match &found {
            Ok(node) => node.index() + 1,
            Err(index) => *index,
        };
        self.node = found.ok();
    }

    /// Returns the previous signatures over `rrset`, which is at the current name, if the records
    /// of the previous version were the same.
    pub(super) fn signatures(&self, rrset: Rrset<'_>) -> PreviousSignatures<'e> {
        let known = self.predecessor.zip(self.node).and_then(|(predecessor, node)| {
            let before = node.rrset(rrset.rtype()).filter(|before| before.rdatas().eq(rrset.rdatas()))?;
            Some((predecessor, node.signatures(before.rtype())?.rdatas().collect()))
        });
        PreviousSignatures { known }
    }
}

/// The previous signatures over an RRset. Signatures that precede the last requested signature have
/// been removed.
pub(super) struct PreviousSignatures<'e> {
    known: Option<(VerifiedPredecessor<'e>, VecDeque<&'e [u8]>)>,
}

impl PreviousSignatures<'_> {
    /// Returns the index of the key that made the signature, if the previous version has the same
    /// signature and it was verified; `None` if the signature must be verified. `rdata` is the
    /// RDATA of the signature and `fields` its fields. Calls must follow the canonical order of the
    /// signatures.
    pub(super) fn find_key(
        &mut self,
        rdata: &[u8],
        fields: &Rrsig<'_>,
        keys: &ZoneKeys<'_>,
    ) -> Option<usize> {
        let (predecessor, known) = self.known.as_mut()?;
        while known.front().is_some_and(|before| {
            *before != rdata && rdata::cmp_canonical(Rtype::RRSIG, before, rdata) == Ordering::Less
        }) {
            known.pop_front();
        }
        if known.front() != Some(&rdata) || !predecessor.has_verified(fields) {
            return None;
        }
        // If two keys have the same tag, only a verification shows which one made the signature.
        let mut candidates = keys.candidates(fields.tag, fields.algorithm);
        let key = candidates.next().filter(|index| keys.keys[*index].public.is_some())?;
        candidates.next().is_none().then_some(key)
    }
}
