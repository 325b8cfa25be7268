//! Selects NSEC3 records for proofs of denial (RFC 5155 §7.2).

use crate::denial::names::next_closer;
use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_crypto::nsec3_hash;
use nonesuch_proto::{MAX_NAME, NameRef};
use nonesuch_zone::Image;
use nonesuch_zone::image::{Lookup, Template};

/// Maximum number of SHA-1 computations in the search for the closest provable encloser. It is
/// sufficient for all ancestors of the longest name in a chain without iterations, and for 8
/// ancestors in a chain with the maximum number of iterations.
const MAX_SHA1_COMPUTATIONS: u32 = 4096;

/// The parameters of the hashes of the chain.
#[derive(Clone, Copy)]
pub(in crate::denial) struct HashParams<'i> {
    pub(in crate::denial) salt: &'i [u8],
    pub(in crate::denial) iterations: u16,
}

impl HashParams<'_> {
    fn hash(self, name: NameRef<'_>) -> [u8; 20] {
        nsec3_hash(name.wire(), self.salt, self.iterations)
    }
}

/// Selects the NSEC3 RRsets for a denial.
pub(in crate::denial) fn prove<'i>(
    image: &'i Image,
    params: HashParams<'_>,
    target: DenialTarget<'i, '_>,
) -> Proof<'i> {
    let mut proof = Proof::default();
    match target {
        // RFC 5155 §7.2.2.
        DenialTarget::NxDomain { name, encloser } => {
            let provable = prove_encloser(image, params, name, encloser.name(), &mut proof);
            let mut buffer = [0; MAX_NAME + 2];
            proof.add_template(image.nsec3_covering(&params.hash(provable.write_wildcard(&mut buffer))));
        }
        // RFC 5155 §7.2.3 and §7.2.4: a name without a matching record is in an opt-out span.
        DenialTarget::NoData { node } | DenialTarget::NoDs { cut: node } => {
            match image.nsec3_matching(&params.hash(node.name())) {
                Some(template) => proof.add_template(Some(template)),
                None => {
                    prove_provable_encloser(image, params, node.name(), &mut proof);
                }
            }
        }
        // RFC 5155 §7.2.6.
        DenialTarget::WildcardExpansion { name, encloser } => {
            let next = next_closer(name, encloser.name());
            proof.add_template(image.nsec3_covering(&params.hash(next)));
        }
        // RFC 5155 §7.2.5.
        DenialTarget::WildcardNoData { name, encloser, wildcard } => {
            prove_encloser(image, params, name, encloser.name(), &mut proof);
            proof.add_template(image.nsec3_matching(&params.hash(wildcard.name())));
        }
    }
    proof
}

/// Adds the closest encloser proof (RFC 5155 §7.2.1): one record matches the encloser, and one
/// covers the next closer name. An opt-out chain has no record for an encloser that exists only
/// because of insecure delegations; the closest provable encloser then replaces it. Returns the
/// proved encloser.
fn prove_encloser<'i, 'n>(
    image: &'i Image,
    params: HashParams<'_>,
    name: NameRef<'_>,
    encloser: NameRef<'n>,
    proof: &mut Proof<'i>,
) -> NameRef<'n> {
    match image.nsec3_matching(&params.hash(encloser)) {
        Some(template) => {
            proof.add_template(Some(template));
            proof.add_template(image.nsec3_covering(&params.hash(next_closer(name, encloser))));
            encloser
        }
        None => prove_provable_encloser(image, params, encloser, proof),
    }
}

/// Adds the closest provable encloser proof (RFC 5155 §7.2.1, §12.2): a record matches the nearest
/// ancestor that has one, and a record covers the next closer name. Many ancestors may have no
/// record in a broken chain, so hashing stops at [`MAX_SHA1_COMPUTATIONS`].
fn prove_provable_encloser<'i, 'n>(
    image: &'i Image,
    params: HashParams<'_>,
    name: NameRef<'n>,
    proof: &mut Proof<'i>,
) -> NameRef<'n> {
    let mut next = name;
    let mut sha1_count = 0;
    while let Some(parent) = next.parent().filter(|parent| parent.len() >= image.apex().len()) {
        // Only existing names have records; other names need no hash.
        let exists = matches!(image.find(parent), Lookup::Exact(_)) && sha1_count < MAX_SHA1_COMPUTATIONS;
        sha1_count += if exists { 1 + u32::from(params.iterations) } else { 0 };
        let matching: Option<Template<'_>> =
            exists.then(|| image.nsec3_matching(&params.hash(parent))).flatten();
        if matching.is_some() {
            proof.add_template(matching);
            proof.add_template(image.nsec3_covering(&params.hash(next)));
            return parent;
        }
        next = parent;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_zone::read::read_text;
    use std::path::Path;

    /// Only the apex of this broken chain has a record. The name has 100 labels.
    #[test]
    fn hashing_of_many_ancestors_has_a_bound() {
        let deep = "a.".repeat(100);
        for (iterations, is_proved) in [(0, true), (500, false)] {
            let apex: nonesuch_proto::Name = "example.".parse().unwrap();
            let hash = nsec3_hash(apex.view().wire(), &[], iterations);
            let label = data_encoding::BASE32HEX_NOPAD.encode(&hash);
            let text = format!(
                "$ORIGIN example.\n$TTL 60\n@ SOA ns h 7 1 1 1 30\n@ NS ns.other.\n@ DNSKEY 257 3 13 AAAA\n\
                 @ NSEC3PARAM 1 0 {iterations} -\n{label} NSEC3 1 1 {iterations} - {label} SOA\n{deep}example. NS ns.other.\n"
            );
            let contents = read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
            let image = Image::compile(&contents).unwrap();
            let cut = format!("{deep}example.").parse::<nonesuch_proto::Name>().unwrap();
            let cut = image.find_exact(cut.view()).unwrap();
            let proof = prove(&image, HashParams { salt: &[], iterations }, DenialTarget::NoDs { cut });
            assert_eq!(proof.templates().count() > 0, is_proved, "{iterations} iterations");
        }
    }
}
