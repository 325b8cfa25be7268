//! Timing metadata in key files: the keys that sign a zone at a given time, compared with
//! dnssec-signzone on the same directory, and the actions of a server when such a time passes.

use crate::common;
use common::configured::{Configured, ask, configure};
use common::{KEYS_ORIGIN as ORIGIN, KEYS_ZONE, done, generate_key, nonesuch, prepared, run, serve, text};
use common::{replace_word, snapshot};
use nonesuch_crypto::key_tag;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Message;
use nonesuch_proto::timestamp;
use nonesuch_testing::require_peer;
use nonesuch_zone::{Contents, Rrset, read};
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// 2026-11-22T19:00:00Z.
const NOW: u32 = 1_795_374_000;
const DAY: u32 = 86_400;
/// Time limit for a server to act.
const LIMIT: Duration = Duration::from_secs(15);

fn now() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32
}

fn contents(path: &Path) -> Contents {
    read::read_text(&fs::read(path).unwrap(), path, Some(&ORIGIN.parse().unwrap())).unwrap().contents
}

/// RDATA of an RRset at the apex.
fn at_apex(zone: &Contents, rtype: Rtype) -> BTreeSet<Vec<u8>> {
    zone.apex_rrset(rtype).into_iter().flat_map(Rrset::rdatas).map(<[u8]>::to_vec).collect()
}

/// Key tags of the signatures over one type in the whole zone.
fn signers(zone: &Contents, rtype: Rtype) -> BTreeSet<u16> {
    let sets = zone.nodes().flat_map(|node| node.signatures(rtype).into_iter().flat_map(Rrset::rdatas));
    sets.filter_map(Rrsig::parse).map(|fields| fields.tag).collect()
}

/// Adds times to the private file of a key.
fn set_times(dir: &Path, base: &str, times: &[(&str, u32)]) {
    let path = dir.join(format!("{base}.private"));
    let text = fs::read_to_string(&path).unwrap();
    let is_other = |line: &&str| !times.iter().any(|(event, _)| line.starts_with(&format!("{event}: ")));
    let mut lines: Vec<String> = text.lines().filter(is_other).map(str::to_owned).collect();
    lines.extend(times.iter().map(|(event, time)| {
        let mut digits = Vec::new();
        timestamp::push(*time, &mut digits);
        format!("{event}: {}", String::from_utf8(digits).unwrap())
    }));
    fs::write(&path, lines.join("\n") + "\n").unwrap();
}

fn tag(base: &str) -> u16 {
    base.rsplit('+').next().unwrap().parse().unwrap()
}

/// A directory with a KSK and a ZSK in `keys`, and the base names of their files.
fn with_keys() -> (tempfile::TempDir, [String; 2]) {
    let folder = prepared();
    let keys = folder.path().join("keys");
    let bases = [&["--ksk"][..], &[]].map(|more| generate_key(&keys, ORIGIN, "ed25519", more));
    (folder, bases)
}

fn key(dir: &Path) -> String {
    generate_key(&dir.join("keys"), ORIGIN, "ed25519", &[])
}

/// Signs the zone in `dir` at `now`.
#[track_caller]
fn sign(dir: &Path, now: u32, more: &str) -> Contents {
    let command = format!("zone sign zone -o {ORIGIN} --keys keys -f signed --now {now} {more}");
    run(nonesuch(command.split_whitespace()).current_dir(dir)).expect_done(&command);
    let command = format!("zone verify signed --now {now}");
    run(nonesuch(command.split_whitespace()).current_dir(dir)).expect_done(&command);
    contents(&dir.join("signed"))
}

