//! `nonesuch zone diff`.

use crate::common;
use common::*;
use std::fs;
use std::path::Path;

fn diff(old: &Path, new: &Path, more: &[&str]) -> Ended {
    let mut arguments = vec!["zone", "diff", text(old), text(new), "-o", KEYS_ORIGIN];
    arguments.extend(more);
    run(&mut nonesuch(arguments))
}

/// Signs at `now`, with signatures that are valid for a year.
fn sign_at(folder: &Path, zone: &str, signed: &str, now: &str, more: &[&str]) {
    let (zone, keys, signed) = (folder.join(zone), folder.join("keys"), folder.join(signed));
    let expiration = (now[..4].parse::<u32>().unwrap() + 1).to_string() + &now[4..];
    let arguments = [
        "zone",
        "sign",
        text(&zone),
        "-o",
        KEYS_ORIGIN,
        "--keys",
        text(&keys),
        "-f",
        text(&signed),
        "--now",
        now,
        "--inception",
        now,
        "--expiration",
        &expiration,
    ];
    done([&arguments[..], more].concat());
}

#[test]
fn data_are_listed_and_the_change_set_leads_from_one_to_the_other() {
    let folder = prepared();
    let (old, new) = (folder.path().join("zone"), folder.path().join("new"));
    let changed =
        KEYS_ZONE.replace("SOA ns h 1", "SOA ns h 2").replace("192.0.2.1", "192.0.2.9") + "new TXT \"a b\"\n";
    fs::write(&new, changed).unwrap();
    let changes = "- keys.example.\t60\tIN\tSOA\tns.keys.example. h.keys.example. 1 7200 3600 1209600 5\n\
        + keys.example.\t60\tIN\tSOA\tns.keys.example. h.keys.example. 2 7200 3600 1209600 5\n\
        + new.keys.example.\t60\tIN\tTXT\t\"a b\"\n\
        - ns.keys.example.\t60\tIN\tA\t192.0.2.1\n\
        + ns.keys.example.\t60\tIN\tA\t192.0.2.9\n";
    let said = diff(&old, &new, &[]);
    assert_eq!(said.status, 1, "{}", said.text());
    assert!(said.stdout.starts_with(changes), "{}", said.stdout);
    snapshot::check("zone diff", "changed data", &said.stdout);
    assert_eq!(diff(&old, &new, &["--changes"]).stdout, changes);
    let same = diff(&old, &old, &[]);
    assert_eq!(same.status, 0, "{}", same.text());
    snapshot::check("zone diff", "the same zone", &same.stdout);
    assert_eq!(diff(&old, &old, &["--changes"]).stdout, "");
    let json: serde_json::Value = serde_json::from_str(&diff(&old, &new, &["--json"]).stdout).unwrap();
    assert_eq!(json["changes"].as_array().map(Vec::len), Some(5));
    assert_eq!((json["same"].as_bool(), json["data"]["added"].as_u64()), (Some(false), Some(3)));
    assert_eq!(json["dnssec"]["serials"], serde_json::json!([1, 2]));
}

#[test]
fn a_zone_that_was_signed_again_is_summed_up() {
    let folder = prepared();
    let path = |name: &str| folder.path().join(name);
    generate_keys(&path("keys"), KEYS_ORIGIN, "ed25519");
    sign_at(folder.path(), "zone", "first", "20260101000000", &[]);
    sign_at(folder.path(), "zone", "second", "20260201000000", &[]);
    let said = diff(&path("first"), &path("second"), &[]);
    assert_eq!(said.status, 1);
    snapshot::check("zone diff", "zone that was signed again", &said.stdout);
    // Only the data are the same; each signature is listed on request.
    assert_eq!(diff(&path("first"), &path("second"), &["--dnssec", "data"]).status, 0);
    for option in [&["--all"][..], &["--dnssec", "all"], &["--dnssec", "only"]] {
        let said = diff(&path("first"), &path("second"), option).stdout;
        assert_eq!(said.lines().filter(|line| line.contains("\tRRSIG\t")).count(), 20, "{said}");
    }
    // A signed and an unsigned zone with the same data.
    assert_eq!(diff(&path("zone"), &path("first"), &["--changes"]).stdout, "");
    let said = diff(&path("zone"), &path("first"), &[]).stdout;
    assert!(said.contains("; key added: ") && said.contains("; denial: none -> NSEC\n"), "{said}");
    // The order of the keys depends on their tags.
    let without_keys =
        |text: &str| text.lines().filter(|line| !line.starts_with("; key ")).collect::<Vec<_>>().join("\n");
    snapshot::check("zone diff", "unsigned, then signed", &without_keys(&said));
    let back = diff(&path("first"), &path("zone"), &[]).stdout;
    snapshot::check("zone diff", "signed, then unsigned", &without_keys(&back));
}

