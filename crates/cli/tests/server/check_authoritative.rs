//! `nonesuch check authoritative` against `nonesuch serve` with the test zones: every item passes, and
//! fails for a server with the fault that it looks for.

mod faults;
mod faulty;

use crate::common;
use common::configured::Configured;
use common::{Ended, done, nonesuch, run, text};
use faulty::{Fault, FaultyServer};
use nonesuch_dnssec::denial::{DenialGeneration, MECHANISMS, Mechanism};
use nonesuch_lab::check::authoritative::{Authoritative, AuthoritativeOptions, StartError, items};
use nonesuch_lab::check::{ItemResult, Outcome, Profile, Selection, run_rows};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Apex of the test zones.
const ORIGIN: &str = "check.example";
/// Time limit for responses of servers that answer.
const LIMIT: Duration = Duration::from_secs(5);
/// Time limit for responses that do not arrive.
const SHORT: Duration = Duration::from_millis(150);
/// The setting for error reports.
const AGENT: &str = "report-channel = \"agent.example.\"\n";

/// A server of all test zones.
struct Site {
    folder: tempfile::TempDir,
    server: Configured,
}

/// Writes the test zones and starts a server that permits all transfers, with further settings.
fn site(settings: &str) -> Site {
    site_with("transfer = [\"any\"]\n", settings)
}

/// As [`site`], with settings for the zones that are not signed online, which cannot be transferred.
fn site_with(zone_settings: &str, settings: &str) -> Site {
    let folder = common::folder();
    done(["check", "authoritative", "--write-test-zones", text(folder.path())]);
    let path = folder.path().join("nonesuch.toml");
    let written = fs::read_to_string(&path).expect("read").replace("127.0.0.1:5300", "127.0.0.1:0");
    let (head, zones) = written.split_once("\n\n").expect("zones");
    let zones = zones.split("\n\n").map(|zone| {
        let added = if zone.contains("denial = ") { "" } else { zone_settings };
        zone.replace("\nfile = ", &format!("\n{added}file = "))
    });
    let zones = zones.collect::<Vec<_>>().join("\n\n");
    fs::write(&path, format!("{head}\nworkers = 1\n{AGENT}{settings}\n{zones}")).expect("written");
    let server = Configured::start(&path);
    Site { folder, server }
}

fn now() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as u32
}

fn start(server: SocketAddr, zone: &str, timeout: Duration) -> Result<Authoritative, StartError> {
    Authoritative::start(AuthoritativeOptions {
        server,
        zone: format!("{zone}.{ORIGIN}").parse().expect("a name"),
        timeout,
        now: now(),
        anchors: Vec::new(),
        signer: None,
    })
}

/// Checks items of a zone; all if `ids` is empty.
fn check(server: SocketAddr, zone: &str, ids: &[&str], timeout: Duration) -> Vec<ItemResult> {
    let selection =
        Selection { profile: Profile::Full, items: ids.iter().map(|id| (*id).to_owned()).collect() };
    let rows = selection.select(items()).expect("items");
    let mut context = start(server, zone, LIMIT).expect("started");
    context.set_timeout(timeout);
    run_rows(&rows, &mut context, &mut |_, _| {})
}

/// Asserts that all items pass, except those that are not testable.
#[track_caller]
fn assert_expected(results: &[ItemResult], not_testable: &[&str], what: &str) {
    let is_expected = |result: &&ItemResult| match result.outcome {
        Outcome::Pass(_) => !not_testable.contains(&result.item.id),
        Outcome::NotTestable(_) => not_testable.contains(&result.item.id),
        Outcome::Fail(_) => false,
    };
    let others: Vec<_> = results.iter().filter(|result| !is_expected(result)).map(ItemResult::line).collect();
    assert!(others.is_empty(), "{what}: {}", others.join("\n"));
}

