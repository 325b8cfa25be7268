//! ML-DSA-44 keys (FIPS 204; draft-westerbaan-dnssec-mldsa). A public key has 1312 octets, a
//! signature 2420 octets, a private seed 32 octets. DNSSEC uses pure ML-DSA with an empty context.
//!
//! `libcrux-ml-dsa` generates keys and signs. It takes the randomness as an argument, which allows
//! deterministic signatures (FIPS 204, section 3.4). The interface of aws-lc does not offer these; without
//! them, neither the example of the draft nor identical output for the same zone would be possible.
//!
//! aws-lc verifies the first signature of a key. Most of its time is the expansion of the public key to the
//! matrix A (ExpandA, FIPS 204, algorithm 32), which it repeats for each signature. A key that verifies more
//! signatures keeps its expanded form, and this module verifies them, with the hash functions of aws-lc.
//!
//! libcrux and this module have kernels with AVX2, selected at run time. The feature `portable` restricts
//! both to portable code. The expansion uses AVX-512 if the processor has it; the feature `no_avx512` omits
//! this code. The environment variable `OPENSSL_ia32cap` masks the selection of aws-lc.

mod arithmetic;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[allow(unsafe_code)]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
#[allow(unsafe_code)]
mod avx512;
mod challenge;
mod commitment;
mod expanded;
mod kernel;
mod ntt;
mod seeds;
mod signature;
mod verify;

use aws_lc_rs::rand;
use aws_lc_rs::signature::{ML_DSA_44, ParsedPublicKey};
use libcrux_ml_dsa::ml_dsa_44::MLDSA44SigningKey;
use zeroize::{Zeroize, Zeroizing};

#[cfg(not(feature = "portable"))]
use libcrux_ml_dsa::ml_dsa_44 as libcrux;
#[cfg(feature = "portable")]
use libcrux_ml_dsa::ml_dsa_44::portable as libcrux;

use self::expanded::{ExpandedKey, PUBLIC_KEY_OCTETS};
use self::kernel::Kernel;
use self::signature::SIGNATURE_OCTETS;
use self::verify::verify;
use crate::algorithm::{Algorithm, GenerationParameters};
use crate::batch::LazyTable;
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};
use crate::implementation::{Implementation, Operation};
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};
use crate::wipe::wiping_stack;

const SEED_OCTETS: usize = 32;
/// Bits of the encoded public key. The parameter set, 44, is not a length.
const KEY_BITS: u32 = PUBLIC_KEY_OCTETS as u32 * 8;
/// Length of the randomness of a signature in octets. Zeros make the signature deterministic (FIPS
/// 204, algorithm 2).
const RANDOMNESS_OCTETS: usize = 32;
/// Size of the working set of the functions of libcrux, in bytes: a matrix of 16 polynomials of 1024
/// bytes, and about ten vectors of 4 polynomials.
const STACK_BYTES: usize = 128 * 1024;

/// Returns the code that performs an operation; see [`crate::implementation()`]. It verifies the second and
/// later signatures of a key.
pub(crate) fn implementation(operation: Operation, _batch: usize) -> Implementation {
    let library = "libcrux-ml-dsa";
    match operation {
        Operation::Generate if cfg!(all(target_arch = "aarch64", not(feature = "portable"))) => {
            Implementation::vectors(library, "NEON")
        }
        Operation::Generate => Implementation::portable(library).or_avx2(),
        Operation::Verify => Implementation::portable("nonesuch").or_avx2(),
    }
}

/// Boxed, so that only one copy exists to wipe, however often the owner moves.
struct Private {
    key: Box<MLDSA44SigningKey>,
    public: Vec<u8>,
    seed: Zeroizing<Vec<u8>>,
    hedged: bool,
}

impl Drop for Private {
    fn drop(&mut self) {
        self.key.as_mut_slice().zeroize();
    }
}

/// Generates a key from a random seed.
pub(crate) fn generate(parameters: GenerationParameters) -> SignerResult {
    from_seed(parameters.algorithm, parameters.random_seed(SEED_OCTETS)?)
}

/// Reads the seed from a private key file.
pub(crate) fn read_private(file: &PrivateFile<'_>) -> SignerResult {
    from_seed(file.algorithm(), file.private_key(SEED_OCTETS)?)
}

