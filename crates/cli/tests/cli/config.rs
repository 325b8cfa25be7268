//! `nonesuch serve --config` before it serves: rejected configurations, the output of `--check`,
//! exit statuses.

use crate::common;
use crate::common::certificates;
use certificates::{Certificates, HOST};
use common::configured::{Configured, configure, head, plain_zone, write_beside};
use common::{events, folder, generate_key, made, nonesuch, run, snapshot, text};
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

/// The effects of the faults in the JSON output of `--check`.
fn effects(told: &Value) -> Vec<&str> {
    let faults = told["faults"].as_array().into_iter().flatten();
    faults.filter_map(|fault| fault["effect"].as_str()).collect()
}

/// The line of `output` that contains `part`.
#[track_caller]
fn line_with<'o>(output: &'o str, part: &str) -> &'o str {
    output.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}: {output}"))
}

/// Whether this process is root, which is required by tests that switch the user.
fn is_root() -> bool {
    let is_root = nix::unistd::Uid::effective().is_root();
    if !is_root {
        nonesuch_testing::record_skip("takes root");
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
    let mut paths = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
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
            format!("{place}:7:1: zone.\"example.\".fiel: "),
            format!("{place}:6:1: zone.\"example.\".file: "),
            format!("{place}:9:8: limits.slip: 99 "),
        ] {
            assert!(ended.stderr.contains(&expected), "{expected}\n{}", ended.stderr);
        }
        snapshot::check("serve", "configuration with an unknown key and two other faults", &ended.stderr);
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
    assert!(ended.stdout.contains("c.toml:7:8: zone.\"example.\".file: "), "{}", ended.stdout);
    snapshot::check("serve", "check: missing zone file", &ended.stdout);
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    let ended = check(&path, "--check").expect_done("a sound configuration");
    snapshot::check("serve", "check: valid configuration of one zone", &ended.stdout);
    fs::write(dir.join("z"), plain_zone("other.", 1)).expect("written");
    let ended = check(&path, "--check=zones");
    assert!(ended.status == 1 && ended.stdout.contains(" other."), "{}", ended.text());
    snapshot::check("serve", "check: file of another zone", &ended.stdout);
    fs::write(dir.join("z"), plain_zone("example.", 1)).expect("written");
    // The data in a directory that every user may write to would be served.
    fs::set_permissions(dir.join("state"), fs::Permissions::from_mode(0o777)).expect("open");
    let ended = check(&path, "--check");
    assert!(ended.status == 2 && ended.stdout.contains("chmod o-w"), "{}", ended.text());
    snapshot::check("serve", "check: state directory that every user may write to", &ended.stdout);
    assert_eq!(effects(&check_json(&path, "--check", 2)), ["start"]);
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
    let tls = "version = 1\nlisten = [\"127.0.0.1:0\"]\nlisten-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"c\"\ntls-key = \"k\"\n";
    write_beside(&path, tls);
    let ended = check(&path, "--check");
    let said = ended.stdout.lines().filter(|line| line.starts_with("fault: ")).count();
    assert_eq!((ended.status, said), (2, 2), "{}", ended.stdout);
    snapshot::check("serve", "check: missing TLS files", &ended.stdout);
    assert_eq!(effects(&check_json(&path, "--check", 2)), ["start", "start"]);
    write_beside(&path, "version = 1\nlisten = [\"127.0.0.1:0\"]\nstate-dir = \"s\"\n");
    fs::write(dir.join("s"), "").expect("written");
    let ended = check(&path, "--check");
    let said: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with("fault: ")).collect();
    assert!(said.len() == 1 && said[0].contains(" state-dir: "), "{}", ended.stdout);
    snapshot::check("serve", "check: file instead of the state directory", said[0]);
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
        let place = format!("c.toml:{line}:{}: {key}: ", key.len() + 4);
        let ended = check(&path, "--check");
        assert!(ended.status == 2 && ended.stdout.contains(&place), "{place}: {}", ended.text());
        snapshot::check("serve", &format!("check: root without a user, {key}"), &ended.stdout);
        let warnings = events(&ended.stderr, "configuration-warning", &[]);
        assert!(warnings.iter().any(|line| line.contains("runuser -u USER")), "{}", ended.stderr);
        let ended = run(&mut nonesuch(["serve", "--config", text(&path)]));
        assert!(ended.status == 2 && ended.stderr.contains(&place), "{place}: {}", ended.text());
        snapshot::check("serve", &format!("root without a user, {key}"), ended.error());
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
    let place = "c.toml:8:15: key.k.secret-file: ";
    let fault = line_with(&ended.stdout, place);
    assert!(fault.contains("/secret: ") && fault.contains("chgrp nogroup "), "{}", ended.stdout);
    snapshot::check("serve", "check: secret that a reload could not read", &ended.stdout);
    assert_eq!(effects(&check_json(&path, "--check", 2)), ["reload"]);
    let server = Configured::start(&path);
    let warnings = server.events("configuration-warning", &[]);
    let warning = warnings.iter().find(|line| line.contains(place)).expect("a warning about the secret");
    assert!(warning.contains("/secret: ") && warning.contains("chgrp nogroup "), "{warning}");
    snapshot::check("serve", "secret that a reload could not read", warning);
    let ended = server.ctl(&["reload"]);
    assert!(ended.status == 1 && ended.stderr.contains("/secret: "), "{}", ended.text());
    assert!(
        !ended.stderr.contains("zone.\"example.\".transfer"),
        "the fault is that of the file: {}",
        ended.stderr
    );
    snapshot::check("ctl", "reload with a secret that the server cannot read", &ended.stderr);
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
    fs::create_dir(dir.join("keys")).expect("a directory");
    let told = check_json(&path, "--check", 1);
    assert_eq!((&told["sound"], &told["zones"]), (&false.into(), &1.into()), "{told}");
    let (fault, warnings) = (&told["faults"][0], told["warnings"].as_array().expect("a list"));
    assert_eq!((&fault["effect"], &fault["zone"]), (&"zone".into(), &"example.".into()), "{told}");
    assert_eq!((&fault["line"], &fault["key"]), (&11.into(), &"zone.\"example.\".keys".into()), "{told}");
    let message = fault["message"].as_str().expect("a message");
    snapshot::check("serve", "check: key directory without keys", message);
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
    let line = line_with(&ended.stdout, "zone keys.example.: serial 1, ");
    assert!(line.contains(" NSEC; ") && line.contains("verified: full"), "{}", ended.stdout);
    snapshot::check("serve", "check: zone with NSEC", line);
    let altered = fs::read_to_string(&signed).expect("a zone").replace("192.0.2.1", "192.0.2.9");
    fs::write(&signed, altered).expect("written");
    assert_eq!(check(&path, "--check").status, 0, "zones are not looked at");
    let ended = check(&path, "--check=zones");
    assert_eq!(ended.status, 1, "{}", ended.text());
    let fault = line_with(&ended.stdout, "fault: zone keys.example.: ");
    snapshot::check("serve", "check: zone with an altered record", fault);
    // The check stores nothing.
    assert_eq!(fs::read_dir(dir.join("state")).expect("a directory").count(), 0);
}

