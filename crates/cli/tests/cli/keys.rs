//! Commands for keys: generate, list, import and convert to DS records. Exchange of key files with
//! BIND, ldns, Knot DNS, PowerDNS and OpenSSL, for every algorithm and length that they support.

use crate::common;
use common::{
    Ended, KEYS_ORIGIN as ORIGIN, PEER_ALGORITHMS, all_algorithms, done, events, folder, generate_key,
    generate_keys, is_installed, made, nonesuch, prepared, run, sign, text,
};
use common::{replace_word, snapshot};
use nonesuch_crypto::{ALGORITHMS, Algorithm, key_tag};
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_testing::require_peer;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Keys of peers: algorithm, and length if there are several.
const KINDS: [(&str, Option<&str>); 11] = [
    ("rsasha256", Some("1280")),
    ("rsasha256", Some("2048")),
    ("rsasha256", Some("3072")),
    ("rsasha256", Some("4096")),
    ("rsasha512", Some("1280")),
    ("rsasha512", Some("2048")),
    ("rsasha512", Some("3072")),
    ("ecdsap256sha256", None),
    ("ecdsap384sha384", None),
    ("ed25519", None),
    ("ed448", None),
];

/// Files in `folder` with this suffix, sorted.
fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| text(path).ends_with(suffix)).collect();
    files.sort();
    files
}

fn names(files: &[PathBuf]) -> Vec<&str> {
    files.iter().filter_map(|path| path.file_name()?.to_str()).collect()
}

/// Base names of the keys in `folder`, with the path.
fn bases(folder: &Path) -> Vec<String> {
    let strip = |path: &PathBuf| text(path).strip_suffix(".key").expect("a suffix").to_owned();
    files(folder, ".key").iter().map(strip).collect()
}

fn import(files: &[PathBuf], into: &Path, more: &[&str]) -> Ended {
    let files: Vec<&str> = files.iter().map(|path| text(path)).collect();
    done([&["key", "import", "--dir", text(into)][..], more, &files].concat())
}

fn listed(folder: &Path) -> Vec<Value> {
    let listing = done(["key", "list", "--dir", text(folder), "--json"]).stdout;
    let listing: Value = serde_json::from_str(&listing).expect("JSON");
    listing["keys"].as_array().expect("keys").clone()
}

/// Signs the zone in `folder` with `keys`; this program and the peers verify it.
#[track_caller]
fn signs(folder: &Path, keys: &Path, what: &str) {
    let (zone, signed) = (folder.join("zone"), folder.join("signed"));
    sign(&zone, ORIGIN, keys, "nsec3", &signed);
    is_accepted(&signed, what);
}

#[track_caller]
fn is_accepted(signed: &Path, what: &str) {
    done(["zone", "verify", "-o", ORIGIN, text(signed)]);
    if is_installed("dnssec-verify") {
        run(Command::new("dnssec-verify").args(["-q", "-o", ORIGIN]).arg(signed)).expect_done(what);
    }
    if is_installed("ldns-verify-zone") {
        run(Command::new("ldns-verify-zone").arg("-V1").arg(signed)).expect_done(what);
    }
}

/// Keys of a peer are used unchanged, and imported. `make` returns the peer's command for a KSK or
/// a ZSK.
fn keys_of_a_peer_are_used_and_imported(make: impl Fn(&Path, &str, Option<&str>, bool)) {
    for (algorithm, bits) in KINDS {
        let folder = prepared();
        let (theirs, ours) = (made(folder.path(), "theirs"), folder.path().join("ours"));
        for ksk in [true, false] {
            make(&theirs, algorithm, bits, ksk);
        }
        let what = format!("{algorithm} {bits:?}");
        signs(folder.path(), &theirs, &what);
        import(&files(&theirs, ".private"), &ours, &[]);
        assert_eq!(bases(&ours).len(), 2, "{what}");
        for suffix in [".key", ".private"] {
            assert_eq!(names(&files(&ours, suffix)), names(&files(&theirs, suffix)), "{what}");
        }
        for key in listed(&ours) {
            let expected = bits.map_or_else(|| key["bits"].to_string(), str::to_owned);
            assert_eq!(
                (key["private"].as_str(), key["bits"].to_string()),
                (Some("fits"), expected),
                "{what}"
            );
        }
        signs(folder.path(), &ours, &what);
    }
}

