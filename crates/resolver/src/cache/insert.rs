//! Insertions.

use super::codec::{self, FailureValue};
use super::label::LowerName;
use super::options::FAILURE_TTL_RANGE;
use super::ring::{Editor, Entry, Label, Stored};
use super::{Cache, FailureCause, NegativeKind, Question, Rank};
use crate::record::{RecordData, Rrset, Security};
use nonesuch_net::machine::Now;
use nonesuch_proto::{Class, NameRef, Rtype};
use std::time::Instant;

/// Maximum number of records, and of signatures, of an RRset that is cached.
pub const RECORDS_MAX: usize = 100;
/// Maximum number of entries of a name: RRsets, negative answers and failures, of all types.
pub const ENTRIES_AT_NAME_MAX: usize = 100;

/// Where data come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The part of the response.
    pub rank: Rank,
    /// The data expire at this time at the latest. For each NS RRset, the expiry of the delegation
    /// that led to the server ([`Cached::expires`](super::Cached::expires)); `None` if root hints or
    /// a configured address led to it.
    pub within: Option<Instant>,
}

/// The result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// The data are cached.
    Stored,
    /// Unexpired data of a higher rank, or data that were validated, stay in the cache.
    Outranked,
    /// The TTL is 0, or the data expire before they are cached.
    Expired,
    /// The data are too large.
    TooLarge,
    /// The RRset has more than [`RECORDS_MAX`] records or signatures.
    TooManyRecords,
    /// The name has [`ENTRIES_AT_NAME_MAX`] entries.
    TooManyTypes,
    /// The data must not be cached: an RRset without records or of a meta type, or a negative answer
    /// without an SOA record of a zone that contains the name (RFC 2308 §5).
    NotCacheable,
}

impl From<Stored> for Insertion {
    fn from(stored: Stored) -> Self {
        match stored {
            Stored::Yes => Self::Stored,
            Stored::TooLarge => Self::TooLarge,
            Stored::TooMany => Self::TooManyTypes,
        }
    }
}

impl Cache {
    /// Inserts an RRset, for its TTL within the bounds of the options, and not beyond
    /// [`Source::within`]. An NS RRset does not outlive the unexpired one that it replaces.
    ///
    /// If the data may answer clients, negative answers and failures of the name and type are
    /// removed. Data neither replace nor remove unexpired data of a better [`Security`]; in a cache for a
    /// validating resolver, data that were not validated remove nothing.
    pub fn insert_rrset(&self, rrset: &Rrset, source: Source, now: Now) -> Insertion {
        self.insert_proved_rrset(rrset, &[], source, now)
    }

    /// As [`insert_rrset`](Self::insert_rrset), for an RRset that was expanded from a wildcard, with
    /// the RRsets that prove that no closer match exists.
    pub fn insert_proved_rrset(
        &self,
        rrset: &Rrset,
        proofs: &[Rrset],
        source: Source,
        now: Now,
    ) -> Insertion {
        let ttl = proofs.iter().map(|proof| proof.ttl).fold(rrset.ttl, u32::min);
        let is_secure = rrset.security == Security::Secure;
        let ttl = if is_secure { ttl.min(self.options.ttl_max) } else { self.options.bound_ttl(ttl) };
        let (value, lower) = match prepare(rrset, proofs, source.rank, ttl) {
            Ok(prepared) => prepared,
            Err(reason) => return reason,
        };
        let now = self.second(now.instant);
        let latest = source.within.map_or(u32::MAX, |within| self.second(within));
        let expiry = now.saturating_add(ttl).min(latest);
        if expiry <= now {
            return Insertion::Expired;
        }
        let label = Label::rrset(rrset.rtype, rrset.class);
        self.ring.edit(&self.ring.key(lower.octets()), now, |entries| {
            let expiry = match entries.entry(label).filter(|old| old.expiry > now) {
                Some(old) if standing_of(&old) > Some(standing(source.rank, rrset.security)) => {
                    return Insertion::Outranked;
                }
                Some(old) if rrset.rtype == Rtype::NS => expiry.min(old.expiry),
                _ => expiry,
            };
            let is_new_name = !entries.may_have_entries();
            if source.rank.may_answer_clients() && !is_new_name {
                let denials = [Label::nx_domain(rrset.class), Label::no_data(rrset.rtype, rrset.class)];
                if denials.into_iter().any(|label| is_safer(entries, label, now, rrset.security)) {
                    return Insertion::Outranked;
                }
            }
            let stored = entries.insert(rrset.owner.wire(), label, expiry, &value, ENTRIES_AT_NAME_MAX);
            let is_trusted = !self.options.validates || rrset.security > Security::Unchecked;
            if stored == Stored::Yes && source.rank.may_answer_clients() && is_trusted && !is_new_name {
                entries.remove(Label::nx_domain(rrset.class));
                entries.remove(Label::no_data(rrset.rtype, rrset.class));
                remove_failures(entries, rrset.rtype, rrset.class);
            }
            stored.into()
        })
    }

