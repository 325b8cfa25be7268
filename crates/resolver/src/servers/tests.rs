use super::*;
use nonesuch_net::Transport;
use nonesuch_net::machine::SendFailure;
use nonesuch_proto::Name;
use nonesuch_proto::message::Rcode;
use proptest::prelude::*;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

mod learning;
mod selection;

/// A table with a clock and a source of randomness.
struct Lab {
    table: ServerTable,
    now: Now,
    random: ChaCha8Rng,
}

impl Lab {
    fn new() -> Self {
        Self::with(ServerTableOptions::default())
    }

    fn with(options: ServerTableOptions) -> Self {
        let now = Now { instant: Instant::now(), unix: 1_800_000_000 };
        Self { table: ServerTable::new(options, &[3; 32], now), now, random: ChaCha8Rng::seed_from_u64(1) }
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now.instant += Duration::from_millis(milliseconds);
    }

    fn purpose(&self, zone: &str) -> Purpose {
        let zone = self.table.zone_key(zone.parse::<Name>().expect("a name").view());
        Purpose { zone, kind: QueryKind::Common, transport: Transport::Udp }
    }

    fn begin(&self, server: SocketAddr) -> Attempt {
        self.table.begin(server, self.purpose("example."), None, self.now).expect("an attempt")
    }

    fn repeat(&self, server: SocketAddr, next: Next) -> Attempt {
        let Next::Repeat(repeat) = next else { panic!("the query is not repeated") };
        self.table.begin(server, self.purpose("example."), Some(repeat), self.now).expect("an attempt")
    }

    /// Queries a server, which answers after some milliseconds.
    fn exchange(&mut self, server: SocketAddr, milliseconds: u64) {
        let attempt = self.begin(server);
        self.pass(milliseconds);
        assert_eq!(self.table.answered(attempt, &GOOD, self.now), Next::Use);
    }

    /// Queries a server for a purpose, which does not answer. Returns the timeout in milliseconds.
    fn lose(&mut self, server: SocketAddr, purpose: Purpose) -> u64 {
        let attempt = self.table.begin(server, purpose, None, self.now).expect("an attempt");
        let timeout = attempt.timeout.as_millis() as u64;
        self.pass(timeout);
        self.table.timed_out(attempt, self.now);
        timeout
    }

    fn select(&mut self, candidates: &[SocketAddr], purpose: Purpose) -> Result<SocketAddr, NoServer> {
        self.table.select(candidates, &[], purpose, self.now, self.random.random())
    }

    /// Selects a server for `example.` many times, and returns how often each candidate was selected.
    fn count_selections(&mut self, candidates: &[SocketAddr], times: usize) -> Vec<usize> {
        let mut counts = vec![0; candidates.len()];
        for _ in 0..times {
            let purpose = self.purpose("example.");
            let server = self.select(candidates, purpose).expect("a server");
            counts[candidates.iter().position(|candidate| *candidate == server).expect("a candidate")] += 1;
        }
        counts
    }
}

/// A small response with OPT and without a cookie.
const GOOD: ResponseFacts<'_> =
    ResponseFacts { rcode: Rcode::NOERROR, has_opt: true, cookie: None, octets: 100 };

fn server(number: u32) -> SocketAddr {
    SocketAddr::from((std::net::Ipv4Addr::from(0xc000_0200 + number), 53))
}

fn server_v6(number: u128) -> SocketAddr {
    // Each in its own network of 48 bits.
    SocketAddr::from((std::net::Ipv6Addr::from(0x2001_0db8 << 96 | number << 80 | 1), 53))
}

#[test]
fn an_unknown_server_gets_the_default_timeout_edns_and_a_client_cookie() {
    let lab = Lab::new();
    let attempt = lab.begin(server(1));
    assert_eq!(attempt.timeout, Duration::from_millis(376));
    assert_eq!((attempt.transport, attempt.payload, attempt.copies_case), (Transport::Udp, Some(1232), true));
    assert_eq!(attempt.cookie.map(|cookie| cookie.option_data().len()), Some(8));
}

#[test]
fn the_timeout_follows_the_round_trip_time() {
    let mut lab = Lab::new();
    (0..50).for_each(|_| lab.exchange(server(1), 100));
    let timeout = lab.begin(server(1)).timeout.as_millis();
    assert!((105..=115).contains(&timeout), "{timeout}");
    assert_eq!(lab.begin(server(2)).timeout.as_millis(), 376);
    // It expires 15 minutes after the last response.
    lab.pass(899_000);
    assert_eq!(lab.begin(server(1)).timeout.as_millis(), timeout);
    lab.pass(1000);
    assert_eq!(lab.begin(server(1)).timeout.as_millis(), 376);
}

