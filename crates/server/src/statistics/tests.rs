use super::*;
use crate::cookies::CookieStatus;
use nonesuch_net::Transport;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn observation(
    qtype: u16,
    rcode: u16,
    query: usize,
    response: usize,
    query_flags: QueryFlags,
) -> Observation {
    Observation {
        qtype: Rtype(qtype),
        rcode: Rcode(rcode),
        query_octets: query,
        response_octets: response,
        flags: query_flags,
    }
}

#[test]
fn a_query_is_counted_once_in_each_respect() {
    let statistics = Statistics::new();
    let mut thread = statistics.thread(Transport::Tcp);
    let query_flags = QueryFlags::EDNS.with(QueryFlags::TRUNCATED, true).with(QueryFlags::DNSSEC_OK, false);
    thread.count_observation(&observation(28, 3, 40, 1232, query_flags));
    let sum = statistics.sum();
    assert_eq!(sum.of(Transport::Udp), &TransportTotals::default());
    let tcp = sum.of(Transport::Tcp);
    assert_eq!(tcp.types, BTreeMap::from([(Some(Rtype::AAAA), 1)]));
    assert_eq!(tcp.rcodes, BTreeMap::from([(Rcode::NXDOMAIN, 1)]));
    assert_eq!((tcp.edns, tcp.dnssec_ok, tcp.truncated), (1, 0, 1));
    assert_eq!((tcp.query_sizes.octets, tcp.response_sizes.octets), (40, 1232));
    assert_eq!((tcp.response_sizes.up_to(1216), tcp.response_sizes.up_to(1232)), (0, 1));
}

#[test]
fn what_stands_in_the_messages_is_read_from_them() {
    let statistics = Statistics::new();
    let mut thread = statistics.thread(Transport::Udp);
    // example. TXT, with an OPT record with the DO flag.
    let mut message = vec![0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 7];
    message.extend_from_slice(b"example\0\0\x10\0\x01");
    nonesuch_proto::edns::push_opt(1232, 0, nonesuch_proto::edns::DO, &mut message);
    let query = crate::query::Query::parse(&message).expect("a query");
    thread.count_response(&query, &message, &[0, 7, 0x86, 0x05, 0, 0, 0, 1, 0, 0, 0, 0]);
    let sum = statistics.sum();
    let udp = sum.of(Transport::Udp);
    assert_eq!(udp.types, BTreeMap::from([(Some(Rtype::TXT), 1)]));
    assert_eq!(udp.rcodes, BTreeMap::from([(Rcode::REFUSED, 1)]));
    assert_eq!((udp.edns, udp.dnssec_ok, udp.truncated), (1, 1, 1));
    assert_eq!((udp.query_sizes.octets, udp.response_sizes.octets), (message.len() as u64, 12));
}

#[test]
fn rare_numbers_share_a_counter() {
    let statistics = Statistics::new();
    let mut thread = statistics.thread(Transport::Udp);
    for qtype in [257, 258, 65280, 65535] {
        thread.count_observation(&observation(qtype, 4095, 70_000, usize::MAX / 2, QueryFlags(255)));
    }
    let sum = statistics.sum();
    let udp = sum.of(Transport::Udp);
    assert_eq!(udp.types, BTreeMap::from([(Some(Rtype(257)), 1), (None, 3)]));
    assert_eq!(udp.rcodes, BTreeMap::from([(Rcode(31), 4)]));
    assert_eq!((udp.query_sizes.up_to(65536), udp.query_sizes.total()), (4, 4));
}

#[test]
fn what_is_no_query_is_counted_apart() {
    let statistics = Statistics::new();
    let mut thread = statistics.thread(Transport::Tls);
    thread.count_other_message(5, Rcode::REFUSED);
    thread.count_other_message(4, Rcode::NOERROR);
    thread.count_other_message(4, Rcode::NOERROR);
    thread.count_drop(DropReason::RateLimited);
    thread.count_slip();
    thread.count_over_budget();
    (0..3).for_each(|_| thread.count_prohibited());
    thread.count_cookie(CookieStatus::Valid);
    thread.count_tsig(TsigResult::BadTime);
    let sum = statistics.sum();
    let tls = sum.of(Transport::Tls);
    assert_eq!(tls.other_messages, BTreeMap::from([((4, Rcode::NOERROR), 2), ((5, Rcode::REFUSED), 1)]));
    assert_eq!((tls.drops, tls.slips, tls.over_budget, tls.prohibited), ([1, 0, 0], 1, 1, 3));
    assert_eq!((tls.cookies, tls.tsig), ([0, 1, 0, 0], [0, 0, 0, 1, 0, 0]));
    assert!(tls.types.is_empty());
}

