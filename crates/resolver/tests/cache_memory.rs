//! The resident memory of a cache under load. This test has its own process, so that no other test
//! allocates meanwhile.

use nonesuch_net::machine::Now;
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use nonesuch_resolver::cache::{Insertion, NegativeKind, Rank, Source};
use nonesuch_resolver::{Cache, CacheOptions, RecordData, Rrset, Security};
use std::time::Instant;

/// Returns the octets of resident memory of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

fn rrset(owner: Name, rtype: Rtype, rdata: &[u8]) -> Rrset {
    let records: RecordData = [rdata].into_iter().collect();
    Rrset {
        owner,
        rtype,
        class: Class::IN,
        ttl: 3600,
        records,
        signatures: RecordData::default(),
        security: Security::Unchecked,
        insecure: None,
    }
}

#[test]
fn resident_memory_stays_within_105_percent_of_the_bound() {
    const BOUND: usize = 32 << 20;
    let now = Now { instant: Instant::now(), unix: 0 };
    let before = resident();
    let cache = Cache::new(CacheOptions::new(BOUND, [5; 16]), now);
    let rdata = [7; 1000];
    let soa = rrset(Name::root(), Rtype::SOA, &rdata[..100]);
    // More than three times the bound, in entries of all sizes.
    let mut octets = 0;
    for number in 0u32.. {
        if octets > 7 * BOUND / 2 {
            break;
        }
        let length = (number as usize * 37) % rdata.len();
        let owner = Name::prepend(format!("n{number}").as_bytes(), NameRef::ROOT).unwrap();
        let inserted = if number % 4 == 0 {
            let kind = NegativeKind::NoData(Rtype::A);
            cache.insert_negative(owner.view(), Class::IN, kind, std::slice::from_ref(&soa), now)
        } else {
            let source = Source { rank: Rank::AnswerAa, within: None };
            cache.insert_rrset(&rrset(owner, Rtype::TXT, &rdata[..length]), source, now)
        };
        assert_eq!(inserted, Insertion::Stored);
        octets += length;
    }
    let used = resident() - before;
    assert!(used <= BOUND * 105 / 100, "{used} octets of {BOUND}");
    assert!(used >= BOUND * 80 / 100, "{used} octets of {BOUND}: the cache is not in use");
    assert!(cache.statistics().octets as usize <= BOUND);
    assert!(cache.statistics().evictions > 0);
}
