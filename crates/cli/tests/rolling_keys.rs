//! docs/rolling-keys.md, step by step: after each step whatever a resolver's cache still holds must go with what it is answered. So
//! the DNSKEY RRset of each version is verified with all other records of the version beside it, and from each DS RRset that the
//! parent may have had.

mod common;

use common::{Ended, KEYS_ORIGIN as ORIGIN, KEYS_ZONE, done, folder, generate_key, nonesuch, run, text};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A zone whose keys are rolled: the zone file, the folder of keys that sign it, that of keys to come.
struct Rolled {
    folder: TempDir,
    serial: u32,
}

impl Rolled {
    fn new(algorithm: &str) -> Self {
        let rolled = Self { folder: folder(), serial: 0 };
        fs::create_dir(rolled.path("next")).expect("a folder");
        fs::create_dir(rolled.path("old")).expect("a folder");
        rolled.make("keys", algorithm, true);
        rolled.make("keys", algorithm, false);
        rolled.publish(&[]);
        rolled
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Makes a key in the folder `name`; returns the base name of its files.
    fn make(&self, name: &str, algorithm: &str, is_ksk: bool) -> String {
        generate_key(&self.path(name), ORIGIN, algorithm, if is_ksk { &["--ksk"] } else { &[] })
    }

    /// The one key of the zone that has this role and this algorithm.
    fn key(&self, role: &str, algorithm: &str) -> String {
        let listing = done(["key", "list", "--dir", text(&self.path("keys")), "--json"]).stdout;
        let listing: serde_json::Value = serde_json::from_str(&listing).expect("JSON");
        let keys = listing["keys"].as_array().expect("keys");
        let fits = |key: &&serde_json::Value| key["role"] == role && key["algorithm"] == algorithm;
        let mut fitting = keys.iter().filter(fits);
        let key = fitting.next().expect("a key");
        assert!(fitting.next().is_none(), "{listing}");
        key["base_name"].as_str().expect("a name").to_owned()
    }

    /// Moves the two files of a key.
    fn take(&self, base: &str, from: &str, to: &str) {
        for suffix in ["key", "private"] {
            let name = format!("{base}.{suffix}");
            fs::rename(self.path(from).join(&name), self.path(to).join(&name)).expect("a file to move");
        }
    }

    /// Writes the zone file, with the DNSKEY records of keys that do not sign.
    fn publish(&self, others: &[(&str, &str)]) {
        let keys = others.iter().map(|(folder, base)| {
            fs::read_to_string(self.path(folder).join(format!("{base}.key"))).expect("a key file")
        });
        fs::write(self.path("zone"), keys.fold(KEYS_ZONE.to_owned(), |zone, key| zone + &key))
            .expect("a file");
    }

    /// Signs the zone again; returns the signed version.
    #[track_caller]
    fn sign(&mut self, more: &[&str]) -> String {
        let (zone, keys, signed) = (self.path("zone"), self.path("keys"), self.path("signed"));
        let previous: &[&str] = if self.serial == 0 { &[] } else { &["--previous", text(&signed)] };
        self.serial += 1;
        let sign =
            ["zone", "sign", "-o", ORIGIN, "--serial", "increment", "--keys", text(&keys), text(&zone)];
        done([&sign[..], &["-f", text(&signed)], previous, more].concat());
        let signed = fs::read_to_string(signed).expect("a signed zone");
        self.verify(&signed, None).expect_done("a version by itself");
        signed
    }

    /// Verifies a zone, from DS records where there are some.
    fn verify(&self, zone: &str, anchor: Option<&str>) -> Ended {
        let (file, anchors) = (self.path("verified"), self.path("anchors"));
        fs::write(&file, zone).expect("a file");
        fs::write(&anchors, anchor.unwrap_or_default()).expect("a file");
        let anchor: &[&str] = if anchor.is_some() { &["--anchor", text(&anchors)] } else { &[] };
        run(&mut nonesuch([&["zone", "verify", "-o", ORIGIN, text(&file)][..], anchor].concat()))
    }

    /// What the parent is to publish for the keys in `keys`, or for one of them.
    fn ds(&self, base: &str, folder: &str) -> String {
        done(["key", "ds", text(&self.path(folder).join(format!("{base}.key")))]).stdout
    }
}

fn is_of_key_set(line: &str) -> bool {
    let mut fields = line.split_whitespace().skip(3);
    match fields.next() {
        Some("DNSKEY") => true,
        Some("RRSIG") => fields.next() == Some("DNSKEY"),
        _ => false,
    }
}

/// The DNSKEY RRset of one version, with its signatures, and all else of another.
fn mixed(keys: &str, data: &str) -> String {
    let keys = keys.lines().filter(|line| is_of_key_set(line));
    let data = data.lines().filter(|line| !is_of_key_set(line));
    data.chain(keys).flat_map(|line| [line, "\n"]).collect()
}

/// A cache may hold the one part of the version before, and ask for the other.
#[track_caller]
fn go_together(rolled: &Rolled, before: &str, after: &str, anchors: &[&str]) {
    for zone in [mixed(before, after), mixed(after, before)] {
        for anchor in anchors {
            rolled.verify(&zone, Some(anchor)).expect_done("records of two versions");
        }
    }
}

fn count(zone: &str, kind: &str) -> usize {
    zone.lines().filter(|line| line.split_whitespace().nth(3) == Some(kind)).count()
}

#[test]
fn a_zone_signing_key_is_published_before_it_signs() {
    let mut rolled = Rolled::new("ecdsap256sha256");
    let anchor = rolled.ds(&rolled.key("KSK", "ECDSAP256SHA256"), "keys");
    let old = rolled.key("ZSK", "ECDSAP256SHA256");
    let first = rolled.sign(&[]);

    let new = rolled.make("next", "ecdsap256sha256", false);
    rolled.publish(&[("next", &new)]);
    let published = rolled.sign(&[]);
    assert_eq!((count(&first, "DNSKEY"), count(&published, "DNSKEY")), (2, 3));
    go_together(&rolled, &first, &published, &[&anchor]);

    rolled.take(&old, "keys", "old");
    rolled.take(&new, "next", "keys");
    rolled.publish(&[("old", &old)]);
    let changed = rolled.sign(&[]);
    assert_eq!(count(&changed, "RRSIG"), count(&published, "RRSIG"));
    go_together(&rolled, &published, &changed, &[&anchor]);
    // Had nothing been published, a cached key set would not do.
    assert_eq!(rolled.verify(&mixed(&first, &changed), None).status, 1);

    rolled.publish(&[]);
    let last = rolled.sign(&[]);
    assert_eq!(count(&last, "DNSKEY"), 2);
    go_together(&rolled, &changed, &last, &[&anchor]);
}

#[test]
fn a_key_signing_key_signs_beside_the_old_one_until_the_parent_has_it() {
    let mut rolled = Rolled::new("ecdsap256sha256");
    let old = rolled.key("KSK", "ECDSAP256SHA256");
    let old_ds = rolled.ds(&old, "keys");
    let first = rolled.sign(&["--cds"]);

    let new = rolled.make("keys", "ecdsap256sha256", true);
    let both = rolled.sign(&["--cds"]);
    assert_eq!((count(&first, "CDS"), count(&both, "CDS")), (1, 2));
    go_together(&rolled, &first, &both, &[&old_ds]);

    // The parent's DS records change while both keys sign.
    let new_ds = rolled.ds(&new, "keys");
    let both_ds = format!("{old_ds}{new_ds}");
    for anchor in [&old_ds, &both_ds, &new_ds] {
        rolled.verify(&both, Some(anchor)).expect_done("both keys sign");
    }
    assert_eq!(rolled.verify(&first, Some(&new_ds)).status, 1);

    rolled.take(&old, "keys", "old");
    let last = rolled.sign(&["--cds"]);
    assert_eq!((count(&last, "DNSKEY"), count(&last, "CDS")), (2, 1));
    go_together(&rolled, &both, &last, &[&both_ds, &new_ds]);
    assert_eq!(rolled.verify(&last, Some(&old_ds)).status, 1);
}

#[test]
fn an_algorithm_is_rolled_with_both_key_sets_signing_everything() {
    let mut rolled = Rolled::new("ecdsap256sha256");
    let old = ["KSK", "ZSK"].map(|role| rolled.key(role, "ECDSAP256SHA256"));
    let old_ds = rolled.ds(&old[0], "keys");
    let first = rolled.sign(&[]);

    let new_ksk = rolled.make("keys", "ed25519", true);
    rolled.make("keys", "ed25519", false);
    let new_ds = rolled.ds(&new_ksk, "keys");
    let both = rolled.sign(&[]);
    assert_eq!(count(&both, "RRSIG"), 2 * count(&first, "RRSIG"));
    for anchor in [&old_ds, &new_ds] {
        rolled.verify(&both, Some(anchor)).expect_done("both algorithms sign everything");
    }
    // Records of the new version go with the old keys.
    rolled.verify(&mixed(&first, &both), Some(&old_ds)).expect_done("old keys");

    for base in &old {
        rolled.take(base, "keys", "old");
    }
    let last = rolled.sign(&[]);
    assert_eq!(count(&last, "RRSIG"), count(&first, "RRSIG"));
    rolled.verify(&mixed(&last, &both), Some(&new_ds)).expect_done("new keys");
}

#[test]
fn a_key_whose_private_half_is_elsewhere_is_refused_with_the_way_to_publish_it() {
    let mut rolled = Rolled::new("ed25519");
    rolled.sign(&[]);
    let base = rolled.make("keys", "ed25519", false);
    fs::remove_file(rolled.path("keys").join(format!("{base}.private"))).expect("a file");
    let (zone, keys) = (rolled.path("zone"), rolled.path("keys"));
    let refused = run(&mut nonesuch(["zone", "sign", "-o", ORIGIN, "--keys", text(&keys), text(&zone)]));
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("stands in the zone file, as DNSKEY record"), "{}", refused.stderr);
    assert!(!Path::new(&format!("{}.signed", text(&zone))).exists());
}
