//! Reuses signatures of the previous signed zone.
//!
//! A signature is reused if it is over the same records with the same TTL, is by a key that would
//! sign them now, and is valid beyond the refresh window. The key is identified by key tag and
//! algorithm, as in a validator. In addition, the DNSKEY RRset of the previous zone must have
//! exactly this key: a signature by another key with the same tag is never reused.

use super::plan::{PlannedRecords, PlannedRrset};
use super::{PreviousZone, SignOptions};
use crate::keys::KeySet;
use crate::rrsig::Rrsig;
use nonesuch_crypto::{Algorithm, PublicKey, key_tag};
use nonesuch_proto::{NameRef, Rtype, rdata, serial};
use nonesuch_zone::compiled::TimeRange;
use nonesuch_zone::{Contents, Node, Rrset};

/// A key of the key set.
struct ReuseKey {
    tag: u16,
    algorithm: Algorithm,
    /// The public key, for the verification of reused signatures; `None` if its signatures must not
    /// be reused.
    public: Option<PublicKey>,
}

/// The signatures of the previous zone that can be reused.
pub(super) struct ReusableSignatures<'a> {
    previous: &'a Contents,
    keys: Vec<ReuseKey>,
    now: u32,
    /// Reused signatures must expire after this time.
    until: u32,
    verify_all: bool,
}

impl<'a> ReusableSignatures<'a> {
    /// `None` if the options have no previous zone.
    pub(super) fn new(keys: &KeySet, options: &SignOptions<'a>) -> Option<Self> {
        let PreviousZone { contents, refresh, verify } = options.previous?;
        let dnskeys = contents.apex_rrset(Rtype::DNSKEY);
        let present: Vec<&[u8]> = dnskeys.into_iter().flat_map(Rrset::rdatas).collect();
        let keys = keys.keys().iter().map(|key| {
            let (tag, algorithm) = (key.tag(), key.algorithm());
            let can_reuse = is_unambiguous(&present, &key.dnskey_rdata(), tag);
            let public =
                can_reuse.then(|| PublicKey::parse(algorithm, key.private().public_key()).ok()).flatten();
            ReuseKey { tag, algorithm, public }
        });
        let until = options.now.wrapping_add(refresh);
        Some(Self { previous: contents, keys: keys.collect(), now: options.now, until, verify_all: verify })
    }

    /// A cursor in the previous zone for lookups in canonical order, beginning with `first`.
    pub(super) fn cursor_from(&self, first: NameRef<'_>) -> Cursor<'a> {
        let at = self.previous.find(first).map_or_else(|place| place, Node::index);
        Cursor { contents: self.previous, at }
    }

    /// The signatures over `piece` in the previous zone, if it has the same records at `node`.
    pub(super) fn signatures(&self, node: Option<Node<'a>>, piece: &PlannedRrset<'_>) -> Option<Rrset<'a>> {
        let node = node?;
        let is_same = node.rrset(piece.rtype).is_some_and(|old| has_records(old, piece));
        if is_same { node.signatures(piece.rtype) } else { None }
    }

    /// The reusable signature by `key` over `piece` at `owner` among `signatures`.
    pub(super) fn reusable(
        &self,
        signatures: Rrset<'a>,
        owner: NameRef<'_>,
        piece: &PlannedRrset<'_>,
        key: usize,
    ) -> Option<(&'a [u8], Rrsig<'a>)> {
        let fits = |fields: &Rrsig<'_>| {
            fields.labels == owner.rrsig_labels()
                && fields.original_ttl == piece.ttl
                && fields.signer == self.previous.apex().view()
                && self.is_fresh(key, fields)
        };
        signatures.rdatas().find_map(|octets| {
            let fields = Rrsig::parse(octets)?;
            fits(&fields).then_some((octets, fields))
        })
    }

    /// Whether a signature is by `key`, is valid now, and is valid beyond the refresh window.
    pub(super) fn is_fresh(&self, key: usize, fields: &Rrsig<'_>) -> bool {
        let ReuseKey { tag, algorithm, public } = &self.keys[key];
        fields.tag == *tag
            && fields.algorithm == *algorithm
            && public.is_some()
            && !serial::is_before(self.now, fields.inception)
            && serial::is_before(self.until, fields.expiration)
    }

    /// As [`ReusableSignatures::is_fresh`] for RDATA with the original TTL `ttl`; ignores the other
    /// fields.
    pub(super) fn is_fresh_rdata(&self, key: usize, rdata: &[u8], ttl: u32) -> bool {
        let ReuseKey { tag, algorithm, public } = &self.keys[key];
        let Some((fixed, _)) = rdata.split_first_chunk::<18>() else { return false };
        let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        u16::from_be_bytes([fixed[16], fixed[17]]) == *tag
            && fixed[2] == algorithm.0
            && word(4) == ttl
            && public.is_some()
            && !serial::is_before(self.now, word(12))
            && serial::is_before(self.until, word(8))
    }

    /// Whether all signatures with inceptions and expirations in these ranges are valid now and
    /// beyond the refresh window. The ranges are in serial number arithmetic; at most 2^31 seconds
    /// are between the first and the last time.
    pub(super) fn are_fresh_between(&self, inceptions: TimeRange, expirations: TimeRange) -> bool {
        let both = |times: TimeRange| [times.first, times.last];
        both(inceptions).iter().all(|inception| !serial::is_before(self.now, *inception))
            && both(expirations).iter().all(|expiration| serial::is_before(self.until, *expiration))
    }

    /// The public key, if signatures by the key can be reused.
    pub(super) fn public(&self, key: usize) -> Option<&PublicKey> {
        self.keys[key].public.as_ref()
    }

    pub(super) const fn verifies_all(&self) -> bool {
        self.verify_all
    }
}

/// Whether `dnskey` is among the keys of the zone, and is the only one with its tag and algorithm.
fn is_unambiguous(present: &[&[u8]], dnskey: &[u8], tag: u16) -> bool {
    let mut twins = present.iter().filter(|rdata| rdata.get(3) == dnskey.get(3) && key_tag(rdata) == tag);
    twins.next().is_some_and(|found| *found == dnskey) && twins.next().is_none()
}

/// Whether an RRset has the records of `piece`. Names in RDATA may differ in letter case if the
/// canonical form is in lower case, because the signature is the same.
fn has_records(old: Rrset<'_>, piece: &PlannedRrset<'_>) -> bool {
    let same = |a: &[u8], b: &[u8]| a == b || rdata::cmp_canonical(piece.rtype, a, b).is_eq();
    match piece.records {
        PlannedRecords::Stored(new) => {
            old.count() == new.count() && old.rdatas().zip(new.rdatas()).all(|(a, b)| same(a, b))
        }
        PlannedRecords::Generated(new) => old.count() == 1 && old.rdatas().all(|rdata| rdata == new),
    }
}

/// A cursor in contents that only moves forward.
pub(super) struct Cursor<'a> {
    contents: &'a Contents,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The node of `name`, or the index at which it would be inserted. `name` must follow the names
    /// of all previous lookups.
    pub(super) fn find(&mut self, name: NameRef<'_>) -> Result<Node<'a>, usize> {
        let found = self.contents.find_from(self.at, name);
        self.at = found.map_or_else(|place| place, Node::index);
        found
    }

    /// The node of `name`, which must follow the names of all previous lookups.
    pub(super) fn seek(&mut self, name: NameRef<'_>) -> Option<Node<'a>> {
        self.find(name).ok()
    }
}
