//! The pieces of a proof of denial that the zone does not contain completely: some pieces are
//! records generated online or NSEC5 proofs.

use super::{insert_type, nsec, push_bitmap_types};
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};
use nonesuch_zone::image::{ImageNode, NodeKind, Template};
use nonesuch_zone::{Image, NameStatus};

/// One piece of a proof of denial.
#[derive(Clone, Debug)]
pub enum ProofPiece<'i> {
    /// An RRset of the image with its signatures. If the zone has no signatures, the RRset is
    /// signed online.
    Stored(Template<'i>),
    /// An NSEC or NSEC3 RRset with one record, generated for this response. The server signs it
    /// with the ZSKs of the zone.
    Generated(GeneratedRecord),
    /// An NSEC5PROOF record. The proofs of the names of the chain are stored with the zone; the
    /// server generates other proofs online.
    Proven {
        /// The name that the proof is for, which is the owner of the record, in canonical form.
        name: Name,
        /// TTL in seconds, equal to the TTL of the NSEC5 record that the proof accompanies.
        ttl: u32,
    },
}

/// A record generated online.
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
    /// Returns whether `other` is the same RRset as this piece. If both are generated NSEC records
    /// with the same owner, merges `other` into this piece.
    fn merge(&mut self, other: &ProofPiece<'_>) -> bool {
        match (self, other) {
            (Self::Stored(own), ProofPiece::Stored(other)) => own.is_same(*other),
            (Self::Generated(own), ProofPiece::Generated(other)) => own.merge(other),
            (Self::Proven { name: own, .. }, ProofPiece::Proven { name: other, .. }) => own == other,
            _ => false,
        }
    }
}

/// Adds a piece to the pieces of one response, or merges it with a piece that is the same RRset. A
/// response contains each RRset once (RFC 2181 §5).
pub fn add_or_merge<'i>(pieces: &mut Vec<ProofPiece<'i>>, piece: ProofPiece<'i>) {
    if !pieces.iter_mut().any(|present| present.merge(&piece)) {
        pieces.push(piece);
    }
}

impl GeneratedRecord {
    /// Merges `other` into this record if the records are equal, or are NSEC records with the same
    /// owner. Returns whether it has merged them.
    ///
    /// Of two NSEC records, the result has the later next name and the types of both records.
    /// Neither record covers an existing name, so the record with the later next name covers all
    /// denied names. If the owner exists, both records have the same types. If it does not exist
    /// (RFC 9824 §3), one record has the types and the other has none.
    pub fn merge(&mut self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        if (self.rtype, other.rtype) != (Rtype::NSEC, Rtype::NSEC) || self.owner != other.owner {
            return false;
        }
        let (Ok((own_next, own_map)), Ok((other_next, other_map))) =
            (NameRef::split_from(&self.rdata), NameRef::split_from(&other.rdata))
        else {
            return false;
        };
        // In the last record of a zone, the next name is the apex, which does not follow the owner.
        // It is later than all other next names.
        let is_apex = |next: NameRef<'_>| next <= self.owner.view();
        let own_is_earlier = (is_apex(own_next), own_next) < (is_apex(other_next), other_next);
        let later = if own_is_earlier { other_next } else { own_next };
        let mut types: Vec<Rtype> = bitmap::types(own_map).collect();
        bitmap::types(other_map).for_each(|rtype| insert_type(&mut types, rtype));
        let mut rdata = Vec::with_capacity(later.len() + 16);
        nsec::chain::push_rdata(later, &mut types, &mut rdata);
        self.rdata = rdata;
        true
    }
}

/// TTL in seconds of denial records: the minimum of the TTL of the SOA record and its MINIMUM field
/// (RFC 9077 §3).
pub(super) fn denial_ttl(image: &Image) -> u32 {
    image.negative_soa().ttl()
}

/// Generates an NSEC record (RFC 4034 §4). Adds RRSIG and NSEC to `types`: the owner has both
/// because of this record.
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

/// The types that a chain record lists for a node, in ascending order, as the signer lists them:
/// none for an empty non-terminal, those on the parent side for a zone cut. The mechanism adds its
/// own types.
pub(super) fn bitmap_types(node: ImageNode<'_>) -> Vec<Rtype> {
    let mut types = Vec::with_capacity(12);
    push_bitmap_types(node.templates().map(Template::rtype), name_status(node), &mut types);
    types
}

/// The status of a node of the image in its zone.
pub(super) fn name_status(node: ImageNode<'_>) -> NameStatus {
    if node.kind() == NodeKind::Delegation { NameStatus::Delegation } else { NameStatus::Authoritative }
}
