//! NSEC3 hashes of many names at a time (RFC 5155, section 5), for searches in large sets of names.
//!
//! A vector has the same word of the messages of [`NSEC3_LANES`] names. A message is a name, the
//! salt and the padding of SHA-1, and must fit into one block. A caller whose names differ in few
//! octets changes only the words with these octets ([`Nsec3Blocks::set_word`]).

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod rounds;
#[cfg(any(test, not(target_arch = "x86_64")))]
mod scalar;
#[cfg(target_arch = "x86_64")]
mod sse2;
#[cfg(test)]
mod tests;

use super::{BLOCK_OCTETS, MAX_ONE_BLOCK_MESSAGE, pad};
use crate::implementation::Implementation;

/// Number of names that [`Nsec3Hasher::hash`] hashes at a time.
pub const NSEC3_LANES: usize = 16;
/// Words of a block.
const BLOCK_WORDS: usize = BLOCK_OCTETS / 4;
/// Words of a hash.
const HASH_WORDS: usize = 5;

/// The same word of all messages.
type Words = [u32; NSEC3_LANES];

/// The messages of [`NSEC3_LANES`] names, each one block.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Nsec3Blocks {
    words: [Words; BLOCK_WORDS],
}

impl Default for Nsec3Blocks {
    fn default() -> Self {
        Self { words: [[0; NSEC3_LANES]; BLOCK_WORDS] }
    }
}

impl Nsec3Blocks {
    /// Returns the message of a name as 16 words, each from four octets in network order: the name in
    /// canonical wire form, the salt, and the padding. `None` if it does not fit into one block:
    /// `name` and `salt` together have more than 55 octets.
    #[must_use]
    pub fn message(name: &[u8], salt: &[u8]) -> Option<[u32; 16]> {
        if name.len().saturating_add(salt.len()) > MAX_ONE_BLOCK_MESSAGE {
            return None;
        }
        let mut block = [[0; BLOCK_OCTETS]];
        pad(&mut block, name, salt);
        let mut words = [0; BLOCK_WORDS];
        for (word, octets) in words.iter_mut().zip(block[0].as_chunks::<4>().0) {
            *word = u32::from_be_bytes(*octets);
        }
        Some(words)
    }

    /// Sets the message of the name `lane`, below [`NSEC3_LANES`].
    ///
    /// # Panics
    /// If `lane` is too large.
    #[inline]
    pub fn set(&mut self, lane: usize, message: &[u32; 16]) {
        assert!(lane < NSEC3_LANES, "a lane below {NSEC3_LANES}");
        for (words, word) in self.words.iter_mut().zip(message) {
            words[lane] = *word;
        }
    }

    /// Sets the word `index`, 0 to 15, of the message of the name `lane`, below [`NSEC3_LANES`]: the
    /// octets 4·`index` to 4·`index` + 3.
    ///
    /// # Panics
    /// If `lane` or `index` is too large.
    #[inline]
    pub fn set_word(&mut self, lane: usize, index: usize, word: u32) {
        self.words[index][lane] = word;
    }

    /// Returns the octets of the message of the name `lane`.
    ///
    /// # Panics
    /// If `lane` is too large.
    #[must_use]
    pub fn octets(&self, lane: usize) -> [u8; BLOCK_OCTETS] {
        let mut octets = [0; BLOCK_OCTETS];
        for (octets, words) in octets.as_chunks_mut::<4>().0.iter_mut().zip(&self.words) {
            *octets = words[lane].to_be_bytes();
        }
        octets
    }
}

/// The hashes of [`NSEC3_LANES`] names.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Nsec3Hashes {
    words: [Words; HASH_WORDS],
}

impl Nsec3Hashes {
    /// The first four octets of each hash, as numbers in network order.
    #[inline]
    #[must_use]
    pub const fn first_words(&self) -> &[u32; NSEC3_LANES] {
        &self.words[0]
    }

    /// Returns the hash of the name `lane`.
    ///
    /// # Panics
    /// If `lane` is [`NSEC3_LANES`] or more.
    #[must_use]
    pub fn hash(&self, lane: usize) -> [u8; 20] {
        let mut hash = [0; 20];
        for (octets, words) in hash.as_chunks_mut::<4>().0.iter_mut().zip(&self.words) {
            *octets = words[lane].to_be_bytes();
        }
        hash
    }

    fn set(&mut self, lane: usize, hash: [u8; 20]) {
        for (octets, words) in hash.as_chunks::<4>().0.iter().zip(&mut self.words) {
            words[lane] = u32::from_be_bytes(*octets);
        }
    }
}

