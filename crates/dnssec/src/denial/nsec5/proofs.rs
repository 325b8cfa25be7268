//! The proofs of the names of a chain: generated in parallel, stored compactly, and reused.
//!
//! A proof depends only on the key and the name, so later signings reuse proofs of earlier ones.

use super::{Hash, Nsec5Error};
use crate::denial::Mechanism;
use crate::denial::names::{ChainName, chain_names, has_source_records};
use crate::keys::Nsec5Key;
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::{ProveError, VRF_HASH_OCTETS, VrfPrivateKey};
use nonesuch_proto::{Name, NameRef};
use nonesuch_zone::{Contents, name_statuses};
use rayon::prelude::*;
use std::fmt;
use std::sync::atomic::{self, AtomicU64};

/// The seal: the signature of a signing key over a file of proofs.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Seal {
    pub(super) algorithm: Algorithm,
    pub(super) tag: u16,
    pub(super) signature: Vec<u8>,
}

/// Number of names that a thread proves as one unit of work.
const CHUNK_NAMES: usize = 256;
/// In place of the index of a stored proof: the name has none.
const NO_STORED_PROOF: u32 = u32::MAX;

/// The proofs of the names of one chain, by name in canonical order. They reveal which names exist.
#[derive(Clone, PartialEq, Eq)]
pub struct Proofs {
    /// In lower case.
    pub(super) zone: Name,
    pub(super) serial: u32,
    pub(super) key: Nsec5Key,
    /// The part of each name before the apex, in canonical wire form, with the root in place of the
    /// apex.
    pub(super) names: Vec<u8>,
    pub(super) hashes: Vec<Hash>,
    /// The proofs one after the other, each with `proof_octets` octets.
    pub(super) proofs: Vec<u8>,
    pub(super) proof_octets: usize,
    /// `None` if no signing key has sealed the proofs.
    pub(super) seal: Option<Seal>,
}

/// A name with its hash and proof.
#[derive(Clone, Copy, Debug)]
pub struct ProofEntry<'p> {
    /// The part of the name before the apex, in canonical form, with the root in place of the apex.
    pub name: NameRef<'p>,
    /// The hash that the proof proves.
    pub hash: &'p [u8; VRF_HASH_OCTETS],
    /// The proof as in an NSEC5PROOF record, without the key tag.
    pub proof: &'p [u8],
}

impl ProofEntry<'_> {
    /// The complete name below `apex`.
    #[must_use]
    pub fn full_name(&self, apex: NameRef<'_>) -> Name {
        let mut wire = self.name.wire().to_vec();
        wire.pop();
        wire.extend_from_slice(apex.wire());
        NameRef::from_wire_unchecked(&wire).to_name()
    }
}

impl Proofs {
    /// The zone, in lower case.
    #[must_use]
    pub const fn zone(&self) -> &Name {
        &self.zone
    }

    /// The VRF public key of the proofs.
    #[must_use]
    pub const fn key(&self) -> &Nsec5Key {
        &self.key
    }

    /// Serial of the signed zone for which the proofs were last generated.
    #[must_use]
    pub const fn serial(&self) -> u32 {
        self.serial
    }

    /// Sets the serial of the signed zone to which the proofs belong. A seal is then no longer
    /// valid.
    pub const fn set_serial(&mut self, serial: u32) {
        self.serial = serial;
    }

    /// Number of names.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there are no names. The proofs of a chain have at least one name, the apex.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The names in canonical order, each with hash and proof.
    pub fn entries(&self) -> impl Iterator<Item = ProofEntry<'_>> {
        let mut rest = self.names.as_slice();
        let names = std::iter::from_fn(move || {
            let (name, tail) = NameRef::split_from(rest).ok()?;
            rest = tail;
            Some(name)
        });
        let hashes_and_proofs = self.hashes.iter().zip(self.proofs.chunks_exact(self.proof_octets));
        names.zip(hashes_and_proofs).map(|(name, (hash, proof))| ProofEntry { name, hash, proof })
    }
}

/// Shows only the number of names, because the proofs reveal which names exist.
impl fmt::Debug for Proofs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proofs").field("zone", &self.zone).field("names", &self.len()).finish_non_exhaustive()
    }
}

/// Input for signing a zone with NSEC5.
#[derive(Clone, Copy, Debug)]
pub struct Nsec5Chain<'a> {
    /// The proofs of exactly the names of the chain, from [`prove_chain`].
    pub proofs: &'a Proofs,
    /// Whether NSEC5KEY records of other keys remain in the zone, as a rollover of the VRF key
    /// requires; otherwise the signer removes them.
    pub keep_other_keys: bool,
}

