//! Lookups.

use super::DenialCache;
use super::entry::{Entry, StoredRrset};
use super::options::Counters;
use super::search::{
    self, Candidates, Covering, HashLimit, Nsec3Search, Piece, PieceHash, Pieces, find_nsec, find_nsec5,
};
use super::store::ZoneId;
use super::zone::{Chain, Nsec3Chain, Zone};
use crate::cache::NegativeKind;
use crate::record::Rrset;
use nonesuch_dnssec::validate::aggressive::{DenialRecord, KnownHashes, Sha1Hash, VrfHash, find_denial};
use nonesuch_dnssec::validate::{Claim, DenialKind};
use nonesuch_net::machine::Now;
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype};
use std::sync::Arc;

/// The result of a lookup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// What the cached records prove.
    pub found: Option<Found>,
    /// SHA-1 blocks computed for NSEC3 hashes, for the budget of the client query.
    pub hash_blocks: u32,
}

/// What cached records prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The name or the type does not exist.
    Denied(Denied),
    /// No closer match than a wildcard exists.
    Wildcard(Wildcard),
}

/// A proved denial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// What does not exist. The type is the query type.
    pub kind: NegativeKind,
    /// The RRsets that an authoritative server would send: the SOA RRset first, then the RRsets that prove
    /// the denial. Their TTLs are what remains.
    pub authority: Vec<Rrset>,
}

/// The proof that the query name does not exist, and that no name closer to it than the parent of
/// `source` does. It is unknown whether `source` exists, and whether it has the query type or a CNAME
/// RRset.
///
/// If the caller has a Secure RRset of `source` with the query type, or its CNAME RRset, it answers
/// with this RRset and `authority` (RFC 8198 §5.3). The signer of the RRset must be `zone`: the apex
/// of a child zone may have the name of a wildcard, and then it matches no names (RFC 4592 §4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard {
    /// The wildcard `*.encloser`.
    pub source: Name,
    /// The zone.
    pub zone: Name,
    /// The RRsets that prove that no closer match exists. Their TTLs are what remains.
    pub authority: Vec<Rrset>,
}

/// The result of the first step of a lookup, under the lock of the zone.
enum Step {
    /// The zone has no records for the name.
    Nothing,
    /// NSEC or NSEC5.
    Candidates(Box<Candidates>),
    /// NSEC3: hashes come next.
    Nsec3 { chain: Arc<Nsec3Chain>, can_cover: bool, soa: Arc<StoredRrset>, zone: Name },
}

impl DenialCache {
    /// Finds out what the cached records prove about a name and type of class IN: as an answer for
    /// clients that set the DO bit, and the CD bit or not.
    ///
    /// `hash_limit`: the maximum number of SHA-1 blocks for NSEC3 hashes in this lookup. A name that
    /// does not exist, directly below an existing one, needs two hashes, and 1 + iterations blocks for
    /// each. The caller deducts [`Search::hash_blocks`] from the budget of the client query.
    #[must_use]
    pub fn prove(&self, name: NameRef<'_>, rtype: Rtype, hash_limit: u32, now: Now) -> Search {
        if rtype.is_meta() && rtype != Rtype::ANY {
            return Search::default();
        }
        let mut buffer = [0; MAX_NAME];
        let Some(lower) = buffer.get_mut(..name.len()) else { return Search::default() };
        lower.copy_from_slice(name.wire());
        lower.make_ascii_lowercase();
        let name = NameRef::from_wire_unchecked(lower);
        // RFC 4035 §3.1.4.1: the zone above a zone cut has its DS RRset.
        let below = if rtype == Rtype::DS { name.parent().unwrap_or(name) } else { name };
        let now = self.second(now);
        let first = self.store.with_closest(below, |zone| first_step(zone, name, now));
        let Some((id, step)) = first else { return Search::default() };
        let mut limit = HashLimit { spent: 0, max: hash_limit };
        let candidates = self.candidates(id, step, name, &mut limit, now);
        let found = candidates.and_then(|candidates| conclude(&candidates, name, rtype, now));
        let counter = if found.is_some() { &self.counters.hits } else { &self.counters.misses };
        Counters::add(counter, 1);
        Counters::add(&self.counters.hash_blocks, limit.spent.into());
        Search { found, hash_blocks: limit.spent }
    }

    /// Completes the search.
    fn candidates(
        &self,
        id: ZoneId,
        step: Step,
        name: NameRef<'_>,
        limit: &mut HashLimit,
        now: u32,
    ) -> Option<Candidates> {
        match step {
            Step::Nothing => None,
            Step::Candidates(candidates) => Some(*candidates),
            Step::Nsec3 { chain, can_cover, soa, zone } => {
                let search = Nsec3Search { store: &self.store, id, apex: zone.view(), chain, can_cover, now };
                let pieces = search.find(name, limit)?;
                Some(Candidates { zone, soa, pieces })
            }
        }
    }
}

/// Searches in a zone, under its lock.
fn first_step(zone: &Zone, name: NameRef<'_>, now: u32) -> Step {
    let soa = &zone.soa().rrset;
    if soa.expires <= now {
        return Step::Nothing;
    }
    let pieces = match zone.chain() {
        Chain::Nsec => find_nsec(zone, name, now),
        Chain::Nsec5 => find_nsec5(zone, name, now),
        Chain::Nsec3(chain) => {
            let (chain, soa, can_cover) = (Arc::clone(chain), Arc::clone(soa), zone.can_cover());
            return Step::Nsec3 { chain, can_cover, soa, zone: zone.apex().clone() };
        }
    };
    pieces.map_or(Step::Nothing, |pieces| {
        let (zone, soa) = (zone.apex().clone(), Arc::clone(soa));
        Step::Candidates(Box::new(Candidates { zone, soa, pieces }))
    })
}

