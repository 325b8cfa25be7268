//! Complete comparisons with this test program as the server, and the presentation of the results.

use super::figures::Row;
use super::figures::tests::sample;
use super::*;
use crate::generate::{GenerateOptions, ZoneModel};
use crate::measure::zone_preparation::OperationCost;
use crate::measure::{AlgorithmChoice, ServerKeys};
use crate::statistics::ValueRange;
use nonesuch_net::tcp::{self, TcpOptions};
use nonesuch_net::udp::{self, UdpOptions};
use nonesuch_net::{Listeners, bind};
use nonesuch_proto::message::{Message, Record, Section};
use nonesuch_proto::{Class, Rtype};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Environment variables of the child process: its role, and the zone file.
const ROLE: &str = "NONESUCH_TEST_SERVER";
const ZONE: &str = "NONESUCH_TEST_ZONE";

/// The server of the other tests, which start this program with [`ROLE`] set. Without it, the test
/// does nothing.
#[test]
fn server_of_the_other_tests() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let keys = signed_keys(Path::new(&std::env::var(ZONE).expect("a path")));
    let Listeners { udp, tcp, local_addr, .. } =
        bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let responder = move |query: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
        *response = respond(query, &role, &keys);
        true
    };
    let responder_of_tcp = responder.clone();
    let _udp = udp::serve(udp, &UdpOptions::default(), move |_| responder.clone()).expect("started");
    let _tcp = tcp::serve(tcp, &TcpOptions::default(), move || responder_of_tcp).expect("started");
    println!("\nready: listening on {local_addr}");
    // If the parent process dies, the server ends after this time.
    let (_sender, never) = channel::<()>();
    let _ = never.recv_timeout(Duration::from_secs(30));
}

/// Returns the DNSKEY RRset and its signatures in the zone file.
fn signed_keys(file: &Path) -> Vec<Record> {
    let contents = nonesuch_zone::read::read_file(file, None).expect("a zone").contents;
    let owner = contents.apex();
    let apex = contents.find(owner.view()).expect("an apex");
    let rrsets = [apex.rrset(Rtype::DNSKEY), apex.signatures(Rtype::DNSKEY)];
    let records = rrsets.into_iter().flatten().flat_map(|rrset| {
        rrset.rdatas().map(move |rdata| Record {
            section: Section::Answer,
            owner: owner.clone(),
            rtype: rrset.rtype(),
            class: Class::IN,
            ttl: rrset.ttl(),
            rdata: rdata.to_vec(),
        })
    });
    records.collect()
}

/// Answers a query for the keys of the zone with `keys`. All other responses have no records.
fn respond(query: &[u8], role: &str, keys: &[Record]) -> Vec<u8> {
    let mut message = Message::parse(query).expect("a query");
    let Some(question) = message.questions.first() else { panic!("no question") };
    // A name whose first label has a double letter does not exist in a generated zone (see
    // `generate::query`).
    let first_label = question.name.view().labels().next().unwrap_or_default();
    let is_nonexistent =
        first_label.windows(2).any(|pair| pair[0] == pair[1] && pair[0].is_ascii_alphabetic());
    let is_dnskey = question.rtype == Rtype::DNSKEY;
    message.header.flags = match role {
        "refuse" => 0x8005,
        _ if is_nonexistent && !is_dnskey => 0x8403,
        _ => 0x8400,
    };
    message.records = if is_dnskey { keys.to_vec() } else { Vec::new() };
    message.to_octets()
}

fn zone() -> ComparedZone {
    let options = GenerateOptions { like: ZoneModel::Tld, names: 200, seed: 7, origin: "test." };
    ComparedZone::generate(&options).expect("a zone")
}

/// Runs a comparison with this test program as the server; `role` is `serve` or `refuse`.
fn run(
    role: &str,
    combinations: &[Combination],
    folder: &Path,
) -> (Result<Comparison, CompareError>, Vec<(u64, String)>) {
    let steps = RefCell::new(Vec::new());
    let zone = zone();
    let program = std::env::current_exe().expect("this program");
    let server = |zone: &ServedZone| {
        let text = std::fs::read(&zone.file).expect("the zone file is there before the server starts");
        let reading = nonesuch_zone::read::read_text(&text, &zone.file, None).expect("and is a zone");
        let directory = match &zone.keys {
            ServerKeys::None => None,
            ServerKeys::Online { directory, .. } | ServerKeys::Nsec5 { directory } => Some(directory),
        };
        assert!(directory.is_none_or(|path| std::fs::read_dir(path).expect("a directory").count() > 1));
        assert!(reading.contents.soa().is_some());
        let mut command = Command::new(&program);
        command
            .args(["--exact", "--nocapture", "experiment::compare::tests::server_of_the_other_tests"])
            .env(ROLE, role)
            .env(ZONE, &zone.file);
        command
    };
    let outcome = compare(&CompareOptions {
        zone: &zone,
        combinations,
        required_properties: &[],
        server: &server,
        seconds_per_load: 0.05,
        work_dir: folder,
        now: 1_772_366_400,
        command: "nonesuch compare".to_owned(),
        seed: 1,
        commit: "abc",
        progress: &|step| steps.borrow_mut().push((step.index, step.what.to_owned())),
    });
    (outcome, steps.into_inner())
}

