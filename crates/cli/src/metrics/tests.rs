use super::table::{GROUPS, MetricKind, table, table_of};
use super::text::{OPEN_METRICS_TYPE, PROMETHEUS_TEXT_TYPE, open_metrics, prometheus_text};
use super::*;
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::online::Operation;
use nonesuch_net::Transport;
use nonesuch_net::event_loop::UpstreamCounters;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use nonesuch_server::cookies::CookieStatus;
use nonesuch_server::statistics::{
    Direction, DropReason, NotifyCount, Observation, QueryFlags, Statistics, TransferKind, TransferResult,
    TsigResult,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A snapshot in which every metric has a sample.
fn full() -> Snapshot {
    let statistics = Statistics::new();
    let mut udp = statistics.thread(Transport::Udp);
    let now = Instant::now();
    udp.begin_batch(now);
    for (qtype, rcode, octets) in [(Rtype::A, 0, 100), (Rtype(65280), 3, 1232), (Rtype::DNSKEY, 23, 1233)] {
        udp.count_observation(&Observation {
            qtype,
            rcode: Rcode(rcode),
            query_octets: 40,
            response_octets: octets,
            flags: QueryFlags::EDNS.with(QueryFlags::DNSSEC_OK, true).with(QueryFlags::TRUNCATED, rcode == 3),
        });
    }
    udp.record_sent(now + Duration::from_micros(15));
    udp.count_drop(DropReason::RateLimited);
    udp.count_slip();
    udp.count_over_budget();
    udp.count_prohibited();
    udp.count_cookie(CookieStatus::Valid);
    udp.count_tsig(TsigResult::BadTime);
    udp.count_other_message(4, Rcode::NOERROR);
    udp.count_other_message(3, Rcode::NOTIMP);
    let transfers = statistics.transfers();
    transfers.record(Direction::In, TransferKind::Ixfr, TransferResult::Done, 2, 900);
    transfers.count_notify(Direction::Out, NotifyCount::Unanswered);
    let operation = Operation::SignDenial(Mechanism::Compact, Algorithm::ED25519);
    let operations = BTreeMap::from([(operation, 5), (Operation::SignData(Algorithm::ED448), 1)]);
    let online = OnlineCounters {
        hits: operations.clone(),
        misses: operations.clone(),
        operations,
        ..OnlineCounters::default()
    };
    let zone = |zone: &str, state, serial| ZoneRow {
        zone: zone.to_owned(),
        state,
        serial,
        loaded_at: serial.map(|_| 1_800_000_000),
        nearest_expiration: serial.map(|_| 1_800_600_000),
        records: serial.map(u64::from),
        is_rejected: state == "failed",
        queries: Some(12),
        refresh: serial.map(|_| RefreshTimes {
            refreshed: Some(1_800_000_000),
            next: Some(1_800_003_600),
            expires: Some(1_800_604_800),
        }),
    };
    Snapshot {
        statistics: statistics.sum(),
        online,
        udp: UdpCounters { oversized: 4, ..UdpCounters::default() },
        tcp: TcpCounters { accepted: 7, refused: 1, refused_client: 2, open: 3, ..TcpCounters::default() },
        tls: Some(TcpCounters { handshakes: 9, resumed: 4, handshakes_failed: 2, ..TcpCounters::default() }),
        dnstap: Some(DnstapCounters { dropped: 2, ..DnstapCounters::default() }),
        zones: vec![
            zone("example.", "serving", Some(7)),
            zone("a\\.b\\\"c.example.", "serving", Some(u32::MAX)),
            zone("other.", "failed", None),
        ],
        max_zones_with_gauges: DEFAULT_MAX_ZONES,
        reloads: Reloads {
            succeeded: 3,
            rejected: 2,
            is_last_rejected: true,
            last_read_at: 1_800_000_050,
            in_use_since: 1_800_000_010,
        },
        resolver: None,
        log: LogCounters { dropped: 6, suppressed: 8 },
        now: 1_800_000_060,
    }
}

/// A snapshot of a resolver in which every metric has a sample.
fn full_resolver() -> Snapshot {
    let cache = CacheStatistics { entries: 5, octets: 4096, hits: 7, misses: 2, insertions: 6, evictions: 1 };
    let upstream = UpstreamCounters {
        datagrams_out: 9,
        datagrams_in: 8,
        messages_out: 4,
        messages_in: 3,
        connections_reused: 2,
        unreachable: 1,
        open_sockets: 6,
        ..UpstreamCounters::default()
    };
    let servers = ServerTableStatistics { servers: 11, ..ServerTableStatistics::default() };
    let model = ModelTotals { algorithms: vec![(13, 14, 15)], ..ModelTotals::default() };
    let resolver = ResolverCounters {
        cache,
        servers,
        upstream,
        model,
        discarded_queries: 12,
        ..ResolverCounters::default()
    };
    Snapshot { resolver: Some(resolver), ..full() }
}

/// The value of a sample as text.
fn value<'t>(text: &'t str, sample: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))
}

