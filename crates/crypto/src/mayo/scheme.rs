//! Keys, signing and verification of MAYO-2 (MAYO round 2: `MAYO.CompactKeyGen`, `ExpandSK`,
//! `ExpandPK`, `Sign` and `Verify`).

use zeroize::Zeroizing;

use super::field::{FourScalars, SETS, Vector, add, decode, encode, nibble};
use super::kernel::{Kernel, Scalars, transpose};
use super::map::{
    OIL_VARIABLES, P3_ENTRIES, PUBLIC_KEY_OCTETS, PUBLIC_SEED_OCTETS, PublicMap, VARIABLES, VINEGAR_VARIABLES,
};
use super::solve::{RIGHT_SIDE, Solution, System, UNKNOWNS};
use super::whip::whip_linear;
use super::wiped::WipedVec;
use crate::hash::{LibraryFailed, shake256};

/// Length of the compact secret key in octets. It is the seed of the whole key.
pub(super) const SEED_OCTETS: usize = 24;
/// Length of the salt in octets, and of R, the random input of the salt.
pub(super) const SALT_OCTETS: usize = 24;
/// Length of a signature in octets: four vectors of 81 elements, and the salt.
pub(super) const SIGNATURE_OCTETS: usize = SETS * VARIABLES / 2 + SALT_OCTETS;

const DIGEST_OCTETS: usize = 32;
/// Length of O in octets, in the stream from the secret seed.
const OIL_OCTETS: usize = VINEGAR_VARIABLES * OIL_VARIABLES / 2;
/// Number of octets from SHAKE256 for one attempt to sign: vinegar variables, and a random vector
/// of unknowns.
const ATTEMPT_OCTETS: usize = SETS * VINEGAR_VARIABLES / 2 + (SETS * OIL_VARIABLES).div_ceil(2);

// Offsets in the input of SHAKE256: the digest of the message, the salt, and for an attempt also
// the seed and the number of the attempt.
const SALT_OFFSET: usize = DIGEST_OCTETS;
const SEED_OFFSET: usize = SALT_OFFSET + SALT_OCTETS;
const ATTEMPT_OFFSET: usize = SEED_OFFSET + SEED_OCTETS;

/// A public key, prepared for many verifications.
pub(super) struct PublicKey {
    kernel: Kernel,
    map: PublicMap,
}

impl PublicKey {
    /// Octets of memory that it takes.
    pub(super) const OCTETS: usize = 104 << 10;

    /// Expands a public key (`ExpandPK`).
    ///
    /// # Errors
    /// If the library has no memory.
    pub(super) fn parse(kernel: Kernel, key: &[u8; PUBLIC_KEY_OCTETS]) -> Result<Self, LibraryFailed> {
        Ok(Self { kernel, map: PublicMap::parse(key)? })
    }

    /// Returns whether `signature` is a valid signature over `message` (`Verify`).
    ///
    /// # Errors
    /// If the library has no memory.
    pub(super) fn verify(
        &self,
        message: &[u8],
        signature: &[u8; SIGNATURE_OCTETS],
    ) -> Result<bool, LibraryFailed> {
        let (solution, salt) = signature.split_at(SETS * VARIABLES / 2);
        let mut input = [0; SEED_OFFSET];
        shake256(message, &mut input[..SALT_OFFSET])?;
        input[SALT_OFFSET..].copy_from_slice(salt);
        let mut target = [0; 32];
        shake256(&input, &mut target)?;
        let scalars: [FourScalars; VARIABLES] = std::array::from_fn(|variable| {
            std::array::from_fn(|set| nibble(solution, set * VARIABLES + variable))
        });
        let value = self.map.evaluate(&Scalars::prepare(self.kernel, &scalars), VARIABLES);
        Ok(value == decode(&target))
    }
}

/// A secret key, prepared for many signatures (`ExpandSK`), with its public key. It has 139 KiB.
pub(super) struct SecretKey {
    seed: Zeroizing<Vec<u8>>,
    /// The columns of O in order, each with 64 elements.
    oil: WipedVec,
    /// The matrices L = (P1 + P1ᵀ) O + P2, column by column.
    linear: WipedVec,
    public: PublicKey,
    public_octets: Vec<u8>,
}

impl SecretKey {
    /// Derives a key from its seed of 24 octets (`CompactKeyGen` and `ExpandSK`).
    ///
    /// # Errors
    /// If the library has no memory.
    pub(super) fn derive(kernel: Kernel, seed: Zeroizing<Vec<u8>>) -> Result<Self, LibraryFailed> {
        let mut stream = Zeroizing::new([0; PUBLIC_SEED_OCTETS + OIL_OCTETS]);
        shake256(&seed, &mut *stream)?;
        let Some((public_seed, oil)) = stream.split_first_chunk() else {
            unreachable!("the stream is longer than the seed")
        };
        let mut map = PublicMap::expand(public_seed)?;
        let scalars = oil_scalars(kernel, oil);
        let inner = inner_part(&map, &scalars);
        let p3 = oil_part(&inner, &scalars);
        let linear = linear_part(inner, &map, &scalars);
        map.p3_mut().copy_from_slice(&p3);
        let mut public_octets = public_seed.to_vec();
        public_octets.extend(p3.iter().flat_map(encode));
        let public = PublicKey { kernel, map };
        Ok(Self { seed, oil: oil_columns(oil), linear, public, public_octets })
    }