#[test]
fn missing_cpus_are_noted() {
    assert_eq!(placement_note(Some(CpuPlacement { server: 1, load: 0 })), None);
    let note = placement_note(None).expect("a note");
    assert!(note.starts_with("No two CPUs were available to this process: "), "{note}");
}

fn signed(algorithm: nonesuch_crypto::Algorithm, mechanism: nonesuch_dnssec::Mechanism) -> Combination {
    Combination::Signed(AlgorithmChoice { algorithm, bits: None }, mechanism)
}

#[test]
fn a_zone_is_served_and_queried() {
    let folder = tempfile::tempdir().expect("a directory");
    let (outcome, steps) = run("serve", &[Combination::Unsigned], folder.path());
    let comparison = outcome.expect("compared");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a directory").count(), 0, "nothing is left behind");
    assert_eq!(comparison.run.date, "2026-03-01T12:00:00Z");
    assert_eq!((comparison.zone.counts.origin.as_str(), comparison.zone.counts.delegations), ("test.", 200));
    let [row] = &comparison.rows[..] else { panic!("one row") };
    assert!(row.existing.queries > 0 && row.existing.rcodes.contains_key("NOERROR"), "{row:?}");
    assert!(row.denied.rcodes.contains_key("NXDOMAIN"), "{row:?}");
    assert!(row.existing.qps.value > 0.0 && row.ready_s > 0.0);
    assert!(row.server_resident_kib.is_some_and(|kib| kib > 100));
    assert!(row.signing.is_none() && row.zone_octets == comparison.zone.octets);
    assert_eq!((row.validation.clone(), row.dnskey), (None, None));
    let rounds = (1..=ROUNDS).map(|round| format!("sending queries to 1 server, round {round} of {ROUNDS}"));
    let expected = ["unsigned: writing the zone file", "unsigned: starting the server"];
    let expected: Vec<String> = expected.into_iter().map(str::to_owned).chain(rounds).collect();
    assert_eq!(steps.into_iter().map(|(_, what)| what).collect::<Vec<_>>(), expected);
}

/// The server has the signed keys of the zone, but its other responses have no signatures.
#[test]
fn a_server_whose_responses_do_not_validate_gets_no_figures() {
    use nonesuch_crypto::Algorithm;
    use nonesuch_dnssec::Mechanism;
    let combination = signed(Algorithm::ED25519, Mechanism::Nsec);
    let folder = tempfile::tempdir().expect("a directory");
    let (outcome, steps) = run("serve", &[combination], folder.path());
    let error = outcome.expect_err("not proved");
    let CompareError::NotValidated { combination: named, invalid, all, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(named, combination);
    // Only responses to DNSKEY queries are valid: the DNSKEY response itself, and samples that happen
    // to be DNSKEY queries.
    let valid = all - invalid;
    assert!(valid >= 1 && invalid > valid, "{invalid} of {all}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a directory").count(), 0);
    let expected =
        ["generating keys", "signing", "verifying", "writing the zone file", "starting the server"];
    let stages: Vec<String> = steps.into_iter().map(|(_, what)| what).collect();
    assert_eq!(stages, expected.map(|stage| format!("ED25519 NSEC: {stage}")));
}

#[test]
fn a_server_that_refuses_ends_the_comparison_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a directory");
    let (outcome, _) = run("refuse", &[Combination::Unsigned], folder.path());
    let error = outcome.expect_err("refused");
    let CompareError::NotAnswered { combination, names, rcode, .. } = &error else { panic!("{error}") };
    assert_eq!((*combination, *names), (Combination::Unsigned, QueriedNames::Existing));
    assert_eq!(rcode.as_deref(), Some("REFUSED"));
    assert_eq!(std::fs::read_dir(folder.path()).expect("a directory").count(), 0);
}

