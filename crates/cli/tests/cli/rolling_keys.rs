//! The steps of docs/rolling-keys.md. After each step, every record set that a resolver may have
//! cached must be valid with the current responses. Therefore the DNSKEY RRset of each version is
//! verified with all other records of the version before and after it, and with each DS RRset that
//! the parent may have had.

use crate::common;
use common::{
    Ended, KEYS_ORIGIN as ORIGIN, KEYS_ZONE, ask, done, events, folder, generate_key, nonesuch, peers, run,
    serve, serve_at, snapshot, text,
};
use nonesuch_lab::peers::{Peer, PeerServer};
use nonesuch_testing::require_peer;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// A zone with key rollovers: the zone file, the directory of the signing keys, and that of future
/// keys.
struct Rolled {
    folder: TempDir,
    serial: u32,
}

impl Rolled {
    fn new(algorithm: &str) -> Self {
        let rolled = Self { folder: folder(), serial: 0 };
        fs::create_dir(rolled.path("next")).expect("a directory");
        fs::create_dir(rolled.path("old")).expect("a directory");
        rolled.make("keys", algorithm, true);
        rolled.make("keys", algorithm, false);
        rolled.publish(&[]);
        rolled
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Generates a key in the directory `name`; returns the base name of its files.
    fn make(&self, name: &str, algorithm: &str, is_ksk: bool) -> String {
        generate_key(&self.path(name), ORIGIN, algorithm, if is_ksk { &["--ksk"] } else { &[] })
    }

    /// The only key of the zone with this role and algorithm.
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

    /// Verifies a zone, with DS records as trust anchor if they are given.
    fn verify(&self, zone: &str, anchor: Option<&str>) -> Ended {
        let (file, anchors) = (self.path("verified"), self.path("anchors"));
        fs::write(&file, zone).expect("a file");
        fs::write(&anchors, anchor.unwrap_or_default()).expect("a file");
        let anchor: &[&str] = if anchor.is_some() { &["--anchor", text(&anchors)] } else { &[] };
        run(&mut nonesuch([&["zone", "verify", "-o", ORIGIN, text(&file)][..], anchor].concat()))
    }

    /// The DS records that the parent should publish for the keys in `keys`, or for one of them.
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

/// The DNSKEY RRset of one version with its signatures, and all other records of another version.
fn mixed(keys: &str, data: &str) -> String {
    let keys = keys.lines().filter(|line| is_of_key_set(line));
    let data = data.lines().filter(|line| !is_of_key_set(line));
    data.chain(keys).flat_map(|line| [line, "\n"]).collect()
}

/// A resolver may have cached one part of the previous version and query the other part.
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
    // Without pre-publication, a cached key set would not verify the new version.
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

    // The DS records of the parent change while both keys sign.
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
    // Records of the new version verify with the old keys.
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
    assert!(refused.stderr.contains(&format!("{base}.key: ")), "{}", refused.stderr);
    snapshot::check("zone sign", "ZSK without its private key file", &refused.stderr.replace(&base, "KEY"));
    assert!(!Path::new(&format!("{}.signed", text(&zone))).exists());
}

/// A zone with a signed key set. The private file of its KSK is only in `offline`.
fn with_offline_key() -> (Rolled, String) {
    let mut rolled = Rolled::new("ecdsap256sha256");
    let ksk = rolled.key("KSK", "ECDSAP256SHA256");
    let (zone, keys, key_set) = (rolled.path("zone"), rolled.path("keys"), rolled.path("zone.keys"));
    let sign = ["zone", "sign", "-o", ORIGIN, "--only-keys", "--cds", "--keys", text(&keys), text(&zone)];
    done([&sign[..], &["-f", text(&key_set)]].concat());
    fs::copy(&key_set, &zone).expect("a key set");
    fs::create_dir(rolled.path("offline")).expect("a directory");
    rolled.take(&ksk, "keys", "offline");
    rolled.serial = 0;
    (rolled, ksk)
}

/// The RRSIG records over the apex RRset of this type.
fn signatures<'z>(zone: &'z str, covered: &str) -> Vec<&'z str> {
    let is_one = |line: &&str| {
        let mut fields = line.split_whitespace().skip(3);
        line.starts_with(ORIGIN) && fields.next() == Some("RRSIG") && fields.next() == Some(covered)
    };
    zone.lines().filter(is_one).collect()
}

