//! Signing and verifying together with BIND, ldns, Knot DNS and NSD: they accept zones of this
//! signer, this verifier accepts their zones, and key files are exchanged in both directions. If a
//! peer differs, the class has its own test, which fails when the difference no longer occurs;
//! `docs/differences.md` contains the rule and the verdict.

use crate::common;
use common::judges::{JUDGES, Judge, installed_judges, judged};
use common::{
    EVERY_TYPE, EVERY_TYPE_ORIGIN, MECHANISMS, PEER_ALGORITHMS, done, folder, generate_key, generate_keys,
    is_installed, public_data, run, serve, sign, stripped, text,
};
use nonesuch_testing::require_peer;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Prefix of the name of 255 octets in the zone with every type.
const LONG_NAME: &str = "dddddddddd";

/// The zone with every type, without records of `types`.
fn every_type_without(types: &[&str]) -> String {
    every_type_lines(|line| !line.split_whitespace().nth(1).is_some_and(|rtype| types.contains(&rtype)))
}

fn every_type_lines(keep: impl Fn(&str) -> bool) -> String {
    EVERY_TYPE.lines().filter(|line| keep(line)).flat_map(|line| [line, "\n"]).collect()
}

fn write(path: PathBuf, text: &str) -> PathBuf {
    fs::write(&path, text).expect("written");
    path
}

/// Signs with each mechanism; this verifier and the peers accept the zone.
fn signs_and_is_accepted(unsigned: &Path, origin: &str, algorithm: &str, judges: &[&Judge]) {
    let folder = folder();
    generate_keys(folder.path(), origin, algorithm);
    for mechanism in MECHANISMS {
        let signed = folder.path().join("signed");
        sign(unsigned, origin, folder.path(), mechanism, &signed);
        done(["zone", "verify", text(&signed)]);
        for judge in judges {
            let what = format!("{} on {origin}, {algorithm}, {mechanism}", judge.program);
            judged(judge, origin, &signed).expect_done(&what);
        }
    }
}

#[test]
#[ignore = "`just judge`: each algorithm, mechanism and program"]
fn every_type_and_case_is_accepted() {
    let folder = folder();
    for judge in installed_judges() {
        let unsigned = write(folder.path().join(judge.program), &every_type_without(judge.unknown));
        for algorithm in PEER_ALGORITHMS {
            signs_and_is_accepted(&unsigned, EVERY_TYPE_ORIGIN, algorithm, &[judge]);
        }
    }
}

#[test]
fn the_example_zones_of_rfc_4035_and_rfc_5155_are_accepted() {
    for file in ["example.rfc4035", "example.rfc5155"] {
        let Some(unsigned) = public_data(&format!("rfc-zones/test-data/{file}")) else { return };
        for algorithm in PEER_ALGORITHMS {
            signs_and_is_accepted(&unsigned, "example.", algorithm, &installed_judges());
        }
    }
}

fn generated_zone_is_accepted(like: &str, names: &str, algorithms: &[&str]) {
    let folder = folder();
    let unsigned = folder.path().join("unsigned");
    done([
        "zone",
        "generate",
        "--like",
        like,
        "--names",
        names,
        "-o",
        "zone.example.",
        "-f",
        text(&unsigned),
    ]);
    for algorithm in algorithms {
        signs_and_is_accepted(&unsigned, "zone.example.", algorithm, &installed_judges());
    }
}

#[test]
fn a_tld_is_accepted() {
    generated_zone_is_accepted("tld", "2000", &["ecdsap256sha256"]);
    generated_zone_is_accepted("tld", "200", &["rsasha256", "ed25519"]);
}

#[test]
#[ignore = "`just judge`: as a TLD"]
fn an_sld_is_accepted() {
    generated_zone_is_accepted("sld", "1000", &["ecdsap256sha256"]);
    generated_zone_is_accepted("sld", "150", &["rsasha256", "ed25519"]);
}

