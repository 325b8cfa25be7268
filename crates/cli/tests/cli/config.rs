//! `nonesuch serve --config` before it serves: rejected configurations, the output of `--check`,
//! exit statuses.

use crate::common;
use crate::common::certificates;
use certificates::{Certificates, HOST};
use common::configured::{Configured, configure, head, plain_zone, write_beside};
use common::{folder, generate_key, made, nonesuch, run, text};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

/// ID of the user nobody and of its group.
const NOBODY: u32 = 65_534;

fn check(path: &Path, scope: &str) -> common::Ended {
    run(&mut nonesuch(["serve", "--config", text(path), scope]))
}

/// The JSON output of `--check` with `scope`.
#[track_caller]
fn check_json(path: &Path, scope: &str, status: i32) -> Value {
    let ended = run(&mut nonesuch(["serve", "--config", text(path), scope, "--json"]));
    assert_eq!(ended.status, status, "{}", ended.text());
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()))
}

/// Whether this process is root, which is required by tests that switch the user.
fn is_root() -> bool {
    let is_root = nix::unistd::Uid::effective().is_root();
    if !is_root {
        nonesuch_testing::skip("takes root");
    }
    is_root
}

/// A directory that every user may enter, and in which files can be given to nobody.
fn open_folder() -> tempfile::TempDir {
    let folder = folder();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("open");
    fs::write(folder.path().join("z"), plain_zone("example.", 1)).expect("written");
    folder
}

fn give_to_nobody(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).expect("given");
}

/// A private key in a directory.
fn private_file(dir: &Path) -> PathBuf {
    let mut paths = fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    paths.find(|path| text(path).ends_with(".private")).expect("a key")
}

#[test]
fn a_faulty_configuration_is_refused_with_all_its_faults() {
    let folder = folder();
    let path = configure(folder.path(), "[zone.\"example.\"]\nfiel = \"z\"\n[limits]\nslip = 99\n");
    for scope in ["--check", "--json"] {
        let ended = check(&path, scope);
        assert_eq!(ended.status, 2, "{}", ended.text());
        let place = text(&path);
        for expected in [
            format!("{place}:7:1: zone.\"example.\".fiel: unknown key; did you mean file?"),
            format!("{place}:6:1: zone.\"example.\".file: missing"),
            format!("{place}:9:8: limits.slip: 99 is not allowed: write a number from 0 to 15"),
        ] {
            assert!(ended.stderr.contains(&expected), "{expected}\n{}", ended.stderr);
        }
    }
}

#[test]
fn files_are_checked_without_serving() {
    let folder = folder();
    let dir = folder.path();
    let path = configure(dir, "[zone.\"example.\"]\nfile = \"z\"\n");
    // The server would start without the zone.
    let ended = check(&path, "--check");
    assert_eq!(ended.status, 1, "{}", ended.text());
    for expected in [
        "c.toml:7:8: zone.\"example.\".file: ",
        "z: cannot be read: No such file",
        "; zone example. would not be loaded",
        "c.toml: invalid: 1 zone would not be loaded: 1 zone",
    ] {
        assert!(ended.stdout.contains(expected), "{expected}\n{}", ended.stdout);
    }
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    let ended = check(&path, "--check").expect_done("a sound configuration");
    assert!(ended.stdout.contains("valid: 1 zone"), "{}", ended.stdout);
    fs::write(dir.join("z"), plain_zone("other.", 1)).expect("written");
    let ended = check(&path, "--check=zones");
    assert!(ended.status == 1 && ended.stdout.contains("the origin, -o) to other., "), "{}", ended.text());
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    // The data in a directory that every user may write to would be served.
    fs::set_permissions(dir.join("state"), fs::Permissions::from_mode(0o777)).expect("open");
    let ended = check(&path, "--check");
    assert!(ended.status == 2 && ended.stdout.contains("chmod o-w"), "{}", ended.text());
    assert!(ended.stdout.contains("the server would not start"), "{}", ended.text());
    let ended = run(&mut nonesuch(["serve", "--config", text(&path)]));
    assert!(ended.status == 2 && ended.stderr.contains("c.toml:4:13: state-dir: "), "{}", ended.text());
    fs::set_permissions(dir.join("state"), fs::Permissions::from_mode(0o700)).expect("closed");
    let user = format!("{}user = \"nobody-of-this-name\"\n[zone.\"example.\"]\nfile = \"z\"\n", head(dir));
    write_beside(&path, &user);
    let ended = check(&path, "--check");
    assert!(ended.status == 2 && ended.stdout.contains("c.toml:6:8: user: "), "{}", ended.text());
}

