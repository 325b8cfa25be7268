//! The NSEC3 hash (RFC 5155, section 5) with hash algorithm 1: salted and iterated SHA-1.

// Vector instructions.
#[allow(unsafe_code)]
mod lanes;

pub use lanes::{NSEC3_LANES, Nsec3Blocks, Nsec3Hasher, Nsec3Hashes};

use sha1::block_api::compress;

const BLOCK_OCTETS: usize = 64;
/// Maximum length of a message, in octets, that fits into one block with the padding (a one bit and
/// the length).
const MAX_ONE_BLOCK_MESSAGE: usize = BLOCK_OCTETS - 9;
/// Number of blocks for the longest input in DNS: a name and a salt of 255 octets each, and the
/// padding.
const MAX_BLOCKS: usize = (255 + 255 + 9usize).div_ceil(BLOCK_OCTETS);
/// Initial hash value (FIPS 180-4, section 5.3.1).
const SHA1_INITIAL_STATE: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// Returns the NSEC3 hash of a name: `IH(salt, name, iterations)` of RFC 5155, section 5.
///
/// `name` is the owner name in canonical wire form: lower case, uncompressed, with the root label.
/// `iterations` is the number of additional iterations, as in the record. The function computes
/// `iterations` + 1 hashes; the caller must limit this number.
///
/// `name` and `salt` may have any length. Lengths that DNS allows are faster: this function pads
/// the message itself and calls the compression function directly.
#[must_use]
pub fn nsec3_hash(name: &[u8], salt: &[u8], iterations: u16) -> [u8; 20] {
    let mut hash = hash_pair(name, salt);
    if iterations == 0 {
        return hash;
    }
    if hash.len() + salt.len() > MAX_ONE_BLOCK_MESSAGE {
        for _ in 0..iterations {
            hash = hash_pair(&hash, salt);
        }
        return hash;
    }
    // Salt and padding stay unchanged. Only the hash before them changes in each iteration.
    let mut block = [[0; BLOCK_OCTETS]];
    pad(&mut block, &hash, salt);
    for _ in 0..iterations {
        block[0][..hash.len()].copy_from_slice(&hash);
        hash = compress_all(&block);
    }
    hash
}

/// Returns SHA-1 of the concatenation of `first` and `second`.
#[inline]
fn hash_pair(first: &[u8], second: &[u8]) -> [u8; 20] {
    let length = first.len().saturating_add(second.len());
    if length <= MAX_ONE_BLOCK_MESSAGE {
        let mut block = [[0; BLOCK_OCTETS]];
        pad(&mut block, first, second);
        return compress_all(&block);
    }
    hash_long(first, second, length)
}

#[cold]
fn hash_long(first: &[u8], second: &[u8], length: usize) -> [u8; 20] {
    let count = length.saturating_add(9).div_ceil(BLOCK_OCTETS);
    let mut buffer = [[0; BLOCK_OCTETS]; MAX_BLOCKS];
    let Some(blocks) = buffer.get_mut(..count) else {
        // The input is longer than DNS allows.
        use sha1::Digest;
        return sha1::Sha1::new().chain_update(first).chain_update(second).finalize().into();
    };
    pad(blocks, first, second);
    compress_all(blocks)
}

/// Writes a message into zeroed blocks of sufficient size: its octets, a one bit, zeros, and its
/// length in bits (FIPS 180-4, section 5.1.1).
#[inline]
fn pad(blocks: &mut [[u8; BLOCK_OCTETS]], first: &[u8], second: &[u8]) {
    let octets = blocks.as_flattened_mut();
    let length = first.len() + second.len();
    octets[..first.len()].copy_from_slice(first);
    octets[first.len()..length].copy_from_slice(second);
    octets[length] = 0x80;
    let end = octets.len();
    octets[end - 8..].copy_from_slice(&(length as u64 * 8).to_be_bytes());
}

#[inline]
fn compress_all(blocks: &[[u8; BLOCK_OCTETS]]) -> [u8; 20] {
    let mut state = SHA1_INITIAL_STATE;
    compress(&mut state, blocks);
    let mut hash = [0; 20];
    for (octets, word) in hash.chunks_exact_mut(4).zip(state) {
        octets.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE32HEX_NOPAD;
    use proptest::prelude::*;
    use sha1::{Digest, Sha1};

    use super::*;

    /// Computes the hash directly as RFC 5155, section 5 defines it.
    fn naive(name: &[u8], salt: &[u8], iterations: u16) -> [u8; 20] {
        let step = |octets: &[u8]| Sha1::new().chain_update(octets).chain_update(salt).finalize().into();
        (0..iterations).fold(step(name), |hash: [u8; 20], _| step(&hash))
    }

    /// RFC 5155, appendix A: the hashed owner names of the example zone.
    #[test]
    fn hashes_of_the_example_zone() {
        let names = [
            ("example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"),
            ("a.example", "35mthgpgcu1qg68fab165klnsnk3dpvl"),
            ("ai.example", "gjeqe526plbf1g8mklp59enfd789njgi"),
            ("ns1.example", "2t7b4g4vsa5smi47k61mv5bv1a22bojr"),
            ("ns2.example", "q04jkcevqvmu85r014c7dkba38o0ji5r"),
            ("w.example", "k8udemvp1j2f7eg6jebps17vp3n8i58h"),
            ("*.w.example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en"),
            ("x.w.example", "b4um86eghhds6nea196smvmlo4ors995"),
            ("y.w.example", "ji6neoaepv8b5o6k4ev33abha8ht9fgc"),
            ("x.y.w.example", "2vptu5timamqttgl4luu9kg21e0aor3s"),
            ("xx.example", "t644ebqk9bibcna874givr6joj62mlhv"),
        ];
        for (name, expected) in names {
            let hash = nsec3_hash(&crate::rfc_tests::wire_name(name), &[0xaa, 0xbb, 0xcc, 0xdd], 12);
            assert_eq!(BASE32HEX_NOPAD.encode(&hash).to_lowercase(), expected, "{name}");
        }
    }

    #[test]
    fn equals_the_naive_way_for_all_lengths() {
        let octets: Vec<u8> = (0..=255).collect();
        for name in 0..=255 {
            for salt in (0..=255).step_by(5).chain([1, 34, 36, 54, 56]) {
                let (name, salt) = (&octets[..name], &octets[..salt]);
                assert_eq!(nsec3_hash(name, salt, 0), naive(name, salt, 0), "{name:?} {salt:?}");
                assert_eq!(nsec3_hash(name, salt, 2), naive(name, salt, 2), "{name:?} {salt:?}");
            }
        }
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(5))]

        #[test]
        fn equals_the_naive_way(
            name in proptest::collection::vec(any::<u8>(), 0..700),
            salt in proptest::collection::vec(any::<u8>(), 0..300),
            iterations in 0_u16..20,
        ) {
            prop_assert_eq!(nsec3_hash(&name, &salt, iterations), naive(&name, &salt, iterations));
        }
    }
}
