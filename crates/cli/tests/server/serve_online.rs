//! `nonesuch serve` with online signing and online denial: every mechanism over UDP and TCP,
//! offline keys, rejected inputs with reasons, and counters.

use crate::common;
use common::{Running, done, generate_key, made, nonesuch, prepared, run, serve, snapshot, text};
use nonesuch_crypto::{Algorithm, PublicKey, key_tag};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_proto::message::{HEADER, Message, Rcode, Section, push_query};
use nonesuch_proto::{Rtype, edns, rdata};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const ORIGIN: &str = common::KEYS_ORIGIN;
const ONLINE: [&str; 3] = ["minimal-nsec", "compact", "white-lies"];
const LIMIT: Duration = Duration::from_secs(10);

fn query(name: &str, rtype: Rtype) -> Vec<u8> {
    let mut octets = Vec::new();
    push_query(&name.parse().expect("a name"), rtype, 0x1234, 0, &mut octets);
    edns::push_opt(1232, 0, edns::DO, &mut octets);
    octets[HEADER - 1] = 1;
    octets
}

fn ask_udp(server: SocketAddr, name: &str, rtype: Rtype) -> Message {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    socket.send_to(&query(name, rtype), server).expect("sent");
    let mut response = [0; 4096];
    let (length, _) = socket.recv_from(&mut response).expect("an answer");
    Message::parse(&response[..length]).expect("a message")
}

/// Sends all queries without waiting; the responses arrive in any order (RFC 7766 section 6.2.1.1).
fn ask_tcp(server: SocketAddr, queries: &[(String, Rtype)]) -> Vec<Message> {
    let mut stream = TcpStream::connect(server).expect("connected");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    let mut octets = Vec::new();
    for (name, rtype) in queries {
        let query = query(name, *rtype);
        octets.extend_from_slice(&(query.len() as u16).to_be_bytes());
        octets.extend_from_slice(&query);
    }
    stream.write_all(&octets).expect("sent");
    let mut answers = Vec::new();
    for _ in queries {
        let mut length = [0; 2];
        stream.read_exact(&mut length).expect("a length");
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message).expect("a message");
        answers.push(Message::parse(&message).expect("a message"));
    }
    answers
}

/// The keys that the zone publishes; the signature over the key set is verified.
fn dnskeys(server: SocketAddr) -> Vec<(u16, PublicKey)> {
    let message = ask_udp(server, ORIGIN, Rtype::DNSKEY);
    let records = message.section(Section::Answer).filter(|record| record.rtype == Rtype::DNSKEY);
    let keys: Vec<(u16, PublicKey)> = records
        .map(|record| {
            let public = PublicKey::parse(Algorithm(record.rdata[3]), &record.rdata[4..]).expect("a key");
            (key_tag(&record.rdata), public)
        })
        .collect();
    assert!(!keys.is_empty());
    verify(&message, &keys);
    keys
}

/// Verifies every signature; returns the types that are signed.
#[track_caller]
fn verify(message: &Message, keys: &[(u16, PublicKey)]) -> Vec<Rtype> {
    let mut signed = Vec::new();
    for record in message.records.iter().filter(|record| record.rtype == Rtype::RRSIG) {
        let fields = Rrsig::parse(&record.rdata).expect("a signature");
        let rrset = message.records.iter().filter(|other| {
            (other.section, other.rtype) == (record.section, fields.covered) && other.owner == record.owner
        });
        let mut rdatas: Vec<&[u8]> = rrset.map(|record| record.rdata.as_slice()).collect();
        rdatas.sort_by(|a, b| rdata::cmp_canonical(fields.covered, a, b));
        let mut data = Vec::new();
        push_signed_data(&fields, record.owner.view(), rdatas.into_iter(), &mut data);
        let (_, key) = keys.iter().find(|(tag, _)| *tag == fields.tag).expect("a key of that tag");
        assert!(key.verify(&data, fields.signature).is_ok(), "{} {}", record.owner, fields.covered);
        signed.push(fields.covered);
    }
    signed.sort_unstable();
    signed
}

