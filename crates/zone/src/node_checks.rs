//! What the records of one name must keep to, wherever contents come from.

use crate::builder::ZoneFault;
use crate::contents::Node;
use crate::size;
use nonesuch_proto::{NameRef, Rtype};

/// Types that may stand beside CNAME: those of DNSSEC (RFC 4034 §3 and §4, RFC 2535 §2.3.5).
pub(crate) const BESIDE_CNAME: [Rtype; 6] =
    [Rtype::CNAME, Rtype::RRSIG, Rtype::NSEC, Rtype::KEY, Rtype::SIG, Rtype::NXT];

/// The first rule that the records of `node` break: SOA at the apex alone and once, one CNAME or DNAME at most
/// (RFC 2181 §10.1, RFC 6672 §2.4), no other data beside CNAME (RFC 1034 §3.6.2), no RRset that is larger than a message.
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
        if other.is_none() && !BESIDE_CNAME.contains(&rtype) {
            other = Some(rtype);
        }
    }
    if let Some(other) = other.filter(|_| has_cname) {
        return Some(ZoneFault::CnameAndOther { owner: node.name().to_name(), other });
    }
    size::oversized(node, apex)
}
