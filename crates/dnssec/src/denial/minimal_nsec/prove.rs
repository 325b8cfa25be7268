//! Generates minimally covering NSEC records (RFC 4470 §3).
//!
//! A record generated online must not deny an existing name and must not reveal one. It must let
//! every validator find the closest encloser of the denied name.
//!
//! A validator computes the closest encloser from the NSEC record that covers the denied name: the
//! longest ancestor that this name shares with the owner or the next name of the record. Some
//! validators use any NSEC record of the response. If the next name is below the denied name, the
//! denied name is an empty non-terminal. So the record covers the next closer name *and all names
//! below it*: its owner precedes the next closer name, and its next name is the sibling after the
//! next closer name (the first possible name with the same parent that follows it). Then the denied
//! name shares exactly the closest encloser with both the owner and the next name. RFC 4470 §4
//! proposes a next name directly below the denied name; validators reject that. The next name
//! depends only on the query name and its closest encloser.
//!
//! A resolver that makes aggressive use of NSEC records (RFC 8198) treats an owner that does not
//! exist as a name without data. It concludes from the record that no names below the owner exist,
//! and no wildcard at or below the owner. So the owner is one of these names:
//!
//! - The sibling before the next closer name (the last possible name with the same parent that
//!   precedes it), if this sibling does not exist and no wildcard matches it (RFC 4470 §4). The resolver then answers NODATA for this name with a label of 63 octets, for
//!   which the server answers NXDOMAIN.
//! - Otherwise the predecessor of the next closer name (RFC 4471 §3.1.1): the last possible name
//!   below that sibling. It has 255
//!   octets, so no name fits below it. A shorter owner would have to be the last existing name
//!   below the sibling, and would reveal it.
//! - If the predecessor exists or is below a zone cut or a DNAME record: this existing name or cut,
//!   with its own record. A record at an earlier name would deny that it exists, and an NSEC record
//!   below the cut or DNAME record is not permitted (RFC 4470 §3, RFC 6840 §4.1).
//!
//! If no sibling precedes the next closer name, the closest encloser replaces the sibling.

use crate::denial::names::next_closer;
use crate::denial::proof_piece::{GeneratedRecord, ProofPiece, bitmap_types, make_nsec};
use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::{MAX_NAME, NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, NodeKind};
use std::cmp::Ordering;

/// Generates the NSEC records that RFC 4035 §3.1.3 requires for a denial. Each covers as few names
/// as possible.
pub(in crate::denial) fn prove<'i>(image: &'i Image, target: DenialTarget<'i, '_>) -> Proof<'i> {
    let mut proof = Proof::default();
    match target {
        DenialTarget::NxDomain { name, encloser } => {
            let mut buffer = [0; MAX_NAME + 2];
            let wildcard = encloser.name().write_wildcard(&mut buffer);
            let next_closer = next_closer(name, encloser.name());
            match image.find_exact(wildcard) {
                None => push_nxdomain(image, next_closer, wildcard, &mut proof),
                // A wildcard at a zone cut matches nothing (RFC 4592 §4.2), but it exists.
                Some(cut) => push_match_and_covering(image, cut, next_closer, &mut proof),
            }
        }
        DenialTarget::NoData { node } | DenialTarget::NoDs { cut: node } => {
            proof.add_piece(ProofPiece::Generated(matching_record(image, node)));
        }
        DenialTarget::WildcardExpansion { name, encloser } => {
            let next_closer = next_closer(name, encloser.name());
            proof.add_piece(ProofPiece::Generated(covering_record(image, next_closer, Wildcard::Matches)));
        }
        DenialTarget::WildcardNoData { name, encloser, wildcard } => {
            push_match_and_covering(image, wildcard, next_closer(name, encloser.name()), &mut proof);
        }
    }
    proof
}