#[test]
fn what_does_not_go_together_on_the_command_line_is_refused() {
    let folder = folder();
    let path = configure(folder.path(), "");
    let path = text(&path);
    let usage = "serve --config <FILE> [--check[=zones] [--strict]]";
    for (case, arguments, part) in [
        ("neither zone file nor configuration", vec!["serve"], usage),
        ("check of nothing", vec!["serve", "--check"], usage),
        ("zone file and configuration", vec!["serve", "zone", "--config", path], "--config"),
        ("check of a zone file", vec!["serve", "zone", "--check"], "--config"),
        (
            "address and configuration",
            vec!["serve", "--config", path, "--listen", "127.0.0.1:5300"],
            "--listen",
        ),
        (
            "online denial and configuration",
            vec!["serve", "--config", path, "--denial", "compact", "--keys", "k"],
            "--denial",
        ),
        ("missing configuration nowhere.toml", vec!["serve", "--config", "nowhere.toml"], "nowhere.toml: "),
        (
            "missing configuration nowhere.toml",
            vec!["ctl", "--config", "nowhere.toml", "status"],
            "nowhere.toml: ",
        ),
        ("missing configuration nowhere.toml", vec!["ctl", "--config", "nowhere.toml", "status"], "--socket"),
        ("missing socket nowhere", vec!["ctl", "--socket", "nowhere", "status"], "nowhere: "),
    ] {
        let ended = run(&mut nonesuch(&arguments));
        assert!(ended.status == 2 && ended.stderr.contains(part), "{arguments:?}: {}", ended.text());
        snapshot::check(arguments[0], case, &ended.stderr);
    }
}

