//! Zones with NSEC5: the directory of the VRF key and the proofs, rejected inputs, and other
//! programs that load the zones.

use crate::common;
use common::{
    Ended, KEYS_ORIGIN, done, events, generate_key, is_installed, listing, made, nonesuch, prepared, run,
    text,
};
use common::{replace_word, snapshot};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const VRFS: [(&str, &str); 4] = [("p256", "001"), ("ed25519-tai", "002"), ("ed25519", "003"), ("rsa", "128")];
const BOTH: [&str; 2] = ["nsec5", "nsec5-opt-out"];

/// A directory with a zone, and signing keys with alias algorithm numbers in `keys`.
fn with_keys() -> tempfile::TempDir {
    let folder = prepared();
    let keys = made(folder.path(), "keys");
    generate_key(&keys, KEYS_ORIGIN, "ed25519", &["--nsec5", "--csk"]);
    folder
}

fn sign(folder: &Path, mechanism: &str, more: &[&str]) -> Ended {
    let arguments = ["zone", "sign", "zone", "-o", KEYS_ORIGIN, "--keys", "keys", "-f", "signed", "--json"];
    run(nonesuch(arguments).args(["--denial", mechanism]).args(more).current_dir(folder))
}

/// The JSON report of signing with NSEC5.
#[track_caller]
fn signed(folder: &Path, mechanism: &str, more: &[&str]) -> serde_json::Value {
    let ended = sign(folder, mechanism, more).expect_done("zone sign");
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    report["nsec5"].clone()
}

fn verify(folder: &Path, more: &[&str]) -> Ended {
    run(nonesuch(["zone", "verify", "signed"]).args(more).current_dir(folder))
}

/// Expects status 2 and one line on standard error. Returns the line.
#[track_caller]
fn refused(ended: &Ended) -> &str {
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{}", ended.text());
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    &ended.stderr
}

/// The VRF key of a directory.
fn vrf_key(folder: &Path) -> String {
    let keys = listing(folder).into_iter().filter(|name| name.starts_with('N'));
    let keys: Vec<String> = keys.collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys[0].clone()
}

#[test]
fn every_vrf_signs_and_verifies() {
    for (vrf, number) in VRFS {
        let folder = with_keys();
        for mechanism in BOTH {
            let told = signed(folder.path(), mechanism, &["--vrf", vrf]);
            assert!(told["proofs_made"].as_u64() > Some(0) || mechanism == "nsec5-opt-out", "{told}");
            let secrets = folder.path().join("nsec5");
            let key = vrf_key(&secrets);
            let tag = told["key_tag"].as_u64().expect("a tag");
            assert_eq!(key, format!("Nkeys.example.+{number}+{tag:05}.private"));
            for file in [&*key, "keys.example.proofs"] {
                let mode = fs::metadata(secrets.join(file)).expect("a file").permissions().mode();
                assert_eq!(mode & 0o777, 0o600, "{file}");
            }
            let verified = verify(folder.path(), &["--json"]).expect_done("zone verify");
            let report: serde_json::Value = serde_json::from_str(&verified.stdout).expect("JSON");
            assert_eq!(
                (&report["denial"], report["warnings"].as_array().map(Vec::len)),
                (&mechanism.into(), Some(0))
            );
        }
        // With only the key, and without both.
        fs::remove_file(folder.path().join("nsec5/keys.example.proofs")).expect("removed");
        assert!(!verify(folder.path(), &[]).expect_done("zone verify").stdout.contains("warning"));
        fs::rename(folder.path().join("nsec5"), folder.path().join("elsewhere")).expect("renamed");
        let verified = verify(folder.path(), &[]).expect_done("zone verify").stdout;
        let warning = verified.lines().find(|line| line.starts_with("warning: ")).expect("a warning");
        snapshot::check("zone verify", "zone with NSEC5 without proofs and VRF key", warning);
        verify(folder.path(), &["--nsec5-keys", "elsewhere"]).expect_done("zone verify");
    }
}

