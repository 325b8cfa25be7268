//! What all workers share.

use crate::cache::{Cache, CacheOptions};
use crate::denials::{DenialCache, DenialCacheOptions};
use crate::local_names::{LocalNames, UnknownLocalZone};
use crate::managed_anchors::{ManagedAnchors, ReplaceError};
use crate::model::Model;
use crate::negative_anchors::NegativeAnchors;
use crate::options::{ResolverOptions, ValidationOptions};
use crate::servers::{ServerTable, ServerTableOptions};
use crate::trust::TrustTable;
use arc_swap::ArcSwap;
use nonesuch_net::machine::Now;
use nonesuch_proto::{Name, NameRef};
use nonesuch_server::cookies::Cookies;
use nonesuch_server::reply_options::ReplySettings;
use nonesuch_server::statistics::Statistics;
use std::sync::Arc;

/// The part of the memory of the cache for the keys of zones.
const TRUST_PART: usize = 4;
/// The part for denial records.
const DENIALS_PART: usize = 8;

/// The caches, the settings and the counters of a resolver. All workers share it.
#[derive(Debug)]
pub struct Shared {
    /// The settings. They are replaced as a whole.
    pub(crate) settings: ArcSwap<Settings>,
    /// The cookies for clients; `None`: cookies of clients are ignored.
    pub cookies: Option<Cookies>,
    /// RRsets, negative answers and failures.
    pub cache: Cache,
    /// Validated denial records, for aggressive use.
    pub denials: DenialCache,
    /// The zones of the chain of trust.
    pub trust: TrustTable,
    /// The servers that were asked.
    pub servers: ServerTable,
    /// The counters of queries and replies.
    pub statistics: Statistics,
    /// The counters of the cost model.
    pub model: Model,
    /// Trust anchors that are updated automatically.
    pub(crate) managed: ManagedAnchors,
    pub(crate) negative: NegativeAnchors,
    /// The time of the start.
    pub(crate) started: Now,
}

/// What follows from the options.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) options: ResolverOptions,
    /// EDNS options of replies.
    pub(crate) reply: ReplySettings,
    /// Names that are not looked up.
    pub(crate) local_names: LocalNames,
}