#[test]
fn every_metric_is_written_with_its_labels() {
    let text = open_metrics(full());
    for (sample, expected) in [
        ("nonesuch_queries_total{transport=\"udp\",type=\"A\"}", "1"),
        ("nonesuch_queries_total{transport=\"udp\",type=\"OTHER\"}", "1"),
        ("nonesuch_responses_total{transport=\"udp\",rcode=\"NXDOMAIN\"}", "1"),
        ("nonesuch_truncated_responses_total{transport=\"udp\"}", "1"),
        ("nonesuch_truncated_responses_total{transport=\"tls\"}", "0"),
        ("nonesuch_response_size_bytes_bucket{le=\"128.0\",transport=\"udp\"}", "1"),
        ("nonesuch_response_size_bytes_bucket{le=\"1232.0\",transport=\"udp\"}", "2"),
        ("nonesuch_response_size_bytes_bucket{le=\"+Inf\",transport=\"udp\"}", "3"),
        ("nonesuch_response_size_bytes_sum{transport=\"udp\"}", "2565.0"),
        ("nonesuch_response_duration_seconds_bucket{le=\"0.00001\",transport=\"udp\"}", "0"),
        ("nonesuch_response_duration_seconds_bucket{le=\"0.00002\",transport=\"udp\"}", "3"),
        ("nonesuch_response_duration_seconds_count{transport=\"udp\"}", "3"),
        ("nonesuch_other_requests_total{transport=\"udp\",opcode=\"NOTIFY\",rcode=\"NOERROR\"}", "1"),
        ("nonesuch_other_requests_total{transport=\"udp\",opcode=\"OPCODE3\",rcode=\"NOTIMP\"}", "1"),
        ("nonesuch_log_lines_dropped_total", "6"),
        ("nonesuch_log_lines_suppressed_total", "8"),
        ("nonesuch_dropped_total{transport=\"udp\",reason=\"rate_limited\"}", "1"),
        ("nonesuch_dropped_total{transport=\"udp\",reason=\"too_long\"}", "4"),
        ("nonesuch_prohibited_total{transport=\"udp\"}", "1"),
        ("nonesuch_online_operations_total{mechanism=\"compact\",algorithm=\"ED25519\"}", "5"),
        ("nonesuch_online_cache_hits_total{mechanism=\"data\",algorithm=\"ED448\"}", "1"),
        ("nonesuch_transfers_total{direction=\"in\",kind=\"ixfr\",result=\"done\"}", "1"),
        ("nonesuch_transfer_bytes_total{direction=\"in\"}", "900"),
        ("nonesuch_notifies_total{direction=\"out\",result=\"unanswered\"}", "1"),
        ("nonesuch_connections_total{transport=\"tcp\",outcome=\"accepted\"}", "7"),
        ("nonesuch_connections_total{transport=\"tcp\",outcome=\"refused\"}", "3"),
        ("nonesuch_open_connections{transport=\"tcp\"}", "3.0"),
        ("nonesuch_open_connections{transport=\"tls\"}", "0.0"),
        ("nonesuch_zones{state=\"serving\"}", "2.0"),
        ("nonesuch_zones{state=\"expired\"}", "0.0"),
        ("nonesuch_nearest_signature_expiry_timestamp_seconds", "1800600000.0"),
        ("nonesuch_zone_serial{zone=\"a\\\\.b\\\\\\\"c.example.\"}", "4294967295.0"),
        ("nonesuch_zone_is_served{zone=\"other.\"}", "0.0"),
        ("nonesuch_zone_age_seconds{zone=\"example.\"}", "60.0"),
        ("nonesuch_dnstap_frames_total{outcome=\"dropped\"}", "2"),
        ("nonesuch_tls_handshakes_total{outcome=\"full\"}", "5"),
        ("nonesuch_tls_handshakes_total{outcome=\"resumed\"}", "4"),
        ("nonesuch_tls_handshakes_total{outcome=\"failed\"}", "2"),
        ("nonesuch_refused_zones", "1.0"),
        ("nonesuch_zone_is_refused{zone=\"example.\"}", "0.0"),
        ("nonesuch_zone_is_refused{zone=\"other.\"}", "1.0"),
        ("nonesuch_reloads_total{result=\"done\"}", "3"),
        ("nonesuch_reloads_total{result=\"refused\"}", "2"),
        ("nonesuch_last_reload_is_done", "0.0"),
        ("nonesuch_last_reload_timestamp_seconds", "1800000050.0"),
        ("nonesuch_configuration_timestamp_seconds", "1800000010.0"),
    ] {
        assert_eq!(value(&text, sample), Some(expected), "{sample}\n{text}");
    }
    assert_samples(&full(), &text);
    assert!(text.ends_with("# EOF\n"));
}

