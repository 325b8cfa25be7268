//! Tests of limits from the point of view of a server.

use super::*;
use nonesuch_proto::Name;
use proptest::prelude::*;
use std::collections::HashSet;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn limits(change: impl FnOnce(&mut LimitSettings)) -> Limits {
    let mut settings = LimitSettings::default();
    change(&mut settings);
    Limits::new(&settings).expect("settings")
}

fn with_rates(rates: RateSettings) -> Limits {
    limits(|settings| settings.responses = Some(rates))
}

/// Returns how many of `count` simultaneous responses are sent, dropped and truncated.
fn sent(limits: &Limits, client: IpAddr, class: ResponseCategory, name: u64, count: usize) -> [usize; 3] {
    let mut found = [0; 3];
    for _ in 0..count {
        match limits.check_response(0, client, class, name, CookieStatus::Absent) {
            LimitAction::Send => found[0] += 1,
            LimitAction::Drop => found[1] += 1,
            LimitAction::Truncate => found[2] += 1,
            other => panic!("{other:?}"),
        }
    }
    found
}

#[test]
fn one_answer_is_limited_for_one_network() {
    let limits = with_rates(RateSettings::uniform(200));
    assert_eq!(sent(&limits, CLIENT, ResponseCategory::Positive, 1, 1000), [200, 400, 400]);
    // Another address of the same network shares the rate. Another network, name or category has a
    // separate rate.
    let neighbour = IpAddr::from([192, 0, 2, 255]);
    assert_eq!(sent(&limits, neighbour, ResponseCategory::Positive, 1, 10), [0, 5, 5]);
    assert_eq!(sent(&limits, IpAddr::from([192, 0, 3, 1]), ResponseCategory::Positive, 1, 10)[0], 10);
    assert_eq!(sent(&limits, CLIENT, ResponseCategory::Positive, 2, 10)[0], 10);
    assert_eq!(sent(&limits, CLIENT, ResponseCategory::Nxdomain, 1, 10)[0], 10);
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    assert_eq!(sent(&limits, address("2001:db8:0:aa00::1"), ResponseCategory::Positive, 1, 300)[0], 200);
    assert_eq!(sent(&limits, address("2001:db8:0:aaff::1"), ResponseCategory::Positive, 1, 10)[0], 0);
    assert_eq!(sent(&limits, address("2001:db8:0:ab00::1"), ResponseCategory::Positive, 1, 10)[0], 10);
    assert_eq!(sent(&limits, address("::ffff:192.0.2.77"), ResponseCategory::Positive, 1, 10)[0], 0);
}

#[test]
fn each_class_has_its_own_rate_and_none_is_none() {
    let limits = with_rates(RateSettings {
        nxdomain: 10,
        error: 5,
        referral: 0,
        slip: 0,
        ..RateSettings::uniform(20)
    });
    for (class, expected) in [
        (ResponseCategory::Positive, [20, 80, 0]),
        (ResponseCategory::Nodata, [20, 80, 0]),
        (ResponseCategory::Nxdomain, [10, 90, 0]),
        (ResponseCategory::Error, [5, 95, 0]),
        (ResponseCategory::Referral, [100, 0, 0]),
    ] {
        assert_eq!(sent(&limits, CLIENT, class, 1, 100), expected, "{class:?}");
    }
}

#[test]
fn all_responses_to_a_client_are_limited_together() {
    let limits = with_rates(RateSettings { all: 500, slip: 1, ..RateSettings::uniform(200) });
    let total: usize =
        (0..10).map(|name| sent(&limits, CLIENT, ResponseCategory::Positive, name, 100)[0]).sum();
    assert_eq!(total, 500);
}

#[test]
fn cookies_exempt_and_are_asked_for() {
    let limits = with_rates(RateSettings { slip: 1, ..RateSettings::uniform(10) });
    sent(&limits, CLIENT, ResponseCategory::Positive, 1, 10);
    let response = |cookie| limits.check_response(0, CLIENT, ResponseCategory::Positive, 1, cookie);
    assert_eq!(response(CookieStatus::Valid), LimitAction::Send);
    assert_eq!(response(CookieStatus::Absent), LimitAction::Truncate);
    assert_eq!(response(CookieStatus::ClientOnly), LimitAction::BadCookie);
    assert_eq!(response(CookieStatus::Invalid), LimitAction::BadCookie);
    let limits = self::limits(|settings| {
        settings.responses = Some(RateSettings { slip: 1, ..RateSettings::uniform(10) });
        settings.require_cookie = RequireCookie::Never;
    });
    sent(&limits, CLIENT, ResponseCategory::Positive, 1, 10);
    assert_eq!(
        limits.check_response(0, CLIENT, ResponseCategory::Positive, 1, CookieStatus::ClientOnly),
        LimitAction::Truncate
    );
}

