//! Selects NSEC records for proofs of denial (RFC 4035 §3.1.3).

use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::MAX_NAME;
use nonesuch_zone::Image;

/// Selects the NSEC RRsets for a denial.
pub(in crate::denial) fn prove<'i>(image: &'i Image, target: DenialTarget<'i, '_>) -> Proof<'i> {
    let mut proof = Proof::default();
    match target {
        // RFC 4035 §3.1.3.2: one record covers the name, and one covers the wildcard; they may be
        // the same.
        DenialTarget::NxDomain { name, encloser } => {
            proof.add_template(image.nsec_at_or_before(name));
            let mut buffer = [0; MAX_NAME + 2];
            proof.add_template(image.nsec_at_or_before(encloser.name().write_wildcard(&mut buffer)));
        }
        // RFC 4035 §3.1.3.1. An empty non-terminal has no record; the preceding record covers it.
        DenialTarget::NoData { node } => proof.add_template(node.nsec()),
        // RFC 4035 §3.1.3.3.
        DenialTarget::WildcardExpansion { name, .. } => proof.add_template(image.nsec_at_or_before(name)),
        // RFC 4035 §3.1.3.4.
        DenialTarget::WildcardNoData { name, wildcard, .. } => {
            proof.add_template(wildcard.nsec());
            proof.add_template(image.nsec_at_or_before(name));
        }
        // RFC 4035 §3.1.4.
        DenialTarget::NoDs { cut } => proof.add_template(cut.nsec()),
    }
    proof
}