/// Checks that every metric of the server has a sample and a proper name and help text.
fn assert_samples(snapshot: &Snapshot, text: &str) {
    for metric in table_of(snapshot) {
        let start = metric.full_name();
        let has_sample = text.lines().any(|line| !line.starts_with('#') && line.starts_with(&start));
        assert!(has_sample, "{start}\n{text}");
        // Prometheus' rules for names, and a help text of one line.
        assert!(start.bytes().all(|octet| octet.is_ascii_lowercase() || octet == b'_'), "{start}");
        assert!(metric.help.len() > 15 && !metric.help.ends_with('.'), "{start}: {}", metric.help);
        assert!(!metric.help.contains(['\n', '\\', '"']), "{start}");
    }
}

#[test]
fn a_resolver_has_its_own_metrics() {
    let text = open_metrics(full_resolver());
    for (sample, expected) in [
        ("nonesuch_queries_total{transport=\"udp\",type=\"A\"}", "1"),
        ("nonesuch_dropped_total{transport=\"udp\",reason=\"busy\"}", "12"),
        ("nonesuch_cache_lookups_total{result=\"hit\"}", "7"),
        ("nonesuch_cache_lookups_total{result=\"miss\"}", "2"),
        ("nonesuch_cache_insertions_total", "6"),
        ("nonesuch_cache_evictions_total", "1"),
        ("nonesuch_cache_entries", "5.0"),
        ("nonesuch_cache_memory_bytes", "4096.0"),
        ("nonesuch_upstream_queries_total{transport=\"udp\"}", "9"),
        ("nonesuch_upstream_queries_total{transport=\"tcp\"}", "4"),
        ("nonesuch_upstream_responses_total{transport=\"udp\"}", "8"),
        ("nonesuch_upstream_failures_total{reason=\"unreachable\"}", "1"),
        ("nonesuch_upstream_connections_total{outcome=\"reused\"}", "2"),
        ("nonesuch_upstream_open_sockets{transport=\"udp\"}", "6.0"),
        ("nonesuch_upstream_servers", "11.0"),
    ] {
        assert_eq!(value(&text, sample), Some(expected), "{sample}\n{text}");
    }
    assert_samples(&full_resolver(), &text);
    // Neither kind of server has the metrics of the other.
    assert!(!text.contains("nonesuch_zone") && !open_metrics(full()).contains("nonesuch_upstream"), "{text}");
}

#[test]
fn names_are_used_once() {
    let names: BTreeSet<String> = table().map(|metric| metric.full_name()).collect();
    assert_eq!(names.len(), table().count());
}

