//! Checks of the records at the apex: SOA record, CDS and CDNSKEY.

use super::finding::{Findings, Problem};
use super::hostname;
use crate::contents::{Contents, Soa};
use nonesuch_proto::{NameRef, Rtype};

/// Recommended maximum TTL of negative answers in caches, in seconds (RFC 2308 §5).
const MAX_NEGATIVE_TTL: u32 = 86_400;

/// Checks records that exist only at the apex.
pub(super) fn check(contents: &Contents, findings: &mut Findings) {
    check_times(contents, findings);
    check_primary(contents, findings);
    let apex = contents.apex().view();
    for (present, missing) in [(Rtype::CDS, Rtype::CDNSKEY), (Rtype::CDNSKEY, Rtype::CDS)] {
        if contents.apex_rrset(present).is_some() && contents.apex_rrset(missing).is_none() {
            findings.add(apex, present, Problem::OneOfCdsAndCdnskey { missing });
        }
    }
}

fn check_times(contents: &Contents, findings: &mut Findings) {
    let Some(soa) = contents.soa() else { return };
    let apex = contents.apex().view();
    let Soa { refresh, retry, expire, .. } = soa;
    if retry > refresh {
        findings.add(apex, Rtype::SOA, Problem::RetryAboveRefresh { retry, refresh });
    }
    let required = u64::from(refresh) + u64::from(retry);
    if u64::from(expire) < required {
        findings.add(apex, Rtype::SOA, Problem::ExpireTooShort { expire, required });
    }
    let ttl = soa.negative_ttl();
    if ttl > MAX_NEGATIVE_TTL {
        findings.add(apex, Rtype::SOA, Problem::LongNegativeTtl { ttl });
    }
}

fn check_primary(contents: &Contents, findings: &mut Findings) {
    let rdata = contents.apex_rrset(Rtype::SOA).and_then(|soa| soa.rdatas().next());
    let Some((primary, _)) = rdata.and_then(|rdata| NameRef::split_from(rdata).ok()) else { return };
    if !hostname::is_hostname(primary) {
        let problem = Problem::TargetNotHostname { target: primary.to_name() };
        findings.add(contents.apex().view(), Rtype::SOA, problem);
    }
}
