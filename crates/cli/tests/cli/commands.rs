//! Commands of the program: exit status, messages and remaining files.

use crate::common;
use common::{Ended, done, folder, generate_key, listing, nonesuch, run, serve, text};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

const SOUND: &str = "$ORIGIN e.\n$TTL 60\n@ SOA ns1 h 1 7200 3600 1209600 60\n@ NS ns1\nns1 A 192.0.2.1\n";

/// Runs a command in `folder`. Expects status 2, one line on standard error that contains `says`,
/// and the same files as before.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], says: &str) -> Ended {
    let before = listing(folder);
    let ended = run(nonesuch(arguments).current_dir(folder));
    assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.text());
    assert_eq!(ended.stdout, "", "{arguments:?}");
    assert!(ended.stderr.contains(says), "{arguments:?}: wanted {says:?}, got {}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {}", ended.stderr);
    assert_eq!(listing(folder), before, "{arguments:?}");
    ended
}

/// A directory with a valid zone and a key.
fn prepared() -> tempfile::TempDir {
    let folder = folder();
    fs::write(folder.path().join("zone"), SOUND).expect("written");
    generate_key(folder.path(), "e.", "ed25519", &["--csk"]);
    folder
}

#[test]
fn malformed_zone_files_are_named_by_line_and_column() {
    let folder = prepared();
    let cases = [
        ("x A 1.2.3\n", "bad:6:5: A: expected an IPv4 address"),
        ("x A\n", "bad:6:3: A: a field is missing"),
        ("x TXT \"abc\n", "bad:6:7: a double quote is not closed"),
        ("x TXT ( \"a\"\n", "bad:6:7: a parenthesis is not closed"),
        ("x NONSENSE 1\n", "bad:6:3: 'NONSENSE' is not a TTL, class or type"),
        ("@ SOA ns1 h 1 7200 3600 1209600 61\n", "bad:6:1: a second SOA record"),
        ("other. A 192.0.2.1\n", "bad:6:1: other. is not in the zone e."),
        ("c CNAME ns1\nc A 192.0.2.1\n", "bad:7:1: c.e. has a CNAME record and A too"),
        ("x CNAME y\nx CNAME z\n", "bad:7:1: x.e. has more than one CNAME record"),
        ("a..b A 192.0.2.1\n", "bad:6:1: bad owner name"),
        ("x DS 1 13 2 zz\n", "bad:6:13: DS: malformed hexadecimal digits"),
        ("$NONSENSE 1\n", "bad:6:1: unknown directive $NONSENSE"),
        ("$INCLUDE nofile\n", "nofile: cannot be read"),
    ];
    for (lines, says) in cases {
        fs::write(folder.path().join("bad"), format!("{SOUND}{lines}")).expect("written");
        refused(folder.path(), &["zone", "sign", "bad", "-o", "e."], says);
        refused(folder.path(), &["zone", "verify", "bad", "-o", "e."], says);
        refused(folder.path(), &["serve", "bad", "-o", "e.", "--listen", "127.0.0.1:0"], says);
    }
}

#[test]
fn unreadable_empty_and_binary_files_are_refused() {
    let folder = prepared();
    refused(folder.path(), &["zone", "verify", "none"], "none: cannot be read");
    refused(folder.path(), &["zone", "verify", "."], ".: cannot be read");
    refused(
        folder.path(),
        &["zone", "sign", "zone", "-o", "f."],
        "zone:3:1: the SOA record is at e., but the origin is f.",
    );
    fs::write(folder.path().join("bad"), "").expect("written");
    refused(folder.path(), &["zone", "verify", "bad"], "the file has no records");
    fs::write(folder.path().join("bad"), [0, 1, 0xff, 0xfe]).expect("written");
    refused(folder.path(), &["zone", "verify", "bad"], "bad:1:1: ");
    refused(folder.path(), &["load", "--server", "127.0.0.1:1", "--queries", "none"], "none");
}

#[test]
fn bad_options_of_sign_are_refused() {
    let folder = prepared();
    let sign = |more: &[&str], says: &str| {
        refused(folder.path(), &[&["zone", "sign", "zone"], more].concat(), says);
    };
    sign(&["--denial", "nsec3", "--nsec3-iterations", "501"], "at most 500");
    sign(&["--denial", "nsec3", "--nsec3-salt", "xyz"], "not hexadecimal digits");
    sign(&["--denial", "nsec3", "--nsec3-salt", &"00".repeat(256)], "at most 255");
    sign(&["--inception", "20300101000000", "--expiration", "20200101000000"], "never be valid");
    sign(&["--inception", "20990101000000"], "never be valid");
    sign(&["--keys", "none"], "none: cannot be read");
    sign(&["-f", "none/output"], "none/output: cannot be written");
}

