//! Messages of a primary: never panics, and the result is a valid zone.
//!
//! The first octet selects the type of the request. Then follow messages, each after its length in
//! two octets, as over TCP. Identifier and question of each message are corrected, so that mutation
//! need not find them. Steps are applied to the zone in `changes.zone`. The same octets are also
//! read as a NOTIFY, and the transferred zone as a catalog.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_authoritative::catalog::Catalog;
use nonesuch_proto::{Name, NameRef};
use nonesuch_secondary::inbound::{
    InboundRequest, InboundTransfer, TransferBounds, TransferContent, apply_steps,
};
use nonesuch_secondary::notify::{NotifyRole, handle};
use nonesuch_zone::change::SerialRule;
use nonesuch_zone::{Contents, read::read_text, write::write_zone};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::LazyLock;

/// The local version of the zone.
static ZONE: LazyLock<Contents> = LazyLock::new(|| {
    let origin = Name::prepend(b"example", NameRef::ROOT).ok();
    let reading = read_text(include_bytes!("changes.zone"), Path::new("changes.zone"), origin.as_ref());
    reading.unwrap_or_else(|error| panic!("{error}")).contents
});

const ID: u16 = 0x4e53;
const QUESTION: usize = 12;

fuzz_target!(|data: &[u8]| {
    let Some((choice, mut rest)) = data.split_first() else { return };
    tell(rest);
    let serial = ZONE.soa().map_or(0, |soa| soa.serial);
    let asked = if choice & 1 == 0 { InboundRequest::Axfr } else { InboundRequest::Ixfr { serial } };
    let bounds = TransferBounds { records: 10_000, octets: 1 << 20, steps: 1000 };
    let mut inbound = InboundTransfer::new(ZONE.apex().clone(), ID, asked, bounds);
    let mut is_complete = false;
    while let Some((length, tail)) = rest.split_first_chunk::<2>() {
        let (message, behind) = tail.split_at(usize::from(u16::from_be_bytes(*length)).min(tail.len()));
        rest = behind;
        match inbound.push(&fit(message, asked)) {
            Ok(complete) => is_complete = complete,
            Err(_) => return,
        }
        assert!(inbound.records() <= bounds.records && inbound.octets() <= bounds.octets);
    }
    match inbound.finish() {
        Ok(TransferContent::Axfr { contents, .. }) => {
            assert!(is_complete);
            check(&contents);
            let _ = Catalog::read(&contents);
        }
        Ok(TransferContent::Ixfr(steps)) => {
            assert!(is_complete && !steps.is_empty());
            if let Ok((new, change)) = apply_steps(&ZONE, &steps) {
                check(&new);
                let again = change.apply(&ZONE, SerialRule::Exact);
                assert_eq!(text(&again.unwrap_or_else(|error| panic!("{error}"))), text(&new));
            }
        }
        Ok(TransferContent::UpToDate { .. } | TransferContent::Newer) | Err(_) => {}
    }
});

/// Replaces identifier and question of the message by those of the request.
fn fit(message: &[u8], asked: InboundRequest) -> Vec<u8> {
    let Some(head) = message.get(..QUESTION) else { return message.to_vec() };
    let mut out = head.to_vec();
    out[..2].copy_from_slice(&ID.to_be_bytes());
    out[2] |= 0x80;
    out[4..6].copy_from_slice(&1u16.to_be_bytes());
    out.extend_from_slice(ZONE.apex().wire());
    out.extend_from_slice(&asked.rtype().0.to_be_bytes());
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&message[QUESTION..]);
    out
}

/// Checks that the zone can be written as text and read again.
fn check(contents: &Contents) {
    let written = text(contents);
    match read_text(&written, Path::new("fuzz"), Some(contents.apex())) {
        Ok(again) => assert_eq!(text(&again.contents), written),
        Err(error) => panic!("{error}\n{}", String::from_utf8_lossy(&written)),
    }
}

fn text(contents: &Contents) -> Vec<u8> {
    let mut text = Vec::new();
    if let Err(error) = write_zone(contents, &mut text) {
        panic!("a vector takes all that is written: {error}");
    }
    text
}

/// Handles the same octets as a NOTIFY.
fn tell(octets: &[u8]) {
    let mut out = Vec::new();
    let sender = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let notified = handle(octets, sender, |_| NotifyRole::Secondary { is_sender_permitted: true }, &mut out);
    assert!(notified.is_none() || out.len() >= QUESTION);
    assert!(out.len() <= octets.len().max(QUESTION));
}
