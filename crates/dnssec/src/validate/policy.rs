//! Which algorithms a validator knows. All others count as unknown, so that zones with only such
//! algorithms are Insecure (RFC 4035 §5.2).

use nonesuch_crypto::{Algorithm, KeyError, PublicKey};

/// The algorithms that a validator knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmPolicy {
    /// Whether it knows algorithms with numbers for private use and unassigned numbers, the aliases
    /// for NSEC5 included.
    pub experimental: bool,
    /// Whether it knows RSASHA1 and RSASHA1-NSEC3-SHA1. RFC 9905 forbids it.
    pub sha1: bool,
    /// Whether a zone with a DS record or trust anchor of a known post-quantum algorithm needs valid
    /// signatures of such an algorithm. Otherwise any valid signature suffices (RFC 6840 §5.11), also
    /// one that a quantum computer has forged.
    pub requires_post_quantum: bool,
}

impl AlgorithmPolicy {
    /// All algorithms except those with SHA-1.
    pub const ALL: Self = Self { experimental: true, sha1: false, requires_post_quantum: false };
    /// The algorithms with an assigned number, except those with SHA-1.
    pub const ASSIGNED: Self = Self { experimental: false, ..Self::ALL };

    /// Whether the validator knows an algorithm.
    #[must_use]
    pub fn knows(self, algorithm: Algorithm) -> bool {
        match algorithm.entry() {
            Some(entry) => {
                self.experimental || (entry.alias_of.is_none() && entry.scheme.experimental.is_none())
            }
            None => self.sha1 && algorithm.is_sha1(),
        }
    }

    /// Parses a public key as [`PublicKey::parse`] does.
    ///
    /// # Errors
    /// Those of [`PublicKey::parse`]; [`KeyError::UnknownAlgorithm`] also for a key whose algorithm the
    /// validator does not know.
    pub(super) fn parse(self, algorithm: Algorithm, key: &[u8]) -> Result<PublicKey, KeyError> {
        if !self.knows(algorithm) {
            return Err(KeyError::UnknownAlgorithm(algorithm));
        }
        if algorithm.is_sha1() {
            return PublicKey::parse_sha1(algorithm, key);
        }
        PublicKey::parse(algorithm, key)
    }
}

/// Whether no quantum computer is known to forge signatures of the algorithm.
pub(super) fn is_post_quantum(algorithm: Algorithm) -> bool {
    algorithm.entry().is_some_and(|entry| entry.scheme.is_post_quantum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_private_use_and_sha1_are_known_only_if_switched_on() {
        let assigned = [8, 10, 13, 14, 15, 16, 18];
        let experimental = [228, 229, 230, 231, 232, 233, 234, 235, 236, 237, 248, 249, 251];
        let unknown = [0, 1, 3, 6, 12, 252, 253, 254, 255];
        let with_sha1 = AlgorithmPolicy { sha1: true, ..AlgorithmPolicy::ASSIGNED };
        let known = |policy: AlgorithmPolicy, numbers: &[u8]| {
            let count = numbers.iter().filter(|number| policy.knows(Algorithm(**number))).count();
            (count == numbers.len(), count == 0)
        };
        for policy in [AlgorithmPolicy::ALL, AlgorithmPolicy::ASSIGNED, with_sha1] {
            assert_eq!(known(policy, &assigned), (true, false));
            assert_eq!(known(policy, &unknown), (false, true));
            assert_eq!(known(policy, &[5, 7]), (policy.sha1, !policy.sha1));
            assert_eq!(known(policy, &experimental), (policy.experimental, !policy.experimental));
        }
    }
}
