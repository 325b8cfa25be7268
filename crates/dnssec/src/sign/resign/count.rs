//! Computes the expected numbers of signed RRsets and chain records from the data of a zone. If the
//! whole new zone is available, this detects missing and surplus records of the previous zone.

use super::outcome::ResignedZone;
use crate::denial::names::{chain_names, is_kept};
use crate::denial::{self, Mapping};
use crate::sign::SignOptions;
use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, Node, Rrset, name_statuses};

/// Whether the new zone with these unsigned `contents` has the expected numbers.
pub(super) fn is_complete(
    contents: &Contents,
    resigned: &ResignedZone<'_>,
    options: &SignOptions<'_>,
) -> bool {
    let statuses = name_statuses(contents);
    let (mut chained, mut signed) = (Vec::new(), 0);
    for (node, status) in contents.nodes().zip(&statuses) {
        if !is_kept(contents, node) {
            continue;
        }
        if status.is_in_chain() {
            chained.push(node.index() as u32);
        }
        let counts = |rrset: &Rrset<'_>| {
            !rrset.rtype().is_signature_or_chain() && denial::is_signed(rrset.rtype(), *status)
        };
        if node.index() > 0 {
            signed += node.rrsets().filter(counts).count() as u64;
        }
    }
    let links = match options.mechanism.mapping() {
        Mapping::Itself => chained.len(),
        Mapping::Sha1 | Mapping::Vrf => {
            let opt_out = options.mechanism.is_opt_out();
            let names = chain_names(contents, &statuses, &chained);
            names.iter().filter(|name| !opt_out || name.required).count()
        }
    } as u64;
    // The signer generates some RRsets of the apex.
    let is_chain = |rrset: &Rrset<'_>| matches!(rrset.rtype(), Rtype::NSEC | Rtype::NSEC3 | Rtype::RRSIG);
    let of_apex = resigned.apex().into_iter().flat_map(Node::rrsets).filter(|rrset| !is_chain(rrset)).count();
    let statistics = resigned.statistics();
    (statistics.chain_records, statistics.rrsets_signed) == (links, signed + of_apex as u64 + links)
}
