//! Computes the expected numbers of signed RRsets and chain records from the unsigned data of a
//! zone. If another number results from an update, the previous zone has missing or surplus
//! records.

use super::outcome::ResignedZone;
use crate::denial::names::{chain_names, has_source_records};
use crate::denial::{self, NameHash};
use crate::sign::SignOptions;
use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, Node, Rrset, name_statuses};

/// Whether `resigned` has the numbers of signed RRsets and chain records that a zone with these
/// unsigned `contents` must have.
pub(super) fn is_complete(
    contents: &Contents,
    resigned: &ResignedZone<'_>,
    options: &SignOptions<'_>,
) -> bool {
    let statuses = name_statuses(contents);
    let (mut chain_nodes, mut signed_below_apex) = (Vec::new(), 0);
    for (node, status) in contents.nodes().zip(&statuses) {
        if !has_source_records(contents, node) {
            continue;
        }
        if status.is_in_chain() {
            chain_nodes.push(node.index() as u32);
        }
        let gets_signature = |rrset: &Rrset<'_>| {
            !rrset.rtype().is_signature_or_chain() && denial::is_signed(rrset.rtype(), *status)
        };
        if node.index() > 0 {
            signed_below_apex += node.rrsets().filter(gets_signature).count() as u64;
        }
    }
    let chain_records = match options.mechanism.name_hash() {
        NameHash::Unhashed => chain_nodes.len(),
        NameHash::Sha1 | NameHash::Vrf => {
            let opt_out = options.mechanism.is_opt_out();
            let names = chain_names(contents, &statuses, &chain_nodes);
            names.iter().filter(|name| !opt_out || name.is_required).count()
        }
    } as u64;
    // The signer generates some RRsets of the apex, so they are counted in the new zone.
    let is_signature_or_chain =
        |rrset: &Rrset<'_>| matches!(rrset.rtype(), Rtype::NSEC | Rtype::NSEC3 | Rtype::RRSIG);
    let apex_rrsets = resigned.apex().into_iter().flat_map(Node::rrsets);
    let signed_at_apex = apex_rrsets.filter(|rrset| !is_signature_or_chain(rrset)).count() as u64;
    let statistics = resigned.statistics();
    let signed = signed_below_apex + signed_at_apex + chain_records;
    (statistics.chain_records, statistics.rrsets_signed) == (chain_records, signed)
}