#[test]
fn keys_that_are_missing_or_do_not_match_are_refused() {
    let folder = prepared();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    refused(folder.path(), &["zone", "sign", "zone", "--keys", "empty"], "nonesuch key generate e.");
    // The private half of one key with the public half of another.
    let (first, second) =
        (generate_key(&empty, "e.", "ed25519", &[]), generate_key(&empty, "e.", "ed25519", &[]));
    fs::copy(empty.join(format!("{first}.private")), empty.join(format!("{second}.private")))
        .expect("copied");
    refused(folder.path(), &["zone", "sign", "zone", "--keys", "empty"], &second);
    fs::remove_file(empty.join(format!("{second}.private"))).expect("removed");
    refused(folder.path(), &["zone", "sign", "zone", "--keys", "empty"], "no private key file");
    refused(folder.path(), &["key", "generate", "e.", "--dir", "zone/keys"], "cannot be written");
    refused(folder.path(), &["key", "generate", "e.", "-a", "rsasha256", "--bits", "512"], "not 512");
}

/// If signing fails, the previous signed zone stays unchanged, octet by octet.
#[test]
fn no_output_takes_the_place_of_a_private_key() {
    let folder = folder();
    let keys = folder.path().join("keys");
    let base = generate_key(&keys, "example.", "ed25519", &["--csk"]);
    let private = keys.join(format!("{base}.private"));
    let before = fs::read(&private).unwrap();
    let zone = folder.path().join("zone");
    done(["zone", "generate", "--names", "5", "-o", "example.", "-f", text(&zone)]);
    for arguments in [
        vec!["zone", "sign", text(&zone), "-o", "example.", "--keys", text(&keys), "-f", text(&private)],
        vec!["zone", "generate", "--names", "5", "-o", "example.", "-f", text(&private)],
    ] {
        let ended = run(&mut nonesuch(&arguments));
        assert_eq!(ended.status, 2, "{arguments:?}");
        assert!(ended.stderr.contains("is a private key; refusing to overwrite it"), "{}", ended.stderr);
        assert_eq!(fs::read(&private).unwrap(), before);
    }
}

#[test]
fn a_failed_signing_leaves_the_old_output() {
    let folder = prepared();
    fs::write(folder.path().join("output"), "what was there").expect("written");
    refused(
        folder.path(),
        &["zone", "sign", "zone", "-f", "output", "--nsec3-iterations", "501", "--denial", "nsec3"],
        "500",
    );
    fs::write(folder.path().join("bad"), format!("{SOUND}x A 1\n")).expect("written");
    refused(folder.path(), &["zone", "sign", "bad", "-f", "output"], "bad:6:5");
    assert_eq!(fs::read_to_string(folder.path().join("output")).expect("a file"), "what was there");
}

/// Output to a pipe is written to the pipe; a rename would replace the pipe with a file.
#[test]
fn a_pipe_is_written_to_and_stays() {
    let folder = prepared();
    let pipe = folder.path().join("pipe");
    run(Command::new("mkfifo").arg(&pipe)).expect_done("mkfifo");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).expect("the zone")
    });
    run(nonesuch(["zone", "sign", "zone", "-f", "pipe"]).current_dir(folder.path())).expect_done("zone sign");
    assert!(fs::metadata(&pipe).expect("a pipe").file_type().is_fifo());
    assert!(reader.join().expect("read").contains("RRSIG"));
}

#[test]
fn private_files_are_for_their_owner_alone() {
    let folder = folder();
    for algorithm in common::all_algorithms() {
        let base = generate_key(folder.path(), "e.", algorithm, &[]);
        let mode = |suffix: &str| {
            let path = folder.path().join(format!("{base}.{suffix}"));
            fs::metadata(path).expect("a key file").permissions().mode() & 0o777
        };
        assert_eq!((mode("private"), mode("key")), (0o600, 0o644), "{algorithm}");
    }
}

#[test]
fn json_parses() {
    let folder = prepared();
    let json = |arguments: &[&str], key: &str| {
        let ended = run(nonesuch(arguments).current_dir(folder.path())).expect_done("a command with --json");
        let value: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
        assert!(!value[key].is_null(), "{arguments:?}: {value}");
    };
    json(&["key", "generate", "other.", "--json"], "base_name");
    json(&["zone", "sign", "zone", "--json"], "signatures");
    json(&["zone", "verify", "zone.signed", "--json"], "signatures_verified");
}

