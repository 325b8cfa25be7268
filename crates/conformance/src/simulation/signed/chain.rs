//! The denial chain of a zone, and the records that prove a denial (RFC 4035 §3.1.3, RFC 5155 §7.2,
//! draft-vcelak-nsec5 §8).

use super::zone::{RecordSet, Records};
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_crypto::nsec3_hash;
use nonesuch_crypto::vrf::VrfPrivateKey;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_dnssec::{Mechanism, Nsec3Params};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// The types of denial records that are signed.
pub(super) const CHAIN_TYPES: [Rtype; 3] = [Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC5];

/// What a response denies. The encloser is the closest encloser of the name.
#[derive(Clone, Copy, Debug)]
pub(super) enum Denied<'n> {
    /// The type at this name.
    Type(&'n Name),
    /// The name.
    Name(&'n Name, &'n Name),
    /// A match of the name that is closer than the wildcard below the encloser.
    CloserMatch(&'n Name, &'n Name),
    /// The type at the wildcard below the encloser, which matches the name.
    WildcardType(&'n Name, &'n Name),
}

/// A record of the chain.
#[derive(Clone, Debug)]
pub(super) struct ChainRecord {
    /// The position in the chain: the hash of a name, or for NSEC its sort key.
    key: Vec<u8>,
    pub(super) owner: Name,
    pub(super) set: RecordSet,
}

impl ChainRecord {
    /// Whether the record has the opt-out flag.
    fn is_opt_out(&self, rtype: Rtype) -> bool {
        let at = match rtype {
            Rtype::NSEC3 => 1,
            Rtype::NSEC5 => 2,
            _ => return false,
        };
        self.set.rdatas.iter().any(|rdata| rdata.get(at).is_some_and(|flags| flags & 1 != 0))
    }
}

/// The proof of a denial.
#[derive(Clone, Debug, Default)]
pub(super) struct Proof {
    /// Indexes of records of the chain.
    pub(super) records: Vec<usize>,
    /// The names of NSEC5PROOF records.
    pub(super) names: Vec<Name>,
    /// Whether the denial is not secure, because an opt-out span covers the name.
    pub(super) is_opt_out: bool,
}

/// The proof of an NSEC5 hash, and the hash.
type VrfOutput = (Vec<u8>, Vec<u8>);

/// The chain.
#[derive(Debug)]
pub(super) struct Chain {
    pub(super) rtype: Rtype,
    /// In the order of their keys.
    pub(super) records: Vec<ChainRecord>,
    nsec3: Nsec3Params,
    vrf: Option<VrfPrivateKey>,
    vrf_outputs: RefCell<BTreeMap<Name, VrfOutput>>,
}

impl Chain {
    /// Returns the chain of an unsigned zone.
    pub(super) fn empty() -> Self {
        let (records, nsec3) = (Vec::new(), Nsec3Params::default());
        Self { rtype: Rtype::NSEC, records, nsec3, vrf: None, vrf_outputs: RefCell::default() }
    }

    /// Takes the chain of hashed names out of `records`, and copies an NSEC chain.
    pub(super) fn take(
        apex: &Name,
        records: &mut Records,
        mechanism: Mechanism,
        nsec3: Nsec3Params,
        vrf: Option<VrfPrivateKey>,
    ) -> Self {
        let rtype = match mechanism.name_hash() {
            NameHash::Unhashed => Rtype::NSEC,
            NameHash::Sha1 => Rtype::NSEC3,
            NameHash::Vrf => Rtype::NSEC5,
        };
        let mut chain = Self { rtype, records: Vec::new(), nsec3, vrf, vrf_outputs: RefCell::default() };
        for (owner, sets) in records.iter() {
            let Some(set) = sets.get(&rtype) else { continue };
            let key = match owner.view().labels().next().filter(|_| rtype != Rtype::NSEC) {
                Some(label) => BASE32HEX_NOPAD.decode(&label.to_ascii_uppercase()).unwrap_or_default(),
                None => chain.key(owner),
            };
            chain.records.push(ChainRecord { key, owner: owner.clone(), set: set.clone() });
        }
        if rtype != Rtype::NSEC {
            records.retain(|owner, sets| owner == apex || !sets.contains_key(&rtype));
        }
        chain.records.sort_by(|a, b| a.key.cmp(&b.key));
        chain
    }

    /// Returns the position of a name in the chain.
    fn key(&self, name: &Name) -> Vec<u8> {
        let mut canonical = Vec::new();
        match self.rtype {
            Rtype::NSEC => name.view().push_sort_key(&mut canonical),
            Rtype::NSEC3 => {
                name.view().push_canonical(&mut canonical);
                return nsec3_hash(&canonical, &self.nsec3.salt, self.nsec3.iterations).to_vec();
            }
            _ => return self.vrf_output(name).1,
        }
        canonical
    }

