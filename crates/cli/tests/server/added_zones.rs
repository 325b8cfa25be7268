//! Adding and removing zones while the server runs, and NOTIFY on demand.

use crate::common;
use common::configured::{Configured, ask, head, plain_zone, write_beside};
use common::{folder, is_installed, nonesuch, run, snapshot, text};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{HEADER, Rcode};
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Writes a zone file, and returns the setting that names it.
fn file(dir: &Path, name: &str, serial: u32) -> String {
    let path = dir.join(name);
    write_beside(&path, &plain_zone(&format!("{name}.example."), serial));
    format!("file={}", path.display())
}

/// A configuration with the zone `main.example.` and a file of added zones.
fn configure(dir: &Path, more: &str) -> PathBuf {
    file(dir, "main", 1);
    fs::create_dir_all(dir.join("added")).expect("a directory");
    let path = dir.join("c.toml");
    let top = format!("{}added-zones-file = \"added/zones.toml\"\n", head(dir));
    write_beside(&path, &format!("{top}{more}[zone.\"main.example.\"]\nfile = \"main\"\n"));
    path
}

/// The content of the file of added zones.
fn added(dir: &Path) -> String {
    fs::read_to_string(dir.join("added/zones.toml")).unwrap_or_default()
}

#[test]
fn added_zones_are_served_at_once_and_after_a_restart() {
    let folder = folder();
    let dir = folder.path();
    let path = configure(dir, "[template.second]\nrequest-ixfr = false\n");
    let server = Configured::start(&path);
    let said = server.ctl(&["zone", "add", "A.example", &file(dir, "a", 7)]).expect_done("add").stdout;
    snapshot::check("ctl", "zone add: zone from a file", &said);
    assert_eq!((server.serial("a.example."), server.serial("main.example.")), (Some(7), Some(1)));
    // A secondary zone whose primary is another server.
    let other = common::folder();
    let zones = "[zone.\"s.example.\"]\nfile = \"s\"\ntransfer = [\"127.0.0.1\"]\n";
    file(other.path(), "s", 3);
    let primary = Configured::start(&common::configured::configure(other.path(), zones));
    let primaries = format!("primaries=[\"{}\"]", primary.address);
    let said = server.ctl(&["zone", "add", "s.example.", &primaries, "template=second"]).expect_done("add");
    snapshot::check("ctl", "zone add: zone from a primary", &said.stdout);
    server.wait_for("s.example.", 3);
    // Zones that are not reloaded stay unchanged, including a zone that already exists.
    file(dir, "main", 2);
    let said = server.ctl_json(&["zone", "add", "b.example.", &file(dir, "b", 1)]);
    assert_eq!(
        (&said["zone"], &said["serial"], &said["state"]),
        (&"b.example.".into(), &1.into(), &"serving".into())
    );
    assert_eq!(server.serial("main.example."), Some(1));
    server.kill();
    let server = Configured::start(&path);
    for (zone, serial) in [("a.example.", 7), ("s.example.", 3), ("b.example.", 1), ("main.example.", 2)] {
        server.wait_for(zone, serial);
    }
    for zone in ["a.example.", "s.example."] {
        let said = server.ctl(&["zone", "remove", zone]).expect_done("remove").stdout;
        snapshot::check("ctl", &format!("zone remove {zone}"), &said);
        assert_eq!(ask(server.address, zone, Rtype::SOA).rcode(), Rcode::REFUSED);
    }
    assert!(!added(dir).contains("a.example.") && added(dir).contains("b.example."), "{}", added(dir));
    server.ctl(&["reload"]).expect_done("reload");
    assert_eq!((server.serial("b.example."), server.serial("a.example.")), (Some(1), None));
    // The zone can be added again.
    server.ctl(&["zone", "add", "a.example.", &file(dir, "a", 8)]).expect_done("add");
    assert_eq!(server.serial("a.example."), Some(8));
}

