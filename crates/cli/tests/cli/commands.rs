//! Commands of the program: exit status, messages and remaining files.

use crate::common;
use common::{Ended, done, events, folder, generate_key, listing, nonesuch, run, serve, snapshot, text};
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

const SOUND: &str = "$ORIGIN e.\n$TTL 60\n@ SOA ns1 h 1 7200 3600 1209600 60\n@ NS ns1\nns1 A 192.0.2.1\n";

/// Runs a command in `folder`. Expects status 2, one line on standard error that contains `part`,
/// and the same files as before.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], part: &str) -> Ended {
    let before = listing(folder);
    let ended = run(nonesuch(arguments).current_dir(folder));
    assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.text());
    assert_eq!(ended.stdout, "", "{arguments:?}");
    assert!(ended.stderr.contains(part), "{arguments:?}: wanted {part:?}, got {}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {}", ended.stderr);
    assert_eq!(listing(folder), before, "{arguments:?}");
    ended
}

/// Like [`refused`], for a subcommand, and compares the line with the section `case` of its
/// snapshot.
#[track_caller]
fn refused_as(case: &str, folder: &Path, arguments: &[&str], part: &str) {
    let ended = refused(folder, arguments, part);
    snapshot::check(&arguments[..2].join(" "), case, &ended.stderr);
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
        ("x A 1.2.3\n", "bad:6:5: A: "),
        ("x A\n", "bad:6:3: A: "),
        ("x TXT \"abc\n", "bad:6:7: "),
        ("x TXT ( \"a\"\n", "bad:6:7: "),
        ("x NONSENSE 1\n", "bad:6:3: 'NONSENSE' "),
        ("@ SOA ns1 h 1 7200 3600 1209600 61\n", "bad:6:1: "),
        ("other. A 192.0.2.1\n", "bad:6:1: other. "),
        ("c CNAME ns1\nc A 192.0.2.1\n", "bad:7:1: c.e. "),
        ("x CNAME y\nx CNAME z\n", "bad:7:1: x.e. "),
        ("a..b A 192.0.2.1\n", "bad:6:1: "),
        ("x DS 1 13 2 zz\n", "bad:6:13: DS: "),
        ("$NONSENSE 1\n", "bad:6:1: "),
        ("$INCLUDE nofile\n", "nofile: "),
    ];
    for (lines, place) in cases {
        fs::write(folder.path().join("bad"), format!("{SOUND}{lines}")).expect("written");
        let message = refused(folder.path(), &["zone", "sign", "bad", "-o", "e."], place).stderr;
        let case = format!("malformed zone file: {}", lines.trim_end().replace('\n', " / "));
        snapshot::check("zone sign", &case, &message);
        for arguments in [
            &["zone", "verify", "bad", "-o", "e."][..],
            &["serve", "bad", "-o", "e.", "--listen", "127.0.0.1:0"],
        ] {
            assert_eq!(refused(folder.path(), arguments, place).stderr, message, "{arguments:?}");
        }
    }
}

#[test]
fn unreadable_empty_and_binary_files_are_refused() {
    let folder = prepared();
    refused_as("missing zone file none", folder.path(), &["zone", "verify", "none"], "none: ");
    refused_as("directory instead of a zone file", folder.path(), &["zone", "verify", "."], ".: ");
    refused_as("origin of another zone", folder.path(), &["zone", "sign", "zone", "-o", "f."], "zone:3:1: ");
    fs::write(folder.path().join("bad"), "").expect("written");
    refused_as("empty zone file", folder.path(), &["zone", "verify", "bad"], "bad:");
    fs::write(folder.path().join("bad"), [0, 1, 0xff, 0xfe]).expect("written");
    refused(folder.path(), &["zone", "verify", "bad"], "bad:1:1: ");
    refused(folder.path(), &["load", "--server", "127.0.0.1:1", "--queries", "none"], "none");
}

#[test]
fn bad_options_of_sign_are_refused() {
    let folder = prepared();
    let sign = |case: &str, more: &[&str], part: &str| {
        refused_as(case, folder.path(), &[&["zone", "sign", "zone"], more].concat(), part);
    };
    sign("too many NSEC3 iterations", &["--denial", "nsec3", "--nsec3-iterations", "501"], "501");
    sign("NSEC3 salt with other digits", &["--denial", "nsec3", "--nsec3-salt", "xyz"], "'xyz'");
    sign("long NSEC3 salt", &["--denial", "nsec3", "--nsec3-salt", &"00".repeat(256)], "256");
    sign(
        "expiration before the inception",
        &["--inception", "20300101000000", "--expiration", "20200101000000"],
        "error: ",
    );
    sign("inception after the default expiration", &["--inception", "20990101000000"], "error: ");
    sign("missing key directory none", &["--keys", "none"], "none: ");
    sign("output in the missing directory none", &["-f", "none/output"], "none/output: ");
}

