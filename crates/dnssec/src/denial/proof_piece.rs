//! What a proof of denial is made of where not all of it stands in the zone: records made when asked, and NSEC5 proofs.

use super::{insert_type, nsec, push_shown_types};
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};
use nonesuch_zone::image::{ImageNode, NodeKind, Template};
use nonesuch_zone::{Image, NameStatus};

/// One piece of a proof of denial.
#[derive(Clone, Debug)]
pub enum ProofPiece<'i> {
    /// An RRset of the image with its signatures, or to be signed when asked where the zone has none.
    Stored(Template<'i>),
    /// An NSEC or NSEC3 RRset of one record that is made for this answer; to be signed with the zone's ZSKs.
    Generated(GeneratedRecord),
    /// An NSEC5PROOF record. The proofs that match names of the chain are stored beside the zone; others are to be
    /// made when asked.
    Proven {
        /// The name that the proof speaks of, the owner of the record, in canonical form.
        name: Name,
        /// TTL in seconds: that of the NSEC5 record that it goes with.
        ttl: u32,
    },
}

/// A record made when asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GeneratedRecord {
    /// The owner, in canonical form.
    pub owner: Name,
    /// NSEC or NSEC3.
    pub rtype: Rtype,
    /// TTL in seconds.
    pub ttl: u32,
    /// RDATA in canonical wire form.
    pub rdata: Vec<u8>,
}

impl ProofPiece<'_> {
    /// Merges `other` into this piece if both are one RRset; returns whether they are.
    fn merge(&mut self, other: &ProofPiece<'_>) -> bool {
        match (self, other) {
            (Self::Stored(own), ProofPiece::Stored(other)) => own.is(*other),
            (Self::Generated(own), ProofPiece::Generated(other)) => own.merge(other),
            (Self::Proven { name: own, .. }, ProofPiece::Proven { name: other, .. }) => own == other,
            _ => false,
        }
    }
}

/// Adds a piece to those of one response, which has each RRset once (RFC 2181 §5).
pub fn push<'i>(pieces: &mut Vec<ProofPiece<'i>>, piece: ProofPiece<'i>) {
    if !pieces.iter_mut().any(|present| present.merge(&piece)) {
        pieces.push(piece);
    }
}

impl GeneratedRecord {
    /// Merges `other` into this record if both have one owner and type; returns whether they have.
    ///
    /// Of two NSEC records the later next name stays: neither record covers a name that exists, and so that one covers
    /// all that is denied. The types stay too: those of a name that exists are the same in both, and of one that does not
    /// (RFC 9824 §3) one record has them and the other none.
    pub fn merge(&mut self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        if (self.rtype, other.rtype) != (Rtype::NSEC, Rtype::NSEC) || self.owner != other.owner {
            return false;
        }
        let (Ok((own, map)), Ok((next, more))) =
            (NameRef::split_from(&self.rdata), NameRef::split_from(&other.rdata))
        else {
            return false;
        };
        // The last record of a zone leads back to the apex.
        let order = |next: NameRef<'_>| next <= self.owner.view();
        let later = if (order(own), own) < (order(next), next) { next } else { own };
        let mut types: Vec<Rtype> = bitmap::types(map).collect();
        bitmap::types(more).for_each(|rtype| insert_type(&mut types, rtype));
        let mut rdata = Vec::with_capacity(later.len() + 16);
        nsec::chain::push_rdata(later, &mut types, &mut rdata);
        self.rdata = rdata;
        true
    }
}

/// TTL in seconds of records of denial: the lesser of the SOA record's TTL and its last field (RFC 9077 §3).
pub(super) fn denial_ttl(image: &Image) -> u32 {
    image.negative_soa().ttl()
}

/// An NSEC record (RFC 4034 §4) whose `types` are completed with RRSIG and NSEC, which stand at its owner by its being
/// there.
pub(super) fn make_nsec(
    image: &Image,
    owner: Name,
    next: NameRef<'_>,
    types: &mut Vec<Rtype>,
) -> GeneratedRecord {
    let mut rdata = Vec::with_capacity(next.len() + 16);
    nsec::chain::push_rdata(next, types, &mut rdata);
    GeneratedRecord { owner, rtype: Rtype::NSEC, ttl: denial_ttl(image), rdata }
}

/// The types that a record of a chain shows of a node, ascending, as the signer would have them: none for an empty
/// non-terminal, those of the parent's side for a zone cut. The mechanism adds what belongs to it.
pub(super) fn bitmap_types(node: ImageNode<'_>) -> Vec<Rtype> {
    let mut types = Vec::with_capacity(12);
    push_shown_types(node.templates().map(Template::rtype), name_status(node), &mut types);
    types
}

/// Where a node of the image stands in its zone.
pub(super) fn name_status(node: ImageNode<'_>) -> NameStatus {
    if node.kind() == NodeKind::Delegation { NameStatus::Delegation } else { NameStatus::Authoritative }
}
