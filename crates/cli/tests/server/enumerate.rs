//! `nonesuch enumerate` against `nonesuch serve`, for every denial mechanism: the learnt names, the
//! attacks with a stolen server, and the files of the command.

use crate::common;
use common::{Ended, Running, done, folder, generate_key, generate_keys, nonesuch, run, serve, text};
use nonesuch_dnssec::denial::{DenialGeneration, Enumeration, MECHANISMS, MechanismEntry, NameHash};
use nonesuch_testing::is_installed;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const ORIGIN: &str = "keys.example.";
/// Names in words, in a mask, in words with affixes, and beyond all of them. Wildcards, an empty
/// non-terminal, an insecure and a secure delegation.
const ZONE: &str = "$TTL 60\n@ SOA ns h 1 7200 3600 1209600 5\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\nmail A 192.0.2.3\n\
    old-mail7 A 192.0.2.4\nab3 A 192.0.2.5\n*.w TXT \"x\"\nqzjxkvbwpfmt A 192.0.2.6\nunsigned NS ns.unsigned\n\
    ns.unsigned A 192.0.2.7\nsub NS ns.sub\n\
    sub DS 1 13 2 0123456789012345678901234567890123456789012345678901234567890123\nns.sub A 192.0.2.2\n";
/// The names of the chain without opt-out.
const NAMES: [&str; 11] =
    ["", "*.w.", "ab3.", "mail.", "ns.", "old-mail7.", "qzjxkvbwpfmt.", "sub.", "unsigned.", "w.", "www."];

/// A server of the zone with a mechanism.
struct Site {
    folder: tempfile::TempDir,
    server: Running,
    keys: PathBuf,
}

fn site(entry: &MechanismEntry) -> Site {
    let folder = folder();
    let (zone, keys, public) =
        (folder.path().join("zone"), folder.path().join("keys"), common::made(folder.path(), "public"));
    fs::write(&zone, format!("$ORIGIN {ORIGIN}\n{ZONE}")).expect("written");
    if entry.name_hash == NameHash::Vrf {
        generate_key(&keys, ORIGIN, "ed25519", &["--csk", "--nsec5"]);
    } else {
        generate_keys(&keys, ORIGIN, "ecdsap256sha256");
    }
    let server = if entry.generation == DenialGeneration::Online {
        serve(&zone, &["--denial", entry.name, "--keys", text(&keys)])
    } else {
        let signed = public.join("signed");
        common::sign(&zone, ORIGIN, &keys, entry.name, &signed);
        serve(&signed, &[])
    };
    Site { folder, server, keys }
}

impl Site {
    fn run(&self, more: &[&str]) -> Ended {
        let server = format!("@{}", self.server.address);
        let mut arguments =
            vec!["enumerate", ORIGIN, &server, "--rate", "20000", "--seed", "1", "--threads", "2"];
        arguments.extend(more);
        run(&mut nonesuch(arguments))
    }

    fn json(&self, more: &[&str]) -> Value {
        let ended = self.run(&[more, &["--json"]].concat());
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.text()))
    }
}

fn names(report: &Value) -> Vec<String> {
    let names = report["names"].as_array().expect("names").iter();
    names.map(|name| name["name"].as_str().expect("a name").to_owned()).collect()
}

/// The words, affixes and masks that the tests give.
fn attacks(folder: &std::path::Path) -> Vec<String> {
    let words = folder.join("words");
    fs::write(&words, "www\nmail\nns\nsub\nunsigned\nw\n*.w\nnothing\n").expect("written");
    let words = text(&words).to_owned();
    ["--words", &words, "--prefix", "old-", "--suffix", "?d", "--mask", "?l?l?d"].map(str::to_owned).to_vec()
}

