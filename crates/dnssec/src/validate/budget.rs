//! Limits the work for one client query. One budget covers all responses that a resolver validates
//! for the query, and all signatures, hashes, proofs and aliases in them. It protects against
//! KeyTrap (CVE-2023-50387) and expensive closest encloser proofs (CVE-2023-50868).

/// A shared fetch gets at most this part of each limit.
const PART: u32 = 4;

/// Limits of the work. The defaults are in the range of those of common resolvers.
///
/// Work beyond a limit that [`Limit`] names makes the answer Indeterminate. The effect of every
/// other limit is stated at its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationLimits {
    /// Maximum number of signature verifications for each client query. Default 64.
    pub signatures: u32,
    /// Number of failed signature verifications for each client query after which the validator
    /// verifies no further signature. Default 16.
    pub signature_failures: u32,
    /// Maximum number of keys to try for one RRSIG record if keys have the same tag and algorithm.
    /// The validator ignores further keys; if none of the tried keys verifies the signature, the
    /// signature is not valid. Default 2.
    pub keys_per_signature: usize,
    /// Maximum number of RRSIG records to check for one RRset, in the order of the message. The
    /// validator ignores further ones; if none of the checked records is valid, the RRset is Bogus.
    /// Default 8.
    pub signatures_per_rrset: usize,
    /// Maximum number of DS records of a zone to look at, in the order of the RRset. The validator
    /// ignores further ones. Default 8.
    pub ds_records: usize,
    /// Maximum number of DNSKEY records of a zone; with more, the zone is Bogus. Default 32.
    pub dnskeys: usize,
    /// Maximum number of NSEC5KEY records of a zone; with more, its denials by NSEC5 are Bogus.
    /// Default 4.
    pub nsec5_keys: usize,
    /// Maximum number of NSEC3 iterations to compute; with more, the answer is Insecure (RFC 9276
    /// §3.2). Default 50.
    pub max_iterations_secure: u16,
    /// Maximum number of NSEC3 iterations with which the answer is Insecure; with more, it is Bogus
    /// (RFC 9276 §3.2). Default 500.
    pub max_iterations_insecure: u16,
    /// Maximum number of SHA-1 blocks for NSEC3 hashes, for each client query. Default 600.
    pub hash_blocks: u32,
    /// Maximum number of NSEC3 records in the authority section of one response; with more, a
    /// denial in this response is Bogus. Default 8.
    pub nsec3_records: usize,
    /// Maximum number of NSEC5 proofs to verify for each response. Default 4.
    pub proofs_per_response: u32,
    /// Maximum number of NSEC5 proofs to verify for each client query. Default 12.
    pub proofs: u32,
    /// Maximum number of unusable NSEC5 proofs in one response: they are malformed, do not verify,
    /// or have a hash that no NSEC5 record of the response matches or covers. If their number
    /// exceeds the limit, the validator ignores further proofs. Default 2.
    pub unusable_proofs: u32,
    /// Maximum number of CNAME and DNAME steps for each client query. Default 16.
    pub aliases: u32,
}

impl Default for ValidationLimits {
    fn default() -> Self {
        Self {
            signatures: 64,
            signature_failures: 16,
            keys_per_signature: 2,
            signatures_per_rrset: 8,
            ds_records: 8,
            dnskeys: 32,
            nsec5_keys: 4,
            max_iterations_secure: 50,
            max_iterations_insecure: 500,
            hash_blocks: 600,
            nsec3_records: 8,
            proofs_per_response: 4,
            proofs: 12,
            unusable_proofs: 2,
            aliases: 16,
        }
    }
}

/// A limit that a validation would exceed. The answer is then Indeterminate. The limits of
/// [`ValidationLimits`] that are missing here have another effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// [`ValidationLimits::signatures`].
    #[error("signature verifications")]
    Signatures,
    /// [`ValidationLimits::signature_failures`].
    #[error("signatures that do not verify")]
    SignatureFailures,
    /// [`ValidationLimits::hash_blocks`].
    #[error("NSEC3 hashes")]
    HashBlocks,
    /// [`ValidationLimits::proofs_per_response`] or [`ValidationLimits::proofs`].
    #[error("NSEC5 proofs")]
    Proofs,
    /// [`ValidationLimits::aliases`].
    #[error("aliases")]
    Aliases,
}

/// Counts of the work done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Signature verifications, including failed ones.
    pub signatures: u32,
    /// Signature verifications that failed.
    pub signature_failures: u32,
    /// NSEC3 hashes computed.
    pub hashes: u32,
    /// SHA-1 blocks for these hashes.
    pub hash_blocks: u32,
    /// NSEC5 proofs verified.
    pub proofs: u32,
    /// Aliases followed.
    pub aliases: u32,
}

impl Work {
    /// Returns the sum of both.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            signatures: self.signatures + other.signatures,
            signature_failures: self.signature_failures + other.signature_failures,
            hashes: self.hashes + other.hashes,
            hash_blocks: self.hash_blocks + other.hash_blocks,
            proofs: self.proofs + other.proofs,
            aliases: self.aliases + other.aliases,
        }
    }

    /// Returns the work done since `before`, an earlier value of the same counts.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            signatures: self.signatures - before.signatures,
            signature_failures: self.signature_failures - before.signature_failures,
            hashes: self.hashes - before.hashes,
            hash_blocks: self.hash_blocks - before.hash_blocks,
            proofs: self.proofs - before.proofs,
            aliases: self.aliases - before.aliases,
        }
    }
}