#[test]
fn the_key_and_its_proofs_serve_again() {
    let folder = with_keys();
    let first = signed(folder.path(), "nsec5", &["--nsec5-keys", "secrets"]);
    let (made, before) =
        (first["proofs_made"].as_u64().expect("a number"), listing(&folder.path().join("secrets")));
    let zone = fs::read_to_string(folder.path().join("zone")).expect("read");
    fs::write(folder.path().join("zone"), zone + "new A 192.0.2.7\n").expect("written");
    let second = signed(folder.path(), "nsec5", &["--nsec5-keys", "secrets"]);
    assert_eq!((second["proofs_made"].as_u64(), second["proofs_kept"].as_u64()), (Some(1), Some(made)));
    assert_eq!(listing(&folder.path().join("secrets")), before);
    verify(folder.path(), &["--nsec5-keys", "secrets"]).expect_done("zone verify");
    // Damaged proofs are generated again, with a message.
    let path = folder.path().join("secrets/keys.example.proofs");
    let mut octets = fs::read(&path).expect("read");
    octets[100] ^= 1;
    fs::write(&path, &octets).expect("written");
    let damaged = verify(folder.path(), &["--nsec5-keys", "secrets"]);
    snapshot::check("zone verify", "file of proofs with an inverted bit", refused(&damaged));
    let ended = sign(folder.path(), "nsec5", &["--nsec5-keys", "secrets"]).expect_done("zone sign");
    let lines = events(&ended.stderr, "proofs-not-used", &[]);
    assert_eq!(lines.len(), 1, "{}", ended.stderr);
    snapshot::check("zone sign", "file of proofs with an inverted bit", lines[0]);
    verify(folder.path(), &["--nsec5-keys", "secrets"]).expect_done("zone verify");
}

#[test]
fn stale_proofs_are_faults() {
    let folder = with_keys();
    signed(folder.path(), "nsec5", &[]);
    let path = folder.path().join("nsec5/keys.example.proofs");
    let old = fs::read(&path).expect("read");
    let zone = fs::read_to_string(folder.path().join("zone")).expect("read");
    fs::write(folder.path().join("zone"), zone + "new A 192.0.2.7\n").expect("written");
    signed(folder.path(), "nsec5", &[]);
    fs::write(&path, old).expect("written");
    let ended = verify(folder.path(), &[]);
    assert_eq!(ended.status, 1);
    let start = "fault: new.keys.example. NSEC5PROOF: ";
    let fault = ended.stdout.lines().find(|line| line.starts_with(start)).expect("a fault");
    snapshot::check("zone verify", "name without a stored proof", fault);
}

#[test]
fn plain_keys_are_refused_before_anything_is_made() {
    let folder = prepared();
    let base = generate_key(&made(folder.path(), "keys"), KEYS_ORIGIN, "ed25519", &["--csk"]);
    let ended = sign(folder.path(), "nsec5", &[]);
    let error = refused(&ended);
    assert!(error.contains("nonesuch key generate keys.example. --nsec5"), "{error}");
    let tag: u16 = base.rsplit('+').next().and_then(|tag| tag.parse().ok()).expect("a key tag");
    let error = replace_word(error, &tag.to_string(), "TAG");
    snapshot::check("zone sign", "NSEC5 with a key without an alias algorithm number", &error);
    assert_eq!(listing(folder.path()), ["keys", "zone"]);
}

#[test]
fn folders_that_are_not_fit_are_refused() {
    let folder = with_keys();
    let check = |case: &str, ended: &Ended, file: &str| {
        snapshot::check("zone sign", case, &refused(ended).replace(file, "KEY.private"));
    };
    let own = listing(&folder.path().join("keys")).into_iter().find(|name| name.ends_with(".private"));
    let ended = sign(folder.path(), "nsec5", &["--nsec5-keys", "keys"]);
    check("signing key in the directory of --nsec5-keys", &ended, &own.expect("a signing key"));
    let unknown = sign(folder.path(), "nsec5", &["--vrf", "ed448"]);
    assert!(unknown.status == 2 && unknown.stderr.contains("--vrf"), "{}", unknown.stderr);
    snapshot::check("zone sign", "--vrf ed448", &unknown.stderr);
    signed(folder.path(), "nsec5", &[]);
    let first = vrf_key(&folder.path().join("nsec5"));
    let ended = sign(folder.path(), "nsec5", &["--vrf", "ed25519"]);
    check("VRF key with another algorithm than --vrf", &ended, &first);
    // Two keys, neither of them published: the choice is ambiguous.
    signed(folder.path(), "nsec5", &["--nsec5-keys", "second"]);
    let second = vrf_key(&folder.path().join("second"));
    fs::copy(folder.path().join("second").join(&second), folder.path().join("nsec5").join(&second))
        .expect("copied");
    let ended = sign(folder.path(), "nsec5", &[]);
    snapshot::check("zone sign", "two VRF keys", refused(&ended));
    // The zone that is signed again selects the key, because it contains the key of `second`.
    fs::rename(folder.path().join("signed"), folder.path().join("zone")).expect("renamed");
    let told = signed(folder.path(), "nsec5", &[]);
    assert!(second.ends_with(&format!("+{:05}.private", told["key_tag"].as_u64().expect("a tag"))), "{told}");
    // The name of the file differs from that of the key.
    fs::rename(
        folder.path().join("second").join(&second),
        folder.path().join("second/Nkeys.example.+001+00000.private"),
    )
    .expect("renamed");
    let ended = sign(folder.path(), "nsec5", &["--nsec5-keys", "second"]);
    check("VRF key file with the name of another key", &ended, &second);
    fs::write(folder.path().join("second/Nkeys.example.+001+00000.private"), "nothing").expect("written");
    let ended = sign(folder.path(), "nsec5", &["--nsec5-keys", "second"]);
    snapshot::check("zone sign", "VRF key file with other text", refused(&ended));
    let ended = verify(folder.path(), &["--nsec5-keys", "keys"]);
    snapshot::check("zone verify", "--nsec5-keys with the directory of signing keys", refused(&ended));
}

