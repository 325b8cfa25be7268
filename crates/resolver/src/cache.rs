//! The cache: RRsets, negative answers and failures in memory of a fixed size, and the claims of
//! workers on questions. All workers share one [`Cache`].
//!
//! - RRsets have a [`Rank`] (RFC 2181 §5.4.1). Data of a lower rank do not replace unexpired data,
//!   and glue does not answer clients.
//! - Negative answers (RFC 2308) have the records of the authority section: SOA, signatures, proof.
//!   The answer that a name does not exist also answers queries for the names below it (RFC 8020).
//! - Failures (RFC 9520) are cached for a time that doubles with each consecutive failure.
//!
//! # Times
//! Expiry is in whole seconds of monotonic time since the creation of the cache. Data expire up to a
//! second early, and never late. A set clock has no effect.
//!
//! # Ghost domains
//! The owner of a zone whose delegation was removed from the parent can try to keep the zone
//! resolvable. Its servers send NS RRsets with new TTLs before the old ones expire (Jiang et al.,
//! "Ghost Domain Names", NDSS 2012), or while they expire, or for names below the zone (Li et al.,
//! "Ghost Domain Reloaded", NDSS 2023). Two rules prevent it:
//!
//! - An NS RRset that replaces an unexpired one expires with it at the latest, whatever its rank and
//!   TTL. Unbound has this rule for data of equal rank. Here it also holds for data of a higher rank,
//!   so the servers of a zone cannot extend the TTL of the delegation even once. A consequence: the
//!   parent is asked again each time the TTL of its NS RRset ends, also if the TTL of the zone's own
//!   NS RRset is longer.
//! - The caller passes the expiry of the delegation that led to the server, as [`Source::within`],
//!   with each NS RRset. So an NS RRset never expires after those of the zones above it. This holds
//!   if an entry was evicted, and if it expired while the query was under way.
//!
//! # Untrusted input
//! The caller passes only data of the zones that the queried server is authoritative for. The cache
//! bounds the records of an RRset, the entries of a name and the size of an entry. The hash of names
//! has a secret key.

mod claims;
mod codec;
mod insert;
mod label;
mod lookup;
mod options;
mod rank;
mod ring;
#[cfg(test)]
mod tests;

pub use claims::Claim;
pub(crate) use codec::EncodedRrset;
pub use insert::{ENTRIES_AT_NAME_MAX, Insertion, RECORDS_MAX, Source};
pub use lookup::{Cached, CachedAnswer, Failure, Negative};
pub use options::{CacheOptions, FAILURE_TTL_RANGE};
pub use rank::Rank;
pub use ring::Statistics as CacheStatistics;

use claims::Claims;
use label::LowerName;
use nonesuch_net::machine::Now;
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use ring::Ring;
use std::time::{Duration, Instant};

/// What a query asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// Query name.
    pub name: Name,
    /// Query type.
    pub rtype: Rtype,
    /// Query class.
    pub class: Class,
    /// Whether the client validates by itself (the CD bit, RFC 4035 §3.2.2).
    pub checking_disabled: bool,
}

/// What a negative answer denies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NegativeKind {
    /// The name does not exist (NXDOMAIN).
    NxDomain,
    /// The name has no RRset of this type (NODATA, RFC 2308 §2.2).
    NoData(Rtype),
}

/// Why a question was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureCause {
    /// No server gave a usable response. The failure also holds for queries with the CD bit.
    Resolution,
    /// The data are bogus. The failure does not hold for queries with the CD bit.
    Validation,
}

/// The cache. All workers share it.
#[derive(Debug)]
pub struct Cache {
    options: CacheOptions,
    created: Instant,
    ring: Ring,
    claims: Claims,
}

impl Cache {
    /// Returns an empty cache. No later time may be before `now`.
    #[must_use]
    pub fn new(options: CacheOptions, now: Now) -> Self {
        Self {
            created: now.instant,
            ring: Ring::new(options.octets, options.shards, &options.seed),
            claims: Claims::new(options.claims_max, &options.seed),
            options,
        }
    }

    /// Returns the options.
    #[must_use]
    pub const fn options(&self) -> &CacheOptions {
        &self.options
    }

    /// Claims a question for a worker, given by its number. If it returns [`Claim::Owner`], the
    /// worker resolves the question and then calls [`Cache::release`]. If it returns
    /// [`Claim::Waiting`], [`Cache::release`] will return this worker to the owner.
    ///
    /// If there are too many claims, the claim is not registered, and the worker is its owner: then
    /// several workers may resolve the same question.
    #[must_use]
    pub fn claim(&self, question: &Question, worker: usize) -> Claim {
        self.claims.claim(question, worker)
    }

    /// Ends the claim of a worker. Returns the workers to wake. Without effect if the worker does not
    /// own the claim.
    #[must_use]
    pub fn release(&self, question: &Question, worker: usize) -> Vec<usize> {
        self.claims.release(question, worker)
    }

    /// Removes all entries of a name. Returns their number.
    pub fn flush(&self, name: NameRef<'_>, now: Now) -> usize {
        let Some(lower) = LowerName::of(name) else { return 0 };
        let key = self.ring.key(lower.octets());
        self.ring.edit(&key, self.second(now.instant), |entries| entries.retain(|_| false))
    }

    /// Removes all entries of a name and of the names below it. Returns their number. It visits the
    /// whole index, a part at a time. Data that are inserted meanwhile may stay.
    pub fn flush_below(&self, name: NameRef<'_>) -> usize {
        self.ring.remove_if(|owner| NameRef::from_wire_unchecked(owner).is_at_or_below(name))
    }

    /// Returns the statistics. It takes no lock.
    #[must_use]
    pub fn statistics(&self) -> CacheStatistics {
        self.ring.statistics()
    }

    /// Returns the second of a time since the creation of the cache, rounded down.
    fn second(&self, at: Instant) -> u32 {
        let second = at.saturating_duration_since(self.created).as_secs();
        u32::try_from(second).unwrap_or(u32::MAX)
    }

    /// Returns the start of a second since the creation of the cache.
    fn instant(&self, second: u32) -> Instant {
        self.created + Duration::from_secs(second.into())
    }
}
