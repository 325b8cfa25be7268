//! Tests with clients that want more online work than a worker may do, in virtual time.

use crate::limits::{LimitSettings, Limits, WorkerShare};
use proptest::prelude::*;
use std::net::IpAddr;

/// A client in a separate /24, and the signatures that it wants per second.
#[derive(Clone, Debug)]
struct Client {
    address: IpAddr,
    per_second: u64,
    wanted: u64,
    made: u64,
}

impl Client {
    fn new(number: usize, per_second: u64) -> Self {
        let address = IpAddr::from([10, (number >> 8) as u8, number as u8, 1]);
        Self { address, per_second, wanted: 0, made: 0 }
    }
}

/// The load of a worker: nanoseconds of one signature, and whether more messages are waiting than a
/// batch holds.
#[derive(Clone, Copy, Debug)]
struct Worker {
    cost: u64,
    is_behind: bool,
}

impl Worker {
    /// Simulates the queries of the clients for `seconds` of virtual time; the first client comes
    /// first in each batch. Counts what the clients want and get after two seconds, and returns the
    /// percentage of time spent on it.
    fn run(self, clients: &mut [Client], seconds: u64) -> u64 {
        const SECOND: u64 = 1_000_000_000;
        const BEGIN: u64 = 2 * SECOND;
        let limits = Limits::new(&LimitSettings::default()).unwrap();
        let mut share = limits.worker_share();
        let (mut now, mut last, mut busy, mut spent) = (0, 0, 0, 0);
        while now < BEGIN + seconds * SECOND {
            let is_over = share.is_window_over(now);
            share.begin_at(now, self.is_behind, Some(busy).filter(|_| is_over));
            let mut made = 0;
            for client in clients.iter_mut() {
                let queries = now * client.per_second / SECOND - last * client.per_second / SECOND;
                for _ in 0..queries {
                    let is_made = limits.admit_online(&mut share, client.address, false, 1);
                    made += usize::from(is_made);
                    client.wanted += u64::from(now >= BEGIN);
                    client.made += u64::from(is_made && now >= BEGIN);
                }
            }
            let cost = self.cost * made as u64;
            share.record_work(cost, made);
            spent += if now >= BEGIN { cost } else { 0 };
            busy += cost + 20_000;
            last = now;
            now += (cost + 20_000).max(300_000);
        }
        spent * 100 / (now - BEGIN)
    }
}

/// Returns each client's share of `total` under max-min fairness: a client whose demand is not met
/// gets at least as many as every other client.
fn equal_shares(clients: &[Client], total: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..clients.len()).collect();
    order.sort_by_key(|place| clients[*place].wanted);
    let (mut shares, mut rest) = (vec![0; clients.len()], total);
    for (done, place) in order.iter().enumerate() {
        shares[*place] = clients[*place].wanted.min(rest / (clients.len() - done) as u64);
        rest -= shares[*place];
    }
    shares
}

#[test]
fn one_prefix_has_the_whole_share_while_nobody_else_asks() {
    for (is_behind, expected) in [(false, 49..=50), (true, 7..=8)] {
        let mut clients = [Client::new(0, 100_000)];
        let percent = Worker { cost: 50_000, is_behind }.run(&mut clients, 2);
        assert!(expected.contains(&percent), "{percent}");
    }
}

#[test]
fn a_prefix_that_wants_less_than_its_share_gets_all_beside_a_loud_one() {
    for is_behind in [false, true] {
        let mut clients = vec![Client::new(0, 100_000)];
        clients.extend((1..10).map(|number| Client::new(number, 100)));
        Worker { cost: 50_000, is_behind }.run(&mut clients, 4);
        for quiet in &clients[1..] {
            assert_eq!(quiet.made, quiet.wanted, "{is_behind}: {clients:?}");
        }
    }
}

