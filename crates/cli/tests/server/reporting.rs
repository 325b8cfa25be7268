//! Reports of errors by a server with a configuration: in its log, in `nonesuch ctl` and in its
//! metrics.

use crate::common;
use common::configured::{Configured, ask, configure, plain_zone, write_beside};
use common::{folder, snapshot};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Rcode, push_query};
use nonesuch_server::tsig::{TsigKey, sign_request};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const JSON_LOG: &str = "[log]\nformat = \"json\"\n";
const ONE: &str = "[zone.\"a.example.\"]\nfile = \"a\"\n";

fn write_zone(dir: &Path, zone: &str, serial: u32) {
    write_beside(&dir.join(&zone[..1]), &plain_zone(zone, serial));
}

/// A server of a.example., with `more` in its configuration.
fn start(dir: &Path, more: &str) -> Configured {
    write_zone(dir, "a.example.", 1);
    Configured::start(&configure(dir, &format!("{ONE}{more}")))
}

/// The lines of the event `name` in a JSON log.
fn events(server: &Configured, name: &str) -> Vec<Value> {
    let log = server.logged();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event"] == name).collect()
}

/// Adds `top` at the beginning of a configuration from [`configure`], and `tables` at its end.
fn write_with(server: &Configured, top: &str, tables: &str) {
    let head = common::configured::head(server.configuration.parent().expect("a directory"));
    write_beside(&server.configuration, &format!("{head}{top}{tables}"));
}

fn ask_signed(server: SocketAddr, key: &str, rtype: Rtype, opcode: u8) {
    ask_signed_from("127.0.0.1", server, key, rtype, opcode);
}

fn ask_signed_from(client: &str, server: SocketAddr, key: &str, rtype: Rtype, opcode: u8) {
    let key = TsigKey::from_argument(key).expect("a key");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock behind 1970").as_secs();
    let mut message = Vec::new();
    push_query(&"a.example.".parse().expect("a name"), rtype, 7, 0, &mut message);
    message[2] |= opcode << 3;
    let _ = sign_request(&Arc::new(key), &mut message, now);
    let socket = UdpSocket::bind((client, 0)).expect("bound");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    socket.send_to(&message, server).expect("sent");
    socket.recv(&mut [0; 4096]).expect("an answer");
}

const KEY: &str =
    "[key.\"t.\"]\nalgorithm = \"hmac-sha256\"\nsecret = \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"\n";
const RIGHT: &str = "hmac-sha256:t.:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const WRONG: &str = "hmac-sha256:t.:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
const OTHER: &str = "hmac-sha256:other.:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

#[test]
fn a_wrong_key_or_secret_is_told_with_who_and_what() {
    let home = folder();
    let server = start(home.path(), &format!("{KEY}{JSON_LOG}"));
    ask_signed(server.address, RIGHT, Rtype::SOA, 0);
    assert!(events(&server, "tsig-rejected").is_empty(), "{}", server.logged());
    let began = SystemTime::now();
    for _ in 0..50 {
        ask_signed(server.address, WRONG, Rtype::AXFR, 0);
        ask_signed(server.address, OTHER, Rtype::SOA, 4);
    }
    let seconds = began.elapsed().expect("a clock that goes on").as_secs() as usize;
    // A separate thread writes the log.
    server.wait_until("a line of each kind", || events(&server, "tsig-rejected").len() >= 2);
    let told = events(&server, "tsig-rejected");
    // One line per second for each kind of error; the first second is not aligned.
    assert!((2..=2 * (seconds + 2)).contains(&told.len()), "{} in {seconds} s: {told:?}", told.len());
    for (error, key, question) in
        [("BADSIG", "t.", "a.example. AXFR"), ("BADKEY", "other.", "a.example. NOTIFY")]
    {
        let line =
            told.iter().find(|line| line["error"] == error).unwrap_or_else(|| panic!("{error}: {told:?}"));
        assert_eq!((&line["key"], &line["question"]), (&key.into(), &question.into()), "{line}");
        assert!(line["peer"].as_str().is_some_and(|peer| peer.starts_with("127.0.0.1:")), "{line}");
        assert!(line["level"].as_str().is_some_and(|level| level.eq_ignore_ascii_case("warn")), "{line}");
    }
}

