//! Reuses signatures of the previous signed zone.
//!
//! A signature is reused if it is over the same records with the same TTL, is by a key that would
//! sign them now, and is valid beyond the refresh window. The key is identified by key tag and
//! algorithm, as in a validator. In addition, the DNSKEY RRset of the previous zone must contain
//! this key, and no other key with the same tag and algorithm, which could have generated the
//! signature.

use super::plan::{PlannedRecords, PlannedRrset};
use super::{PreviousZone, SignOptions};
use crate::keys::KeySet;
use crate::rrsig::{RRSIG_FIXED_OCTETS, Rrsig};
use nonesuch_crypto::{Algorithm, PublicKey, key_tag};
use nonesuch_proto::{NameRef, Rtype, rdata, serial};
use nonesuch_zone::compiled::TimeRange;
use nonesuch_zone::{Contents, Node, Rrset};

/// A key of the key set, in the order of the set.
struct ReuseKey {
    tag: u16,
    algorithm: Algorithm,
    /// The public key, for the verification of reused signatures; `None` if its signatures must not
    /// be reused.
    public_key: Option<PublicKey>,
}

/// The signatures of the previous zone that can be reused.
pub(super) struct ReusableSignatures<'a> {
    previous: &'a Contents,
    keys: Vec<ReuseKey>,
    now: u32,
    /// End of the refresh window: reused signatures must expire after this time.
    refresh_until: u32,
    verify_all: bool,
}

impl<'a> ReusableSignatures<'a> {
    /// The reusable signatures of the previous zone of `options`, for a zone that `keys` sign.
    /// `None` if the options have no previous zone.
    pub(super) fn new(keys: &KeySet, options: &SignOptions<'a>) -> Option<Self> {
        let PreviousZone { contents, refresh, verify } = options.previous?;
        let dnskeys = contents.apex_rrset(Rtype::DNSKEY);
        let present: Vec<&[u8]> = dnskeys.into_iter().flat_map(Rrset::rdatas).collect();
        let keys = keys.keys().iter().map(|key| {
            let (tag, algorithm) = (key.tag(), key.algorithm());
            let can_reuse = is_unambiguous(&present, &key.dnskey_rdata(), tag);
            let public_key =
                can_reuse.then(|| PublicKey::parse(algorithm, key.private().public_key()).ok()).flatten();
            ReuseKey { tag, algorithm, public_key }
        });
        let (now, refresh_until) = (options.now, options.now.wrapping_add(refresh));
        Some(Self { previous: contents, keys: keys.collect(), now, refresh_until, verify_all: verify })
    }

    /// A cursor in the previous zone for lookups in canonical order, beginning with `first`.
    pub(super) fn cursor_from(&self, first: NameRef<'_>) -> Cursor<'a> {
        let next = self.previous.find(first).map_or_else(|insert_at| insert_at, Node::index);
        Cursor { contents: self.previous, next }
    }

    /// All signatures over the RRset of `planned` at `node`, a node of the previous zone; `None` if
    /// the RRset there has other records.
    pub(super) fn signatures(&self, node: Option<Node<'a>>, planned: &PlannedRrset<'_>) -> Option<Rrset<'a>> {
        let node = node?;
        let is_same = node.rrset(planned.rtype).is_some_and(|old| has_records(old, planned));
        if is_same { node.signatures(planned.rtype) } else { None }
    }

