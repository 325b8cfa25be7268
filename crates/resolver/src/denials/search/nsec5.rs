//! Searches in NSEC5 zones: by the names of the proofs.

use super::{Covering, Piece, PieceHash, Pieces, Wildcard};
use crate::denials::keys::{nsec5_proof_key, suffix_octets};
use crate::denials::zone::{Position, Zone};
use nonesuch_proto::NameRef;

/// The first octet and the sort key of the label `*`.
const WILDCARD_LABEL: &[u8] = b"*\0";

/// Finds the record that matches `name`, or the records for the next closer name, its parent, and the
/// wildcard below this parent. Each name needs a cached proof.
pub(in crate::denials) fn find(zone: &Zone, name: NameRef<'_>, now: u32) -> Option<Pieces> {
    let key = nsec5_proof_key(name);
    if let Some((piece, true)) = position(zone, &key, now) {
        return Some(Pieces::Matching(piece));
    }
    // The first octet of the key comes before the sort key.
    let octets = |depth| 1 + suffix_octets(&key[1..], depth);
    let deepest = name.label_count().min(zone.deepest_proof());
    for depth in zone.apex().view().label_count() + 1..=deepest {
        let Some((piece, is_matched)) = position(zone, &key[..octets(depth)], now) else { continue };
        if is_matched && !piece.record.can_be_encloser || !is_matched && piece.record.is_opt_out {
            return None;
        }
        if is_matched {
            continue;
        }
        let encloser = &key[..octets(depth - 1)];
        let matching = position(zone, encloser, now).filter(|(_, is_matched)| *is_matched);
        let wildcard = position(zone, &[encloser, WILDCARD_LABEL].concat(), now);
        return Some(Pieces::Covering(Covering {
            name: name.suffix(depth).to_name(),
            encloser: name.suffix(depth - 1).to_name(),
            covering: piece,
            matching_encloser: matching.map(|(piece, _)| piece),
            wildcard: wildcard.map(|(piece, is_matched)| match is_matched {
                true => Wildcard::Matched(piece),
                false => Wildcard::Covered(piece),
            }),
        }));
    }
    None
}

/// Returns the record for a name with this key, and whether the record matches the name.
fn position(zone: &Zone, key: &[u8], now: u32) -> Option<(Piece, bool)> {
    let proof = zone.get(key, now)?;
    let hash = PieceHash::Proof(proof.clone());
    Some(match zone.find(&proof.next, now)? {
        Position::Matched(record) => (Piece { record, hash }, true),
        Position::Covered(record) => (Piece { record, hash }, false),
    })
}
