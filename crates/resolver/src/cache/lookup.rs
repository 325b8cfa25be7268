//! Lookups.

use super::codec::{self, EncodedRrset, RrsetValue};
use super::label::LowerName;
use super::ring::{Entry, Label, NameKey};
use super::{Cache, FailureCause, NegativeKind, Question, Rank};
use crate::record::{Rrset, Security};
use nonesuch_net::machine::Now;
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use std::time::Instant;

/// An RRset of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The RRset. Its TTL is the number of seconds that remain, at least one.
    pub rrset: Rrset,
    /// The rank of the data.
    pub rank: Rank,
    /// The TTL in seconds with which the RRset was inserted.
    pub ttl_inserted: u32,
    /// The time of expiry.
    pub expires: Instant,
    /// For an RRset that was expanded from a wildcard: the RRsets that prove that no closer match
    /// exists. Their maximum TTL is that of the RRset.
    pub proofs: Vec<Rrset>,
}

/// A negative answer of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Negative {
    /// The name that does not exist, or has no RRset of the type. With [`NegativeKind::NxDomain`],
    /// it may be above the query name (RFC 8020).
    pub name: Name,
    /// What the answer denies.
    pub kind: NegativeKind,
    /// Whether the answer proves that the name is an unsigned delegation.
    pub is_unsigned_delegation: bool,
    /// The RRsets of the authority section. Their TTLs are at most `ttl`.
    pub authority: Vec<Rrset>,
    /// Seconds that remain, at least one.
    pub ttl: u32,
}

/// A failure of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Why the question was not answered.
    pub cause: FailureCause,
    /// The code of the extended error (RFC 8914).
    pub code: u16,
    /// The text of the extended error.
    pub text: String,
    /// Number of consecutive failures.
    pub failures: u8,
    /// Seconds that remain, at least one.
    pub ttl: u32,
}

/// What the cache has for a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CachedAnswer {
    /// The RRset of the query type.
    Rrset(Cached),
    /// The CNAME RRset of the query name; the query type is another one.
    Alias(Cached),
    /// A DNAME RRset above the query name (RFC 6672 §3.4).
    Dname(Cached),
    /// A negative answer.
    Negative(Negative),
    /// The last attempts failed.
    Failure(Failure),
}

impl Cache {
    /// Returns an RRset whose rank is at least `rank_min`. [`Rank::CLIENT_MIN`] for the answer to a
    /// client, [`Rank::Additional`] to reach servers.
    #[must_use]
    pub fn rrset(
        &self,
        name: NameRef<'_>,
        rtype: Rtype,
        class: Class,
        rank_min: Rank,
        now: Now,
    ) -> Option<Cached> {
        let (lower, now) = (LowerName::of(name)?, self.second(now.instant));
        let key = self.ring.key(lower.octets());
        let labels = [Label::rrset(rtype, class)];
        let found = self.ring.read(&key, &labels, now, |entry| self.cached(&entry, rank_min, now));
        self.ring.count_lookup(&key, found.is_some());
        found
    }

    /// Returns the answer that denies a name, or a type of it.
    #[must_use]
    pub fn negative(&self, name: NameRef<'_>, rtype: Rtype, class: Class, now: Now) -> Option<Negative> {
        let (lower, now) = (LowerName::of(name)?, self.second(now.instant));
        let key = self.ring.key(lower.octets());
        let labels = [Label::nx_domain(class), Label::no_data(rtype, class)];
        let exact = self.ring.read(&key, &labels, now, |entry| negative(&entry, now));
        let found = exact.or_else(|| self.denied_above(&lower, class, now));
        self.ring.count_lookup(&key, found.is_some());
        found
    }

    /// Returns the failure of earlier attempts to answer a question.
    #[must_use]
    pub fn failure(&self, question: &Question, now: Now) -> Option<Failure> {
        let (lower, now) = (LowerName::of(question.name.view())?, self.second(now.instant));
        let key = self.ring.key(lower.octets());
        let found = self.ring.read(&key, &failure_labels(question), now, |entry| failure(&entry, now));
        self.ring.count_lookup(&key, found.is_some());
        found
    }

    /// Whether [`mark_costly_zone`](Self::mark_costly_zone) was called for the zone, a short time ago.
    pub(crate) fn is_costly_zone(&self, apex: NameRef<'_>, now: Now) -> bool {
        let Some(lower) = LowerName::of(apex) else { return false };
        let key = self.ring.key(lower.octets());
        let labels = [Label::costly_zone(Class::IN)];
        self.ring.read(&key, &labels, self.second(now.instant), |_| Some(())).is_some()
    }

