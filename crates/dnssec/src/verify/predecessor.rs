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
    at: Option<u32>,
}

impl<'e> VerifiedPredecessor<'e> {
    /// Creates a predecessor from a trusted record that the zone was verified in full and without
    /// fault.
    ///
    /// `at` is the time of that verification in seconds since 1970 modulo 2^32, or `None` if times
    /// were not checked ([`VerifyOptions::now`](super::VerifyOptions)). The trusted record is that
    /// of a compiled zone, or this process has verified the zone. The zone must have been verified
    /// with the algorithm tables of this program: a compiled zone that meets this condition has
    /// [`Verification::Full`](nonesuch_zone::Verification::Full).
    #[must_use]
    pub const fn from_record(contents: &'e Contents, at: Option<u32>) -> Self {
        Self { contents, at }
    }

    /// Returns the zone.
    #[must_use]
    pub const fn contents(&self) -> &'e Contents {
        self.contents
    }

    /// Whether `next` is a version of the same zone with the same DNSKEY RRset. Only then can
    /// signatures be reused.
    pub(super) fn has_keys_of(&self, next: &Contents) -> bool {
        let keys = [self.contents, next].map(|zone| zone.apex_rrset(Rtype::DNSKEY));
        let [Some(before), Some(now)] = keys else { return false };
        self.contents.apex() == next.apex() && before.rdatas().eq(now.rdatas())
    }

    /// Whether a signature with these times was verified. A signature that was not valid at that
    /// time was not verified if other signatures were valid
    /// ([`SpareSignature`](super::VerifyWarning::SpareSignature)).
    fn was_valid(&self, fields: &Rrsig<'_>) -> bool {
        self.at.is_none_or(|at| {
            !serial::is_before(fields.expiration, at) && !serial::is_before(at, fields.inception)
        })
    }
}

/// Finds the signatures of the previous version of the zone, name by name in canonical order.
pub(super) struct SignatureReuse<'e> {
    earlier: Option<VerifiedPredecessor<'e>>,
    /// Index at which the search for the next name begins.
    next: usize,
    node: Option<Node<'e>>,
}

impl<'e> SignatureReuse<'e> {
    pub(super) const fn new(earlier: Option<VerifiedPredecessor<'e>>) -> Self {
        Self { earlier, next: 0, node: None }
    }

    /// Moves to `name`, which follows all previous names in canonical order.
    pub(super) fn advance_to(&mut self, name: NameRef<'_>) {
        let Some(earlier) = self.earlier else { return };
        // The first name may be anywhere in the zone. Each further name is close to the previous
        // one.
        let found = match self.next {
            0 => earlier.contents.find(name),
            next => earlier.contents.find_from(next, name),
        };
        self.next = match &found {
            Ok(node) => node.index() + 1,
            Err(place) => *place,
        };
        self.node = found.ok();
    }

    /// Returns the previous signatures over `rrset`, which is at the current name, if the records
    /// of the previous version were the same.
    pub(super) fn signatures(&self, rrset: Rrset<'_>) -> PreviousSignatures<'e> {
        let known = self.earlier.zip(self.node).and_then(|(earlier, node)| {
            let before = node.rrset(rrset.rtype()).filter(|before| before.rdatas().eq(rrset.rdatas()))?;
            Some((earlier, node.signatures(before.rtype())?.rdatas().collect()))
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
    /// Returns the index of the key that made the signature, if the previous version shows it;
    /// `None` if the signature must be verified. `rdata` is the RDATA of the signature and `fields`
    /// its fields. Calls must follow the canonical order of the signatures.
    pub(super) fn key_of(&mut self, rdata: &[u8], fields: &Rrsig<'_>, keys: &ZoneKeys<'_>) -> Option<usize> {
        let (earlier, known) = self.known.as_mut()?;
        while known.front().is_some_and(|before| {
            *before != rdata && rdata::cmp_canonical(Rtype::RRSIG, before, rdata) == Ordering::Less
        }) {
            known.pop_front();
        }
        if known.front() != Some(&rdata) || !earlier.was_valid(fields) {
            return None;
        }
        // If two keys have the same tag, only a verification shows which one made the signature.
        let mut candidates = keys.candidates(fields.tag, fields.algorithm);
        let key = candidates.next().filter(|place| keys.keys[*place].public.is_some())?;
        candidates.next().is_none().then_some(key)
    }
}
