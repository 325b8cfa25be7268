//! The resident memory of a cache of denials under load. This test has its own process, so that no
//! other test allocates meanwhile.

use nonesuch_dnssec::validate::{Budget, TrustedKeys, ValidationLimits};
use nonesuch_net::machine::Now;
use nonesuch_proto::{Class, Name, NameRef, Rtype, bitmap};
use nonesuch_resolver::{DenialCache, DenialCacheOptions, RecordData, Rrset, Security};
use std::time::Instant;

/// Returns the octets of resident memory of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

fn rrset(owner: Name, rtype: Rtype, rdata: &[u8], signature: usize) -> Rrset {
    let records: RecordData = [rdata].into_iter().collect();
    let signatures: RecordData = [vec![0; signature].as_slice()].into_iter().collect();
    let security = Security::Secure;
    Rrset { owner, rtype, class: Class::IN, ttl: 3600, records, signatures, security, insecure: None }
}

#[test]
fn resident_memory_stays_within_the_bound() {
    const BOUND: usize = 16 << 20;
    let now = Now { instant: Instant::now(), unix: 0 };
    let before = resident();
    let cache = DenialCache::new(DenialCacheOptions::new(BOUND, [5; 16]), now);
    let mut soa = vec![0; 2];
    soa.extend([0, 0, 14, 16].repeat(5));
    let mut map = Vec::new();
    bitmap::push(&[Rtype::A, Rtype::RRSIG, Rtype::NSEC], &mut map);
    // Four times the number of records that fit, in zones of up to 1,000 records.
    for number in 0..120_000u32 {
        let zone = Name::prepend(format!("z{}", number / 1000).as_bytes(), NameRef::ROOT).unwrap();
        let label = |text: &str| Name::prepend(text.as_bytes(), zone.view()).unwrap();
        let (owner, next) = (label(&format!("n{number:07}")), label(&format!("n{number:07}x")));
        let rdata = [next.wire(), map.as_slice()].concat();
        let signature = 64 + (number as usize * 37) % 256;
        let soa = rrset(zone.clone(), Rtype::SOA, &soa, signature);
        let keys = TrustedKeys::new(&zone, [], &ValidationLimits::default());
        assert_eq!(
            cache.insert(
                &keys,
                &[rrset(owner, Rtype::NSEC, &rdata, signature), soa],
                &mut Budget::default(),
                now
            ),
            1
        );
    }
    let used = resident() - before;
    let statistics = cache.statistics();
    assert!(statistics.octets <= BOUND && statistics.evictions > 0);
    assert!(used <= BOUND * 105 / 100, "{used} octets of {BOUND}");
    assert!(used >= BOUND / 2, "{used} octets of {BOUND}: the cache is not in use");
    println!("{used} octets of {BOUND}; {statistics:?}");
}