#[test]
fn a_million_prefixes_take_a_table_of_fixed_size_and_the_online_share() {
    let limits = Limits::new(&LimitSettings::default()).unwrap();
    let mut share: WorkerShare = limits.worker_share();
    let (mut now, mut spent) = (0, 0);
    for number in 0..1_000_000u32 {
        if number % 64 == 0 {
            now += 1_000_000;
            let is_over = share.is_window_over(now);
            share.begin_at(now, false, Some(spent).filter(|_| is_over));
        }
        let client = IpAddr::from((number << 8).to_be_bytes());
        if limits.admit_online(&mut share, client, false, 1) {
            share.record_work(50_000, 1);
            spent += 50_000;
        }
    }
    assert!(spent <= now / 2 + 20_000_000 && spent > now * 2 / 5, "{spent} of {now}");
    let bytes = share.fair.classes.each_ref().map(|class| class.buckets.as_ref().map(|found| found.bytes()));
    assert_eq!(bytes, [Some(super::TABLE_BYTES), None]);
}

/// A flood of forged datagrams from more prefixes than the table holds uses no bucket and no time
/// of clients with proven addresses. These share half of the time.
#[test]
fn forged_datagrams_take_nothing_of_the_half_of_proven_prefixes() {
    let mut share = super::FairShare::new([7; 16]);
    let proven = [1u8, 2].map(|number| IpAddr::from([192, 0, number, 1]));
    let (mut made, mut forged) = ([0; 2], 0u32);
    // Two seconds, one of which is for online work. Each operation takes 50 µs.
    for millisecond in 0..2_000u64 {
        share.divide(millisecond * 1_000_000, 500_000, 1);
        for number in 0..100 {
            forged = forged.wrapping_add(1);
            share.take(IpAddr::from((0x0a00_0000 + ((forged % 4096) << 8)).to_be_bytes()), false, 50_000);
            for (client, made) in proven.iter().zip(&mut made) {
                *made += usize::from(number < 10 && share.take(*client, true, 50_000));
            }
        }
    }
    for made in made {
        assert!((4_500..=5_300).contains(&made), "{made} of 5,000");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(22),
        ..ProptestConfig::default()
    })]

    /// A prefix with a high rate, which comes first in each batch, gets no more than its equal
    /// share while others send queries. The others get theirs, and all together get the worker's
    /// online share.
    #[test]
    fn a_loud_prefix_takes_no_more_than_its_equal_share(
        others in proptest::collection::vec(10u64..5000, 1..24),
        loud in 20_000u64..60_000,
        cost in 20_000u64..150_000,
        is_behind: bool,
    ) {
        let mut clients = vec![Client::new(0, loud)];
        clients.extend(others.iter().enumerate().map(|(place, rate)| Client::new(place + 1, *rate)));
        let percent = Worker { cost, is_behind }.run(&mut clients, 4);
        let share = if is_behind { 8 } else { 50 };
        // The percentage is rounded down.
        prop_assert!(percent <= share && percent * 100 >= share * 80, "{} % {:?}", percent, clients);
        let total = clients.iter().map(|client| client.made).sum();
        for (client, equal) in clients.iter().zip(equal_shares(&clients, total)) {
            let slack = equal / 20 + 20;
            prop_assert!(client.made <= equal + slack, "{:?} of {} in {:?}", client, equal, clients);
            prop_assert!(client.made + slack >= equal, "{:?} of {} in {:?}", client, equal, clients);
        }
    }
}

/// Words of the table count time modulo 2^40 microseconds. A word that was never written must not
/// count as debt when the time wraps around.
#[test]
fn time_that_wraps_around_owes_nothing() {
    let client = IpAddr::from([192, 0, 2, 1]);
    for micros in [1 << 39, (1 << 40) - 4_000_000, 1 << 40] {
        let mut share = super::FairShare::new([7; 16]);
        assert!(share.take(client, false, 1_000));
        (share.classes[0].virtual_time, share.last_division) = (micros * 1_000, 0);
        share.divide(2 * super::DIVISION_INTERVAL_NS, 1_000_000, 1);
        assert_eq!(share.classes[0].active_prefixes, 1, "{micros}");
        assert!(share.take(client, false, 1_000));
    }
}