#[test]
fn keys_of_bind_are_used_and_imported() {
    require_peer!("dnssec-keygen");
    keys_of_a_peer_are_used_and_imported(|folder, algorithm, bits, ksk| {
        let mut command = Command::new("dnssec-keygen");
        command.current_dir(folder).args(["-q", "-a", algorithm]);
        command.args(bits.map_or_else(Vec::new, |bits| vec!["-b", bits]));
        command.args(if ksk { &["-f", "KSK"][..] } else { &[] });
        run(command.arg(ORIGIN)).expect_done("dnssec-keygen");
    });
}

#[test]
#[ignore = "`just judge`: each algorithm"]
fn keys_of_ldns_are_used_and_imported() {
    require_peer!("ldns-keygen");
    keys_of_a_peer_are_used_and_imported(|folder, algorithm, bits, ksk| {
        let mut command = Command::new("ldns-keygen");
        command.current_dir(folder).args(["-a", &algorithm.to_ascii_uppercase()]);
        command.args(bits.map_or_else(Vec::new, |bits| vec!["-b", bits]));
        command.args(if ksk { &["-k"][..] } else { &[] });
        run(command.arg(ORIGIN)).expect_done("ldns-keygen");
    });
}

#[test]
#[ignore = "`just judge`: each algorithm, each program"]
fn bind_and_ldns_sign_with_our_keys() {
    for (algorithm, bits) in KINDS {
        let folder = prepared();
        let (zone, signed, keys) =
            (folder.path().join("zone"), folder.path().join("signed"), folder.path().join("keys"));
        let bits = bits.map_or_else(Vec::new, |bits| vec!["--bits", bits]);
        generate_key(&keys, ORIGIN, algorithm, &[&["--ksk"], &bits[..]].concat());
        generate_key(&keys, ORIGIN, algorithm, &bits);
        let what = format!("{algorithm} {bits:?}");
        signs(folder.path(), &keys, &what);
        if is_installed("dnssec-signzone") {
            let mut command = Command::new("dnssec-signzone");
            command.current_dir(folder.path()).args([
                "-q",
                "-S",
                "-3",
                "-",
                "-o",
                ORIGIN,
                "-f",
                text(&signed),
                "-K",
            ]);
            run(command.arg(&keys).arg(&zone)).expect_done(&format!("dnssec-signzone, {what}"));
            is_accepted(&signed, &what);
        }
        if is_installed("ldns-signzone") {
            let mut command = Command::new("ldns-signzone");
            command.args(["-n", "-o", ORIGIN, "-f", text(&signed)]).arg(&zone).args(bases(&keys));
            run(&mut command).expect_done(&format!("ldns-signzone, {what}"));
            is_accepted(&signed, &what);
        }
    }
}