    /// Returns what the cache has for the question of a client: the RRset or CNAME RRset, the negative
    /// answer, a DNAME RRset above the name, or the failure, in this order. It takes one lock, and one
    /// more for each ancestor of the name if there are no data for the name itself.
    #[must_use]
    pub fn answer(&self, question: &Question, now: Now) -> Option<CachedAnswer> {
        let (lower, now) = (LowerName::of(question.name.view())?, self.second(now.instant));
        let key = self.ring.key(lower.octets());
        let exact = self.answer_at(&key, question, now);
        let found = match exact {
            // Data of an ancestor are more than the failure to resolve the name.
            Some(CachedAnswer::Failure(_)) | None => self.answer_above(&lower, question, now).or(exact),
            found => found,
        };
        self.ring.count_lookup(&key, found.is_some());
        found
    }

    /// Copies the RRset of a question to `octets`, without decoding it. Returns the seconds that remain, and
    /// the RRset; `None` if the cache does not have it, or the answer needs a proof or another RRset.
    pub(crate) fn copy_rrset<'o>(
        &self,
        lower: NameRef<'_>,
        question: (Rtype, Class, bool),
        now: Now,
        octets: &'o mut Vec<u8>,
    ) -> Option<(u32, EncodedRrset<'o>)> {
        let ((rtype, class, checking_disabled), now) = (question, self.second(now.instant));
        let key = self.ring.key(lower.wire());
        let ttl = self.ring.read(&key, &[Label::rrset(rtype, class)], now, |entry| {
            let is_usable = codec::decode_rank(entry.value)?.may_answer_clients()
                && self.may_answer(&entry, checking_disabled);
            is_usable.then(|| {
                octets.clear();
                octets.extend_from_slice(entry.value);
                entry.expiry - now
            })
        })?;
        let found = codec::split_rrset(octets)?;
        self.ring.count_lookup(&key, true);
        Some((ttl, found))
    }

    /// As [`answer`](Self::answer), but only with data of the name itself.
    #[must_use]
    pub fn answer_of_name(&self, question: &Question, now: Now) -> Option<CachedAnswer> {
        let (lower, now) = (LowerName::of(question.name.view())?, self.second(now.instant));
        self.answer_at(&self.ring.key(lower.octets()), question, now)
    }

    fn answer_at(&self, key: &NameKey<'_>, question: &Question, now: u32) -> Option<CachedAnswer> {
        let copy = |entry: Entry<'_>| self.copy_answer(&entry, question, now);
        self.ring.read(key, &answer_labels(question), now, copy)
    }

    /// Returns the DNAME RRset of an ancestor, or the answer that an ancestor does not exist.
    fn answer_above(&self, lower: &LowerName, question: &Question, now: u32) -> Option<CachedAnswer> {
        let class = question.class;
        let labels = [Label::rrset(Rtype::DNAME, class), Label::nx_domain(class)];
        let count = if self.options.uses_nxdomain_cut { 2 } else { 1 };
        lower.at_and_above().skip(1).find_map(|name| {
            let key = self.ring.key(name.wire());
            self.ring.read(&key, &labels[..count], now, |entry| match entry.label.is_rrset() {
                _ if !self.may_answer(&entry, question.checking_disabled) => None,
                true => self.cached(&entry, Rank::CLIENT_MIN, now).map(CachedAnswer::Dname),
                false => negative(&entry, now).map(CachedAnswer::Negative),
            })
        })
    }

    /// Calls `found` with the A and AAAA RRsets of a nameserver, whatever their rank. Returns whether
    /// each of the two types is known: as an RRset, or as missing.
    pub fn addresses(
        &self,
        name: NameRef<'_>,
        class: Class,
        now: Now,
        mut found: impl FnMut(Rrset),
    ) -> [bool; 2] {
        let (Some(lower), now) = (LowerName::of(name), self.second(now.instant)) else { return [false; 2] };
        let labels = [
            Label::rrset(Rtype::A, class),
            Label::rrset(Rtype::AAAA, class),
            Label::nx_domain(class),
            Label::no_data(Rtype::A, class),
            Label::no_data(Rtype::AAAA, class),
        ];
        let mut known = [false; 2];
        self.ring.read(&self.ring.key(lower.octets()), &labels, now, |entry| {
            if entry.label == labels[2] {
                known = [true; 2];
            } else {
                known[usize::from(entry.label.rtype() == Rtype::AAAA)] = true;
            }
            if entry.label.is_rrset()
                && let Some(cached) = self.cached(&entry, Rank::Additional, now)
            {
                found(cached.rrset);
            }
            None::<()>
        });
        if known == [false; 2] && self.denied_above(&lower, class, now).is_some() {
            known = [true; 2];
        }
        known
    }

    /// Returns the NS RRset of the closest delegation at or above a name, or of the root, whatever
    /// its rank. It does not count as a lookup in the statistics.
    #[must_use]
    pub fn closest_delegation(&self, name: NameRef<'_>, class: Class, now: Now) -> Option<Cached> {
        let (lower, now) = (LowerName::of(name)?, self.second(now.instant));
        let labels = [Label::rrset(Rtype::NS, class)];
        lower.at_and_above().find_map(|name| {
            let key = self.ring.key(name.wire());
            self.ring.read(&key, &labels, now, |entry| self.cached(&entry, Rank::Additional, now))
        })
    }

    /// Returns the answer that an ancestor of the name does not exist. RFC 8020 §2: then no name
    /// below the ancestor exists.
    fn denied_above(&self, lower: &LowerName, class: Class, now: u32) -> Option<Negative> {
        let labels = [Label::nx_domain(class)];
        let ancestors = lower.at_and_above().skip(1).take_while(|_| self.options.uses_nxdomain_cut);
        ancestors.filter(|name| !name.is_root()).find_map(|name| {
            let key = self.ring.key(name.wire());
            self.ring.read(&key, &labels, now, |entry| negative(&entry, now))
        })
    }

    /// Whether the data of an entry answer this question: data that were not validated answer only
    /// clients that validate themselves (RFC 4035 §3.2.2).
    fn may_answer(&self, entry: &Entry<'_>, checking_disabled: bool) -> bool {
        !self.options.validates
            || checking_disabled
            || codec::decode_security(entry.value) > Some(Security::Unchecked)
    }

    fn copy_answer(&self, entry: &Entry<'_>, question: &Question, now: u32) -> Option<CachedAnswer> {
        if entry.label.is_failure() {
            return failure(entry, now).map(CachedAnswer::Failure);
        }
        if !self.may_answer(entry, question.checking_disabled) {
            return None;
        }
        if !entry.label.is_rrset() {
            return negative(entry, now).map(CachedAnswer::Negative);
        }
        let cached = self.cached(entry, Rank::CLIENT_MIN, now)?;
        let is_alias = entry.label.rtype() != question.rtype;
        Some(if is_alias { CachedAnswer::Alias(cached) } else { CachedAnswer::Rrset(cached) })
    }

    /// Returns the RRset of an entry if its rank is at least `rank_min`.
    fn cached(&self, entry: &Entry<'_>, rank_min: Rank, now: u32) -> Option<Cached> {
        if codec::decode_rank(entry.value)? < rank_min {
            return None;
        }
        let (class, ttl) = (entry.label.class(), entry.expiry - now);
        let mut value: RrsetValue = codec::decode_rrset(entry.value, class, ttl)?;
        Some(Cached {
            proofs: std::mem::take(&mut value.proofs),
            rank: value.rank,
            ttl_inserted: value.ttl,
            expires: self.instant(entry.expiry),
            rrset: codec::rrset(entry.name, entry.label.rtype(), class, ttl, value),
        })
    }
}

