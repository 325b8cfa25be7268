use super::*;
use crate::record::{Rrset, Security};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::OnceLock;

/// Returns the time `second` seconds after the creation of all caches of the tests.
fn at(second: u64) -> Now {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    Now { instant: start + Duration::from_secs(second), unix: 1_700_000_000 + second }
}

fn cache_with(change: impl FnOnce(&mut CacheOptions)) -> Cache {
    let mut options = CacheOptions::new(1 << 20, [3; 16]);
    change(&mut options);
    Cache::new(options, at(0))
}

fn cache() -> Cache {
    cache_with(|_| {})
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// An RRset with one record for each number.
fn rrset(owner: &str, rtype: Rtype, ttl: u32, records: &[u8]) -> Rrset {
    let records: Vec<[u8; 1]> = records.iter().map(|record| [*record]).collect();
    Rrset {
        owner: name(owner),
        rtype,
        class: Class::IN,
        ttl,
        records: records.iter().map(|record| &record[..]).collect(),
        signatures: [&b"signature"[..]].into_iter().collect(),
        security: Security::Unchecked,
        insecure: None,
    }
}

fn soa(owner: &str, ttl: u32, minimum: u32) -> Rrset {
    let mut rdata = vec![0; 18];
    rdata.extend_from_slice(&minimum.to_be_bytes());
    let mut soa = rrset(owner, Rtype::SOA, ttl, &[]);
    soa.records.push(&rdata);
    soa
}

const fn from(rank: Rank) -> Source {
    Source { rank, within: None }
}

fn insert(cache: &Cache, rrset: &Rrset, rank: Rank, second: u64) -> Insertion {
    cache.insert_rrset(rrset, from(rank), at(second))
}

fn lookup(cache: &Cache, owner: &str, rtype: Rtype, second: u64) -> Option<Cached> {
    cache.rrset(name(owner).view(), rtype, Class::IN, Rank::Additional, at(second))
}

/// Returns the records and the TTL of an RRset.
fn records(cache: &Cache, owner: &str, rtype: Rtype, second: u64) -> Option<(Vec<u8>, u32)> {
    let rrset = lookup(cache, owner, rtype, second)?.rrset;
    Some((rrset.records.iter().map(|record| record[0]).collect(), rrset.ttl))
}

fn deny(cache: &Cache, owner: &str, kind: NegativeKind, authority: &[Rrset], second: u64) -> Insertion {
    cache.insert_negative(name(owner).view(), Class::IN, kind, authority, at(second))
}

fn negative(cache: &Cache, owner: &str, rtype: Rtype, second: u64) -> Option<Negative> {
    cache.negative(name(owner).view(), rtype, Class::IN, at(second))
}

fn question(owner: &str, rtype: Rtype) -> Question {
    Question { name: name(owner), rtype, class: Class::IN, checking_disabled: false }
}

fn answer(cache: &Cache, owner: &str, rtype: Rtype, second: u64) -> Option<CachedAnswer> {
    cache.answer(&question(owner, rtype), at(second))
}

mod rrsets {
    use super::*;

    #[test]
    fn an_rrset_is_returned_with_its_owner_as_inserted_and_the_remaining_ttl() {
        let cache = cache();
        let inserted = rrset("WWW.Example", Rtype::A, 300, &[1, 2]);
        assert_eq!(insert(&cache, &inserted, Rank::AnswerAa, 10), Insertion::Stored);
        let found = lookup(&cache, "www.eXample", Rtype::A, 110).unwrap();
        assert_eq!(found.rrset.owner.wire(), inserted.owner.wire());
        assert_eq!(found.rrset, Rrset { ttl: 200, ..inserted });
        assert_eq!((found.rank, found.ttl_inserted, found.expires), (Rank::AnswerAa, 300, at(310).instant));
        assert_eq!(lookup(&cache, "www.example", Rtype::A, 309).unwrap().rrset.ttl, 1);
        assert_eq!(lookup(&cache, "www.example", Rtype::A, 310), None);
        assert_eq!(lookup(&cache, "www.example", Rtype::AAAA, 10), None);
        assert_eq!(
            cache.rrset(name("www.example").view(), Rtype::A, Class::CH, Rank::Additional, at(10)),
            None
        );
    }

    #[test]
    fn data_expire_up_to_a_second_early_and_never_late() {
        let cache = cache();
        let after = |millis| Now { instant: at(0).instant + Duration::from_millis(millis), unix: 0 };
        cache.insert_rrset(&rrset("a", Rtype::A, 2, &[1]), from(Rank::AnswerAa), after(1900));
        let is_present = |millis| {
            cache.rrset(name("a").view(), Rtype::A, Class::IN, Rank::Additional, after(millis)).is_some()
        };
        assert_eq!([1900, 2999, 3000].map(is_present), [true, true, false]);
    }

    #[test]
    fn a_time_before_the_creation_is_that_of_the_creation() {
        let cache = Cache::new(CacheOptions::new(1 << 20, [3; 16]), at(100));
        insert(&cache, &rrset("a", Rtype::A, 10, &[1]), Rank::AnswerAa, 50);
        assert_eq!(records(&cache, "a", Rtype::A, 50), Some((vec![1], 10)));
        assert_eq!(records(&cache, "a", Rtype::A, 110), None);
    }

    #[test]
    fn ttls_have_bounds_and_a_ttl_of_zero_is_not_cached() {
        let cache = cache();
        let ttl = |cache: &Cache, ttl| {
            insert(cache, &rrset("a", Rtype::A, ttl, &[1]), Rank::AnswerAa, 0);
            lookup(cache, "a", Rtype::A, 0).map(|found| found.rrset.ttl)
        };
        assert_eq!(ttl(&cache, 0), None);
        assert_eq!(insert(&cache, &rrset("a", Rtype::A, 0, &[1]), Rank::AnswerAa, 0), Insertion::Expired);
        assert_eq!(ttl(&cache, u32::MAX), Some(86_400));
        assert_eq!(ttl(&cache_with(|options| options.ttl_min = 60), 0), Some(60));
    }

    #[test]
    fn an_rrset_above_a_limit_is_not_cached() {
        let cache = cache();
        let mut large = rrset("a", Rtype::TXT, 300, &[0; 100]);
        assert_eq!(insert(&cache, &large, Rank::AnswerAa, 0), Insertion::Stored);
        large.records.push(b"x");
        assert_eq!(insert(&cache, &large, Rank::AnswerAa, 0), Insertion::TooManyRecords);
        let mut signed = rrset("a", Rtype::A, 300, &[1]);
        (0..100).for_each(|_| signed.signatures.push(b"x"));
        assert_eq!(insert(&cache, &signed, Rank::AnswerAa, 0), Insertion::TooManyRecords);
        let mut long = rrset("b", Rtype::TXT, 300, &[]);
        assert_eq!(insert(&cache, &long, Rank::AnswerAa, 0), Insertion::NotCacheable);
        long.records.push(&[0; 65_535]);
        assert_eq!(insert(&cache, &long, Rank::AnswerAa, 0), Insertion::TooLarge);
        let meta = rrset("b", Rtype::ANY, 300, &[1]);
        assert_eq!(insert(&cache, &meta, Rank::AnswerAa, 0), Insertion::NotCacheable);
    }

    #[test]
    fn a_name_has_at_most_100_entries() {
        let cache = cache();
        for rtype in 1000..1100 {
            let rrset = rrset("a", Rtype(rtype), 300, &[1]);
            assert_eq!(insert(&cache, &rrset, Rank::AnswerAa, 0), Insertion::Stored);
        }
        assert_eq!(
            insert(&cache, &rrset("a", Rtype::A, 300, &[1]), Rank::AnswerAa, 0),
            Insertion::TooManyTypes
        );
        let denied = deny(&cache, "a", NegativeKind::NoData(Rtype::A), &[soa("a", 9, 9)], 0);
        assert_eq!(denied, Insertion::TooManyTypes);
        assert_eq!(
            cache.insert_failure(&question("a", Rtype::A), FailureCause::Resolution, (22, "text"), at(0)),
            0
        );
        // Expired entries do not count, and other names are not concerned.
        assert_eq!(insert(&cache, &rrset("b", Rtype::A, 300, &[1]), Rank::AnswerAa, 0), Insertion::Stored);
        assert_eq!(insert(&cache, &rrset("a", Rtype::A, 300, &[1]), Rank::AnswerAa, 300), Insertion::Stored);
    }

    #[test]
    fn only_data_of_the_same_or_a_higher_rank_replace_unexpired_data() {
        let ranks = [Rank::Additional, Rank::Referral, Rank::Answer, Rank::AuthorityAa, Rank::AnswerAa];
        for old in ranks {
            for new in ranks {
                let cache = cache();
                insert(&cache, &rrset("a", Rtype::A, 100, &[1]), old, 0);
                let result = insert(&cache, &rrset("a", Rtype::A, 900, &[2]), new, 50);
                let expected = if new >= old {
                    (Insertion::Stored, (vec![2], 900))
                } else {
                    (Insertion::Outranked, (vec![1], 50))
                };
                assert_eq!(
                    (result, records(&cache, "a", Rtype::A, 50).unwrap()),
                    expected,
                    "{old:?} {new:?}"
                );
                insert(&cache, &rrset("b", Rtype::A, 100, &[1]), old, 0);
                insert(&cache, &rrset("b", Rtype::A, 900, &[2]), new, 100);
                assert_eq!(records(&cache, "b", Rtype::A, 100), Some((vec![2], 900)), "{old:?} {new:?}");
            }
        }
    }

    #[test]
    fn glue_and_referrals_do_not_answer_clients() {
        for (rank, is_answer) in [
            (Rank::Additional, false),
            (Rank::Referral, false),
            (Rank::Answer, true),
            (Rank::AuthorityAa, true),
            (Rank::AnswerAa, true),
        ] {
            let cache = cache();
            insert(&cache, &rrset("a", Rtype::A, 100, &[1]), rank, 0);
            assert!(lookup(&cache, "a", Rtype::A, 0).is_some());
            let found = cache.rrset(name("a").view(), Rtype::A, Class::IN, Rank::CLIENT_MIN, at(0));
            assert_eq!((found.is_some(), answer(&cache, "a", Rtype::A, 0).is_some()), (is_answer, is_answer));
        }
    }
}

mod delegations {
    use super::*;

    fn closest(cache: &Cache, owner: &str, second: u64) -> Option<String> {
        let found = cache.closest_delegation(name(owner).view(), Class::IN, at(second));
        found.map(|found| found.rrset.owner.to_string())
    }

    #[test]
    fn the_closest_unexpired_delegation_at_or_above_a_name_is_found() {
        let cache = cache();
        assert_eq!(closest(&cache, "www.example.com", 0), None);
        for (owner, ttl) in [(".", 900), ("com", 800), ("Example.com", 100)] {
            insert(&cache, &rrset(owner, Rtype::NS, ttl, &[1]), Rank::Referral, 0);
        }
        assert_eq!(closest(&cache, "a.b.www.example.COM", 0).as_deref(), Some("Example.com."));
        assert_eq!(closest(&cache, "example.com", 0).as_deref(), Some("Example.com."));
        assert_eq!(closest(&cache, "xexample.com", 0).as_deref(), Some("com."));
        assert_eq!(closest(&cache, "example.com", 100).as_deref(), Some("com."));
        assert_eq!(closest(&cache, "com", 800).as_deref(), Some("."));
        assert_eq!(closest(&cache, ".", 899).as_deref(), Some("."));
        assert_eq!(closest(&cache, ".", 900), None);
    }

    #[test]
    fn the_zones_own_ns_rrset_replaces_that_of_the_parent_and_does_not_outlive_it() {
        let cache = cache();
        insert(&cache, &rrset("ghost", Rtype::NS, 100, &[1]), Rank::Referral, 0);
        // Jiang et al.: the child repeats its NS RRset under new server names before it expires.
        for second in [10, 50, 90, 99] {
            let owned = rrset("ghost", Rtype::NS, 86_400, &[second as u8]);
            assert_eq!(insert(&cache, &owned, Rank::AnswerAa, second), Insertion::Stored);
            let expected = (vec![second as u8], 100 - second as u32);
            assert_eq!(records(&cache, "ghost", Rtype::NS, second), Some(expected));
        }
        assert_eq!(closest(&cache, "ghost", 100), None);
    }

    #[test]
    fn a_repeated_referral_does_not_extend_a_delegation_either() {
        let cache = cache();
        insert(&cache, &rrset("a", Rtype::NS, 100, &[1]), Rank::Referral, 0);
        insert(&cache, &rrset("a", Rtype::NS, 100, &[1]), Rank::Referral, 50);
        assert_eq!(records(&cache, "a", Rtype::NS, 50), Some((vec![1], 50)));
    }

    #[test]
    fn the_zones_own_ns_rrset_may_expire_before_that_of_the_parent() {
        let cache = cache();
        insert(&cache, &rrset("a", Rtype::NS, 100, &[1]), Rank::Referral, 0);
        insert(&cache, &rrset("a", Rtype::NS, 20, &[2]), Rank::AuthorityAa, 10);
        assert_eq!(closest(&cache, "a", 29).as_deref(), Some("a."));
        assert_eq!(closest(&cache, "a", 30), None);
    }

    #[test]
    fn an_ns_rrset_does_not_outlive_the_delegation_that_led_to_it() {
        let cache = cache();
        insert(&cache, &rrset("ghost", Rtype::NS, 100, &[1]), Rank::Referral, 0);
        let within = lookup(&cache, "ghost", Rtype::NS, 50).map(|found| found.expires);
        // Li et al.: names below the zone, delegated to servers of the attacker.
        let below = rrset("phoenix.ghost", Rtype::NS, 86_400, &[1]);
        let source = Source { rank: Rank::Referral, within };
        assert_eq!(cache.insert_rrset(&below, source, at(50)), Insertion::Stored);
        assert_eq!(records(&cache, "phoenix.ghost", Rtype::NS, 50), Some((vec![1], 50)));
        // Li et al.: the response arrives when the delegation has just expired.
        let own = rrset("ghost", Rtype::NS, 86_400, &[2]);
        let source = Source { rank: Rank::AnswerAa, within };
        assert_eq!(cache.insert_rrset(&own, source, at(100)), Insertion::Expired);
        assert_eq!(closest(&cache, "www.phoenix.ghost", 100), None);
    }

    #[test]
    fn data_of_other_types_are_extended() {
        let cache = cache();
        insert(&cache, &rrset("a", Rtype::A, 100, &[1]), Rank::AnswerAa, 0);
        insert(&cache, &rrset("a", Rtype::A, 100, &[1]), Rank::AnswerAa, 50);
        assert_eq!(records(&cache, "a", Rtype::A, 50), Some((vec![1], 100)));
    }
}

mod negatives {
    use super::*;

    #[test]
    fn a_negative_answer_has_the_lowest_ttl_and_its_authority_section() {
        let cache = cache();
        let authority = [soa("example", 900, 300), rrset("a.example", Rtype::NSEC, 600, &[1])];
        assert_eq!(
            deny(&cache, "B.example", NegativeKind::NoData(Rtype::A), &authority, 0),
            Insertion::Stored
        );
        let found = negative(&cache, "b.example", Rtype::A, 100).unwrap();
        assert_eq!(
            (found.name.to_string().as_str(), found.kind),
            ("B.example.", NegativeKind::NoData(Rtype::A))
        );
        assert_eq!(found.ttl, 200);
        let expected = authority.map(|rrset| Rrset { ttl: 200, ..rrset });
        assert_eq!(found.authority, expected);
        assert_eq!(negative(&cache, "b.example", Rtype::AAAA, 100), None);
        assert_eq!(negative(&cache, "b.example", Rtype::A, 300), None);
    }

    #[test]
    fn each_ttl_of_a_negative_answer_bounds_it() {
        for (soa_ttl, minimum, nsec_ttl, expected) in
            [(9, 20, 20, 9), (20, 9, 20, 9), (20, 20, 9, 9), (90_000, 90_000, 90_000, 3600)]
        {
            let cache = cache();
            let authority =
                [rrset("a.example", Rtype::NSEC, nsec_ttl, &[1]), soa("example", soa_ttl, minimum)];
            deny(&cache, "b.example", NegativeKind::NxDomain, &authority, 0);
            assert_eq!(negative(&cache, "b.example", Rtype::A, 0).unwrap().ttl, expected);
        }
        let zero = deny(&cache(), "a.example", NegativeKind::NxDomain, &[soa("example", 9, 0)], 0);
        assert_eq!(zero, Insertion::Expired);
    }

    #[test]
    fn negative_answers_without_a_suitable_soa_record_are_not_cached() {
        let (cache, kind) = (cache(), NegativeKind::NxDomain);
        let mut short = soa("example", 9, 9);
        short.records = [&[0; 21][..]].into_iter().collect();
        let mut chaos = soa("example", 9, 9);
        chaos.class = Class::CH;
        let cases: [&[Rrset]; 5] =
            [&[], &[rrset("example", Rtype::NSEC, 9, &[1])], &[soa("other", 9, 9)], &[short], &[chaos]];
        for authority in cases {
            assert_eq!(deny(&cache, "a.example", kind, authority, 0), Insertion::NotCacheable);
        }
        assert_eq!(deny(&cache, ".", kind, &[soa(".", 9, 9)], 0), Insertion::NotCacheable);
        let kind = NegativeKind::NoData(Rtype::MX);
        assert_eq!(deny(&cache, ".", kind, &[soa(".", 9, 9)], 0), Insertion::Stored);
    }

    #[test]
    fn a_negative_answer_above_a_limit_is_not_cached() {
        let (cache, kind) = (cache(), NegativeKind::NxDomain);
        let many = rrset("example", Rtype::NSEC, 9, &[0; 101]);
        assert_eq!(
            deny(&cache, "a.example", kind, &[soa("example", 9, 9), many], 0),
            Insertion::TooManyRecords
        );
        let mut large = rrset("example", Rtype::NSEC, 9, &[]);
        large.records.push(&[0; 50_000]);
        assert_eq!(deny(&cache, "a.example", kind, &[soa("example", 9, 9), large], 0), Insertion::TooLarge);
    }

    #[test]
    fn a_missing_name_denies_all_types_and_the_names_below_it() {
        for uses_nxdomain_cut in [true, false] {
            let cache = cache_with(|options| options.uses_nxdomain_cut = uses_nxdomain_cut);
            deny(&cache, "b.example", NegativeKind::NxDomain, &[soa("example", 9, 9)], 0);
            assert!(negative(&cache, "b.example", Rtype(1234), 0).is_some());
            let below = negative(&cache, "x.y.B.example", Rtype::A, 0);
            assert_eq!(
                below.as_ref().map(|found| found.kind),
                uses_nxdomain_cut.then_some(NegativeKind::NxDomain)
            );
            assert_eq!(below.map(|found| found.name), uses_nxdomain_cut.then(|| name("b.example")));
            assert_eq!(negative(&cache, "x.y.b.example", Rtype::A, 9), None);
            assert_eq!(negative(&cache, "example", Rtype::A, 0), None);
            assert_eq!(negative(&cache, "bb.example", Rtype::A, 0), None);
        }
    }

    #[test]
    fn a_missing_type_denies_nothing_below_it() {
        let cache = cache();
        deny(&cache, "b.example", NegativeKind::NoData(Rtype::A), &[soa("example", 9, 9)], 0);
        assert_eq!(negative(&cache, "x.b.example", Rtype::A, 0), None);
    }

    #[test]
    fn data_for_clients_replace_denials_and_glue_does_not() {
        let cache = cache();
        let soa = [soa("example", 99, 99)];
        deny(&cache, "a.example", NegativeKind::NoData(Rtype::A), &soa, 0);
        deny(&cache, "b.example", NegativeKind::NxDomain, &soa, 0);
        for (owner, rank) in [("a.example", Rank::Additional), ("b.example", Rank::Referral)] {
            insert(&cache, &rrset(owner, Rtype::A, 99, &[1]), rank, 0);
            assert!(matches!(answer(&cache, owner, Rtype::A, 0), Some(CachedAnswer::Negative(_))));
            insert(&cache, &rrset(owner, Rtype::A, 99, &[1]), Rank::AnswerAa, 0);
            assert_eq!(negative(&cache, owner, Rtype::A, 0), None);
        }
    }

    #[test]
    fn a_denial_replaces_data_for_clients_but_neither_glue_nor_delegations() {
        for kind in [NegativeKind::NxDomain, NegativeKind::NoData(Rtype::A), NegativeKind::NoData(Rtype::NS)]
        {
            let cache = cache();
            insert(&cache, &rrset("a.example", Rtype::A, 99, &[1]), Rank::AnswerAa, 0);
            insert(&cache, &rrset("a.example", Rtype::AAAA, 99, &[1]), Rank::Additional, 0);
            insert(&cache, &rrset("a.example", Rtype::NS, 99, &[1]), Rank::AuthorityAa, 0);
            deny(&cache, "a.example", kind, &[soa("example", 99, 99)], 0);
            let is_present = |rtype| lookup(&cache, "a.example", rtype, 0).is_some();
            let keeps_a = kind == NegativeKind::NoData(Rtype::NS);
            assert_eq!([Rtype::A, Rtype::AAAA, Rtype::NS].map(is_present), [keeps_a, true, true]);
        }
    }

    #[test]
    fn the_newer_denial_of_a_name_replaces_the_older_one() {
        let cache = cache();
        let soa = [soa("example", 99, 99)];
        let kinds = [NegativeKind::NxDomain, NegativeKind::NoData(Rtype::A), NegativeKind::NxDomain];
        for kind in kinds {
            deny(&cache, "a.example", kind, &soa, 0);
            assert_eq!(negative(&cache, "a.example", Rtype::A, 0).unwrap().kind, kind);
            assert_eq!(cache.statistics().entries, 1);
        }
    }
}

mod failures {
    use super::*;

    fn fail(cache: &Cache, cause: FailureCause, second: u64) -> u32 {
        cache.insert_failure(&question("a.example", Rtype::A), cause, (22, "text"), at(second))
    }

    #[test]
    fn consecutive_failures_are_cached_for_twice_the_time_each_up_to_five_minutes() {
        let cache = cache();
        let mut second = 7;
        for expected in [5, 10, 20, 40, 80, 160, 300, 300] {
            assert_eq!(fail(&cache, FailureCause::Resolution, second), expected);
            let found = cache.failure(&question("A.example", Rtype::A), at(second)).unwrap();
            assert_eq!((found.code, found.ttl, found.cause), (22, expected, FailureCause::Resolution));
            // The failure of another worker meanwhile has no effect.
            assert_eq!(fail(&cache, FailureCause::Resolution, second + 1), expected - 1);
            second += u64::from(expected);
            assert_eq!(cache.failure(&question("a.example", Rtype::A), at(second)), None);
        }
        assert_eq!(fail(&cache, FailureCause::Resolution, second + 300), 300);
        assert_eq!(fail(&cache, FailureCause::Resolution, second + 600 + 301), 5);
    }

    #[test]
    fn an_answer_ends_the_failures_of_its_type() {
        let soa = [soa("example", 9, 9)];
        let answers: [&dyn Fn(&Cache); 3] = [
            &|cache| {
                assert_eq!(
                    insert(cache, &rrset("a.example", Rtype::A, 9, &[1]), Rank::AnswerAa, 6),
                    Insertion::Stored
                )
            },
            &|cache| {
                assert_eq!(
                    deny(cache, "a.example", NegativeKind::NoData(Rtype::A), &soa, 6),
                    Insertion::Stored
                )
            },
            &|cache| assert_eq!(deny(cache, "a.example", NegativeKind::NxDomain, &soa, 6), Insertion::Stored),
        ];
        for succeed in answers {
            let cache = cache();
            assert_eq!(fail(&cache, FailureCause::Resolution, 0), 5);
            assert_eq!(fail(&cache, FailureCause::Validation, 0), 5);
            succeed(&cache);
            assert_eq!(cache.statistics().entries, 1);
            assert_eq!(fail(&cache, FailureCause::Resolution, 20), 5);
        }
    }

    #[test]
    fn a_failure_to_validate_does_not_hold_with_the_cd_bit() {
        let cache = cache();
        fail(&cache, FailureCause::Validation, 0);
        let asked = question("a.example", Rtype::A);
        let disabled = Question { checking_disabled: true, ..asked.clone() };
        assert_eq!(cache.failure(&asked, at(0)).unwrap().cause, FailureCause::Validation);
        assert_eq!((cache.failure(&disabled, at(0)), cache.answer(&disabled, at(0))), (None, None));
        fail(&cache, FailureCause::Resolution, 0);
        assert_eq!(cache.failure(&disabled, at(0)).unwrap().cause, FailureCause::Resolution);
        assert!(matches!(cache.answer(&disabled, at(0)), Some(CachedAnswer::Failure(_))));
    }

    #[test]
    fn a_failure_holds_for_its_name_and_type_only() {
        let cache = cache();
        fail(&cache, FailureCause::Resolution, 0);
        for (owner, rtype) in [("a.example", Rtype::AAAA), ("b.a.example", Rtype::A), ("example", Rtype::A)] {
            assert_eq!(cache.failure(&question(owner, rtype), at(0)), None);
        }
    }
}

mod answers {
    use super::*;

    #[test]
    fn an_alias_answers_other_types() {
        let cache = cache();
        insert(&cache, &rrset("a.example", Rtype::CNAME, 9, &[1]), Rank::AnswerAa, 0);
        assert!(matches!(answer(&cache, "a.example", Rtype::A, 0), Some(CachedAnswer::Alias(_))));
        assert!(matches!(answer(&cache, "a.example", Rtype::CNAME, 0), Some(CachedAnswer::Rrset(_))));
        assert_eq!(answer(&cache, "a.example", Rtype::NSEC, 0), None);
        assert_eq!(answer(&cache, "a.example", Rtype::ANY, 0), None);
    }

    #[test]
    fn data_come_before_denials_and_denials_before_failures() {
        let cache = cache();
        let resolution = FailureCause::Resolution;
        cache.insert_failure(&question("b.a.example", Rtype::A), resolution, (22, "text"), at(0));
        assert!(matches!(answer(&cache, "b.a.example", Rtype::A, 0), Some(CachedAnswer::Failure(_))));
        deny(&cache, "a.example", NegativeKind::NxDomain, &[soa("example", 9, 9)], 0);
        assert!(matches!(answer(&cache, "b.a.example", Rtype::A, 0), Some(CachedAnswer::Negative(_))));
        insert(&cache, &rrset("b.a.example", Rtype::A, 9, &[1]), Rank::AnswerAa, 0);
        assert!(matches!(answer(&cache, "b.a.example", Rtype::A, 0), Some(CachedAnswer::Rrset(_))));
    }

    #[test]
    fn lookups_count_once_as_hit_or_miss() {
        let cache = cache();
        assert_eq!(answer(&cache, "x.y.example", Rtype::A, 0), None);
        assert_eq!(cache.closest_delegation(name("x.y.example").view(), Class::IN, at(0)), None);
        assert_eq!((cache.statistics().hits, cache.statistics().misses), (0, 1));
        deny(&cache, "y.example", NegativeKind::NxDomain, &[soa("example", 9, 9)], 0);
        assert!(answer(&cache, "x.y.example", Rtype::A, 0).is_some());
        assert_eq!((cache.statistics().hits, cache.statistics().misses), (1, 1));
        assert_eq!((cache.statistics().insertions, cache.statistics().entries), (1, 1));
    }
}

mod flushing {
    use super::*;

    #[test]
    fn a_name_or_all_names_below_it_are_removed() {
        let cache = cache();
        let fill = || {
            for owner in ["Example", "a.example", "b.A.example", "xa.example", "other"] {
                insert(&cache, &rrset(owner, Rtype::A, 99, &[1]), Rank::AnswerAa, 0);
                insert(&cache, &rrset(owner, Rtype::NS, 99, &[1]), Rank::AnswerAa, 0);
            }
        };
        fill();
        assert_eq!(cache.flush(name("A.example").view(), at(0)), 2);
        assert_eq!(lookup(&cache, "a.example", Rtype::A, 0), None);
        assert!(lookup(&cache, "b.a.example", Rtype::A, 0).is_some());
        fill();
        assert_eq!(cache.flush_below(name("a.Example").view()), 4);
        assert_eq!(lookup(&cache, "b.a.example", Rtype::A, 0), None);
        assert!(lookup(&cache, "xa.example", Rtype::A, 0).is_some());
        assert_eq!(cache.flush_below(NameRef::ROOT), 6);
        assert_eq!(cache.statistics().entries, 0);
    }

    #[test]
    fn the_delegation_is_learnt_anew_after_a_flush() {
        let cache = cache();
        insert(&cache, &rrset("a", Rtype::NS, 9, &[1]), Rank::Referral, 0);
        cache.flush(name("a").view(), at(0));
        insert(&cache, &rrset("a", Rtype::NS, 99, &[1]), Rank::Referral, 0);
        assert_eq!(records(&cache, "a", Rtype::NS, 0), Some((vec![1], 99)));
    }
}

/// An insertion of an NS RRset for one of a chain of names, or time that passes.
#[derive(Clone, Debug)]
enum Ghost {
    Refer { depth: usize, ttl: u32 },
    Answer { depth: usize, ttl: u32 },
    Wait(u64),
}

fn ghost_step() -> impl Strategy<Value = Ghost> {
    let ttl = 1u32..100;
    prop_oneof![
        (1usize..4, ttl.clone()).prop_map(|(depth, ttl)| Ghost::Refer { depth, ttl }),
        (1usize..4, ttl).prop_map(|(depth, ttl)| Ghost::Answer { depth, ttl }),
        (0u64..40).prop_map(Ghost::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// After the root stops to refer to a zone, no sequence of responses of its servers, and of
    /// servers below it, keeps a delegation for longer than the TTL of the last referral.
    #[test]
    fn a_zone_without_a_delegation_disappears(
        before in vec(ghost_step(), 0..20), after in vec(ghost_step(), 0..60)
    ) {
        let (cache, chain) = (cache(), ["example", "b.example", "a.b.example"]);
        let (mut second, mut latest) = (0, 0);
        let steps = before.into_iter().map(|step| (step, true)).chain(after.into_iter().map(|step| (step, false)));
        for (step, is_delegated) in steps {
            let (depth, ttl, rank) = match step {
                Ghost::Wait(seconds) => {
                    second += seconds;
                    continue;
                }
                Ghost::Refer { depth, ttl } => (depth, ttl, Rank::Referral),
                Ghost::Answer { depth, ttl } => (depth, ttl, Rank::AnswerAa),
            };
            let owner = name(chain[depth - 1]);
            // The resolver reaches the servers of the zone, or of the parent, by a delegation.
            let asked = if rank == Rank::Referral { owner.view().parent().unwrap() } else { owner.view() };
            let led = cache.closest_delegation(asked, Class::IN, at(second));
            if led.is_none() && !(is_delegated && depth == 1 && rank == Rank::Referral) {
                continue;
            }
            if led.is_none() {
                latest = latest.max(second + u64::from(ttl));
            }
            let source = Source { rank, within: led.map(|led| led.expires) };
            cache.insert_rrset(&rrset(chain[depth - 1], Rtype::NS, ttl, &[1]), source, at(second));
            for owner in chain {
                let found = cache.closest_delegation(name(owner).view(), Class::IN, at(second));
                prop_assert!(found.is_none_or(|found| found.expires <= at(latest).instant));
            }
        }
        prop_assert_eq!(cache.closest_delegation(name(chain[2]).view(), Class::IN, at(latest.max(second))), None);
    }
}

/// RFC 4035 §5.3.3: the minimum of TTLs does not keep secure data longer than their signatures permit.
#[test]
fn the_minimum_ttl_does_not_prolong_secure_data() {
    let cache = cache_with(|options| options.ttl_min = 60);
    let with = |security, owner: &str| {
        let answer = Rrset { security, ..rrset(owner, Rtype::A, 5, &[1]) };
        insert(&cache, &answer, Rank::AnswerAa, 0);
        let soa = Rrset { security, ..soa(owner, 5, 5) };
        cache.insert_negative(name(owner).view(), Class::IN, NegativeKind::NoData(Rtype::MX), &[soa], at(0));
        let is_denied = cache.negative(name(owner).view(), Rtype::MX, Class::IN, at(10)).is_some();
        (lookup(&cache, owner, Rtype::A, 10).is_some(), is_denied)
    };
    assert_eq!(with(Security::Insecure, "insecure."), (true, true));
    assert_eq!(with(Security::Secure, "secure."), (false, false));
}