#[test]
fn keys_sign_between_activation_and_inactivation_alone() {
    let (folder, [ksk, zsk]) = with_keys();
    let dir = folder.path();
    let (keys, next) = (dir.join("keys"), key(dir));
    set_times(&keys, &zsk, &[("Inactive", NOW + DAY), ("Delete", NOW + 2 * DAY)]);
    set_times(&keys, &next, &[("Publish", NOW), ("Activate", NOW + DAY)]);
    let [ksk, zsk, next] = [&ksk, &zsk, &next].map(|base| tag(base));
    for (now, published, signer) in [
        (NOW - 1, 2, zsk),
        (NOW, 3, zsk),
        (NOW + DAY - 1, 3, zsk),
        (NOW + DAY, 3, next),
        (NOW + 2 * DAY, 2, next),
    ] {
        let zone = sign(dir, now, "--denial nsec3");
        assert_eq!(at_apex(&zone, Rtype::DNSKEY).len(), published, "{now}");
        for rtype in [Rtype::SOA, Rtype::A, Rtype::TXT, Rtype::NSEC3] {
            assert_eq!(signers(&zone, rtype), [signer].into(), "{now} {rtype}");
        }
        assert_eq!(signers(&zone, Rtype::DNSKEY), [ksk].into(), "{now}");
    }
    let zone = sign(dir, NOW - 1, "--ignore-key-times");
    assert_eq!(signers(&zone, Rtype::SOA), [zsk, next].into());
}

/// Signatures of an inactive key are removed when its successor signs. DNSKEY records of deleted
/// keys are removed from signed inputs.
#[test]
fn signing_again_follows_the_times() {
    let (folder, [_, zsk]) = with_keys();
    let dir = folder.path();
    let (keys, next) = (dir.join("keys"), key(dir));
    set_times(&keys, &zsk, &[("Inactive", NOW + DAY), ("Delete", NOW + 2 * DAY)]);
    set_times(&keys, &next, &[("Publish", NOW), ("Activate", NOW + DAY)]);
    for (day, signer, published) in [(0, &zsk, 3), (1, &next, 3), (2, &next, 2)] {
        let zone = sign(dir, NOW + day * DAY, "--previous signed --serial increment");
        assert_eq!(signers(&zone, Rtype::A), [tag(signer)].into(), "{day}");
        assert_eq!(at_apex(&zone, Rtype::DNSKEY).len(), published, "{day}");
    }
    fs::rename(dir.join("signed"), dir.join("zone")).unwrap();
    set_times(&keys, &next, &[("Inactive", NOW + 4 * DAY), ("Delete", NOW + 5 * DAY)]);
    let last = key(dir);
    let zone = sign(dir, NOW + 5 * DAY, "");
    assert_eq!(signers(&zone, Rtype::A), [tag(&last)].into());
    assert_eq!(at_apex(&zone, Rtype::DNSKEY).len(), 2);
}

/// A signature of an inactive KSK is not copied from the input.
#[test]
fn an_inactive_key_signing_key_leaves_no_signature() {
    let (folder, [ksk, _]) = with_keys();
    let dir = folder.path();
    let next = generate_key(&dir.join("keys"), ORIGIN, "ed25519", &["--ksk"]);
    set_times(&dir.join("keys"), &ksk, &[("Inactive", NOW + DAY)]);
    assert_eq!(signers(&sign(dir, NOW, ""), Rtype::DNSKEY), [tag(&ksk), tag(&next)].into());
    let zone = sign(dir, NOW + DAY, "--previous signed");
    assert_eq!(signers(&zone, Rtype::DNSKEY), [tag(&next)].into());
    assert_eq!(at_apex(&zone, Rtype::DNSKEY).len(), 3);
}