fn negative(entry: &Entry<'_>, now: u32) -> Option<Negative> {
    let (ttl, rtype, class) = (entry.expiry - now, entry.label.rtype(), entry.label.class());
    let is_nx_domain = entry.label == Label::nx_domain(class);
    let value = codec::decode_negative(entry.value, class, ttl)?;
    Some(Negative {
        name: NameRef::from_wire_unchecked(entry.name).to_name(),
        kind: if is_nx_domain { NegativeKind::NxDomain } else { NegativeKind::NoData(rtype) },
        is_unsigned_delegation: value.is_unsigned_delegation,
        authority: value.authority,
        ttl,
    })
}

fn failure(entry: &Entry<'_>, now: u32) -> Option<Failure> {
    let value = codec::decode_failure(entry.value)?;
    let (rtype, class) = (entry.label.rtype(), entry.label.class());
    let is_validation = entry.label == Label::failure(FailureCause::Validation, rtype, class);
    Some(Failure {
        cause: if is_validation { FailureCause::Validation } else { FailureCause::Resolution },
        code: value.code,
        text: value.text,
        failures: value.failures,
        ttl: entry.expiry - now,
    })
}

/// Returns the labels of the entries that answer a question, the best ones first.
const fn answer_labels(question: &Question) -> [Label; 6] {
    let (rtype, class) = (question.rtype, question.class);
    let alias = if has_data_beside_alias(rtype) { rtype } else { Rtype::CNAME };
    let [resolution, validation] = failure_labels(question);
    [
        Label::rrset(rtype, class),
        Label::rrset(alias, class),
        Label::nx_domain(class),
        Label::no_data(rtype, class),
        resolution,
        validation,
    ]
}

/// Returns the labels of the failures that hold for a question. With the CD bit, the failure to
/// validate does not, and the label of the other failure is repeated.
const fn failure_labels(question: &Question) -> [Label; 2] {
    let resolution = Label::failure(FailureCause::Resolution, question.rtype, question.class);
    let validation = Label::failure(FailureCause::Validation, question.rtype, question.class);
    [resolution, if question.checking_disabled { resolution } else { validation }]
}

/// Whether a name with a CNAME record can have records of this type (RFC 2181 §10.1, RFC 4034 §3 and
/// §4), or the type asks for the CNAME record itself.
const fn has_data_beside_alias(rtype: Rtype) -> bool {
    matches!(
        rtype,
        Rtype::CNAME | Rtype::SIG | Rtype::KEY | Rtype::NXT | Rtype::RRSIG | Rtype::NSEC | Rtype::ANY
    )
}