#[test]
fn a_zone_that_is_refused_changes_nothing() {
    let folder = folder();
    let dir = folder.path();
    let server = Configured::start(&configure(dir, ""));
    server.ctl(&["zone", "add", "a.example.", &file(dir, "a", 1)]).expect_done("add");
    let before = added(dir);
    for (arguments, place) in [
        (vec!["add", "b.example.", "fiel=/b"], "zone.\"b.example.\".fiel: "),
        (vec!["add", "b.example.", "primaries=192.0.2.1"], "zone.\"b.example.\".primaries: "),
        (vec!["add", "b.example.", "file=b", "verify=all"], "zone.\"b.example.\".verify: "),
        (vec!["add", "main.example.", "file=b"], "c.toml:7:7: "),
        (vec!["add", "a.example.", "file=b"], "zones.toml:3:7: `nonesuch ctl zone remove a.example.`"),
        (vec!["remove", "main.example."], "c.toml:7:7: "),
        (vec!["remove", "none.example."], "none.example."),
    ] {
        let ended = server.ctl(&[&["zone"], &arguments[..]].concat());
        assert!(ended.status == 1 && ended.stderr.contains(place), "{arguments:?}: {}", ended.text());
        snapshot::check("ctl", &format!("zone {}", arguments.join(" ")), &ended.stderr);
    }
    assert_eq!(added(dir), before);
    // If the file cannot be replaced, the zone is not served either.
    fs::rename(dir.join("added"), dir.join("moved")).expect("renamed");
    let ended = server.ctl(&["zone", "add", "b.example.", &file(dir, "b", 1)]);
    assert!(ended.status == 1 && ended.stderr.contains("zones.toml: "), "{}", ended.text());
    snapshot::check("ctl", "zone add: directory of added-zones-file is missing", &ended.stderr);
    assert_eq!((server.serial("b.example."), server.serial("a.example.")), (None, Some(1)));
    fs::rename(dir.join("moved"), dir.join("added")).expect("renamed");
    // A zone with a faulty file is added as in a reload; the exit status reports the fault.
    let missing = server.ctl(&["zone", "add", "c.example.", "file=/none"]);
    assert_eq!(missing.status, 1, "{}", missing.text());
    snapshot::check("ctl", "zone add: zone file is missing", &missing.stdout);
    assert_eq!(ask(server.address, "c.example.", Rtype::SOA).rcode(), Rcode::SERVFAIL);
    server.ctl(&["zone", "remove", "c.example."]).expect_done("remove");
    let answer_to = |request: serde_json::Value| {
        let mut stream = UnixStream::connect(dir.join("control")).expect("connected");
        // The server may have responded before it has read the complete request.
        let _ = writeln!(stream, "{request}");
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).expect("an answer");
        answer
    };
    // A request without settings is invalid, and so is a request above the maximum length.
    let answer = answer_to(json!({ "command": "zone-add", "zone": "d.example." }));
    assert!(answer.contains("\"error\"") && answer.contains("`settings`"), "{answer}");
    let settings = json!({ "file": "x".repeat(5000) });
    let answer = answer_to(json!({ "command": "zone-add", "zone": "d.example.", "settings": settings }));
    assert!(answer.contains("\"error\"") && answer.contains("4096 bytes"), "{answer}");
    snapshot::check("ctl", "request above the maximum length", &answer);
    assert_eq!(added(dir), before);
}

#[test]
fn zones_that_are_added_at_once_are_all_there() {
    let folder = folder();
    let dir = folder.path();
    let server = Configured::start(&configure(dir, ""));
    let names: Vec<String> = (0..8).map(|number| format!("z{number}")).collect();
    let removed = ["old0", "old1", "old2", "old3"];
    for name in removed {
        server.ctl(&["zone", "add", &format!("{name}.example."), &file(dir, name, 1)]).expect_done("add");
    }
    std::thread::scope(|scope| {
        for name in &names {
            let setting = file(dir, name, 1);
            let server = &server;
            scope.spawn(move || {
                server.ctl(&["zone", "add", &format!("{name}.example."), &setting]).expect_done("add")
            });
        }
        for name in removed {
            let server = &server;
            scope.spawn(move || {
                server.ctl(&["zone", "remove", &format!("{name}.example.")]).expect_done("remove")
            });
        }
    });
    let zones: toml::Table = added(dir).parse().expect("TOML");
    let found: Vec<&String> = zones["zone"].as_table().expect("zones").keys().collect();
    let expected: Vec<String> = names.iter().map(|name| format!("{name}.example.")).collect();
    assert_eq!(found, expected.iter().collect::<Vec<_>>());
    assert!(expected.iter().all(|zone| server.serial(zone) == Some(1)));
}

/// Runs `serve` and `serve --check` as root with another configured user. Both name the directory
/// that this user may not write to.
#[test]
fn a_directory_that_the_servers_user_may_not_write_to_keeps_it_from_starting() {
    let user = nix::unistd::User::from_name("nobody").ok().flatten();
    let (true, Some(user)) = (nix::unistd::Uid::effective().is_root(), user) else {
        return nonesuch_testing::record_skip("only root can become another user");
    };
    let folder = folder();
    let dir = folder.path();
    let path = configure(dir, "user = \"nobody\"\n");
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("a mode");
    let (uid, gid) = (Some(user.uid.as_raw()), Some(user.gid.as_raw()));
    chown(dir.join("state"), uid, gid).expect("given away");
    for (action, check) in [("start", &[][..]), ("check", &["--check"])] {
        let ended = run(&mut nonesuch([&["serve", "--config", text(&path)], check].concat()));
        let said = ended.text();
        assert_eq!(ended.status, 2, "{said}");
        let line = said.lines().find(|line| line.contains("c.toml:6:20: added-zones-file: "));
        let line = line.unwrap_or_else(|| panic!("{said}"));
        snapshot::check("serve", &format!("{action}: directory of added-zones-file is not writable"), line);
    }
    chown(dir.join("added"), uid, gid).expect("given away");
    let server = Configured::start(&path);
    server.ctl(&["zone", "add", "a.example.", &file(dir, "a", 1)]).expect_done("add");
    let found = fs::metadata(dir.join("added/zones.toml")).expect("written");
    assert_eq!((Some(found.uid()), found.mode() & 0o777), (uid, 0o640));
    assert_eq!(server.serial("a.example."), Some(1));
}

