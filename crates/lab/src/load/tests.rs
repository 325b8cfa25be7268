use std::path::Path;

use nonesuch_net::udp::{self, UdpOptions, UdpServer};
use nonesuch_net::{Listeners, bind};

use super::*;

fn queries(text: &str) -> Arc<QueryList> {
    Arc::new(QueryList::parse(Path::new("list"), text.as_bytes()).expect("has queries"))
}

fn options(server: SocketAddr, text: &str, limit: u64) -> LoadOptions {
    LoadOptions { limit: Some(limit), seconds: 60.0, ..LoadOptions::new(server, queries(text)) }
}

/// Starts a server of one worker whose answers `edit` makes from the query with QR set.
fn start<E>(edit: E) -> (UdpServer, SocketAddr)
where
    E: FnMut(&mut Vec<u8>) -> bool + Clone + Send + Sync + 'static,
{
    let Listeners { udp, local_addr, .. } =
        bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let make = move |_| {
        let mut edit = edit.clone();
        move |query: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
            response.extend_from_slice(query);
            response[2] |= 0x80;
            edit(response)
        }
    };
    (udp::serve(udp, &UdpOptions::new(), make).expect("started"), local_addr)
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
    // Header, the longest name, type, class and OPT.
    assert_eq!(report.response_octets_max, 12 + 11 + 4 + 11);
    assert!(report.response_octets_mean < 38.0 && report.response_octets_mean > 28.0);
    let latency = report.latency_us.expect("has answers");
    assert!(latency.min > 0.0 && latency.min <= latency.p50 && latency.p50 <= latency.p90);
    assert!(latency.p90 <= latency.p99 && latency.p99 <= latency.max && latency.mean <= latency.max);
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
    // Every answer carries the identifier of the query before.
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
    // The first answer carries an identifier that was never given, and each query is lost before its answer comes.
    let report = run(&options).expect("ran");
    server.stop().expect("stopped");
    assert_eq!((report.received, report.lost), (0, 20));
    assert!((1..=20).contains(&report.unexpected), "{}", report.unexpected);
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
        let (sender, seen) = std::sync::mpsc::channel();
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
    // Query number 99 is due after 99 ms; the machine may be slower, the generator not faster.
    assert!(report.seconds >= 0.099, "{} s", report.seconds);
}

#[test]
fn nobody_listening_is_an_error() {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let address = listeners.local_addr;
    drop(listeners);
    let error = run(&options(address, "example A", 10)).expect_err("nobody listens");
    assert!(matches!(error, LoadError::NotListening { server } if server == address), "{error}");
}

#[test]
fn senseless_options_are_refused() {
    let good = options("127.0.0.1:53".parse().expect("an address"), "example A", 1);
    type Spoil = fn(&mut LoadOptions);
    let bad: [(&str, Spoil); 8] = [
        ("threads", |options| options.threads = 0),
        ("outstanding", |options| options.outstanding = 0),
        ("outstanding", |options| options.outstanding = 20_000),
        ("seconds", |options| options.seconds = f64::NAN),
        ("rate", |options| options.rate = Some(0.0)),
        ("timeout", |options| options.timeout = Duration::ZERO),
        ("limit", |options| options.limit = Some(0)),
        ("edns_size", |options| options.edns_size = 0),
    ];
    for (name, spoil) in bad {
        let mut options = good.clone();
        spoil(&mut options);
        let error = run(&options).expect_err("refused");
        assert!(matches!(error, LoadError::Misconfigured { option, .. } if option == name), "{error}");
    }
}

#[test]
fn a_report_is_written_for_machines() {
    let (server, address) = start(|_| true);
    let report = run(&options(address, "example A", 5)).expect("ran");
    server.stop().expect("stopped");
    let json = serde_json::to_value(&report).expect("written");
    assert_eq!(json["received"], 5);
    assert_eq!(json["rcodes"]["NOERROR"], 5);
    assert!(json["latency_us"]["p99"].is_number());
    assert!(json["server_cpu_us_per_query"].is_null());
}