#[test]
fn the_signature_of_an_offline_key_signing_key_stays() {
    let (mut rolled, ksk) = with_offline_key();
    let anchor = rolled.ds(&ksk, "offline");
    let key_set = fs::read_to_string(rolled.path("zone")).expect("a key set");
    for covered in ["DNSKEY", "CDS", "CDNSKEY"] {
        assert_eq!(signatures(&key_set, covered).len(), 1, "{covered}");
    }
    // With the public key file, without it, and again: the zone changes, and the key set stays.
    let public = format!("{ksk}.key");
    fs::copy(rolled.path("offline").join(&public), rolled.path("keys").join(&public)).expect("a copy");
    for step in 0..3 {
        if step == 1 {
            fs::remove_file(rolled.path("keys").join(&public)).expect("a file");
            fs::write(rolled.path("zone"), format!("{key_set}new.{ORIGIN} 60 A 192.0.2.9\n"))
                .expect("a zone");
        }
        let more: &[&str] = if step == 2 { &["--refresh", "1000000"] } else { &[] };
        let signed = rolled.sign(more);
        rolled.verify(&signed, Some(&anchor)).expect_done("from the parent's DS record");
        for covered in ["DNSKEY", "CDS", "CDNSKEY"] {
            assert_eq!(signatures(&signed, covered), signatures(&key_set, covered), "{covered}");
        }
    }
    // A compiled previous zone and a change set: only the apex and the changes are planned.
    let paths = ["keys", "signed", "image", "changes", "again"].map(|name| rolled.path(name));
    let [keys, signed, image, changes, again] = paths.each_ref().map(|path| text(path));
    done(["zone", "compile", signed, "-f", image]);
    fs::write(changes, format!("+ other.{ORIGIN} 60 IN A 192.0.2.10\n")).expect("a change set");
    done([
        "zone",
        "sign",
        "--keys",
        keys,
        "--previous",
        image,
        "--changes",
        changes,
        "-f",
        again,
        "--compiled",
    ]);
    let ended = done(["zone", "print", again]).stdout;
    assert_eq!(signatures(&ended, "DNSKEY"), signatures(&key_set, "DNSKEY"));
    rolled.verify(&ended, Some(&anchor)).expect_done("of a compiled zone");
}

#[test]
fn a_zone_signing_key_never_replaces_an_offline_key_signing_key() {
    let (rolled, ksk) = with_offline_key();
    let tag = ksk.rsplit('+').next().expect("a tag").trim_start_matches('0');
    let key_set = fs::read_to_string(rolled.path("zone")).expect("a key set");
    let (zone, keys, signed) = (rolled.path("zone"), rolled.path("keys"), rolled.path("signed"));
    let sign = |more: &[&str]| {
        let sign = ["zone", "sign", "-o", ORIGIN, "--keys", text(&keys), text(&zone), "-f", text(&signed)];
        run(&mut nonesuch([&sign[..], more].concat()))
    };
    let unsigned: String = key_set
        .lines()
        .filter(|line| line.split_whitespace().nth(3) != Some("RRSIG"))
        .flat_map(|line| [line, "\n"])
        .collect();
    let zsk = rolled.make("next", "ecdsap256sha256", false);
    let other = fs::read_to_string(rolled.path("next").join(format!("{zsk}.key"))).expect("a key file");
    for (what, text, more) in [
        ("no signature", unsigned.as_str(), &[][..]),
        ("another DNSKEY RRset", &format!("{key_set}{other}"), &[]),
        ("another TTL", &key_set, &["--dnskey-ttl", "77"]),
        ("an expired signature", &key_set, &["--now", "2100-01-01T00:00:00Z"]),
    ] {
        fs::write(&zone, text).expect("a zone");
        let refused = sign(more);
        assert_eq!(refused.status, 2, "{what}: {}", refused.text());
        assert!(refused.stderr.contains(&format!(" key {tag}")), "{what}: {}", refused.text());
        let case = format!("key set without its KSK: {what}");
        snapshot::check("zone sign", &case, &refused.stderr);
        assert!(!signed.exists(), "{what}");
    }
    // If the key set is signed, another KSK does not silently replace the KSK either.
    fs::write(&zone, &key_set).expect("a zone");
    rolled.make("next", "ecdsap256sha256", true);
    let next = rolled.path("next");
    let sign_keys = |more: &[&str]| {
        let sign = ["zone", "sign", "-o", ORIGIN, "--only-keys", "--keys", text(&next), text(&zone)];
        run(&mut nonesuch([&sign[..], &["-f", text(&signed)], more].concat()))
    };
    let refused = sign_keys(&[]);
    assert_eq!(refused.status, 2, "{}", refused.text());
    snapshot::check("zone sign", "--only-keys with another KSK", &refused.stderr);
    sign_keys(&["--allow-unsafe-transition"]).expect_done("an emergency");
    // Without the record of the KSK, the ZSK signs everything.
    let dropped = sign(&["--drop-foreign-dnskeys", "--dnskey-ttl", "60"]);
    assert_eq!(dropped.status, 0, "{}", dropped.text());
    // A resolver with the parent's DS record would reject this zone: its DNSKEY RRset is signed by
    // the ZSK.
    let broken = fs::read_to_string(&signed).expect("a zone");
    assert!(!broken.contains(" 257 3 13 "));
}

