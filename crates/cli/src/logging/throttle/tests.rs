use super::*;
use std::sync::Mutex;
use tracing::subscriber::with_default;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

/// Collects the keys of events.
#[derive(Default)]
struct Keys(std::sync::Arc<Mutex<Vec<Option<ThrottleKey>>>>);

impl<S: Subscriber> Layer<S> for Keys {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        self.0.lock().unwrap().push(ThrottleKey::of(event.metadata(), &Fields::of(event)));
    }
}

fn keys(log: impl FnOnce()) -> Vec<Option<ThrottleKey>> {
    let keys = Keys::default();
    let found = std::sync::Arc::clone(&keys.0);
    with_default(tracing_subscriber::registry().with(keys), log);
    std::mem::take(&mut *found.lock().unwrap())
}

/// The keys of one event with these peers.
fn of_peers(peers: &[&str]) -> Vec<ThrottleKey> {
    let log = || peers.iter().for_each(|peer| tracing::info!(peer, "transfer sent"));
    keys(log).into_iter().map(|key| key.expect("a peer")).collect()
}

fn admit(throttle: &mut Throttle, key: &ThrottleKey, now: Instant) -> Option<u64> {
    match throttle.admit(key, Level::INFO, &Fields::new("transfer sent".to_owned(), Vec::new()), now) {
        Verdict::Admitted { suppressed } => Some(suppressed),
        Verdict::Suppressed { .. } => None,
    }
}

#[test]
fn ports_of_peers_and_letter_case_of_zones_are_ignored() {
    let found = of_peers(&[
        "192.0.2.1:5",
        "192.0.2.1",
        "[::ffff:192.0.2.1]:6",
        "192.0.2.2",
        "2001:db8::1",
        "[2001:db8::2]:7",
    ]);
    let one = &found[0];
    assert!(found[1..3].iter().all(|key| key == one), "{found:?}");
    assert!(found[3] != *one && found[4] == found[5] && found[4] != found[3], "{found:?}");
    let found = keys(|| {
        for zone in ["a.example.", "A.example.", "b.example."] {
            tracing::warn!(zone, "zone {zone}: rejected");
        }
    });
    assert!(found[0].is_some() && found[0] == found[1] && found[1] != found[2], "{found:?}");
    let found = keys(|| {
        tracing::warn!("configuration");
        tracing::debug!(peer = "192.0.2.1", "details");
        tracing::warn!(target: "rustls::conn", "alert");
        tracing::warn!(target: "nonesuch_net", "own");
    });
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, false]);
}

#[test]
fn a_peer_has_a_burst_and_one_line_per_second_and_suppressed_lines_are_counted() {
    let now = Instant::now();
    let mut throttle = Throttle::new(now);
    let found = of_peers(&["192.0.2.1", "192.0.2.2"]);
    let lines = |throttle: &mut Throttle, at| {
        let admitted: Vec<u64> = (0..100_000).filter_map(|_| admit(throttle, &found[0], at)).collect();
        (admitted.len(), admitted.iter().sum::<u64>())
    };
    let burst = PEER_BURST as usize;
    assert_eq!(lines(&mut throttle, now), (burst, 0));
    assert_eq!(admit(&mut throttle, &found[1], now), Some(0), "another peer has lines of its own");
    let second = Duration::from_secs(1);
    let before = 100_000 - burst as u64;
    assert_eq!(lines(&mut throttle, now + second), (1, before));
    assert_eq!(lines(&mut throttle, now + second * 2), (1, 99_999));
    // After the event ends, a summary reports the rest.
    assert_eq!(throttle.summary_at(), Some(now + second * 2 + SUMMARY_INTERVAL));
    let summaries = throttle.summaries(false, now + second * 12);
    assert_eq!(summaries.len(), 1);
    let Suppressed { level, event, source, lines } = &summaries[0];
    assert_eq!(
        (*level, event.as_str(), source.as_deref()),
        (Level::INFO, "transfer sent", Some("192.0.2.1"))
    );
    assert_eq!(*lines, 99_999);
    assert_eq!((throttle.summary_at(), throttle.summaries(true, now + second * 13).len()), (None, 0));
}

