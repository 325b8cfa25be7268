//! `nonesuch serve --config` before it serves: what is refused, what `--check` says, exit statuses.

mod common;

use common::configured::{Configured, configure, head, plain_zone, write_beside};
use common::{folder, generate_key, made, nonesuch, run, text};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

fn check(path: &Path, scope: &str) -> common::Ended {
    run(&mut nonesuch(["serve", "--config", text(path), scope]))
}

/// A private key in a folder.
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
        "c.toml: not sound: 1 zone would not be loaded: 1 zone",
    ] {
        assert!(ended.stdout.contains(expected), "{expected}\n{}", ended.stdout);
    }
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    let ended = check(&path, "--check").expect_done("a sound configuration");
    assert!(ended.stdout.contains("sound: 1 zone"), "{}", ended.stdout);
    fs::write(dir.join("z"), plain_zone("other.", 1)).expect("written");
    let ended = check(&path, "--check=zones");
    assert!(ended.status == 1 && ended.stdout.contains("name the zone other. "), "{}", ended.text());
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    // What everybody may write to is served to everybody.
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

/// A fault that another follows from is said once.
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
    assert!(said.len() == 1 && said[0].contains("no folder: name one"), "{}", ended.stdout);
}

/// What a start refuses of root, the check refuses of root.
#[test]
fn root_without_a_user_is_refused_by_check_and_start_alike() {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: takes root");
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
        let place = format!("c.toml:{line}:{}: {key}: this runs as root", key.len() + 4);
        let ended = check(&path, "--check");
        assert!(ended.status == 2 && ended.stdout.contains(&place), "{place}: {}", ended.text());
        assert!(ended.stderr.contains("runuser -u USER"), "{}", ended.stderr);
        let ended = run(&mut nonesuch(["serve", "--config", text(&path)]));
        assert!(ended.status == 2 && ended.stderr.contains(&place), "{place}: {}", ended.text());
    }
}

/// Root reads everything at the start, the user that it becomes does not, and a reload is that user's.
#[test]
fn what_a_reload_could_not_read_is_said_before_and_at_the_start() {
    if !nix::unistd::Uid::effective().is_root() {
        println!("skipped: takes root");
        return;
    }
    let folder = folder();
    let dir = folder.path();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("open");
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    fs::write(dir.join("secret"), "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch\n").expect("written");
    fs::set_permissions(dir.join("secret"), fs::Permissions::from_mode(0o600)).expect("closed");
    let zones =
        "[key.k]\nsecret-file = \"secret\"\n[zone.\"example.\"]\nfile = \"z\"\ntransfer = [\"key:k.\"]\n";
    let path = dir.join("c.toml");
    write_beside(&path, &format!("{}user = \"nobody\"\n{zones}", head(dir)));
    std::os::unix::fs::chown(dir.join("state"), Some(65_534), Some(65_534)).expect("given");
    let ended = check(&path, "--check");
    assert_eq!(ended.status, 2, "{}", ended.text());
    let expected = "secret: the user nobody may not read it: chgrp nogroup";
    assert!(
        ended.stdout.contains("c.toml:8:15: key.k.secret-file: ") && ended.stdout.contains(expected),
        "{}",
        ended.stdout
    );
    assert!(ended.stdout.contains("; a reload would be refused\n"), "{}", ended.stdout);
    let server = Configured::start(&path);
    assert!(server.logged().contains(expected), "{}", server.logged());
    let ended = server.ctl(&["reload"]);
    assert!(ended.status == 1 && ended.stderr.contains("secret: cannot be read"), "{}", ended.text());
    assert!(!ended.stderr.contains("there is no key"), "the fault is that of the file: {}", ended.stderr);
    fs::set_permissions(dir.join("secret"), fs::Permissions::from_mode(0o644)).expect("open");
    server.ctl(&["reload"]).expect_done("reload");
    let warned = check(&path, "--json").stdout;
    assert!(warned.is_empty(), "{warned}");
}

