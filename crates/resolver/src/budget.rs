//! Limits the upstream work for one client query: queries to servers, aliases, received octets,
//! address fetches, time. It protects against delegations with many nameserver names (NXNSAttack,
//! CVE-2020-8616 and others), chains of them, endless aliases, and servers that never answer.
//!
//! A client query has one [`Budget`]. A shared fetch, such as that of the address of a nameserver,
//! has its own: whoever starts the fetch pays its budget in advance ([`Budget::start_fetch`]), and
//! gets back what the fetch did not use ([`Budget::refund`]), if it still waits. So all queries
//! that one client query causes, at any depth, are at most [`UpstreamLimits::queries`], although
//! budgets know nothing of each other. Waiting for a fetch that somebody else started costs
//! nothing, and the end of the starter does not end the fetch.

use nonesuch_dnssec::validate::{self, ValidationLimits};
use nonesuch_server::extended_errors::ExtendedError;
use std::time::{Duration, Instant};

/// A fetch gets at most this part of each limit, and at most half of what its starter has left. With
/// the default limits, it gets 16 queries.
const FETCH_PART: u32 = 4;
/// Upper bound for [`UpstreamLimits::time`].
const TIME_MAX: Duration = Duration::from_secs(86_400);

/// Limits of the upstream work for one client query, with all fetches that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UpstreamLimits {
    /// Maximum number of queries to servers. Default 64.
    pub queries: u32,
    /// Maximum number of CNAME and DNAME steps. Default 16.
    pub aliases: u32,
    /// Maximum depth of fetches that wait for fetches. Default 16.
    pub depth: u32,
    /// Maximum number of octets in responses. Default 1 MiB.
    pub octets: u32,
    /// Maximum number of fetches for nameserver addresses. Default 16.
    pub address_fetches: u32,
    /// Maximum number of fetches for nameserver addresses of one delegation. Default 4.
    pub address_fetches_per_delegation: u32,
    /// Maximum time for a client query, and for a fetch; at most a day. Default 8 s.
    pub time: Duration,
    /// Limits of validation for a client query, with all fetches that it starts.
    pub validation: ValidationLimits,
}

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            queries: 64,
            aliases: 16,
            depth: 16,
            octets: 1 << 20,
            address_fetches: 16,
            address_fetches_per_delegation: 4,
            time: Duration::from_secs(8),
            validation: ValidationLimits::default(),
        }
    }
}

/// A limit that the work would exceed. The answer is then SERVFAIL, and this failure is not cached
/// for other clients: their budgets may suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LimitReached {
    /// [`UpstreamLimits::queries`].
    #[error("too many upstream queries")]
    Queries,
    /// [`UpstreamLimits::aliases`].
    #[error("too many aliases")]
    Aliases,
    /// [`UpstreamLimits::depth`].
    #[error("nameserver addresses depend on too many other zones")]
    Depth,
    /// [`UpstreamLimits::octets`].
    #[error("too many octets in responses")]
    Octets,
    /// [`UpstreamLimits::address_fetches`].
    #[error("too many nameserver addresses to resolve")]
    AddressFetches,
    /// [`UpstreamLimits::address_fetches_per_delegation`].
    #[error("too many nameserver addresses of one delegation to resolve")]
    DelegationFetches,
    /// [`UpstreamLimits::time`].
    #[error("too much time")]
    Time,
}

impl LimitReached {
    /// Returns the extended error for the client (RFC 8914 §4). The registry has no code for limits
    /// of work, so they get code 0 with a text.
    #[must_use]
    pub const fn extended_error(self) -> ExtendedError {
        let text = match self {
            // The time ends if servers do not answer, or answer late.
            Self::Time => return ExtendedError { code: 22, text: "" },
            Self::Queries => "too many upstream queries",
            Self::Aliases => "too many aliases",
            Self::Depth => "nameserver addresses depend on too many other zones",
            Self::Octets => "too many octets in responses",
            Self::AddressFetches | Self::DelegationFetches => "too many nameserver addresses to resolve",
        };
        ExtendedError { code: 0, text }
    }
}

/// Amounts of the work that a starter can pay for a fetch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amounts {
    queries: u32,
    aliases: u32,
    octets: u32,
    address_fetches: u32,
}

impl Amounts {
    const fn of(limits: &UpstreamLimits) -> Self {
        Self {
            queries: limits.queries,
            aliases: limits.aliases,
            octets: limits.octets,
            address_fetches: limits.address_fetches,
        }
    }

    /// Combines each amount with that of `other`.
    fn zip(self, other: Self, combine: impl Fn(u32, u32) -> u32) -> Self {
        Self {
            queries: combine(self.queries, other.queries),
            aliases: combine(self.aliases, other.aliases),
            octets: combine(self.octets, other.octets),
            address_fetches: combine(self.address_fetches, other.address_fetches),
        }
    }
}

/// Counts the fetches for the nameserver addresses of one delegation, in one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelegationFetches(u32);

/// The budget of one client query or of one shared fetch. There is no copy of a budget.
#[derive(Debug, PartialEq, Eq)]
pub struct Budget {
    limits: UpstreamLimits,
    /// The amounts at the start.
    granted: Amounts,
    /// The amounts that are neither spent nor paid for fetches.
    left: Amounts,
    /// The amounts paid for fetches, until they are refunded.
    paid: Amounts,
    /// Number of levels of fetches that may be below this one.
    depth: u32,
    deadline: Instant,
    /// The budget of validation.
    pub(crate) validation: validate::Budget,
}

