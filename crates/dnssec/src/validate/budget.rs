//! Limits the work for one client query. One budget covers all responses that a resolver validates
//! for the query, and all signatures, hashes, proofs and aliases in them. It protects against
//! KeyTrap (CVE-2023-50387) and expensive closest encloser proofs (CVE-2023-50868).

use nonesuch_crypto::PublicKey;
use nonesuch_crypto::vrf::VrfPublicKey;

/// A shared fetch gets at most this part of each limit.
const PART: u32 = 2;
/// The part of a limit that suffices for a usual response.
const DUE_PART: u32 = 4;
/// Time of verifications of invalid signatures that counts as one, in ns: about that of a signature of P-256
/// without vector instructions. So invalid signatures take about 1 ms, whatever their algorithms. Valid
/// signatures count once each: a correct chain of trust with an expensive algorithm must not reach a limit.
const UNIT_NANOSECONDS: u32 = 50_000;
/// Octets of signed data whose hash takes as long as a signature.
const UNIT_OCTETS: usize = 32 << 10;
/// Records of a response that take as long as a signature in each step of a validation.
const UNIT_RECORDS: usize = 256;

/// Limits of the work. The defaults are in the range of those of common resolvers.
///
/// Work beyond a limit that [`Limit`] names makes the answer Indeterminate. The effect of every
/// other limit is stated at its field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationLimits {
    /// Maximum number of signature verifications for each client query. Long signed data, NSEC5 proofs and
    /// responses with many records count too ([`Work::cost`]). Default 64.
    pub signatures: u32,
    /// Maximum work for signatures that do not verify, for each client query, as a number of signatures of
    /// P-256: expensive algorithms count as several signatures. The
    /// validator then verifies no further signature. A signature that verifies with the second key of
    /// its key tag is not one of them. Default 16.
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
    /// Signature verifications that failed, with each key of the key tag.
    pub signature_failures: u32,
    /// Signature verifications, and other work as a number of signatures: for long signed data, NSEC5 proofs
    /// and many records.
    pub cost: u32,
    /// The work for signatures that do not verify, as a number of signatures of P-256.
    pub failure_cost: u32,
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
            cost: self.cost + other.cost,
            failure_cost: self.failure_cost + other.failure_cost,
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
            cost: self.cost - before.cost,
            failure_cost: self.failure_cost - before.failure_cost,
            hashes: self.hashes - before.hashes,
            hash_blocks: self.hash_blocks - before.hash_blocks,
            proofs: self.proofs - before.proofs,
            aliases: self.aliases - before.aliases,
        }
    }
}

/// Work for signatures that verify with none of the keys of their key tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    /// Verifications, with each of these keys.
    pub(super) verifications: u32,
    /// Their cost.
    pub(super) cost: u32,
}