#[test]
fn revoked_keys_sign_the_dnskey_rrset_with_the_revoke_flag() {
    let (folder, [ksk, zsk]) = with_keys();
    let dir = folder.path();
    generate_key(&dir.join("keys"), ORIGIN, "ed25519", &["--ksk"]);
    set_times(&dir.join("keys"), &ksk, &[("Revoke", NOW), ("Delete", NOW + 30 * DAY)]);
    let (before, after) = (sign(dir, NOW - 1, "--cds"), sign(dir, NOW, "--cds"));
    let revoked: Vec<Vec<u8>> =
        at_apex(&after, Rtype::DNSKEY).into_iter().filter(|rdata| rdata[..2] == [1, 0x81]).collect();
    assert_eq!(revoked.len(), 1);
    assert!(signers(&after, Rtype::DNSKEY).contains(&key_tag(&revoked[0])));
    assert_eq!((signers(&after, Rtype::DNSKEY).len(), signers(&after, Rtype::SOA)), (2, [tag(&zsk)].into()));
    assert_eq!(at_apex(&before, Rtype::CDS).len(), 2);
    assert_eq!(at_apex(&after, Rtype::CDS).len(), 1, "the parent drops the DS record of a revoked key");
    assert_eq!(at_apex(&sign(dir, NOW + 30 * DAY, ""), Rtype::DNSKEY).len(), 2);
    // If the zone was signed in place, it contains the revoked DNSKEY, which no key file contains.
    let [signed, zone] = ["signed", "zone"].map(|name| dir.join(name));
    fs::copy(&zone, dir.join("unsigned")).unwrap();
    sign(dir, NOW, "");
    fs::rename(&signed, &zone).unwrap();
    assert_eq!(at_apex(&sign(dir, NOW + 30 * DAY, ""), Rtype::DNSKEY).len(), 2);
    fs::rename(dir.join("unsigned"), &zone).unwrap();
    // In a zone that is already signed, the revoked DNSKEY replaces the other.
    sign(dir, NOW - 1, "");
    fs::rename(dir.join("signed"), dir.join("zone")).unwrap();
    assert_eq!(at_apex(&sign(dir, NOW, ""), Rtype::DNSKEY), at_apex(&after, Rtype::DNSKEY));
}

#[test]
fn cds_records_are_published_between_their_times() {
    let (folder, [ksk, _]) = with_keys();
    let dir = folder.path();
    set_times(&dir.join("keys"), &ksk, &[("SyncPublish", NOW), ("SyncDelete", NOW + DAY)]);
    let signed_again = |file: &str, now: u32, more: &str, count: usize| {
        let command = format!("zone sign {file} -o {ORIGIN} --keys keys -f again --now {now} {more}");
        run(nonesuch(command.split_whitespace()).current_dir(dir)).expect_done(&command);
        let zone = contents(&dir.join("again"));
        for rtype in [Rtype::CDS, Rtype::CDNSKEY] {
            assert_eq!(at_apex(&zone, rtype).len(), count, "{command} {rtype}");
        }
    };
    for more in ["", "--cds"] {
        signed_again("zone", NOW - 1, more, 0);
        signed_again("zone", NOW, more, 1);
        signed_again("zone", NOW + DAY, more, 0);
        // The zone already contains the records.
        sign(dir, NOW, "");
        signed_again("signed", NOW, more, 1);
        signed_again("signed", NOW + DAY, more, 0);
    }
}

#[test]
fn the_error_names_the_remedy_where_no_key_is_active() {
    let (folder, [ksk, zsk]) = with_keys();
    let dir = folder.path();
    let keys = dir.join("keys");
    let command = format!("zone sign zone -o {ORIGIN} --keys keys -f signed --now {NOW}");
    let refused = || {
        let ended = run(nonesuch(command.split_whitespace()).current_dir(dir));
        assert_eq!(ended.status, 2, "{}", ended.text());
        assert!(!dir.join("signed").exists());
        for remedy in ["dnssec-settime", "nonesuch key generate", "--ignore-key-times"] {
            assert!(ended.stderr.contains(remedy), "{}", ended.stderr);
        }
        ended.stderr.replace(&ksk, "KSK").replace(&zsk, "ZSK")
    };
    set_times(&keys, &zsk, &[("Inactive", NOW)]);
    let error = replace_word(&refused(), &tag(&zsk).to_string(), "ZSK");
    snapshot::check("zone sign", "times with an inactive ZSK", &error);
    set_times(&keys, &ksk, &[("Publish", NOW), ("Activate", NOW + DAY)]);
    snapshot::check("zone sign", "times without an active key", &refused());
    set_times(&keys, &zsk, &[("Inactive", NOW + DAY)]);
    let error = replace_word(&refused(), &tag(&ksk).to_string(), "KSK");
    snapshot::check("zone sign", "times with a KSK that becomes active later", &error);
    set_times(&keys, &ksk, &[("Activate", NOW)]);
    sign(dir, NOW, "");
}