#[test]
fn the_number_of_buckets_and_of_summaries_is_bounded() {
    let now = Instant::now();
    let mut throttle = Throttle::new(now);
    let of_number = |number: usize| {
        of_peers(&[&format!("10.{}.{}.{}", number >> 16, number >> 8 & 255, number & 255)]).remove(0)
    };
    let mut admitted = 0;
    for number in 0..MAX_PEERS + 1000 {
        let key = ThrottleKey { event: of_number(0).event, ..of_number(number) };
        admitted += (0..PEER_BURST + 1).filter(|_| admit(&mut throttle, &key, now).is_some()).count();
    }
    assert_eq!(admitted, (MAX_PEERS + 1) * PEER_BURST as usize);
    assert_eq!(throttle.peers.buckets.len(), MAX_PEERS + 1);
    let summaries = throttle.summaries(true, now);
    assert_eq!(summaries.len(), MAX_SUMMARIES + 1);
    let suppressed: u64 = summaries.iter().map(|suppressed| suppressed.lines).sum();
    let expected = (MAX_PEERS + 1000) as u64 * u64::from(PEER_BURST + 1) - admitted as u64;
    assert_eq!(suppressed, expected);
    // Buckets that are full again are removed to free disk space for others.
    let later = now + Duration::from_secs(u64::from(PEER_BURST) + 1);
    let key = ThrottleKey { event: of_number(0).event, ..of_number(MAX_PEERS + 2000) };
    assert_eq!(admit(&mut throttle, &key, later), Some(0));
    assert!(throttle.peers.buckets.len() < 10, "{}", throttle.peers.buckets.len());
}

#[test]
fn warnings_and_errors_are_counted_for_each_zone_and_other_lines_for_each_peer() {
    let (peer, of_zones) = ("192.0.2.1:53", ["a.example.", "b.example."]);
    let found = keys(|| {
        for zone in of_zones {
            tracing::warn!(zone, peer, "transfer failed");
        }
        for zone in of_zones {
            tracing::error!(zone, peer, "zone expired");
        }
        for zone in of_zones {
            tracing::info!(zone, peer, "transfer refused");
        }
        for _ in of_zones {
            tracing::warn!(peer, "message with TSIG refused");
        }
    });
    let sources: Vec<&Source> = found.iter().flatten().map(|key| &key.source).collect();
    let peer = Source::Peer("192.0.2.1".parse().unwrap());
    let [a, b] = of_zones.map(|zone| Source::Zone(zone.to_owned()));
    assert_eq!(sources, [&a, &b, &a, &b, &peer, &peer, &peer, &peer]);
}

#[test]
fn lines_about_the_members_of_a_catalog_are_counted_for_the_catalog() {
    let found = keys(|| {
        for number in 0..3 {
            let zone = format!("m{number}.example.");
            tracing::info!(zone, catalog = "Catalog.example.", "zone {zone}: removed from the catalog");
            tracing::error!(zone, catalog = "Catalog.example.", "zone {zone}: no template");
        }
    });
    let expected = Source::Zone("catalog.example.".to_owned());
    assert!(found.iter().all(|key| key.as_ref().unwrap().source == expected), "{found:?}");
}

#[test]
fn lines_that_share_a_bucket_name_no_source() {
    let now = Instant::now();
    let mut throttle = Throttle::new(now);
    let peers: Vec<String> =
        (0..=MAX_PEERS).map(|number| format!("10.{}.{}.1", number >> 8, number & 255)).collect();
    let peers: Vec<&str> = peers.iter().map(String::as_str).collect();
    for key in of_peers(&peers) {
        for _ in 0..=PEER_BURST {
            admit(&mut throttle, &key, now);
        }
    }
    let mut summaries = Vec::new();
    let table = &mut throttle.peers;
    for (key, bucket) in &mut table.buckets {
        let suppressed = bucket.suppressed.take().unwrap();
        assert_eq!(suppressed.source.is_none(), key.source == Source::Others, "{key:?}: {suppressed:?}");
        summaries.push(suppressed);
    }
    assert_eq!(summaries.len(), MAX_PEERS + 1);
}