/// A fault that follows from another one at the same location is not reported.
#[test]
fn of_one_place_one_fault_is_said() {
    let folder = folder();
    let dir = folder.path();
    let path = dir.join("c.toml");
    let start = "; the server would not start\n";
    let tls = "version = 1\nlisten = [\"127.0.0.1:0\"]\nlisten-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"c\"\ntls-key = \"k\"\n";
    write_beside(&path, tls);
    let ended = check(&path, "--check");
    let said = ended.stdout.lines().filter(|line| line.starts_with("fault: ")).count();
    assert_eq!((ended.status, said, ended.stdout.matches(start).count()), (2, 2, 2), "{}", ended.stdout);
    write_beside(&path, "version = 1\nlisten = [\"127.0.0.1:0\"]\nstate-dir = \"s\"\n");
    fs::write(dir.join("s"), "").expect("written");
    let ended = check(&path, "--check");
    let said: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("fault: ")).collect();
    assert!(said.len() == 1 && said[0].contains("not a directory: name a directory"), "{}", ended.stdout);
}

/// The check rejects the same configurations of root as a start does.
#[test]
fn root_without_a_user_is_refused_by_check_and_start_alike() {
    if !is_root() {
        return;
    }
    let folder = folder();
    let path = folder.path().join("c.toml");
    for (key, line) in [("listen", 2), ("listen-tls", 3)] {
        let listen = if key == "listen" {
            "[\"0.0.0.0:0\"]"
        } else {
            "[\"127.0.0.1:0\"]\nlisten-tls = [\"0.0.0.0:0\"]"
        };
        let files = if key == "listen" { "" } else { "tls-certificate = \"c\"\ntls-key = \"k\"\n" };
        write_beside(&path, &format!("version = 1\nlisten = {listen}\n{files}"));
        let place = format!("c.toml:{line}:{}: {key}: this command runs as root", key.len() + 4);
        let ended = check(&path, "--check");
        assert!(ended.status == 2 && ended.stdout.contains(&place), "{place}: {}", ended.text());
        assert!(ended.stderr.contains("runuser -u USER"), "{}", ended.stderr);
        let ended = run(&mut nonesuch(["serve", "--config", text(&path)]));
        assert!(ended.status == 2 && ended.stderr.contains(&place), "{place}: {}", ended.text());
    }
}

/// At the start, root reads all files. A reload runs as the configured user, who may lack
/// permission.
#[test]
fn what_a_reload_could_not_read_is_said_before_and_at_the_start() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let dir = folder.path();
    fs::write(dir.join("secret"), "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch\n").expect("written");
    fs::set_permissions(dir.join("secret"), fs::Permissions::from_mode(0o600)).expect("closed");
    let zones =
        "[key.k]\nsecret-file = \"secret\"\n[zone.\"example.\"]\nfile = \"z\"\ntransfer = [\"key:k.\"]\n";
    let path = dir.join("c.toml");
    write_beside(&path, &format!("{}user = \"nobody\"\n{zones}", head(dir)));
    give_to_nobody(&dir.join("state"));
    let ended = check(&path, "--check");
    assert_eq!(ended.status, 2, "{}", ended.text());
    let expected = "secret: the user nobody may not read it: chgrp nogroup";
    assert!(
        ended.stdout.contains("c.toml:8:15: key.k.secret-file: ") && ended.stdout.contains(expected),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("; a reload would be rejected\n"), "{}", ended.stdout);
    let server = Configured::start(&path);
    assert!(server.logged().contains(expected), "{}", server.logged());
    let ended = server.ctl(&["reload"]);
    assert!(ended.status == 1 && ended.stderr.contains("secret: cannot be read"), "{}", ended.text());
    assert!(
        !ended.stderr.contains("does not exist: add [key."),
        "the fault is that of the file: {}",
        ended.stderr
    );
    fs::set_permissions(dir.join("secret"), fs::Permissions::from_mode(0o644)).expect("open");
    server.ctl(&["reload"]).expect_done("reload");
    let warned = check(&path, "--json").stdout;
    assert!(warned.is_empty(), "{warned}");
}

