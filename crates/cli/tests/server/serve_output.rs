//! Messages of `nonesuch serve` about its zone: how it is served, when its signatures expire, and
//! unexpected zones and keys.

use crate::common;
use common::configured::{Configured, ask, configure, plain_zone, write_beside};
use common::{
    KEYS_ORIGIN, KEYS_ZONE, Running, done, events, generate_key, made, nonesuch, prepared, run, snapshot,
    text,
};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::flags;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);
/// 2025-06-15, and 14 days later.
const NOW: u32 = 1_750_000_000;
const END: u32 = NOW + 14 * 86_400;

/// A server with output that the test reads.
struct ServerOutput {
    child: Child,
    ready: String,
    log: PathBuf,
    _folder: tempfile::TempDir,
}

impl ServerOutput {
    fn serve(file: &Path, more: &[&str]) -> Self {
        let folder = common::folder();
        let log = folder.path().join("log");
        let mut child = nonesuch(["serve", "--listen", "127.0.0.1:0", "--workers", "1", text(file)])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(File::create(&log).expect("a file"))
            .spawn()
            .expect("nonesuch starts");
        let mut ready = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut ready).expect("a line");
        let told = Self { child, ready, log, _folder: folder };
        assert!(told.ready.contains("ready"), "{}", told.log());
        told
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("a log")
    }

    /// Waits until the log has the event `name` about the zone with these fields; returns its first
    /// line.
    fn wait_for_event(&self, name: &str, fields: &[&str]) -> String {
        let end = Instant::now() + LIMIT;
        let fields = [&["zone=keys.example."], fields].concat();
        loop {
            let log = self.log();
            if let Some(line) = events(&log, name, &fields).first() {
                return (*line).to_owned();
            }
            assert!(Instant::now() < end, "wanted {name} {fields:?}, got {log:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The warnings about the zone, without key tags.
    fn zone_warnings(&self) -> String {
        events(&self.log(), "zone-warning", &["zone=keys.example."]).join("\n")
    }
}

impl Drop for ServerOutput {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory with a zone, its keys in `keys`, and its unsigned file `zone`.
fn with_keys(more: &[&str]) -> tempfile::TempDir {
    let folder = prepared();
    fs::write(folder.path().join("zone"), format!("$ORIGIN {KEYS_ORIGIN}\n{KEYS_ZONE}")).expect("written");
    generate_key(&folder.path().join("keys"), KEYS_ORIGIN, "ed25519", &[&["--csk"], more].concat());
    folder
}

/// Signs with 14 days of validity from [`NOW`] on; returns the signed file.
fn sign(folder: &Path, more: &[&str]) -> PathBuf {
    let (zone, keys, signed) = (folder.join("zone"), folder.join("keys"), folder.join("signed"));
    let (now, end) = (NOW.to_string(), END.to_string());
    let times = ["--now", &now, "--inception", &now, "--expiration", &end];
    let files = ["zone", "sign", text(&zone), "--keys", text(&keys), "-f", text(&signed)];
    done([&files[..], &times, more].concat());
    signed
}

#[test]
fn the_ready_line_says_how_the_zone_is_served() {
    let folder = with_keys(&[]);
    let dir = folder.path();
    let (zone, keys) = (dir.join("zone"), dir.join("keys"));
    let now = NOW.to_string();
    let ready = |file: &Path, more: &[&str]| {
        ServerOutput::serve(file, &[&["--now", &now], more].concat()).ready.clone()
    };
    snapshot::check("serve", "ready, unsigned zone", &ready(&zone, &[]));
    let signed = sign(dir, &["--denial", "nsec"]);
    snapshot::check("serve", "ready, zone signed with NSEC", &ready(&signed, &[]));
    let signed = sign(dir, &["--denial", "nsec3"]);
    snapshot::check("serve", "ready, zone signed with NSEC3", &ready(&signed, &[]));
    let image = dir.join("image");
    done(["zone", "compile", text(&signed), "--now", &now, "-f", text(&image)]);
    snapshot::check("serve", "ready, compiled zone signed with NSEC3", &ready(&image, &[]));
    let online = ready(&zone, &["--denial", "white-lies", "--keys", text(&keys)]);
    snapshot::check("serve", "ready, zone signed online", &online);
    let json: serde_json::Value = serde_json::from_str(&ready(&signed, &["--json"])).expect("JSON");
    assert_eq!(json["ready"]["served"], "signed with NSEC3");
}

/// A server of a single file has the defaults of a configuration.
#[test]
fn one_file_is_served_with_cookies_and_by_root_on_loopback_alone() {
    let folder = with_keys(&[]);
    let zone = folder.path().join("zone");
    let told = ServerOutput::serve(&zone, &["--json"]);
    let ready: serde_json::Value = serde_json::from_str(&told.ready).expect("JSON");
    let server = format!("@{}", ready["ready"]["address"].as_str().expect("an address"));
    let asked = done(["query", KEYS_ORIGIN, "SOA", &server, "--cookie=0011223344556677"]).stdout;
    let cookie =
        asked.lines().find(|line| line.starts_with(";; COOKIE")).unwrap_or_else(|| panic!("{asked}"));
    assert!(cookie.contains("client 0011223344556677, server 01"), "{cookie}");
    if nix::unistd::Uid::effective().is_root() {
        let ended = run(&mut nonesuch(["serve", "--listen", "0.0.0.0:0", text(&zone)]));
        assert_eq!(ended.status, 2, "{}", ended.text());
        snapshot::check("serve", "zone file served to the network by root", ended.error());
    }
}

#[test]
fn signatures_that_come_to_their_end_are_warned_of() {
    let folder = with_keys(&[]);
    let signed = sign(folder.path(), &[]);
    let at = |now: u32, more: &[&str]| {
        ServerOutput::serve(&signed, &[&["--now", &now.to_string()], more].concat())
    };
    let near = at(END - 2 * 86_400 + 600, &[]).wait_for_event("signatures-expire", &["expired=false"]);
    snapshot::check("serve", "signatures expire soon", &near);
    // They expire while the server runs, and the zone was not signed again.
    let expired = at(END - 2, &[]).wait_for_event("signatures-expire", &["expired=true"]);
    let without_seconds =
        |line: String, seconds: u64| line.replace(&format!(", {seconds} s ago"), ", N s ago");
    let expired = (0..=LIMIT.as_secs()).fold(expired, without_seconds);
    snapshot::check("serve", "signatures have expired", &expired);
    // From a mapped image, too. Long before the expiration, there is no warning.
    let image = folder.path().join("image");
    done(["zone", "compile", text(&signed), "--now", &NOW.to_string(), "-f", text(&image)]);
    let (now, later) = ((END - 86_400 + 600).to_string(), (NOW + 86_400).to_string());
    let near = ServerOutput::serve(&image, &["--now", &now]);
    let near = near.wait_for_event("signatures-expire", &["expired=false"]);
    snapshot::check("serve", "signatures of a compiled zone expire soon", &near);
    let quiet = ServerOutput::serve(&image, &["--now", &later, "-v"]);
    assert!(events(&quiet.log(), "signatures-expire", &[]).is_empty(), "{}", quiet.log());
}

/// The warning is logged when the zone is loaded, not only at the next check.
#[test]
fn a_zone_of_a_configuration_whose_signatures_are_near_their_end_is_warned_of() {
    let folder = with_keys(&[]);
    let (zone, keys, signed) =
        (folder.path().join("zone"), folder.path().join("keys"), folder.path().join("signed"));
    let now = nonesuch_server::clock::seconds_now();
    let (inception, expiration) = ((now - 7200).to_string(), (now + 600).to_string());
    let files = ["zone", "sign", text(&zone), "--keys", text(&keys), "-f", text(&signed)];
    done([&files[..], &["--inception", &inception, "--expiration", &expiration]].concat());
    let table = format!("[zone.\"{KEYS_ORIGIN}\"]\nfile = \"signed\"\n");
    let server = Configured::start(&configure(folder.path(), &table));
    server.wait_for_event("signatures-expire", &["zone=keys.example.", "expired=false"]);
}

#[test]
fn a_key_set_that_comes_to_its_end_is_warned_of() {
    let folder = with_keys(&[]);
    let key_set = sign(folder.path(), &["--only-keys"]);
    let keys = folder.path().join("keys");
    let now = (END - 86_400 + 600).to_string();
    let online = ["--now", &now, "--denial", "compact", "--keys", text(&keys)];
    let near = ServerOutput::serve(&key_set, &online);
    let near = near.wait_for_event("signatures-expire", &["expired=false"]);
    snapshot::check("serve", "signatures of a key set expire soon", &near);
}

#[test]
fn a_key_set_file_is_told_from_a_broken_zone() {
    let folder = with_keys(&[]);
    let dir = folder.path();
    let (zone, keys) = (dir.join("zone"), dir.join("keys"));
    // Without -f, the output is next to the zone and has its own name.
    let arguments = ["zone", "sign", text(&zone), "--only-keys", "--keys", text(&keys)];
    let told = done(arguments).stdout;
    let key_set = dir.join("zone.keys");
    assert!(
        told.starts_with(text(&key_set)) && key_set.is_file() && !dir.join("zone.signed").exists(),
        "{told}"
    );
    // Options without an effect are rejected.
    for more in [&["--serial", "unixtime"][..], &["--jitter", "60"], &["--hedged"], &["--nsec3-salt", "-"]] {
        let ended = run(&mut nonesuch([&arguments[..], more].concat()));
        assert!(ended.status == 2 && ended.stderr.contains("--only-keys"), "{more:?}: {}", ended.text());
    }
    for (command, arguments, start) in [
        ("zone verify", &["zone", "verify"][..], "note: "),
        ("zone compile", &["zone", "compile"], "note: "),
        ("serve", &["serve", "--listen", "127.0.0.1:0"], "nonesuch: error: "),
    ] {
        let ended = run(&mut nonesuch([arguments, &[text(&key_set)]].concat()));
        assert_eq!(ended.status, 1, "{command}: {}", ended.text());
        let said = ended.text();
        let line = said.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{said}"));
        snapshot::check(command, "file in which only the key set is signed", line);
    }
    // A zone of a configuration, too.
    let configuration = dir.join("c.toml");
    fs::write(&configuration, format!("version = 1\n[zone.\"{KEYS_ORIGIN}\"]\nfile = \"zone.keys\"\n"))
        .expect("written");
    let checked = run(&mut nonesuch(["serve", "--config", text(&configuration), "--check=zones"]));
    assert_ne!(checked.status, 0, "{}", checked.text());
    let line = checked.stdout.lines().find(|line| line.contains("zone keys.example.: "));
    let line = line.unwrap_or_else(|| panic!("{}", checked.text()));
    snapshot::check("serve", "check, zone in which only the key set is signed", line);
    let json = run(&mut nonesuch(["zone", "verify", "--json", text(&key_set)])).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["key_set"], &json["verified"]), (&true.into(), &false.into()));
}

#[test]
fn an_unfit_zone_is_no_for_every_command_and_the_remedy_is_named() {
    let folder = with_keys(&[]);
    let signed = sign(folder.path(), &[]);
    let forged = fs::read_to_string(&signed).expect("a zone").replace("192.0.2.1", "192.0.2.99");
    fs::write(&signed, forged).expect("written");
    let now = NOW.to_string();
    let keys = folder.path().join("keys");
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let online = [&serve[..], &["--denial", "compact", "--keys", text(&keys)]].concat();
    for (command, case, arguments) in [
        ("zone verify", "zone with a bad signature", &["zone", "verify"][..]),
        ("zone compile", "zone with a bad signature", &["zone", "compile"]),
        ("serve", "zone with a bad signature", &serve),
        ("serve", "zone with a bad signature, online denial", &online),
    ] {
        let ended = run(&mut nonesuch([arguments, &["--now", &now, text(&signed)]].concat()));
        assert_eq!(ended.status, 1, "{case}: {}", ended.text());
        let output = if command == "serve" { ended.error().to_owned() } else { ended.text() };
        snapshot::check(command, case, &output);
    }
}

/// Alias algorithm numbers for NSEC5 in a zone with another chain.
#[test]
fn keys_of_nsec5_without_nsec5_are_warned_of() {
    let folder = with_keys(&["--nsec5"]);
    let signed = sign(folder.path(), &["--denial", "nsec3"]);
    let now = NOW.to_string();
    let verified = done(["zone", "verify", "--now", &now, text(&signed)]).stdout;
    let warnings: Vec<&str> = verified.lines().filter(|line| line.starts_with("warning: ")).collect();
    let warnings = warnings.join("\n");
    snapshot::check("zone verify", "key for NSEC5 in a zone with NSEC3", &warnings);
    let served = ServerOutput::serve(&signed, &["--now", &now]);
    assert_eq!(served.zone_warnings().lines().count(), 1, "{}", served.log());
    snapshot::check("serve", "key for NSEC5 in a zone with NSEC3", &served.zone_warnings());
    let keys = folder.path().join("keys");
    let online = ["--now", &now, "--denial", "compact", "--keys", text(&keys)];
    let served = ServerOutput::serve(&folder.path().join("zone"), &online);
    served.wait_for_event("zone-warning", &[]);
    snapshot::check("serve", "key for NSEC5 in a zone that is signed online", &served.zone_warnings());
}

/// If a server would refuse to start, the signer warns.
#[test]
fn signing_keys_beside_a_zone_with_nsec5_are_warned_of() {
    let folder = with_keys(&["--nsec5"]);
    let (zone, keys) = (folder.path().join("zone"), folder.path().join("keys"));
    let sign = |output: &Path| {
        done(["zone", "sign", text(&zone), "--denial", "nsec5", "--keys", text(&keys), "-f", text(output)])
    };
    let warned = sign(&keys.join("signed")).stderr;
    let warning = events(&warned, "signing-key-exposed", &[]);
    assert_eq!(warning.len(), 1, "{warned}");
    snapshot::check("zone sign", "signing key next to a zone with NSEC5", warning[0]);
    let refused = run(&mut nonesuch(["serve", "--listen", "127.0.0.1:0", text(&keys.join("signed"))]));
    assert_eq!(refused.status, 2, "{}", refused.text());
    snapshot::check("serve", "signing key next to a zone with NSEC5", refused.error());
    let apart = sign(&made(folder.path(), "public").join("signed")).stderr;
    assert!(events(&apart, "signing-key-exposed", &[]).is_empty(), "{apart}");
}

#[test]
fn addresses_are_told_with_their_form() {
    for (command, case, arguments) in [
        ("serve", "--listen with a name", &["serve", "zone", "--listen", "localhost"][..]),
        ("serve", "--listen without a port", &["serve", "zone", "--listen", "127.0.0.1"]),
        ("load", "--server, IPv6 without brackets", &["load", "--queries", "list", "--server", "::1:53"]),
    ] {
        let ended = run(&mut nonesuch(arguments));
        assert_eq!(ended.status, 2, "{}", ended.text());
        snapshot::check(command, case, &ended.stderr);
    }
}

/// Options are listed under the correct headings.
#[test]
fn headings_of_the_help_are_right() {
    for (command, heading, others) in [
        (&["serve"][..], "Records generated online:", &["--verify <", "--json", "--now <"][..]),
        (&["zone", "sign"], "Incremental signing:", &["--json", "--only-keys"]),
    ] {
        let help = done([command, &["--help"]].concat()).stdout;
        let at = help.find(heading).unwrap_or_else(|| panic!("{help}"));
        for option in others {
            assert!(help.find(option).is_some_and(|place| place < at), "{option}: {help}");
        }
    }
}

#[test]
fn lines_that_cannot_be_written_are_lost_and_the_zone_is_served() {
    let folder = common::folder();
    let zone = folder.path().join("zone");
    fs::write(&zone, KEYS_ZONE).expect("a file");
    let full = || File::options().write(true).open("/dev/full").expect("a device");
    for is_closed in [false, true] {
        // Another process may take the address in between; then another address is tried.
        let served = (0..5).any(|_| {
            let address = common::free_address();
            let mut command = nonesuch(["serve", "-v", "-o", KEYS_ORIGIN, "--listen", &address.to_string()]);
            command.arg(&zone).stderr(full());
            let mut child = command
                .stdout(if is_closed { Stdio::piped() } else { full().into() })
                .spawn()
                .expect("started");
            drop(child.stdout.take());
            let mut server = Running::of(child, address);
            let begun = Instant::now();
            while begun.elapsed() < LIMIT && !server.has_ended() {
                if common::ask(address, "www.keys.example.", 1, Duration::from_millis(100)).is_some() {
                    return true;
                }
            }
            false
        });
        assert!(served, "reader gone: {is_closed}");
    }
}

/// A response over UDP is truncated at `max-udp-size`, which is also advertised. A reload changes
/// it.
#[test]
fn max_udp_size_is_set_by_configuration_and_command_line() {
    let folder = common::folder();
    let zone = folder.path().join("zone");
    let texts: String = (0..6).map(|n| format!("t 60 TXT {n}{}\n", "x".repeat(150))).collect();
    fs::write(&zone, format!("{}{texts}", plain_zone("example.", 1))).expect("written");
    let asked = |address| {
        let message = ask(address, "t.example.", Rtype::TXT);
        let advertised = message.opt().expect("an OPT record").class.0;
        (message.header.flags & flags::TC != 0, advertised)
    };
    let settings = |size: &str| {
        let path = configure(folder.path(), "[zone.\"example.\"]\nfile = \"zone\"\n");
        let configuration = fs::read_to_string(&path).expect("read");
        write_beside(&path, &configuration.replacen("version = 1\n", &format!("version = 1\n{size}\n"), 1));
        path
    };
    let server = Configured::start(&settings("max-udp-size = 600"));
    assert_eq!(asked(server.address), (true, 600));
    for (size, expected) in [("", (false, 1232)), ("max-udp-size = 4096", (false, 4096))] {
        settings(size);
        let reloaded = server.ctl(&["reload"]);
        assert_eq!(reloaded.status, 0, "{}", reloaded.text());
        assert_eq!(asked(server.address), expected);
    }
    settings("max-udp-size = 4097");
    let refused = server.ctl(&["reload"]);
    assert_eq!(refused.status, 1, "{}", refused.text());
    snapshot::check("ctl", "reload, max-udp-size is too large", &refused.text());
    let listen = ["--listen", "127.0.0.1:0", text(&zone), "--max-udp-size", "600"];
    let server = Configured::start_with(&listen, &folder.path().join("f"), Stdio::null());
    assert_eq!(asked(server.address), (true, 600));
    let refused = run(&mut nonesuch(["serve", text(&zone), "--max-udp-size", "511"]));
    assert_eq!(refused.status, 2, "{}", refused.text());
    snapshot::check("serve", "--max-udp-size 511", &refused.text());
}
