//! What all workers share.

use crate::cache::{Cache, CacheOptions};
use crate::local_names::{LocalNames, UnknownLocalZone};
use crate::options::ResolverOptions;
use crate::servers::{ServerTable, ServerTableOptions};
use nonesuch_net::machine::Now;
use nonesuch_server::cookies::Cookies;
use nonesuch_server::reply_options::ReplySettings;

/// The caches and the configuration of a resolver. All workers share it.
#[derive(Debug)]
pub struct Shared {
    /// The options.
    pub options: ResolverOptions,
    /// EDNS options of replies.
    pub reply: ReplySettings,
    /// The cookies for clients; `None`: cookies of clients are ignored.
    pub cookies: Option<Cookies>,
    /// RRsets, negative answers and failures.
    pub cache: Cache,
    /// The servers that were asked.
    pub servers: ServerTable,
    /// Names that are not looked up.
    pub local_names: LocalNames,
}

impl Shared {
    /// Returns the caches that these options describe, without cookies. Half of the memory is for the
    /// cache. The keys must be unpredictable: they are those of the hashes of names and of addresses.
    ///
    /// # Errors
    /// A local zone to switch off is not one.
    pub fn new(
        options: ResolverOptions,
        names_key: [u8; 16],
        addresses_key: &[u8; 32],
        now: Now,
    ) -> Result<Self, UnknownLocalZone> {
        let octets = usize::try_from(options.memory / 2).unwrap_or(usize::MAX);
        let mut cache = CacheOptions::new(octets, names_key);
        (cache.ttl_min, cache.ttl_max, cache.negative_ttl_max) =
            (options.ttl.min, options.ttl.max, options.ttl.negative_max);
        cache.uses_nxdomain_cut = options.nxdomain_cut;
        let mut servers = ServerTableOptions::default();
        (servers.servers, servers.payload) = (options.server_entries as usize, options.edns_payload);
        Ok(Self {
            reply: ReplySettings { max_udp_size: options.edns_payload, ..ReplySettings::default() },
            cookies: None,
            cache: Cache::new(cache, now),
            servers: ServerTable::new(servers, addresses_key, now),
            local_names: LocalNames::new(
                &options.disabled_local_zones,
                &options.zones,
                options.chaos.clone(),
            )?,
            options,
        })
    }
}
