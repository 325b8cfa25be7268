//! Counts the DNSSEC differences between two versions of a zone. Two versions that were signed
//! separately differ in every RRSIG record, so a list of the records would be too long to read.

use crate::inspect::{self, DenialInfo, KEPT_BY_SIGNER, KeyInfo};
use crate::rrsig::Rrsig;
use crate::transition::{TransitionFault, transition_between};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::change::{ChangeSet, node_pairs};
use nonesuch_zone::{Contents, Node, Rrset};

/// The differences in signatures, chain and keys.
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
    /// Numbers of RRsets of the chain.
    pub chain: Counts,
    /// Numbers of RRSIG records.
    pub signatures: SignatureCounts,
    /// Those of the types CDS, CDNSKEY, ZONEMD and NSEC5KEY whose RRsets differ.
    pub apex_types: Vec<Rtype>,
    /// The faults of the transition for validators that have the keys of the old version.
    pub unsafe_transition: Vec<TransitionFault>,
}

/// Numbers of RRsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Only in the old version.
    pub removed: u64,
    /// Only in the new version.
    pub added: u64,
    /// In both versions, but not identical.
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
    pub later: u64,
    /// Number of replaced signatures with an earlier expiration.
    pub earlier: u64,
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
            && self.chain == Counts::default()
            && self.apex_types.is_empty()
            && renewed + changed + removed + added == 0
    }
}

/// Compares the DNSSEC records of two versions of a zone.
#[must_use]
pub fn difference(old: &Contents, new: &Contents) -> Difference {
    let (old_keys, new_keys) = (inspect::keys(old), inspect::keys(new));
    let lacking = |keys: &[KeyInfo], others: &[KeyInfo]| {
        keys.iter().filter(|key| !others.contains(key)).cloned().collect::<Vec<_>>()
    };
    let mut found = Difference {
        serials: [old, new].map(|zone| zone.soa().map(|soa| soa.serial)),
        signed: [old, new].map(inspect::is_signed),
        keys_removed: lacking(&old_keys, &new_keys),
        keys_added: lacking(&new_keys, &old_keys),
        denial: [old, new].map(inspect::denial),
        unsafe_transition: transition_between(old, new),
        ..Difference::default()
    };
    let apex = |zone| Contents::nodes(zone).next();
    let of_parent = KEPT_BY_SIGNER.into_iter().filter(|rtype| *rtype != Rtype::DNSKEY);
    // Records of these types that the signer did not generate are compared with the data.
    let of_signer = |zone, rtype| {
        let node = apex(zone)?;
        node.rrset(rtype).filter(|rrset| inspect::is_of_signer(node, *rrset, old.apex().view(), true))
    };
    found.apex_types =
        of_parent.filter(|rtype| !same(of_signer(old, *rtype), of_signer(new, *rtype))).collect();
    for (a, b) in node_pairs(old, new) {
        compare_chain(a, b, old.apex().view(), &mut found.chain);
        compare_signatures(a, b, &mut found.signatures);
    }
    found
}

/// The differences of the data: without the RRsets that the signer generates, and, if either
/// version is signed, without the types at the apex that the signer keeps.
#[must_use]
pub fn data_changes(old: &Contents, new: &Contents) -> ChangeSet {
    let is_signed = inspect::is_signed(old) || inspect::is_signed(new);
    let apex = old.apex().view();
    ChangeSet::between_nodes(old, new, |node, rrset| !inspect::is_of_signer(node, rrset, apex, is_signed))
}

fn find(node: Option<Node<'_>>, rtype: Rtype) -> Option<Rrset<'_>> {
    node.and_then(|node| node.rrset(rtype))
}

/// Whether two RRsets have the same records and TTL.
fn same(a: Option<Rrset<'_>>, b: Option<Rrset<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.ttl() == b.ttl() && a.rdatas().eq(b.rdatas()),
        (None, None) => true,
        _ => false,
    }
}

fn compare_chain(old: Option<Node<'_>>, new: Option<Node<'_>>, apex: NameRef<'_>, counts: &mut Counts) {
    let chain = |node: &Option<Node<'_>>| {
        let rtypes = node.iter().flat_map(|node| node.rrsets().map(|rrset| (node.name(), rrset.rtype())));
        let of_chain = rtypes.filter(|(owner, rtype)| inspect::is_chain(*rtype, *owner, apex));
        of_chain.map(|(_, rtype)| rtype).collect::<Vec<_>>()
    };
    for rtype in chain(&old) {
        match find(new, rtype) {
            None => counts.removed += 1,
            Some(other) if !same(find(old, rtype), Some(other)) => counts.changed += 1,
            Some(_) => {}
        }
    }
    counts.added += chain(&new).iter().filter(|rtype| find(old, **rtype).is_none()).count() as u64;
}

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
        let same_data = same(find(old, set.covered()), find(new, set.covered()));
        compare_signature_sets(set, others, same_data, counts);
    }
    for set in signature_sets(new) {
        if old.and_then(|node| node.signatures(set.covered())).is_none() {
            counts.added += set.count() as u64;
        }
    }
}

fn compare_signature_sets(old: Rrset<'_>, new: Rrset<'_>, same_data: bool, counts: &mut SignatureCounts) {
    let mut left: Vec<&[u8]> = new.rdatas().collect();
    let mut gone: Vec<&[u8]> = Vec::new();
    for rdata in old.rdatas() {
        match left.iter().position(|other| *other == rdata) {
            Some(at) => {
                left.remove(at);
                counts.kept += 1;
            }
            None => gone.push(rdata),
        }
    }
    for rdata in gone {
        let Some(before) = Rrsig::parse(rdata) else { continue };
        let is_successor = |other: &Rrsig<'_>| (other.tag, other.algorithm) == (before.tag, before.algorithm);
        let at = left.iter().position(|other| Rrsig::parse(other).is_some_and(|other| is_successor(&other)));
        let Some(after) = at.and_then(|at| Rrsig::parse(left.remove(at))) else {
            counts.removed += 1;
            continue;
        };
        *(if same_data { &mut counts.renewed } else { &mut counts.changed }) += 1;
        // RFC 4034 §3.1.5: times are compared in serial number arithmetic.
        match after.expiration.wrapping_sub(before.expiration).cast_signed() {
            0 => {}
            1.. => counts.later += 1,
            _ => counts.earlier += 1,
        }
    }
    counts.added += left.len() as u64;
}

#[cfg(test)]
mod tests;
