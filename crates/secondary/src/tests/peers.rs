//! Tests with NSD, Knot DNS and BIND as primaries: whole zones, incremental transfers, NOTIFY,
//! TSIG. A test is skipped if the server is not installed.

use super::primary::TestStore;
use crate::error::ExchangeError;
use crate::notify::{NotifyRole, handle};
use crate::{SecondaryZone, Transfers, TransfersOptions, ZoneStore};
use nonesuch_lab::peers::{Peer, PeerServer, PeerZone, Serving, Setup, TransferKey, free_address};
use nonesuch_proto::{Name, NameRef};
use nonesuch_server::acl::Remote;
use nonesuch_server::tsig::{ResponseTsigError, TsigAlgorithm, TsigError, TsigKey, TsigKeys};
use nonesuch_zone::Contents;
use nonesuch_zone::read::read_text;
use nonesuch_zone::write::write_zone;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

const SECRET: &str = "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch";

fn apex() -> Name {
    "example.com.".parse().unwrap()
}

/// Returns a version. Some of its records, including signatures, are added, removed or changed
/// between versions.
fn text(serial: u32) -> String {
    let mut text = format!(
        "$ORIGIN example.com.\n$TTL 300\n@ SOA ns host {serial} 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\nMixed.Case TXT \"{serial}\"\n"
    );
    // RRSIG records have the TTL of their original TTL field, because Knot DNS takes that TTL for
    // theirs.
    let ttl = 300 + serial / 20;
    for number in 0..50 {
        if (serial + number).is_multiple_of(5) {
            continue;
        }
        let _ = writeln!(text, "host{number} {ttl} A 192.0.2.{}", (serial / 7 + number) % 250);
        let _ = writeln!(
            text,
            "host{number} {ttl} RRSIG A 13 3 {ttl} 20400101000000 20200101000000 {number} example.com. {:08}",
            serial / 3 * 100_000 % 100_000_000
        );
        if number % 4 == serial % 4 {
            let _ = writeln!(
                text,
                "*.w{number} MX 10 host{number}\nsub{number} NS ns.sub{number}\nns.sub{number} AAAA 2001:db8::{number}"
            );
        }
    }
    text
}

fn zone(serial: u32) -> Contents {
    read_text(text(serial).as_bytes(), Path::new("zone"), None).unwrap().contents
}

/// Checks that two versions are equal, ignoring the letter case of names, which Knot DNS does not
/// preserve.
#[track_caller]
fn assert_equal(a: &Contents, b: &Contents) {
    let text = |contents: &Contents| {
        let mut text = Vec::new();
        write_zone(contents, &mut text).unwrap();
        String::from_utf8(text).unwrap().to_ascii_lowercase()
    };
    let (a, b) = (text(a), text(b));
    let differing = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    assert!(a == b, "{differing:?}");
}

/// A name server with its zone file.
struct Primary {
    server: PeerServer,
    folder: tempfile::TempDir,
}

impl Primary {
    /// Starts `peer` with the first version, or records a skip if it is not installed. `lines` are
    /// more options of the server, `zone_lines` of the zone.
    fn start(peer: Peer, notified: u16, algorithm: &str, lines: &str, zone_lines: &str) -> Option<Self> {
        nonesuch_testing::require_peer!(peer.info().programs[0]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("zone");
        std::fs::write(&file, text(1)).unwrap();
        let zone = PeerZone {
            notify: Some((Ipv4Addr::LOCALHOST, notified).into()),
            lines: zone_lines.to_owned(),
            ..PeerZone::new("example.com.", &file, Serving::Presigned)
        };
        let [name, algorithm, secret] = ["transfer.key", algorithm, SECRET].map(str::to_owned);
        let setup = Setup {
            zones: vec![zone],
            transfer_key: Some(TransferKey { name, algorithm, secret }),
            lines: lines.to_owned(),
            ..Setup::new(folder.path())
        };
        let server = PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}"));
        Some(Self { server, folder })
    }

    /// Loads the next version into the server.
    fn load(&self, serial: u32) {
        let beside = self.folder.path().join("next");
        std::fs::write(&beside, text(serial)).unwrap();
        std::fs::rename(&beside, self.folder.path().join("zone")).unwrap();
        self.server.reload().unwrap();
    }
}

/// Receives NOTIFY messages like a server. Knot DNS sends them over TCP.
struct Ear {
    port: u16,
    udp: UdpSocket,
    tcp: TcpListener,
}

impl Ear {
    fn open() -> Self {
        let port = free_address(Ipv4Addr::LOCALHOST).unwrap().port();
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        udp.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        tcp.set_nonblocking(true).unwrap();
        Self { port, udp, tcp }
    }

    fn listen(&self, transfers: &Transfers, keys: &TsigKeys, is_stopped: &AtomicBool) {
        let mut buffer = [0; 4096];
        while !is_stopped.load(SeqCst) {
            if let Ok((length, sender)) = self.udp.recv_from(&mut buffer) {
                self.udp.send_to(&hear(&buffer[..length], sender, transfers, keys), sender).unwrap();
            }
            if let Ok((mut stream, sender)) = self.tcp.accept() {
                stream.set_nonblocking(false).unwrap();
                let mut length = [0; 2];
                while stream.read_exact(&mut length).is_ok() {
                    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
                    stream.read_exact(&mut message).unwrap();
                    let answer = hear(&message, sender, transfers, keys);
                    let framed = [&(answer.len() as u16).to_be_bytes(), &answer[..]].concat();
                    stream.write_all(&framed).unwrap();
                }
            }
        }
    }
}