#[test]
fn programs_are_told_faults_and_warnings_with_their_places() {
    let folder = folder();
    let dir = folder.path();
    let zones = "[key.k]\nsecret = \"AAAA\"\n[zone.\"example.\"]\nfile = \"z\"\ndenial = \"compact\"\nkeys = \"keys\"\n";
    let path = configure(dir, zones);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("open");
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    fs::create_dir(dir.join("keys")).expect("a folder");
    let told = check_json(&path, "--check", 1);
    assert_eq!((&told["sound"], &told["zones"]), (&false.into(), &1.into()), "{told}");
    let (fault, warnings) = (&told["faults"][0], told["warnings"].as_array().expect("a list"));
    assert_eq!((&fault["effect"], &fault["zone"]), (&"zone".into(), &"example.".into()), "{told}");
    assert_eq!((&fault["line"], &fault["key"]), (&11.into(), &"zone.\"example.\".keys".into()), "{told}");
    assert!(fault["message"].as_str().is_some_and(|message| message.contains("no key files")), "{told}");
    let lines: Vec<_> = warnings.iter().map(|warning| (&warning["line"], &warning["key"])).collect();
    let (unused, place) = ((&6.into(), &"key.k".into()), (&7.into(), &"key.k.secret".into()));
    assert_eq!(
        lines,
        [unused, place, place],
        "no zone speaks of it, and the secret is open, and short: {told}"
    );
    let path = configure(dir, "[zone.\"example.\"]\nfiel = \"z\"\n");
    let told = check_json(&path, "--check", 2);
    assert_eq!(told["faults"][0]["effect"], "start", "{told}");
}

#[test]
fn zones_are_verified_where_that_is_asked_for() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("zone"), common::KEYS_ZONE).expect("written");
    let keys = dir.join("keys");
    generate_key(&keys, common::KEYS_ORIGIN, "ed25519", &["--csk"]);
    let signed = dir.join("signed");
    common::sign(&dir.join("zone"), common::KEYS_ORIGIN, &keys, "nsec", &signed);
    fs::write(dir.join("plain"), plain_zone("example.", 1)).expect("written");
    let zones = "[zone.\"example.\"]\nfile = \"plain\"\n[zone.\"keys.example.\"]\nfile = \"signed\"\n";
    let path = configure(dir, zones);
    let ended = check(&path, "--check=zones").expect_done("sound zones");
    assert!(
        ended.stdout.contains("zone keys.example.: serial 1, signed with NSEC; verified: full"),
        "{}",
        ended.stdout
    );
    let altered = fs::read_to_string(&signed).expect("a zone").replace("192.0.2.1", "192.0.2.9");
    fs::write(&signed, altered).expect("written");
    assert_eq!(check(&path, "--check").status, 0, "zones are not looked at");
    let ended = check(&path, "--check=zones");
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(ended.stdout.contains("fault: zone keys.example.: verification found "), "{}", ended.stdout);
    // The check stores nothing.
    assert_eq!(fs::read_dir(dir.join("state")).expect("a folder").count(), 0);
}