/// The budget of one client query. The caller creates it once for the query and passes it to the
/// validation of each response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    limits: ValidationLimits,
    spent: Work,
    /// Value of `spent.proofs` at the start of the current response.
    proofs_before: u32,
}

impl Budget {
    /// Creates a budget without any work done.
    #[must_use]
    pub fn new(limits: ValidationLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Returns the limits.
    #[must_use]
    pub const fn limits(&self) -> &ValidationLimits {
        &self.limits
    }

    /// Returns the work done so far.
    #[must_use]
    pub const fn spent(&self) -> Work {
        self.spent
    }

    /// Pays for a shared fetch and returns its budget: a quarter of each limit, with half of
    /// the remaining work as its maximum.
    #[must_use]
    pub fn start_part(&mut self) -> Self {
        let part = |limit: u32, spent: u32| (limit / PART).min(limit.saturating_sub(spent) / 2);
        let (all, spent) = (self.limits, &mut self.spent);
        let mut limits = ValidationLimits {
            signatures: part(all.signatures, spent.signatures),
            signature_failures: part(all.signature_failures, spent.signature_failures),
            hash_blocks: part(all.hash_blocks, spent.hash_blocks),
            proofs: part(all.proofs, spent.proofs),
            ..all
        };
        limits.aliases = all.aliases.saturating_sub(spent.aliases);
        spent.signatures += limits.signatures;
        spent.signature_failures += limits.signature_failures;
        spent.hash_blocks += limits.hash_blocks;
        spent.proofs += limits.proofs;
        Self::new(limits)
    }

    /// Takes back what a budget of [`start_part`](Self::start_part) has not spent.
    // By value: a budget is refunded once.
    pub fn refund(&mut self, part: Self) {
        let (limits, used, spent) = (part.limits, part.spent, &mut self.spent);
        let refund = |all: &mut u32, limit: u32, used: u32| *all -= limit.saturating_sub(used).min(*all);
        refund(&mut spent.signatures, limits.signatures, used.signatures);
        refund(&mut spent.signature_failures, limits.signature_failures, used.signature_failures);
        refund(&mut spent.hash_blocks, limits.hash_blocks, used.hash_blocks);
        refund(&mut spent.proofs, limits.proofs, used.proofs);
    }

    /// Begins or continues a response, for the limit of proofs in one response. `proofs` is the number
    /// that it has taken so far.
    pub(super) const fn continue_response(&mut self, proofs: u32) {
        self.proofs_before = self.spent.proofs.saturating_sub(proofs);
    }

    /// Whether `further` failures would reach the limit of failures.
    pub(super) const fn is_near_failure_limit(&self, further: usize) -> bool {
        self.spent.signature_failures as usize + further >= self.limits.signature_failures as usize
    }

    /// Deducts one signature verification. The caller calls it before the verification.
    pub(super) const fn take_signature(&mut self) -> Result<(), Limit> {
        if self.spent.signature_failures >= self.limits.signature_failures {
            return Err(Limit::SignatureFailures);
        }
        if self.spent.signatures >= self.limits.signatures {
            return Err(Limit::Signatures);
        }
        self.spent.signatures += 1;
        Ok(())
    }

    /// Counts a signature that does not verify, after [`Budget::take_signature`].
    pub(super) const fn count_failure(&mut self) {
        self.spent.signature_failures += 1;
    }

    /// Number of SHA-1 blocks that are left for NSEC3 hashes.
    #[must_use]
    pub const fn hash_blocks_left(&self) -> u32 {
        self.limits.hash_blocks.saturating_sub(self.spent.hash_blocks)
    }

    /// Deducts SHA-1 blocks that were computed outside of a validation, at most
    /// [`hash_blocks_left`](Self::hash_blocks_left).
    pub const fn charge_hash_blocks(&mut self, blocks: u32) {
        self.spent.hash_blocks += blocks;
    }

    /// Deducts one hash of `blocks` SHA-1 blocks. The caller calls it before it hashes a name.
    pub(crate) const fn take_hash(&mut self, blocks: u32) -> Result<(), Limit> {
        let after = self.spent.hash_blocks.saturating_add(blocks);
        if after > self.limits.hash_blocks {
            return Err(Limit::HashBlocks);
        }
        self.spent.hash_blocks = after;
        self.spent.hashes += 1;
        Ok(())
    }

    /// Deducts one NSEC5 proof. The caller calls it before it verifies the proof.
    pub(crate) const fn take_proof(&mut self) -> Result<(), Limit> {
        let in_response = self.spent.proofs - self.proofs_before;
        if in_response >= self.limits.proofs_per_response || self.spent.proofs >= self.limits.proofs {
            return Err(Limit::Proofs);
        }
        self.spent.proofs += 1;
        Ok(())
    }

    /// Deducts one CNAME or DNAME step. The caller calls it before it follows the alias.
    pub(super) const fn take_alias(&mut self) -> Result<(), Limit> {
        if self.spent.aliases >= self.limits.aliases {
            return Err(Limit::Aliases);
        }
        self.spent.aliases += 1;
        Ok(())
    }
}
