//! Generating minimally covering NSEC records (RFC 4470 §3).
//!
//! A record generated online must not deny an existing name, must not reveal one, and must let every validator find the
//! closest encloser of the denied name.
//!
//! A validator finds the closest encloser of a denied name from the NSEC record that covers it, and some validators from any
//! NSEC record of the response: the longest ancestor that the name shares with the record's owner or its next name. It takes a
//! next name below the denied one for the sign of an empty non-terminal. So the record spans the next closer name *with all
//! names below it*, from a name before it to the sibling after it: both share with the denied name its closest encloser and
//! no more. RFC 4470 §4 would have the next name directly below the denied one; validators reject that. The next name
//! follows from the question alone.
//!
//! A resolver that uses NSEC records again (RFC 8198) takes an owner that does not exist for a name without data, and
//! derives from the record that names below it do not exist either, nor the records of a wildcard at the owner or below it.
//! So the owner is:
//!
//! - the sibling before the next closer name, where neither it exists nor a wildcard matches it (RFC 4470 §4): the resolver
//!   answers NODATA for that name of 63 octets, where the server would answer NXDOMAIN;
//! - else the predecessor (RFC 4471 §3.1.1), the last name below that sibling, of 255 octets: no name fits below it. A shorter
//!   owner would have to be the last existing name below the sibling, and would reveal it;
//! - else, where the predecessor exists or is below a zone cut or a DNAME, that name with its own record: a record at a name
//!   before would deny that it exists, and none can stand below it (RFC 4470 §3, RFC 6840 §4.1).
//!
//! Where the next closer name has no sibling before it, the closest encloser takes the sibling's place.

use crate::denial::names::next_closer;
use crate::denial::proof_piece::{GeneratedRecord, ProofPiece, bitmap_types, make_nsec};
use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::{MAX_NAME, NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, NodeKind};
use std::cmp::Ordering;

/// Makes the NSEC records for a denial: what RFC 4035 §3.1.3 asks for, each as small as it can be.
pub(in crate::denial) fn prove<'i>(image: &'i Image, denied: DenialTarget<'i, '_>) -> Proof<'i> {
    let mut proof = Proof::default();
    match denied {
        DenialTarget::Name { name, encloser } => {
            let mut room = [0; MAX_NAME + 2];
            let wildcard = encloser.name().write_wildcard(&mut room);
            let next_closer = next_closer(name, encloser.name());
            match image.find_exact(wildcard) {
                None => push_name_error(image, next_closer, wildcard, &mut proof),
                // A wildcard that is a zone cut matches nothing (RFC 4592 §4.2), but it exists.
                Some(cut) => push_match_and_cover(image, cut, next_closer, &mut proof),
            }
        }
        DenialTarget::Type { node } | DenialTarget::Ds { cut: node } => {
            proof.push(ProofPiece::Generated(record_at(image, node)));
        }
        DenialTarget::CloserMatch { name, encloser } => {
            let next_closer = next_closer(name, encloser.name());
            proof.push(ProofPiece::Generated(record_over(image, next_closer, Wildcard::Matches)));
        }
        DenialTarget::WildcardType { name, encloser, wildcard } => {
            push_match_and_cover(image, wildcard, next_closer(name, encloser.name()), &mut proof);
        }
    }
    proof
}

/// The record at a name that exists. It shows the name's types and spans no name at all: the next name is the
/// immediate successor, but at a zone cut, where that would be the child zone's, the first name beside (RFC 9824 §3.4).
///
/// An empty non-terminal gets a record too, without types of its own: RFC 4470 §3 allows owners that were no owners
/// before, and validators read it as they read any record that matches.
pub(in crate::denial) fn record_at(image: &Image, node: ImageNode<'_>) -> GeneratedRecord {
    let (name, apex) = (node.name(), image.apex());
    let next = match node.kind() {
        NodeKind::Delegation => name.successor_of_subtree(apex),
        _ => name.successor(apex),
    };
    make_nsec(image, name.to_name(), next.view(), &mut bitmap_types(node))
}

/// RFC 4035 §3.1.3.2: one record denies the next closer name, one the wildcard.
fn push_name_error<'i>(
    image: &'i Image,
    next_closer: NameRef<'_>,
    wildcard: NameRef<'_>,
    proof: &mut Proof<'i>,
) {
    let (first, last) = match next_closer.cmp_canonical(wildcard) {
        Ordering::Less | Ordering::Equal => (next_closer, wildcard),
        Ordering::Greater => (wildcard, next_closer),
    };
    // Neighbours share a record: two would have the denied name for owner or next name, which says that it exists.
    if first == last || first.successor_of_subtree(image.apex()).view() == last {
        return proof.push(ProofPiece::Generated(record_spanning(image, first, last, Wildcard::None)));
    }
    proof.push(ProofPiece::Generated(record_over(image, next_closer, Wildcard::None)));
    proof.push(ProofPiece::Generated(record_over(image, wildcard, Wildcard::None)));
}

/// One record at the wildcard, which exists, and one over the next closer name (RFC 4035 §3.1.3.4). For the name directly
/// behind a wildcard that is a zone cut both are one record.
fn push_match_and_cover<'i>(
    image: &'i Image,
    wildcard: ImageNode<'i>,
    next_closer: NameRef<'_>,
    proof: &mut Proof<'i>,
) {
    let matches = match wildcard.kind() {
        NodeKind::Delegation => Wildcard::None,
        NodeKind::Authoritative | NodeKind::Hash => Wildcard::Matches,
    };
    proof.push(ProofPiece::Generated(record_at(image, wildcard)));
    proof.push(ProofPiece::Generated(record_over(image, next_closer, matches)));
}

/// Whether a wildcard matches the names below the closest encloser that do not exist; one that is a zone cut does not
/// (RFC 4592 §4.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::denial) enum Wildcard {
    /// None does: they do not exist.
    None,
    /// One does.
    Matches,
}

/// The record that covers `denied` and all names below it. Its parent exists and it does not.
pub(in crate::denial) fn record_over(
    image: &Image,
    denied: NameRef<'_>,
    wildcard: Wildcard,
) -> GeneratedRecord {
    record_spanning(image, denied, denied, wildcard)
}

/// The record that covers two names of one parent, equal or neighbours, and all names below them. The parent exists and
/// they do not. The owner is chosen as the module's description has it.
fn record_spanning(
    image: &Image,
    first: NameRef<'_>,
    last: NameRef<'_>,
    wildcard: Wildcard,
) -> GeneratedRecord {
    let next = last.successor_of_subtree(image.apex());
    let sibling = first.sibling_predecessor().unwrap_or_else(|| image.apex().to_name());
    let existing = image.last_name_in(sibling.view(), first);
    if existing.is_none() && wildcard == Wildcard::None {
        return make_nsec(image, sibling, next.view(), &mut Vec::with_capacity(2));
    }
    let predecessor = first.predecessor().unwrap_or(sibling);
    match existing.filter(|node| must_own(*node, predecessor.view())) {
        Some(node) => make_nsec(image, node.name().to_name(), next.view(), &mut bitmap_types(node)),
        None => make_nsec(image, predecessor, next.view(), &mut Vec::with_capacity(2)),
    }
}

/// Whether `last`, the last existing name up to `predecessor`, must be the owner instead of it.
fn must_own(last: ImageNode<'_>, predecessor: NameRef<'_>) -> bool {
    let hides = last.kind() == NodeKind::Delegation || last.template(Rtype::DNAME).is_some();
    predecessor == last.name() || hides && predecessor.is_below(last.name())
}
