//! Change sets: parsing never panics. A parsed change set is unchanged after writing and parsing.
//! Applied to a zone, it is either rejected, or applied and reverted by the opposite change set.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use nonesuch_proto::Name;
use nonesuch_zone::change::SerialRule;
use nonesuch_zone::{ChangeSet, Contents, read::read_text, write::write_zone};
use std::path::Path;
use std::sync::OnceLock;

/// The zone that change sets are applied to.
const ZONE: &[u8] = include_bytes!("changes.zone");

fuzz_target!(|data: &[u8]| -> Corpus {
    let zone = zone();
    let Ok(set) = ChangeSet::parse(data, zone.apex()) else { return Corpus::Keep };
    let text = written(&set);
    match ChangeSet::parse(&text, zone.apex()) {
        Ok(again) => assert_eq!(written(&again), text),
        Err(error) => panic!("{error}\n{}", String::from_utf8_lossy(&text)),
    }
    if let Ok(changed) = set.apply(zone, SerialRule::Exact) {
        // The changed zone can be written as text and read again.
        let text = zone_text(&changed);
        match read_text(&text, Path::new("fuzz"), Some(changed.apex())) {
            Ok(again) => assert_eq!(zone_text(&again.contents), text),
            Err(error) => panic!("{error}\n{}", String::from_utf8_lossy(&text)),
        }
        let back = ChangeSet::between(&changed, zone, |_| true);
        match back.apply(&changed, SerialRule::Exact) {
            Ok(old) => assert_eq!(zone_text(&old), zone_text(zone)),
            Err(error) => panic!("{error}"),
        }
    }
    Corpus::Keep
});

fn zone() -> &'static Contents {
    static READ: OnceLock<Contents> = OnceLock::new();
    READ.get_or_init(|| {
        let origin = Name::prepend(b"example", nonesuch_proto::NameRef::ROOT).ok();
        match read_text(ZONE, Path::new("changes.zone"), origin.as_ref()) {
            Ok(reading) => reading.contents,
            Err(error) => panic!("{error}"),
        }
    })
}

fn written(set: &ChangeSet) -> Vec<u8> {
    let mut text = Vec::new();
    if let Err(error) = set.write(&mut text) {
        panic!("a vector takes all that is written: {error}");
    }
    text
}

fn zone_text(contents: &Contents) -> Vec<u8> {
    let mut text = Vec::new();
    if let Err(error) = write_zone(contents, &mut text) {
        panic!("a vector takes all that is written: {error}");
    }
    text
}
