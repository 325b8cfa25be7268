//! What a zone that was verified before spares the next version of it: signatures that stand unchanged over unchanged records,
//! made by keys of an unchanged DNSKEY RRset, fit still, and are not verified again.
//!
//! Everything else is looked at as ever: the fields and times of every signature, chain and bit maps, keys, trust anchors,
//! digests. So what is refused is what verifying in full refuses.

use super::keys::ZoneKeys;
use crate::rrsig::Rrsig;
use nonesuch_proto::{NameRef, Rtype, rdata, serial};
use nonesuch_zone::{Contents, Node, Rrset};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// A zone whose signatures were all verified, at a time: what verifying its next version may rely on.
#[derive(Clone, Copy, Debug)]
pub struct VerifiedPredecessor<'e> {
    contents: &'e Contents,
    at: Option<u32>,
}

impl<'e> VerifiedPredecessor<'e> {
    /// A zone that a trusted record says was verified in full and without fault, as of the time `at` in seconds since 1970
    /// modulo 2^32, or of no time ([`VerifyOptions::now`](super::VerifyOptions)): that of a compiled zone, or of one that
    /// this process has verified. It must have been verified with this program's tables of algorithms: a compiled zone for which
    /// this holds has [`Verification::Full`](nonesuch_zone::Verification::Full).
    #[must_use]
    pub const fn from_record(contents: &'e Contents, at: Option<u32>) -> Self {
        Self { contents, at }
    }

    /// The zone.
    #[must_use]
    pub const fn contents(&self) -> &'e Contents {
        self.contents
    }

    /// Whether `next` is a version of the same zone with the same DNSKEY RRset, so that its signatures may be known.
    pub(super) fn has_keys_of(&self, next: &Contents) -> bool {
        let keys = [self.contents, next].map(|zone| zone.apex_rrset(Rtype::DNSKEY));
        let [Some(before), Some(now)] = keys else { return false };
        self.contents.apex() == next.apex() && before.rdatas().eq(now.rdatas())
    }

    /// Whether a signature of these times was verified: one that was not valid then beside others that were is left
    /// aside ([`SpareSignature`](super::VerifyWarning::SpareSignature)).
    fn was_valid(&self, fields: &Rrsig<'_>) -> bool {
        self.at.is_none_or(|at| {
            !serial::is_before(fields.expiration, at) && !serial::is_before(at, fields.inception)
        })
    }
}

/// Finds the signatures of an earlier version of the zone, name by name in canonical order.
pub(super) struct SignatureReuse<'e> {
    earlier: Option<VerifiedPredecessor<'e>>,
    /// Where the name that comes next is looked for.
    next: usize,
    node: Option<Node<'e>>,
}

impl<'e> SignatureReuse<'e> {
    pub(super) const fn new(earlier: Option<VerifiedPredecessor<'e>>) -> Self {
        Self { earlier, next: 0, node: None }
    }

    /// Goes to `name`, which comes after all names before.
    pub(super) fn advance_to(&mut self, name: NameRef<'_>) {
        let Some(earlier) = self.earlier else { return };
        // The first name may be anywhere, the others are close by.
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

    /// The signatures over `rrset`, which stands at the name gone to, where the earlier version had these records.
    pub(super) fn signatures(&self, rrset: Rrset<'_>) -> PreviousSignatures<'e> {
        let known = self.earlier.zip(self.node).and_then(|(earlier, node)| {
            let before = node.rrset(rrset.rtype()).filter(|before| before.rdatas().eq(rrset.rdatas()))?;
            Some((earlier, node.signatures(before.rtype())?.rdatas().collect()))
        });
        PreviousSignatures { known }
    }
}

/// The signatures that an RRset had; those in front of the one asked for last are gone.
pub(super) struct PreviousSignatures<'e> {
    known: Option<(VerifiedPredecessor<'e>, VecDeque<&'e [u8]>)>,
}

impl PreviousSignatures<'_> {
    /// The place of the key that the signature with this RDATA, and these fields of it, is known to be by; `None` where it
    /// must be verified. Signatures come in canonical order.
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
        // Of two keys with one tag, only verifying tells which one signed.
        let mut candidates = keys.candidates(fields.tag, fields.algorithm);
        let key = candidates.next().filter(|place| keys.keys[*place].public.is_some())?;
        candidates.next().is_none().then_some(key)
    }
}
