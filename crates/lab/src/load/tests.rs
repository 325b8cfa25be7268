use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use nonesuch_net::udp::{self, UdpOptions, UdpServer};
use nonesuch_net::{Listeners, bind};

use super::*;

pub(super) fn queries(text: &str) -> Arc<QueryList> {
    Arc::new(QueryList::parse(Path::new("list"), text.as_bytes()).expect("has queries"))
}

pub(super) fn options(server: SocketAddr, text: &str, limit: u64) -> LoadOptions {
    LoadOptions { limit: Some(limit), seconds: 60.0, ..LoadOptions::new(server, queries(text)) }
}

/// Starts a server with one worker. `edit` turns the query with QR set into the response.
fn start<E>(edit: E) -> (UdpServer, SocketAddr)
where
    E: FnMut(&mut Vec<u8>) -> bool + Clone + Send + Sync + 'static,
{
    start_knowing(move |()| {
        let mut edit = edit.clone();
        move |response: &mut Vec<u8>, _: SocketAddr| edit(response)
    })
}

/// Starts a server with one worker. `make` creates a function that also receives the client's
/// address.
fn start_knowing<M, E>(make: M) -> (UdpServer, SocketAddr)
where
    M: Fn(()) -> E + Send + Sync + 'static,
    E: FnMut(&mut Vec<u8>, SocketAddr) -> bool + Send + 'static,
{
    let Listeners { udp, local_addr, .. } =
        bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let make = move |_| {
        let mut edit = make(());
        move |query: &[u8], peer: SocketAddr, response: &mut Vec<u8>| {
            response.extend_from_slice(query);
            response[2] |= 0x80;
            edit(response, peer)
        }
    };
    (udp::serve(udp, &UdpOptions::default(), make).expect("started"), local_addr)
}

/// Starts a server that reports the addresses of its clients.
fn start_noting_senders() -> (UdpServer, SocketAddr, Receiver<SocketAddr>) {
    let (sender, seen) = channel();
    let (server, address) = start_knowing(move |()| {
        let sender = sender.clone();
        move |_: &mut Vec<u8>, peer: SocketAddr| sender.send(peer).is_ok()
    });
    (server, address, seen)
}

/// Starts a server that answers all queries except the first.
fn start_late() -> (UdpServer, SocketAddr) {
    let mut number = 0u32;
    start(move |_| {
        number += 1;
        number > 1
    })
}

/// Starts a server that answers the first `count` queries.
pub(super) fn start_limited(count: u32) -> (UdpServer, SocketAddr) {
    let mut number = 0;
    start(move |_| {
        number += 1;
        number <= count
    })
}

#[test]
fn counts_agree_with_the_server() {
    let (server, address) = start(|_| true);
    let mut options = options(address, "a.example A\nb.example AAAA\n. NS\n", 10_001);
    options.threads = 2;
    options.server_pid = Some(std::process::id());
    let report = run(&options).expect("ran");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((report.sent, report.received, report.lost), (10_001, 10_001, 0));
    assert_eq!((report.unexpected, report.refused, report.truncated), (0, 0, 0));
    assert_eq!(statistics.total().datagrams_in, 10_001);
    assert_eq!(report.rcodes, BTreeMap::from([("NOERROR".to_owned(), 10_001)]));
    // Header, question with the longest name, and OPT record.
    assert_eq!(report.response_octets_max, 12 + 11 + 4 + 11);
    assert!(report.response_octets_mean < 38.0 && report.response_octets_mean > 28.0);
    let latency = report.latency_us.expect("has answers");
    assert!(latency.min > 0.0 && latency.min <= latency.p50 && latency.p50 <= latency.p90);
    assert!(latency.p90 <= latency.p99 && latency.p99 <= latency.p99_9 && latency.p99_9 <= latency.p99_99);
    assert!(latency.p99_99 <= latency.max && latency.mean <= latency.max);
    assert_eq!(report.latency_histogram_ns.iter().map(|(_, count)| count).sum::<u64>(), 10_001);
    assert_eq!((report.rate, report.arrivals, report.lateness_us), (None, None, None));
    assert!((report.qps - 10_001.0 / report.seconds).abs() < 1.0);
    assert!(report.server_resident_kib.is_some() && report.server_cpu_us_per_query.is_some());
}

#[test]
fn unanswered_queries_are_lost() {
    let mut number = 0u32;
    let (server, address) = start(move |_| {
        number += 1;
        !number.is_multiple_of(10)
    });
    let mut options = options(address, "example A", 1000);
    options.timeout = Duration::from_millis(500);
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    assert_eq!((report.sent, report.received, report.lost, report.unexpected), (1000, 900, 100, 0));
}