impl Budget {
    /// Creates the budget of a client query that arrived at `now`.
    #[must_use]
    pub fn new(limits: UpstreamLimits, now: Instant) -> Self {
        let validation = validate::Budget::new(limits.validation);
        Self::with(limits, Amounts::of(&limits), limits.depth, validation, now)
    }

    fn with(
        limits: UpstreamLimits,
        granted: Amounts,
        depth: u32,
        validation: validate::Budget,
        now: Instant,
    ) -> Self {
        // The clock cannot represent every time that an operator may configure.
        let deadline = now + limits.time.min(TIME_MAX);
        Self { limits, granted, left: granted, paid: Amounts::default(), depth, deadline, validation }
    }

    /// Returns the time at which the work ends without success.
    #[must_use]
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the number of queries that are left.
    #[must_use]
    pub const fn queries_left(&self) -> u32 {
        self.left.queries
    }

    /// Checks the deadline.
    ///
    /// # Errors
    /// [`LimitReached::Time`] from the deadline on.
    pub fn check_time(&self, now: Instant) -> Result<(), LimitReached> {
        if now < self.deadline { Ok(()) } else { Err(LimitReached::Time) }
    }

    /// Takes a query to a server. Call it before each query, repeated queries included.
    ///
    /// # Errors
    /// [`LimitReached::Time`] or [`LimitReached::Queries`].
    pub fn take_query(&mut self, now: Instant) -> Result<(), LimitReached> {
        self.check_time(now)?;
        take(&mut self.left.queries, 1).ok_or(LimitReached::Queries)
    }

    /// Takes a CNAME or DNAME step, whether the records came from a server or from the cache.
    ///
    /// # Errors
    /// [`LimitReached::Aliases`].
    pub fn take_alias(&mut self) -> Result<(), LimitReached> {
        take(&mut self.left.aliases, 1).ok_or(LimitReached::Aliases)
    }

    /// Takes the octets of a response that has arrived. After an error, there are no octets left.
    ///
    /// # Errors
    /// [`LimitReached::Octets`]: do not use the response.
    pub fn take_octets(&mut self, octets: usize) -> Result<(), LimitReached> {
        let octets = u32::try_from(octets).unwrap_or(u32::MAX);
        take(&mut self.left.octets, octets).ok_or_else(|| {
            self.left.octets = 0;
            LimitReached::Octets
        })
    }

    /// Pays for a shared fetch and returns its budget: a quarter of each limit, but at most half of
    /// what is left here. The fetch has the whole time from `now` on, because others may wait for it
    /// longer than its starter.
    ///
    /// # Errors
    /// [`LimitReached::Time`], [`LimitReached::Depth`], or [`LimitReached::Queries`] if the fetch
    /// would have no query.
    pub fn start_fetch(&mut self, now: Instant) -> Result<Self, LimitReached> {
        self.check_time(now)?;
        let depth = self.depth.checked_sub(1).ok_or(LimitReached::Depth)?;
        let part = Amounts::of(&self.limits).zip(self.left, |limit, left| (limit / FETCH_PART).min(left / 2));
        if part.queries == 0 {
            return Err(LimitReached::Queries);
        }
        self.left = self.left.zip(part, u32::saturating_sub);
        self.paid = self.paid.zip(part, u32::saturating_add);
        Ok(Self::with(self.limits, part, depth, self.validation.start_part(), now))
    }

    /// As [`start_fetch`](Self::start_fetch), for an address of a nameserver of the delegation that
    /// `delegation` counts for.
    ///
    /// # Errors
    /// Those of [`start_fetch`](Self::start_fetch), [`LimitReached::DelegationFetches`], and
    /// [`LimitReached::AddressFetches`].
    pub fn start_address_fetch(
        &mut self,
        delegation: &mut DelegationFetches,
        now: Instant,
    ) -> Result<Self, LimitReached> {
        if delegation.0 >= self.limits.address_fetches_per_delegation {
            return Err(LimitReached::DelegationFetches);
        }
        take(&mut self.left.address_fetches, 1).ok_or(LimitReached::AddressFetches)?;
        let fetch = self.start_fetch(now).inspect_err(|_| self.left.address_fetches += 1)?;
        delegation.0 += 1;
        Ok(fetch)
    }

    /// Takes back what a finished fetch did not use. `fetch` is the budget that a method of this
    /// budget returned. What the fetch paid for other fetches that have not finished is lost, because
    /// they may still use it. If the starter does not wait any more, drop the budget of the fetch.
    // By value: a budget is refunded once.
    #[expect(clippy::needless_pass_by_value)]
    pub fn refund(&mut self, fetch: Self) {
        let Self { left, granted, validation, .. } = fetch;
        self.validation.refund(validation);
        // Never more than was paid, even if the caller takes the budget of somebody else's fetch.
        let refunded = left.zip(self.paid, u32::min);
        self.left = self.left.zip(refunded, u32::saturating_add);
        self.paid = self.paid.zip(granted, u32::saturating_sub);
    }
}

/// Subtracts `amount`. Returns `None`, without a change, if less is left.
fn take(left: &mut u32, amount: u32) -> Option<()> {
    *left = left.checked_sub(amount)?;
    Some(())
}

#[cfg(test)]
mod tests;
