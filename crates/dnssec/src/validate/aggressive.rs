//! Aggressive use of denial records (RFC 8198): what records of several earlier responses deny
//! together. The caller searches its cache for records, and [`find_denial`] evaluates them with the
//! rules for the records of one response.

use super::budget::{Budget, ValidationLimits};
use super::claim::{Claim, DenialKind, check_can_be_encloser};
use super::evidence::Candidate;
use super::{BogusReason, ValidationError};
use crate::denial::nsec::validate::NsecRecords;
use crate::denial::nsec3::validate::Nsec3Records;
use crate::denial::nsec5::validate::Nsec5Records;
use crate::denial::{nsec3, nsec5};
use nonesuch_crypto::vrf::VRF_HASH_OCTETS;
use nonesuch_proto::{NameRef, Rtype, bitmap};

/// An NSEC3 hash.
pub type Sha1Hash = [u8; 20];
/// The hash in an NSEC5 proof.
pub type VrfHash = [u8; VRF_HASH_OCTETS];

/// A record of type NSEC, NSEC3 or NSEC5 that was Secure in an earlier response.
#[derive(Clone, Copy, Debug)]
pub struct DenialRecord<'m> {
    candidate: Candidate<'m>,
    apex: NameRef<'m>,
}

/// The part of the chain that a record covers: from its owner to the next name or hash. The next
/// name or hash of the last record of a chain is the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span<'m> {
    /// NSEC.
    Names {
        /// The owner.
        owner: NameRef<'m>,
        /// The next name. It follows the owner, or is the apex.
        next: NameRef<'m>,
    },
    /// NSEC3.
    Sha1 {
        /// The hash in the owner name.
        hash: Sha1Hash,
        /// The next hash.
        next: Sha1Hash,
        /// The salt, 0 to 255 octets.
        salt: &'m [u8],
        /// Additional iterations.
        iterations: u16,
    },
    /// NSEC5.
    Vrf {
        /// The key tag.
        tag: u16,
        /// The hash in the owner name.
        hash: VrfHash,
        /// The next hash.
        next: VrfHash,
    },
}

/// The hashes of names that the caller knows.
#[derive(Clone, Copy, Debug)]
pub enum KnownHashes<'h> {
    /// None: the records are NSEC records.
    None,
    /// NSEC3: names and their hashes.
    Sha1(&'h [(NameRef<'h>, Sha1Hash)]),
    /// NSEC5: names, with the key tags and the hashes of their proofs. An earlier validation has
    /// verified the proofs.
    Vrf(&'h [(NameRef<'h>, u16, VrfHash)]),
}

impl<'m> DenialRecord<'m> {
    /// Reads a record of the zone at `apex`. `rtype` is NSEC, NSEC3 or NSEC5.
    ///
    /// # Errors
    /// If the record is malformed or unsuitable for a denial.
    pub fn read(
        rtype: Rtype,
        owner: NameRef<'m>,
        rdata: &'m [u8],
        apex: NameRef<'m>,
    ) -> Result<Self, BogusReason> {
        Ok(Self { candidate: Candidate::read_record(rtype, owner, rdata, apex)?, apex })
    }

