//! What a zone holds that verifying will take for a fault, though it can be signed: told before it is signed.

use super::{SignOptions, SignWarning};
use crate::denial::{Mapping, nsec5};
use crate::verify::{Fault, Findings, Reason, check_name_servers, child};
use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, Node, Rrset, Standing, standings};

/// The prepared apex: no name servers, DS records, and CDS and CDNSKEY records that would mislead the parent.
///
/// `signing` is the RDATA of the keys that sign the DNSKEY RRset.
pub(super) fn at_apex(apex: &Contents, signing: &[Vec<u8>]) -> Vec<SignWarning> {
    let mut findings = Findings::default();
    let owner = apex.apex().view();
    if apex.apex_rrset(Rtype::DS).is_some() {
        findings.fault(owner, Some(Rtype::DS), Reason::UnexpectedRecords);
    }
    check_name_servers(apex, &mut findings);
    child::check_unsigned(apex, signing, &mut findings);
    warnings(findings)
}

/// Records away from the apex that belong there or nowhere; `contents` are the zone before it is signed.
pub(super) fn away_from_apex(contents: &Contents, options: &SignOptions<'_>) -> Vec<SignWarning> {
    let is_rare = |rrset: Rrset<'_>| matches!(rrset.rtype(), Rtype::DNSKEY | Rtype::CDS | Rtype::CDNSKEY);
    let mut findings = Findings::default();
    // Standings are worth their walk where there is any such record alone.
    if contents.nodes().skip(1).any(|node| node.rrsets().any(is_rare)) {
        for (node, standing) in contents.nodes().zip(standings(contents)).skip(1) {
            check_node(node, standing, &mut findings);
        }
    }
    if options.mechanism.mapping() == Mapping::Vrf {
        nsec5::check::check_strays(contents, &mut findings);
    }
    warnings(findings)
}

/// As [`away_from_apex`], of the names of a zone that are signed anew: the apex comes first.
pub(super) fn among(patch: &Contents, standings: &[Standing]) -> Vec<SignWarning> {
    let mut findings = Findings::default();
    for (node, standing) in patch.nodes().zip(standings).skip(1) {
        check_node(node, *standing, &mut findings);
    }
    warnings(findings)
}

fn check_node(node: Node<'_>, standing: Standing, findings: &mut Findings) {
    for rrset in node.rrsets().filter(|rrset| child::is_stray(node, standing, *rrset)) {
        findings.fault(node.name(), Some(rrset.rtype()), Reason::UnexpectedRecords);
    }
}

fn warnings(findings: Findings) -> Vec<SignWarning> {
    let faults = findings.into_report(None).faults.into_iter();
    let refused = |fault: Fault| {
        let (owner, rtype) = (fault.owner, fault.rtype.unwrap_or(Rtype::SOA));
        SignWarning::Refused { owner, rtype, reason: fault.reason }
    };
    faults.map(refused).collect()
}