#[test]
fn late_answers_are_not_taken_for_others() {
    // Each response contains the message ID of the previous query.
    let mut before = [0, 0];
    let (server, address) = start(move |response| {
        let id = [response[0], response[1]];
        response[..2].copy_from_slice(&before);
        before = id;
        true
    });
    let mut options = options(address, "example A", 20);
    options.outstanding = 1;
    options.timeout = Duration::from_millis(20);
    // The first response contains an ID that was never used. Each query is lost before the response
    // with its ID arrives.
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    assert_eq!((report.sent, report.received, report.late + report.lost), (20, 0, 20));
    assert!((1..20).contains(&report.late), "{}", report.late);
    assert!(report.unexpected <= 1, "{}", report.unexpected);
    assert_eq!(report.latency_us, None);
}

#[test]
fn response_codes_truncation_and_strangers_are_told_apart() {
    let mut number = 0u32;
    let (server, address) = start(move |response| {
        number += 1;
        match number % 4 {
            0 => response[3] = 3,
            1 => response[3] = 5,
            2 => response[2] |= 0x02,
            _ => response[2] &= 0x7f,
        }
        true
    });
    let mut options = options(address, "example A", 400);
    options.timeout = Duration::from_millis(500);
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    let expected = [("NOERROR", 100), ("NXDOMAIN", 100), ("REFUSED", 100)];
    assert_eq!(report.rcodes, expected.map(|(rcode, count)| (rcode.to_owned(), count)).into());
    assert_eq!((report.truncated, report.unexpected, report.lost), (100, 100, 100));
}

#[test]
fn queries_are_as_the_options_say() {
    let plain = "\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
    let with_opt = "\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\0\0\x29\x04\u{0}";
    for (edns_size, expected, tail) in [(0, plain, &[][..]), (1024, with_opt, &[0, 0, 0xc0, 0, 0, 0][..])] {
        let (sender, seen) = channel();
        let (server, address) = start(move |response| {
            response[2] &= 0x7f;
            sender.send(response.clone()).expect("the test waits");
            response[2] |= 0x80;
            true
        });
        let mut options = options(address, "a A", 1);
        options.edns_size = edns_size;
        (options.dnssec_ok, options.compact_ok) = (edns_size > 0, edns_size > 0);
        run(&options).expect("ran");
        server.stop().expect("stopped");
        let query = seen.recv().expect("one query");
        assert_eq!(query[2..], [expected.as_bytes(), tail].concat());
    }
}

#[test]
fn a_rate_is_kept() {
    let (server, address) = start(|_| true);
    let mut options = options(address, "example A", 100);
    options.rate = Some(1000.0);
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    assert_eq!(report.received, 100);
    // Query number 99 is due after 99 ms, and its interval ends one millisecond later. A slow
    // machine can need longer; the generator cannot be faster.
    assert!(report.seconds >= 0.1, "{} s", report.seconds);
    assert!(report.qps <= 1000.0, "{} answers/s", report.qps);
}

#[test]
fn a_process_that_is_not_there_is_an_error() {
    let mut options = options("127.0.0.1:53".parse().expect("an address"), "example A", 1);
    // Above the maximum process ID of Linux (2^22).
    options.server_pid = Some(u32::MAX);
    let error = run(&options).expect_err("refused");
    assert!(matches!(error, LoadError::NoProcess { pid: u32::MAX }), "{error}");
}

#[test]
fn latency_counts_from_when_a_query_was_due() {
    let (server, address) = start_late();
    let mut options = options(address, "example A", 20);
    options.rate = Some(1000.0);
    options.outstanding = 1;
    options.timeout = Duration::from_millis(100);
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    assert_eq!((report.sent, report.received, report.lost, report.unsent), (20, 19, 1, 0));
    // Query number 1 is due after 1 ms, but no slot is free until 100 ms. Latency measured from the
    // send time would not include this delay.
    let (latency, lateness) = (report.latency_us.expect("answers"), report.lateness_us.expect("a schedule"));
    assert!(latency.max >= 98_900.0, "{latency:?}");
    assert!(lateness.max >= 98_900.0 && lateness.max <= latency.max, "{lateness:?}");
}

