//! Warnings of the signer about records that it signs, although verification reports them as
//! faults: for example DNSKEY records below the apex.

use super::{SignOptions, SignWarning};
use crate::denial::{NameHash, nsec5};
use crate::verify::{Fault, FaultReason, Findings, cds, check_name_servers};
use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, NameStatus, Node, Rrset, name_statuses};

/// Checks the prepared apex: missing name servers, DS records, and CDS and CDNSKEY records that
/// would mislead the parent.
///
/// `signing` is the RDATA of the keys that sign the DNSKEY RRset.
pub(super) fn check_apex(apex: &Contents, signing: &[Vec<u8>]) -> Vec<SignWarning> {
    let mut findings = Findings::default();
    let owner = apex.apex().view();
    if apex.apex_rrset(Rtype::DS).is_some() {
        findings.fault(owner, Some(Rtype::DS), FaultReason::UnexpectedRecords);
    }
    check_name_servers(apex, &mut findings);
    cds::check_unsigned(apex, signing, &mut findings);
    warnings(findings)
}

/// Finds records at names other than the apex that are only permitted at the apex or not at all.
/// `contents` is the zone before signing.
pub(super) fn check_below_apex(contents: &Contents, options: &SignOptions<'_>) -> Vec<SignWarning> {
    let is_key_record =
        |rrset: Rrset<'_>| matches!(rrset.rtype(), Rtype::DNSKEY | Rtype::CDS | Rtype::CDNSKEY);
    let mut findings = Findings::default();
    // Computing the statuses of all names takes time, and most zones have no such record.
    if contents.nodes().skip(1).any(|node| node.rrsets().any(is_key_record)) {
        for (node, status) in contents.nodes().zip(name_statuses(contents)).skip(1) {
            check_node(node, status, &mut findings);
        }
    }
    if options.mechanism.name_hash() == NameHash::Vrf {
        nsec5::check::check_misplaced_records(contents, &mut findings);
    }
    warnings(findings)
}

/// As [`check_below_apex`], for the names of a zone that are signed again. `patch` has these names,
/// with the apex first; `statuses` are their statuses.
pub(super) fn check_changed(patch: &Contents, statuses: &[NameStatus]) -> Vec<SignWarning> {
    let mut findings = Findings::default();
    for (node, status) in patch.nodes().zip(statuses).skip(1) {
        check_node(node, *status, &mut findings);
    }
    warnings(findings)
}

/// Reports DNSKEY, CDS and CDNSKEY RRsets that are not permitted at this name.
fn check_node(node: Node<'_>, status: NameStatus, findings: &mut Findings) {
    for rrset in node.rrsets().filter(|rrset| cds::is_misplaced(node, status, *rrset)) {
        findings.fault(node.name(), Some(rrset.rtype()), FaultReason::UnexpectedRecords);
    }
}

fn warnings(findings: Findings) -> Vec<SignWarning> {
    let faults = findings.into_report(None).faults.into_iter();
    let warning = |fault: Fault| {
        let (owner, rtype) = (fault.owner, fault.rtype.unwrap_or(Rtype::SOA));
        SignWarning::WillNotVerify { owner, rtype, reason: fault.reason }
    };
    faults.map(warning).collect()
}
