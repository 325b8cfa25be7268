//! Key files that are damaged, unusable or not key files. Each command that reads keys names the
//! fault, and publishes nothing from such a file.

use crate::common;
use common::{
    Ended, KEYS_ORIGIN as ORIGIN, done, folder, generate_key, made, nonesuch, prepared, run, snapshot, text,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Roles, tags, and the names of damaged files; the other keys are still listed.
#[test]
fn damaged_files_are_named_and_the_others_listed() {
    let folder = folder();
    let dir = text(folder.path());
    snapshot::check("key list", "directory without key files", &done(["key", "list", "--dir", dir]).text());
    let good = generate_key(folder.path(), ORIGIN, "ed25519", &["--ksk"]);
    let zsk = generate_key(folder.path(), ORIGIN, "ed25519", &[]);
    let csk = generate_key(folder.path(), "other.", "rsasha512", &["--csk", "--bits", "1280"]);
    let offline = generate_key(folder.path(), "third.", "ecdsap384sha384", &["--ksk"]);
    fs::remove_file(folder.path().join(format!("{offline}.private"))).expect("removed");
    let rows = |arguments: &[&str]| {
        let ended = run(&mut nonesuch([&["key", "list", "--dir", dir], arguments].concat()));
        (ended.status, ended.stdout.lines().map(str::to_owned).collect::<Vec<_>>())
    };
    let (status, lines) = rows(&[]);
    // The lines below the table explain CSK and keys without their private half.
    assert_eq!((status, lines.len()), (0, 2 + 4 + 2), "{lines:?}");
    snapshot::check("key list", "CSK, and key without a private key file: legend", &lines[6..].join("\n"));
    let row = |base: &str, words: &[&str]| {
        let line = lines.iter().find(|line| line.ends_with(base)).expect("a row");
        let tag = base.rsplit('+').next().expect("a tag").trim_start_matches('0');
        assert!(words.iter().chain([&tag]).all(|word| line.contains(word)), "{line}");
    };
    row(&good, &[ORIGIN, "KSK", " keys ", "ED25519 (15)", "256", "fits"]);
    row(&zsk, &[ORIGIN, "ZSK", " data ", "ED25519 (15)", "256", "fits"]);
    row(&csk, &["other.", "CSK", " all ", "RSASHA512 (10)", "1280", "fits"]);
    // It signs nothing without its private half.
    row(&offline, &["third.", "KSK", " – ", "ECDSAP384SHA384 (14)", "384", "none"]);
    assert_eq!(rows(&["OTHER"]).1.len(), 3 + 1);
    // Several kinds of damage.
    let damaged = generate_key(folder.path(), ORIGIN, "ed25519", &[]);
    fs::write(folder.path().join(format!("{damaged}.private")), "junk").expect("written");
    fs::write(folder.path().join("Kjunk.+013+00001.key"), [0xff, 0xfe]).expect("written");
    fs::write(folder.path().join("Korphan.+013+00002.private"), "junk").expect("written");
    fs::copy(folder.path().join(format!("{csk}.key")), folder.path().join("Kother.+010+00000.key"))
        .expect("copied");
    let (status, lines) = rows(&[]);
    let faults: Vec<&str> =
        lines.iter().map(String::as_str).filter(|line| line.starts_with("fault: ")).collect();
    assert_eq!((status, lines.len(), faults.len()), (1, 2 + 5 + 2 + 4, 4), "{lines:?}");
    let damaged_file = format!("{damaged}.private");
    for file in
        [damaged_file.as_str(), "Kjunk.+013+00001.key", "Korphan.+013+00002.private", "Kother.+010+00000.key"]
    {
        assert!(faults.iter().any(|line| line.contains(&format!("/{file}: "))), "{file}: {faults:?}");
    }
    let faults = faults.join("\n").replace(&damaged, "DAMAGED-KEY").replace(&csk, "OTHER-KEY");
    snapshot::check("key list", "several damaged key files", &faults);
    assert!(lines.iter().any(|line| line.ends_with(&damaged) && line.contains("damaged")));
    let ended = run(&mut nonesuch(["key", "list", "--dir", dir, "--json"]));
    let json: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let count = |field: &str| json[field].as_array().map(Vec::len);
    assert_eq!((ended.status, count("keys"), count("faults")), (1, Some(5), Some(4)));
}

/// A number that no algorithm has.
const UNKNOWN: u8 = 99;

/// Public keys that cannot be used: description, algorithm and key.
fn unusable_keys() -> Vec<(&'static str, u8, Vec<u8>)> {
    let rsa = |exponent: &[u8], octets: usize, last: u8| {
        let mut key = vec![u8::try_from(exponent.len()).expect("a length")];
        key.extend_from_slice(exponent);
        key.resize(key.len() + octets, 0xff);
        *key.last_mut().expect("a modulus") = last;
        key
    };
    vec![
        ("P-256 without a point", 13, vec![1; 64]),
        ("P-256 with 63 octets", 13, vec![1; 63]),
        ("RSA with exponent 1", 8, rsa(&[1], 256, 1)),
        ("RSA with exponent 4", 8, rsa(&[4], 256, 1)),
        ("RSA with an exponent of 72 bits", 8, rsa(&[0xff; 9], 256, 1)),
        ("RSA with an even modulus", 8, rsa(&[1, 0, 1], 256, 2)),
        ("RSA with a modulus of 512 bits", 8, rsa(&[1, 0, 1], 64, 1)),
        ("RSA with a modulus of 8192 bits", 8, rsa(&[1, 0, 1], 1024, 1)),
        ("unknown algorithm", UNKNOWN, vec![1; 32]),
    ]
}

/// Writes a `.key` file with the correct name. Returns its path without the suffix.
fn write_public(dir: &Path, algorithm: u8, key: &[u8]) -> PathBuf {
    let rdata = [&[1, 1, 3, algorithm][..], key].concat();
    let tag = nonesuch_crypto::key_tag(&rdata);
    let base = dir.join(format!("K{ORIGIN}+{algorithm:03}+{tag:05}"));
    let key = data_encoding::BASE64.encode(key);
    fs::write(format!("{}.key", text(&base)), format!("{ORIGIN} IN DNSKEY 257 3 {algorithm} {key}\n"))
        .expect("written");
    base
}

/// Expects that the command ends with `status` and that its output contains `part`.
#[track_caller]
fn ends(arguments: &[&str], status: i32, part: &str) -> Ended {
    let ended = run(&mut nonesuch(arguments));
    assert_eq!(ended.status, status, "{arguments:?}: {}", ended.text());
    assert!(status != 2 || ended.stdout.is_empty(), "{arguments:?}: {}", ended.text());
    assert!(ended.text().contains(part), "{arguments:?}: wanted {part}, got {}", ended.text());
    ended
}

/// The reason in the error message about `file`.
#[track_caller]
fn reason<'e>(ended: &'e Ended, file: &str) -> &'e str {
    let reason = ended.stderr.strip_prefix(&format!("nonesuch: error: {file}: "));
    reason.unwrap_or_else(|| panic!("{file}: {}", ended.text())).trim_end()
}