#[track_caller]
fn assert_answers(server: SocketAddr, mechanism: &str) {
    let keys = dnskeys(server);
    let (record, absent) = match mechanism {
        "white-lies" => (Rtype::NSEC3, Rcode::NXDOMAIN),
        "compact" => (Rtype::NSEC, Rcode::NOERROR),
        _ => (Rtype::NSEC, Rcode::NXDOMAIN),
    };
    let queries: Vec<(String, Rtype)> =
        (0..100).map(|number| (format!("n{number}.{ORIGIN}"), Rtype::A)).collect();
    let denial = ask_udp(server, &queries[0].0, Rtype::A);
    let mut answers = ask_tcp(server, &queries);
    assert_eq!(answers.len(), 100);
    answers.push(denial);
    for denial in &answers {
        let signed = verify(denial, &keys);
        assert_eq!(denial.rcode(), absent);
        assert!(signed.contains(&Rtype::SOA) && signed.contains(&record), "{mechanism}: {signed:?}");
    }
    for (name, rtype, rcode) in [
        (format!("ns.{ORIGIN}"), Rtype::A, Rcode::NOERROR),
        (format!("x.w.{ORIGIN}"), Rtype::TXT, Rcode::NOERROR),
        (format!("sub.{ORIGIN}"), Rtype::DS, Rcode::NOERROR),
    ] {
        let message = ask_udp(server, &name, rtype);
        assert_eq!(message.rcode(), rcode);
        assert!(verify(&message, &keys).contains(&rtype), "{mechanism} {name} {rtype}");
    }
}

/// An unsigned zone with a key set that was signed on the machine with the KSK. The server has only
/// the ZSK.
#[test]
fn the_key_signing_key_stays_offline() {
    for (algorithm, mechanism) in
        [("ed25519", ONLINE[0]), ("rsasha256", ONLINE[1]), ("ecdsap256sha256", ONLINE[2])]
    {
        let folder = prepared();
        let (offline, online) = (made(folder.path(), "offline"), made(folder.path(), "online"));
        let key_signing = generate_key(&offline, ORIGIN, algorithm, &["--ksk"]);
        let zone_signing = generate_key(&online, ORIGIN, algorithm, &[]);
        let public = format!("{zone_signing}.key");
        fs::copy(online.join(&public), offline.join(&public)).expect("copied");
        let (zone, key_set) = (folder.path().join("zone"), folder.path().join("keyset"));
        let told = done([
            "zone",
            "sign",
            text(&zone),
            "-o",
            ORIGIN,
            "--only-keys",
            "--cds",
            "--keys",
            text(&offline),
            "-f",
            text(&key_set),
        ]);
        assert!(told.stdout.contains("2 DNSKEY records"), "{}", told.stdout);
        let text_of_zone = fs::read_to_string(&key_set).expect("a zone");
        assert_eq!(text_of_zone.matches("RRSIG").count(), 3, "DNSKEY, CDS, CDNSKEY: {text_of_zone}");
        let server = serve(&key_set, &["--denial", mechanism, "--keys", text(&online)]);
        assert_answers(server.address, mechanism);
        let message = ask_udp(server.address, ORIGIN, Rtype::DNSKEY);
        let signature = message.section(Section::Answer).find(|record| record.rtype == Rtype::RRSIG);
        let tag = Rrsig::parse(&signature.expect("a signature").rdata).expect("a signature").tag;
        assert!(key_signing.ends_with(&format!("+{tag:05}")), "{key_signing} {tag}");
    }
}