/// The root zone is signed again in all combinations, verified by this program, served, and queried
/// with queries to root servers. The peers verify it once for each mechanism.
#[test]
#[ignore = "`just judge`: each algorithm and mechanism"]
fn the_root_zone_signed_anew() {
    let Some(root) = public_data("root-zone/2017-root.zone") else { return };
    let Some(queries) = public_data("root-queries/root-server-sample.txt") else { return };
    let folder = folder();
    let unsigned = stripped(&fs::read_to_string(root).expect("the root zone"));
    let unsigned = write(folder.path().join("unsigned"), &unsigned);
    for algorithm in PEER_ALGORITHMS {
        let keys = folder.path().join(algorithm);
        generate_keys(&keys, ".", algorithm);
        for mechanism in MECHANISMS {
            let signed = folder.path().join("signed");
            sign(&unsigned, ".", &keys, mechanism, &signed);
            done(["zone", "verify", text(&signed)]);
            replay(&signed, &queries, &format!("{algorithm}, {mechanism}"));
            let judges = if algorithm == "ecdsap256sha256" { installed_judges() } else { Vec::new() };
            for judge in judges {
                judged(judge, ".", &signed)
                    .expect_done(&format!("{} on the root, {mechanism}", judge.program));
            }
        }
    }
}

/// Root servers send referrals or denials. Most names of the sample are below an existing TLD, and
/// no query fails.
fn replay(signed: &Path, queries: &Path, what: &str) {
    const QUERIES: u64 = 3000;
    let server = serve(signed, &["--verify", "structural"]);
    let (address, limit) = (server.address.to_string(), QUERIES.to_string());
    let report = done([
        "load",
        "--server",
        &address,
        "--queries",
        text(queries),
        "--limit",
        &limit,
        "--do",
        "--outstanding",
        "32",
        "--timeout",
        "5",
        "--seconds",
        "30",
        "--json",
    ]);
    let report: serde_json::Value = serde_json::from_str(&report.stdout).expect("JSON");
    assert_eq!(report["lost"], 0, "{what}: {report}");
    assert_eq!(report["sent"], QUERIES, "{what}: {report}");
    let rcodes = report["rcodes"].as_object().expect("counts by response code");
    let count = |rcode: &str| rcodes.get(rcode).and_then(serde_json::Value::as_u64).unwrap_or(0);
    let (found, denied) = (count("NOERROR"), count("NXDOMAIN"));
    assert_eq!(found + denied, QUERIES, "{what}: only referrals, answers and denials: {report}");
    assert!(found > QUERIES / 2 && denied > 0, "{what}: {report}");
}

/// Class `unknown-type`: each listed type of a checker is rejected by it, in a zone with one such
/// record.
#[test]
fn difference_unknown_type() {
    let folder = folder();
    for judge in installed_judges() {
        for rtype in judge.unknown {
            let is_of = |line: &str| line.split_whitespace().nth(1) == Some(*rtype);
            let record: Vec<&str> = EVERY_TYPE.lines().filter(|line| is_of(line)).collect();
            assert_eq!(record.len(), 1, "{rtype}");
            let zone = format!(
                "$ORIGIN {EVERY_TYPE_ORIGIN}\n$TTL 60\n@ SOA ns1 h 1 2 3 4 5\n@ NS ns1\nns1 A 192.0.2.1\n{}\n",
                record[0]
            );
            let unsigned = write(folder.path().join(rtype), &zone);
            generate_keys(folder.path(), EVERY_TYPE_ORIGIN, "ed25519");
            let signed = folder.path().join("signed");
            sign(&unsigned, EVERY_TYPE_ORIGIN, folder.path(), "nsec", &signed);
            let ended = judged(judge, EVERY_TYPE_ORIGIN, &signed);
            assert_ne!(ended.status, 0, "{} knows {rtype} now: take it off the list", judge.program);
        }
    }
}

