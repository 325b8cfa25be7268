//! `nonesuch serve --config` as a secondary of NSD, Knot DNS, BIND and itself: versions that fail
//! verification, catalog zones, zones with NSEC5, restarts.

use crate::common;
use crate::common::transferring;
use common::configured::{Configured, ask, plain_zone, write_beside};
use common::{done, folder, generate_keys, is_installed, made, peers, text};
use nonesuch_lab::peers::{Peer, PeerServer};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Rcode, push_query};
use nonesuch_server::clock::seconds_now;
use nonesuch_server::tsig::{self, ResponseTsigError, TsigKey, sign_request};
use nonesuch_testing::require_peer;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use transferring::{
    SECRET, ZONE, assert_serves, free_port, plain, primary_setup, primary_setup_of, sign_version, start_at,
    transferred,
};

/// Signed versions of a peer, each verified here and compared; a broken version; a restart.
fn follow(peer: Peer, mechanism: &str, tsig: &str) {
    require_peer!(peer.info().programs[0]);
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    generate_keys(&made(dir, "keys"), ZONE, "ecdsap256sha256");
    sign_version(dir, 1, mechanism);
    let port = free_port();
    let mut setup = primary_setup(dir, port);
    if let Some(key) = &mut setup.transfer_key {
        tsig.clone_into(&mut key.algorithm);
    }
    let peer = peers::start(peer, &setup);
    let zones = format!(
        "[zone.\"{ZONE}\"]\nprimaries = [\"{} key:transfer.key.\"]\ntransfer = [\"127.0.0.1\"]\nverify = \"full\"\non-fault = \"reject\"\nretry-min = \"1s\"\n",
        peer.address
    );
    let server = start_at(home.path(), port, &zones);
    server.wait_for(ZONE, 1);
    assert_serves(&server, ZONE, &dir.join("zone"));
    for serial in 2..=6 {
        sign_version(dir, serial, mechanism);
        peer.reload().expect("it runs");
        server.wait_for(ZONE, serial);
        assert_serves(&server, ZONE, &dir.join("zone"));
    }
    refuse_broken(&server, &peer, dir, mechanism);
    // Killed and started again, it serves its stored version before it contacts a primary.
    drop(peer);
    server.kill();
    let server = start_at(home.path(), port, &zones);
    server.wait_for(ZONE, 8);
    assert_serves(&server, ZONE, &dir.join("zone"));
}

/// Version 7 lacks a signature, so version 6 stays. Version 8 is valid.
fn refuse_broken(server: &Configured, peer: &PeerServer, dir: &Path, mechanism: &str) {
    sign_version(dir, 7, mechanism);
    let zone = fs::read_to_string(dir.join("zone")).expect("a zone");
    let is_target = |line: &&str| line.starts_with("t.") && line.contains("\tRRSIG\tTXT");
    assert_eq!(zone.lines().filter(is_target).count(), 1);
    let broken: String = zone.lines().filter(|line| !is_target(line)).flat_map(|line| [line, "\n"]).collect();
    write_beside(&dir.join("zone"), &broken);
    peer.reload().expect("it runs");
    server.wait_for_event("zone-rejected", &["zone=signed.example."]);
    assert_eq!(server.serial(ZONE), Some(6));
    sign_version(dir, 8, mechanism);
    peer.reload().expect("it runs");
    server.wait_for(ZONE, 8);
    assert_serves(server, ZONE, &dir.join("zone"));
}

#[test]
fn knot_is_followed() {
    follow(Peer::Knot, "nsec", "hmac-sha256");
}

#[test]
fn bind_is_followed() {
    follow(Peer::Bind, "nsec3", "hmac-sha256");
}

#[test]
fn nsd_is_followed() {
    follow(Peer::Nsd, "nsec3-opt-out", "hmac-sha256");
}

/// BIND has a key for signatures of half the hash length.
#[test]
fn bind_is_followed_by_truncated_signatures() {
    follow(Peer::Bind, "nsec", "hmac-sha256-128");
}

/// The result of a query to a peer, signed `before` seconds before now.
fn ask_signed(server: SocketAddr, before: i64) -> Result<(), ResponseTsigError> {
    let key = TsigKey::from_argument(&format!("transfer.key:{SECRET}")).expect("a key");
    let now = seconds_now();
    let mut message = Vec::new();
    push_query(&ZONE.parse().expect("a name"), Rtype::SOA, 7, 0, &mut message);
    let mut verifier = sign_request(&Arc::new(key), &mut message, now.wrapping_add_signed(-before));
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    socket.send_to(&message, server).expect("sent");
    let mut answer = [0; 4096];
    let length = socket.recv(&mut answer).expect("an answer");
    verifier.verify(&answer[..length], now.wrapping_add_signed(-before)).map(drop)
}

