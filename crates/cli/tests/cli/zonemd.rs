//! ZONEMD (RFC 8976): `zone sign --zonemd`, `zone verify`, and the peers that generate and verify
//! digests.

use crate::common;
use common::{
    EVERY_TYPE, EVERY_TYPE_ORIGIN, KEYS_ORIGIN, MECHANISMS, done, folder, generate_keys, nonesuch, prepared,
    run, snapshot, text,
};
use nonesuch_testing::require_peer;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Values of `--zonemd` with the hash algorithms of the generated records.
const CHOICES: [(&str, &[&str]); 3] =
    [("sha384", &["1"]), ("sha512", &["2"]), ("sha384,sha512", &["1", "2"])];

/// Signs the file `zone` in `folder`, which also contains the keys.
fn sign(folder: &Path, mechanism: &str, zonemd: &[&str], output: &str) -> PathBuf {
    let signed = folder.join(output);
    let zone = folder.join("zone");
    let mut arguments =
        vec!["zone", "sign", text(&zone), "-o", KEYS_ORIGIN, "--keys", text(folder), "--denial", mechanism];
    arguments.extend(["-f", text(&signed)]);
    arguments.extend(zonemd);
    done(&arguments);
    signed
}

/// Lines of the signed zone with the type ZONEMD, split into fields.
fn digests(signed: &Path) -> Vec<Vec<String>> {
    let zone = fs::read_to_string(signed).expect("a zone");
    let fields = zone.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    fields.filter(|fields| fields[3] == "ZONEMD").collect()
}

#[test]
fn digests_are_made_as_asked_and_verified() {
    let folder = prepared();
    generate_keys(folder.path(), KEYS_ORIGIN, "ecdsap256sha256");
    for mechanism in MECHANISMS {
        for (choice, hashes) in CHOICES {
            let signed = sign(folder.path(), mechanism, &["--zonemd", choice], "signed");
            let found: Vec<String> = digests(&signed).into_iter().map(|fields| fields[6].clone()).collect();
            assert_eq!(found, hashes);
            let said = done(["zone", "verify", text(&signed)]).stdout;
            assert!(said.contains(&format!("ZONEMD {}", choice.replace(',', " "))), "{said}");
            let zone = fs::read_to_string(&signed).expect("a zone");
            let last = zone.lines().last().unwrap_or_default();
            assert!(last.contains("RRSIG\tZONEMD "), "{last}");
        }
        let signed = sign(folder.path(), mechanism, &["--zonemd", "none"], "signed");
        assert_eq!(digests(&signed), Vec::<Vec<String>>::new());
    }
}

#[test]
fn a_digest_in_the_zone_file_is_made_anew_and_none_removes_it() {
    let folder = prepared();
    generate_keys(folder.path(), KEYS_ORIGIN, "ecdsap256sha256");
    let path = folder.path().join("zone");
    let zone = fs::read_to_string(&path).expect("a zone");
    fs::write(&path, format!("{zone}@ ZONEMD 1 1 2 {}\n", "AB".repeat(64))).expect("written");
    let signed = sign(folder.path(), "nsec", &["--serial", "increment"], "signed");
    let digest = &digests(&signed)[0];
    assert_eq!(digest[4..7], ["2", "1", "2"]);
    assert!(!digest[7].starts_with("ABABAB"));
    done(["zone", "verify", text(&signed)]);
    assert!(digests(&sign(folder.path(), "nsec", &["--zonemd", "none"], "signed")).is_empty());
    let refused = run(&mut nonesuch(["zone", "sign", text(&path), "--zonemd", "sha1"]));
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("sha384, sha512"), "{}", refused.stderr);
    snapshot::check("zone sign", "unknown algorithm of --zonemd", &refused.stderr);
}

#[test]
fn an_altered_digest_is_a_fault_of_a_signed_and_of_an_unsigned_zone() {
    let folder = prepared();
    generate_keys(folder.path(), KEYS_ORIGIN, "ecdsap256sha256");
    let signed = sign(folder.path(), "nsec3-opt-out", &["--zonemd", "sha384"], "signed");
    // Glue, which no signature covers.
    let zone = fs::read_to_string(&signed).expect("a zone");
    let altered = folder.path().join("altered");
    fs::write(&altered, zone.replace("192.0.2.2", "192.0.2.3")).expect("written");
    let ended = run(&mut nonesuch(["zone", "verify", text(&altered)]));
    assert_eq!(ended.status, 1);
    assert!(ended.stdout.contains("fault: keys.example. ZONEMD: "), "{}", ended.stdout);
    snapshot::check("zone verify", "wrong digest of a signed zone", &ended.stdout);

    let unsigned = folder.path().join("unsigned");
    let zone = fs::read_to_string(folder.path().join("zone")).expect("a zone");
    fs::write(&unsigned, format!("{zone}@ ZONEMD 1 1 1 {}\n", "AB".repeat(48))).expect("written");
    let ended = run(&mut nonesuch(["zone", "verify", text(&unsigned), "-o", KEYS_ORIGIN]));
    assert_eq!(ended.status, 1);
    assert!(ended.stdout.contains("fault: keys.example. ZONEMD: "), "{}", ended.stdout);
    assert!(!ended.stdout.contains("DNSKEY"), "{}", ended.stdout);
    snapshot::check("zone verify", "wrong digest of an unsigned zone", &ended.stdout);
    let served = run(&mut nonesuch(["serve", text(&unsigned), "-o", KEYS_ORIGIN, "--listen", "127.0.0.1:0"]));
    assert_eq!(served.status, 1);
    // Depending on the limits of the system, a warning precedes the error.
    let error = served.stderr.lines().last().unwrap_or_default();
    assert!(error.starts_with(&format!("nonesuch: error: {}: ", text(&unsigned))), "{}", served.stderr);
    snapshot::check("serve", "zone file with a wrong digest", error);
}

