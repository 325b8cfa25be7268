//! A small signed tree, queries, and processes.

use crate::measure::examine::write_file;
use crate::peers::{Peer, PeerServer, TrustAnchor};
use crate::process;
use nonesuch_crypto::{Algorithm, DigestType, PrivateKey};
use nonesuch_dnssec::keys::{KeyRecord, KeyTimes, SEP, ZONE_KEY};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, Nsec3Params, SignOptions, sign};
use nonesuch_proto::edns::{DO, push_opt};
use nonesuch_proto::message::{Message, flags, push_query};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::read::read_text;
use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time limit for an answer.
const ANSWER: Duration = Duration::from_secs(15);

/// Records of `example.` for [`SignedZone::make`].
pub(super) const EXAMPLE: &str =
    "$TTL 300\n@ SOA ns host 1 7200 3600 1209600 300\n@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.1\n";

/// A zone file, its signed form, and its keys.
pub(super) struct SignedZone {
    pub(super) unsigned: PathBuf,
    pub(super) signed: PathBuf,
    /// Key files without the suffix: KSK and ZSK.
    pub(super) keys: [PathBuf; 2],
    pub(super) anchor: TrustAnchor,
    /// The RDATA of both DNSKEY records.
    pub(super) dnskeys: Vec<Vec<u8>>,
}

impl SignedZone {
    /// Signs `text` with P-256 and NSEC, with a KSK and a ZSK in `folder`.
    pub(super) fn make(folder: &Path, origin: &str, text: &str) -> Self {
        Self::make_with(folder, origin, text, Mechanism::Nsec)
    }

    /// Signs `text` with P-256 and the denial `mechanism`, with a KSK and a ZSK in `folder`. NSEC3
    /// has 5 iterations.
    pub(super) fn make_with(folder: &Path, origin: &str, text: &str, mechanism: Mechanism) -> Self {
        let apex: Name = origin.parse().expect("a name");
        let folder = folder.join(format!("zone-{origin}"));
        fs::create_dir_all(&folder).expect("a directory");
        let (unsigned, signed) = (folder.join("unsigned"), folder.join("signed"));
        fs::write(&unsigned, format!("$ORIGIN {origin}\n{text}")).expect("written");
        let pairs = [ZONE_KEY | SEP, ZONE_KEY].map(|flags| {
            let key = PrivateKey::generate_any_length(Algorithm::ECDSAP256SHA256, None).expect("a key");
            KeyPair::new(apex.clone(), flags, key)
        });
        let records = pairs.each_ref().map(KeyRecord::of);
        let keys = [0, 1].map(|number: usize| write_key(&folder, &pairs[number], &records[number]));
        let ds = records[0].ds_rdata(DigestType::SHA256).expect("a digest");
        let fields = format!("{} {} {}", u16::from_be_bytes([ds[0], ds[1]]), ds[2], ds[3]);
        let digest = ds[4..].iter().fold(String::new(), |mut text, octet| {
            let _ = write!(text, "{octet:02X}");
            text
        });
        let anchor = TrustAnchor { zone: origin.to_owned(), ds: format!("{fields} {digest}") };
        let dnskeys = pairs.iter().map(KeyPair::dnskey_rdata).collect();
        let contents =
            read_text(&fs::read(&unsigned).expect("a file"), &unsigned, None).expect("a zone").contents;
        let keys_of_zone = KeySet::new(&apex, pairs.into()).expect("keys");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as u32;
        let nsec3 = Nsec3Params { iterations: 5, ..Nsec3Params::default() };
        let wanted = SignOptions { now, nsec3, ..SignOptions::new(mechanism, now - 3600, now + 86_400) };
        let contents = sign(&contents, &keys_of_zone, &wanted).expect("signed").into_contents();
        write_file(&contents, &signed).expect("written");
        Self { unsigned, signed, keys, anchor, dnskeys }
    }
}

fn write_key(folder: &Path, pair: &KeyPair, record: &KeyRecord) -> PathBuf {
    let (base, times) = (folder.join(record.base_name()), KeyTimes::default());
    fs::write(format!("{}.key", base.display()), pair.key_file_text(&times)).expect("written");
    fs::write(format!("{}.private", base.display()), pair.private_file_text(&times)).expect("written");
    base
}

/// Sends a query with RD, AD and DO over UDP.
#[track_caller]
pub(super) fn ask(server: SocketAddr, name: &str, rtype: Rtype) -> Message {
    let socket = UdpSocket::bind((server.ip(), 0)).expect("a socket");
    socket.set_read_timeout(Some(ANSWER)).expect("a limit");
    let mut query = Vec::new();
    push_query(&name.parse().expect("a name"), rtype, 7, flags::RD | flags::AD, &mut query);
    query[11] = 1;
    push_opt(1232, 0, DO, &mut query);
    socket.send_to(&query, server).expect("sent");
    let mut response = [0; 4096];
    let length = socket.recv(&mut response).unwrap_or_else(|error| panic!("no answer for {name}: {error}"));
    Message::parse(&response[..length]).expect("a message")
}

/// Whether the peer is installed; otherwise records a skip.
pub(super) fn is_installed(peer: Peer) -> bool {
    let missing = peer.missing_programs();
    for program in &missing {
        nonesuch_testing::record_skip(&format!("{program} is not installed"));
    }
    missing.is_empty()
}

/// Stops the peer, and asserts that none of its processes is left.
#[track_caller]
pub(super) fn assert_stops(server: PeerServer) {
    let processes = process::tree(server.pid());
    assert!(processes.iter().all(|pid| process::is_running(*pid)), "it runs");
    let peer = server.peer;
    drop(server);
    let left: Vec<u32> = processes.into_iter().filter(|pid| process::is_running(*pid)).collect();
    assert!(left.is_empty(), "{peer:?}: {left:?}");
}
