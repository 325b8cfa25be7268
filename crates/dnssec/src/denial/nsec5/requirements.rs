//! What a zone must be like before it is signed with NSEC5, and its NSEC5KEY RRset.

use super::{LONGEST_APEX, Nsec5Chain, Nsec5Error};
use crate::keys::{KeySet, Nsec5Key};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::{Name, Rtype};

/// Whether the number is an alias: one that resolvers without NSEC5 do not know.
pub(super) fn is_alias(algorithm: Algorithm) -> bool {
    algorithm.without_alias() != algorithm
}

/// Checks what can be checked before anything is proved: that hashes fit below the apex, and that all keys have aliases.
///
/// # Errors
/// [`Nsec5Error::ApexTooLong`], [`Nsec5Error::NotAnAlias`].
pub fn check_signing(zone: &Name, keys: &KeySet) -> Result<(), Nsec5Error> {
    if zone.view().len() > LONGEST_APEX {
        return Err(Nsec5Error::ApexTooLong { zone: zone.clone() });
    }
    let plain = keys.keys().iter().find(|key| !is_alias(key.algorithm()));
    plain.map_or(Ok(()), |key| {
        let (rtype, tag, algorithm) = (Rtype::DNSKEY, key.tag(), key.algorithm());
        Err(Nsec5Error::NotAnAlias { zone: zone.clone(), rtype, tag, algorithm })
    })
}

/// Checks that the VRF key `key` differs from all `dnskeys`, RDATA of DNSKEY or CDNSKEY records: a server has the private half of
/// the VRF key, and must not be able to sign ("Making NSEC5 Practical for DNSSEC" §3.3).
///
/// # Errors
/// [`Nsec5Error::SigningKey`].
pub fn check_separate<'r>(
    zone: &Name,
    key: &Nsec5Key,
    dnskeys: impl IntoIterator<Item = &'r [u8]>,
) -> Result<(), Nsec5Error> {
    let error = |dnskey| Nsec5Error::SigningKey { zone: zone.clone(), tag: key.tag(), dnskey };
    key.find_signing_key(dnskeys).map_or(Ok(()), |dnskey| Err(error(dnskey)))
}

/// Tag and algorithm that RDATA of DNSKEY, CDS or CDNSKEY names; `None` for other types, malformed RDATA, and the
/// algorithm 0 that asks the parent to delete the DS records (RFC 8078 §4).
pub(super) fn named_algorithm(rtype: Rtype, rdata: &[u8]) -> Option<(u16, Algorithm)> {
    let found = match (rtype, rdata) {
        (Rtype::DNSKEY | Rtype::CDNSKEY, [_, _, _, algorithm, ..]) => (key_tag(rdata), *algorithm),
        (Rtype::CDS, [high, low, algorithm, ..]) => (u16::from_be_bytes([*high, *low]), *algorithm),
        _ => return None,
    };
    (found.1 != 0 || rtype == Rtype::DNSKEY).then_some((found.0, Algorithm(found.1)))
}

/// The NSEC5KEY RRset of a zone that is signed with `chain`, after a look at the other keys of its apex, `rrsets`:
/// those of DNSKEY, CDS and CDNSKEY, as they will be signed, and of NSEC5KEY as it stood in the zone.
///
/// # Errors
/// [`Nsec5Error::NotAnAlias`], [`Nsec5Error::SameTag`], [`Nsec5Error::SigningKey`].
pub(crate) fn prepare_apex<'r>(
    zone: &Name,
    chain: &Nsec5Chain<'_>,
    rrsets: impl Iterator<Item = (Rtype, &'r [u8])>,
) -> Result<Vec<Vec<u8>>, Nsec5Error> {
    let key = chain.proofs.key();
    let (mut keys, mut signing_keys) = (vec![key.rdata().to_vec()], Vec::new());
    for (rtype, rdata) in rrsets {
        if let Some((tag, algorithm)) = named_algorithm(rtype, rdata).filter(|(_, found)| !is_alias(*found)) {
            return Err(Nsec5Error::NotAnAlias { zone: zone.clone(), rtype, tag, algorithm });
        }
        if matches!(rtype, Rtype::DNSKEY | Rtype::CDNSKEY) {
            signing_keys.push(rdata);
        }
        if rtype == Rtype::NSEC5KEY && chain.keep_keys && rdata != key.rdata() {
            // Not two keys of one tag, be they kept both.
            let tag = Nsec5Key::from_rdata(rdata).map(|other| other.tag());
            let same = |other: &Vec<u8>| Some(key_tag(other)) == tag;
            if let Some(tag) = tag.filter(|_| keys.iter().any(same)) {
                return Err(Nsec5Error::SameTag { tag });
            }
            keys.push(rdata.to_vec());
        }
    }
    for key in keys.iter().filter_map(|rdata| Nsec5Key::from_rdata(rdata)) {
        check_separate(zone, &key, signing_keys.iter().copied())?;
    }
    Ok(keys)
}