/// Starts a server under strace with these options, calls `act`, which uses the control socket, and
/// kills the server.
fn traced(path: &Path, options: &[&str], act: impl FnOnce()) {
    let program = nonesuch([""; 0]).get_program().to_owned();
    let mut child = Command::new("strace")
        .args(["-D", "-f", "-qq"])
        .args(options)
        .arg(program)
        .args(["serve", "--config", text(path)])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("strace starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("ready: ")), "it is not ready");
    act();
    let _ = child.kill();
    let _ = child.wait();
}

/// The temporary file is synchronized before it is renamed, and its directory after that. A server
/// that is killed at either call leaves the old file or the new file.
#[test]
fn the_file_of_added_zones_outlives_a_crash() {
    let is_traceable =
        || Command::new("strace").arg("true").output().is_ok_and(|ended| ended.status.success());
    if !is_installed("strace") || !is_traceable() {
        return nonesuch_testing::record_skip("strace cannot be run");
    }
    let folder = folder();
    let dir = fs::canonicalize(folder.path()).expect("a directory");
    let path = configure(&dir, "");
    let (trace, file_of_zones, directory) =
        (dir.join("trace"), dir.join("added/zones.toml"), dir.join("added"));
    let add = |name: &str| {
        let setting = file(&dir, name, 1);
        run(&mut nonesuch([
            "ctl",
            "--config",
            text(&path),
            "zone",
            "add",
            &format!("{name}.example."),
            &setting,
        ]))
    };
    let calls = "trace=fsync,fdatasync,rename,renameat,renameat2";
    traced(&path, &["-y", "-e", calls, "-o", text(&trace)], || drop(add("a").expect_done("add")));
    let calls = fs::read_to_string(&trace).expect("a trace");
    let lines: Vec<&str> = calls.lines().filter(|line| line.contains(text(&directory))).collect();
    let is = |line: &str, call: &str, end: &str| line.contains(call) && line.contains(end);
    let [written, renamed, lasting] = lines[..] else { panic!("{calls}") };
    assert!(is(written, "fsync(", ".part>"), "{calls}");
    assert!(is(renamed, "rename", "zones.toml\""), "{calls}");
    assert!(is(lasting, "fsync(", "/added>"), "{calls}");
    for (name, place, call) in
        [("b", &file_of_zones, "rename,renameat,renameat2"), ("c", &directory, "fsync,fdatasync")]
    {
        let inject = format!("inject={call}:signal=KILL");
        traced(&path, &["-P", text(place), "-e", &inject, "-o", text(&trace)], || {
            assert_ne!(add(name).status, 0, "it is killed before it answers");
        });
        let server = Configured::start(&path);
        assert_eq!(server.serial("a.example."), Some(1), "{}", added(&dir));
        let is_there = added(&dir).contains(&format!("{name}.example."));
        assert_eq!(server.serial(&format!("{name}.example.")).is_some(), is_there);
    }
}

#[test]
fn notify_is_sent_on_demand() {
    let folder = folder();
    let dir = folder.path();
    let secondary = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    secondary.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let server = Configured::start(&configure(dir, ""));
    let also = format!("also-notify=[\"{}\"]", secondary.local_addr().expect("bound"));
    server.ctl(&["zone", "add", "a.example.", &file(dir, "a", 5), &also]).expect_done("add");
    // Receives one NOTIFY (opcode 4) of the zone and responds to it.
    let take = || {
        let mut octets = [0; 512];
        let (length, from) = secondary.recv_from(&mut octets).expect("a NOTIFY");
        assert_eq!(octets[2] >> 3, 4);
        assert_eq!(&octets[HEADER..HEADER + 11], b"\x01a\x07example\0");
        octets[2] |= 0x80;
        secondary.send_to(&octets[..length], from).expect("answered");
    };
    // One for the new version, then one for each request.
    take();
    for _ in 0..2 {
        let said = server.ctl(&["zone", "notify", "a.example."]).expect_done("notify").stdout;
        snapshot::check("ctl", "zone notify", &said);
        take();
    }
    for (zone, case) in [("main.example.", "zone without secondaries"), ("b.", "unknown zone")] {
        let ended = server.ctl(&["zone", "notify", zone]);
        assert_eq!(ended.status, 1, "{}", ended.text());
        snapshot::check("ctl", &format!("zone notify: {case}"), &ended.stderr);
    }
}
