//! Expiration of zones (EDNS EXPIRE, RFC 7314): queries and responses. No secondary of a secondary
//! keeps a zone longer than its primary, also after restarts. BIND and Knot DNS take part.

use crate::common;
use crate::common::transferring;
use common::configured::{Configured, configure, write_beside};
use common::{folder, is_installed, nonesuch, peers, run};
use nonesuch_lab::peers::Peer;
use nonesuch_testing::require_peer;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use transferring::{ZONE, free_port, primary_setup, secondary_setup, start_at};

/// EXPIRE of the zone's SOA record, in seconds. BIND requires at least REFRESH plus RETRY, which
/// are at least 500 s each.
const EXPIRE: u64 = 2000;
/// Remaining time that is clearly less than the complete time.
const LATER: u64 = EXPIRE - 3;
const PATIENCE: Duration = Duration::from_secs(60);

fn zone_text(serial: u32) -> String {
    format!(
        "$ORIGIN {ZONE}\n@ 60 SOA ns h {serial} 600 600 {EXPIRE} 60\n@ 60 NS ns\nns 60 A 192.0.2.1\nt 60 TXT \"{serial}\"\n"
    )
}

/// A primary of this project that permits transfers to every local client.
fn start_primary(dir: &Path) -> Configured {
    write_beside(&dir.join("zone"), &zone_text(1));
    start_at(dir, free_port(), &format!("[zone.\"{ZONE}\"]\nfile = \"zone\"\ntransfer = [\"127.0.0.1\"]\n"))
}

/// A secondary of this project with the primary `primary`.
fn start_secondary(dir: &Path, port: u16, primary: SocketAddr) -> Configured {
    let zones = format!(
        "[zone.\"{ZONE}\"]\nprimaries = [\"{primary} key:transfer.key.\"]\ntransfer = [\"127.0.0.1\"]\n"
    );
    start_at(dir, port, &zones)
}

/// The options in a server's response, as `nonesuch query` prints them.
fn options(server: SocketAddr, question: &[&str]) -> Vec<String> {
    let at = format!("@{server}");
    let words = ["query", "--json", &at].into_iter().chain(question.iter().copied());
    let said = run(&mut nonesuch(words)).stdout;
    let last = said.lines().last().unwrap_or_default();
    let value: serde_json::Value = serde_json::from_str(last).unwrap_or_default();
    let list = value.pointer("/edns/options").or_else(|| value.get("options"));
    let list = list.and_then(serde_json::Value::as_array).cloned().unwrap_or_default();
    list.iter()
        .map(|option| {
            format!("{} {}", option["name"].as_str().unwrap_or("?"), option["text"].as_str().unwrap_or("?"))
        })
        .collect()
}

/// Remaining seconds of the zone according to a server.
fn left(server: SocketAddr) -> Option<u64> {
    let options = options(server, &[ZONE, "SOA", "--expire"]);
    let told = options.iter().find_map(|option| option.strip_prefix("EXPIRE ")?.strip_suffix(" s"))?;
    Some(told.parse().expect("a number"))
}