#[test]
fn what_was_due_and_never_sent_is_told() {
    let (server, address) = start(|_| false);
    let mut options = options(address, "example A", 1);
    options.limit = None;
    options.seconds = 0.05;
    options.rate = Some(1000.0);
    options.outstanding = 1;
    options.timeout = Duration::from_millis(100);
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    assert_eq!((report.received, report.sent), (0, report.lost));
    assert_eq!(report.sent + report.unsent, 50);
    assert!(report.unsent >= 40, "{report:?}");
}

#[test]
fn what_is_sent_to_warm_up_does_not_count() {
    let (server, address) = start(|_| true);
    let mut options = options(address, "example A", 1);
    options.limit = None;
    options.warm_up = Duration::from_millis(50);
    options.seconds = 0.05;
    options.rate = Some(1000.0);
    let report = run(&options).expect("ran");
    let statistics = server.statistics();
    server.stop().expect("stopped");
    assert_eq!((report.sent, report.received), (50, 50));
    assert_eq!(statistics.total().datagrams_in, 100);
}

#[test]
fn random_arrivals_follow_their_seed() {
    let (server, address) = start(|_| true);
    let mut options = options(address, "example A", 1);
    options.limit = None;
    options.seconds = 0.2;
    options.rate = Some(2000.0);
    options.arrivals = Arrivals::Poisson;
    let counts = [3, 3, 4].map(|seed| {
        options.seed = seed;
        let report = run(&options).expect("ran");
        report.sent + report.unsent
    });
    server.stop().expect("stopped");
    assert_eq!(counts[0], counts[1]);
    assert_ne!(counts[0], counts[2]);
    // The mean is 400, with a standard deviation of 20.
    assert!(counts.iter().all(|count| (300..500).contains(count)), "{counts:?}");
}

#[test]
fn each_socket_is_a_sender_of_its_own() {
    for rate in [None, Some(100_000.0)] {
        let (server, local_addr, seen) = start_noting_senders();
        let mut options = options(local_addr, "example A", 1200);
        (options.threads, options.sockets, options.rate) = (2, 3, rate);
        let report = run(&options).expect("ran");
        server.stop().expect("stopped");
        assert_eq!((report.sent, report.received, report.unexpected), (1200, 1200, 0));
        let mut counts: BTreeMap<SocketAddr, u64> = BTreeMap::new();
        seen.iter().for_each(|peer| *counts.entry(peer).or_default() += 1);
        assert_eq!((counts.len(), counts.values().sum::<u64>()), (6, 1200), "{counts:?}");
    }
}

#[test]
fn sockets_send_from_the_addresses_that_are_given() {
    let (server, local_addr, seen) = start_noting_senders();
    let mut options = options(local_addr, "example A", 120);
    (options.threads, options.sockets) = (2, 2);
    options.sources = "127.9.0.0/16".parse().ok();
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    assert_eq!(report.received, 120);
    let mut clients: Vec<String> = seen.iter().map(|sender| sender.ip().to_string()).collect();
    clients.sort_unstable();
    clients.dedup();
    assert_eq!(clients, ["127.9.160.0", "127.9.224.0", "127.9.32.0", "127.9.96.0"]);
}

#[test]
fn names_are_made_random_on_the_wire() {
    let (sender, seen) = channel();
    let (server, address) = start(move |response| sender.send(response.clone()).is_ok());
    let mut options = options(address, "a.example A\nb.example AAAA", 40);
    options.random_prefix = true;
    run(&options).expect("ran");
    server.stop().expect("stopped");
    let questions: Vec<Vec<u8>> = seen.iter().map(|query| query[12..].to_vec()).collect();
    for (number, question) in questions.iter().enumerate() {
        let tail: &[u8] =
            if number % 2 == 0 { b"\x01a\x07example\0\0\x01" } else { b"\x01b\x07example\0\0\x1c" };
        assert_eq!((question[0], &question[13..13 + tail.len()]), (12, tail));
    }
    let mut labels: Vec<&[u8]> = questions.iter().map(|question| &question[..13]).collect();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), 40);
}

#[test]
fn a_closed_loop_sends_each_thousand_by_length_and_an_open_one_as_they_are() {
    let lengths = [3, 1, 2, 1, 3];
    let list: String = lengths.iter().map(|length| format!("{} A\n", "x".repeat(*length))).collect();
    for (rate, expected) in [(None, [1, 1, 2, 3, 3]), (Some(10_000.0), lengths)] {
        let (sender, seen) = channel();
        let (server, address) = start(move |response| sender.send(response[12]).is_ok());
        let mut options = options(address, &list, 10);
        options.rate = rate;
        run(&options).expect("ran");
        server.stop().expect("stopped");
        let found: Vec<usize> = seen.iter().map(usize::from).collect();
        assert_eq!(found, [expected, expected].concat());
    }
    let many: String = (0..1500).rev().map(|number| format!("{} A\n", "x".repeat(1 + number % 50))).collect();
    let order = order::send_order(&options(([127, 0, 0, 1], 53).into(), &many, 1)).expect("a closed loop");
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..1500).collect::<Vec<_>>());
    assert!(order[..1024].iter().all(|number| *number < 1024), "each query stays within its thousand");
}