/// A key for the next step of a rollover is kept on request.
#[test]
fn another_key_of_the_zone_is_kept_when_asked() {
    let folder = with_keys();
    signed(folder.path(), "nsec5", &["--nsec5-keys", "next"]);
    let zone = fs::read_to_string(folder.path().join("signed")).expect("read");
    let key = zone.lines().find(|line| line.contains("\tTYPE65281\t")).expect("a key");
    let unsigned = fs::read_to_string(folder.path().join("zone")).expect("read");
    fs::write(folder.path().join("zone"), format!("{unsigned}{key}\n")).expect("written");
    let count = |more: &[&str]| {
        signed(folder.path(), "nsec5", more);
        verify(folder.path(), &[]).expect_done("zone verify");
        let zone = fs::read_to_string(folder.path().join("signed")).expect("read");
        zone.lines().filter(|line| line.contains("\tTYPE65281\t")).count()
    };
    assert_eq!(count(&[]), 1);
    assert_eq!(count(&["--keep-nsec5key"]), 2);
}

/// Other programs read the output as a zone with unknown algorithms and types.
#[test]
fn other_programs_load_the_output() {
    let judges: [(&str, &[&str]); 4] = [
        ("named-checkzone", &["-q", KEYS_ORIGIN]),
        ("nsd-checkzone", &[KEYS_ORIGIN]),
        ("ldns-read-zone", &[]),
        ("kzonecheck", &["-o", KEYS_ORIGIN, "-d", "off"]),
    ];
    for (vrf, _) in VRFS {
        let folder = with_keys();
        for mechanism in BOTH {
            signed(folder.path(), mechanism, &["--vrf", vrf, "--cds"]);
            let file = folder.path().join("signed");
            for (program, arguments) in judges.iter().filter(|(program, _)| is_installed(program)) {
                let ended = run(Command::new(program).args(*arguments).arg(&file));
                ended.expect_done(&format!("{program}, {vrf}, {mechanism}"));
            }
        }
    }
}

/// The example of the generator, with enough names for several batches of proofs.
#[test]
fn a_generated_zone_is_sound() {
    let folder = with_keys();
    let zone = folder.path().join("zone");
    done(["zone", "generate", "--names", "2000", "-o", KEYS_ORIGIN, "-f", text(&zone)]);
    for mechanism in BOTH {
        signed(folder.path(), mechanism, &["--vrf", "p256"]);
        verify(folder.path(), &[]).expect_done(mechanism);
    }
}

