//! The keys of a tree, derived from a seed: equal seeds give equal keys on every machine.
//!
//! The private keys are no secrets, because they follow from the description and the seed.

use super::description::ZoneDescription;
use super::error::TreeError;
use super::rsa;
use super::unsupported::substitute;
use data_encoding::BASE64;
use fips205::slh_dsa_sha2_128s;
use fips205::traits::{KeyGen as _, SerDes as _};
use fn_dsa_kgen::{CryptoRng, FN_DSA_LOGN_512, KeyPairGenerator as _, KeyPairGenerator512, RngError};
use fn_dsa_kgen::{sign_key_size, vrfy_key_size};
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_crypto::{Algorithm, DigestType, KeyError, PrivateKey};
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::keys::{KeySetError, SEP, ZONE_KEY};
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::{Name, NameRef};
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;

/// Maximum number of attempts to find a secret in range, or two keys with different tags.
const ATTEMPTS: u32 = 64;

/// Length of the modulus of a VRF with RSA, in bits (*Making NSEC5 Practical for DNSSEC*, §7).
const VRF_RSA_BITS: u16 = 2048;

/// Random octets that depend only on the seed, the zone and the purpose.
pub(super) fn random_stream(seed: u64, zone: NameRef<'_>, purpose: &str) -> ChaCha20Rng {
    let mut canonical = Vec::new();
    zone.push_canonical(&mut canonical);
    let parts = [b"nonesuch tree".as_slice(), &seed.to_be_bytes(), &canonical, purpose.as_bytes()];
    let digest = DigestType::SHA256.digest(&parts).unwrap_or_default();
    let mut state = [0; 32];
    state.iter_mut().zip(digest).for_each(|(octet, value)| *octet = value);
    ChaCha20Rng::from_seed(state)
}

/// The algorithm number of the keys of a zone: with NSEC5 the alias number.
pub(super) fn key_algorithm(zone: &ZoneDescription) -> Algorithm {
    match zone.denial.name_hash() {
        NameHash::Vrf => zone.algorithm.nsec5_alias().unwrap_or(zone.algorithm),
        NameHash::Unhashed | NameHash::Sha1 => zone.algorithm,
    }
}

/// Derives the keys of a zone: a KSK and a ZSK, or a CSK. With `also_nsec5`, also those of the alias
/// number.
pub(super) fn key_set(apex: &Name, zone: &ZoneDescription, seed: u64) -> Result<KeySet, TreeError> {
    let kinds: &[(u16, &str)] =
        if zone.csk { &[(ZONE_KEY | SEP, "csk")] } else { &[(ZONE_KEY | SEP, "ksk"), (ZONE_KEY, "zsk")] };
    let successor = zone.also_nsec5.then(|| zone.successor());
    let versions = [(Some(zone), ""), (successor.as_ref(), "alias ")];
    let mut attempt = 0;
    loop {
        let pairs =
            versions.iter().flat_map(|(zone, prefix)| kinds.iter().map(move |kind| (zone, prefix, kind)));
        let pairs = pairs.filter_map(|(zone, prefix, (flags, purpose))| {
            let mut random = random_stream(seed, apex.view(), &format!("{prefix}{purpose} {attempt}"));
            Some(key_pair(apex, *flags, (*zone)?, &mut random))
        });
        match KeySet::new(apex, pairs.collect::<Result<_, _>>()?) {
            Err(KeySetError::SameTag { .. }) if attempt < ATTEMPTS => attempt += 1,
            Ok(keys) => return Ok(keys),
            Err(source) => return Err(TreeError::KeySet { zone: apex.clone(), source: Box::new(source) }),
        }
    }
}

