//! The work that one client query may cost: one budget goes through every path (KeyTrap, CVE-2023-50387; closest encloser
//! proofs, CVE-2023-50868).

/// Bounds of the work; the defaults are in the range of what resolvers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValidationLimits {
    /// Signature verifications for each client query.
    pub signatures: u32,
    /// How many of them may fail.
    pub failures: u32,
    /// Keys tried for one RRSIG record, where tags collide.
    pub keys_per_signature: usize,
    /// RRSIG records looked at for one RRset.
    pub signatures_per_rrset: usize,
    /// DNSKEY records of a zone; with more, the zone is bogus.
    pub dnskeys: usize,
    /// NSEC5KEY records of a zone; with more, its denials are bogus.
    pub nsec5_keys: usize,
    /// NSEC3 iterations that are computed; with more, the answer is insecure (RFC 9276 §3.2).
    pub iterations: u16,
    /// NSEC3 iterations with which the answer is insecure; with more, it is bogus (RFC 9276 §3.2).
    pub tolerated_iterations: u16,
    /// Blocks of SHA-1 for NSEC3 hashes for each client query.
    pub hash_blocks: u32,
    /// NSEC3 records in one response; with more, it is bogus.
    pub nsec3_records: usize,
    /// Verifications of NSEC5 proofs for each response.
    pub proofs_per_response: u32,
    /// Verifications of NSEC5 proofs for each client query.
    pub proofs: u32,
    /// NSEC5 proofs looked at in one response beyond those that are needed.
    pub spare_proofs: u32,
    /// CNAME and DNAME steps for each client query.
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

/// A bound that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Limit {
    /// [`ValidationLimits::signatures`].
    #[error("signature verifications")]
    Signatures,
    /// [`ValidationLimits::failures`].
    #[error("signatures that do not fit")]
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

/// Work that was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Signatures verified, those that do not fit among them.
    pub signatures: u32,
    /// Signatures that do not fit.
    pub failures: u32,
    /// NSEC3 hashes computed.
    pub hashes: u32,
    /// Blocks of SHA-1 for them.
    pub hash_blocks: u32,
    /// NSEC5 proofs verified.
    pub proofs: u32,
    /// Aliases followed.
    pub aliases: u32,
}

impl Work {
    /// What was done after `before`, which this one began with.
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

/// The budget of one client query: made once for it, passed to the validation of each response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    limits: ValidationLimits,
    spent: Work,
    /// Proofs verified before the current response.
    proofs_before: u32,
}

impl Budget {
    /// A budget of which nothing is spent.
    #[must_use]
    pub fn new(limits: ValidationLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// The bounds.
    #[must_use]
    pub const fn limits(&self) -> &ValidationLimits {
        &self.limits
    }

    /// What is spent.
    #[must_use]
    pub const fn spent(&self) -> Work {
        self.spent
    }

    pub(super) const fn begin_response(&mut self) {
        self.proofs_before = self.spent.proofs;
    }

    /// To be called before a signature is verified.
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

    /// To be called before a name is hashed.
    pub(crate) const fn take_hash(&mut self, blocks: u32) -> Result<(), Limit> {
        let after = self.spent.hash_blocks.saturating_add(blocks);
        if after > self.limits.hash_blocks {
            return Err(Limit::HashBlocks);
        }
        self.spent.hash_blocks = after;
        self.spent.hashes += 1;
        Ok(())
    }

    /// To be called before an NSEC5 proof is verified.
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