#[test]
fn every_item_passes_for_every_mechanism() {
    let site = site("max-udp-size = 4096\n");
    let address = site.server.address;
    for entry in MECHANISMS {
        let results = check(address, entry.name, &[], LIMIT);
        let mut not_testable = vec!["XA-021"];
        match entry.mechanism {
            Mechanism::Nsec3 | Mechanism::Nsec3OptOut => {}
            Mechanism::WhiteLies => not_testable.push("XA-007"),
            _ => not_testable.extend(["XA-006", "XA-007", "XA-008"]),
        }
        if entry.generation == DenialGeneration::Online {
            not_testable.push("XA-012");
        }
        assert_expected(&results, &not_testable, entry.name);
        // With this limit, the answer is complete over UDP.
        let large = results.iter().find(|result| result.item.id == "A-87").expect("A-87");
        assert_eq!(large.outcome, Outcome::pass(), "{}", entry.name);
    }
    let results = check(address, "unsigned", &[], LIMIT);
    let not_testable = ["XA-006", "XA-007", "XA-008", "XA-010", "XA-019", "XA-020", "XA-021"];
    assert_expected(&results, &not_testable, "unsigned");
    assert_expected(&check(address, "catalog", &["XA-021"], LIMIT), &[], "catalog");
}

#[test]
fn a_limit_by_policy_is_a_pass_with_a_note() {
    let site = site("");
    let results = check(site.server.address, "nsec", &["A-86", "A-87", "A-85"], LIMIT);
    let texts = results.iter().map(|result| (result.item.id, result.outcome.name(), result.outcome.text()));
    assert_eq!(
        texts.collect::<Vec<_>>(),
        [
            ("A-85", "pass", "announces 1232 octets"),
            ("A-86", "pass", ""),
            ("A-87", "pass", "limited by policy (RFC 9715), answered over TCP")
        ]
    );
}

#[test]
fn every_item_fails_for_a_server_with_its_fault() {
    let site = site("");
    let mut seen: Vec<&str> = Vec::new();
    for row in faults::FAULTS {
        let server = FaultyServer::start(site.server.address, row.fault);
        let timeout =
            if row.name.starts_with("drops") || row.name.starts_with("is silent") { SHORT } else { LIMIT };
        let results = check(server.address, row.zone, &[row.item], timeout);
        let Outcome::Fail(text) = &results[0].outcome else {
            panic!("{} with {}: {:?}", row.item, row.name, results[0].outcome)
        };
        assert!(text.contains(row.text), "{} with {}: {text}", row.item, row.name);
        seen.push(row.item);
    }
    let missing: Vec<&str> = items().map(|row| row.item.id).filter(|id| !seen.contains(id)).collect();
    assert!(missing.is_empty(), "items without a fault: {missing:?}");
    // The forwarding itself is no fault.
    let server = FaultyServer::start(site.server.address, Fault::NONE);
    let quick: Vec<&str> = items().filter(|row| row.item.is_quick).map(|row| row.item.id).collect();
    assert_expected(&check(server.address, "nsec3", &quick, LIMIT), &[], "without a fault");
}

/// Whether the servers of the next test have their fault, which they do not have while the check starts.
static IS_BROKEN: AtomicBool = AtomicBool::new(false);
/// Number of responses of these servers, from which the changes of a response follow.
static RESPONSES: AtomicUsize = AtomicUsize::new(0);

#[test]
fn every_item_ends_when_the_server_becomes_silent_or_sends_garbage() {
    let site = site("");
    let rows: Vec<_> = items().collect();
    let silence = Fault::of_responses(|_, response, _| (!IS_BROKEN.load(Relaxed)).then_some(response));
    let garbage = Fault::of_responses(|_, mut response, _| {
        if IS_BROKEN.load(Relaxed) {
            // The ID stays, so that the message is not ignored.
            response[2..].reverse();
        }
        Some(response)
    });
    let changes = Fault::of_responses(|_, mut response, _| {
        let count = RESPONSES.fetch_add(1, Relaxed);
        for round in 0..if IS_BROKEN.load(Relaxed) { 1 + count % 3 } else { 0 } {
            let random = (count * 3 + round).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            let at = 2 + random % (response.len() - 2);
            response[at] ^= 1 << (random >> 32 & 7);
        }
        Some(response)
    });
    for (name, fault, fails_all) in
        [("silence", silence, true), ("garbage", garbage, true), ("changes", changes, false)]
    {
        IS_BROKEN.store(false, Relaxed);
        let server = FaultyServer::start(site.server.address, fault);
        let mut context = start(server.address, "nsec3", Duration::from_millis(500)).expect("started");
        context.set_timeout(Duration::from_millis(5));
        IS_BROKEN.store(true, Relaxed);
        let started_at = Instant::now();
        let results = run_rows(&rows, &mut context, &mut |_, _| {});
        assert!(started_at.elapsed() < Duration::from_secs(20), "{name}: {:?}", started_at.elapsed());
        for result in results.iter().filter(|_| fails_all) {
            let is_explained =
                !result.outcome.text().is_empty() && !matches!(result.outcome, Outcome::Pass(_));
            assert!(is_explained, "{name}: {} {:?}", result.item.id, result.outcome);
        }
    }
}

