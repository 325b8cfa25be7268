//! Limits the work for one client query. The same budget applies to every path of a validation. It
//! protects against KeyTrap (CVE-2023-50387) and expensive closest encloser proofs
//! (CVE-2023-50868).

/// Limits of the work. The defaults are in the range of those of common resolvers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationLimits {
    /// Maximum number of signature verifications for each client query.
    pub signatures: u32,
    /// Maximum number of signature verifications that fail, for each client query.
    pub failures: u32,
    /// Maximum number of keys to try for one RRSIG record if key tags collide.
    pub keys_per_signature: usize,
    /// Maximum number of RRSIG records to check for one RRset.
    pub signatures_per_rrset: usize,
    /// Maximum number of DNSKEY records of a zone; with more, the zone is Bogus.
    pub dnskeys: usize,
    /// Maximum number of NSEC5KEY records of a zone; with more, its denials are Bogus.
    pub nsec5_keys: usize,
    /// Maximum number of NSEC3 iterations to compute; with more, the answer is Insecure (RFC 9276
    /// §3.2).
    pub iterations: u16,
    /// Maximum number of NSEC3 iterations with which the answer is Insecure; with more, it is Bogus
    /// (RFC 9276 §3.2).
    pub tolerated_iterations: u16,
    /// Maximum number of SHA-1 blocks for NSEC3 hashes, for each client query.
    pub hash_blocks: u32,
    /// Maximum number of NSEC3 records in one response; with more, the response is Bogus.
    pub nsec3_records: usize,
    /// Maximum number of NSEC5 proofs to verify for each response.
    pub proofs_per_response: u32,
    /// Maximum number of NSEC5 proofs to verify for each client query.
    pub proofs: u32,
    /// Maximum number of NSEC5 proofs in one response that are malformed, do not verify, or lead to
    /// no record. If their number exceeds the limit, the validator ignores further proofs.
    pub spare_proofs: u32,
    /// Maximum number of CNAME and DNAME steps for each client query.
    pub aliases: u32,
}

impl Default for ValidationLimits {
    fn default() -> Self {
        Self {
            signatures: 64,
            failures: 16,
            keys_per_signature: 2,
            signatures_per_rrset: 8,
            dnskeys: 32,
            nsec5_keys: 4,
            iterations: 50,
            tolerated_iterations: 500,
            hash_blocks: 600,
            nsec3_records: 8,
            proofs_per_response: 4,
            proofs: 12,
            spare_proofs: 2,
            aliases: 16,
        }
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// [`ValidationLimits::signatures`].
    #[error("signature verifications")]
    Signatures,
    /// [`ValidationLimits::failures`].
    #[error("signatures that do not verify")]
    Failures,
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
    pub failures: u32,
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
    /// Returns the work done since `before`, an earlier value of the same counts.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            signatures: self.signatures - before.signatures,
            failures: self.failures - before.failures,
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
    /// Number of proofs verified before the current response.
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

    pub(super) const fn begin_response(&mut self) {
        self.proofs_before = self.spent.proofs;
    }

    /// Deducts one signature verification. The caller calls it before the verification.
    pub(super) const fn take_signature(&mut self) -> Result<(), Limit> {
        if self.spent.failures >= self.limits.failures {
            return Err(Limit::Failures);
        }
        if self.spent.signatures >= self.limits.signatures {
            return Err(Limit::Signatures);
        }
        self.spent.signatures += 1;
        Ok(())
    }

    pub(super) const fn count_failure(&mut self) {
        self.spent.failures += 1;
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

    pub(super) const fn take_alias(&mut self) -> Result<(), Limit> {
        if self.spent.aliases >= self.limits.aliases {
            return Err(Limit::Aliases);
        }
        self.spent.aliases += 1;
        Ok(())
    }
}
