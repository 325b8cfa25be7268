//! `nonesuch serve --config` as a secondary: of NSD, Knot DNS and BIND, and of itself; versions that fail verification,
//! catalog zones, zones with NSEC5, restarts.

mod common;

use common::configured::{Configured, plain_zone, write_beside};
use common::{Running, done, folder, generate_keys, installed, made, sign, start_peer, text};
use nonesuch_authoritative::transfer::inbound::{Asked, Inbound, Incoming, TransferBounds, push_question};
use nonesuch_proto::Name;
use nonesuch_zone::{Contents, load, write::write_zone};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;

const SECRET: &str = "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch";
const ZONE: &str = "signed.example.";

/// A port that is free for both transports.
fn free_port() -> u16 {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = tcp.local_addr().expect("bound");
        if UdpSocket::bind(address).is_ok() {
            return address.port();
        }
    }
}

/// Starts a secondary at this port; `zones` is the rest of its configuration.
#[track_caller]
fn start_at(dir: &Path, port: u16, zones: &str) -> Configured {
    fs::create_dir_all(dir.join("state")).expect("a folder");
    let head = format!(
        "version = 1\nlisten = [\"127.0.0.1:{port}\"]\nworkers = 1\nstate-dir = \"state\"\ncontrol-socket = \"control\"\n\
         [key.\"transfer.key.\"]\nalgorithm = \"hmac-sha256\"\nsecret = \"{SECRET}\"\n"
    );
    let path = dir.join("c.toml");
    write_beside(&path, &format!("{head}{zones}"));
    Configured::start(&path)
}

/// The zone as a server gives it to everyone who may have it.
#[track_caller]
fn transferred(server: SocketAddr, zone: &str) -> Contents {
    let apex: Name = zone.parse().expect("a name");
    let mut question = vec![0; 2];
    push_question(&apex, Asked::Axfr, &[], 7, &mut question);
    let length = (question.len() - 2) as u16;
    question[..2].copy_from_slice(&length.to_be_bytes());
    let mut stream = TcpStream::connect(server).expect("connected");
    stream.write_all(&question).expect("sent");
    let mut inbound = Inbound::new(apex, 7, Asked::Axfr, TransferBounds::default());
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length).expect("a length");
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message).expect("a message");
        if inbound.push(&message).expect("an answer") {
            break;
        }
    }
    match inbound.finish().expect("a zone") {
        Incoming::Whole { contents, .. } => contents,
        other => panic!("{other:?}"),
    }
}

/// A zone as text; letter case aside, which Knot DNS does not keep.
fn zone_text(contents: &Contents) -> String {
    let mut octets = Vec::new();
    write_zone(contents, &mut octets).expect("a vector takes all");
    String::from_utf8(octets).expect("text").to_ascii_lowercase()
}

#[track_caller]
fn assert_serves(server: &Configured, zone: &str, file: &Path) {
    let expected = zone_text(&load(file, None).expect("a zone").contents);
    let found = zone_text(&transferred(server.address, zone));
    let differing = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
    assert!(expected == found, "{zone}: {differing:?}");
}

fn plain(serial: u32) -> String {
    let mut zone = plain_zone(ZONE, serial);
    for number in 0..40 {
        let number = number + serial % 3;
        zone.push_str(&format!("sub{number} 60 NS ns.sub{number}\nns.sub{number} 60 A 192.0.2.{serial}\n"));
    }
    zone
}

/// Signs the version with this serial into `zone` of the folder.
fn sign_version(dir: &Path, serial: u32, mechanism: &str) {
    fs::write(dir.join("plain"), plain(serial)).expect("written");
    sign(&dir.join("plain"), ZONE, &dir.join("keys"), mechanism, &dir.join("next"));
    fs::rename(dir.join("next"), dir.join("zone")).expect("renamed");
}

fn hang_up(peer: &Running) {
    let status = Command::new("kill").args(["-HUP", &peer.id().to_string()]).status();
    assert!(status.expect("kill").success());
}

fn knot(dir: &Path, port: u16, notified: u16) -> Command {
    let dir = text(dir);
    let configuration = format!(
        "server:\n  rundir: {dir}\n  listen: 127.0.0.1@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\n\
         database:\n  storage: {dir}\nlog:\n  - target: stderr\n    any: info\n\
         key:\n  - id: transfer.key\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
         remote:\n  - id: us\n    address: 127.0.0.1@{notified}\n    key: transfer.key\n\
         acl:\n  - id: us\n    address: 127.0.0.1\n    key: transfer.key\n    action: transfer\n\
         zone:\n  - domain: {ZONE}\n    file: {dir}/zone\n    zonefile-load: difference\n    zonefile-sync: -1\n    journal-content: changes\n    notify: us\n    acl: us\n"
    );
    fs::write(Path::new(dir).join("peer.conf"), configuration).expect("written");
    let mut command = Command::new("knotd");
    command.args(["-c", &format!("{dir}/peer.conf")]);
    command
}

