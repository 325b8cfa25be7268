//! Checks of the records at one name. They apply to contents from any source.

use crate::builder::ZoneFault;
use crate::contents::Node;
use crate::size;
use nonesuch_proto::{NameRef, Rtype};

/// Types that may exist at the owner of a CNAME record: CNAME and DNSSEC types (RFC 4034 §3 and
/// §4), including the obsolete ones (RFC 2535 §2.3.5).
pub(crate) const ALLOWED_WITH_CNAME: [Rtype; 6] =
    [Rtype::CNAME, Rtype::RRSIG, Rtype::NSEC, Rtype::KEY, Rtype::SIG, Rtype::NXT];

/// Returns the first violated rule at `node`: an SOA record only at the apex and only one, at most
/// one CNAME or DNAME record (RFC 2181 §10.1, RFC 6672 §2.4), no other data at the owner of a CNAME
/// record (RFC 1034 §3.6.2), no RRset that does not fit in a message. Returns `None` if no rule is
/// violated.
pub(crate) fn check_node(node: Node<'_>, apex: NameRef<'_>) -> Option<ZoneFault> {
    let mut has_cname = false;
    let mut other = None;
    for rrset in node.rrsets() {
        let rtype = rrset.rtype();
        match rtype {
            Rtype::SOA if rrset.count() > 1 || node.name() != apex => {
                return Some(ZoneFault::SecondSoa(node.name().to_name()));
            }
            Rtype::CNAME | Rtype::DNAME if rrset.count() > 1 => {
                return Some(ZoneFault::NotSingleton { owner: node.name().to_name(), rtype });
            }
            _ => {}
        }
        has_cname |= rtype == Rtype::CNAME;
        if other.is_none() && !ALLOWED_WITH_CNAME.contains(&rtype) {
            other = Some(rtype);
        }
    }
    if let Some(other) = other.filter(|_| has_cname) {
        return Some(ZoneFault::CnameAndOther { owner: node.name().to_name(), other });
    }
    size::find_oversized(node, apex)
}