impl Settings {
    fn new(options: ResolverOptions) -> Result<Self, UnknownLocalZone> {
        let local_names =
            LocalNames::new(&options.disabled_local_zones, &options.zones, options.chaos.clone())?;
        let reply = ReplySettings {
            max_udp_size: options.edns_payload,
            nsid: options.nsid.clone(),
            padding_block: options.padding_block,
            ..ReplySettings::default()
        };
        Ok(Self { reply, local_names, options })
    }
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
        cache.validates = !options.validation.anchors.is_empty();
        let trust_octets = octets / TRUST_PART;
        let denial_octets = if options.validation.aggressive { octets / DENIALS_PART } else { 0 };
        cache.octets -= trust_octets + denial_octets;
        let mut denials = DenialCacheOptions::new(denial_octets, names_key);
        // RFC 8198 §5.4: as for other negative answers.
        denials.ttl_max = denials.ttl_max.min(options.ttl.negative_max);
        let mut servers = ServerTableOptions::default();
        (servers.servers, servers.payload) = (options.server_entries as usize, options.edns_payload);
        let negative = NegativeAnchors::new(&options.validation.negative_anchors);
        Ok(Self {
            settings: ArcSwap::from_pointee(Settings::new(options)?),
            cookies: None,
            cache: Cache::new(cache, now),
            trust: TrustTable::new(trust_octets, &names_key),
            denials: DenialCache::new(denials, now),
            servers: ServerTable::new(servers, addresses_key, now),
            statistics: Statistics::default(),
            model: Model::default(),
            managed: ManagedAnchors::default(),
            negative,
            started: now,
        })
    }

    /// Changes the options of validation, and nothing else.
    pub(crate) fn change_validation(&self, change: impl Fn(&mut ValidationOptions)) {
        self.settings.rcu(|settings| {
            let mut settings = Settings::clone(settings);
            change(&mut settings.options.validation);
            settings
        });
    }

    /// Removes the cached data of the names at and below a name: RRsets, negative answers, failures,
    /// denial records, keys of zones. The properties of servers stay. Data that a query in progress
    /// got earlier may still be inserted. Returns the number of removed entries, without keys.
    pub fn flush_below(&self, name: NameRef<'_>) -> usize {
        let entries = self.cache.flush_below(name);
        self.trust.clear_below(name);
        entries + self.denials.flush_below(name)
    }

    /// Whether responses are validated. If all trust anchors are revoked (RFC 5011 §5), all zones are
    /// insecure.
    pub(crate) const fn validates(&self) -> bool {
        self.cache.options().validates
    }

    /// Returns the apexes of the zones with trust anchors.
    #[must_use]
    pub fn anchor_apexes(&self) -> Vec<Name> {
        self.settings.load().options.validation.anchors.iter().map(|anchor| anchor.apex.clone()).collect()
    }

    /// Replaces the options. Each worker uses the new ones from its next
    /// [`Event::Wake`](nonesuch_net::machine::Event::Wake) on, also for queries in progress. The cache
    /// and the table of servers keep the memory, the bounds of TTLs, the rule of RFC 8020 and the
    /// payload size of the first options.
    ///
    /// If the hints or the options of validation differ, all cached data are removed; if a forward or stub zone differs, the data
    /// of its names. Data that a query in progress gets from the earlier servers may still be
    /// inserted.
    ///
    /// Managed trust anchors ([`manage_anchors`](Self::manage_anchors)) of zones that remain configured
    /// continue, and negative trust anchors that were added. `unix` is the time in seconds since 1970.
    ///
    /// # Errors
    /// A local zone to switch off is not one, or trust anchors cannot be managed. The options are not
    /// replaced then.
    pub fn replace_options(&self, mut options: ResolverOptions, unix: u64) -> Result<(), ReplaceError> {
        let mut managed = self.managed.lock();
        let merged = managed.merge(&options.validation.anchors, unix)?;
        if let Some(merged) = &merged {
            options.validation.anchors = merged.anchors();
        }
        let configured = std::mem::take(&mut options.validation.negative_anchors);
        let mut new = Settings::new(options)?;
        if let Some(merged) = merged {
            managed.replace(merged);
        }
        let mut negative = self.negative.lock();
        negative.configure(&configured);
        new.options.validation.negative_anchors = negative.active();
        let new = Arc::new(new);
        let old = self.settings.swap(Arc::clone(&new));
        drop((managed, negative));
        let is_other_chain = old.options.validation != new.options.validation;
        let root = (old.options.hints != new.options.hints || is_other_chain).then(Name::root);
        let changed = old.options.zones.differences(&new.options.zones);
        for apex in root.iter().chain(changed) {
            self.flush_below(apex.view());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{name, now, rrset};
    use nonesuch_dnssec::validate::{Budget, TrustedKeys, ValidationLimits};
    use nonesuch_proto::Rtype;
    use std::time::Duration;

    #[test]
    fn denials_are_used_for_the_maximum_ttl_of_negative_answers() {
        let mut options = ResolverOptions::default();
        options.ttl.negative_max = 60;
        let now = now();
        let shared = Shared::new(options, [1; 16], &[1; 32], now).expect("no local zone to disable");
        let keys = TrustedKeys::new(&name("example."), [], &ValidationLimits::default());
        let soa = rrset(&["example. 900 SOA ns.test. h.test. 7 3600 300 3600000 900"]);
        let nsec = rrset(&["a.example. 900 NSEC c.example. A RRSIG NSEC"]);
        assert_eq!(shared.denials.insert(&keys, &[soa, nsec], &mut Budget::default(), now), 1);
        let is_denied = |seconds: u64| {
            let later = Now { instant: now.instant + Duration::from_secs(seconds), ..now };
            shared.denials.prove(name("a.example.").view(), Rtype::MX, 0, later).found.is_some()
        };
        assert_eq!([is_denied(58), is_denied(61)], [true, false]);
    }
}