/// Class `data-below-dname`: NSD and Knot DNS reject a zone with data below a DNAME. BIND, ldns and
/// this program treat the data as occluded: not signed, in no chain.
#[test]
fn difference_data_below_dname() {
    const REFUSE: [&str; 2] = ["nsd-checkzone", "kzonecheck"];
    let folder = folder();
    generate_keys(folder.path(), EVERY_TYPE_ORIGIN, "ed25519");
    for judge in installed_judges() {
        let zone = every_type_without(judge.unknown) + "below.dname A 192.0.2.42\n";
        let unsigned = write(folder.path().join("unsigned"), &zone);
        for mechanism in MECHANISMS {
            let signed = folder.path().join("signed");
            sign(&unsigned, EVERY_TYPE_ORIGIN, folder.path(), mechanism, &signed);
            done(["zone", "verify", text(&signed)]);
            let ended = judged(judge, EVERY_TYPE_ORIGIN, &signed);
            if REFUSE.contains(&judge.program) {
                assert_ne!(ended.status, 0, "{} accepts data below a DNAME now", judge.program);
                assert!(ended.text().contains("DNAME"), "{}: {}", judge.program, ended.text());
            } else {
                ended.expect_done(judge.program);
            }
        }
    }
}

/// Generates a key pair with BIND or ldns in `folder`; returns the base name.
fn peer_key(program: &str, folder: &Path, arguments: &[&str]) -> String {
    let ended = run(Command::new(program).current_dir(folder).args(arguments)).expect_done(program);
    ended.stdout.trim().to_owned()
}

/// The key files in `keys`, without the suffix, as arguments for signers.
fn bases(keys: &Path) -> Vec<String> {
    let files = fs::read_dir(keys).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut bases: Vec<String> =
        files.filter_map(|path| Some(text(&path).strip_suffix(".key")?.to_owned())).collect();
    bases.sort();
    bases
}

/// Runs `dnssec-signzone` on `zone` with the keys in `keys` appended to the zone file.
fn bind_signs(folder: &Path, zone: &str, keys: &Path, more: &[&str], signed: &Path) -> common::Ended {
    let mut zone = zone.to_owned();
    for base in bases(keys) {
        zone.push_str(&format!("$INCLUDE {base}.key\n"));
    }
    let unsigned = write(folder.join("bind-unsigned"), &zone);
    let mut command = Command::new("dnssec-signzone");
    command.current_dir(folder).args(["-q", "-o", EVERY_TYPE_ORIGIN]).args(more).arg("-f").arg(signed);
    command.arg("-K").arg(keys).arg(unsigned);
    run(command.args(bases(keys)))
}

/// The denial options of BIND.
const BIND_DENIALS: [&[&str]; 4] = [&[], &["-3", "-"], &["-3", "-", "-A"], &["-3", "aabbccdd", "-H", "12"]];

#[test]
fn what_dnssec_signzone_signs_is_accepted() {
    require_peer!("dnssec-signzone", "dnssec-keygen");
    let zone = every_type_lines(|line| !line.starts_with(LONG_NAME));
    for algorithm in PEER_ALGORITHMS {
        let folder = folder();
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        fs::create_dir(&theirs).expect("a directory");
        generate_keys(&ours, EVERY_TYPE_ORIGIN, algorithm);
        for more in [&["-f", "KSK"][..], &[]] {
            peer_key(
                "dnssec-keygen",
                &theirs,
                &[&["-q", "-a", algorithm], more, &[EVERY_TYPE_ORIGIN]].concat(),
            );
        }
        for keys in [&ours, &theirs] {
            for denial in BIND_DENIALS {
                let signed = folder.path().join("signed");
                let what = format!("dnssec-signzone {denial:?}, {algorithm}, {}", keys.display());
                bind_signs(folder.path(), &zone, keys, denial, &signed).expect_done(&what);
                done(["zone", "verify", text(&signed)]);
            }
        }
        // BIND finds these keys itself and considers them active.
        let (unsigned, signed) = (write(folder.path().join("smart"), &zone), folder.path().join("signed"));
        let mut command = Command::new("dnssec-signzone");
        command.current_dir(folder.path()).args([
            "-q",
            "-S",
            "-o",
            EVERY_TYPE_ORIGIN,
            "-f",
            text(&signed),
            "-K",
        ]);
        run(command.arg(&ours).arg(&unsigned)).expect_done("dnssec-signzone -S");
        done(["zone", "verify", text(&signed)]);
        // This program signs with BIND's keys.
        let (unsigned, signed) =
            (write(folder.path().join("unsigned"), EVERY_TYPE), folder.path().join("signed"));
        sign(&unsigned, EVERY_TYPE_ORIGIN, &theirs, "nsec3", &signed);
        done(["zone", "verify", text(&signed)]);
        judged(&JUDGES[0], EVERY_TYPE_ORIGIN, &signed).expect_done("dnssec-verify with BIND's keys");
    }
}

