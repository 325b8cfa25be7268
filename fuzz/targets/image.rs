//! Image files: opening never panics, also for arbitrary octets with correct digests. An image that
//! was opened answers every query without a panic, within the size that the sender accepts.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_authoritative::{Request, answer};
use nonesuch_net::Transport;
use nonesuch_proto::message::{HEADER, push_query};
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype, edns};
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use nonesuch_zone::ImageFile;
use nonesuch_zone::image::file::PAGE;

/// Length of a digest in octets, and positions of the digest of the sections and of the length of
/// the image.
const DIGEST: usize = 32;
const SECTIONS: std::ops::Range<usize> = 112..144;
const LENGTH: std::ops::Range<usize> = 16..24;

const TYPES: [Rtype; 8] =
    [Rtype::A, Rtype::NS, Rtype::SOA, Rtype::DS, Rtype::MX, Rtype::RRSIG, Rtype::NSEC, Rtype::ANY];
/// Names below the apex, as lists of labels.
const NAMES: [&[&[u8]]; 8] =
    [&[], &[b"a"], &[b"ns"], &[b"cut"], &[b"x", b"cut"], &[b"x", b"w"], &[b"zzz"], &[b"x", b"y", b"d"]];

fuzz_target!(|data: &[u8]| {
    let _ = ImageFile::open(data.to_vec());
    let mut octets = data.to_vec();
    if octets.len() < PAGE {
        return;
    }
    // Correct the digests, so that the code after these checks is reached.
    let length = u64::from_le_bytes(octets[LENGTH].try_into().unwrap_or_default());
    let length = usize::try_from(length).unwrap_or(usize::MAX).clamp(PAGE, octets.len());
    let digest = blake3::hash(&octets[PAGE..length]);
    octets[SECTIONS].copy_from_slice(digest.as_bytes());
    let digest = blake3::hash(&octets[..PAGE - DIGEST]);
    octets[PAGE - DIGEST..PAGE].copy_from_slice(digest.as_bytes());
    let Ok(file) = ImageFile::open(octets) else { return };
    let image = file.image();
    let mut out = Vec::new();
    for name in NAMES {
        let Some(name) = below(image.apex(), name) else { continue };
        for rtype in TYPES {
            let message = query(&name, rtype);
            let query = Query::parse(&message).unwrap_or_else(|fault| panic!("{fault:?}"));
            for (transport, limit) in [(Transport::Udp, 1232), (Transport::Tcp, u16::MAX)] {
                let mut room = [0; MAX_NAME];
                let request = Request::new(&query, &mut room, transport, &Trailer::PLAIN);
                answer(image, &request, &mut out);
                assert!(out.len() <= usize::from(limit), "{} octets", out.len());
            }
        }
    }
});

fn below(apex: NameRef<'_>, labels: &[&[u8]]) -> Option<Name> {
    labels.iter().rev().try_fold(apex.to_name(), |name, label| Name::prepend(label, name.view()).ok())
}

fn query(name: &Name, rtype: Rtype) -> Vec<u8> {
    let mut query = Vec::new();
    push_query(name, rtype, 1, 0, &mut query);
    edns::push_opt(1232, 0, edns::DO, &mut query);
    query[HEADER - 1] = 1;
    query
}
