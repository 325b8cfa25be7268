//! Counts the DNSSEC differences between two versions of a zone. Two versions that were signed
//! separately differ in every RRSIG record, so a list of the records would be too long to read.

use crate::inspect::{self, DenialInfo, KEPT_BY_SIGNER, KeyInfo};
use crate::rrsig::Rrsig;
use crate::transition::{TransitionFault, transition_between};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::change::{ChangeSet, node_pairs};
use nonesuch_zone::{Contents, Node, Rrset};

/// The differences in signatures, chain and keys between an old and a new version. In arrays, the
/// old version is first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Serials of the old and the new version; `None` for a version without an SOA record.
    pub serials: [Option<u32>; 2],
    /// Whether the old and the new version are signed.
    pub signed: [bool; 2],
    /// Keys that only the old version has.
    pub keys_removed: Vec<KeyInfo>,
    /// Keys that only the new version has.
    pub keys_added: Vec<KeyInfo>,
    /// The denial mechanism of the old and the new version.
    pub denial: [Option<DenialInfo>; 2],
    /// Numbers of RRsets of the denial chain, including NSEC3PARAM.
    pub chain: RrsetCounts,
    /// Numbers of RRSIG records.
    pub signatures: SignatureCounts,
    /// Those of the types CDS, CDNSKEY, ZONEMD and NSEC5KEY whose RRsets at the apex differ.
    pub apex_types: Vec<Rtype>,
    /// The faults of the transition for validators that have cached data of the old version.
    pub unsafe_transition: Vec<TransitionFault>,
}

/// Numbers of RRsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RrsetCounts {
    /// RRsets that only the old version has.
    pub removed: u64,
    /// RRsets that only the new version has.
    pub added: u64,
    /// RRsets that differ in records or TTL.
    pub changed: u64,
}

/// Numbers of RRSIG records. A signature replaces another one if both have the same owner, type
/// covered, key tag and algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignatureCounts {
    /// Identical in both versions.
    pub kept: u64,
    /// Replaced by a signature of the same key over the same records.
    pub renewed: u64,
    /// Replaced by a signature of the same key over other records.
    pub changed: u64,
    /// Number of replaced signatures with a later expiration.
    pub expires_later: u64,
    /// Number of replaced signatures with an earlier expiration.
    pub expires_earlier: u64,
    /// Removed without a replacement.
    pub removed: u64,
    /// Added, and replaces no signature.
    pub added: u64,
}

impl Difference {
    /// Whether the DNSSEC records of the versions are the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let SignatureCounts { renewed, changed, removed, added, .. } = self.signatures;
        self.signed[0] == self.signed[1]
            && self.keys_removed.is_empty()
            && self.keys_added.is_empty()
            && self.chain == RrsetCounts::default()
            && self.apex_types.is_empty()
            && renewed + changed + removed + added == 0
    }
}

/// Compares the DNSSEC records of two versions of a zone.
#[must_use]
pub fn difference(old: &Contents, new: &Contents) -> Difference {
    let (old_keys, new_keys) = (inspect::keys(old), inspect::keys(new));
    let missing_in = |keys: &[KeyInfo], others: &[KeyInfo]| {
        keys.iter().filter(|key| !others.contains(key)).cloned().collect::<Vec<_>>()
    };
    let mut difference = Difference {
        serials: [old, new].map(|zone| zone.soa().map(|soa| soa.serial)),
        signed: [old, new].map(inspect::is_signed),
        keys_removed: missing_in(&old_keys, &new_keys),
        keys_added: missing_in(&new_keys, &old_keys),
        denial: [old, new].map(inspect::denial),
        unsafe_transition: transition_between(old, new),
        ..Difference::default()
    };
    let apex = |zone| Contents::nodes(zone).next();
    let other_types = KEPT_BY_SIGNER.into_iter().filter(|rtype| *rtype != Rtype::DNSKEY);
    // Records of these types that the signer did not generate are compared with the data.
    let signer_rrset = |zone, rtype| {
        let node = apex(zone)?;
        node.rrset(rtype).filter(|rrset| inspect::belongs_to_signer(node, *rrset, old.apex().view(), true))
    };
    difference.apex_types =
        other_types.filter(|rtype| !is_same(signer_rrset(old, *rtype), signer_rrset(new, *rtype))).collect();
    for (a, b) in node_pairs(old, new) {
        compare_chain(a, b, old.apex().view(), &mut difference.chain);
        compare_signatures(a, b, &mut difference.signatures);
    }
    difference
}

