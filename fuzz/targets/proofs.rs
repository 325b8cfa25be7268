//! Files of NSEC5 proofs: reading never panics, also for arbitrary octets with a correct digest. A
//! file that is accepted has the stated number of entries, with names in canonical order, and is
//! unchanged after writing and reading.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use nonesuch_crypto::DigestType;
use nonesuch_dnssec::denial::nsec5::{ProofEntry, Proofs};

/// Length of the digest at the end, in octets.
const DIGEST: usize = 32;

fuzz_target!(|data: &[u8]| -> Corpus {
    let _ = Proofs::read(data);
    // Correct the digest, so that the code after this check is reached.
    let Some((body, _)) = data.split_last_chunk::<DIGEST>() else { return Corpus::Keep };
    let digest = DigestType::SHA256.digest(&[body]).unwrap_or_default();
    let Ok(proofs) = Proofs::read(&[body, &digest].concat()) else { return Corpus::Keep };
    let entries: Vec<ProofEntry<'_>> = proofs.entries().collect();
    assert_eq!(entries.len(), proofs.len());
    assert!(entries.is_sorted_by(|a, b| a.name.cmp_canonical(b.name).is_lt()));
    let apex = proofs.zone().view();
    assert!(entries.iter().all(|entry| entry.full_name(apex).view().is_at_or_below(apex)));
    let once = written(&proofs);
    match Proofs::read(&once) {
        Ok(again) => assert!(again == proofs && written(&again) == once),
        Err(error) => panic!("{error}"),
    }
    Corpus::Keep
});

fn written(proofs: &Proofs) -> Vec<u8> {
    let mut octets = Vec::new();
    if let Err(error) = proofs.write_to(&mut octets) {
        panic!("a vector takes all that is written: {error}");
    }
    octets
}
