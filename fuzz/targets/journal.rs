//! Journals: opening a file of any octets behind a good header never panics and leaves whole entries; an entry of any octets,
//! its digest made to fit, is refused or read to its end.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use nonesuch_proto::Name;
use nonesuch_zone::{Contents, Journal, read::read_text};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The zone that changes are applied to.
const ZONE: &[u8] = include_bytes!("changes.zone");
/// Octets in front of an entry's digest, and of its head.
const SEALED: usize = 24;
const HEAD: usize = 56;
const ROOMY: u64 = 1 << 24;

fuzz_target!(|data: &[u8]| -> Corpus {
    let (zone, path, header) = place();
    // The first octet says whether the rest is an entry or whatever stands behind the header.
    let Some((kind, data)) = data.split_first() else { return Corpus::Keep };
    let behind = if kind & 1 == 0 { data.to_vec() } else { entry(data) };
    write(path, &[header.as_slice(), behind.as_slice()].concat());
    let Ok((journal, _)) = Journal::open(path, zone.apex(), ROOMY) else { panic!("the header is good") };
    let Some(changes) = journal.serials().and_then(|(from, to)| journal.between(from, to)) else {
        return Corpus::Keep;
    };
    let readers = (0..).map_while(|index| changes.open(index));
    for mut reader in readers.filter_map(Result::ok) {
        while reader.advance().is_ok_and(|is_record| is_record) {
            let _ = reader.record();
        }
    }
    Corpus::Keep
});

/// Makes octets an entry: their digest and length are right.
fn entry(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0; HEAD];
    out[..4].copy_from_slice(b"NSCE");
    let (serials, body) = data.split_at(data.len().min(8));
    out[4..4 + serials.len()].copy_from_slice(serials);
    out[16..SEALED].copy_from_slice(&(body.len() as u64).to_le_bytes());
    out.extend_from_slice(body);
    let digest = blake3::Hasher::new().update(&out[..SEALED]).update(&out[HEAD..]).finalize();
    out[SEALED..HEAD].copy_from_slice(digest.as_bytes());
    out
}

fn write(path: &Path, octets: &[u8]) {
    if let Err(error) = fs::write(path, octets) {
        panic!("{}: {error}", path.display());
    }
}

/// The zone, a file in memory where there is such a file system, and the header of a journal.
fn place() -> &'static (Contents, PathBuf, Vec<u8>) {
    static MADE: OnceLock<(Contents, PathBuf, Vec<u8>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let origin: Option<Name> = "example.".parse().ok();
        let Ok(reading) = read_text(ZONE, Path::new("changes.zone"), origin.as_ref()) else {
            panic!("a zone")
        };
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let path = folder.join(format!("nonesuch-fuzz-{}.journal", std::process::id()));
        let header = match Journal::replace(&path, reading.contents.apex(), ROOMY) {
            Ok(_) => fs::read(&path).unwrap_or_default(),
            Err(error) => panic!("{error}"),
        };
        (reading.contents, path, header)
    })
}
