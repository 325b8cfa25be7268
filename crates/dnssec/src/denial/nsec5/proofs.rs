//! The proofs of the names of a chain: made in parallel, kept compactly, taken over where they are there already.
//!
//! A proof depends on key and name alone, so that those of an earlier signing serve again.

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

/// The signature of a signing key over a file of proofs.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ProofsSignature {
    pub(super) algorithm: Algorithm,
    pub(super) tag: u16,
    pub(super) signature: Vec<u8>,
}

/// Names proved at once by one thread.
const CHUNK: usize = 256;
/// A name of which there is no proof yet.
const NONE: u32 = u32::MAX;

/// The proofs of the names of one chain, by name in canonical order. Whoever has them can tell which names exist.
#[derive(Clone, PartialEq, Eq)]
pub struct Proofs {
    /// In lower case.
    pub(super) zone: Name,
    pub(super) serial: u32,
    pub(super) key: Nsec5Key,
    /// The part of each name in front of the apex, in canonical wire form, as if the apex were the root.
    pub(super) names: Vec<u8>,
    pub(super) hashes: Vec<Hash>,
    /// One proof after the other, all of `proof_octets`.
    pub(super) proofs: Vec<u8>,
    pub(super) proof_octets: usize,
    /// `None` where no signing key has sealed them.
    pub(super) seal: Option<ProofsSignature>,
}

/// A name with its proof.
#[derive(Clone, Copy, Debug)]
pub struct ProofEntry<'p> {
    /// The part of the name in front of the apex, in canonical form, as if the apex were the root.
    pub name: NameRef<'p>,
    /// The hash that the proof proves.
    pub hash: &'p [u8; VRF_HASH_OCTETS],
    /// The proof, as an NSEC5PROOF record carries it.
    pub proof: &'p [u8],
}

impl ProofEntry<'_> {
    /// The whole name, below `apex`.
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

    /// The key that proved.
    #[must_use]
    pub const fn key(&self) -> &Nsec5Key {
        &self.key
    }

    /// Serial of the signed zone that the proofs were last made for.
    #[must_use]
    pub const fn serial(&self) -> u32 {
        self.serial
    }

    /// Says which signed zone the proofs are for.
    pub const fn set_serial(&mut self, serial: u32) {
        self.serial = serial;
    }

    /// Number of names.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Whether there is no name; the proofs of a chain have one at least, the apex.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// The names in canonical order, with hash and proof.
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

/// Proofs tell which names exist: only their number is shown.
impl fmt::Debug for Proofs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proofs").field("zone", &self.zone).field("names", &self.len()).finish_non_exhaustive()
    }
}

/// What a zone is signed with NSEC5 by.
#[derive(Clone, Copy, Debug)]
pub struct Nsec5Chain<'a> {
    /// The proofs of exactly the names of the chain, as [`prove_chain`] makes them.
    pub proofs: &'a Proofs,
    /// Whether NSEC5KEY records of other keys that the zone holds stay beside that of the chain, as a roll-over needs;
    /// else they are dropped.
    pub keep_keys: bool,
}

/// How the names of a chain are to be proved.
#[derive(Clone, Copy, Default)]
pub struct ProveOptions<'a> {
    /// Whether the chain leaves insecure delegations out.
    pub opt_out: bool,
    /// Proofs of before: those of the same zone and key serve again. Their hashes are trusted: see
    /// [`Proofs::is_signed_by`].
    pub stored: Option<&'a Proofs>,
    /// Called now and then, from any thread, with the number of names done so far and that of all.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

impl ProveOptions<'_> {
    /// Options for the chain of `mechanism`: nothing stored, no progress.
    #[must_use]
    pub fn new(mechanism: Mechanism) -> Self {
        Self { opt_out: mechanism.is_opt_out(), ..Self::default() }
    }
}

/// What proving did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProveStatistics {
    /// Proofs made.
    pub made: u64,
    /// Stored proofs that served again.
    pub kept: u64,
}

/// Proves every name of the chain of `contents`, signed or not, on all cores.
///
/// # Errors
/// Where there is no SOA record, or the library fails.
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

/// The names of the chain in canonical order. Empty non-terminals always stand in it; an opt-out chain leaves insecure
/// delegations out, and nothing else.
pub(crate) fn names_of_chain(mut names: Vec<ChainName>, opt_out: bool) -> Vec<ChainName> {
    if opt_out {
        names.retain(|name| name.is_empty() || name.required);
    }
    names
}

fn names_to_prove(contents: &Contents, opt_out: bool) -> Vec<ChainName> {
    let standings = name_statuses(contents);
    let chained = |index: &usize| standings[*index].is_in_chain() && is_kept(contents, contents.node(*index));
    let nodes: Vec<u32> = (0..contents.node_count()).filter(chained).map(|index| index as u32).collect();
    names_of_chain(chain_names(contents, &standings, &nodes), opt_out)
}

/// For each name its place among the stored ones, and the stored names that are not among `names`. Both come in canonical
/// order.
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

/// Room that is used again for every run of names.
#[derive(Default)]
struct Prover {
    canonical: Vec<u8>,
    ends: Vec<usize>,
    proofs: Vec<u8>,
    hashes: Vec<Hash>,
}

impl Prover {
    /// Proves those of `names` that are not `known`.
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

    /// Writes known proofs and those just made where they belong.
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
    /// The names, one behind the other, each as in [`ProofEntry::name`].
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

/// Writes the part of `name` in front of `apex` into `out`, in canonical form and as if the apex were the root.
pub(super) fn relative_name(name: NameRef<'_>, apex: NameRef<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&name.wire()[..name.len() - apex.len()]);
    // Octets of labels' lengths, at most 63, are no letters.
    out.make_ascii_lowercase();
    out.push(0);
}