#[test]
fn every_mechanism_reveals_what_the_table_states() {
    for entry in MECHANISMS {
        let site = site(entry);
        let attacks = attacks(site.folder.path());
        let attacks: Vec<&str> = attacks.iter().map(String::as_str).collect();
        let report = site.json(&attacks);
        assert_eq!(report["mechanism"], entry.title, "{report}");
        assert_eq!(report["stopped"], Value::Null, "{}: {report}", entry.name);
        let found = names(&report);
        let absolute = |name: &&str| format!("{name}{ORIGIN}");
        let expected: Vec<String> = NAMES.iter().map(absolute).collect();
        match entry.enumeration() {
            // An empty non-terminal has no NSEC record.
            Enumeration::ZoneWalk => {
                let walked: Vec<&String> =
                    expected.iter().filter(|name| *name != "w.keys.example.").collect();
                assert_eq!(
                    {
                        let mut sorted = found.iter().collect::<Vec<_>>();
                        sorted.sort();
                        sorted
                    },
                    {
                        let mut sorted = walked;
                        sorted.sort();
                        sorted
                    }
                );
                assert_eq!(report["queries"].as_u64(), Some(3 + 10 + 1), "one query for each name: {report}");
            }
            Enumeration::Dictionary => {
                let hashes = &report["hashes"];
                let in_chain = if entry.opt_out { NAMES.len() - 1 } else { NAMES.len() };
                assert_eq!(hashes["records"].as_u64(), Some(in_chain as u64), "{report}");
                assert_eq!(
                    (hashes["coverage"].as_f64(), &hashes["opt_out"]),
                    (Some(1.0), &entry.opt_out.into())
                );
                assert_eq!(report["estimated_names"]["names"].as_f64(), Some(in_chain as f64));
                // All names except the random one.
                assert_eq!(hashes["unknown"].as_array().map(Vec::len), Some(1), "{report}");
                assert_eq!(found.len(), in_chain - 1);
                assert!(!found.contains(&"qzjxkvbwpfmt.keys.example.".to_owned()));
                assert_eq!(report["crack"]["complete"], true);
            }
            Enumeration::Impossible => {
                assert_eq!(report["hashes"], Value::Null);
                let guesses = &report["guesses"];
                assert!(guesses["tested"].as_u64() > Some(500), "{report}");
                for guessed in ["www.", "mail.", "old-mail7.", "ns.", "ab3."] {
                    assert!(found.contains(&absolute(&guessed)), "{} {guessed}: {found:?}", entry.name);
                }
                assert!(!found.iter().any(|name| name.starts_with("nothing") || name.starts_with("qzj")));
                if entry.name_hash == NameHash::Vrf {
                    let names = report["estimated_names"]["names"].as_f64().expect("an estimate");
                    assert!((5.0..20.0).contains(&names), "{names}");
                }
            }
        }
    }
}

/// Each forged response is judged by the validator.
#[test]
fn a_stolen_server_forges_exactly_with_a_signing_key() {
    for entry in MECHANISMS {
        let site = site(entry);
        let mut directories = vec!["--stolen-server".to_owned()];
        directories.push(match entry.generation {
            DenialGeneration::Online => text(&site.keys).to_owned(),
            DenialGeneration::Offline => text(&site.folder.path().join("public")).to_owned(),
        });
        let directories: Vec<&str> = directories.iter().map(String::as_str).collect();
        let report = site.json(&[&directories[..], &["--guesses", "5"]].concat());
        let stolen = &report["stolen"];
        assert_eq!(stolen["forgery"], entry.stolen_server_can_forge(), "{}: {stolen}", entry.name);
        assert_eq!(stolen["stopped"], Value::Null);
        let attempts = stolen["attempts"].as_array().expect("attempts");
        assert!(attempts.len() >= 4, "{stolen}");
        for attempt in attempts {
            let is_signed = attempt["method"].as_str().is_some_and(|method| method.contains("a stolen key"));
            let expected = if is_signed { "secure" } else { "bogus" };
            assert_eq!(attempt["status"], expected, "{}: {attempt}", entry.name);
        }
        let searches = stolen["searches"].as_array().expect("searches");
        if entry.name_hash == NameHash::Vrf {
            // The proofs list all names of the chain; the VRF key finds those of the word list.
            let in_chain = if entry.opt_out { NAMES.len() - 1 } else { NAMES.len() };
            assert_eq!(searches[0]["names"].as_array().map(Vec::len), Some(in_chain), "{stolen}");
            let searched = &searches[1];
            assert_eq!(searched["records"].as_u64(), Some(in_chain as u64), "{stolen}");
            assert!(searched["names"].as_array().is_some_and(|names| names.len() >= 4), "{searched}");
        } else {
            assert!(searches.is_empty(), "{stolen}");
        }
    }
}