#[test]
fn a_tcp_query_has_time_for_the_connection_and_is_no_sample() {
    let mut lab = Lab::new();
    (0..50).for_each(|_| lab.exchange(server(1), 100));
    let purpose = Purpose { transport: Transport::Tcp, ..lab.purpose("example.") };
    let attempt = lab.table.begin(server(1), purpose, None, lab.now).expect("an attempt");
    assert_eq!((attempt.transport, attempt.timeout), (Transport::Tcp, Duration::from_secs(2)));
    lab.pass(1900);
    let _ = lab.table.answered(attempt, &GOOD, lab.now);
    assert!(lab.begin(server(1)).timeout < Duration::from_millis(120));
}

#[test]
fn a_silent_server_is_left_alone_and_probed_once_in_a_while() {
    let mut lab = Lab::new();
    let purpose = lab.purpose("example.");
    let timeouts = [(); 4].map(|()| lab.lose(server(1), purpose));
    assert_eq!(timeouts, [376, 752, 1504, 3008]);
    assert_eq!(lab.select(&[server(1)], purpose), Err(NoServer::Silent));
    assert_eq!(lab.table.begin(server(1), purpose, None, lab.now).expect_err("silent"), NoServer::Silent);
    // Another server of the zone is not affected.
    assert_eq!(lab.select(&[server(1), server(2)], purpose), Ok(server(2)));
    lab.pass(1000);
    assert_eq!(lab.select(&[server(1)], purpose), Ok(server(1)));
    let probe = lab.begin(server(1));
    // While one worker probes, others do not.
    assert_eq!(lab.select(&[server(1)], purpose), Err(NoServer::Silent));
    lab.pass(40);
    let _ = lab.table.answered(probe, &GOOD, lab.now);
    assert_eq!(lab.select(&[server(1)], purpose), Ok(server(1)));
    assert!(lab.begin(server(1)).timeout < Duration::from_millis(376));
}

#[test]
fn a_refused_connection_counts_like_a_timeout_and_a_local_failure_does_not() {
    let mut lab = Lab::new();
    let purpose = lab.purpose("example.");
    for _ in 0..10 {
        lab.table.failed(lab.begin(server(1)), SendFailure::Local, lab.now);
    }
    assert_eq!(lab.begin(server(1)).timeout.as_millis(), 376);
    for _ in 0..4 {
        lab.table.failed(lab.begin(server(1)), SendFailure::Refused, lab.now);
    }
    assert_eq!(lab.select(&[server(1)], purpose), Err(NoServer::Silent));
}

#[test]
fn silence_for_one_zone_does_not_affect_another_if_the_server_answers_there() {
    let mut lab = Lab::new();
    lab.exchange(server(1), 20);
    let [good, hostile] = ["example.", "hostile.example."].map(|zone| lab.purpose(zone));
    (0..4).for_each(|_| {
        lab.lose(server(1), hostile);
    });
    assert_eq!(lab.select(&[server(1)], hostile), Err(NoServer::Silent));
    assert_eq!(lab.select(&[server(1)], good), Ok(server(1)));
    assert!(lab.begin(server(1)).timeout < Duration::from_millis(100));
}

#[test]
fn a_server_that_never_answered_comes_last_for_all_zones_but_is_not_excluded() {
    let mut lab = Lab::new();
    let [good, hostile] = ["example.", "hostile.example."].map(|zone| lab.purpose(zone));
    (0..4).for_each(|_| {
        lab.lose(server(1), hostile);
    });
    assert_eq!(lab.select(&[server(1)], good), Ok(server(1)));
    assert_eq!(lab.begin(server(1)).timeout.as_millis(), 3008);
    let counts = lab.count_selections(&[server(1), server(2)], 1000);
    assert!(counts[0] < 50, "{counts:?}");
}

#[test]
fn silence_for_unusual_types_and_over_tcp_does_not_prevent_usual_queries() {
    let mut lab = Lab::new();
    let common = lab.purpose("example.");
    lab.exchange(server(1), 20);
    for hostile in
        [Purpose { kind: QueryKind::Other, ..common }, Purpose { transport: Transport::Tcp, ..common }]
    {
        (0..4).for_each(|_| {
            lab.lose(server(1), hostile);
        });
        assert_eq!(lab.select(&[server(1)], hostile), Err(NoServer::Silent));
        assert_eq!(lab.select(&[server(1)], common), Ok(server(1)));
    }
}