#[test]
fn what_does_not_go_together_on_the_command_line_is_refused() {
    let folder = folder();
    let path = configure(folder.path(), "");
    for (arguments, expected) in [
        (vec!["serve"], "FILE"),
        (vec!["serve"], "serve --config <FILE>"),
        (vec!["serve", "--check"], "serve --config <FILE> [--check[=zones] [--strict]]"),
        (vec!["serve", "zone", "--config", text(&path)], "cannot be used with"),
        (vec!["serve", "zone", "--check"], "--config"),
        (vec!["serve", "--config", text(&path), "--listen", "127.0.0.1:5300"], "cannot be used with"),
        (vec!["serve", "--config", text(&path), "--denial", "compact", "--keys", "k"], "cannot be used with"),
        (vec!["serve", "--config", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (vec!["ctl", "--config", "nowhere.toml", "status"], "nowhere.toml: cannot be read"),
        (vec!["ctl", "--config", "nowhere.toml", "status"], "--socket"),
        (vec!["ctl", "--socket", "nowhere", "status"], "cannot connect to the server"),
    ] {
        let ended = run(&mut nonesuch(&arguments));
        assert!(ended.status == 2 && ended.stderr.contains(expected), "{arguments:?}: {}", ended.text());
    }
}

#[test]
fn keys_beside_a_zone_with_nsec5_are_refused() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("zone"), common::KEYS_ZONE).expect("written");
    let (keys, public) = (dir.join("keys"), made(dir, "public"));
    generate_key(&keys, common::KEYS_ORIGIN, "ed25519", &["--csk", "--nsec5"]);
    let signed = public.join("signed");
    common::sign(&dir.join("zone"), common::KEYS_ORIGIN, &keys, "nsec5", &signed);
    let unnamed = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\n";
    let path = configure(dir, unnamed);
    let ended = check(&path, "--check=zones").expect_done("a zone with NSEC5");
    assert!(ended.stdout.contains("signed with NSEC5"), "{}", ended.stdout);
    assert!(!ended.stderr.contains("every user may read"), "{}", ended.stderr);
    // The VRF key makes it possible to enumerate the zone.
    let vrf = private_file(&public.join("nsec5"));
    fs::set_permissions(&vrf, fs::Permissions::from_mode(0o644)).expect("open");
    let named = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\nnsec5-keys = \"public/nsec5\"\n";
    let expected = format!("{}: every user may read this private key: chmod o= it", text(&vrf));
    for (zone, scope, line, key) in [
        (unnamed, "--check=zones", 7, "file"),
        (named, "--check", 8, "nsec5-keys"),
        (named, "--check=zones", 8, "nsec5-keys"),
    ] {
        let path = configure(dir, zone);
        let ended = check(&path, scope).expect_done("a zone with NSEC5");
        assert_eq!(ended.stderr.matches(&expected).count(), 1, "{scope}: {}", ended.text());
        let told = check_json(&path, scope, 0);
        let warning = &told["warnings"][0];
        assert_eq!(
            (&warning["line"], &warning["message"]),
            (&line.into(), &expected.as_str().into()),
            "{told}"
        );
        assert_eq!(warning["key"], format!("zone.\"keys.example.\".{key}"), "{told}");
    }
    let server = Configured::start(&configure(dir, named));
    assert!(server.logged().contains(&expected), "{}", server.logged());
    server.stop();
    let zone = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\nnsec5-keys = \"keys\"\n";
    let ended = check(&configure(dir, zone), "--check");
    let expected = "zone.\"keys.example.\".nsec5-keys: ";
    assert!(ended.status == 1 && ended.stdout.contains(expected), "{}", ended.text());
    assert!(
        ended.stdout.contains("a signing key in a directory that the server of keys.example."),
        "{}",
        ended.text()
    );
    let zone = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\ndenial = \"compact\"\nkeys = \"keys\"\n";
    let path = configure(dir, zone);
    let ended = check(&path, "--check=zones");
    assert!(ended.status == 1 && ended.stdout.contains("NSEC5"), "{}", ended.text());
    fs::set_permissions(private_file(&keys), fs::Permissions::from_mode(0o644)).expect("open");
    let told = check_json(&path, "--check", 0);
    let warning = &told["warnings"][0];
    assert_eq!(
        (&warning["line"], &warning["key"]),
        (&9.into(), &"zone.\"keys.example.\".keys".into()),
        "{told}"
    );
    // A signing key that the server could read.
    fs::copy(private_file(&keys), public.join("notes.txt")).expect("copied");
    let ended = check(&configure(dir, unnamed), "--check=zones");
    assert!(ended.status == 1 && ended.stdout.contains("a signing key"), "{}", ended.text());
}

