//! Searches in NSEC3 zones (RFC 8198 §5.2, RFC 5155 §8.3). Hashes are computed without a lock.

use super::{Covering, Piece, PieceHash, Pieces, Wildcard};
use crate::denials::entry::Entry;
use crate::denials::store::{Store, ZoneId};
use crate::denials::zone::{Chain, Nsec3Chain, Position, Zone};
use nonesuch_dnssec::denial::nsec3::hash_block_count;
use nonesuch_dnssec::validate::aggressive::Sha1Hash;
use nonesuch_proto::{Name, NameRef};
use std::sync::Arc;

/// The SHA-1 blocks of a lookup.
#[derive(Clone, Copy, Debug)]
pub(in crate::denials) struct HashLimit {
    pub(in crate::denials) spent: u32,
    pub(in crate::denials) max: u32,
}

/// A search in one zone.
#[derive(Debug)]
pub(in crate::denials) struct Nsec3Search<'s> {
    pub(in crate::denials) store: &'s Store,
    pub(in crate::denials) id: ZoneId,
    pub(in crate::denials) apex: NameRef<'s>,
    pub(in crate::denials) chain: Arc<Nsec3Chain>,
    /// Whether a record of the zone can deny a name.
    pub(in crate::denials) can_cover: bool,
    pub(in crate::denials) now: u32,
}

impl Nsec3Search<'_> {
    /// Finds the record that matches `name`, which is in lower case; or the records for its closest
    /// encloser, for the next closer name, and for the wildcard below the closest encloser.
    ///
    /// It begins with the name, and then goes down from the apex: usually, names that do not exist are
    /// directly below an existing one. `None` also if `limit` does not suffice.
    pub(in crate::denials) fn find(&self, name: NameRef<'_>, limit: &mut HashLimit) -> Option<Pieces> {
        let hash = if name == self.apex { self.chain.apex } else { self.hash(name, limit)? };
        let found = self.position(&hash);
        if let Some(Position::Matched(record)) = found {
            return Some(Pieces::Matching(piece(record, name, hash)));
        }
        if !self.can_cover || name == self.apex {
            return None;
        }
        let (mut encloser, labels) = (self.matching_apex(), name.label_count());
        for depth in self.apex.label_count() + 1..labels {
            let ancestor = name.suffix(depth);
            let hash = self.hash(ancestor, limit)?;
            encloser = match self.position(&hash) {
                Some(Position::Matched(record)) if !record.can_be_encloser => return None,
                Some(Position::Matched(record)) => Some(piece(record, ancestor, hash)),
                Some(Position::Covered(record)) => {
                    return self.find_wildcard(encloser?, piece(record, ancestor, hash), limit);
                }
                None => None,
            };
        }
        let Some(Position::Covered(record)) = found else { return None };
        self.find_wildcard(encloser?, piece(record, name, hash), limit)
    }

    /// Finds the record for the wildcard. `covering` is for the next closer name.
    fn find_wildcard(&self, encloser: Piece, covering: Piece, limit: &mut HashLimit) -> Option<Pieces> {
        // RFC 8198 §5.2: an unsigned delegation may exist in an opt-out span.
        if covering.record.is_opt_out {
            return None;
        }
        let (PieceHash::Sha1(encloser_name, _), PieceHash::Sha1(next_closer, _)) =
            (encloser.hash.clone(), covering.hash.clone())
        else {
            return None;
        };
        let mut wildcard = None;
        // Otherwise no name fits below the closest encloser.
        if let Ok(name) = Name::wildcard_below(encloser_name.view()) {
            let (name, hash) = (name.view(), self.hash(name.view(), limit)?);
            wildcard = match self.position(&hash) {
                Some(Position::Matched(record)) => Some(Wildcard::Matched(piece(record, name, hash))),
                Some(Position::Covered(record)) if record.is_opt_out => return None,
                Some(Position::Covered(record)) => Some(Wildcard::Covered(piece(record, name, hash))),
                None => None,
            };
        }
        Some(Pieces::Covering(Covering {
            name: next_closer,
            encloser: encloser_name,
            covering,
            matching_encloser: Some(encloser),
            wildcard,
        }))
    }

    /// Returns the record that matches the apex. It needs no hash.
    fn matching_apex(&self) -> Option<Piece> {
        match self.position(&self.chain.apex)? {
            Position::Matched(record) => Some(piece(record, self.apex, self.chain.apex)),
            Position::Covered(_) => None,
        }
    }

    /// Finds the record for a hash, if the zone still has the same parameters.
    fn position(&self, hash: &Sha1Hash) -> Option<Position> {
        let is_same = |zone: &Zone| matches!(zone.chain(), Chain::Nsec3(chain) if *chain == self.chain);
        let find = |zone: &Zone| zone.find(hash, self.now).filter(|_| is_same(zone));
        self.store.with(self.id, self.apex, find).flatten()
    }

    /// Returns the hash of a name in lower case, or `None` if the limit does not suffice.
    fn hash(&self, name: NameRef<'_>, limit: &mut HashLimit) -> Option<Sha1Hash> {
        let Nsec3Chain { salt, iterations, .. } = &*self.chain;
        let spent = limit.spent.saturating_add(hash_block_count(name.len(), salt.len(), *iterations));
        if spent > limit.max {
            return None;
        }
        limit.spent = spent;
        Some(nonesuch_crypto::nsec3_hash(name.wire(), salt, *iterations))
    }
}

fn piece(record: Arc<Entry>, name: NameRef<'_>, hash: Sha1Hash) -> Piece {
    Piece { record, hash: PieceHash::Sha1(name.to_name(), hash) }
}