#[test]
fn queries_in_flight_are_limited_and_counted_until_they_end() {
    let mut lab = Lab::new();
    let purpose = lab.purpose("example.");
    let mut attempts: Vec<Attempt> = (0..IN_FLIGHT_UNKNOWN).map(|_| lab.begin(server(1))).collect();
    assert_eq!((lab.table.in_flight(server(1)), lab.table.in_flight(server(2))), (IN_FLIGHT_UNKNOWN, 0));
    assert_eq!(lab.table.begin(server(1), purpose, None, lab.now).expect_err("busy"), NoServer::Busy);
    assert_eq!(lab.select(&[server(1)], purpose), Err(NoServer::Busy));
    assert_eq!(lab.select(&[server(1), server(2)], purpose), Ok(server(2)));
    attempts.pop();
    assert_eq!(lab.select(&[server(1)], purpose), Ok(server(1)));
    // A response raises the limit.
    let _ = lab.table.answered(attempts.pop().expect("an attempt"), &GOOD, lab.now);
    attempts.extend((0..4096 - (IN_FLIGHT_UNKNOWN - 2)).map(|_| lab.begin(server(1))));
    assert_eq!(lab.select(&[server(1)], purpose), Err(NoServer::Busy));
    drop(attempts);
    assert_eq!(lab.table.in_flight(server(1)), 0);
}

#[test]
fn a_server_that_stops_answering_gets_few_queries_in_flight() {
    let mut lab = Lab::new();
    lab.exchange(server(1), 20);
    for zone in 0..40 {
        let purpose = lab.purpose(&format!("zone{zone}.example."));
        lab.lose(server(1), purpose);
    }
    let mut attempts = Vec::new();
    let purpose = lab.purpose("example.");
    while let Ok(attempt) = lab.table.begin(server(1), purpose, None, lab.now) {
        attempts.push(attempt);
    }
    assert_eq!(attempts.len(), 16);
    let _ = lab.table.answered(attempts.remove(0), &GOOD, lab.now);
    assert!(lab.table.begin(server(1), purpose, None, lab.now).is_ok());
}

#[test]
fn memory_is_bounded_and_servers_in_use_survive_a_flood() {
    let mut lab = Lab::with(ServerTableOptions { servers: 2048, faults: 1024, ..Default::default() });
    (0..20).for_each(|_| lab.exchange(server(1), 100));
    for number in 2..50_000 {
        let purpose = lab.purpose("hostile.example.");
        let attempt = lab.table.begin(server(number), purpose, None, lab.now).expect("an attempt");
        lab.table.timed_out(attempt, lab.now);
        if number % 500 == 0 {
            lab.exchange(server(1), 0);
        }
    }
    let statistics = lab.table.statistics();
    assert_eq!((statistics.servers, statistics.faults), (2048, 1024));
    assert!(statistics.evicted > 40_000);
    assert!(lab.begin(server(1)).timeout < Duration::from_millis(200));
}

#[test]
fn entries_have_the_documented_size() {
    assert!(size_of::<(AddressKey, Server, bool)>() <= 160, "{}", size_of::<(AddressKey, Server, bool)>());
    assert!(size_of::<(PathKey, Path, bool)>() <= 120, "{}", size_of::<(PathKey, Path, bool)>());
}

#[test]
fn workers_share_the_table() {
    let lab = Lab::with(ServerTableOptions { servers: 512, faults: 512, ..Default::default() });
    let (table, now, purpose) = (&lab.table, lab.now, lab.purpose("example."));
    std::thread::scope(|scope| {
        for worker in 0..4 {
            scope.spawn(move || {
                let candidates: Vec<SocketAddr> = (0..8).map(server).collect();
                for step in 0..5000 {
                    let Ok(server) = table.select(&candidates, &[], purpose, now, worker << 32 | step) else {
                        continue;
                    };
                    match table.begin(server, purpose, None, now) {
                        Ok(attempt) if step % 3 == 0 => table.timed_out(attempt, now),
                        Ok(attempt) => {
                            let _ = table.answered(attempt, &GOOD, now);
                        }
                        Err(_) => {}
                    }
                }
            });
        }
    });
    assert!((0..8).all(|number| table.in_flight(server(number)) == 0));
}

