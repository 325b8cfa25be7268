//! Messages of `nonesuch serve` about its zone: how it is served, when its signatures expire, and
//! unexpected zones and keys.

use crate::common;
use common::configured::{Configured, ask, configure, plain_zone, write_beside};
use common::{KEYS_ORIGIN, KEYS_ZONE, Running, done, generate_key, made, nonesuch, prepared, run, text};
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

    /// Waits until the log contains the words.
    fn expect(&self, words: &str) {
        let end = Instant::now() + LIMIT;
        while !self.log().contains(words) {
            assert!(Instant::now() < end, "wanted {words:?}, got {:?}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
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
    assert!(ready(&zone, &[]).contains("serial 1, unsigned, 1 worker"), "{}", ready(&zone, &[]));
    assert!(ready(&sign(dir, &["--denial", "nsec"]), &[]).contains(", signed with NSEC, "));
    let signed = sign(dir, &["--denial", "nsec3"]);
    assert!(ready(&signed, &[]).contains(", signed with NSEC3, "));
    let image = dir.join("image");
    done(["zone", "compile", text(&signed), "--now", &now, "-f", text(&image)]);
    assert!(ready(&image, &[]).contains(", signed with NSEC3, "));
    let online = ready(&zone, &["--denial", "white-lies", "--keys", text(&keys)]);
    assert!(online.contains(", signed online (white-lies), "), "{online}");
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
        assert!(ended.status == 2 && ended.stderr.contains("reachable from the network"), "{}", ended.text());
    }
}

#[test]
fn signatures_that_come_to_their_end_are_warned_of() {
    let folder = with_keys(&[]);
    let signed = sign(folder.path(), &[]);
    let at = |now: u32, more: &[&str]| {
        ServerOutput::serve(&signed, &[&["--now", &now.to_string()], more].concat())
    };
    at(END - 2 * 86_400 + 600, &[])
        .expect("signatures expire at 2025-06-29T15:06:40Z, in 47 h; sign the zone again");
    // They expire while the server runs, and the zone was not signed again.
    at(END - 2, &[]).expect("have expired at 2025-06-29T15:06:40Z, ");
    // From a mapped image, too. Long before the expiration, there is no warning.
    let image = folder.path().join("image");
    done(["zone", "compile", text(&signed), "--now", &NOW.to_string(), "-f", text(&image)]);
    let (now, later) = ((END - 86_400).to_string(), (NOW + 86_400).to_string());
    ServerOutput::serve(&image, &["--now", &now]).expect("signatures expire at 2025-06-29T15:06:40Z, in 2");
    let quiet = ServerOutput::serve(&image, &["--now", &later, "-v"]);
    assert!(!quiet.log().contains("expire"), "{}", quiet.log());
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
    let words = "zone keys.example.: signatures expire at ";
    server.wait_until("it is warned of", || server.logged().contains(words));
}

#[test]
fn a_key_set_that_comes_to_its_end_is_warned_of() {
    let folder = with_keys(&[]);
    let key_set = sign(folder.path(), &["--only-keys"]);
    let keys = folder.path().join("keys");
    let now = (END - 86_400).to_string();
    let online = ["--now", &now, "--denial", "compact", "--keys", text(&keys)];
    ServerOutput::serve(&key_set, &online).expect("signatures expire at 2025-06-29T15:06:40Z");
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
    for command in [&["zone", "verify"][..], &["zone", "compile"], &["serve", "--listen", "127.0.0.1:0"]] {
        let ended = run(&mut nonesuch([command, &[text(&key_set)]].concat()));
        assert_eq!(ended.status, 1, "{command:?}: {}", ended.text());
        assert!(ended.text().contains("only the key set is signed"), "{}", ended.text());
    }
    // A zone of a configuration, too.
    let configuration = dir.join("c.toml");
    fs::write(&configuration, format!("version = 1\n[zone.\"{KEYS_ORIGIN}\"]\nfile = \"zone.keys\"\n"))
        .expect("written");
    let checked = run(&mut nonesuch(["serve", "--config", text(&configuration), "--check=zones"])).stdout;
    assert!(checked.contains("zone keys.example.: only the key set is signed"), "{checked}");
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
    for (command, says) in [
        (&["zone", "verify"][..], "1 fault;"),
        (&["zone", "compile"], "not compiled: 1 fault;"),
        (&["serve", "--listen", "127.0.0.1:0"], "verification found 1 fault, first: ns.keys.example. A"),
        (&["serve", "--listen", "127.0.0.1:0"], "`nonesuch zone verify "),
        (
            &["serve", "--listen", "127.0.0.1:0", "--denial", "compact", "--keys", text(&keys)],
            "`nonesuch zone verify FILE` lists all faults; correct the zone, or sign it again with `nonesuch zone sign`",
        ),
    ] {
        let ended = run(&mut nonesuch([command, &["--now", &now, text(&signed)]].concat()));
        assert_eq!(ended.status, 1, "{command:?}: {}", ended.text());
        assert!(ended.text().contains(says), "{command:?}: wanted {says:?}: {}", ended.text());
    }
}

/// Alias algorithm numbers for NSEC5 in a zone with another chain.
#[test]
fn keys_of_nsec5_without_nsec5_are_warned_of() {
    let folder = with_keys(&["--nsec5"]);
    let signed = sign(folder.path(), &["--denial", "nsec3"]);
    let now = NOW.to_string();
    let verified = done(["zone", "verify", "--now", &now, text(&signed)]).stdout;
    assert!(
        verified.contains(
            "has an algorithm number for zones with NSEC5, but the denial mechanism of this zone is nsec3"
        ),
        "{verified}"
    );
    let served = ServerOutput::serve(&signed, &["--now", &now]);
    assert_eq!(
        served.log().matches("has an algorithm number for zones with NSEC5").count(),
        1,
        "{}",
        served.log()
    );
    let keys = folder.path().join("keys");
    let online = ["--now", &now, "--denial", "compact", "--keys", text(&keys)];
    ServerOutput::serve(&folder.path().join("zone"), &online)
        .expect("has an algorithm number for zones with NSEC5");
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
    assert!(warned.contains("a signing key in the directory of the signed zone"), "{warned}");
    let refused = run(&mut nonesuch(["serve", "--listen", "127.0.0.1:0", text(&keys.join("signed"))]));
    assert!(refused.stderr.contains("a signing key in a directory that the server"), "{}", refused.text());
    let apart = made(folder.path(), "public").join("signed");
    assert!(!sign(&apart).stderr.contains("signing key"));
}

#[test]
fn addresses_are_told_with_their_form() {
    for (arguments, option) in [
        (&["serve", "zone", "--listen", "localhost"][..], "--listen"),
        (&["serve", "zone", "--listen", "127.0.0.1"], "--listen"),
        (&["load", "--queries", "list", "--server", "::1:53"], "--server"),
    ] {
        let ended = run(&mut nonesuch(arguments));
        assert_eq!(ended.status, 2, "{}", ended.text());
        let says = "expected an address and a port, for example 127.0.0.1:5300 or [::1]:5300";
        assert!(ended.stderr.contains(says) && ended.stderr.contains(option), "{}", ended.stderr);
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
    let refused = server.ctl(&["reload"]).text();
    assert!(
        refused.contains("max-udp-size: 4097 is not allowed: write a number from 512 to 4096"),
        "{refused}"
    );
    let listen = ["--listen", "127.0.0.1:0", text(&zone), "--max-udp-size", "600"];
    let server = Configured::start_with(&listen, &folder.path().join("f"), Stdio::null());
    assert_eq!(asked(server.address), (true, 600));
    let refused = run(&mut nonesuch(["serve", text(&zone), "--max-udp-size", "511"]));
    assert!(refused.status == 2 && refused.text().contains("511 is not in 512..=4096"), "{}", refused.text());
}
