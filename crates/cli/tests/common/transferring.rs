//! Functions that the tests of zone transfers share: zones in several versions, complete zones from
//! servers, and other name servers as primaries.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

use super::configured::{Configured, plain_zone, write_beside};
pub use super::transfer::{transferred, try_transferred, zone_text};
use super::{Running, done, sign, text};
use nonesuch_zone::load;
use std::fs;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub const SECRET: &str = "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch";
pub const ZONE: &str = "signed.example.";
/// Time limit for a version.
const PATIENCE: Duration = Duration::from_secs(60);

/// A port that is currently unused for both transports.
pub fn free_port() -> u16 {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = tcp.local_addr().expect("bound");
        if UdpSocket::bind(address).is_ok() {
            return address.port();
        }
    }
}

/// Starts a server at this port; `zones` is the rest of its configuration.
#[track_caller]
pub fn start_at(dir: &Path, port: u16, zones: &str) -> Configured {
    start_with(dir, port, "", zones)
}

/// Like [`start_at`], with these lines at the top of the configuration.
#[track_caller]
pub fn start_with(dir: &Path, port: u16, top: &str, zones: &str) -> Configured {
    fs::create_dir_all(dir.join("state")).expect("a directory");
    let head = format!(
        "version = 1\nlisten = [\"127.0.0.1:{port}\"]\nworkers = 1\nstate-dir = \"state\"\ncontrol-socket = \"control\"\n{top}\
         [key.\"transfer.key.\"]\nalgorithm = \"hmac-sha256\"\nsecret = \"{SECRET}\"\n"
    );
    let path = dir.join("c.toml");
    write_beside(&path, &format!("{head}{zones}"));
    Configured::start(&path)
}

/// Waits until a server transfers the zone with the content of `file`.
#[track_caller]
pub fn wait_for_zone(server: SocketAddr, zone: &str, file: &Path, log: impl Fn() -> String) {
    let expected = load(file, None).expect("a zone").contents;
    let serial = expected.soa().expect("an SOA record").serial;
    let end = Instant::now() + PATIENCE;
    let found = loop {
        let found = try_transferred(server, zone);
        match found {
            Ok(found) if found.soa().is_some_and(|soa| soa.serial == serial) => break found,
            _ => assert!(Instant::now() < end, "{server} has no version {serial} of {zone}: {}", log()),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let (expected, found) = (zone_text(&expected), zone_text(&found));
    let differing = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
    assert!(expected == found, "{zone}: {differing:?}");
}

#[track_caller]
pub fn assert_serves(server: &Configured, zone: &str, file: &Path) {
    let expected = zone_text(&load(file, None).expect("a zone").contents);
    let found = zone_text(&transferred(server.address, zone));
    let differing = expected.lines().zip(found.lines()).find(|(a, b)| a != b);
    assert!(expected == found, "{zone}: {differing:?}");
}

pub fn plain(serial: u32) -> String {
    let mut zone = plain_zone(ZONE, serial);
    for number in 0..40 {
        let number = number + serial % 3;
        zone.push_str(&format!("sub{number} 60 NS ns.sub{number}\nns.sub{number} 60 A 192.0.2.{serial}\n"));
    }
    zone
}

/// Signs the version with this serial to `zone` in the directory.
pub fn sign_version(dir: &Path, serial: u32, mechanism: &str) {
    fs::write(dir.join("plain"), plain(serial)).expect("written");
    sign(&dir.join("plain"), ZONE, &dir.join("keys"), mechanism, &dir.join("next"));
    fs::rename(dir.join("next"), dir.join("zone")).expect("renamed");
}

/// Like [`sign_version`], for the successor of an existing version. Signatures of unchanged records
/// are reused.
pub fn sign_next(dir: &Path, serial: u32) {
    let (unsigned, keys, next, zone) =
        (dir.join("plain"), dir.join("keys"), dir.join("next"), dir.join("zone"));
    fs::write(&unsigned, plain(serial)).expect("written");
    let fixed = ["zone", "sign", text(&unsigned), "-o", ZONE, "--keys", text(&keys)];
    done([&fixed[..], &["--previous", text(&zone), "--serial", "keep", "-f", text(&next)]].concat());
    fs::rename(&next, &zone).expect("renamed");
}

pub fn hang_up(peer: &Running) {
    let status = Command::new("kill").args(["-HUP", &peer.id().to_string()]).status();
    assert!(status.expect("kill").success());
}

pub fn knot(dir: &Path, port: u16, notified: u16) -> Command {
    let dir = text(dir);
    let configuration = format!(
        "server:\n  rundir: {dir}\n  listen: 127.0.0.1@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\n  tcp-remote-io-timeout: 60000\n\
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

pub fn bind(dir: &Path, port: u16, notified: u16) -> Command {
    let zones = format!("zone \"{ZONE}\" {{ type primary; file \"zone\"; }};\n");
    bind_with(dir, port, notified, &zones)
}

pub fn bind_with(dir: &Path, port: u16, notified: u16, zones: &str) -> Command {
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

pub fn nsd(dir: &Path, port: u16, notified: u16) -> Command {
    nsd_with(dir, port, notified, "")
}

/// NSD with more lines in its `server` section.
fn nsd_with(dir: &Path, port: u16, notified: u16, more: &str) -> Command {
    let dir = text(dir);
    let configuration = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n{more}  server-count: 1\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{dir}\"\n  pidfile: \"{dir}/pid\"\n\
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

/// BIND that transfers the zone only over TLS, at a separate port, with a certificate and its key.
pub fn bind_over_tls(dir: &Path, port: u16, [tls, notified]: [u16; 2], identity: [&Path; 2]) -> Command {
    let [certificate, key] = identity.map(text);
    let dir = text(dir);
    let configuration = format!(
        "tls mine {{ cert-file \"{certificate}\"; key-file \"{key}\"; }};\n\
         key \"transfer.key\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\n\
         options {{ directory \"{dir}\"; listen-on port {port} {{ 127.0.0.1; }}; listen-on port {tls} tls mine {{ 127.0.0.1; }};\n\
         listen-on-v6 {{ none; }}; recursion no; pid-file \"pid\"; session-keyfile \"session\"; ixfr-from-differences yes;\n\
         notify explicit; notify-delay 0; notify-rate 1000; startup-notify-rate 1000; dnssec-validation no; check-integrity no;\n\
         also-notify {{ 127.0.0.1 port {notified} key transfer.key; }}; }};\ncontrols {{ }};\n\
         zone \"{ZONE}\" {{ type primary; file \"zone\"; allow-transfer port {tls} transport tls {{ key transfer.key; }}; }};\n"
    );
    fs::write(Path::new(dir).join("peer.conf"), configuration).expect("written");
    let mut command = Command::new("named");
    command.args(["-g", "-n", "1", "-c", &format!("{dir}/peer.conf")]);
    command
}

/// NSD that also answers over TLS.
pub fn nsd_over_tls(dir: &Path, port: u16, [tls, notified]: [u16; 2], identity: [&Path; 2]) -> Command {
    let [certificate, key] = identity.map(text);
    let more = format!(
        "  ip-address: 127.0.0.1@{tls}\n  tls-port: {tls}\n  tls-service-pem: \"{certificate}\"\n  tls-service-key: \"{key}\"\n"
    );
    nsd_with(dir, port, notified, &more)
}
