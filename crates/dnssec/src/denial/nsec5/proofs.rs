//! The proofs of the names of a chain: generated in parallel, stored compactly, and reused.
//!
//! A proof depends only on the key and the name, so later signings reuse proofs of earlier ones.

use super::{Hash, Nsec5Error};
use crate::denial::Mechanism;
use crate::denial::names::{ChainName, chain_names, is_kept};
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
pub(super) struct ProofsSignature {
    pub(super) algorithm: Algorithm,
    pub(super) tag: u16,
    pub(super) signature: Vec<u8>,
}

/// Number of names that a thread proves as one unit of work.
const CHUNK: usize = 256;
/// The place of a name without a stored proof.
const NONE: u32 = u32::MAX;

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
    pub(super) seal: Option<ProofsSignature>,
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
        NameRef::from_checked(&wire).to_name()
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

    /// Sets the serial of the signed zone for which the proofs are.
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
        let of_names = self.hashes.iter().zip(self.proofs.chunks_exact(self.proof_octets));
        names.zip(of_names).map(|(name, (hash, proof))| ProofEntry { name, hash, proof })
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
    /// Whether NSEC5KEY records of other keys in the zone remain, as a rollover requires; otherwise
    /// the signer removes them.
    pub keep_keys: bool,
}

/// Options of [`prove_chain`].
#[derive(Clone, Copy, Default)]
pub struct ProveOptions<'a> {
    /// Whether the chain omits insecure delegations.
    pub opt_out: bool,
    /// Earlier proofs. Those of the same zone and key are reused. Their hashes are trusted: see
    /// [`Proofs::is_signed_by`].
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
    pub made: u64,
    /// Number of reused proofs.
    pub kept: u64,
}

/// Generates the proofs for all names of the chain of `contents`, signed or unsigned, on all cores.
///
/// # Errors
/// If the zone has no SOA record, or if the cryptographic library fails.
pub fn prove_chain(
    contents: &Contents,
    key: &VrfPrivateKey,
    options: &ProveOptions<'_>,
) -> Result<(Proofs, ProveStatistics), Nsec5Error> {
    let soa = contents.soa().ok_or_else(|| Nsec5Error::NoSoa(contents.apex().clone()))?;
    let names = names_to_prove(contents, options.opt_out);
    let public = Nsec5Key::of(key);
    let stored = options.stored.filter(|stored| stored.key == public && stored.zone == *contents.apex());
    let known =
        stored.map_or_else(|| vec![NONE; names.len()], |stored| find_stored(contents, &names, stored).0);
    let octets = key.algorithm().entry().map_or(0, |entry| entry.proof_octets);
    let mut proofs = vec![0; names.len() * octets];
    let mut hashes = vec![Hash::default(); names.len()];
    let (done, total) = (AtomicU64::new(0), names.len() as u64);
    names
        .par_chunks(CHUNK)
        .zip(known.par_chunks(CHUNK))
        .zip(hashes.par_chunks_mut(CHUNK).zip(proofs.par_chunks_mut(CHUNK * octets)))
        .try_for_each_init(Prover::default, |prover, ((names, known), (hashes, proofs))| {
            prover.prove_missing(contents, key, names, known)?;
            prover.place(stored, known, hashes, proofs, octets);
            if let Some(progress) = options.progress {
                let count = names.len() as u64;
                progress(done.fetch_add(count, atomic::Ordering::Relaxed) + count, total);
            }
            Ok::<(), ProveError>(())
        })?;
    let kept = known.iter().filter(|place| **place != NONE).count() as u64;
    let statistics = ProveStatistics { made: names.len() as u64 - kept, kept };
    let zone = contents.apex().view().to_canonical();
    let names = relative_names(contents, &names);
    let serial = soa.serial;
    let seal = None;
    Ok((Proofs { zone, serial, key: public, names, hashes, proofs, proof_octets: octets, seal }, statistics))
}

/// The names of the chain in canonical order. All empty non-terminals are in it. An opt-out chain
/// omits only insecure delegations.
pub(crate) fn names_of_chain(mut names: Vec<ChainName>, opt_out: bool) -> Vec<ChainName> {
    if opt_out {
        names.retain(|name| name.is_empty() || name.required);
    }
    names
}

fn names_to_prove(contents: &Contents, opt_out: bool) -> Vec<ChainName> {
    let statuses = name_statuses(contents);
    let chained = |index: &usize| statuses[*index].is_in_chain() && is_kept(contents, contents.node(*index));
    let nodes: Vec<u32> = (0..contents.node_count()).filter(chained).map(|index| index as u32).collect();
    names_of_chain(chain_names(contents, &statuses, &nodes), opt_out)
}

/// For each name the index of its stored proof ([`NONE`] if it has none), and the stored names that
/// are not in `names`. Both inputs are in canonical order.
pub(super) fn find_stored(
    contents: &Contents,
    names: &[ChainName],
    stored: &Proofs,
) -> (Vec<u32>, Vec<Name>) {
    let apex = contents.apex().view();
    let mut entries = (0..).zip(stored.entries()).peekable();
    let (mut wanted, mut extra) = (Vec::new(), Vec::new());
    let mut places = Vec::with_capacity(names.len());
    for name in names {
        relative_name(name.name(contents), apex, &mut wanted);
        let wanted = NameRef::from_checked(&wanted);
        while let Some((_, entry)) = entries.next_if(|(_, entry)| entry.name.cmp_canonical(wanted).is_lt()) {
            extra.push(entry.full_name(apex));
        }
        let found = entries.next_if(|(_, entry)| entry.name.cmp_canonical(wanted).is_eq());
        places.push(found.map_or(NONE, |(place, _)| place));
    }
    extra.extend(entries.map(|(_, entry)| entry.full_name(apex)));
    (places, extra)
}

/// Buffers that are reused for each chunk of names.
#[derive(Default)]
struct Prover {
    canonical: Vec<u8>,
    ends: Vec<usize>,
    proofs: Vec<u8>,
    hashes: Vec<Hash>,
}

impl Prover {
    /// Generates proofs for those of `names` without a proof in `known`.
    fn prove_missing(
        &mut self,
        contents: &Contents,
        key: &VrfPrivateKey,
        names: &[ChainName],
        known: &[u32],
    ) -> Result<(), ProveError> {
        self.canonical.clear();
        self.ends.clear();
        for (name, _) in names.iter().zip(known).filter(|(_, place)| **place == NONE) {
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

    /// Writes stored and new hashes and proofs to their places in the output.
    fn place(
        &self,
        stored: Option<&Proofs>,
        known: &[u32],
        hashes: &mut [Hash],
        proofs: &mut [u8],
        octets: usize,
    ) {
        let mut made = self.hashes.iter().zip(self.proofs.chunks_exact(octets));
        for ((place, hash), proof) in known.iter().zip(hashes).zip(proofs.chunks_exact_mut(octets)) {
            let source = match stored.filter(|_| *place != NONE) {
                Some(stored) => stored.at(*place as usize),
                None => made.next(),
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

    /// Hash and proof of the name at `place`.
    pub(crate) fn at(&self, place: usize) -> Option<(&Hash, &[u8])> {
        let start = place * self.proof_octets;
        Some((self.hashes.get(place)?, self.proofs.get(start..start + self.proof_octets)?))
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