/// Clients with an unknown key do not suppress the line about a secondary with a wrong key.
#[test]
fn a_refused_signature_of_a_configured_peer_has_a_line_of_its_own() {
    let home = folder();
    let server = start(home.path(), &format!("transfer = [\"127.0.0.2 key:t.\"]\n{KEY}{JSON_LOG}"));
    let began = SystemTime::now();
    for _ in 0..20 {
        ask_signed(server.address, OTHER, Rtype::AXFR, 0);
        ask_signed_from("127.0.0.2", server.address, OTHER, Rtype::AXFR, 0);
    }
    let seconds = began.elapsed().expect("a clock that goes on").as_secs() as usize;
    server.wait_until("a line of each", || {
        let told = events(&server, "tsig-rejected");
        let has =
            |peer| told.iter().any(|line| line["peer"].as_str().is_some_and(|found| found.starts_with(peer)));
        has("127.0.0.1:") && has("127.0.0.2:")
    });
    let told = events(&server, "tsig-rejected");
    for peer in ["127.0.0.1:", "127.0.0.2:"] {
        let of_peer =
            told.iter().filter(|line| line["peer"].as_str().is_some_and(|found| found.starts_with(peer)));
        assert!((1..=seconds + 2).contains(&of_peer.count()), "{peer}: {told:?}");
    }
}

#[test]
fn responses_that_are_limited_are_told_of() {
    let home = folder();
    let limits = "[limits]\nexempt = []\nresponses-per-second = 1\nslip = 1\n";
    let server = start(home.path(), &format!("{limits}{JSON_LOG}"));
    for _ in 0..20 {
        ask(server.address, "a.example.", Rtype::SOA);
    }
    server.wait_until("a line", || !events(&server, "rate-limiting-started").is_empty());
    let told = events(&server, "rate-limiting-started");
    assert_eq!(told.len(), 1, "{}", server.logged());
    assert_eq!((&told[0]["client"], &told[0]["others"]), (&"127.0.0.0/24".into(), &0.into()), "{told:?}");
}

#[test]
fn a_configuration_that_is_refused_is_told_of_until_one_is_taken() {
    let home = folder();
    let server = start(home.path(), "");
    assert!(server.ctl_json(&["status"])["refused_configuration"].is_null());
    write_with(&server, "foo = 1\n", ONE);
    server.signal("-HUP");
    server.wait_until("a refusal", || !server.ctl_json(&["status"])["refused_configuration"].is_null());
    let refused = server.ctl_json(&["status"])["refused_configuration"].clone();
    assert!(refused["problems"].as_str().is_some_and(|problems| problems.contains("foo")), "{refused}");
    assert!(refused["at"].as_u64().is_some_and(|at| at > 1_700_000_000), "{refused}");
    let told = server.ctl(&["status"]).expect_done("status").stdout;
    let at = refused["at"].as_i64().and_then(|at| jiff::Timestamp::from_second(at).ok());
    let at = at.expect("a time").to_string();
    let lines: Vec<&str> = told.lines().filter(|line| line.contains(&at) || line.contains("foo")).collect();
    assert_eq!(lines.len(), 2, "{told}");
    snapshot::check("ctl", "status: rejected configuration", &lines.join("\n").replace(&at, "AT"));
    write_with(&server, "", ONE);
    server.ctl(&["reload"]).expect_done("reload");
    assert!(server.ctl_json(&["status"])["refused_configuration"].is_null());
}