#[test]
fn a_list_of_keys_has_the_state_of_each_and_its_next_event() {
    let (folder, [ksk, zsk]) = with_keys();
    let dir = folder.path();
    let (keys, next) = (dir.join("keys"), key(dir));
    set_times(&keys, &zsk, &[("Inactive", NOW + DAY), ("Delete", NOW + 2 * DAY)]);
    set_times(&keys, &next, &[("Publish", NOW), ("Activate", NOW + DAY)]);
    let list = |now: u32, more: &[&str]| {
        let now = now.to_string();
        done([&["key", "list", "--dir", text(&keys), "--now", &now][..], more].concat()).stdout
    };
    let shown = list(NOW, &[]);
    for (base, state, event) in [
        (&ksk, "active", "–"),
        (&zsk, "active", "Inactive 2026-11-23T19:00:00Z"),
        (&next, "published", "Activate 2026-11-23T19:00:00Z"),
    ] {
        let line = shown.lines().find(|line| line.contains(base.as_str())).unwrap();
        assert!(line.contains(state) && line.contains(event), "{shown}");
    }
    for (now, states) in [
        (NOW - 1, ["active", "active", "future"]),
        (NOW + DAY, ["active", "inactive", "active"]),
        (NOW + 2 * DAY, ["active", "deleted", "active"]),
    ] {
        let listed: serde_json::Value = serde_json::from_str(&list(now, &["--json"])).unwrap();
        for (base, state) in [&ksk, &zsk, &next].into_iter().zip(states) {
            let of = |key: &&serde_json::Value| key["base_name"] == **base;
            let key = listed["keys"].as_array().unwrap().iter().find(of).unwrap();
            assert_eq!(key["state"], state, "{now} {key}");
            assert_eq!(key["signs"] == "–", state != "active", "{now} {key}");
        }
    }
    assert!(!list(NOW, &["--ignore-key-times"]).contains("published"));
}

/// The key set that is signed on the machine with the KSK, for a server that signs the other
/// records.
#[test]
fn key_sets_follow_the_times() {
    let (folder, [ksk, _]) = with_keys();
    let dir = folder.path();
    let (keys, next) = (dir.join("keys"), generate_key(&dir.join("keys"), ORIGIN, "ed25519", &["--ksk"]));
    set_times(&keys, &ksk, &[("Inactive", NOW + DAY), ("Delete", NOW + 2 * DAY)]);
    set_times(&keys, &next, &[("Activate", NOW), ("SyncPublish", NOW)]);
    for (now, signing, published, cds) in [
        (NOW - 1, vec![&ksk], 3, 0),
        (NOW, vec![&ksk, &next], 3, 1),
        (NOW + DAY, vec![&next], 3, 1),
        (NOW + 2 * DAY, vec![&next], 2, 1),
    ] {
        let command = format!("zone sign zone -o {ORIGIN} --keys keys --only-keys -f set --now {now}");
        run(nonesuch(command.split_whitespace()).current_dir(dir)).expect_done(&command);
        let set = contents(&dir.join("set"));
        assert_eq!(signers(&set, Rtype::DNSKEY), signing.into_iter().map(|base| tag(base)).collect());
        assert_eq!(
            (at_apex(&set, Rtype::DNSKEY).len(), at_apex(&set, Rtype::CDS).len()),
            (published, cds),
            "{now}"
        );
    }
}

