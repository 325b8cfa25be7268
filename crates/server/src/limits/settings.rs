//! The settings of limits.

use crate::acl::Prefix;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// Rates that can be set, a second; 0 sets no limit.
pub const RATES: RangeInclusive<u32> = 0..=1_000_000;
/// Percent of a worker's time.
pub const SHARES: RangeInclusive<u8> = 1..=100;
/// Octets of a table of buckets.
pub const TABLE_OCTETS: RangeInclusive<u64> = 4096..=1 << 30;
/// Marks of refusals are counted in four bits.
pub const SLIPS: RangeInclusive<u8> = 0..=15;

/// All limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSettings {
    /// Rates of responses over UDP; `None`, the default: they are not limited.
    pub responses: Option<RateSettings>,
    /// The bounds of online work.
    pub online: OnlineSettings,
    /// Clients that nothing is limited for. By default loopback: packets from the network cannot come from there.
    pub exempt: Vec<Prefix>,
    /// Whether clients with cookies are asked for a valid one.
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
    /// What packets from the network cannot come from: `127.0.0.0/8` and `::1`.
    #[must_use]
    pub fn loopback() -> Vec<Self> {
        let all = [(IpAddr::from(Ipv4Addr::new(127, 0, 0, 0)), 8), (IpAddr::from(Ipv6Addr::LOCALHOST), 128)];
        all.into_iter().filter_map(|(address, bits)| Self::new(address, bits)).collect()
    }
}

/// When a client that sends a cookie, but no valid one of ours, gets BADCOOKIE (RFC 7873 §5.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequireCookie {
    /// Never: it is treated as one without cookies.
    Never,
    /// When its response is limited: in place of a truncated one.
    #[default]
    WhenLimited,
}

/// What a client gets over UDP whose answer may not be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverBudgetAction {
    /// TC: it comes back over TCP, where its address is proven and its share is counted apart.
    #[default]
    Truncate,
    /// REFUSED: it asks another server.
    Refuse,
}

/// Responses over UDP for each client and name, a second; 0 sets no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSettings {
    /// Answers.
    pub positive: u32,
    /// Denials of a type.
    pub nodata: u32,
    /// Denials of names, all of a zone together.
    pub nxdomain: u32,
    /// Referrals.
    pub referral: u32,
    /// REFUSED, SERVFAIL, FORMERR and their like.
    pub error: u32,
    /// All responses to one client together.
    pub all: u32,
    /// Each so manieth response over the rate is truncated instead of dropped; 0: none, 1: each.
    pub slip: u8,
    /// Bits of an IPv4 address that make a client.
    pub ipv4_prefix: u8,
    /// Bits of an IPv6 address that make a client, 64 at most.
    pub ipv6_prefix: u8,
    /// Octets of the table of clients and names.
    pub table_octets: usize,
}

impl Default for RateSettings {
    /// The strict form: what `responses-per-second = 200` enables.
    fn default() -> Self {
        Self { all: Self::CLIENT_RATE, ..Self::of(200) }
    }
}

impl RateSettings {
    /// Responses a second to one client of all kinds together, where responses of one kind are limited and this rate is not set.
    pub const CLIENT_RATE: u32 = 2000;

    /// One rate for each class of responses, and none for all together.
    #[must_use]
    pub const fn of(rate: u32) -> Self {
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
            // A million buckets: those that took something in the last 5 ms when a client's rate is 200 a second.
            table_octets: 8 << 20,
        }
    }
}

/// The bounds of signatures and proofs that are made online.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineSettings {
    /// Percent of each worker's time for all clients together; once it is spent, each prefix has an equal share of it.
    pub share: u8,
    /// The same of a worker that has no time left; of one that has, what all else leaves, up to `share`.
    pub busy_share: u8,
    /// What a client gets over UDP whose answer may not be made.
    pub over_budget_action: OverBudgetAction,
}

impl Default for OnlineSettings {
    fn default() -> Self {
        Self { share: 50, busy_share: 8, over_budget_action: OverBudgetAction::Truncate }
    }
}

/// What is wrong with settings. Keys are those of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitError {
    /// A value out of its range.
    #[error("{key} is {found}: {least} to {most}")]
    Range {
        /// The key.
        key: &'static str,
        /// The value.
        found: u64,
        /// The lowest.
        least: u64,
        /// The highest.
        most: u64,
    },
    /// Tables are keyed at random.
    #[error("the system has no random octets: {0}")]
    Random(getrandom::Error),
}

impl From<getrandom::Error> for LimitError {
    fn from(error: getrandom::Error) -> Self {
        Self::Random(error)
    }
}

impl LimitSettings {
    /// Whether all values are in their ranges.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), LimitError> {
        self.responses.as_ref().map_or(Ok(()), RateSettings::check)?;
        self.online.check()
    }
}

impl RateSettings {
    /// Whether all values are in their ranges.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), LimitError> {
        for rate in [self.positive, self.nodata, self.nxdomain, self.referral, self.error] {
            check("responses-per-second", rate, RATES)?;
        }
        check("client-responses-per-second", self.all, RATES)?;
        check("slip", self.slip, SLIPS)?;
        check("response-ipv4-prefix", self.ipv4_prefix, 1..=32)?;
        check("response-ipv6-prefix", self.ipv6_prefix, 1..=64)?;
        check_table("response-table", self.table_octets)
    }
}

impl OnlineSettings {
    /// Whether all values are in their ranges.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), LimitError> {
        check("online-share", self.share, SHARES)?;
        check("online-busy-share", self.busy_share, *SHARES.start()..=self.share)
    }
}

fn check<T: Into<u64> + Copy>(
    key: &'static str,
    found: T,
    range: RangeInclusive<T>,
) -> Result<(), LimitError> {
    let (found, least, most) = (found.into(), (*range.start()).into(), (*range.end()).into());
    if (least..=most).contains(&found) { Ok(()) } else { Err(LimitError::Range { key, found, least, most }) }
}

fn check_table(key: &'static str, octets: usize) -> Result<(), LimitError> {
    check(key, octets as u64, TABLE_OCTETS)
}