#[test]
fn unusable_public_keys_are_refused_with_their_own_fault() {
    for (case, algorithm, key) in unusable_keys() {
        let folder = prepared();
        let keys = made(folder.path(), "keys");
        let dir = text(&keys);
        let base = write_public(&keys, algorithm, &key);
        let key_file = format!("{}.key", text(&base));
        let zone = folder.path().join("zone");
        let ended = ends(&["key", "ds", ORIGIN, "--dir", dir], 2, &key_file);
        snapshot::check("key ds", &format!("unusable public key: {case}"), &ended.stderr);
        let reason = reason(&ended, &key_file);
        let fault = format!("{key_file}: {reason}");
        // A key with an unsupported algorithm is not a fault of the directory.
        let unsupported = algorithm == UNKNOWN;
        let check = || {
            ends(&["key", "ds", ORIGIN, "--dir", dir], 2, &fault);
            ends(&["key", "ds", &key_file], 2, &fault);
            match unsupported {
                true => ends(&["key", "list", "--dir", dir], 0, "unsupported"),
                false => ends(&["key", "list", "--dir", dir], 1, &fault),
            };
            ends(&["key", "import", &key_file, "--dir", text(folder.path())], 2, &fault);
            ends(&["zone", "sign", text(&zone), "-o", ORIGIN, "--keys", dir, "-f", "-"], 2, &fault);
        };
        check();
        fs::write(format!("{}.private", text(&base)), "junk").expect("written");
        check();
        // The tag of a damaged key differs from that in its name; this must not be the reported
        // fault.
        let renamed = keys.join(format!("K{ORIGIN}+{algorithm:03}+00000.key"));
        fs::rename(&key_file, &renamed).expect("renamed");
        let fault = format!("{}: {reason}", text(&renamed));
        ends(&["key", "ds", ORIGIN, "--dir", dir], 2, &fault);
        let part = if unsupported { text(&renamed) } else { fault.as_str() };
        ends(&["key", "list", "--dir", dir], 1, part);
    }
}

