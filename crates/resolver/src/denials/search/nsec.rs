//! Searches in NSEC zones (RFC 8198 §5.1).

use super::{Covering, Piece, PieceHash, Pieces, Wildcard};
use crate::denials::keys::{common_labels, name_key, suffix_octets};
use crate::denials::zone::{Position, Zone};
use nonesuch_proto::NameRef;

/// The sort key of the label `*`.
const WILDCARD_LABEL: &[u8] = b"*\0";

/// Finds the record that matches `name` or shows that it is an empty non-terminal, or the records that cover it and the wildcard at its closest
/// encloser.
pub(in crate::denials) fn find(zone: &Zone, name: NameRef<'_>, now: u32) -> Option<Pieces> {
    let key = name_key(name);
    let piece = |record| Piece { record, hash: PieceHash::None };
    let record = match zone.find(&key, now)? {
        Position::Matched(record) => return Some(Pieces::Matching(piece(record))),
        Position::Covered(record) => record,
    };
    let owner = record.rrset.owner().view();
    if !record.can_be_encloser && name.is_below(owner) {
        return None;
    }
    let owner_labels = common_labels(&key, &name_key(owner));
    let labels = owner_labels.max(common_labels(&key, &record.next));
    if labels == name.label_count() {
        // The next name is below the name, which is an empty non-terminal (RFC 4592 §2.2.2).
        return Some(Pieces::Matching(piece(record)));
    }
    let mut wildcard = key;
    wildcard.truncate(suffix_octets(&wildcard, labels));
    wildcard.extend_from_slice(WILDCARD_LABEL);
    let wildcard = zone.find(&wildcard, now).map(|position| match position {
        Position::Matched(record) => Wildcard::Matched(piece(record)),
        Position::Covered(record) => Wildcard::Covered(piece(record)),
    });
    Some(Pieces::Covering(Covering {
        name: name.to_name(),
        encloser: name.suffix(labels).to_name(),
        covering: piece(record),
        matching_encloser: None,
        wildcard,
    }))
}