/// A signed zone, served with another denial mechanism.
#[test]
fn denial_is_made_over_a_signed_zone() {
    let folder = prepared();
    let keys = folder.path().join("keys");
    generate_key(&keys, ORIGIN, "ecdsap256sha256", &["--csk"]);
    for (beneath, mechanism) in [("nsec", ONLINE[2]), ("nsec3", ONLINE[0]), ("nsec3-opt-out", ONLINE[1])] {
        let signed = folder.path().join("signed");
        common::sign(&folder.path().join("zone"), ORIGIN, &keys, beneath, &signed);
        let server = serve(&signed, &["--denial", mechanism, "--keys", text(&keys)]);
        assert_answers(server.address, mechanism);
    }
}

/// A zone signed with NSEC5, and the directories of its keys.
struct Nsec5Site {
    folder: tempfile::TempDir,
    signed: PathBuf,
    keys: PathBuf,
    nsec5: PathBuf,
}

fn nsec5_site() -> Nsec5Site {
    let folder = prepared();
    let (keys, public) = (folder.path().join("keys"), made(folder.path(), "public"));
    generate_key(&keys, ORIGIN, "ed25519", &["--csk", "--nsec5"]);
    let (zone, signed) = (folder.path().join("zone"), public.join("signed"));
    common::sign(&zone, ORIGIN, &keys, "nsec5", &signed);
    Nsec5Site { folder, signed, keys, nsec5: public.join("nsec5") }
}

#[test]
fn nsec5_is_served_with_the_vrf_key_alone() {
    let site = nsec5_site();
    let assert_denies = |server: &Running| {
        let keys = dnskeys(server.address);
        let message = ask_udp(server.address, &format!("none.{ORIGIN}"), Rtype::A);
        assert_eq!(message.rcode(), Rcode::NXDOMAIN);
        assert!(verify(&message, &keys).contains(&Rtype::NSEC5));
        let proofs = message.section(Section::Authority).filter(|record| record.rtype == Rtype::NSEC5PROOF);
        assert_eq!(proofs.count(), 2);
    };
    // The server finds the directory next to the zone file. Stored proofs may be missing.
    assert_denies(&serve(&site.signed, &[]));
    for entry in fs::read_dir(&site.nsec5).expect("a directory") {
        let path = entry.expect("an entry").path();
        if text(&path).ends_with(".proofs") {
            fs::remove_file(path).expect("removed");
        }
    }
    assert_denies(&serve(&site.signed, &["--nsec5-keys", text(&site.nsec5)]));
}

/// The server does not start; its error is the section `case` of a snapshot.
#[track_caller]
fn refused(case: &str, arguments: &[&str]) {
    let ended = run(&mut nonesuch([&["serve", "--listen", "127.0.0.1:0"], arguments].concat()));
    assert_ne!(ended.status, 0, "{arguments:?}: {}", ended.text());
    snapshot::check("serve", case, ended.error());
}

#[test]
fn a_server_with_nsec5_refuses_signing_keys() {
    let site = nsec5_site();
    let signed = text(&site.signed);
    let keys = text(&site.keys);
    refused("NSEC5 zone with another mechanism", &[signed, "--denial", "compact", "--keys", keys]);
    refused("NSEC5 zone, signing key in --nsec5-keys", &[signed, "--nsec5-keys", keys]);
    let folder = text(site.folder.path());
    refused("NSEC5 zone, no VRF key in --nsec5-keys", &[signed, "--nsec5-keys", folder]);
    refused("NSEC5 zone, --nsec5-keys does not exist", &[signed, "--nsec5-keys", "nowhere"]);
    // Under any name, next to the zone file and in the directory of the VRF key.
    let key = fs::read_dir(&site.keys).expect("a directory").map(|entry| entry.expect("an entry").path());
    let key = key.into_iter().find(|path| text(path).ends_with(".private")).expect("a key");
    for (case, place) in [
        ("NSEC5 zone, signing key next to the zone file", site.signed.with_file_name("notes.txt")),
        ("NSEC5 zone, signing key next to the VRF key", site.nsec5.join("backup")),
    ] {
        fs::copy(&key, &place).expect("copied");
        refused(case, &[signed]);
        fs::remove_file(&place).expect("removed");
    }
    drop(serve(&site.signed, &[]));
}