    /// Returns the span.
    #[must_use]
    pub const fn span(&self) -> Span<'m> {
        match &self.candidate {
            Candidate::Nsec(record) => {
                let (owner, next) = record.span();
                Span::Names { owner, next }
            }
            Candidate::Nsec3(record) => {
                let ((hash, next), fields) = (record.span(), record.fields());
                Span::Sha1 { hash, next, salt: fields.salt, iterations: fields.iterations }
            }
            Candidate::Nsec5(record) => {
                let (hash, next) = record.span();
                Span::Vrf { tag: record.fields().tag, hash, next }
            }
        }
    }

    /// Whether the record has the opt-out flag: unsigned delegations may exist in its span.
    #[must_use]
    pub const fn is_opt_out(&self) -> bool {
        match &self.candidate {
            Candidate::Nsec(_) => false,
            Candidate::Nsec3(record) => record.is_opt_out(),
            Candidate::Nsec5(record) => record.fields().flags & nsec5::OPT_OUT_FLAG != 0,
        }
    }

    /// Whether the name that the record matches may be the closest encloser of a name: it is neither
    /// a zone cut nor the owner of a DNAME record.
    #[must_use]
    pub fn can_be_encloser(&self) -> bool {
        let map = match &self.candidate {
            Candidate::Nsec(record) => record.map(),
            Candidate::Nsec3(record) => record.fields().bitmap,
            Candidate::Nsec5(record) => record.fields().bitmap,
        };
        check_can_be_encloser(self.apex, map).is_ok()
    }

    /// Whether the record was generated online for one name, and therefore denies no other names:
    ///
    /// - compact denial (RFC 9824): the next name is the successor of the owner, or of the owner
    ///   and all names below it, or the type bit map has NXNAME;
    /// - minimally covering NSEC (RFC 4470): the first label of the next name ends with a zero
    ///   octet, or at most one possible name with the parent of the owner is in the span;
    /// - white lies (RFC 7129, appendix B): the span has less than 2^97 hashes. In a chain of
    ///   2^30 names, the expected number of such spans is below 2^-3.
    #[must_use]
    pub fn is_minimal(&self) -> bool {
        match &self.candidate {
            Candidate::Nsec(record) => {
                let (owner, next) = record.span();
                bitmap::contains(record.map(), Rtype::NXNAME) || self.is_minimal_span(owner, next)
            }
            Candidate::Nsec3(record) => {
                let (hash, next) = record.span();
                // A chain of one record covers all other hashes.
                hash != next && high_half(&next).wrapping_sub(high_half(&hash)) <= 1
            }
            Candidate::Nsec5(_) => false,
        }
    }

    fn is_minimal_span(&self, owner: NameRef<'_>, next: NameRef<'_>) -> bool {
        // The only record of a zone with one name.
        if owner == self.apex && next == self.apex {
            return false;
        }
        if next.labels().next().is_some_and(|label| label.last() == Some(&0)) {
            return true;
        }
        let after = owner.successor_of_subtree(self.apex);
        next == owner.successor(self.apex).view()
            || next == after.view()
            || next == after.view().successor_of_subtree(self.apex).view()
    }
}

/// The first eight octets, as a number.
fn high_half(hash: &Sha1Hash) -> u64 {
    hash.first_chunk().map_or(0, |octets| u64::from_be_bytes(*octets))
}

/// Returns what the records of the zone at `apex` prove of the claim; `None` if they do not prove
/// it as Secure. They prove nothing if a covering record has the opt-out flag, or if their NSEC3
/// parameters differ or exceed the default of [`ValidationLimits::max_iterations_secure`].
///
/// It computes NSEC3 hashes that `hashes` does not have, and verifies no NSEC5 proofs.
#[must_use]
pub fn find_denial(
    apex: NameRef<'_>,
    records: &[DenialRecord<'_>],
    hashes: KnownHashes<'_>,
    claim: Claim<'_>,
) -> Option<DenialKind> {
    let mut budget = Budget::new(ValidationLimits::default());
    let (mut names, mut sha1, mut vrf) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        match record.candidate {
            Candidate::Nsec(record) => names.push(record),
            Candidate::Nsec3(record) => sha1.push(record),
            Candidate::Nsec5(record) => vrf.push(record),
        }
    }
    let proved = match hashes {
        KnownHashes::None => NsecRecords::new(names).check_claim(claim).map_err(ValidationError::from),
        KnownHashes::Sha1(hashes) => {
            let mut records = Nsec3Records::new(apex, sha1).ok()?;
            hashes.iter().for_each(|(name, hash)| records.add_hash(*name, *hash));
            records.check_claim(claim, &mut budget)
        }
        KnownHashes::Vrf(hashes) => {
            let mut records = Nsec5Records::new(apex, vrf, Vec::new());
            hashes.iter().for_each(|(name, tag, hash)| records.add_proved(*name, *tag, hash));
            records.check_claim(claim, &[], &mut budget)
        }
    };
    proved.ok().filter(|proved| proved.insecure_reason.is_none()).map(|proved| proved.kind)
}

// The lengths of hashes are part of the public interface.
const _: () = assert!(size_of::<nsec3::Hash>() == size_of::<Sha1Hash>());
const _: () = assert!(size_of::<nsec5::Hash>() == size_of::<VrfHash>());