#[test]
fn keys_beside_a_zone_with_nsec5_are_refused() {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("zone"), common::KEYS_ZONE).expect("written");
    let (keys, public) = (dir.join("keys"), made(dir, "public"));
    let base = generate_key(&keys, common::KEYS_ORIGIN, "ed25519", &["--csk", "--nsec5"]);
    let signed = public.join("signed");
    common::sign(&dir.join("zone"), common::KEYS_ORIGIN, &keys, "nsec5", &signed);
    let unnamed = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\n";
    let path = configure(dir, unnamed);
    let ended = check(&path, "--check=zones").expect_done("a zone with NSEC5");
    let line = line_with(&ended.stdout, "zone keys.example.: serial 1, ");
    assert!(line.contains(" NSEC5"), "{}", ended.stdout);
    assert!(!ended.stderr.contains(".private"), "{}", ended.stderr);
    // The VRF key makes it possible to enumerate the zone.
    let vrf = private_file(&public.join("nsec5"));
    fs::set_permissions(&vrf, fs::Permissions::from_mode(0o644)).expect("open");
    let named = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\nnsec5-keys = \"public/nsec5\"\n";
    let vrf_name = vrf.file_name().and_then(|name| name.to_str()).expect("a name");
    let place = format!("{}: ", text(&vrf));
    for (zone, scope, line, key) in [
        (unnamed, "--check=zones", 7, "file"),
        (named, "--check", 8, "nsec5-keys"),
        (named, "--check=zones", 8, "nsec5-keys"),
    ] {
        let path = configure(dir, zone);
        let told = check_json(&path, scope, 0);
        let warning = &told["warnings"][0];
        let message = warning["message"].as_str().expect("a message");
        assert!(message.starts_with(&place), "{told}");
        let stable = message.replace(vrf_name, "VRF-KEY");
        snapshot::check("serve", "check: VRF key that every user may read", &stable);
        assert_eq!(warning["line"], line, "{told}");
        assert_eq!(warning["key"], format!("zone.\"keys.example.\".{key}"), "{told}");
        let ended = check(&path, scope).expect_done("a zone with NSEC5");
        assert_eq!(ended.stderr.matches(message).count(), 1, "{scope}: {}", ended.text());
    }
    let server = Configured::start(&configure(dir, named));
    let warnings = server.events("private-key-readable", &[]);
    let warning = warnings.iter().find(|line| line.contains(&place)).expect("a warning about the VRF key");
    snapshot::check("serve", "VRF key that every user may read", &warning.replace(vrf_name, "VRF-KEY"));
    server.stop();
    let zone = "[zone.\"keys.example.\"]\nfile = \"public/signed\"\nnsec5-keys = \"keys\"\n";
    let ended = check(&configure(dir, zone), "--check");
    let expected = "zone.\"keys.example.\".nsec5-keys: ";
    assert!(ended.status == 1 && ended.stdout.contains(expected), "{}", ended.text());
    assert!(ended.stdout.contains(&format!("/{base}.private: ")), "{}", ended.text());
    let output = ended.stdout.replace(&base, "KEY");
    snapshot::check("serve", "check: signing key in the directory of the VRF key", &output);
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
    assert!(ended.status == 1 && ended.stdout.contains("/notes.txt: "), "{}", ended.text());
    snapshot::check("serve", "check: signing key next to the zone file", &ended.stdout);
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
    let place = "c.toml:5:18: control-socket: /run/nonesuch-of-no-unit/control: ";
    let warnings = events(&ended.stderr, "configuration-warning", &[]).join("\n");
    assert!(warnings.contains(place) && warnings.contains("c.toml:7:8: dnstap.file: "), "{}", ended.stderr);
    snapshot::check("serve", "check: missing directory below /run", &warnings);
    let ended = run(&mut nonesuch(["serve", "--config", text(&path)]));
    assert!(ended.status == 2 && ended.stderr.contains(place), "{}", ended.text());
    snapshot::check("serve", "missing directory below /run", ended.error());
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
    fs::create_dir(state.join("zones")).expect("a directory");
    for file in [state.join("lock"), tap.clone()] {
        fs::write(file, "").expect("written");
    }
    [&state, &tap].into_iter().for_each(|path| give_to_nobody(path));
    let found = |inner: &str, effect: &str, status: i32| {
        let ended = check(&path, "--check");
        assert_eq!(ended.status, status, "{}", ended.text());
        let line = line_with(&ended.stdout, "c.toml:4:13: state-dir: ");
        assert!(
            line.contains(&format!("state/{inner}: ")) && line.contains("chown -R nobody "),
            "{}",
            ended.text()
        );
        snapshot::check("serve", &format!("check: state/{inner} of another user"), line);
        let told = check_json(&path, "--check", status);
        let mut faults = told["faults"].as_array().expect("a list").iter();
        let fault = faults.find(|fault| fault["key"] == "state-dir").expect("a fault of state-dir");
        assert_eq!(fault["effect"], effect, "{told}");
    };
    found("lock", "start", 2);
    let ended = run(&mut nonesuch(["serve", "--config", text(&path)]));
    assert!(ended.status == 3 && ended.stderr.contains("state-dir"), "{}", ended.text());
    give_to_nobody(&state.join("lock"));
    fs::write(&tap, "").expect("without the frames of that start");
    found("zones", "zones", 1);
    assert_eq!(check_json(&path, "--check", 1)["faults"][0]["effect"], "zones");
    let server = Configured::start(&path);
    let line = server.wait_for_event("zone-not-stored", &["zone=example.", "serial=1"]);
    assert!(line.contains("/state/zones/"), "{line}");
    server.stop();
    give_to_nobody(&state.join("zones"));
    fs::write(&tap, "").expect("without the frames of that start");
    let kept = state.join("zones/example.kept");
    fs::write(&kept, "").expect("written");
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o640)).expect("closed");
    let ended = check(&path, "--check");
    assert_eq!(ended.status, 1, "{}", ended.text());
    let line = line_with(&ended.stdout, "state/zones/example.kept: ");
    assert!(line.contains("chown -R nobody "), "{}", ended.text());
    snapshot::check("serve", "check: stored version of another user", line);
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
    for (case, text, expected) in [
        ("control socket in a directory of another user", head, "c.toml:5:18: control-socket: "),
        (
            "control group without this user",
            format!("{other}control-group = \"root\"\n"),
            "c.toml:6:17: control-group: \"root\": ",
        ),
    ] {
        write_beside(&path, &format!("{text}{zone}"));
        let ended = as_nobody(&["--check"]);
        assert!(ended.status == 2 && ended.stdout.contains(expected), "{expected}: {}", ended.text());
        snapshot::check("serve", &format!("check: {case}"), &ended.stdout);
        let ended = as_nobody(&[]);
        assert!(ended.status == 2 && ended.stderr.contains(expected), "{expected}: {}", ended.text());
        snapshot::check("serve", case, ended.error());
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
    snapshot::check("serve", "check: authorities that the user may not read", &ended.stdout);
    assert_eq!(effects(&check_json(&path, "--check", 1)), ["transfers"]);
    let server = Configured::start(&path);
    let warnings = server.events("configuration-warning", &[]);
    let warning = warnings.iter().find(|line| line.contains(expected)).expect("a warning about the file");
    snapshot::check("serve", "authorities that the user may not read", warning);
    server.ctl(&["reload"]).expect_done("reload");
}
