//! Zone text: reading never panics. Parallel reading in blocks gives the same result as sequential
//! reading. A zone that was read is unchanged after writing and reading. Semantic checks count the
//! same number of findings with a limit as without.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use nonesuch_proto::Name;
use nonesuch_zone::read::{read_text, read_text_in_blocks};
use nonesuch_zone::{Contents, ParsedZone, ReadError, semantics, write::write_zone};
use std::path::Path;

fuzz_target!(|data: &[u8]| -> Corpus {
    // $INCLUDE would read any file of this machine, possibly without an end.
    if data.windows(8).any(|window| window.eq_ignore_ascii_case(b"$include")) {
        return Corpus::Reject;
    }
    let path = Path::new("fuzz");
    // If the first octet is odd, the text itself must name the zone.
    let origin = Name::prepend(b"example", nonesuch_proto::NameRef::ROOT).ok();
    let origin = origin.as_ref().filter(|_| data.first().is_some_and(|octet| octet % 2 == 0));
    let reading = read_text_in_blocks(data, path, origin, usize::MAX);
    // Blocks of 1 to 64 octets, so that entries, quotation marks and parentheses extend over
    // several blocks.
    let octets = 1 + data.last().map_or(0, |octet| usize::from(octet % 64));
    assert_same_outcome(&reading, &read_text_in_blocks(data, path, origin, octets));
    let Ok(reading) = reading else { return Corpus::Keep };
    let contents = reading.contents;
    let text = write(&contents);
    let again = match read_text(&text, path, Some(contents.apex())) {
        Ok(again) => again.contents,
        Err(error) => panic!("{error}\n{}", String::from_utf8_lossy(&text)),
    };
    assert_same(&contents, &again);
    assert_eq!(text, write(&again));
    let (few, all) = (semantics::check(&contents, 1), semantics::check(&contents, usize::MAX));
    assert_eq!((few.counts(), all.list().len()), (all.counts(), all.total()));
    Corpus::Keep
});

fn write(contents: &Contents) -> Vec<u8> {
    let mut text = Vec::new();
    if let Err(error) = write_zone(contents, &mut text) {
        panic!("a vector takes all that is written: {error}");
    }
    text
}

/// Checks that both have the same records and warnings, or the same fault at the same position.
fn assert_same_outcome(whole: &Result<ParsedZone, ReadError>, in_blocks: &Result<ParsedZone, ReadError>) {
    match (whole, in_blocks) {
        (Ok(whole), Ok(in_blocks)) => {
            assert_same(&whole.contents, &in_blocks.contents);
            assert_eq!(whole.warnings, in_blocks.warnings);
        }
        (Err(whole), Err(in_blocks)) => assert_eq!(whole.to_string(), in_blocks.to_string()),
        (Ok(_), Err(error)) => panic!("in blocks alone: {error}"),
        (Err(error), Ok(_)) => panic!("as a whole alone: {error}"),
    }
}

/// Compares names with their case, types, TTLs and RDATA.
fn assert_same(first: &Contents, second: &Contents) {
    // Records of one name may write it in different cases. The node keeps one of them, and the apex
    // keeps that of the SOA record.
    assert_eq!(first.apex(), second.apex());
    assert_eq!(first.node_count(), second.node_count());
    for (a, b) in first.nodes().zip(second.nodes()) {
        assert_eq!(a.name().wire(), b.name().wire());
        assert_eq!(a.rrsets().len(), b.rrsets().len(), "at {}", a.name());
        for (a, b) in a.rrsets().zip(b.rrsets()) {
            assert_eq!((a.rtype(), a.covered(), a.ttl()), (b.rtype(), b.covered(), b.ttl()));
            assert!(a.rdatas().eq(b.rdatas()), "RDATA of {}", a.rtype());
        }
    }
}
