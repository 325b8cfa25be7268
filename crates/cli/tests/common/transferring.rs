//! Functions that the tests of zone transfers share: zones in several versions, complete zones from
//! servers, and other name servers as primaries.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

use super::configured::{Configured, plain_zone, write_beside};
pub use super::transfer::{transferred, try_transferred, zone_text};
use super::{done, free_address, sign, text};
use nonesuch_lab::peers::{PeerZone, PrimaryTls, Serving, Setup, TransferKey};
use nonesuch_zone::load;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

pub const SECRET: &str = "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch";
pub const ZONE: &str = "signed.example.";
/// Time limit for a version.
const PATIENCE: Duration = Duration::from_secs(60);

/// A port that is currently unused for both transports.
pub fn free_port() -> u16 {
    free_address().port()
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

/// A peer that serves [`ZONE`] from the file `zone` in `dir`, permits transfers with the TSIG key,
/// and sends NOTIFY to a port.
pub fn primary_setup(dir: &Path, notified: u16) -> Setup {
    primary_setup_of(dir, [(ZONE, "zone")], notified)
}

/// Like [`primary_setup`], with these zones, each with the name of its file.
pub fn primary_setup_of<'a>(
    dir: &Path,
    zones: impl IntoIterator<Item = (&'a str, &'a str)>,
    notified: u16,
) -> Setup {
    let zones = zones.into_iter().map(|(origin, file)| {
        let zone = PeerZone::new(origin, &dir.join(file), Serving::Presigned);
        PeerZone { notify: Some(([127, 0, 0, 1], notified).into()), ..zone }
    });
    Setup { zones: zones.collect(), ..peer_setup(dir) }
}

/// A peer that transfers [`ZONE`] from `primary` with the TSIG key.
pub fn secondary_setup(dir: &Path, primary: SocketAddr, tls: Option<PrimaryTls>) -> Setup {
    let zone = PeerZone::new(ZONE, &dir.join("copy"), Serving::Secondary { primary, tls });
    Setup { zones: vec![zone], ..peer_setup(dir) }
}

/// A peer with the TSIG key and without zones.
pub fn peer_setup(dir: &Path) -> Setup {
    let (name, algorithm) = ("transfer.key".to_owned(), "hmac-sha256".to_owned());
    let transfer_key = TransferKey { name, algorithm, secret: SECRET.to_owned() };
    Setup { udp_octets: 4096, transfer_key: Some(transfer_key), ..Setup::new(dir) }
}
