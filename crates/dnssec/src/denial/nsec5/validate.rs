//! Determines what the NSEC5 records and proofs of a response deny (draft-vcelak-nsec5, section 8;
//! docs/nsec5.md). Each name has one proof; a record matches or covers the hash in it.

mod needed;

use super::{Hash, Nsec5, OPT_OUT_FLAG, WILDCARD_FLAG, decode_owner};
use crate::denial::names::{covers_hash, next_closer, wildcard_below};
use crate::validate::claim::{
    Claim, DenialKind, ProvedClaim, check_can_be_encloser, check_type_is_absent, check_unsigned_delegation,
};
use crate::validate::proofs::ProofVerifier;
use crate::validate::{BogusReason, ValidationError};
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};
use std::collections::HashMap;

/// An NSEC5 record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nsec5Record<'m> {
    hash: Hash,
    next: Hash,
    fields: Nsec5<'m>,
}

impl<'m> Nsec5Record<'m> {
    /// Reads a record of the zone at `apex`.
    ///
    /// # Errors
    /// The record is malformed, has unknown flags or a next hash that does not have 32 octets, or
    /// its owner is not a hash directly below the apex.
    pub(crate) fn read(owner: NameRef<'m>, rdata: &'m [u8], apex: NameRef<'_>) -> Result<Self, BogusReason> {
        let rtype = Rtype::NSEC5;
        let fields = Nsec5::parse(rdata).filter(|fields| bitmap::is_valid(fields.bitmap));
        let fields = fields.ok_or(BogusReason::MalformedDenial(rtype))?;
        if fields.flags & !(OPT_OUT_FLAG | WILDCARD_FLAG) != 0 {
            return Err(BogusReason::UnknownFlags { rtype, flags: fields.flags });
        }
        let octets = fields.next.len();
        let next = Hash::try_from(fields.next).map_err(|_| BogusReason::NextHashLength { rtype, octets })?;
        let hash = decode_owner(owner, apex).ok_or(BogusReason::OwnerNotAHash(rtype))?;
        Ok(Self { hash, next, fields })
    }

    /// The hash in the owner name and the next hash.
    pub(crate) const fn span(&self) -> (Hash, Hash) {
        (self.hash, self.next)
    }

    pub(crate) const fn fields(&self) -> Nsec5<'m> {
        self.fields
    }

    fn covers(&self, hash: &Hash) -> bool {
        covers_hash(&self.hash, &self.next, hash)
    }

    const fn has_flag(&self, flag: u8) -> bool {
        self.fields.flags & flag != 0
    }
}

