//! Determines what the NSEC3 records of a response deny (RFC 5155 §8, RFC 9276 §3.2, RFC 6840 §4),
//! including opt-out and records generated online (RFC 7129, appendix B).

use super::{Hash, Nsec3, Nsec3Params, OPT_OUT_FLAG, SHA1, chain};
use crate::denial::names::{covers_hash, next_closer, wildcard_below};
use crate::validate::claim::{
    Claim, DenialKind, ProvedClaim, check_can_be_encloser, check_type_is_absent, check_unsigned_delegation,
};
use crate::validate::{BogusReason, Budget, InsecureReason, ValidationError};
use nonesuch_proto::{NameRef, Rtype, bitmap};
use std::collections::HashMap;

/// Octets of a SHA-1 block.
const SHA1_BLOCK_OCTETS: usize = 64;
/// Minimum octets that SHA-1 appends to a message: 0x80 and the length in 8 octets (FIPS 180-4
/// §5.1.1).
const SHA1_MIN_PADDING_OCTETS: usize = 9;

/// An NSEC3 record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nsec3Record<'m> {
    hash: Hash,
    next: Hash,
    fields: Nsec3<'m>,
}

impl<'m> Nsec3Record<'m> {
    /// Reads a record of the zone at `apex`.
    ///
    /// # Errors
    /// The record is malformed, or has an unknown hash algorithm or flag; the caller then ignores
    /// the record (RFC 5155 §8.1, §8.2).
    pub(crate) fn read(owner: NameRef<'m>, rdata: &'m [u8], apex: NameRef<'_>) -> Result<Self, BogusReason> {
        let rtype = Rtype::NSEC3;
        let fields = Nsec3::parse(rdata).filter(|fields| bitmap::is_valid(fields.bitmap));
        let fields = fields.ok_or(BogusReason::MalformedDenial(rtype))?;
        if fields.algorithm != SHA1 {
            return Err(BogusReason::UnknownHash(fields.algorithm));
        }
        if fields.flags & !OPT_OUT_FLAG != 0 {
            return Err(BogusReason::UnknownFlags { rtype, flags: fields.flags });
        }
        let octets = fields.next.len();
        let next = Hash::try_from(fields.next).map_err(|_| BogusReason::NextHashLength { rtype, octets })?;
        let hash = chain::decode_owner(owner, apex).ok_or(BogusReason::OwnerNotAHash(rtype))?;
        Ok(Self { hash, next, fields })
    }

    /// The hash in the owner name and the next hash.
    pub(crate) const fn span(&self) -> (Hash, Hash) {
        (self.hash, self.next)
    }

    pub(crate) const fn fields(&self) -> Nsec3<'m> {
        self.fields
    }

    fn covers(&self, hash: &Hash) -> bool {
        covers_hash(&self.hash, &self.next, hash)
    }

    pub(crate) const fn is_opt_out(&self) -> bool {
        self.fields.flags & OPT_OUT_FLAG != 0
    }
}

/// The usable NSEC3 records of a response, all with the same parameters.
#[derive(Debug)]
pub(crate) struct Nsec3Records<'m> {
    apex: NameRef<'m>,
    params: Nsec3Params,
    list: Vec<Nsec3Record<'m>>,
    /// The hashes computed so far; the key is a name in canonical form.
    hashes: HashMap<Vec<u8>, Hash>,
}

/// The proved closest encloser or, in an opt-out chain, closest provable encloser; and whether the
/// record that covers the next closer name is opt-out (RFC 5155 §7.2.1).
struct ProvedEncloser<'q> {
    name: NameRef<'q>,
    is_opt_out: bool,
}

impl<'m> Nsec3Records<'m> {
    /// Takes at least one record.
    ///
    /// # Errors
    /// `list` is empty, or its records have different parameters (RFC 5155 §8.2).
    pub(crate) fn new(apex: NameRef<'m>, list: Vec<Nsec3Record<'m>>) -> Result<Self, BogusReason> {
        let first = list.first().ok_or(BogusReason::NoDenial)?.fields;
        let params = Nsec3Params { salt: first.salt.to_vec(), iterations: first.iterations };
        if list.iter().any(|record| !record.fields.has_params(&params)) {
            return Err(BogusReason::MixedParameters);
        }
        Ok(Self { apex, params, list, hashes: HashMap::new() })
    }

