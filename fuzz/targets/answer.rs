//! From query to response: never a panic, always a message that the sender can take.
//!
//! The first octet chooses the zone (unsigned, NSEC, NSEC3, opt-out) and the transport; the rest is the query.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_authoritative::{Malformed, Query, Transport, answer};
use nonesuch_crypto::PrivateKey;
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
use nonesuch_proto::message::{Header, Message, Rcode, flags};
use nonesuch_zone::{Image, read::read_text};
use std::path::Path;
use std::sync::LazyLock;

/// Largest UDP response (RFC 9715 §3), and without EDNS (RFC 1035 §4.2.1).
const UDP: u16 = 1232;
const PLAIN_UDP: usize = 512;
/// RFC 6672 §2.2.
const YXDOMAIN: Rcode = Rcode(6);

static IMAGES: LazyLock<Vec<Image>> = LazyLock::new(|| {
    let mechanisms = [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut];
    std::iter::once(None).chain(mechanisms.map(Some)).map(image).collect()
});

/// The zone of `zone.txt`, signed by a key that is the same in every run.
fn image(mechanism: Option<Mechanism>) -> Image {
    let reading = read_text(include_bytes!("zone.txt"), Path::new("zone.txt"), None);
    let contents = reading.unwrap_or_else(|error| panic!("{error}")).contents;
    let Some(mechanism) = mechanism else { return compile(&contents) };
    let zone = contents.apex();
    let private =
        PrivateKey::from_bind(include_str!("key.private")).unwrap_or_else(|error| panic!("{error}"));
    let keys = vec![KeyPair::new(zone.clone(), 257, private)];
    let keys = KeySet::new(zone, keys).unwrap_or_else(|error| panic!("{error}"));
    let options = SignOptions::new(mechanism, 1_700_000_000, 1_800_000_000);
    let signed = sign(&contents, &keys, &options).unwrap_or_else(|error| panic!("{error}"));
    compile(signed.contents())
}

fn compile(contents: &nonesuch_zone::Contents) -> Image {
    Image::compile(contents).unwrap_or_else(|error| panic!("{error}"))
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, query)) = data.split_first() else { return };
    let image = &IMAGES[usize::from(choice) % IMAGES.len()];
    let transport = if choice & 4 == 0 { Transport::Udp } else { Transport::Tcp };
    let mut out = Vec::new();
    let is_answered = answer(image, query, transport, &mut out);
    check(query, transport, is_answered.then_some(out.as_slice()));
});

fn check(query: &[u8], transport: Transport, response: Option<&[u8]>) {
    let parsed = Query::parse(query);
    // Only a response, or what has no whole header, is left without a response.
    let Some(octets) = response else {
        assert!(matches!(parsed, Err(Malformed::Ignore)));
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
        YXDOMAIN,
        Rcode::BADVERS,
    ];
    assert!(rcodes.contains(&response.rcode()), "{}", response.rcode());
    let Ok(query) = parsed else {
        assert!(response.records.is_empty());
        return;
    };
    assert!(octets[12..].starts_with(query.question), "the question is repeated as it was");
    assert_eq!(response.opt().is_some(), query.opt.is_some());
    if header.flags & flags::TC != 0 {
        assert!(response.records.len() <= usize::from(query.opt.is_some()), "truncated, and yet records");
    }
}

/// Most octets that the sender takes.
fn limit(query: &Result<Query<'_>, Malformed>, transport: Transport) -> usize {
    match (transport, query) {
        (Transport::Tcp, _) => usize::from(u16::MAX),
        (Transport::Udp, Ok(Query { opt: Some(opt), .. })) => usize::from(opt.payload.min(UDP)),
        (Transport::Udp, _) => PLAIN_UDP,
    }
}