/// Class `key-without-sep`: a zone with a single key without the SEP flag is valid; `dnssec-verify`
/// and `kzonecheck` require the flag.
#[test]
fn difference_key_without_sep() {
    let folder = folder();
    let (keys, signed) = (folder.path().join("keys"), folder.path().join("signed"));
    let unsigned =
        write(folder.path().join("unsigned"), "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n");
    generate_key(&keys, "e.", "ed25519", &[]);
    sign(&unsigned, "e.", &keys, "nsec", &signed);
    done(["zone", "verify", text(&signed)]);
    for judge in JUDGES.iter().filter(|judge| is_installed(judge.program)) {
        let wants_the_flag = ["dnssec-verify", "kzonecheck"].contains(&judge.program);
        let ended = judged(judge, "e.", &signed);
        assert_eq!(ended.status != 0, wants_the_flag, "{}: {}", judge.program, ended.text());
    }
}

/// Class `long-name-in-nsec3`: `dnssec-signzone` signs a name of 255 octets with NSEC but not with
/// NSEC3, because the name with the prefix `*.` would be too long. Such a wildcard cannot exist.
#[test]
fn difference_long_name_in_nsec3() {
    require_peer!("dnssec-signzone");
    let folder = folder();
    let (keys, signed) = (folder.path().join("keys"), folder.path().join("signed"));
    generate_keys(&keys, EVERY_TYPE_ORIGIN, "ed25519");
    bind_signs(folder.path(), EVERY_TYPE, &keys, &[], &signed).expect_done("dnssec-signzone with NSEC");
    done(["zone", "verify", text(&signed)]);
    let ended = bind_signs(folder.path(), EVERY_TYPE, &keys, &["-3", "-"], &signed);
    assert_ne!(ended.status, 0, "dnssec-signzone takes long names with NSEC3 now");
    assert!(ended.text().contains("name too long"), "{}", ended.text());
    let unsigned = write(folder.path().join("unsigned"), EVERY_TYPE);
    for mechanism in ["nsec3", "nsec3-opt-out"] {
        sign(&unsigned, EVERY_TYPE_ORIGIN, &keys, mechanism, &signed);
        judged(&JUDGES[0], EVERY_TYPE_ORIGIN, &signed).expect_done("dnssec-verify on a long name");
    }
}

#[test]
fn what_ldns_signzone_signs_is_accepted() {
    require_peer!("ldns-signzone", "ldns-keygen");
    let zone = every_type_without(&["AVC"]);
    for algorithm in PEER_ALGORITHMS.map(str::to_ascii_uppercase) {
        let algorithm = algorithm.as_str();
        let folder = folder();
        let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
        fs::create_dir(&theirs).expect("a directory");
        generate_keys(&ours, EVERY_TYPE_ORIGIN, algorithm);
        for more in [&["-k"][..], &[]] {
            peer_key("ldns-keygen", &theirs, &[more, &["-a", algorithm, EVERY_TYPE_ORIGIN]].concat());
        }
        let unsigned = write(folder.path().join("unsigned"), &zone);
        for keys in [&ours, &theirs] {
            for denial in [&[][..], &["-n"], &["-n", "-p"], &["-n", "-s", "aabbccdd", "-t", "12"]] {
                let signed = folder.path().join("signed");
                let mut command = Command::new("ldns-signzone");
                command.args(denial).args(["-o", EVERY_TYPE_ORIGIN, "-f", text(&signed)]).arg(&unsigned);
                let what = format!("ldns-signzone {denial:?}, {algorithm}, {}", keys.display());
                run(command.args(bases(keys))).expect_done(&what);
                done(["zone", "verify", text(&signed)]);
            }
        }
        // This program signs with ldns's keys.
        let signed = folder.path().join("signed");
        sign(&unsigned, EVERY_TYPE_ORIGIN, &theirs, "nsec", &signed);
        done(["zone", "verify", text(&signed)]);
        if is_installed("ldns-verify-zone") {
            judged(&JUDGES[2], EVERY_TYPE_ORIGIN, &signed).expect_done("ldns-verify-zone with ldns's keys");
        }
    }
}