/// Peers reject a message that was signed at another time, and this client recognizes the reason.
#[test]
fn peers_are_heard_about_expired_signatures() {
    for peer in [Peer::Nsd, Peer::Knot, Peer::Bind] {
        let program = peer.info().programs[0];
        if !is_installed(program) {
            continue;
        }
        let theirs = folder();
        let dir = theirs.path();
        fs::write(dir.join("zone"), plain(1)).expect("written");
        let peer = peers::start(peer, &primary_setup(dir, free_port()));
        assert_eq!(ask_signed(peer.address, 0), Ok(()), "{program}");
        for before in [400, -400] {
            let found = ask_signed(peer.address, before);
            match found {
                Err(ResponseTsigError::TimeRejectedByServer { server: told }) => {
                    assert!(seconds_now().abs_diff(told) < 60, "{program}: {told}");
                }
                // NSD does not sign its BADTIME response.
                Err(ResponseTsigError::RejectedByServer(tsig::TsigError::BadTime)) if program == "nsd" => {}
                other => panic!("{program} {before}: {other:?}"),
            }
        }
    }
}

/// A zone is signed for the first time, and changes from NSEC to NSEC3, while it is transferred. It
/// is served all the time. BIND signs few records at a time, so that there are intermediate
/// versions.
#[test]
fn bind_signs_for_the_first_time_and_changes_its_chain() {
    require_peer!("named");
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    fs::write(dir.join("zone"), plain(1)).expect("written");
    let port = free_port();
    let mut setup = primary_setup(dir, port);
    let keys = "keys { csk lifetime unlimited algorithm ecdsap256sha256; };";
    setup.sections = format!(
        "dnssec-policy nsec {{ {keys} }};\n\
         dnssec-policy nsec3 {{ {keys} nsec3param iterations 0 optout no salt-length 0; }};\n"
    );
    setup.zones[0].lines = "dnssec-policy none; sig-signing-nodes 2; sig-signing-signatures 2;".to_owned();
    let peer = peers::start(Peer::Bind, &setup);
    let zones = format!(
        "[zone.\"{ZONE}\"]\nprimaries = [\"{} key:transfer.key.\"]\nrefresh-min = \"1s\"\nrefresh-max = \"1s\"\n",
        peer.address
    );
    let server = start_at(home.path(), port, &zones);
    server.wait_for(ZONE, 1);
    for (policy, served) in [("nsec", "signed with NSEC"), ("nsec3", "signed with NSEC3")] {
        let signing = format!("dnssec-policy {policy}; inline-signing yes; ");
        reconfigure(&peer, "named.conf", |text| {
            let (before, after) = text.rsplit_once("dnssec-policy ").expect("the policy of the zone");
            let (_, after) = after.split_once("sig-signing-nodes").expect("the lines of the zone");
            format!("{before}{signing}sig-signing-nodes{after}")
        });
        server.wait_until(served, || {
            for (name, rcode) in [("t", Rcode::NOERROR), ("no-such-name", Rcode::NXDOMAIN)] {
                let answer = ask(server.address, &format!("{name}.{ZONE}"), Rtype::TXT);
                assert_eq!(answer.rcode(), rcode, "{name} {}", server.logged());
            }
            let status = server.ctl_json(&["zone", "status", ZONE]);
            status[0]["served"] == served && status[0]["warnings"] == serde_json::json!([])
        });
    }
    // There were versions with faults, and none was rejected.
    let warnings = server.events("zone-warning", &["zone=signed.example."]);
    assert!(warnings.iter().any(|line| line.contains("on-fault = \"warn\"")), "{}", server.logged());
    for name in [
        "zone-rejected",
        "zone-not-served",
        "transferred-zone-rejected",
        "tsig-rejected",
        "notify-rejected",
        "configuration-rejected",
    ] {
        assert!(server.events(name, &[]).is_empty(), "{name}: {}", server.logged());
    }
}

/// Changes the configuration file of a peer, which then reads it again.
fn reconfigure(peer: &PeerServer, file: &str, change: impl Fn(&str) -> String) {
    let path = peer.folder().join(file);
    let text = fs::read_to_string(&path).expect("a configuration");
    write_beside(&path, &change(&text));
    peer.reload().expect("it runs");
}