#[test]
fn another_mechanism_and_another_key_are_said() {
    let folder = prepared();
    let path = |name: &str| folder.path().join(name);
    generate_keys(&path("keys"), KEYS_ORIGIN, "ed25519");
    let now = "20260101000000";
    sign_at(folder.path(), "zone", "first", now, &[]);
    sign_at(
        folder.path(),
        "zone",
        "hashed",
        now,
        &["--denial", "nsec3", "--nsec3-salt", "ab", "--nsec3-iterations", "3"],
    );
    let said = diff(&path("first"), &path("hashed"), &[]).stdout;
    assert!(said.contains("; denial: NSEC -> NSEC3, 3 iterations, salt AB\n"), "{said}");
    assert!(said.contains("; chain: "), "{said}");
    snapshot::check("zone diff", "NSEC, then NSEC3 with the same serial", &said);
    let json = diff(&path("first"), &path("hashed"), &["--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let listed = json["dnssec"]["unsafe_transition"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{json}");
    let fault = listed[0].as_str().unwrap();
    assert!(said.contains(&format!("; unsafe transition: {fault}\n")), "{said}\n{json}");
    let added = generate_key(&path("keys"), KEYS_ORIGIN, "ecdsap256sha256", &["--csk"]);
    sign_at(folder.path(), "zone", "rolled", now, &[]);
    let said = diff(&path("first"), &path("rolled"), &[]).stdout;
    let tag: u32 = added.rsplit('+').next().unwrap().parse().unwrap();
    assert!(said.contains(&format!("; key added: {tag} ECDSAP256SHA256 KSK 256 bits\n")), "{said}");
}

#[test]
fn letter_case_alone_is_said_to_be_that() {
    let folder = prepared();
    let new = folder.path().join("new");
    fs::write(&new, KEYS_ZONE.replace("NS ns.sub", "NS NS.sub")).unwrap();
    let zone = folder.path().join("zone");
    snapshot::check("zone diff", "records that differ only in letter case", &diff(&zone, &new, &[]).stdout);
    let json: serde_json::Value = serde_json::from_str(&diff(&zone, &new, &["--json"]).stdout).unwrap();
    let data = serde_json::json!({ "removed": 1, "added": 1, "names": 1, "letter_case_alone": 1 });
    assert_eq!(json["data"], data, "{json}");
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let folder = prepared();
    let (zone, other) = (folder.path().join("zone"), folder.path().join("other"));
    fs::write(&other, "other. 60 SOA ns h 1 2 3 4 5\nother. 60 NS ns.other.\n").unwrap();
    fs::write(folder.path().join("absolute"), format!("$ORIGIN {KEYS_ORIGIN}\n{KEYS_ZONE}")).unwrap();
    let ended = run(&mut nonesuch(["zone", "diff", text(&folder.path().join("absolute")), text(&other)]));
    assert_eq!(ended.status, 2);
    let missing = diff(&zone, &folder.path().join("missing"), &[]);
    assert!(missing.status == 2 && missing.stderr.contains("/missing: "), "{}", missing.stderr);
    snapshot::check("zone diff", "missing file", &missing.stderr);
    let both = diff(&zone, &zone, &["--changes", "--json"]);
    assert_eq!(both.status, 2);
}