/// The zone with every type, without the lines of types that a peer does not know by mnemonic.
fn every_type_without(unknown: &[&str]) -> String {
    let known = |line: &&str| !line.split_whitespace().nth(1).is_some_and(|rtype| unknown.contains(&rtype));
    EVERY_TYPE.lines().filter(known).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn ldns_verifies_our_digests() {
    require_peer!("ldns-verify-zone");
    let folder = folder();
    let (unsigned, signed) = (folder.path().join("zone"), folder.path().join("signed"));
    fs::write(&unsigned, every_type_without(&["AVC"])).expect("written");
    generate_keys(folder.path(), EVERY_TYPE_ORIGIN, "ecdsap256sha256");
    let keys = text(folder.path());
    let judged = || run(Command::new("ldns-verify-zone").args(["-V1", "-ZZ"]).arg(&signed));
    for mechanism in MECHANISMS {
        for (choice, _) in CHOICES {
            let mut arguments =
                vec!["zone", "sign", text(&unsigned), "-o", EVERY_TYPE_ORIGIN, "--keys", keys];
            arguments.extend(["--denial", mechanism, "--zonemd", choice, "-f", text(&signed)]);
            done(&arguments);
            judged().expect_done(&format!("ldns-verify-zone on {mechanism}, {choice}"));
            // The peer checks the digest: it rejects modified glue, which no signature covers.
            let zone = fs::read_to_string(&signed).expect("a zone");
            let altered = zone.replace("\t192.0.2.50\n", "\t192.0.2.59\n");
            assert_ne!(altered, zone);
            fs::write(&signed, altered).expect("written");
            assert_ne!(judged().status, 0, "{mechanism}, {choice}");
        }
    }
}

#[test]
fn digests_that_knot_makes_are_verified() {
    require_peer!("kzonesign");
    let folder = folder();
    let at = folder.path().display();
    let (output, unsigned) = (folder.path().join("output"), folder.path().join("unsigned"));
    for made in [&output, &folder.path().join("keys")] {
        fs::create_dir(made).expect("a directory");
    }
    fs::write(&unsigned, every_type_without(&["MB", "MG", "MR", "PX", "X25", "ISDN", "GPOS", "AVC"]))
        .expect("written");
    for (choice, name) in [("zonemd-sha384", "sha384"), ("zonemd-sha512", "sha512")] {
        let configuration = format!(
            "server:\n  rundir: \"{at}\"\ndatabase:\n  storage: \"{at}/keys\"\npolicy:\n  - id: policy\n    \
             algorithm: ecdsap256sha256\n    ksk-lifetime: 0\nzone:\n  - domain: {EVERY_TYPE_ORIGIN}\n    file: \"{}\"\n    \
             dnssec-signing: on\n    dnssec-policy: policy\n    zonemd-generate: {choice}\n    zonefile-sync: -1\n    \
             journal-content: none\n",
            unsigned.display()
        );
        let path = folder.path().join("knot.conf");
        fs::write(&path, configuration).expect("written");
        let mut command = Command::new("kzonesign");
        command.arg("-c").arg(&path).arg("-o").arg(&output).arg(EVERY_TYPE_ORIGIN);
        run(&mut command).expect_done("kzonesign");
        let files = fs::read_dir(&output).expect("a directory").map(|entry| entry.expect("an entry").path());
        let signed = files.last().expect("a signed zone");
        let said = done(["zone", "verify", text(&signed)]).stdout;
        assert!(said.contains(&format!("ZONEMD {name}")), "{said}");
    }
}

#[test]
fn digests_that_ldns_makes_are_verified() {
    require_peer!("ldns-signzone");
    let folder = prepared();
    let zone = fs::read_to_string(folder.path().join("zone")).expect("a zone");
    fs::write(folder.path().join("zone"), format!("$ORIGIN {KEYS_ORIGIN}\n{zone}")).expect("written");
    generate_keys(folder.path(), KEYS_ORIGIN, "ecdsap256sha256");
    let mut keys: Vec<PathBuf> = fs::read_dir(folder.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    keys.retain(|path| path.extension().is_some_and(|extension| extension == "private"));
    for mechanism in [&[][..], &["-n"], &["-n", "-p"]] {
        let signed = folder.path().join("by-ldns");
        let mut command = Command::new("ldns-signzone");
        command.args(["-o", KEYS_ORIGIN, "-z", "1:1", "-z", "1:2", "-f", text(&signed)]).args(mechanism);
        command.arg(folder.path().join("zone"));
        command.args(keys.iter().map(|path| path.with_extension("")));
        run(&mut command).expect_done("ldns-signzone");
        let said = done(["zone", "verify", text(&signed)]).stdout;
        assert!(said.contains("ZONEMD sha384 sha512"), "{mechanism:?}: {said}");
    }
}
