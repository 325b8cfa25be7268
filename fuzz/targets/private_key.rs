//! Private key files: a key that is read is unchanged after writing and reading, and its signatures
//! verify with its public key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_crypto::{PrivateKey, PublicKey};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let key = match PrivateKey::from_bind(text) {
        Ok(key) => key,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let written = key.to_bind();
    let read = match PrivateKey::from_bind(&written) {
        Ok(read) => read,
        Err(error) => panic!("{}: {error}", key.algorithm()),
    };
    assert!(*read.to_bind() == *written, "{key:?}");
    assert_eq!(read.algorithm(), key.algorithm());
    assert_eq!(read.check_public(key.public_key()), Ok(()));
    let public = match PublicKey::parse(key.algorithm(), key.public_key()) {
        Ok(public) => public,
        Err(error) => panic!("{error}"),
    };
    assert_eq!(public.bits(), key.bits());
    let mut signature = Vec::new();
    assert_eq!(key.sign(data, &mut signature), Ok(()));
    assert_eq!(signature.len(), key.signature_octets());
    assert_eq!(public.verify(data, &signature), Ok(()), "{key:?}");
});