    /// Finds the reusable signature by `key` (an index in the key set) over `planned` at `owner`
    /// among `signatures`; returns its RDATA and fields.
    pub(super) fn find_reusable(
        &self,
        signatures: Rrset<'a>,
        owner: NameRef<'_>,
        planned: &PlannedRrset<'_>,
        key: usize,
    ) -> Option<(&'a [u8], Rrsig<'a>)> {
        let fits = |fields: &Rrsig<'_>| {
            fields.labels == owner.rrsig_labels()
                && fields.original_ttl == planned.ttl
                && fields.signer == self.previous.apex().view()
                && self.is_fresh(key, fields)
        };
        signatures.rdatas().find_map(|octets| {
            let fields = Rrsig::parse(octets)?;
            fits(&fields).then_some((octets, fields))
        })
    }

    /// Whether a signature is by `key`, and is valid now and beyond the refresh window.
    pub(super) fn is_fresh(&self, key: usize, fields: &Rrsig<'_>) -> bool {
        let ReuseKey { tag, algorithm, public_key } = &self.keys[key];
        fields.tag == *tag
            && fields.algorithm == *algorithm
            && public_key.is_some()
            && !serial::is_before(self.now, fields.inception)
            && serial::is_before(self.refresh_until, fields.expiration)
    }

    /// As [`ReusableSignatures::is_fresh`], for RDATA whose original TTL must also be `ttl`. Reads
    /// only the necessary fields, which takes less time.
    pub(super) fn is_fresh_rdata(&self, key: usize, rdata: &[u8], ttl: u32) -> bool {
        let ReuseKey { tag, algorithm, public_key } = &self.keys[key];
        let Some((fixed, _)) = rdata.split_first_chunk::<RRSIG_FIXED_OCTETS>() else { return false };
        let u32_at = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        u16::from_be_bytes([fixed[16], fixed[17]]) == *tag
            && fixed[2] == algorithm.0
            && u32_at(4) == ttl
            && public_key.is_some()
            && !serial::is_before(self.now, u32_at(12))
            && serial::is_before(self.refresh_until, u32_at(8))
    }

    /// Whether all signatures with inceptions and expirations in these ranges are valid now and
    /// beyond the refresh window. The ranges are in serial number arithmetic; at most 2^31 seconds
    /// are between the first and the last time.
    pub(super) fn are_fresh_between(&self, inceptions: TimeRange, expirations: TimeRange) -> bool {
        let bounds = |times: TimeRange| [times.first, times.last];
        bounds(inceptions).iter().all(|inception| !serial::is_before(self.now, *inception))
            && bounds(expirations).iter().all(|expiration| serial::is_before(self.refresh_until, *expiration))
    }

    /// The public key of `key`, an index in the key set; `None` if its signatures must not be
    /// reused.
    pub(super) fn public_key(&self, key: usize) -> Option<&PublicKey> {
        self.keys[key].public_key.as_ref()
    }

    /// Whether every reused signature must be verified, instead of a sample.
    pub(super) const fn verifies_all(&self) -> bool {
        self.verify_all
    }
}

/// Whether `dnskey` is among the keys of the zone, and is the only one with its tag and algorithm.
fn is_unambiguous(present: &[&[u8]], dnskey: &[u8], tag: u16) -> bool {
    let mut same_tag = present.iter().filter(|rdata| rdata.get(3) == dnskey.get(3) && key_tag(rdata) == tag);
    same_tag.next().is_some_and(|found| *found == dnskey) && same_tag.next().is_none()
}

/// Whether an RRset has the records of `planned`. Names in RDATA may differ in letter case if their
/// canonical form is in lower case (RFC 4034 §6.2), because the signed data are the same.
fn has_records(old: Rrset<'_>, planned: &PlannedRrset<'_>) -> bool {
    let same = |a: &[u8], b: &[u8]| a == b || rdata::cmp_canonical(planned.rtype, a, b).is_eq();
    match planned.records {
        PlannedRecords::Stored(new) => {
            old.count() == new.count() && old.rdatas().zip(new.rdatas()).all(|(a, b)| same(a, b))
        }
        PlannedRecords::Generated(new) => old.count() == 1 && old.rdatas().all(|rdata| rdata == new),
    }
}

/// A cursor in contents that only moves forward.
pub(super) struct Cursor<'a> {
    contents: &'a Contents,
    /// Index of the first node that a lookup can return.
    next: usize,
}

impl<'a> Cursor<'a> {
    /// The node of `name`, or the index at which it would be inserted. `name` must follow the names
    /// of all previous lookups.
    pub(super) fn find(&mut self, name: NameRef<'_>) -> Result<Node<'a>, usize> {
        let found = self.contents.find_from(self.next, name);
        self.next = found.map_or_else(|insert_at| insert_at, Node::index);
        found
    }

    /// The node of `name`, which must follow the names of all previous lookups.
    pub(super) fn seek(&mut self, name: NameRef<'_>) -> Option<Node<'a>> {
        self.find(name).ok()
    }
}