#[test]
fn no_combinations_and_no_folder_are_errors() {
    assert!(matches!(run("serve", &[], Path::new(".")).0, Err(CompareError::NoCombinations)));
    let missing = Path::new("/nonexistent/folder");
    let (outcome, _) = run("serve", &[Combination::Unsigned], missing);
    assert!(matches!(outcome, Err(CompareError::Write { path, .. }) if path.starts_with(missing)));
}

#[test]
fn the_terminal_table_is_as_agreed() {
    let table = sample().table().expect("a table");
    assert_eq!(table, include_str!("table.golden.txt"));
    assert!(table.lines().all(|line| line.chars().count() <= 120));
}

/// A `T` after a size means that responses were truncated. For CPU time below one step of the
/// kernel's clock, the table shows an upper bound instead of zero.
#[test]
fn what_is_no_plain_figure_is_told_as_that() {
    let mut comparison = sample();
    let row = &mut comparison.rows[1];
    row.denied.truncated = row.denied.queries / 8;
    row.existing.truncated = row.existing.queries - 1;
    row.existing.server_cpu_us_per_query = Some(ValueRange::default());
    row.signing = row.signing.map(|work| OperationCost { cpu_s: 0.0, ..work });
    let table = comparison.table().expect("a table");
    let line = table.lines().find(|line| line.contains("RSASHA256/2048   NSEC  ")).expect("a row");
    for words in ["<0.003", "627T", "940T", "<0.033"] {
        assert!(line.contains(&format!(" {words} ")), "{words}: {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
    let html = comparison.page().expect("a page");
    assert!(html.contains("&lt;0.033"));
}

#[test]
fn the_widest_combinations_fit_the_terminal() {
    let mut comparison = sample();
    let wide = comparison.rows[3].clone();
    for combination in combinations(&AlgorithmChoice::all(), &[]) {
        let Row { algorithm, algorithm_number, bits, denial, .. } = Row::of(combination);
        comparison.rows.push(Row { algorithm, algorithm_number, bits, denial, ..wide.clone() });
    }
    let table = comparison.table().expect("a table");
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
}

/// The terminal table and the page mark experimental algorithms, and contain the reason below. They
/// mark no other algorithm.
#[test]
fn experimental_algorithms_are_marked_with_the_reason() {
    let mut comparison = sample();
    assert!(
        !comparison.table().expect("a table").contains("experimental")
            && !comparison.page().expect("a page").contains("xperimental")
    );
    let wide = comparison.rows[3].clone();
    let entries = || nonesuch_crypto::ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none());
    for entry in entries() {
        let mut row = wide.clone();
        row.algorithm = Some(entry.mnemonic.to_owned());
        (row.algorithm_number, row.bits) = (Some(entry.algorithm.0), None);
        // Two rows, but the reason must be there once.
        comparison.rows.push(row.clone());
        comparison.rows.push(row);
    }
    let (table, html) = (comparison.table().expect("a table"), comparison.page().expect("a page"));
    for entry in entries() {
        let marked = table.contains(&format!("{}*", entry.mnemonic));
        assert_eq!(marked, entry.scheme.experimental.is_some(), "{table}");
        let Some(reason) = entry.scheme.experimental else { continue };
        let name = entry.mnemonic;
        let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words.matches(&format!("* {name} is experimental: {reason}")).count(), 1, "{table}");
        assert_eq!(html.matches(&format!("* {name} is experimental: ")).count(), 1, "{name}");
        assert!(
            html.contains(&format!("{name}*")) && html.contains(&reason.replace('"', "&quot;")),
            "{name}"
        );
    }
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
}

#[test]
fn the_page_escapes_and_refers_to_nothing_outside() {
    let mut comparison = sample();
    comparison.zone.counts.origin = "<script>.\"x\".".to_owned();
    comparison.zone.source = "/tmp/<img src=http://x>".to_owned();
    comparison.run.command = "nonesuch compare '<b>'".to_owned();
    let html = comparison.page().expect("a page");
    assert!(!html.contains("<script>.") && !html.contains("<img") && !html.contains("<b>"));
    assert!(html.contains("&lt;script&gt;.&quot;x&quot;."));
    assert!(!html.contains("src=\""));
    // The only link is that of compare.json, which is part of the page.
    let link = "<a download=\"compare.json\" href=\"data:application/json;base64,";
    assert!(html.contains(link) && html.matches("href=\"").count() == 1);
    // Ten charts, and one note of a row.
    assert_eq!(html.matches("<svg ").count(), 10);
    assert!(html.contains(
        "Lost queries (existing names: 2.10–3.40 %): RSASHA256/2048 with NSEC3; ECDSAP256SHA256 with NSEC."
    ));
    assert!(html.len() < 400_000);
}
