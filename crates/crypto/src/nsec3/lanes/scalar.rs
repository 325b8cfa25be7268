//! One message after another, with the library: for processors without vector code here. The library
//! uses the SHA instructions of AArch64.

use super::{BLOCK_OCTETS, BLOCK_WORDS, HASH_WORDS, NSEC3_LANES, Nsec3Hashes, Words};
use crate::nsec3::compress_all;

/// Hashes messages of one block each.
pub(super) fn compress(message: &[Words; BLOCK_WORDS], hashes: &mut [Words; HASH_WORDS]) {
    let mut all = Nsec3Hashes::default();
    for lane in 0..NSEC3_LANES {
        let mut block = [[0; BLOCK_OCTETS]];
        for (octets, words) in block[0].as_chunks_mut::<4>().0.iter_mut().zip(message) {
            *octets = words[lane].to_be_bytes();
        }
        all.set(lane, compress_all(&block));
    }
    *hashes = all.words;
}
