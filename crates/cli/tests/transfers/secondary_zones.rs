//! Zones from primaries: limits of transfers and times, incremental transfers to further
//! secondaries, permission for NOTIFY, stored files of members.

use crate::common;
use crate::common::transferring;
use common::configured::{Configured, ask, plain_zone, write_beside};
use common::transfer::transfer;
use common::{folder, snapshot};
use nonesuch_proto::message::{Message, Rcode, push_query};
use nonesuch_secondary::inbound::{InboundRequest, TransferContent, apply_steps};
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use transferring::{free_port, start_at, transferred, zone_text};

/// The kinds of the incoming transfers so far, from a JSON log.
fn kinds(server: &Configured) -> Vec<String> {
    let lines = server.logged();
    let events = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let transfers = events.filter(|event| event["event"] == "zone-transferred");
    transfers.map(|event| event["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

const PLAIN: &str = "plain.example.";
const JSON_LOG: &str = "[log]\nformat = \"json\"\n";

/// A version of the plain zone that is larger than several of its changes, because a smaller zone
/// is sent completely.
fn plain_version(serial: u32) -> String {
    let rest: String = (0..100).map(|number| format!("name{number} 60 A 192.0.2.{number}\n")).collect();
    plain_zone(PLAIN, serial) + &rest
}

/// A primary of this project with the first version of a plain zone.
fn start_primary(dir: &Path, more: &str) -> Configured {
    write_beside(&dir.join("plain"), &plain_version(1));
    start_at(
        dir,
        free_port(),
        &format!("[zone.\"{PLAIN}\"]\nfile = \"plain\"\ntransfer = [\"127.0.0.1\"]\n{more}"),
    )
}

fn publish(primary: &Configured, dir: &Path, serial: u32) {
    write_beside(&dir.join("plain"), &plain_version(serial));
    primary.ctl(&["reload", PLAIN]).expect_done("reload");
}

/// Several versions that arrive together are sent incrementally one by one: a client with a version
/// in between gets the later changes.
#[test]
fn versions_in_between_are_passed_on() {
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let primary = start_primary(dir, "");
    let zones = format!(
        "{JSON_LOG}[zone.\"{PLAIN}\"]\nprimaries = [\"{}\"]\ntransfer = [\"127.0.0.1\"]\n",
        primary.address
    );
    let port = free_port();
    let server = start_at(home.path(), port, &zones);
    server.wait_for(PLAIN, 1);
    server.wait_until("the line of the transfer", || kinds(&server).len() == 1);
    server.kill();
    let mut versions = vec![transferred(primary.address, PLAIN)];
    for serial in 2..=4 {
        publish(&primary, dir, serial);
        versions.push(transferred(primary.address, PLAIN));
    }
    let server = start_at(home.path(), port, &zones);
    assert_eq!(server.serial(PLAIN), Some(1), "what was had before");
    server.ctl(&["zone", "refresh", PLAIN]).expect_done("refresh");
    server.wait_for(PLAIN, 4);
    server.wait_until("both lines", || kinds(&server).len() >= 2);
    assert_eq!(kinds(&server), ["AXFR", "IXFR"]);
    for (old, steps_left) in versions[..3].iter().zip([3, 2, 1]) {
        let TransferContent::Ixfr(steps) = transfer(
            server.address,
            PLAIN,
            InboundRequest::Ixfr { serial: old.soa().expect("a zone").serial },
        ) else {
            panic!("no changes from {:?}", old.soa());
        };
        assert_eq!(steps.len(), steps_left);
        let (new, _) = apply_steps(old, &steps).expect("steps that fit");
        assert_eq!(zone_text(&new), zone_text(&transferred(server.address, PLAIN)));
        assert_eq!(zone_text(&new), zone_text(&versions[3]));
    }
}

#[test]
fn whole_zones_alone_are_asked_for_where_that_is_configured() {
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let port = free_port();
    let primary = start_primary(dir, &format!("also-notify = [\"127.0.0.1:{port}\"]\n"));
    let zones =
        |more: &str| format!("{JSON_LOG}[zone.\"{PLAIN}\"]\nprimaries = [\"{}\"]\n{more}", primary.address);
    let server = start_at(home.path(), port, &zones("request-ixfr = false\n"));
    server.wait_for(PLAIN, 1);
    for serial in 2..=3 {
        publish(&primary, dir, serial);
        server.wait_for(PLAIN, serial);
    }
    server.wait_until("three transfers", || kinds(&server).len() == 3);
    assert_eq!(kinds(&server), ["AXFR", "AXFR", "AXFR"]);
    // A reload is sufficient to create changes.
    let path = server.configuration.clone();
    let text = fs::read_to_string(&path).expect("a configuration");
    write_beside(&path, &text.replace("request-ixfr = false\n", ""));
    server.ctl(&["reload"]).expect_done("reload");
    publish(&primary, dir, 4);
    server.wait_for(PLAIN, 4);
    server.wait_until("a fourth", || kinds(&server).len() == 4);
    assert_eq!(kinds(&server).last().map(String::as_str), Some("IXFR"));
}

/// Why the last transfer of a zone failed.
fn transfer_error(server: &Configured, zone: &str) -> String {
    let status = server.ctl_json(&["zone", "status", zone]);
    status[0]["transfer_error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn transfers_keep_to_their_bounds() {
    let theirs = folder();
    let primary = start_primary(theirs.path(), "");
    // The listener accepts and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let silent_address = silent.local_addr().expect("bound");
    for (case, address, bound, limits) in [
        ("transfer error, too many records", primary.address, "transfer-records-max = 4\n", ""),
        ("transfer error, too many octets", primary.address, "transfer-size-max = \"1KiB\"\n", ""),
        ("transfer error, idle primary", silent_address, "", "transfer-in-idle = \"1s\""),
        ("transfer error, slow primary", silent_address, "", "transfer-in-time = \"1s\""),
    ] {
        let home = folder();
        let zones = format!("[limits]\n{limits}\n[zone.\"{PLAIN}\"]\nprimaries = [\"{address}\"]\n{bound}");
        let server = start_at(home.path(), free_port(), &zones);
        server.wait_until("a failure", || !transfer_error(&server, PLAIN).is_empty());
        snapshot::check("ctl", case, &transfer_error(&server, PLAIN));
        assert_eq!(server.serial(PLAIN), None);
    }
}

/// The SOA record of the zone has a refresh time of 60 s and an expire time of an hour.
#[test]
fn times_keep_to_their_bounds() {
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let primary = start_primary(dir, "");
    let bounds =
        ["refresh", "retry"].map(|time| format!("{time}-min = \"1s\"\n{time}-max = \"1s\"\n")).concat();
    let zones = format!(
        "[zone.\"{PLAIN}\"]\nprimaries = [\"{}\"]\n{bounds}expire-min = \"2s\"\nexpire-max = \"2s\"\n",
        primary.address
    );
    let server = start_at(home.path(), free_port(), &zones);
    server.wait_for(PLAIN, 1);
    publish(&primary, dir, 2);
    server.wait_for(PLAIN, 2);
    drop(primary);
    server.wait_until("expiry", || server.serial(PLAIN).is_none());
    let status = server.ctl_json(&["zone", "status", PLAIN]);
    assert_eq!(status[0]["state"], "expired", "{status}");
}

/// RFC 1035 §3.3.13: an expired zone is not served, after any number of starts.
#[test]
fn a_zone_that_has_expired_is_answered_by_no_start() {
    let (home, theirs) = (folder(), folder());
    let primary = start_primary(theirs.path(), "");
    let port = free_port();
    let zones = format!("[zone.\"{PLAIN}\"]\nprimaries = [\"{}\"]\n", primary.address);
    let server = start_at(home.path(), port, &zones);
    server.wait_for(PLAIN, 1);
    let state = home.path().join("state/zones/plain.example.state");
    server.wait_until("timers", || has_timers(&state));
    server.stop();
    primary.kill();
    let long_ago =
        "{\"nonesuch-state\":1,\"timers\":{\"serial\":1,\"refreshed\":1700000000,\"left\":null}}\n";
    write_beside(&state, long_ago);
    for _ in 0..5 {
        let server = start_at(home.path(), port, &zones);
        assert_eq!(server.ready["serving"], 0, "{}", server.ready);
        for _ in 0..5 {
            assert_eq!(ask(server.address, PLAIN, nonesuch_proto::Rtype::SOA).rcode(), Rcode::SERVFAIL);
        }
        server.kill();
    }
    // A primary with the version ends the expired state.
    let primary = start_primary(theirs.path(), "");
    let path = home.path().join("c.toml");
    let text = fs::read_to_string(&path).expect("a configuration");
    let from = zones.split('"').nth(3).expect("an address");
    write_beside(&path, &text.replace(from, &primary.address.to_string()));
    Configured::start(&path).wait_for(PLAIN, 1);
}

/// If the disk is full, the zone is still served, and it is not transferred repeatedly.
#[test]
fn a_zone_that_cannot_be_stored_is_served_and_had_once() {
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let port = free_port();
    let primary = start_primary(dir, &format!("also-notify = [\"127.0.0.1:{port}\"]\n"));
    let times =
        ["refresh", "retry"].map(|time| format!("{time}-min = \"1s\"\n{time}-max = \"1s\"\n")).concat();
    let zones = format!(
        "{JSON_LOG}[zone.\"{PLAIN}\"]\nprimaries = [\"{}\"]\n{times}expire-min = \"2s\"\nexpire-max = \"2s\"\n",
        primary.address
    );
    let server = start_at(home.path(), port, &zones);
    server.wait_for(PLAIN, 1);
    // Now no user can write there, so that the test also works as root.
    let (folder, away) = (home.path().join("state/zones"), home.path().join("state/away"));
    server.wait_until("timers", || has_timers(&folder.join("plain.example.state")));
    fs::rename(&folder, &away).expect("renamed");
    publish(&primary, dir, 2);
    server.wait_for(PLAIN, 2);
    let status = |key: &str| server.ctl_json(&["zone", "status", PLAIN])[0][key].clone();
    let error = status("storage_error");
    snapshot::check("ctl", "storage error, the directory is missing", error.as_str().expect("an error"));
    let begun = status("refreshed").as_u64().expect("a time");
    server.wait_until("more than its time to expire", || {
        assert_eq!(server.serial(PLAIN), Some(2), "{}", server.logged());
        status("refreshed").as_u64().is_some_and(|refreshed| refreshed >= begun + 3)
    });
    server.wait_until("both lines", || kinds(&server).len() >= 2);
    assert_eq!(kinds(&server), ["AXFR", "IXFR"]);
    let log = server.logged();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let is_error = |line: &serde_json::Value| {
        line["level"] == "error" && line["event"] == "zone-not-stored" && line["serial"] == 2
    };
    assert_eq!(lines.filter(is_error).count(), 1, "{log}");
    // It is stored as soon as the directory is writable.
    fs::rename(&away, &folder).expect("renamed");
    server.wait_until("it is stored", || status("storage_error").is_null());
    server.kill();
    drop(primary);
    let server = start_at(home.path(), port, &zones);
    assert_eq!(server.ctl_json(&["zone", "status", PLAIN])[0]["serial"], 2);
}

/// A primary with a key must sign its NOTIFY messages. Its address alone is sufficient only if the
/// configuration permits it.
#[test]
fn unsigned_notify_of_a_primary_with_a_key_is_refused() {
    let notify = |server: &Configured| {
        let mut message = Vec::new();
        push_query(&PLAIN.parse().expect("a name"), nonesuch_proto::Rtype::SOA, 9, 0, &mut message);
        // RFC 1996 §3.1: the opcode is 4.
        message[2] = 4 << 3;
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a limit");
        socket.send_to(&message, server.address).expect("sent");
        let mut answer = [0; 512];
        let (length, _) = socket.recv_from(&mut answer).expect("an answer");
        Message::parse(&answer[..length]).expect("a message").rcode()
    };
    let address = format!("127.0.0.1:{}", free_port());
    for (primary, more, expected) in [
        (format!("{address} key:transfer.key."), "", Rcode::REFUSED),
        (format!("{address} key:transfer.key."), "notify-from = [\"127.0.0.1\"]\n", Rcode::NOERROR),
        (address.clone(), "", Rcode::NOERROR),
        (address, "notify-from = [\"!127.0.0.1\"]\n", Rcode::REFUSED),
    ] {
        let home = folder();
        let zones = format!("[zone.\"{PLAIN}\"]\nprimaries = [\"{primary}\"]\n{more}");
        let server = start_at(home.path(), free_port(), &zones);
        assert_eq!(notify(&server), expected, "{primary} {more}");
        // RFC 1996 §3.10.
        let is_refused = expected == Rcode::REFUSED;
        let is_logged = || !server.events("notify-refused", &["zone=plain.example."]).is_empty();
        if is_refused {
            server.wait_until("a line in the log", is_logged);
        }
        assert_eq!(is_logged(), is_refused, "{primary} {more}");
    }
}

/// A zone that is transferred unsigned and signed online here is mapped after a restart if the keys
/// have not changed since its image was created.
#[test]
fn an_image_is_made_anew_where_keys_have_changed_meanwhile() {
    let (home, theirs) = (folder(), folder());
    let primary = start_primary(theirs.path(), "");
    let keys = home.path().join("keys");
    common::generate_key(&keys, PLAIN, "ed25519", &["--csk"]);
    let zones = |denial: &str| {
        let from = format!("[zone.\"{PLAIN}\"]\nprimaries = [\"{}\"]\n", primary.address);
        format!("{from}keys = \"keys\"\ndenial = \"{denial}\"\n")
    };
    let (compact, white_lies) = (zones("compact"), zones("white-lies"));
    let server = start_at(home.path(), free_port(), &compact);
    server.wait_for(PLAIN, 1);
    server.kill();
    primary.kill();
    let (mapped, anew) = ("when its image was created", "unsigned zone, keys tried");
    for (configuration, adds_key, verified, published) in [
        (&compact, false, mapped, 1),
        (&compact, true, anew, 2),
        (&compact, false, mapped, 2),
        (&white_lies, false, anew, 2),
        (&white_lies, false, mapped, 2),
    ] {
        if adds_key {
            common::generate_key(&keys, PLAIN, "ed25519", &["--csk"]);
        }
        let server = start_at(home.path(), free_port(), configuration);
        assert_eq!(server.serial(PLAIN), Some(1));
        let status = server.ctl_json(&["zone", "status", PLAIN]);
        assert_eq!(status[0]["verified"], verified, "{status}");
        let answer = ask(server.address, PLAIN, nonesuch_proto::Rtype::DNSKEY);
        let dnskeys = answer.records.iter().filter(|record| record.rtype == nonesuch_proto::Rtype::DNSKEY);
        assert_eq!(dnskeys.count(), published);
        assert!(answer.records.iter().any(|record| record.rtype == nonesuch_proto::Rtype::RRSIG));
        server.kill();
    }
}

/// Whether a state file contains the time of the last refresh.
fn has_timers(state: &Path) -> bool {
    fs::read_to_string(state).is_ok_and(|text| text.contains("\"timers\":{"))
}

/// The stored files of zones, with their modification times.
fn kept(dir: &Path) -> std::collections::BTreeMap<String, std::time::SystemTime> {
    let entries = fs::read_dir(dir.join("state/zones")).expect("a directory").flatten();
    // A temporary file may have been removed already.
    let written = |entry: &fs::DirEntry| entry.metadata().and_then(|metadata| metadata.modified()).ok();
    let named =
        |entry: fs::DirEntry| Some((entry.file_name().to_string_lossy().into_owned(), written(&entry)?));
    entries.filter_map(named).collect()
}

#[test]
fn members_are_served_while_the_primary_of_their_catalog_is_away() {
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let (port, their_port) = (free_port(), free_port());
    let rights = format!("transfer = [\"127.0.0.1\"]\nalso-notify = [\"127.0.0.1:{port}\"]\n");
    let zones = |members: &[&str]| {
        let member = |name: &&str| {
            write_beside(&dir.join(name), &plain_zone(&format!("{name}.example."), 1));
            format!(
                "[zone.\"{name}.example.\"]\nfile = \"{name}\"\ncatalog-zone = \"catalog.example.\"\n{rights}"
            )
        };
        let members: String = members.iter().map(member).collect();
        format!("{members}[zone.\"catalog.example.\"]\ncatalog = \"producer\"\n{rights}")
    };
    let primary = start_at(dir, their_port, &zones(&["a", "b", "c"]));
    let from = format!("primaries = [\"{}\"]\n", primary.address);
    let configuration = format!(
        "[template.member]\n{from}[zone.\"catalog.example.\"]\n{from}catalog = \"consumer\"\nmember-template = \"member\"\n"
    );
    let server = start_at(home.path(), port, &configuration);
    for zone in ["a.example.", "b.example.", "c.example."] {
        server.wait_for(zone, 1);
    }
    server.wait_until("timers", || has_timers(&home.path().join("state/zones/c.example.state")));
    server.kill();
    primary.kill();
    // Killed and started again, without a reachable primary.
    let before = kept(home.path());
    let server = start_at(home.path(), port, &configuration);
    assert_eq!(server.ready["serving"], 4, "{}", server.ready);
    for zone in ["a.example.", "b.example.", "c.example."] {
        assert_eq!(server.serial(zone), Some(1), "at once");
    }
    assert_eq!(kept(home.path()), before, "nothing was removed, or had anew");
    assert!(server.events("member-removed", &[]).is_empty(), "{}", server.logged());

    // A member is removed while the server runs, and its stored files are removed. The test then
    // restores the files, as if the server had been killed at that moment.
    let removed: Vec<(String, Vec<u8>)> = before
        .keys()
        .filter(|name| name.starts_with("b."))
        .map(|name| (name.clone(), fs::read(home.path().join("state/zones").join(name)).expect("a file")))
        .collect();
    assert!(removed.iter().any(|(name, _)| name == "b.example.state"), "{removed:?}");
    let primary = start_at(dir, their_port, &zones(&["a", "c"]));
    server.ctl(&["zone", "refresh", "catalog.example."]).expect_done("refresh");
    server.wait_until("b.example. goes", || server.serial("b.example.").is_none());
    let is_of_b = |name: &String| name.starts_with("b.");
    server.wait_until("its files go", || !kept(home.path()).keys().any(is_of_b));
    server.kill();
    primary.kill();
    for (name, octets) in &removed {
        fs::write(home.path().join("state/zones").join(name), octets).expect("written");
    }
    let server = start_at(home.path(), port, &configuration);
    assert_eq!(
        ["a.example.", "b.example.", "c.example."].map(|zone| server.serial(zone)),
        [Some(1), None, Some(1)]
    );
    assert!(!kept(home.path()).keys().any(is_of_b));
    // Without the catalog, its members are not served, and their stored files stay until it
    // returns.
    let path = server.configuration.clone();
    let text = fs::read_to_string(&path).expect("a configuration");
    write_beside(&path, text.split("[template").next().expect("the head"));
    server.ctl(&["reload"]).expect_done("reload");
    server.wait_until("a.example. goes", || server.serial("a.example.").is_none());
    write_beside(&path, &text);
    server.ctl(&["reload"]).expect_done("reload");
    server.wait_for("a.example.", 1);
}
