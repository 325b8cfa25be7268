//! Requirements for signing a zone with NSEC5, and the NSEC5KEY RRset of the zone.

use super::{MAX_APEX_OCTETS, Nsec5Chain, Nsec5Error};
use crate::keys::{KeySet, Nsec5Key};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::{Name, Rtype};

/// Whether the number is an alias algorithm number, which resolvers without NSEC5 do not know.
pub(super) fn is_alias_algorithm(algorithm: Algorithm) -> bool {
    algorithm.without_alias() != algorithm
}

/// Checks the requirements of NSEC5 before proofs are generated: hashed owner names fit below the
/// apex, and all keys have alias algorithm numbers.
///
/// # Errors
/// [`Nsec5Error::ApexTooLong`], [`Nsec5Error::NotAliasAlgorithm`].
pub fn check_nsec5_requirements(zone: &Name, keys: &KeySet) -> Result<(), Nsec5Error> {
    if zone.view().len() > MAX_APEX_OCTETS {
        return Err(Nsec5Error::ApexTooLong { zone: zone.clone() });
    }
    let without_alias = keys.keys().iter().find(|key| !is_alias_algorithm(key.algorithm()));
    without_alias.map_or(Ok(()), |key| {
        let (rtype, tag, algorithm) = (Rtype::DNSKEY, key.tag(), key.algorithm());
        Err(Nsec5Error::NotAliasAlgorithm { zone: zone.clone(), rtype, tag, algorithm })
    })
}

/// Checks that the VRF key `key` differs from all `dnskeys` (RDATA of DNSKEY or CDNSKEY records). A
/// server has the VRF private key and must not be able to sign ("Making NSEC5 Practical for DNSSEC"
/// §3.3).
///
/// # Errors
/// [`Nsec5Error::SigningKey`].
pub fn check_vrf_key_cannot_sign<'r>(
    zone: &Name,
    key: &Nsec5Key,
    dnskeys: impl IntoIterator<Item = &'r [u8]>,
) -> Result<(), Nsec5Error> {
    let error = |dnskey| Nsec5Error::SigningKey { zone: zone.clone(), tag: key.tag(), dnskey };
    key.find_signing_key(dnskeys).map_or(Ok(()), |dnskey| Err(error(dnskey)))
}

/// Key tag and algorithm in RDATA of a DNSKEY, CDS or CDNSKEY record. `None` for other types, for
/// malformed RDATA, and for algorithm 0 in CDS and CDNSKEY, which requests the deletion of the DS
/// records (RFC 8078 §4).
pub(super) fn tag_and_algorithm(rtype: Rtype, rdata: &[u8]) -> Option<(u16, Algorithm)> {
    let found = match (rtype, rdata) {
        (Rtype::DNSKEY | Rtype::CDNSKEY, [_, _, _, algorithm, ..]) => (key_tag(rdata), *algorithm),
        (Rtype::CDS, [high, low, algorithm, ..]) => (u16::from_be_bytes([*high, *low]), *algorithm),
        _ => return None,
    };
    (found.1 != 0 || rtype == Rtype::DNSKEY).then_some((found.0, Algorithm(found.1)))
}

/// Returns the RDATA of the NSEC5KEY RRset of a zone that is signed with `chain`, and checks the
/// keys at the apex. `records` has the DNSKEY, CDS and CDNSKEY records as they will be signed, and
/// the existing NSEC5KEY records; other types are ignored.
///
/// # Errors
/// [`Nsec5Error::NotAliasAlgorithm`], [`Nsec5Error::SameTag`], [`Nsec5Error::SigningKey`].
pub(crate) fn nsec5key_records<'r>(
    zone: &Name,
    chain: &Nsec5Chain<'_>,
    records: impl Iterator<Item = (Rtype, &'r [u8])>,
) -> Result<Vec<Vec<u8>>, Nsec5Error> {
    let key = chain.proofs.key();
    let (mut keys, mut signing_keys) = (vec![key.rdata().to_vec()], Vec::new());
    for (rtype, rdata) in records {
        if let Some((tag, algorithm)) =
            tag_and_algorithm(rtype, rdata).filter(|(_, found)| !is_alias_algorithm(*found))
        {
            return Err(Nsec5Error::NotAliasAlgorithm { zone: zone.clone(), rtype, tag, algorithm });
        }
        if matches!(rtype, Rtype::DNSKEY | Rtype::CDNSKEY) {
            signing_keys.push(rdata);
        }
        if rtype == Rtype::NSEC5KEY && chain.keep_other_keys && rdata != key.rdata() {
            // Two keys with the same tag are not permitted, even if both records are existing ones.
            let tag = Nsec5Key::from_rdata(rdata).map(|other| other.tag());
            let has_tag = |other: &Vec<u8>| Some(key_tag(other)) == tag;
            if let Some(tag) = tag.filter(|_| keys.iter().any(has_tag)) {
                return Err(Nsec5Error::SameTag { tag });
            }
            keys.push(rdata.to_vec());
        }
    }
    for key in keys.iter().filter_map(|rdata| Nsec5Key::from_rdata(rdata)) {
        check_vrf_key_cannot_sign(zone, &key, signing_keys.iter().copied())?;
    }
    Ok(keys)
}