/// The step of a zone to another KSK.
const OTHER_KSK: &str = "transition to another KSK";
/// The step of a zone to a ZSK that was not published before.
const OTHER_ZSK: &str = "transition to another ZSK";

/// Signs the zone again and expects an error. Nothing is written.
#[track_caller]
fn refused(rolled: &Rolled, case: &str, more: &[&str]) {
    let (zone, keys, signed) = (rolled.path("zone"), rolled.path("keys"), rolled.path("signed"));
    let before = fs::read(&signed).expect("a signed zone");
    let sign =
        ["zone", "sign", "-o", ORIGIN, "--keys", text(&keys), text(&zone), "--previous", text(&signed)];
    let ended = run(&mut nonesuch([&sign[..], &["-f", text(&signed)], more].concat()));
    assert_eq!(ended.status, 2, "{}", ended.text());
    assert_eq!(fs::read(&signed).expect("a signed zone"), before);
    assert!(ended.stderr.contains("--allow-unsafe-transition"), "{}", ended.stderr);
    assert!(case == OTHER_KSK || ended.stderr.contains(&format!("{ORIGIN} SOA ")), "{}", ended.stderr);
    snapshot::check("zone sign", case, &ended.stderr);
}

#[test]
fn a_step_that_breaks_validators_needs_a_flag() {
    let mut rolled = Rolled::new("ecdsap256sha256");
    let first = rolled.sign(&[]);
    let old = rolled.key("KSK", "ECDSAP256SHA256");
    rolled.take(&old, "keys", "old");
    rolled.make("keys", "ecdsap256sha256", true);
    refused(&rolled, OTHER_KSK, &["--serial", "increment"]);
    // Double-DS: the parent already has the DS record of the new key.
    let double_ds = rolled.sign(&["--allow-unsafe-transition"]);
    let [before, after] = ["before", "after"].map(|name| rolled.path(name));
    fs::write(&before, &first).expect("a zone");
    fs::write(&after, &double_ds).expect("a zone");
    let step = run(&mut nonesuch(["zone", "diff", text(&before), text(&after)])).stdout;
    let faults: Vec<&str> = step.lines().filter(|line| line.starts_with("; unsafe ")).collect();
    assert_eq!(faults.len(), 1, "{step}");
    snapshot::check("zone diff", OTHER_KSK, faults[0]);
    // A ZSK that was not published before.
    let old = rolled.key("ZSK", "ECDSAP256SHA256");
    rolled.take(&old, "keys", "old");
    rolled.make("keys", "ecdsap256sha256", false);
    refused(&rolled, OTHER_ZSK, &[]);
    // An expiration in the past is not a valid period.
    for more in [&["--only-keys"][..], &["--denial", "nsec"]] {
        let (zone, keys) = (rolled.path("zone"), rolled.path("keys"));
        let sign = ["zone", "sign", "-o", ORIGIN, "--keys", text(&keys), text(&zone), "--inception"];
        let times = ["20200101000000", "--expiration", "20210101000000"];
        let ended = run(&mut nonesuch([&sign[..], &times, more].concat()));
        assert_eq!(ended.status, 2, "{}", ended.text());
        snapshot::check("zone sign", "expiration in the past", &ended.stderr);
    }
}

