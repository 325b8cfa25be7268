//! Names that the files of a stolen server reveal, and the search with a VRF key.

use super::super::StopReason;
use super::super::client::{Client, records_of};
use super::super::crack::Plan;
use super::super::hash_chain::{ChainRecord, HashChain};
use super::super::labels::RandomLabels;
use super::super::mechanism::{below, denial};
use super::super::report::FoundName;
use super::{OfflineSearch, StolenFiles};
use nonesuch_crypto::vrf::{VRF_HASH_OCTETS, VrfPrivateKey};
use nonesuch_dnssec::denial::nsec5::{Nsec5, OPT_OUT_FLAG, decode_owner};
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};
use std::time::Instant;

/// Maximum number of queries that collect records of the chain.
const QUERIES_MAX: usize = 512;
/// Maximum number of random names that are hashed for one query.
const NAMES_PER_QUERY: usize = 4096;
/// Maximum number of names that are tested.
const CANDIDATES_MAX: usize = 100_000;

type Hash = [u8; VRF_HASH_OCTETS];

/// The names that files list.
pub(super) fn read_names(files: &StolenFiles, zone: &Name) -> Vec<OfflineSearch> {
    let listed = |method, names: Vec<FoundName>| OfflineSearch {
        method,
        tested: None,
        per_second: None,
        names,
        records: None,
    };
    let mut searches = Vec::new();
    if !files.stored_names.is_empty() {
        let names = files.stored_names.iter().map(|name| FoundName::new(name, &[])).collect();
        searches.push(listed("stored version of the zone", names));
    }
    if let Some(proofs) = &files.proofs {
        let names =
            proofs.entries().map(|entry| FoundName::new(&entry.full_name(zone.view()), &[])).collect();
        searches.push(listed("stored NSEC5 proofs", names));
    }
    searches
}

/// Collects records of the chain, as for NSEC3, and tests the names of a plan with the VRF key. Online
/// queries are needed only for the records.
pub(super) fn search_with_vrf_key(
    client: &mut Client,
    zone: &Name,
    key: &VrfPrivateKey,
    labels: &mut RandomLabels,
    plan: &Plan,
) -> Result<OfflineSearch, StopReason> {
    let mut chain = HashChain::<VRF_HASH_OCTETS>::default();
    for _ in 0..QUERIES_MAX {
        if chain.is_complete() {
            break;
        }
        let Some(name) = find_uncovered(zone, key, labels, &chain)? else { break };
        add(&denial(client, &name)?, zone.view(), &mut chain);
    }
    let started_at = Instant::now();
    let (mut tested, mut names) = (0, Vec::new());
    let mut test = |name: &Name| {
        tested += 1;
        let hash = hash(key, name);
        if let Some(record) = hash.and_then(|hash| chain.record(&hash)) {
            names.push(FoundName::new(name, &record.types));
        }
    };
    test(zone);
    for prefix in plan.candidates().take(CANDIDATES_MAX) {
        let wire = [prefix.as_slice(), zone.view().to_canonical().wire()].concat();
        if let Ok(name) = NameRef::from_wire(&wire) {
            test(&name.to_name());
        }
    }
    let rate = tested as f64 / started_at.elapsed().as_secs_f64().max(1e-9);
    Ok(OfflineSearch {
        method: "search with the stolen VRF key",
        tested: Some(tested),
        per_second: Some(rate),
        names,
        records: Some(chain.len()),
    })
}

/// The VRF output of a name.
fn hash(key: &VrfPrivateKey, name: &Name) -> Option<Hash> {
    let mut canonical = Vec::new();
    name.view().push_canonical(&mut canonical);
    key.prove(&canonical, &mut Vec::new()).ok()
}

/// A random name whose hash no known record covers.
fn find_uncovered(
    zone: &Name,
    key: &VrfPrivateKey,
    labels: &mut RandomLabels,
    chain: &HashChain<VRF_HASH_OCTETS>,
) -> Result<Option<Name>, StopReason> {
    for _ in 0..NAMES_PER_QUERY {
        let name = below(&labels.next(), zone)?;
        if hash(key, &name).is_some_and(|hash| !chain.is_known(&hash)) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn add(response: &Message, apex: NameRef<'_>, chain: &mut HashChain<VRF_HASH_OCTETS>) {
    for (owner, rdata) in records_of(response, apex, Rtype::NSEC5) {
        let (Some(fields), Some(owner)) = (Nsec5::parse(rdata), decode_owner(owner, apex)) else { continue };
        let Ok(next) = fields.next.try_into() else { continue };
        let types = bitmap::types(fields.bitmap).collect();
        chain.insert(owner, ChainRecord { next, opt_out: fields.flags & OPT_OUT_FLAG != 0, types });
    }
}