/// Signs `zone` with Knot DNS and its own keys.
fn knot_signs(folder: &Path, zone: &str, algorithm: &str, denial: &str) -> PathBuf {
    let _ = fs::remove_dir_all(folder);
    let output = folder.join("output");
    fs::create_dir_all(&output).expect("a directory");
    fs::create_dir(folder.join("keys")).expect("a directory");
    let unsigned = write(folder.join("unsigned"), zone);
    let at = folder.display();
    let configuration = format!(
        "server:\n  rundir: \"{at}\"\ndatabase:\n  storage: \"{at}/keys\"\npolicy:\n  - id: policy\n    \
         algorithm: {algorithm}\n    ksk-lifetime: 0\n{denial}zone:\n  - domain: {EVERY_TYPE_ORIGIN}\n    file: \"{}\"\n    \
         dnssec-signing: on\n    dnssec-policy: policy\n    zonefile-sync: -1\n    journal-content: none\n",
        unsigned.display()
    );
    let configuration = write(folder.join("knot.conf"), &configuration);
    let mut command = Command::new("kzonesign");
    command.arg("-c").arg(configuration).arg("-o").arg(&output).arg(EVERY_TYPE_ORIGIN);
    run(&mut command).expect_done("kzonesign");
    let files = fs::read_dir(&output).expect("a directory").map(|entry| entry.expect("an entry").path());
    files.last().expect("a signed zone")
}

const KNOT_DENIALS: [&str; 4] = [
    "    nsec3: off\n",
    "    nsec3: on\n    nsec3-salt-length: 0\n",
    "    nsec3: on\n    nsec3-opt-out: on\n    nsec3-salt-length: 0\n",
    "    nsec3: on\n    nsec3-iterations: 12\n    nsec3-salt-length: 8\n",
];

#[test]
fn what_kzonesign_signs_is_accepted() {
    require_peer!("kzonesign");
    let folder = folder();
    let zone = every_type_without(JUDGES[4].unknown);
    for algorithm in PEER_ALGORITHMS {
        for denial in KNOT_DENIALS {
            let signed = knot_signs(&folder.path().join("knot"), &zone, algorithm, denial);
            done(["zone", "verify", text(&signed)]);
        }
    }
}

/// BIND and this program generate the same DS: the DS of `dnssec-dsfromkey` for this program's key
/// verifies the zone, and a modified one does not.
#[test]
fn dnssec_dsfromkey_and_anchors() {
    require_peer!("dnssec-dsfromkey");
    for algorithm in PEER_ALGORITHMS {
        let folder = folder();
        let base = generate_key(folder.path(), EVERY_TYPE_ORIGIN, algorithm, &["--ksk"]);
        generate_key(folder.path(), EVERY_TYPE_ORIGIN, algorithm, &[]);
        let (unsigned, signed) =
            (write(folder.path().join("unsigned"), EVERY_TYPE), folder.path().join("signed"));
        sign(&unsigned, EVERY_TYPE_ORIGIN, folder.path(), "nsec", &signed);
        let anchor = folder.path().join("anchor");
        for digest in ["SHA-256", "SHA-384"] {
            let mut command = Command::new("dnssec-dsfromkey");
            command.args(["-a", digest]).arg(folder.path().join(&base));
            let ds = run(&mut command).expect_done("dnssec-dsfromkey").stdout;
            fs::write(&anchor, &ds).expect("written");
            done(["zone", "verify", "--anchor", text(&anchor), text(&signed)]);
            let last = ds.trim_end().chars().next_back().expect("a digit");
            let other = if last == '0' { '1' } else { '0' };
            let altered = format!("{}{other}\n", &ds.trim_end()[..ds.trim_end().len() - 1]);
            fs::write(&anchor, altered).expect("written");
            let ended =
                run(&mut common::nonesuch(["zone", "verify", "--anchor", text(&anchor), text(&signed)]));
            assert_eq!(ended.status, 1, "{}", ended.text());
            assert!(ended.stdout.contains("fault: types.example. DNSKEY:"), "{}", ended.stdout);
        }
    }
}
