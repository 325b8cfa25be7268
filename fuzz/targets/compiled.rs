//! Compiled zones: reading never panics, whatever the octets under a digest that fits; what is taken can be written as
//! text, read again, compiled again and served.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use nonesuch_zone::{Contents, Image, Verification, compiled, read::read_text, write::write_zone};
use std::path::Path;

/// Octets of the digest at the end.
const DIGEST: usize = 32;
/// Where the length of the file stands.
const LENGTH: std::ops::Range<usize> = 16..24;

fuzz_target!(|data: &[u8]| -> Corpus {
    let _ = compiled::read(data);
    // Length and digest are made to fit, so that what lies behind them is reached.
    let mut octets = data.to_vec();
    let Some(end) = octets.len().checked_sub(DIGEST).filter(|end| *end > LENGTH.end) else {
        return Corpus::Keep;
    };
    let length = octets.len() as u64;
    octets[LENGTH].copy_from_slice(&length.to_le_bytes());
    let digest = blake3::hash(&octets[..end]);
    octets[end..].copy_from_slice(digest.as_bytes());
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