#[test]
fn keys_that_are_missing_or_do_not_match_are_refused() {
    let folder = prepared();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).expect("a directory");
    let sign = ["zone", "sign", "zone", "--keys", "empty"];
    refused_as("key directory without keys of e.", folder.path(), &sign, "nonesuch key generate e.");
    // The private half of one key with the public half of another.
    let (first, second) =
        (generate_key(&empty, "e.", "ed25519", &[]), generate_key(&empty, "e.", "ed25519", &[]));
    fs::copy(empty.join(format!("{first}.private")), empty.join(format!("{second}.private")))
        .expect("copied");
    refused(folder.path(), &sign, &second);
    fs::remove_file(empty.join(format!("{second}.private"))).expect("removed");
    let ended = refused(folder.path(), &sign, &second);
    snapshot::check("zone sign", "ZSK without a private key file", &ended.stderr.replace(&second, "KEY"));
    let generate = ["key", "generate", "e.", "--dir", "zone/keys"];
    refused_as("key directory below a file", folder.path(), &generate, "zone/keys: ");
    let generate = ["key", "generate", "e.", "-a", "rsasha256", "--bits", "512"];
    refused_as("RSA key of 512 bits", folder.path(), &generate, "512");
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
        assert!(ended.stderr.contains(text(&private)), "{}", ended.stderr);
        let message = ended.stderr.replace(&base, "KEY");
        snapshot::check(&arguments[..2].join(" "), "output at the path of a private key", &message);
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
    let later = "2060-01-01T00:00:00Z";
    let verify = ["zone", "verify", "zone.signed", "--now", later];
    let ended = run(nonesuch(verify).current_dir(folder.path()));
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(ended.stdout.contains("fault: e. SOA: "), "{}", ended.stdout);
    let serve = ["serve", "zone.signed", "--listen", "127.0.0.1:0", "--now", later];
    let served = run(nonesuch(serve).current_dir(folder.path()));
    assert_eq!(served.status, 1, "{}", served.text());
    let message = served.error();
    snapshot::check("serve", "expired signatures in zone.signed", message);
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
    let commands: [&[&str]; 15] = [
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
        &["validate"],
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
    assert!(ended.stdout.contains("fault: e. DNSKEY: "), "{}", ended.text());
    snapshot::check("zone verify", "unsigned zone e.", &ended.text());
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
    let warnings = events(&warned.stderr, "zone-warning", &[]);
    assert_eq!(warnings.len(), 1, "{}", warned.stderr);
    snapshot::check("zone sign", "records with different TTLs", warnings[0]);
    let verify = |file: &str| run(&mut nonesuch(["zone", "verify", text(&path(file))]));
    assert_eq!(verify("signed").status, 0);
    let zone = fs::read_to_string(&signed).expect("a zone");
    let raised = zone.replacen("x.e.\t300\tIN\tA\t192.0.2.1", "x.e.\t600\tIN\tA\t192.0.2.1", 1);
    let is_server = |line: &&str| line.starts_with("e.\t") && line.split('\t').nth(3) == Some("NS");
    let without: String =
        zone.lines().filter(|line| !is_server(line)).map(|line| format!("{line}\n")).collect();
    for (case, file, zone_text, place) in [
        ("records with different TTLs", "raised", raised, "fault: x.e. A: "),
        ("apex without NS records", "without", without, "fault: e. NS: "),
    ] {
        assert_ne!(zone_text, zone, "{file}");
        fs::write(path(file), zone_text).expect("written");
        for command in ["verify", "compile"] {
            let ended = run(&mut nonesuch(["zone", command, text(&path(file))]));
            assert_eq!(ended.status, 1, "{file} {command}: {}", ended.text());
            let faults: Vec<&str> = ended.stdout.lines().filter(|line| line.starts_with(place)).collect();
            assert!(!faults.is_empty(), "{file} {command}: {}", ended.stdout);
            let faults = faults.join("\n");
            snapshot::check(&format!("zone {command}"), case, &faults);
        }
    }
}
