//! Selects NSEC records for proofs of denial (RFC 4035 §3.1.3).

use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::MAX_NAME;
use nonesuch_zone::Image;

/// Selects the NSEC RRsets for a denial.
pub(in crate::denial) fn prove<'i>(image: &'i Image, denied: DenialTarget<'i, '_>) -> Proof<'i> {
    let mut proof = Proof::default();
    match denied {
        // RFC 4035 §3.1.3.2: one record covers the name, and one covers the wildcard; they may be
        // the same.
        DenialTarget::Name { name, encloser } => {
            proof.add(image.nsec_at_or_before(name));
            let mut room = [0; MAX_NAME + 2];
            proof.add(image.nsec_at_or_before(encloser.name().write_wildcard(&mut room)));
        }
        // RFC 4035 §3.1.3.1. An empty non-terminal has no record; the preceding record covers it.
        DenialTarget::Type { node } => proof.add(node.nsec()),
        // RFC 4035 §3.1.3.3.
        DenialTarget::CloserMatch { name, .. } => proof.add(image.nsec_at_or_before(name)),
        // RFC 4035 §3.1.3.4.
        DenialTarget::WildcardType { name, wildcard, .. } => {
            proof.add(wildcard.nsec());
            proof.add(image.nsec_at_or_before(name));
        }
        // RFC 4035 §3.1.4.
        DenialTarget::Ds { cut } => proof.add(cut.nsec()),
    }
    proof
}