#[test]
fn many_zones_have_no_gauges_of_their_own() {
    let mut snapshot = full();
    snapshot.max_zones_with_gauges = 2;
    let text = open_metrics(snapshot);
    assert!(!text.contains("{zone="), "{text}");
    assert_eq!(value(&text, "nonesuch_zones{state=\"failed\"}"), Some("1.0"));
    assert!(value(&text, "nonesuch_nearest_signature_expiry_timestamp_seconds").is_some());
}

#[test]
fn the_older_format_describes_samples_by_their_full_names() {
    let text = prometheus_text(full());
    assert!(text.contains("# TYPE nonesuch_queries_total counter\n"), "{text}");
    assert!(text.contains("# TYPE nonesuch_build_info gauge\n"), "{text}");
    assert!(text.contains("# TYPE nonesuch_query_size_bytes histogram\n"), "{text}");
    assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
    let described = |word: &str| text.lines().filter(|line| line.starts_with(word)).count();
    assert_eq!(
        (described("# HELP"), described("# TYPE")),
        (table_of(&full()).count(), table_of(&full()).count())
    );
}

/// Sends the request text unchanged, and reads until the connection ends.
fn request(address: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    stream.write_all(text.as_bytes()).expect("written");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn get(address: SocketAddr, path: &str, accept: &str) -> String {
    request(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\nAccept: {accept}\r\n\r\n"))
}

fn served() -> MetricsServer {
    let listener = bind("127.0.0.1:0".parse().expect("an address")).expect("a listener");
    start(listener, full).expect("a server")
}

#[test]
fn each_client_gets_the_format_that_it_requests() {
    let server = served();
    let open = get(server.address(), "/metrics", "application/openmetrics-text;version=1.0.0,*/*;q=0.1");
    assert!(open.starts_with("HTTP/1.1 200 ") && open.contains(OPEN_METRICS_TYPE), "{open}");
    assert!(open.ends_with("# EOF\n"));
    let older = get(server.address(), "/metrics", "*/*");
    assert!(older.starts_with("HTTP/1.1 200 ") && older.contains(PROMETHEUS_TEXT_TYPE), "{older}");
    assert!(get(server.address(), "/", "*/*").starts_with("HTTP/1.1 404 "));
    assert!(get(server.address(), "/metrics/x", "*/*").starts_with("HTTP/1.1 404 "));
    let posted = "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    assert!(request(server.address(), posted).starts_with("HTTP/1.1 405 "));
}

#[test]
fn the_size_of_a_request_is_limited() {
    let server = served();
    let mut long = "GET /metrics HTTP/1.1\r\n".to_owned();
    for line in 0..200 {
        write!(long, "X-{line}: {}\r\n", "a".repeat(100)).expect("written");
    }
    let mut stream = TcpStream::connect(server.address()).expect("a connection");
    // The server may have responded before the complete request is sent.
    let _ = stream.write_all(long.as_bytes());
    let _ = stream.write_all(b"\r\n");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(
        String::from_utf8_lossy(&answer).starts_with("HTTP/1.1 431 "),
        "{:?}",
        String::from_utf8_lossy(&answer)
    );
    // The server still responds.
    assert!(get(server.address(), "/metrics", "*/*").starts_with("HTTP/1.1 200 "));
}

#[test]
fn a_server_that_is_dropped_frees_its_address() {
    let address = served().address();
    TcpListener::bind(address).expect("a free address");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let error = bind(taken.local_addr().expect("an address")).expect_err("an address in use");
    assert!(error.to_string().contains("metrics-listen"), "{error}");
}

/// Runs a program with a text as input. Returns `None` if the program is not installed.
fn run(program: &str, arguments: &[&str], input: &str) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        nonesuch_testing::record_skip(&format!("{program} is not installed"));
        return None;
    };
    // It is not an error if the program ends before it has read all input.
    let _ = child.stdin.take().expect("its input").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

#[test]
fn promtool_finds_no_fault() {
    for snapshot in [full(), full_resolver()] {
        if let Some((is_fine, output)) = run("promtool", &["check", "metrics"], &prometheus_text(snapshot)) {
            assert!(is_fine, "{output}");
        }
    }
}

/// Prints the result of the parser in Prometheus' client for Python: each family with its type,
/// unit and number of samples.
const PARSE: &str = "
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict
from prometheus_client.parser import text_string_to_metric_families as older
parse = strict if sys.argv[1] == 'open' else older
for family in parse(sys.stdin.read()):
    print(family.name, family.type, family.unit or '-', len(family.samples))
";

#[test]
fn the_strict_parser_of_prometheus_reads_both_formats() {
    // The packages of the system are installed for the system's Python, which need not be the first
    // `python3` in the path.
    let has_parser = |python: &&&str| {
        run(python, &["-c", "import prometheus_client.openmetrics.parser"], "")
            .is_some_and(|(found, _)| found)
    };
    let Some(python) = ["python3", "/usr/bin/python3"].iter().find(has_parser) else {
        nonesuch_testing::record_skip("Python's prometheus_client is not installed");
        return;
    };
    for (form, snapshot) in
        [("open", full()), ("older", full()), ("open", full_resolver()), ("older", full_resolver())]
    {
        let metrics: Vec<_> = table_of(&snapshot).collect();
        let text = if form == "open" { open_metrics(snapshot) } else { prometheus_text(snapshot) };
        let (is_read, output) = run(python, &["-c", PARSE, form], &text).expect("the same program");
        assert!(is_read, "{form}: {output}");
        let families: BTreeMap<&str, Vec<&str>> = output
            .lines()
            .filter_map(|line| line.split_once(' '))
            .map(|(name, rest)| (name, rest.split(' ').collect()))
            .collect();
        for metric in metrics {
            // The name of a counter family has no suffix. In the older format, an info metric is a
            // gauge.
            let full = metric.full_name();
            let name = full.strip_suffix("_total").unwrap_or(&full);
            let name = if form == "open" { name.strip_suffix("_info").unwrap_or(name) } else { name };
            let family = families.get(name).unwrap_or_else(|| panic!("{form}: no {name} in\n{output}"));
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
                MetricKind::Info if form == "open" => "info",
                MetricKind::Info => "gauge",
            };
            assert_eq!(family[0], kind, "{form}: {name}");
            assert!(
                form != "open" || family[1] == if metric.unit.is_empty() { "-" } else { metric.unit },
                "{name}"
            );
            assert_ne!(family[2], "0", "{form}: {name}");
        }
    }
}

