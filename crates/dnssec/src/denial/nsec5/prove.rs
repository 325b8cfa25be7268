//! Selects NSEC5 records and VRF proofs for proofs of denial (draft-vcelak-nsec5 §8; "Making NSEC5
//! Practical for DNSSEC" §5).
//!
//! The record that matches or covers a name is known only after the evaluation of the VRF for this
//! name. The first pass requests all unknown hashes, so the server computes them in one batch; then
//! the server repeats the selection.

use super::Hash;
use crate::denial::names::next_closer;
use crate::denial::proof_piece::ProofPiece;
use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, NodeKind, Template};

/// Selects the NSEC5 RRsets for a denial, each once, and the names to prove.
///
/// `hash_of` returns the VRF hash of a name in lower case, or `None` if the hash is unknown and has
/// been requested. The proof is complete if `hash_of` returned all hashes.
pub(in crate::denial) fn prove<'i>(
    image: &'i Image,
    denied: DenialTarget<'i, '_>,
    hash_of: &mut dyn FnMut(NameRef<'_>) -> Option<Hash>,
) -> Proof<'i> {
    let mut prover = Prover { image, hash_of, proof: Proof::default() };
    match denied {
        // The clear Wildcard flag of the encloser's record proves that no wildcard exists below it.
        DenialTarget::Name { name, encloser } => prover.prove_encloser(name, encloser.name()),
        DenialTarget::Type { node } | DenialTarget::Ds { cut: node } => prover.prove_node(node),
        // The Labels field of the signature in the answer determines the closest encloser.
        DenialTarget::CloserMatch { name, encloser } => prover.cover(next_closer(name, encloser.name())),
        DenialTarget::WildcardType { name, encloser, wildcard } => {
            prover.find_match(wildcard.name());
            prover.cover(next_closer(name, encloser.name()));
        }
    }
    prover.proof
}

struct Prover<'i, 'h> {
    image: &'i Image,
    hash_of: &'h mut dyn FnMut(NameRef<'_>) -> Option<Hash>,
    proof: Proof<'i>,
}

/// Whether a name has a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    /// The name has a record, which is now in the proof.
    Found,
    /// The name has no record.
    Missing,
    /// The hash of the name is unknown.
    Unknown,
}

impl<'i> Prover<'i, '_> {
    /// Proves the record that matches a node. In an opt-out chain an insecure delegation may have
    /// none; the closest provable encloser is proved instead.
    fn prove_node(&mut self, node: ImageNode<'i>) {
        let is_missing = match self.find_match(node.name()) {
            Match::Found => false,
            Match::Missing => true,
            // The same pass also requests the hashes for the encloser.
            Match::Unknown => may_be_left_out(node),
        };
        if let Some(parent) = node.name().parent().filter(|_| is_missing && !node.is_apex()) {
            self.prove_encloser(node.name(), parent);
        }
    }

    /// Proves that a record matches the encloser of `name` and that a record covers the next closer
    /// name. In chains of this project, every encloser has a record. In other chains, empty
    /// non-terminals above only insecure delegations may have none (RFC 5155, erratum 3441); the
    /// next higher ancestor replaces them.
    fn prove_encloser(&mut self, name: NameRef<'_>, encloser: NameRef<'_>) {
        let apex = self.image.apex();
        let mut encloser = encloser;
        while self.find_match(encloser) == Match::Missing {
            match encloser.parent().filter(|parent| parent.len() >= apex.len()) {
                Some(parent) => encloser = parent,
                None => return,
            }
        }
        self.cover(next_closer(name, encloser));
    }

    fn find_match(&mut self, name: NameRef<'_>) -> Match {
        let Some(hash) = (self.hash_of)(name) else { return Match::Unknown };
        match self.image.nsec5_matching(&hash) {
            Some(template) => {
                self.add(template, name);
                Match::Found
            }
            None => Match::Missing,
        }
    }

    fn cover(&mut self, name: NameRef<'_>) {
        let covering = (self.hash_of)(name).and_then(|hash| self.image.nsec5_covering(&hash));
        if let Some(template) = covering {
            self.add(template, name);
        }
    }

    fn add(&mut self, template: Template<'i>, name: NameRef<'_>) {
        self.proof.push(ProofPiece::Stored(template));
        self.proof.push(ProofPiece::Proven { name: name.to_canonical(), ttl: template.ttl() });
    }
}

/// Whether an opt-out chain may omit the name: it is an insecure delegation.
fn may_be_left_out(node: ImageNode<'_>) -> bool {
    node.kind() == NodeKind::Delegation && node.template(Rtype::DS).is_none()
}
