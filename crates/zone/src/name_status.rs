//! Status of names in their zone: authoritative, at a zone cut, or occluded (RFC 4035 §2.2).

use crate::{Contents, Node};
use nonesuch_proto::{NameRef, Rtype};

/// Status of a name that owns records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameStatus {
    /// The apex, or a name with authoritative records.
    Authoritative,
    /// A zone cut: a name other than the apex with an NS RRset.
    Delegation,
    /// Below a zone cut: glue and occluded names.
    BelowCut,
    /// Below a DNAME record: occluded (RFC 6672 §2.3).
    BelowDname,
}

impl NameStatus {
    /// Whether the name is in the NSEC chain and its RRsets are signed, at least in part.
    #[must_use]
    pub const fn is_in_chain(self) -> bool {
        matches!(self, Self::Authoritative | Self::Delegation)
    }
}

/// Returns the status of each node, in the order of the nodes.
#[must_use]
pub fn name_statuses(contents: &Contents) -> Vec<NameStatus> {
    let mut covering: Option<(NameRef<'_>, NameStatus)> = None;
    contents
        .nodes()
        .map(|node| {
            // In canonical order, the names below a name directly follow it.
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
