//! The log throttle: limits the lines of one event that a peer or a zone can cause.
//!
//! A line that names a peer or a zone, or that a library writes, has a *source*. Each pair of an
//! event and a source has a token bucket: it permits a burst of lines, then one line per second.
//! Suppressed lines are counted, and reported with the next line of the pair or in a summary. The
//! number of buckets is limited; further pairs share one bucket for each event.
//!
//! If a line names a catalog and a member zone, its source is the catalog. If a warning or an error
//! names a zone, its source is the zone, because a primary of many zones must not suppress the
//! lines about each zone. All other lines with a peer have the peer as their source. Therefore a
//! line that any client can cause must not be a warning with a zone: a client that names all zones
//! of a server would fill one bucket for each zone.

use super::line::Fields;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Level, Metadata};

/// Burst of lines of one event for one peer or library.
const PEER_BURST: u32 = 20;
/// Maximum number of peers with separate buckets, for each event.
const MAX_PEERS: usize = 4096;
/// Burst of lines of one event for one zone. A version of a zone may have many warnings.
const ZONE_BURST: u32 = 100;
/// Maximum number of zones with separate buckets, for each event.
const MAX_ZONES: usize = 65_536;
/// Time in which a bucket gains one line.
const REFILL_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two summaries.
const SUMMARY_INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of lines of one summary; one more line covers the rest.
const MAX_SUMMARIES: usize = 20;
/// Prefix of the targets of this program's own events.
const OWN_TARGET_PREFIX: &str = "nonesuch";

/// The source of a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Source {
    /// A peer: an IPv4 address, or the /64 prefix of an IPv6 address, because one host may have a
    /// whole /64.
    Peer(IpAddr),
    Zone(String),
    /// A library. Its events do not name the peer that causes them, if any.
    Library,
    /// All sources without a separate bucket.
    Others,
}

/// An event and its source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ThrottleKey {
    event: Identifier,
    source: Source,
}

impl ThrottleKey {
    /// The key of an event with these fields. Returns `None` for events without a throttle: events
    /// that only an operator causes, and the levels debug and trace.
    pub(super) fn of(metadata: &Metadata<'_>, fields: &Fields) -> Option<Self> {
        let level = *metadata.level();
        if level > Level::INFO {
            return None;
        }
        let name = |field| fields.text(field).map(|name| Source::Zone(name.to_ascii_lowercase()));
        let peer = || fields.text("peer").and_then(parse_peer).map(Source::Peer);
        let (catalog, zone) = (name("catalog"), name("zone"));
        let of_zone = if is_warning_or_error(level) { zone.or_else(peer) } else { peer().or(zone) };
        let library = || (!metadata.target().starts_with(OWN_TARGET_PREFIX)).then_some(Source::Library);
        let source = catalog.or(of_zone).or_else(library)?;
        Some(Self { event: metadata.callsite(), source })
    }

    /// The key of a library's event, for tests.
    #[cfg(test)]
    pub(super) fn of_library() -> Self {
        static CALLSITE: tracing::callsite::DefaultCallsite =
            tracing::callsite::DefaultCallsite::new(&METADATA);
        static METADATA: Metadata<'static> = tracing::metadata! {
            name: "event", target: "rustls", level: Level::WARN, fields: &[], callsite: &CALLSITE,
            kind: tracing::metadata::Kind::EVENT
        };
        Self { event: METADATA.callsite(), source: Source::Library }
    }

    const fn has_zone_source(&self) -> bool {
        matches!(self.source, Source::Zone(_))
    }
}

/// Whether lines of this level are warnings or errors.
pub(super) fn is_warning_or_error(level: Level) -> bool {
    level <= Level::WARN
}

/// Parses an address with or without a port. Of an IPv6 address, only the /64 prefix is returned.
fn parse_peer(text: &str) -> Option<IpAddr> {
    let address = text.parse::<SocketAddr>().map(|address| address.ip());
    let address = address.or_else(|_| text.parse::<IpAddr>()).ok()?;
    Some(match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !0 << 64).into(),
    })
}

/// Suppressed lines of one event and source that are not reported yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Suppressed {
    pub(super) level: Level,
    /// The name of the event; of a library's event without a name, the message of the last
    /// suppressed line.
    pub(super) event: String,
    /// The peer or zone; `None` for a library, and for several sources.
    pub(super) source: Option<String>,
    pub(super) lines: u64,
}

/// The token bucket of one event and source.
#[derive(Debug)]
struct Bucket {
    /// Number of lines that may be written at the time `at`.
    tokens: f64,
    at: Instant,
    suppressed: Option<Box<Suppressed>>,
}

impl Bucket {
    /// Adds the lines gained since the last call, up to `burst`.
    fn refill(&mut self, burst: u32, now: Instant) {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() / REFILL_INTERVAL.as_secs_f64();
        self.tokens = (self.tokens + gained).min(burst.into());
        self.at = now;
    }
}

/// The buckets of one kind of source.
#[derive(Debug)]
struct BucketTable {
    burst: u32,
    max_buckets: usize,
    buckets: HashMap<ThrottleKey, Bucket>,
    /// The last time when full buckets were removed.
    last_sweep_at: Instant,
}

impl BucketTable {
    fn new(burst: u32, max_buckets: usize, now: Instant) -> Self {
        Self { burst, max_buckets, buckets: HashMap::new(), last_sweep_at: now }
    }

