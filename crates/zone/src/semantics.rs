//! Semantic checks: they find well-formed records that lead clients to nonexistent data, or that no
//! response contains.
//!
//! Faults that prevent the construction of contents (CNAME and other data at one name, a second SOA
//! record, an owner outside the zone) are not checked again. `zone verify` checks signatures and
//! denial chains.

mod apex;
mod finding;
mod hostname;
mod targets;

pub use finding::{Finding, Findings, Problem};

use crate::contents::{Contents, Node, Rrset};
use crate::name_status::{NameStatus, name_statuses};
use nonesuch_crypto::DigestType;
use nonesuch_proto::{NameRef, Rtype};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use targets::{Checker, Resolution, Target, TargetCache};

/// Number of nodes in a piece, which one task of the thread pool checks.
const NODES_PER_PIECE: usize = 16_384;

/// Checks the records of a zone. Stores at most `limit` findings of each kind, and counts all
/// findings.
#[must_use]
pub fn check(contents: &Contents, limit: usize) -> Findings {
    let statuses = name_statuses(contents);
    let is_used_glue = statuses.iter().map(|_| AtomicBool::new(false)).collect();
    let expire = contents.soa().map_or(u32::MAX, |soa| soa.expire);
    let checker = Checker { contents, statuses, is_used_glue, expire, limit };
    let mut findings = Findings::new(limit);
    apex::check(contents, &mut findings);
    findings.append(checker.check_in_parallel(Checker::check_node));
    // The set of glue addresses is complete only after all delegations are checked.
    findings
        .append(checker.check_in_parallel(|checker, node, _, findings| checker.check_glue(node, findings)));
    findings.sort();
    findings
}

impl<'z> Checker<'z> {
    /// Checks all nodes in parallel. The findings are in the order of the nodes.
    fn check_in_parallel(
        &self,
        check: impl Fn(&Self, Node<'z>, &mut TargetCache<'z>, &mut Findings) + Sync,
    ) -> Findings {
        let count = self.contents.node_count();
        let pieces: Vec<Range<usize>> = (0..count)
            .step_by(NODES_PER_PIECE)
            .map(|start| start..(start + NODES_PER_PIECE).min(count))
            .collect();
        let check_piece = |targets: &mut TargetCache<'z>, piece: &Range<usize>| {
            let mut findings = Findings::new(self.limit);
            for index in piece.clone() {
                check(self, self.contents.node(index), targets, &mut findings);
            }
            findings
        };
        let checked: Vec<Findings> = pieces.par_iter().map_init(TargetCache::new, check_piece).collect();
        let mut findings = Findings::new(self.limit);
        checked.into_iter().for_each(|piece| findings.append(piece));
        findings
    }

    fn check_node(&self, node: Node<'z>, targets: &mut TargetCache<'z>, findings: &mut Findings) {
        if node.index() > 0 && hostname::has_internal_wildcard(node.name()) {
            findings.add(node.name(), first_type(node), Problem::InternalWildcard);
        }
        for rrset in node.rrsets() {
            let rtype = rrset.rtype();
            if is_generated_by_signing(rtype) {
                continue;
            }
            if rrset.ttl() > self.expire {
                let (ttl, expire) = (rrset.ttl(), self.expire);
                findings.add(node.name(), rtype, Problem::TtlAboveExpire { ttl, expire });
            }
            if has_host_owner(rtype) && !hostname::is_host_owner(node.name()) {
                findings.add(node.name(), rtype, Problem::OwnerNotHostname);
            }
            self.check_rrset(node, rrset, targets, findings);
        }
    }

    fn check_rrset(
        &self,
        node: Node<'z>,
        rrset: Rrset<'z>,
        targets: &mut TargetCache<'z>,
        findings: &mut Findings,
    ) {
        let (owner, rtype) = (node.name(), rrset.rtype());
        match (self.statuses[node.index()], rtype) {
            (NameStatus::BelowDname, _) => {
                findings.add(owner, rtype, Problem::BelowDname { dname: self.find_occluder(node) });
            }
            (NameStatus::BelowCut, Rtype::A | Rtype::AAAA) => {}
            (NameStatus::BelowCut, _) => {
                findings.add(owner, rtype, Problem::BelowCut { cut: self.find_occluder(node) });
            }
            (NameStatus::Delegation, Rtype::NS) => self.check_targets(node, rrset, targets, findings),
            (NameStatus::Delegation, Rtype::DS) => check_digests(owner, rrset, findings),
            (NameStatus::Delegation, Rtype::DNAME) => {
                findings.add(owner, rtype, Problem::DnameBesideNs);
            }
            (NameStatus::Delegation, Rtype::A | Rtype::AAAA) => {}
            (NameStatus::Delegation, _) => {
                findings.add(owner, rtype, Problem::BelowCut { cut: owner.to_name() });
            }
            (NameStatus::Authoritative, Rtype::DS) if node.index() > 0 => {
                findings.add(owner, rtype, Problem::DsWithoutNs);
            }
            (NameStatus::Authoritative, Rtype::NS | Rtype::MX | Rtype::SRV) => {
                self.check_targets(node, rrset, targets, findings);
            }
            (NameStatus::Authoritative, Rtype::PTR) if hostname::is_reverse(owner) => {
                self.check_targets(node, rrset, targets, findings);
            }
            (NameStatus::Authoritative, _) => {}
        }
    }

    /// Checks the target names of an NS, MX, SRV or PTR RRset.
    fn check_targets(
        &self,
        node: Node<'z>,
        rrset: Rrset<'z>,
        targets: &mut TargetCache<'z>,
        findings: &mut Findings,
    ) {
        let (owner, rtype) = (node.name(), rrset.rtype());
        for name in rrset.rdatas().filter_map(|rdata| target_of(rtype, rdata)) {
            // The root is a null MX (RFC 7505) or an absent service (RFC 2782).
            if name.is_root() {
                continue;
            }
            let target = targets.find(self, node, name);
            if target.is_address {
                findings.add(owner, rtype, Problem::TargetIsAddress { target: name.to_name() });
                continue;
            }
            if !target.is_hostname {
                findings.add(owner, rtype, Problem::TargetNotHostname { target: name.to_name() });
            }
            if rtype != Rtype::PTR
                && let Some(problem) = self.check_target(owner, rtype, &target)
            {
                findings.add(owner, rtype, problem);
            }
        }
    }

    /// Returns the problem of a target, if any. If the addresses of the target of an NS record are
    /// glue, marks them as used.
    fn check_target(&self, owner: NameRef<'z>, rtype: Rtype, target: &Target<'z>) -> Option<Problem> {
        let name = || target.name.to_name();
        match target.resolution {
            Resolution::OutOfZone | Resolution::Address => None,
            Resolution::Glue(at) => {
                if rtype == Rtype::NS {
                    self.is_used_glue[at].store(true, Ordering::Relaxed);
                }
                None
            }
            // The data of the delegated zone are unknown here. A referral needs glue only for names
            // in the delegated zone (RFC 9471 §2.1).
            Resolution::Delegated => {
                let is_missing = rtype == Rtype::NS && target.name.is_at_or_below(owner);
                is_missing.then(|| Problem::MissingGlue { target: name() })
            }
            Resolution::Alias => Some(Problem::TargetIsAlias { target: name() }),
            Resolution::BelowDname => Some(Problem::TargetBelowDname { target: name() }),
            Resolution::NoAddress => Some(Problem::TargetHasNoAddress { target: name() }),
        }
    }

    /// Reports addresses at or below a zone cut to which no NS record of the zone refers. They are
    /// not glue and are in no response.
    fn check_glue(&self, node: Node<'z>, findings: &mut Findings) {
        let is_delegated =
            matches!(self.statuses[node.index()], NameStatus::Delegation | NameStatus::BelowCut);
        if !is_delegated || self.is_used_glue[node.index()].load(Ordering::Relaxed) {
            return;
        }
        for rtype in [Rtype::A, Rtype::AAAA].into_iter().filter(|rtype| node.has(*rtype)) {
            findings.add(node.name(), rtype, Problem::UnusedGlue { cut: self.find_occluder(node) });
        }
    }

    /// Returns the zone cut or the owner of the DNAME record at or above a node.
    fn find_occluder(&self, node: Node<'z>) -> nonesuch_proto::Name {
        let mut above = Some(node.name());
        while let Some(name) = above {
            if let Ok(found) = self.contents.find(name)
                && (self.statuses[found.index()] == NameStatus::Delegation
                    || self.statuses[found.index()] == NameStatus::Authoritative && found.has(Rtype::DNAME))
            {
                return found.name().to_name();
            }
            above = name.parent();
        }
        self.contents.apex().clone()
    }
}

