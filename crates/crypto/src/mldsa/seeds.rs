//! SHAKE128 of four seeds of the matrix A, at once if the processor has AVX-512.

#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
use super::avx512::{Avx512, WORDS};
use crate::hash::{LibraryFailed, shake128};

/// Length of a seed in octets: ρ, column and row.
pub(super) const SEED_OCTETS: usize = 34;
/// Octets of a block of SHAKE128.
pub(super) const BLOCK_OCTETS: usize = 168;
/// Number of blocks that [`expand`] returns.
const BLOCKS: usize = 5;

/// The first blocks of the output for a seed.
pub(super) type Blocks = [u8; BLOCKS * BLOCK_OCTETS];

/// Returns the first blocks of SHAKE128 of each seed.
///
/// # Errors
/// If the library has no memory for its state.
pub(super) fn expand(seeds: &[[u8; SEED_OCTETS]; 4]) -> Result<[Blocks; 4], LibraryFailed> {
    #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
    if let Some(avx512) = Avx512::detect() {
        return Ok(expand_at_once(avx512, seeds));
    }
    expand_in_turn(seeds)
}

fn expand_in_turn(seeds: &[[u8; SEED_OCTETS]; 4]) -> Result<[Blocks; 4], LibraryFailed> {
    let mut outputs = [[0; BLOCKS * BLOCK_OCTETS]; 4];
    for (seed, output) in seeds.iter().zip(&mut outputs) {
        shake128(seed, output)?;
    }
    Ok(outputs)
}

#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
fn expand_at_once(avx512: Avx512, seeds: &[[u8; SEED_OCTETS]; 4]) -> [Blocks; 4] {
    let mut states = [[0; 4]; WORDS];
    for (lane, seed) in seeds.iter().enumerate() {
        // The only block of the input: the seed, and the padding of SHAKE (FIPS 202, sections 5.1 and 6.2).
        let mut block = [0; BLOCK_OCTETS];
        block[..SEED_OCTETS].copy_from_slice(seed);
        block[SEED_OCTETS] = 0x1f;
        block[BLOCK_OCTETS - 1] = 0x80;
        for (states, word) in states.iter_mut().zip(block.as_chunks().0) {
            states[lane] = u64::from_le_bytes(*word);
        }
    }
    let mut outputs = [[0; BLOCKS * BLOCK_OCTETS]; 4];
    for block in 0..BLOCKS {
        avx512.permute(&mut states);
        for (lane, output) in outputs.iter_mut().enumerate() {
            let output = &mut output[block * BLOCK_OCTETS..][..BLOCK_OCTETS];
            for (word, states) in output.as_chunks_mut().0.iter_mut().zip(&states) {
                *word = states[lane].to_le_bytes();
            }
        }
    }
    outputs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_seeds_at_once_and_in_turn_have_the_same_output() {
        for number in 0..50_u8 {
            let seeds = std::array::from_fn(|lane| {
                std::array::from_fn(|at| number.wrapping_mul(31).wrapping_add((34 * lane + at) as u8))
            });
            assert_eq!(expand(&seeds), expand_in_turn(&seeds));
        }
    }
}