/// Hashes [`NSEC3_LANES`] names at a time, with one salt and one number of iterations.
#[derive(Clone, Debug)]
pub struct Nsec3Hasher {
    kernel: Kernel,
    salt: Vec<u8>,
    iterations: u16,
    /// The message of an iteration, with zeros in place of the hash; `None` if a hash and the salt do
    /// not fit into one block.
    iterated: Option<[u32; BLOCK_WORDS]>,
}

impl Nsec3Hasher {
    /// Selects the fastest code of this machine. `iterations` is the number of additional iterations,
    /// as in the record.
    #[must_use]
    pub fn new(salt: &[u8], iterations: u16) -> Self {
        Self::with_kernel(Kernel::detect(), salt, iterations)
    }

    fn with_kernel(kernel: Kernel, salt: &[u8], iterations: u16) -> Self {
        let iterated = Nsec3Blocks::message(&[0; 20], salt);
        Self { kernel, salt: salt.to_vec(), iterations, iterated }
    }

    /// The code that computes the hashes.
    #[must_use]
    pub const fn implementation(&self) -> Implementation {
        self.kernel.implementation()
    }

    /// Computes the hashes of all messages of `blocks`.
    pub fn hash(&self, blocks: &Nsec3Blocks, hashes: &mut Nsec3Hashes) {
        self.kernel.compress(&blocks.words, &mut hashes.words);
        if self.iterations == 0 {
            return;
        }
        let Some(message) = &self.iterated else { return self.iterate_each(hashes) };
        let mut words = message.map(|word| [word; NSEC3_LANES]);
        for _ in 0..self.iterations {
            words[..HASH_WORDS].copy_from_slice(&hashes.words);
            self.kernel.compress(&words, &mut hashes.words);
        }
    }

    /// Computes the iterations with a salt that does not fit into one block with a hash.
    #[cold]
    fn iterate_each(&self, hashes: &mut Nsec3Hashes) {
        for lane in 0..NSEC3_LANES {
            let hash = hashes.hash(lane);
            // The hash of a name of 20 octets: one iteration is already computed.
            hashes.set(lane, super::nsec3_hash(&hash, &self.salt, self.iterations - 1));
        }
    }
}

/// The code for the compression function of SHA-1 (FIPS 180-4, section 6.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kernel {
    /// One message after another, with the library.
    #[cfg(any(test, not(target_arch = "x86_64")))]
    Scalar,
    /// Four messages at a time, with the instructions that every x86-64 processor has.
    #[cfg(target_arch = "x86_64")]
    Sse2,
    /// Eight messages at a time.
    #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
    Avx2(avx2::Avx2),
    /// Sixteen messages at a time.
    #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
    Avx512(avx512::Avx512),
}

impl Kernel {
    /// The code for every processor of the architecture.
    #[cfg(target_arch = "x86_64")]
    const BASELINE: Self = Self::Sse2;
    /// The code for every processor of the architecture.
    #[cfg(not(target_arch = "x86_64"))]
    const BASELINE: Self = Self::Scalar;

    fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
        if let Some(avx512) = avx512::Avx512::detect() {
            return Self::Avx512(avx512);
        }
        #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
        if let Some(avx2) = avx2::Avx2::detect() {
            return Self::Avx2(avx2);
        }
        Self::BASELINE
    }

    /// All kernels of this machine.
    #[cfg(test)]
    fn all() -> Vec<Self> {
        let kernels = [
            Some(Self::Scalar),
            #[cfg(target_arch = "x86_64")]
            Some(Self::Sse2),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            avx2::Avx2::detect().map(Self::Avx2),
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            avx512::Avx512::detect().map(Self::Avx512),
        ];
        kernels.into_iter().flatten().collect()
    }

    /// Hashes messages of one block each.
    fn compress(self, message: &[Words; BLOCK_WORDS], hashes: &mut [Words; HASH_WORDS]) {
        match self {
            #[cfg(any(test, not(target_arch = "x86_64")))]
            Self::Scalar => scalar::compress(message, hashes),
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => sse2::compress(message, hashes),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Self::Avx2(avx2) => avx2.compress(message, hashes),
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Avx512(avx512) => avx512.compress(message, hashes),
        }
    }

    const fn implementation(self) -> Implementation {
        match self {
            #[cfg(any(test, not(target_arch = "x86_64")))]
            Self::Scalar => Implementation::portable("sha1"),
            #[cfg(target_arch = "x86_64")]
            Self::Sse2 => Implementation::vectors("nonesuch", "SSE2"),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Self::Avx2(_) => Implementation::vectors("nonesuch", "AVX2"),
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Avx512(_) => Implementation::vectors("nonesuch", "AVX-512"),
        }
    }
}
