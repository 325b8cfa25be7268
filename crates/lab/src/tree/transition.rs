//! A zone in a conservative transition from NSEC3 to NSEC5 (ePrint 2017/099 §9.1).
//!
//! The keys of the old algorithm number and of the new one, its alias, sign every RRset (RFC 4035
//! §2.2). No server sends the denial records of two chains, so the zone has two versions with the
//! same data and signatures: one with the NSEC3 chain, one with the NSEC5 chain. Responses with the
//! records of both versions are those of the transition.

use super::SignedZone;
use super::error::TreeError;
use super::plant::{add_to_bitmap, type_map};
use super::records::Records;
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::{Name, Rtype, bitmap};
use nonesuch_zone::Contents;

/// The denial records of a chain, and what belongs only to its version.
const CHAINS: [Rtype; 2] = [Rtype::NSEC3, Rtype::NSEC5];

/// The two versions of a zone.
pub(super) struct Versions {
    /// With NSEC3.
    pub(super) old: Contents,
    /// With NSEC5.
    pub(super) new: SignedZone,
}

/// Makes the versions of the zone: from `old`, signed with NSEC3 by all keys, and `new`, signed with
/// NSEC5 by the keys of the alias number. The signer does not sign NSEC5 records with a number that
/// other resolvers know; all keys of the zone sign them here.
pub(super) fn versions(
    apex: &Name,
    keys: &KeySet,
    old: &Contents,
    (new, nsec5): SignedZone,
) -> Result<Versions, TreeError> {
    let (mut all, mut chain) = (Records::new(old), Records::new(&new));
    chain.names.retain(|name, sets| name == apex || sets.contains_key(&(Rtype::NSEC5, false)));
    for (name, sets) in std::mem::take(&mut chain.names) {
        let wanted =
            sets.into_iter().filter(|((rtype, _), _)| [Rtype::NSEC5, Rtype::NSEC5KEY].contains(rtype));
        all.names.entry(name).or_default().extend(wanted);
    }
    // The version of each chain has a type at the apex that the signer of the other did not see.
    let changed =
        [(Rtype::NSEC3, Rtype::NSEC5KEY), (Rtype::NSEC5, Rtype::NSEC3PARAM)].map(|(chain, added)| {
            all.edit_rdata(chain, |_, octets| {
                if bitmap::contains(type_map(chain, octets), Rtype::SOA) {
                    add_to_bitmap(chain, octets, added);
                }
            })
        });
    let signers: Vec<&KeyPair> = keys.signers(Rtype::A).iter().map(|index| &keys.keys()[*index]).collect();
    let rrsets = changed
        .into_iter()
        .zip(CHAINS)
        .flat_map(|(owners, rtype)| owners.into_iter().map(move |owner| (owner, rtype)));
    let rrsets: Vec<(Name, Rtype)> = rrsets.chain([(apex.clone(), Rtype::NSEC5KEY)]).collect();
    for (owner, rtype) in &rrsets {
        let signed = all.sign_with_each(owner, *rtype, &signers);
        signed.map_err(|source| TreeError::Signature { zone: apex.clone(), source })?;
    }
    let without = |rtypes: &[Rtype]| {
        let mut version = all.clone();
        rtypes.iter().for_each(|rtype| version.remove(*rtype, |_| true));
        version.into_contents()
    };
    let new = without(&[Rtype::NSEC3, Rtype::NSEC3PARAM]);
    Ok(Versions { old: without(&[Rtype::NSEC5]), new: (new, nsec5) })
}