#[test]
fn programs_are_told_faults_and_warnings_with_their_places() {
    let folder = folder();
    let dir = folder.path();
    let json = |path: &Path, status: i32| {
        let ended = run(&mut nonesuch(["serve", "--config", text(path), "--check", "--json"]));
        assert_eq!(ended.status, status, "{}", ended.text());
        serde_json::from_str::<serde_json::Value>(&ended.stdout)
            .unwrap_or_else(|_| panic!("{}", ended.text()))
    };
    let zones = "[key.k]\nsecret = \"AAAA\"\n[zone.\"example.\"]\nfile = \"z\"\ndenial = \"compact\"\nkeys = \"keys\"\n";
    let path = configure(dir, zones);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("open");
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    fs::create_dir(dir.join("keys")).expect("a folder");
    let told = json(&path, 1);
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
    let told = json(&path, 2);
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
    assert!(ended.stdout.contains("fault: zone keys.example.: not fit to be served"), "{}", ended.stdout);
    // Nothing of this is kept.
    assert_eq!(fs::read_dir(dir.join("state")).expect("a folder").count(), 0);
}

#[test]
fn what_does_not_go_together_on_the_command_line_is_refused() {
    let folder = folder();
    let path = configure(folder.path(), "");
    for (arguments, expected) in [
        (vec!["serve"], "FILE"),
        (vec!["serve"], "serve --config <FILE>"),
        (vec!["serve", "--check"], "serve --config <FILE> [--check[=zones]]"),
        (vec!["serve", "zone", "--config", text(&path)], "cannot be used with"),
        (vec!["serve", "zone", "--check"], "--config"),
        (vec!["serve", "--config", text(&path), "--listen", "127.0.0.1:5300"], "cannot be used with"),
        (vec!["serve", "--config", text(&path), "--denial", "compact", "--keys", "k"], "cannot be used with"),
        (vec!["serve", "--config", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (vec!["ctl", "--config", "nowhere.toml", "status"], "nowhere.toml: cannot be read"),
        (vec!["ctl", "--config", "nowhere.toml", "status"], "--socket"),
        (vec!["ctl", "--socket", "nowhere", "status"], "no server answers there"),
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
    let path = configure(dir, "[zone.\"keys.example.\"]\nfile = \"public/signed\"\n");
    let ended = check(&path, "--check=zones").expect_done("a zone with NSEC5");
    assert!(ended.stdout.contains("signed with NSEC5"), "{}", ended.stdout);
    assert!(!ended.stderr.contains("everybody"), "{}", ended.stderr);
    // With the VRF key the zone can be enumerated.
    let vrf = private_file(&public.join("nsec5"));
    fs::set_permissions(&vrf, fs::Permissions::from_mode(0o644)).expect("open");
    let named = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\nnsec5-keys = \"public/nsec5\"\n";
    for (path, scope) in [(path, "--check=zones"), (configure(dir, named), "--check")] {
        let ended = check(&path, scope).expect_done("a zone with NSEC5");
        let expected = format!("{}: everybody may read this private key: chmod o= it", text(&vrf));
        assert!(ended.stderr.contains(&expected), "{scope}: {}", ended.text());
    }
    let zone = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\nnsec5-keys = \"keys\"\n";
    let ended = check(&configure(dir, zone), "--check");
    let expected = "zone.\"keys.example.\".nsec5-keys: ";
    assert!(ended.status == 1 && ended.stdout.contains(expected), "{}", ended.text());
    assert!(
        ended.stdout.contains("a signing key, in a folder that the server of keys.example."),
        "{}",
        ended.text()
    );
    let zone = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\ndenial = \"compact\"\nkeys = \"keys\"\n";
    let path = configure(dir, zone);
    let ended = check(&path, "--check=zones");
    assert!(ended.status == 1 && ended.stdout.contains("NSEC5"), "{}", ended.text());
    // A signing key that the server could read.
    fs::copy(private_file(&keys), public.join("notes.txt")).expect("copied");
    let path = configure(dir, "[zone.\"keys.example.\"]\nfile = \"public/signed\"\n");
    let ended = check(&path, "--check=zones");
    assert!(ended.status == 1 && ended.stdout.contains("a signing key"), "{}", ended.text());
}