    fn vrf_output(&self, name: &Name) -> VrfOutput {
        if let Some(known) = self.vrf_outputs.borrow().get(name) {
            return known.clone();
        }
        let (mut canonical, mut proof) = (Vec::new(), Vec::new());
        name.view().push_canonical(&mut canonical);
        let hash = self.vrf.as_ref().map(|key| key.prove(&canonical, &mut proof));
        let hash = hash.and_then(Result::ok).map_or_else(Vec::new, |hash| hash.to_vec());
        self.vrf_outputs.borrow_mut().insert(name.clone(), (proof.clone(), hash.clone()));
        (proof, hash)
    }

    /// Returns RDATA of the NSEC5PROOF record of a name.
    pub(super) fn nsec5_proof(&self, name: &Name) -> Option<Vec<u8>> {
        let tag = Nsec5Key::of(self.vrf.as_ref()?).tag();
        Some([&tag.to_be_bytes()[..], &self.vrf_output(name).0].concat())
    }

    /// Returns the index of the record that matches a name.
    pub(super) fn matching(&self, name: &Name) -> Option<usize> {
        let key = self.key(name);
        self.records.binary_search_by(|record| record.key.cmp(&key)).ok()
    }

    /// Returns the index of the record that covers a name which no record matches.
    fn covering(&self, name: &Name) -> Option<usize> {
        let key = self.key(name);
        let after = self.records.binary_search_by(|record| record.key.cmp(&key)).err()?;
        Some(if after == 0 { self.records.len().checked_sub(1)? } else { after - 1 })
    }

    /// Returns the records that prove a denial.
    pub(super) fn prove(&self, denied: Denied<'_>) -> Proof {
        let mut proof = Proof::default();
        if self.rtype == Rtype::NSEC {
            self.prove_nsec(denied, &mut proof);
        } else {
            self.prove_hashed(denied, &mut proof);
        }
        proof.records.sort_unstable();
        proof.records.dedup();
        proof.names.sort();
        proof.names.dedup();
        proof
    }

    fn prove_nsec(&self, denied: Denied<'_>, proof: &mut Proof) {
        match denied {
            Denied::Type(name) => {
                // An empty non-terminal has no record.
                if !self.add(self.matching(name), name, proof) {
                    self.add(self.covering(name), name, proof);
                }
            }
            Denied::Name(name, encloser) => {
                self.add(self.covering(name), name, proof);
                let wildcard = wildcard(encloser);
                self.add(self.covering(&wildcard), &wildcard, proof);
            }
            Denied::CloserMatch(name, _) => {
                self.add(self.covering(name), name, proof);
            }
            Denied::WildcardType(name, encloser) => {
                self.add(self.covering(name), name, proof);
                let wildcard = wildcard(encloser);
                self.add(self.matching(&wildcard), &wildcard, proof);
            }
        }
    }

    fn prove_hashed(&self, denied: Denied<'_>, proof: &mut Proof) {
        match denied {
            Denied::Type(name) => {
                // Opt-out omits unsigned delegations.
                if !self.add(self.matching(name), name, proof) {
                    let parent = name.view().parent().unwrap_or(NameRef::ROOT).to_name();
                    self.prove_encloser(name, &parent, proof);
                }
            }
            Denied::Name(name, encloser) => {
                let encloser = self.prove_encloser(name, encloser, proof);
                let wildcard = wildcard(&encloser);
                // With NSEC5, the record of the encloser proves that there is no wildcard.
                if self.rtype == Rtype::NSEC3 {
                    self.add(self.covering(&wildcard), &wildcard, proof);
                }
            }
            Denied::CloserMatch(name, encloser) => {
                self.add_closer(name, encloser, proof);
            }
            Denied::WildcardType(name, encloser) => {
                if self.rtype == Rtype::NSEC3 {
                    self.add(self.matching(encloser), encloser, proof);
                }
                self.add_closer(name, encloser, proof);
                let wildcard = wildcard(encloser);
                self.add(self.matching(&wildcard), &wildcard, proof);
            }
        }
    }

    /// Adds the records of the closest provable encloser, which it returns.
    fn prove_encloser(&self, name: &Name, encloser: &Name, proof: &mut Proof) -> Name {
        let mut encloser = encloser.clone();
        while !self.add(self.matching(&encloser), &encloser, proof) {
            match encloser.view().parent() {
                Some(parent) => encloser = parent.to_name(),
                None => return encloser,
            }
        }
        self.add_closer(name, &encloser, proof);
        encloser
    }

    /// Adds the record that covers the next closer name.
    fn add_closer(&self, name: &Name, encloser: &Name, proof: &mut Proof) {
        let closer = name.view().suffix(encloser.view().label_count() + 1).to_name();
        let index = self.covering(&closer);
        self.add(index, &closer, proof);
        proof.is_opt_out |= index.is_some_and(|index| self.records[index].is_opt_out(self.rtype));
    }

    /// Adds a record with the proof of a name. Returns whether there is one.
    fn add(&self, index: Option<usize>, name: &Name, proof: &mut Proof) -> bool {
        let Some(index) = index else { return false };
        proof.records.push(index);
        if self.rtype == Rtype::NSEC5 {
            proof.names.push(name.clone());
        }
        true
    }
}

/// Returns the wildcard below a name.
pub(super) fn wildcard(encloser: &Name) -> Name {
    Name::wildcard_below(encloser.view()).unwrap_or_else(|_| encloser.clone())
}
