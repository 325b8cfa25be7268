//! Generates the NSEC record of compact denial (RFC 9824 §3).

use crate::denial::minimal_nsec::prove::{Wildcard, covering_record, matching_record};
use crate::denial::names::next_closer;
use crate::denial::proof_piece::{GeneratedRecord, ProofPiece, bitmap_types, make_nsec};
use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::{MAX_NAME, NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::ImageNode;

/// Generates the NSEC record for a denial; none for the answer of a wildcard without stored
/// signatures, because the server then signs the answer as an exact match.
pub(in crate::denial) fn prove<'i>(image: &'i Image, target: DenialTarget<'i, '_>) -> Proof<'i> {
    let mut proof = Proof::default();
    let record = match target {
        // RFC 9824 §3.1: the owner is the query name, not the next closer name.
        DenialTarget::NxDomain { name, .. } => Some(record_at_missing_name(image, name)),
        // RFC 9824 §3.2 and §3.4. An empty non-terminal has only RRSIG and NSEC in the bit map.
        DenialTarget::NoData { node } | DenialTarget::NoDs { cut: node } => {
            Some(matching_record(image, node))
        }
        // RFC 9824 §3.3: a signature generated online is the signature of an exact match, and needs
        // no further proof. A stored signature is for the wildcard, so the response must deny a
        // closer match (RFC 4035 §3.1.3.3).
        DenialTarget::WildcardExpansion { name, encloser } => has_signed_wildcard(image, encloser)
            .then(|| covering_record(image, next_closer(name, encloser.name()), Wildcard::Matches)),
        // RFC 9824 §3.3: the owner is the query name, with the types of the wildcard.
        DenialTarget::WildcardNoData { name, wildcard, .. } => {
            let next = name.successor(image.apex());
            Some(make_nsec(image, name.to_canonical(), next.view(), &mut bitmap_types(wildcard)))
        }
    };
    if let Some(record) = record {
        proof.add_piece(ProofPiece::Generated(record));
    }
    proof
}

/// The record for a name that does not exist (RFC 9824 §3.1).
fn record_at_missing_name(image: &Image, name: NameRef<'_>) -> GeneratedRecord {
    let mut types = vec![Rtype::NXNAME];
    make_nsec(image, name.to_canonical(), name.successor(image.apex()).view(), &mut types)
}

/// Whether the image has signatures over the records of the wildcard below `encloser`.
fn has_signed_wildcard(image: &Image, encloser: ImageNode<'_>) -> bool {
    let mut buffer = [0; MAX_NAME + 2];
    let wildcard = image.find_exact(encloser.name().write_wildcard(&mut buffer));
    wildcard.is_some_and(|wildcard| wildcard.templates().any(|template| template.signature_count() > 0))
}