#[test]
fn answers_take_from_receive_to_send() {
    let statistics = Statistics::new();
    let mut thread = statistics.thread(Transport::Udp);
    let start = Instant::now();
    let one = observation(1, 0, 30, 50, QueryFlags::default());
    // Before the first batch, there is no start time.
    thread.record_sent(start);
    thread.begin_batch(start);
    thread.count_observation(&one);
    thread.count_observation(&one);
    thread.record_sent(start + Duration::from_micros(10));
    thread.count_observation(&one);
    thread.record_sent(start + Duration::from_nanos(10_001));
    thread.record_sent(start + Duration::from_secs(99));
    thread.begin_batch(start + Duration::from_secs(100));
    thread.count_observation(&one);
    thread.record_sent(start + Duration::from_secs(111));
    let latencies = &statistics.sum().of(Transport::Udp).latencies.clone();
    let bucket =
        |nanoseconds| LATENCY_BOUNDS_NS.iter().position(|bound| *bound == nanoseconds).expect("a bound");
    let counted: Vec<(usize, u64)> =
        latencies.buckets.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect();
    assert_eq!(counted, [(bucket(10_000), 2), (bucket(20_000), 1), (LATENCY_BOUNDS_NS.len(), 1)]);
    assert_eq!(latencies.nanoseconds, 20_000 + 10_001 + 11_000_000_000);
}

#[test]
fn threads_add_up_also_when_they_have_ended() {
    let statistics = Statistics::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let mut thread = statistics.thread(Transport::Udp);
            scope.spawn(move || {
                (0..10_000).for_each(|at| {
                    thread.count_observation(&observation(
                        at % 300,
                        at % 6,
                        30,
                        usize::from(at),
                        QueryFlags::EDNS,
                    ));
                });
            });
        }
    });
    let sum = statistics.sum();
    let udp = sum.of(Transport::Udp);
    let queries: u64 = udp.types.values().sum();
    assert_eq!((queries, udp.edns, udp.response_sizes.total()), (40_000, 40_000, 40_000));
    assert_eq!(udp.response_sizes.octets, 4 * (0..10_000).sum::<u64>());
}

#[test]
fn transfers_are_counted_by_direction_kind_and_result() {
    let statistics = Statistics::new();
    let transfers = statistics.transfers();
    transfers.record(Direction::Out, TransferKind::Axfr, TransferResult::Done, 3, 40_000);
    transfers.record(Direction::Out, TransferKind::Ixfr, TransferResult::Done, 1, 400);
    let sum = statistics.sum().transfers;
    let done = |kind| sum.ended.get(&(Direction::Out, kind, TransferResult::Done)).copied();
    assert_eq!((done(TransferKind::Axfr), done(TransferKind::Ixfr)), (Some(1), Some(1)));
    assert_eq!((sum.messages[&Direction::Out], sum.octets[&Direction::Out]), (4, 40_400));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(6),
        ..ProptestConfig::default()
    })]

    #[test]
    fn sizes_are_counted_below_every_bound_that_they_are_below(sizes in prop::collection::vec(0usize..70_000, 0..40)) {
        let statistics = Statistics::new();
        let mut thread = statistics.thread(Transport::Udp);
        for octets in &sizes {
            thread.count_observation(&observation(1, 0, 12, *octets, QueryFlags::default()));
        }
        let counted = statistics.sum().of(Transport::Udp).response_sizes.clone();
        for bound in (0..=4096).step_by(16).chain([8192, 16384, 32768]) {
            let below = sizes.iter().filter(|octets| **octets <= bound).count() as u64;
            prop_assert_eq!(counted.up_to(bound), below, "up to {}", bound);
        }
        prop_assert_eq!(counted.total(), sizes.len() as u64);
        prop_assert_eq!(counted.octets, sizes.iter().sum::<usize>() as u64);
    }
}
