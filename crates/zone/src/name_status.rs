//! Where a name stands in its zone: authoritative, at a zone cut, or occluded below one (RFC 4035 §2.2).

use crate::{Contents, Node};
use nonesuch_proto::{NameRef, Rtype};

/// What a name that owns records is to its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameStatus {
    /// The apex, or a name whose records are the zone's own.
    Authoritative,
    /// A zone cut: the owner of an NS RRset other than the apex.
    Delegation,
    /// Below a zone cut: glue and occluded names.
    BelowCut,
    /// Below a DNAME: occluded (RFC 6672 §2.3).
    BelowDname,
}

impl NameStatus {
    /// Whether the name is in the chain of NSEC records and its RRsets are (in part) signed.
    #[must_use]
    pub const fn is_in_chain(self) -> bool {
        matches!(self, Self::Authoritative | Self::Delegation)
    }
}

/// The standing of every node, in the nodes' order.
#[must_use]
pub fn name_statuses(contents: &Contents) -> Vec<NameStatus> {
    let mut covering: Option<(NameRef<'_>, NameStatus)> = None;
    contents
        .nodes()
        .map(|node| {
            // Names below a name follow it directly in canonical order.
            if let Some((above, standing)) = covering {
                if node.name().is_below(above) {
                    return standing;
                }
                covering = None;
            }
            let standing = own_status(contents, node);
            if standing == NameStatus::Delegation {
                covering = Some((node.name(), NameStatus::BelowCut));
            } else if node.has(Rtype::DNAME) {
                covering = Some((node.name(), NameStatus::BelowDname));
            }
            standing
        })
        .collect()
}

fn own_status(contents: &Contents, node: Node<'_>) -> NameStatus {
    if node.has(Rtype::NS) && node.name() != contents.apex().view() {
        NameStatus::Delegation
    } else {
        NameStatus::Authoritative
    }
}