    /// The bucket of `key`, or the shared bucket if the table is full. The second value is true for
    /// the shared bucket.
    fn bucket(&mut self, key: &ThrottleKey, now: Instant) -> (&mut Bucket, bool) {
        let mut key = key.clone();
        if !self.buckets.contains_key(&key) && self.buckets.len() >= self.max_buckets {
            self.remove_full_buckets(now);
            if self.buckets.len() >= self.max_buckets {
                key.source = Source::Others;
            }
        }
        let is_shared = key.source == Source::Others;
        let bucket = self.buckets.entry(key);
        (bucket.or_insert_with(|| Bucket { tokens: self.burst.into(), at: now, suppressed: None }), is_shared)
    }

    /// Removes the buckets that are full again, at most once per second.
    fn remove_full_buckets(&mut self, now: Instant) {
        if now.saturating_duration_since(self.last_sweep_at) < REFILL_INTERVAL {
            return;
        }
        self.last_sweep_at = now;
        let burst = self.burst;
        self.buckets.retain(|_, bucket| {
            bucket.refill(burst, now);
            bucket.suppressed.is_some() || bucket.tokens < f64::from(burst)
        });
    }
}

/// Whether a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The line is written.
    Admitted {
        /// Number of suppressed lines of the same event and source before this line.
        suppressed: u64,
    },
    /// The line is not written.
    Suppressed {
        /// Whether it is the first line that the next summary reports: [`Throttle::summary_at`] was
        /// `None` before.
        is_first: bool,
    },
}

/// Decides which lines are written.
#[derive(Debug)]
pub(super) struct Throttle {
    peers: BucketTable,
    zones: BucketTable,
    /// Number of buckets with suppressed lines that are not reported.
    buckets_with_suppressed: usize,
    /// Time of the next summary.
    summary_at: Instant,
}

impl Throttle {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            peers: BucketTable::new(PEER_BURST, MAX_PEERS, now),
            zones: BucketTable::new(ZONE_BURST, MAX_ZONES, now),
            buckets_with_suppressed: 0,
            summary_at: now,
        }
    }

    /// Decides whether a line of `key` may be written at the time `now`. Counts a suppressed line.
    pub(super) fn admit(
        &mut self,
        key: &ThrottleKey,
        level: Level,
        fields: &Fields,
        now: Instant,
    ) -> Verdict {
        let table = if key.has_zone_source() { &mut self.zones } else { &mut self.peers };
        let burst = table.burst;
        let (bucket, is_shared) = table.bucket(key, now);
        bucket.refill(burst, now);
        if bucket.tokens >= 1.0 {
            bucket.tokens -= 1.0;
            let suppressed = bucket.suppressed.take();
            self.buckets_with_suppressed -= usize::from(suppressed.is_some());
            return Verdict::Admitted { suppressed: suppressed.map_or(0, |suppressed| suppressed.lines) };
        }
        if let Some(suppressed) = &mut bucket.suppressed {
            suppressed.lines += 1;
            return Verdict::Suppressed { is_first: false };
        }
        let source = match &key.source {
            // The shared bucket has lines of several sources; this source is only the last one.
            _ if is_shared => None,
            Source::Peer(peer) => Some(peer.to_string()),
            Source::Zone(zone) => Some(zone.clone()),
            Source::Library | Source::Others => None,
        };
        let event = fields.text("event").unwrap_or_else(|| fields.message()).to_owned();
        bucket.suppressed = Some(Box::new(Suppressed { level, event, source, lines: 1 }));
        let is_first = self.buckets_with_suppressed == 0;
        if is_first {
            self.summary_at = now + SUMMARY_INTERVAL;
        }
        self.buckets_with_suppressed += 1;
        Verdict::Suppressed { is_first }
    }

    /// Time of the next summary; `None` while no line is suppressed.
    pub(super) fn summary_at(&self) -> Option<Instant> {
        (self.buckets_with_suppressed > 0).then_some(self.summary_at)
    }

    /// The summaries of suppressed lines, the largest number first. They exclude buckets without a
    /// token: their source still causes lines, and its next admitted line reports the number. With
    /// `is_flush`, they include all buckets.
    pub(super) fn summaries(&mut self, is_flush: bool, now: Instant) -> Vec<Suppressed> {
        self.summary_at = now + SUMMARY_INTERVAL;
        let mut found: Vec<Suppressed> = Vec::new();
        for table in [&mut self.peers, &mut self.zones] {
            let burst = table.burst;
            for bucket in table.buckets.values_mut().filter(|bucket| bucket.suppressed.is_some()) {
                bucket.refill(burst, now);
                if is_flush || bucket.tokens >= 1.0 {
                    found.extend(bucket.suppressed.take().map(|suppressed| *suppressed));
                }
            }
        }
        self.buckets_with_suppressed -= found.len();
        found.sort_by_key(|suppressed| std::cmp::Reverse(suppressed.lines));
        let rest: u64 = found.iter().skip(MAX_SUMMARIES).map(|suppressed| suppressed.lines).sum();
        found.truncate(MAX_SUMMARIES);
        if rest > 0 {
            found.push(Suppressed {
                level: Level::WARN,
                event: "several".to_owned(),
                source: None,
                lines: rest,
            });
        }
        found
    }
}

#[cfg(test)]
mod tests;