    /// Inserts the answer that `name` does not exist or has no RRset of a type. `authority`: the
    /// RRsets of the authority section that answer and prove it, the SOA RRset among them. The TTL is
    /// the lowest of their TTLs and of the last field of the SOA record (RFC 2308 §5), within the
    /// bounds of the options.
    ///
    /// It removes data that it contradicts and that may answer clients, except NS RRsets: some
    /// servers deny names of zones that they serve. In a cache for a validating resolver, an answer
    /// that was not validated removes nothing.
    pub fn insert_negative(
        &self,
        name: NameRef<'_>,
        class: Class,
        kind: NegativeKind,
        authority: &[Rrset],
        now: Now,
    ) -> Insertion {
        self.insert_denial(name, class, (kind, false), authority, now)
    }

    /// As [`insert_negative`](Self::insert_negative), for the answer that a zone cut has no DS RRset.
    /// It proves that the name is an unsigned delegation.
    pub fn insert_unsigned_delegation(
        &self,
        name: NameRef<'_>,
        class: Class,
        authority: &[Rrset],
        now: Now,
    ) -> Insertion {
        self.insert_denial(name, class, (NegativeKind::NoData(Rtype::DS), true), authority, now)
    }

    fn insert_denial(
        &self,
        name: NameRef<'_>,
        class: Class,
        (kind, is_unsigned_delegation): (NegativeKind, bool),
        authority: &[Rrset],
        now: Now,
    ) -> Insertion {
        if authority.iter().any(has_too_many_records) {
            return Insertion::TooManyRecords;
        }
        let denial = negative_ttl(name, class, kind, authority).zip(LowerName::of(name));
        let Some((ttl, lower)) = denial else { return Insertion::NotCacheable };
        let Some(value) = codec::encode_negative(authority, is_unsigned_delegation) else {
            return Insertion::TooLarge;
        };
        let now = self.second(now.instant);
        // RFC 4035 §5.3.3: no bound keeps a secure denial longer than its signatures permit.
        let is_secure = codec::decode_security(&value) == Some(Security::Secure);
        let options = &self.options;
        let ttl = if is_secure { ttl.min(options.negative_ttl_max) } else { options.bound_negative_ttl(ttl) };
        let expiry = now.saturating_add(ttl);
        if expiry <= now {
            return Insertion::Expired;
        }
        self.ring.edit(&self.ring.key(lower.octets()), now, |entries| {
            let label = match kind {
                NegativeKind::NxDomain => Label::nx_domain(class),
                NegativeKind::NoData(rtype) => Label::no_data(rtype, class),
            };
            let is_new_name = !entries.may_have_entries();
            let is_trusted =
                !self.options.validates || codec::decode_security(&value) > Some(Security::Unchecked);
            let security = codec::decode_security(&value).unwrap_or_default();
            let denied = match kind {
                NegativeKind::NxDomain => label,
                NegativeKind::NoData(rtype) => Label::rrset(rtype, class),
            };
            if [label, denied].into_iter().any(|label| is_safer(entries, label, now, security)) {
                return Insertion::Outranked;
            }
            let stored = entries.insert(name.wire(), label, expiry, &value, ENTRIES_AT_NAME_MAX);
            if stored == Stored::Yes && is_trusted && !is_new_name {
                remove_denied(entries, class, kind, (now, security));
            }
            stored.into()
        })
    }

    /// Inserts a failure to answer a question, with code and text of its extended error (RFC 8914).
    /// Returns the seconds for which it is cached, at most 300; 0 if it is not.
    ///
    /// A failure within 300 seconds after the end of the last one is cached for twice the time (RFC
    /// 9520 §3.2). The failure of another worker at the same time has no effect.
    pub fn insert_failure(
        &self,
        question: &Question,
        cause: FailureCause,
        (code, text): (u16, &str),
        now: Now,
    ) -> u32 {
        let label = Label::failure(cause, question.rtype, question.class);
        self.insert_failure_at(question.name.view(), label, (code, text), None, now)
    }

    /// Inserts a failure of validation that follows from that of a zone: it ends with this in `ttl` seconds, and is no
    /// further failure, because no server was asked.
    pub(crate) fn insert_implied_failure(&self, question: &Question, error: (u16, &str), ttl: u32, now: Now) {
        let label = Label::failure(FailureCause::Validation, question.rtype, question.class);
        self.insert_failure_at(question.name.view(), label, error, Some(ttl), now);
    }

    /// Remembers that a response with records of a zone had many signatures that do not verify. This lasts
    /// as long as a failure.
    pub(crate) fn mark_costly_zone(&self, apex: NameRef<'_>, now: Now) {
        self.insert_failure_at(apex, Label::costly_zone(Class::IN), (0, ""), None, now);
    }