/// The directory of a package's control socket exists only while the server runs.
#[test]
fn a_folder_that_systemd_makes_is_missed_by_the_start_alone() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    let path = dir.join("c.toml");
    let head = head(dir).replace("\"control\"", "\"/run/nonesuch-of-no-unit/control\"");
    write_beside(
        &path,
        &format!(
            "{head}[dnstap]\nfile = \"/run/nonesuch-of-no-unit/tap\"\n[zone.\"example.\"]\nfile = \"z\"\n"
        ),
    );
    let ended = check(&path, "--check=zones").expect_done("a server that does not run");
    assert!(ended.stdout.contains("zone example.: serial 1"), "{}", ended.text());
    let expected = "c.toml:5:18: control-socket: /run/nonesuch-of-no-unit/control: the directory /run/nonesuch-of-no-unit does not exist";
    assert!(
        ended.stderr.contains(expected) && ended.stderr.contains("c.toml:7:8: dnstap.file: "),
        "{}",
        ended.stderr
    );
    let ended = run(&mut nonesuch(["serve", "--config", text(&path)]));
    assert!(ended.status == 2 && ended.stderr.contains(expected), "{}", ended.text());
}

/// After a start as root, the directories belong to the server's user, but the files in them do
/// not.
#[test]
fn what_another_user_made_in_the_state_folder_is_found() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let dir = folder.path();
    let path = dir.join("c.toml");
    // A file without frames is written directly, independently of the owner of its directory.
    let rest = "user = \"nobody\"\n[dnstap]\nfile = \"tap\"\n[zone.\"example.\"]\nfile = \"z\"\n";
    write_beside(&path, &format!("{}{rest}", head(dir)));
    let (state, tap) = (dir.join("state"), dir.join("tap"));
    fs::create_dir(state.join("zones")).expect("a folder");
    for file in [state.join("lock"), tap.clone()] {
        fs::write(file, "").expect("written");
    }
    [&state, &tap].into_iter().for_each(|path| give_to_nobody(path));
    let found = |inner: &str, effect: &str| {
        let message = format!("state/{inner}: the user nobody may not write to it: chown -R nobody ");
        let ended = check(&path, "--check");
        let line =
            ended.stdout.lines().find(|line| line.contains("c.toml:4:13: state-dir: ")).unwrap_or_default();
        assert!(line.contains(&message) && line.ends_with(effect), "{}", ended.text());
        ended.status
    };
    assert_eq!(found("lock", "; the server would not start"), 2);
    let ended = run(&mut nonesuch(["serve", "--config", text(&path)]));
    assert!(ended.status == 3 && ended.stderr.contains("state-dir"), "{}", ended.text());
    give_to_nobody(&state.join("lock"));
    fs::write(&tap, "").expect("without the frames of that start");
    assert_eq!(found("zones", "; no new version of a zone would be stored and published"), 1);
    assert_eq!(check_json(&path, "--check", 1)["faults"][0]["effect"], "zones");
    let server = Configured::start(&path);
    assert!(server.logged().contains("cannot be written"), "{}", server.logged());
    server.stop();
    give_to_nobody(&state.join("zones"));
    fs::write(&tap, "").expect("without the frames of that start");
    let kept = state.join("zones/example.kept");
    fs::write(&kept, "").expect("written");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o640)).expect("closed");
    let ended = check(&path, "--check");
    let expected = "state/zones/example.kept: the user nobody may not read it: chown -R nobody ";
    assert!(ended.status == 1 && ended.stdout.contains(expected), "{}", ended.text());
    give_to_nobody(&kept);
    check(&path, "--check").expect_done("a sound configuration");
}

