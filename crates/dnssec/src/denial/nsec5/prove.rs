//! Selects NSEC5 records and VRF proofs for proofs of denial (draft-vcelak-nsec5 §8; "Making NSEC5
//! Practical for DNSSEC" §5).
//!
//! The server finds the record that matches or covers a name by the VRF hash of the name. The first
//! pass of the selection requests all unknown hashes. The server computes them in one batch, and
//! then repeats the selection.

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
    target: DenialTarget<'i, '_>,
    hash_of: &mut dyn FnMut(NameRef<'_>) -> Option<Hash>,
) -> Proof<'i> {
    let mut prover = Prover { image, hash_of, proof: Proof::default() };
    match target {
        // The Wildcard flag in the record of the encloser is clear. This proves that no wildcard
        // exists below the encloser.
        DenialTarget::NxDomain { name, encloser } => prover.prove_encloser(name, encloser.name()),
        DenialTarget::NoData { node } | DenialTarget::NoDs { cut: node } => prover.prove_node(node),
        // The Labels field of the signature in the answer determines the closest encloser.
        DenialTarget::WildcardExpansion { name, encloser } => {
            prover.add_covering(next_closer(name, encloser.name()))
        }
        DenialTarget::WildcardNoData { name, encloser, wildcard } => {
            prover.add_matching(wildcard.name());
            prover.add_covering(next_closer(name, encloser.name()));
        }
    }
    prover.proof
}

struct Prover<'i, 'h> {
    image: &'i Image,
    hash_of: &'h mut dyn FnMut(NameRef<'_>) -> Option<Hash>,
    proof: Proof<'i>,
}

/// Whether a record matches a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    /// A record matches the name, and is now in the proof.
    Added,
    /// No record matches the name.
    Missing,
    /// The hash of the name is unknown.
    HashUnknown,
}

impl<'i> Prover<'i, '_> {
    /// Adds the record that matches a node. An insecure delegation may have none in an opt-out
    /// chain; then adds the proof of the closest provable encloser.
    fn prove_node(&mut self, node: ImageNode<'i>) {
        let may_be_missing = match self.add_matching(node.name()) {
            Match::Added => false,
            Match::Missing => true,
            // In case that the node has no record, `prove_encloser` requests its hashes in the same
            // pass.
            Match::HashUnknown => may_be_omitted(node),
        };
        if let Some(parent) = node.name().parent().filter(|_| may_be_missing && !node.is_apex()) {
            self.prove_encloser(node.name(), parent);
        }
    }

    /// Adds the record that matches `encloser`, an ancestor of `name`, and the record that covers
    /// the next closer name. Every encloser has a record in chains of this project. Chains of other
    /// signers may omit empty non-terminals that exist only because of insecure delegations (RFC
    /// 5155, erratum 3441); the next higher ancestor then replaces the encloser.
    fn prove_encloser(&mut self, name: NameRef<'_>, encloser: NameRef<'_>) {
        let apex = self.image.apex();
        let mut encloser = encloser;
        while self.add_matching(encloser) == Match::Missing {
            match encloser.parent().filter(|parent| parent.len() >= apex.len()) {
                Some(parent) => encloser = parent,
                None => return,
            }
        }
        self.add_covering(next_closer(name, encloser));
    }

    /// Adds the record that matches `name`, with the proof of `name`.
    fn add_matching(&mut self, name: NameRef<'_>) -> Match {
        let Some(hash) = (self.hash_of)(name) else { return Match::HashUnknown };
        match self.image.nsec5_matching(&hash) {
            Some(template) => {
                self.add_record_and_proof(template, name);
                Match::Added
            }
            None => Match::Missing,
        }
    }

    /// Adds the record that covers `name`, with the proof of `name`; nothing if the hash is
    /// unknown.
    fn add_covering(&mut self, name: NameRef<'_>) {
        let covering = (self.hash_of)(name).and_then(|hash| self.image.nsec5_covering(&hash));
        if let Some(template) = covering {
            self.add_record_and_proof(template, name);
        }
    }

    fn add_record_and_proof(&mut self, template: Template<'i>, name: NameRef<'_>) {
        self.proof.add_piece(ProofPiece::Stored(template));
        self.proof.add_piece(ProofPiece::Proven { name: name.to_canonical(), ttl: template.ttl() });
    }
}

/// Whether an opt-out chain may omit the name: it is an insecure delegation.
fn may_be_omitted(node: ImageNode<'_>) -> bool {
    node.kind() == NodeKind::Delegation && node.template(Rtype::DS).is_none()
}