    /// Adds the hash of a name, which is then not computed.
    pub(crate) fn add_hash(&mut self, name: NameRef<'_>, hash: Hash) {
        let mut canonical = Vec::with_capacity(name.len());
        name.push_canonical(&mut canonical);
        self.hashes.insert(canonical, hash);
    }

    /// Verifies that the records prove the claim. Deducts the hashes from `budget`.
    pub(crate) fn check_claim(
        &mut self,
        claim: Claim<'_>,
        budget: &mut Budget,
    ) -> Result<ProvedClaim, ValidationError> {
        let (iterations, limits) = (self.params.iterations, budget.limits());
        if iterations > limits.max_iterations_insecure {
            return Err(BogusReason::TooManyIterations(iterations).into());
        }
        if iterations > limits.max_iterations_secure {
            // RFC 9276 §3.2: the validator computes no hashes. The signatures over the records are
            // already verified, as the RFC requires, so the result is Insecure and not Bogus.
            return Ok(ProvedClaim {
                kind: claim.kind(),
                insecure_reason: Some(InsecureReason::TooManyIterations(iterations)),
            });
        }
        match claim {
            Claim::NxDomain(name) => self.check_name_denial(name, budget),
            Claim::NoData(name, rtype) => self.check_type_denial(name, rtype, budget),
            Claim::WildcardExpansion(name, labels) => {
                let opt_out = self.is_covered_by_opt_out(next_closer(name, name.suffix(labels)), budget)?;
                Ok(ProvedClaim::with_opt_out(DenialKind::WildcardExpansion, opt_out))
            }
            Claim::NoDs(cut) => self.check_ds_denial(cut, budget),
        }
    }

    /// RFC 5155 §8.4.
    fn check_name_denial(
        &mut self,
        name: NameRef<'_>,
        budget: &mut Budget,
    ) -> Result<ProvedClaim, ValidationError> {
        let encloser = self.check_encloser_proof(name, budget)?;
        let proved = ProvedClaim::with_opt_out(DenialKind::NxDomain, encloser.is_opt_out);
        let Some(wildcard) = wildcard_below(encloser.name) else { return Ok(proved) };
        if self.find_matching(wildcard.view(), budget)?.is_some() {
            return Err(BogusReason::WildcardExists(wildcard).into());
        }
        match self.is_covered_by_opt_out(wildcard.view(), budget) {
            Ok(_) => Ok(proved),
            Err(ValidationError::Bogus(BogusReason::NotCovered(_))) => {
                Err(BogusReason::WildcardNotDenied(wildcard).into())
            }
            Err(error) => Err(error),
        }
    }

    /// RFC 5155 §8.5 to §8.7.
    fn check_type_denial(
        &mut self,
        name: NameRef<'_>,
        rtype: Rtype,
        budget: &mut Budget,
    ) -> Result<ProvedClaim, ValidationError> {
        if let Some(record) = self.find_matching(name, budget)? {
            check_type_is_absent(name, rtype, record.fields.bitmap)?;
            return Ok(ProvedClaim::secure(DenialKind::NoData));
        }
        let encloser = self.check_encloser_proof(name, budget)?;
        match self.check_wildcard_type(encloser.name, rtype, budget) {
            Ok(true) => Ok(ProvedClaim::with_opt_out(DenialKind::WildcardNoData, encloser.is_opt_out)),
            // RFC 5155 §8.6 for DS. Errata 3441 of RFC 5155: an opt-out chain may also omit empty
            // non-terminals above unsigned delegations. The name may be one of them, and then no
            // wildcard applies to it. So an opt-out record over the next closer name is sufficient
            // for every type, even if the wildcard has the type or its record is unusable; the
            // result is Insecure.
            Ok(false) | Err(ValidationError::Bogus(_)) if encloser.is_opt_out => {
                Ok(ProvedClaim::with_opt_out(DenialKind::NoData, true))
            }
            Ok(false) => Err(BogusReason::NotMatched(name.to_name()).into()),
            Err(error) => Err(error),
        }
    }

    /// Whether a record matches the wildcard below `encloser`.
    ///
    /// # Errors
    /// A record matches the wildcard and does not deny the type.
    fn check_wildcard_type(
        &mut self,
        encloser: NameRef<'_>,
        rtype: Rtype,
        budget: &mut Budget,
    ) -> Result<bool, ValidationError> {
        let Some(wildcard) = wildcard_below(encloser) else { return Ok(false) };
        let Some(record) = self.find_matching(wildcard.view(), budget)? else { return Ok(false) };
        check_type_is_absent(wildcard.view(), rtype, record.fields.bitmap)?;
        Ok(true)
    }

