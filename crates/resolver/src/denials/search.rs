//! Searches for the records that may deny a name. What they prove is decided later.

mod nsec;
mod nsec3;
mod nsec5;

pub(super) use nsec::find as find_nsec;
pub(super) use nsec3::{HashLimit, Nsec3Search};
pub(super) use nsec5::find as find_nsec5;

use super::entry::{Entry, StoredRrset};
use super::keys;
use nonesuch_dnssec::validate::aggressive::{Sha1Hash, VrfHash};
use nonesuch_proto::{Name, NameRef};
use std::sync::Arc;

/// A record at its place in a proof.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) record: Arc<Entry>,
    /// The name for which the record is, and its hash.
    pub(super) hash: PieceHash,
}

/// The hash of the name for which a record is.
#[derive(Clone, Debug)]
pub(super) enum PieceHash {
    /// NSEC.
    None,
    /// NSEC3.
    Sha1(Name, Sha1Hash),
    /// NSEC5: the proof of the name.
    Proof(Arc<Entry>),
}

impl PieceHash {
    /// Returns the name, the key tag and the hash of a proof.
    pub(super) fn vrf(&self) -> Option<(NameRef<'_>, u16, VrfHash)> {
        let Self::Proof(proof) = self else { return None };
        let (tag, hash) = keys::split_nsec5_record_key(&proof.next)?;
        Some((proof.rrset.owner().view(), tag, hash))
    }
}

/// Records that may deny a name.
#[derive(Clone, Debug)]
pub(super) struct Candidates {
    pub(super) zone: Name,
    pub(super) soa: Arc<StoredRrset>,
    pub(super) pieces: Pieces,
}

#[derive(Clone, Debug)]
pub(super) enum Pieces {
    /// A record matches the query name or, with NSEC, shows that it is an empty non-terminal.
    Matching(Piece),
    /// A record covers a name: the query name, or a name above it, which then does not exist either.
    Covering(Covering),
}

/// Records that may deny a name that does not exist.
#[derive(Clone, Debug)]
pub(super) struct Covering {
    /// The covered name: with NSEC the query name, otherwise the next closer name.
    pub(super) name: Name,
    /// The closest encloser of the covered name.
    pub(super) encloser: Name,
    pub(super) covering: Piece,
    /// The record that matches the closest encloser. NSEC needs none.
    pub(super) matching_encloser: Option<Piece>,
    /// The record that matches or covers the wildcard below the closest encloser.
    pub(super) wildcard: Option<Wildcard>,
}

/// The record for a wildcard.
#[derive(Clone, Debug)]
pub(super) enum Wildcard {
    Matched(Piece),
    Covered(Piece),
}

impl Wildcard {
    pub(super) const fn piece(&self) -> &Piece {
        match self {
            Self::Matched(piece) | Self::Covered(piece) => piece,
        }
    }
}