/// The record at an existing name. It lists the types of the name and covers no name: the next name
/// is the immediate successor. At a zone cut the successor would belong to the child zone, so the
/// next name is the first name after the child zone (RFC 9824 §3.4).
///
/// An empty non-terminal also gets a record, without types of its own. RFC 4470 §3 allows owners
/// that own no other records, and validators handle the record like any record that matches.
pub(in crate::denial) fn matching_record(image: &Image, node: ImageNode<'_>) -> GeneratedRecord {
    let (name, apex) = (node.name(), image.apex());
    let next = match node.kind() {
        NodeKind::Delegation => name.successor_of_subtree(apex),
        _ => name.successor(apex),
    };
    make_nsec(image, name.to_name(), next.view(), &mut bitmap_types(node))
}

/// RFC 4035 §3.1.3.2: one record denies the next closer name, and one denies the wildcard.
fn push_nxdomain<'i>(
    image: &'i Image,
    next_closer: NameRef<'_>,
    wildcard: NameRef<'_>,
    proof: &mut Proof<'i>,
) {
    let (first, last) = match next_closer.cmp_canonical(wildcard) {
        Ordering::Less | Ordering::Equal => (next_closer, wildcard),
        Ordering::Greater => (wildcard, next_closer),
    };
    // Adjacent names share one record. With two records, the denied name would be the owner or next
    // name of one of them, which states that it exists.
    if first == last || first.successor_of_subtree(image.apex()).view() == last {
        return proof.add_piece(ProofPiece::Generated(covering_record_of_two(
            image,
            first,
            last,
            Wildcard::None,
        )));
    }
    proof.add_piece(ProofPiece::Generated(covering_record(image, next_closer, Wildcard::None)));
    proof.add_piece(ProofPiece::Generated(covering_record(image, wildcard, Wildcard::None)));
}

/// Adds one record at the wildcard, which exists, and one that covers the next closer name
/// (RFC 4035 §3.1.3.4). If the next closer name directly follows a wildcard at a zone cut, both are
/// the same record.
fn push_match_and_covering<'i>(
    image: &'i Image,
    wildcard: ImageNode<'i>,
    next_closer: NameRef<'_>,
    proof: &mut Proof<'i>,
) {
    let matches = match wildcard.kind() {
        NodeKind::Delegation => Wildcard::None,
        NodeKind::Authoritative | NodeKind::HashChainOwner => Wildcard::Matches,
    };
    proof.add_piece(ProofPiece::Generated(matching_record(image, wildcard)));
    proof.add_piece(ProofPiece::Generated(covering_record(image, next_closer, matches)));
}

/// Whether a wildcard matches the names below the closest encloser that do not exist. A wildcard at
/// a zone cut matches no name (RFC 4592 §4.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::denial) enum Wildcard {
    /// No wildcard matches: the names do not exist.
    None,
    /// A wildcard matches.
    Matches,
}

/// The record that covers `denied` and all names below it. The parent of `denied` exists, and
/// `denied` does not.
pub(in crate::denial) fn covering_record(
    image: &Image,
    denied: NameRef<'_>,
    wildcard: Wildcard,
) -> GeneratedRecord {
    covering_record_of_two(image, denied, denied, wildcard)
}

/// The record that covers the names `first` and `last` and all names below them. The two names have
/// the same parent, and are equal or adjacent. The parent exists, and they do not. The module
/// documentation describes the choice of the owner.
fn covering_record_of_two(
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
    match existing.filter(|node| must_be_owner(*node, predecessor.view())) {
        Some(node) => make_nsec(image, node.name().to_name(), next.view(), &mut bitmap_types(node)),
        None => make_nsec(image, predecessor, next.view(), &mut Vec::with_capacity(2)),
    }
}

/// Whether the owner of the covering record must be `last` and not `predecessor`. `last` is the
/// last existing name up to `predecessor`.
fn must_be_owner(last: ImageNode<'_>, predecessor: NameRef<'_>) -> bool {
    let is_cut_or_dname = last.kind() == NodeKind::Delegation || last.template(Rtype::DNAME).is_some();
    predecessor == last.name() || is_cut_or_dname && predecessor.is_below(last.name())
}