#[test]
fn a_zone_that_exists_is_checked_without_a_test_zone() {
    let folder = common::folder();
    let (zone, keys, signed) =
        (folder.path().join("zone"), folder.path().join("keys"), folder.path().join("signed"));
    // With such a key, the answer for DNSKEY has more than 512 octets.
    common::generate_key(&keys, "own.example.", "rsasha256", &["--csk"]);
    let records =
        "@ SOA ns h 1 7200 3600 1209600 5\n@ NS ns\nns A 192.0.2.1\nsub NS ns.sub\nns.sub A 192.0.2.2\n";
    for wildcard in ["", "* TXT \"w\"\n"] {
        fs::write(&zone, format!("$ORIGIN own.example.\n$TTL 60\n{records}{wildcard}")).expect("written");
        for mechanism in common::MECHANISMS {
            common::sign(&zone, "own.example.", &keys, mechanism, &signed);
            let server = common::serve(&signed, &[]);
            let address = server.address.to_string();
            let ended = command(&[&address, "--zone", "own.example", "--profile", "quick"]);
            assert_eq!(ended.status, 0, "{mechanism} {wildcard}: {}", ended.text());
            assert!(ended.stdout.contains("A-85     pass"), "{}", ended.stdout);
            fs::remove_file(&signed).expect("removed");
        }
    }
}

/// The kernel drops such responses: they may be forged (RFC 5452 §9.1).
#[test]
fn responses_from_another_port_are_no_answer() {
    static IS_OTHER: AtomicBool = AtomicBool::new(false);
    let site = site("");
    let server = FaultyServer::start(
        site.server.address,
        Fault { from_other_port: || IS_OTHER.load(Relaxed), ..Fault::NONE },
    );
    let mut context = start(server.address, "nsec", LIMIT).expect("started");
    context.set_timeout(SHORT);
    IS_OTHER.store(true, Relaxed);
    let selected = ["A-85", "XA-018"].map(str::to_owned).to_vec();
    let rows = Selection { items: selected, ..Selection::default() }.select(items()).expect("items");
    for result in run_rows(&rows, &mut context, &mut |_, _| {}) {
        let Outcome::Fail(text) = &result.outcome else { panic!("{}: {:?}", result.item.id, result.outcome) };
        assert!(text.contains("no response within 0.150 s"), "{text}");
    }
}

#[test]
fn optional_behaviour_is_no_fault() {
    let site = site("");
    let without_co = Fault::of_queries(|query, _| faults::clear_co(query));
    let server = FaultyServer::start(site.server.address, without_co);
    let results = check(server.address, "compact", &["XA-020"], LIMIT);
    assert_expected(&results, &[], "CO");
    assert!(results[0].outcome.text().contains("does not implement the CO flag"), "{:?}", results[0].outcome);
    // RFC 1996 §3.10.
    let ignores_notify =
        Fault::of_responses(|query, response, _| (query[2] >> 3 & 0x0f != 4).then_some(response));
    let server = FaultyServer::start(site.server.address, ignores_notify);
    assert_expected(&check(server.address, "nsec", &["XA-013"], SHORT), &["XA-013"], "NOTIFY");
}

#[test]
fn a_transfer_with_a_tsig_key_is_verified() {
    const SECRET: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let key = format!("\n[key.\"transfer.\"]\nalgorithm = \"hmac-sha256\"\nsecret = \"{SECRET}\"\n");
    let site = site_with("transfer = [\"127.0.0.1 key:transfer.\"]\n", &key);
    let server = site.server.address.to_string();
    let zone = format!("nsec3.{ORIGIN}");
    let check =
        |more: &[&str]| command(&[&[server.as_str(), "--zone", &zone, "--item", "XA-012"], more].concat());
    let ended = check(&[]).expect_done("check");
    assert!(ended.stdout.contains("answers REFUSED to AXFR"), "{}", ended.stdout);
    let ended = check(&["--tsig-key", &format!("transfer:hmac-sha256:{SECRET}")]).expect_done("check");
    assert!(
        ended.stdout.contains("records, verified") && !ended.stdout.contains("needs no"),
        "{}",
        ended.stdout
    );
    let ended = check(&["--tsig-key", &format!("transfer:hmac-sha256:{}", SECRET.replace("MDEy", "MDEx"))]);
    assert_eq!(ended.status, 1, "{}", ended.text());
}

