//! Response rate limiting: how often one client is told the same over UDP, where its address may be forged.
//!
//! A client is a prefix of addresses, since whoever is flooded shares its network with others. What it is told is counted
//! for each class of responses and what they are imputed to, so that a resolver with many different questions is not limited
//! where a flood with one question is; and names without end below one name count as that one (the imputed name). A second
//! limit holds for all that one client is told.

use super::ClientPrefixes;
use super::buckets::{Buckets, Meter, TakeResult};
use super::settings::{LimitError, RateSettings};
use std::net::IpAddr;

/// What a response says, and the name that it is imputed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseCategory {
    /// An answer; the name that owns it: of a wildcard's answers the wildcard.
    Positive = 0,
    /// The type is denied; the name that lacks it, or the wildcard.
    Nodata = 1,
    /// The name is denied; the zone's apex.
    Nxdomain = 2,
    /// A referral; the zone cut.
    Referral = 3,
    /// Any other response code; nothing.
    Error = 4,
}

/// Stands where a class stands in keys of all responses together.
const ALL: u64 = 5;

/// The rates, for all threads.
#[derive(Debug)]
pub struct Rates {
    buckets: Buckets,
    meters: [Option<Meter>; 5],
    all: Option<Meter>,
    slip: u8,
    networks: ClientPrefixes,
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
            networks: ClientPrefixes::new(settings.ipv4_prefix, settings.ipv6_prefix),
        })
    }

    /// Counts a response; a refusal is marked where the response is to be truncated instead of dropped.
    pub(super) fn admit(
        &self,
        now_ms: u64,
        client: IpAddr,
        class: ResponseCategory,
        name: u64,
    ) -> TakeResult {
        let client = self.networks.number_of(client);
        let now = now_ms.wrapping_mul(1000);
        let take = |meter, class: u64, name: u64| {
            // The class is kept out of the way of the names' hashes.
            let what = name.rotate_left(8) ^ class;
            self.buckets.take([client, what], now, meter, 1, self.slip)
        };
        if let Some(meter) = self.meters[class as usize] {
            let taken = take(meter, class as u64, name);
            if taken != TakeResult::Yes {
                return taken;
            }
        }
        self.all.map_or(TakeResult::Yes, |meter| take(meter, ALL, 0))
    }
}