#[test]
fn a_state_resumes_and_hashes_are_exported() {
    let nsec3 = MECHANISMS.iter().find(|entry| entry.name == "nsec3").expect("a mechanism");
    let site = site(nsec3);
    let (state, export) = (site.folder.path().join("state"), site.folder.path().join("hashes"));
    let words = site.folder.path().join("words");
    fs::write(&words, "www\nmail\n").expect("written");
    let with_state = ["--state", text(&state)];
    // The words are tested with the hashes of an incomplete chain, and again when it has more.
    let ended = site.run(&[&with_state[..], &["--max-queries", "7", "--words", text(&words)]].concat());
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(ended.stdout.contains("incomplete: the limit of 7 queries"), "{}", ended.stdout);
    let first = fs::read_to_string(&state).expect("a state");
    assert!(first.starts_with("nonesuch-enumerate 1\nzone keys.example.\n"), "{first}");
    let ended = site.run(&[&with_state[..], &["--no-crack"]].concat());
    assert_eq!(ended.status, 0, "{}", ended.text());
    // Offline, from the state alone.
    let offline = done([
        "enumerate",
        ORIGIN,
        "--state",
        text(&state),
        "--words",
        text(&words),
        "--export",
        "hashcat",
        "--export-file",
        text(&export),
    ]);
    assert!(offline.stdout.contains("www.keys.example. A RRSIG"), "{}", offline.stdout);
    assert!(offline.stdout.contains("3 names found, 8 unknown"), "{}", offline.stdout);
    let exported = fs::read_to_string(&export).expect("an export");
    assert_eq!(exported.lines().count(), 8);
    assert!(
        exported.lines().all(|line| line.len() == 32 + 17 && line.ends_with(":.keys.example::0")),
        "{exported}"
    );
    // The finished words are not tested again.
    let again = done(["enumerate", ORIGIN, "--state", text(&state), "--words", text(&words), "--json"]);
    let report: Value = serde_json::from_str(&again.stdout).expect("JSON");
    assert_eq!(report["crack"]["tested"], 0, "{report}");
    assert_eq!(names(&report).len(), 3);
    // A damaged state names its line.
    fs::write(&state, first.replace("zone", "zoo")).expect("written");
    let ended = site.run(&with_state);
    assert_eq!(ended.status, 2);
    assert!(ended.error().contains("line 2"), "{}", ended.error());
}

#[test]
fn names_below_found_names_need_depth() {
    let nsec3 = MECHANISMS.iter().find(|entry| entry.name == "nsec3").expect("a mechanism");
    let site = site(nsec3);
    let words = site.folder.path().join("words");
    fs::write(&words, "w\n*\n").expect("written");
    for (depth, expected) in [("1", false), ("2", true)] {
        let report = site.json(&["--words", text(&words), "--depth", depth]);
        assert_eq!(names(&report).contains(&"*.w.keys.example.".to_owned()), expected, "{report}");
    }
}

#[test]
fn what_cannot_start_is_refused_with_the_reason() {
    let refused = |arguments: &[&str], words: &str| {
        let ended = run(&mut nonesuch([&["enumerate"], arguments].concat()));
        assert_eq!(ended.status, 2, "{}", ended.text());
        assert!(ended.error().contains(words), "{}", ended.error());
    };
    let unused = common::free_address().to_string();
    let at = format!("@{unused}");
    refused(&[ORIGIN], "@SERVER");
    refused(&[ORIGIN, &unused], "write @ADDRESS");
    refused(&[ORIGIN, &at, "--rate", "0"], "queries per second");
    refused(&[ORIGIN, &at, "--mask", "?x"], "'?' must be followed by");
    refused(&[ORIGIN, &at, "--words", "/nonexistent/words"], "word list");
    refused(&[ORIGIN, &at, "--export", "hashcat"], "--export-file");
    refused(&[ORIGIN, &at, "--retries", "0", "--timeout", "0.2"], "keys.example. SOA");
    let nsec = site(&MECHANISMS[0]);
    let at = format!("@{}", nsec.server.address);
    refused(&["other.example.", &at], "not authoritative for other.example.");
    refused(&[ORIGIN, &at, "--stolen-server", "/nonexistent"], "cannot be read");
}

/// The records that hashcat accepts are those of its mode 8300.
#[test]
fn hashcat_reads_the_export() {
    if !is_installed("hashcat") {
        return;
    }
    let nsec3 = MECHANISMS.iter().find(|entry| entry.name == "nsec3").expect("a mechanism");
    let site = site(nsec3);
    let export = site.folder.path().join("hashes");
    let ended = site.run(&["--no-crack", "--export", "hashcat", "--export-file", text(&export)]);
    assert_eq!(ended.status, 0, "{}", ended.text());
    let mut hashcat = std::process::Command::new("hashcat");
    let ended = run(hashcat.args(["-m", "8300", "--show", "--potfile-path", "none"]).arg(&export));
    assert!(!ended.text().contains("No hashes loaded"), "{}", ended.text());
}