/// Options of [`prove_chain`].
#[derive(Clone, Copy, Default)]
pub struct ProveOptions<'a> {
    /// Whether the chain omits insecure delegations.
    pub opt_out: bool,
    /// Proofs of an earlier call. Those of the same zone and key are reused, without verification:
    /// the caller must have checked [`Proofs::is_sealed_by`].
    pub stored: Option<&'a Proofs>,
    /// Called repeatedly, from any thread, with the number of names completed and the number of all
    /// names.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

impl ProveOptions<'_> {
    /// Options for the chain of `mechanism`, without stored proofs and progress reports.
    #[must_use]
    pub fn new(mechanism: Mechanism) -> Self {
        Self { opt_out: mechanism.is_opt_out(), ..Self::default() }
    }
}

/// Numbers of proofs that [`prove_chain`] generated and reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProveStatistics {
    /// Number of generated proofs.
    pub generated: u64,
    /// Number of reused proofs.
    pub reused: u64,
}

/// Generates the proofs for all names of the chain of `contents`, signed or unsigned, on all cores.
///
/// # Errors
/// [`Nsec5Error::NoSoa`]; [`Nsec5Error::Prove`] if the cryptographic library fails.
pub fn prove_chain(
    contents: &Contents,
    key: &VrfPrivateKey,
    options: &ProveOptions<'_>,
) -> Result<(Proofs, ProveStatistics), Nsec5Error> {
    let soa = contents.soa().ok_or_else(|| Nsec5Error::NoSoa(contents.apex().clone()))?;
    let names = names_to_prove(contents, options.opt_out);
    let public = Nsec5Key::of(key);
    let stored = options.stored.filter(|stored| stored.key == public && stored.zone == *contents.apex());
    let stored_indexes = stored
        .map_or_else(|| vec![NO_STORED_PROOF; names.len()], |stored| find_stored(contents, &names, stored).0);
    let proof_octets = key.algorithm().entry().map_or(0, |entry| entry.proof_octets);
    let mut proofs = vec![0; names.len() * proof_octets];
    let mut hashes = vec![Hash::default(); names.len()];
    let (done, total) = (AtomicU64::new(0), names.len() as u64);
    names
        .par_chunks(CHUNK_NAMES)
        .zip(stored_indexes.par_chunks(CHUNK_NAMES))
        .zip(hashes.par_chunks_mut(CHUNK_NAMES).zip(proofs.par_chunks_mut(CHUNK_NAMES * proof_octets)))
        .try_for_each_init(ChunkProver::default, |prover, ((names, indexes), (hashes, proofs))| {
            prover.prove_missing(contents, key, names, indexes)?;
            prover.write_output(stored, indexes, hashes, proofs, proof_octets);
            if let Some(progress) = options.progress {
                let count = names.len() as u64;
                progress(done.fetch_add(count, atomic::Ordering::Relaxed) + count, total);
            }
            Ok::<(), ProveError>(())
        })?;
    let reused = stored_indexes.iter().filter(|index| **index != NO_STORED_PROOF).count() as u64;
    let statistics = ProveStatistics { generated: names.len() as u64 - reused, reused };
    let zone = contents.apex().view().to_canonical();
    let names = relative_names(contents, &names);
    let serial = soa.serial;
    let seal = None;
    Ok((Proofs { zone, serial, key: public, names, hashes, proofs, proof_octets, seal }, statistics))
}

/// Selects the names of an NSEC5 chain from `names`. An opt-out chain omits insecure delegations
/// and no other names; in contrast to NSEC3, it has all empty non-terminals.
pub(crate) fn select_chain_names(mut names: Vec<ChainName>, opt_out: bool) -> Vec<ChainName> {
    if opt_out {
        names.retain(|name| name.is_empty_non_terminal() || name.is_required);
    }
    names
}

/// Returns the names of the chain of a zone, signed or unsigned, in canonical order.
fn names_to_prove(contents: &Contents, opt_out: bool) -> Vec<ChainName> {
    let statuses = name_statuses(contents);
    let chained =
        |index: &usize| statuses[*index].is_in_chain() && has_source_records(contents, contents.node(*index));
    let nodes: Vec<u32> = (0..contents.node_count()).filter(chained).map(|index| index as u32).collect();
    select_chain_names(chain_names(contents, &statuses, &nodes), opt_out)
}

