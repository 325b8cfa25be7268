//! `nonesuch serve --config` as a primary: NSD, Knot DNS and BIND receive NOTIFY and fetch the
//! changes; valid and invalid signatures of requests by `dig`; the journal of a server that was
//! killed.

use crate::common;
use nonesuch_testing::require_peer;
#[path = "../../../authoritative/tests/secondaries/peers.rs"]
mod peers;

use common::configured::{Configured, configure};
use common::{Ended, done, folder, generate_keys, made, run, sign, snapshot, text};
use nonesuch_lab::peers::Peer;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::push_query;
use nonesuch_server::tsig::{ResponseTsigError, TsigKey, sign_request};
use nonesuch_zone::load;
use peers::{KEY, SECRET, Secondary, free_port, records_of};
use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const ZONE: &str = "example.";

/// Number of changes that each secondary follows.
const CHANGES: u32 = 8;

/// An unsigned version; a few names change with each version.
fn plain(serial: u32) -> String {
    let mut zone =
        format!("$ORIGIN {ZONE}\n$TTL 60\n@ SOA ns h {serial} 3600 60 604800 60\n@ NS ns\nns A 192.0.2.1\n");
    for number in 0..60 {
        let number = number + serial % 3;
        zone.push_str(&format!("sub{number} NS ns.sub{number}\nns.sub{number} A 192.0.2.9\n"));
    }
    zone.push_str(&format!("t TXT \"{serial}\"\n"));
    zone
}

/// Signs the version with this serial to `zone` in the directory. Signatures of unchanged records
/// are reused.
fn sign_version(dir: &Path, serial: u32, mechanism: &str) {
    let (unsigned, next, zone) = (dir.join("plain"), dir.join("next"), dir.join("zone"));
    fs::write(&unsigned, plain(serial)).expect("written");
    if serial == 1 {
        sign(&unsigned, ZONE, &dir.join("keys"), mechanism, &next);
    } else {
        let keys = dir.join("keys");
        done([
            "zone",
            "sign",
            text(&unsigned),
            "-o",
            ZONE,
            "--keys",
            text(&keys),
            "--previous",
            text(&zone),
            "--serial",
            "keep",
            "-f",
            text(&next),
        ]);
    }
    fs::rename(&next, &zone).expect("renamed");
}

/// The zone's part of the configuration, with its key.
fn zones(also_notify: &str) -> String {
    format!(
        "[key.\"{KEY}.\"]\nalgorithm = \"hmac-sha256\"\nsecret = \"{SECRET}\"\n\
         [zone.\"{ZONE}\"]\nfile = \"zone\"\ntransfer = [\"127.0.0.1 key:{KEY}.\"]\nalso-notify = [{also_notify}]\n"
    )
}

/// A secondary receives NOTIFY of every change and fetches it; each version is compared.
fn is_followed_by(peer: Peer, mechanism: &str, algorithm: &str) {
    let (home, theirs) = (folder(), folder());
    let dir = home.path();
    generate_keys(&made(dir, "keys"), ZONE, "ed25519");
    sign_version(dir, 1, mechanism);
    let port = free_port();
    let server = Configured::start(&configure(dir, &zones(&format!("\"127.0.0.1:{port}\""))));
    server.wait_for(ZONE, 1);
    let Some(secondary) = Secondary::start_at(peer, Some(port), server.address, theirs.path(), algorithm)
    else {
        return;
    };
    for serial in 1..=CHANGES + 1 {
        if serial > 1 {
            sign_version(dir, serial, mechanism);
            assert_eq!(server.ctl(&["reload"]).status, 0, "{}", server.logged());
            server.wait_for(ZONE, serial);
        }
        secondary.wait_for_news(serial);
        let zone = load(&dir.join("zone"), None).expect("a zone").contents;
        assert!(secondary.records(serial) == records_of(&zone), "{peer:?}: version {serial}");
    }
    let sent = |kind: &str| server.events("transfer-ended", &["outcome=sent", kind]).len();
    assert_eq!((sent("kind=AXFR"), sent("kind=IXFR")), (1, CHANGES as usize), "{}", server.logged());
}

#[test]
fn nsd_is_told_and_follows() {
    is_followed_by(Peer::Nsd, "nsec", "hmac-sha256");
}

#[test]
fn knot_is_told_and_follows() {
    is_followed_by(Peer::Knot, "nsec3", "hmac-sha256");
}

#[test]
fn bind_is_told_and_follows() {
    is_followed_by(Peer::Bind, "nsec3-opt-out", "hmac-sha256");
}

/// Half of the hash is sufficient (RFC 8945 §5.2.2.1). Of the three, only BIND can be configured to
/// send no more.
#[test]
fn bind_follows_with_truncated_signatures() {
    is_followed_by(Peer::Bind, "nsec", "hmac-sha256-128");
}

/// A server of version 2 with the change from version 1.
fn changed(dir: &Path) -> Configured {
    generate_keys(&made(dir, "keys"), ZONE, "ed25519");
    sign_version(dir, 1, "nsec");
    let server = Configured::start(&configure(dir, &zones("")));
    server.wait_for(ZONE, 1);
    sign_version(dir, 2, "nsec");
    assert_eq!(server.ctl(&["reload"]).status, 0, "{}", server.logged());
    server.wait_for(ZONE, 2);
    server
}

fn dig(server: &Configured, arguments: &[&str]) -> Ended {
    let port = server.address.port().to_string();
    run(Command::new("dig").args(["@127.0.0.1", "-p", &port, "+tries=1", "+time=10", ZONE]).args(arguments))
}