#[test]
fn exempt_clients_are_not_limited() {
    let limits = with_rates(RateSettings::default());
    assert_eq!(
        sent(&limits, IpAddr::from([127, 9, 9, 9]), ResponseCategory::Positive, 1, 5000),
        [5000, 0, 0]
    );
    assert_eq!(sent(&limits, CLIENT, ResponseCategory::Positive, 1, 5000)[0], 200);
    let none = self::limits(|_| {});
    assert_eq!(sent(&none, CLIENT, ResponseCategory::Positive, 1, 5000), [5000, 0, 0]);
}

/// The sources of the flood are random forged addresses. Clients with occasional queries still get
/// their answers.
#[test]
fn a_flood_of_networks_hinders_no_other_client() {
    let limits = with_rates(RateSettings { all: 2000, ..RateSettings::uniform(200) });
    let (mut asked, mut answered, mut state) = (0, 0, 1u64);
    for ms in 0..1000 {
        for _ in 0..300 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let source = IpAddr::from(((state >> 32) as u32).to_be_bytes());
            let _ = limits.check_response(ms, source, ResponseCategory::Positive, 1, CookieStatus::Absent);
        }
        let client = IpAddr::from([198, 51, (ms % 100) as u8, 1]);
        asked += 1;
        answered += u32::from(
            limits.check_response(ms, client, ResponseCategory::Positive, 1, CookieStatus::Absent)
                == LimitAction::Send,
        );
    }
    assert!(answered * 100 >= asked * 95, "{answered} of {asked}");
}

/// A single client has no limit while the worker's online share is not spent: here 40 of 50 %.
#[test]
fn a_client_has_all_that_it_wants_while_the_online_share_lasts() {
    let limits = limits(|_| {});
    let mut share = limits.worker_share();
    for ms in 0..2000u64 {
        share.begin_at(ms * 1_000_000, false, None);
        assert_eq!((0..8).filter(|_| limits.admit_online(&mut share, CLIENT, false, 1)).count(), 8, "{ms}");
        share.record_work(400_000, 8);
    }
}

/// Forged datagrams use nothing of the share of the prefix that they claim.
#[test]
fn a_proven_address_has_a_share_of_its_own() {
    let limits = limits(|_| {});
    let mut share = limits.worker_share();
    let (mut refused, mut claimed_refused, mut busy) = (0, 0, 0);
    for ms in 0..2000u64 {
        let is_over = share.is_window_over(ms * 1_000_000);
        share.begin_at(ms * 1_000_000, false, Some(busy).filter(|_| is_over));
        let mut made = (0..64).filter(|_| limits.admit_online(&mut share, CLIENT, false, 1)).count();
        claimed_refused += 64 - made;
        if ms % 10 == 0 && ms > 500 {
            let is_made = limits.admit_online(&mut share, CLIENT, true, 1);
            refused += usize::from(!is_made);
            made += usize::from(is_made);
        }
        share.record_work(50_000 * made as u64, made);
        busy += 50_000 * made as u64;
    }
    assert!(claimed_refused > 1000);
    assert_eq!(refused, 0);
}

/// With an unlimited number of clients and operations of 100 µs, the worker uses exactly its share.
#[test]
fn a_worker_spends_its_part_and_no_more() {
    for (is_behind, percent) in [(false, 50), (true, 8)] {
        let limits = limits(|_| {});
        let mut share = limits.worker_share();
        let (mut now, mut spent, mut source) = (0u64, 0u64, 0u32);
        let second = 1_000_000_000;
        while now < 2 * second {
            share.begin_at(now, is_behind, None);
            let mut admitted = 0;
            for _ in 0..64 {
                source += 256;
                let client = IpAddr::from((0x0a00_0000 + source % 0x0100_0000).to_be_bytes());
                admitted += usize::from(limits.admit_online(&mut share, client, false, 1));
            }
            let cost = admitted as u64 * 100_000;
            share.record_work(cost, admitted);
            spent += cost;
            // The time for the rest of the batch.
            now += cost + 200_000;
        }
        let expected = 2 * second * percent / 100;
        assert!(spent <= expected + 20_000_000 && spent * 100 >= expected * 90, "{spent} of {expected}");
    }
}