#[test]
fn a_check_of_a_silent_server_or_of_another_zone_does_not_start() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
    let address = silent.local_addr().expect("an address");
    let error = start(address, "nsec", Duration::from_millis(20)).err().expect("an error");
    assert!(matches!(error, StartError::Silent { server, .. } if server == address), "{error}");
    let site = site("");
    let error = start(site.server.address, "other", LIMIT).err().expect("an error");
    assert!(matches!(error, StartError::NotServed { .. }), "{error}");
}

fn command(arguments: &[&str]) -> Ended {
    run(&mut nonesuch([&["check", "authoritative"], arguments].concat()))
}

#[test]
fn the_command_prints_results_and_writes_files() {
    let site = site("");
    let folder = site.folder.path();
    let (junit, html) = (folder.join("results.xml"), folder.join("results.html"));
    let server = site.server.address.to_string();
    let zone = format!("nsec.{ORIGIN}");
    let outputs = ["--junit", text(&junit), "--html", text(&html)];
    let ended = command(&[&[server.as_str(), "--zone", &zone, "--profile", "jprs"], &outputs[..]].concat());
    let ended = ended.expect_done("check");
    for line in
        ["A-85     pass", "A-87     pass", "denial of existence: NSEC", "3 passed, 0 failed, 0 not testable"]
    {
        assert!(ended.stdout.contains(line), "{line}: {}", ended.stdout);
    }
    let junit = fs::read_to_string(junit).expect("written");
    assert!(junit.contains("tests=\"3\" failures=\"0\"") && junit.ends_with("</testsuite>\n"), "{junit}");
    assert!(fs::read_to_string(html).expect("written").contains("A-87"));

    let ended = command(&[&server, "--zone", &zone, "--item", "XA-003", "--json"]).expect_done("check");
    let json: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((&json["passed"], &json["items"][0]["id"]), (&1.into(), &"XA-003".into()));
    let query = json["items"][0]["exchanges"][0]["query_text"].as_str().expect("text");
    assert!(query.contains(&format!(";; QUESTION {zone}. IN DS")), "{query}");

    let ended = command(&[&server, "--zone", &zone, "--explain", "xa-003"]).expect_done("check");
    for part in ["rules: RFC 4035 §3.1.4.1", "exchange 1: check to", "response,"] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
}

#[test]
fn the_exit_status_tells_failures_from_errors() {
    let site = site("");
    let zone = format!("nsec.{ORIGIN}");
    let server = FaultyServer::start(site.server.address, faults::DROP_OPT);
    let ended = command(&[&server.address.to_string(), "--zone", &zone, "--item", "A-85"]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(ended.stdout.contains("A-85     FAIL"), "{}", ended.stdout);
    // Validation from a trust anchor of another key.
    let anchor = site.folder.path().join("anchor");
    fs::write(&anchor, format!("{zone}. DS 1 13 2 {}\n", "00".repeat(32))).expect("written");
    let server = site.server.address.to_string();
    let ended = command(&[&server, "--zone", &zone, "--item", "XA-004", "--anchor", text(&anchor)]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(ended.stdout.contains("not trusted"), "{}", ended.stdout);
    for (arguments, expected) in [
        (vec![server.as_str(), "--zone", &zone, "--item", "A-1"], "'A-1' is not an item"),
        (vec![server.as_str(), "--zone", "other.example"], "does not serve the zone other.example."),
        (vec![server.as_str(), "--zone", &zone, "--junit", "/nonexistent/x"], "does not exist"),
        (vec!["--write-test-zones", text(site.folder.path())], "already exists"),
        (vec![server.as_str()], "--zone"),
    ] {
        let ended = command(&arguments);
        assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.text());
        assert!(ended.stderr.contains(expected), "{arguments:?}: {}", ended.stderr);
    }
    let ended = command(&["--list"]).expect_done("list");
    assert_eq!(ended.stdout.matches("profiles: ").count(), items().count());
}