/// `docs/metrics.md` has a row for each metric with name, labels and help text.
#[test]
fn the_manual_lists_every_metric() {
    let page = include_str!("../../../../docs/metrics.md");
    let mut expected = String::new();
    let with_headings = GROUPS.iter().flat_map(|(commands, parts)| {
        let metrics = parts.iter().copied().flatten().map(Some);
        [None].into_iter().chain(metrics).map(move |metric| (commands, metric))
    });
    for (commands, metric) in with_headings {
        let Some(metric) = metric else {
            writeln!(expected, "### {commands}").expect("written");
            continue;
        };
        let labels = metric.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
        let kind = format!("{:?}", metric.kind).to_lowercase();
        writeln!(expected, "| `{}` | {kind} | {labels} | {} |", metric.full_name(), metric.help)
            .expect("written");
    }
    let listed: String = page
        .lines()
        .filter(|line| line.starts_with("| `") || line.starts_with("### nonesuch"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        listed, expected,
        "docs/metrics.md does not list what the table has; it should say\n{expected}"
    );
}

#[test]
fn the_manual_page_lists_every_metric() {
    let page = manual::page();
    for metric in table() {
        assert!(page.contains(&format!("\\fB{}\\fR", metric.full_name())), "{page}");
    }
    if let Some((is_fine, output)) = run("man", &["--warnings", "-l", "-"], &page) {
        assert!(is_fine && output.contains("nonesuch_queries_total {transport, type} (counter)"), "{output}");
        assert!(!output.contains("warning"), "{output}");
    }
}