#[test]
fn requests_signed_right_and_wrong_get_what_they_are_due() {
    require_peer!("dig");
    let home = folder();
    let server = changed(home.path());
    let key = |name: &str, algorithm: &str, secret: &str| format!("{algorithm}:{name}:{secret}");
    let right = key(KEY, "hmac-sha256", SECRET);
    let whole = dig(&server, &["AXFR", "-y", &right]).stdout;
    assert!(whole.contains("XFR size:") && whole.contains("sub9.example."), "{whole}");
    let changes = dig(&server, &["IXFR=1", "-y", &right]).stdout;
    assert!(changes.contains("h.example. 1 3600") && !changes.contains("sub9.example."), "{changes}");
    let other = data_encoding::BASE64.encode(b"another secret of thirty-two oct");
    let cases = [
        (vec!["AXFR"], "Transfer failed"),
        (vec!["SOA"], "status: NOERROR"),
        (vec!["IXFR=1"], "status: REFUSED"),
        (vec!["IXFR=1"], "EDE: 18 (Prohibited)"),
        (vec!["SOA", "-y", &right], "NOERROR"),
    ];
    for (arguments, expected) in cases {
        let arguments = [arguments, vec!["+comments"]].concat();
        let found = dig(&server, &arguments).stdout;
        assert!(found.contains(expected), "{arguments:?}: {found}");
    }
    let wrong = [
        (key(KEY, "hmac-sha256", &other), "BADSIG"),
        (key(KEY, "hmac-sha512", SECRET), "BADKEY"),
        (key("other.example", "hmac-sha256", SECRET), "BADKEY"),
        (key(KEY, "hmac-md5", SECRET), "BADKEY"),
    ];
    for (key, expected) in wrong {
        for question in ["SOA", "IXFR=1"] {
            let found = dig(&server, &[question, "-y", &key]).stdout;
            assert!(found.contains(expected), "{key} {question}: {found}");
        }
    }
    // Half of the hash is sufficient, less is not.
    let found = dig(&server, &["SOA", "-y", &key(KEY, "hmac-sha256-128", SECRET)]).stdout;
    assert!(found.contains("status: NOERROR"), "{found}");
    let found = dig(&server, &["SOA", "-y", &key(KEY, "hmac-sha256-80", SECRET)]).stdout;
    assert!(found.contains("FORMERR"), "{found}");
}

/// The result of a request that was signed `before` seconds before now; a negative value is in the
/// future.
fn ask_signed(server: &Configured, before: i64) -> Result<(), ResponseTsigError> {
    let key = TsigKey::from_argument(&format!("{KEY}:{SECRET}")).expect("a key");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock behind 1970").as_secs();
    let signed = now.wrapping_add_signed(-before);
    let mut message = Vec::new();
    push_query(&ZONE.parse().expect("a name"), Rtype::SOA, 7, 0, &mut message);
    let mut verifier = sign_request(&Arc::new(key), &mut message, signed);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    socket.send_to(&message, server.address).expect("sent");
    let mut answer = [0; 4096];
    let length = socket.recv(&mut answer).expect("an answer");
    verifier.verify(&answer[..length], signed).map(drop)
}

#[test]
fn requests_of_another_time_are_told_ours() {
    let home = folder();
    let server = changed(home.path());
    assert_eq!(ask_signed(&server, 0), Ok(()));
    assert_eq!(ask_signed(&server, 200), Ok(()));
    for before in [400, -400, 1_000_000_000] {
        let Err(ResponseTsigError::TimeRejectedByServer { server: told }) = ask_signed(&server, before)
        else {
            panic!("{before}");
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock behind 1970").as_secs();
        assert!(now.abs_diff(told) < 60, "{told} {now}");
    }
}

/// Changes are still available after a kill. A damaged journal is replaced with a new one.
#[test]
fn a_journal_survives_a_kill_and_is_made_anew_when_spoilt() {
    require_peer!("dig");
    let home = folder();
    let server = changed(home.path());
    let configuration = server.configuration.clone();
    server.kill();
    let right = format!("hmac-sha256:{KEY}:{SECRET}");
    let is_incremental = |server: &Configured| {
        let found = dig(server, &["IXFR=1", "-y", &right]).stdout;
        assert!(found.contains("t.example."), "{found}");
        !found.contains("sub9.example.")
    };
    let server = Configured::start(&configuration);
    server.wait_for(ZONE, 2);
    assert!(is_incremental(&server), "{}", server.logged());
    server.kill();
    let state = home.path().join("state");
    let found = run(Command::new("find").args([text(&state), "-name", "*.journal"])).stdout;
    let journal = Path::new(found.trim());
    let whole = fs::read(journal).expect("a journal");
    // A damaged journal is replaced. A file that never was a journal stays, with a message.
    for (octets, name, case) in [
        (&whole[..20], "journal-replaced", "truncated journal"),
        (b"somebody's notes", "journal-not-usable", "file with the name of a journal"),
    ] {
        fs::write(journal, octets).expect("written");
        let server = Configured::start(&configuration);
        server.wait_for(ZONE, 2);
        assert!(!is_incremental(&server));
        let line = server.wait_for_event(name, &["zone=example."]);
        snapshot::check("serve", case, &line);
        server.kill();
    }
    assert_eq!(fs::read(journal).expect("a file"), b"somebody's notes");
}
