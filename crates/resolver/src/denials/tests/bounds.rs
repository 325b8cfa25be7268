//! The bounds of memory and entries.

use super::*;

fn cache_with(octets: usize, zone_entries_max: usize) -> DenialCache {
    let options = DenialCacheOptions { zone_entries_max, ..DenialCacheOptions::new(octets, [7; 16]) };
    DenialCache::new(options, at(0))
}

fn nsec(zone: &str, number: u32, ttl: u32) -> String {
    format!("n{number:06}.{zone} {ttl} NSEC n{number:06}x.{zone} A RRSIG NSEC")
}

#[test]
fn the_octets_stay_within_the_maximum() {
    const MAX: usize = 64 << 10;
    let cache = cache_with(MAX, 10_000);
    for number in 0..2000 {
        let zone = format!("z{}.", number % 50);
        assert_eq!(insert(&cache, &zone, &[&nsec(&zone, number, 900)], u64::from(number) / 10), 1);
        assert!(cache.statistics().octets <= MAX);
        // The newest record is present.
        let owner = format!("n{number:06}.{zone}");
        assert!(denied(&cache, &owner, Rtype::MX, u64::from(number) / 10).is_some());
    }
    let statistics = cache.statistics();
    assert!(statistics.octets > MAX * 9 / 10, "{statistics:?}");
    assert_eq!(statistics.entries as u64 + statistics.evictions, 2000);
    cache.flush_below(name(".").view());
    let statistics = cache.statistics();
    assert_eq!((statistics.octets, statistics.entries, statistics.zones), (0, 0, 0));
}

#[test]
fn expired_records_go_first_and_then_those_that_expire_first() {
    let cache = cache_with(4000, 100);
    let present =
        |number: u32, second| denied(&cache, &format!("n{number:06}.z."), Rtype::MX, second).is_some();
    insert(&cache, "z.", &[&nsec("z.", 1, 800), &nsec("z.", 2, 5), &nsec("z.", 3, 600)], 0);
    // The maximum is reached between one and ten further records.
    let mut number = 4;
    while cache.statistics().evictions < 2 {
        insert(&cache, "z.", &[&nsec("z.", number, 900)], 6);
        if cache.statistics().evictions == 1 {
            assert!(present(1, 6) && present(3, 6));
        }
        number += 1;
    }
    assert!(number < 14 && present(1, 6) && !present(3, 6));
}

#[test]
fn the_entries_of_a_zone_are_limited() {
    let cache = cache_with(1 << 20, 10);
    for number in 0..100 {
        insert(&cache, "z.", &[&nsec("z.", number, 900)], u64::from(number));
        assert!(cache.statistics().entries <= 10);
    }
    assert_eq!((cache.statistics().entries, cache.statistics().evictions), (10, 90));
    assert!(denied(&cache, "n000090.z.", Rtype::MX, 100).is_some());
    assert!(denied(&cache, "n000089.z.", Rtype::MX, 100).is_none());
}

#[test]
fn large_entries_are_not_inserted() {
    let cache = cache_with(1 << 20, 10);
    let mut large = rrset(&[&nsec("z.", 1, 900)]);
    large.signatures.push(&[0; 16_500]);
    assert_eq!(cache.insert(&keys("z."), &[large, soa("z.", 900, 900)], &mut Budget::default(), at(0)), 0);
    let tiny = cache_with(500, 10);
    assert_eq!(insert(&tiny, "z.", &[&nsec("z.", 1, 900)], 0), 0);
    assert_eq!(tiny.statistics().octets, 0);
}

#[test]
fn workers_share_a_cache() {
    const MAX: usize = 128 << 10;
    let cache = cache_with(MAX, 50);
    std::thread::scope(|scope| {
        for worker in 0..4u32 {
            let cache = &cache;
            scope.spawn(move || {
                for number in 0..500 {
                    let zone = format!("z{}.", (number * 7 + worker) % 20);
                    insert(cache, &zone, &[&nsec(&zone, number, 900)], u64::from(number) / 10);
                    assert!(cache.statistics().octets <= MAX);
                    let _ = prove(cache, &format!("n{number:06}.{zone}"), Rtype::MX, 0);
                    if number % 100 == 99 {
                        cache.flush_below(name(&zone).view());
                    }
                }
            });
        }
    });
    cache.flush_below(name(".").view());
    let statistics = cache.statistics();
    assert_eq!((statistics.octets, statistics.entries, statistics.zones), (0, 0, 0));
}
