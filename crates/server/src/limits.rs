//! What is bounded for each client: responses over UDP, whose source may be forged, and answers that have to be made.
//!
//! - Response rate limiting ([`rates`]), off by default: a response over the client's rate is dropped, or truncated so that a
//!   client that is really there comes back over TCP ("slip").
//! - Online work ([`online`]): signatures and proofs are expensive, and a client can ask for new names without end.
//!   They have a part of each worker's time; once that is spent, each prefix has an equal share of it (`fair`).
//!
//! All threads share one [`Limits`]; each has a [`WorkerShare`]. A valid DNS cookie, TCP and TLS prove the client's address:
//! responses to it are not limited, and its share of online work is counted apart.

mod buckets;
mod fair;
mod network;
pub mod online;
pub mod rates;
mod settings;

pub use online::WorkerShare;
pub use rates::ResponseCategory;
pub use settings::{
    LimitError, LimitSettings, OnlineSettings, OverBudgetAction, RateSettings, RequireCookie,
};
pub use settings::{RATES, SHARES, SLIPS, TABLE_OCTETS};

use crate::cookies::CookieStatus;
use crate::trailer::Transport;
use buckets::TakeResult;
use nonesuch_proto::NameRef;
use rates::Rates;
use std::net::IpAddr;

/// What is to be done with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitAction {
    /// It is sent.
    Send,
    /// It is not.
    Drop,
    /// Header, question and OPT are sent, with TC.
    Truncate,
    /// The same with BADCOOKIE, and a cookie to come back with (RFC 7873 §5.2.3).
    BadCookie,
    /// The same with REFUSED.
    Refuse,
}

/// The limits, for all threads.
#[derive(Debug)]
pub struct Limits {
    rates: Option<Rates>,
    /// The key of the tables of [`WorkerShare`]s.
    key: [u8; 16],
    settings: LimitSettings,
}

impl Limits {
    /// Limits by `settings`, nobody having taken anything.
    ///
    /// # Errors
    /// A setting out of its range, or a system without random octets.
    pub fn new(settings: &LimitSettings) -> Result<Self, LimitError> {
        settings.check()?;
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        Ok(Self {
            rates: settings.responses.as_ref().map(Rates::new).transpose()?,
            key,
            settings: settings.clone(),
        })
    }

    /// Whether any rate of responses is limited.
    #[must_use]
    pub const fn has_rates(&self) -> bool {
        self.rates.is_some()
    }

    /// Whether nothing is limited for `client`.
    #[must_use]
    pub fn is_exempt(&self, client: IpAddr) -> bool {
        // Once, and not for each prefix.
        let client = client.to_canonical();
        self.settings.exempt.iter().any(|prefix| prefix.contains(client))
    }

    /// What is done with a response over UDP to `client` at `now_ms`, milliseconds from any start. `name` is the
    /// [hash](hash_name) of what the response is imputed to ([`ResponseCategory`]).
    #[inline]
    #[must_use]
    pub fn response(
        &self,
        now_ms: u64,
        client: IpAddr,
        class: ResponseCategory,
        name: u64,
        cookie: CookieStatus,
    ) -> LimitAction {
        let Some(rates) = &self.rates else { return LimitAction::Send };
        if cookie == CookieStatus::Valid || self.is_exempt(client) {
            return LimitAction::Send;
        }
        match rates.admit(now_ms, client, class, name) {
            TakeResult::Yes => LimitAction::Send,
            TakeResult::No { is_marked } => self.limit(is_marked, cookie),
        }
    }

    #[cold]
    fn limit(&self, is_marked: bool, cookie: CookieStatus) -> LimitAction {
        // One that sends no cookie would not understand; RFC 7873 §5.2.3 leaves both to it.
        let asks = matches!(cookie, CookieStatus::ClientOnly | CookieStatus::Invalid)
            && self.settings.require_cookie == RequireCookie::WhenLimited;
        match (is_marked, asks) {
            (false, _) => LimitAction::Drop,
            (true, false) => LimitAction::Truncate,
            (true, true) => LimitAction::BadCookie,
        }
    }

    /// The online share of a worker that has spent nothing.
    #[must_use]
    pub fn worker_share(&self) -> WorkerShare {
        WorkerShare::new(&self.settings.online, self.key)
    }

    /// Whether `operations` signatures and proofs may be made for `client` by the worker of `share`. `is_proven`: the query
    /// came over TCP or TLS, or with a valid cookie.
    #[must_use]
    pub fn online(
        &self,
        share: &mut WorkerShare,
        client: IpAddr,
        is_proven: bool,
        operations: usize,
    ) -> bool {
        // What another query of the batch has made is free.
        operations == 0 || self.is_exempt(client) || share.admit(client, is_proven, operations)
    }

    /// What is done with a response that may not be made. TC over TCP would lead nowhere: there it is refused.
    #[must_use]
    pub const fn over_budget(&self, transport: Transport) -> LimitAction {
        match (self.settings.online.over_budget_action, transport) {
            (OverBudgetAction::Truncate, Transport::Udp) => LimitAction::Truncate,
            _ => LimitAction::Refuse,
        }
    }
}

/// A hash of a name in lower case. It is not keyed: names that share one share a client's rate and harm nobody else.
#[inline]
#[must_use]
pub fn hash_name(name: NameRef<'_>) -> u64 {
    // An odd number without a pattern: the golden ratio.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(FACTOR);
        product ^ (product >> 32)
    };
    let (words, rest) = name.wire().as_chunks();
    let hash = words.iter().fold(name.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    // The last eight octets, of which some were taken before; of a name that has not so many, its octets.
    let last = match name.wire().last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |word, octet| word << 8 | u64::from(*octet)),
    };
    mix(hash, last)
}

/// What makes a client of many addresses: their first bits.
#[derive(Clone, Copy, Debug)]
pub struct ClientPrefixes {
    ipv4: u32,
    ipv6: u64,
}

impl ClientPrefixes {
    /// Of so many bits, of an IPv6 address 64 at most.
    #[must_use]
    pub fn new(ipv4: u8, ipv6: u8) -> Self {
        Self {
            ipv4: u32::MAX.checked_shl(32 - u32::from(ipv4.min(32))).unwrap_or(0),
            ipv6: u64::MAX.checked_shl(64 - u32::from(ipv6.min(64))).unwrap_or(0),
        }
    }

    /// An address's network as a number. Numbers of the two families differ.
    #[inline]
    #[must_use]
    pub const fn number_of(self, client: IpAddr) -> u64 {
        match client.to_canonical() {
            // Multicast addresses, which nobody sends from, begin like this (RFC 4291 §2.7).
            IpAddr::V4(address) => 0xff << 56 | (address.to_bits() & self.ipv4) as u64,
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64 & self.ipv6,
        }
    }
}

#[cfg(test)]
mod tests;