#[test]
fn what_exempt_clients_have_made_is_not_charged() {
    let limits = limits(|_| {});
    let mut share = limits.worker_share();
    for round in 0..100u64 {
        share.begin_at(round, false, None);
        assert!(limits.admit_online(&mut share, IpAddr::from([127, 0, 0, 1]), false, 10));
        share.record_work(50_000_000, 10);
    }
    assert!(limits.admit_online(&mut share, CLIENT, false, 1));
    // Half of the operations of this batch belong to the client. It is 20 ms ahead of its share,
    // which is half of 40 ms.
    assert!(limits.admit_online(&mut share, IpAddr::from([127, 0, 0, 1]), false, 1));
    share.record_work(60_000_000, 2);
    let mut later = |ms: u64| {
        share.begin_at(100 + ms * 1_000_000, false, None);
        limits.admit_online(&mut share, CLIENT, false, 1)
    };
    assert_eq!([later(39), later(41)], [false, true]);
}

#[test]
fn what_is_over_is_truncated_or_refused() {
    let truncates = limits(|_| {});
    let refuses = limits(|settings| settings.online.over_budget_action = OverBudgetAction::Refuse);
    assert_eq!(truncates.over_budget_action(Transport::Udp), LimitAction::Truncate);
    for transport in [Transport::Tcp, Transport::Tls] {
        assert_eq!(truncates.over_budget_action(transport), LimitAction::Refuse);
    }
    assert_eq!(refuses.over_budget_action(Transport::Udp), LimitAction::Refuse);
}

#[test]
fn settings_out_of_range_are_named() {
    let wrong = |change: fn(&mut LimitSettings)| {
        let mut settings = LimitSettings::default();
        change(&mut settings);
        Limits::new(&settings).expect_err("out of range")
    };
    let range = |key, found, min, max| LimitError::Range { key, found, min, max };
    assert_eq!(wrong(|settings| settings.online.share = 101), range("online-share", 101, 1, 100));
    assert_eq!(wrong(|settings| settings.online.busy_share = 60), range("online-busy-share", 60, 1, 50));
    let rates = |rates| LimitSettings { responses: Some(rates), ..LimitSettings::default() };
    let slip = rates(RateSettings { slip: 16, ..RateSettings::default() });
    assert_eq!(slip.check(), Err(range("slip", 16, 0, 15)));
    let table = rates(RateSettings { table_octets: 1, ..RateSettings::default() });
    assert_eq!(table.check(), Err(range("response-table", 1, 4096, 1 << 30)));
    assert_eq!(LimitSettings::default().check(), Ok(()));
}

#[test]
fn hashes_of_names_differ() {
    let mut seen = HashSet::new();
    for number in 0..100_000 {
        let name: Name = format!("n{number}.example.").parse().expect("a name");
        seen.insert(hash_name(name.view()));
    }
    for text in [".", "a.", "aa.", "a.a.", "aaa.aaa.", "aaaaaaa.", "aaaaaaaa.", "aaaaaaa.a."] {
        seen.insert(hash_name(text.parse::<Name>().expect("a name").view()));
    }
    assert_eq!(seen.len(), 100_008);
}

proptest! {
    #[test]
    fn numbers_of_clients_are_those_of_their_prefixes(
        one: IpAddr, bit in 0u32..128, ipv4 in 1u8..=32, ipv6 in 1u8..=64,
    ) {
        let one = one.to_canonical();
        // An address that differs in one bit.
        let (is_same, other) = match one {
            IpAddr::V4(address) => {
                let bit = bit % 32;
                (bit >= u32::from(ipv4), IpAddr::from((address.to_bits() ^ 1 << (31 - bit)).to_be_bytes()))
            }
            IpAddr::V6(address) => {
                (bit >= u32::from(ipv6), IpAddr::from((address.to_bits() ^ 1 << (127 - bit)).to_be_bytes()))
            }
        };
        let networks = ClientPrefixes::new(ipv4, ipv6);
        // An IPv4-mapped IPv6 address belongs to the other family.
        prop_assume!(one.is_ipv4() == other.to_canonical().is_ipv4());
        prop_assert_eq!(networks.prefix_of(one) == networks.prefix_of(other), is_same);
    }

    #[test]
    fn numbers_of_the_two_families_differ(ipv4: [u8; 4], ipv6: u128) {
        let ipv6 = std::net::Ipv6Addr::from_bits(ipv6);
        prop_assume!(!ipv6.is_multicast() && ipv6.to_ipv4_mapped().is_none());
        let networks = ClientPrefixes::new(32, 64);
        prop_assert_ne!(networks.prefix_of(ipv4.into()), networks.prefix_of(ipv6.into()));
    }
}