/// A user other than root creates the control socket as this user.
#[test]
fn who_starts_the_server_must_be_able_to_make_its_socket() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let dir = folder.path();
    let path = dir.join("c.toml");
    let zone = "[zone.\"example.\"]\nfile = \"z\"\n";
    let head = head(dir);
    give_to_nobody(&dir.join("state"));
    give_to_nobody(&made(dir, "run"));
    let as_nobody = |more: &[&str]| {
        let mut command = nonesuch([&["serve", "--config", text(&path)], more].concat());
        run(command.uid(NOBODY).gid(NOBODY))
    };
    let other = head.replace("\"control\"", "\"run/control\"");
    for (text, expected) in [
        (head, "c.toml:5:18: control-socket: "),
        (
            format!("{other}control-group = \"root\"\n"),
            "c.toml:6:17: control-group: \"root\": the user nobody is not in this group",
        ),
    ] {
        write_beside(&path, &format!("{text}{zone}"));
        let ended = as_nobody(&["--check"]);
        assert!(ended.status == 2 && ended.stdout.contains(expected), "{expected}: {}", ended.text());
        let ended = as_nobody(&[]);
        assert!(ended.status == 2 && ended.stderr.contains(expected), "{expected}: {}", ended.text());
        // Root creates it as root.
        write_beside(&path, &format!("{text}user = \"nobody\"\n{zone}"));
        check(&path, "--check").expect_done("a sound configuration of root");
    }
    let own = nix::unistd::Group::from_gid(NOBODY.into()).expect("groups").expect("a group of nobody").name;
    write_beside(&path, &format!("{other}control-group = \"{own}\"\n{zone}"));
    as_nobody(&["--check"]).expect_done("a sound configuration of nobody");
}

#[test]
fn what_is_wrong_with_a_key_of_tls_is_said_of_the_key() {
    let folder = folder();
    let dir = folder.path();
    Certificates::make(dir);
    fs::write(dir.join("k2.pem"), "no key").expect("written");
    let path = dir.join("c.toml");
    let pairs = [
        ("server.pem", "k2.pem", 5, "tls-key"),
        ("stranger.pem", "server.key", 5, "tls-key"),
        ("k2.pem", "server.key", 4, "tls-certificate"),
    ];
    for (certificate, key, line, named) in pairs {
        let head = "version = 1\nlisten = [\"127.0.0.1:0\"]\nlisten-tls = [\"127.0.0.1:0\"]\n";
        write_beside(&path, &format!("{head}tls-certificate = \"{certificate}\"\ntls-key = \"{key}\"\n"));
        let told = check_json(&path, "--check", 2);
        let fault = &told["faults"][0];
        assert_eq!((&fault["line"], &fault["key"]), (&line.into(), &named.into()), "{told}");
    }
}

/// The certificates that verify primaries are read for each transfer, as the server's user.
#[test]
fn authorities_that_the_user_may_not_read_fail_transfers_alone() {
    if !is_root() {
        return;
    }
    let folder = open_folder();
    let dir = folder.path();
    let authority = Certificates::make(dir).authority;
    fs::set_permissions(&authority, fs::Permissions::from_mode(0o600)).expect("closed");
    let path = dir.join("c.toml");
    let zone = format!("[zone.\"example.\"]\nprimaries = [\"127.0.0.1:1 tls:{HOST}\"]\n");
    write_beside(
        &path,
        &format!("{}user = \"nobody\"\ntls-authorities = \"authority.pem\"\n{zone}", head(dir)),
    );
    give_to_nobody(&dir.join("state"));
    let ended = check(&path, "--check");
    let expected = "c.toml:7:19: tls-authorities: ";
    assert!(ended.status == 1 && ended.stdout.contains(expected), "{}", ended.text());
    assert!(
        ended.stdout.contains("NOTIFY to them would fail") && !ended.stdout.contains("reload"),
        "{}",
        ended.stdout
    );
    assert_eq!(check_json(&path, "--check", 1)["faults"][0]["effect"], "transfers");
    let server = Configured::start(&path);
    assert!(server.logged().contains(expected), "{}", server.logged());
    server.ctl(&["reload"]).expect_done("reload");
}