/// Types that signing generates. Verification checks these records.
const fn is_generated_by_signing(rtype: Rtype) -> bool {
    rtype.is_signature_or_chain() || matches!(rtype, Rtype::NSEC5)
}

/// Types whose owner is a hostname (RFC 1123 §2.1).
const fn has_host_owner(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::A | Rtype::AAAA | Rtype::MX)
}

/// Returns the type of the first RRset of a node.
fn first_type(node: Node<'_>) -> Rtype {
    node.rrsets().next().map_or(Rtype::ANY, Rrset::rtype)
}

/// Returns the target name of an NS, PTR, MX or SRV record.
fn target_of(rtype: Rtype, rdata: &[u8]) -> Option<NameRef<'_>> {
    let start = match rtype {
        Rtype::MX => 2,
        Rtype::SRV => 6,
        _ => 0,
    };
    NameRef::from_wire(rdata.get(start..)?).ok()
}

/// Checks that the digest of each DS record has the length of its digest type (RFC 4034 §5.1.4).
fn check_digests(owner: NameRef<'_>, rrset: Rrset<'_>, findings: &mut Findings) {
    for rdata in rrset.rdatas() {
        let [high, low, _, digest_type, digest @ ..] = rdata else { continue };
        let (tag, digest_type) = (u16::from_be_bytes([*high, *low]), DigestType(*digest_type));
        match digest_type.octets() {
            None => findings.add(owner, Rtype::DS, Problem::UnknownDigestType { tag, digest_type }),
            Some(expected) if digest.len() != expected => {
                let found = digest.len();
                findings.add(owner, Rtype::DS, Problem::DigestLength { tag, digest_type, expected, found });
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