/// All keys in one directory: `dnssec-keygen` generates them, and the test compares the signatures
/// with those of `dnssec-signzone -S`.
#[test]
fn bind_signs_the_same_directory_with_the_same_keys() {
    require_peer!("dnssec-keygen", "dnssec-signzone");
    let folder = common::folder();
    let dir = folder.path();
    let zone = KEYS_ZONE.replace("sub DS", "sub 60 DS");
    fs::write(dir.join("zone"), &zone).unwrap();
    fs::create_dir(dir.join("keys")).unwrap();
    let cases: [&[&str]; 4] = [
        // Each step of a ZSK rollover by pre-publication, with past and future keys in the
        // directory.
        &["-f KSK", "", "-A +1d", "-P +1d -A +2d", "-P -9d -A -8d -I -1d", "-P -9d -A -8d -I -2d -D -1d"],
        &["-f KSK", "-f KSK -P -9d -A -9d -R -1d", "-f KSK -P -9d -A -9d -I -1d", "-f KSK -A +1d", ""],
        &[
            "-f KSK -P sync -1d",
            "-f KSK -P sync +1d",
            "-f KSK -P sync -3d -D sync -1d",
            "-f KSK -D sync +1d",
            "",
        ],
        &[
            "-f KSK -P -9d -A -9d -R -3d -D -1d",
            "-f KSK -P -9d -A -9d -R -3d -I -1d",
            "-f KSK -P sync -1d -A +1d",
            "-f KSK -P sync -1d",
            "",
        ],
    ];
    for keys in cases {
        fs::remove_dir_all(dir.join("keys")).unwrap();
        fs::create_dir(dir.join("keys")).unwrap();
        for options in keys {
            let options = options.split_whitespace();
            let mut keygen = Command::new("dnssec-keygen");
            keygen.args(["-q", "-K", "keys", "-a", "ED25519"]).args(options).arg(ORIGIN).current_dir(dir);
            run(&mut keygen).expect_done("dnssec-keygen");
        }
        let mut signzone = Command::new("dnssec-signzone");
        signzone.args(["-q", "-S", "-x", "-K", "keys", "-O", "full", "-o", ORIGIN, "-f", "theirs", "zone"]);
        run(signzone.current_dir(dir)).expect_done("dnssec-signzone");
        let theirs = contents(&dir.join("theirs"));
        let ours = sign(dir, now(), "");
        for rtype in [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY] {
            assert_eq!(at_apex(&ours, rtype), at_apex(&theirs, rtype), "{keys:?} {rtype}");
        }
        for rtype in [Rtype::DNSKEY, Rtype::SOA, Rtype::A, Rtype::TXT, Rtype::NSEC] {
            assert_eq!(signers(&ours, rtype), signers(&theirs, rtype), "{keys:?} {rtype}");
        }
    }
}

/// Key tags of the signatures over the SOA RRset from a server.
fn served_signers(server: SocketAddr) -> BTreeSet<u16> {
    served(server, Rtype::SOA).1
}

fn wait_for_signer(server: SocketAddr, base: &str) {
    let begun = Instant::now();
    while served_signers(server) != [tag(base)].into() {
        assert!(begun.elapsed() < LIMIT, "{:?}", served_signers(server));
        std::thread::yield_now();
    }
}

/// Types and RDATA in responses to queries of `rtype`, and key tags of the signatures.
fn served(server: SocketAddr, rtype: Rtype) -> (BTreeSet<Vec<u8>>, BTreeSet<u16>) {
    let message: Message = ask(server, ORIGIN, rtype);
    let records = message.records.iter().filter(|record| record.rtype == rtype);
    let signatures = message.records.iter().filter(|record| record.rtype == Rtype::RRSIG);
    let tags = signatures.filter_map(|record| Rrsig::parse(&record.rdata)).map(|fields| fields.tag);
    (records.map(|record| record.rdata.clone()).collect(), tags.collect())
}