fn catalog(serial: u32, members: &str) -> String {
    format!(
        "$ORIGIN catalog.example.\n$TTL 0\n@ SOA invalid. invalid. {serial} 60 60 3600 0\n@ NS invalid.\nversion TXT 2\n{members}"
    )
}

#[test]
fn members_of_a_catalog_of_bind_come_and_go() {
    require_peer!("named");
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let zones = ["a.example.", "b.example.", "c.example."];
    for zone in zones {
        fs::write(dir.join(zone), plain_zone(zone, 1)).expect("written");
    }
    fs::write(dir.join("catalog"), catalog(1, "1.zones PTR a.example.\n2.zones PTR b.example.\n"))
        .expect("written");
    let port = free_port();
    let files = zones.into_iter().map(|zone| (zone, zone)).chain([("catalog.example.", "catalog")]);
    let peer = peers::start(Peer::Bind, &primary_setup_of(dir, files, port));
    let primary = format!("primaries = [\"{} key:transfer.key.\"]\n", peer.address);
    let configuration = format!(
        "[template.member]\n{primary}[template.other]\n{primary}transfer = [\"127.0.0.1\"]\n\
         [zone.\"catalog.example.\"]\n{primary}catalog = \"consumer\"\nmember-template = \"member\"\ngroup-templates = {{ special = \"other\" }}\n"
    );
    let server = start_at(home.path(), port, &configuration);
    server.wait_for("a.example.", 1);
    server.wait_for("b.example.", 1);
    assert_eq!(server.serial("c.example."), None);
    let change = |serial, members: &str| {
        write_beside(&dir.join("catalog"), &catalog(serial, members));
        peer.reload().expect("it runs");
        server.wait_until("a catalog", || {
            let status = server.ctl_json(&["zone", "status", "catalog.example."]);
            status.to_string().contains(&format!("\"serial\":{serial}"))
        });
    };
    // One member is removed, one is added, one gets other settings.
    change(2, "1.zones PTR a.example.\ngroup.1.zones TXT special\n3.zones PTR c.example.\n");
    server.wait_for("c.example.", 1);
    server.wait_until("b.example. goes", || server.serial("b.example.").is_none());
    server.wait_until("a.example. may be transferred", || {
        let zone = std::panic::catch_unwind(|| transferred(server.address, "a.example."));
        zone.is_ok_and(|zone| zone.soa().is_some_and(|soa| soa.serial == 1))
    });
    // A broken catalog changes nothing; a new label causes a new transfer of the zone.
    write_beside(&dir.join("catalog"), &catalog(3, "1.zones PTR a.example.\nversion TXT 3\n"));
    peer.reload().expect("it runs");
    server.wait_for_event("catalog-broken", &["zone=catalog.example."]);
    assert_eq!((server.serial("a.example."), server.serial("c.example.")), (Some(1), Some(1)));
    change(4, "9.zones PTR a.example.\n");
    server.wait_until("c.example. goes", || server.serial("c.example.").is_none());
    server.wait_for("a.example.", 1);
}

#[test]
fn members_of_a_catalog_of_knot_come_and_go() {
    require_peer!("knotd");
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    for zone in ["a.example.", "b.example.", "c.example."] {
        fs::write(dir.join(zone), plain_zone(zone, 1)).expect("written");
    }
    let port = free_port();
    let files = ["a.example.", "b.example."].map(|zone| (zone, zone));
    let mut setup = primary_setup_of(dir, files, port);
    // Not in `setup.zones`, because Knot DNS answers no query for a catalog without a key.
    setup.sections =
        "zone:\n  - domain: catalog.example.\n    catalog-role: generate\n    notify: notified-0\n"
            .to_owned();
    for zone in &mut setup.zones {
        zone.lines =
            "    catalog-role: member\n    catalog-zone: catalog.example.\n    catalog-group: g\n".to_owned();
    }
    let peer = peers::start(Peer::Knot, &setup);
    let primary = format!("primaries = [\"{} key:transfer.key.\"]\n", peer.address);
    let configuration = format!(
        "[template.member]\n{primary}\
         [zone.\"catalog.example.\"]\n{primary}catalog = \"consumer\"\nmember-template = \"member\"\nrefresh-min = \"1s\"\nrefresh-max = \"1s\"\n"
    );
    let server = start_at(home.path(), port, &configuration);
    server.wait_for("a.example.", 1);
    server.wait_for("b.example.", 1);
    reconfigure(&peer, "knot.conf", |text| text.replace("b.example.", "c.example."));
    server.wait_for("c.example.", 1);
    server.wait_until("b.example. goes", || server.serial("b.example.").is_none());
    assert_eq!(server.serial("a.example."), Some(1));
}