fn from_seed(algorithm: Algorithm, seed: Zeroizing<Vec<u8>>) -> SignerResult {
    // The file has no public key to compare with; the public key is derived from the seed (FIPS
    // 204, algorithm 6).
    let expanded = wiping_stack::<STACK_BYTES, _>(|| {
        let pair = libcrux::generate_key_pair(seed.as_slice().try_into().ok()?);
        Some((Box::new(pair.signing_key), pair.verification_key.as_slice().to_vec()))
    });
    let (key, public) = expanded.ok_or(KeyError::InvalidPrivateKey(algorithm))?;
    Ok(Box::new(Private { key, public, seed, hedged: false }))
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        &self.public
    }

    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn signature_octets(&self) -> usize {
        SIGNATURE_OCTETS
    }

    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        let mut randomness = [0; RANDOMNESS_OCTETS];
        if self.hedged {
            rand::fill(&mut randomness).map_err(|_| SignError::Library)?;
        }
        // The library gives up after 814 rounds of rejection sampling. About one round in 4
        // succeeds.
        let signature = wiping_stack::<STACK_BYTES, _>(|| libcrux::sign(&self.key, message, b"", randomness));
        out.extend_from_slice(signature.map_err(|_| SignError::Library)?.as_slice());
        Ok(())
    }

    fn hedge(&mut self) {
        self.hedged = true;
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        vec![(PRIVATE_KEY, &self.seed)]
    }
}

/// Number of signatures of a key before its expanded form is built. The expansion takes about as long as
/// aws-lc takes for a verification.
const SIGNATURES_BEFORE_EXPANSION: usize = 1;

/// Approximate size of a public key that is not expanded, in bytes: its octets here and in aws-lc.
const PUBLIC_BYTES: usize = 4 * PUBLIC_KEY_OCTETS;

/// Approximate time of a verification with an expanded key, in ns. The time of the scheme is that of other
/// verifications.
const NANOSECONDS_WITH_EXPANDED_KEY: u32 = 10_000;

/// A public key. A key that verifies one signature, as a KSK does in a resolver, is not expanded.
struct Public {
    octets: Box<[u8; PUBLIC_KEY_OCTETS]>,
    library: ParsedPublicKey,
    expanded: LazyTable<ExpandedKey>,
}

/// Parses a public key. Any octets of the right length are a public key (FIPS 204, algorithm 23).
pub(crate) fn parse_public(algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    // The library would also accept a SubjectPublicKeyInfo, which it distinguishes by its length.
    let length = KeyError::PublicKeyLength { algorithm, expected: PUBLIC_KEY_OCTETS, found: key.len() };
    let octets = Box::new(<[u8; PUBLIC_KEY_OCTETS]>::try_from(key).map_err(|_| length)?);
    let library =
        ParsedPublicKey::new(&ML_DSA_44, key).map_err(|_| KeyError::MalformedPublicKey(algorithm))?;
    Ok(Box::new(Public { octets, library, expanded: LazyTable::new() }))
}

impl Verifier for Public {
    fn memory_octets(&self) -> usize {
        let expanded = if self.expanded.is_built() { size_of::<ExpandedKey>() } else { 0 };
        PUBLIC_BYTES + expanded
    }

    fn without_table(&self) -> Option<Box<dyn Verifier>> {
        let copy = || {
            let (octets, library) = (self.octets.clone(), self.library.clone());
            Box::new(Self { octets, library, expanded: LazyTable::new() }) as Box<dyn Verifier>
        };
        self.expanded.is_built().then(copy)
    }

    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn nanoseconds(&self) -> Option<u32> {
        self.expanded.is_built().then_some(NANOSECONDS_WITH_EXPANDED_KEY)
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let kernel = Kernel::detect();
        let expand = || ExpandedKey::expand(kernel, &self.octets).ok();
        let is_valid = match self.expanded.table(1, SIGNATURES_BEFORE_EXPANSION + 1, expand) {
            Some(key) => verify(kernel, key, message, signature).map_err(|_| BadSignature)?,
            None => self.library.verify_sig(message, signature).is_ok(),
        };
        if is_valid { Ok(()) } else { Err(BadSignature) }
    }
}

#[cfg(test)]
mod tests;