#[test]
fn an_online_signer_publishes_what_the_times_ask_for() {
    let (folder, [ksk, zsk]) = with_keys();
    let dir = folder.path();
    let keys = dir.join("keys");
    let old = generate_key(&keys, ORIGIN, "ed25519", &["--ksk"]);
    let [next, deleted, future] = [key(dir), key(dir), key(dir)];
    let (past, later) = (now() - DAY, now() + 365 * DAY);
    set_times(&keys, &ksk, &[("SyncPublish", past)]);
    set_times(&keys, &old, &[("Revoke", past)]);
    set_times(&keys, &next, &[("Activate", later)]);
    set_times(&keys, &deleted, &[("Delete", past)]);
    set_times(&keys, &future, &[("Publish", later), ("Activate", later)]);
    let running = serve(&dir.join("zone"), &["-o", ORIGIN, "--denial", "compact", "--keys", text(&keys)]);
    let (dnskeys, signers) = served(running.address, Rtype::DNSKEY);
    let revoked: Vec<&Vec<u8>> = dnskeys.iter().filter(|rdata| rdata[..2] == [1, 0x81]).collect();
    let published: BTreeSet<u16> = dnskeys.iter().map(|rdata| key_tag(rdata)).collect();
    assert_eq!(revoked.len(), 1);
    assert_eq!(published, [tag(&ksk), tag(&zsk), tag(&next), key_tag(revoked[0])].into());
    assert_eq!(signers, [tag(&ksk), key_tag(revoked[0])].into());
    assert_eq!(served_signers(running.address), [tag(&zsk)].into());
    for rtype in [Rtype::CDS, Rtype::CDNSKEY] {
        let (records, signers) = served(running.address, rtype);
        assert_eq!((records.len(), signers), (1, [tag(&ksk), key_tag(revoked[0])].into()), "{rtype}");
    }
}

#[test]
fn a_server_takes_other_keys_when_their_time_comes() {
    let (folder, [_, zsk]) = with_keys();
    let dir = folder.path();
    let (keys, next, change) = (dir.join("keys"), key(dir), now() + 3);
    set_times(&keys, &zsk, &[("Inactive", change)]);
    set_times(&keys, &next, &[("Activate", change)]);
    let running = serve(&dir.join("zone"), &["-o", ORIGIN, "--denial", "compact", "--keys", text(&keys)]);
    // A zone from standard input cannot be read again.
    let elsewhere = common::made(dir, "stream");
    let online =
        ["-", "-o", ORIGIN, "--listen", "127.0.0.1:0", "--denial", "white-lies", "--keys", text(&keys)];
    let input = fs::File::open(dir.join("zone")).unwrap().into();
    let stream = Configured::start_with(&online, &elsewhere.join("stream"), input);
    let zones = format!("[zone.\"{ORIGIN}\"]\nfile = \"zone\"\ndenial = \"compact\"\nkeys = \"keys\"\n");
    let configured = Configured::start(&configure(dir, &zones));
    let both = common::made(dir, "both");
    let both = Configured::start(&configure(
        &both,
        &zones.replace("\"zone\"", "\"../zone\"").replace("\"keys\"", "\"../keys\"\nignore-key-times = true"),
    ));
    if now() < change {
        assert_eq!(served_signers(configured.address), [tag(&zsk)].into());
        let status = configured.ctl_json(&["zone", "status", ORIGIN]);
        assert_eq!(status[0]["next_key_event"], change, "{status}");
    }
    assert_eq!(served_signers(both.address), [tag(&zsk), tag(&next)].into());
    wait_for_signer(configured.address, &next);
    for server in [running.address, stream.address] {
        wait_for_signer(server, &next);
    }
    assert!(now() >= change);
    assert_eq!(served_signers(both.address), [tag(&zsk), tag(&next)].into());
    for server in [configured, both, stream] {
        server.stop();
    }
}