/// An event of a random history.
#[derive(Clone, Copy, Debug)]
enum Step {
    Begin { server: u32, zone: u8, kind: QueryKind, transport: Transport, repeat: Option<Repeat> },
    Answer { rcode: u16, has_opt: bool, server_cookie: Option<usize>, octets: usize },
    TimeOut,
    Fail(SendFailure),
    Drop,
    Pass(u64),
    ClockJump(u64),
    MarkLame(u32, u8),
    MarkChangesCase(u32),
    MarkRequiresTcp(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let transport = prop_oneof![Just(Transport::Udp), Just(Transport::Tcp), Just(Transport::Tls)];
    let kind = prop_oneof![Just(QueryKind::Common), Just(QueryKind::Other)];
    let repeat = prop_oneof![
        Just(None),
        Just(Some(Repeat::WithoutEdns)),
        Just(Some(Repeat::WithCookie)),
        Just(Some(Repeat::OverTcp)),
    ];
    let failure =
        prop_oneof![Just(SendFailure::Refused), Just(SendFailure::Unreachable), Just(SendFailure::Local)];
    prop_oneof![
        6 => (0..6u32, 0..3u8, kind, transport, repeat).prop_map(|(server, zone, kind, transport, repeat)| {
            Step::Begin { server, zone, kind, transport, repeat }
        }),
        3 => (0..30u16, any::<bool>(), proptest::option::of(0..40usize), 12..3000usize).prop_map(
            |(rcode, has_opt, server_cookie, octets)| Step::Answer { rcode, has_opt, server_cookie, octets }
        ),
        4 => Just(Step::TimeOut),
        1 => failure.prop_map(Step::Fail),
        1 => Just(Step::Drop),
        3 => (0..5000u64).prop_map(Step::Pass),
        1 => (0..2_000_000u64).prop_map(Step::Pass),
        1 => any::<u64>().prop_map(Step::ClockJump),
        1 => (0..6u32, 0..3u8).prop_map(|(server, zone)| Step::MarkLame(server, zone)),
        1 => (0..6u32).prop_map(Step::MarkChangesCase),
        1 => (0..6u32).prop_map(Step::MarkRequiresTcp),
    ]
}

fn any_server(number: u32) -> SocketAddr {
    if number.is_multiple_of(2) { server(number) } else { server_v6(number.into()) }
}

fn apply(lab: &mut Lab, attempts: &mut Vec<Attempt>, step: Step) {
    let zone = |number: u8| ["example.", "example.org.", "."][usize::from(number)];
    match step {
        Step::Begin { server, zone: number, kind, transport, repeat } => {
            let purpose = Purpose { kind, transport, ..lab.purpose(zone(number)) };
            attempts.extend(lab.table.begin(any_server(server), purpose, repeat, lab.now));
        }
        Step::Pass(milliseconds) => lab.pass(milliseconds),
        Step::ClockJump(unix) => lab.now.unix = unix,
        Step::MarkLame(server, number) => {
            let zone = lab.purpose(zone(number)).zone;
            lab.table.mark_lame(any_server(server), zone, lab.now);
        }
        Step::MarkChangesCase(server) => lab.table.mark_changes_case(any_server(server), lab.now),
        Step::MarkRequiresTcp(server) => lab.table.mark_requires_tcp(any_server(server), lab.now),
        Step::Answer { .. } | Step::TimeOut | Step::Fail(_) | Step::Drop if attempts.is_empty() => {}
        Step::Answer { rcode, has_opt, server_cookie, octets } => {
            let attempt = attempts.remove(0);
            let cookie = server_cookie
                .zip(attempt.cookie)
                .map(|(length, cookie)| [&cookie.option_data()[..8], &vec![9; length]].concat());
            let facts = ResponseFacts { rcode: Rcode(rcode), has_opt, cookie: cookie.as_deref(), octets };
            let _ = lab.table.answered(attempt, &facts, lab.now);
        }
        Step::TimeOut => lab.table.timed_out(attempts.remove(0), lab.now),
        Step::Fail(failure) => lab.table.failed(attempts.remove(0), failure, lab.now),
        Step::Drop => drop(attempts.remove(0)),
    }
}

proptest! {
    #[test]
    fn any_history_leaves_a_sound_table(steps in proptest::collection::vec(step(), 0..200)) {
        let mut lab = Lab::new();
        let mut attempts = Vec::new();
        let candidates: Vec<SocketAddr> = (0..6).map(any_server).collect();
        for step in steps {
            apply(&mut lab, &mut attempts, step);
            if let Some(attempt) = attempts.last() {
                let timeout = Duration::from_millis(50)..=Duration::from_secs(12);
                prop_assert!(timeout.contains(&attempt.timeout));
                prop_assert!(attempt.cookie.is_none_or(|cookie| (8..=40).contains(&cookie.option_data().len())));
                prop_assert!(attempt.payload.is_none_or(|payload| payload == 512 || payload == 1232));
            }
            let purpose = lab.purpose("example.");
            // A selected server can be queried.
            if let Ok(selected) = lab.select(&candidates, purpose) {
                prop_assert!(candidates.contains(&selected));
                prop_assert!(lab.table.begin(selected, purpose, None, lab.now).is_ok());
            }
        }
        drop(attempts);
        prop_assert!(candidates.iter().all(|server| lab.table.in_flight(*server) == 0));
    }

    /// Whatever happens to the servers, a resolver that waits long enough queries all of them again.
    #[test]
    fn no_history_excludes_a_server_for_ever(steps in proptest::collection::vec(step(), 0..200)) {
        let mut lab = Lab::new();
        let mut attempts = Vec::new();
        steps.into_iter().for_each(|step| apply(&mut lab, &mut attempts, step));
        drop(attempts);
        lab.pass(300_000);
        let purpose = lab.purpose("example.");
        for server in (0..6).map(any_server) {
            prop_assert_eq!(lab.select(&[server], purpose), Ok(server));
        }
    }
}
