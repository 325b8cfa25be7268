//! Response rate limiting: limits similar UDP responses to one client, because its address may be
//! forged.
//!
//! A client is a prefix of addresses, because a flooded host shares its network with others.
//! Responses are counted for each client, category and imputed name. So a resolver with many
//! different queries is not limited, while a flood of one query is. An unlimited number of names
//! below one name counts as that name (the imputed name). A second limit applies to all responses
//! to one client.

use super::ClientPrefixes;
use super::buckets::{Buckets, Meter, TakeResult};
use super::settings::{LimitError, RateSettings};
use std::net::IpAddr;

/// The category of a response, and the name that it is counted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseCategory {
    /// A positive answer; counted under the owner name, or the wildcard if the answer comes from
    /// one.
    Positive = 0,
    /// NODATA; counted under the name without the type, or the wildcard.
    Nodata = 1,
    /// NXDOMAIN; counted under the apex of the zone.
    Nxdomain = 2,
    /// A referral; counted under the zone cut.
    Referral = 3,
    /// Any other response code; counted under no name.
    Error = 4,
}

/// The number in place of a [`ResponseCategory`] in the keys of the buckets for all responses to
/// one client.
const ALL_RESPONSES: u64 = 5;

/// The rates, shared by all threads.
#[derive(Debug)]
pub struct Rates {
    buckets: Buckets,
    meters: [Option<Meter>; 5],
    all: Option<Meter>,
    slip: u8,
    prefix_lengths: ClientPrefixes,
}

impl Rates {
    pub(super) fn new(settings: &RateSettings) -> Result<Self, LimitError> {
        let rates =
            [settings.positive, settings.nodata, settings.nxdomain, settings.referral, settings.error];
        Ok(Self {
            buckets: Buckets::new(settings.table_octets)?,
            meters: rates.map(Meter::per_second),
            all: Meter::per_second(settings.all),
            slip: settings.slip,
            prefix_lengths: ClientPrefixes::new(settings.ipv4_prefix, settings.ipv6_prefix),
        })
    }

    /// Counts a response. If the refusal is marked, the response is truncated instead of dropped.
    pub(super) fn admit(
        &self,
        now_ms: u64,
        client: IpAddr,
        category: ResponseCategory,
        name: u64,
    ) -> TakeResult {
        let client = self.prefix_lengths.prefix_of(client);
        let now = now_ms.wrapping_mul(1000);
        let take = |meter, category: u64, name: u64| {
            // The rotation separates the category from the hash of the name.
            let name_key = name.rotate_left(8) ^ category;
            self.buckets.take([client, name_key], now, meter, 1, self.slip)
        };
        if let Some(meter) = self.meters[category as usize] {
            let taken = take(meter, category as u64, name);
            if taken != TakeResult::Granted {
                return taken;
            }
        }
        self.all.map_or(TakeResult::Granted, |meter| take(meter, ALL_RESPONSES, 0))
    }
}