impl Failures {
    pub(super) const fn add(&mut self, other: Self) {
        self.verifications += other.verifications;
        self.cost += other.cost;
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

    /// Pays for a shared fetch and returns its budget: half of the remaining work is its maximum.
    #[must_use]
    pub fn start_part(&mut self) -> Self {
        let half = |limit: u32, spent: u32| limit.saturating_sub(spent) / PART;
        let (all, spent) = (self.limits, &mut self.spent);
        let limits = ValidationLimits {
            signatures: half(all.signatures, spent.cost),
            signature_failures: half(all.signature_failures, spent.failure_cost),
            hash_blocks: half(all.hash_blocks, spent.hash_blocks),
            proofs: half(all.proofs, spent.proofs),
            aliases: all.aliases.saturating_sub(spent.aliases),
            ..all
        };
        spent.cost += limits.signatures;
        spent.failure_cost += limits.signature_failures;
        spent.hash_blocks += limits.hash_blocks;
        spent.proofs += limits.proofs;
        Self::new(limits)
    }

    /// Takes back what a budget of [`start_part`](Self::start_part) has not spent.
    // By value: a budget is refunded once.
    pub fn refund(&mut self, part: Self) {
        let (limits, used, spent) = (part.limits, part.spent, &mut self.spent);
        let refund = |all: &mut u32, limit: u32, used: u32| *all -= limit.saturating_sub(used).min(*all);
        refund(&mut spent.cost, limits.signatures, used.cost);
        refund(&mut spent.failure_cost, limits.signature_failures, used.failure_cost);
        refund(&mut spent.hash_blocks, limits.hash_blocks, used.hash_blocks);
        refund(&mut spent.proofs, limits.proofs, used.proofs);
    }

    /// Whether the failures of one response are half of the limit of a client query or more.
    #[must_use]
    pub const fn has_many_failures(all: &ValidationLimits, work: Work) -> bool {
        work.failure_cost >= all.signature_failures / PART
    }

    /// Whether a response that exceeds `limit` is the reason, and not the work before it: it had at least a
    /// quarter of `all`, the limits of a client query. With aliases, it had all. `work`: that for the
    /// response.
    #[must_use]
    pub fn is_due_to_response(&self, limit: Limit, work: Work, all: &ValidationLimits) -> bool {
        let (own, spent) = (&self.limits, &self.spent);
        let (maximum, before, whole) = match limit {
            Limit::Signatures => (own.signatures, spent.cost - work.cost, all.signatures),
            Limit::SignatureFailures => {
                (own.signature_failures, spent.failure_cost - work.failure_cost, all.signature_failures)
            }
            Limit::HashBlocks => (own.hash_blocks, spent.hash_blocks - work.hash_blocks, all.hash_blocks),
            Limit::Proofs => (own.proofs, spent.proofs - work.proofs, all.proofs),
            Limit::Aliases => return own.aliases - (spent.aliases - work.aliases) >= all.aliases,
        };
        maximum.saturating_sub(before) >= whole / DUE_PART
    }

    /// Begins or continues a response, for the limit of proofs in one response. `proofs` is the number
    /// that it has taken so far.
    pub(super) const fn continue_response(&mut self, proofs: u32) {
        self.proofs_before = self.spent.proofs.saturating_sub(proofs);
    }

    /// Deducts the work for the records of a response, in each step of its validation.
    pub(super) fn charge_records(&mut self, records: usize) {
        self.spent.cost += u32::try_from(records / UNIT_RECORDS).unwrap_or(u32::MAX >> 1);
    }

    /// Whether further failures of this cost would reach the limit of failures.
    pub(super) const fn is_near_failure_limit(&self, cost: u32) -> bool {
        self.spent.failure_cost + cost >= self.limits.signature_failures
    }

    /// Deducts one signature verification over this number of octets of RDATA. The caller calls it before
    /// the verification.
    pub(super) fn take_signature(&mut self, octets: usize) -> Result<(), Limit> {
        if self.spent.failure_cost >= self.limits.signature_failures {
            return Err(Limit::SignatureFailures);
        }
        if self.spent.cost >= self.limits.signatures {
            return Err(Limit::Signatures);
        }
        self.spent.signatures += 1;
        self.spent.cost += 1 + octets_cost(octets);
        Ok(())
    }

    /// Counts signatures that do not verify, after [`Budget::take_signature`].
    pub(super) const fn count_failures(&mut self, failures: Failures) {
        self.spent.signature_failures += failures.verifications;
        self.spent.failure_cost += failures.cost;
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
    pub(crate) fn take_proof(&mut self, key: &VrfPublicKey) -> Result<(), Limit> {
        let in_response = self.spent.proofs - self.proofs_before;
        if in_response >= self.limits.proofs_per_response || self.spent.proofs >= self.limits.proofs {
            return Err(Limit::Proofs);
        }
        if self.spent.cost >= self.limits.signatures {
            return Err(Limit::Signatures);
        }
        self.spent.proofs += 1;
        self.spent.cost += cost_of(key.verification_nanoseconds());
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

/// Returns the cost of the verification of an invalid signature over this number of octets of RDATA.
pub(super) fn failure_cost(key: &PublicKey, octets: usize) -> u32 {
    cost_of(key.verification_nanoseconds()) + octets_cost(octets)
}

/// Returns the cost of hashing this number of octets.
fn octets_cost(octets: usize) -> u32 {
    u32::try_from(octets / UNIT_OCTETS).unwrap_or(u32::MAX >> 1)
}

/// Returns the number of signatures of P-256 that a verification counts as.
const fn cost_of(nanoseconds: u32) -> u32 {
    nanoseconds.div_ceil(UNIT_NANOSECONDS)
}
