//! Signatures: arbitrary octets with good keys of every algorithm. Only the signature that the key
//! generated is accepted.
//!
//! The first octet selects the key, and whether message and signature are raw or changes of the
//! known ones. The second octet is the length of the part for the message. The rest is that part
//! and the part for the signature.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_crypto::{ALGORITHMS, Algorithm, PrivateKey, PublicKey, VerifyItem, verify_batch};
use std::sync::LazyLock;

const MESSAGE: &[u8] = b"the signed message";

/// Bits of the first octet: the message is raw, the signature is raw.
const RAW_MESSAGE: u8 = 0x80;
const RAW_SIGNATURE: u8 = 0x40;

/// Number of items for which a batch builds the table of the key.
const MANY: usize = 32;

struct Known {
    key: PublicKey,
    signature: Vec<u8>,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let rows = ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none());
    rows.map(|entry| known(&private(entry.algorithm))).collect()
});

/// Returns a key, the same in every run if the key fits into a few octets.
fn private(algorithm: Algorithm) -> PrivateKey {
    let number = algorithm.0;
    let field = match algorithm {
        Algorithm::RSASHA256 | Algorithm::RSASHA512 => include_str!("rsa.fields"),
        Algorithm::ECDSAP256SHA256 | Algorithm::ED25519 | Algorithm::MLDSA44 => {
            "PrivateKey: BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n"
        }
        // A key of the ACVP samples of NIST: a part of it is computed from the rest.
        Algorithm::SLHDSA128S => {
            "PrivateKey: Fz0EyTjBw2vyicPAItBLFGOuI8QapUbaWJd0rCC3RcQNeUd3kUyZdmgn8PCcqXK+AWLBAhnUIq26E1nmqmUpnA==\n"
        }
        _ => "",
    };
    let text = format!("Private-key-format: v1.3\nAlgorithm: {number}\n{field}");
    let read =
        if field.is_empty() { PrivateKey::generate(algorithm, None) } else { PrivateKey::from_bind(&text) };
    read.unwrap_or_else(|error| panic!("{error}"))
}

fn known(key: &PrivateKey) -> Known {
    let mut signature = Vec::new();
    key.sign(MESSAGE, &mut signature).unwrap_or_else(|error| panic!("{error}"));
    let key = PublicKey::parse(key.algorithm(), key.public_key()).unwrap_or_else(|error| panic!("{error}"));
    let known = Known { key, signature };
    assert!(batch(&known, MESSAGE, &known.signature, MANY), "{:?}", known.key);
    known
}

/// Returns the result of a batch of equal items.
fn batch(known: &Known, message: &[u8], signature: &[u8], count: usize) -> bool {
    let items = vec![VerifyItem { key: &known.key, message, signature }; count];
    let mut outcome = Vec::new();
    verify_batch(&items, &mut outcome);
    assert_eq!(outcome.len(), count);
    assert!(outcome.iter().all(|result| *result == outcome[0]));
    outcome[0].is_ok()
}

/// XORs `changes` into `known`, octet by octet. Longer changes are appended.
fn change(known: &[u8], changes: &[u8]) -> Vec<u8> {
    let mut octets = known.to_vec();
    octets.resize(known.len().max(changes.len()), 0);
    octets.iter_mut().zip(changes).for_each(|(octet, change)| *octet ^= change);
    octets
}

fuzz_target!(|data: &[u8]| {
    let [choice, length, rest @ ..] = data else { return };
    let known = &KNOWN[usize::from(choice % 0x40) % KNOWN.len()];
    let (message, signature) = rest.split_at(usize::from(*length).min(rest.len()));
    let message = if choice & RAW_MESSAGE == 0 { change(MESSAGE, message) } else { message.to_vec() };
    let signature = match choice & RAW_SIGNATURE {
        0 => change(&known.signature, signature),
        _ => signature.to_vec(),
    };
    let is_accepted = known.key.verify(&message, &signature).is_ok();
    let is_known = message == MESSAGE && signature == known.signature;
    assert_eq!(is_accepted, is_known, "{:?}", known.key);
    assert_eq!(batch(known, &message, &signature, 2), is_accepted, "{:?}", known.key);
});
