//! Keys of the zones of a signed world. They are derived from the number of the zone, so that all
//! simulations have the same ones, and no two zones of a world share one.

use data_encoding::BASE64;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_crypto::{Algorithm, DigestType, PrivateKey};
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::keys::{SEP, ZONE_KEY, ds_rdata};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism};
use nonesuch_proto::Name;
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// A digest type that no validator knows.
pub(super) const UNKNOWN_DIGEST: u8 = 250;

/// Returns a secret for a purpose of the zone with this number.
fn secret(number: usize, purpose: u8) -> Vec<u8> {
    let digest = DigestType::SHA256.digest(&[b"signed world", &number.to_be_bytes(), &[purpose]]);
    digest.unwrap_or_else(|| unreachable!("SHA-256 is supported"))
}

fn private_key(algorithm: Algorithm, secret: &[u8]) -> PrivateKey {
    let (number, key) = (algorithm.0, BASE64.encode(secret));
    let text = format!("Private-key-format: v1.3\nAlgorithm: {number} ({algorithm})\nPrivateKey: {key}\n");
    // A scalar of P-256 is out of range with a probability of 2^-32; the secrets are constant.
    PrivateKey::from_bind(&text).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Returns a KSK and a ZSK, or a CSK, for the zone with this number.
pub(super) fn key_set(apex: &Name, number: usize, mechanism: Mechanism, random: &mut ChaCha8Rng) -> KeySet {
    let plain = if random.random_bool(0.5) { Algorithm::ED25519 } else { Algorithm::ECDSAP256SHA256 };
    let algorithm = match mechanism.name_hash() {
        NameHash::Vrf => plain.nsec5_alias().unwrap_or(plain),
        NameHash::Unhashed | NameHash::Sha1 => plain,
    };
    let all: &[u16] = if random.random_bool(0.5) { &[ZONE_KEY | SEP] } else { &[ZONE_KEY | SEP, ZONE_KEY] };
    let pair = |(purpose, flags): (u8, &u16)| {
        KeyPair::new(apex.clone(), *flags, private_key(algorithm, &secret(number, purpose)))
    };
    let pairs = (0..).zip(all).map(pair).collect();
    KeySet::new(apex, pairs).unwrap_or_else(|error| unreachable!("{error}"))
}

/// Returns the VRF key of the zone with this number.
pub(super) fn vrf_key(number: usize) -> VrfPrivateKey {
    let key = VrfPrivateKey::from_secret(VrfAlgorithm::P256_SHA256_TAI, &secret(number, 9));
    key.unwrap_or_else(|error| unreachable!("{error}"))
}

/// Returns RDATA of the DS record of a key.
pub(super) fn ds(apex: &Name, key: &KeyPair) -> Option<Vec<u8>> {
    ds_rdata(apex.view(), &key.dnskey_rdata(), DigestType::SHA256)
}
