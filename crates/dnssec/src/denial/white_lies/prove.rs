//! Generates NSEC3 records that cover one hash (RFC 7129, appendix B). RFC 5155 §7.2 defines the
//! required proofs.
//!
//! A matching record extends from the hash of the name to the next number. A covering record
//! extends from the number before the hash to the number after it. To find a name with a hash
//! adjacent to another, an attacker would need 2^160 attempts, so the server does not look up the
//! adjacent hashes. The opt-out flag is never set, because such small spans omit no names.

use crate::denial::names::insert_rrsig;
use crate::denial::names::next_closer;
use crate::denial::nsec3::{self, Hash, Nsec3Params};
use crate::denial::proof_piece::{GeneratedRecord, ProofPiece, bitmap_types, denial_ttl, name_status};
use crate::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::ImageNode;

/// Generates the NSEC3 records for a denial; none if the apex is too long for NSEC3 owner names
/// ([`super::MAX_APEX_OCTETS`]).
pub(in crate::denial) fn prove<'i>(image: &'i Image, target: DenialTarget<'i, '_>) -> Proof<'i> {
    let generator = RecordGenerator::new(image);
    let mut proof = Proof::default();
    let mut push = |record: Option<GeneratedRecord>| {
        if let Some(record) = record {
            proof.add_piece(ProofPiece::Generated(record));
        }
    };
    match target {
        // RFC 5155 §7.2.2.
        DenialTarget::NxDomain { name, encloser } => {
            let mut buffer = [0; MAX_NAME + 2];
            push(generator.matching(encloser));
            push(generator.covering(next_closer(name, encloser.name())));
            let wildcard = encloser.name().write_wildcard(&mut buffer);
            // A wildcard at a zone cut matches nothing (RFC 4592 §4.2), but it exists.
            push(match image.find_exact(wildcard) {
                None => generator.covering(wildcard),
                Some(cut) => generator.matching(cut),
            });
        }
        // RFC 5155 §7.2.3, §7.2.4 and §7.2.7: without opt-out, every name has a record.
        DenialTarget::NoData { node } | DenialTarget::NoDs { cut: node } => push(generator.matching(node)),
        // RFC 5155 §7.2.6.
        DenialTarget::WildcardExpansion { name, encloser } => {
            push(generator.covering(next_closer(name, encloser.name())))
        }
        // RFC 5155 §7.2.5.
        DenialTarget::WildcardNoData { name, encloser, wildcard } => {
            push(generator.matching(encloser));
            push(generator.covering(next_closer(name, encloser.name())));
            push(generator.matching(wildcard));
        }
    }
    proof
}

/// Generates the NSEC3 records of one zone.
struct RecordGenerator<'i> {
    image: &'i Image,
    /// Without salt and iterations (RFC 9276 §3.1), unless the zone has a chain with other
    /// parameters. Validators read the parameters from the NSEC3 records (RFC 5155 §8.2). Only
    /// servers use NSEC3PARAM records (§4), so none is generated.
    params: Nsec3Params,
}

impl<'i> RecordGenerator<'i> {
    fn new(image: &'i Image) -> Self {
        let params = image
            .nsec3_parameters()
            .map(|(salt, iterations)| Nsec3Params { salt: salt.to_vec(), iterations });
        Self { image, params: params.unwrap_or_default() }
    }

    fn hash(&self, name: NameRef<'_>) -> Hash {
        nonesuch_crypto::nsec3_hash(name.wire(), &self.params.salt, self.params.iterations)
    }

    /// The record that matches an existing name.
    fn matching(&self, node: ImageNode<'_>) -> Option<GeneratedRecord> {
        let hash = self.hash(node.name());
        let mut types = bitmap_types(node);
        insert_rrsig(&mut types, name_status(node));
        self.record(&hash, &hash_after(hash), &types)
    }

    /// A record that covers a name that does not exist. No name has the owner of this record as its
    /// hash, so the record has no types.
    fn covering(&self, name: NameRef<'_>) -> Option<GeneratedRecord> {
        let hash = self.hash(name);
        self.record(&hash_before(hash), &hash_after(hash), &[])
    }

    fn record(&self, owner: &Hash, next: &Hash, types: &[Rtype]) -> Option<GeneratedRecord> {
        let owner = Name::prepend(&nsec3::chain::label(owner), self.image.apex()).ok()?;
        let mut rdata = Vec::with_capacity(40 + self.params.salt.len());
        nsec3::chain::push_rdata(&self.params, false, next, types, &mut rdata);
        Some(GeneratedRecord { owner, rtype: Rtype::NSEC3, ttl: denial_ttl(self.image), rdata })
    }
}

/// The preceding hash; the hash before the first is the last.
fn hash_before(mut hash: Hash) -> Hash {
    for octet in hash.iter_mut().rev() {
        let borrowed;
        (*octet, borrowed) = octet.overflowing_sub(1);
        if !borrowed {
            break;
        }
    }
    hash
}

/// The next hash; the hash after the last is the first.
fn hash_after(mut hash: Hash) -> Hash {
    for octet in hash.iter_mut().rev() {
        let carried;
        (*octet, carried) = octet.overflowing_add(1);
        if !carried {
            break;
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_numbers_that_wrap_around() {
        let last = |tail: &[u8]| {
            let mut hash = Hash::default();
            hash[20 - tail.len()..].copy_from_slice(tail);
            hash
        };
        for (before, after) in [
            (last(&[]), last(&[1])),
            (last(&[255]), last(&[1, 0])),
            (last(&[7, 255, 255]), last(&[8, 0, 0])),
            ([255; 20], [0; 20]),
        ] {
            assert_eq!(hash_after(before), after);
            assert_eq!(hash_before(after), before);
        }
    }
}