fn bind(dir: &Path, port: u16, notified: u16) -> Command {
    let zones = format!("zone \"{ZONE}\" {{ type primary; file \"zone\"; }};\n");
    bind_with(dir, port, notified, &zones)
}

fn bind_with(dir: &Path, port: u16, notified: u16, zones: &str) -> Command {
    let dir = text(dir);
    let configuration = format!(
        "key \"transfer.key\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\n\
         options {{ directory \"{dir}\"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no;\n\
         pid-file \"pid\"; session-keyfile \"session\"; ixfr-from-differences yes; notify explicit; notify-delay 0; notify-rate 1000;\n\
         startup-notify-rate 1000; dnssec-validation no; check-integrity no; allow-transfer {{ key transfer.key; }};\n\
         also-notify {{ 127.0.0.1 port {notified} key transfer.key; }}; }};\ncontrols {{ }};\n{zones}"
    );
    fs::write(Path::new(dir).join("peer.conf"), configuration).expect("written");
    let mut command = Command::new("named");
    command.args(["-g", "-n", "1", "-c", &format!("{dir}/peer.conf")]);
    command
}

fn nsd(dir: &Path, port: u16, notified: u16) -> Command {
    let dir = text(dir);
    let configuration = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{dir}\"\n  pidfile: \"{dir}/pid\"\n\
         \x20 database: \"\"\n  zonelistfile: \"{dir}/list\"\n  xfrdfile: \"{dir}/xfrd\"\n  xfrdir: \"{dir}\"\nremote-control:\n  control-enable: no\n\
         key:\n  name: \"transfer.key\"\n  algorithm: hmac-sha256\n  secret: \"{SECRET}\"\n\
         zone:\n  name: \"{ZONE}\"\n  zonefile: \"{dir}/zone\"\n  create-ixfr: yes\n  store-ixfr: yes\n  provide-xfr: 127.0.0.1 transfer.key\n\
         \x20 notify: 127.0.0.1@{notified} transfer.key\n"
    );
    fs::write(Path::new(dir).join("peer.conf"), configuration).expect("written");
    let mut command = Command::new("nsd");
    command.args(["-d", "-c", &format!("{dir}/peer.conf")]);
    command
}

/// Signed versions that a peer has, each verified here and compared; one that is broken; a restart.
fn follow(program: &str, mechanism: &str, command: fn(&Path, u16, u16) -> Command) {
    if !installed(program) {
        return;
    }
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    generate_keys(&made(dir, "keys"), ZONE, "ecdsap256sha256");
    sign_version(dir, 1, mechanism);
    let port = free_port();
    let peer = start_peer(&dir.join("log"), |address| command(dir, address.port(), port));
    let zones = format!(
        "[zone.\"{ZONE}\"]\nprimaries = [\"{} key:transfer.key.\"]\ntransfer = [\"127.0.0.1\"]\nverify = \"full\"\nretry-min = \"1s\"\n",
        peer.address
    );
    let server = start_at(home.path(), port, &zones);
    server.wait_for(ZONE, 1);
    assert_serves(&server, ZONE, &dir.join("zone"));
    for serial in 2..=6 {
        sign_version(dir, serial, mechanism);
        hang_up(&peer);
        server.wait_for(ZONE, serial);
        assert_serves(&server, ZONE, &dir.join("zone"));
    }
    refuse_broken(&server, &peer, dir, mechanism);
    // Killed and started again, it serves what it had before it asks anyone.
    drop(peer);
    server.kill();
    let server = start_at(home.path(), port, &zones);
    server.wait_for(ZONE, 8);
    assert_serves(&server, ZONE, &dir.join("zone"));
}

/// Version 7 lacks a signature: 6 stays. Version 8 is sound.
fn refuse_broken(server: &Configured, peer: &Running, dir: &Path, mechanism: &str) {
    sign_version(dir, 7, mechanism);
    let zone = fs::read_to_string(dir.join("zone")).expect("a zone");
    let is_target = |line: &&str| line.starts_with("t.") && line.contains("\tRRSIG\tTXT");
    assert_eq!(zone.lines().filter(is_target).count(), 1);
    let broken: String = zone.lines().filter(|line| !is_target(line)).flat_map(|line| [line, "\n"]).collect();
    write_beside(&dir.join("zone"), &broken);
    hang_up(peer);
    server.wait_until("a refusal", || server.logged().contains("refused"));
    assert_eq!(server.serial(ZONE), Some(6));
    sign_version(dir, 8, mechanism);
    hang_up(peer);
    server.wait_for(ZONE, 8);
    assert_serves(server, ZONE, &dir.join("zone"));
}

#[test]
fn knot_is_followed() {
    follow("knotd", "nsec", knot);
}

#[test]
fn bind_is_followed() {
    follow("named", "nsec3", bind);
}

#[test]
fn nsd_is_followed() {
    follow("nsd", "nsec3-opt-out", nsd);
}

