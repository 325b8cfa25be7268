//! Experiments with resolvers: short runs of this program's resolver. No assertion depends on speed.

use crate::common::{done, folder};
use nonesuch_lab::peers::Peer;
use nonesuch_net::namespace::NetworkNamespace;
use nonesuch_testing::{record_skip, require_peer};
use serde_json::Value;
use std::fs;

/// Settings for trees and loads of a fraction of a second.
const TINY: [&str; 6] =
    ["rounds=1", "zones=2", "names=60", "queries=60", "samples=100", "resolvers=nonesuch"];

/// Whether this system has network namespaces with simulated paths.
fn can_simulate() -> bool {
    let is_possible = NetworkNamespace::new().is_ok_and(|namespace| namespace.open_tun(1500).is_ok());
    if !is_possible {
        record_skip("network namespaces or TUN devices cannot be used");
    }
    is_possible
}

/// Runs an experiment with these parameters after [`TINY`]. Returns its rows as maps, and the notes
/// of the run.
fn rows_of(experiment: &str, settings: &[&str]) -> (Vec<Value>, String) {
    let folder = folder();
    let out = folder.path().join("out");
    let mut arguments = vec!["lab", "run", experiment, "--out", out.to_str().expect("UTF-8")];
    arguments.extend(TINY.iter().chain(settings).flat_map(|setting| ["--set", setting]));
    done(arguments);
    let record: Value =
        serde_json::from_slice(&fs::read(out.join("results.json")).expect("a record")).expect("JSON");
    let table = fs::read_to_string(out.join("results.csv")).expect("a table");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("names of columns");
    // No text of these rows has a comma.
    let row = |cells: Vec<&str>| names.iter().zip(cells).map(|(name, cell)| (*name, cell)).collect();
    (lines.map(row).collect(), record["notes"].to_string())
}

/// The number in a column of a row; zero for an empty cell.
fn number(row: &Value, column: &str) -> f64 {
    row[column].as_str().unwrap_or_else(|| panic!("no column {column}")).parse().unwrap_or(0.0)
}

/// Checks that all queries are answered, and that the answers have the flag AD if the resolver
/// validates and the zone is signed. Queries without DO have AD (RFC 6840 §5.7).
#[track_caller]
fn check_answers(rows: &[Value]) {
    for row in rows {
        assert_eq!(number(row, "received"), number(row, "sent"), "{row}");
        assert_eq!(number(row, "noerror") + number(row, "nxdomain"), number(row, "received"), "{row}");
        let is_secure = number(row, "validation") == 1.0 && row["denial"] != "unsigned";
        assert_eq!(number(row, "authenticated"), f64::from(u8::from(is_secure)), "{row}");
    }
}

#[test]
fn each_traffic_has_the_expected_upstream_queries() {
    if !can_simulate() {
        return;
    }
    let settings = ["traffic=existing,wildcard,denied,denied-random,mixed:50,no-data,below", "dnssec=off,on"];
    let (rows, _) = rows_of("resolver-load", &settings);
    assert_eq!(rows.len(), 14);
    check_answers(&rows);
    for row in &rows {
        let upstream = number(row, "upstream_udp") + number(row, "upstream_tcp");
        let is_new = ["existing", "wildcard", "denied"].iter().any(|traffic| row["traffic"] == *traffic);
        assert!(!is_new || upstream >= number(row, "sent"), "{row}");
        assert!(number(row, "upstream_response_octets") > number(row, "upstream_query_octets"), "{row}");
    }
    let (rows, _) = rows_of("resolver-full-cache", &["seconds=0.2"]);
    check_answers(&rows);
    assert!(rows.iter().all(|row| number(row, "upstream_udp") == 0.0), "{rows:?}");
}

#[test]
fn cached_denials_save_queries_as_their_mechanism_permits() {
    if !can_simulate() {
        return;
    }
    let trees = "trees=ECDSAP256SHA256 nsec,ECDSAP256SHA256 nsec5,ECDSAP256SHA256 white-lies";
    let settings = [trees, "names=4", "queries=200", "aggressive=true", "outstanding=1"];
    let (rows, _) = rows_of("negative-caching", &settings);
    check_answers(&rows);
    let upstream = |denial: &str, traffic: &str| {
        let row = rows.iter().find(|row| row["denial"] == denial && row["traffic"] == traffic);
        number(row.expect("a row"), "upstream_udp")
    };
    // Eight gaps between names, and the names of NSEC5 records are hashed with a VRF.
    assert!(upstream("nsec", "denied-random") <= 20.0);
    assert!(upstream("nsec5", "denied-random") >= 190.0);
    assert!(upstream("white-lies", "denied-random") >= 190.0);
    assert!(upstream("nsec5", "below") < 120.0, "RFC 8020");
}

