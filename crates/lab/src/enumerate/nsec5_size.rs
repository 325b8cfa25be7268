//! Estimates the number of names of a zone with NSEC5 from the spans of its records.
//!
//! A client cannot compute the hash of a name before the query, so it cannot choose names in gaps of
//! the chain, nor test guesses offline. The hash follows from the proof in the response.

use super::StopReason;
use super::client::{Client, records_of};
use super::estimate::{Estimate, estimate_with_replacement};
use super::hash_chain::{is_between, span_share};
use super::labels::RandomLabels;
use super::mechanism::{below, denial};
use nonesuch_crypto::vrf::{VRF_HASH_OCTETS, VrfAlgorithm, proof_to_hash};
use nonesuch_dnssec::denial::nsec5::{Nsec5, decode_owner};
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, NameRef, Rtype};

/// Number of random names.
const SAMPLES: usize = 64;
/// Octets of the key tag before the proof in NSEC5PROOF RDATA.
const TAG_OCTETS: usize = 2;

/// Sends queries for random names and estimates the number of names.
///
/// # Errors
/// A limit is reached, or the server does not answer.
pub(super) fn estimate_size(
    client: &mut Client,
    zone: &Name,
    labels: &mut RandomLabels,
) -> Result<Option<Estimate>, StopReason> {
    let apex = zone.view();
    let response = client.query(apex, Rtype::NSEC5KEY)?;
    let key = records_of(&response, apex, Rtype::NSEC5KEY).find_map(|(_, rdata)| Nsec5Key::from_rdata(rdata));
    let Some(algorithm) = key.map(|key| key.algorithm()) else { return Ok(None) };
    let mut spans = Vec::new();
    for _ in 0..SAMPLES {
        let name = below(&labels.next(), zone)?;
        let response = denial(client, &name)?;
        spans.extend(covering_share(&response, apex, name.view(), algorithm));
    }
    Ok(estimate_with_replacement(&spans))
}

/// The hash that the NSEC5PROOF record of `name` proves. `algorithm` is that of the NSEC5KEY record;
/// `None` tries those whose proofs have this length.
pub(super) fn proved_hash(
    response: &Message,
    apex: NameRef<'_>,
    name: NameRef<'_>,
    algorithm: Option<VrfAlgorithm>,
) -> Option<[u8; VRF_HASH_OCTETS]> {
    let (_, rdata) = records_of(response, apex, Rtype::NSEC5PROOF).find(|(owner, _)| *owner == name)?;
    let proof = rdata.get(TAG_OCTETS..)?;
    let known = [
        VrfAlgorithm::P256_SHA256_TAI,
        VrfAlgorithm::EDWARDS25519_SHA512_TAI,
        VrfAlgorithm::EDWARDS25519_SHA512_ELL2,
        VrfAlgorithm::RSA_FDH_SHA256,
    ];
    let algorithms = known.into_iter().filter(|known| algorithm.is_none_or(|algorithm| algorithm == *known));
    algorithms.into_iter().find_map(|algorithm| proof_to_hash(algorithm, proof).ok())
}

/// The span of the NSEC5 record that covers `name`, as a share of all hashes.
fn covering_share(
    response: &Message,
    apex: NameRef<'_>,
    name: NameRef<'_>,
    algorithm: VrfAlgorithm,
) -> Option<f64> {
    let hash = proved_hash(response, apex, name, Some(algorithm))?;
    records_of(response, apex, Rtype::NSEC5).find_map(|(owner, rdata)| {
        let owner = decode_owner(owner, apex)?;
        let next = Nsec5::parse(rdata)?.next.try_into().ok()?;
        is_between(&hash, &owner, &next).then(|| span_share(&owner, &next))
    })
}
