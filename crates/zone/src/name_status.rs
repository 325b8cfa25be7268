//! Status of names in their zone: authoritative, at a zone cut, or occluded (RFC 4035 §2.2).

use crate::{Contents, Node};
use nonesuch_proto::{NameRef, Rtype};

/// Status of a name that owns records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameStatus {
    /// The apex, or a name with authoritative records.
    Authoritative,
    /// A zone cut: a name other than the apex with an NS RRset. Only its DS RRset and chain records
    /// are signed.
    Delegation,
    /// Below a zone cut: glue and other occluded names.
    BelowCut,
    /// Below a DNAME record: occluded (RFC 6672 §2.3).
    BelowDname,
}

impl NameStatus {
    /// Whether a name with this status belongs to the NSEC chain. Only the RRsets of such a name
    /// are signed; of a zone cut, only those in [`Self::Delegation`].
    #[must_use]
    pub const fn is_in_chain(self) -> bool {
        matches!(self, Self::Authoritative | Self::Delegation)
    }
}

/// Returns the status of each node, in the order of the nodes.
#[must_use]
pub fn name_statuses(contents: &Contents) -> Vec<NameStatus> {
    // The last zone cut or owner of a DNAME record, and the status of the names below it.
    let mut occluder: Option<(NameRef<'_>, NameStatus)> = None;
    contents
        .nodes()
        .map(|node| {
            // In canonical order, the names below a name directly follow it.
            if let Some((above, status)) = occluder {
                if node.name().is_below(above) {
                    return status;
                }
                occluder = None;
            }
            let status = unoccluded_status(contents, node);
            if status == NameStatus::Delegation {
                occluder = Some((node.name(), NameStatus::BelowCut));
            } else if node.has(Rtype::DNAME) {
                occluder = Some((node.name(), NameStatus::BelowDname));
            }
            status
        })
        .collect()
}

/// Returns the status of a node that is not below a zone cut or a DNAME record.
fn unoccluded_status(contents: &Contents, node: Node<'_>) -> NameStatus {
    if node.has(Rtype::NS) && node.name() != contents.apex().view() {
        NameStatus::Delegation
    } else {
        NameStatus::Authoritative
    }
}