fn hear(message: &[u8], sender: SocketAddr, transfers: &Transfers, keys: &TsigKeys) -> Vec<u8> {
    let now = nonesuch_server::clock::seconds_now();
    let verified = keys.verify(message, now).unwrap();
    let mut out = Vec::new();
    let standing = |name: NameRef<'_>| {
        if name == apex().view() {
            NotifyRole::Secondary { is_sender_permitted: verified.is_some() }
        } else {
            NotifyRole::NotServed
        }
    };
    if let Some(notified) = handle(message, sender.ip(), standing, &mut out) {
        assert!(transfers.queue_notify(notified));
    }
    if let Some(verified) = &verified {
        verified.signer().sign(&mut out, now);
    }
    out
}

fn keys(algorithm: TsigAlgorithm) -> TsigKeys {
    let name = "transfer.key.".parse().unwrap();
    TsigKeys::new([TsigKey::from_base64(&name, algorithm, SECRET).unwrap()]).unwrap()
}

fn remote(peer: &Primary) -> Remote {
    Remote { key: Some("transfer.key.".parse().unwrap()), ..Remote::plain(peer.server.address) }
}

/// Follows all versions up to `last` by NOTIFY, and compares each. The first arrives as a whole
/// zone, all others incrementally.
fn follow(peer: &Primary, ear: &Ear, algorithm: TsigAlgorithm, last: u32) {
    let keys = keys(algorithm);
    let store = Arc::new(TestStore::with_keys(keys.clone()));
    let transfers =
        Transfers::start(TransfersOptions::default(), Arc::clone(&store) as Arc<dyn ZoneStore>).unwrap();
    let is_stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| ear.listen(&transfers, &keys, &is_stopped));
        let followed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            transfers.set_zone(SecondaryZone::new(apex(), vec![remote(peer)]));
            assert_equal(&store.wait_for(&apex(), 1, false), &zone(1));
            for serial in 2..=last {
                peer.load(serial);
                assert_equal(&store.wait_for(&apex(), serial, false), &zone(serial));
            }
        }));
        is_stopped.store(true, SeqCst);
        assert!(followed.is_ok(), "{:?}\n{}", transfers.status(), peer.server.log());
    });
    let mut expected = vec![1; last as usize];
    expected[0] = 0;
    assert_eq!(store.published(&apex()), expected, "{:?}\n{}", transfers.counts(), peer.server.log());
}

/// Checks that a different key is rejected, with the reason in the error.
fn refuse(peer: &Primary, algorithm: TsigAlgorithm) {
    let name: Name = "transfer.key.".parse().unwrap();
    let wrong =
        TsigKey::from_base64(&name, algorithm, "d3JvbmcgbGVuZ3RoIGJ1dCBhIHNlY3JldCBhbnl3YXkhIQ==").unwrap();
    for keys in [TsigKeys::new([wrong]).unwrap(), TsigKeys::default()] {
        let store = Arc::new(TestStore::with_keys(keys.clone()));
        let transfers =
            Transfers::start(TransfersOptions::default(), Arc::clone(&store) as Arc<dyn ZoneStore>).unwrap();
        transfers.set_zone(SecondaryZone::new(apex(), vec![remote(peer)]));
        let began = Instant::now();
        while transfers.counts().failed == 0 {
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", transfers.status());
            std::thread::yield_now();
        }
        let error = transfers.status()[0].last_error.clone().unwrap();
        let expected = if keys.iter().next().is_none() {
            vec![ExchangeError::NoKey(name.clone()).to_string()]
        } else {
            let by_peer = ResponseTsigError::RejectedByServer(TsigError::BadSig);
            [ResponseTsigError::BadSig, by_peer].iter().map(ToString::to_string).collect()
        };
        assert!(expected.iter().any(|expected| error.contains(expected)), "{error}");
        assert!(store.published(&apex()).is_empty());
    }
}

#[test]
fn knot_as_primary() {
    let ear = Ear::open();
    let Some(peer) = Primary::start(Peer::Knot, ear.port, "hmac-sha256", "", "") else { return };
    refuse(&peer, TsigAlgorithm::HmacSha256);
    follow(&peer, &ear, TsigAlgorithm::HmacSha256, 100);
}

#[test]
fn bind_as_primary() {
    let ear = Ear::open();
    let lines = "max-journal-size unlimited; max-ixfr-ratio unlimited;";
    let Some(peer) = Primary::start(Peer::Bind, ear.port, "hmac-sha512", lines, "") else { return };
    refuse(&peer, TsigAlgorithm::HmacSha512);
    follow(&peer, &ear, TsigAlgorithm::HmacSha512, 100);
}

#[test]
fn nsd_as_primary() {
    let ear = Ear::open();
    let lines = "  ixfr-number: 20";
    let Some(peer) = Primary::start(Peer::Nsd, ear.port, "hmac-sha384", "", lines) else { return };
    refuse(&peer, TsigAlgorithm::HmacSha384);
    follow(&peer, &ear, TsigAlgorithm::HmacSha384, 100);
}
