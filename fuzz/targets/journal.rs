//! Journals: opening a file of arbitrary octets after a valid header never panics and leaves
//! complete entries. An entry of arbitrary octets with a correct digest is either rejected or read
//! to its end.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use nonesuch_proto::Name;
use nonesuch_zone::{Contents, Journal, read::read_text};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The zone that changes are applied to.
const ZONE: &[u8] = include_bytes!("changes.zone");
/// Number of octets before the digest of an entry, and length of the head of an entry.
const SEALED: usize = 24;
const HEAD: usize = 56;
const ROOMY: u64 = 1 << 24;

fuzz_target!(|data: &[u8]| -> Corpus {
    let (zone, path, header) = place();
    // The first octet states whether the rest is an entry or arbitrary octets after the header.
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

/// Makes an entry from octets, with a correct digest and length.
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

/// Returns the zone, the path of a file, and the header of a journal. The file is in memory if the
/// machine has such a file system.
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
