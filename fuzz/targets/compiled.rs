//! Compiled zones: reading never panics, also for arbitrary octets with correct digests. A zone
//! that is accepted can be written as text, read again, compiled again and served.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use nonesuch_zone::compiled::StoredZone;
use nonesuch_zone::{Contents, Image, Verification, compiled, read::read_text, write::write_zone};
use std::path::Path;

/// Length in octets of the header, the trailer, a digest, and an entry of the directory without its
/// name.
const HEADER: usize = 320;
const TRAILER: usize = 64;
const DIGEST: usize = 32;
const ENTRY: usize = 85;

fuzz_target!(|data: &[u8]| -> Corpus {
    let _ = compiled::read(data);
    // Correct the length and the digests, so that the code after these checks is reached.
    let mut octets = data.to_vec();
    if octets.len() < HEADER + TRAILER {
        return Corpus::Keep;
    }
    seal(&mut octets);
    let open = StoredZone::of_octets(octets.clone());
    if let Ok(zone) = &open {
        let _ = (0..zone.node_count()).filter_map(|place| zone.node(place)).count();
    }
    let Ok((contents, verification)) = compiled::read(&octets) else { return Corpus::Keep };
    let text = zone_text(&contents);
    match read_text(&text, Path::new("fuzz"), Some(contents.apex())) {
        Ok(again) => assert_eq!(zone_text(&again.contents), text),
        Err(error) => panic!("{error}\n{}", String::from_utf8_lossy(&text)),
    }
    let once = compile(&contents, verification);
    match compiled::read(&once) {
        Ok((again, _)) => assert_eq!(compile(&again, verification), once),
        Err(error) => panic!("{error}"),
    }
    let _ = Image::compile(&contents);
    Corpus::Keep
});

/// Sets the length of the file and all digests to the correct values, as far as there is a
/// directory.
fn seal(octets: &mut [u8]) {
    let end = octets.len() - TRAILER;
    let word = |octets: &[u8], at: usize| {
        u32::from_le_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]) as usize
    };
    let length = octets.len() as u64;
    octets[end + 8..end + 16].copy_from_slice(&length.to_le_bytes());
    octets[end + 56..].copy_from_slice(b"\x9aNSCZ\n\r\x1b");
    let offset = word(octets, end).clamp(HEADER, end);
    let (mut at, mut chunk) = (offset, HEADER);
    for _ in 0..word(octets, end + 20).min(9) {
        at += if at + 2 <= end { 2 + (word(octets, at) & 0xffff) } else { 0 };
    }
    while at + ENTRY <= end {
        let [nodes, rrsets, names, rdata] = [0, 4, 8, 12].map(|place| word(octets, at + place) as u64);
        let octets_of_chunk = nodes * 4 + rrsets * 16 + names + rdata;
        if octets_of_chunk > (offset - chunk) as u64 {
            break;
        }
        let next = chunk + octets_of_chunk as usize;
        let digest = blake3::hash(&octets[chunk..next]);
        octets[at + 52..at + 84].copy_from_slice(digest.as_bytes());
        chunk = next;
        at += ENTRY + usize::from(octets[at + 84]);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update(&octets[..HEADER]).update(&octets[offset..end]).update(&octets[end..end + 24]);
    octets[end + 24..end + 24 + DIGEST].copy_from_slice(hasher.finalize().as_bytes());
}

fn compile(contents: &Contents, verification: Verification) -> Vec<u8> {
    let mut octets = Vec::new();
    if let Err(error) = compiled::write(contents, verification, &mut octets) {
        panic!("a vector takes all that is written: {error}");
    }
    octets
}

fn zone_text(contents: &Contents) -> Vec<u8> {
    let mut text = Vec::new();
    if let Err(error) = write_zone(contents, &mut text) {
        panic!("a vector takes all that is written: {error}");
    }
    text
}