fn catalog(serial: u32, members: &str) -> String {
    format!(
        "$ORIGIN catalog.example.\n$TTL 0\n@ SOA invalid. invalid. {serial} 60 60 3600 0\n@ NS invalid.\nversion TXT 2\n{members}"
    )
}

#[test]
fn members_of_a_catalog_of_bind_come_and_go() {
    if !installed("named") {
        return;
    }
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let mut zones = String::from("zone \"catalog.example\" { type primary; file \"catalog\"; };\n");
    for zone in ["a.example", "b.example", "c.example"] {
        fs::write(dir.join(zone), plain_zone(&format!("{zone}."), 1)).expect("written");
        zones.push_str(&format!("zone \"{zone}\" {{ type primary; file \"{zone}\"; }};\n"));
    }
    fs::write(dir.join("catalog"), catalog(1, "1.zones PTR a.example.\n2.zones PTR b.example.\n"))
        .expect("written");
    let port = free_port();
    let peer = start_peer(&dir.join("log"), |address| bind_with(dir, address.port(), port, &zones));
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
        hang_up(&peer);
        server.wait_until("a catalog", || {
            let status = server.ctl_json(&["zone", "status", "catalog.example."]);
            status.to_string().contains(&format!("\"serial\":{serial}"))
        });
    };
    // One goes, one comes, one gets other settings.
    change(2, "1.zones PTR a.example.\ngroup.1.zones TXT special\n3.zones PTR c.example.\n");
    server.wait_for("c.example.", 1);
    server.wait_until("b.example. goes", || server.serial("b.example.").is_none());
    server.wait_until("a.example. may be transferred", || {
        let zone = std::panic::catch_unwind(|| transferred(server.address, "a.example."));
        zone.is_ok_and(|zone| zone.soa().is_some_and(|soa| soa.serial == 1))
    });
    // A broken one changes nothing; another label has the zone transferred anew.
    write_beside(&dir.join("catalog"), &catalog(3, "1.zones PTR a.example.\nversion TXT 3\n"));
    hang_up(&peer);
    server.wait_until("a broken catalog", || server.logged().contains("broken"));
    assert_eq!((server.serial("a.example."), server.serial("c.example.")), (Some(1), Some(1)));
    change(4, "9.zones PTR a.example.\n");
    server.wait_until("c.example. goes", || server.serial("c.example.").is_none());
    server.wait_for("a.example.", 1);
}

#[test]
fn members_of_a_catalog_of_knot_come_and_go() {
    if !installed("knotd") {
        return;
    }
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    for zone in ["a.example.", "b.example.", "c.example."] {
        fs::write(dir.join(zone), plain_zone(zone, 1)).expect("written");
    }
    let port = free_port();
    let configure = |peer: u16, zones: &[&str]| {
        let dir = text(dir);
        let mut configuration = format!(
            "server:\n  rundir: {dir}\n  listen: 127.0.0.1@{peer}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\n\
             database:\n  storage: {dir}\nlog:\n  - target: stderr\n    any: info\n\
             key:\n  - id: transfer.key\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
             remote:\n  - id: us\n    address: 127.0.0.1@{port}\n    key: transfer.key\n\
             acl:\n  - id: us\n    address: 127.0.0.1\n    key: transfer.key\n    action: transfer\n\
             zone:\n  - domain: catalog.example.\n    catalog-role: generate\n    notify: us\n    acl: us\n"
        );
        for zone in zones {
            configuration.push_str(&format!(
                "  - domain: {zone}\n    file: {dir}/{zone}\n    acl: us\n    catalog-role: member\n    catalog-zone: catalog.example.\n    catalog-group: g\n"
            ));
        }
        write_beside(&Path::new(dir).join("peer.conf"), &configuration);
        let mut command = Command::new("knotd");
        command.args(["-c", &format!("{dir}/peer.conf")]);
        command
    };
    let peer =
        start_peer(&dir.join("log"), |address| configure(address.port(), &["a.example.", "b.example."]));
    let primary = format!("primaries = [\"{} key:transfer.key.\"]\n", peer.address);
    let configuration = format!(
        "[template.member]\n{primary}\
         [zone.\"catalog.example.\"]\n{primary}catalog = \"consumer\"\nmember-template = \"member\"\nrefresh-min = \"1s\"\nrefresh-max = \"1s\"\n"
    );
    let server = start_at(home.path(), port, &configuration);
    server.wait_for("a.example.", 1);
    server.wait_for("b.example.", 1);
    drop(configure(peer.address.port(), &["a.example.", "c.example."]));
    hang_up(&peer);
    server.wait_for("c.example.", 1);
    server.wait_until("b.example. goes", || server.serial("b.example.").is_none());
    assert_eq!(server.serial("a.example."), Some(1));
}

/// Two of ours: a catalog with an NSEC5 zone and an unsigned one; the VRF key and the proofs are brought to the secondary by
/// hand.
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
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
}
