//! Reloads of a running server: zones are added, removed and changed; a rejected version leaves the
//! previous one; no query is lost.
//!
//! `NONESUCH_RELOAD_SECONDS` and `NONESUCH_RELOAD_RATE` set the duration and the rate of the test
//! under load (`just reloads`).

use crate::common;
use common::configured::{Configured, ask, configure, plain_zone, write_beside};
use common::{folder, generate_key, listing, nonesuch, run, snapshot, text};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const KEYS: &str = common::KEYS_ORIGIN;

fn zone_table(names: &[&str]) -> String {
    names.iter().map(|name| format!("[zone.\"{name}.example.\"]\nfile = \"{name}\"\n")).collect()
}

#[test]
fn zones_come_and_go_and_change_their_settings() {
    let folder = folder();
    let dir = folder.path();
    for name in ["a", "b", "c"] {
        write_beside(&dir.join(name), &plain_zone(&format!("{name}.example."), 1));
    }
    let server = Configured::start(&configure(dir, &zone_table(&["a", "b"])));
    configure(dir, &zone_table(&["b", "c"]));
    let told = server.ctl(&["reload"]).expect_done("reload").stdout;
    snapshot::check("ctl", "reload: zones added and removed", &told);
    assert_eq!((server.serial("b.example."), server.serial("c.example.")), (Some(1), Some(1)));
    assert_eq!(ask(server.address, "a.example.", Rtype::SOA).rcode(), Rcode::REFUSED);
    // A zone that was removed by mistake gets its journal and timers back. Stored files are removed
    // only on command.
    let kept = dir.join("state/zones/a.example.kept");
    assert!(kept.exists());
    let ended = server.ctl(&["zone", "purge", "b.example."]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    snapshot::check("ctl", "zone purge: served zone", &ended.stderr);
    server.ctl(&["zone", "purge", "a.example."]).expect_done("purge");
    assert!(!kept.exists());
    let ended = server.ctl(&["zone", "purge", "a.example."]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    snapshot::check("ctl", "zone purge: zone without stored files", &ended.stderr);
    configure(dir, &zone_table(&["b"]));
    server.ctl(&["reload"]).expect_done("reload");
    let told = server.ctl(&["purge"]).expect_done("purge").stdout;
    assert!(told.contains("c.example"), "{told}");
    snapshot::check("ctl", "purge: one zone", &told);
    let told = server.ctl(&["purge"]).expect_done("purge").stdout;
    snapshot::check("ctl", "purge: no zone", &told);
    configure(dir, &zone_table(&["b", "c"]));
    server.ctl(&["reload"]).expect_done("reload");
    assert_eq!(server.serial("c.example."), Some(1));
    configure(dir, &format!("{}verify = \"structural\"\n", zone_table(&["b", "c"])));
    let told = server.ctl(&["reload"]).expect_done("reload").stdout;
    snapshot::check("ctl", "reload: settings of a zone changed", &told);
}

#[test]
fn a_faulty_configuration_leaves_the_old_one() {
    let folder = folder();
    let dir = folder.path();
    write_beside(&dir.join("a"), &plain_zone("a.example.", 1));
    let server = Configured::start(&configure(dir, &zone_table(&["a"])));
    configure(dir, "[zone.\"b.example.\"]\nfiel = \"b\"\n");
    let before = fs::read_to_string(dir.join("c.toml")).expect("a configuration");
    // The path of the socket is not read from a faulty configuration.
    let socket = dir.join("control");
    let ended = run(&mut nonesuch(["ctl", "--socket", text(&socket), "reload"]));
    let place = "c.toml:7:1: zone.\"b.example.\".fiel: ";
    assert!(ended.status == 1 && ended.stderr.contains(place), "{}", ended.text());
    snapshot::check("ctl", "reload: unknown key", &ended.stderr);
    assert_eq!(server.serial("a.example."), Some(1));
    let changed = before.replace("fiel", "file").replace("workers = 1", "workers = 2");
    write_beside(&dir.join("b"), &plain_zone("b.example.", 1));
    write_beside(&dir.join("c.toml"), &changed);
    let told = server.ctl(&["reload"]).expect_done("reload").stdout;
    assert!(told.contains("workers"), "{told}");
    snapshot::check("ctl", "reload: workers changed", &told);
}

/// Signs a zone with this serial in the directory.
fn sign(dir: &Path, serial: u32) -> PathBuf {
    let keys = dir.join("keys");
    if !keys.exists() {
        generate_key(&keys, KEYS, "ecdsap256sha256", &["--csk"]);
    }
    let unsigned = dir.join("unsigned");
    fs::write(&unsigned, common::KEYS_ZONE.replace("h 1 7200", &format!("h {serial} 7200")))
        .expect("written");
    let signed = dir.join(format!("signed-{serial}"));
    common::sign(&unsigned, KEYS, &keys, "nsec", &signed);
    signed
}

/// The tag of the first key in the directory.
fn key_tag(keys: &Path) -> u16 {
    let name = listing(keys).swap_remove(0);
    let tag = name.rsplit_once('+').and_then(|(_, rest)| rest.split('.').next()?.parse().ok());
    tag.unwrap_or_else(|| panic!("no tag: {name}"))
}

#[test]
fn a_zone_that_fails_verification_is_refused_and_the_old_one_stays() {
    let folder = folder();
    let dir = folder.path();
    let (first, second) = (sign(dir, 1), sign(dir, 2));
    let key = format!("key {}", key_tag(&dir.join("keys")));
    let file = dir.join("zone");
    for verify in ["full", "changed", "structural"] {
        fs::copy(&first, dir.join("copy")).expect("copied");
        fs::rename(dir.join("copy"), &file).expect("renamed");
        let table = format!("[zone.\"{KEYS}\"]\nfile = \"zone\"\nverify = \"{verify}\"\n");
        let server = Configured::start(&configure(dir, &table));
        assert_eq!(server.serial(KEYS), Some(1), "{verify}");
        let sound = fs::read_to_string(&second).expect("a zone");
        let altered = match verify {
            "structural" => {
                sound.lines().filter(|line| !line.contains("NSEC ")).collect::<Vec<_>>().join("\n")
            }
            _ => sound.replace("192.0.2.1", "192.0.2.9"),
        };
        write_beside(&file, &altered);
        let ended = server.ctl(&["reload"]);
        assert_eq!(ended.status, 1, "{verify}: {}", ended.text());
        let told = ended.stdout.replace(&key, "key TAG");
        snapshot::check("ctl", &format!("reload: zone with faults, verify {verify}"), &told);
        assert_eq!(server.serial(KEYS), Some(1), "{verify}");
        let status = server.ctl_json(&["status"]);
        assert_eq!((&status["troubled"][0], &status["serving"]), (&KEYS.into(), &1.into()), "{status}");
        // After a restart, too.
        server.kill();
        let server = Configured::start(&dir.join("c.toml"));
        assert_eq!(server.serial(KEYS), Some(1), "{verify}: {}", server.logged());
        write_beside(&file, &sound);
        server.ctl(&["reload"]).expect_done("reload");
        assert_eq!(server.serial(KEYS), Some(2), "{verify}");
        assert_eq!(server.ctl_json(&["status"])["troubled"].as_array().map(Vec::len), Some(0), "{verify}");
        if verify == "changed" {
            let zone = server.ctl_json(&["zone", "status", KEYS]);
            let words = zone[0]["verified"].as_str().unwrap_or_default().to_owned();
            assert!(words.starts_with("changed: "), "{words}");
        }
        server.kill();
        fs::remove_dir_all(dir.join("state")).expect("removed");
    }
}

#[test]
fn other_keys_and_mechanisms_take_effect() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("zone"), common::KEYS_ZONE).expect("written");
    let keys = dir.join("keys");
    generate_key(&keys, KEYS, "ed25519", &["--csk"]);
    let table = |more: &str| format!("[zone.\"{KEYS}\"]\nfile = \"zone\"\n{more}");
    let server = Configured::start(&configure(dir, &table("")));
    let denial = |server: &Configured| ask(server.address, &format!("none.{KEYS}"), Rtype::A);
    assert_eq!(denial(&server).rcode(), Rcode::NXDOMAIN);
    configure(dir, &table("denial = \"compact\"\nkeys = \"keys\"\n"));
    server.ctl(&["reload"]).expect_done("reload");
    let answer = denial(&server);
    assert_eq!(answer.rcode(), Rcode::NOERROR, "compact denial");
    assert!(answer.records.iter().any(|record| record.rtype == Rtype::RRSIG));
    // After a restart, the image in the state directory is mapped.
    let verified = |server: &Configured| {
        let zone = &server.ready["zones"][0];
        assert!(zone["served"].as_str().is_some_and(|served| served.contains("compact")), "{zone}");
        assert_eq!(denial(server).rcode(), Rcode::NOERROR);
        zone["verified"].as_str().unwrap_or_default().to_owned()
    };
    server.kill();
    let server = Configured::start(&dir.join("c.toml"));
    snapshot::check("serve", "ready: verification of a stored image", &verified(&server));
    // Another key is published immediately, even if it was added while the server did not run.
    server.kill();
    generate_key(&keys, KEYS, "ed25519", &["--csk"]);
    let server = Configured::start(&dir.join("c.toml"));
    snapshot::check("serve", "ready: verification of a zone with online signing", &verified(&server));
    let keys_of = |server: &Configured| {
        let answer = ask(server.address, KEYS, Rtype::DNSKEY);
        answer.records.iter().filter(|record| record.rtype == Rtype::DNSKEY).count()
    };
    assert_eq!(keys_of(&server), 2);
    // Without its chain, the image cannot be used for a zone that is served without online signing.
    server.kill();
    configure(dir, &table(""));
    let server = Configured::start(&dir.join("c.toml"));
    assert_eq!((denial(&server).rcode(), keys_of(&server)), (Rcode::NXDOMAIN, 0));
}

