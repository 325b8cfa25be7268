//! Trust anchors of a served zone, from the files of its server.

use super::CombinationFault;
use crate::measure::{ServedZone, ServerKeys};
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_dnssec::verify::Anchor;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

/// Returns the KSKs of the zone. A server that signs online has a directory with key files; in a
/// signed zone file, the records of the apex are the first lines.
pub(super) fn read_anchors(served: &ServedZone) -> Result<Vec<Anchor>, CombinationFault> {
    let (path, texts) = match &served.keys {
        ServerKeys::Online { directory, .. } => (directory, key_files(directory)),
        ServerKeys::None | ServerKeys::Nsec5 { .. } => {
            (&served.file, apex_lines(&served.file, &served.origin))
        }
    };
    let texts = texts.map_err(|source| CombinationFault::ReadKeys { path: path.clone(), source })?;
    let keys = texts.iter().filter_map(|text| KeyRecord::parse(text).ok());
    Ok(keys.filter(KeyRecord::is_sep).map(|key| Anchor::Dnskey(key.rdata().to_vec())).collect())
}

fn key_files(directory: &Path) -> io::Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "key") {
            texts.push(fs::read_to_string(path)?);
        }
    }
    Ok(texts)
}

fn apex_lines(file: &Path, apex: &str) -> io::Result<Vec<String>> {
    let lines = BufReader::new(File::open(file)?).lines();
    let is_of_apex = |line: &String| line.split_whitespace().next() == Some(apex);
    lines.take_while(|line| line.as_ref().map_or(true, is_of_apex)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::key_files::write_signing_keys;
    use nonesuch_crypto::Algorithm;
    use nonesuch_dnssec::keys::{KeyTimes, SEP, ZONE_KEY};
    use nonesuch_dnssec::{KeyPair, KeySet, Mechanism};
    use nonesuch_proto::Name;

    #[test]
    fn anchors_are_the_keys_with_sep_of_the_directory_or_of_the_apex() {
        let folder = tempfile::tempdir().expect("a directory");
        let apex: Name = "example.".parse().expect("a name");
        let generate = |flags| KeyPair::generate(&apex, flags, Algorithm::ED25519, None).expect("a key");
        let (ksk, zsk) = (generate(ZONE_KEY | SEP), generate(ZONE_KEY));
        let expected = [Anchor::Dnskey(ksk.dnskey_rdata())];

        let line = |key: &KeyPair| {
            let text = key.key_file_text(&KeyTimes::default());
            text.lines().find(|line| line.contains("DNSKEY")).expect("a record").to_owned() + "\n"
        };
        let file = folder.path().join("zone");
        let text = format!(
            "example. 60 IN SOA a. b. 1 2 3 4 5\n{}{}b.example. 60 IN A 192.0.2.1\n",
            line(&zsk),
            line(&ksk)
        );
        fs::write(&file, text + &line(&generate(ZONE_KEY | SEP))).expect("written");
        let presigned = ServedZone::without_keys("example.", &file);
        assert_eq!(read_anchors(&presigned).expect("read"), expected);

        let directory = folder.path().join("keys");
        let keys = KeySet::new(&apex, vec![ksk, zsk]).expect("a set");
        write_signing_keys(&directory, &keys, &nonesuch_dnssec::keys::KeyTimes::default()).expect("written");
        let online = |directory| ServedZone {
            keys: ServerKeys::Online { mechanism: Mechanism::Compact, directory },
            ..presigned.clone()
        };
        assert_eq!(read_anchors(&online(directory)).expect("read"), expected);
        let missing = folder.path().join("missing");
        let error = read_anchors(&online(missing.clone())).expect_err("no directory");
        assert!(matches!(error, CombinationFault::ReadKeys { path, .. } if path == missing));
    }
}