#[test]
fn paths_delay_and_block() {
    if !can_simulate() {
        return;
    }
    let settings = ["trees=ECDSAP256SHA256 nsec", "dnssec=on", "paths=rtt=4,rtt=4 no-udp", "seconds=5"];
    let (rows, _) = rows_of("resolver-matrix", &settings);
    let [delayed, blocked] = &rows[..] else { panic!("{rows:?}") };
    check_answers(std::slice::from_ref(delayed));
    assert!(number(delayed, "latency_p50_us") >= 4_000.0, "{delayed}");
    assert_eq!(number(delayed, "from_cache"), 0.0, "each name is new: {delayed}");
    assert_eq!(number(blocked, "noerror") + number(blocked, "nxdomain"), 0.0, "{blocked}");
}

#[test]
fn a_restart_and_a_flush_empty_the_cache() {
    if !can_simulate() {
        return;
    }
    let settings =
        ["intervals=4", "event-at=2", "seconds=0.5", "rates=200", "paths=rtt=10", "traffic=mixed:0"];
    let (rows, _) = rows_of("cold-start", &settings);
    for event in ["restart", "cache-flush"] {
        let of_event = rows.iter().filter(|row| row["event"] == event);
        let hits: Vec<f64> = of_event.map(|row| number(row, "from_cache")).collect();
        assert_eq!(hits.len(), 4);
        assert!(hits[1] > hits[0] && hits[2] < hits[1] && hits[3] > hits[2], "{event}: {hits:?}");
    }
    assert!(rows.iter().all(|row| number(row, "servfail") == 0.0), "{rows:?}");
}

#[test]
fn recorded_queries_are_replayed() {
    if !can_simulate() {
        return;
    }
    let folder = folder();
    let list = folder.path().join("queries");
    // 40 queries for 10 names; the second type of each does not exist.
    let lines: String =
        (0..40).map(|number| format!("n{}.test {}\n", number % 10, ["A", "AAAA"][number / 10 % 2])).collect();
    fs::write(&list, lines).expect("written");
    let file = format!("query-file={}", list.display());
    let settings =
        ["trees=MLDSA44 nsec", "paths=direct", "transports=udp", "traffic=replayed", "queries=40", &file];
    let (rows, _) = rows_of("pqc-resolver", &settings);
    assert!(!rows.is_empty());
    for row in &rows {
        assert_eq!(
            [number(row, "sent"), number(row, "noerror"), number(row, "nxdomain")],
            [40.0, 40.0, 0.0],
            "{row}"
        );
        // Ten names and their missing types are each asked once, and again over TCP.
        assert!(
            (20.0..=60.0).contains(&(number(row, "upstream_udp") + number(row, "upstream_tcp"))),
            "{row}"
        );
    }
    let settings =
        ["traffic=replayed,existing", "trees=ECDSAP256SHA256 nsec", "paths=direct", "transports=udp"];
    let (rows, notes) = rows_of("pqc-resolver", &settings);
    assert!(rows.iter().all(|row| row["traffic"] == "existing"));
    assert!(notes.contains("set query-file"), "{notes}");
}

#[test]
fn each_algorithm_and_level_is_validated() {
    if !can_simulate() {
        return;
    }
    let settings = [
        "trees=ECDSAP256SHA256 nsec,MLDSA44 nsec",
        "signers=all,leaf",
        "paths=direct,clients rtt=2",
        "udp-octets=512,1232",
        "transports=udp,tcp,tls",
    ];
    let (rows, _) = rows_of("pqc-resolver", &settings);
    assert_eq!(rows.len(), 48);
    check_answers(&rows);
    let needs_tcp = |row: &Value| number(row, "upstream_tcp") > 0.0;
    assert!(rows.iter().filter(|row| row["scheme"] == "ML-DSA-44").all(needs_tcp), "{rows:?}");
}

#[test]
fn powerdns_serves_white_lies_to_the_resolver() {
    if !can_simulate() {
        return;
    }
    require_peer!(Peer::PowerDns.info().programs[0]);
    let settings =
        ["trees=ECDSAP256SHA256 white-lies", "zone-servers=powerdns", "traffic=mixed:100", "dnssec=on"];
    let (rows, notes) = rows_of("nsec5-resolver", &settings);
    check_answers(&rows);
    assert_eq!(rows.len(), 1, "{notes}");
    assert_eq!(rows[0]["upstream_udp"], "", "PowerDNS is not asked for its counters");
}

#[test]
fn loads_that_need_more_names_are_left_out() {
    if !can_simulate() {
        return;
    }
    let (rows, notes) = rows_of("resolver-load", &["queries=200", "traffic=existing,below", "dnssec=on"]);
    assert!(rows.iter().all(|row| row["traffic"] == "below"), "{rows:?}");
    assert!(notes.contains("200 queries need 200 names, but the trees have 120"), "{notes}");
}