    /// Returns the compact secret key.
    pub(super) fn seed(&self) -> &[u8] {
        &self.seed
    }

    /// Returns the compact public key.
    pub(super) fn public_octets(&self) -> &[u8] {
        &self.public_octets
    }

    /// Changes one bit of the secret part, to simulate a fault.
    #[cfg(test)]
    pub(super) fn inject_fault(&mut self) {
        self.linear[0][0] ^= 1;
    }

    /// Returns the public key of this key.
    pub(super) fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Returns a signature over `message` (`Sign`), without verifying it. `random` is R of the
    /// specification: zeros, or random octets.
    ///
    /// Returns `None` if none of the 256 attempts that the specification allows gives a system of
    /// full rank. About one in a million attempts fails.
    ///
    /// # Errors
    /// If the library has no memory.
    pub(super) fn sign(
        &self,
        message: &[u8],
        random: &[u8; SALT_OCTETS],
    ) -> Result<Option<[u8; SIGNATURE_OCTETS]>, LibraryFailed> {
        let mut input = Zeroizing::new([0; ATTEMPT_OFFSET + 1]);
        shake256(message, &mut input[..SALT_OFFSET])?;
        input[SALT_OFFSET..SEED_OFFSET].copy_from_slice(random);
        input[SEED_OFFSET..ATTEMPT_OFFSET].copy_from_slice(&self.seed);
        let mut salt = [0; SALT_OCTETS];
        shake256(&input[..ATTEMPT_OFFSET], &mut salt)?;
        input[SALT_OFFSET..SEED_OFFSET].copy_from_slice(&salt);
        let mut target = [0; 32];
        shake256(&input[..SEED_OFFSET], &mut target)?;
        let target = decode(&target);
        for attempt in 0..=u8::MAX {
            input[ATTEMPT_OFFSET] = attempt;
            let mut stream = Zeroizing::new([0; ATTEMPT_OCTETS]);
            shake256(&*input, &mut *stream)?;
            if let Some(solution) = self.attempt(&target, &stream) {
                return Ok(Some(encode_signature(&solution, &salt)));
            }
        }
        Ok(None)
    }

    /// Returns the preimage of `target` with the vinegar variables of `stream`, or `None` if the
    /// system does not have full rank.
    fn attempt(&self, target: &Vector, stream: &[u8; ATTEMPT_OCTETS]) -> Option<[[u8; VARIABLES]; SETS]> {
        let kernel = self.public.kernel;
        let (vinegar, random) = stream.split_at(SETS * VINEGAR_VARIABLES / 2);
        let Some(vinegar) = vinegar.as_chunks::<32>().0.first_chunk::<SETS>() else {
            unreachable!("there are 32 octets for each set")
        };
        let scalars: Zeroizing<[FourScalars; VINEGAR_VARIABLES]> =
            Zeroizing::new(std::array::from_fn(|variable| transpose(vinegar, variable)));
        let scalars = Scalars::prepare(kernel, &*scalars);
        let mut system = System::zero();
        for (column, entries) in self.linear.chunks_exact(VINEGAR_VARIABLES).enumerate() {
            let products = Zeroizing::new(scalars.combine(0, entries));
            for (set, coefficients) in whip_linear(&products).into_iter().enumerate() {
                system[set * OIL_VARIABLES + column] = coefficients;
            }
        }
        // Randomise the solution: solve the system with another right side, and add the difference
        // to the solution.
        let random: Zeroizing<Solution> = Zeroizing::new(std::array::from_fn(|index| nibble(random, index)));
        let offset = Zeroizing::new(random.map(|value| [value, 0, 0, 0]));
        let offset = Scalars::prepare(kernel, &*offset).combine(0, &system[..UNKNOWNS])[0];
        let value = Zeroizing::new(self.public.map.evaluate(&scalars, VINEGAR_VARIABLES));
        system[RIGHT_SIDE] = add(&add(target, &value), &offset);
        let solution = Zeroizing::new(kernel.solve(&mut system)?);
        let unknowns: [FourScalars; OIL_VARIABLES] = std::array::from_fn(|column| {
            std::array::from_fn(|set| {
                solution[set * OIL_VARIABLES + column] ^ random[set * OIL_VARIABLES + column]
            })
        });
        Some(self.preimage(vinegar, &unknowns))
    }

    /// Returns the vectors of the signature: vinegar variables plus O times the oil variables,
    /// followed by the oil variables.
    fn preimage(
        &self,
        vinegar: &[[u8; 32]; SETS],
        oil: &[FourScalars; OIL_VARIABLES],
    ) -> [[u8; VARIABLES]; SETS] {
        let hidden = Scalars::prepare(self.public.kernel, oil).combine(0, &self.oil);
        let hidden = Zeroizing::new(hidden);
        std::array::from_fn(|set| {
            let first = encode(&add(&decode(&vinegar[set]), &hidden[set]));
            std::array::from_fn(|variable| match variable.checked_sub(VINEGAR_VARIABLES) {
                None => nibble(&first, variable),
                Some(variable) => oil[variable][set],
            })
        })
    }
}

