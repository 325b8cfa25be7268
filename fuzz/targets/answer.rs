//! Answers queries: never panics, and every response is a message that the sender can accept.
//!
//! The first octet selects the transport and a server; each server has a different form of signing
//! and denial. The rest is the query.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_authoritative::zones::{ServedZone, ZoneState, Zones};
use nonesuch_authoritative::{Published, Responder, ServerContext};
use nonesuch_crypto::PrivateKey;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, ProveOptions, prove_chain};
use nonesuch_dnssec::keys::{CdsSchedule, KeyRecord};
use nonesuch_dnssec::online::{DEFAULT_VALIDITY, Nsec5Prover, OnlineOptions, OnlineSigner, prepare};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, VerifyOptions, into_verified, sign};
use nonesuch_net::Transport;
use nonesuch_net::{Answer, Handler as _};
use nonesuch_proto::Name;
use nonesuch_proto::message::{Header, Message, Rcode, flags};
use nonesuch_server::query::{Query, QueryFault};
use nonesuch_zone::{Contents, read::read_text};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// Maximum size of a UDP response with EDNS (RFC 9715 §3) and without EDNS (RFC 1035 §4.2.1).
const UDP: u16 = 1232;
const PLAIN_UDP: usize = 512;
/// YXDOMAIN, for a DNAME whose result is too long (RFC 6672 §2.2).
const YXDOMAIN: Rcode = Rcode(6);
const NOW: u32 = 1_750_000_000;

/// Servers of the zone in `zone.txt`, one for each form of signing. The key is the same in every
/// run.
static SERVERS: LazyLock<Vec<ServerContext>> = LazyLock::new(|| {
    let mut zones = vec![publish(plain())];
    zones.extend([Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut].map(|m| publish(signed(m))));
    for mechanism in [Mechanism::MinimalNsec, Mechanism::Compact, Mechanism::WhiteLies] {
        zones.push(online(plain(), mechanism));
        zones.push(online(signed(Mechanism::Nsec3), mechanism));
    }
    zones.extend([Mechanism::Nsec5, Mechanism::Nsec5OptOut].map(nsec5));
    zones.into_iter().map(server).collect()
});

thread_local! {
    /// Two responders for each server: one for UDP and one for TCP.
    static RESPONDERS: RefCell<Vec<[Responder; 2]>> =
        RefCell::new(SERVERS.iter().map(|server| TRANSPORTS.map(|by| responder(server, by))).collect());
}

const TRANSPORTS: [Transport; 2] = [Transport::Udp, Transport::Tcp];

fn server(published: Published) -> ServerContext {
    let zones = Zones::new();
    let apex = published.image().apex().to_name();
    zones.set(&apex, ZoneState::Serving(Arc::new(ServedZone::new(published, Arc::default()))));
    ServerContext::new(Arc::new(zones))
}

fn address() -> SocketAddr {
    ([127, 0, 0, 1], 53).into()
}

fn responder(server: &ServerContext, transport: Transport) -> Responder {
    Responder::new(server, transport, address(), OnlineSigner::new(1 << 16, Arc::default()), 0)
}

fn plain() -> Contents {
    let reading = read_text(include_bytes!("zone.txt"), Path::new("zone.txt"), None);
    reading.unwrap_or_else(|error| panic!("{error}")).contents
}

/// Returns the key; with `alias`, under the number of the alias for NSEC5.
fn pair(zone: &Name, alias: bool) -> KeyPair {
    let text = include_str!("key.private");
    let read = |text: &str| PrivateKey::from_bind(text).unwrap_or_else(|error| panic!("{error}"));
    let algorithm = read(text).algorithm();
    let number = algorithm.nsec5_alias().filter(|_| alias).unwrap_or(algorithm).0;
    let (from, to) = (format!("Algorithm: {}", algorithm.0), format!("Algorithm: {number}"));
    KeyPair::new(zone.clone(), 257, read(&text.replacen(&from, &to, 1)))
}

fn sign_with(contents: &Contents, mechanism: Mechanism, nsec5: Option<Nsec5Chain<'_>>) -> Contents {
    let keys = KeySet::new(contents.apex(), vec![pair(contents.apex(), nsec5.is_some())]);
    let keys = keys.unwrap_or_else(|error| panic!("{error}"));
    let options = SignOptions { nsec5, ..SignOptions::new(mechanism, 1_700_000_000, 1_800_000_000) };
    sign(contents, &keys, &options).unwrap_or_else(|error| panic!("{error}")).into_contents()
}

fn signed(mechanism: Mechanism) -> Contents {
    sign_with(&plain(), mechanism, None)
}

fn verification() -> VerifyOptions {
    VerifyOptions { now: Some(NOW), ..VerifyOptions::default() }
}