    /// `implied_ttl`: the seconds for which a failure is cached that follows from another one.
    fn insert_failure_at(
        &self,
        name: NameRef<'_>,
        label: Label,
        (code, text): (u16, &str),
        implied_ttl: Option<u32>,
        now: Now,
    ) -> u32 {
        let Some(lower) = LowerName::of(name) else { return 0 };
        let now = self.second(now.instant);
        self.ring.edit(&self.ring.key(lower.octets()), now, |entries| {
            let old = entries.entry(label);
            if let Some(old) = old.filter(|old| old.expiry > now) {
                return old.expiry - now;
            }
            let earlier = old.and_then(|old| recent_failures(&old, now)).unwrap_or(0);
            let failures = earlier.saturating_add(u8::from(implied_ttl.is_none()));
            let ttl = implied_ttl.unwrap_or_else(|| self.options.failure_ttl(failures));
            let (owner, expiry) = (name.wire(), now.saturating_add(ttl));
            let value = codec::encode_failure(&FailureValue { code, failures, text: text.to_owned() });
            match entries.insert(owner, label, expiry, &value, ENTRIES_AT_NAME_MAX) {
                Stored::Yes => ttl,
                _ => 0,
            }
        })
    }
}

/// Encodes an RRset and its owner, or returns the reason why it is not cached.
fn prepare(rrset: &Rrset, proofs: &[Rrset], rank: Rank, ttl: u32) -> Result<(Vec<u8>, LowerName), Insertion> {
    if rrset.rtype.is_meta() || rrset.records.is_empty() {
        return Err(Insertion::NotCacheable);
    }
    if has_too_many_records(rrset) || proofs.iter().any(has_too_many_records) {
        return Err(Insertion::TooManyRecords);
    }
    let value = codec::encode_rrset(rrset, proofs, rank, ttl).ok_or(Insertion::TooLarge)?;
    let lower = LowerName::of(rrset.owner.view()).ok_or(Insertion::NotCacheable)?;
    Ok((value, lower))
}

/// Returns the order in which RRsets replace each other: by security, then by rank.
fn standing(rank: Rank, security: Security) -> (Security, Rank) {
    (if rank.may_answer_clients() { security } else { Security::Unchecked }, rank)
}

fn standing_of(entry: &Entry<'_>) -> Option<(Security, Rank)> {
    Some(standing(codec::decode_rank(entry.value)?, codec::decode_security(entry.value)?))
}

fn has_too_many_records(rrset: &Rrset) -> bool {
    let exceeds = |records: &RecordData| records.iter().nth(RECORDS_MAX).is_some();
    exceeds(&rrset.records) || exceeds(&rrset.signatures)
}

/// Returns the TTL of a negative answer; `None` if the answer is not cacheable.
fn negative_ttl(name: NameRef<'_>, class: Class, kind: NegativeKind, authority: &[Rrset]) -> Option<u32> {
    // The root exists.
    if kind == NegativeKind::NxDomain && name.is_root() || authority.iter().any(|rrset| rrset.class != class)
    {
        return None;
    }
    // RFC 2308 §5: a negative answer without an SOA record is not cached.
    let soa = authority.iter().find(|rrset| rrset.rtype == Rtype::SOA)?;
    if !name.is_at_or_below(soa.owner.view()) {
        return None;
    }
    let minimum = codec::soa_minimum(soa.records.iter().next()?)?;
    authority.iter().map(|rrset| rrset.ttl).chain([minimum]).min()
}

/// Removes the data that a negative answer contradicts.
fn remove_denied(
    entries: &mut Editor<'_>,
    class: Class,
    kind: NegativeKind,
    (now, security): (u32, Security),
) {
    match kind {
        NegativeKind::NoData(rtype) => {
            let label = Label::rrset(rtype, class);
            if rtype != Rtype::NS && entries.entry(label).is_some_and(|entry| may_answer_clients(&entry)) {
                entries.remove(label);
            }
            entries.remove(Label::nx_domain(class));
            remove_failures(entries, rtype, class);
        }
        NegativeKind::NxDomain => {
            entries.retain(|entry| {
                entry.label.class() != class
                    || entry.label == Label::nx_domain(class)
                    || entry.label == Label::rrset(Rtype::NS, class)
                    || entry.label.is_rrset() && !may_answer_clients(entry)
                    || entry.expiry > now && codec::decode_security(entry.value) > Some(security)
            });
        }
    }
}

/// Whether an unexpired entry has a better security: it is not replaced by data without it. An attacker
/// cannot remove secure data with an answer that looks insecure.
fn is_safer(entries: &Editor<'_>, label: Label, now: u32, security: Security) -> bool {
    let entry = entries.entry(label).filter(|entry| entry.expiry > now);
    entry.is_some_and(|entry| {
        !entry.label.is_failure() && codec::decode_security(entry.value) > Some(security)
    })
}

fn may_answer_clients(entry: &Entry<'_>) -> bool {
    codec::decode_rank(entry.value).is_some_and(Rank::may_answer_clients)
}

fn remove_failures(entries: &mut Editor<'_>, rtype: Rtype, class: Class) {
    for cause in [FailureCause::Resolution, FailureCause::Validation] {
        entries.remove(Label::failure(cause, rtype, class));
    }
}

/// Returns the number of consecutive failures in an expired entry; `None` if the last one was too
/// long ago to be consecutive.
fn recent_failures(old: &Entry<'_>, now: u32) -> Option<u8> {
    let is_recent = now.saturating_sub(old.expiry) <= *FAILURE_TTL_RANGE.end();
    codec::decode_failure(old.value).filter(|_| is_recent).map(|failure| failure.failures)
}