#[test]
fn what_needs_a_new_start_is_told_until_it_is_as_it_was() {
    let home = folder();
    let server = start(home.path(), "");
    let line_of = |told: &str| told.lines().find(|line| line.contains("signature-cache")).map(str::to_owned);
    let other = "signature-cache = \"3MiB\"\n";
    for (top, expected) in [(other, true), (other, true), ("", false)] {
        write_with(&server, top, ONE);
        for command in ["reload", "status"] {
            let told = server.ctl(&[command]).expect_done(command).stdout;
            let line = line_of(&told);
            assert_eq!(line.is_some(), expected, "{top}: {told}");
            if let Some(line) = line {
                snapshot::check("ctl", &format!("{command}: signature-cache changed"), &line);
            }
        }
    }
}

fn scrape(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn metrics_tell_of_refused_versions_and_configurations() {
    let home = folder();
    let dir = home.path();
    write_zone(dir, "a.example.", 1);
    let port = common::free_address().port();
    let top = format!("metrics-listen = \"127.0.0.1:{port}\"\n");
    let path = configure(dir, &format!("{top}{ONE}"));
    let server = Configured::start(&path);
    let assert_says = |expected: &[&str]| {
        let text = scrape(port);
        for line in expected {
            assert!(text.lines().any(|found| found == *line), "{line}\n{text}");
        }
    };
    assert_says(&[
        "nonesuch_refused_zones 0.0",
        "nonesuch_zone_is_refused{zone=\"a.example.\"} 0.0",
        "nonesuch_last_reload_is_done 1.0",
        "nonesuch_reloads_total{result=\"done\"} 0",
    ]);
    write_beside(&dir.join("a"), "nonsense");
    assert_eq!(server.ctl(&["reload"]).status, 1);
    assert_says(&[
        "nonesuch_refused_zones 1.0",
        "nonesuch_zone_is_refused{zone=\"a.example.\"} 1.0",
        "nonesuch_zone_is_served{zone=\"a.example.\"} 1.0",
        "nonesuch_last_reload_is_done 1.0",
        "nonesuch_reloads_total{result=\"done\"} 1",
    ]);
    let told = server.ctl(&["zone", "status"]).expect_done("zone status").stdout;
    assert!(told.lines().any(|line| line.starts_with("a.example.") && line.ends_with("rejected")), "{told}");
    write_with(&server, &format!("foo = 1\n{top}"), ONE);
    assert_eq!(server.ctl(&["reload"]).status, 1);
    assert_says(&["nonesuch_last_reload_is_done 0.0", "nonesuch_reloads_total{result=\"refused\"} 1"]);
}

fn catalog(serial: u32, version: &str, members: &str) -> String {
    format!(
        "$ORIGIN c.example.\n$TTL 0\n@ SOA invalid. invalid. {serial} 60 60 3600 0\n@ NS invalid.\nversion TXT \"{version}\"\n{members}"
    )
}

/// The status reports a broken catalog, and the catalog of a member.
#[test]
fn catalogs_are_told_of_in_the_status_of_zones() {
    let (home, theirs) = (folder(), folder());
    let dir = home.path();
    write_zone(theirs.path(), "m.example.", 3);
    let zone = "[zone.\"m.example.\"]\nfile = \"m\"\ntransfer = [\"127.0.0.1\"]\n";
    let primary = Configured::start(&configure(theirs.path(), zone));
    let tables = format!(
        "[template.usual]\nprimaries = [\"{}\"]\n\
         [zone.\"c.example.\"]\nfile = \"c\"\ncatalog = \"consumer\"\nmember-template = \"usual\"\n",
        primary.address
    );
    let member = "a.zones PTR m.example.\ngroup.a.zones TXT \"elsewhere\"\n";
    write_beside(&dir.join("c"), &catalog(1, "2", member));
    let configuration = configure(dir, &format!("{tables}{JSON_LOG}"));
    let server = Configured::start(&configuration);
    server.wait_for("m.example.", 3);
    let told = || server.ctl_json(&["zone", "status", "m.example."])[0].clone();
    server.wait_until("where it comes from", || told()["catalog"] == "c.example.");
    assert_eq!(told()["template"], "usual");
    let groups = events(&server, "member-group");
    assert_eq!(groups.len(), 1, "{}", server.logged());
    assert_eq!((&groups[0]["zone"], &groups[0]["catalog"]), (&"m.example.".into(), &"c.example.".into()));
    let message = groups[0]["message"].as_str().unwrap_or_default();
    snapshot::check("serve", "log: member of a group without a template", message);
    let ended = server.ctl(&["zone", "purge", "m.example."]);
    assert!(ended.status == 1 && ended.stderr.contains("c.example."), "{}", ended.text());
    snapshot::check("ctl", "zone purge: member of a catalog", &ended.stderr);
    // RFC 9432 §4.1: two member nodes for one zone.
    let twice = "0.zones PTR m.example.\na.zones PTR M.example.\n";
    write_beside(&dir.join("c"), &catalog(2, "2", twice));
    server.ctl(&["reload", "c.example."]).expect_done("reload");
    let is_broken = |server: &Configured, logged: usize| {
        server.wait_until("a broken catalog", || server.ctl_json(&["status"])["troubled"][0] == "c.example.");
        let error = server.ctl_json(&["zone", "status", "c.example."])[0]["error"].clone();
        let error = error.as_str().unwrap_or_default();
        for name in ["m.example.", "0.zones.c.example.", "a.zones.c.example."] {
            assert!(error.contains(name), "{name}: {error}");
        }
        snapshot::check("ctl", "zone status: broken catalog", error);
        let broken = events(server, "catalog-broken");
        assert_eq!(broken.len(), logged, "{}", server.logged());
        for line in broken {
            assert_eq!(line["zone"], "c.example.", "{line}");
            let message = line["message"].as_str().unwrap_or_default();
            snapshot::check("serve", "log: broken catalog", message);
        }
        assert_eq!(server.serial("m.example."), Some(3));
    };
    is_broken(&server, 1);
    // §5.1: also after a restart, while the primary of the member is unavailable.
    server.kill();
    primary.kill();
    let server = Configured::start(&configuration);
    is_broken(&server, 2);
    assert!(events(&server, "member-removed").is_empty(), "{}", server.logged());
    write_beside(&dir.join("c"), &catalog(3, "2", member));
    server.ctl(&["reload", "c.example."]).expect_done("reload");
    server.wait_until("no trouble", || server.ctl_json(&["status"])["troubled"][0].is_null());
}

#[test]
fn a_primary_that_is_behind_is_told_of_once_and_in_the_status_of_the_zone() {
    let (home, theirs) = (folder(), folder());
    write_zone(theirs.path(), "a.example.", 20);
    let zone = "[zone.\"a.example.\"]\nfile = \"a\"\ntransfer = [\"127.0.0.1\"]\n";
    let primary = Configured::start(&configure(theirs.path(), zone));
    let zone = format!("[zone.\"a.example.\"]\nprimaries = [\"{}\"]\n{JSON_LOG}", primary.address);
    let server = Configured::start(&configure(home.path(), &zone));
    server.wait_for("a.example.", 20);
    write_zone(theirs.path(), "a.example.", 7);
    primary.ctl(&["reload", "a.example."]).expect_done("reload");
    let behind = || server.ctl_json(&["zone", "status", "a.example."])[0]["behind"][0].clone();
    assert!(behind().is_null());
    server.ctl(&["zone", "refresh", "a.example."]).expect_done("refresh");
    server.wait_until("a primary that is behind", || !behind().is_null());
    let said = behind().as_str().unwrap_or_default().to_owned();
    assert!(said.contains(&primary.address.to_string()), "{said}");
    snapshot::check("ctl", "zone status: outdated primary", &said);
    // After two more queries, the result of the first is known.
    let asked = || primary.ctl_json(&["status"])["datagrams_in"].as_u64();
    let before = asked();
    server.wait_until("two rounds more", || {
        server.ctl(&["zone", "refresh", "a.example."]).expect_done("refresh");
        asked() >= before.map(|before| before + 2)
    });
    let warnings = events(&server, "soa-warning");
    assert_eq!(warnings.len(), 1, "{}", server.logged());
    assert_eq!(warnings[0]["peer"], primary.address.to_string());
    server.ctl(&["zone", "retransfer", "a.example."]).expect_done("retransfer");
    server.wait_for("a.example.", 7);
    server.wait_until("no primary that is behind", || behind().is_null());
}

#[test]
fn warnings_of_a_zone_file_are_told_by_the_reload_and_in_the_status() {
    let home = folder();
    let dir = home.path();
    let server = start(dir, "");
    write_beside(&dir.join("a"), "$ORIGIN a.example.\n@ 60 SOA ns h 2 60 60 3600 60\nt 60 TXT x\n");
    let told = server.ctl(&["reload", "a.example."]).expect_done("reload").stdout;
    snapshot::check("ctl", "reload: zone without NS records", &told);
    let told = server.ctl(&["zone", "status", "a.example."]).expect_done("zone status").stdout;
    let warnings: Vec<&str> = told.lines().filter(|line| line.starts_with("warnings ")).collect();
    assert!(!warnings.is_empty(), "{told}");
    snapshot::check("ctl", "zone status: zone without NS records", &warnings.join("\n"));
}

/// A catalog that the server produces exists when the server reports that it is ready.
#[test]
fn a_server_is_ready_when_its_catalogs_are_made() {
    let home = folder();
    let dir = home.path();
    write_zone(dir, "a.example.", 1);
    let tables = "[zone.\"c.example.\"]\ncatalog = \"producer\"\ntransfer = [\"127.0.0.1\"]\n\
        [zone.\"a.example.\"]\nfile = \"a\"\ntransfer = [\"127.0.0.1\"]\ncatalog-zone = \"c.example.\"\n";
    for _ in 0..3 {
        let server = Configured::start(&configure(dir, tables));
        assert_eq!(
            (&server.ready["serving"], &server.ready["waiting"]),
            (&2.into(), &0.into()),
            "{}",
            server.ready
        );
        assert_eq!(ask(server.address, "c.example.", Rtype::SOA).rcode(), Rcode::NOERROR);
        server.kill();
        // A stored version would be served immediately.
        std::fs::remove_dir_all(dir.join("state")).expect("removed");
    }
}

#[test]
fn records_are_told_of_a_zone_that_was_not_read() {
    let home = folder();
    let server = start(home.path(), "");
    let records =
        |server: &Configured| server.ctl_json(&["zone", "status", "a.example."])[0]["records"].clone();
    assert_eq!(records(&server), 4);
    let path = server.configuration.clone();
    server.kill();
    assert_eq!(records(&Configured::start(&path)), 4);
}

/// The error of a primary is shown until it answers again.
#[test]
fn errors_of_primaries_are_shown_until_they_answer() {
    let (home, theirs) = (folder(), folder());
    let port = common::free_address().port();
    write_zone(theirs.path(), "a.example.", 20);
    let path = configure(theirs.path(), "[zone.\"a.example.\"]\nfile = \"a\"\ntransfer = [\"127.0.0.1\"]\n");
    let written = std::fs::read_to_string(&path).expect("a configuration");
    write_beside(&path, &written.replace("127.0.0.1:0", &format!("127.0.0.1:{port}")));
    let primary = Configured::start(&path);
    let zone = format!("[zone.\"a.example.\"]\nprimaries = [\"127.0.0.1:{port}\"]\n");
    let server = Configured::start(&configure(home.path(), &zone));
    server.wait_for("a.example.", 20);
    primary.kill();
    let error = || {
        server.ctl(&["zone", "refresh", "a.example."]).expect_done("refresh");
        server.ctl_json(&["zone", "status", "a.example."])[0]["transfer_error"].clone()
    };
    server.wait_until("an error", || !error().is_null());
    let said = error();
    let said = said.as_str().expect("an error");
    assert_eq!(said.matches(&format!("127.0.0.1:{port}")).count(), 1, "{said}");
    let _primary = Configured::start(&path);
    server.wait_until("no error", || error().is_null());
}