#[test]
fn nobody_listening_is_an_error() {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let address = listeners.local_addr;
    drop(listeners);
    let error = run(&options(address, "example A", 10)).expect_err("nobody listens");
    assert!(matches!(error, LoadError::NotListening { server, .. } if server == address), "{error}");
}

#[test]
fn senseless_options_are_refused() {
    let good = options("127.0.0.1:53".parse().expect("an address"), "example A", 1);
    type Spoil = fn(&mut LoadOptions);
    let long = format!("{}.{} A", "x".repeat(62), vec!["y".repeat(62); 3].join("."));
    let mut too_long = options("127.0.0.1:53".parse().expect("an address"), &long, 1);
    too_long.random_prefix = true;
    let bad: [(&str, Spoil); 20] = [
        ("--threads", |options| options.threads = 0),
        ("--outstanding", |options| options.outstanding = 0),
        ("--outstanding", |options| options.outstanding = 20_000),
        ("--seconds", |options| options.seconds = f64::NAN),
        ("--rate", |options| options.rate = Some(0.0)),
        ("--timeout", |options| options.timeout = Duration::ZERO),
        ("--limit", |options| options.limit = Some(0)),
        ("--edns-size", |options| options.edns_size = 0),
        ("--sockets", |options| options.sockets = 0),
        ("--outstanding", |options| options.sockets = 300),
        ("--source", |options| options.sources = "::1/128".parse().ok()),
        ("--rate", |options| options.rate = Some(1e8)),
        ("--edns-option", |options| options.edns_options = vec![(1, vec![0; 509])]),
        ("--connections", |options| options.connections = 0),
        ("--tls", |options| options.transport = Transport::Tls),
        ("--follow-truncated", |options| {
            (options.follow_truncated, options.transport) = (true, Transport::Tcp);
        }),
        ("--zipf", |options| options.zipf = Some(f64::NAN)),
        ("--random-label", |options| (options.random_label, options.random_prefix) = (true, true)),
        ("--edns-size", |options| {
            (options.edns_size, options.dnssec_ok, options.cookies) = (0, false, true);
        }),
        ("--warm-up", |options| options.warm_up = Duration::from_secs(3601)),
    ];
    for (name, spoil) in bad {
        let mut options = good.clone();
        spoil(&mut options);
        let error = run(&options).expect_err("refused");
        assert!(matches!(error, LoadError::Misconfigured { option, .. } if option == name), "{error}");
    }
    let error = run(&too_long).expect_err("refused");
    assert!(matches!(error, LoadError::Misconfigured { option: "--random-prefix", .. }), "{error}");
}

#[test]
fn a_report_is_written_for_machines() {
    let (server, address) = start(|_| true);
    let closed = run(&options(address, "example A", 5)).expect("ran");
    let rate = Some(1000.0);
    let open = run(&LoadOptions { rate, ..options(address, "example A", 5) }).expect("ran");
    server.stop().expect("stopped");
    let json = serde_json::to_value(&closed).expect("written");
    assert_eq!((&json["received"], &json["rcodes"]["NOERROR"]), (&5.into(), &5.into()));
    let keys: Vec<&String> = json["latency_us"].as_object().expect("figures").keys().collect();
    assert_eq!(keys, ["max", "mean", "min", "p50", "p90", "p99", "p99_9", "p99_99"]);
    let histogram = json["latency_histogram_ns"].as_array().expect("a list");
    let counted: u64 = histogram.iter().filter_map(|bucket| bucket[1].as_u64()).sum();
    assert_eq!(counted, 5);
    assert!(histogram.iter().all(|bucket| bucket[0].as_u64() > Some(0)));
    assert!(json["server_cpu_us_per_query"].is_null() && json["rate"].is_null());
    assert!(json["lateness_us"].is_null() && json["client_cpu_us_per_query"].is_number());
    let json = serde_json::to_value(&open).expect("written");
    assert_eq!(
        (&json["rate"], &json["arrivals"], &json["unsent"]),
        (&1000.0.into(), &"even".into(), &0.into())
    );
    assert!(json["lateness_us"]["p99"].is_number());
}