#[test]
fn stat_and_diff_tell_the_chain() {
    let folder = with_keys();
    let json = |arguments: &[&str]| -> serde_json::Value {
        let ended = run(nonesuch(arguments).args(["--json"]).current_dir(folder.path()));
        assert!(ended.status < 2, "{}", ended.text());
        serde_json::from_str(&ended.stdout).expect("JSON")
    };
    for mechanism in BOTH {
        let told = signed(folder.path(), mechanism, &["--nsec5-keys", "first", "--vrf", "p256"]);
        fs::rename(folder.path().join("signed"), folder.path().join("before")).expect("renamed");
        let denial = &json(&["zone", "stat", "before"])["denial"];
        assert_eq!((&denial["mechanism"], &denial["key_tag"]), (&mechanism.into(), &told["key_tag"]));
        // The proofs of both mechanisms share a directory, and stored proofs are reused.
        let proofs = told["proofs_made"].as_u64().unwrap_or(0) + told["proofs_kept"].as_u64().unwrap_or(0);
        assert_eq!(
            (denial["records"].as_u64(), denial["wildcard_records"].as_u64()),
            (Some(proofs), Some(1))
        );
        let key = &denial["nsec5_keys"][0];
        assert_eq!((&key["algorithm"], key["records"].as_u64()), (&1.into(), Some(proofs)));
        let table =
            run(nonesuch(["zone", "stat", "before"]).current_dir(folder.path())).expect_done("zone stat");
        let title = if mechanism == "nsec5" { "NSEC5, key " } else { "NSEC5 opt-out, key " };
        assert!(table.stdout.contains(title) && table.stdout.contains("NSEC5 keys"), "{}", table.stdout);

        let next = signed(folder.path(), mechanism, &["--nsec5-keys", "second", "--vrf", "ed25519"]);
        let difference = json(&["zone", "diff", "before", "signed"]);
        assert_eq!(difference["data"]["names"], 0, "{difference}");
        let dnssec = &difference["dnssec"];
        assert_eq!(
            (dnssec["chain"]["removed"].as_u64(), dnssec["chain"]["added"].as_u64()),
            (Some(proofs), Some(proofs))
        );
        let tags = [&dnssec["denial"][0]["key_tag"], &dnssec["denial"][1]["key_tag"]];
        assert_eq!(tags, [&told["key_tag"], &next["key_tag"]]);
        assert_eq!(dnssec["apex_types"], serde_json::json!(["NSEC5KEY"]));
        let only = run(
            nonesuch(["zone", "diff", "before", "signed", "--dnssec", "only"]).current_dir(folder.path())
        );
        assert!(only.stdout.contains("\tNSEC5\t"), "{}", only.stdout);
    }
}

#[test]
fn what_verifying_refuses_is_warned_of() {
    let folder = with_keys();
    let zone = fs::read_to_string(folder.path().join("zone")).expect("read");
    let ds = "00".repeat(32);
    fs::write(folder.path().join("zone"), format!("{zone}@ DS 1 13 2 {ds}\n")).expect("written");
    for mechanism in ["nsec", "nsec3", "nsec5"] {
        let ended = sign(folder.path(), mechanism, &[]).expect_done("zone sign");
        let lines = events(&ended.stderr, "sign-warning", &[]);
        let line = lines.iter().find(|line| line.contains(" keys.example. DS: ")).expect("a warning");
        snapshot::check("zone sign", "DS record at the apex keys.example.", line);
        assert_eq!(verify(folder.path(), &[]).status, 1);
    }
}

/// The proofs are written after the zone, so the command first checks that they can be written.
#[test]
fn a_folder_of_proofs_that_cannot_be_written_is_told_before_the_zone_is_written() {
    let folder = with_keys();
    let dir = folder.path();
    signed(dir, "nsec5", &[]);
    let before = fs::read(dir.join("signed")).expect("a zone");
    let proofs = dir.join("nsec5/keys.example.proofs");
    fs::set_permissions(&proofs, fs::Permissions::from_mode(0o400)).expect("set");
    for (case, more) in [
        ("file of proofs that cannot be written", &[][..]),
        ("file of proofs that cannot be written, --previous", &["--previous", "signed"]),
        (
            "file of proofs that cannot be written, --previous --compiled",
            &["--previous", "signed", "--compiled"],
        ),
    ] {
        let ended = sign(dir, "nsec5", more);
        assert!(ended.stderr.contains("keys.example.proofs: "), "{}", ended.stderr);
        snapshot::check("zone sign", case, refused(&ended));
        assert!(fs::read(dir.join("signed")).expect("a zone") == before);
    }
    fs::set_permissions(&proofs, fs::Permissions::from_mode(0o600)).expect("set");
    signed(dir, "nsec5", &[]);
    assert_eq!(listing(&dir.join("nsec5")).len(), 2);
}

#[test]
fn a_wrong_folder_of_proofs_is_told_with_the_remedy() {
    let folder = with_keys();
    let dir = folder.path();
    signed(dir, "nsec5", &[]);
    made(dir, "other");
    for (wrong, kind) in
        [("none", "missing directory"), ("zone", "file"), ("other", "directory without proofs and keys")]
    {
        let ended = verify(dir, &["--nsec5-keys", wrong]);
        assert!(ended.stderr.contains(&format!("{wrong}: ")), "{}", ended.stderr);
        snapshot::check("zone verify", &format!("{kind} as --nsec5-keys"), refused(&ended));
    }
    let ended = sign(dir, "nsec5", &["--nsec5-keys", "zone"]);
    assert!(ended.stderr.contains("zone: "), "{}", ended.stderr);
    snapshot::check("zone sign", "file as --nsec5-keys", refused(&ended));
}