/// Returns the octets of a signature.
fn encode_signature(solution: &[[u8; VARIABLES]; SETS], salt: &[u8; SALT_OCTETS]) -> [u8; SIGNATURE_OCTETS] {
    let mut signature = [0; SIGNATURE_OCTETS];
    for (index, &element) in solution.iter().flatten().enumerate() {
        signature[index / 2] |= element << (4 * (index % 2));
    }
    signature[SETS * VARIABLES / 2..].copy_from_slice(salt);
    signature
}

/// Number of groups of columns of O. A group is four sets of scalars; the last group is padded with
/// zeros.
const GROUPS: usize = OIL_VARIABLES.div_ceil(SETS);

/// Returns the columns of O as scalars of its rows. `oil` has the rows of 17 elements in order.
fn oil_scalars(kernel: Kernel, oil: &[u8]) -> [Scalars; GROUPS] {
    std::array::from_fn(|group| {
        let scalars: Zeroizing<[FourScalars; VINEGAR_VARIABLES]> =
            Zeroizing::new(std::array::from_fn(|row| {
                std::array::from_fn(|set| match group * SETS + set {
                    column @ 0..OIL_VARIABLES => nibble(oil, row * OIL_VARIABLES + column),
                    _ => 0,
                })
            }));
        Scalars::prepare(kernel, &*scalars)
    })
}

/// Returns the columns of O as vectors.
fn oil_columns(oil: &[u8]) -> WipedVec {
    let mut columns = WipedVec::zero(OIL_VARIABLES);
    for (column, vector) in columns.iter_mut().enumerate() {
        for row in 0..VINEGAR_VARIABLES {
            vector[row / 16] |= u64::from(nibble(oil, row * OIL_VARIABLES + column)) << (4 * (row % 16));
        }
    }
    columns
}

/// Returns the matrices P1 O + P2, column by column.
fn inner_part(map: &PublicMap, oil: &[Scalars; GROUPS]) -> WipedVec {
    let mut inner = WipedVec::zero(OIL_VARIABLES * VINEGAR_VARIABLES);
    for row in 0..VINEGAR_VARIABLES {
        let (first, second) = map.row(row).split_at(VINEGAR_VARIABLES - row);
        for (group, scalars) in oil.iter().enumerate() {
            let sums = scalars.combine(row, first);
            for (column, sum) in (group * SETS..OIL_VARIABLES).zip(sums) {
                inner[column * VINEGAR_VARIABLES + row] = add(&sum, &second[column]);
            }
        }
    }
    inner
}

/// Returns P3 = Upper(Oᵀ (P1 O + P2)), row by row from the diagonal on.
fn oil_part(inner: &[Vector], oil: &[Scalars; GROUPS]) -> [Vector; P3_ENTRIES] {
    // The product is wiped, because only the sums of the two elements that mirror each other are
    // public.
    let mut product = WipedVec::zero(OIL_VARIABLES * OIL_VARIABLES);
    for (column, entries) in inner.chunks_exact(VINEGAR_VARIABLES).enumerate() {
        for (group, scalars) in oil.iter().enumerate() {
            for (row, sum) in (group * SETS..OIL_VARIABLES).zip(scalars.combine(0, entries)) {
                product[row * OIL_VARIABLES + column] = sum;
            }
        }
    }
    let mut upper = (0..OIL_VARIABLES).flat_map(|row| (row..OIL_VARIABLES).map(move |column| (row, column)));
    std::array::from_fn(|_| match upper.next() {
        Some((row, column)) if row == column => product[row * OIL_VARIABLES + row],
        Some((row, column)) => {
            add(&product[row * OIL_VARIABLES + column], &product[column * OIL_VARIABLES + row])
        }
        None => unreachable!("the triangle has as many entries"),
    })
}

/// Returns the matrices L = (P1 + P1ᵀ) O + P2, column by column. `inner` is P1 O + P2.
fn linear_part(mut inner: WipedVec, map: &PublicMap, oil: &[Scalars; GROUPS]) -> WipedVec {
    for row in 0..VINEGAR_VARIABLES {
        // A row of P1ᵀ is a column of P1, which ends at the diagonal.
        let transposed: [Vector; VINEGAR_VARIABLES] =
            std::array::from_fn(|column| if column <= row { map.row(column)[row - column] } else { [0; 4] });
        for (group, scalars) in oil.iter().enumerate() {
            let sums = scalars.combine(0, &transposed[..=row]);
            for (column, sum) in (group * SETS..OIL_VARIABLES).zip(sums) {
                let entry = &mut inner[column * VINEGAR_VARIABLES + row];
                *entry = add(entry, &sum);
            }
        }
    }
    inner
}