fn publish(contents: Contents) -> Published {
    let verified =
        into_verified(contents, &verification()).unwrap_or_else(|bad| panic!("{:?}", bad.report.faults));
    Published::new(&verified).unwrap_or_else(|error| panic!("{error}"))
}

fn online(contents: Contents, mechanism: Mechanism) -> Published {
    let pair = pair(contents.apex(), false);
    let (records, sync) = (vec![KeyRecord::of(&pair)], CdsSchedule::default());
    let options = OnlineOptions { mechanism, records, pairs: vec![pair], validity: DEFAULT_VALIDITY, sync };
    let prepared = prepare(contents, options, &verification()).unwrap_or_else(|error| panic!("{error}"));
    Published::online(prepared).unwrap_or_else(|error| panic!("{error}"))
}

fn nsec5(mechanism: Mechanism) -> Published {
    let vrf = VrfPrivateKey::from_secret(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, &[5; 32]);
    let vrf = vrf.unwrap_or_else(|error| panic!("{error}"));
    let plain = plain();
    let proofs =
        prove_chain(&plain, &vrf, &ProveOptions::new(mechanism)).unwrap_or_else(|error| panic!("{error}")).0;
    let signed = sign_with(&plain, mechanism, Some(Nsec5Chain { proofs: &proofs, keep_other_keys: false }));
    let prover = Nsec5Prover::new(&signed, vrf, Some(proofs)).unwrap_or_else(|error| panic!("{error}"));
    let verified =
        into_verified(signed, &verification()).unwrap_or_else(|bad| panic!("{:?}", bad.report.faults));
    Published::nsec5(&verified, prover).unwrap_or_else(|error| panic!("{error}"))
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, query)) = data.split_first() else { return };
    let transport = usize::from(choice & 1);
    let mut out = Vec::new();
    let is_answered = RESPONDERS.with_borrow_mut(|responders| {
        let server = usize::from(choice >> 1) % responders.len();
        let responder = &mut responders[server][transport];
        responder.begin_batch();
        let is_answered = match responder.answer(query, address(), &mut out) {
            Answer::Ready => true,
            Answer::Nothing => false,
            Answer::Deferred => {
                responder.generate_deferred();
                out.clear();
                responder.answer_again(query, address(), &mut out)
            }
            Answer::Stream => panic!("no client may transfer the zone"),
        };
        responder.end_batch();
        is_answered
    });
    check(query, TRANSPORTS[transport], is_answered.then_some(out.as_slice()));
});

fn check(query: &[u8], transport: Transport, response: Option<&[u8]>) {
    let parsed = Query::parse(query);
    // There is no response only to a response, or to a message without a complete header.
    let Some(octets) = response else {
        assert!(matches!(parsed, Err(QueryFault::Ignore)));
        return;
    };
    assert!(octets.len() <= limit(&parsed, transport), "{} octets", octets.len());
    let response = Message::parse(octets).unwrap_or_else(|error| panic!("{error}: {octets:02x?}"));
    let header = response.header;
    assert_eq!(Some(header.id), Header::read(query).map(|header| header.id));
    assert_ne!(header.flags & flags::QR, 0);
    assert_eq!(header.flags & (flags::RA | flags::AD), 0);
    let rcodes = [
        Rcode::NOERROR,
        Rcode::FORMERR,
        Rcode::NXDOMAIN,
        Rcode::NOTIMP,
        Rcode::REFUSED,
        Rcode::NOTAUTH,
        YXDOMAIN,
        Rcode::BADVERS,
    ];
    assert!(rcodes.contains(&response.rcode()), "{}", response.rcode());
    let Ok(query) = parsed else {
        assert!(response.records.len() <= 2, "more than OPT and TSIG");
        return;
    };
    // After a malformed option, the response contains only the header. A signed query is rejected,
    // because the server has no key.
    if query.tsig_offset.is_some() || header.counts[0] == 0 {
        assert!(matches!(response.rcode(), Rcode::FORMERR | Rcode::NOTAUTH));
        return;
    }
    assert!(octets[12..].starts_with(query.question), "the question is repeated as it was");
    assert_eq!(response.opt().is_some(), query.opt.is_some());
    if header.flags & flags::TC != 0 {
        assert!(response.records.len() <= usize::from(query.opt.is_some()), "truncated, and yet records");
    }
}

/// Returns the maximum size of a response that the sender accepts, in octets.
fn limit(query: &Result<Query<'_>, QueryFault>, transport: Transport) -> usize {
    match (transport, query) {
        (Transport::Tcp | Transport::Tls, _) => usize::from(u16::MAX),
        (Transport::Udp, Ok(Query { opt: Some(opt), .. })) => usize::from(opt.payload.min(UDP)),
        (Transport::Udp, _) => PLAIN_UDP,
    }
}
