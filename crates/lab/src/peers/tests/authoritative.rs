//! Every installed authoritative server serves a zone, signed beforehand and online.

use super::fixture::{EXAMPLE, SignedZone, ask, assert_stops, is_installed};
use crate::peers::{Peer, PeerRole, PeerServer, PeerZone, Serving, Setup, TransferKey};
use crate::process;
use nonesuch_dnssec::Mechanism;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Section, flags};
use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

fn installed() -> impl Iterator<Item = Peer> {
    let servers = Peer::all().filter(|peer| peer.info().role == PeerRole::Authoritative);
    servers.filter(|peer| is_installed(*peer))
}

fn count(message: &Message, section: Section, rtype: Rtype) -> usize {
    message.section(section).filter(|record| record.rtype == rtype).count()
}

/// Queries an existing name and a name that does not exist in `example.`
#[track_caller]
fn assert_signed(server: &PeerServer) {
    let existing = ask(server.address, "www.example.", Rtype::A);
    assert_eq!(existing.rcode(), Rcode::NOERROR, "{:?}", server.peer);
    assert_ne!(existing.header.flags & flags::AA, 0, "{:?}", server.peer);
    let found = [Rtype::A, Rtype::RRSIG].map(|rtype| count(&existing, Section::Answer, rtype));
    assert_eq!(found, [1, 1], "{:?}", server.peer);
    let denied = ask(server.address, "missing.example.", Rtype::A);
    let proofs = [Rtype::NSEC, Rtype::NSEC3].map(|rtype| count(&denied, Section::Authority, rtype));
    assert!(proofs[0] + proofs[1] >= 1, "{:?}: {denied:?}", server.peer);
    assert!(count(&denied, Section::Authority, Rtype::RRSIG) >= 2, "{:?}: {denied:?}", server.peer);
}

#[test]
fn every_peer_serves_a_signed_zone_and_stops() {
    let folder = tempfile::tempdir().expect("a directory");
    let zone = SignedZone::make(folder.path(), "example.", EXAMPLE);
    for peer in installed() {
        let zones = vec![PeerZone::new("example.", &zone.signed, Serving::Presigned)];
        let setup = Setup { zones, ..Setup::new(&folder.path().join(peer.info().name)) };
        let server = PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}"));
        assert!(server.address.ip().is_loopback() && server.memory_kib() > 0, "{peer:?}");
        assert_signed(&server);
        assert_stops(server);
    }
}

/// A delegation that opt-out omits from the chain.
const DELEGATION: &str = "sub NS ns.sub\nns.sub A 192.0.2.9\n";

#[test]
fn peers_serve_zones_with_nsec3() {
    let folder = tempfile::tempdir().expect("a directory");
    for mechanism in [Mechanism::Nsec3, Mechanism::Nsec3OptOut] {
        let folder = folder.path().join(mechanism.to_string());
        let zone = SignedZone::make_with(&folder, "example.", &format!("{EXAMPLE}{DELEGATION}"), mechanism);
        // CoreDNS does not read NSEC3 records.
        for peer in installed().filter(|peer| *peer != Peer::CoreDns) {
            let zones = vec![PeerZone::new("example.", &zone.signed, Serving::Presigned)];
            let setup = Setup { zones, ..Setup::new(&folder.join(peer.info().name)) };
            let server = PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}"));
            let denied = ask(server.address, "missing.example.", Rtype::A);
            let counts = [Rtype::NSEC, Rtype::NSEC3, Rtype::RRSIG]
                .map(|rtype| count(&denied, Section::Authority, rtype));
            // Each NSEC3 record and the SOA record are signed.
            assert!(counts[0] == 0 && counts[1] >= 2, "{peer:?}, {mechanism}: {denied:?}");
            assert_eq!(counts[2], counts[1] + 1, "{peer:?}, {mechanism}: {denied:?}");
        }
    }
}

#[test]
fn every_online_signer_signs_with_given_keys() {
    let folder = tempfile::tempdir().expect("a directory");
    let zone = SignedZone::make(folder.path(), "example.", EXAMPLE);
    for peer in installed() {
        for denial in peer.info().online.iter().copied() {
            let serving = Serving::Online { denial, keys: zone.keys.to_vec() };
            let zones = vec![PeerZone::new("example.", &zone.unsigned, serving)];
            let name = format!("{}-{denial:?}", peer.info().name);
            let setup = Setup { zones, ..Setup::new(&folder.path().join(name)) };
            let server = PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}"));
            assert_signed(&server);
            let keys = ask(server.address, "example.", Rtype::DNSKEY);
            let keys: Vec<&[u8]> = keys
                .section(Section::Answer)
                .filter(|record| record.rtype == Rtype::DNSKEY)
                .map(|record| record.rdata.as_slice())
                .collect();
            assert!(zone.dnskeys.iter().all(|key| keys.contains(&key.as_slice())), "{peer:?}: {keys:?}");
            assert_eq!(keys.len(), 2, "{peer:?}");
        }
    }
}