#[test]
fn what_cannot_be_served_is_refused_with_the_remedy() {
    let folder = prepared();
    let zone = folder.path().join("zone");
    fs::write(&zone, format!("$ORIGIN {ORIGIN}\n{}", common::KEYS_ZONE)).expect("written");
    let (zone, keys) = (text(&zone), folder.path().join("keys"));
    let empty = made(folder.path(), "empty");
    let no_keys = text(&empty);
    refused("online denial without --keys", &[zone, "--denial", "compact"]);
    refused("--denial with an offline mechanism", &[zone, "--denial", "nsec", "--keys", no_keys]);
    refused("online denial, no key", &[zone, "--denial", "compact", "--keys", no_keys]);
    refused("--keys without --denial", &[zone, "--keys", no_keys]);
    refused("--nsec5-keys for an unsigned zone", &[zone, "--nsec5-keys", no_keys]);
    // A KSK without its private file, and a key set without a signature.
    let base = generate_key(&keys, ORIGIN, "ed25519", &["--ksk"]);
    generate_key(&keys, ORIGIN, "ed25519", &[]);
    fs::rename(keys.join(format!("{base}.private")), folder.path().join("away")).expect("moved");
    let online = ["--denial", "compact", "--keys", text(&keys)];
    refused("online denial, no private key-signing key", &[&[zone], &online[..]].concat());
    // A ZSK that the zone does not publish.
    let other = folder.path().join("other");
    generate_key(&other, ORIGIN, "ed25519", &["--csk"]);
    let signed = folder.path().join("signed");
    common::sign(Path::new(zone), ORIGIN, &other, "nsec", &signed);
    refused("online denial, key that the zone does not publish", &[&[text(&signed)], &online[..]].concat());
    // A signed zone with a fault.
    let altered = fs::read_to_string(&signed).expect("a zone").replace("192.0.2.1", "192.0.2.9");
    fs::write(&signed, altered).expect("written");
    let online = ["--denial", "compact", "--keys", text(&other)];
    refused("online denial, zone with a fault", &[&[text(&signed)], &online[..]].concat());
}

/// The last line contains the counters of online work.
#[test]
fn counters_are_told_at_the_end() {
    let folder = prepared();
    let keys = folder.path().join("keys");
    generate_key(&keys, ORIGIN, "ecdsap256sha256", &["--csk"]);
    let zone = folder.path().join("zone");
    let mut child = nonesuch(["serve", "--listen", "127.0.0.1:0", "--workers", "1", "--json", text(&zone)])
        .args(["-o", ORIGIN, "--denial", "white-lies", "--keys", text(&keys)])
        .stdout(Stdio::piped())
        .spawn()
        .expect("nonesuch starts");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut next = || -> serde_json::Value {
        serde_json::from_str(&lines.next().expect("a line").expect("text")).expect("JSON")
    };
    let ready = next();
    let address = ready["ready"]["address"].as_str().expect("an address").parse().expect("an address");
    for name in ["a", "b", "a"] {
        ask_udp(address, &format!("{name}.{ORIGIN}"), Rtype::A);
    }
    let id = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
    let stopped = next();
    child.wait().expect("ended");
    let online = &stopped["stopped"]["online"];
    assert_eq!(online["signature_misses"], 5, "SOA, encloser, wildcard and two names: {online}");
    assert_eq!(online["signature_hits"], 3 + 4, "{online}");
    assert_eq!(online["operations"]["white-lies ECDSAP256SHA256"], 4, "{online}");
    assert_eq!(online["operations"]["data ECDSAP256SHA256"], 1, "{online}");
    assert_eq!((&online["refused"], &online["failed"]), (&0.into(), &0.into()), "{online}");
}
