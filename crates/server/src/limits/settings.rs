//! Settings of the limits, with their ranges and defaults.

use crate::acl::Prefix;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// Range of the rates, in responses per second; 0 sets no limit.
pub const RATE_RANGE: RangeInclusive<u32> = 0..=1_000_000;
/// Range of the online shares, in percent of a worker's time.
pub const SHARE_RANGE: RangeInclusive<u8> = 1..=100;
/// Range of the size of a table of buckets, in bytes.
pub const TABLE_OCTETS_RANGE: RangeInclusive<u64> = 4096..=1 << 30;
/// Range of `slip`. The upper bound is 15 because four bits count the refusals.
pub const SLIP_RANGE: RangeInclusive<u8> = 0..=15;

/// All limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Rates of UDP responses. `None`, the default, sets no limit.
    pub responses: Option<RateSettings>,
    /// The limits of online work.
    pub online: OnlineSettings,
    /// Clients that are exempt from all limits. The default is the loopback prefixes, because
    /// packets from the network cannot have such a source address.
    pub exempt: Vec<Prefix>,
    /// Whether the server requests a valid cookie from clients that support cookies.
    pub require_cookie: RequireCookie,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            responses: None,
            online: OnlineSettings::default(),
            exempt: Prefix::loopback(),
            require_cookie: RequireCookie::WhenLimited,
        }
    }
}

impl Prefix {
    /// Returns the prefixes that packets from the network cannot have as source: `127.0.0.0/8` and
    /// `::1`.
    #[must_use]
    pub fn loopback() -> Vec<Self> {
        let all = [(IpAddr::from(Ipv4Addr::new(127, 0, 0, 0)), 8), (IpAddr::from(Ipv6Addr::LOCALHOST), 128)];
        all.into_iter().filter_map(|(address, bits)| Self::new(address, bits)).collect()
    }
}

/// When the server sends BADCOOKIE to a client that supports cookies but sent no valid server
/// cookie (RFC 7873 §5.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequireCookie {
    /// Never: the server treats the client as a client without cookies.
    Never,
    /// When the response is rate limited: BADCOOKIE replaces the truncated response.
    #[default]
    WhenLimited,
}

/// The response over UDP when a client exceeds the online share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverBudgetAction {
    /// TC: the client retries over TCP, where its address is proven and its online work is
    /// accounted separately.
    #[default]
    Truncate,
    /// REFUSED: the client queries another server.
    Refuse,
}

/// Rates of UDP responses for each client and name, per second; 0 sets no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSettings {
    /// Positive answers.
    pub positive: u32,
    /// NODATA responses.
    pub nodata: u32,
    /// NXDOMAIN responses, counted together for the whole zone.
    pub nxdomain: u32,
    /// Referrals.
    pub referral: u32,
    /// Responses with REFUSED, SERVFAIL, FORMERR and other error codes.
    pub error: u32,
    /// All responses to one client together.
    pub all: u32,
    /// Every `slip`-th response above the rate is truncated instead of dropped; 0: none, 1: all.
    pub slip: u8,
    /// Prefix length in bits that makes IPv4 addresses one client.
    pub ipv4_prefix: u8,
    /// Prefix length in bits that makes IPv6 addresses one client, at most 64.
    pub ipv6_prefix: u8,
    /// Bytes of the table of clients and names.
    pub table_octets: usize,
}

impl Default for RateSettings {
    /// The rates that `responses-per-second = 200` enables.
    fn default() -> Self {
        Self { all: Self::DEFAULT_CLIENT_RATE, ..Self::uniform(200) }
    }
}

impl RateSettings {
    /// Default rate of all responses to one client together, per second, if the configuration
    /// limits a category of responses and does not set this rate.
    pub const DEFAULT_CLIENT_RATE: u32 = 2000;

    /// Returns settings with the rate `rate` for each category of responses, and no limit for all
    /// responses together.
    #[must_use]
    pub const fn uniform(rate: u32) -> Self {
        Self {
            positive: rate,
            nodata: rate,
            nxdomain: rate,
            referral: rate,
            error: rate,
            all: 0,
            slip: 2,
            ipv4_prefix: 24,
            ipv6_prefix: 56,
            // One million buckets. At a client rate of 200 per second, a bucket is in use for 5 ms
            // after one response.
            table_octets: 8 << 20,
        }
    }
}

/// The limits of signatures and proofs that are generated online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineSettings {
    /// Percent of each worker's time for the online work of all clients together. When it is spent,
    /// each prefix gets an equal part.
    pub share: u8,
    /// The same percentage for a worker without spare time. A worker with spare time uses the spare
    /// time, at least `busy_share` and at most `share`.
    pub busy_share: u8,
    /// The response over UDP when a client exceeds the online share.
    pub over_budget_action: OverBudgetAction,
}

impl Default for OnlineSettings {
    fn default() -> Self {
        Self { share: 50, busy_share: 8, over_budget_action: OverBudgetAction::Truncate }
    }
}

/// An invalid setting. The messages contain the keys of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// A value is out of its range.
    #[error("{key} is {found}: must be {min} to {max}")]
    Range {
        /// The configuration key.
        key: &'static str,
        /// The value in the configuration.
        found: u64,
        /// The lowest valid value.
        min: u64,
        /// The highest valid value.
        max: u64,
    },
    /// The system provides no random octets for the hash keys of the tables.
    #[error("cannot get random octets from the system: {0}")]
    Random(getrandom::Error),
}

impl From<getrandom::Error> for LimitError {
    fn from(error: getrandom::Error) -> Self {
        Self::Random(error)
    }
}

impl LimitSettings {
    /// Checks that all values are in their ranges.
    ///
    /// # Errors
    /// Returns the first value that is out of its range.
    pub fn check(&self) -> Result<(), LimitError> {
        self.responses.as_ref().map_or(Ok(()), RateSettings::check)?;
        self.online.check()
    }
}

impl RateSettings {
    /// Checks that all values are in their ranges.
    ///
    /// # Errors
    /// Returns the first value that is out of its range.
    pub fn check(&self) -> Result<(), LimitError> {
        for rate in [self.positive, self.nodata, self.nxdomain, self.referral, self.error] {
            check("responses-per-second", rate, RATE_RANGE)?;
        }
        check("client-responses-per-second", self.all, RATE_RANGE)?;
        check("slip", self.slip, SLIP_RANGE)?;
        check("response-ipv4-prefix", self.ipv4_prefix, 1..=32)?;
        check("response-ipv6-prefix", self.ipv6_prefix, 1..=64)?;
        check_table("response-table", self.table_octets)
    }
}

impl OnlineSettings {
    /// Checks that all values are in their ranges.
    ///
    /// # Errors
    /// Returns the first value that is out of its range.
    pub fn check(&self) -> Result<(), LimitError> {
        check("online-share", self.share, SHARE_RANGE)?;
        check("online-busy-share", self.busy_share, *SHARE_RANGE.start()..=self.share)
    }
}

fn check<T: Into<u64> + Copy>(
    key: &'static str,
    found: T,
    range: RangeInclusive<T>,
) -> Result<(), LimitError> {
    let (found, min, max) = (found.into(), (*range.start()).into(), (*range.end()).into());
    if (min..=max).contains(&found) { Ok(()) } else { Err(LimitError::Range { key, found, min, max }) }
}

fn check_table(key: &'static str, octets: usize) -> Result<(), LimitError> {
    check(key, octets as u64, TABLE_OCTETS_RANGE)
}