/// Two servers of this project: a catalog with an NSEC5 zone and an unsigned zone. The VRF key and
/// the proofs are copied to the secondary.
#[test]
fn ours_follows_ours() {
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    fs::write(dir.join("plain"), plain(1)).expect("written");
    common::generate_key(&made(dir, "keys"), ZONE, "ecdsap256sha256", &["--nsec5", "--ksk"]);
    common::generate_key(&dir.join("keys"), ZONE, "ecdsap256sha256", &["--nsec5"]);
    let sign_nsec5 = |serial: u32| {
        fs::write(dir.join("plain"), plain(serial)).expect("written");
        let (plain, keys, vrf, next) =
            (dir.join("plain"), dir.join("keys"), dir.join("vrf"), dir.join("next"));
        let fixed = ["zone", "sign", text(&plain), "-o", ZONE, "--keys", text(&keys), "--denial", "nsec5"];
        done([&fixed[..], &["--nsec5-keys", text(&vrf), "-f", text(&next)]].concat());
        fs::rename(next, dir.join("signed")).expect("renamed");
    };
    sign_nsec5(1);
    fs::write(dir.join("unsigned"), plain_zone("unsigned.example.", 1)).expect("written");
    let (port, their_port) = (free_port(), free_port());
    let rights = format!(
        "transfer = [\"key:transfer.key.\"]\nalso-notify = [\"127.0.0.1:{port} key:transfer.key.\"]\n"
    );
    let primary = start_at(
        dir,
        their_port,
        &format!(
            "[zone.\"{ZONE}\"]\nfile = \"signed\"\nnsec5-keys = \"vrf\"\n{rights}\
             [zone.\"unsigned.example.\"]\nfile = \"unsigned\"\ncatalog-zone = \"catalog.example.\"\ngroup = \"g\"\n{rights}\
             [zone.\"catalog.example.\"]\ncatalog = \"producer\"\n{rights}"
        ),
    );
    copy_folder(&dir.join("vrf"), &home.path().join("vrf"));
    let from =
        format!("primaries = [\"{} key:transfer.key.\"]\ntransfer = [\"127.0.0.1\"]\n", primary.address);
    let server = start_at(
        home.path(),
        port,
        &format!(
            "[zone.\"{ZONE}\"]\n{from}nsec5-keys = \"vrf\"\n[template.member]\n{from}\
             [zone.\"catalog.example.\"]\n{from}catalog = \"consumer\"\nmember-template = \"member\"\n"
        ),
    );
    server.wait_for(ZONE, 1);
    server.wait_for("unsigned.example.", 1);
    assert_serves(&server, ZONE, &dir.join("signed"));
    for serial in 2..=4 {
        sign_nsec5(serial);
        copy_folder(&dir.join("vrf"), &home.path().join("vrf"));
        write_beside(&dir.join("unsigned"), &plain_zone("unsigned.example.", serial));
        primary.ctl(&["reload"]).expect_done("reload");
        server.wait_for(ZONE, serial);
        server.wait_for("unsigned.example.", serial);
        assert_serves(&server, ZONE, &dir.join("signed"));
        assert_serves(&server, "unsigned.example.", &dir.join("unsigned"));
    }
    // Names are matched with the stored proofs or the VRF key.
    for server in [&primary, &server] {
        let warnings = server.events("zone-warning", &["zone=signed.example."]);
        assert!(warnings.is_empty(), "{warnings:?}");
    }
    // After a restart, primary and secondary map the stored zone with NSEC5.
    let was_mapped = |server: &Configured| {
        let status = server.ctl_json(&["zone", "status", ZONE]);
        assert_eq!(status[0]["verified"], "when its image was created", "{status}");
        assert!(status[0]["served"].as_str().is_some_and(|served| served.contains("NSEC5")), "{status}");
    };
    for server in [primary, server] {
        let path = server.configuration.clone();
        server.kill();
        let server = Configured::start(&path);
        assert_eq!(server.serial(ZONE), Some(4));
        was_mapped(&server);
    }
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}