/// Derives one key pair from a stream of random octets.
pub(super) fn key_pair(
    apex: &Name,
    flags: u16,
    zone: &ZoneDescription,
    random: &mut ChaCha20Rng,
) -> Result<KeyPair, TreeError> {
    let algorithm = substitute(key_algorithm(zone));
    let fault = |source| TreeError::Key { zone: apex.clone(), source };
    check_bits(algorithm, zone.bits).map_err(fault)?;
    let mut attempt = 0;
    loop {
        let text = private_text(algorithm, zone.bits, random);
        let text = text.ok_or_else(|| TreeError::Algorithm { zone: apex.clone(), algorithm })?;
        match PrivateKey::from_bind(&text) {
            Ok(key) => return Ok(KeyPair::new(apex.clone(), flags, key)),
            // A scalar of a curve is out of range with a probability below 2^-31.
            Err(KeyError::InvalidPrivateKey(_)) if attempt < ATTEMPTS => attempt += 1,
            Err(source) => return Err(fault(source)),
        }
    }
}

fn check_bits(algorithm: Algorithm, bits: Option<u16>) -> Result<(), KeyError> {
    let (Some(bits), Some(entry)) = (bits, algorithm.entry()) else { return Ok(()) };
    match &entry.scheme.key_lengths {
        None => Err(KeyError::FixedBits(algorithm)),
        Some(lengths) if lengths.offered.contains(&bits) || lengths.forced.contains(&bits) => Ok(()),
        Some(_) => Err(KeyError::UnsupportedBits { bits }),
    }
}

/// The text of a private key file; `None` for an algorithm without a derivation.
fn private_text(algorithm: Algorithm, bits: Option<u16>, random: &mut ChaCha20Rng) -> Option<String> {
    let (dialect, fields) = match algorithm.without_alias() {
        Algorithm::RSASHA256 | Algorithm::RSASHA512 => {
            let default = algorithm.entry()?.scheme.key_lengths.as_ref()?.default;
            (None, rsa::private_key_fields(bits.unwrap_or(default), random)?)
        }
        Algorithm::ECDSAP256SHA256 | Algorithm::ED25519 | Algorithm::MLDSA44 => {
            (None, secret_field(32, random))
        }
        Algorithm::ECDSAP384SHA384 => (None, secret_field(48, random)),
        Algorithm::ED448 => (None, secret_field(57, random)),
        Algorithm::MAYO2 => (Some("mayo2-round2"), secret_field(24, random)),
        Algorithm::FALCON512 => (Some("falcon-round3-padded"), falcon_field(random)),
        Algorithm::SLHDSA128S => (None, slhdsa_field(random)),
        _ => return None,
    };
    let mut text = format!("Private-key-format: v1.3\nAlgorithm: {} ({algorithm})\n", algorithm.0);
    text.extend(dialect.map(|dialect| format!("Dialect: {dialect}\n")));
    text.extend(fields.iter().map(|(name, octets)| format!("{name}: {}\n", BASE64.encode(octets))));
    Some(text)
}

/// The field of a private key that consists of random octets.
fn secret_field(octets: usize, random: &mut ChaCha20Rng) -> Vec<(&'static str, Vec<u8>)> {
    let mut secret = vec![0; octets];
    random.fill_bytes(&mut secret);
    vec![("PrivateKey", secret)]
}

fn slhdsa_field(random: &mut ChaCha20Rng) -> Vec<(&'static str, Vec<u8>)> {
    let mut seeds = [[0; 16]; 3];
    seeds.iter_mut().for_each(|seed| random.fill_bytes(seed));
    let [sk_seed, sk_prf, pk_seed] = &seeds;
    let (_, private) = slh_dsa_sha2_128s::KG::keygen_from_seed(sk_seed, sk_prf, pk_seed);
    vec![("PrivateKey", private.into_bytes().to_vec())]
}

fn falcon_field(random: &mut ChaCha20Rng) -> Vec<(&'static str, Vec<u8>)> {
    let mut private = vec![0; sign_key_size(FN_DSA_LOGN_512)];
    let mut public = vec![0; vrfy_key_size(FN_DSA_LOGN_512)];
    let mut random = FalconRandom(random);
    KeyPairGenerator512::default().keygen(FN_DSA_LOGN_512, &mut random, &mut private, &mut public);
    vec![("PrivateKey", private)]
}

