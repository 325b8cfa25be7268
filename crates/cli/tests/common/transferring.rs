//! Functions that the tests of zone transfers share: zones in several versions, complete zones from
//! servers, and other name servers as primaries.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

use super::configured::{Configured, plain_zone, write_beside};
pub use super::transfer::{transferred, try_transferred, zone_text};
use super::{Running, done, sign, text};
use nonesuch_lab::peers::{Serving, Setup, TransferKey};
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

/// A peer that serves [`ZONE`] from the file `zone` in `dir`, permits transfers with the TSIG key,
/// and sends NOTIFY to a port.
pub fn primary_setup(dir: &Path, notified: u16) -> Setup {
    let mut setup = super::peers::zone(dir, ZONE, &dir.join("zone"), Serving::Presigned);
    setup.zones[0].notify = Some(([127, 0, 0, 1], notified).into());
    let (name, algorithm) = ("transfer.key".to_owned(), "hmac-sha256".to_owned());
    setup.transfer_key = Some(TransferKey { name, algorithm, secret: SECRET.to_owned() });
    setup
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
