//! Proofs from NSEC5 records and VRF proofs (draft-vcelak-nsec5 §8; "Making NSEC5 Practical for DNSSEC" §5).
//!
//! Which record matches or covers a name is known only when the VRF has been computed for it. What is not known yet is
//! asked for all at once, so that one batch makes it; then the proof is put together again.

use super::Hash;
use crate::denial::names::next_closer;
use crate::denial::proof_piece::ProofPiece;
use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, NodeKind, Template};

/// Picks the NSEC5 RRsets for a denial, each once, and the names to be proved.
///
/// `hash_of` tells the VRF hash of a name in lower case; `None` says that it is not known yet and has been asked for. The
/// proof is whole where `hash_of` knew all names.
pub(in crate::denial) fn prove<'i>(
    image: &'i Image,
    denied: DenialTarget<'i, '_>,
    hash_of: &mut dyn FnMut(NameRef<'_>) -> Option<Hash>,
) -> Proof<'i> {
    let mut prover = Prover { image, hash_of, proof: Proof::default() };
    match denied {
        // That no wildcard stands below the encloser is the clear Wildcard flag of its record.
        DenialTarget::Name { name, encloser } => prover.prove_encloser(name, encloser.name()),
        DenialTarget::Type { node } | DenialTarget::Ds { cut: node } => prover.prove_node(node),
        // The closest encloser follows from the Labels field of the answer's signature.
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
    /// Yes; it is in the proof.
    Found,
    /// No.
    Missing,
    /// Its hash is not known yet.
    Unknown,
}

impl<'i> Prover<'i, '_> {
    /// The record that matches a node. In an opt-out chain an insecure delegation has none; then the closest provable
    /// encloser is proved.
    fn prove_node(&mut self, node: ImageNode<'i>) {
        let is_missing = match self.find_match(node.name()) {
            Match::Found => false,
            Match::Missing => true,
            // What an encloser needs is asked for at once.
            Match::Unknown => may_be_left_out(node),
        };
        if let Some(parent) = node.name().parent().filter(|_| is_missing && !node.is_apex()) {
            self.prove_encloser(node.name(), parent);
        }
    }

    /// The encloser of `name` matched, and the name below it covered. In chains of ours every encloser has a record. In
    /// others, empty non-terminals above nothing but insecure delegations may have none (RFC 5155, erratum 3441): the
    /// next one above takes their place.
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

/// Whether an opt-out chain does without a name: an insecure delegation.
fn may_be_left_out(node: ImageNode<'_>) -> bool {
    node.kind() == NodeKind::Delegation && node.template(Rtype::DS).is_none()
}