#[test]
fn online_signers_generate_keys() {
    let folder = tempfile::tempdir().expect("a directory");
    let zone = SignedZone::make(folder.path(), "example.", EXAMPLE);
    for peer in installed().filter(|peer| *peer != Peer::CoreDns) {
        let Some(denial) = peer.info().online.last().copied() else { continue };
        let serving = Serving::Online { denial, keys: Vec::new() };
        let zones = vec![PeerZone::new("example.", &zone.unsigned, serving)];
        let setup = Setup { zones, ..Setup::new(&folder.path().join(peer.info().name)) };
        assert_signed(&PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}")));
    }
}

/// Each peer that transfers zones is primary and secondary of each other one, with TSIG.
#[test]
fn secondaries_transfer_zones_and_follow_notify() {
    let folder = tempfile::tempdir().expect("a directory");
    let secret = "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch".to_owned();
    let key = TransferKey { name: "transfer.key".to_owned(), algorithm: "hmac-sha256".to_owned(), secret };
    let all: Vec<Peer> = installed().filter(|peer| peer.info().transfers).collect();
    for (index, &primary) in all.iter().enumerate() {
        let secondary = all[(index + 1) % all.len()];
        let to = crate::peers::free_address(Ipv4Addr::LOCALHOST).expect("a free port");
        let file = folder.path().join(format!("file-{index}"));
        fs::write(&file, format!("$ORIGIN example.\n{EXAMPLE}")).expect("written");
        let setup = |name: &str, port, zone| Setup {
            transfer_key: Some(key.clone()),
            port,
            zones: vec![zone],
            ..Setup::new(&folder.path().join(format!("{name}-{index}")))
        };
        let zone = PeerZone { notify: Some(to), ..PeerZone::new("example.", &file, Serving::Unsigned) };
        let primary = PeerServer::start(primary, &setup("primary", None, zone))
            .unwrap_or_else(|error| panic!("{error}"));
        let from = Serving::Secondary { primary: primary.address, tls: None };
        let zone = PeerZone::new("example.", &folder.path().join(format!("copy-{index}")), from);
        let secondary = PeerServer::start(secondary, &setup("secondary", Some(to.port()), zone))
            .unwrap_or_else(|error| panic!("{error}"));
        wait_for_serial(&primary, &secondary, 1);
        // Servers notice a change by the time of the file, which some read in whole seconds.
        let changed = fs::metadata(&file).and_then(|data| data.modified()).expect("a time");
        fs::write(&file, format!("$ORIGIN example.\n{}", EXAMPLE.replace("host 1 ", "host 2 ")))
            .expect("written");
        let later = changed + Duration::from_secs(2);
        fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(later)).expect("set");
        primary.reload().expect("it runs");
        wait_for_serial(&primary, &secondary, 2);
    }
}

#[track_caller]
fn wait_for_serial(primary: &PeerServer, server: &PeerServer, serial: u8) {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = ask(server.address, "example.", Rtype::SOA);
        let found = answer.section(Section::Answer).find(|record| record.rtype == Rtype::SOA);
        // The serial is followed by four fields of four octets (RFC 1035 §3.3.13).
        if found.is_some_and(|soa| soa.rdata[soa.rdata.len() - 17] == serial) {
            return;
        }
        assert!(
            Instant::now() < end,
            "{:?} has no version {serial}: {}{}",
            server.peer,
            server.log(),
            primary.log()
        );
        std::thread::yield_now();
    }
}

#[test]
fn a_peer_keeps_to_its_cpus_and_its_address() {
    let folder = tempfile::tempdir().expect("a directory");
    let zone = SignedZone::make(folder.path(), "example.", EXAMPLE);
    let cpu = *crate::machine::allowed_cpus().last().expect("a CPU");
    for peer in installed() {
        let ip = if peer == Peer::Bind { Ipv4Addr::LOCALHOST } else { Ipv4Addr::new(127, 3, 5, 7) };
        let setup = Setup {
            ip,
            cpus: vec![cpu],
            zones: vec![PeerZone::new("example.", &zone.unsigned, Serving::Unsigned)],
            ..Setup::new(&folder.path().join(peer.info().name))
        };
        let server = PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(server.address.ip(), setup.ip);
        for pid in process::tree(server.pid()) {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            assert_eq!(allowed.map(str::trim), Some(cpu.to_string().as_str()), "{peer:?}");
        }
    }
}
