//! `nonesuch zone stat`.

use crate::common;
use common::*;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn json(file: &Path, more: &[&str]) -> Value {
    let arguments = [&["zone", "stat", text(file), "--json"][..], more].concat();
    serde_json::from_str(&done(arguments).stdout).expect("JSON")
}

#[test]
fn an_unsigned_zone_is_counted() {
    let folder = folder();
    let zone = folder.path().join("zone");
    let text_of_zone = "$TTL 60\n$ORIGIN x.\n@ SOA ns h 7 2 3 4 5\n@ NS ns\nns A 192.0.2.1\na.b.c TXT x\nd.b.c TXT x\n*.w A 192.0.2.2\n\
        d1 NS ns\nd2 NS NS\nd2 DS 1 13 2 00\nd3 NS ns.d3\nns.d3 A 192.0.2.3\nns.d3 AAAA 2001:db8::1\nold.d3 TXT x\nd4 NS d4\nd4 A 192.0.2.4\n\
        alias DNAME ns\nbelow.alias 90 TXT x\n";
    fs::write(&zone, text_of_zone).unwrap();
    let found = json(&zone, &[]);
    let numbers = |section: &str, fields: &[&str]| -> Vec<u64> {
        fields.iter().map(|field| found[section][field].as_u64().unwrap_or(u64::MAX)).collect()
    };
    let names = ["owners", "authoritative", "glue", "occluded", "hashed", "empty_non_terminals", "wildcards"];
    assert_eq!(numbers("names", &names), [13, 6, 1, 2, 0, 3, 1]);
    let cuts = ["all", "signed", "with_glue", "glue_records", "ns_records", "ns_sets", "most_shared_ns_set"];
    assert_eq!(numbers("delegations", &cuts), [4, 1, 2, 3, 4, 3, 2]);
    assert_eq!(
        found["delegations"]["ds"],
        serde_json::json!([{ "algorithm": 13, "digest": 2, "records": 1 }])
    );
    assert_eq!(
        (found["serial"].as_u64(), found["records"].as_u64(), found["rrsets"].as_u64()),
        (Some(7), Some(17), Some(17))
    );
    let soa = &found["types"]["SOA"];
    assert_eq!((soa["records"].as_u64(), soa["octets"].as_u64()), (Some(1), Some(3 + 10 + 6 + 5 + 20)));
    assert_eq!(
        (found["types"]["TXT"]["least_ttl"].as_u64(), found["types"]["TXT"]["greatest_ttl"].as_u64()),
        (Some(60), Some(90))
    );
    assert!(found["denial"].is_null() && found["validity"].is_null());
    let table = done(["zone", "stat", text(&zone)]).stdout;
    assert!(
        table.contains("DNSSEC         not signed") && table.contains("delegations    4: 1 signed (25.0 %)"),
        "{table}"
    );
}

#[test]
fn a_signed_zone_is_counted() {
    let folder = prepared();
    let keys = folder.path().join("keys");
    generate_keys(&keys, KEYS_ORIGIN, "ecdsap256sha256");
    let signed = folder.path().join("signed");
    let zone = folder.path().join("zone");
    done([
        "zone",
        "sign",
        text(&zone),
        "-o",
        KEYS_ORIGIN,
        "--keys",
        text(&keys),
        "--denial",
        "nsec3-opt-out",
        "-f",
        text(&signed),
        "--now",
        "20260105120000",
        "--inception",
        "20260101000000",
        "--expiration",
        "20260111000000",
    ]);
    let found = json(&signed, &["--now", "20260105120000"]);
    let signatures = found["types"]["RRSIG"]["records"].as_u64().unwrap();
    let by_key: u64 =
        found["keys"].as_array().unwrap().iter().map(|key| key["signatures"].as_u64().unwrap()).sum();
    assert_eq!(signatures, by_key);
    assert_eq!(found["denial"]["mechanism"], "nsec3-opt-out");
    assert_eq!(found["denial"]["records"], found["denial"]["opt_out_records"]);
    let validity = &found["validity"];
    assert_eq!((validity["expired"].as_u64(), validity["not_yet_valid"].as_u64()), (Some(0), Some(0)));
    assert_eq!(validity["days_left"], serde_json::json!([[5, signatures]]));
    let octets = &found["octets"];
    assert!(octets["signatures"].as_u64() > octets["chain"].as_u64());
    assert_eq!(octets["text"].as_u64(), Some(fs::metadata(&signed).unwrap().len()));
    let late = json(&signed, &["--now", "20260112000000"]);
    assert_eq!(late["validity"]["expired"].as_u64(), Some(signatures));
    let table = done(["zone", "stat", text(&signed), "--now", "20260105120000"]).stdout;
    for line in [
        "denial         NSEC3 opt-out, 0 iterations, salt -;",
        "inception      2026-01-01T00:00:00Z\n",
        "days left              5",
    ] {
        assert!(table.contains(line), "{line}\n{table}");
    }
    assert!(table.contains(" ECDSAP256SHA256 KSK 256 bits: 1 signatures"), "{table}");
    assert_eq!(run(&mut nonesuch(["zone", "stat", "/nonexistent"])).status, 2);
}

#[test]
fn the_root_zone_is_counted() {
    let Some(root) = public_data("root-zone") else { return };
    let Some(file) = fs::read_dir(&root).ok().and_then(|mut files| {
        files.find_map(|file| {
            file.ok().map(|file| file.path()).filter(|path| path.extension().is_some_and(|end| end == "zone"))
        })
    }) else {
        nonesuch_testing::record_skip(&format!("no zone file in {}", root.display()));
        return;
    };
    let found = json(&file, &["-o", "."]);
    assert_eq!(found["denial"]["mechanism"], "nsec");
    assert!(found["delegations"]["all"].as_u64() > Some(1000), "{found}");
    assert_eq!(
        found["delegations"]["all"].as_u64(),
        found["denial"]["records"].as_u64().map(|records| records - 1)
    );
}