/// Decides what the records prove.
fn conclude(candidates: &Candidates, name: NameRef<'_>, rtype: Rtype, now: u32) -> Option<Found> {
    let covering = match &candidates.pieces {
        Pieces::Matching(piece) => {
            let pieces = [piece];
            let kind = denial(candidates, &pieces, Claim::NoData(name, rtype))?;
            // RFC 9824: a record with NXNAME would deny the name.
            return (kind == DenialKind::NoData)
                .then(|| denied(candidates, &pieces, NegativeKind::NoData(rtype), now));
        }
        Pieces::Covering(covering) => covering,
    };
    conclude_covering(candidates, covering, rtype, now)
}

fn conclude_covering(candidates: &Candidates, found: &Covering, rtype: Rtype, now: u32) -> Option<Found> {
    let wildcard = found.wildcard.as_ref();
    if let Some(search::Wildcard::Matched(piece)) = wildcard
        && !piece.record.can_be_encloser
    {
        // A wildcard at a zone cut matches no name (RFC 4592 §4.2), and a DNAME RRset at a wildcard
        // is not defined (RFC 4592 §4.4).
        return None;
    }
    let name = found.name.view();
    let wildcard_piece = wildcard.map(search::Wildcard::piece);
    let mut pieces: Vec<&Piece> = found.matching_encloser.iter().chain([&found.covering]).collect();
    pieces.extend(wildcard_piece.filter(|piece| !matches!(piece.hash, PieceHash::Proof(_))));
    if denial(candidates, &pieces, Claim::NxDomain(name)) == Some(DenialKind::NxDomain) {
        return Some(denied(candidates, &pieces, NegativeKind::NxDomain, now));
    }
    // With NSEC5, a denial of a type at a wildcard has no record for the closest encloser.
    pieces.retain(|piece| !matches!(piece.hash, PieceHash::Proof(_)));
    if pieces.is_empty() {
        pieces.extend([&found.covering].into_iter().chain(wildcard_piece));
    }
    if let Some(DenialKind::NoData | DenialKind::WildcardNoData) =
        denial(candidates, &pieces, Claim::NoData(name, rtype))
    {
        return Some(denied(candidates, &pieces, NegativeKind::NoData(rtype), now));
    }
    let pieces = [&found.covering];
    let claim = Claim::WildcardExpansion(name, found.encloser.view().label_count());
    let kind = denial(candidates, &pieces, claim)?;
    let source = Name::wildcard_below(found.encloser.view()).ok()?;
    (kind == DenialKind::WildcardExpansion).then(|| {
        let authority = authority(&pieces, now);
        Found::Wildcard(Wildcard { source, zone: candidates.zone.clone(), authority })
    })
}

/// Returns what the records prove of a claim.
fn denial(candidates: &Candidates, pieces: &[&Piece], claim: Claim<'_>) -> Option<DenialKind> {
    let apex = candidates.zone.view();
    let records = distinct_records(pieces);
    let records: Vec<DenialRecord<'_>> =
        records.into_iter().map(|entry| read_record(entry, apex)).collect::<Option<_>>()?;
    let sha1: Vec<(NameRef<'_>, Sha1Hash)> = pieces
        .iter()
        .filter_map(|piece| match &piece.hash {
            PieceHash::Sha1(name, hash) => Some((name.view(), *hash)),
            PieceHash::None | PieceHash::Proof(_) => None,
        })
        .collect();
    let vrf: Vec<(NameRef<'_>, u16, VrfHash)> = pieces.iter().filter_map(|piece| piece.hash.vrf()).collect();
    let hashes = match (sha1.is_empty(), vrf.is_empty()) {
        (false, _) => KnownHashes::Sha1(&sha1),
        (true, false) => KnownHashes::Vrf(&vrf),
        (true, true) => KnownHashes::None,
    };
    find_denial(apex, &records, hashes, claim)
}

fn read_record<'e>(entry: &'e Entry, apex: NameRef<'e>) -> Option<DenialRecord<'e>> {
    let rrset = &entry.rrset;
    DenialRecord::read(rrset.rtype(), rrset.owner().view(), rrset.first()?, apex).ok()
}

/// Returns each record once.
fn distinct_records<'p>(pieces: &[&'p Piece]) -> Vec<&'p Arc<Entry>> {
    let mut records: Vec<&Arc<Entry>> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if !records.iter().any(|record| Arc::ptr_eq(record, &piece.record)) {
            records.push(&piece.record);
        }
    }
    records
}

fn denied(candidates: &Candidates, pieces: &[&Piece], kind: NegativeKind, now: u32) -> Found {
    let mut authority = authority(pieces, now);
    authority.insert(0, candidates.soa.to_rrset(now));
    Found::Denied(Denied { kind, authority })
}

/// Returns the RRsets of a proof: the records, then the NSEC5 proofs.
fn authority(pieces: &[&Piece], now: u32) -> Vec<Rrset> {
    let proofs = pieces.iter().filter_map(|piece| match &piece.hash {
        PieceHash::Proof(proof) => Some(proof),
        PieceHash::None | PieceHash::Sha1(..) => None,
    });
    distinct_records(pieces).into_iter().chain(proofs).map(|entry| entry.rrset.to_rrset(now)).collect()
}
