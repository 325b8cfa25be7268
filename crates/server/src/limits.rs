//! Limits for each client: the rate of UDP responses, and the work of online signing.
//!
//! - Response rate limiting ([`rates`]), off by default. The server drops a UDP response above the
//!   client's rate, or truncates it ("slip"). The source address of a UDP query may be forged. A
//!   client that did send the query retries over TCP after a truncated response.
//! - Online work ([`online`]). Signatures and proofs are expensive, and a client can query an
//!   unlimited number of new names. Online work gets a share of each worker's time. When this share
//!   is spent, each prefix gets an equal part of it (`fair`).
//!
//! All threads share one [`Limits`]. Each worker has its own [`WorkerShare`]. A valid DNS cookie,
//! TCP and TLS prove the client's address. Responses to a proven address are not rate limited, and
//! its online work is accounted separately.

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
pub use settings::{RATE_RANGE, SHARE_RANGE, SLIP_RANGE, TABLE_OCTETS_RANGE};

use crate::cookies::CookieStatus;
use buckets::TakeResult;
use nonesuch_net::Transport;
use nonesuch_proto::NameRef;
use rates::Rates;
use std::net::IpAddr;

/// What the server does with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitAction {
    /// Send the response.
    Send,
    /// Do not send a response.
    Drop,
    /// Send the header, the question and OPT, with the TC bit.
    Truncate,
    /// As [`LimitAction::Truncate`], with BADCOOKIE and a server cookie for the retry (RFC 7873
    /// §5.2.3).
    BadCookie,
    /// Send the header, the question and OPT, with REFUSED.
    Refuse,
}

/// The limits, shared by all threads.
#[derive(Debug)]
pub struct Limits {
    rates: Option<Rates>,
    /// The hash key for the tables of the [`WorkerShare`]s.
    key: [u8; 16],
    settings: LimitSettings,
}

impl Limits {
    /// Returns limits according to `settings`, with no usage recorded.
    ///
    /// # Errors
    /// Fails if a setting is out of its range, or if the system provides no random octets.
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

    /// Whether response rate limiting is enabled.
    #[must_use]
    pub const fn has_rates(&self) -> bool {
        self.rates.is_some()
    }

    /// Whether `client` is exempt from all limits.
    #[must_use]
    pub fn is_exempt(&self, client: IpAddr) -> bool {
        // Convert the address once instead of for each prefix.
        let client = client.to_canonical();
        self.settings.exempt.iter().any(|prefix| prefix.contains(client))
    }

    /// Counts a UDP response to `client`, and returns what the server does with it. `now_ms` is in
    /// milliseconds from an arbitrary start. `name` is the [hash](hash_name) of the name that the
    /// response is counted under ([`ResponseCategory`]).
    #[inline]
    #[must_use]
    pub fn check_response(
        &self,
        now_ms: u64,
        client: IpAddr,
        category: ResponseCategory,
        name: u64,
        cookie: CookieStatus,
    ) -> LimitAction {
        let Some(rates) = &self.rates else { return LimitAction::Send };
        if cookie == CookieStatus::Valid || self.is_exempt(client) {
            return LimitAction::Send;
        }
        match rates.admit(now_ms, client, category, name) {
            TakeResult::Granted => LimitAction::Send,
            TakeResult::Refused { is_marked } => self.limited_action(is_marked, cookie),
        }
    }

    #[cold]
    fn limited_action(&self, is_marked: bool, cookie: CookieStatus) -> LimitAction {
        // A client that sends no cookie does not understand BADCOOKIE. RFC 7873 §5.2.3 permits both
        // actions.
        let is_cookie_required = matches!(cookie, CookieStatus::ClientOnly | CookieStatus::Invalid)
            && self.settings.require_cookie == RequireCookie::WhenLimited;
        match (is_marked, is_cookie_required) {
            (false, _) => LimitAction::Drop,
            (true, false) => LimitAction::Truncate,
            (true, true) => LimitAction::BadCookie,
        }
    }

    /// Returns the online share of a worker that has done no online work yet.
    #[must_use]
    pub fn worker_share(&self) -> WorkerShare {
        WorkerShare::new(&self.settings.online, self.key)
    }

    /// Whether the worker that owns `share` may generate `operations` signatures and proofs for
    /// `client` in this batch. If so, reserves time for them; the worker then reports the time with
    /// [`WorkerShare::record_work`]. `is_proven`: the query came over TCP or TLS, or with a valid
    /// cookie.
    #[must_use]
    pub fn admit_online(
        &self,
        share: &mut WorkerShare,
        client: IpAddr,
        is_proven: bool,
        operations: usize,
    ) -> bool {
        // No operation remains if another query of the batch needs the same signatures and proofs.
        operations == 0 || self.is_exempt(client) || share.admit(client, is_proven, operations)
    }

    /// Returns the action for a response that exceeds the online share. Over TCP and TLS it is
    /// always REFUSED, because a client does not retry after TC there.
    #[must_use]
    pub const fn over_budget_action(&self, transport: Transport) -> LimitAction {
        match (self.settings.online.over_budget_action, transport) {
            (OverBudgetAction::Truncate, Transport::Udp) => LimitAction::Truncate,
            _ => LimitAction::Refuse,
        }
    }
}

/// Returns a hash of `name`, which must be in lower case. The hash needs no secret key: a client
/// that finds names with the same hash makes them share its own rate, which does not affect other
/// clients.
#[inline]
#[must_use]
pub fn hash_name(name: NameRef<'_>) -> u64 {
    // 2^64 divided by the golden ratio: an odd factor whose bits have no pattern.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(FACTOR);
        product ^ (product >> 32)
    };
    let (words, rest) = name.wire().as_chunks();
    let hash = words.iter().fold(name.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    // The last eight octets, which may overlap the words above. A name shorter than eight octets
    // contributes all its octets.
    let last = match name.wire().last_chunk() {
        Some(last) => u64::from_le_bytes(*last),
        None => rest.iter().fold(0, |word, octet| word << 8 | u64::from(*octet)),
    };
    mix(hash, last)
}

/// The prefix lengths that combine addresses into one client.
#[derive(Clone, Copy, Debug)]
pub struct ClientPrefixes {
    ipv4: u32,
    ipv6: u64,
}

impl ClientPrefixes {
    /// Takes the prefix lengths in bits. Values above 32 for IPv4 and above 64 for IPv6 are reduced
    /// to these maxima.
    #[must_use]
    pub fn new(ipv4: u8, ipv6: u8) -> Self {
        Self {
            ipv4: u32::MAX.checked_shl(32 - u32::from(ipv4.min(32))).unwrap_or(0),
            ipv6: u64::MAX.checked_shl(64 - u32::from(ipv6.min(64))).unwrap_or(0),
        }
    }

    /// Returns the prefix of an address as a number. Numbers of the two address families differ.
    #[inline]
    #[must_use]
    pub const fn prefix_of(self, client: IpAddr) -> u64 {
        match client.to_canonical() {
            // 0xff is the first octet of IPv6 multicast addresses, which are never source addresses
            // (RFC 4291 §2.7).
            IpAddr::V4(address) => 0xff << 56 | (address.to_bits() & self.ipv4) as u64,
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64 & self.ipv6,
        }
    }
}

#[cfg(test)]
mod tests;