#[test]
fn the_chain_stays_of_its_kind_where_nothing_is_said() {
    let rolled = Rolled::new("ecdsap256sha256");
    let [zone, keys, signed, again] = ["zone", "keys", "signed", "again"].map(|name| rolled.path(name));
    let sign = |from: &Path, to: &Path, more: &[&str]| {
        let sign = ["zone", "sign", "-o", ORIGIN, "--keys", text(&keys), text(from), "-f", text(to)];
        done([&sign[..], more].concat());
        let zone = done(["zone", "print", text(to)]).stdout;
        let parameters = zone.lines().find(|line| line.contains("\tNSEC3PARAM\t")).map(str::to_owned);
        (parameters.unwrap_or_default(), count(&zone, "NSEC"))
    };
    let salted = ["--denial", "nsec3-opt-out", "--nsec3-salt", "AB", "--nsec3-iterations", "3"];
    for denial in [&salted[..], &["--denial", "nsec3"], &["--denial", "nsec"]] {
        let before = sign(&zone, &signed, denial);
        assert_eq!(sign(&signed, &again, &[]), before, "{denial:?}");
        assert_eq!(sign(&signed, &again, &["--compiled"]), before, "{denial:?}");
    }
    assert!(sign(&signed, &again, &["--denial", "nsec3"]).0.contains("1 0 0 -"));
    let sign = ["zone", "sign", "-o", ORIGIN, "--keys", text(&keys), text(&signed), "-f", text(&again)];
    let other = done([&sign[..], &["--denial", "nsec3"]].concat()).stderr;
    assert_eq!(events(&other, "serial-not-changed", &[]).len(), 1, "{other}");
    snapshot::check("zone sign", "another denial chain with the same serial", &other);
    let raised = done([&sign[..], &["--denial", "nsec3", "--serial", "increment"]].concat()).stderr;
    assert!(events(&raised, "serial-not-changed", &[]).is_empty(), "{raised}");
}

/// A rejected step would be bogus for a resolver that has cached the DNSKEY RRset of the previous
/// version or the parent's DS record.
#[test]
fn unbound_takes_refused_steps_for_bogus() {
    require_peer!("unbound");
    let mut rolled = Rolled::new("ecdsap256sha256");
    let anchor = peers::anchor(&rolled.ds(&rolled.key("KSK", "ECDSAP256SHA256"), "keys"));
    rolled.sign(&[]);
    let (home, other) = (folder(), folder());
    let server = serve(&rolled.path("signed"), &["--origin", ORIGIN]);
    let address = server.address;
    let unbound = peers::start(Peer::Unbound, &peers::resolver(home.path(), &anchor, address));
    let answer = |resolver: &PeerServer, name: &str| {
        let name = if name == "@" { ORIGIN.to_owned() } else { format!("{name}.{ORIGIN}") };
        let header = ask(resolver.address, &name, 1, Duration::from_secs(10)).expect("an answer");
        (header.rcode, header.authenticated)
    };
    assert_eq!(answer(&unbound, "ns"), (0, true));
    drop(server);
    // The cache contains the DNSKEY RRset and not the other names.
    let old = rolled.key("ZSK", "ECDSAP256SHA256");
    rolled.take(&old, "keys", "old");
    rolled.make("keys", "ecdsap256sha256", false);
    refused(&rolled, OTHER_ZSK, &[]);
    rolled.sign(&["--allow-unsafe-transition"]);
    let server = serve_at(&rolled.path("signed"), &address.to_string(), &["--origin", ORIGIN]);
    assert_eq!(answer(&unbound, "@"), (2, false), "the previous DNSKEY RRset is cached");
    drop(server);
    let old = rolled.key("KSK", "ECDSAP256SHA256");
    rolled.take(&old, "keys", "old");
    rolled.make("keys", "ecdsap256sha256", true);
    refused(&rolled, OTHER_KSK, &[]);
    rolled.sign(&["--allow-unsafe-transition"]);
    let server = serve_at(&rolled.path("signed"), &address.to_string(), &["--origin", ORIGIN]);
    let fresh = peers::start(Peer::Unbound, &peers::resolver(other.path(), &anchor, server.address));
    assert_eq!(answer(&fresh, "ns"), (2, false), "the parent has the DS record of the previous key");
}