/// Implements the random number trait of `fn-dsa`, which comes from another version of `rand_core`.
struct FalconRandom<'r>(&'r mut ChaCha20Rng);

impl fn_dsa_kgen::RngCore for FalconRandom<'_> {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn fill_bytes(&mut self, octets: &mut [u8]) {
        self.0.fill_bytes(octets);
    }

    fn try_fill_bytes(&mut self, octets: &mut [u8]) -> Result<(), RngError> {
        self.0.fill_bytes(octets);
        Ok(())
    }
}

impl CryptoRng for FalconRandom<'_> {}

/// Derives the VRF key of a zone with NSEC5.
pub(super) fn vrf_key(apex: &Name, zone: &ZoneDescription, seed: u64) -> Result<VrfPrivateKey, TreeError> {
    let mut random = random_stream(seed, apex.view(), "vrf");
    let mut attempt = 0;
    if zone.vrf == VrfAlgorithm::RSA_FDH_SHA256 {
        let secret = rsa::private_key_der(VRF_RSA_BITS, &mut random).unwrap_or_default();
        let key = VrfPrivateKey::from_secret(zone.vrf, &secret);
        return key.map_err(|source| TreeError::Vrf { zone: apex.clone(), source });
    }
    loop {
        let mut secret = [0; 32];
        random.fill_bytes(&mut secret);
        match VrfPrivateKey::from_secret(zone.vrf, &secret) {
            Err(_) if attempt < ATTEMPTS => attempt += 1,
            outcome => return outcome.map_err(|source| TreeError::Vrf { zone: apex.clone(), source }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_crypto::ALGORITHMS;
    use nonesuch_crypto::vrf::VRF_ALGORITHMS;
    use nonesuch_dnssec::Mechanism;

    #[test]
    fn every_algorithm_has_keys_that_depend_only_on_seed_and_zone() {
        let apex: Name = "example.".parse().unwrap();
        let public = |zone: &ZoneDescription, apex: &Name, seed| -> Vec<Vec<u8>> {
            let keys = key_set(apex, zone, seed).unwrap();
            keys.keys().iter().map(KeyPair::dnskey_rdata).collect()
        };
        for entry in ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()) {
            let mut zone = ZoneDescription::new("example.");
            zone.algorithm = entry.algorithm;
            zone.bits = entry.scheme.key_lengths.as_ref().map(|_| 1024);
            let keys = public(&zone, &apex, 1);
            assert_eq!(keys, public(&zone, &apex, 1), "{}", entry.mnemonic);
            assert_ne!(keys, public(&zone, &apex, 2), "{}", entry.mnemonic);
            assert_ne!(keys, public(&zone, &"example.net.".parse().unwrap(), 1), "{}", entry.mnemonic);
            assert_ne!(keys[0][4..], keys[1][4..], "{}", entry.mnemonic);
            zone.denial = Mechanism::Nsec5;
            assert_eq!(Some(key_algorithm(&zone)), entry.algorithm.nsec5_alias());
        }
    }

    #[test]
    fn a_length_for_keys_of_constant_length_is_an_error() {
        let mut zone = ZoneDescription::new("example.");
        zone.bits = Some(2048);
        let outcome = key_set(&"example.".parse().unwrap(), &zone, 1);
        assert!(matches!(outcome, Err(TreeError::Key { source: KeyError::FixedBits(_), .. })));
    }

    #[test]
    fn each_vrf_has_a_key_that_depends_only_on_seed_and_zone() {
        let apex: Name = "example.".parse().unwrap();
        for entry in &VRF_ALGORITHMS {
            let mut zone = ZoneDescription::new("example.");
            zone.vrf = entry.algorithm;
            let public = |seed| vrf_key(&apex, &zone, seed).unwrap().public_key().to_vec();
            assert_eq!(public(1), public(1), "{}", entry.name);
            assert_ne!(public(1), public(2), "{}", entry.name);
        }
    }
}