/// The differences of the data: without the RRsets that the signer generates. If either version is
/// signed, also without the types of [`KEPT_BY_SIGNER`] at the apex.
#[must_use]
pub fn data_changes(old: &Contents, new: &Contents) -> ChangeSet {
    let is_signed = inspect::is_signed(old) || inspect::is_signed(new);
    let apex = old.apex().view();
    ChangeSet::between_nodes(old, new, |node, rrset| {
        !inspect::belongs_to_signer(node, rrset, apex, is_signed)
    })
}

/// The RRset of `rtype` at the node; `None` without a node.
fn find(node: Option<Node<'_>>, rtype: Rtype) -> Option<Rrset<'_>> {
    node.and_then(|node| node.rrset(rtype))
}

/// Whether two RRsets have the same records and TTL.
fn is_same(a: Option<Rrset<'_>>, b: Option<Rrset<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.ttl() == b.ttl() && a.rdatas().eq(b.rdatas()),
        (None, None) => true,
        _ => false,
    }
}

fn compare_chain(old: Option<Node<'_>>, new: Option<Node<'_>>, apex: NameRef<'_>, counts: &mut RrsetCounts) {
    let chain = |node: &Option<Node<'_>>| {
        let rtypes = node.iter().flat_map(|node| node.rrsets().map(|rrset| (node.name(), rrset.rtype())));
        let of_chain = rtypes.filter(|(owner, rtype)| inspect::is_chain(*rtype, *owner, apex));
        of_chain.map(|(_, rtype)| rtype).collect::<Vec<_>>()
    };
    for rtype in chain(&old) {
        match find(new, rtype) {
            None => counts.removed += 1,
            Some(other) if !is_same(find(old, rtype), Some(other)) => counts.changed += 1,
            Some(_) => {}
        }
    }
    counts.added += chain(&new).iter().filter(|rtype| find(old, **rtype).is_none()).count() as u64;
}

/// The RRSIG RRsets at the node, one for each type covered.
fn signature_sets(node: Option<Node<'_>>) -> impl Iterator<Item = Rrset<'_>> {
    node.into_iter().flat_map(|node| node.rrsets()).filter(|rrset| rrset.rtype() == Rtype::RRSIG)
}

fn compare_signatures(old: Option<Node<'_>>, new: Option<Node<'_>>, counts: &mut SignatureCounts) {
    for set in signature_sets(old) {
        let others = new.and_then(|node| node.signatures(set.covered()));
        let Some(others) = others else {
            counts.removed += set.count() as u64;
            continue;
        };
        let same_data = is_same(find(old, set.covered()), find(new, set.covered()));
        compare_signature_sets(set, others, same_data, counts);
    }
    for set in signature_sets(new) {
        if old.and_then(|node| node.signatures(set.covered())).is_none() {
            counts.added += set.count() as u64;
        }
    }
}

/// Compares the signatures over one RRset. `same_data` tells whether its records are the same in
/// both versions.
fn compare_signature_sets(old: Rrset<'_>, new: Rrset<'_>, same_data: bool, counts: &mut SignatureCounts) {
    let mut unmatched_new: Vec<&[u8]> = new.rdatas().collect();
    let mut unmatched_old: Vec<&[u8]> = Vec::new();
    for rdata in old.rdatas() {
        match unmatched_new.iter().position(|other| *other == rdata) {
            Some(at) => {
                unmatched_new.remove(at);
                counts.kept += 1;
            }
            None => unmatched_old.push(rdata),
        }
    }
    for rdata in unmatched_old {
        let Some(before) = Rrsig::parse(rdata) else { continue };
        let is_replacement =
            |other: &Rrsig<'_>| (other.tag, other.algorithm) == (before.tag, before.algorithm);
        let at = unmatched_new
            .iter()
            .position(|other| Rrsig::parse(other).is_some_and(|other| is_replacement(&other)));
        let Some(after) = at.and_then(|at| Rrsig::parse(unmatched_new.remove(at))) else {
            counts.removed += 1;
            continue;
        };
        *(if same_data { &mut counts.renewed } else { &mut counts.changed }) += 1;
        // RFC 4034 §3.1.5: times are compared in serial number arithmetic.
        match after.expiration.wrapping_sub(before.expiration).cast_signed() {
            0 => {}
            1.. => counts.expires_later += 1,
            _ => counts.expires_earlier += 1,
        }
    }
    counts.added += unmatched_new.len() as u64;
}

#[cfg(test)]
mod tests;
