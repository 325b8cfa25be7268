//! TSIG: verification of requests and responses of arbitrary octets never panics, and accepts no
//! message that is not signed with a key of the server. Messages that the server signed verify.
//! Keys are read from arbitrary text.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use nonesuch_proto::Name;
use nonesuch_server::tsig::{TsigAlgorithm, TsigKey, TsigKeys, read_keys, sign_request};
use std::sync::{Arc, OnceLock};

const NOON: u64 = 1_750_000_000;
/// Maximum length of a message that leaves space for the TSIG record within 65,535 octets.
const LONGEST: usize = 65_000;

fuzz_target!(|data: &[u8]| -> Corpus {
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = read_keys(text);
        let _ = TsigKey::from_argument(text);
    }
    let (keys, key) = keys();
    match keys.verify(data, NOON) {
        Ok(None) => check_signed(data),
        Ok(Some(_)) => panic!("the message has no valid TSIG record"),
        Err(refused) => {
            let mut out = Vec::new();
            refused.answer(data, &[], NOON, &mut out);
            assert!(out.is_empty() || keys.verify(&out, NOON).is_err() || refused.key().is_none());
        }
    }
    let mut verifier = sign_request(key, &mut vec![0; 12], NOON);
    assert!(verifier.verify(data, NOON).is_err());
    Corpus::Keep
});

/// Signs a message as a request, and as a response of several messages.
fn check_signed(data: &[u8]) {
    let (keys, key) = keys();
    if data.len() > LONGEST || data.get(10..12) == Some(&[0xff, 0xff]) {
        return;
    }
    let mut request = data.to_vec();
    let mut verifier = sign_request(key, &mut request, NOON);
    let Ok(Some(verified)) = keys.verify(&request, NOON) else { panic!("our own signature") };
    assert_eq!(verified.octets(), data.len());
    let mut signer = verified.signer();
    for is_signed in [true, false, true] {
        let mut answer = data.to_vec();
        if is_signed {
            signer.sign(&mut answer, NOON);
        }
        // The signer of this project signs each message. A message without a signature in between
        // invalidates the following signatures.
        match verifier.verify(&answer, NOON) {
            Ok(checked) => assert_eq!((checked.end, checked.is_signed), (data.len(), is_signed)),
            Err(error) => {
                assert!(is_signed && verifier.finish().is_err(), "{error}");
                return;
            }
        }
    }
    panic!("a message that was not signed for is taken");
}

fn keys() -> &'static (TsigKeys, Arc<TsigKey>) {
    static MADE: OnceLock<(TsigKeys, Arc<TsigKey>)> = OnceLock::new();
    MADE.get_or_init(|| {
        let Ok(name) = "key.example.".parse::<Name>() else { panic!("a name") };
        let made =
            TsigKey::new(&name, TsigAlgorithm::HmacSha256, b"secret").and_then(|key| TsigKeys::new([key]));
        let keys = made.unwrap_or_default();
        let Some(key) = keys.find(&name).map(Arc::clone) else { panic!("a key") };
        (keys, key)
    })
}