/// Waits until a server reports at most `most` remaining seconds, and returns this number.
#[track_caller]
fn wait_until_left(server: SocketAddr, most: u64, log: impl Fn() -> String) -> u64 {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = left(server);
        if let Some(found) = found.filter(|left| *left <= most) {
            return found;
        }
        assert!(Instant::now() < end, "{server}: {found:?}, not {most} or less: {}", log());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The two servers report the same time, except for the time between the queries.
#[track_caller]
fn assert_alike(one: SocketAddr, other: SocketAddr) {
    assert_within(0, one, other);
}

/// The two servers report the same time, except for the time between the queries and `seconds`
/// seconds.
#[track_caller]
fn assert_within(seconds: u64, one: SocketAddr, other: SocketAddr) {
    // A server that was just started does not report the time yet.
    let told = |server| wait_until_left(server, EXPIRE, String::new);
    told(other);
    let (first, second, third) = (told(one), told(other), told(one));
    assert!(first + 1 + seconds >= second && second + 1 + seconds >= third, "{first} {second} {third}");
}

/// Starts a refresh on a secondary, and waits until its primary has answered.
fn refresh(server: &Configured) {
    let refreshed = || server.ctl_json(&["zone", "status", ZONE])[0]["refreshed"].as_u64();
    let before = refreshed();
    // Times are reported in whole seconds.
    server.wait_until("a refresh", || {
        server.ctl(&["zone", "refresh", ZONE]).expect_done("refresh");
        refreshed() > before
    });
}

#[test]
fn a_primary_tells_it_to_those_who_ask() {
    let home = folder();
    let server = start_primary(home.path());
    server.wait_for(ZONE, 1);
    let expected = [format!("EXPIRE {EXPIRE} s")];
    for question in [
        &[ZONE, "SOA", "--expire"][..],
        &[ZONE, "SOA", "--expire", "--tcp"],
        &[ZONE, "--axfr", "--expire"],
        &[ZONE, "--ixfr", "1", "--expire"],
        &[ZONE, "--ixfr", "0", "--expire"],
    ] {
        let found: Vec<String> = options(server.address, question)
            .into_iter()
            .filter(|option| option.starts_with("EXPIRE"))
            .collect();
        assert_eq!(found, expected, "{question:?}");
    }
    let other = format!("nothing.{ZONE}");
    for question in [
        &[ZONE, "SOA"][..],
        &[ZONE, "--axfr"],
        &[ZONE, "NS", "--expire"],
        &[&other, "SOA", "--expire"],
        &["elsewhere.", "SOA", "--expire"],
        // An option that is not empty is not a request (RFC 7314 §2).
        &[ZONE, "SOA", "--edns-option", "9:00000001"],
        &[ZONE, "SOA", "--edns-option", "9:00"],
    ] {
        let found = options(server.address, question);
        assert!(found.iter().all(|option| !option.starts_with("EXPIRE")), "{question:?}: {found:?}");
    }
    let shown =
        run(&mut nonesuch(["query", ZONE, "SOA", "--expire", &format!("@{}", server.address)])).stdout;
    assert!(shown.contains("EXPIRE 2000 s"), "{shown}");
}

/// Other clients parse the option in the responses.
#[test]
fn dig_and_kdig_read_it() {
    let home = folder();
    let server = start_primary(home.path());
    server.wait_for(ZONE, 1);
    let port = server.address.port().to_string();
    for (program, said) in [("dig", "EXPIRE: 2000"), ("kdig", "EXPIRE: 2000")] {
        if !is_installed(program) {
            continue;
        }
        let shown =
            run(Command::new(program).args(["@127.0.0.1", "-p", &port, "+expire", "+norec", ZONE, "SOA"]))
                .stdout;
        assert!(shown.lines().any(|line| line.contains(said)), "{program}: {shown}");
    }
}

/// BIND, then this server twice. When the first is gone, the last keeps the zone no longer than the
/// second, however often it sends refresh queries.
#[test]
fn expiry_is_the_same_along_a_chain_of_secondaries() {
    require_peer!("named");
    let [first, second, third] = [folder(), folder(), folder()];
    fs::write(first.path().join("zone"), zone_text(1)).expect("written");
    let peer = peers::start(Peer::Bind, &primary_setup(first.path(), 9));
    let ports = [free_port(), free_port()];
    let near = start_secondary(second.path(), ports[0], peer.address);
    near.wait_for(ZONE, 1);
    assert!(left(near.address).is_some_and(|left| left <= EXPIRE && left + 2 > EXPIRE));
    let far = start_secondary(third.path(), ports[1], near.address);
    far.wait_for(ZONE, 1);
    drop(peer);
    wait_until_left(near.address, LATER, || near.logged());
    refresh(&far);
    assert_alike(near.address, far.address);
    assert!(left(far.address).is_some_and(|left| left <= LATER));
    // After restarts of both. Each restart may lose two seconds, because two times are stored in
    // whole seconds.
    far.kill();
    let far = start_secondary(third.path(), ports[1], near.address);
    assert_within(2, near.address, far.address);
    near.kill();
    let near = start_secondary(second.path(), ports[0], ([127, 0, 0, 1], 9).into());
    refresh(&far);
    assert_within(4, near.address, far.address);
    assert!(left(far.address).is_some_and(|left| left <= LATER));
}

/// A zone was read from a file, and now has primaries that are unreachable.
#[test]
fn what_is_kept_of_a_file_expires_when_primaries_take_its_place() {
    let home = folder();
    let dir = home.path();
    write_beside(&dir.join("zone"), &zone_text(1));
    let server = Configured::start(&configure(dir, &format!("[zone.\"{ZONE}\"]\nfile = \"zone\"\n")));
    server.wait_for(ZONE, 1);
    let nobody = free_port();
    let zones = format!(
        "[zone.\"{ZONE}\"]\nprimaries = [\"127.0.0.1:{nobody}\"]\nexpire-max = \"2s\"\nexpire-min = \"2s\"\n"
    );
    configure(dir, &zones);
    server.ctl(&["reload"]).expect_done("reload");
    server.wait_until("it expires", || server.ctl_json(&["status"])["expired"] == 1);
    assert_eq!(server.ctl_json(&["status"])["troubled"][0], ZONE);
}

/// This server, then another implementation, then this server. The remaining time of the other
/// server is used on a transfer and on a refresh.
fn goes_through(peer: Peer) {
    require_peer!(peer.info().programs[0]);
    let [first, second, third] = [folder(), folder(), folder()];
    let primary = start_primary(first.path());
    primary.wait_for(ZONE, 1);
    let peer = peers::start(peer, &secondary_setup(second.path(), primary.address, None));
    wait_until_left(peer.address, EXPIRE, || peer.log());
    primary.kill();
    wait_until_left(peer.address, LATER, || peer.log());
    let far = start_secondary(third.path(), free_port(), peer.address);
    far.wait_for(ZONE, 1);
    assert_alike(peer.address, far.address);
    assert!(left(far.address).is_some_and(|left| left <= LATER), "{}", far.logged());
    refresh(&far);
    assert_alike(peer.address, far.address);
}

#[test]
fn what_bind_has_left_is_what_we_have() {
    goes_through(Peer::Bind);
}

#[test]
fn what_knot_has_left_is_what_we_have() {
    goes_through(Peer::Knot);
}