#[test]
fn ds_refuses_wrong_names_and_private_files_that_contradict() {
    let folder = folder();
    let dir = text(folder.path());
    let base = generate_key(folder.path(), ORIGIN, "ed25519", &["--ksk"]);
    let other = generate_key(folder.path(), "other.", "ed25519", &["--ksk"]);
    let [key, private, others] =
        [&base, &base, &other].map(|base| folder.path().join(base)).map(|path| text(&path).to_owned());
    let (key, private) = (format!("{key}.key"), format!("{private}.private"));
    let ds = ["key", "ds", ORIGIN, "--dir", dir];
    fs::copy(format!("{others}.private"), &private).expect("copied");
    let ended = ends(&ds, 2, &private);
    let tag = |base: &str| base.rsplit('+').next().and_then(|tag| tag.parse::<u16>().ok()).expect("a tag");
    let message = ended.stderr.replace(&base, "KEY");
    let message = message.replace(&format!(" {},", tag(&base)), " TAG,");
    let message = message.replace(&format!(" {}:", tag(&other)), " OTHER-TAG:");
    snapshot::check("key ds", "private key file of another key", &message);
    ends(&["key", "ds", &key], 2, &format!("{private}: {}", reason(&ended, &private)));
    fs::write(&private, "junk").expect("written");
    let ended = ends(&ds, 2, &private);
    snapshot::check("key ds", "private key file with other content", &ended.stderr.replace(&base, "KEY"));
    fs::remove_file(&private).expect("removed");
    ends(&ds, 0, ORIGIN);
    let wrong = folder.path().join(format!("K{ORIGIN}+015+00000.key"));
    fs::rename(&key, &wrong).expect("renamed");
    let ended = ends(&ds, 2, text(&wrong));
    snapshot::check("key ds", "key file with a wrong name", &ended.stderr.replace(&base, "KEY"));
    let fault = format!("{}: {}", text(&wrong), reason(&ended, text(&wrong)));
    ends(&["key", "ds", text(&wrong)], 2, &fault);
}

#[test]
fn key_files_are_regular_and_of_bounded_length() {
    let folder = prepared();
    let (keys, zone) = (folder.path().join("keys"), folder.path().join("zone"));
    let base = generate_key(&keys, ORIGIN, "ed25519", &["--csk"]);
    let dir = text(&keys);
    for suffix in [".key", ".private"] {
        let path = keys.join(format!("{base}{suffix}"));
        let sound = fs::read(&path).expect("a file");
        let check = |case: &str| {
            let ended = ends(&["key", "ds", ORIGIN, "--dir", dir], 2, text(&path));
            let case = format!("{suffix} file that is {case}");
            snapshot::check("key ds", &case, &ended.stderr.replace(&base, "KEY"));
            let fault = format!("{}: {}", text(&path), reason(&ended, text(&path)));
            ends(&["key", "list", "--dir", dir], 1, &fault);
            ends(&["key", "import", text(&path), "--dir", text(folder.path())], 2, &fault);
            ends(&["zone", "sign", text(&zone), "-o", ORIGIN, "--keys", dir, "-f", "-"], 2, &fault);
        };
        // Blanks and line ends have no meaning in either file.
        let mut long = sound.clone();
        long.resize(64 << 10, b'\n');
        fs::write(&path, &long).expect("written");
        ends(&["key", "list", "--dir", dir], 0, "fits");
        long.push(b'\n');
        fs::write(&path, &long).expect("written");
        check("too long");
        fs::remove_file(&path).expect("removed");
        run(Command::new("mkfifo").arg(&path)).expect_done("mkfifo");
        check("a pipe");
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("/dev/zero", &path).expect("a link");
        check("a link to a device");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, sound).expect("written");
    }
}