/// With expired signatures, the verifier's answer is negative, and the server does not start.
#[test]
fn an_expired_zone_is_no_and_is_not_served() {
    let folder = prepared();
    run(nonesuch(["zone", "sign", "zone"]).current_dir(folder.path())).expect_done("zone sign");
    let ended = run(nonesuch(["zone", "verify", "zone.signed", "--now", "2100-01-01T00:00:00Z"])
        .current_dir(folder.path()));
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(ended.stdout.contains("fault: e. SOA: "), "{}", ended.stdout);
    let serve = ["serve", "zone.signed", "--listen", "127.0.0.1:0", "--now", "2100-01-01T00:00:00Z"];
    let served = run(nonesuch(serve).current_dir(folder.path()));
    assert!(served.status == 1 && served.stderr.contains("verification found "), "{}", served.text());
}

#[test]
fn an_address_in_use_is_named() {
    let folder = prepared();
    let server = serve(&folder.path().join("zone"), &[]);
    let address = server.address.to_string();
    let ended = run(nonesuch(["serve", "zone", "--listen", &address]).current_dir(folder.path()));
    assert!(ended.status == 3 && ended.stderr.contains(&address), "{}", ended.text());
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
}

#[test]
fn each_command_has_help() {
    let commands: [&[&str]; 14] = [
        &[],
        &["compare"],
        &["zone"],
        &["zone", "sign"],
        &["zone", "verify"],
        &["zone", "generate"],
        &["key"],
        &["key", "generate"],
        &["key", "list"],
        &["key", "ds"],
        &["key", "import"],
        &["serve"],
        &["load"],
        &["manual"],
    ];
    for command in commands {
        assert!(done([command, &["--help"]].concat()).stdout.contains("Usage: nonesuch"), "{command:?}");
    }
    let ended = run(&mut nonesuch(["nonsense"]));
    assert_eq!(ended.status, 2, "{}", ended.text());
}

/// Regression: an unsigned zone was reported as verified.
#[test]
fn an_unsigned_zone_is_not_verified() {
    let folder = prepared();
    let ended = run(nonesuch(["zone", "verify", "zone"]).current_dir(folder.path()));
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(
        ended.stdout.contains("fault: e. DNSKEY: there is no DNSKEY record at the apex"),
        "{}",
        ended.text()
    );
}

#[test]
fn zone_generate_tells_what_it_made() {
    let folder = folder();
    let arguments = [
        "zone",
        "generate",
        "--names",
        "20",
        "-f",
        "zone",
        "--queries",
        "queries",
        "--query-count",
        "50",
        "--json",
    ];
    let ended = run(nonesuch(arguments).current_dir(folder.path()));
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(report["zone"]["delegations"], 20, "{}", ended.text());
    assert_eq!(report["queries"]["existing"], 50, "{}", ended.text());
    assert_eq!(listing(folder.path()), ["queries", "zone"]);
}

/// RFC 2181 §5.2 and §6.1. The signer gives all records the lowest TTL and reports it.
#[test]
fn different_ttls_and_an_apex_without_name_servers_are_faults() {
    let folder = prepared();
    let keys = folder.path().join("keys");
    generate_key(&keys, "e.", "ed25519", &["--csk"]);
    let path = |name: &str| folder.path().join(name);
    fs::write(path("mixed"), format!("{SOUND}x 600 A 192.0.2.1\nx 300 A 192.0.2.2\n")).expect("written");
    let (mixed, signed) = (path("mixed"), path("signed"));
    let sign = ["zone", "sign", text(&mixed), "-o", "e.", "--keys", text(&keys), "-f", text(&signed)];
    let warned = run(&mut nonesuch(sign)).expect_done("signed");
    assert!(warned.stderr.contains("the A records of x.e. have different TTLs"), "{}", warned.stderr);
    let verify = |file: &str| run(&mut nonesuch(["zone", "verify", text(&path(file))]));
    assert_eq!(verify("signed").status, 0);
    let zone = fs::read_to_string(&signed).expect("a zone");
    let raised = zone.replacen("x.e.\t300\tIN\tA\t192.0.2.1", "x.e.\t600\tIN\tA\t192.0.2.1", 1);
    let is_server = |line: &&str| line.starts_with("e.\t") && line.split('\t').nth(3) == Some("NS");
    let without: String =
        zone.lines().filter(|line| !is_server(line)).map(|line| format!("{line}\n")).collect();
    for (file, zone_text, fault) in [
        ("raised", raised, "fault: x.e. A: the records have different TTLs"),
        ("without", without, "fault: e. NS: there is no NS record at the apex"),
    ] {
        assert_ne!(zone_text, zone, "{file}");
        fs::write(path(file), zone_text).expect("written");
        for command in ["verify", "compile"] {
            let ended = run(&mut nonesuch(["zone", command, text(&path(file))]));
            assert_eq!(ended.status, 1, "{file} {command}: {}", ended.text());
            assert!(ended.stdout.contains(fault), "{file} {command}: {}", ended.stdout);
        }
    }
}