/// Returns for each of `names` the index of its stored proof, or [`NO_STORED_PROOF`]; and the names
/// with a stored proof that are not in `names`. `names` must be in canonical order.
pub(super) fn find_stored(
    contents: &Contents,
    names: &[ChainName],
    stored: &Proofs,
) -> (Vec<u32>, Vec<Name>) {
    let apex = contents.apex().view();
    let mut entries = (0..).zip(stored.entries()).peekable();
    let (mut relative, mut extra) = (Vec::new(), Vec::new());
    let mut indexes = Vec::with_capacity(names.len());
    for name in names {
        relative_name(name.name(contents), apex, &mut relative);
        let wanted = NameRef::from_wire_unchecked(&relative);
        while let Some((_, entry)) = entries.next_if(|(_, entry)| entry.name.cmp_canonical(wanted).is_lt()) {
            extra.push(entry.full_name(apex));
        }
        let found = entries.next_if(|(_, entry)| entry.name.cmp_canonical(wanted).is_eq());
        indexes.push(found.map_or(NO_STORED_PROOF, |(index, _)| index));
    }
    extra.extend(entries.map(|(_, entry)| entry.full_name(apex)));
    (indexes, extra)
}

/// Proves the names of one chunk after another; its buffers are reused.
#[derive(Default)]
struct ChunkProver {
    /// The names without a stored proof in canonical form, concatenated.
    canonical: Vec<u8>,
    /// End of each of these names in `canonical`.
    ends: Vec<usize>,
    proofs: Vec<u8>,
    hashes: Vec<Hash>,
}

impl ChunkProver {
    /// Generates proofs for those of `names` without a stored proof. `stored_indexes` has the index
    /// of the stored proof of each name.
    fn prove_missing(
        &mut self,
        contents: &Contents,
        key: &VrfPrivateKey,
        names: &[ChainName],
        stored_indexes: &[u32],
    ) -> Result<(), ProveError> {
        self.canonical.clear();
        self.ends.clear();
        for (name, _) in names.iter().zip(stored_indexes).filter(|(_, index)| **index == NO_STORED_PROOF) {
            name.name(contents).push_canonical(&mut self.canonical);
            self.ends.push(self.canonical.len());
        }
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let inputs: Vec<&[u8]> =
            starts.zip(&self.ends).map(|(start, end)| &self.canonical[start..*end]).collect();
        self.proofs.clear();
        self.hashes.clear();
        key.prove_batch(&inputs, &mut self.proofs, &mut self.hashes)
    }

    /// Writes the hashes and proofs of all names of the chunk to `hashes` and `proofs`: the stored
    /// ones, and those that [`ChunkProver::prove_missing`] has generated.
    fn write_output(
        &self,
        stored: Option<&Proofs>,
        stored_indexes: &[u32],
        hashes: &mut [Hash],
        proofs: &mut [u8],
        proof_octets: usize,
    ) {
        let mut generated = self.hashes.iter().zip(self.proofs.chunks_exact(proof_octets));
        for ((index, hash), proof) in
            stored_indexes.iter().zip(hashes).zip(proofs.chunks_exact_mut(proof_octets))
        {
            let source = match stored.filter(|_| *index != NO_STORED_PROOF) {
                Some(stored) => stored.get(*index as usize),
                None => generated.next(),
            };
            if let Some((known_hash, known_proof)) = source {
                *hash = *known_hash;
                proof.copy_from_slice(known_proof);
            }
        }
    }
}

impl Proofs {
    /// The names, one after the other, each as in [`ProofEntry::name`].
    pub(crate) fn names(&self) -> &[u8] {
        &self.names
    }

    /// Hash and proof of the name with this index.
    pub(crate) fn get(&self, index: usize) -> Option<(&Hash, &[u8])> {
        let start = index * self.proof_octets;
        Some((self.hashes.get(index)?, self.proofs.get(start..start + self.proof_octets)?))
    }
}

fn relative_names(contents: &Contents, names: &[ChainName]) -> Vec<u8> {
    let mut all = Vec::with_capacity(names.len() * 16);
    let mut relative = Vec::new();
    for name in names {
        relative_name(name.name(contents), contents.apex().view(), &mut relative);
        all.extend_from_slice(&relative);
    }
    all
}

/// Writes the part of `name` before `apex` to `out`, in canonical form, with the root in place of
/// the apex.
pub(super) fn relative_name(name: NameRef<'_>, apex: NameRef<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&name.wire()[..name.len() - apex.len()]);
    // Length octets of labels are at most 63 and are not letters.
    out.make_ascii_lowercase();
    out.push(0);
}