    /// RFC 5155 §8.9.
    fn check_ds_denial(
        &mut self,
        cut: NameRef<'_>,
        budget: &mut Budget,
    ) -> Result<ProvedClaim, ValidationError> {
        if let Some(record) = self.find_matching(cut, budget)? {
            check_unsigned_delegation(cut, record.fields.bitmap)?;
            return Ok(ProvedClaim::secure(DenialKind::NoDs));
        }
        let encloser = self.check_encloser_proof(cut, budget)?;
        if encloser.is_opt_out {
            return Ok(ProvedClaim::with_opt_out(DenialKind::NoDs, true));
        }
        Err(BogusReason::NotOptOut(next_closer(cut, encloser.name).to_name()).into())
    }

    /// Verifies the closest encloser proof (RFC 5155 §8.3): the closest encloser is the longest
    /// proper ancestor that a record matches; a record must cover the next closer name.
    ///
    /// # Errors
    /// The proof is invalid, or a record matches `name` itself.
    fn check_encloser_proof<'q>(
        &mut self,
        name: NameRef<'q>,
        budget: &mut Budget,
    ) -> Result<ProvedEncloser<'q>, ValidationError> {
        if self.find_matching(name, budget)?.is_some() {
            return Err(BogusReason::NameExists(name.to_name()).into());
        }
        let mut ancestor = name.parent();
        while let Some(encloser) = ancestor.filter(|ancestor| ancestor.len() >= self.apex.len()) {
            if let Some(record) = self.find_matching(encloser, budget)? {
                check_can_be_encloser(encloser, record.fields.bitmap)?;
                let is_opt_out = self.is_covered_by_opt_out(next_closer(name, encloser), budget)?;
                return Ok(ProvedEncloser { name: encloser, is_opt_out });
            }
            ancestor = encloser.parent();
        }
        Err(BogusReason::NoEncloser(name.to_name()).into())
    }

    fn find_matching(
        &mut self,
        name: NameRef<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Nsec3Record<'m>>, ValidationError> {
        let hash = self.hash(name, budget)?;
        Ok(self.list.iter().find(|record| record.hash == hash).copied())
    }

    /// Returns true if at least one record that covers `name` has opt-out. The result is then
    /// Insecure, which is the cautious choice if another record has no opt-out.
    ///
    /// # Errors
    /// No record covers `name`.
    fn is_covered_by_opt_out(
        &mut self,
        name: NameRef<'_>,
        budget: &mut Budget,
    ) -> Result<bool, ValidationError> {
        let hash = self.hash(name, budget)?;
        let mut covering = self.list.iter().filter(|record| record.covers(&hash)).peekable();
        if covering.peek().is_none() {
            return Err(BogusReason::NotCovered(name.to_name()).into());
        }
        Ok(covering.any(Nsec3Record::is_opt_out))
    }

    /// The hash of `name`. Deducts the work from the budget once for each name.
    fn hash(&mut self, name: NameRef<'_>, budget: &mut Budget) -> Result<Hash, ValidationError> {
        let mut canonical = Vec::with_capacity(name.len());
        name.push_canonical(&mut canonical);
        if let Some(hash) = self.hashes.get(&canonical) {
            return Ok(*hash);
        }
        budget.take_hash(hash_block_count(
            canonical.len(),
            self.params.salt.len(),
            self.params.iterations,
        ))?;
        let hash = nonesuch_crypto::nsec3_hash(&canonical, &self.params.salt, self.params.iterations);
        self.hashes.insert(canonical, hash);
        Ok(hash)
    }
}

/// Returns the number of SHA-1 blocks for the NSEC3 hash of a name, including all iterations. The
/// name and the salt have these numbers of octets.
#[must_use]
pub fn hash_block_count(name: usize, salt: usize, iterations: u16) -> u32 {
    let blocks_of =
        |octets: usize| (octets + salt + SHA1_MIN_PADDING_OCTETS).div_ceil(SHA1_BLOCK_OCTETS) as u32;
    blocks_of(name) + u32::from(iterations) * blocks_of(size_of::<Hash>())
}
