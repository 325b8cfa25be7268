//! Proofs from NSEC3 records (RFC 5155 §7.2).

use crate::denial::prove::{Denied, Proof, next_closer};
use nonesuch_crypto::nsec3_hash;
use nonesuch_proto::{MAX_NAME, NameRef};
use nonesuch_zone::Image;
use nonesuch_zone::image::{Lookup, Template};

/// The parameters of the chain.
#[derive(Clone, Copy)]
pub(in crate::denial) struct Hash<'i> {
    pub(in crate::denial) salt: &'i [u8],
    pub(in crate::denial) iterations: u16,
}

impl Hash<'_> {
    fn of(self, name: NameRef<'_>) -> [u8; 20] {
        nsec3_hash(name.wire(), self.salt, self.iterations)
    }
}

/// Picks the NSEC3 RRsets for a denial.
pub(in crate::denial) fn prove<'i>(image: &'i Image, hash: Hash<'_>, denied: Denied<'i, '_>) -> Proof<'i> {
    let mut proof = Proof::default();
    match denied {
        // RFC 5155 §7.2.2.
        Denied::Name { name, encloser } => {
            let provable = prove_encloser(image, hash, name, encloser.name(), &mut proof);
            let mut room = [0; MAX_NAME + 2];
            proof.add(image.nsec3_covering(&hash.of(provable.wildcard_in(&mut room))));
        }
        // RFC 5155 §7.2.3 and §7.2.4: without a match the name lies in an opt-out span.
        Denied::Type { node } | Denied::Ds { cut: node } => {
            match image.nsec3_matching(&hash.of(node.name())) {
                Some(template) => proof.add(Some(template)),
                None => {
                    prove_provable_encloser(image, hash, node.name(), &mut proof);
                }
            }
        }
        // RFC 5155 §7.2.6.
        Denied::CloserMatch { name, encloser } => {
            let next = next_closer(name, encloser.name());
            proof.add(image.nsec3_covering(&hash.of(next)));
        }
        // RFC 5155 §7.2.5.
        Denied::WildcardType { name, encloser, wildcard } => {
            prove_encloser(image, hash, name, encloser.name(), &mut proof);
            proof.add(image.nsec3_matching(&hash.of(wildcard.name())));
        }
    }
    proof
}

/// The closest encloser proof of RFC 5155 §7.2.1: one record matches the encloser, one covers the next
/// closer name. An encloser that is only there because of insecure delegations has no record in an opt-out
/// chain; then the closest provable encloser takes its place. Returns the encloser proved.
fn prove_encloser<'i, 'n>(
    image: &'i Image,
    hash: Hash<'_>,
    name: NameRef<'_>,
    encloser: NameRef<'n>,
    proof: &mut Proof<'i>,
) -> NameRef<'n> {
    match image.nsec3_matching(&hash.of(encloser)) {
        Some(template) => {
            proof.add(Some(template));
            proof.add(image.nsec3_covering(&hash.of(next_closer(name, encloser))));
            encloser
        }
        None => prove_provable_encloser(image, hash, encloser, proof),
    }
}

/// The closest provable encloser proof (RFC 5155 §7.2.1, §12.2): the nearest ancestor that has a record, and
/// the name below it covered.
fn prove_provable_encloser<'i, 'n>(
    image: &'i Image,
    hash: Hash<'_>,
    name: NameRef<'n>,
    proof: &mut Proof<'i>,
) -> NameRef<'n> {
    let mut next = name;
    while let Some(parent) = next.parent().filter(|parent| parent.len() >= image.apex().len()) {
        // Names that exist are the only ones with records, so others need not be hashed.
        let exists = matches!(image.find(parent), Lookup::Exact(_));
        let matching: Option<Template<'_>> = exists.then(|| image.nsec3_matching(&hash.of(parent))).flatten();
        if matching.is_some() {
            proof.add(matching);
            proof.add(image.nsec3_covering(&hash.of(next)));
            return parent;
        }
        next = parent;
    }
    next
}