/// Queries at a steady rate while all zones are reloaded each second. Each query gets a response.
#[test]
fn no_query_is_lost_while_zones_are_reloaded() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let seconds = number("NONESUCH_RELOAD_SECONDS").unwrap_or(6);
    let rate = number("NONESUCH_RELOAD_RATE").unwrap_or(2000);
    let folder = folder();
    let dir = folder.path();
    let names = ["a", "b", "c", "d"];
    let write = |serial| {
        names
            .iter()
            .for_each(|name| write_beside(&dir.join(name), &plain_zone(&format!("{name}.example."), serial)))
    };
    write(1);
    let server = Configured::start(&configure(dir, &zone_table(&names)));
    let queries: String = names
        .iter()
        .map(|name| format!("{name}.example. SOA\nt.{name}.example. TXT\nnone.{name}.example. A\n"))
        .collect();
    fs::write(dir.join("queries"), queries).expect("written");
    let load = nonesuch([
        "load",
        "--server",
        &server.address.to_string(),
        "--queries",
        text(&dir.join("queries")),
        "--json",
        "--sleep",
    ])
    .args(["--rate", &rate.to_string(), "--seconds", &seconds.to_string(), "--timeout", "5"])
    .stdout(std::process::Stdio::piped())
    .spawn()
    .expect("nonesuch starts");
    let end = Instant::now() + Duration::from_secs(u64::from(seconds));
    let mut serial = 1;
    while Instant::now() + Duration::from_millis(1500) < end {
        let begun = Instant::now();
        serial += 1;
        write(serial);
        let report = server.ctl_json(&["reload"]);
        let updated = report["updated"].as_array().map(Vec::len);
        assert_eq!((updated, &report["refused"]), (Some(4), &serde_json::json!([])), "{report}");
        std::thread::sleep(Duration::from_secs(1).saturating_sub(begun.elapsed()));
    }
    let output = load.wait_with_output().expect("ended");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rcodes = report["rcodes"].as_object().expect("response codes").clone();
    assert_eq!((&report["lost"], &report["unexpected"]), (&0.into(), &0.into()), "{report}");
    assert!(rcodes.keys().all(|rcode| rcode == "NOERROR" || rcode == "NXDOMAIN"), "{rcodes:?}");
    assert!(report["received"].as_u64() >= Some(u64::from(rate * seconds) * 9 / 10), "{report}");
    assert!(serial >= 3, "there were reloads");
    assert_eq!(server.serial("a.example."), Some(serial));
    println!("{} queries answered, {} reloads, none lost", report["received"], serial - 1);
}