/// Imports the PEM file of an RSA key without the algorithm, which the command then requires.
#[track_caller]
fn asks_for_the_algorithm(pem: &Path, into: &Path) {
    let arguments = ["key", "import", text(pem), "--dir", text(into), "--zone", ORIGIN, "--ksk"];
    let ended = run(&mut nonesuch(arguments));
    assert_eq!(ended.status, 2, "{}", ended.text());
    for part in ["RSASHA256 (8)", "RSASHA512 (10)", "--algorithm"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    let error = ended.stderr.replace(text(pem), "KEY.pem");
    snapshot::check("key import", "RSA key of Knot DNS without its algorithm", &error);
}

/// Several keys of each algorithm, because GnuTLS writes an ECDSA scalar with a leading zero if its
/// first bit is set.
#[test]
fn keys_of_knot_are_imported() {
    const EACH: usize = 3;
    require_peer!("keymgr");
    for algorithm in PEER_ALGORITHMS {
        let folder = prepared();
        let (kasp, ours) = (made(folder.path(), "kasp"), folder.path().join("ours"));
        let configuration = folder.path().join("knot.conf");
        let at = kasp.display();
        let lines = format!(
            "server:\n  rundir: \"{at}\"\ndatabase:\n  storage: \"{at}\"\nzone:\n  - domain: {ORIGIN}\n"
        );
        fs::write(&configuration, lines).expect("written");
        let keymgr = |arguments: &[&str]| {
            run(Command::new("keymgr").arg("-c").arg(&configuration).arg(ORIGIN).args(arguments))
                .expect_done("keymgr")
        };
        let is_rsa = algorithm.starts_with("rsa");
        let more: &[&str] = if is_rsa { &["-a", algorithm] } else { &[] };
        for role in ["ksk", "zsk"] {
            let wanted = [format!("algorithm={algorithm}"), format!("{role}=yes")];
            let generate = || keymgr(&["generate", &wanted[0], &wanted[1]]).stdout;
            let pem: Vec<PathBuf> =
                (0..EACH).map(|_| kasp.join(format!("keys/keys/{}.pem", generate().trim()))).collect();
            if is_rsa {
                asks_for_the_algorithm(&pem[0], &ours);
            }
            import(&pem, &ours, &[&["--zone", ORIGIN, &format!("--{role}")], more].concat());
        }
        // "zone. DS …" with lower-case digits, for each key one record of each digest type.
        let theirs = keymgr(&["ds"]).stdout.to_ascii_uppercase();
        let mut theirs: Vec<String> = theirs.lines().map(|line| line.replace(" DS ", " IN DS ")).collect();
        let ours_ds =
            done(["key", "ds", ORIGIN, "--dir", text(&ours), "--digest", "2,4"]).stdout.to_ascii_uppercase();
        let mut ours_ds: Vec<String> = ours_ds.lines().map(str::to_owned).collect();
        theirs.sort();
        ours_ds.sort();
        assert_eq!(ours_ds, theirs, "{algorithm}");
        signs(folder.path(), &ours, algorithm);
    }
}

#[test]
fn keys_of_openssl_are_imported() {
    require_peer!("openssl");
    let kinds: [(&str, &[&str]); 9] = [
        ("rsasha256", &["RSA", "-pkeyopt", "rsa_keygen_bits:1280"]),
        ("rsasha512", &["RSA", "-pkeyopt", "rsa_keygen_bits:1280"]),
        ("rsasha256", &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
        ("rsasha512", &["RSA", "-pkeyopt", "rsa_keygen_bits:3072"]),
        ("nsec5-rsasha256", &["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]),
        ("ecdsap256sha256", &["EC", "-pkeyopt", "ec_paramgen_curve:P-256"]),
        ("ecdsap384sha384", &["EC", "-pkeyopt", "ec_paramgen_curve:P-384"]),
        ("ed25519", &["ED25519"]),
        ("ed448", &["ED448"]),
    ];
    for (algorithm, arguments) in kinds {
        let folder = prepared();
        let (pem, ours) = (folder.path().join("key.pem"), folder.path().join("ours"));
        let mut command = Command::new("openssl");
        run(command.args(["genpkey", "-out", text(&pem), "-algorithm"]).args(arguments))
            .expect_done("openssl genpkey");
        import(&[pem], &ours, &["--zone", ORIGIN, "--csk", "-a", algorithm]);
        let (zone, signed) = (folder.path().join("zone"), folder.path().join("signed"));
        sign(&zone, ORIGIN, &ours, "nsec", &signed);
        done(["zone", "verify", "-o", ORIGIN, text(&signed)]);
        assert_eq!(listed(&ours)[0]["algorithm"].as_str(), Some(algorithm.to_ascii_uppercase().as_str()));
    }
    // The error names encrypted keys and keys of other kinds.
    let folder = folder();
    let pem = folder.path().join("key.pem");
    let refused = |arguments: &[&str], case: &str| {
        let _ =
            run(Command::new("openssl").args(arguments).args(["-out", text(&pem)])).expect_done("openssl");
        let ended = run(&mut nonesuch([
            "key",
            "import",
            text(&pem),
            "--dir",
            text(folder.path()),
            "--zone",
            "e.",
            "--zsk",
        ]));
        assert_eq!(ended.status, 2, "{}", ended.text());
        snapshot::check("key import", case, &ended.stderr);
    };
    refused(&["genpkey", "-algorithm", "ED25519", "-aes256", "-pass", "pass:x"], "encrypted key of OpenSSL");
    refused(&["genpkey", "-algorithm", "X25519"], "X25519 key of OpenSSL");
    refused(
        &["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
        "RSA key of OpenSSL without its algorithm",
    );
    refused(&["ecparam", "-name", "prime256v1", "-genkey", "-noout"], "EC key of OpenSSL not in PKCS#8");
}

/// PowerDNS prints `.private` text of format v1.2 (`pdnsutil export-zone-key`), and no `.key` file.
#[test]
fn a_key_as_powerdns_prints_it_is_imported() {
    let folder = folder();
    let (file, ours) = (folder.path().join("exported"), folder.path().join("ours"));
    // RFC 6605 §6.1.
    let key = "Private-key-format: v1.2\nAlgorithm: 13 (ECDSAP256SHA256)\n\
               PrivateKey: GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=\n\n";
    fs::write(&file, key).expect("written");
    let arguments = ["key", "import", text(&file), "--dir", text(&ours)];
    let refused = |more: &[&str], case: &str| {
        let ended = run(&mut nonesuch([&arguments[..], more].concat()));
        assert_eq!(ended.status, 2, "{}", ended.text());
        snapshot::check("key import", case, &ended.stderr);
        assert!(!ours.exists());
    };
    refused(&["--zsk"], "key of PowerDNS without its zone");
    refused(&["--zone", "example.net"], "key of PowerDNS without its role");
    refused(
        &["--zone", "example.net", "--ksk", "-a", "ed25519"],
        "key of PowerDNS with another algorithm than that in the file",
    );
    refused(&["--zone", "example.net", "--ksk", "--zsk"], "key of PowerDNS with two roles");
    let ended = done([&arguments[..], &["--zone", "example.net", "--ksk"]].concat());
    assert_eq!(ended.stdout, "Kexample.net.+013+55648\n");
    // The DS record in the RFC.
    let ds = done(["key", "ds", "example.net", "--dir", text(&ours)]).stdout;
    let expected = "B4C8C1FE2E7477127B27115656AD6256F424625BF5C1E2770CE6D6E37DF61D17";
    assert_eq!(ds, format!("example.net. IN DS 55648 13 2 {expected}\n"));
    let mode =
        fs::metadata(ours.join("Kexample.net.+013+55648.private")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn import_refuses_what_contradicts_and_overwrites_nothing() {
    let folder = folder();
    let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("ours"));
    let base = generate_key(&theirs, ORIGIN, "ed25519", &["--ksk", "--now", "20200101000000"]);
    let other = generate_key(&theirs, ORIGIN, "ed25519", &[]);
    let [private, key] = [".private", ".key"].map(|suffix| theirs.join(format!("{base}{suffix}")));
    let refused = |more: &[&str]| {
        let before = files(&ours, "").iter().map(|path| fs::read(path).expect("a file")).collect::<Vec<_>>();
        let ended = run(&mut nonesuch([&["key", "import", "--dir", text(&ours)], more].concat()));
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{}", ended.text());
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let after = files(&ours, "").iter().map(|path| fs::read(path).expect("a file")).collect::<Vec<_>>();
        assert_eq!(before, after);
        ended.stderr.replace(&base, "KSK").replace(&other, "ZSK")
    };
    let check = |case: &str, more: &[&str]| snapshot::check("key import", case, &refused(more));
    fs::create_dir(&ours).expect("a directory");
    check("key of another zone than --zone", &[text(&private), "--zone", "other."]);
    check("KSK with --zsk", &[text(&private), "--zsk"]);
    check("missing file after a key file", &[text(&private), text(&folder.path().join("none"))]);
    fs::write(folder.path().join("junk"), "junk").expect("written");
    check("file with the text junk", &[text(&folder.path().join("junk"))]);
    // The private half of one key with the public half of another.
    let mixed = made(folder.path(), "mixed");
    fs::copy(&private, mixed.join("k.private")).expect("copied");
    fs::copy(theirs.join(format!("{other}.key")), mixed.join("k.key")).expect("copied");
    let error = refused(&[text(&mixed.join("k.private"))]);
    let rdata = |base: &str| {
        let file = fs::read_to_string(theirs.join(format!("{base}.key"))).expect("a file");
        KeyRecord::parse(&file).expect("a key").rdata().to_vec()
    };
    // The error has the tag that the KSK would have as a ZSK.
    let mut as_zsk = rdata(&base);
    as_zsk[..2].copy_from_slice(&256_u16.to_be_bytes());
    let tags = [key_tag(&rdata(&other)), key_tag(&as_zsk)];
    let error = tags.iter().fold(error, |error, tag| replace_word(&error, &tag.to_string(), "TAG"));
    snapshot::check("key import", ".private and .key files of different keys", &error);
    // A file of another key, or a damaged file, at the path of the key.
    for (kind, suffix, content) in [
        ("another key", ".key", fs::read(theirs.join(format!("{other}.key"))).expect("a file")),
        ("another key", ".private", fs::read(theirs.join(format!("{other}.private"))).expect("a file")),
        ("other text", ".key", b"junk".to_vec()),
        ("other text", ".private", b"junk".to_vec()),
    ] {
        let place = ours.join(format!("{base}{suffix}"));
        fs::write(&place, content).expect("written");
        check(&format!("existing {suffix} file with {kind}"), &[text(&key)]);
        fs::remove_file(place).expect("removed");
    }
    // By its .key file, with its times; a second import changes nothing.
    for _ in 0..2 {
        assert_eq!(import(std::slice::from_ref(&key), &ours, &[]).stdout.trim(), base);
        let imported = fs::read_to_string(ours.join(format!("{base}.private"))).expect("a file");
        assert_eq!(imported, fs::read_to_string(&private).expect("a file"));
        assert!(imported.ends_with("Activate: 20200101000000\n"));
    }
}

#[test]
fn ds_records_are_those_of_bind_and_ldns() {
    let folder = folder();
    for algorithm in PEER_ALGORITHMS {
        generate_keys(folder.path(), ORIGIN, algorithm);
    }
    for base in bases(folder.path()) {
        let key = format!("{base}.key");
        let ds = |digest: &str| done(["key", "ds", &key, "--all", "--digest", digest]).stdout;
        for (digest, bind, ldns) in [("sha256", "SHA-256", "-2"), ("sha384", "SHA-384", "-4")] {
            if is_installed("dnssec-dsfromkey") {
                let theirs =
                    run(Command::new("dnssec-dsfromkey").args(["-a", bind, &base])).expect_done(bind).stdout;
                assert_eq!(ds(digest), theirs);
            }
            if is_installed("ldns-key2ds") {
                let theirs =
                    run(Command::new("ldns-key2ds").args(["-n", "-f", ldns, &key])).expect_done(ldns).stdout;
                let fields = |line: &str| {
                    let upper = line.to_ascii_uppercase();
                    upper
                        .split_whitespace()
                        .filter(|field| *field != "3600")
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                };
                assert_eq!(fields(&ds(digest)), fields(&theirs));
            }
        }
    }
}

#[test]
fn ds_takes_entry_points_unless_all_are_wanted() {
    let folder = folder();
    let dir = text(folder.path());
    let ksk = generate_key(folder.path(), ORIGIN, "ed25519", &["--ksk"]);
    let zsk = generate_key(folder.path(), ORIGIN, "ed25519", &[]);
    let csk = generate_key(folder.path(), "other.", "ecdsap256sha256", &["--csk"]);
    let tag = |base: &str| base.rsplit('+').next().expect("a tag").trim_start_matches('0').to_owned();
    let tags = |more: &[&str]| {
        let ended = done([&["key", "ds", "--dir", dir], more].concat());
        ended.stdout.lines().map(|line| line.split(' ').nth(3).expect("a tag").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(tags(&[ORIGIN]), [tag(&ksk)]);
    assert_eq!(tags(&[ORIGIN, "--all"]), [tag(&ksk), tag(&zsk)]);
    assert_eq!(tags(&["OTHER", ORIGIN]), [tag(&csk), tag(&ksk)]);
    let zsk_file = folder.path().join(format!("{zsk}.key"));
    assert_eq!(tags(&[text(&zsk_file), "--all"]), [tag(&zsk)]);
    let refused = |more: &[&str], case: &str| {
        let ended = run(&mut nonesuch([&["key", "ds", "--dir", dir], more].concat()));
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{}", ended.text());
        snapshot::check("key ds", case, &ended.stderr.replace(&zsk, "ZSK"));
    };
    refused(&[text(&zsk_file)], "file of a zone-signing key");
    refused(&["none.example."], "zone none.example. without key files");
    refused(&["Knone.+013+00001.key"], "missing .key file");
    refused(&["a..b"], "malformed zone name");
    for digest in ["sha1", "SHA-1", "1", "3"] {
        refused(&[ORIGIN, "--digest", digest], &format!("--digest {digest}"));
    }
    let json = done(["key", "ds", "other.", "--dir", dir, "--json", "--digest", "sha256,sha384"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((json[0]["digest_type"].as_u64(), json[1]["digest_type"].as_u64()), (Some(2), Some(4)));
    assert_eq!(json[1]["digest"].as_str().map(str::len), Some(96));
}

/// The alias number is in the file name, the tag, DNSKEY, CDS, DS and every RRSIG, for every
/// algorithm of the table.
#[test]
fn nsec5_aliases_live_in_the_key_file() {
    for entry in ALGORITHMS {
        let Some(alias) = entry.algorithm.nsec5_alias() else { continue };
        let folder = prepared();
        let keys = folder.path().join("keys");
        let ksk = generate_key(&keys, ORIGIN, entry.mnemonic, &["--nsec5", "--ksk"]);
        generate_key(&keys, ORIGIN, entry.mnemonic, &["--nsec5"]);
        assert!(ksk.starts_with(&format!("K{ORIGIN}+{:03}+", alias.0)), "{ksk}");
        let private = fs::read_to_string(keys.join(format!("{ksk}.private"))).expect("a file");
        assert!(private.contains(&format!("\nAlgorithm: {} ({alias})\n", alias.0)), "{alias}");
        let (zone, signed) = (folder.path().join("zone"), folder.path().join("signed"));
        let sign =
            ["zone", "sign", text(&zone), "-o", ORIGIN, "--keys", text(&keys), "--cds", "-f", text(&signed)];
        let count = if entry.scheme.signs_slowly { 1 } else { usize::MAX };
        for mechanism in common::MECHANISMS.into_iter().take(count) {
            done([&sign[..], &["--denial", mechanism]].concat());
            let ds = done(["key", "ds", ORIGIN, "--dir", text(&keys)]).stdout;
            let anchor = folder.path().join("anchor");
            fs::write(&anchor, &ds).expect("written");
            done(["zone", "verify", text(&signed), "-o", ORIGIN, "--anchor", text(&anchor)]);
            let number = alias.0.to_string();
            let signed = fs::read_to_string(&signed).expect("the zone");
            let mut seen = 0;
            for fields in signed.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()) {
                let found = match fields[3] {
                    "DNSKEY" | "CDNSKEY" => fields[6],
                    "CDS" | "RRSIG" => fields[5],
                    _ => continue,
                };
                assert_eq!(found, number, "{fields:?}");
                seen += 1;
            }
            assert!(seen > 10, "{seen}");
            let ds: Vec<&str> = ds.split_whitespace().collect();
            let cds = signed
                .lines()
                .find(|line| line.split_whitespace().nth(3) == Some("CDS"))
                .expect("a CDS record");
            assert_eq!(ds[3..], cds.split_whitespace().collect::<Vec<_>>()[4..]);
        }
    }
}

#[test]
fn every_algorithm_is_made_and_experimental_ones_with_a_warning() {
    let folder = folder();
    let mut warnings = String::new();
    for algorithm in all_algorithms() {
        let ended = done(["key", "generate", ORIGIN, "-a", algorithm, "--dir", text(folder.path())]);
        let entry = algorithm.parse().ok().and_then(Algorithm::entry).expect("a row");
        match entry.scheme.experimental {
            Some(reason) => {
                let lines = events(&ended.stderr, "algorithm-experimental", &[]);
                assert_eq!(lines.len(), 1, "{}", ended.stderr);
                assert!(lines[0].contains(algorithm) && lines[0].contains(reason), "{}", ended.stderr);
                warnings.push_str(&ended.stderr);
            }
            None => assert_eq!(ended.stderr, "", "{algorithm}"),
        }
    }
    snapshot::check("key generate", "experimental algorithms", &warnings);
    let ended = done(["key", "list", "--dir", text(folder.path())]);
    for entry in ALGORITHMS {
        let line = ended
            .stdout
            .lines()
            .find(|line| line.contains(&format!(" {} (", entry.mnemonic)))
            .expect("a row");
        assert_eq!(
            line.contains(&format!("({})*", entry.algorithm.0)),
            entry.scheme.experimental.is_some(),
            "{line}"
        );
    }
}

#[test]
fn weak_keys_are_made_when_forced_alone() {
    let folder = folder();
    let generate = |more: &[&str]| {
        let generate = ["key", "generate", ORIGIN, "-a", "rsasha256", "--dir", text(folder.path())];
        run(&mut nonesuch([&generate[..], more].concat()))
    };
    let ended = generate(&["--bits", "1024"]);
    assert_eq!(ended.status, 2, "{}", ended.text());
    snapshot::check("key generate", "RSA key of 1024 bits", &ended.stderr);
    let ended = generate(&["--bits", "1024", "--force", "--csk"]).expect_done("--force");
    assert_eq!(events(&ended.stderr, "key-weak", &[]).len(), 1, "{}", ended.stderr);
    snapshot::check("key generate", "RSA key of 1024 bits with --force", &ended.stderr);
    assert_eq!(listed(folder.path())[0]["bits"], 1024);
    let ended = generate(&["--bits", "512", "--force"]);
    assert_eq!(ended.status, 2, "{}", ended.text());
}

/// Signatures are deterministic by default. With hedging, the same key and time give different
/// signatures, which also verify.
#[test]
fn hedged_signatures_differ_each_time() {
    for (algorithm, differ) in [("mldsa44", true), ("ed25519", false)] {
        let folder = prepared();
        let (zone, keys) = (folder.path().join("zone"), folder.path().join("keys"));
        generate_key(&keys, ORIGIN, algorithm, &["--csk"]);
        let signed = |name: &str, more: &[&str]| {
            let signed = folder.path().join(name);
            let sign =
                ["zone", "sign", text(&zone), "-o", ORIGIN, "--keys", text(&keys), "-f", text(&signed)];
            done([&sign[..], &["--now", "20300101000000"], more].concat());
            done(["zone", "verify", text(&signed), "-o", ORIGIN, "--now", "20300101000000"]);
            fs::read(signed).expect("the zone")
        };
        assert!(signed("first", &[]) == signed("second", &[]), "{algorithm}");
        assert_eq!(signed("third", &["--hedged"]) != signed("fourth", &["--hedged"]), differ, "{algorithm}");
    }
}

/// The page on algorithms matches the table.
#[test]
fn the_documentation_has_the_table() {
    let page = include_str!("../../../../docs/algorithms.md");
    let octets =
        |octets: Option<usize>, rsa: &str| octets.map_or_else(|| rsa.to_owned(), |octets| octets.to_string());
    let mut rows = 0;
    for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
        let (scheme, alias) = (entry.scheme, entry.algorithm.nsec5_alias().expect("an alias"));
        let mark = if scheme.experimental.is_some() { "*" } else { "" };
        let row = format!(
            "| {} | {}{mark} | {} | {} | {} | ",
            entry.algorithm.0,
            entry.mnemonic,
            alias.0,
            octets(scheme.public_key_octets, "modulus + 4"),
            octets(scheme.signature_octets, "modulus"),
        );
        assert_eq!(page.matches(&row).count(), 1, "{row}");
        assert_eq!(
            page.contains(&format!("\n- {}: ", entry.mnemonic)),
            scheme.experimental.is_some(),
            "{row}"
        );
        rows += 1;
    }
    let numbered = |line: &&str| {
        line.strip_prefix("| ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    assert_eq!(page.lines().filter(numbered).count(), rows);
}

#[test]
fn compare_takes_the_algorithms_and_mechanisms_that_are_named() {
    let folder = folder();
    let compare = ["compare", "--names", "30", "--seconds", "0.02", "--json", "--out", text(folder.path())];
    let chosen = ["--algorithms", "ed25519,rsasha256/1280", "--denial", "nsec3"];
    let report = done([&compare[..], &chosen].concat()).stdout;
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let rows = report["rows"].as_array().expect("rows").iter();
    let rows: Vec<_> =
        rows.map(|row| (row["algorithm"].as_str(), row["bits"].as_u64(), row["denial"].as_str())).collect();
    let nsec3 = Some("nsec3");
    assert_eq!(
        rows,
        [(None, None, None), (Some("ED25519"), None, nsec3), (Some("RSASHA256"), Some(1280), nsec3)]
    );
}

/// Each signed row has a validated sample of responses with each mechanism. ML-DSA-44 does not fit
/// into 1232 octets.
#[test]
fn compare_validates_responses_and_measures_the_keys() {
    let folder = folder();
    let compare = ["compare", "--names", "200", "--seconds", "0.02", "--json", "--out", text(folder.path())];
    let chosen = ["--algorithms", "ed25519,mldsa44", "--denial", "nsec3-opt-out,nsec5,compact"];
    let needs = ["--need", "udp-1232"];
    let report = done([&compare[..], &chosen, &needs].concat()).stdout;
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let [unsigned, signed @ ..] = &report["rows"].as_array().expect("rows")[..] else { panic!("no rows") };
    assert!(unsigned["dnskey"].is_null() && unsigned["validation"].is_null());
    assert_eq!(signed.len(), 6);
    for row in signed {
        let (counts, keys) = (&row["validation"], &row["dnskey"]);
        let count = |status: &str| counts[status].as_u64().expect("a count");
        assert_eq!((count("bogus"), count("indeterminate")), (0, 0), "{row}");
        // The response with the keys, and 64 responses to each kind of query.
        assert_eq!(count("secure") + count("insecure"), 129, "{row}");
        let is_small = row["algorithm"] == "ED25519";
        assert_eq!(keys["truncated"], !is_small);
        assert_eq!(keys["octets"].as_u64().expect("a size") <= 1232, is_small);
        let signing = &row["signing"]["signatures"];
        assert_eq!(signing, &row["verification"]["signatures"]);
        assert_eq!(signing.as_u64().is_some(), row["denial"] != "compact");
    }
    let candidates = report["decision"]["candidates"].as_array().expect("a list");
    assert!(candidates.iter().all(|candidate| candidate["row"].as_u64().expect("an index") <= 3));
}