/// The position of a proved name in the chain: the record that matches or covers it.
#[derive(Clone, Copy, Debug)]
enum ChainPosition<'m> {
    Matched(Nsec5Record<'m>),
    Covered(Nsec5Record<'m>),
}

/// The usable NSEC5 records of a response, and its proofs.
#[derive(Debug)]
pub(crate) struct Nsec5Records<'m> {
    apex: NameRef<'m>,
    list: Vec<Nsec5Record<'m>>,
    proofs: HashMap<NameRef<'m>, Vec<&'m [u8]>>,
    /// The positions of the names whose proofs were verified; an error if none of the proofs of the
    /// name is usable.
    positions: Vec<(Name, Result<ChainPosition<'m>, BogusReason>)>,
    /// Number of unusable proofs so far.
    unusable_proofs: u32,
}

impl<'m> Nsec5Records<'m> {
    /// Takes at least one record, the RDATA of NSEC5PROOF records with their owners, and the number of
    /// unusable proofs that earlier steps of the validation found.
    pub(crate) fn new(
        apex: NameRef<'m>,
        list: Vec<Nsec5Record<'m>>,
        proofs: Vec<(NameRef<'m>, &'m [u8])>,
        unusable_proofs: u32,
    ) -> Self {
        let mut by_owner: HashMap<NameRef<'m>, Vec<&'m [u8]>> = HashMap::new();
        for (owner, rdata) in proofs {
            by_owner.entry(owner).or_default().push(rdata);
        }
        Self { apex, list, proofs: by_owner, positions: Vec::new(), unusable_proofs }
    }

    /// Adds a name whose proof an earlier validation verified: the key tag, and the hash in the
    /// proof.
    pub(crate) fn add_proved(&mut self, name: NameRef<'m>, tag: u16, hash: &Hash) {
        self.proofs.entry(name).or_default();
        let position = self.find_record(name, tag, hash);
        self.positions.push((name.to_name(), position));
    }

    /// Number of unusable proofs so far.
    pub(crate) const fn unusable_proofs(&self) -> u32 {
        self.unusable_proofs
    }

    /// The names with a verified proof that leads to a record.
    pub(crate) fn proved_names(&self) -> impl Iterator<Item = NameRef<'_>> {
        self.positions.iter().filter(|(_, position)| position.is_ok()).map(|(name, _)| name.view())
    }

    /// Verifies that records and proofs prove the claim. Deducts the verified proofs from the budget.
    pub(crate) fn check_claim(
        &mut self,
        claim: Claim<'_>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<ProvedClaim, ValidationError> {
        let proved = self.check(claim, verifier);
        if matches!(proved, Err(ValidationError::Pending)) {
            self.record_proofs(claim, verifier);
        }
        proved
    }

    fn check(
        &mut self,
        claim: Claim<'_>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<ProvedClaim, ValidationError> {
        match claim {
            Claim::NxDomain(name) => self.check_name_denial(name, verifier),
            Claim::NoData(name, rtype) => self.check_type_denial(name, rtype, verifier),
            Claim::WildcardExpansion(name, labels) => {
                let covering = self.find_covering(next_closer(name, name.suffix(labels)), verifier)?;
                Ok(ProvedClaim::with_opt_out(DenialKind::WildcardExpansion, covering.has_flag(OPT_OUT_FLAG)))
            }
            Claim::NoDs(cut) => self.check_ds_denial(cut, verifier),
        }
    }

    /// A record matches the closest encloser and has no Wildcard flag; a record covers the next
    /// closer name.
    fn check_name_denial(
        &mut self,
        name: NameRef<'_>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<ProvedClaim, ValidationError> {
        self.check_not_matched(name, verifier)?;
        let (encloser, record, opt_out) = self.check_encloser_proof(name, verifier)?;
        if record.has_flag(WILDCARD_FLAG) {
            return Err(BogusReason::WildcardFlag(encloser.to_name()).into());
        }
        Ok(ProvedClaim::with_opt_out(DenialKind::NxDomain, opt_out))
    }

    /// A record matches the name; or the records prove the denial of a type at a wildcard, or an
    /// opt-out span for DS.
    fn check_type_denial(
        &mut self,
        name: NameRef<'_>,
        rtype: Rtype,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<ProvedClaim, ValidationError> {
        if self.proofs.contains_key(&name)
            && let ChainPosition::Matched(record) = self.find_position(name, verifier)?
        {
            check_type_is_absent(name, rtype, record.fields.bitmap)?;
            return Ok(ProvedClaim::secure(DenialKind::NoData));
        }
        if let Some(next) = self.next_closer_of_wildcard(name) {
            return self.check_wildcard_type_denial(next, rtype, verifier);
        }
        if self.next_closer_of_encloser(name).is_none() {
            return Err(BogusReason::NoProof(name.to_name()).into());
        }
        let (encloser, _, opt_out) = self.check_encloser_proof(name, verifier)?;
        // An opt-out chain contains all empty non-terminals and omits only delegations. DS is the
        // only type of a delegation that the zone can deny.
        if rtype != Rtype::DS {
            return Err(BogusReason::NotMatched(name.to_name()).into());
        }
        if !opt_out {
            return Err(BogusReason::NotOptOut(next_closer(name, encloser).to_name()).into());
        }
        Ok(ProvedClaim::with_opt_out(DenialKind::NoData, true))
    }

    /// A record matches the wildcard below the parent of the next closer name; a record covers the
    /// next closer name.
    fn check_wildcard_type_denial(
        &mut self,
        next: NameRef<'_>,
        rtype: Rtype,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<ProvedClaim, ValidationError> {
        let opt_out = self.find_covering(next, verifier)?.has_flag(OPT_OUT_FLAG);
        let wildcard = next.parent().and_then(wildcard_below);
        let wildcard = wildcard.ok_or_else(|| BogusReason::NoProof(next.to_name()))?;
        let record = self.find_matching(wildcard.view(), verifier)?;
        check_type_is_absent(wildcard.view(), rtype, record.fields.bitmap)?;
        Ok(ProvedClaim::with_opt_out(DenialKind::WildcardNoData, opt_out))
    }

    /// A record matches the zone cut, or an opt-out record covers the next closer name.
    fn check_ds_denial(
        &mut self,
        cut: NameRef<'_>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<ProvedClaim, ValidationError> {
        if self.proofs.contains_key(&cut)
            && let ChainPosition::Matched(record) = self.find_position(cut, verifier)?
        {
            check_unsigned_delegation(cut, record.fields.bitmap)?;
            return Ok(ProvedClaim::secure(DenialKind::NoDs));
        }
        let (encloser, _, opt_out) = self.check_encloser_proof(cut, verifier)?;
        if !opt_out {
            return Err(BogusReason::NotOptOut(next_closer(cut, encloser).to_name()).into());
        }
        Ok(ProvedClaim::with_opt_out(DenialKind::NoDs, true))
    }

    /// Fails if the proof of `name` leads to a matching record: the name exists.
    fn check_not_matched(
        &mut self,
        name: NameRef<'_>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<(), ValidationError> {
        if self.proofs.contains_key(&name)
            && let ChainPosition::Matched(_) = self.find_position(name, verifier)?
        {
            return Err(BogusReason::NameExists(name.to_name()).into());
        }
        Ok(())
    }

    /// Returns the closest encloser or, in an opt-out chain, the closest provable encloser; the
    /// record that matches it; and whether the record that covers the next closer name has the
    /// opt-out flag.
    fn check_encloser_proof<'q>(
        &mut self,
        name: NameRef<'q>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<(NameRef<'q>, Nsec5Record<'m>, bool), ValidationError> {
        let next = self.next_closer_of_encloser(name).ok_or_else(|| BogusReason::NoProof(name.to_name()))?;
        let encloser = next.parent().unwrap_or(next);
        let covering = self.find_covering(next, verifier)?;
        let record = self.find_matching(encloser, verifier)?;
        check_can_be_encloser(encloser, record.fields.bitmap)?;
        Ok((encloser, record, covering.has_flag(OPT_OUT_FLAG)))
    }

    /// Returns the longest name at or above `name` such that this name and its parent have proofs.
    /// In a valid proof of the closest encloser, this is the next closer name.
    fn next_closer_of_encloser<'q>(&self, name: NameRef<'q>) -> Option<NameRef<'q>> {
        self.longest_proved(name, |next| {
            next.parent().is_some_and(|parent| self.proofs.contains_key(&parent))
        })
    }

    /// Returns the longest name at or above `name` such that this name and the wildcard below its
    /// parent have proofs. In a valid denial of a type at a wildcard, this is the next closer name.
    fn next_closer_of_wildcard<'q>(&self, name: NameRef<'q>) -> Option<NameRef<'q>> {
        let has_proof = |wildcard: Name| self.proofs.contains_key(&wildcard.view());
        // A wildcard is not its own next closer name: for a query for the wildcard itself, a record
        // matches.
        self.longest_proved(name, |next| {
            !next.is_wildcard() && next.parent().and_then(wildcard_below).is_some_and(has_proof)
        })
    }

    /// Returns the longest name at or above `name`, and below the apex, that has a proof and for
    /// which `is_suitable` is true.
    fn longest_proved<'q>(
        &self,
        name: NameRef<'q>,
        is_suitable: impl Fn(NameRef<'q>) -> bool,
    ) -> Option<NameRef<'q>> {
        let mut candidate = Some(name);
        while let Some(next) = candidate.filter(|next| next.len() > self.apex.len()) {
            if self.proofs.contains_key(&next) && is_suitable(next) {
                return Some(next);
            }
            candidate = next.parent();
        }
        None
    }

    fn find_matching(
        &mut self,
        name: NameRef<'_>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<Nsec5Record<'m>, ValidationError> {
        match self.find_position(name, verifier)? {
            ChainPosition::Matched(record) => Ok(record),
            ChainPosition::Covered(_) => Err(BogusReason::NotMatched(name.to_name()).into()),
        }
    }

    fn find_covering(
        &mut self,
        name: NameRef<'_>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<Nsec5Record<'m>, ValidationError> {
        match self.find_position(name, verifier)? {
            ChainPosition::Covered(record) => Ok(record),
            ChainPosition::Matched(_) => Err(BogusReason::NameExists(name.to_name()).into()),
        }
    }

    /// Verifies the proof of `name` once, and finds its position in the chain.
    fn find_position(
        &mut self,
        name: NameRef<'_>,
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<ChainPosition<'m>, ValidationError> {
        if let Some((_, known)) = self.positions.iter().find(|(known, _)| known.view() == name) {
            return Ok(known.clone()?);
        }
        let Some(proofs) = self.proofs.get(&name).cloned() else {
            return Err(BogusReason::NoProof(name.to_name()).into());
        };
        let position = self.evaluate_proofs(name, &proofs, verifier)?;
        self.positions.push((name.to_name(), position.clone()));
        Ok(position?)
    }

    /// Returns the position according to the first valid proof whose hash a record of the same key
    /// matches or covers. The inner error is the reason for the first unusable proof; the outer
    /// error ends the validation.
    fn evaluate_proofs(
        &mut self,
        name: NameRef<'_>,
        proofs: &[&[u8]],
        verifier: &mut ProofVerifier<'_>,
    ) -> Result<Result<ChainPosition<'m>, BogusReason>, ValidationError> {
        let mut first_reason = None;
        for rdata in proofs {
            if self.unusable_proofs > verifier.budget.limits().unusable_proofs {
                break;
            }
            let reason = match verifier.verify(name, rdata)? {
                Ok((tag, hash)) => match self.find_record(name, tag, &hash) {
                    Ok(position) => return Ok(Ok(position)),
                    Err(reason) => reason,
                },
                Err(reason) => reason,
            };
            self.unusable_proofs += 1;
            first_reason = first_reason.or(Some(reason));
        }
        Ok(Err(first_reason.unwrap_or_else(|| BogusReason::NoProof(name.to_name()))))
    }

    /// Finds the record for a hash. A proof leads only to records of the same key: in the chain of
    /// another key, the hash is random and could deny existing names.
    fn find_record(
        &self,
        name: NameRef<'_>,
        tag: u16,
        hash: &Hash,
    ) -> Result<ChainPosition<'m>, BogusReason> {
        let same_key = || self.list.iter().filter(|record| record.fields.tag == tag);
        if let Some(record) = same_key().find(|record| record.hash == *hash) {
            return Ok(ChainPosition::Matched(*record));
        }
        // If several records cover the hash, prefer one with opt-out: the result is then Insecure,
        // which is the cautious choice.
        let covering = || same_key().filter(|record| record.covers(hash));
        if let Some(record) =
            covering().find(|record| record.has_flag(OPT_OUT_FLAG)).or_else(|| covering().next())
        {
            return Ok(ChainPosition::Covered(*record));
        }
        let is_other = |record: &Nsec5Record<'_>| record.hash == *hash || record.covers(hash);
        Err(if self.list.iter().any(is_other) {
            BogusReason::ProofKeyMismatch(name.to_name())
        } else {
            BogusReason::NotCovered(name.to_name())
        })
    }
}
